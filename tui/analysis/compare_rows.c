#include "tui/analysis/compare_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/base/vec.h"
#include "tui/analysis/row_filter.h"
#include "tui/timeline/ruler.h"

const struct list_column compare_columns[CMP_COUNT] = {
    [CMP_SELF_DIFF] = {.title = "SELF DIFF", .cols = 11, .priority = 0, .right = true},
    [CMP_SELF] = {.title = "SELF", .cols = 10, .priority = 1, .right = true},
    [CMP_SELF_MEDIAN] = {.title = "MED.SELF", .cols = 10, .priority = 2, .right = true},
    [CMP_CALLS_DIFF] = {.title = "CALL DIFF", .cols = 9, .priority = 0, .right = true},
    [CMP_CALLS] = {.title = "CALLS", .cols = 7, .priority = 3, .right = true},
    [CMP_CALLS_MEDIAN] = {.title = "MED.CALL", .cols = 8, .priority = 4, .right = true},
    [CMP_TOTAL_DIFF] = {.title = "TOTAL DIFF", .cols = 11, .priority = 5, .right = true},
    [CMP_TOTAL] = {.title = "TOTAL", .cols = 10, .priority = 6, .right = true},
    [CMP_TOTAL_MEDIAN] = {.title = "MED.TOTAL", .cols = 10, .priority = 7, .right = true},
    [CMP_NAME] = {.title = "FUNCTION", .cols = 20, .priority = 0, .stretch = true, .rising = true, .name = true},
};

const char *const compare_fields[CMP_COUNT] = {
    "self_diff_ns", "self_ns", "median_self_ns", "calls_diff", "calls", "median_calls",
    "total_diff_ns", "total_ns", "median_total_ns", "function"};

struct compare_rows {
    const struct trace *trace;
    struct function_names *names;
    struct comparison all;
    VEC(const struct compare_row *) rows;
    struct row_filter *filter; /* NULL: none */
    enum compare_column sort;
    bool inverted;
};

struct compare_rows *compare_rows_new(struct function_names *names)
{
    struct compare_rows *r = xcalloc(1, sizeof *r);
    r->names = names;
    return r;
}

void compare_rows_free(struct compare_rows *r)
{
    if (!r)
        return;
    comparison_free(&r->all);
    vec_free(&r->rows);
    row_filter_free(r->filter);
    free(r);
}

static const char *name_of(const struct compare_rows *r, const struct compare_row *row)
{
    return function_names_get(r->names, row->fn);
}

