#include "tui/term/surface.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/utf8.h"

struct surface {
    int rows, cols;
    struct cell *cells;
    int cursor_row, cursor_col;
    uint32_t replacement;
    bool unicode;
};

static const struct cell blank = {.cp = ' '};

struct surface *surface_new(int rows, int cols)
{
    struct surface *s = xcalloc(1, sizeof *s);
    s->replacement = UTF8_INVALID;
    s->unicode = true;
    surface_resize(s, rows, cols);
    return s;
}

void surface_free(struct surface *s)
{
    if (!s)
        return;
    free(s->cells);
    free(s);
}

void surface_resize(struct surface *s, int rows, int cols)
{
    s->rows = rows > 0 ? rows : 0;
    s->cols = cols > 0 ? cols : 0;
    free(s->cells);
    s->cells = xcalloc((size_t)s->rows * (size_t)s->cols, sizeof *s->cells);
    surface_clear(s);
}

int surface_rows(const struct surface *s)
{
    return s->rows;
}

int surface_cols(const struct surface *s)
{
    return s->cols;
}

void surface_clear(struct surface *s)
{
    size_t n = (size_t)s->rows * (size_t)s->cols;
    for (size_t i = 0; i < n; i++)
        s->cells[i] = blank;
    s->cursor_row = -1;
    s->cursor_col = 0;
}

void surface_set_cursor(struct surface *s, int row, int col)
{
    bool inside = row >= 0 && row < s->rows && col >= 0 && col < s->cols;
    s->cursor_row = inside ? row : -1;
    s->cursor_col = inside ? col : 0;
}

void surface_get_cursor(const struct surface *s, int *row, int *col)
{
    *row = s->cursor_row;
    *col = s->cursor_col;
}

static struct cell *cell_at(const struct surface *s, int row, int col)
{
    if (row < 0 || row >= s->rows || col < 0 || col >= s->cols)
        return NULL;
    return &s->cells[(size_t)row * (size_t)s->cols + (size_t)col];
}

const struct cell *surface_at(const struct surface *s, int row, int col)
{
    return cell_at(s, row, col);
}

/* Before a cell changes: a wide character that it is half of loses its other half too. */
static void break_wide(struct surface *s, int row, int col)
{
    struct cell *c = cell_at(s, row, col);
    struct cell *right = cell_at(s, row, col + 1);
    if (c->cp == 0 && col > 0) {
        struct cell *left = c - 1;
        left->cp = ' ';
        left->mark = 0;
    } else if (right && right->cp == 0) {
        right->cp = ' ';
    }
}

void surface_put_cell(struct surface *s, int row, int col, struct cell cell)
{
    struct cell *c = cell_at(s, row, col);
    if (!c)
        return;
    bool unsafe = utf8_is_unsafe(cell.cp) || (!s->unicode && cell.cp > 0x7e);
    int width = cell.cp ? utf8_cp_cols(cell.cp) : 0;
    if (unsafe || width == 0)
        cell.cp = s->replacement;
    if (unsafe || !s->unicode)
        cell.mark = 0;
    break_wide(s, row, col);
    struct cell *right = width == 2 ? cell_at(s, row, col + 1) : NULL;
    if (width == 2 && !unsafe && !right)
        cell.cp = ' ';
    *c = cell;
    if (!right)
        return;
    break_wide(s, row, col + 1);
    *right = cell;
    right->mark = 0;
    if (!unsafe)
        right->cp = 0;
}

void surface_put(struct surface *s, int row, int col, uint32_t cp, struct style style)
{
    surface_put_cell(s, row, col,
                     (struct cell){.cp = cp, .ink = style.ink, .paper = style.paper,
                                   .attr = style.attr});
}

/* The part of r that lies on the surface. */
static struct rect clip(const struct surface *s, struct rect r)
{
    if (r.row < 0) {
        r.rows += r.row;
        r.row = 0;
    }
    if (r.col < 0) {
        r.cols += r.col;
        r.col = 0;
    }
    if (r.rows > s->rows - r.row)
        r.rows = s->rows - r.row;
    if (r.cols > s->cols - r.col)
        r.cols = s->cols - r.col;
    return r;
}

void surface_fill(struct surface *s, struct rect r, uint32_t cp, struct style style)
{
    r = clip(s, r);
    int step = utf8_cp_cols(cp) == 2 ? 2 : 1;
    for (int y = r.row; y < r.row + r.rows; y++)
        for (int x = r.col; x < r.col + r.cols; x += step)
            surface_put(s, y, x, x + step > r.col + r.cols ? ' ' : cp, style);
}

void surface_restyle(struct surface *s, struct rect r, struct style style)
{
    r = clip(s, r);
    for (int y = r.row; y < r.row + r.rows; y++) {
        for (int x = r.col; x < r.col + r.cols; x++) {
            struct cell *c = cell_at(s, y, x);
            c->ink = style.ink;
            c->paper = style.paper;
            c->attr = style.attr;
        }
    }
}

/* Puts a combining mark onto the cell before col, unless it has one. */
static void add_mark(struct surface *s, int row, int col, uint32_t cp)
{
    struct cell *c = cell_at(s, row, col - 1);
    if (c && c->cp == 0)
        c = cell_at(s, row, col - 2);
    if (c && c->cp && c->mark == 0 && s->unicode && !utf8_is_unsafe(cp))
        c->mark = cp;
}

int surface_text(struct surface *s, int row, int col, int max_cols, const char *text, size_t len,
                 struct style style)
{
    int used = 0;
    if (len == SIZE_MAX)
        len = strlen(text);
    for (size_t at = 0; at < len;) {
        uint32_t cp;
        size_t n = utf8_decode(text + at, len - at, &cp);
        int width = utf8_cp_cols(cp);
        at += n;
        if (width == 0) {
            if (used > 0)
                add_mark(s, row, col + used, cp);
            continue;
        }
        if (used >= max_cols)
            break;
        if (width == 2 && (used + 2 > max_cols || col + used == -1)) {
            /* Half of it would be cut: what is left of it is blank. */
            surface_put(s, row, col + used, ' ', style);
            surface_put(s, row, col + used + 1 < col + max_cols ? col + used + 1 : -1, ' ', style);
            used += width < max_cols - used ? width : max_cols - used;
            continue;
        }
        surface_put(s, row, col + used, cp, style);
        used += width;
    }
    return used;
}

int surface_printf(struct surface *s, int row, int col, int max_cols, struct style style,
                   const char *fmt, ...)
{
    char small[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n < 0)
        return 0;
    if ((size_t)n < sizeof small)
        return surface_text(s, row, col, max_cols, small, (size_t)n, style);
    char *big = xmalloc((size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(big, (size_t)n + 1, fmt, ap);
    va_end(ap);
    int used = surface_text(s, row, col, max_cols, big, (size_t)n, style);
    free(big);
    return used;
}

void surface_set_replacement(struct surface *s, uint32_t cp, bool unicode)
{
    s->replacement = cp;
    s->unicode = unicode;
}
