#include "decode/pt/pt_decode.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/cpus.h"
#include "core/base/vec.h"
#include "decode/pt/pt_libipt.h"

struct marked {
    enum mark_kind kind;
    uint64_t time, value;
};

/* What one piece gave. Buffers are used again. */
struct output {
    VEC(struct flow_event) events;
    VEC(struct pt_branch) branches;
    VEC(struct pt_loss) losses;
    VEC(struct marked) marks;
    uint64_t insns, bytes;
    bool ready, no_memory;
};

struct run {
    const struct pt_source *source;
    const struct pt_pieces *pieces;
    const struct pt_decode_options *options;
    const struct pt_decode_sink *sink;
    /* Several threads: pieces [next_out, next_in) are being worked on, piece i in slot i modulo n_slots. */
    pthread_mutex_t lock;
    pthread_cond_t room; /* a slot is free */
    size_t next_in, next_out, n_slots;
    struct output *slots;
    bool stop, delivering;
    int rc; /* MTUI_E_CANCEL, MTUI_E_NOMEM */
};

/* So many pieces ahead of the one that is being handed over. */
#define SLOTS_A_THREAD 4

/* One worker's decoder, and where it writes to. */
struct worker {
    struct run *run;
    struct code_view *view;
    struct pt_nodes *nodes;
    struct pt_walk *walk;
    struct pt_libipt *libipt; /* instead of walk */
    const struct pt_piece *piece;
    struct output *out; /* NULL: straight into the sink */
};

/* ---- what the decoder finds ---- */

static void on_events(void *arg, const struct flow_event *events, size_t n)
{
    struct worker *w = arg;
    struct output *o = w->out;
    if (!o) {
        w->run->sink->events(w->run->sink->arg, events, n);
        return;
    }
    if (!vec_try_append(&o->events, events, n))
        o->no_memory = true;
}

static void on_branch(void *arg, const struct pt_branch *b)
{
    struct worker *w = arg;
    if (!w->out)
        w->run->sink->branches(w->run->sink->arg, b, 1);
    else if (!vec_try_push(&w->out->branches, *b))
        w->out->no_memory = true;
}

static void on_loss(void *arg, const struct pt_loss *loss)
{
    struct worker *w = arg;
    if (!w->out)
        w->run->sink->loss(w->run->sink->arg, loss);
    else if (!vec_try_push(&w->out->losses, *loss))
        w->out->no_memory = true;
}

static void on_mark(void *arg, enum mark_kind kind, uint64_t time, uint64_t value)
{
    struct worker *w = arg;
    struct marked m = {kind, time, value};
    if (!w->out)
        w->run->sink->mark(w->run->sink->arg, kind, time, value);
    else if (!vec_try_push(&w->out->marks, m))
        w->out->no_memory = true;
}

static bool on_code(void *arg, uint64_t time)
{
    struct worker *w = arg;
    pid_t tid = pt_source_thread(w->run->source, w->piece->stream, time);
    return code_view_at(w->view, tid < 0 ? -1 : pt_source_process(w->run->source, tid), time);
}

static bool enough(const struct run *run)
{
    return !run->options->libipt && pt_source_enough(run->source);
}

static bool cancelled(const struct run *run)
{
    return pt_source_cancelled(run->source) ||
           (run->options->libipt && pt_source_enough(run->source));
}

static bool on_cancel(void *arg)
{
    return cancelled(((struct worker *)arg)->run);
}

/* ---- one worker ---- */

static void worker_begin(struct worker *w, struct run *run)
{
    *w = (struct worker){.run = run, .view = code_view_new(run->source->image)};
    struct pt_code code = code_view_code(w->view);
    w->nodes = pt_nodes_new(&code);
    struct pt_walk_sinks sinks = {.events = run->sink->events ? on_events : NULL,
                                  .branch = run->sink->branches ? on_branch : NULL,
                                  .loss = on_loss,
                                  .mark = on_mark,
                                  .code_changed = on_code,
                                  .cancelled = on_cancel,
                                  .arg = w};
    if (run->options->libipt)
        w->libipt = pt_libipt_new(w->view, w->nodes, &run->source->clock, &sinks);
    else
        w->walk = pt_walk_new(w->nodes, &run->source->clock, &sinks);
}

static void worker_end(struct worker *w)
{
    pt_walk_free(w->walk);
    pt_libipt_free(w->libipt);
    pt_nodes_free(w->nodes);
    code_view_free(w->view);
}

/* What a piece came to. */
struct sum {
    uint64_t insns, bytes;
    bool no_memory;
};

static struct sum decode(struct worker *w, const struct pt_piece *p)
{
    const struct pt_stream *s = p->stream;
    w->piece = p;
    if (w->libipt) {
        int rc = pt_libipt_run(w->libipt, s->data + p->from, p->stop - p->from, &s->stamps, p->from);
        return (struct sum){pt_libipt_insns(w->libipt), pt_libipt_bytes(w->libipt), rc < 0};
    }
    pt_walk_stamps(w->walk, &s->stamps);
    pt_walk_run(w->walk, s->data, p->from, p->stop, s->len, p->inner);
    return (struct sum){pt_walk_insns(w->walk), pt_walk_bytes(w->walk), false};
}

static int failed(int rc, struct err *err)
{
    return rc == MTUI_E_CANCEL ? err_set(err, rc, "cancelled")
                               : err_set(err, rc, "not enough memory to decode this trace");
}

