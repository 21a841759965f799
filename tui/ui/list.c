#include "tui/ui/list.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/alloc.h"
#include "core/base/utf8.h"
#include "core/base/vec.h"
#include "tui/ui/list_layout.h"
#include "tui/ui/name.h"

struct list {
    const struct list_column *columns;
    size_t n_columns;
    struct list_rows rows;
    void *arg;

    size_t selected, top;
    uint64_t selected_id; /* 0: none */
    size_t shift_cols;    /* horizontal scroll of the stretching column */
    size_t sort;
    bool inverted, header;
    uint32_t hidden;
    VEC(uint64_t) marks; /* sorted */
    char *pattern;

    struct rect body; /* of the last draw, without the header */
    struct list_layout layout;
};

struct list *list_new(const struct list_column *columns, size_t n, const struct list_rows *rows,
                      void *arg)
{
    struct list *l = xcalloc(1, sizeof *l);
    l->columns = columns;
    l->n_columns = n < LIST_COLUMNS_MAX ? n : LIST_COLUMNS_MAX;
    l->rows = *rows;
    l->arg = arg;
    l->header = true;
    l->pattern = xstrdup("");
    l->body.rows = 1;
    list_refresh(l, false);
    return l;
}

void list_free(struct list *l)
{
    if (!l)
        return;
    vec_free(&l->marks);
    free(l->pattern);
    free(l);
}

static size_t count(const struct list *l)
{
    return l->rows.count(l->arg);
}

static size_t find_row(const struct list *l, uint64_t id, size_t near)
{
    size_t n = count(l);
    if (near < n && l->rows.identity(l->arg, near) == id)
        return near;
    if (l->rows.find)
        return l->rows.find(l->arg, id);
    for (size_t i = 0; i < n; i++)
        if (l->rows.identity(l->arg, i) == id)
            return i;
    return SIZE_MAX;
}

static void keep_in_view(struct list *l)
{
    size_t n = count(l), room = l->body.rows > 0 ? (size_t)l->body.rows : 1;
    if (l->selected < l->top)
        l->top = l->selected;
    if (l->selected >= l->top + room)
        l->top = l->selected - room + 1;
    if (l->top + room > n)
        l->top = n > room ? n - room : 0;
}

void list_select(struct list *l, size_t row)
{
    size_t n = count(l);
    l->selected = row < n ? row : n ? n - 1 : 0;
    l->selected_id = n ? l->rows.identity(l->arg, l->selected) : 0;
    keep_in_view(l);
}

void list_refresh(struct list *l, bool forget_marks)
{
    size_t row = l->selected_id ? find_row(l, l->selected_id, l->selected) : SIZE_MAX;
    list_select(l, row != SIZE_MAX ? row : l->selected);
    if (!forget_marks)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < l->marks.len; i++)
        if (find_row(l, l->marks.data[i], 0) != SIZE_MAX)
            l->marks.data[kept++] = l->marks.data[i];
    l->marks.len = kept;
}

size_t list_selected(const struct list *l)
{
    return count(l) ? l->selected : SIZE_MAX;
}

uint64_t list_selected_identity(const struct list *l)
{
    return count(l) ? l->selected_id : 0;
}

bool list_select_identity(struct list *l, uint64_t identity)
{
    size_t row = find_row(l, identity, l->selected);
    if (row != SIZE_MAX)
        list_select(l, row);
    return row != SIZE_MAX;
}

void list_set_header(struct list *l, bool shown)
{
    l->header = shown;
}

void list_hide_columns(struct list *l, uint32_t mask)
{
    l->hidden = mask;
}

void list_column_titles(const struct list *l, char *out, size_t size)
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t c = 0; c < l->n_columns && len < size; c++)
        if (!(l->hidden >> c & 1))
            len += (size_t)snprintf(out + len, size - len, "%s%s", len ? " " : "",
                                    l->columns[c].title);
}

int list_show_columns(struct list *l, const char *titles, struct err *err)
{
    uint32_t shown = 0;
    char *copy = xstrdup(titles), *save = NULL;
    int rc = 0;
    for (char *w = strtok_r(copy, " ,", &save); w && rc == 0; w = strtok_r(NULL, " ,", &save)) {
        size_t c = list_find_column(l, w);
        if (c == SIZE_MAX)
            rc = err_set(err, MTUI_E_INVAL, "there is no column %s", w);
        else
            shown |= 1u << c;
    }
    free(copy);
    if (rc == 0 && !shown)
        rc = err_set(err, MTUI_E_INVAL, "some column must be shown");
    if (rc == 0)
        list_hide_columns(l, ~shown);
    return rc;
}

