/* Lists of branches: against `perf script --itrace=be` and against the truth, line for line, for several
 * programs in every encoding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib_program.h"
#include "lib_run.h"
#include "lib_step.h"

#define NI "#define NI __attribute__((noinline, noclone))\n"

static const char calls[] =
    "#include <stdlib.h>\n#include <unistd.h>\n" NI
    "NI int leaf(int x) { __asm__ volatile(\"\"); return x * 3 + 1; }\n"
    "NI int middle(int x) { int s = 0; for (int i = 0; i < x % 7 + 2; i++) s += leaf(i); return s; }\n"
    "NI int recurse(int n) { return n < 2 ? n : recurse(n - 1) + recurse(n - 2); }\n"
    "NI int deep(int n) { return n ? deep(n - 1) + 1 : 0; }\n"
    "NI int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }\n"
    "int (*volatile indirect)(int) = leaf;\n"
    "NI int work(int x) { int a[16]; for (int i = 0; i < 16; i++) a[i] = i * 37 % 16;\n"
    "  qsort(a, 16, sizeof *a, compare);\n"
    "  return middle(x) + recurse(13) + deep(100) + indirect(x) + getppid() * 0; }\n"
    STEP_MAIN("work(3)");

struct matrix {
    struct step_rec rec;
    uint64_t compared;
};

static int record_calls(void **state)
{
    static struct matrix m;
    step_rec_make(&m.rec, calls, false, "-O1 -g", "work", 2);
    *state = &m;
    return 0;
}

static int forget(void **state)
{
    struct matrix *m = *state;
    print_message("%" PRIu64 " branches compared with perf script and the truth\n", m->compared);
    step_rec_free(&m->rec);
    return 0;
}

/* perf's lines in our words. */
static const char to_kinds[] =
    "| awk '/instruction trace error/ {print \"error\"; next} {"
    " tid = $1; sub(/:$/, \"\", $2); t = $2; gsub(/[.]/, \"\", t); sub(/^0+/, \"\", t); from = $(NF-2); to = $NF; "
    " f = \"\"; for (i = 3; i < NF - 2; i++) f = f (f == \"\" ? \"\" : \" \") $i; "
    " k = f; if (f == \"jmp\") k = \"jump\"; if (f == \"jcc\") k = \"cond\";"
    " if (f ~ /^tr strt/) k = \"begin\"; if (f == \"tr end async\") k = \"end:async\";"
    " if (f == \"tr end syscall\") k = \"end:syscall\"; if (f == \"tr end return\") k = \"end:return\";"
    " if (f == \"tr end call\") k = \"end:call\"; print tid, k, from, to}'";

static char *perf_branches(const char *data)
{
    char command[2048];
    int status;
    snprintf(command, sizeof command,
             "perf script -i %s --itrace=be --ns -F tid,time,flags,ip,addr 2>/dev/null %s", data, to_kinds);
    return run_output(command, &status);
}

static char *our_branches(const char *data, const char *options)
{
    char command[1024];
    int status;
    char *mtui = NULL;
    assert_true(asprintf(&mtui, "%s/mtui", getenv("MTUI_BUILD")) > 0);
    snprintf(command, sizeof command,
              "%s export -f branches %s %s 2>/dev/null | awk 'NR > 1 {print ($4 == \"error\" ? $4 : $2 \" \" $4 \" \" $5 \" \" $6)}'",
             mtui, options, data);
    char *out = run_output(command, &status);
    free(mtui);
    return out;
}

static void first_difference(const char *name, const char *a, const char *b)
{
    unsigned line = 1;
    const char *la = a, *lb = b;
    for (; *a && *a == *b; a++, b++)
        if (*a == '\n') {
            line++;
            la = a + 1;
            lb = b + 1;
        }
    if (*a != *b)
        fail_msg("%s: line %u: \"%.*s\" and not \"%.*s\"", name, line, (int)strcspn(la, "\n"), la,
                 (int)strcspn(lb, "\n"), lb);
}

static uint64_t lines(const char *s)
{
    uint64_t n = 0;
    for (; *s; s++)
        n += *s == '\n';
    return n;
}

