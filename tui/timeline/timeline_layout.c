#include "tui/timeline/timeline.h"

static void add_thread(struct timeline *tl, size_t i)
{
    const struct tl_thread *th = &tl->threads[i];
    size_t depths = trace_thread(tl->trace, i)->depths;
    vec_push(&tl->lines, ((struct tl_line){TL_HEADER, i, 0}));
    if (th->collapsed)
        return;
    for (size_t d = 0; d < depths; d += tl->compact ? 2 : 1)
        vec_push(&tl->lines, ((struct tl_line){tl->compact ? TL_PAIR : TL_ROW, i, d}));
}

void tl_layout(struct timeline *tl)
{
    size_t process = SIZE_MAX;
    tl->lines.len = tl->pinned = 0;
    tl_order_threads(tl);
    for (size_t k = 0; k < tl->nthreads; k++) {
        size_t i = tl->shown[k];
        const struct tl_thread *th = &tl->threads[i];
        if (th->hidden)
            continue;
        if (!th->pinned && tl->nprocesses > 1) {
            if (th->process != process)
                vec_push(&tl->lines, ((struct tl_line){TL_PROCESS, i, 0}));
            process = th->process;
            if (tl->processes[process].collapsed)
                continue;
        }
        add_thread(tl, i);
        if (th->pinned)
            tl->pinned = tl->lines.len;
    }
}

/* Pinned lines and the others scroll apart from each other. */
struct area {
    size_t first, len; /* in tl->lines */
    size_t shown;      /* how many find room */
    size_t *top;
};

/* Pinned lines get at most half the place. */
static struct area area_of(struct timeline *tl, bool pinned)
{
    size_t visible = tl->at.visible > 0 ? (size_t)tl->at.visible : 0, rest = tl->lines.len - tl->pinned;
    size_t shown = rest > 0 && tl->pinned > visible / 2 ? visible / 2 : tl->pinned;
    shown = shown < visible ? shown : visible;
    struct area a = pinned ? (struct area){0, tl->pinned, shown, &tl->pin_top}
                           : (struct area){tl->pinned, rest, visible - shown, &tl->top};
    size_t most = a.len > a.shown ? a.len - a.shown : 0;
    if (*a.top > most)
        *a.top = most;
    return a;
}

const struct tl_line *tl_line_at(struct timeline *tl, int row)
{
    if (row < 0 || row >= tl->at.visible)
        return NULL;
    struct area a = area_of(tl, true);
    size_t r = (size_t)row;
    if (r >= a.shown) {
        r -= a.shown;
        a = area_of(tl, false);
    }
    size_t k = *a.top + r;
    if (k >= a.len)
        return NULL;
    const struct tl_line *line = &tl->lines.data[a.first + k];
    /* The first line names its thread even when the header itself has scrolled away. */
    while (r == 0 && (line->kind == TL_ROW || line->kind == TL_PAIR))
        line--;
    return line;
}

void tl_scroll(struct timeline *tl, int lines)
{
    struct area a = area_of(tl, false);
    if (lines < 0)
        *a.top = *a.top > (size_t)-lines ? *a.top - (size_t)-lines : 0;
    else
        *a.top += (size_t)lines;
    area_of(tl, false);
}

bool tl_first_line(struct timeline *tl, bool pinned, struct tl_line *line)
{
    struct area a = area_of(tl, pinned);
    if (*a.top >= a.len)
        return false;
    *line = tl->lines.data[a.first + *a.top];
    return true;
}

void tl_put_first(struct timeline *tl, bool pinned, const struct tl_line *line)
{
    struct area a = area_of(tl, pinned);
    for (size_t k = 0; k < a.len; k++) {
        const struct tl_line *l = &tl->lines.data[a.first + k];
        if (l->thread == line->thread && l->kind <= line->kind && l->depth <= line->depth)
            *a.top = k; /* kinds stand in this order */
    }
    area_of(tl, pinned);
}

static bool line_holds(const struct tl_line *line, const struct timeline *tl)
{
    const struct selection *sel = &tl->sel;
    const struct tl_thread *th = &tl->threads[sel->thread];
    if (line->kind == TL_PROCESS)
        return tl->threads[line->thread].process == th->process && !th->pinned &&
               tl->processes[th->process].collapsed;
    if (line->thread != sel->thread)
        return false;
    if (th->collapsed)
        return line->kind == TL_HEADER;
    return (line->kind == TL_ROW && line->depth == sel->depth) ||
           (line->kind == TL_PAIR && line->depth / 2 == sel->depth / 2);
}

void tl_scroll_to_selection(struct timeline *tl)
{
    if (!tl->sel.valid || tl->at.visible <= 0)
        return;
    size_t k = 0;
    while (k < tl->lines.len && !line_holds(&tl->lines.data[k], tl))
        k++;
    if (k == tl->lines.len)
        return;
    struct area a = area_of(tl, k < tl->pinned);
    /* The first line is the header of whatever lies below it; some of what is called is to be seen. */
    bool in_thread = tl->lines.data[k].kind != TL_HEADER && tl->lines.data[k].kind != TL_PROCESS;
    size_t above = in_thread ? 1 : 0, below = a.shown > 8 ? 3 : 0;
    k -= a.first;
    if (k < *a.top + above)
        *a.top = k - above;
    else if (a.shown > 0 && k + below >= *a.top + a.shown) {
        /* Of the thread as much as finds room, rather than the end of the one before it. */
        size_t header = k;
        while (in_thread && tl->lines.data[a.first + header].kind != TL_HEADER)
            header--;
        size_t least = k + below - a.shown + 1;
        *a.top = header > least ? header : least;
    }
    area_of(tl, k + a.first < tl->pinned);
}

size_t tl_thread_step(const struct timeline *tl, int delta)
{
    size_t n = tl->nthreads, at = 0;
    while (tl->sel.valid && at + 1 < n && tl->shown[at] != tl->sel.thread)
        at++;
    for (size_t tries = 0; tries < n; tries++) {
        at = delta < 0 ? (at + n - 1) % n : (at + 1) % n;
        size_t i = tl->shown[at];
        if (!tl->threads[i].hidden && trace_thread(tl->trace, i)->spans > 0)
            return i;
    }
    return SIZE_MAX;
}
