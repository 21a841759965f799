#include "tui/trace/source_draw.h"

#include <string.h>

#include "core/base/utf8.h"
#include "tui/term/theme.h"
#include "tui/ui/line.h"

/* Source text with tabs as eight columns. */
static void expand_tabs(char *out, size_t size, const char *line)
{
    size_t n = 0, col = 0;
    for (size_t at = 0, len = strlen(line); at < len && n + 9 < size;) {
        if (line[at] == '\t') {
            do
                out[n++] = ' ';
            while (++col % 8);
            at++;
            continue;
        }
        if (line[at] == '\r') {
            at++;
            continue;
        }
        uint32_t cp;
        size_t bytes = utf8_decode(line + at, len - at, &cp);
        memcpy(out + n, line + at, bytes);
        n += bytes;
        col += (size_t)utf8_cp_cols(cp);
        at += bytes;
    }
    out[n] = '\0';
}

void source_draw_line(struct surface *s, struct rect r, const char *number, int number_cols,
                      const char *text, bool here, const struct glyphs *g)
{
    const struct style source = {.ink = ROLE_SOURCE}, dim = {.ink = ROLE_DIM};
    const struct style bold = {.ink = ROLE_SOURCE, .attr = CELL_BOLD};
    char line[1024];
    expand_tabs(line, sizeof line, text);
    if (here)
        surface_put(s, r.row, r.col + 1, glyph(g, GLYPH_POINTER), bold);
    int at = r.col + 3;
    surface_text(s, r.row, at, number_cols, number, SIZE_MAX, here ? bold : dim);
    at += number_cols + 2;
    line_cut(s, r.row, at, r.col + r.cols - at, line, here ? bold : source, g);
}
