/* Opening in the background: a thread, atomics for its progress, the loop for its end. */
#include <pthread.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "decode/open.h"

struct open_job {
    struct loop *loop;
    char *path, *symfs;
    struct open_options options;
    open_done_fn *done;
    void *arg;
    pthread_t thread;
    bool started;
    atomic_bool cancel;
    _Atomic(const char *) stage;
    atomic_uint_least64_t at, total;
    struct recording *result;
    struct err err;
};

static void on_progress(void *arg, const char *stage, uint64_t done, uint64_t total)
{
    struct open_job *j = arg;
    atomic_store_explicit(&j->stage, stage, memory_order_relaxed);
    atomic_store_explicit(&j->at, done, memory_order_relaxed);
    atomic_store_explicit(&j->total, total, memory_order_relaxed);
}

/* In the loop's thread. */
static void finish(void *arg)
{
    struct open_job *j = arg;
    if (j->started)
        pthread_join(j->thread, NULL);
    j->done(j->arg, j->result, &j->err);
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

void open_job_progress(struct open_job *job, const char **stage, uint64_t *done, uint64_t *total)
{
    *stage = atomic_load_explicit(&job->stage, memory_order_relaxed);
    *done = atomic_load_explicit(&job->at, memory_order_relaxed);
    *total = atomic_load_explicit(&job->total, memory_order_relaxed);
}

void open_job_cancel(struct open_job *job)
{
    atomic_store_explicit(&job->cancel, true, memory_order_relaxed);
}