void list_write_table(const struct list *l, FILE *file)
{
    const char *between = "";
    const bool marked = list_marked_rows(l) > 0;
    for (size_t c = 0; c < l->n_columns; c++)
        if (!(l->hidden >> c & 1))
            fprintf(file, "%s%s", between, l->rows.plain ? l->rows.fields[c] : l->columns[c].title),
                between = "\t";
    fputc('\n', file);
    for (size_t row = 0; row < l->rows.count(l->arg); row++) {
        if (marked && !list_row_is_marked(l, row))
            continue;
        between = "";
        for (size_t c = 0; c < l->n_columns; c++) {
            struct list_cell cell = {.cols = l->columns[c].cols};
            char clean[4 * LIST_CELL_MAX];
            if (l->hidden >> c & 1)
                continue;
            (l->rows.plain ? l->rows.plain : l->rows.cell)(l->arg, row, c, &cell);
            utf8_escape(clean, sizeof clean, cell.text, strlen(cell.text));
            fprintf(file, "%s%s", between, clean);
            between = "\t";
        }
        fputc('\n', file);
    }
}

size_t list_sort_column(const struct list *l)
{
    return l->sort;
}

bool list_sort_inverted(const struct list *l)
{
    return l->inverted;
}

void list_set_sort(struct list *l, size_t column, bool inverted)
{
    if (column < l->n_columns)
        l->sort = column;
    l->inverted = inverted;
}

size_t list_find_column(const struct list *l, const char *title)
{
    for (size_t i = 0; i < l->n_columns; i++)
        if (strcasecmp(l->columns[i].title, title) == 0)
            return i;
    return SIZE_MAX;
}

