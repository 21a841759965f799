/* What the characters and colours of the Timeline mean, for the help screen. */
#ifndef MTUI_TUI_HELP_LEGEND_H
#define MTUI_TUI_HELP_LEGEND_H

#include <stddef.h>
#include <stdint.h>

#include "tui/term/glyph.h"

#define LEGEND_SAMPLE_MAX 48

struct legend_line {
    char sample[LEGEND_SAMPLE_MAX]; /* as it is drawn, UTF-8 */
    uint16_t ink, paper;            /* roles */
    const char *text;
};

/* Line i; false behind the last. */
bool help_legend(const struct glyphs *g, size_t i, struct legend_line *out);

#endif
