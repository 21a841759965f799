/* Colours as numbers: tiers, conversion, contrast, and the palette that functions are hashed into.
 *
 * Sources: the 256-colour palette is xterm's (6×6×6 cube with steps 0 95 135 175 215 255 from 16, greys
 * 8 + 10n from 232); relative luminance and contrast ratio follow WCAG 2.1; L*a*b* and ΔE76 follow
 * CIE 1976 with the D65 white point; FNV-1a follows draft-eastlake-fnv. */
#ifndef MTUI_TUI_COLOR_H
#define MTUI_TUI_COLOR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"

enum color_tier { COLOR_MONO, COLOR_16, COLOR_256, COLOR_RGB, COLOR_TIERS };

enum color_kind { COLOR_KIND_DEFAULT, COLOR_KIND_INDEX, COLOR_KIND_RGB };

struct color {
    enum color_kind kind;
    uint32_t value; /* index 0–255, or 0xrrggbb */
};

const char *color_tier_name(enum color_tier tier);
/* "mono" "16" "256" "rgb"; "auto" leaves *tier as it is (the caller has put the detected one there). */
int color_tier_parse(const char *name, enum color_tier *tier, struct err *err);

/* "default", 0–255, #rrggbb, or one of black red green yellow blue magenta cyan white, with "bright-"
 * before it for 8–15. */
int color_parse(const char *text, struct color *color, struct err *err);

/* 0xrrggbb of an index, as xterm shows it. */
uint32_t color_index_rgb(uint8_t index);

/* What a colour becomes on a tier: the nearest index (ΔE) on 256 (of 16–255) and on 16; indices below 16
 * stay; default stays; mono makes everything default. */
struct color color_on_tier(struct color c, enum color_tier tier);

/* Contrast ratio 1–21 of two 0xrrggbb colours. */
double color_contrast(uint32_t a, uint32_t b);

/* ΔE76 of two 0xrrggbb colours. */
double color_distance(uint32_t a, uint32_t b);

/* ---- Functions ---- */

/* Entries that function names are spread over on a tier: 2, 10, 16, 32 (≤ SURFACE_FN_COLORS). */
unsigned color_palette_size(enum color_tier tier);
/* Entry n: its fill, and the text on it. */
struct color color_palette_fill(enum color_tier tier, unsigned n);
struct color color_palette_text(enum color_tier tier, unsigned n);

/* The palette entry (0 to size − 1) of a function's demangled name: FNV-1a of the name without
 * arguments, clone suffixes (.cold, .part.0, .constprop.1, .isra.0, .lto_priv.0, [clone …]) and digits,
 * so that what a reader takes for one function has one colour. */
unsigned color_of_function(const char *name, unsigned size);
/* The same for a module: FNV-1a of its base name. */
unsigned color_of_module(const char *path, unsigned size);

/* A child that got its parent's entry moves one on. */
static inline unsigned color_apart(unsigned child, unsigned parent, unsigned size)
{
    return child == parent ? (child + 1) % size : child;
}

#endif
