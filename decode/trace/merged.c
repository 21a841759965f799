#include "decode/trace/merged.h"

#include <stdlib.h>

#include "core/base/alloc.h"

struct merged {
    struct call_tree *tree;
    struct trace *trace;
    uint64_t *total_ns; /* per stack */
    stack_id *at;       /* the stacks of row 0, then row 1, … each as in the trace */
    size_t *row_first;  /* per depth */
};

/* Stacks on their way to the picture. */
struct layout {
    const struct stack_tree *stacks;
    const struct call_tree *tree;
    const uint64_t *total_ns;
    stack_id *order;   /* by caller, the widest first */
    size_t *first;     /* per stack + 1: where its callees begin in order; [0] the outermost */
    size_t n;
};

static size_t family(stack_id caller)
{
    return caller == STACK_EMPTY ? 0 : (size_t)caller + 1;
}

static int by_caller_and_width(const void *a, const void *b, void *arg)
{
    const struct layout *l = arg;
    stack_id x = *(const stack_id *)a, y = *(const stack_id *)b;
    struct stack_node nx = stack_tree_node(l->stacks, x), ny = stack_tree_node(l->stacks, y);
    if (nx.caller != ny.caller)
        return family(nx.caller) < family(ny.caller) ? -1 : 1;
    if (l->total_ns[x] != l->total_ns[y])
        return l->total_ns[x] > l->total_ns[y] ? -1 : 1;
    uint64_t cx = call_tree_node(l->tree, x)->calls, cy = call_tree_node(l->tree, y)->calls;
    if (cx != cy)
        return cx > cy ? -1 : 1;
    return (nx.fn > ny.fn) - (nx.fn < ny.fn);
}

/* Times of a hostile recording may add up to more than there is room for. */
static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Callers have lower numbers: one pass from the end adds everything up. */
static uint64_t *add_up(const struct call_tree *tree)
{
    const struct stack_tree *stacks = call_tree_stacks(tree);
    size_t n = stack_tree_count(stacks);
    uint64_t *total = calloc(n + 1, sizeof *total);
    for (size_t i = n; total && i-- > 0;) {
        stack_id caller = stack_tree_node(stacks, (stack_id)i).caller;
        total[i] = sum(total[i], call_tree_node(tree, (stack_id)i)->self_ns);
        if (caller != STACK_EMPTY)
            total[caller] = sum(total[caller], total[i]);
    }
    return total;
}

static int layout_init(struct layout *l, const struct merged *m)
{
    *l = (struct layout){.tree = m->tree, .stacks = call_tree_stacks(m->tree), .total_ns = m->total_ns};
    l->n = stack_tree_count(l->stacks);
    l->order = malloc((l->n + 1) * sizeof *l->order);
    l->first = calloc(l->n + 2, sizeof *l->first);
    if (!l->order || !l->first)
        return MTUI_E_NOMEM;
    for (size_t i = 0; i < l->n; i++) {
        l->order[i] = (stack_id)i;
        l->first[family(stack_tree_node(l->stacks, (stack_id)i).caller) + 1]++;
    }
    for (size_t i = 0; i <= l->n; i++)
        l->first[i + 1] += l->first[i];
    if (l->n)
        qsort_r(l->order, l->n, sizeof *l->order, by_caller_and_width, l);
    return 0;
}

static void layout_free(struct layout *l)
{
    free(l->order);
    free(l->first);
}

/* How many stacks each depth has. */
static int count_rows(struct merged *m, const struct layout *l, size_t *depths)
{
    uint32_t *depth = malloc((l->n + 1) * sizeof *depth);
    size_t most = 0;
    if (!depth)
        return MTUI_E_NOMEM;
    for (size_t i = 0; i < l->n; i++) {
        stack_id caller = stack_tree_node(l->stacks, (stack_id)i).caller;
        depth[i] = caller == STACK_EMPTY ? 0 : depth[caller] + 1;
        most = depth[i] + 1u > most ? depth[i] + 1u : most;
    }
    m->row_first = calloc(most + 2, sizeof *m->row_first);
    for (size_t i = 0; m->row_first && i < l->n; i++)
        m->row_first[depth[i] + 1]++;
    for (size_t d = 0; m->row_first && d < most; d++)
        m->row_first[d + 1] += m->row_first[d];
    free(depth);
    *depths = most;
    return m->row_first ? 0 : MTUI_E_NOMEM;
}

/* A stack that is open in the picture. */
struct frame {
    stack_id id;
    size_t next; /* of order */
    uint64_t start_ns;
};

