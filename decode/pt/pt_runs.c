#include "decode/pt/pt_runs.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"

struct run {
    uint64_t time_ns, serial;
    pid_t tid;
    const struct pt_stream *stream;
    VEC(struct flow_event) events;
};

/* Who is running on the CPU of a stream, at the point up to which it was decoded. */
struct present {
    const struct pt_stream *stream;
    pid_t tid;
};

struct pt_runs {
    const struct pt_source *source;
    pt_run_fn *fn;
    void *arg;
    const struct pt_piece *piece;
    size_t present; /* index in presents of the piece's stream */
    bool begun;     /* events of the piece have come */
    bool open;      /* the last of those that wait is of this piece, and goes on */
    VEC(struct present) presents;
    VEC(struct run) waiting;
    VEC(struct run) spare; /* their buffers are used again */
    uint64_t serial, unknown;
};

struct pt_runs *pt_runs_new(const struct pt_source *source, pt_run_fn *fn, void *arg)
{
    struct pt_runs *r = xcalloc(1, sizeof *r);
    r->source = source;
    r->fn = fn;
    r->arg = arg;
    return r;
}

void pt_runs_free(struct pt_runs *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->waiting.len; i++)
        vec_free(&r->waiting.data[i].events);
    for (size_t i = 0; i < r->spare.len; i++)
        vec_free(&r->spare.data[i].events);
    vec_free(&r->waiting);
    vec_free(&r->spare);
    vec_free(&r->presents);
    free(r);
}

static int by_time(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return x->serial < y->serial ? -1 : x->serial > y->serial;
}

/* Hands on the runs that began before a time; no earlier one can come any more. */
static int release(struct pt_runs *r, uint64_t before_ns)
{
    int rc = 0;
    size_t n = 0;
    if (r->waiting.len)
        qsort(r->waiting.data, r->waiting.len, sizeof *r->waiting.data, by_time);
    while (n < r->waiting.len && r->waiting.data[n].time_ns < before_ns && rc == 0) {
        struct run *run = &r->waiting.data[n++];
        struct pt_run out = {run->tid, run->stream, run->events.data, run->events.len};
        rc = r->fn(r->arg, &out);
        run->events.len = 0;
        vec_push(&r->spare, *run);
    }
    for (size_t i = n; i < r->waiting.len; i++)
        r->waiting.data[i - n] = r->waiting.data[i];
    r->waiting.len -= n;
    return rc;
}

static size_t present_of(struct pt_runs *r, const struct pt_stream *stream)
{
    for (size_t i = 0; i < r->presents.len; i++)
        if (r->presents.data[i].stream == stream)
            return i;
    vec_push(&r->presents, ((struct present){stream, stream->tid}));
    return r->presents.len - 1;
}

int pt_runs_begin(struct pt_runs *r, const struct pt_piece *piece)
{
    r->piece = piece;
    r->present = present_of(r, piece->stream);
    r->begun = r->open = false;
    return piece->stream->tid < 0 ? release(r, piece->time_ns) : 0;
}

static int keep(struct pt_runs *r, pid_t tid, const struct flow_event *events, size_t n)
{
    struct run run = {0};
    bool goes_on = r->open && events[0].kind != PT_EVENT_BEGIN;
    r->open = tid >= 0;
    if (tid < 0) {
        r->unknown += n;
        return 0;
    }
    if (goes_on)
        return vec_try_append(&r->waiting.data[r->waiting.len - 1].events, events, n) ? 0 : MTUI_E_NOMEM;
    if (r->spare.len)
        run = r->spare.data[--r->spare.len];
    run.time_ns = events[0].time;
    run.serial = r->serial++;
    run.tid = tid;
    run.stream = r->piece->stream;
    if (!vec_try_append(&run.events, events, n)) {
        vec_free(&run.events);
        return MTUI_E_NOMEM;
    }
    vec_push(&r->waiting, run);
    return 0;
}

int pt_runs_events(struct pt_runs *r, const struct flow_event *events, size_t n)
{
    struct present *now = &r->presents.data[r->present];
    int rc = 0;
    if (now->stream->tid >= 0) {
        struct pt_run run = {now->tid, now->stream, events, n};
        return r->fn(r->arg, &run);
    }
    for (size_t from = 0, to; from < n && rc == 0; from = to) {
        if (events[from].kind == PT_EVENT_BEGIN || (!r->begun && now->tid < 0))
            now->tid = pt_source_thread(r->source, now->stream, events[from].time);
        for (to = from + 1; to < n && events[to].kind != PT_EVENT_BEGIN; to++)
            ;
        r->begun = true;
        rc = keep(r, now->tid, events + from, to - from);
    }
    return rc;
}

int pt_runs_finish(struct pt_runs *r)
{
    return release(r, UINT64_MAX);
}

pid_t pt_runs_thread(const struct pt_runs *r, uint64_t time_ns)
{
    return pt_source_thread(r->source, r->piece->stream, time_ns);
}

uint64_t pt_runs_unknown(const struct pt_runs *r)
{
    return r->unknown;
}