/* Where identity stands in the sorted marks, or where it would. */
static size_t mark_place(const struct list *l, uint64_t identity)
{
    size_t lo = 0, hi = l->marks.len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (l->marks.data[mid] < identity)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

size_t list_mark_count(const struct list *l)
{
    return l->marks.len;
}

bool list_is_marked(const struct list *l, uint64_t identity)
{
    size_t i = mark_place(l, identity);
    return i < l->marks.len && l->marks.data[i] == identity;
}

bool list_row_is_marked(const struct list *l, size_t row)
{
    return list_is_marked(l, l->rows.identity(l->arg, row));
}

size_t list_marked_rows(const struct list *l)
{
    size_t n = 0, rows = l->marks.len ? count(l) : 0;
    for (size_t i = 0; i < rows; i++)
        n += list_row_is_marked(l, i);
    return n;
}

void list_set_mark(struct list *l, uint64_t identity, bool marked)
{
    size_t i = mark_place(l, identity);
    if (list_is_marked(l, identity) == marked)
        return;
    if (!marked) {
        vec_remove(&l->marks, i);
        return;
    }
    vec_push(&l->marks, identity);
    memmove(l->marks.data + i + 1, l->marks.data + i,
            (l->marks.len - 1 - i) * sizeof *l->marks.data);
    l->marks.data[i] = identity;
}

void list_clear_marks(struct list *l)
{
    l->marks.len = 0;
}

const char *list_pattern(const struct list *l)
{
    return l->pattern;
}

static bool row_matches(const struct list *l, size_t row)
{
    struct list_cell cell;
    for (size_t c = 0; c < l->n_columns; c++) {
        cell.text[0] = '\0';
        cell.cols = l->columns[c].cols;
        l->rows.cell(l->arg, row, c, &cell);
        if (list_text_find(cell.text, l->pattern))
            return true;
    }
    return false;
}

/* Goes to the next match from row `from` (included) in steps of ±1, around the end. */
static bool seek_match(struct list *l, size_t from, bool forward)
{
    size_t n = count(l);
    if (!n || !l->pattern[0])
        return false;
    for (size_t i = 0; i < n; i++) {
        size_t row = forward ? (from + i) % n : (from + n - i % n) % n;
        if (row_matches(l, row)) {
            list_select(l, row);
            return true;
        }
    }
    return false;
}

bool list_search(struct list *l, const char *pattern)
{
    char *copy = xstrdup(pattern ? pattern : "");
    free(l->pattern);
    l->pattern = copy;
    return seek_match(l, l->selected, true);
}

size_t list_top(const struct list *l)
{
    return l->top;
}

int list_visible(const struct list *l)
{
    return l->body.rows;
}

static void move_by(struct list *l, ptrdiff_t rows)
{
    size_t n = count(l), at = l->selected;
    if (rows < 0)
        at = at > (size_t)-rows ? at - (size_t)-rows : 0;
    else
        at = n - at > (size_t)rows ? at + (size_t)rows : n ? n - 1 : 0;
    list_select(l, at);
}

static void sort_step(struct list *l, bool right)
{
    for (size_t i = 0; i < l->n_columns; i++) {
        l->sort = (l->sort + (right ? 1 : l->n_columns - 1)) % l->n_columns;
        if (!l->columns[l->sort].fixed && !(l->hidden >> l->sort & 1))
            return;
    }
}

static void toggle_mark(struct list *l)
{
    uint64_t id = list_selected_identity(l);
    if (!id)
        return;
    list_set_mark(l, id, !list_is_marked(l, id));
    move_by(l, 1);
}

static bool move_action(struct list *l, enum action act)
{
    ptrdiff_t page = l->body.rows > 1 ? l->body.rows - 1 : 1;
    switch ((int)act) {
    case ACT_UP:
        move_by(l, -1);
        return true;
    case ACT_DOWN:
        move_by(l, 1);
        return true;
    case ACT_PAGE_UP:
        move_by(l, -page);
        return true;
    case ACT_PAGE_DOWN:
        move_by(l, page);
        return true;
    case ACT_HALF_UP:
        move_by(l, -(page + 1) / 2);
        return true;
    case ACT_HALF_DOWN:
        move_by(l, (page + 1) / 2);
        return true;
    case ACT_FIRST:
        list_select(l, 0);
        return true;
    case ACT_LAST:
        list_select(l, SIZE_MAX);
        return true;
    default:
        return false;
    }
}

bool list_action(struct list *l, enum action act)
{
    size_t n = count(l);
    switch ((int)act) {
    case ACT_LEFT:
        l->shift_cols = l->shift_cols > 8 ? l->shift_cols - 8 : 0;
        return true;
    case ACT_RIGHT:
        l->shift_cols += l->shift_cols < LIST_CELL_MAX ? 8 : 0;
        return true;
    case ACT_MARK:
        toggle_mark(l);
        return true;
    case ACT_SORT_PREV:
    case ACT_SORT_NEXT:
        sort_step(l, act == ACT_SORT_NEXT);
        return true;
    case ACT_SORT_INVERT:
        l->inverted = !l->inverted;
        return true;
    case ACT_SEARCH_NEXT:
        return n && seek_match(l, l->selected + 1 < n ? l->selected + 1 : 0, true);
    case ACT_SEARCH_PREV:
        return n && seek_match(l, l->selected ? l->selected - 1 : n - 1, false);
    default:
        return move_action(l, act);
    }
}

static enum list_hit click_header(struct list *l, int col)
{
    size_t c = list_layout_column(&l->layout, col - l->body.col);
    if (c >= l->n_columns || l->columns[c].fixed)
        return LIST_MISS;
    if (c == l->sort)
        l->inverted = !l->inverted;
    else
        list_set_sort(l, c, false);
    return LIST_SORTED;
}

enum list_hit list_mouse(struct list *l, const struct mouse *m)
{
    int row = m->row - l->body.row;
    bool press = m->button == 1 && (m->kind == MOUSE_DOWN || m->kind == MOUSE_DOUBLE);
    if (m->col < l->body.col || m->col >= l->body.col + l->body.cols || row >= l->body.rows)
        return LIST_MISS;
    if (m->kind == MOUSE_WHEEL_UP || m->kind == MOUSE_WHEEL_DOWN) {
        move_by(l, m->kind == MOUSE_WHEEL_UP ? -3 : 3);
        return LIST_SELECTED;
    }
    if (row == -1 && l->header && press)
        return click_header(l, m->col);
    if (row < 0 || !press || l->top + (size_t)row >= count(l))
        return LIST_MISS;
    list_select(l, l->top + (size_t)row);
    return m->kind == MOUSE_DOUBLE ? LIST_OPENED : LIST_SELECTED;
}

/* The title of a column, with the arrow of the sort column. */
static void draw_header(const struct list *l, struct surface *s, struct rect r,
                        const struct glyphs *g)
{
    struct style style = {.ink = ROLE_HEADER, .paper = ROLE_HEADER};
    surface_fill(s, (struct rect){r.row, r.col, 1, r.cols}, ' ', style);
    for (size_t i = 0; i < l->layout.n; i++) {
        const struct list_place *p = &l->layout.place[i];
        const struct list_column *c = &l->columns[p->column];
        bool sorted = p->column == l->sort && !c->fixed;
        int cols = (int)utf8_cols(c->title, strlen(c->title));
        int at = c->right ? p->cols - cols : 0;
        if (at < 0)
            at = 0;
        surface_text(s, r.row, r.col + p->col + at, p->cols - at, c->title, SIZE_MAX, style);
        /* The arrow takes the blank before or behind the title. */
        int arrow = c->right ? p->col + at - 1 : p->col + (cols < p->cols ? cols : p->cols);
        if (sorted && arrow >= 0 && arrow < r.cols)
            surface_put(s, r.row, r.col + arrow,
                        glyph(g, c->rising != l->inverted ? GLYPH_SORT_UP : GLYPH_SORT_DOWN), style);
    }
}

static void shorten(struct list_cell *cell, int cols, const struct glyphs *g)
{
    char fit[LIST_CELL_MAX];
    const size_t len =
        name_fit(fit, sizeof fit, cell->text, cell->overload, cols > 0 ? (size_t)cols : 0, glyph(g, GLYPH_ELLIPSIS));
    memcpy(cell->text, fit, len + 1);
}

static void draw_row(const struct list *l, struct surface *s, int y, size_t row,
                     const struct glyphs *g)
{
    uint64_t id = l->rows.identity(l->arg, row);
    bool selected = row == l->selected, marked = list_is_marked(l, id);
    struct style base = {0};
    if (marked)
        base.ink = ROLE_MARKED;
    if (selected)
        base = (struct style){.ink = ROLE_SELECT, .paper = ROLE_SELECT};
    surface_fill(s, (struct rect){y, l->body.col, 1, l->body.cols}, ' ', base);
    if (selected)
        surface_put(s, y, l->body.col, glyph(g, GLYPH_POINTER), base);
    else if (marked)
        surface_put(s, y, l->body.col, glyph(g, GLYPH_MARKED), base);
    if (selected && marked)
        surface_put(s, y, l->body.col + 1, glyph(g, GLYPH_MARKED), base);
    for (size_t i = 0; i < l->layout.n; i++) {
        const struct list_place *p = &l->layout.place[i];
        struct list_cell cell = {.cols = p->cols};
        l->rows.cell(l->arg, row, p->column, &cell);
        if (selected || (marked && !cell.style.ink)) {
            cell.style.ink = base.ink;
            cell.style.paper = base.paper;
        }
        const size_t shift_cols = p->column == l->layout.stretched ? l->shift_cols : 0;
        if (l->columns[p->column].name && !shift_cols)
            shorten(&cell, p->cols, g);
        list_draw_cell(s, y, l->body.col + p->col, p->cols, &cell, l->columns[p->column].right, shift_cols, l->pattern,
                       g);
    }
}

void list_draw(struct list *l, struct surface *s, struct rect r, const struct glyphs *g)
{
    size_t n = count(l);
    int header = l->header && r.rows > 0;
    l->body = (struct rect){r.row + header, r.col, r.rows - header, r.cols};
    if (r.rows <= 0 || r.cols <= 0)
        return;
    list_layout_make(&l->layout, l->columns, l->n_columns, l->hidden, r.cols);
    /* The rows may have changed since the last refresh; never select what is not there. */
    if (l->selected >= n)
        list_select(l, l->selected);
    keep_in_view(l);
    if (header)
        draw_header(l, s, r, g);
    for (int y = 0; y < l->body.rows && l->top + (size_t)y < n; y++)
        draw_row(l, s, l->body.row + y, l->top + (size_t)y, g);
}
