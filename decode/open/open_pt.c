/* perf.data with Intel PT: its pieces are decoded, what they give goes onto the stacks of the threads. */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cpus.h"
#include "core/base/fmt.h"
#include "decode/open/open_losses.h"
#include "decode/open/open_priv.h"
#include "decode/pt/pt_decode.h"
#include "decode/pt/pt_runs.h"
#include "decode/pt/pt_stack.h"

/* A thread of the trace, and its stack. */
struct thread {
    pid_t tid;
    size_t index; /* in the builder */
    int cpu;
    uint64_t insns; /* executed, where these are the time */
    uint64_t last_ns; /* of its last event */
    const struct pt_stream *stream;
    struct pt_stack *stack;
    struct landing *landing;
};

/* What a stack asks about exceptions. */
struct landing {
    struct decoder *d;
    pid_t tid;
};

/* Of a stream of which other snapshots tell the beginning. */
struct early {
    const struct pt_stream *stream;
    bool shown;              /* events within its limits have come */
    struct flow_event event; /* the last one before, */
    pid_t tid;               /* and whose it is */
};

struct decoder {
    struct open_context *c;
    struct trace_builder *b;
    struct pt_source source;
    struct code_view *code; /* where exceptions go on; NULL: not asked for yet */
    struct open_losses losses;
    struct pt_pieces pieces;
    struct pt_runs *runs;
    const struct pt_piece *piece;
    size_t pieces_done;
    VEC(struct thread) threads;
    VEC(struct flow_event) shifted, within;
    VEC(struct early) early;
    size_t last_thread; /* most runs are the last one's */
    uint64_t first_insn; /* where instructions are the time: what earlier snapshots have told ends there */
    uint64_t piece_from_ns; /* the latest time known when the piece in hand began */
    uint64_t bytes_done, frequency;
    int rc;
};

static void name_thread(struct decoder *d, struct trace_builder *b, size_t index, pid_t tid)
{
    const char *comm = addrspaces_comm(d->source.as, tid);
    if (comm)
        trace_builder_comm(b, index, comm);
}

static bool landing_pad(void *arg, uint64_t time, uint64_t call, uint64_t *pad)
{
    const struct landing *l = arg;
    struct decoder *d = l->d;
    if (!d->code)
        d->code = code_view_new(d->source.image);
    code_view_at(d->code, pt_source_process(&d->source, l->tid), pt_clock_has_time(&d->source.clock) ? time : 0);
    return code_view_landing_pad(d->code, call, pad);
}

static struct thread *thread_of(struct decoder *d, pid_t tid)
{
    if (d->last_thread < d->threads.len && d->threads.data[d->last_thread].tid == tid)
        return &d->threads.data[d->last_thread];
    for (size_t i = 0; i < d->threads.len; i++)
        if (d->threads.data[i].tid == tid) {
            d->last_thread = i;
            return &d->threads.data[i];
        }
    struct thread t = {.tid = tid, .cpu = -1, .insns = d->first_insn};
    t.index = trace_builder_thread(d->b, pt_source_process(&d->source, tid), tid);
    name_thread(d, d->b, t.index, tid);
    t.stack = pt_stack_new(d->b, t.index, d->c->functions);
    t.landing = xcalloc(1, sizeof *t.landing);
    *t.landing = (struct landing){d, tid};
    pt_stack_set_landing(t.stack, &(struct pt_stack_landing){landing_pad, t.landing});
    vec_push(&d->threads, t);
    d->last_thread = d->threads.len - 1;
    return &d->threads.data[d->last_thread];
}

/* ---- what decoding gives ---- */

static void note_cpu(struct decoder *d, struct thread *t, const struct pt_run *run)
{
    int cpu = run->stream->cpu, before = t->cpu;
    t->cpu = cpu;
    if (cpu >= 0)
        trace_builder_cpu(d->b, t->index, cpu);
    if (cpu < 0 || before < 0 || cpu == before)
        return;
    char *detail = xasprintf(MIGRATION_DETAIL, before, cpu);
    struct mark m = {run->events[0].time, t->tid, MARK_MIGRATION, detail};
    trace_builder_mark(d->b, &m);
    free(detail);
}

/* Without timestamps, the instructions of the pieces before count. */
static const struct flow_event *shift(struct decoder *d, const struct thread *t, const struct pt_run *run)
{
    d->shifted.len = 0;
    for (size_t i = 0; i < run->n; i++) {
        struct flow_event e = run->events[i];
        e.time += t->insns;
        if (!vec_try_push(&d->shifted, e))
            return NULL;
    }
    return d->shifted.data;
}

