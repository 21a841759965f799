#include "core/machine/perf_version.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/utf8.h"

#define PREFIX "perf version "

const char *perf_program(void)
{
    const char *p = getenv("MTUI_PERF");
    return p && *p ? p : "perf";
}

/* Decimal digits at *s, at most four; moves *s behind them. */
static bool take_number(const char **s, int *value)
{
    const char *p = *s;
    int n = 0;
    while (isdigit((unsigned char)*p) && p - *s < 4)
        n = n * 10 + (*p++ - '0');
    if (p == *s || isdigit((unsigned char)*p))
        return false;
    *s = p;
    *value = n;
    return true;
}

int perf_version_parse(const char *text, struct perf_version *v, struct err *err)
{
    const char *at = strstr(text, PREFIX);
    if (at) {
        const char *s = at += strlen(PREFIX);
        struct perf_version out = {0};
        if (take_number(&s, &out.major) && *s == '.' && (s++, take_number(&s, &out.minor))) {
            utf8_escape(out.text, sizeof out.text, at, strcspn(at, " \t\r\n"));
            *v = out;
            return 0;
        }
    }
    return err_set(err, MTUI_E_FORMAT,
                   "no version in what perf says: \"%.80s\" (expected \"perf version 6.1\")", text);
}

bool perf_version_at_least(const struct perf_version *v, int major, int minor)
{
    return v->major > major || (v->major == major && v->minor >= minor);
}

static long long now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (long long)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* In the child; returns only through _exit. The exec error goes through report_fd, which a working
 * exec closes. */
static void exec_version(const char *program, int out_fd, int report_fd)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd >= 0) {
        dup2(null_fd, STDIN_FILENO);
        dup2(null_fd, STDERR_FILENO);
    }
    dup2(out_fd, STDOUT_FILENO);
    char *argv[] = {(char[]){"perf"}, (char[]){"--version"}, NULL};
    execvp(program, argv);
    int e = errno;
    ssize_t n = write(report_fd, &e, sizeof e);
    (void)n;
    _exit(127);
}

/* Reads until EOF, the deadline, or a full buffer; false at the deadline. */
static bool read_until(int fd, char *buf, size_t size, long long deadline_ms)
{
    size_t len = 0;
    while (len + 1 < size) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        long long left = deadline_ms - now_ms();
        int ready = left > 0 ? poll(&p, 1, (int)left) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        ssize_t n = read(fd, buf + len, size - 1 - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        len += (size_t)n;
        buf[len] = '\0';
        if (memchr(buf, '\n', len))
            break;
    }
    return true;
}

static int judge(const char *program, int exec_errno, bool answered, const char *text,
                 struct perf_version *v, struct err *err)
{
    if (exec_errno == ENOENT)
        return err_set(err, MTUI_E_NOENT,
                       "perf not found: no program \"%s\" (install linux-perf, or set MTUI_PERF to "
                       "its path)",
                       program);
    if (exec_errno)
        return err_errno(err, exec_errno, "perf cannot be run: \"%s\"", program);
    if (!answered)
        return err_set(err, MTUI_E_TIMEOUT, "\"%s --version\" does not answer", program);
    return perf_version_parse(text, v, err);
}

int perf_version_probe(const char *program, int timeout_ms, struct perf_version *v, struct err *err)
{
    int out[2] = {-1, -1}, report[2] = {-1, -1};
    pid_t pid = -1;
    int e = 0;
    if (pipe2(out, O_CLOEXEC) < 0 || pipe2(report, O_CLOEXEC) < 0 || (pid = fork()) < 0)
        e = errno;
    if (pid == 0)
        exec_version(program, out[1], report[1]);
    for (int i = 0; i < 2; i++) {
        int *fd = i ? &report[1] : &out[1];
        if (*fd >= 0)
            close(*fd);
    }
    char text[256] = "";
    int exec_errno = 0;
    bool answered = false;
    if (pid > 0) {
        answered = read_until(out[0], text, sizeof text, now_ms() + timeout_ms);
        if (!answered)
            kill(pid, SIGKILL);
        /* Either the exec has worked and closed it, or the error is in it, or the child is dead. */
        if (read(report[0], &exec_errno, sizeof exec_errno) != (ssize_t)sizeof exec_errno)
            exec_errno = 0;
        kill(pid, SIGKILL); /* it has said what it had to say; ESRCH is fine */
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (out[0] >= 0)
        close(out[0]);
    if (report[0] >= 0)
        close(report[0]);
    if (e)
        return err_errno(err, e, "perf cannot be started: \"%s\"", program);
    return judge(program, exec_errno, answered, text, v, err);
}