static uint64_t apart(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static uint64_t value(const struct compare_row *row, enum compare_column column)
{
    const struct compare_side *a = &row->side[0], *b = &row->side[1];
    switch (column) {
    case CMP_SELF_DIFF:
        return apart(a->self_ns, b->self_ns);
    case CMP_SELF:
        return a->self_ns;
    case CMP_SELF_MEDIAN:
        return b->self_ns;
    case CMP_CALLS_DIFF:
        return apart(a->calls, b->calls);
    case CMP_CALLS:
        return a->calls;
    case CMP_CALLS_MEDIAN:
        return b->calls;
    case CMP_TOTAL_DIFF:
        return apart(a->total_ns, b->total_ns);
    case CMP_TOTAL:
        return a->total_ns;
    case CMP_TOTAL_MEDIAN:
        return b->total_ns;
    case CMP_NAME:
    case CMP_COUNT:
        break;
    }
    return 0;
}

static int compare(const void *a, const void *b, void *arg)
{
    const struct compare_rows *r = arg;
    const struct compare_row *x = *(const struct compare_row *const *)a;
    const struct compare_row *y = *(const struct compare_row *const *)b;
    uint64_t vx = value(x, r->sort), vy = value(y, r->sort);
    int order = r->sort == CMP_NAME ? strcmp(name_of(r, x), name_of(r, y)) : (vx < vy) - (vx > vy);
    if (r->inverted)
        order = -order;
    return order ? order : (x > y) - (x < y); /* as compare_calls has them */
}

static const struct filter_field filter_fields[] = {
    {"name", CMP_NAME, FILTER_NAME},          {"self", CMP_SELF, FILTER_DURATION},
    {"med.self", CMP_SELF_MEDIAN, FILTER_DURATION}, {"selfdiff", CMP_SELF_DIFF, FILTER_DURATION},
    {"calls", CMP_CALLS, FILTER_COUNT},       {"med.call", CMP_CALLS_MEDIAN, FILTER_COUNT},
    {"calldiff", CMP_CALLS_DIFF, FILTER_COUNT}, {"total", CMP_TOTAL, FILTER_DURATION},
    {"med.total", CMP_TOTAL_MEDIAN, FILTER_DURATION}, {"totaldiff", CMP_TOTAL_DIFF, FILTER_DURATION},
};

/* Of differences the amount. */
static uint64_t filter_number(const void *arg, const void *row, int id)
{
    (void)arg;
    return value(row, (enum compare_column)id);
}

static fn_id filter_function(const void *arg, const void *row)
{
    (void)arg;
    return ((const struct compare_row *)row)->fn;
}

static void rebuild(struct compare_rows *r)
{
    const struct filter_values values = {filter_number, NULL, filter_function, r};
    r->rows.len = 0;
    for (size_t i = 0; i < r->all.n; i++)
        if (row_filter_passes(r->filter, &values, &r->all.rows[i]))
            vec_push(&r->rows, &r->all.rows[i]);
    if (r->rows.len)
        qsort_r(r->rows.data, r->rows.len, sizeof *r->rows.data, compare, r);
}

void compare_rows_set(struct compare_rows *r, const struct trace *t, struct comparison c)
{
    comparison_free(&r->all);
    r->all = c;
    r->trace = t;
    rebuild(r);
}

void compare_rows_sort(struct compare_rows *r, enum compare_column column, bool inverted)
{
    r->sort = column;
    r->inverted = inverted;
    rebuild(r);
}

int compare_rows_filter(struct compare_rows *r, const char *text, struct err *err)
{
    int rc = row_filter_set(&r->filter, text, filter_fields, sizeof filter_fields / sizeof *filter_fields, r->trace, r->names,
                            err);
    if (rc == 0)
        rebuild(r);
    return rc;
}

const char *compare_rows_filter_text(const struct compare_rows *r)
{
    return row_filter_text(r->filter);
}

size_t compare_rows_count(const struct compare_rows *r)
{
    return r->rows.len;
}

size_t compare_rows_total(const struct compare_rows *r)
{
    return r->all.n;
}

const struct compare_row *compare_rows_at(const struct compare_rows *r, size_t row)
{
    return row < r->rows.len ? r->rows.data[row] : NULL;
}

/* The sign says it; the colour says it again. */
static void put_difference(const struct compare_rows *r, const struct compare_row *row,
                           enum compare_column column, struct list_cell *cell)
{
    const enum compare_column this = column + 1, median = column + 2;
    const uint64_t diff = value(row, column);
    const bool more = value(row, this) > value(row, median);
    char text[FMT_MAX];
    if (column == CMP_CALLS_DIFF)
        fmt_count_short(text, diff);
    else
        ruler_duration_short(text, diff, trace_info(r->trace)->instructions);
    snprintf(cell->text, LIST_CELL_MAX, "%s%s", diff == 0 ? "" : more ? "+" : "-", diff ? text : "=");
    if (diff)
        cell->style.ink = more ? ROLE_WARN : ROLE_OK;
}

void compare_rows_cell(const struct compare_rows *r, size_t row, enum compare_column column,
                       struct list_cell *cell)
{
    const struct compare_row *c = r->rows.data[row];
    const struct compare_side *side = &c->side[column == CMP_SELF_MEDIAN || column == CMP_CALLS_MEDIAN ||
                                               column == CMP_TOTAL_MEDIAN];
    char text[FMT_MAX];
    switch (column) {
    case CMP_SELF_DIFF:
    case CMP_CALLS_DIFF:
    case CMP_TOTAL_DIFF:
        put_difference(r, c, column, cell);
        break;
    case CMP_CALLS:
    case CMP_CALLS_MEDIAN:
        snprintf(cell->text, LIST_CELL_MAX, "%s", fmt_count_short(text, value(c, column)));
        break;
    case CMP_SELF:
    case CMP_SELF_MEDIAN:
    case CMP_TOTAL:
    case CMP_TOTAL_MEDIAN:
        /* A function that was not called has no time, not none of it. */
        snprintf(cell->text, LIST_CELL_MAX, "%s",
                 side->calls ? ruler_duration_short(text, value(c, column),
                                                    trace_info(r->trace)->instructions)
                             : "-");
        break;
    case CMP_NAME:
        snprintf(cell->text, LIST_CELL_MAX, "%s", name_of(r, c));
        cell->overload = function_names_overload(r->names, c->fn);
        break;
    case CMP_COUNT:
        break;
    }
}

void compare_rows_plain(const struct compare_rows *r, size_t row, enum compare_column column,
                        struct list_cell *cell)
{
    const struct compare_row *c = r->rows.data[row];
    bool diff = column == CMP_SELF_DIFF || column == CMP_CALLS_DIFF || column == CMP_TOTAL_DIFF;
    if (column == CMP_NAME)
        snprintf(cell->text, LIST_CELL_MAX, "%s", functions_get(trace_functions(r->trace), c->fn)->name);
    else
        snprintf(cell->text, LIST_CELL_MAX, "%s%" PRIu64,
                 diff && value(c, column + 1) < value(c, column + 2) ? "-" : "", value(c, column));
}
