#include "tui/ui/help_legend.h"

#include <stdio.h>

#include "core/base/utf8.h"
#include "tui/term/surface.h"

/* The sample is plain text, or up to three glyphs. */
static const struct entry {
    const char *plain;
    enum glyph glyphs[3];
    size_t n;
    uint16_t ink, paper;
    const char *text;
} entries[] = {
    {"name", {0}, 0, ROLE_FN0, ROLE_FN0, "one call, named where it fits"},
    {NULL, {GLYPH_LEFT2, GLYPH_LEFT4, GLYPH_LEFT6}, 3, ROLE_FN0, 0, "an edge, to parts of a column"},
    {NULL, {GLYPH_HAIR_LEFT, GLYPH_HAIR_MID, GLYPH_HAIR_RIGHT}, 3, ROLE_FN0, 0, "one call within its column"},
    {NULL, {GLYPH_DENSITY1, GLYPH_DENSITY2, GLYPH_DENSITY3}, 3, ROLE_FN0, 0, "several calls: Enter zooms in"},
    {NULL, {GLYPH_CUT_LEFT, GLYPH_CUT_RIGHT}, 2, ROLE_FN0, ROLE_FN0, "goes on there, or is inferred"},
    {NULL, {GLYPH_HATCH, GLYPH_HATCH, GLYPH_HATCH}, 3, ROLE_GAP, ROLE_GAP, "lost: nothing is known"},
    {NULL, {GLYPH_HATCH, GLYPH_HATCH, GLYPH_HATCH}, 3, ROLE_UNTRACED, ROLE_UNTRACED, "not traced, or no sample"},
    {NULL, {GLYPH_HATCH, GLYPH_HATCH, GLYPH_HATCH}, 3, ROLE_UNTRACED, ROLE_UNTRACED, "with words: not decoded yet"},
    {NULL, {GLYPH_RULE_H, GLYPH_RULE_H, GLYPH_RULE_H}, 3, ROLE_OFF_CPU, ROLE_OFF_CPU, "not running: off the CPU"},
    {"name", {0}, 0, ROLE_KERNEL, ROLE_KERNEL, "kernel code"},
    {"name", {0}, 0, ROLE_UNKNOWN, ROLE_UNKNOWN, "code without a name"},
    {"name", {0}, 0, ROLE_SELECT, ROLE_SELECT, "the selected call"},
    {"name", {0}, 0, ROLE_MATCH, ROLE_MATCH, "a match of the search"},
    {"!", {0}, 0, ROLE_MARK, ROLE_MARK, "a trigger fired"},
    {"a", {0}, 0, ROLE_MARK, ROLE_MARK, "a mark of yours"},
    {"A", {0}, 0, ROLE_RANGE, ROLE_RANGE, "the ends of the range: A, B"},
    {".", {0}, 0, ROLE_DIM, 0, "moved to another CPU, notes"},
};

bool help_legend(const struct glyphs *g, size_t i, struct legend_line *out)
{
    if (i >= sizeof entries / sizeof *entries)
        return false;
    const struct entry *e = &entries[i];
    *out = (struct legend_line){.ink = e->ink, .paper = e->paper, .text = e->text};
    size_t len = (size_t)snprintf(out->sample, sizeof out->sample, "%s", e->plain ? e->plain : "");
    for (size_t k = 0; k < e->n; k++)
        len += utf8_encode(glyph(g, e->glyphs[k]), out->sample + len);
    out->sample[len] = '\0';
    return true;
}
