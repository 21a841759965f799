#include "tui/ui/list_layout.h"

#include <ctype.h>
#include <string.h>

#include "core/base/utf8.h"

/* The width that the columns left over would take. */
static int total_cols(const struct list_column *columns, size_t n, const bool *gone)
{
    int total = LIST_GUTTER;
    int shown = 0;
    for (size_t i = 0; i < n; i++) {
        if (gone[i])
            continue;
        total += columns[i].cols + (shown ? 1 : 0);
        shown++;
    }
    return total;
}

static bool drop_one(const struct list_column *columns, size_t n, bool *gone)
{
    size_t worst = n;
    for (size_t i = 0; i < n; i++)
        if (!gone[i] && columns[i].priority > 0 &&
            (worst == n || columns[i].priority >= columns[worst].priority))
            worst = i;
    if (worst == n)
        return false;
    gone[worst] = true;
    return true;
}

void list_layout_make(struct list_layout *out, const struct list_column *columns, size_t n,
                      uint32_t hidden, int cols)
{
    bool gone[LIST_COLUMNS_MAX] = {false};
    out->n = 0;
    out->stretched = SIZE_MAX;
    for (size_t i = 0; i < n; i++)
        gone[i] = hidden >> i & 1;
    while (total_cols(columns, n, gone) > cols && drop_one(columns, n, gone))
        ;
    int spare = cols - total_cols(columns, n, gone);
    for (size_t i = 0; i < n; i++)
        if (!gone[i] && columns[i].stretch)
            out->stretched = i;
    spare = spare > 0 ? spare : 0;
    int grown[LIST_COLUMNS_MAX] = {0}, share = spare / 4;
    for (size_t i = 0; i < n; i++)
        if (!gone[i] && columns[i].most > columns[i].cols) {
            grown[i] = share < columns[i].most - columns[i].cols ? share : columns[i].most - columns[i].cols;
            spare -= grown[i];
        }
    if (out->stretched != SIZE_MAX)
        grown[out->stretched] += spare;
    int at = LIST_GUTTER;
    for (size_t i = 0; i < n; i++) {
        if (gone[i] || at >= cols)
            continue;
        int width = columns[i].cols + grown[i];
        if (width > cols - at)
            width = cols - at;
        out->place[out->n++] = (struct list_place){i, at, width};
        at += width + 1;
    }
}

size_t list_layout_column(const struct list_layout *layout, int col)
{
    for (size_t i = 0; i < layout->n; i++)
        if (col >= layout->place[i].col && col <= layout->place[i].col + layout->place[i].cols)
            return layout->place[i].column;
    return SIZE_MAX;
}

static bool has_upper(const char *s)
{
    for (; *s; s++)
        if (isupper((unsigned char)*s))
            return true;
    return false;
}

const char *list_text_find(const char *text, const char *pattern)
{
    if (!pattern[0])
        return NULL;
    return has_upper(pattern) ? strstr(text, pattern) : strcasestr(text, pattern);
}

/* Draws characters that the view marked as matched. */
static void draw_matched(struct surface *s, int row, int col, int cols, const char *text,
                         size_t len, uint64_t matched, struct style style)
{
    int x = 0;
    size_t at = 0;
    for (int i = 0; i < 64 && at < len; i++) {
        uint32_t cp;
        size_t n = utf8_decode(text + at, len - at, &cp);
        int w = utf8_cp_cols(cp);
        if (x + w > cols)
            return;
        if (matched >> i & 1)
            surface_text(s, row, col + x, w, text + at, n, style);
        x += w;
        at += n;
    }
}

void list_draw_cell(struct surface *s, int row, int col, int cols, const struct list_cell *cell,
                    bool right, size_t shift_cols, const char *pattern, const struct glyphs *g)
{
    const char *text = cell->text;
    size_t len = strlen(text), width = utf8_cols(text, len), skipped = 0;
    /* Scrolled no further than to where the end of the text is seen. */
    if (width <= (size_t)cols)
        shift_cols = 0;
    else if (shift_cols > width - (size_t)cols)
        shift_cols = width - (size_t)cols;
    size_t skip = shift_cols ? utf8_cut(text, len, shift_cols, &skipped) : 0;
    text += skip;
    len -= skip;
    width -= skipped;
    int pad = right && width < (size_t)cols ? cols - (int)width : 0;
    surface_text(s, row, col + pad, cols - pad, text, len, cell->style);
    struct style match = cell->style;
    match.ink = match.paper = ROLE_MATCH;
    const char *hit = list_text_find(text, pattern);
    while (hit) {
        size_t before = utf8_cols(text, (size_t)(hit - text));
        if (before >= (size_t)(cols - pad))
            break;
        surface_text(s, row, col + pad + (int)before, cols - pad - (int)before, hit,
                     strlen(pattern), match);
        hit = list_text_find(hit + strlen(pattern), pattern);
    }
    if (cell->matched && !skip)
        draw_matched(s, row, col + pad, cols - pad, text, len, cell->matched, match);
    if (width > (size_t)cols && cols > 0)
        surface_put(s, row, col + cols - 1, glyph(g, GLYPH_ELLIPSIS), cell->style);
    if (skip && cols > 0)
        surface_put(s, row, col, glyph(g, GLYPH_ELLIPSIS), cell->style);
}
