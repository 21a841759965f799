#include "tui/ui/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fmt.h"
#include "decode/export/export.h"
#include "tui/ui/bar.h"
#include "tui/ui/list_export.h"

#define FORMAT "tsv"

static bool is_sorting(enum action act)
{
    return act == ACT_SORT_NEXT || act == ACT_SORT_PREV || act == ACT_SORT_INVERT;
}

static void sort_by(struct table *t, const char *title)
{
    size_t column = title && *title ? list_find_column(t->list, title) : SIZE_MAX;
    if (column == SIZE_MAX || t->columns[column].fixed) {
        model_error(t->m, "sort takes %s", t->ops->sort);
        return;
    }
    list_set_sort(t->list, column, list_sort_inverted(t->list));
    t->ops->arrange(t->screen);
}

/* "tsv FILE", "tsv" or "FILE". A format in which only the trace can be written is no name of a file. */
static void on_path(void *arg, const char *text)
{
    struct table *t = arg;
    enum export_format format;
    struct err err;
    char rows[48], word[32] = "";
    int used = 0;
    if (!text || sscanf(text, " %31s %n", word, &used) < 1)
        return;
    const char *path = strcmp(word, FORMAT) ? text : text[used] ? text + used : t->ops->file;
    if (export_parse_format(word, &format, &err) == 0) {
        model_error(t->m, "lists are written as " FORMAT "; the trace as %s: on the timeline", word);
        return;
    }
    const size_t marked = list_marked_rows(t->list), n = marked ? marked : t->ops->count(t->screen);
    snprintf(rows, sizeof rows, "%s%s%s", marked ? "marked " : "", t->ops->row, n == 1 ? "" : "s");
    list_export(t->m, t->list, path, n, rows);
}

static void ask_path(struct table *t)
{
    char initial[64];
    snprintf(initial, sizeof initial, FORMAT " %s", t->ops->file);
    model_prompt(t->m, "Export (FORMAT FILE): ", initial, on_path, t);
}

static bool cancel(struct table *t)
{
    if (*list_pattern(t->list))
        list_search(t->list, NULL);
    else if (*t->ops->filter_text(t->screen))
        t->ops->filter(t->screen, NULL);
    else if (list_mark_count(t->list))
        list_clear_marks(t->list);
    else
        return false;
    return true;
}

/* The names of the marked rows, one a line, or that of the selected one. */
static void copy(struct table *t)
{
    const size_t marked = list_marked_rows(t->list), n = t->ops->count(t->screen);
    char *names = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&names, &size);
    if (!f)
        return;
    for (size_t i = 0, done = 0; i < n; i++) {
        bool wanted = marked ? list_row_is_marked(t->list, i) : i == list_selected(t->list);
        if (wanted)
            fprintf(f, "%s%s", done++ ? "\n" : "", t->ops->name(t->screen, i));
    }
    if (fclose(f) == 0 && size)
        model_copy(t->m, names);
    free(names);
}

bool table_action(struct table *t, enum action act, const char *arg)
{
    bool moved;
    switch ((int)act) {
    case ACT_OPEN:
        t->ops->open(t->screen);
        return true;
    case ACT_FILTER:
        t->ops->filter(t->screen, arg);
        return true;
    case ACT_SEARCH:
        if (!list_search(t->list, arg) && arg && *arg)
            model_say(t->m, "no %s here has \"%s\"", t->ops->row, arg);
        return true;
    case ACT_SORT:
        if (arg) /* else it is asked for */
            sort_by(t, arg);
        return arg != NULL;
    case ACT_COPY:
        if (t->ops->name)
            copy(t);
        return t->ops->name != NULL;
    case ACT_EXPORT:
        if (!t->ops->file)
            return false;
        if (arg && *arg)
            on_path(t, arg);
        else
            ask_path(t);
        return true;
    case ACT_CANCEL:
        return cancel(t);
    default:
        moved = list_action(t->list, act);
        if (moved && is_sorting(act))
            t->ops->arrange(t->screen);
        return moved;
    }
}

enum list_hit table_mouse(struct table *t, const struct mouse *m)
{
    enum list_hit hit = list_mouse(t->list, m);
    if (hit == LIST_SORTED)
        t->ops->arrange(t->screen);
    if (hit == LIST_OPENED)
        t->ops->open(t->screen);
    return hit;
}

void table_draw_scope(const struct table *t, struct surface *s, struct rect r, const char *note,
                      const char *right)
{
    char behind[160];
    const size_t marks = list_marked_rows(t->list);
    int n = snprintf(behind, sizeof behind, "%.100s", note);
    if (marks)
        snprintf(behind + n, sizeof behind - (size_t)n, "   %zu marked", marks);
    bar_draw_filter(s, r, t->ops->filter_text(t->screen), behind, right, t->m->glyphs);
}

void table_scope_text(const struct table *t, char *out, size_t size, size_t total)
{
    char a[FMT_MAX], b[FMT_MAX];
    snprintf(out, size, "%s of %s %s%s   sort: %s%s ", fmt_count(a, t->ops->count(t->screen)), fmt_count(b, total), t->ops->row,
             total == 1 ? "" : "s", t->columns[list_sort_column(t->list)].title,
             list_sort_inverted(t->list) ? " inverted" : "");
}