struct drawing {
    const struct layout *l;
    struct trace_builder *b;
    stack_id *at;
    size_t *place; /* per depth: where the next stack goes in at */
    struct frame *open;
    size_t depth;
    uint64_t now_ns;
};

static int open_frame(struct drawing *d, stack_id id)
{
    d->at[d->place[d->depth]++] = id;
    d->open[d->depth++] = (struct frame){id, d->l->first[family(id)], d->now_ns};
    return trace_builder_enter(d->b, 0, d->now_ns, stack_tree_node(d->l->stacks, id).fn,
                               call_tree_node(d->l->tree, id)->flags);
}

static int draw_tree(struct drawing *d, stack_id outermost, const atomic_bool *cancel)
{
    int rc = open_frame(d, outermost);
    for (uint64_t steps = 1; rc == 0 && d->depth; steps++) {
        struct frame *f = &d->open[d->depth - 1];
        if (f->next < d->l->first[family(f->id) + 1]) {
            rc = open_frame(d, d->l->order[f->next++]);
        } else {
            d->now_ns = sum(f->start_ns, d->l->total_ns[f->id]);
            trace_builder_leave(d->b, 0, d->now_ns, 0);
            d->depth--;
        }
        if ((steps & 0xffff) == 0 && cancel && atomic_load_explicit(cancel, memory_order_relaxed))
            rc = MTUI_E_CANCEL;
    }
    return rc;
}

static int draw(struct merged *m, struct trace_builder *b, const struct layout *l,
                const atomic_bool *cancel)
{
    size_t depths = 0;
    int rc = count_rows(m, l, &depths);
    if (rc < 0)
        return rc;
    m->at = malloc((l->n + 1) * sizeof *m->at);
    struct drawing d = {.l = l, .b = b, .at = m->at};
    d.place = malloc((depths + 1) * sizeof *d.place);
    d.open = malloc((depths + 1) * sizeof *d.open);
    if (!m->at || !d.place || !d.open)
        rc = MTUI_E_NOMEM;
    for (size_t i = 0; rc == 0 && i < depths; i++)
        d.place[i] = m->row_first[i];
    for (size_t k = l->first[0]; rc == 0 && k < l->first[1]; k++)
        rc = draw_tree(&d, l->order[k], cancel);
    free(d.place);
    free(d.open);
    return rc;
}

static struct trace_builder *new_builder(const struct trace *t, size_t stacks)
{
    struct trace_info info = *trace_info(t);
    info.first_ns = info.last_ns = 0;
    struct trace_builder *b = trace_builder_new(functions_share(trace_functions(t)));
    trace_builder_set_info(b, &info);
    if (stacks)
        trace_builder_thread(b, 0, 0);
    return b;
}

int merged_new(struct merged **out, const struct trace *t, const struct call_tree_options *options,
               struct err *err)
{
    struct merged *m = xcalloc(1, sizeof *m);
    struct layout l = {0};
    int rc = call_tree_new(&m->tree, t, options, err);
    if (rc < 0) {
        merged_free(m);
        return rc;
    }
    struct trace_builder *b = new_builder(t, stack_tree_count(call_tree_stacks(m->tree)));
    m->total_ns = add_up(m->tree);
    rc = m->total_ns ? layout_init(&l, m) : MTUI_E_NOMEM;
    if (rc == 0)
        rc = draw(m, b, &l, options->cancel);
    if (rc == 0)
        rc = trace_builder_finish(b, &m->trace, NULL);
    trace_builder_free(b);
    layout_free(&l);
    if (rc < 0) {
        merged_free(m);
        return rc == MTUI_E_CANCEL ? err_set(err, rc, "cancelled")
                                   : err_set(err, rc, "not enough memory for the merged flame graph");
    }
    *out = m;
    return 0;
}

void merged_free(struct merged *m)
{
    if (!m)
        return;
    trace_free(m->trace);
    call_tree_free(m->tree);
    free(m->total_ns);
    free(m->at);
    free(m->row_first);
    free(m);
}

const struct trace *merged_trace(const struct merged *m)
{
    return m->trace;
}

struct merged_node merged_node(const struct merged *m, size_t depth, size_t index)
{
    stack_id id = m->at[m->row_first[depth] + index];
    const struct call_node *n = call_tree_node(m->tree, id);
    return (struct merged_node){.calls = n->calls,
                                .total_ns = m->total_ns[id],
                                .self_ns = n->self_ns,
                                .longest = n->longest,
                                .thread = n->thread};
}
