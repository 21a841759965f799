#include "tests/lib_run.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"

char *run_temp_dir(void)
{
    const char *tmp = getenv("TMPDIR");
    char *path = xasprintf("%s/mtui-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(path)) {
        perror(path);
        exit(1);
    }
    return path;
}

void run_remove_tree(const char *path)
{
    char *command = xasprintf("chmod -R u+rwx '%s' && rm -rf '%s'", path, path);
    int rc = system(command);
    (void)rc;
    free(command);
}

char *run_tool(const char *name)
{
    const char *build = getenv("MTUI_BUILD");
    return xasprintf("%s/tests/%s", build ? build : "build/release", name);
}

char *run_read_file(const char *path, size_t *len)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return NULL;
    size_t have = 0, cap = 1 << 16;
    char *text = xmalloc(cap);
    for (size_t n; (n = fread(text + have, 1, cap - have - 1, f)) > 0;) {
        have += n;
        if (have + 1 == cap)
            text = xrealloc(text, cap *= 2);
    }
    fclose(f);
    text[have] = '\0';
    if (len)
        *len = have;
    return text;
}

void run_write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

struct run_child run_start(char *const argv[])
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in[0], 0);
        dup2(out[1], 1);
        execv(argv[0], argv);
        perror(argv[0]);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    return (struct run_child){.pid = pid, .in = in[1], .out = fdopen(out[0], "r")};
}

int run_finish(struct run_child *c)
{
    int status = -1;
    close(c->in);
    waitpid(c->pid, &status, 0);
    fclose(c->out);
    return status;
}

void run_kill(struct run_child *c)
{
    kill(c->pid, SIGKILL);
    run_finish(c);
}

pid_t run_fork_as(pid_t pid)
{
    struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1};
    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

char *run_output(const char *command, int *status)
{
    FILE *f = popen(command, "r");
    size_t have = 0, cap = 4096;
    char *text = xmalloc(cap);
    for (size_t n; f && (n = fread(text + have, 1, cap - have - 1, f)) > 0;) {
        have += n;
        if (have + 1 == cap)
            text = xrealloc(text, cap *= 2);
    }
    text[have] = '\0';
    int rc = f ? pclose(f) : -1;
    if (status)
        *status = rc;
    return text;
}

bool run_perf_records(void)
{
    int status;
    free(run_output("perf record -q -e cpu-clock -o /dev/null true 2>/dev/null", &status));
    return status == 0;
}

bool run_until(bool (*check)(void *arg), void *arg, double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    double end = (double)t.tv_sec + (double)t.tv_nsec / 1e9 + seconds;
    for (;;) {
        if (check(arg))
            return true;
        clock_gettime(CLOCK_MONOTONIC, &t);
        if ((double)t.tv_sec + (double)t.tv_nsec / 1e9 > end)
            return false;
        poll(NULL, 0, 2);
    }
}
