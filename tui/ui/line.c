#include "tui/ui/line.h"

#include <stdio.h>
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

void line_cut_left(struct surface *s, int row, int col, int cols, const char *text, struct style style,
                   const struct glyphs *g)
{
    size_t width = utf8_cols(text, strlen(text)), gone = 0;
    if (cols <= 0)
        return;
    if (width <= (size_t)cols) {
        surface_text(s, row, col, cols, text, SIZE_MAX, style);
        return;
    }
    const size_t over = width - (size_t)cols + 1;
    for (uint32_t cp; *text; gone += (size_t)utf8_cp_cols(cp)) {
        size_t n = utf8_decode(text, strlen(text), &cp);
        if (gone >= over && utf8_cp_cols(cp) > 0)
            break;
        text += n;
    }
    surface_put(s, row, col, glyph(g, GLYPH_ELLIPSIS), style);
    surface_text(s, row, col + 1, cols - 1, text, SIZE_MAX, style);
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

static size_t facts_cols(const char *between, const struct line_fact *facts, size_t n, int worst)
{
    size_t cols = 0, space = utf8_cols(between, strlen(between));
    for (size_t i = 0; i < n; i++)
        if (facts[i].rank <= worst && facts[i].text[0])
            cols += utf8_cols(facts[i].text, strlen(facts[i].text)) + (cols ? space : 0);
    return cols;
}

bool line_join(char *out, size_t size, int cols, const char *between, const struct line_fact *facts, size_t n)
{
    int highest = 0, worst;
    for (size_t i = 0; i < n; i++)
        highest = facts[i].rank > highest ? facts[i].rank : highest;
    for (worst = highest; worst > 0 && (cols < 0 || facts_cols(between, facts, n, worst) > (size_t)cols); worst--)
        ;
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        if (facts[i].rank > worst || !facts[i].text[0] || len >= size)
            continue;
        int wrote = snprintf(out + len, size - len, "%s%s", len ? between : "", facts[i].text);
        len += wrote > 0 ? (size_t)wrote : 0;
    }
    return worst == highest;
}

/* Bytes of text that fit on a line when it is broken at a blank; 0: all of it, or it cannot be broken. */
static size_t break_at(const char *text, int cols)
{
    size_t fit = 0;
    if (cols <= 0 || utf8_cols(text, strlen(text)) <= (size_t)cols)
        return 0;
    for (const char *p = strchr(text, ' '); p && utf8_cols(text, (size_t)(p - text)) <= (size_t)cols;
         p = strchr(p + 1, ' '))
        fit = (size_t)(p - text);
    return fit;
}

void line_wrap(struct surface *s, struct rect r, const char *text, struct style style, const struct glyphs *g)
{
    size_t fit;
    for (; r.rows > 1 && (fit = break_at(text, r.cols)) > 0; r.row++, r.rows--) {
        surface_text(s, r.row, r.col, r.cols, text, fit, style);
        text += fit + 1;
    }
    if (r.rows > 0)
        line_cut(s, r.row, r.col, r.cols, text, style, g);
}

int line_rows(const char *text, int cols)
{
    int rows = *text ? 1 : 0;
    for (size_t fit; (fit = break_at(text, cols)) > 0; rows++)
        text += fit + 1;
    return rows;
}
