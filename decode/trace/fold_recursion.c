#include "decode/trace/fold_recursion.h"

#include <stdlib.h>

#include "core/base/alloc.h"

#define LOOK_EVERY 0x3fff /* spans between two looks at cancel */

/* A call on the way down: its span, and whether it was left out. */
struct frame {
    const struct span *span;
    bool folded;
};

struct walk {
    const struct trace *t;
    const struct fold_options *o;
    struct trace_builder *b;
    size_t from, to;    /* the thread in both */
    size_t *next;       /* per depth: the next span of the row not yet entered */
    struct frame *open; /* per depth */
    size_t depths, depth;
    uint64_t seen;
};

static void leave(struct walk *w)
{
    const struct frame *f = &w->open[--w->depth];
    if (!f->folded)
        trace_builder_leave(w->b, w->to, f->span->end_ns,
                            f->span->flags & (SPAN_GAP_END | SPAN_INFERRED_END));
}

static int enter(struct walk *w, const struct span *s)
{
    bool folded = w->depth > 0 && w->open[w->depth - 1].span->fn == s->fn;
    w->open[w->depth++] = (struct frame){s, folded};
    return folded ? 0
                  : trace_builder_enter(w->b, w->to, s->start_ns, s->fn,
                                        s->flags & ~(unsigned)(SPAN_GAP_END | SPAN_INFERRED_END));
}

/* Now and then: says how far it is, and whether to go on. */
static int look(struct walk *w)
{
    if ((++w->seen & LOOK_EVERY) != 0)
        return 0;
    if (w->o->done)
        atomic_fetch_add_explicit(w->o->done, LOOK_EVERY + 1, memory_order_relaxed);
    bool stop = w->o->cancel && atomic_load_explicit(w->o->cancel, memory_order_relaxed);
    return stop ? MTUI_E_CANCEL : 0;
}

/* Depth first: at each level the next span of the row below, as long as it lies in the open one. */
static int walk_thread(struct walk *w)
{
    for (;;) {
        size_t n = 0;
        const struct span *row =
            w->depth < w->depths ? trace_row(w->t, w->from, w->depth, &n) : NULL;
        const struct span *s = w->depth < w->depths && w->next[w->depth] < n
                                   ? &row[w->next[w->depth]]
                                   : NULL;
        const struct span *open = w->depth ? w->open[w->depth - 1].span : NULL;
        if (s && (!open || (s->start_ns >= open->start_ns && s->end_ns <= open->end_ns))) {
            w->next[w->depth]++;
            int rc = enter(w, s);
            if (rc == 0)
                rc = look(w);
            if (rc)
                return rc;
        } else if (w->depth > 0) {
            leave(w);
        } else {
            return 0;
        }
    }
}

static int copy_thread(const struct trace *t, const struct fold_options *o, struct trace_builder *b, size_t i)
{
    const struct trace_thread *th = trace_thread(t, i);
    struct walk w = {.t = t, .o = o, .b = b, .from = i, .depths = th->depths};
    w.to = trace_builder_thread(b, th->pid, th->tid);
    trace_builder_comm(b, w.to, th->comm);
    for (uint64_t k = 0; k < th->samples; k++)
        trace_builder_count_sample(b, w.to, th->last_cpu);
    trace_builder_cpu(b, w.to, th->last_cpu);
    w.next = xcalloc(th->depths + 1, sizeof *w.next);
    w.open = xcalloc(th->depths + 1, sizeof *w.open);
    int rc = walk_thread(&w);
    free(w.next);
    free(w.open);
    return rc;
}

int fold_recursion(const struct trace *t, const struct fold_options *options, struct trace **out,
                   struct err *err)
{
    const struct fold_options none = {0}, *o = options ? options : &none;
    struct trace_builder *b = trace_builder_new(functions_share(trace_functions(t)));
    trace_builder_set_info(b, trace_info(t));
    trace_builder_set_cancel(b, o->cancel);
    int rc = 0;
    for (size_t i = 0; i < trace_thread_count(t) && rc == 0; i++)
        rc = copy_thread(t, o, b, i);
    size_t n;
    const struct gap *gaps = trace_gaps(t, &n);
    for (size_t i = 0; i < n; i++)
        trace_builder_gap(b, &gaps[i]);
    const struct mark *marks = trace_marks(t, &n);
    for (size_t i = 0; i < n; i++)
        trace_builder_mark(b, &marks[i]);
    if (rc == 0)
        rc = trace_builder_finish(b, out, err);
    else
        err_set(err, rc, rc == MTUI_E_CANCEL ? "cancelled" : "not enough memory to fold recursion");
    trace_builder_free(b);
    return rc;
}
