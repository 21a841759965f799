#include "core/doctor/capability_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/record/control.h"
#include "core/base/fmt.h"
#include "core/trigger/hwbreak.h"
#include "core/machine/perf_version.h"
#include "core/trigger/uprobe.h"

#define VERSION_TIMEOUT_MS 3000
#define PING_TIMEOUT_MS    3000

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- a ping to a perf that records a dummy event of ours ---- */

/* In the forked child: becomes perf. Only async-signal-safe calls. */
static _Noreturn void become_perf(const char *perf, const char *control, const char *pid, int ctl,
                                  int ack)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setpgid(0, 0);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(null, 1); /* the recording goes there */
    dup2(null, 2);
    /* The numbers must be free of each other before they are given. */
    int c = fcntl(ctl, F_DUPFD, 10), a = fcntl(ack, F_DUPFD, 10);
    dup2(c, CONTROL_CHILD_CTL_FD);
    dup2(a, CONTROL_CHILD_ACK_FD);
    close(c);
    close(a);
    execlp(perf, perf, "record", "-q", "-e", "dummy:u", "-D", "-1", "-o", "-", control, "-p", pid,
           (char *)NULL);
    _exit(127);
}

/* Waits for "ack" on fd; the bytes that came in between are of no interest. */
static bool wait_for_ack(int fd, int timeout_ms)
{
    uint64_t end = now_ns() + (uint64_t)timeout_ms * 1000000u;
    char got[16] = "";
    size_t n = 0;
    while (n < 4) {
        uint64_t now = now_ns();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int wait_ms = now < end ? (int)((end - now) / 1000000u) + 1 : 0;
        int ready = poll(&p, 1, wait_ms);
        if (ready < 0 && errno == EINTR)
            continue;
        ssize_t r = ready > 0 ? read(fd, got + n, sizeof got - 1 - n) : 0;
        if (r <= 0)
            return false;
        n += (size_t)r;
    }
    return memcmp(got, "ack\n", 4) == 0;
}

static bool ping_answered(const char *perf, uint64_t *took_ns)
{
    int ctl[2], ack[2];
    if (pipe2(ctl, O_CLOEXEC) != 0)
        return false;
    if (pipe2(ack, O_CLOEXEC) != 0) {
        close(ctl[0]);
        close(ctl[1]);
        return false;
    }
    char control[32], pid[16];
    snprintf(control, sizeof control, "--control=fd:%d,%d", CONTROL_CHILD_CTL_FD,
             CONTROL_CHILD_ACK_FD);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    uint64_t start = now_ns();
    pid_t child = fork();
    if (child == 0)
        become_perf(perf, control, pid, ctl[0], ack[1]);
    close(ctl[0]);
    close(ack[1]);
    bool ok = child > 0 && write(ctl[1], "ping\n", 5) == 5 && wait_for_ack(ack[0], PING_TIMEOUT_MS);
    *took_ns = now_ns() - start;
    if (child > 0) {
        kill(child, SIGKILL); /* it has recorded nothing that anyone would miss */
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close(ctl[1]);
    close(ack[0]);
    return ok;
}

void capability_try_perf(const struct capability_paths *paths, struct capabilities *out)
{
    struct perf_version v;
    struct err err;
    if (perf_version_probe(paths->perf, VERSION_TIMEOUT_MS, &v, &err) < 0) {
        capability_say(&out->line[CAP_PERF], false, "not usable", err.text,
                       "apt-get install linux-perf, or set MTUI_PERF to a perf program");
        capability_say(&out->line[CAP_CONTROL], false, "no perf", "", "");
        return;
    }
    char value[128];
    snprintf(value, sizeof value, "%s (%s)", v.text, paths->perf);
    capability_say(&out->line[CAP_PERF], true, value, "", "");
    if (!perf_version_at_least(&v, 5, 10)) {
        capability_say(&out->line[CAP_CONTROL], false, "none",
                       "this perf is older than 5.10: mtui uses signals", "a newer perf");
        return;
    }
    uint64_t took;
    char text[FMT_MAX];
    /* SIGPIPE is ignored by the program; a perf that ends at once makes the write fail. */
    if (ping_answered(paths->perf, &took)) {
        snprintf(value, sizeof value, "ping answered %s after perf's start",
                 fmt_duration(text, took));
        capability_say(&out->line[CAP_CONTROL], true, value, "", "");
    } else {
        capability_say(&out->line[CAP_CONTROL], false, "ping not answered",
                       "perf knows the option and did not answer (5.10 has no ping, or perf may not "
                       "record here): mtui falls back to signals",
                       "");
    }
}

void capability_try_hwbreak(struct capabilities *out)
{
    struct capability *line = &out->line[CAP_HWBREAK];
    struct err err;
    unsigned slots = 0;
    char value[64];
    out->hwbreak_fires = hwbreak_self_test(&slots, &err) == 0;
    if (out->hwbreak_fires) {
        snprintf(value, sizeof value, "fire, %u slots", slots);
        capability_say(line, true, value, "", "");
        return;
    }
    snprintf(value, sizeof value, slots ? "%u open, none fires" : "none", slots);
    capability_say(line, false, value, err.text, "");
}

void capability_try_uprobe(struct capabilities *out)
{
    struct capability *line = &out->line[CAP_UPROBE];
    struct err err;
    out->uprobe_works = uprobe_self_test(&err) == 0;
    if (out->uprobe_works)
        capability_say(line, true, "work", "", "");
    else
        capability_say(line, false, "do not work", err.text,
                       err.code == MTUI_E_PERM
                           ? "sudo mtui, or setcap cap_sys_admin+ep on it (cap_perfmon does for some kernels)"
                           : "");
}

/* ---- ptrace ---- */

/* Steps a child of ours over a few instructions and sees the instruction pointer move. */
static int step_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(errno);
        raise(SIGSTOP);
        _exit(0);
    }
    if (child < 0)
        return errno;
    int status, why = ECHILD;
    struct user_regs_struct before, after;
    if (waitpid(child, &status, 0) == child && WIFSTOPPED(status) &&
        ptrace(PTRACE_GETREGS, child, NULL, &before) == 0 &&
        ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0 &&
        waitpid(child, &status, 0) == child && WIFSTOPPED(status) &&
        ptrace(PTRACE_GETREGS, child, NULL, &after) == 0)
        why = before.rip != after.rip ? 0 : ENOSYS;
    else if (WIFEXITED(status))
        why = WEXITSTATUS(status) ? WEXITSTATUS(status) : EPERM;
    kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return why;
}

void capability_try_step(struct capabilities *out)
{
    struct capability *line = &out->line[CAP_STEP];
    int why = step_child();
    if (why)
        capability_say(line, false, "not possible", strerror(why),
                       "a kernel and container that allow ptrace");
    else
        capability_say(line, true, "works", "about a thousandfold slower while it steps", "");
}
