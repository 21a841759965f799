/* perf.data with Intel PT: the sideband into an image of the code over time, the packets through the
 * flow walker, what it finds onto the stacks of the threads. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fmt.h"
#include "decode/open_priv.h"
#include "decode/pt_image.h"
#include "decode/pt_stack.h"
#include "decode/pt_streams.h"
#include "decode/pt_walk.h"

/* A thread of the trace, and its stack. */
struct thread {
    pid_t pid, tid;
    size_t index; /* in the builder */
    struct pt_stack *stack;
};

struct decoder {
    struct open_context *c;
    struct trace_builder *b;
    struct addrspaces *as;
    struct symbolizer *symbols;
    struct pt_image *image;
    struct pt_streams *streams;
    struct pt_clock clock;
    bool per_cpu;
    VEC(struct thread) threads;
    uint64_t bytes_done, bytes_lost, losses;
    int rc;
};

/* While one stream is walked. */
struct lane {
    struct decoder *d;
    struct pt_view *view;
    size_t thread; /* index in d->threads */
    uint64_t base; /* bytes of the streams before this one */
};

static size_t thread_of(struct decoder *d, pid_t tid)
{
    for (size_t i = 0; i < d->threads.len; i++)
        if (d->threads.data[i].tid == tid)
            return i;
    pid_t pid = addrspaces_pid(d->as, tid);
    struct thread t = {.pid = pid > 0 ? pid : tid, .tid = tid};
    t.index = trace_builder_thread(d->b, t.pid, tid);
    const char *comm = addrspaces_comm(d->as, tid);
    if (comm)
        trace_builder_comm(d->b, t.index, comm);
    t.stack = pt_stack_new(d->b, t.index, d->c->functions);
    vec_push(&d->threads, t);
    return d->threads.len - 1;
}

/* ---- what the walker finds ---- */

static void on_events(void *arg, const struct pt_event *events, size_t n)
{
    struct lane *l = arg;
    if (pt_stack_events(l->d->threads.data[l->thread].stack, events, n) < 0)
        l->d->rc = MTUI_E_NOMEM;
}

static void on_loss(void *arg, const struct pt_loss *loss)
{
    struct lane *l = arg;
    struct decoder *d = l->d;
    const struct thread *t = &d->threads.data[l->thread];
    const char *where = loss->ip ? pt_image_where(d->image, t->pid, loss->from_time, loss->ip) : NULL;
    char *detail;
    if (loss->cause == GAP_NO_IMAGE)
        detail = xasprintf("%s: %s", where && *where ? where : "memory without a file", loss->why);
    else if (loss->ip)
        detail = xasprintf("%s, at %llx", loss->why, (unsigned long long)loss->ip);
    else
        detail = xstrdup(loss->why);
    struct gap g = {.tid = t->tid,
                    .start_ns = loss->from_time,
                    .end_ns = loss->to_time,
                    .bytes = loss->bytes,
                    .cause = loss->cause,
                    .detail = detail};
    trace_builder_gap(d->b, &g);
    free(detail);
    d->bytes_lost += loss->bytes;
    d->losses++;
}

static bool on_code(void *arg, uint64_t time)
{
    struct lane *l = arg;
    return pt_view_at(l->view, l->d->threads.data[l->thread].pid, time);
}

static bool on_cancel(void *arg)
{
    return open_cancelled(((struct lane *)arg)->d->c);
}

static void walk_stream(struct decoder *d, const struct pt_stream *s)
{
    struct lane l = {.d = d, .thread = thread_of(d, s->tid), .base = d->bytes_done};
    pt_stack_reset(d->threads.data[l.thread].stack); /* nothing goes on from another snapshot */
    l.view = pt_view_new(d->image);
    struct pt_code code = pt_view_code(l.view);
    struct pt_nodes *nodes = pt_nodes_new(&code);
    struct pt_walk_sinks sinks = {.events = on_events,
                                  .loss = on_loss,
                                  .code_changed = on_code,
                                  .cancelled = on_cancel,
                                  .arg = &l};
    struct pt_walk *w = pt_walk_new(nodes, &d->clock, &sinks);
    pt_walk_run(w, s->data, 0, SIZE_MAX, s->len, false);
    pt_walk_free(w);
    pt_nodes_free(nodes);
    pt_view_free(l.view);
    d->bytes_done += s->len;
    open_progress(d->c, "decoding", d->bytes_done, pt_streams_bytes(d->streams, NULL));
}

