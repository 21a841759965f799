#include "tui/analysis/call_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/base/vec.h"
#include "tui/analysis/row_filter.h"
#include "tui/timeline/ruler.h"

const struct list_column call_columns[CALL_COLUMNS] = {
    [CALL_DURATION] = {.title = "DURATION", .cols = 12, .priority = 0, .right = true},
    [CALL_TIMES] = {.title = "xP50", .cols = 9, .priority = 2, .right = true, .fixed = true},
    [CALL_START] = {.title = "START", .cols = 16, .priority = 0, .right = true, .rising = true},
    [CALL_TID] = {.title = "TID", .cols = 8, .priority = 1, .right = true, .rising = true},
    [CALL_NOTE] = {.title = "NOTE", .cols = 14, .priority = 3, .fixed = true},
    [CALL_CALLER] = {.title = "CALLER", .cols = 20, .priority = 0, .stretch = true, .fixed = true},
};

const char *const call_fields[CALL_COLUMNS] = {"duration_ns", "times_p50", "start_ns", "tid", "note", "caller"};

struct call_rows {
    const struct trace *trace;
    struct function_names *names;
    const struct stats_calls *calls; /* NULL: none */
    VEC(uint32_t) rows;              /* of calls->longest */
    struct row_filter *filter;       /* NULL: none */
    enum call_column sort;
    bool inverted;
};

struct call_rows *call_rows_new(struct function_names *names)
{
    struct call_rows *r = xcalloc(1, sizeof *r);
    r->names = names;
    return r;
}

void call_rows_free(struct call_rows *r)
{
    if (!r)
        return;
    row_filter_free(r->filter);
    vec_free(&r->rows);
    free(r);
}

const struct stats_call *call_rows_at(const struct call_rows *r, size_t row)
{
    return row < r->rows.len ? &r->calls->longest[r->rows.data[row]] : NULL;
}

size_t call_rows_count(const struct call_rows *r)
{
    return r->rows.len;
}

static const struct span *span_of(const struct trace *t, const struct stats_call *c)
{
    size_t n = 0;
    return &trace_row(t, c->thread, c->depth, &n)[c->index];
}

uint64_t call_identity(const struct trace *t, const struct stats_call *c)
{
    return (uint64_t)(uintptr_t)span_of(t, c);
}

/* FN_NONE: it is outermost. */
static fn_id caller_of(const struct call_rows *r, const struct stats_call *c)
{
    const struct span *up = c->depth ? trace_row_at(r->trace, c->thread, c->depth - 1, c->start_ns) : NULL;
    return up ? up->fn : FN_NONE;
}

static const char *note_of(const struct call_rows *r, const struct stats_call *c)
{
    unsigned flags = span_of(r->trace, c)->flags;
    return flags & SPAN_INFERRED_START ? "start inferred"
           : flags & SPAN_INFERRED_END ? "end inferred"
           : flags & SPAN_GAP_END      ? "ended by a gap"
           : flags & SPAN_SAMPLED      ? "sampled"
                                       : "";
}

void call_rows_cell(const struct call_rows *r, size_t row, enum call_column column, struct list_cell *cell)
{
    const struct stats_call *c = call_rows_at(r, row);
    const struct trace_info *info = trace_info(r->trace);
    char text[FMT_MAX];
    switch (column) {
    case CALL_DURATION:
        /* To the instruction: calls are told apart by it. */
        snprintf(cell->text, LIST_CELL_MAX, "%s",
                 info->instructions ? fmt_count(text, c->duration_ns) : fmt_duration(text, c->duration_ns));
        break;
    case CALL_TIMES:
        if (r->calls->all.p50_ns)
            snprintf(cell->text, LIST_CELL_MAX, "%.2f",
                     (double)c->duration_ns / (double)r->calls->all.p50_ns);
        break;
    case CALL_START:
        snprintf(cell->text, LIST_CELL_MAX, "%s",
                 ruler_time(text, (int64_t)(c->start_ns - info->first_ns), 1, info->instructions));
        break;
    case CALL_TID:
        snprintf(cell->text, LIST_CELL_MAX, "%d", (int)trace_thread(r->trace, c->thread)->tid);
        break;
    case CALL_NOTE:
        snprintf(cell->text, LIST_CELL_MAX, "%s", note_of(r, c));
        break;
    case CALL_CALLER:
        snprintf(cell->text, LIST_CELL_MAX, "%s",
                 caller_of(r, c) != FN_NONE ? function_names_get(r->names, caller_of(r, c)) : "(outermost)");
        break;
    case CALL_COLUMNS:
        break;
    }
}

