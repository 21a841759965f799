/* The step recorder on a live program, and the exact decoder on what it wrote: both against the list of
 * branches that the recorder kept beside it, and `perf script` against the same list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/symbols/elf_file.h"
#include "core/step/step_recorder.h"
#include "core/step/step_sites.h"
#include "decode/open/open.h"
#include "decode/trace/stats.h"
#include "lib_program.h"
#include "lib_run.h"

static const char source[] =
    "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n#include <poll.h>\n"
    "#define NI __attribute__((noinline, noclone))\n"
    "NI int leaf(int x) { __asm__ volatile(\"\"); return x * 3 + 1; }\n"
    "NI int middle(int x) { int s = 0; for (int i = 0; i < x % 7 + 2; i++) s += leaf(i); return s; }\n"
    "NI int recurse(int n) { return n < 2 ? n : recurse(n - 1) + recurse(n - 2); }\n"
    "NI int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }\n"
    "NI int (*volatile indirect)(int) = leaf;\n"
    "NI int work(int x) { int a[16]; for (int i = 0; i < 16; i++) a[i] = i * 37 % 16;\n"
    "  qsort(a, 16, sizeof *a, compare); return middle(x) + recurse(6) + indirect(x) + getppid() * 0; }\n"
    "int main(void) { struct pollfd p = {0, POLLIN, 0}; int n = 0; puts(\"ready\"); fflush(stdout);\n"
    "  while (poll(&p, 1, 1) == 0) work(++n);\n"
    "  printf(\"%d\\n\", n > 2); return 0; }\n";

struct made {
    char *dir;
    struct program p;
    uint64_t offset; /* of work in its file */
    char exe[256], data[256], truth[256];
};

static void start(struct made *m)
{
    m->dir = program_mkdir();
    program_write(m->dir, "t.c", source);
    assert_true(program_build(m->dir, "t.c", "t", "-O1 -g -fno-inline"));
    snprintf(m->exe, sizeof m->exe, "%s/t", m->dir);
    snprintf(m->data, sizeof m->data, "%s/perf.data", m->dir);
    snprintf(m->truth, sizeof m->truth, "%s/truth", m->dir);
    struct elf_file *f;
    assert_int_equal(elf_file_open_path(m->exe, &f, NULL), 0);
    assert_true(elf_file_vaddr_to_offset(f, program_nm(m->dir, "t", "work"), &m->offset));
    elf_file_free(f);
    program_start(&m->p, m->dir, "./t");
}

/* Records `windows` calls of work in a child, as mtui does. */
static void record(struct made *m, unsigned windows)
{
    int say[2];
    assert_int_equal(pipe(say), 0);
    pid_t child = fork();
    if (child == 0) {
        struct step_site site = {.path = m->exe, .offset = m->offset, .is_entry = true};
        char sites[300];
        snprintf(sites, sizeof sites, "%s/sites", m->dir);
        if (step_sites_write(sites, &site, 1, NULL) < 0)
            _exit(2);
        struct step_recorder_options o = {.sites = sites,
                                          .output = m->data,
                                          .one_file = true,
                                          .ctl_fd = -1,
                                          .ack_fd = -1,
                                          .say_fd = say[1]};
        o.tracer.pid = m->p.pid;
        o.tracer.at_sites = true;
        o.tracer.budget = 200000;
        o.tracer.encoding = pt_encode_options_default();
        o.tracer.truth = fopen(m->truth, "w");
        struct err err = {0};
        int rc = step_recorder_run(&o, &err);
        fclose(o.tracer.truth);
        if (rc < 0)
            fprintf(stderr, "%s\n", err.text);
        _exit(rc < 0);
    }
    close(say[1]);
    FILE *f = fdopen(say[0], "r");
    char line[512];
    for (unsigned n = 0; n < windows && fgets(line, sizeof line, f);)
        n += strstr(line, "ended: returned") != NULL;
    kill(child, SIGTERM);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    fclose(f);
}

