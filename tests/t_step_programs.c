/* What programs do that a tracer can get wrong: signals, system calls that are broken off, processes and
 * threads, traps of their own, code that changes. Each is stepped through one call of work(), which must
 * be recorded whole and as it was, and the program must not notice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/machine/proc_stat.h"
#include "lib_stepper.h"

#define SOON 20.0

static const struct step_recorder_options calls = {.one_file = true,
                                                   .tracer = {.at_sites = true, .budget = 200000}};

static size_t step_one(const char *scenario, bool perf_has_the_code)
{
    struct stepper s;
    size_t n = 0;
    stepper_start_gated(&s, scenario);
    stepper_site(&s, "work");
    struct step_recorder_options once = calls;
    once.when.max_snapshots = 1;
    stepper_record(&s, &once, true);
    stepper_command(&s, "enable");
    stepper_go(&s);
    const char *line = stepper_wait(&s, "ended: ");
    if (!strstr(line, "ended: returned"))
        fail_msg("%s: %s", scenario, line);
    stepper_stop(&s);
    stepper_runs_free(&s, "work");
    if (perf_has_the_code)
        n = stepper_compare(&s, s.data);
    assert_true(stepper_end(&s) > 1);
    return n;
}

#define SCENARIO(name, perf_has_the_code)                                                          \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        size_t n = step_one(#name, perf_has_the_code);                                             \
        print_message("%s: %zu branches\n", #name, n);                                             \
    }

SCENARIO(plain, true)
SCENARIO(signals, true)
SCENARIO(restart, true)
SCENARIO(flags, true)
SCENARIO(int3, true)
SCENARIO(processes, true)
SCENARIO(threads, true)
SCENARIO(odd, false) /* perf takes its own vdso, at another address */
SCENARIO(code, false)
SCENARIO(fault, true)
SCENARIO(fibres, true)
SCENARIO(seccomp, true)
SCENARIO(block, true)
SCENARIO(traps, true)

/* A hit in a thread that blocks SIGTRAP at that moment stops nothing, and must not kill it later. */
static void hit_while_blocked(void **state)
{
    struct stepper s;
    (void)state;
    for (int i = 0; i < 5; i++) {
        stepper_start_gated(&s, "block");
        stepper_site(&s, "leaf");
        stepper_record(&s, &calls, true);
        stepper_command(&s, "enable");
        stepper_go(&s);
        stepper_wait(&s, "ended: "); /* the call behind the unblocking */
        stepper_command(&s, "stop");
        stepper_stop(&s);
        stepper_runs_free(&s, "leaf");
        stepper_end(&s);
    }
}

/* A SIGTRAP of the program's own that it blocks, and SIGTRAP ignored, do not go with stepping: the window ends
 * there, and the program finds nothing changed. */
static void trap_wanted_by_the_program(void **state)
{
    static const char *const scenarios[] = {"pending", "ignore"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct stepper s;
        stepper_start_gated(&s, scenarios[i]);
        stepper_site(&s, "work");
        struct step_recorder_options o = calls;
        o.one_file = true;
        o.when.max_snapshots = 1;
        stepper_record(&s, &o, true);
        stepper_command(&s, "enable");
        stepper_go(&s);
        assert_non_null(strstr(stepper_wait(&s, "ended: "), "ended: trap"));
        stepper_command(&s, "stop");
        stepper_stop(&s);
        assert_true(stepper_compare(&s, s.data) > 1);
        assert_true(stepper_end(&s) > 5);
    }
}

/* What ignores SIGTRAP from the beginning is not stepped, and that is said: by a trigger, and all of it. */
static void trap_ignored(void **state)
{
    (void)state;
    for (int sites = 0; sites < 2; sites++) {
        struct stepper s;
        struct step_recorder_options o = {.tracer = {.at_sites = sites}};
        int status;
        stepper_start(&s, "deaf");
        stepper_site(&s, "work");
        stepper_record(&s, &o, true);
        stepper_command(&s, "enable");
        assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
        s.pid = 0;
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
        stepper_runs_free(&s, "work");
        stepper_end(&s);
    }
}

/* A thread that blocks SIGTRAP when triggers are armed, as every new one does for a moment, is armed later. */
static void blocked_at_first(void **state)
{
    struct stepper s;
    (void)state;
    stepper_start_gated(&s, "late");
    stepper_site(&s, "leaf");
    stepper_record(&s, &calls, true);
    stepper_command(&s, "enable"); /* the sleepers are armed */
    stepper_wait(&s, "blocks SIGTRAP");
    stepper_go(&s);
    stepper_wait(&s, "ended: ");
    stepper_command(&s, "stop");
    stepper_stop(&s);
    stepper_runs_free(&s, "leaf");
    stepper_end(&s);
}

