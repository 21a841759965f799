#include "tui/term/glyph.h"

#include <langinfo.h>
#include <string.h>
#include <wchar.h>

static const struct glyphs tiers[GLYPH_TIERS] = {
    [GLYPHS_UNICODE] = {GLYPHS_UNICODE, "unicode", {
        [GLYPH_LEFT1] = 0x258f,       [GLYPH_LEFT2] = 0x258e,      [GLYPH_LEFT3] = 0x258d,
        [GLYPH_LEFT4] = 0x258c,       [GLYPH_LEFT5] = 0x258b,      [GLYPH_LEFT6] = 0x258a,
        [GLYPH_LEFT7] = 0x2589,       [GLYPH_FULL] = 0x2588,       [GLYPH_UPPER_HALF] = 0x2580,
        [GLYPH_BAR1] = 0x2581,        [GLYPH_BAR2] = 0x2582,       [GLYPH_BAR3] = 0x2583,
        [GLYPH_BAR4] = 0x2584,        [GLYPH_BAR5] = 0x2585,       [GLYPH_BAR6] = 0x2586,
        [GLYPH_BAR7] = 0x2587,        [GLYPH_BAR8] = 0x2588,       [GLYPH_HAIR_LEFT] = 0x258f,
        [GLYPH_HAIR_MID] = 0x2502,    [GLYPH_HAIR_RIGHT] = 0x2595, [GLYPH_DENSITY1] = 0x2591,
        [GLYPH_DENSITY2] = 0x2592,    [GLYPH_DENSITY3] = 0x2593,   [GLYPH_HATCH] = 0x2571,
        [GLYPH_SPAN_OPEN] = '[',      [GLYPH_SPAN_FILL] = ' ',     [GLYPH_SPAN_CLOSE] = ']',
        [GLYPH_SPAN_SHORT] = 0x2502,  [GLYPH_BORDER] = 0x2502,     [GLYPH_CUT_LEFT] = 0x2039,
        [GLYPH_CUT_RIGHT] = 0x203a,   [GLYPH_ELLIPSIS] = 0x2026,   [GLYPH_RULE_H] = 0x2500,
        [GLYPH_RULE_V] = 0x2502,      [GLYPH_TICK] = 0x2502,       [GLYPH_POINTER] = '>',
        [GLYPH_MARKED] = '*',         [GLYPH_FOLDED] = 0x25b8,     [GLYPH_UNFOLDED] = 0x25be,
        [GLYPH_SORT_DOWN] = 0x25bc,   [GLYPH_SORT_UP] = 0x25b2,    [GLYPH_REC] = 0x25cf,
        [GLYPH_REPLACEMENT] = 0xfffd, [GLYPH_PROGRESS] = 0x2588,   [GLYPH_PROGRESS_LEFT] = 0x2591,
    }},
    [GLYPHS_VGA] = {GLYPHS_VGA, "vga", {
        [GLYPH_LEFT1] = 0x2502,       [GLYPH_LEFT2] = 0x2502,      [GLYPH_LEFT3] = 0x258c,
        [GLYPH_LEFT4] = 0x258c,       [GLYPH_LEFT5] = 0x258c,      [GLYPH_LEFT6] = 0x2588,
        [GLYPH_LEFT7] = 0x2588,       [GLYPH_FULL] = 0x2588,       [GLYPH_UPPER_HALF] = 0x2580,
        [GLYPH_BAR1] = '_',           [GLYPH_BAR2] = '_',          [GLYPH_BAR3] = 0x2584,
        [GLYPH_BAR4] = 0x2584,        [GLYPH_BAR5] = 0x2584,       [GLYPH_BAR6] = 0x2584,
        [GLYPH_BAR7] = 0x2588,        [GLYPH_BAR8] = 0x2588,       [GLYPH_HAIR_LEFT] = 0x2502,
        [GLYPH_HAIR_MID] = 0x2502,    [GLYPH_HAIR_RIGHT] = 0x2502, [GLYPH_DENSITY1] = 0x2591,
        [GLYPH_DENSITY2] = 0x2592,    [GLYPH_DENSITY3] = 0x2593,   [GLYPH_HATCH] = '/',
        [GLYPH_SPAN_OPEN] = '[',      [GLYPH_SPAN_FILL] = ' ',     [GLYPH_SPAN_CLOSE] = ']',
        [GLYPH_SPAN_SHORT] = 0x2502,  [GLYPH_BORDER] = 0x2502,     [GLYPH_CUT_LEFT] = '<',
        [GLYPH_CUT_RIGHT] = '>',      [GLYPH_ELLIPSIS] = '~',      [GLYPH_RULE_H] = 0x2500,
        [GLYPH_RULE_V] = 0x2502,      [GLYPH_TICK] = 0x2502,       [GLYPH_POINTER] = '>',
        [GLYPH_MARKED] = '*',         [GLYPH_FOLDED] = '>',        [GLYPH_UNFOLDED] = 'v',
        [GLYPH_SORT_DOWN] = 'v',      [GLYPH_SORT_UP] = '^',       [GLYPH_REC] = '*',
        [GLYPH_REPLACEMENT] = '?',    [GLYPH_PROGRESS] = 0x2588,   [GLYPH_PROGRESS_LEFT] = 0x2591,
    }},
    [GLYPHS_ASCII] = {GLYPHS_ASCII, "ascii", {
        [GLYPH_LEFT1] = '.',          [GLYPH_LEFT2] = '.',         [GLYPH_LEFT3] = ':',
        [GLYPH_LEFT4] = ':',          [GLYPH_LEFT5] = ':',         [GLYPH_LEFT6] = '+',
        [GLYPH_LEFT7] = '+',          [GLYPH_FULL] = '#',          [GLYPH_UPPER_HALF] = '"',
        [GLYPH_BAR1] = '.',           [GLYPH_BAR2] = '.',          [GLYPH_BAR3] = ':',
        [GLYPH_BAR4] = ':',           [GLYPH_BAR5] = '+',          [GLYPH_BAR6] = '+',
        [GLYPH_BAR7] = '#',           [GLYPH_BAR8] = '#',          [GLYPH_HAIR_LEFT] = '|',
        [GLYPH_HAIR_MID] = '|',       [GLYPH_HAIR_RIGHT] = '|',    [GLYPH_DENSITY1] = '.',
        [GLYPH_DENSITY2] = ':',       [GLYPH_DENSITY3] = '+',      [GLYPH_HATCH] = 'x',
        [GLYPH_SPAN_OPEN] = '[',      [GLYPH_SPAN_FILL] = '-',     [GLYPH_SPAN_CLOSE] = ']',
        [GLYPH_SPAN_SHORT] = '|',     [GLYPH_BORDER] = '|',        [GLYPH_CUT_LEFT] = '<',
        [GLYPH_CUT_RIGHT] = '>',      [GLYPH_ELLIPSIS] = '~',      [GLYPH_RULE_H] = '-',
        [GLYPH_RULE_V] = '|',         [GLYPH_TICK] = '|',          [GLYPH_POINTER] = '>',
        [GLYPH_MARKED] = '*',         [GLYPH_FOLDED] = '>',        [GLYPH_UNFOLDED] = 'v',
        [GLYPH_SORT_DOWN] = 'v',      [GLYPH_SORT_UP] = '^',       [GLYPH_REC] = '*',
        [GLYPH_REPLACEMENT] = '?',    [GLYPH_PROGRESS] = '#',      [GLYPH_PROGRESS_LEFT] = '.',
    }},
};