void call_rows_plain(const struct call_rows *r, size_t row, enum call_column column, struct list_cell *cell)
{
    const struct stats_call *c = call_rows_at(r, row);
    if (column == CALL_DURATION)
        snprintf(cell->text, LIST_CELL_MAX, "%" PRIu64, c->duration_ns);
    else if (column == CALL_START)
        snprintf(cell->text, LIST_CELL_MAX, "%" PRIu64, c->start_ns);
    else if (column == CALL_CALLER)
        snprintf(cell->text, LIST_CELL_MAX, "%s",
                 caller_of(r, c) != FN_NONE ? functions_get(trace_functions(r->trace), caller_of(r, c))->name : "");
    else
        call_rows_cell(r, row, column, cell);
}

/* ---- Which, and in which order ---- */

static const struct filter_field filter_fields[] = {
    {"caller", CALL_CALLER, FILTER_NAME}, {"duration", CALL_DURATION, FILTER_DURATION},
    {"", CALL_DURATION, FILTER_DURATION}, {"start", CALL_START, FILTER_DURATION},
    {"tid", CALL_TID, FILTER_COUNT},
};

static uint64_t filter_number(const void *arg, const void *row, int id)
{
    const struct call_rows *r = arg;
    const struct stats_call *c = row;
    return id == CALL_DURATION ? c->duration_ns
           : id == CALL_START  ? c->start_ns - trace_info(r->trace)->first_ns
                              : (uint64_t)trace_thread(r->trace, c->thread)->tid;
}

static fn_id filter_function(const void *arg, const void *row)
{
    return caller_of(arg, row);
}

static int compare(const void *a, const void *b, void *arg)
{
    const struct call_rows *r = arg;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct stats_call *x = &r->calls->longest[i], *y = &r->calls->longest[j];
    int order = 0;
    if (r->sort == CALL_START)
        order = (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
    else if (r->sort == CALL_TID)
        order = (x->thread > y->thread) - (x->thread < y->thread);
    else
        order = (x->duration_ns < y->duration_ns) - (x->duration_ns > y->duration_ns);
    if (r->inverted)
        order = -order;
    return order ? order : (i > j) - (i < j);
}

static void rebuild(struct call_rows *r)
{
    const struct filter_values values = {filter_number, NULL, filter_function, r};
    r->rows.len = 0;
    for (size_t i = 0; r->calls && i < r->calls->n; i++)
        if (row_filter_passes(r->filter, &values, &r->calls->longest[i]))
            vec_push(&r->rows, (uint32_t)i);
    if (r->rows.len)
        qsort_r(r->rows.data, r->rows.len, sizeof *r->rows.data, compare, r);
}

void call_rows_set(struct call_rows *r, const struct trace *t, const struct stats_calls *calls)
{
    r->trace = t;
    r->calls = calls;
    rebuild(r);
}

void call_rows_sort(struct call_rows *r, enum call_column column, bool inverted)
{
    r->sort = column;
    r->inverted = inverted;
    rebuild(r);
}

int call_rows_filter(struct call_rows *r, const struct trace *t, const char *text, struct err *err)
{
    int rc = row_filter_set(&r->filter, text, filter_fields, sizeof filter_fields / sizeof *filter_fields, t, r->names, err);
    if (rc == 0)
        rebuild(r);
    return rc;
}

const char *call_rows_filter_text(const struct call_rows *r)
{
    return row_filter_text(r->filter);
}
