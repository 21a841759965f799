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

/* Pinned lines get at most half the place. */
static size_t pinned_shown(const struct timeline *tl)
{
    size_t half = (size_t)(tl->at.visible > 0 ? tl->at.visible : 0) / 2;
    return tl->pinned < tl->lines.len && tl->pinned > half ? half : tl->pinned;
}

static size_t scrolled_shown(const struct timeline *tl)
{
    size_t visible = tl->at.visible > 0 ? (size_t)tl->at.visible : 0;
    return visible > pinned_shown(tl) ? visible - pinned_shown(tl) : 0;
}

static void clamp_top(struct timeline *tl)
{
    size_t all = tl->lines.len - tl->pinned, shown = scrolled_shown(tl);
    size_t most = all > shown ? all - shown : 0;
    if (tl->top > most)
        tl->top = most;
}

const struct tl_line *tl_line_at(struct timeline *tl, int row)
{
    clamp_top(tl);
    if (row < 0 || row >= tl->at.visible)
        return NULL;
    size_t r = (size_t)row, pinned = pinned_shown(tl);
    if (r < pinned)
        return &tl->lines.data[r];
    size_t k = tl->pinned + tl->top + (r - pinned);
    if (k >= tl->lines.len)
        return NULL;
    const struct tl_line *line = &tl->lines.data[k];
    /* The first line names its thread even when the header itself has scrolled away. */
    if (r == pinned && line->kind != TL_HEADER)
        while (line->kind != TL_HEADER)
            line--;
    return line;
}

void tl_scroll(struct timeline *tl, int lines)
{
    if (lines < 0)
        tl->top = tl->top > (size_t)-lines ? tl->top - (size_t)-lines : 0;
    else
        tl->top += (size_t)lines;
    clamp_top(tl);
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
    if (k == tl->lines.len || k < tl->pinned)
        return;
    k -= tl->pinned;
    size_t shown = scrolled_shown(tl);
    /* The first line is the header of whatever lies below it. */
    size_t above = k > 0 && tl->lines.data[tl->pinned + k].kind != TL_HEADER ? 1 : 0;
    /* Some of what it calls is to be seen too. */
    size_t below = shown > 8 ? 3 : 0;
    if (k < tl->top + above)
        tl->top = k - above;
    else if (shown > 0 && k + below >= tl->top + shown)
        tl->top = k + below - shown + 1;
    clamp_top(tl);
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
