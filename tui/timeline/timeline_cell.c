/* A flame cell as a cell of the surface: the glyphs of the tier, the colours of functions. */
#include "tui/term/glyph.h"
#include "tui/term/theme.h"
#include "tui/timeline/timeline.h"

/* What the cells of one row are drawn with. */
struct brush {
    struct timeline *tl;
    const struct glyphs *g;
    const struct span *selected; /* when it stands in this row */
    size_t thread;
    struct flame_row above;      /* of depth above_depth, for the colours of callers */
    size_t above_depth, hint;    /* hint: where it was last looked at */
    const struct span *last;     /* the span whose role was asked for last */
    uint16_t last_role;
    uint16_t left_role;          /* of what stands at the right edge of the cell to the left */
    bool mono, few_colors;
};

/* The role of a span's function, one step away from its caller's where they would be the same. */
static uint16_t span_role(struct brush *b, const struct span *s)
{
    if (s == b->last)
        return b->last_role;
    uint16_t role = tl_role(b->tl, s->fn);
    if (role >= ROLE_FN0 && s->depth > 0) {
        const struct flame_row *above = &b->above;
        if (b->above_depth != s->depth - 1u) {
            b->above = flame_source_row(b->tl->src, b->thread, s->depth - 1u);
            b->above_depth = s->depth - 1u;
            b->hint = 0;
        }
        size_t from = b->hint < above->n && above->spans[b->hint].start_ns <= s->start_ns ? b->hint : 0;
        size_t k = above->seek(above, from, s->start_ns + 1);
        b->hint = k > 0 ? k - 1 : 0;
        uint16_t parent = k > 0 ? tl_role(b->tl, above->spans[k - 1].fn) : ROLE_DEFAULT;
        if (parent == role)
            role = (uint16_t)(ROLE_FN0 + (role - ROLE_FN0 + 1u) % b->tl->palette);
    }
    b->last = s;
    return b->last_role = role;
}

static void paint(struct cell *c, uint32_t cp, uint16_t ink, uint16_t paper, unsigned attr)
{
    c->cp = cp;
    c->ink = ink;
    c->paper = paper;
    c->attr |= (uint16_t)attr;
}

/* Text or a line on a span. */
static void paint_on(struct cell *c, uint32_t cp, uint16_t role)
{
    paint(c, cp, role, role, 0);
}

static enum glyph density(unsigned eighths)
{
    return eighths <= 3 ? GLYPH_DENSITY1 : eighths <= 6 ? GLYPH_DENSITY2 : GLYPH_DENSITY3;
}

static enum glyph line_at(unsigned eighth)
{
    return eighth < 3 ? GLYPH_HAIR_LEFT : eighth < 6 ? GLYPH_HAIR_MID : GLYPH_HAIR_RIGHT;
}

/* The last eighths of a cell, as fine as the tier can. */
static void paint_right(struct cell *c, const struct glyphs *g, unsigned from, uint16_t role)
{
    switch (g->tier) {
    case GLYPHS_VGA:
        if (from <= 2)
            paint_on(c, ' ', role);
        else if (from <= 5)
            paint(c, glyph(g, GLYPH_LEFT4), role, ROLE_DEFAULT, CELL_REVERSE);
        else
            paint(c, glyph(g, GLYPH_HAIR_RIGHT), role, ROLE_DEFAULT, 0);
        break;
    case GLYPHS_ASCII:
        paint(c, glyph(g, GLYPH_LEFT1 + (8 - from) - 1), role, ROLE_DEFAULT, 0);
        break;
    case GLYPHS_UNICODE:
    case GLYPH_TIERS:
        paint(c, glyph(g, GLYPH_LEFT1 + from - 1), role, ROLE_DEFAULT, CELL_REVERSE);
        break;
    }
}