/* The program has run on unharmed: it ends by itself when asked to, with its own count. */
static void finish(struct made *m)
{
    char line[64] = "";
    close(m->p.in);
    m->p.in = -1;
    assert_non_null(fgets(line, sizeof line, m->p.out));
    assert_string_equal(line, "1\n");
    program_end(&m->p);
    program_rmdir(m->dir);
}

/* Calls into each function by the truth, by address range. */
static uint64_t calls_to(const char *truth, uint64_t start, uint64_t len)
{
    uint64_t n = 0;
    FILE *f = fopen(truth, "r");
    char line[256], kind[16];
    uint64_t clock, from, to, sp;
    int tid;
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "%" SCNu64 "\t%d\t%15s\t%" SCNx64 "\t%" SCNx64 "\t%" SCNx64, &clock, &tid,
                   kind, &from, &to, &sp) == 6)
            n += strcmp(kind, "call") == 0 && to >= start && to < start + len;
    fclose(f);
    return n;
}

static uint64_t stat_calls(const struct recording *r, const char *name)
{
    uint64_t n = 0;
    for (size_t t = 0; t < trace_thread_count(r->trace); t++)
        for (size_t d = 0; d < trace_thread(r->trace, t)->depths; d++) {
            size_t len;
            const struct span *s = trace_row(r->trace, t, d, &len);
            for (size_t i = 0; i < len; i++)
                n += strcmp(functions_get(trace_functions(r->trace), s[i].fn)->name, name) == 0;
        }
    return n;
}

static uint64_t runtime_bias(const struct made *m)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)m->p.pid);
    FILE *f = fopen(path, "r");
    uint64_t first = 0;
    assert_non_null(f);
    while (!first && fgets(line, sizeof line, f))
        if (strstr(line, m->exe))
            sscanf(line, "%" SCNx64, &first);
    fclose(f);
    return first; /* a PIE's first segment has address 0 */
}

static void calls_are_the_truth(void **state)
{
    (void)state;
    struct made m;
    start(&m);
    uint64_t bias = runtime_bias(&m);
    record(&m, 2);
    struct recording *r;
    struct open_options o = {.threads = 1};
    struct err err = {0};
    if (open_recording(&r, m.data, &o, &err) < 0)
        fail_msg("%s", err.text);
    if (trace_check(r->trace, &err) < 0)
        fail_msg("%s", err.text);
    static const char *const names[] = {"leaf", "middle", "recurse", "compare"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint64_t want = calls_to(m.truth, bias + program_nm(m.dir, "t", names[i]), 1);
        assert_true(want > 0);
        assert_int_equal(stat_calls(r, names[i]), want);
    }
    size_t gaps;
    trace_gaps(r->trace, &gaps);
    assert_int_equal(gaps, 0);
    recording_free(r);
    finish(&m);
}

/* from and to of every branch, without where tracing begins and ends */
static char *branches_of(const char *command)
{
    int status;
    char *out = run_output(command, &status);
    assert_int_equal(status, 0);
    return out;
}

static void perf_reads_the_same(void **state)
{
    (void)state;
    struct made m;
    start(&m);
    record(&m, 1);
    char command[1024];
    snprintf(command, sizeof command,
             "perf script -i %s --itrace=be -F flags,ip,addr 2>/dev/null | grep -v 'tr strt\\|tr end' "
             "| sed 's/=>//' | awk '{print $(NF-1), $NF}'",
             m.data);
    char *theirs = branches_of(command);
    snprintf(command, sizeof command,
             "awk '$3 ~ /^(jump|cond|call|return)$/ {print $4, $5}' %s", m.truth);
    char *truth = branches_of(command);
    assert_true(strlen(truth) > 1000);
    assert_string_equal(theirs, truth);
    free(theirs);
    free(truth);
    finish(&m);
}

int main(void)
{
    if (getuid() != 0) {
        print_message("[  SKIPPED ] t_step: uprobes need root or CAP_PERFMON\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_the_truth),
        cmocka_unit_test(perf_reads_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