/* Nothing that was open in a program goes on in the one that replaces it. */
static int put_events(struct decoder *d, struct thread *t, const struct flow_event *events, size_t n)
{
    size_t from = 0;
    int rc = 0;
    for (size_t i = 0; i < n && d->source.execs.len && rc == 0; i++) {
        if (events[i].kind == PT_EVENT_BEGIN &&
            pt_source_exec_between(&d->source, pt_source_process(&d->source, t->tid), t->last_ns, events[i].time)) {
            rc = pt_stack_events(t->stack, events + from, i - from);
            pt_stack_reset(t->stack, 0);
            from = i;
        }
        t->last_ns = events[i].time;
    }
    if (rc == 0)
        rc = pt_stack_events(t->stack, events + from, n - from);
    if (rc == 0 && d->c->flow)
        rc = stats_flow_take(d->c->flow, t->index, pt_stack_doubtful(t->stack));
    return rc;
}

static struct early *early_of(struct decoder *d, const struct pt_stream *stream)
{
    for (size_t i = 0; i < d->early.len; i++)
        if (d->early.data[i].stream == stream)
            return &d->early.data[i];
    vec_push(&d->early, ((struct early){.stream = stream, .event = {.kind = PT_EVENT_END}}));
    return &d->early.data[d->early.len - 1];
}

/* What was running goes on where the limits begin. */
static bool begin_within(struct decoder *d, struct early *early, pid_t tid)
{
    struct flow_event begin = early->event;
    bool runs = !early->shown && early->tid == tid && begin.kind != PT_EVENT_END && begin.kind != PT_EVENT_LOST;
    early->shown = true;
    begin.kind = PT_EVENT_BEGIN;
    begin.at_start = false;
    begin.time = early->stream->limits.from_ns;
    return !runs || vec_try_push(&d->within, begin);
}

/* Of a run, what lies within the times that its stream is to tell: event by event, however many come at once. */
static int limit(struct decoder *d, struct pt_run *run)
{
    const struct pt_stream_limits *l = &run->stream->limits;
    if (!l->from_ns && l->to_ns == UINT64_MAX)
        return 0;
    struct early *early = early_of(d, run->stream);
    bool ok = true;
    d->within.len = 0;
    for (size_t i = 0; i < run->n && ok; i++) {
        const struct flow_event *e = &run->events[i];
        if (e->time < l->from_ns) {
            early->event = *e;
            early->tid = run->tid;
        } else if (e->time < l->to_ns)
            ok = begin_within(d, early, run->tid) && vec_try_push(&d->within, *e);
    }
    run->events = d->within.data;
    run->n = d->within.len;
    return ok ? 0 : MTUI_E_NOMEM;
}

static int on_run(void *arg, const struct pt_run *told)
{
    struct decoder *d = arg;
    struct pt_run within = *told;
    const struct pt_run *run = &within;
    int rc = limit(d, &within);
    if (rc < 0 || !run->n)
        return rc;
    struct thread *t = thread_of(d, run->tid);
    const struct flow_event *events = run->events;
    /* Another snapshot's stream: nothing goes on from one to the next. A CPU's is another stream as well. */
    if (t->stream && t->stream != run->stream && t->stream->cpu == run->stream->cpu)
        pt_stack_reset(t->stack, SPAN_INFERRED_END);
    t->stream = run->stream;
    note_cpu(d, t, run);
    if (!pt_clock_has_time(&d->source.clock) && (events = shift(d, t, run)) == NULL)
        return MTUI_E_NOMEM;
    return put_events(d, t, events, run->n);
}

/* ---- what is still to be decoded ---- */

/* Of a thread's stream, or of those of all CPUs. */
struct rest {
    const struct pt_stream *stream;
    pid_t tid;
    uint64_t from_ns, to_ns, bytes;
};

static void put_rest(struct decoder *d, struct trace_builder *b, const struct rest *r)
{
    uint64_t first = 0, last = 0, from = r->from_ns;
    trace_builder_times(b, &first, &last);
    if (!from) /* the stream tells no times */
        from = last;
    if (r->tid > 0)
        name_thread(d, b, trace_builder_thread(b, pt_source_process(&d->source, r->tid), r->tid), r->tid);
    open_not_decoded(d->c, b, r->tid, from, r->to_ns > from ? r->to_ns : from, r->bytes);
}

