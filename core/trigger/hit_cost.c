#include "core/trigger/hit_cost.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/trigger/hit_output.h"
#include "core/machine/perf_event.h"
#include "core/trigger/perf_ring.h"
#include "core/trigger/uprobe.h"

#define ROUNDS     8
#define CALLS      200 /* a round; all of them fit the rings, as they would when they are read in time */
#define RING_BYTES ((size_t)4 << 20)
#define RING_PAGES 128

struct hit_cost {
    struct loop *loop;
    hit_cost_fn *fn;
    void *arg;
    int fd, source;
};

static uint64_t cpu_ns(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t time_calls(void)
{
    void (*volatile call)(void) = uprobe_try_function;
    uint64_t start = cpu_ns();
    for (int i = 0; i < CALLS; i++)
        call();
    return cpu_ns() - start;
}

static int time_order(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Of several rounds the middle one: what the target pays is not the best case. */
static uint64_t middle_round(void)
{
    uint64_t took[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        took[i] = time_calls();
    qsort(took, ROUNDS, sizeof *took, time_order);
    return took[ROUNDS / 2];
}

/* In the child: arms its own function, with BPF or else with a ring of the event. */
static int arm(void)
{
    struct hit_output *output = NULL;
    struct perf_event_attr attr;
    struct perf_ring ring;
    uint32_t type;
    uint64_t offset;
    if (uprobe_type(NULL, &type, NULL) < 0 || uprobe_try_offset(&offset) < 0)
        return -1;
    bool bpf = hit_output_new(RING_BYTES, &output, NULL) == 0;
    uprobe_attr(&attr, type, "/proc/self/exe", offset);
    if (!bpf)
        perf_event_sample_hits(&attr);
    int fd = perf_event_open(&attr, 0, -1);
    if (fd < 0 || (bpf ? hit_output_bind(output, fd, 1, NULL)
                       : perf_ring_map(&ring, fd, RING_PAGES, NULL)) < 0)
        return -1;
    return fd;
}

static uint64_t measure(void)
{
    uint64_t without = middle_round();
    if (arm() < 0)
        return 0;
    uint64_t with = middle_round();
    return with > without ? (with - without) / CALLS : 0;
}

/* Twice forked: nobody has to wait while the kernel takes the probe out at its end. */
static void run_child(int fd)
{
    if (fork() != 0)
        _exit(0);
    uint64_t ns = measure();
    _exit(write(fd, &ns, sizeof ns) == sizeof ns ? 0 : 1);
}

static void on_answer(void *arg, int fd, short revents)
{
    struct hit_cost *c = arg;
    uint64_t ns = 0;
    (void)revents;
    ssize_t n = read(fd, &ns, sizeof ns);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    loop_remove(c->loop, c->source);
    c->source = 0;
    if (n == sizeof ns && ns > 0)
        c->fn(c->arg, ns);
}

struct hit_cost *hit_cost_start(struct loop *loop, hit_cost_fn *fn, void *arg)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return NULL;
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of ours runs in the child */
    pid_t child = fork();
    if (child == 0)
        run_child(ends[1]);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)close(ends[1]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (child < 0) {
        (void)close(ends[0]);
        return NULL;
    }
    struct hit_cost *c = xcalloc(1, sizeof *c);
    *c = (struct hit_cost){.loop = loop, .fn = fn, .arg = arg, .fd = ends[0]};
    c->source = loop_add_fd(loop, c->fd, POLLIN, on_answer, c);
    return c;
}

void hit_cost_free(struct hit_cost *c)
{
    if (!c)
        return;
    loop_remove(c->loop, c->source);
    (void)close(c->fd);
    free(c);
}