/* The truth in the same form. */
static char *true_branches(const struct step_rec *r)
{
    char *out = NULL;
    size_t len;
    FILE *f = open_memstream(&out, &len);
    for (size_t i = 0; i < r->n_branches; i++) {
        const struct step_branch *b = &r->branches[i];
        bool end = strcmp(b->kind, "async") == 0 || strcmp(b->kind, "syscall") == 0;
        fprintf(f, "%d %s%s %" PRIx64 " %" PRIx64 "\n", (int)b->tid, end ? "end:" : "", b->kind,
                b->from, end ? 0 : b->to);
    }
    fclose(f);
    return out;
}

static void is_the_truth(void **state)
{
    struct matrix *m = *state;
    char path[300], name[128], *truth = true_branches(&m->rec);
    for (const struct step_encoding *e = step_encodings; e->name; e++) {
        if (e->overflow_every || e->cut_head)
            continue;
        snprintf(path, sizeof path, "%s/%s.data", m->rec.dir, e->name);
        step_rec_encode(&m->rec, e, path);
        char *ours = our_branches(path, "");
        snprintf(name, sizeof name, "%s against the truth", e->name);
        first_difference(name, ours, truth);
        m->compared += lines(ours);
        free(ours);
    }
    free(truth);
}

static void equals_perf(void **state)
{
    struct matrix *m = *state;
    char path[300], name[128];
    if (!program_have("perf"))
        skip();
    for (const struct step_encoding *e = step_encodings; e->name; e++) {
        snprintf(path, sizeof path, "%s/%s.data", m->rec.dir, e->name);
        step_rec_encode(&m->rec, e, path);
        char *perf = perf_branches(path), *ours = our_branches(path, "");
        snprintf(name, sizeof name, "%s against perf script", e->name);
        first_difference(name, ours, perf);
        assert_true(lines(ours) > 2000);
        m->compared += lines(ours);
        free(perf);
        free(ours);
    }
}

static void libipt_finds_the_same(void **state)
{
    struct matrix *m = *state;
    char path[300], name[128];
    for (const struct step_encoding *e = step_encodings; e->name; e++) {
        if (e->overflow_every)
            continue; /* its blocks do not tell the last outcome before an overflow; perf does */
        snprintf(path, sizeof path, "%s/%s.data", m->rec.dir, e->name);
        step_rec_encode(&m->rec, e, path);
        char *theirs = our_branches(path, "--decoder libipt"), *ours = our_branches(path, "");
        snprintf(name, sizeof name, "%s against libipt", e->name);
        first_difference(name, ours, theirs);
        m->compared += lines(ours);
        free(theirs);
        free(ours);
    }
}

/* With a CYC before every packet both know the time of every branch that has one; direct branches have the
 * time of the packet before or behind them. */
static void times_are_perfs(void **state)
{
    struct matrix *m = *state;
    char path[300], command[2048];
    int status;
    if (!program_have("perf"))
        skip();
    snprintf(path, sizeof path, "%s/times.data", m->rec.dir);
    step_rec_encode(&m->rec, &step_encodings[0], path);
    snprintf(command, sizeof command, "perf script -i %s --itrace=be --ns -F time,flags 2>/dev/null | awk '$2 ~ /jcc|return/ {print $1}' | tr -d ' .:'", path);
    char *perf = run_output(command, &status);
    snprintf(command, sizeof command, "%s/mtui export -f branches %s 2>/dev/null | awk '$4 ~ /cond|return/ {print $1}'",
             getenv("MTUI_BUILD"), path);
    char *ours = run_output(command, &status);
    const char *a = ours, *b = perf;
    unsigned n = 0;
    for (; *a && *b; n++) {
        char *end_a, *end_b;
        long long x = strtoll(a, &end_a, 10), y = strtoll(b, &end_b, 10);
        if (x != y)
            fail_msg("branch %u at %lld, by perf at %lld", n, x, y);
        a = end_a + strspn(end_a, "\n");
        b = end_b + strspn(end_b, "\n");
    }
    assert_true(n > 1000 && !*a && !*b);
    free(perf);
    free(ours);
}

int main(void)
{
    if (getuid() != 0) {
        print_message("[  SKIPPED ] t_pt_branches: uprobes need root or CAP_PERFMON\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_truth),
        cmocka_unit_test(equals_perf),
        cmocka_unit_test(libipt_finds_the_same),
        cmocka_unit_test(times_are_perfs),
    };
    return cmocka_run_group_tests(tests, record_calls, forget);
}
