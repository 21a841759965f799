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
#include "lib_step_programs.h"

static uint64_t compared;

/* perf's lines in our words. */
static const char to_kinds[] =
    "| awk '/instruction trace error/ {print \"error\"; next} {"
    " tid = $1; sub(/:$/, \"\", $2); t = $2; gsub(/[.]/, \"\", t); sub(/^0+/, \"\", t); from = $(NF-2); to = $NF; "
    " f = \"\"; for (i = 3; i < NF - 2; i++) f = f (f == \"\" ? \"\" : \" \") $i; "
    " k = f; if (f == \"jmp\") k = \"jump\"; if (f == \"jcc\") k = \"cond\";"
    " if (f ~ /^tr strt/) k = \"begin\"; if (f == \"tr end async\") k = \"end:async\";"
    " if (f == \"tr end syscall\") k = \"end:syscall\"; if (f == \"tr end return\") k = \"end:return\";"
    " if (f == \"tr end call\") k = \"end:call\"; print tid, k, from, to}'";

static char *perf_branches(const char *data, const char *tid)
{
    char command[2048];
    int status;
    snprintf(command, sizeof command,
             "perf script -i %s --itrace=be --ns -F tid,time,flags,ip,addr 2>/dev/null %s | grep '^%s\\|^error'",
             data, to_kinds, tid);
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

/* What a recording must equal, whatever its packets look like. */
static void compare(const struct step_rec *r, const char *program, const struct step_encoding *e, const char *truth)
{
    char path[300], name[200];
    snprintf(path, sizeof path, "%s/%s.data", r->dir, e->name);
    step_rec_encode(r, e, path);
    char tid[32], one[64], libipt_too[64], seven[64];
    snprintf(tid, sizeof tid, "%d ", (int)r->branches[0].tid); /* per CPU, there is another one */
    snprintf(one, sizeof one, "--threads 1 --tid %s", tid);
    snprintf(libipt_too, sizeof libipt_too, "--decoder libipt --tid %s", tid);
    snprintf(seven, sizeof seven, "--threads 7 --tid %s", tid);
    char *ours = our_branches(path, one);
    if (program_have("perf")) {
        char *perf = perf_branches(path, tid);
        snprintf(name, sizeof name, "%s, %s against perf script", program, e->name);
        first_difference(name, ours, perf);
        compared += lines(ours);
        free(perf);
    }
    if (!e->overflow_every && !e->cut_head) {
        snprintf(name, sizeof name, "%s, %s against the truth", program, e->name);
        first_difference(name, ours, truth);
        compared += lines(ours);
    }
    /* libipt's blocks do not tell the last outcome before an overflow, and its clock runs ahead where tracing
     * ends, which makes another order over two CPUs; perf has both. */
    if (!e->overflow_every && !e->per_cpu) {
        char *libipt = our_branches(path, libipt_too);
        snprintf(name, sizeof name, "%s, %s against libipt", program, e->name);
        first_difference(name, ours, libipt);
        compared += lines(ours);
        free(libipt);
    }
    char *threads = our_branches(path, seven);
    snprintf(name, sizeof name, "%s, %s on seven threads", program, e->name);
    first_difference(name, threads, ours);
    free(threads);
    free(ours);
}

static bool for_every_program(const struct step_encoding *e)
{
    return strcmp(e->name, "cyc") == 0 || strcmp(e->name, "tsc") == 0 || strcmp(e->name, "small-psb") == 0 ||
           strcmp(e->name, "overflow") == 0;
}

/* Without any packet of time between two PSB+ nobody knows which of two libraries at one address it was. */
static bool untimely(const struct step_program *p, const struct step_encoding *e)
{
    return strcmp(p->name, "dlopen") == 0 && !e->packets.mtc && !e->packets.cyc;
}

static void branches_are_perfs_and_the_truth(void **state)
{
    (void)state;
    for (const struct step_program *p = step_programs; p->name; p++) {
        struct step_rec r;
        step_rec_program(&r, p, p == step_programs ? 2 : 1);
        char *truth = true_branches(&r);
        for (const struct step_encoding *e = step_encodings; e->name; e++)
            if ((p == step_programs || for_every_program(e)) && !untimely(p, e))
                compare(&r, p->name, e, truth);
        free(truth);
        step_rec_free(&r);
    }
    print_message("%" PRIu64 " branches compared with perf script, libipt and the truth\n", compared);
}

/* With a CYC before every packet both know the time of every branch that has one; direct branches have the
 * time of the packet before or behind them. */
static void times_are_perfs(void **state)
{
    struct step_rec r;
    (void)state;
    char path[300], command[2048];
    int status;
    if (!program_have("perf"))
        skip();
    step_rec_program(&r, &step_programs[0], 1);
    snprintf(path, sizeof path, "%s/times.data", r.dir);
    step_rec_encode(&r, &step_encodings[0], path);
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
    step_rec_free(&r);
}

int main(void)
{
    if (getuid() != 0) {
        print_message("[  SKIPPED ] t_pt_branches: uprobes need root or CAP_PERFMON\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branches_are_perfs_and_the_truth),
        cmocka_unit_test(times_are_perfs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
