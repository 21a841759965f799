#include "tui/ui/line.h"

#include <string.h>

#include "core/base/utf8.h"

void line_cut(struct surface *s, int row, int col, int cols, const char *text, struct style style,
              const struct glyphs *g)
{
    if (cols <= 0)
        return;
    surface_text(s, row, col, cols, text, SIZE_MAX, style);
    if (utf8_cols(text, strlen(text)) > (size_t)cols)
        surface_put(s, row, col + cols - 1, glyph(g, GLYPH_ELLIPSIS), style);
}

/* Bytes of the facts that fit whole, without the blanks behind them; 0: not even the first. */
static size_t whole_facts(const char *text, int cols)
{
    size_t fit = 0, begin = strspn(text, " ");
    for (const char *p = strstr(text + begin, "  "); p; p = strstr(p + strspn(p, " "), "  ")) {
        if (utf8_cols(text, (size_t)(p - text)) > (size_t)cols)
            break;
        fit = (size_t)(p - text);
    }
    return fit;
}

void line_draw(struct surface *s, int row, int col, int cols, const char *text, struct style style,
               const struct glyphs *g)
{
    size_t fit = cols > 0 && utf8_cols(text, strlen(text)) > (size_t)cols ? whole_facts(text, cols) : 0;
    if (fit > (size_t)cols / 2)
        surface_text(s, row, col, cols, text, fit, style);
    else
        line_cut(s, row, col, cols, text, style, g);
}

void line_wrap(struct surface *s, struct rect r, const char *text, struct style style, const struct glyphs *g)
{
    for (; r.rows > 1 && utf8_cols(text, strlen(text)) > (size_t)r.cols; r.row++, r.rows--) {
        size_t fit = 0;
        for (const char *p = strchr(text, ' '); p && utf8_cols(text, (size_t)(p - text)) <= (size_t)r.cols;
             p = strchr(p + 1, ' '))
            fit = (size_t)(p - text);
        if (fit == 0)
            break;
        surface_text(s, r.row, r.col, r.cols, text, fit, style);
        text += fit + 1;
    }
    if (r.rows > 0)
        line_cut(s, r.row, r.col, r.cols, text, style, g);
}
