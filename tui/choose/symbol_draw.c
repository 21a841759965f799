/* Screen Symbols: query, rows, panes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fmt.h"
#include "tui/ui/list_layout.h"
#include "tui/ui/model.h"
#include "tui/ui/settings.h"
#include "tui/choose/symbol_detail.h"
#include "tui/choose/symbol_view.h"

#define PANES_MIN_ROWS 20 /* below so many rows the panes fold away */
#define TRIGGER_ROWS   3

static const struct style dim = {ROLE_DIM, ROLE_DEFAULT, 0};
static const struct style warn = {ROLE_WARN, ROLE_DEFAULT, 0};

/* Text that ends one column before the right edge; returns the column where it begins. */
static int draw_right(struct surface *s, int row, struct rect r, const char *text, struct style style)
{
    int cols = (int)strlen(text), at = r.col + r.cols - cols - 1;
    if (at < r.col)
        at = r.col;
    surface_text(s, row, at, r.col + r.cols - at, text, SIZE_MAX, style);
    return at;
}

static void draw_query(struct symbol_view *v, struct surface *s, struct rect r)
{
    char right[160], a[FMT_MAX], b[FMT_MAX];
    static const char *const hints[] = {"fuzzy  ^R: regex (PCRE2)", "regex (PCRE2)  ^R: exact",
                                        "exact  ^R: fuzzy"};
    snprintf(right, sizeof right, "%s    %s / %s", r.cols >= 70 ? hints[v->mode] : match_mode_name(v->mode),
             fmt_count(a, symbol_rows_count(v->rows)), fmt_count(b, symbol_rows_total(v->rows)));
    int at = draw_right(s, r.row, r, right, dim);
    int cols = at - r.col - 2;
    if (cols > 3)
        prompt_draw(v->query, s, r.row, r.col + 1, cols, "> ",
                    (struct style){ROLE_PROMPT, ROLE_DEFAULT, CELL_BOLD}, v->m->glyphs);
    if (v->in_triggers)
        surface_set_cursor(s, -1, 0);
}

static void draw_facts(struct symbol_view *v, struct surface *s, struct rect r)
{
    size_t module = symbol_rows_module(v->rows);
    const struct modules *modules = symbol_rows_modules(v->rows);
    if (v->refused.code) {
        surface_text(s, r.row + 1, r.col + 3, r.cols - 3, v->refused.text, SIZE_MAX, warn);
        return;
    }
    int col = r.col + 3, end = r.col + r.cols;
    col += surface_text(s, r.row + 1, col, end - col, "module: ", SIZE_MAX, dim);
    col += surface_text(s, r.row + 1, col, r.cols / 4,
                        module == SIZE_MAX || !modules ? "all" : symbol_rows_module_name(v->rows, module),
                        SIZE_MAX, (struct style){0});
    int next = r.col + r.cols / 3;
    col = col + 2 > next ? col + 2 : next;
    surface_printf(s, r.row + 1, col, end - col, dim, "kind: functions    demangle: %s    sort: %s",
                   settings_text(v->m->settings, SET_DEMANGLE),
                   *prompt_text(v->query) ? "score" : "address");
}

/* Why there are no rows. */
static void draw_nothing(struct symbol_view *v, struct surface *s, struct rect r)
{
    struct symbol_progress p;
    char text[512];
    symbol_rows_progress(v->rows, &p);
    /* the module's symbols have been read by then: asking is quick */
    size_t module = symbol_rows_module(v->rows);
    char *why = p.done && module != SIZE_MAX && symbol_rows_total(v->rows) == 0
                    ? modules_why_no_symbols(symbol_rows_modules(v->rows), module)
                    : NULL;
    if (v->m->target.pid == 0)
        snprintf(text, sizeof text, "no process is chosen: 1 goes to Processes");
    else if (v->trouble.code)
        snprintf(text, sizeof text, "%.400s", v->trouble.text);
    else if (!p.done)
        snprintf(text, sizeof text, "reading symbols, %zu of %zu modules", p.modules_done, p.modules);
    else if (why)
        snprintf(text, sizeof text, "%s", why);
    else if (!*prompt_text(v->query))
        snprintf(text, sizeof text, "no module of this process has function symbols");
    else
        snprintf(text, sizeof text, "no name matches; Enter takes it as FILE:LINE, 0xADDR, module:name");
    surface_text(s, r.row, r.col + 2, r.cols - 2, text, SIZE_MAX,
                 v->trouble.code || why ? warn : dim);
    free(why);
}

static void tell_name_width(struct symbol_view *v, int cols)
{
    struct list_layout layout = {0};
    list_layout_make(&layout, symbol_columns, SYMBOL_COLUMNS, 0, cols);
    for (size_t i = 0; i < layout.n; i++)
        if (layout.place[i].column == SYMBOL_NAME)
            symbol_rows_set_width(v->rows, layout.place[i].cols);
}

void symbol_draw(struct symbol_view *v, struct surface *s, struct rect r)
{
    struct symbol_item item;
    if (r.rows < 3 || r.cols < 1)
        return;
    draw_query(v, s, r);
    draw_facts(v, s, r);
    int triggers = 0, detail = 0;
    if (r.rows >= PANES_MIN_ROWS && settings_bool(v->m->settings, SET_DETAILS)) {
        triggers = 1 + TRIGGER_ROWS;
        detail = SYMBOL_DETAIL_ROWS < (r.rows - triggers) / 2 ? SYMBOL_DETAIL_ROWS : (r.rows - triggers) / 2;
    } else if (v->in_triggers && r.rows >= 8) {
        triggers = 1 + TRIGGER_ROWS;
    }
    struct rect l = {r.row + 2, r.col, r.rows - 2 - triggers - detail, r.cols};
    tell_name_width(v, l.cols);
    list_draw(v->list, s, l, v->m->glyphs);
    if (symbol_rows_count(v->rows) == 0 && l.rows > 0)
        draw_nothing(v, s, l);
    bool any = symbol_selected(v, &item);
    struct rect d = {l.row + l.rows, r.col, detail, r.cols};
    if (detail)
        symbol_detail_draw(v->rows, any ? &item : NULL, s, d, v->m->glyphs);
    d.row += detail;
    d.rows = triggers;
    trigger_pane_draw(v->m, s, d, v->in_triggers ? v->trigger : SIZE_MAX, v->m->glyphs);
}
