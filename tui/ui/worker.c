#include "tui/ui/worker.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/loop.h"

#define POLL_NS 15000000 /* a frame: nobody sees a result sooner */

struct worker {
    struct loop *loop;
    worker_run_fn *run;
    worker_done_fn *done;
    void *arg;
    pthread_t thread;
    atomic_bool cancel, finished;
    bool joined;
    int timer;
};

static void *thread_main(void *arg)
{
    struct worker *w = arg;
    w->run(w->arg, &w->cancel);
    atomic_store(&w->finished, true);
    return NULL;
}

static void look(void *arg)
{
    struct worker *w = arg;
    w->timer = 0;
    if (!atomic_load(&w->finished)) {
        w->timer = loop_add_timer(w->loop, loop_now_ns(w->loop) + POLL_NS, look, w);
        return;
    }
    pthread_join(w->thread, NULL);
    w->joined = true;
    w->done(w->arg); /* may free w */
}

struct worker *worker_start(struct loop *loop, worker_run_fn *run, worker_done_fn *done, void *arg)
{
    struct worker *w = xcalloc(1, sizeof *w);
    *w = (struct worker){.loop = loop, .run = run, .done = done, .arg = arg};
    atomic_init(&w->cancel, false);
    atomic_init(&w->finished, false);
    if (!loop || pthread_create(&w->thread, NULL, thread_main, w) != 0) {
        run(arg, &w->cancel);
        free(w);
        done(arg);
        return NULL;
    }
    w->timer = loop_add_timer(loop, loop_now_ns(loop), look, w);
    return w;
}

void worker_stop(struct worker *w)
{
    if (!w)
        return;
    atomic_store(&w->cancel, true);
    if (!w->joined)
        pthread_join(w->thread, NULL);
    if (w->timer)
        loop_remove(w->loop, w->timer);
    free(w);
}
