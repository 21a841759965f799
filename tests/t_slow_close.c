/* Who holds the last reference to what slow_close closes: never the process that called it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/machine/slow_close.h"

#define WAIT_S 20

static struct {
    pid_t caller;
    int watched;      /* the caller's close of it is held up */
    bool came_first;  /* until the other process has closed its copies */
    bool was_waiting; /* or is asleep */
    bool dies;        /* instead */
} seen;

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The one child there is (a detached one: the caller is its reaper), or 0. */
static pid_t other_process(void)
{
    char path[64];
    int pid = 0;
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%d", &pid) != 1)
        pid = 0;
    if (f)
        (void)fclose(f);
    return pid;
}

/* R, S, Z ... as in proc(5); 0 when there is no such process. */
static char state_of(pid_t pid)
{
    char path[64], state = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    if (f)
        (void)fclose(f);
    return state;
}

/* In place of libc's: the caller's first close comes as late as can be, when the other process has
 * run as far as it does by itself. */
int close(int fd)
{
    if (fd == seen.watched && getpid() == seen.caller) {
        seen.watched = -1;
        if (seen.dies)
            _exit(0);
        double until = now_s() + WAIT_S;
        while (!seen.came_first && !seen.was_waiting && now_s() < until) {
            char state = state_of(other_process());
            seen.came_first = state == 'Z';
            seen.was_waiting = state == 'S';
        }
    }
    return (int)syscall(SYS_close, fd);
}

static void closed_last_by_the_other(void **unused)
{
    (void)unused;
    int pipes[3][2], fds[3];
    char byte;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pipe2(pipes[i], O_CLOEXEC), 0);
        fds[2 - i] = pipes[i][1]; /* in no order */
    }
    seen.caller = getpid();
    seen.watched = fds[0];
    slow_close(fds, 3);
    assert_int_equal(seen.watched, -1);
    assert_false(seen.came_first);
    assert_true(seen.was_waiting);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(fcntl(fds[i], F_GETFD), -1);
        assert_int_equal(read(pipes[i][0], &byte, 1), 0); /* and closed by the other, too */
        (void)close(pipes[i][0]);
    }
    assert_true(waitpid(-1, NULL, 0) > 0);
    assert_int_equal(waitpid(-1, NULL, 0), -1);
    assert_int_equal(errno, ECHILD);
}

/* The descriptors go all the same. */
static void closed_when_the_caller_died_before(void **unused)
{
    (void)unused;
    int ends[2];
    char byte;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t caller = fork();
    if (caller == 0) {
        seen.caller = getpid();
        seen.dies = true;
        seen.watched = ends[1];
        slow_close(&ends[1], 1);
        _exit(1);
    }
    int status = 0;
    (void)close(ends[1]);
    assert_int_equal(waitpid(caller, &status, 0), caller);
    assert_int_equal(status, 0);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    (void)close(ends[0]);
    assert_true(waitpid(-1, NULL, 0) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_last_by_the_other),
        cmocka_unit_test(closed_when_the_caller_died_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
