#include "core/step/step_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/base/alloc.h"

/* Handlers have no context to be handed: the exception to "no mutable globals". */
static volatile sig_atomic_t timer_fired, end_asked;
static struct step_tracer *volatile guarded;

static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
static const int ignored[] = {
    SIGPIPE, /* a write that fails says so itself */
    SIGXFSZ, /* a limit on the size of files is an error as a full disk is */
    SIGTSTP, SIGTTIN, SIGTTOU, /* stopped, it would hold the target up */
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void note_timer(int sig)
{
    (void)sig;
    timer_fired = 1;
}

static void let_go(void)
{
    struct step_tracer *t = guarded;
    guarded = NULL; /* not twice, should this fail too */
    if (t)
        step_tracer_abandon(t);
}

/* Sent by somebody else it is a wish like any other; else this process is broken, and when the handler is
 * left it dies as it would have. */
static void on_fault(int sig, siginfo_t *info, void *context)
{
    (void)context;
    if (info->si_code <= 0 && info->si_pid != getpid()) {
        end_asked = 1;
        return;
    }
    signal(sig, SIG_DFL);
    let_go();
    if (info->si_code <= 0)
        raise(sig); /* taken when the handler is left: no fault happens again by itself */
}

/* On a stack of its own: the fault may be that there is none left. */
static void handle_faults(void)
{
    static char stack[65536];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaltstack(&alternate, NULL);
    sigfillset(&act.sa_mask);
    for (size_t i = 0; i < COUNT(faults); i++)
        sigaction(faults[i], &act, NULL);
    alloc_set_exit_hook(let_go);
}

/* The kernel's whole set, with the two signals that the C library keeps to itself and would leave out. */
static void block(sigset_t *set)
{
    memset(set, 0xff, sizeof *set);
    for (size_t i = 0; i < COUNT(faults); i++)
        sigdelset(set, faults[i]);
    for (size_t i = 0; i < COUNT(ignored); i++)
        sigdelset(set, ignored[i]); /* blocked, it would be kept for signalfd */
    sigdelset(set, SIGALRM);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, set, NULL, sizeof(unsigned long));
}

static void survive_want_of_memory(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? write(fd, "-1000", 5) : 0; /* refused without CAP_SYS_RESOURCE */
    (void)n;
    if (fd >= 0)
        close(fd);
}

int step_signals_open(struct step_signals *s, unsigned period_us, struct err *err)
{
    struct sigaction tick = {.sa_handler = note_timer}; /* no SA_RESTART: waitpid must return */
    struct itimerval every = {{0, (suseconds_t)period_us}, {0, (suseconds_t)period_us}};
    sigset_t set;
    s->fd = -1;
    timer_fired = end_asked = 0;
    signal(SIGCHLD, SIG_DFL); /* ignored, the kernel would reap for us */
    for (size_t i = 0; i < COUNT(ignored); i++)
        signal(ignored[i], SIG_IGN);
    block(&set);
    s->fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (s->fd < 0)
        return err_errno(err, errno, "signalfd");
    handle_faults();
    survive_want_of_memory();
    sigaction(SIGALRM, &tick, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    return 0;
}

void step_signals_guard(struct step_tracer *t)
{
    guarded = t;
}

static bool ends(uint32_t sig)
{
    return sig != SIGCHLD && sig != SIGCONT && sig != SIGWINCH && sig != SIGURG;
}

bool step_signals_end_asked(const struct step_signals *s)
{
    struct signalfd_siginfo info;
    bool asked = end_asked;
    end_asked = 0;
    while (read(s->fd, &info, sizeof info) == sizeof info)
        asked |= ends(info.ssi_signo);
    return asked;
}

bool step_signals_timer_fired(void)
{
    bool fired = timer_fired;
    timer_fired = 0;
    return fired;
}

void step_signals_close(struct step_signals *s)
{
    if (s->fd >= 0)
        close(s->fd);
}
