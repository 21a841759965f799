/* Intel PT as a list of branches, in the order of time over all streams. Nothing is kept but what lies
 * between the pieces that are being decoded. */
#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "decode/open/open_losses.h"
#include "decode/open/open_priv.h"
#include "decode/pt/pt_decode.h"

struct queue { /* the branches of one stream that were not handed on yet */
    const struct pt_stream *stream;
    pid_t tid; /* running at its end */
    VEC(struct open_branch) items;
    size_t first;
    uint64_t last_ns; /* of the last one that came */
};

struct lister {
    struct open_context *c;
    struct pt_source source;
    struct open_losses losses;
    const struct pt_piece *piece;
    VEC(struct queue) queues;
    size_t queue;
    uint64_t bytes_done, raised;
    bool no_memory;
};

static void hand_on(struct lister *l, uint64_t before_ns)
{
    for (;;) {
        struct queue *next = NULL;
        for (size_t i = 0; i < l->queues.len; i++) {
            struct queue *q = &l->queues.data[i];
            if (q->first < q->items.len &&
                (!next || q->items.data[q->first].time_ns < next->items.data[next->first].time_ns))
                next = q;
        }
        if (!next || next->items.data[next->first].time_ns >= before_ns)
            return;
        l->c->options->branch(l->c->options->branch_arg, &next->items.data[next->first]);
        if (++next->first == next->items.len)
            next->first = next->items.len = 0;
    }
}

static void on_begin(void *arg, const struct pt_piece *piece)
{
    struct lister *l = arg;
    l->piece = piece;
    hand_on(l, piece->time_ns);
    for (l->queue = 0; l->queue < l->queues.len; l->queue++)
        if (l->queues.data[l->queue].stream == piece->stream)
            return;
    vec_push(&l->queues, ((struct queue){.stream = piece->stream, .tid = piece->stream->tid}));
}

static void on_branches(void *arg, const struct pt_branch *branches, size_t n)
{
    struct lister *l = arg;
    struct queue *q = &l->queues.data[l->queue];
    for (size_t i = 0; i < n; i++) {
        const struct pt_branch *b = &branches[i];
        if (b->kind == PT_BRANCH_BEGIN || q->tid < 0)
            q->tid = pt_source_thread(&l->source, q->stream, b->time);
        struct open_branch out = {.time_ns = b->time,
                                  .tid = q->tid,
                                  .cpu = q->stream->cpu,
                                  .branch = *b};
        if (b->time < q->stream->limits.from_ns || b->time >= q->stream->limits.to_ns)
            continue; /* another snapshot tells it */
        if (out.time_ns < q->last_ns) {
            out.time_ns = q->last_ns;
            l->raised++;
        }
        q->last_ns = out.time_ns;
        if (pt_streams_count(l->source.streams) == 1)
            l->c->options->branch(l->c->options->branch_arg, &out);
        else if (!vec_try_push(&q->items, out))
            l->no_memory = true;
        if (b->kind == PT_BRANCH_ERROR) /* whoever runs when the flow is found again */
            q->tid = q->stream->tid;
    }
}

static void on_loss(void *arg, const struct pt_loss *loss)
{
    struct lister *l = arg;
    free(open_losses_add(&l->losses, l->piece, loss));
}

static void on_mark(void *arg, enum mark_kind kind, uint64_t time, uint64_t value)
{
    (void)arg;
    (void)kind;
    (void)time;
    (void)value;
}

static void on_end(void *arg, uint64_t insns, uint64_t bytes)
{
    struct lister *l = arg;
    (void)insns;
    l->c->decoded_bytes += bytes;
    l->bytes_done += l->piece->stop - l->piece->from;
    open_progress(l->c, "decoding", l->bytes_done, pt_streams_bytes(l->source.streams, NULL));
}

static int list(struct lister *l, struct err *err)
{
    struct pt_pieces pieces = {0};
    struct pt_decode_options o = {.threads = l->c->options->threads, .libipt = l->c->options->libipt};
    struct pt_decode_sink sink = {.begin = on_begin,
                                  .branches = on_branches,
                                  .loss = on_loss,
                                  .mark = on_mark,
                                  .end = on_end,
                                  .arg = l};
    int rc = pt_pieces_cut(&pieces, l->source.streams, &l->source.clock,
                           o.libipt ? SIZE_MAX : PT_PIECE_BYTES, pt_streams_count(l->source.streams) > 1);
    if (rc < 0)
        rc = err_set(err, rc, "not enough memory for this trace");
    else
        rc = pt_decode_run(&l->source, &pieces, &o, &sink, err);
    if (rc == 0)
        hand_on(l, UINT64_MAX);
    if (rc == 0 && l->no_memory)
        rc = err_set(err, MTUI_E_NOMEM, "not enough memory for this trace");
    pt_pieces_free(&pieces);
    return rc;
}

int open_branches(struct open_context *c, struct perf_file *f, struct err *err)
{
    struct lister l = {.c = c, .losses = {.c = c, .source = &l.source}};
    struct pt_input input = open_pt_input(c);
    int rc = pt_source_open(&l.source, &input, f, err);
    if (rc == 0)
        rc = list(&l, err);
    if (rc == 0) {
        uint64_t twice;
        c->trace_bytes += pt_streams_bytes(l.source.streams, &twice);
        c->repeated_bytes += twice;
        open_losses_note(&l.losses);
        open_note_raised(c, l.raised);
    }
    open_losses_free(&l.losses);
    for (size_t i = 0; i < l.queues.len; i++)
        vec_free(&l.queues.data[i].items);
    vec_free(&l.queues);
    pt_source_close(&l.source);
    return rc;
}
