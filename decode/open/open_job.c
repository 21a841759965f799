/* Opening in the background: a thread, atomics for its progress, the loop for its end. */
#include <pthread.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "decode/open/open.h"

struct open_job {
    struct loop *loop;
    char *path, *symfs;
    struct open_options options;
    open_done_fn *done;
    void *arg;
    pthread_t thread;
    bool started;
    atomic_bool cancel, enough;
    _Atomic(const char *) stage;
    atomic_uint_least64_t at, total, spans;
    struct recording *result;
    struct err err;
    open_part_fn *part_fn; /* the user's, in the loop's thread */
    void *part_arg;
    pthread_mutex_t lock;
    struct recording *part; /* the newest, until the loop takes it; under lock */
};

static void on_progress(void *arg, const struct open_progress *p)
{
    struct open_job *j = arg;
    atomic_store_explicit(&j->stage, p->stage, memory_order_relaxed);
    atomic_store_explicit(&j->at, p->done, memory_order_relaxed);
    atomic_store_explicit(&j->total, p->total, memory_order_relaxed);
    atomic_store_explicit(&j->spans, p->spans, memory_order_relaxed);
}

static struct recording *exchange_part(struct open_job *j, struct recording *r)
{
    pthread_mutex_lock(&j->lock);
    struct recording *old = j->part;
    j->part = r;
    pthread_mutex_unlock(&j->lock);
    return old;
}

/* In the loop's thread, before the end, since what is posted comes in order. */
static void take_part(void *arg)
{
    struct open_job *j = arg;
    struct recording *r = exchange_part(j, NULL);
    if (r)
        j->part_fn(j->part_arg, r);
}

/* One that was not taken is out of date. */
static void on_part(void *arg, struct recording *r)
{
    struct open_job *j = arg;
    struct recording *old = exchange_part(j, r);
    if (old)
        recording_free(old);
    else
        loop_post(j->loop, take_part, j);
}

/* In the loop's thread. */
static void finish(void *arg)
{
    struct open_job *j = arg;
    if (j->started)
        pthread_join(j->thread, NULL);
    j->done(j->arg, j->result, &j->err);
    pthread_mutex_destroy(&j->lock);
    free(j->path);
    free(j->symfs);
    free(j);
}

static void *run(void *arg)
{
    struct open_job *j = arg;
    if (open_recording(&j->result, j->path, &j->options, &j->err) < 0)
        j->result = NULL;
    loop_post(j->loop, finish, j);
    return NULL;
}

struct open_job *open_start(struct loop *loop, const char *path, const struct open_options *options,
                            open_done_fn *done, void *arg)
{
    struct open_job *j = xcalloc(1, sizeof *j);
    j->loop = loop;
    j->path = xstrdup(path);
    j->symfs = options->symfs ? xstrdup(options->symfs) : NULL;
    j->options = *options;
    j->options.symfs = j->symfs;
    j->options.cancel = &j->cancel;
    j->options.enough = &j->enough;
    j->part_fn = options->part;
    j->part_arg = options->part_arg;
    j->options.part = options->part ? on_part : NULL;
    j->options.part_arg = j;
    pthread_mutex_init(&j->lock, NULL);
    j->options.progress = on_progress;
    j->options.progress_arg = j;
    j->done = done;
    j->arg = arg;
    atomic_init(&j->stage, "reading");
    j->started = true;
    if (pthread_create(&j->thread, NULL, run, j) != 0) {
        j->started = false;
        err_set(&j->err, MTUI_E_LIMIT, "no thread could be started to open %s", path);
        loop_post(loop, finish, j);
    }
    return j;
}

struct open_progress open_job_progress(struct open_job *job)
{
    return (struct open_progress){
        .stage = atomic_load_explicit(&job->stage, memory_order_relaxed),
        .done = atomic_load_explicit(&job->at, memory_order_relaxed),
        .total = atomic_load_explicit(&job->total, memory_order_relaxed),
        .spans = atomic_load_explicit(&job->spans, memory_order_relaxed),
    };
}

void open_job_enough(struct open_job *job)
{
    atomic_store_explicit(&job->enough, true, memory_order_relaxed);
}

void open_job_cancel(struct open_job *job)
{
    atomic_store_explicit(&job->cancel, true, memory_order_relaxed);
}
