#include "tui/trace/trace_stats.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "tui/ui/worker.h"

struct trace_stats {
    struct loop *loop;
    void (*ready)(void *arg);
    void *arg;
    struct worker *worker;
    bool busy;
    const struct trace *trace;
    struct stats_options options;
    struct stats *stats, *made; /* made: by the worker, not shown yet */
    struct err err;
};

struct trace_stats *trace_stats_new(struct loop *loop, void (*ready)(void *arg), void *arg)
{
    struct trace_stats *ts = xcalloc(1, sizeof *ts);
    *ts = (struct trace_stats){.loop = loop, .ready = ready, .arg = arg};
    return ts;
}

void trace_stats_clear(struct trace_stats *ts)
{
    worker_stop(ts->worker);
    ts->worker = NULL;
    ts->busy = false;
    stats_free(ts->stats);
    stats_free(ts->made);
    ts->stats = ts->made = NULL;
    ts->err.text[0] = '\0';
}

void trace_stats_free(struct trace_stats *ts)
{
    if (!ts)
        return;
    trace_stats_clear(ts);
    free(ts);
}

static void run(void *arg, const atomic_bool *cancel)
{
    struct trace_stats *ts = arg;
    struct stats_options options = ts->options;
    options.cancel = cancel;
    if (stats_new(&ts->made, ts->trace, &options, &ts->err) == 0)
        ts->err.text[0] = '\0';
}

static void done(void *arg)
{
    struct trace_stats *ts = arg;
    worker_stop(ts->worker);
    ts->worker = NULL;
    ts->busy = false;
    ts->stats = ts->made;
    ts->made = NULL;
    ts->ready(ts->arg);
}

void trace_stats_start(struct trace_stats *ts, const struct trace *t,
                       const struct stats_options *options)
{
    trace_stats_clear(ts);
    ts->trace = t;
    ts->options = *options;
    ts->busy = true;
    ts->worker = worker_start(ts->loop, run, done, ts);
}

const struct stats *trace_stats_get(const struct trace_stats *ts)
{
    return ts->stats;
}

bool trace_stats_busy(const struct trace_stats *ts)
{
    return ts->busy;
}

const char *trace_stats_error(const struct trace_stats *ts)
{
    return ts->busy ? "" : ts->err.text;
}
