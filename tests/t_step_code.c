/* Code that is written, or written anew, while it is stepped (tests/jit_target.c): what mtui decodes of it are the
 * branches that stepping saw, by any number of threads and by libipt too, and the calls that the program counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/step/step_code.h"
#include "lib_branches.h"
#include "lib_program.h"
#include "lib_run.h"
#include "lib_step.h"

#define SOON 20.0

static bool has_ended(void *file)
{
    size_t n = 0;
    char *text = run_read_file(file, &n);
    bool whole = text && n && text[n - 1] == '\n';
    free(text);
    return whole;
}

/* Steps the program; what it says at its end is left in `said`. One whose call alone is stepped waits behind it,
 * so that it has not ended before the snapshot is taken. */
static void record(struct step_rec *r, const char *options, const char *way, char said[64])
{
    *r = (struct step_rec){.dir = program_mkdir()};
    snprintf(r->truth, sizeof r->truth, "%s/truth", r->dir);
    snprintf(r->data, sizeof r->data, "%s/out", r->dir);
    const char *tools = getenv("MTUI_BUILD"), *wait = strstr(options, "-t ") ? "wait" : "";
    bool ok = program_shell(r->dir,
                            "'%s/mtui' run -r step %s --batch --truth truth -o out -- "
                            "'%s/tests/jit_target' %s said %s 2>err </dev/null",
                            tools, options, tools, way, wait);
    char *out = xasprintf("%s/said", r->dir), *err = xasprintf("%s/err", r->dir);
    bool ended = ok && run_until(has_ended, out, SOON);
    if (*wait)
        program_shell(r->dir, "kill $(sed -n 's/^pid = //p' out/session.ini)");
    char *text = run_read_file(ended ? out : err, NULL);
    if (!ended)
        fail_msg("%s: %s", way, text ? text : "");
    snprintf(said, 64, "%s", text);
    free(text);
    free(out);
    free(err);
    step_rec_read_truth(r);
    assert_true(r->n_branches > 0);
}

static void compare(const struct step_rec *r, const char *way, const char *options)
{
    struct branches ours = branches_of_mtui(r->data, options);
    size_t n = ours.len;
    while (n) { /* thread by thread */
        pid_t tid = ours.data[0].tid;
        struct branches one = {0}, truth = branches_of_truth(r, tid);
        char *what = xasprintf("%s %s", way, options);
        size_t rest = 0;
        one.data = xcalloc(ours.len, sizeof *one.data);
        for (size_t i = 0; i < ours.len; i++) {
            if (ours.data[i].tid == tid)
                one.data[one.len++] = ours.data[i];
            else
                ours.data[rest++] = ours.data[i];
        }
        ours.len = n = rest;
        branches_equal(what, &one, &truth);
        free(what);
        branches_free(&one);
        branches_free(&truth);
    }
    branches_free(&ours);
}

/* How many spans have this name. */
static long spans_of(const struct step_rec *r, const char *name)
{
    char line[64] = "", *command = xasprintf("'%s/mtui' export -f spans '%s' 2>/dev/null | "
                                             "awk -F '\\t' '$6 == \"%s\"' | wc -l",
                                             getenv("MTUI_BUILD"), r->data, name);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    assert_non_null(fgets(line, sizeof line, p));
    assert_int_equal(pclose(p), 0);
    free(command);
    return strtol(line, NULL, 10);
}

static void step_way(const char *options, const char *way, long leaves, long twigs)
{
    struct step_rec r;
    char said[64], expected[64];
    record(&r, options, way, said);
    snprintf(expected, sizeof expected, "leaves %ld twigs %ld\n", leaves, twigs);
    assert_string_equal(said, expected);
    compare(&r, way, "--threads 1");
    compare(&r, way, "--threads 2");
    compare(&r, way, "--threads 7");
    compare(&r, way, "--decoder libipt");
    assert_int_equal(spans_of(&r, "leaf"), leaves);
    assert_int_equal(spans_of(&r, "twig"), twigs);
    if (strcmp(way, "program") == 0)
        assert_int_equal(spans_of(&r, "patched"), 8);
    step_rec_free(&r);
}

#define WAY(name)                                                                                  \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        for (int i = 0; i < 5; i++)                                                                \
            step_way("-t work", #name, 4, 8);                                                      \
    }

WAY(rewritten)
WAY(across)
WAY(mapped)
WAY(again)
WAY(twofold)
WAY(program)

/* All threads are stepped, from the first instruction. */
static void threads(void **state)
{
    (void)state;
    step_way("--mode whole", "threads", 4, 8);
}

static bool has_mapped(const struct maps *maps, const char *path)
{
    for (size_t i = 0; i < maps_count(maps); i++)
        if (strcmp(maps_at(maps, i)->path, path) == 0)
            return true;
    return false;
}

/* Between an execve(2) and the stop that tells of it the new program's mappings are not taken for the former one's. */
static void mappings_wait_for_the_exec(void **state)
{
    (void)state;
    char program[PATH_MAX], us[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", us, sizeof us - 1);
    assert_true(n > 0);
    us[n] = '\0';
    assert_non_null(realpath("/bin/true", program));
    pid_t pid = fork();
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        execl(program, program, (char *)NULL);
        _exit(1);
    }
    int status;
    struct err err = {0};
    struct step_code *code;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(step_code_new(&code, pid, &err), 0);
    assert_int_equal(step_code_refresh(code, &err), 0);
    assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_TRACEEXEC), 0);
    assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status >> 8, SIGTRAP | PTRACE_EVENT_EXEC << 8);
    assert_int_equal(step_code_refresh(code, &err), MTUI_E_GONE);
    assert_true(has_mapped(step_code_maps(code), us));
    assert_int_equal(step_code_replaced(code, &err), 0);
    assert_true(has_mapped(step_code_maps(code), program));
    assert_false(has_mapped(step_code_maps(code), us));
    assert_int_equal(step_code_refresh(code, &err), 0);
    step_code_free(code);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
}

int main(void)
{
    if (getuid() != 0) {
        print_message("[  SKIPPED ] t_step_code: uprobes need root or CAP_PERFMON\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rewritten), cmocka_unit_test(across),  cmocka_unit_test(mapped),
        cmocka_unit_test(again),     cmocka_unit_test(twofold), cmocka_unit_test(program),
        cmocka_unit_test(threads),   cmocka_unit_test(mappings_wait_for_the_exec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
