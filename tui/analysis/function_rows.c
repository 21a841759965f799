#include "tui/analysis/function_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/base/utf8.h"
#include "core/base/vec.h"
#include "tui/analysis/row_filter.h"
#include "tui/timeline/ruler.h"

const struct list_column function_columns[FCOL_COUNT] = {
    [FCOL_CALLS] = {.title = "CALLS", .cols = 10, .priority = 0, .right = true},
    [FCOL_TOTAL] = {.title = "TOTAL", .cols = 7, .priority = 1, .right = true},
    [FCOL_SELF] = {.title = "SELF", .cols = 7, .priority = 0, .right = true},
    [FCOL_SELF_SHARE] = {.title = "SELF%", .cols = 6, .priority = 2, .right = true},
    [FCOL_MIN] = {.title = "MIN", .cols = 7, .priority = 5, .right = true},
    [FCOL_AVG] = {.title = "AVG", .cols = 7, .priority = 4, .right = true},
    [FCOL_P50] = {.title = "P50", .cols = 7, .priority = 8, .right = true},
    [FCOL_P99] = {.title = "P99", .cols = 7, .priority = 6, .right = true},
    [FCOL_MAX] = {.title = "MAX", .cols = 7, .priority = 3, .right = true},
    [FCOL_HIST] = {.title = "HIST", .cols = 6, .most = 24, .priority = 7, .fixed = true},
    [FCOL_NAME] = {.title = "FUNCTION", .cols = 24, .priority = 0, .stretch = true, .rising = true, .name = true},
};

struct function_rows {
    const struct trace *trace;
    struct function_names *names;
    const struct stats *stats;
    const struct glyphs *glyphs;
    uint64_t self_sum;
    VEC(const struct function_stats *) rows;
    struct row_filter *filter; /* NULL: none */
    enum function_column sort;
    bool inverted;
};

struct function_rows *function_rows_new(struct function_names *names)
{
    struct function_rows *r = xcalloc(1, sizeof *r);
    r->names = names;
    r->sort = FCOL_SELF;
    return r;
}

void function_rows_free(struct function_rows *r)
{
    if (!r)
        return;
    row_filter_free(r->filter);
    vec_free(&r->rows);
    free(r);
}

static const char *name_of(const struct function_rows *r, const struct function_stats *f)
{
    return function_names_get(r->names, f->fn);
}

static uint64_t value(const struct function_stats *f, enum function_column column)
{
    switch (column) {
    case FCOL_CALLS:
        return f->calls;
    case FCOL_TOTAL:
        return f->total_ns;
    case FCOL_SELF:
    case FCOL_SELF_SHARE:
        return f->self_ns;
    case FCOL_MIN:
        return f->min_ns;
    case FCOL_AVG:
        return function_stats_mean_ns(f);
    case FCOL_P50:
        return f->p50_ns;
    case FCOL_P99:
        return f->p99_ns;
    case FCOL_MAX:
        return f->max_ns;
    case FCOL_HIST:
    case FCOL_NAME:
    case FCOL_COUNT:
        break;
    }
    return 0;
}

/* ---- Filter ---- */

enum { FIELD_MODULE = FCOL_COUNT };

static const struct filter_field filter_fields[] = {
    {"name", FCOL_NAME, FILTER_NAME},          {"module", FIELD_MODULE, FILTER_TEXT},
    {"calls", FCOL_CALLS, FILTER_COUNT},       {"total", FCOL_TOTAL, FILTER_DURATION},
    {"self", FCOL_SELF, FILTER_DURATION},      {"self%", FCOL_SELF_SHARE, FILTER_PERMILLE},
    {"min", FCOL_MIN, FILTER_DURATION},        {"avg", FCOL_AVG, FILTER_DURATION},
    {"p50", FCOL_P50, FILTER_DURATION},        {"p99", FCOL_P99, FILTER_DURATION},
    {"max", FCOL_MAX, FILTER_DURATION},
};

static uint64_t filter_number(const void *arg, const void *row, int id)
{
    const struct function_rows *r = arg;
    const struct function_stats *f = row;
    if (id == FCOL_SELF_SHARE) /* as it is shown: rounded to a tenth of a percent */
        return fmt_permille(f->self_ns, r->self_sum);
    return value(f, (enum function_column)id);
}

static const char *filter_module(const void *arg, const void *row, int id)
{
    const struct function_rows *r = arg;
    const struct function_stats *f = row;
    (void)id;
    return functions_get(trace_functions(r->trace), f->fn)->module;
}

static fn_id filter_function(const void *arg, const void *row)
{
    (void)arg;
    return ((const struct function_stats *)row)->fn;
}

/* ---- Rows ---- */

/* Of means, exactly: those below 10 units are shown with tenths. */
static int by_mean(const struct function_stats *x, const struct function_stats *y)
{
    __extension__ typedef unsigned __int128 wide;
    const wide a = (wide)x->sum_ns * y->calls, b = (wide)y->sum_ns * x->calls;
    return a == b ? 0 : a > b ? -1 : 1;
}