static void paint_split(struct brush *b, struct cell *c, const struct flame_cell *f)
{
    uint16_t left = span_role(b, f->ink), right = span_role(b, f->paper);
    if (left == right || b->mono) { /* the boundary is a line where colours cannot show it */
        paint_on(c, glyph(b->g, b->g->tier == GLYPHS_ASCII ? GLYPH_BORDER : line_at(f->eighths)),
                 f->eighths < 4 ? right : left);
        return;
    }
    switch (b->g->tier) {
    case GLYPHS_VGA:
        if (f->eighths >= 3 && f->eighths <= 5)
            paint(c, glyph(b->g, GLYPH_LEFT4), left, right, 0);
        else
            paint_on(c, ' ', f->eighths < 3 ? right : left);
        break;
    case GLYPHS_ASCII:
        paint_on(c, glyph(b->g, GLYPH_BORDER), f->eighths < 4 ? right : left);
        break;
    case GLYPHS_UNICODE:
    case GLYPH_TIERS:
        paint(c, glyph(b->g, GLYPH_LEFT1 + f->eighths - 1u), left, right, 0);
        break;
    }
}

static uint16_t gap_role(const struct gap *gap)
{
    return gap->cause == GAP_OFF_CPU                                     ? ROLE_OFF_CPU
           : gap->cause == GAP_UNTRACED || gap->cause == GAP_NO_SAMPLE ||
                   gap->cause == GAP_NOT_DECODED
               ? ROLE_UNTRACED
               : ROLE_GAP;
}

static void paint_halves(struct brush *b, struct cell *c, const struct flame_cell *f)
{
    const struct glyphs *g = b->g;
    if (!f->paper) {
        paint(c, glyph(g, GLYPH_UPPER_HALF), span_role(b, f->ink), ROLE_DEFAULT, 0);
    } else if (!f->ink) {
        paint(c, glyph(g, g->tier == GLYPHS_ASCII ? GLYPH_BAR1 : GLYPH_BAR4), span_role(b, f->paper),
              ROLE_DEFAULT, 0);
    } else {
        uint16_t up = span_role(b, f->ink), low = span_role(b, f->paper);
        if (g->tier == GLYPHS_ASCII)
            paint_on(c, glyph(g, GLYPH_LEFT3), up);
        else if (b->mono)
            paint_on(c, ' ', up);
        else
            paint(c, glyph(g, GLYPH_UPPER_HALF), up, low, 0);
    }
}

/* A sampled span's edge is known to a period only: a shade, never a sharp edge. */
static bool is_soft(const struct flame_cell *f)
{
    return f->ink && (f->ink->flags & SPAN_SAMPLED) &&
           (f->shape == FLAME_LEFT || f->shape == FLAME_RIGHT || f->shape == FLAME_SPLIT ||
            f->shape == FLAME_LINE);
}

static void paint_soft(struct brush *b, struct cell *c, const struct flame_cell *f)
{
    unsigned owned = (unsigned)__builtin_popcount(f->owned);
    if (f->shape == FLAME_SPLIT)
        owned = f->eighths; /* of the left one */
    if (f->shape == FLAME_SPLIT && !b->mono && b->g->tier != GLYPHS_ASCII)
        paint(c, glyph(b->g, density(owned)), span_role(b, f->ink), span_role(b, f->paper), 0);
    else
        paint(c, glyph(b->g, density(f->shape == FLAME_SPLIT ? 8 : owned)), span_role(b, f->ink),
              ROLE_DEFAULT, 0);
}

static void paint_shape(struct brush *b, struct cell *c, const struct flame_cell *f)
{
    const struct glyphs *g = b->g;
    switch ((enum flame_shape)f->shape) {
    case FLAME_EMPTY:
        break;
    case FLAME_FULL: {
        uint16_t role = span_role(b, f->ink);
        /* Colours that are the same, or none, need a line between two calls. */
        bool line = (f->flags & FLAME_REPEAT) ||
                    ((f->flags & FLAME_JOINED) && (b->mono || role == b->left_role));
        paint_on(c, line ? glyph(g, GLYPH_HAIR_LEFT) : ' ', role);
        break;
    }
    case FLAME_LEFT:
        paint(c, glyph(g, GLYPH_LEFT1 + f->eighths - 1u), span_role(b, f->ink), ROLE_DEFAULT, 0);
        break;
    case FLAME_RIGHT:
        paint_right(c, g, f->eighths, span_role(b, f->ink));
        break;
    case FLAME_SPLIT:
        paint_split(b, c, f);
        break;
    case FLAME_LINE:
        paint(c, glyph(g, GLYPH_HAIR_LEFT + f->eighths), span_role(b, f->ink), ROLE_DEFAULT, 0);
        break;
    case FLAME_DENSITY:
        /* Many callers in one cell: there is no one to keep apart from. */
        paint(c, glyph(g, density(f->eighths)),
              f->count > 2 ? tl_role(b->tl, f->ink->fn) : span_role(b, f->ink), ROLE_DEFAULT,
              f->flags & FLAME_AGGREGATE ? CELL_AGGREGATE : 0);
        break;
    case FLAME_OFF:
        paint(c, glyph(g, GLYPH_RULE_H), ROLE_OFF_CPU,
              f->paper ? span_role(b, f->paper) : f->owned == 0xff ? ROLE_OFF_CPU : ROLE_DEFAULT, 0);
        break;
    case FLAME_GAP: {
        uint16_t role = gap_role(f->gap);
        paint(c, glyph(g, GLYPH_HATCH), role, f->paper ? span_role(b, f->paper) : role, 0);
        break;
    }
    case FLAME_TEXT:
        paint_on(c, f->cp, span_role(b, f->ink));
        c->mark = f->mark;
        break;
    case FLAME_HALVES:
        paint_halves(b, c, f);
        break;
    }
}

