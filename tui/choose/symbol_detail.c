#include "tui/choose/symbol_detail.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/symbols/demangle.h"
#include "core/base/fmt.h"
#include "core/base/utf8.h"
#include "tui/ui/bar.h"
#include "tui/trace/source_draw.h"

#define NAME_ROWS 3 /* rows that a long name may take */

static const struct style plain = {ROLE_DEFAULT, ROLE_DEFAULT, 0};
static const struct style bold = {ROLE_DEFAULT, ROLE_DEFAULT, CELL_BOLD};
static const struct style dim = {ROLE_DIM, ROLE_DEFAULT, 0};

/* Draws text over as many rows as it takes, at most max, and returns how many those are; the first row is
 * shorter by first_less columns. */
static int draw_wrapped(struct surface *s, struct rect r, int first_less, int max, const char *text,
                        struct style style)
{
    size_t len = strlen(text), at = 0;
    int row = 0;
    for (; at < len && row < max; row++) {
        int cols = r.cols - (row ? 0 : first_less);
        size_t n = utf8_cut(text + at, len - at, cols > 0 ? (size_t)cols : 0, NULL);
        if (n == 0)
            break;
        surface_text(s, r.row + row, r.col, cols, text + at, n, style);
        at += n;
    }
    return row ? row : 1;
}

static void draw_lines(struct source_lookup *source, const struct source_place *place, struct surface *s,
                       struct rect r, const struct glyphs *g)
{
    struct source_lines lines = source_lookup_lines(source, place->file, place->line);
    if (lines.why || lines.waiting) {
        surface_text(s, r.row, r.col + 1, r.cols - 1, lines.why ? lines.why : "", SIZE_MAX, dim);
        return;
    }
    int above = (r.rows - 1) / 2;
    above = above > 2 ? 2 : above;
    for (int y = 0; y < r.rows; y++) {
        int k = SOURCE_LINES / 2 - above + y, number = lines.first + k;
        if (k < 0 || k >= SOURCE_LINES || !lines.line[k])
            continue;
        char text[16];
        snprintf(text, sizeof text, "%5d", number);
        source_draw_line(s, (struct rect){r.row + y, r.col, 1, r.cols}, text, 5, lines.line[k],
                         number == place->line, g);
    }
}

bool symbol_detail_place(struct symbol_rows *r, const struct symbol_item *item, const char **file, int *line)
{
    struct source_place p =
        source_lookup_place(symbol_rows_source(r), item->module, item->vaddr);
    if (!p.file)
        return false;
    *file = p.file;
    *line = p.line;
    return true;
}

static void draw_title(const char *module, const struct symbol_item *item, struct surface *s,
                       struct rect area, const struct glyphs *g)
{
    char right[160], size[FMT_MAX];
    snprintf(right, sizeof right, "%.60s + 0x%" PRIx64 "   size %s", module, item->vaddr,
             fmt_count(size, item->size));
    bar_draw_rule(s, area.row, area.col, area.cols, item->name, right, g);
}

/* How the name is written in the file, and what is peculiar about it; "" when there is nothing to say. */
static void write_facts(const struct symbol_item *item, bool mangled, char *out, size_t size)
{
    snprintf(out, size, "%s%s%s%s", mangled ? item->raw : "",
             item->flags & SYMBOL_ALIAS ? "  (another name of the same code)" : "",
             item->flags & SYMBOL_WEAK ? "  weak" : "",
             item->flags & SYMBOL_NO_SIZE ? "  no size in the file: up to the next symbol" : "");
}