const struct glyphs *glyphs_of(enum glyph_tier tier)
{
    return &tiers[tier];
}

enum glyph_tier glyph_tier_detect(const char *term)
{
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        return GLYPHS_ASCII;
    if (term && strcmp(term, "linux") == 0)
        return GLYPHS_VGA;
    return wcwidth((wchar_t)tiers[GLYPHS_UNICODE].cp[GLYPH_LEFT3]) == 1 ? GLYPHS_UNICODE
                                                                        : GLYPHS_ASCII;
}

int glyph_tier_parse(const char *name, const char *term, enum glyph_tier *tier, struct err *err)
{
    if (strcmp(name, "auto") == 0) {
        *tier = glyph_tier_detect(term);
        return 0;
    }
    for (int t = 0; t < GLYPH_TIERS; t++) {
        if (strcmp(name, tiers[t].name) == 0) {
            *tier = (enum glyph_tier)t;
            return 0;
        }
    }
    return err_set(err, MTUI_E_INVAL, "'%s' is no set of glyphs: auto, unicode, vga or ascii", name);
}

uint32_t glyph_dots(const struct glyphs *g, uint8_t dots)
{
    if (g->tier == GLYPHS_UNICODE)
        return 0x2800u + dots;
    int n = __builtin_popcount(dots);
    return n == 0 ? ' ' : g->cp[n <= 2 ? GLYPH_DENSITY1 : n <= 5 ? GLYPH_DENSITY2 : GLYPH_DENSITY3];
}
