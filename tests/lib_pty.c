#include "tests/lib_pty.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "tests/lib_run.h"

static long long now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* ---- The shell, in the child ---- */

static const char *modes(const struct termios *before)
{
    struct termios now;
    tcgetattr(0, &now);
    bool same = now.c_iflag == before->c_iflag && now.c_oflag == before->c_oflag &&
                now.c_cflag == before->c_cflag && now.c_lflag == before->c_lflag &&
                memcmp(now.c_cc, before->c_cc, sizeof now.c_cc) == 0;
    return same ? "same" : "changed";
}

static _Noreturn void run_program(char *const *argv, char *const *env)
{
    setpgid(0, 0);
    tcsetpgrp(0, getpid());
    signal(SIGTTOU, SIG_DFL);
    signal(SIGTSTP, SIG_DFL);
    dprintf(1, "<<PID %d>>\n", (int)getpid()); /* before anything that the program says */
    execve(argv[0], argv, env);
    dprintf(2, "<<cannot run %s: %s>>\n", argv[0], strerror(errno));
    _exit(126);
}

static _Noreturn void run_shell(char *const *argv, char *const *env)
{
    struct termios before;
    int status;
    tcgetattr(0, &before);
    signal(SIGTTOU, SIG_IGN);
    signal(SIGTSTP, SIG_IGN);
    pid_t pid = fork();
    if (pid == 0)
        run_program(argv, env);
    setpgid(pid, pid);
    tcsetpgrp(0, pid);
    while (waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status)) {
        char line[64];
        tcsetpgrp(0, getpid());
        dprintf(1, "<<STOPPED modes=%s>>\n", modes(&before));
        ssize_t n = read(0, line, sizeof line);
        (void)n;
        tcsetpgrp(0, pid);
        kill(-pid, SIGCONT);
    }
    tcsetpgrp(0, getpid());
    if (WIFSIGNALED(status))
        dprintf(1, "<<SIGNAL %d modes=%s>>\n", WTERMSIG(status), modes(&before));
    else
        dprintf(1, "<<EXIT %d modes=%s>>\n", WEXITSTATUS(status), modes(&before));
    _exit(0);
}

/* ---- The test's side ---- */

#define ENV_MAX 32

struct pty *pty_start(const char *const *env, char *const *argv, int rows, int cols)
{
    static const char *const base[] = {"TERM=xterm-256color", "LC_ALL=C.UTF-8",
                                       "XDG_CONFIG_HOME=/nonexistent/config",
                                       "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "TZ=UTC"};
    struct pty *p = xcalloc(1, sizeof *p);
    char *all[ENV_MAX + 1], *home = xstrdup("/tmp/mtui-home-XXXXXX");
    size_t n = 0;
    int alive[2];
    if (!mkdtemp(home))
        abort();
    p->home = home;
    all[n++] = xasprintf("HOME=%s", home);
    for (size_t i = 0; i < sizeof base / sizeof *base; i++)
        all[n++] = xstrdup(base[i]);
    for (; env && *env && n < ENV_MAX; env++) {
        size_t name = strcspn(*env, "=") + 1, at = 0;
        while (at < n && strncmp(all[at], *env, name) != 0)
            at++;
        if (at < n)
            free(all[at]);
        else
            n++;
        all[at] = xstrdup(*env);
    }
    all[n] = NULL;
    struct winsize ws = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
    if (pipe(alive) < 0)
        abort();
    fcntl(alive[0], F_SETFD, FD_CLOEXEC);
    fflush(NULL);
    p->shell = forkpty(&p->master, NULL, NULL, &ws);
    if (p->shell < 0)
        abort();
    if (p->shell == 0)
        run_shell(argv, all);
    close(alive[1]);
    p->alive = alive[0];
    fcntl(p->master, F_SETFD, FD_CLOEXEC);
    for (size_t i = 0; i < n; i++)
        free(all[i]);
    if (pty_wait(p, "<<PID ", 10000))
        while (!strstr(p->text + p->mark, ">>") && pty_pump(p, 1000))
            ;
    p->program = (pid_t)strtol(p->text + p->mark, NULL, 10);
    return p;
}

void pty_free(struct pty *p)
{
    if (p->master >= 0)
        close(p->master);
    if (p->program > 0 && kill(p->shell, 0) == 0) {
        kill(p->program, SIGKILL);
        kill(p->shell, SIGKILL);
    }
    waitpid(p->shell, NULL, 0);
    close(p->alive);
    run_remove_tree(p->home);
    free(p->home);
    free(p->raw);
    free(p->text);
    free(p);
}

void pty_type(struct pty *p, const char *bytes)
{
    ssize_t n = write(p->master, bytes, strlen(bytes));
    (void)n;
}

void pty_resize(struct pty *p, int rows, int cols)
{
    struct winsize ws = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
    ioctl(p->master, TIOCSWINSZ, &ws);
}

static void append(char **buf, size_t *len, size_t *cap, char c)
{
    if (*len + 2 > *cap) {
        *cap = *cap ? *cap * 2 : 65536;
        *buf = xrealloc(*buf, *cap);
    }
    (*buf)[(*len)++] = c;
    (*buf)[*len] = '\0';
}

/* Escape sequences as ECMA-48 has them: ESC [ … final, ESC ] … BEL or ST, ESC and a few more. */
static void take_byte(struct pty *p, char c)
{
    enum { PLAIN, ESC, CSI, OSC, OSC_ESC, ONE };
    unsigned char u = (unsigned char)c;
    append(&p->raw, &p->raw_len, &p->raw_cap, c);
    switch (p->state) {
    case PLAIN:
        if (u == 27)
            p->state = ESC;
        else if (u >= ' ')
            append(&p->text, &p->text_len, &p->text_cap, c);
        return;
    case ESC:
        p->state = c == '[' ? CSI : c == ']' ? OSC : (c == '(' || c == ')') ? ONE : PLAIN;
        return;
    case CSI:
        if (u >= 0x40 && u <= 0x7e)
            p->state = PLAIN;
        return;
    case OSC:
        p->state = u == 7 ? PLAIN : u == 27 ? OSC_ESC : OSC;
        return;
    default:
        p->state = PLAIN;
        return;
    }
}

bool pty_pump(struct pty *p, int ms)
{
    char bytes[4096];
    struct pollfd fd = {.fd = p->master, .events = POLLIN};
    if (poll(&fd, 1, ms) <= 0)
        return false;
    ssize_t n = read(p->master, bytes, sizeof bytes);
    for (ssize_t i = 0; i < n; i++)
        take_byte(p, bytes[i]);
    return n > 0;
}

bool pty_wait(struct pty *p, const char *text, int ms)
{
    long long until = now_ms() + ms;
    for (;;) {
        char *at = p->text ? strstr(p->text + p->mark, text) : NULL;
        if (at) {
            p->mark = (size_t)(at - p->text) + strlen(text);
            return true;
        }
        long long left = until - now_ms();
        if (left <= 0)
            return false;
        if (!pty_pump(p, (int)left) && now_ms() < until)
            return false; /* the other side is closed */
    }
}

bool pty_hang_up(struct pty *p, int ms)
{
    char c;
    close(p->master);
    p->master = -1;
    struct pollfd fd = {.fd = p->alive, .events = POLLIN};
    return poll(&fd, 1, ms) == 1 && read(p->alive, &c, 1) == 0;
}
