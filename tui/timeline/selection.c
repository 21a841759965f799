#include "tui/timeline/selection.h"

const struct span *selection_span(struct flame_source *src, const struct selection *sel)
{
    if (!sel->valid)
        return NULL;
    struct flame_row row = flame_source_row(src, sel->thread, sel->depth);
    return sel->index < row.n ? &row.spans[sel->index] : NULL;
}

/* The span of row[from, to) that covers t, else the nearest one; from < to. */
static size_t nearest(const struct flame_row *row, size_t from, size_t to, uint64_t t_ns)
{
    size_t next = row->seek(row, from, t_ns);
    if (next < to && row->spans[next].start_ns == t_ns)
        return next;
    if (next >= to)
        return to - 1;
    if (next == from)
        return from;
    const struct span *left = &row->spans[next - 1], *right = &row->spans[next];
    return left->end_ns > t_ns || t_ns - left->end_ns <= right->start_ns - t_ns ? next - 1 : next;
}

bool selection_at(struct flame_source *src, size_t thread, size_t depth, uint64_t t_ns,
                  struct selection *sel)
{
    struct flame_row row = flame_source_row(src, thread, depth);
    if (row.n == 0)
        return false;
    *sel = (struct selection){true, thread, depth, nearest(&row, 0, row.n, t_ns)};
    return true;
}

bool selection_innermost(struct flame_source *src, size_t thread, size_t depths, uint64_t t_ns,
                         struct selection *sel)
{
    struct selection best = {0};
    for (size_t d = 0; d < depths; d++) {
        struct selection at;
        if (!selection_at(src, thread, d, t_ns, &at))
            break;
        const struct span *s = selection_span(src, &at);
        bool covers = s->start_ns <= t_ns && (s->end_ns > t_ns || s->start_ns == s->end_ns);
        if (d > 0 && !covers)
            break;
        best = at;
    }
    if (!best.valid)
        return false;
    *sel = best;
    return true;
}

bool selection_caller(struct flame_source *src, struct selection *sel)
{
    const struct span *s = selection_span(src, sel);
    if (!s || sel->depth == 0)
        return false;
    /* The last span above that starts no later contains it. */
    struct flame_row row = flame_source_row(src, sel->thread, sel->depth - 1);
    size_t k = row.seek(&row, 0, s->start_ns + 1);
    /* At one instant several may start; the right one also ends no earlier. */
    while (k > 0 && row.spans[k - 1].end_ns < s->end_ns)
        k--;
    if (k == 0)
        return false;
    sel->depth--;
    sel->index = k - 1;
    return true;
}

void selection_children(struct flame_source *src, const struct selection *sel, size_t *from,
                        size_t *to)
{
    const struct span *s = selection_span(src, sel);
    *from = *to = 0;
    if (!s)
        return;
    struct flame_row row = flame_source_row(src, sel->thread, sel->depth + 1);
    *from = *to = row.seek(&row, 0, s->start_ns);
    if (s->end_ns > s->start_ns)
        *to = row.seek(&row, *from, s->end_ns);
    /* Empty calls at the very end belong to it too, unless the next span above begins there. */
    struct flame_row own = flame_source_row(src, sel->thread, sel->depth);
    bool shared = sel->index + 1 < own.n && own.spans[sel->index + 1].start_ns == s->end_ns;
    while (!shared && *to < row.n && row.spans[*to].start_ns == s->end_ns)
        ++*to;
    /* Empty calls at its very start may belong to the span before. */
    while (*from < *to && sel->index > 0 && row.spans[*from].start_ns == row.spans[*from].end_ns &&
           own.spans[sel->index - 1].start_ns == s->start_ns)
        ++*from;
}

bool selection_callee(struct flame_source *src, struct selection *sel, uint64_t t_ns)
{
    size_t from, to;
    selection_children(src, sel, &from, &to);
    if (from == to)
        return false;
    struct flame_row row = flame_source_row(src, sel->thread, sel->depth + 1);
    sel->index = nearest(&row, from, to, t_ns);
    sel->depth++;
    return true;
}

bool selection_longest_child(struct flame_source *src, struct selection *sel)
{
    size_t from, to;
    selection_children(src, sel, &from, &to);
    if (from == to)
        return false;
    struct flame_row row = flame_source_row(src, sel->thread, sel->depth + 1);
    sel->index = row.longest(&row, from, to);
    sel->depth++;
    return true;
}

bool selection_sibling(struct flame_source *src, struct selection *sel, int delta)
{
    struct flame_row row = flame_source_row(src, sel->thread, sel->depth);
    if (!sel->valid || (delta < 0 ? sel->index == 0 : sel->index + 1 >= row.n))
        return false;
    sel->index = delta < 0 ? sel->index - 1 : sel->index + 1;
    return true;
}

uint64_t selection_child_time(struct flame_source *src, const struct pyramid *p,
                              const struct selection *sel)
{
    const struct span *s = selection_span(src, sel);
    if (!s || s->end_ns == s->start_ns)
        return 0;
    if (p)
        return pyramid_range(p, sel->thread, sel->depth + 1, s->start_ns, s->end_ns).busy_ns;
    size_t from, to;
    selection_children(src, sel, &from, &to);
    struct flame_row row = flame_source_row(src, sel->thread, sel->depth + 1);
    uint64_t sum = 0;
    for (size_t k = from; k < to; k++)
        sum += row.spans[k].end_ns - row.spans[k].start_ns;
    return sum;
}