void symbol_detail_draw(struct symbol_rows *r, const struct symbol_item *item, struct surface *s,
                        struct rect area, const struct glyphs *g)
{
    if (area.rows < 1)
        return;
    if (!item) {
        bar_draw_rule(s, area.row, area.col, area.cols, "no function", "", g);
        return;
    }
    draw_title(symbol_rows_module_name(r, item->module), item, s, area, g);
    struct source_place p =
        source_lookup_place(symbol_rows_source(r), item->module, item->vaddr);
    char *full = demangle(item->raw, DEMANGLE_FULL), where[300] = "";
    if (p.file)
        snprintf(where, sizeof where, "%.250s:%d", p.file, p.line);
    int where_cols = (int)utf8_cols(where, strlen(where));
    if (where_cols > area.cols / 2)
        where_cols = area.cols / 2;
    /* of a long path the end is what tells */
    size_t skip = utf8_cols(where, strlen(where)) > (size_t)where_cols
                      ? utf8_cut(where, strlen(where),
                                 utf8_cols(where, strlen(where)) - (size_t)where_cols, NULL)
                      : 0;
    surface_text(s, area.row + 1, area.col + area.cols - where_cols - 1, where_cols + 1, where + skip,
                 SIZE_MAX, dim);
    char facts[1200];
    write_facts(item, full != NULL, facts, sizeof facts);
    struct rect lines = {area.row + 1, area.col + 1, area.rows - 1, area.cols - 2};
    int used = draw_wrapped(s, lines, where_cols + 2, lines.rows > NAME_ROWS ? NAME_ROWS : lines.rows,
                            full ? full : item->name, bold);
    lines.row += used;
    lines.rows -= used;
    if (lines.rows > 0 && facts[0]) {
        used = draw_wrapped(s, lines, 0, lines.rows > NAME_ROWS ? NAME_ROWS : lines.rows, facts, dim);
        lines.row += used;
        lines.rows -= used;
    }
    lines.col = area.col;
    lines.cols = area.cols;
    if (lines.rows > 0 && p.file)
        draw_lines(symbol_rows_source(r), &p, s, lines, g);
    else if (lines.rows > 0 && p.why)
        surface_text(s, lines.row, lines.col + 1, lines.cols - 1, p.why, SIZE_MAX, dim);
    free(full);
}

static const char *fires_at(const char *spec)
{
    switch (modules_spec_kind(spec)) {
    case MODULE_SPEC_LINE:
        return "line";
    case MODULE_SPEC_ADDR:
        return "address";
    case MODULE_SPEC_NAME:
    case MODULE_SPEC_REGEX:
        break;
    }
    return "entry";
}

void trigger_pane_draw(const struct model *m, struct surface *s, struct rect area, size_t selected,
                       const struct glyphs *g)
{
    char right[64];
    if (area.rows < 1)
        return;
    snprintf(right, sizeof right, "%zu chosen", m->triggers.len);
    bar_draw_rule(s, area.row, area.col, area.cols, "Triggers", right, g);
    size_t room = (size_t)(area.rows - 1), first = 0;
    if (selected != SIZE_MAX && selected >= room)
        first = selected - room + 1;
    for (size_t y = 0; y < room && first + y < m->triggers.len; y++) {
        size_t i = first + y;
        const char *spec = m->triggers.data[i], *at = strstr(spec, "@return");
        bool at_return = at && at[7] == '\0';
        size_t len = at_return ? (size_t)(at - spec) : strlen(spec);
        int row = area.row + 1 + (int)y;
        struct style style = i == selected ? (struct style){ROLE_SELECT, ROLE_SELECT, 0} : plain;
        surface_fill(s, (struct rect){row, area.col, 1, area.cols}, ' ', style);
        if (i == selected)
            surface_put(s, row, area.col, glyph(g, GLYPH_POINTER), style);
        surface_printf(s, row, area.col + 1, 4, style, "%2zu", i + 1);
        surface_text(s, row, area.col + 5, area.cols - 5 - 9, spec, len, style);
        surface_text(s, row, area.col + area.cols - 8, 8, at_return ? "return" : fires_at(spec), SIZE_MAX, style);
    }
    if (m->triggers.len == 0 && room > 0)
        surface_text(s, area.row + 1, area.col + 1, area.cols - 1,
                     "none: snapshots by key, or Tab chooses the function above", SIZE_MAX, dim);
}