/* Pieces of one thread's stream follow one another; those of CPUs are in the order of time. */
static uint64_t put_rests(struct decoder *d, struct trace_builder *b)
{
    uint64_t all = 0;
    struct rest r = {0};
    for (size_t i = d->pieces_done; i < d->pieces.len; i++) {
        const struct pt_piece *p = &d->pieces.data[i];
        pid_t tid = p->stream->tid > 0 ? p->stream->tid : 0;
        if (r.stream && (tid || r.tid) && r.stream != p->stream) {
            put_rest(d, b, &r);
            r.stream = NULL;
        }
        if (!r.stream)
            r = (struct rest){.stream = p->stream, .tid = tid, .from_ns = p->time_ns};
        uint64_t to_ns = p->stop == p->stream->limits.to ? pt_piece_end_ns(p, &d->source.clock) : p->time_ns;
        r.to_ns = to_ns > r.to_ns ? to_ns : r.to_ns;
        r.bytes += p->stop - p->from;
        all += p->stop - p->from;
    }
    if (r.stream)
        put_rest(d, b, &r);
    return all;
}

static void on_begin(void *arg, const struct pt_piece *piece)
{
    struct decoder *d = arg;
    int rc = pt_runs_begin(d->runs, piece);
    uint64_t first = 0;
    d->piece = piece;
    d->piece_from_ns = 0;
    trace_builder_times(d->b, &first, &d->piece_from_ns);
    d->rc = d->rc ? d->rc : rc;
    if (d->rc == 0 && d->pieces_done > 0 && open_part_due(d->c)) {
        struct trace_builder *b = trace_builder_fork(d->b);
        put_rests(d, b);
        open_part(d->c, b, NULL);
    }
}

static void on_events(void *arg, const struct flow_event *events, size_t n)
{
    struct decoder *d = arg;
    if (d->rc == 0)
        d->rc = pt_runs_events(d->runs, events, n);
}

/* Where instructions are the time: those of the pieces before, as for events. */
static uint64_t since(struct decoder *d)
{
    pid_t tid = d->piece->stream->tid;
    return pt_clock_has_time(&d->source.clock) || tid < 0 ? 0 : thread_of(d, tid)->insns;
}

/* What is lost before the stream has told any time, as at the beginning of most snapshots, stands where its time
 * begins, or at the latest time known: a gap that began with the clock would dwarf the trace. */
static struct pt_loss placed(const struct decoder *d, const struct pt_loss *loss)
{
    struct pt_loss l = *loss;
    if (l.from_time || !pt_clock_has_time(&d->source.clock))
        return l;
    if (!l.to_time)
        l.to_time = d->piece->time_ns;
    l.from_time = l.to_time = l.to_time ? l.to_time : d->piece_from_ns;
    return l;
}

static void on_loss(void *arg, const struct pt_loss *told)
{
    struct decoder *d = arg;
    struct pt_loss here = placed(d, told);
    const struct pt_loss *loss = &here;
    pid_t tid = pt_runs_thread(d->runs, loss->from_time);
    uint64_t before = since(d);
    char *detail = open_losses_add(&d->losses, d->piece, told);
    struct gap g = {.tid = tid > 0 ? tid : 0,
                    .start_ns = before + loss->from_time,
                    .end_ns = before + loss->to_time,
                    .bytes = loss->bytes,
                    .cause = loss->cause,
                    .detail = detail,
                    .end_byte = loss->first_byte + loss->bytes};
    trace_builder_gap(d->b, &g);
    free(detail);
}

static void on_mark(void *arg, enum mark_kind kind, uint64_t time, uint64_t value)
{
    struct decoder *d = arg;
    pid_t tid = pt_runs_thread(d->runs, time);
    if (kind == MARK_FREQUENCY) { /* told at every PSB: only a change is of interest */
        uint64_t before = d->frequency;
        d->frequency = value;
        if (!before || before == value)
            return;
    }
    char *detail = kind == MARK_FREQUENCY
                       ? xasprintf("%llu00 MHz", (unsigned long long)value)
                       : xasprintf("0x%llx", (unsigned long long)value);
    struct mark m = {since(d) + time, tid > 0 ? tid : 0, kind, detail};
    trace_builder_mark(d->b, &m);
    free(detail);
}

static void on_end(void *arg, uint64_t insns, uint64_t bytes)
{
    struct decoder *d = arg;
    d->c->decoded_bytes += bytes;
    if (d->piece->stream->tid >= 0)
        thread_of(d, d->piece->stream->tid)->insns += insns;
    d->bytes_done += d->piece->stop - d->piece->from;
    d->pieces_done = (size_t)(d->piece - d->pieces.data) + 1;
    d->c->spans = trace_builder_spans(d->b);
    open_progress(d->c, "decoding", d->bytes_done, pt_streams_bytes(d->source.streams, NULL));
}

