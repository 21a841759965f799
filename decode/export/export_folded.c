/* Folded stacks: one line a stack with its weight, as flame graph tools read them. */
#include <stdlib.h>
#include <string.h>

#include "core/base/vec.h"
#include "decode/trace/call_tree.h"
#include "core/base/utf8.h"
#include "decode/export/export_priv.h"

struct folded {
    const struct export_job *j;
    const struct stack_tree *stacks;
    VEC(uint64_t) weights; /* per node */
};

struct line {
    char *stack;
    uint64_t weight;
};

static int add_weight(struct folded *f, stack_id id, uint64_t weight)
{
    while (f->weights.len <= id)
        if (!vec_try_push(&f->weights, (uint64_t)0))
            return MTUI_E_NOMEM;
    f->weights.data[id] += weight;
    return 0;
}

/* Sampled: each sample weighs its period. Samples without frames have no stack to name. */
static int weigh_samples(struct folded *f)
{
    const struct sample_event *e = sample_log_events(f->j->log);
    for (size_t i = 0; i < sample_log_count(f->j->log); i++) {
        if (e[i].kind != SAMPLE_STACK || e[i].stack == STACK_EMPTY)
            continue;
        if (f->j->tid && (e[i].thread == SAMPLE_NO_THREAD ||
                          sample_log_thread_at(f->j->log, e[i].thread)->tid != f->j->tid))
            continue;
        bool limited = f->j->from_ns > 0 || f->j->to_ns < UINT64_MAX;
        if (limited && (e[i].time_ns == SAMPLE_NO_TIME || e[i].time_ns < f->j->from_ns ||
                        e[i].time_ns >= f->j->to_ns))
            continue;
        if (add_weight(f, e[i].stack, e[i].period) < 0)
            return MTUI_E_NOMEM;
    }
    return 0;
}

/* Exact: the self time of each stack of the merged call tree. */
static int weigh_calls(struct folded *f, const struct call_tree *tree)
{
    int rc = 0;
    f->stacks = call_tree_stacks(tree);
    for (size_t id = 0; rc == 0 && id < stack_tree_count(f->stacks); id++)
        rc = add_weight(f, (stack_id)id, call_tree_node(tree, (stack_id)id)->self_ns);
    return rc;
}

/* ---- Lines ---- */

/* A frame's name; ";" would end it. */
static bool append_name(struct export_out *o, const char *name, char **text, size_t *cap, size_t *len)
{
    size_t n = 0;
    const char *s = export_out_text(o, utf8_escape, name, &n);
    while (*cap - *len < 4 * n + 2)
        if (!vec_try_grow_((void **)text, cap, 1))
            return false;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == ';') {
            memcpy(*text + *len, "\\x3b", 4);
            *len += 4;
        } else {
            (*text)[(*len)++] = s[i];
        }
    }
    (*text)[*len] = '\0';
    return true;
}

/* The line's stack, outermost first; NULL: no memory. */
static char *stack_text(const struct folded *f, stack_id id)
{
    VEC(fn_id) fns = {0};
    char *text = NULL;
    size_t cap = 0, len = 0;
    bool ok = true;
    for (stack_id at = id; ok && at != STACK_EMPTY; at = stack_tree_node(f->stacks, at).caller)
        ok = vec_try_push(&fns, stack_tree_node(f->stacks, at).fn);
    for (size_t i = fns.len; ok && i-- > 0;) {
        ok = append_name(f->j->out, functions_get(trace_functions(f->j->trace), fns.data[i])->name,
                         &text, &cap, &len);
        if (ok && i)
            text[len++] = ';';
    }
    vec_free(&fns);
    if (ok)
        return text;
    free(text);
    return NULL;
}

static int by_stack(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    return strcmp(x->stack, y->stack);
}

/* Functions of one name in two modules make the same line: their weights are added up. */
static int write_lines(const struct folded *f)
{
    VEC(struct line) lines = {0};
    int rc = 0;
    for (size_t id = 0; rc == 0 && id < f->weights.len; id++) {
        struct line l = {NULL, f->weights.data[id]};
        if (l.weight == 0)
            continue;
        l.stack = stack_text(f, (stack_id)id);
        if (!l.stack || !vec_try_push(&lines, l)) {
            free(l.stack);
            rc = MTUI_E_NOMEM;
        }
    }
    if (lines.len)
        qsort(lines.data, lines.len, sizeof *lines.data, by_stack);
    for (size_t i = 0; i < lines.len; i++) {
        uint64_t weight = lines.data[i].weight;
        for (; i + 1 < lines.len && strcmp(lines.data[i].stack, lines.data[i + 1].stack) == 0; i++) {
            weight += lines.data[i + 1].weight;
            free(lines.data[i].stack);
        }
        export_out_str(f->j->out, lines.data[i].stack);
        export_out_char(f->j->out, ' ');
        export_out_u64(f->j->out, weight);
        export_out_char(f->j->out, '\n');
        free(lines.data[i].stack);
    }
    vec_free(&lines);
    return rc;
}

int export_folded(const struct export_job *j, struct err *err)
{
    struct folded f = {.j = j};
    struct call_tree *tree = NULL;
    const struct call_tree_options options = {
        .from_ns = j->from_ns, .to_ns = j->to_ns, .thread = j->thread};
    int rc = 0;
    if (j->log && trace_info(j->trace)->sampled) { /* samples beside a hardware trace are not it */
        f.stacks = sample_log_stacks(j->log);
        rc = weigh_samples(&f);
    } else {
        rc = call_tree_new(&tree, j->trace, &options, err);
        if (rc == 0)
            rc = weigh_calls(&f, tree);
    }
    if (rc == 0)
        rc = write_lines(&f);
    call_tree_free(tree);
    vec_free(&f.weights);
    return rc ? err_set(err, rc, "not enough memory for the stacks of this recording") : 0;
}
