#include "core/machine/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/alloc.h"

static int check_program(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    return access(path, X_OK) == 0 ? 0 : errno;
}

static int refuse(struct err *err, int errno_value, const char *path)
{
    switch (errno_value) {
    case EISDIR:
        return err_set(err, MTUI_E_PERM, "cannot run %s: it is a directory", path);
    case EACCES:
        return err_set(err, MTUI_E_PERM, "cannot run %s: it is not executable (chmod +x?)", path);
    default:
        return err_errno(err, errno_value, "cannot run %s", path);
    }
}

int spawn_find_program(const char *name, char **path, struct err *err)
{
    if (!*name)
        return err_set(err, MTUI_E_INVAL, "cannot run a program without a name");
    if (strchr(name, '/')) {
        int e = check_program(name);
        if (e != 0)
            return refuse(err, e, name);
        *path = xstrdup(name);
        return 0;
    }
    const char *dirs = getenv("PATH");
    char *denied = NULL;
    if (!dirs)
        dirs = "/usr/local/bin:/usr/bin:/bin";
    for (const char *p = dirs; p;) {
        size_t len = strcspn(p, ":");
        char *candidate = xasprintf("%.*s%s%s", (int)len, p, len ? "/" : "./", name);
        int e = check_program(candidate);
        if (e == 0) {
            free(denied);
            *path = candidate;
            return 0;
        }
        if (e == EACCES && !denied)
            denied = candidate;
        else
            free(candidate);
        p = p[len] ? p + len + 1 : NULL;
    }
    int rc = denied ? refuse(err, EACCES, denied)
                    : err_set(err, MTUI_E_NOENT, "cannot run %s: not found in PATH", name);
    free(denied);
    return rc;
}

int spawn_explain(struct err *err, int errno_value, const char *path)
{
    switch (errno_value) {
    case ENOENT:
        return err_set(err, MTUI_E_NOENT,
                       "cannot run %s: it, or the interpreter that it names, does not exist", path);
    case E2BIG:
        return err_set(err, MTUI_E_LIMIT, "cannot run %s: its arguments are too long", path);
    case ETXTBSY:
        return err_set(err, MTUI_E_STATE, "cannot run %s: the file is open for writing", path);
    case ENOEXEC:
        return err_set(err, MTUI_E_FORMAT, "cannot run %s: not a program for this machine", path);
    default:
        return refuse(err, errno_value, path);
    }
}

static int highest_descriptor(void)
{
    int highest = 1023;
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *d;
    while (dir && (d = readdir(dir))) {
        int fd = (int)strtol(d->d_name, NULL, 10);
        if (fd > highest)
            highest = fd;
    }
    if (dir)
        (void)closedir(dir);
    return highest;
}

/* What the child needs, prepared before the fork: after it only system calls are allowed. */
struct child {
    const struct spawn_options *options;
    char **shell_argv; /* for a script without #! */
    int go, status, highest;
};

static void reset_signals(void)
{
    sigset_t none;
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    for (int sig = 1; sig < NSIG; sig++)
        (void)sigaction(sig, &dfl, NULL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A program with file capabilities (as doctor advises for mtui) is closed to everyone without them, its copies too.
 * This one gives up now what execve takes from it anyway, all but the ambient set (capabilities(7)), and opens
 * itself: perf, which may have less, can then attach before the first instruction. */
static void shed_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (getuid() == 0 || geteuid() == 0 || syscall(SYS_capget, &header, sets) != 0 ||
        !(sets[0].permitted | sets[1].permitted))
        return;
    for (unsigned set = 0; set < _LINUX_CAPABILITY_U32S_3; set++) {
        uint32_t ambient = 0;
        for (unsigned bit = 0; bit < 32; bit++)
            if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, set * 32 + bit, 0, 0) == 1)
                ambient |= UINT32_C(1) << bit;
        sets[set].permitted = sets[set].effective = ambient;
    }
    if (syscall(SYS_capset, &header, sets) == 0)
        (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static int set_streams(const struct child *c)
{
    int tty = c->options->tty;
    if (tty < 0)
        return dup2(2, 1) == 1 ? 0 : -1;
    (void)setsid();
    return dup2(tty, 0) == 0 && dup2(tty, 1) == 1 && dup2(tty, 2) == 2 ? 0 : -1;
}

static void run_child(const struct child *c)
{
    char go = 0;
    reset_signals();
    shed_capabilities();
    int failed = set_streams(c) != 0 ? errno : 0;
    /* As the execve will do, but now: pipes and perf events must not live on while it waits. */
    for (int fd = 3; fd <= c->highest; fd++) {
        int flags = fd == c->go || fd == c->status ? 0 : fcntl(fd, F_GETFD);
        if (flags > 0 && (flags & FD_CLOEXEC))
            (void)close(fd);
    }
    ssize_t n;
    do
        n = read(c->go, &go, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        _exit(0);
    if (!failed) {
        (void)execv(c->options->path, c->options->argv);
        failed = errno;
        if (failed == ENOEXEC) {
            (void)execv("/bin/sh", c->shell_argv);
            failed = errno;
        }
    }
    if (write(c->status, &failed, sizeof failed) != sizeof failed)
        _exit(126);
    _exit(127);
}

int spawn_waiting(const struct spawn_options *options, struct spawned *out, struct err *err)
{
    int go[2] = {-1, -1}, status[2] = {-1, -1};
    if (pipe2(go, O_CLOEXEC) != 0 || pipe2(status, O_CLOEXEC) != 0) {
        int errno_value = errno;
        for (int i = 0; i < 2 && go[0] >= 0; i++)
            (void)close(go[i]);
        return err_errno(err, errno_value, "starting %s", options->path);
    }
    size_t argc = 0;
    while (options->argv[argc])
        argc++;
    struct child c = {.options = options,
                      .shell_argv = xcalloc(argc + 2, sizeof *c.shell_argv),
                      .go = go[0],
                      .status = status[1],
                      .highest = highest_descriptor()};
    c.shell_argv[0] = (char[]){"sh"};
    c.shell_argv[1] = (char *)(uintptr_t)options->path;
    for (size_t i = 1; i < argc; i++)
        c.shell_argv[i + 1] = options->argv[i];
    /* No handler of this process may run in the child: signals wait until it has reset them. */
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        run_child(&c);
    int errno_value = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(c.shell_argv);
    (void)close(go[0]);
    (void)close(status[1]);
    if (pid < 0) {
        (void)close(go[1]);
        (void)close(status[0]);
        return err_errno(err, errno_value, "starting %s", options->path);
    }
    *out = (struct spawned){.pid = pid, .go_fd = go[1], .status_fd = status[0]};
    return 0;
}