static int run_alone(struct run *run, struct err *err)
{
    const struct pt_decode_sink *k = run->sink;
    struct worker w;
    bool no_memory = false;
    worker_begin(&w, run);
    for (size_t i = 0; i < run->pieces->len && !cancelled(run) && !enough(run); i++) {
        k->begin(k->arg, &run->pieces->data[i]);
        struct sum sum = decode(&w, &run->pieces->data[i]);
        k->end(k->arg, sum.insns, sum.bytes);
        no_memory |= sum.no_memory;
    }
    worker_end(&w);
    if (no_memory)
        return failed(MTUI_E_NOMEM, err);
    return cancelled(run) ? failed(MTUI_E_CANCEL, err) : 0;
}

/* ---- several ---- */

static void hand_over(const struct run *run, const struct pt_piece *p, const struct output *o)
{
    const struct pt_decode_sink *k = run->sink;
    k->begin(k->arg, p);
    if (o->events.len)
        k->events(k->arg, o->events.data, o->events.len);
    if (o->branches.len)
        k->branches(k->arg, o->branches.data, o->branches.len);
    for (size_t i = 0; i < o->losses.len; i++)
        k->loss(k->arg, &o->losses.data[i]);
    for (size_t i = 0; i < o->marks.len; i++)
        k->mark(k->arg, o->marks.data[i].kind, o->marks.data[i].time, o->marks.data[i].value);
    k->end(k->arg, o->insns, o->bytes);
}

/* Whether this piece was handed over and the next one is wanted. */
static bool deliver(struct run *run, const struct pt_piece *p, const struct output *o)
{
    if (cancelled(run))
        run->rc = MTUI_E_CANCEL;
    else if (o->no_memory)
        run->rc = MTUI_E_NOMEM;
    else if (!enough(run))
        hand_over(run, p, o);
    return run->rc == 0 && !enough(run);
}

/* Whichever thread has decoded the piece that is next in order hands it over, and those behind it that are
 * ready: no thread of its own sleeps until there is something to do, and a piece's events mostly stay in
 * the cache of the CPU that found them. The lock is held, but not meanwhile. */
static void deliver_ready(struct run *run)
{
    if (run->delivering)
        return; /* whoever does will see this one as well */
    run->delivering = true;
    while (!run->stop && run->slots[run->next_out % run->n_slots].ready) {
        struct output *o = &run->slots[run->next_out % run->n_slots];
        pthread_mutex_unlock(&run->lock);
        bool on = deliver(run, &run->pieces->data[run->next_out], o);
        pthread_mutex_lock(&run->lock);
        o->ready = false;
        run->next_out++;
        run->stop = !on;
        pthread_cond_broadcast(&run->room);
    }
    run->delivering = false;
}

static void *work(void *arg)
{
    struct run *run = arg;
    struct worker w;
    worker_begin(&w, run);
    pthread_mutex_lock(&run->lock);
    while (!run->stop && run->next_in < run->pieces->len) {
        if (run->next_in - run->next_out == run->n_slots) { /* memory is bounded by the slots */
            pthread_cond_wait(&run->room, &run->lock);
            continue;
        }
        size_t i = run->next_in++;
        struct output *o = w.out = &run->slots[i % run->n_slots];
        pthread_mutex_unlock(&run->lock);
        o->events.len = o->branches.len = o->losses.len = o->marks.len = 0;
        struct sum sum = decode(&w, &run->pieces->data[i]);
        o->insns = sum.insns;
        o->bytes = sum.bytes;
        o->no_memory |= sum.no_memory;
        pthread_mutex_lock(&run->lock);
        o->ready = true;
        deliver_ready(run);
    }
    pthread_mutex_unlock(&run->lock);
    worker_end(&w);
    return NULL;
}

static int run_threads(struct run *run, unsigned threads, struct err *err)
{
    pthread_t *ids = xcalloc(threads, sizeof *ids);
    unsigned n = 0;
    run->n_slots = SLOTS_A_THREAD * (size_t)threads;
    run->slots = xcalloc(run->n_slots, sizeof *run->slots);
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->room, NULL);
    while (n < threads - 1 && pthread_create(&ids[n], NULL, work, run) == 0)
        n++;
    work(run);
    while (n > 0)
        pthread_join(ids[--n], NULL);
    pthread_cond_destroy(&run->room);
    pthread_mutex_destroy(&run->lock);
    for (size_t i = 0; i < run->n_slots; i++) {
        vec_free(&run->slots[i].events);
        vec_free(&run->slots[i].branches);
        vec_free(&run->slots[i].losses);
        vec_free(&run->slots[i].marks);
    }
    free(run->slots);
    free(ids);
    return run->rc == 0 ? 0 : failed(run->rc, err);
}

int pt_decode_run(const struct pt_source *s, const struct pt_pieces *pieces,
                  const struct pt_decode_options *options, const struct pt_decode_sink *sink,
                  struct err *err)
{
    struct run run = {.source = s, .pieces = pieces, .options = options, .sink = sink};
    unsigned threads = options->threads ? options->threads : cpus_online();
    if (threads > pieces->len)
        threads = (unsigned)pieces->len;
    return threads > 1 ? run_threads(&run, threads, err) : run_alone(&run, err);
}
