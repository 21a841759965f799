/* core/machine/target: attaching to processes and starting programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/machine/target.h"
#include "tests/lib_program.h"
#include "tests/lib_run.h"
#include "tests/lib_victim.h"

struct seen {
    struct loop *loop;
    struct target *target;
    uint64_t changes, outputs, ended;
    enum target_state state;
};

static void on_changed(void *arg, enum target_state state)
{
    struct seen *s = arg;
    s->changes++;
    s->state = state;
    s->ended += state == TARGET_ENDED;
}

static void on_output(void *arg)
{
    ((struct seen *)arg)->outputs++;
}

static const struct target_callbacks callbacks = {on_changed, on_output};

static struct seen *start(const char *const *argv, enum target_stdio stdio, const char *output)
{
    struct seen *s = calloc(1, sizeof *s);
    struct err err = {0};
    assert_non_null(s);
    s->loop = loop_new();
    struct target_run_options options = {.argv = (char *const *)(uintptr_t)argv,
                                         .stdio = stdio,
                                         .output_path = output,
                                         .rows = 30,
                                         .cols = 100};
    if (target_run(s->loop, &options, &callbacks, s, &s->target, &err) != 0)
        fail_msg("%s", err.text);
    return s;
}

static void finish(struct seen *s, enum target_leave leave)
{
    target_free(s->target, leave);
    loop_free(s->loop);
    free(s);
}

static void assert_file(const char *path, const char *wanted)
{
    char text[4096] = "";
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    assert_int_equal(n, (ssize_t)strlen(wanted));
    assert_string_equal(text, wanted);
}

static void waits_then_runs_on_a_terminal(void **state)
{
    (void)state;
    char *dir = program_mkdir();
    char *output = xasprintf("%s/output", dir), text[64];
    static const char *const argv[] = {
        "sh", "-c", "if [ -t 0 ] && [ -t 1 ]; then stty size; fi; printf 'a\\nb\\n'; exit 3", NULL};
    struct seen *s = start(argv, TARGET_PTY, output);
    assert_int_equal(target_state(s->target), TARGET_WAITING);
    assert_true(target_is_ours(s->target));
    assert_true(strstr(target_executable(s->target), "/sh") != NULL);
    /* It waits in a read of ours, as a process that is neither stopped nor traced. */
    pid_t pid = target_pid(s->target), tid = 0;
    char *status = NULL, command[128];
    snprintf(command, sizeof command, "grep -E '^(State|TracerPid)' /proc/%d/status", (int)pid);
    status = command_output(command);
    assert_null(strstr(status, "T ("));
    assert_non_null(strstr(status, "TracerPid:\t0"));
    free(status);
    assert_int_equal(target_threads(s->target, &tid, 1), 1);
    assert_int_equal(tid, pid);
    for (int i = 0; i < 20; i++)
        loop_run_once(s->loop, 1000000);
    assert_int_equal(s->changes, 0);
    int code = 0;
    assert_false(target_exit_status(s->target, &code));

    struct err err = {0};
    assert_int_equal(target_go(s->target, &err), 0);
    assert_int_equal(target_go(s->target, &err), MTUI_E_STATE);
    assert_true(loop_until(s->loop, &s->ended, 1));
    assert_int_equal(s->changes, 2); /* running, ended */
    assert_true(target_exit_status(s->target, &code));
    assert_int_equal(WEXITSTATUS(code), 3);
    assert_string_equal(target_describe(s->target, text, sizeof text), "exited with status 3");
    size_t len = 0;
    const char *last = target_last_lines(s->target, 2, &len);
    assert_int_equal(len, 4);
    assert_memory_equal(last, "a\nb\n", 4);
    assert_file(output, "30 100\na\nb\n");
    assert_int_equal(target_signal(s->target, SIGTERM, &err), MTUI_E_GONE);
    finish(s, TARGET_LEAVE);
    free(output);
    program_rmdir(dir);
}