/* ---- reading ---- */

static int read_sideband(struct decoder *d, struct perf_file *f, struct err *err)
{
    struct perf_record rec;
    int rc;
    while ((rc = perf_file_next(f, &rec, err)) > 0) {
        if (open_cancelled(d->c))
            return err_set(err, MTUI_E_CANCEL, "cancelled");
        if ((rc = addrspaces_apply(d->as, &rec, err)) < 0 ||
            (rc = pt_streams_add(d->streams, f, &rec, err)) < 0)
            return rc;
        pid_t pid = rec.kind == PERF_REC_MMAP   ? rec.u.mmap.pid
                    : rec.kind == PERF_REC_COMM ? rec.u.comm.pid
                    : rec.kind == PERF_REC_FORK ? rec.u.fork.pid
                                                : -1;
        if (pid > 0 && pt_image_note(d->image, pid, rec.has_time ? rec.time_ns : 0) < 0)
            return err_set(err, MTUI_E_NOMEM, "not enough memory for the mappings");
    }
    return rc < 0 ? rc : pt_streams_finish(d->streams, err);
}

static int walk_all(struct decoder *d, struct err *err)
{
    if (!pt_streams_clock(d->streams, &d->clock, &d->per_cpu))
        return err_set(err, MTUI_E_FORMAT, "the recording does not say how its trace was made "
                                           "(no AUXTRACE_INFO)");
    for (size_t i = 0; i < pt_streams_count(d->streams); i++) {
        const struct pt_stream *s = pt_streams_at(d->streams, i);
        if (s->tid < 0)
            return err_set(err, MTUI_E_NOTSUP,
                           "this recording has a buffer for each CPU, which cannot be told apart by "
                           "thread yet: record with --per-thread");
        walk_stream(d, s);
        if (open_cancelled(d->c))
            return err_set(err, MTUI_E_CANCEL, "cancelled");
        if (d->rc < 0)
            return err_set(err, d->rc, "not enough memory for this trace");
    }
    return 0;
}

static void note_result(struct decoder *d)
{
    char lost[FMT_MAX], all[FMT_MAX];
    uint64_t bytes = pt_streams_bytes(d->streams, NULL);
    if (!bytes)
        open_note(d->c, "no trace data in it: the target was idle, tracing was off, or a hypervisor "
                        "kept Intel PT for itself");
    else if (d->bytes_lost)
        open_note(d->c, "%s of %s trace bytes told nothing, in %llu gaps",
                  fmt_size(lost, d->bytes_lost), fmt_size(all, bytes),
                  (unsigned long long)d->losses);
}

int open_pt(struct open_context *c, struct perf_file *f, struct trace_builder *b, struct err *err)
{
    const struct perf_file_info *info = perf_file_info(f);
    struct symbolizer_options so = {
        .log = c->maps, .symfs = c->options->symfs, .os_release = info->os_release};
    struct decoder d = {.c = c, .b = b};
    d.as = addrspaces_new(c->maps);
    d.symbols = symbolizer_new(c->functions, d.as, &so);
    d.image = pt_image_new(d.as, d.symbols, c->functions, c->maps);
    d.streams = pt_streams_new();
    perf_file_rewind(f);
    int rc = read_sideband(&d, f, err);
    if (rc == 0)
        rc = walk_all(&d, err);
    if (rc == 0) {
        note_result(&d);
        open_add_modules(c, d.symbols);
    }
    for (size_t i = 0; i < d.threads.len; i++)
        pt_stack_free(d.threads.data[i].stack);
    vec_free(&d.threads);
    pt_streams_free(d.streams);
    pt_image_free(d.image);
    symbolizer_free(d.symbols);
    addrspaces_free(d.as);
    return rc;
}
