#include "tui/record/record_decode.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "decode/open/open.h"

/* A trace that queue and timeline share. */
struct held {
    struct recording *recording;
    unsigned refs;
};

struct entry {
    unsigned number;
    char *path;
    enum decode_state state;
    struct held *held; /* DECODE_DONE; DECODE_RUNNING: the part, or NULL */
    bool stopping;
    uint64_t spans, gaps, span_ns;
    char *sentence; /* DECODE_FAILED */
};

struct decode_queue {
    struct loop *loop;
    void (*changed)(void *arg);
    void *arg;
    VEC(struct entry) entries;
    struct open_job *job; /* of the entry in state DECODE_RUNNING */
    bool closing;
};

static void let_go(struct held *h)
{
    if (h && --h->refs == 0) {
        recording_free(h->recording);
        free(h);
    }
}

static void free_entry(struct entry *e)
{
    let_go(e->held);
    free(e->path);
    free(e->sentence);
}

struct decode_queue *decode_queue_new(struct loop *loop, void (*changed)(void *arg), void *arg)
{
    struct decode_queue *q = xcalloc(1, sizeof *q);
    q->loop = loop;
    q->changed = changed;
    q->arg = arg;
    return q;
}

static struct entry *find(const struct decode_queue *q, unsigned number)
{
    for (size_t i = 0; i < q->entries.len; i++)
        if (q->entries.data[i].number == number)
            return &q->entries.data[i];
    return NULL;
}

static struct entry *running(const struct decode_queue *q)
{
    for (size_t i = 0; i < q->entries.len; i++)
        if (q->entries.data[i].state == DECODE_RUNNING)
            return &q->entries.data[i];
    return NULL;
}

static void hold(struct entry *e, struct recording *r)
{
    let_go(e->held);
    e->held = xcalloc(1, sizeof *e->held);
    e->held->recording = r;
    e->held->refs = 1;
}

static void store(struct entry *e, struct recording *r, const struct err *err)
{
    e->spans = 0;
    if (!r) {
        let_go(e->held);
        e->held = NULL;
        e->state = DECODE_FAILED;
        e->sentence = xstrdup(err->text);
        return;
    }
    const struct trace_info *info = trace_info(r->trace);
    size_t gaps;
    trace_gaps(r->trace, &gaps);
    e->state = DECODE_DONE;
    e->gaps = gaps;
    e->span_ns = info->last_ns - info->first_ns;
    for (size_t i = 0; i < trace_thread_count(r->trace); i++)
        e->spans += trace_thread(r->trace, i)->spans;
    hold(e, r);
}

static void start_next(struct decode_queue *q);

static void done(void *arg, struct recording *r, const struct err *err)
{
    struct decode_queue *q = arg;
    struct entry *e = running(q);
    q->job = NULL;
    if (e)
        store(e, r, err);
    else
        recording_free(r); /* forgotten meanwhile */
    if (q->closing)
        return;
    start_next(q);
    q->changed(q->arg);
}

static void part(void *arg, struct recording *r)
{
    struct decode_queue *q = arg;
    struct entry *e = running(q);
    if (!e || q->closing) {
        recording_free(r);
        return;
    }
    hold(e, r);
    q->changed(q->arg);
}

/* The newest first: it is what people look at. */
static void start_next(struct decode_queue *q)
{
    struct open_options options = {
        .snapshot = OPEN_LAST, .pyramid = true, .part = part, .part_arg = q};
    for (size_t i = q->entries.len; !q->job && i-- > 0;) {
        struct entry *e = &q->entries.data[i];
        if (e->state != DECODE_QUEUED)
            continue;
        e->state = DECODE_RUNNING;
        q->job = open_start(q->loop, e->path, &options, done, q);
    }
}

void decode_queue_add(struct decode_queue *q, const char *dir, unsigned number)
{
    struct entry *e = find(q, number);
    if (e && e->state != DECODE_FAILED)
        return;
    if (e) {
        free_entry(e);
        vec_remove(&q->entries, (size_t)(e - q->entries.data));
    }
    struct entry fresh = {.number = number, .state = DECODE_QUEUED};
    fresh.path = number ? xasprintf("%s/snap-%u", dir, number) : xasprintf("%s/snap-end", dir);
    vec_push(&q->entries, fresh);
    start_next(q);
}

void decode_queue_forget(struct decode_queue *q, unsigned number)
{
    struct entry *e = find(q, number);
    if (!e)
        return;
    if (e->state == DECODE_RUNNING)
        open_job_cancel(q->job);
    free_entry(e);
    vec_remove(&q->entries, (size_t)(e - q->entries.data));
}

void decode_queue_stop(struct decode_queue *q, unsigned number)
{
    struct entry *e = find(q, number);
    if (!e || e->state != DECODE_RUNNING)
        return;
    e->stopping = true;
    open_job_enough(q->job);
}

void decode_queue_clear(struct decode_queue *q)
{
    while (q->entries.len)
        decode_queue_forget(q, q->entries.data[0].number);
}

void decode_queue_free(struct decode_queue *q)
{
    if (!q)
        return;
    decode_queue_clear(q);
    q->closing = true;
    while (q->job) /* cancelled: a moment */
        loop_run_once(q->loop, -1);
    vec_free(&q->entries);
    free(q);
}

struct decode_result decode_queue_result(const struct decode_queue *q, unsigned number)
{
    const struct entry *e = find(q, number);
    struct decode_result r = {.state = DECODE_NONE};
    if (!e)
        return r;
    r = (struct decode_result){
        .state = e->state,
        .trace = e->held ? e->held->recording->trace : NULL,
        .pyramid = e->held ? e->held->recording->pyramid : NULL,
        .stopping = e->stopping,
        .spans = e->spans,
        .gaps = e->gaps,
        .span_ns = e->span_ns,
        .sentence = e->sentence,
    };
    if (e->state == DECODE_RUNNING && q->job) {
        struct open_progress p = open_job_progress(q->job);
        r.finishing = open_is_finishing(&p);
        r.permille = r.finishing ? 1000 : p.total ? (unsigned)(p.done * 1000 / p.total) : 0;
        r.spans = p.spans;
    }
    return r;
}

void *decode_queue_hold(struct decode_queue *q, unsigned number)
{
    struct entry *e = find(q, number);
    if (!e || !e->held)
        return NULL;
    e->held->refs++;
    return e->held;
}

void decode_queue_release(void *held)
{
    let_go(held);
}
