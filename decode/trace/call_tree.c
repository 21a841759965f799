#include "decode/trace/call_tree.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "decode/trace/quiet.h"
#include "decode/trace/walk.h"

#define LOOK_EVERY 0x3fff /* events between two looks at cancel */

struct call_tree {
    struct stack_tree *stacks;
    VEC(struct call_node) nodes;
    VEC(stack_id) recent; /* per node: what it called last, STACK_EMPTY: nothing yet */
};

/* One thread on its way. */
struct merge {
    struct call_tree *tree;
    const struct call_tree_options *o;
    size_t thread;
    uint64_t from_ns, to_ns, at_ns; /* at_ns: counted up to here */
    struct quiet quiet;
    VEC(stack_id) open;
};

static stack_id innermost(const struct merge *m)
{
    return m->open.len ? m->open.data[m->open.len - 1] : STACK_EMPTY;
}

static void pass_time(struct merge *m, uint64_t now)
{
    now = now > m->to_ns ? m->to_ns : now;
    if (now <= m->at_ns)
        return;
    if (m->open.len)
        m->tree->nodes.data[innermost(m)].self_ns +=
            now - m->at_ns - (m->quiet.n ? quiet_between(&m->quiet, m->at_ns, now) : 0);
    m->at_ns = now;
}

static uint64_t length_of(const struct span *s)
{
    return s->end_ns - s->start_ns;
}

/* Most calls are of what was called there the last time. */
static int find_stack(struct call_tree *tree, stack_id caller, fn_id fn, stack_id *id)
{
    if (caller != STACK_EMPTY) {
        *id = tree->recent.data[caller];
        if (*id != STACK_EMPTY && stack_tree_node(tree->stacks, *id).fn == fn)
            return 0;
    }
    if (stack_tree_child(tree->stacks, caller, fn, id) < 0)
        return MTUI_E_NOMEM;
    if (*id == tree->nodes.len && (!vec_try_push(&tree->nodes, ((struct call_node){0})) ||
                                   !vec_try_push(&tree->recent, STACK_EMPTY)))
        return MTUI_E_NOMEM;
    if (caller != STACK_EMPTY)
        tree->recent.data[caller] = *id;
    return 0;
}

static int enter(struct merge *m, const struct span *s)
{
    struct call_tree *tree = m->tree;
    stack_id caller = innermost(m), id = caller;
    bool folded = m->o->fold && caller != STACK_EMPTY &&
                  stack_tree_node(tree->stacks, caller).fn == s->fn;
    if (!folded) {
        if (find_stack(tree, caller, s->fn, &id) < 0)
            return MTUI_E_NOMEM;
        struct call_node *n = &tree->nodes.data[id];
        n->calls++;
        n->flags |= s->flags & (SPAN_SAMPLED | SPAN_OFF_CPU);
        if (!n->longest || length_of(s) > length_of(n->longest)) {
            n->longest = s;
            n->thread = m->thread;
        }
    }
    return vec_try_push(&m->open, id) ? 0 : MTUI_E_NOMEM;
}

static int merge_events(struct merge *m, struct walk *w)
{
    struct walk_event ev;
    uint64_t events = 0, spans = 0;
    int rc = 0;
    while (rc == 0 && walk_next(w, &ev)) {
        pass_time(m, ev.enter ? ev.span->start_ns : ev.span->end_ns);
        if (!ev.enter) {
            m->open.len--;
        } else {
            rc = enter(m, ev.span);
            spans++;
        }
        if ((++events & LOOK_EVERY) == 0) {
            if (m->o->cancel && atomic_load_explicit(m->o->cancel, memory_order_relaxed))
                rc = MTUI_E_CANCEL;
            if (m->o->done)
                atomic_fetch_add_explicit(m->o->done, spans, memory_order_relaxed);
            spans = 0;
        }
    }
    return rc;
}

static int merge_thread(struct call_tree *tree, const struct trace *t,
                        const struct call_tree_options *o, size_t thread)
{
    struct walk w;
    struct merge m = {.tree = tree, .o = o, .thread = thread, .from_ns = o->from_ns, .to_ns = o->to_ns};
    if (o->from_ns == 0 && o->to_ns == 0)
        m.to_ns = UINT64_MAX;
    m.at_ns = m.from_ns;
    if (quiet_init(&m.quiet, t, thread) < 0)
        return MTUI_E_NOMEM;
    int rc = walk_init(&w, t, thread, m.from_ns, m.to_ns);
    if (rc == 0)
        rc = merge_events(&m, &w);
    walk_free(&w);
    vec_free(&m.open);
    quiet_free(&m.quiet);
    return rc;
}

int call_tree_new(struct call_tree **out, const struct trace *t, const struct call_tree_options *options,
                  struct err *err)
{
    struct call_tree *tree = xcalloc(1, sizeof *tree);
    int rc = 0;
    tree->stacks = stack_tree_new();
    for (size_t i = 0; rc == 0 && i < trace_thread_count(t); i++)
        if (options->thread < 0 || (size_t)options->thread == i)
            rc = merge_thread(tree, t, options, i);
    if (rc < 0) {
        call_tree_free(tree);
        return rc == MTUI_E_CANCEL
                   ? err_set(err, rc, "cancelled")
                   : err_set(err, rc, "not enough memory for the stacks of this recording");
    }
    *out = tree;
    return 0;
}

void call_tree_free(struct call_tree *tree)
{
    if (!tree)
        return;
    stack_tree_free(tree->stacks);
    vec_free(&tree->nodes);
    vec_free(&tree->recent);
    free(tree);
}

const struct stack_tree *call_tree_stacks(const struct call_tree *tree)
{
    return tree->stacks;
}

const struct call_node *call_tree_node(const struct call_tree *tree, stack_id id)
{
    return &tree->nodes.data[id];
}