static void programs_that_cannot_run(void **state)
{
    (void)state;
    char *dir = program_mkdir();
    program_write(dir, "plain", "text");
    program_write(dir, "noloader", "#!/nonexistent/interpreter\n");
    program_write(dir, "script", "echo from a script; exit $1");
    assert_true(program_shell(dir, "chmod +x noloader script; mkdir d"));
    struct err err = {0};
    struct target *t = NULL;
    struct loop *loop = loop_new();
    const struct {
        const char *name;
        int code;
        const char *why;
    } cases[] = {{"no-such-program-anywhere", MTUI_E_NOENT, "not found in PATH"},
                 {"", MTUI_E_INVAL, "without a name"},
                 {"/nonexistent/x", MTUI_E_NOENT, "No such file"},
                 {"plain", MTUI_E_PERM, "not executable"},
                 {"d", MTUI_E_PERM, "is a directory"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *path = i < 3 ? xstrdup(cases[i].name) : xasprintf("%s/%s", dir, cases[i].name);
        char *argv[] = {path, NULL};
        struct target_run_options options = {.argv = argv, .stdio = TARGET_INHERIT};
        assert_int_equal(target_run(loop, &options, NULL, NULL, &t, &err), cases[i].code);
        if (!strstr(err.text, cases[i].why))
            fail_msg("%s", err.text);
        assert_null(t);
        free(path);
    }
    loop_free(loop);

    /* Known only when it is tried. */
    char *path = xasprintf("%s/noloader", dir);
    const char *argv[] = {path, NULL};
    struct seen *s = start(argv, TARGET_INHERIT, NULL);
    assert_int_equal(target_go(s->target, &err), 0);
    assert_true(loop_until(s->loop, &s->changes, 1));
    assert_int_equal(s->state, TARGET_FAILED);
    assert_non_null(strstr(target_error(s->target)->text, "interpreter"));
    finish(s, TARGET_END);
    free(path);

    /* A script without #! runs as execvp(3) and shells do. */
    path = xasprintf("%s/script", dir);
    const char *script[] = {path, "5", NULL};
    s = start(script, TARGET_PTY, NULL);
    assert_int_equal(target_go(s->target, &err), 0);
    assert_true(loop_until(s->loop, &s->ended, 1));
    int status = 0;
    assert_true(target_exit_status(s->target, &status));
    assert_int_equal(WEXITSTATUS(status), 5);
    size_t len;
    const char *last = target_last_lines(s->target, 10, &len);
    assert_int_equal(len, strlen("from a script\n"));
    assert_memory_equal(last, "from a script\n", len);
    finish(s, TARGET_END);
    free(path);
    program_rmdir(dir);
}

static void signals_and_ends(void **state)
{
    (void)state;
    static const char *const killed[] = {"sh", "-c", "kill -SEGV $$", NULL};
    struct seen *s = start(killed, TARGET_PTY, NULL);
    char text[64];
    assert_int_equal(target_go(s->target, NULL), 0);
    assert_true(loop_until(s->loop, &s->ended, 1));
    target_describe(s->target, text, sizeof text);
    assert_true(strncmp(text, "killed by SIGSEGV", 17) == 0);
    finish(s, TARGET_END);

    /* Deaf to SIGTERM: SIGKILL after the grace. */
    static const char *const deaf[] = {"sh", "-c",
                                       "trap '' TERM; echo up; while :; do sleep 1; done", NULL};
    s = start(deaf, TARGET_PTY, NULL);
    pid_t pid = target_pid(s->target);
    assert_int_equal(target_go(s->target, NULL), 0);
    assert_true(loop_until(s->loop, &s->outputs, 1));
    finish(s, TARGET_END);
    assert_int_equal(kill(pid, 0), -1);

    /* One that was never let go ends without having run. */
    char *dir = program_mkdir();
    char *file = xasprintf("%s/ran", dir);
    const char *touch[] = {"touch", file, NULL};
    s = start(touch, TARGET_INHERIT, NULL);
    pid = target_pid(s->target);
    finish(s, TARGET_LEAVE);
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(access(file, F_OK), -1);
    free(file);
    program_rmdir(dir);
}

struct growing {
    const char *path;
    off_t more_than;
};

static bool file_grew(void *arg)
{
    const struct growing *g = arg;
    struct stat st;
    return stat(g->path, &st) == 0 && st.st_size > g->more_than;
}

/* Left running: it runs on, writes to its terminal without error, and its output is still kept. */
static void left_running(void **state)
{
    (void)state;
    char *dir = program_mkdir();
    char *output = xasprintf("%s/output", dir);
    static const char *const argv[] = {
        "sh", "-c", "while echo line; do sleep 0.01; done; echo failed >&2", NULL};
    struct seen *s = start(argv, TARGET_PTY, output);
    pid_t pid = target_pid(s->target);
    assert_int_equal(target_go(s->target, NULL), 0);
    assert_true(loop_until(s->loop, &s->outputs, 3));
    finish(s, TARGET_LEAVE);
    struct stat st;
    assert_int_equal(stat(output, &st), 0);
    struct growing g = {output, st.st_size + 50};
    struct loop *loop = loop_new();
    assert_true(loop_until_true(loop, file_grew, &g));
    loop_free(loop);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    free(output);
    program_rmdir(dir);
}

/* The one who waits must not hold what was open here: pipes would never reach their end. */
static void waiting_program_holds_nothing(void **state)
{
    (void)state;
    int p[2];
    char c;
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    static const char *const argv[] = {"true", NULL};
    struct seen *s = start(argv, TARGET_INHERIT, NULL);
    close(p[1]);
    assert_int_equal(read(p[0], &c, 1), 0); /* the end of the pipe; else this would hang */
    close(p[0]);
    finish(s, TARGET_END);
}

/* Another process gets the pid of the one that was attached to: it is not taken for it. */
static void field_F16_a_pid_used_again_is_not_the_target(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s = {.loop = loop_new()};
    struct err err = {0};
    assert_int_equal(target_attach(s.loop, v.pid, &callbacks, &s, &s.target, &err), 0);
    victim_kill(&v);
    pid_t other = run_fork_as(v.pid);
    if (other == 0)
        for (;;)
            pause();
    if (other < 0) {
        target_free(s.target, TARGET_LEAVE);
        loop_free(s.loop);
        skip();
    }
    assert_int_equal(other, v.pid);
    assert_int_equal(target_signal(s.target, SIGKILL, &err), MTUI_E_GONE);
    assert_true(loop_until(s.loop, &s.ended, 1));
    assert_int_equal(target_state(s.target), TARGET_ENDED);
    assert_int_equal(kill(other, 0), 0);
    assert_int_equal(waitpid(other, NULL, WNOHANG), 0); /* nothing was done to it */
    target_free(s.target, TARGET_END);
    assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    loop_free(s.loop);
}

static void attaches(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s = {.loop = loop_new()};
    struct err err = {0};
    char text[64];
    if (target_attach(s.loop, v.pid, &callbacks, &s, &s.target, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(target_state(s.target), TARGET_RUNNING);
    assert_false(target_is_ours(s.target));
    /* Field 22 of stat, by another way. */
    char command[96];
    snprintf(command, sizeof command, "cut -d' ' -f22 /proc/%d/stat", (int)v.pid);
    char *field = command_output(command);
    assert_int_equal(target_start_time(s.target), strtoull(field, NULL, 10));
    free(field);
    assert_int_equal(target_go(s.target, &err), MTUI_E_STATE);
    assert_int_equal(target_input(s.target, "x", 1, &err), MTUI_E_STATE);
    victim_kill(&v);
    assert_true(loop_until(s.loop, &s.ended, 1));
    assert_string_equal(target_describe(s.target, text, sizeof text), "ended");
    target_free(s.target, TARGET_LEAVE);

    assert_int_equal(target_attach(s.loop, v.pid, NULL, NULL, &s.target, &err), MTUI_E_GONE);
    assert_int_equal(target_check(2, &err),
                     MTUI_E_NOTSUP); /* kthreadd, or nothing in a container */
    assert_int_equal(target_check(getpid(), &err), MTUI_E_NOTSUP);
    assert_int_equal(target_check(0, &err), MTUI_E_INVAL);
    pid_t zombie = fork();
    if (zombie == 0)
        _exit(0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)zombie, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(target_check(zombie, &err), MTUI_E_GONE);
    waitpid(zombie, NULL, 0);
    loop_free(s.loop);
}

/* A7: with SIGCHLD ignored the kernel reaps by itself: an end like any other, of unknown status. */
static void field_A7_sigchld_is_ignored(void **state)
{
    (void)state;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGCHLD, &ignore, &before);
    static const char *const argv[] = {"true", NULL};
    struct seen *s = start(argv, TARGET_INHERIT, NULL);
    assert_int_equal(target_go(s->target, NULL), 0);
    assert_true(loop_until(s->loop, &s->ended, 1));
    int status;
    char text[64];
    assert_false(target_exit_status(s->target, &status));
    assert_string_equal(target_describe(s->target, text, sizeof text), "ended");
    finish(s, TARGET_END);
    sigaction(SIGCHLD, &before, NULL);
}

/* A full disk: the program runs on, and the loss is said. */
static void output_that_cannot_be_kept(void **state)
{
    (void)state;
    static const char *const argv[] = {"sh", "-c", "echo kept in memory; exit 0", NULL};
    struct seen *s = start(argv, TARGET_PTY, "/dev/full");
    assert_int_equal(target_go(s->target, NULL), 0);
    assert_true(loop_until(s->loop, &s->ended, 1));
    assert_non_null(strstr(target_output_problem(s->target), "No space left"));
    size_t len;
    assert_memory_equal(target_last_lines(s->target, 1, &len), "kept in memory\n", 15);
    finish(s, TARGET_END);
}

static void input_reaches_the_program(void **state)
{
    (void)state;
    static const char *const argv[] = {"sh", "-c", "read x; echo got $x", NULL};
    struct seen *s = start(argv, TARGET_PTY, NULL);
    struct err err = {0};
    assert_int_equal(target_go(s->target, NULL), 0);
    target_resize(s->target, 50, 60);
    assert_int_equal(target_input(s->target, "hello\n", 6, &err), 0);
    assert_true(loop_until(s->loop, &s->ended, 1));
    size_t len;
    const char *last = target_last_lines(s->target, 5, &len);
    assert_int_equal(len, 10);
    assert_memory_equal(last, "got hello\n", 10);
    finish(s, TARGET_END);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_then_runs_on_a_terminal),
        cmocka_unit_test(programs_that_cannot_run),
        cmocka_unit_test(signals_and_ends),
        cmocka_unit_test(left_running),
        cmocka_unit_test(waiting_program_holds_nothing),
        cmocka_unit_test(attaches),
        cmocka_unit_test(field_F16_a_pid_used_again_is_not_the_target),
        cmocka_unit_test(field_A7_sigchld_is_ignored),
        cmocka_unit_test(output_that_cannot_be_kept),
        cmocka_unit_test(input_reaches_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
