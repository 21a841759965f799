/* The characters that pictures are made of, by tier: the only place where they stand as literals.
 *
 *   unicode  eighth blocks, box drawing, braille, dots
 *   vga      the Linux console's font: halves, shades, box drawing
 *   ascii    everything else */
#ifndef MTUI_TUI_GLYPH_H
#define MTUI_TUI_GLYPH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"

enum glyph_tier { GLYPHS_UNICODE, GLYPHS_VGA, GLYPHS_ASCII, GLYPH_TIERS };

enum glyph {
    /* A cell filled from the left, in eighths: GLYPH_LEFT1 + n − 1 for n = 1–7. To fill n eighths from
     * the right on the default paper, take LEFT(8 − n) with CELL_REVERSE. */
    GLYPH_LEFT1,
    GLYPH_LEFT2,
    GLYPH_LEFT3,
    GLYPH_LEFT4,
    GLYPH_LEFT5,
    GLYPH_LEFT6,
    GLYPH_LEFT7,
    GLYPH_FULL,
    GLYPH_UPPER_HALF, /* two rows in one cell: ink above, paper below */
    /* A cell filled from below: GLYPH_BAR1 + n − 1 for n = 1–8. */
    GLYPH_BAR1,
    GLYPH_BAR2,
    GLYPH_BAR3,
    GLYPH_BAR4,
    GLYPH_BAR5,
    GLYPH_BAR6,
    GLYPH_BAR7,
    GLYPH_BAR8,
    /* One thin span alone in a cell. */
    GLYPH_HAIR_LEFT,
    GLYPH_HAIR_MID,
    GLYPH_HAIR_RIGHT,
    /* Several spans in a cell, by how much of it they cover. */
    GLYPH_DENSITY1,
    GLYPH_DENSITY2,
    GLYPH_DENSITY3,
    GLYPH_HATCH,      /* gaps, lost data */
    GLYPH_SPAN_OPEN,  /* around a label where colour does not show the edge: [name---] */
    GLYPH_SPAN_FILL,
    GLYPH_SPAN_CLOSE,
    GLYPH_SPAN_SHORT,
    GLYPH_BORDER,     /* two spans meet in the cell */
    GLYPH_CUT_LEFT,   /* it goes on to the left / right of the screen */
    GLYPH_CUT_RIGHT,
    GLYPH_ELLIPSIS,
    GLYPH_RULE_H,     /* pane titles, rules */
    GLYPH_RULE_V,
    GLYPH_TICK,       /* a tick of the ruler */
    GLYPH_POINTER,    /* the selected row, in the gutter */
    GLYPH_MARKED,     /* a marked row, in the gutter */
    GLYPH_FOLDED,     /* a thread or section that is folded / open */
    GLYPH_UNFOLDED,
    GLYPH_SORT_DOWN,
    GLYPH_SORT_UP,
    GLYPH_REC,        /* recording */
    GLYPH_REPLACEMENT, /* for what cannot be shown */
    GLYPH_PROGRESS,   /* the done part of a progress bar */
    GLYPH_PROGRESS_LEFT,
    GLYPH_COUNT
};

struct glyphs {
    enum glyph_tier tier;
    const char *name; /* "unicode" "vga" "ascii" */
    uint32_t cp[GLYPH_COUNT];
};

/* The table of a tier; lives for ever. */
const struct glyphs *glyphs_of(enum glyph_tier tier);

static inline uint32_t glyph(const struct glyphs *g, enum glyph what)
{
    return g->cp[what];
}

/* The tier that suits the locale (after setlocale) and TERM (NULL: unset): unicode when the codeset is
 * UTF-8 and wcwidth(3) gives an eighth block one column; vga for TERM=linux in a UTF-8 locale; ascii
 * else. */
enum glyph_tier glyph_tier_detect(const char *term);

/* "auto" gives glyph_tier_detect. */
int glyph_tier_parse(const char *name, const char *term, enum glyph_tier *tier, struct err *err);

/* Two columns by four rows of dots; bit n is dot n + 1 of the braille cell (Unicode block 2800). On
 * tiers without braille: one of the density glyphs by the number of dots, blank for none. */
uint32_t glyph_dots(const struct glyphs *g, uint8_t dots);

#endif
