#include "tui/ui/editor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/alloc.h"

struct editor {
    struct loop *loop;
    pid_t pid;
    int pidfd, watch, timer;
    editor_done_fn *done;
    editor_stopped_fn *stopped;
    void *arg;
};

/* A stop shows in no descriptor; so often it is looked for. */
#define STOP_CHECK_NS 100000000u

static const char *choose_command(const char *command)
{
    static const char *const variables[] = {"VISUAL", "EDITOR"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables && !command[0]; i++) {
        const char *value = getenv(variables[i]);
        if (value)
            command = value;
    }
    return command[0] ? command : "vi";
}

static _Noreturn void run_child(const char *command, const char *path, int line)
{
    char plus[16];
    snprintf(plus, sizeof plus, "+%d", line > 0 ? line : 1);
    signal(SIGINT, SIG_DFL);
    signal(SIGTSTP, SIG_DFL);
    /* $0 is left unquoted so that the command may have options; the path never is. */
    execl("/bin/sh", "sh", "-c", "exec $0 \"$1\" \"$2\"", command, plus, path, (char *)NULL);
    _exit(127);
}

void editor_free(struct editor *e)
{
    if (!e)
        return;
    loop_remove(e->loop, e->watch);
    loop_remove(e->loop, e->timer);
    close(e->pidfd);
    free(e);
}

static void ended(void *arg, int fd, short revents)
{
    struct editor *e = arg;
    int status = 0;
    (void)fd;
    (void)revents;
    pid_t got = waitpid(e->pid, &status, WNOHANG);
    if (got == 0)
        return;
    editor_done_fn *done = e->done;
    void *done_arg = e->arg;
    editor_free(e);
    if (got == -1 || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
        done(done_arg, NULL);
    else if (WIFEXITED(status) && (WEXITSTATUS(status) == 127 || WEXITSTATUS(status) == 126))
        done(done_arg, "the editor could not be run; set EDITOR, or :set editor COMMAND");
    else
        done(done_arg, "the editor ended with an error");
}

/* An editor that stops itself alone (the terminal's own ^Z stops us with it) would leave the shell
 * waiting for a program that waits for it. */
static void look_for_stop(void *arg)
{
    struct editor *e = arg;
    siginfo_t info = {0};
    e->timer = loop_add_timer(e->loop, loop_now_ns(e->loop) + STOP_CHECK_NS, look_for_stop, e);
    if (waitid(P_PID, (id_t)e->pid, &info, WSTOPPED | WNOHANG) != 0 || info.si_pid == 0)
        return;
    e->stopped(e->arg);
    (void)kill(e->pid, SIGCONT);
}

int editor_start(struct editor **out, struct loop *loop, const char *command, const char *path,
                 int line, editor_done_fn *done, editor_stopped_fn *stopped, void *arg,
                 struct err *err)
{
    command = choose_command(command);
    pid_t pid = fork();
    if (pid == 0)
        run_child(command, path, line);
    if (pid < 0)
        return err_errno(err, errno, "cannot start the editor %s", command);
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
        int code = err_errno(err, errno, "cannot wait for the editor (pidfd_open)");
        kill(pid, SIGTERM);
        waitpid(pid, NULL, 0);
        return code;
    }
    struct editor *e = xcalloc(1, sizeof *e);
    *e = (struct editor){
        .loop = loop, .pid = pid, .pidfd = pidfd, .done = done, .stopped = stopped, .arg = arg};
    e->watch = loop_add_fd(loop, pidfd, POLLIN, ended, e);
    e->timer = loop_add_timer(loop, loop_now_ns(loop) + STOP_CHECK_NS, look_for_stop, e);
    *out = e;
    return 0;
}
