#include "tui/timeline.h"

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
    tl->lines.len = 0;
    tl->pinned = 0;
    for (int pinned = 1; pinned >= 0; pinned--) {
        for (size_t i = 0; i < tl->nthreads; i++)
            if (!tl->threads[i].hidden && tl->threads[i].pinned == (pinned == 1))
                add_thread(tl, i);
        if (pinned)
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
    while (r == 0 && line->kind != TL_HEADER)
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

static bool line_holds(const struct tl_line *line, const struct timeline *tl)
{
    const struct selection *sel = &tl->sel;
    if (line->thread != sel->thread)
        return false;
    if (tl->threads[sel->thread].collapsed)
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
    size_t above = tl->lines.data[k].kind != TL_HEADER ? 1 : 0, below = a.shown > 8 ? 3 : 0;
    k -= a.first;
    if (k < *a.top + above)
        *a.top = k - above;
    else if (a.shown > 0 && k + below >= *a.top + a.shown) {
        /* Of the thread as much as finds room, rather than the end of the one before it. */
        size_t header = k;
        while (tl->lines.data[a.first + header].kind != TL_HEADER)
            header--;
        size_t least = k + below - a.shown + 1;
        *a.top = header > least ? header : least;
    }
    area_of(tl, k + a.first < tl->pinned);
}

size_t tl_thread_step(const struct timeline *tl, int delta)
{
    if (tl->nthreads == 0)
        return SIZE_MAX;
    size_t i = tl->sel.valid ? tl->sel.thread : 0;
    for (size_t tries = 0; tries < tl->nthreads; tries++) {
        i = delta < 0 ? (i + tl->nthreads - 1) % tl->nthreads : (i + 1) % tl->nthreads;
        if (!tl->threads[i].hidden && trace_thread(tl->trace, i)->spans > 0)
            return i;
    }
    return SIZE_MAX;
}
