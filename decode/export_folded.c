/* Folded stacks: one line a stack with its weight, as flame graph tools read them. */
#include <stdlib.h>
#include <string.h>

#include "core/vec.h"
#include "decode/export_priv.h"
#include "decode/quiet.h"

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

/* Exact: the time between two events of a thread belongs to the stack that was open, less gaps. */
static int weigh_thread(struct folded *f, struct stack_tree *tree, size_t thread)
{
    struct walk w;
    struct walk_event ev;
    struct quiet quiet;
    VEC(stack_id) open = {0};
    uint64_t at = f->j->from_ns;
    int rc = walk_init(&w, f->j->trace, thread, f->j->from_ns, f->j->to_ns);
    if (rc < 0 || (rc = quiet_init(&quiet, f->j->trace, thread)) < 0) {
        walk_free(&w);
        return rc;
    }
    while (rc == 0 && walk_next(&w, &ev)) {
        uint64_t now = ev.enter ? ev.span->start_ns : ev.span->end_ns;
        now = now > f->j->to_ns ? f->j->to_ns : now;
        if (now > at) {
            if (open.len)
                rc = add_weight(f, open.data[open.len - 1], now - at - quiet_between(&quiet, at, now));
            at = now;
        }
        stack_id id = open.len ? open.data[open.len - 1] : STACK_EMPTY;
        if (!ev.enter)
            open.len--;
        else if (stack_tree_child(tree, id, ev.span->fn, &id) < 0 || !vec_try_push(&open, id))
            rc = MTUI_E_NOMEM;
    }
    vec_free(&open);
    quiet_free(&quiet);
    walk_free(&w);
    return rc;
}

/* ---- Lines ---- */

/* A frame's name; ";" would end it. */
static bool append_name(struct export_out *o, const char *name, char **text, size_t *cap, size_t *len)
{
    size_t n = 0;
    const char *s = export_out_harmless(o, name, &n);
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
    struct stack_tree *tree = NULL;
    int rc = 0;
    if (j->log) {
        f.stacks = sample_log_stacks(j->log);
        rc = weigh_samples(&f);
    } else {
        f.stacks = tree = stack_tree_new();
        for (size_t i = 0; rc == 0 && i < trace_thread_count(j->trace); i++)
            if (j->thread < 0 || (size_t)j->thread == i)
                rc = weigh_thread(&f, tree, i);
    }
    if (rc == 0)
        rc = write_lines(&f);
    stack_tree_free(tree);
    vec_free(&f.weights);
    return rc ? err_set(err, rc, "not enough memory for the stacks of this recording") : 0;
}