static int decode(struct decoder *d, struct err *err)
{
    struct pt_decode_options o = {.threads = d->c->options->threads, .libipt = d->c->options->libipt};
    struct pt_decode_sink sink = {.begin = on_begin,
                                  .events = on_events,
                                  .loss = on_loss,
                                  .mark = on_mark,
                                  .end = on_end,
                                  .arg = d};
    int rc = pt_pieces_cut(&d->pieces, d->source.streams, &d->source.clock, o.libipt ? SIZE_MAX : PT_PIECE_BYTES,
                           pt_streams_per_cpu(d->source.streams));
    if (rc < 0)
        rc = err_set(err, rc, "not enough memory for this trace");
    if ((o.threads ? o.threads : cpus_online()) > 1 && !d->c->flow)
        trace_builder_ahead(d->b);
    d->runs = pt_runs_new(&d->source, on_run, d);
    if (rc == 0)
        rc = pt_decode_run(&d->source, &d->pieces, &o, &sink, err);
    if (rc == 0 && d->rc == 0)
        d->rc = pt_runs_finish(d->runs);
    if (rc == 0 && d->rc < 0)
        rc = err_set(err, d->rc, "not enough memory for this trace: choose a smaller one");
    if (rc == 0 && d->pieces_done < d->pieces.len && trace_builder_spans(d->b) == 0)
        return err_set(err, MTUI_E_CANCEL, "cancelled");
    if (rc == 0 && d->pieces_done < d->pieces.len)
        open_note_stopped(d->c, put_rests(d, d->b), pt_streams_bytes(d->source.streams, NULL));
    return rc;
}

/* What the kernel could not store, or says so of. */
static void add_holes(struct decoder *d)
{
    for (size_t i = 0; i < d->source.holes.len; i++) {
        const struct pt_hole *h = &d->source.holes.data[i];
        const char *why = h->flags & PERF_AUX_FLAG_TRUNCATED ? "the trace buffer was full, and tracing stopped until "
                                                               "it was emptied"
                          : h->flags & PERF_AUX_FLAG_PARTIAL ? "the trace has holes here: the processor's tracing "
                                                               "was in other hands (a hypervisor's)"
                                                             : "a snapshot fell into another one";
        struct gap g = {.tid = h->tid > 0 ? h->tid : 0,
                        .start_ns = h->time_ns,
                        .end_ns = h->time_ns,
                        .cause = GAP_LOST,
                        .detail = why};
        if (pt_clock_has_time(&d->source.clock))
            trace_builder_gap(d->b, &g);
    }
}

static void note_unknown(struct decoder *d)
{
    char n[FMT_MAX];
    if (pt_runs_unknown(d->runs))
        open_note(d->c, "%s not shown: it is not known which thread ran then",
                  fmt_counted(n, pt_runs_unknown(d->runs), "call or return is", "calls, returns are"));
}

static bool cancelled(const void *context)
{
    return open_cancelled(context);
}

static bool enough(const void *context)
{
    return open_enough(context);
}

struct pt_input open_pt_input(const struct open_context *c)
{
    return (struct pt_input){.functions = c->functions,
                             .maps = c->maps,
                             .symfs = c->options->symfs,
                             .seams = c->seams,
                             .snapshot = c->input,
                             .cancelled = cancelled,
                             .enough = enough,
                             .arg = c};
}

int open_pt(struct open_context *c, struct perf_file *f, struct trace_builder *b, struct err *err)
{
    struct decoder d = {.c = c, .b = b, .losses = {.c = c, .source = &d.source}};
    struct pt_input input = open_pt_input(c);
    int rc = pt_source_open(&d.source, &input, f, err);
    if (rc == 0 && !pt_clock_has_time(&d.source.clock)) {
        uint64_t first = 0;
        trace_builder_times(b, &first, &d.first_insn);
    }
    if (rc == 0)
        rc = decode(&d, err);
    if (rc == 0) {
        uint64_t twice;
        c->trace_bytes += pt_streams_bytes(d.source.streams, &twice);
        c->repeated_bytes += twice;
        add_holes(&d);
        open_losses_note(&d.losses);
        note_unknown(&d);
        open_add_modules(c, d.source.symbols);
    }
    for (size_t i = 0; i < d.threads.len; i++) {
        pt_stack_reset(d.threads.data[i].stack, SPAN_INFERRED_END); /* another snapshot may follow */
        pt_stack_free(d.threads.data[i].stack);
        free(d.threads.data[i].landing);
    }
    open_losses_free(&d.losses);
    pt_pieces_free(&d.pieces);
    vec_free(&d.threads);
    vec_free(&d.shifted);
    vec_free(&d.within);
    vec_free(&d.early);
    pt_runs_free(d.runs);
    code_view_free(d.code);
    pt_source_close(&d.source);
    return rc;
}