static int compare(const void *a, const void *b, void *arg)
{
    const struct function_rows *r = arg;
    const struct function_stats *x = *(const struct function_stats *const *)a;
    const struct function_stats *y = *(const struct function_stats *const *)b;
    int order = 0;
    if (r->sort == FCOL_NAME)
        order = strcmp(name_of(r, x), name_of(r, y));
    else if (r->sort == FCOL_AVG)
        order = by_mean(x, y);
    else if (value(x, r->sort) != value(y, r->sort))
        order = value(x, r->sort) > value(y, r->sort) ? -1 : 1;
    if (order == 0)
        return x->fn < y->fn ? -1 : x->fn > y->fn;
    return r->inverted ? -order : order;
}

static void rebuild(struct function_rows *r)
{
    size_t n = 0;
    const struct function_stats *all = r->stats ? stats_functions(r->stats, &n) : NULL;
    const struct filter_values values = {filter_number, filter_module, filter_function, r};
    r->rows.len = 0;
    r->self_sum = 0;
    for (size_t i = 0; i < n; i++)
        r->self_sum += all[i].self_ns;
    for (size_t i = 0; i < n; i++)
        if (row_filter_passes(r->filter, &values, &all[i]))
            vec_push(&r->rows, &all[i]);
    if (r->rows.len)
        qsort_r(r->rows.data, r->rows.len, sizeof *r->rows.data, compare, r);
}

void function_rows_set(struct function_rows *r, const struct trace *t, const struct stats *stats,
                       const struct glyphs *g)
{
    r->trace = t;
    r->stats = stats;
    r->glyphs = g;
    rebuild(r);
}

void function_rows_sort(struct function_rows *r, enum function_column column, bool inverted)
{
    r->sort = column;
    r->inverted = inverted;
    rebuild(r);
}

int function_rows_filter(struct function_rows *r, const char *text, struct err *err)
{
    int rc = row_filter_set(&r->filter, text, filter_fields, sizeof filter_fields / sizeof *filter_fields, r->trace, r->names,
                            err);
    if (rc == 0)
        rebuild(r);
    return rc;
}

const char *function_rows_filter_text(const struct function_rows *r)
{
    return row_filter_text(r->filter);
}

size_t function_rows_count(const struct function_rows *r)
{
    return r->rows.len;
}

size_t function_rows_total(const struct function_rows *r)
{
    size_t n = 0;
    if (r->stats)
        stats_functions(r->stats, &n);
    return n;
}

const struct function_stats *function_rows_at(const struct function_rows *r, size_t row)
{
    return row < r->rows.len ? r->rows.data[row] : NULL;
}

void function_histogram(const struct function_stats *f, const struct glyphs *g, uint32_t *cells, int n)
{
    int first = STATS_BUCKETS, last = -1;
    uint64_t sums[STATS_BUCKETS] = {0}, most = 0;
    for (int i = 0; i < STATS_BUCKETS; i++)
        if (f->histogram[i]) {
            first = i < first ? i : first;
            last = i;
        }
    int span = last - first + 1 > n ? last - first + 1 : n;
    for (int i = first; i <= last; i++) {
        int c = (i - first) * n / span;
        sums[c] += f->histogram[i];
        most = sums[c] > most ? sums[c] : most;
    }
    for (int c = 0; c < n; c++) {
        unsigned level = most ? (unsigned)((sums[c] * 8 + most - 1) / most) : 0;
        cells[c] = level ? glyph(g, GLYPH_BAR1 + level - 1) : ' ';
    }
}

void function_rows_cell(const struct function_rows *r, size_t row, enum function_column column,
                        struct list_cell *cell)
{
    const struct function_stats *f = r->rows.data[row];
    const bool instructions = trace_info(r->trace)->instructions;
    char *out = cell->text;
    char text[FMT_MAX];
    uint32_t bars[STATS_BUCKETS];
    const int n_bars = cell->cols < STATS_BUCKETS ? cell->cols : STATS_BUCKETS;
    size_t len = 0;
    switch (column) {
    case FCOL_CALLS:
        snprintf(out, LIST_CELL_MAX, "%s%s", stats_estimated(r->stats) ? "~" : "",
                 fmt_count(text, f->calls));
        break;
    case FCOL_SELF_SHARE:
        snprintf(out, LIST_CELL_MAX, "%s", fmt_percent(text, f->self_ns, r->self_sum));
        break;
    case FCOL_HIST:
        function_histogram(f, r->glyphs, bars, n_bars);
        for (int i = 0; i < n_bars; i++)
            len += utf8_encode(bars[i], out + len);
        out[len] = '\0';
        break;
    case FCOL_NAME:
        snprintf(out, LIST_CELL_MAX, "%s", name_of(r, f));
        cell->overload = function_names_overload(r->names, f->fn);
        break;
    case FCOL_AVG:
        ruler_mean_short(text, f->sum_ns, f->calls, instructions);
        snprintf(out, LIST_CELL_MAX, "%s", text);
        break;
    case FCOL_TOTAL:
    case FCOL_SELF:
    case FCOL_MIN:
    case FCOL_P50:
    case FCOL_P99:
    case FCOL_MAX:
        ruler_duration_short(text, value(f, column), instructions);
        snprintf(out, LIST_CELL_MAX, "%s", text);
        break;
    case FCOL_COUNT:
        break;
    }
}
