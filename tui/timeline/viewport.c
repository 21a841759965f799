#include "tui/timeline/viewport.h"

#include <stdlib.h>
#include <string.h>

#define COL_BITS 12      /* significant bits of a column's length */
#define HISTORY_MAX 200
#define FAR_COL (1 << 30)

static const flame_i128 one_ns = (flame_i128)1 << FLAME_FRACTION_BITS;

static flame_i128 fixed(uint64_t t_ns)
{
    return (flame_i128)t_ns << FLAME_FRACTION_BITS;
}

static flame_i128 floor_div(flame_i128 a, flame_i128 b)
{
    flame_i128 q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

/* Rounded up to COL_BITS significant bits, and not under the limit. */
static flame_u128 round_col(flame_u128 col)
{
    if (col <= VIEWPORT_MIN_COL_FP)
        return VIEWPORT_MIN_COL_FP;
    unsigned bits = 0;
    for (flame_u128 c = col; c; c >>= 1)
        bits++;
    flame_u128 unit = (flame_u128)1 << (bits - COL_BITS);
    return (col + unit - 1) / unit * unit;
}

static flame_i128 length_fp(const struct viewport *v, flame_u128 col_fp)
{
    return (flame_i128)(col_fp * (unsigned)v->cols);
}

static struct viewport_place whole_place(const struct viewport *v)
{
    flame_i128 length = fixed(v->last_ns - v->first_ns);
    flame_u128 col = round_col(((flame_u128)length + (unsigned)v->cols - 1) / (unsigned)v->cols);
    return (struct viewport_place){.start_fp = fixed(v->first_ns), .col_fp = col};
}

static bool same_place(struct viewport_place a, struct viewport_place b)
{
    return a.start_fp == b.start_fp && a.col_fp == b.col_fp;
}

void viewport_init(struct viewport *v, uint64_t first_ns, uint64_t last_ns, int cols)
{
    *v = (struct viewport){.first_ns = first_ns, .last_ns = last_ns, .cols = cols > 0 ? cols : 1};
    v->place = whole_place(v);
}

void viewport_free(struct viewport *v)
{
    vec_free(&v->back);
    vec_free(&v->forward);
}

void viewport_set_cols(struct viewport *v, int cols)
{
    bool whole = viewport_is_whole(v);
    v->cols = cols > 0 ? cols : 1;
    struct viewport_place all = whole_place(v);
    if (whole || v->place.col_fp > all.col_fp)
        v->place = all;
}

void viewport_set_trace(struct viewport *v, uint64_t first_ns, uint64_t last_ns)
{
    bool whole = viewport_is_whole(v);
    v->first_ns = first_ns;
    v->last_ns = last_ns;
    if (whole)
        v->place = whole_place(v);
}

struct flame_window viewport_window(const struct viewport *v)
{
    return (struct flame_window){.start_fp = v->place.start_fp,
                                 .length_fp = (flame_u128)length_fp(v, v->place.col_fp),
                                 .cols = v->cols};
}

uint64_t viewport_time_at(const struct viewport *v, int col)
{
    flame_i128 at = v->place.start_fp + (flame_i128)v->place.col_fp * col;
    at = floor_div(at + one_ns - 1, one_ns);
    return at < 0 ? 0 : at > (flame_i128)UINT64_MAX ? UINT64_MAX : (uint64_t)at;
}

int viewport_col_of(const struct viewport *v, uint64_t t_ns)
{
    flame_i128 col = floor_div(fixed(t_ns) - v->place.start_fp, (flame_i128)v->place.col_fp);
    return col > FAR_COL ? FAR_COL : col < -FAR_COL ? -FAR_COL : (int)col;
}

static uint64_t whole_ns(flame_u128 fp)
{
    return (uint64_t)((fp + (flame_u128)one_ns - 1) >> FLAME_FRACTION_BITS);
}

uint64_t viewport_col_ns(const struct viewport *v)
{
    return whole_ns(v->place.col_fp);
}

uint64_t viewport_length_ns(const struct viewport *v)
{
    return whole_ns((flame_u128)length_fp(v, v->place.col_fp));
}

bool viewport_is_whole(const struct viewport *v)
{
    return same_place(v->place, whole_place(v));
}

int viewport_zoom_level(const struct viewport *v)
{
    int level = 0;
    for (flame_u128 c = whole_place(v).col_fp; c / 2 >= v->place.col_fp; c /= 2)
        level++;
    return level;
}

/* Goes to a place. Steps (zoom, pan) that follow each other make one entry of the history. */
static bool move_to(struct viewport *v, struct viewport_place place, bool step)
{
    if (same_place(v->place, place))
        return false;
    if (!step || !v->stepping) {
        if (v->back.len == HISTORY_MAX)
            vec_remove(&v->back, 0);
        vec_push(&v->back, v->place);
    }
    v->forward.len = 0;
    v->stepping = step;
    v->place = place;
    return true;
}

bool viewport_zoom_in(struct viewport *v, int col)
{
    struct viewport_place p = v->place;
    if (p.col_fp / 2 < VIEWPORT_MIN_COL_FP)
        return false;
    p.col_fp /= 2;
    p.start_fp += (flame_i128)p.col_fp * col;
    return move_to(v, p, true);
}

bool viewport_zoom_out(struct viewport *v, int col)
{
    struct viewport_place p = v->place, all = whole_place(v);
    if (p.col_fp * 2 >= all.col_fp)
        return move_to(v, all, true);
    p.start_fp -= (flame_i128)p.col_fp * col;
    p.col_fp *= 2;
    return move_to(v, p, true);
}

bool viewport_pan(struct viewport *v, int cols)
{
    struct viewport_place p = v->place;
    flame_i128 half = (flame_i128)p.col_fp * (v->cols / 2);
    flame_i128 left = fixed(v->first_ns) - half, right = fixed(v->last_ns) - half;
    if (viewport_is_whole(v))
        return false;
    p.start_fp += (flame_i128)p.col_fp * cols;
    /* A window that is already further out (by zooming) may come back but not go on. */
    if (cols < 0 && p.start_fp < left)
        p.start_fp = v->place.start_fp < left ? v->place.start_fp : left;
    if (cols > 0 && p.start_fp > right)
        p.start_fp = v->place.start_fp > right ? v->place.start_fp : right;
    return move_to(v, p, true);
}

/* Moves a place into the trace, as far as the trace is long enough. */
static struct viewport_place inside(const struct viewport *v, struct viewport_place p)
{
    flame_i128 last = fixed(v->last_ns) - length_fp(v, p.col_fp), first = fixed(v->first_ns);
    if (p.start_fp > last)
        p.start_fp = last;
    if (p.start_fp < first)
        p.start_fp = first;
    return p;
}

void viewport_fit(struct viewport *v, uint64_t t0_ns, uint64_t t1_ns, unsigned share)
{
    flame_u128 length = (flame_u128)fixed(t1_ns - t0_ns) * (share ? share : 1);
    struct viewport_place p, all = whole_place(v);
    p.col_fp = round_col((length + (unsigned)v->cols - 1) / (unsigned)v->cols);
    if (p.col_fp >= all.col_fp) {
        move_to(v, all, false);
        return;
    }
    /* Times in the middle of the window, the rest shared out evenly. */
    p.start_fp = fixed(t0_ns) - (length_fp(v, p.col_fp) - fixed(t1_ns - t0_ns)) / 2;
    move_to(v, inside(v, p), false);
}

void viewport_whole(struct viewport *v)
{
    move_to(v, whole_place(v), false);
}

void viewport_center(struct viewport *v, uint64_t t_ns)
{
    struct viewport_place p = v->place;
    if (viewport_is_whole(v))
        return;
    p.start_fp = fixed(t_ns) - (flame_i128)p.col_fp * (v->cols / 2);
    move_to(v, inside(v, p), false);
}

bool viewport_show(struct viewport *v, uint64_t t0_ns, uint64_t t1_ns)
{
    int c0 = viewport_col_of(v, t0_ns), c1 = viewport_col_of(v, t1_ns);
    if (c0 < v->cols && (c1 > 0 || c0 >= 0))
        return false;
    struct viewport_place p = v->place;
    p.start_fp = fixed(t0_ns) - (flame_i128)p.col_fp * (v->cols / 4);
    return move_to(v, inside(v, p), false);
}

static bool swap_history(struct viewport *v, bool back)
{
    v->stepping = false;
    if (back ? v->back.len == 0 : v->forward.len == 0)
        return false;
    if (back) {
        vec_push(&v->forward, v->place);
        v->place = v->back.data[--v->back.len];
    } else {
        vec_push(&v->back, v->place);
        v->place = v->forward.data[--v->forward.len];
    }
    return true;
}

bool viewport_back(struct viewport *v)
{
    return swap_history(v, true);
}

bool viewport_forward(struct viewport *v)
{
    return swap_history(v, false);
}