/* The selected span and matches: cells of their own change colour, shared edges keep their shape. */
static void paint_over(struct cell *c, const struct flame_cell *f, uint16_t role)
{
    bool own = f->shape == FLAME_FULL || f->shape == FLAME_TEXT || f->shape == FLAME_OFF ||
               f->shape == FLAME_DENSITY || f->shape == FLAME_LINE || f->shape == FLAME_GAP;
    if (own) {
        c->ink = c->paper = role;
        c->attr &= (uint16_t)~(CELL_REVERSE | CELL_DIM);
    }
    if (role == ROLE_SELECT)
        c->attr |= CELL_BOLD | CELL_UNDERLINE;
}

static bool overlaps(const struct span *s, uint64_t from, uint64_t to)
{
    return s->start_ns < to && (s->end_ns > from || (s->start_ns == s->end_ns && s->start_ns >= from));
}

/* Whether the selected span owns part of a cell, as the picture shows it. */
static bool is_selected(const struct brush *b, const struct flame_cell *f, const uint64_t *edge)
{
    if (!b->selected)
        return false;
    if (f->ink == b->selected || f->paper == b->selected)
        return true;
    return (f->count > 1 || f->shape == FLAME_GAP) && overlaps(b->selected, edge[0], edge[8]);
}

void tl_put_cells(struct timeline *tl, struct surface *s, int row, int col,
                  const struct flame_axis *ax, const struct flame_cell *cells, size_t thread,
                  size_t depth)
{
    const struct span *selected = selection_span(tl->src, &tl->sel);
    enum color_tier tier = tl->m->theme ? theme_tier(tl->m->theme) : COLOR_256;
    struct brush b = {.tl = tl,
                      .g = tl->m->glyphs,
                      .thread = thread,
                      .above_depth = SIZE_MAX,
                      .mono = tier == COLOR_MONO,
                      .few_colors = tier <= COLOR_16};
    if (selected && tl->sel.thread == thread &&
        (tl->sel.depth == depth || (tl->compact && tl->sel.depth / 2 == depth / 2)))
        b.selected = selected;
    for (int i = 0; i < ax->cols; i++) {
        const struct flame_cell *f = &cells[i];
        struct cell c = {.cp = ' '};
        if (is_soft(f))
            paint_soft(&b, &c, f);
        else
            paint_shape(&b, &c, f);
        if ((f->flags & FLAME_ALTERNATE) && b.few_colors)
            c.attr ^= CELL_DIM;
        if (is_selected(&b, f, ax->edges + 8 * i))
            paint_over(&c, f, ROLE_SELECT);
        else if (tl->search && f->ink && search_has(tl->search, f->ink->fn))
            paint_over(&c, f, ROLE_MATCH);
        const struct span *right = f->shape == FLAME_SPLIT ? f->paper : f->ink;
        bool whole = f->count <= 2 && right && (f->owned & 0x80);
        b.left_role = whole ? span_role(&b, right) : ROLE_DEFAULT;
        bool right_half = f->shape == FLAME_TEXT && f->cp == 0;
        if (f->shape != FLAME_EMPTY && !right_half)
            surface_put_cell(s, row, col + i, c);
    }
}
