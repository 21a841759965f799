/* Whatever ends the recorder's process but SIGKILL: the target is let go of and runs on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/record/step_message.h"
#include "lib_stepper.h"

static const struct step_recorder_options endless = {.tracer = {.at_sites = true}};

static void wait_stepped(struct stepper *s, uint64_t instructions)
{
    struct step_message m;
    do {
        const char *line = stepper_wait(s, "mtui step: window ");
        assert_true(step_message_parse(line, strlen(line), &m));
    } while (m.tid != s->target.pid || m.instructions < instructions);
}

/* A recorder in the middle of a window that does not end by itself. */
static void begin(struct stepper *s)
{
    stepper_start(s, "many");
    stepper_site(s, "work");
    stepper_record(s, &endless, true);
    stepper_command(s, "enable");
    wait_stepped(s, 1000);
}

static int reap(struct stepper *s)
{
    int status;
    assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
    s->pid = 0;
    return status;
}

/* Signals whose default is to end a process (signal(7)), the C library's own two among them: the recorder ends
 * in order, with what it has in a file. */
static void signals_that_end(void **state)
{
    static const int some[] = {SIGHUP,  SIGQUIT, SIGABRT, SIGUSR1,   SIGUSR2, SIGSEGV, SIGTRAP,
                               SIGXCPU, SIGPWR,  32,      33,        64};
    (void)state;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        struct stepper s;
        begin(&s);
        assert_int_equal(syscall(SYS_kill, s.pid, some[i]), 0);
        assert_non_null(strstr(stepper_wait(&s, "ended: "), "ended: stopped"));
        stepper_wait(&s, "[ perf record: Dump ");
        int status = reap(&s);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("signal %d: status 0x%x", some[i], (unsigned)status);
        char *dump = xasprintf("%s.1", s.data);
        if (i == 0)
            assert_true(stepper_compare(&s, dump) > 10);
        assert_int_equal(access(dump, F_OK), 0);
        stepper_runs_free(&s, "work");
        assert_true(stepper_end(&s) > 1);
        free(dump);
    }
}

/* Signals that stop or do nothing by default change nothing. */
static void signals_that_do_not(void **state)
{
    struct stepper s;
    static const int all[] = {SIGCONT, SIGCHLD, SIGURG,  SIGWINCH, SIGTSTP,
                              SIGTTIN, SIGTTOU, SIGPIPE, SIGXFSZ,  SIGALRM};
    (void)state;
    begin(&s);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(kill(s.pid, all[i]), 0);
    stepper_command(&s, "ping");
    stepper_wait(&s, "mtui step: window ");
    stepper_command(&s, "stop");
    stepper_stop(&s);
    stepper_runs_free(&s, "work");
    stepper_end(&s);
}

/* The recorder jumps to nowhere, as a bug would make it: in the middle of whatever it does. */
static void crash(pid_t pid)
{
    struct user_regs_struct regs;
    int status;
    assert_int_equal(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);
    assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(ptrace(PTRACE_GETREGS, pid, NULL, &regs), 0);
    regs.rip = 16;
    regs.orig_rax = UINT64_MAX; /* no system call to begin again */
    assert_int_equal(ptrace(PTRACE_SETREGS, pid, NULL, &regs), 0);
    assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
}

static void a_fault_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        struct stepper s;
        begin(&s);
        crash(s.pid);
        int status = reap(&s);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGSEGV);
        stepper_runs_free(&s, "work");
        assert_true(stepper_end(&s) > 1);
    }
}

/* In the middle of long string instructions, to whose end the thread runs by a breakpoint: no breakpoint stays. */
static void in_a_long_string(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct stepper s;
        struct step_recorder_options o = {.tracer = {.ring_bytes = 1 << 20}};
        stepper_start(&s, "repeat");
        stepper_record(&s, &o, true);
        stepper_command(&s, "enable");
        wait_stepped(&s, 1000);
        if (i % 2)
            crash(s.pid);
        else
            kill(s.pid, SIGHUP);
        int status = reap(&s);
        assert_true(i % 2 ? WIFSIGNALED(status) : WIFEXITED(status));
        stepper_runs_free(&s, NULL);
        assert_int_equal(ptrace(PTRACE_SEIZE, s.target.pid, NULL, NULL), 0);
        assert_int_equal(ptrace(PTRACE_INTERRUPT, s.target.pid, NULL, NULL), 0);
        assert_int_equal(waitpid(s.target.pid, &status, 0), s.target.pid);
        assert_int_equal(ptrace(PTRACE_PEEKUSER, s.target.pid,
                                (void *)(offsetof(struct user, u_debugreg) + 7 * sizeof(uint64_t)), NULL),
                         0);
        assert_int_equal(ptrace(PTRACE_DETACH, s.target.pid, NULL, NULL), 0);
        assert_true(stepper_end(&s) > 1);
    }
}

/* Its address space may not grow any more: the first allocation that fails ends it. */
#ifdef __SANITIZE_ADDRESS__ /* which ends the process itself when its own memory cannot be had */
#define MEMORY_IS_OURS false
#else
#define MEMORY_IS_OURS true
#endif

static void no_memory(void **state)
{
    if (!MEMORY_IS_OURS)
        skip();
    struct stepper s;
    struct rlimit limit = {1 << 20, 1 << 20};
    (void)state;
    begin(&s);
    assert_int_equal(prlimit(s.pid, RLIMIT_AS, &limit, NULL), 0);
    int status = reap(&s);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    stepper_runs_free(&s, "work");
    assert_true(stepper_end(&s) > 1);
}

int main(void)
{
    if (getuid() != 0) {
        print_message("[  SKIPPED ] t_step_release: uprobes need root or CAP_PERFMON\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_that_end),
        cmocka_unit_test(signals_that_do_not),
        cmocka_unit_test(a_fault_of_its_own),
        cmocka_unit_test(in_a_long_string),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
