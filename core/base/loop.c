#include "core/base/loop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"

struct watch {
    int id; /* 0: removed, swept after the round */
    int fd;
    short events;
    loop_fd_fn *fn;
    void *arg;
};

struct timer {
    int id;
    uint64_t at_ns;
    loop_fn *fn;
    void *arg;
};

struct posted {
    loop_fn *fn;
    void *arg;
};

struct loop {
    loop_clock_fn *clock;
    void *clock_arg;
    int next_id;
    VEC(struct watch) watches;
    VEC(struct timer) timers; /* unsorted: there are a handful */
    VEC(struct pollfd) polled;
    VEC(int) polled_ids;
    int wake_fd;
    pthread_mutex_t lock; /* guards posted */
    VEC(struct posted) posted;
};

static uint64_t monotonic_ns(void *arg)
{
    (void)arg;
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

struct loop *loop_new(void)
{
    return loop_new_with_clock(monotonic_ns, NULL);
}

struct loop *loop_new_with_clock(loop_clock_fn *clock, void *arg)
{
    struct loop *l = xcalloc(1, sizeof *l);
    l->clock = clock;
    l->clock_arg = arg;
    l->next_id = 1;
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&l->lock, NULL);
    return l;
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    if (l->wake_fd >= 0)
        close(l->wake_fd);
    pthread_mutex_destroy(&l->lock);
    vec_free(&l->watches);
    vec_free(&l->timers);
    vec_free(&l->polled);
    vec_free(&l->polled_ids);
    vec_free(&l->posted);
    free(l);
}

uint64_t loop_now_ns(const struct loop *l)
{
    return l->clock(l->clock_arg);
}

int loop_add_fd(struct loop *l, int fd, short events, loop_fd_fn *fn, void *arg)
{
    struct watch w = {.id = l->next_id++, .fd = fd, .events = events, .fn = fn, .arg = arg};
    vec_push(&l->watches, w);
    return w.id;
}

static struct watch *find_watch(struct loop *l, int id)
{
    for (size_t i = 0; i < l->watches.len; i++)
        if (id && l->watches.data[i].id == id)
            return &l->watches.data[i];
    return NULL;
}

void loop_set_events(struct loop *l, int id, short events)
{
    struct watch *w = find_watch(l, id);
    if (w)
        w->events = events;
}

int loop_add_timer(struct loop *l, uint64_t at_ns, loop_fn *fn, void *arg)
{
    struct timer t = {.id = l->next_id++, .at_ns = at_ns, .fn = fn, .arg = arg};
    vec_push(&l->timers, t);
    return t.id;
}

void loop_remove(struct loop *l, int id)
{
    struct watch *w = find_watch(l, id);
    if (w) {
        w->id = 0;
        return;
    }
    for (size_t i = 0; i < l->timers.len; i++) {
        if (l->timers.data[i].id == id) {
            vec_remove(&l->timers, i);
            return;
        }
    }
}

void loop_post(struct loop *l, loop_fn *fn, void *arg)
{
    pthread_mutex_lock(&l->lock);
    vec_push(&l->posted, ((struct posted){fn, arg}));
    pthread_mutex_unlock(&l->lock);
    uint64_t one = 1;
    ssize_t n = write(l->wake_fd, &one, sizeof one);
    (void)n; /* a full counter has woken the loop already */
}

bool loop_unpost(struct loop *l, loop_fn *fn, void *arg)
{
    bool found = false;
    pthread_mutex_lock(&l->lock);
    for (size_t i = l->posted.len; i-- > 0;)
        if (l->posted.data[i].fn == fn && l->posted.data[i].arg == arg) {
            vec_remove(&l->posted, i);
            found = true;
        }
    pthread_mutex_unlock(&l->lock);
    return found;
}

static int run_posted(struct loop *l)
{
    uint64_t count;
    ssize_t n = read(l->wake_fd, &count, sizeof count);
    (void)n;
    pthread_mutex_lock(&l->lock);
    struct posted *work = l->posted.data;
    size_t len = l->posted.len;
    l->posted.data = NULL;
    l->posted.len = l->posted.cap = 0;
    pthread_mutex_unlock(&l->lock);
    for (size_t i = 0; i < len; i++)
        work[i].fn(work[i].arg);
    free(work);
    return (int)len;
}

/* Runs the timers that are due now; one that re-arms itself waits for the next round. */
static int run_timers(struct loop *l)
{
    int ran = 0, newest = l->next_id;
    uint64_t now = loop_now_ns(l);
    for (;;) {
        size_t best = l->timers.len;
        for (size_t i = 0; i < l->timers.len; i++) {
            const struct timer *t = &l->timers.data[i];
            if (t->at_ns <= now && t->id < newest &&
                (best == l->timers.len || t->at_ns < l->timers.data[best].at_ns))
                best = i;
        }
        if (best == l->timers.len)
            return ran;
        struct timer t = l->timers.data[best];
        vec_remove(&l->timers, best);
        t.fn(t.arg);
        ran++;
    }
}

static void prepare_poll(struct loop *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->watches.len; i++)
        if (l->watches.data[i].id)
            l->watches.data[kept++] = l->watches.data[i];
    l->watches.len = kept;
    l->polled.len = l->polled_ids.len = 0;
    vec_push(&l->polled, ((struct pollfd){.fd = l->wake_fd, .events = POLLIN}));
    vec_push(&l->polled_ids, 0);
    for (size_t i = 0; i < l->watches.len; i++) {
        if (!l->watches.data[i].events)
            continue;
        vec_push(&l->polled, ((struct pollfd){.fd = l->watches.data[i].fd,
                                              .events = l->watches.data[i].events}));
        vec_push(&l->polled_ids, l->watches.data[i].id);
    }
}

static int64_t wait_ns(const struct loop *l, int64_t max_wait_ns)
{
    uint64_t now = loop_now_ns(l);
    for (size_t i = 0; i < l->timers.len; i++) {
        uint64_t at = l->timers.data[i].at_ns;
        int64_t left = at > now ? (int64_t)(at - now) : 0;
        if (max_wait_ns < 0 || left < max_wait_ns)
            max_wait_ns = left;
    }
    return max_wait_ns;
}

int loop_run_once(struct loop *l, int64_t max_wait_ns)
{
    prepare_poll(l);
    int64_t wait = wait_ns(l, max_wait_ns);
    struct timespec ts = {.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
    int ready = ppoll(l->polled.data, l->polled.len, wait < 0 ? NULL : &ts, NULL);
    int ran = 0;
    if (ready > 0) {
        /* Callbacks change the watch list: go by id, and by the copy that was polled. */
        for (size_t i = 1; i < l->polled.len; i++) {
            struct pollfd p = l->polled.data[i];
            struct watch *w = p.revents ? find_watch(l, l->polled_ids.data[i]) : NULL;
            if (!w || !w->events)
                continue;
            w->fn(w->arg, p.fd, p.revents);
            ran++;
        }
        if (l->polled.data[0].revents)
            ran += run_posted(l);
    }
    return ran + run_timers(l);
}
