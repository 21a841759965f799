#include "core/machine/pty_log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/write_all.h"

#define KEPT      65536 /* bytes of output in memory */
#define CHUNK     16384
#define PER_ROUND 16 /* chunks read before the loop goes on */

struct pty_log {
    struct loop *loop;
    int master, file, source;
    loop_fn *changed;
    void *arg;
    char kept[KEPT];
    size_t len;
    struct err problem;
};

static void on_output(void *arg, int fd, short revents);

static int open_pty(unsigned short rows, unsigned short cols, int *slave, struct err *err)
{
    char name[128];
    struct winsize size = {.ws_row = rows ? rows : 24, .ws_col = cols ? cols : 80};
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 ||
        ptsname_r(master, name, sizeof name) != 0 ||
        (*slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0) {
        int errno_value = errno;
        if (master >= 0)
            (void)close(master);
        return err_errno(err, errno_value, "opening a pseudo-terminal for the program");
    }
    struct termios t;
    if (tcgetattr(*slave, &t) == 0) {
        t.c_oflag &= ~(tcflag_t)OPOST; /* the file gets the bytes as the program wrote them */
        t.c_lflag &= ~(tcflag_t)ECHO;
        (void)tcsetattr(*slave, TCSANOW, &t);
    }
    (void)ioctl(master, TIOCSWINSZ, &size);
    (void)fcntl(master, F_SETFL, O_NONBLOCK);
    return master;
}

int pty_log_new(struct loop *loop, const char *path, unsigned short rows, unsigned short cols,
                loop_fn *changed, void *arg, struct pty_log **out, int *slave, struct err *err)
{
    int file = -1, tty = -1;
    if (path) {
        file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (file < 0)
            return err_errno(err, errno, "creating %s", path);
    }
    int master = open_pty(rows, cols, &tty, err);
    if (master < 0) {
        if (file >= 0)
            (void)close(file);
        return master;
    }
    struct pty_log *p = xcalloc(1, sizeof *p);
    p->loop = loop;
    p->master = master;
    p->file = file;
    p->changed = changed;
    p->arg = arg;
    p->source = loop_add_fd(loop, master, POLLIN, on_output, p);
    *out = p;
    *slave = tty;
    return 0;
}

static void remember(struct pty_log *p, const char *bytes, size_t n)
{
    if (n > KEPT) {
        bytes += n - KEPT;
        n = KEPT;
    }
    if (p->len + n > KEPT) {
        size_t drop = p->len + n - KEPT;
        memmove(p->kept, p->kept + drop, p->len - drop);
        p->len -= drop;
    }
    memcpy(p->kept + p->len, bytes, n);
    p->len += n;
}

static void store(struct pty_log *p, const char *bytes, size_t n)
{
    if (p->file >= 0 && write_all(p->file, bytes, n) != 0) {
        (void)err_errno(&p->problem, errno, "the program's output is no longer kept");
        (void)close(p->file);
        p->file = -1;
    }
}

/* Returns true while there may be more. */
static bool read_chunk(struct pty_log *p, bool *any)
{
    char buf[CHUNK];
    ssize_t n = read(p->master, buf, sizeof buf);
    if (n > 0) {
        store(p, buf, (size_t)n);
        remember(p, buf, (size_t)n);
        *any = true;
        return true;
    }
    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0 && errno == EAGAIN)
        return false;
    loop_remove(p->loop, p->source); /* EIO: nobody has the other end any more */
    p->source = 0;
    return false;
}

static void on_output(void *arg, int fd, short revents)
{
    struct pty_log *p = arg;
    bool any = false;
    (void)fd;
    (void)revents;
    for (int i = 0; i < PER_ROUND && read_chunk(p, &any); i++)
        ;
    if (any && p->changed)
        p->changed(p->arg);
}

void pty_log_drain(struct pty_log *p)
{
    bool any = false;
    while (p->source && read_chunk(p, &any))
        ;
}

/* A detached process that copies until the program's last descriptor is closed. */
static void keep_copying(const struct pty_log *p)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = fork();
    if (child == 0) {
        (void)setsid();
        if (fork() != 0)
            _exit(0);
        int file = p->file;
        /* 0 the terminal, 1 the file (or nothing), and nothing else of ours. */
        if (dup2(p->master, 0) != 0 || (file >= 0 && dup2(file, 1) != 1))
            _exit(1);
        if (file < 0)
            (void)close(1);
        (void)close_range(2, ~0u, 0);
        (void)fcntl(0, F_SETFL, 0);
        char buf[CHUNK];
        ssize_t n;
        while ((n = read(0, buf, sizeof buf)) > 0 || (n < 0 && errno == EINTR))
            if (n > 0 && file >= 0 && write_all(1, buf, (size_t)n) != 0)
                file = -1;
        _exit(0);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

void pty_log_free(struct pty_log *p, bool keep)
{
    if (!p)
        return;
    pty_log_drain(p);
    if (keep && p->source)
        keep_copying(p);
    loop_remove(p->loop, p->source);
    (void)close(p->master);
    if (p->file >= 0)
        (void)close(p->file);
    free(p);
}

const char *pty_log_last_lines(const struct pty_log *p, size_t lines, size_t *len)
{
    size_t at = p->len;
    if (at > 0 && p->kept[at - 1] == '\n')
        at--; /* the newline that ends the last line begins no new one */
    while (at > 0 && lines > 0) {
        if (p->kept[at - 1] == '\n' && --lines == 0)
            break;
        at--;
    }
    *len = p->len - at;
    return p->kept + at;
}

const char *pty_log_problem(const struct pty_log *p)
{
    return p->problem.code ? p->problem.text : NULL;
}

int pty_log_input(struct pty_log *p, const char *bytes, size_t n, struct err *err)
{
    while (n > 0) {
        ssize_t w = write(p->master, bytes, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0 && errno == EAGAIN)
            return err_set(err, MTUI_E_BUSY, "the program does not read its input");
        if (w <= 0)
            return err_set(err, MTUI_E_GONE, "the program has closed its terminal");
        bytes += w;
        n -= (size_t)w;
    }
    return 0;
}

void pty_log_resize(struct pty_log *p, unsigned short rows, unsigned short cols)
{
    struct winsize size = {.ws_row = rows, .ws_col = cols};
    (void)ioctl(p->master, TIOCSWINSZ, &size);
}