/* All threads: one alone may be in a stop of its tracer. */
static bool is_stopped(void *arg)
{
    char path[64];
    pid_t pid = *(pid_t *)arg;
    size_t threads = 0, stopped = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    for (struct dirent *f; d && (f = readdir(d));) {
        struct proc_stat st;
        pid_t tid = (pid_t)strtol(f->d_name, NULL, 10);
        if (tid <= 0 || proc_stat_read("/proc", pid, tid, &st, NULL) < 0)
            continue;
        threads++;
        stopped += st.state == 'T' || st.state == 't';
    }
    if (d)
        closedir(d);
    return threads == 3 && stopped == 3;
}

/* SIGSTOP takes effect while a call is stepped, and SIGCONT too. */
static void job_control(void **state)
{
    struct stepper s;
    (void)state;
    stepper_start_gated(&s, "stop");
    stepper_site(&s, "work");
    struct step_recorder_options once = calls;
    once.when.max_snapshots = 1;
    stepper_record(&s, &once, true);
    stepper_command(&s, "enable");
    stepper_go(&s);
    stepper_wait(&s, "mtui step: hit");
    assert_true(run_until(is_stopped, &s.target.pid, SOON));
    kill(s.target.pid, SIGCONT);
    assert_non_null(strstr(stepper_wait(&s, "ended: "), "returned"));
    /* It stops itself again in the next round, at full speed and traced; then the recorder goes. */
    assert_true(run_until(is_stopped, &s.target.pid, SOON));
    stepper_stop(&s);
    /* That it is stopped is nobody's business but its own. Let go of, its threads stop anew. */
    assert_true(run_until(is_stopped, &s.target.pid, SOON));
    close(s.target.in);
    s.target.in = -1;
    kill(s.target.pid, SIGCONT);
    stepper_end(&s);
}

/* The recorder goes while the thread that it steps is in a job-control stop. */
static void released_while_stopped(void **state)
{
    struct stepper s;
    (void)state;
    stepper_start_gated(&s, "stop");
    stepper_site(&s, "work");
    stepper_record(&s, &calls, true);
    stepper_command(&s, "enable");
    stepper_go(&s);
    stepper_wait(&s, "mtui step: hit");
    assert_true(run_until(is_stopped, &s.target.pid, SOON));
    stepper_stop(&s);
    assert_true(run_until(is_stopped, &s.target.pid, SOON));
    close(s.target.in);
    s.target.in = -1;
    kill(s.target.pid, SIGCONT);
    stepper_end(&s);
}

/* execve by a thread that is not the first, in the middle of a window. */
static void exec_by_a_thread(void **state)
{
    struct stepper s;
    (void)state;
    stepper_start(&s, "exec");
    struct step_recorder_options all = {.one_file = true, .tracer = {.from_exec = true, .budget = 3000}};
    stepper_record(&s, &all, true);
    stepper_command(&s, "enable");
    stepper_go(&s);
    char line[64] = "";
    stepper_wait(&s, "ended: budget");
    assert_non_null(fgets(line, sizeof line, s.target.out)); /* the new program */
    assert_string_equal(line, "ready\n");
    stepper_command(&s, "stop");
    stepper_stop(&s);
    stepper_runs_free(&s, NULL);
    stepper_compare(&s, s.data);
    stepper_end(&s);
}

static void ends_while_stepped(void **state)
{
    struct stepper s;
    (void)state;
    stepper_start_gated(&s, "exit");
    stepper_site(&s, "work");
    stepper_record(&s, &calls, true);
    stepper_command(&s, "enable");
    stepper_go(&s);
    assert_non_null(strstr(stepper_wait(&s, "ended: "), "ended: exited"));
    int status;
    assert_int_equal(waitpid(s.pid, &status, 0), s.pid); /* ends with its target */
    assert_int_equal(status, 0);
    s.pid = 0;
    assert_true(stepper_compare(&s, s.data) > 10);
    stepper_end(&s);
}

int main(void)
{
    if (getuid() != 0) {
        print_message("[  SKIPPED ] t_step_programs: uprobes need root or CAP_PERFMON\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),
        cmocka_unit_test(signals),
        cmocka_unit_test(restart),
        cmocka_unit_test(flags),
        cmocka_unit_test(int3),
        cmocka_unit_test(processes),
        cmocka_unit_test(threads),
        cmocka_unit_test(odd),
        cmocka_unit_test(code),
        cmocka_unit_test(fault),
        cmocka_unit_test(fibres),
        cmocka_unit_test(seccomp),
        cmocka_unit_test(block),
        cmocka_unit_test(traps),
        cmocka_unit_test(hit_while_blocked),
        cmocka_unit_test(trap_wanted_by_the_program),
        cmocka_unit_test(trap_ignored),
        cmocka_unit_test(blocked_at_first),
        cmocka_unit_test(job_control),
        cmocka_unit_test(released_while_stopped),
        cmocka_unit_test(exec_by_a_thread),
        cmocka_unit_test(ends_while_stepped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
