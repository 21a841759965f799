#include "tui/timeline/flame_source.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"

struct row_index {
    struct pyramid_iter nodes;
    bool off_known;
    VEC(size_t) off; /* the spans off the CPU, when off_known */
};

struct source_thread {
    struct row_index **rows; /* made when first asked for */
    size_t depths;
};

struct flame_source {
    const struct trace *trace;
    const struct pyramid *pyramid;
    bool may_be_off; /* some function stands for no code: spans may be off the CPU */
    struct source_thread *threads;
    size_t nthreads;
};

struct flame_source *flame_source_new(const struct trace *t, const struct pyramid *p)
{
    struct flame_source *s = xcalloc(1, sizeof *s);
    s->trace = t;
    s->pyramid = p;
    const struct functions *f = trace_functions(t);
    for (size_t i = 0; i < functions_count(f) && !s->may_be_off; i++)
        s->may_be_off = functions_get(f, (fn_id)i)->kind == FN_PSEUDO;
    s->nthreads = trace_thread_count(t);
    s->threads = xcalloc(s->nthreads + 1, sizeof *s->threads);
    for (size_t i = 0; i < s->nthreads; i++) {
        s->threads[i].depths = trace_thread(t, i)->depths;
        s->threads[i].rows = xcalloc(s->threads[i].depths + 1, sizeof *s->threads[i].rows);
    }
    return s;
}

static void forget_rows(struct flame_source *s)
{
    for (size_t i = 0; i < s->nthreads; i++) {
        for (size_t d = 0; d < s->threads[i].depths; d++)
            if (s->threads[i].rows[d]) {
                vec_free(&s->threads[i].rows[d]->off);
                free(s->threads[i].rows[d]);
                s->threads[i].rows[d] = NULL;
            }
    }
}

void flame_source_free(struct flame_source *s)
{
    if (!s)
        return;
    forget_rows(s);
    for (size_t i = 0; i < s->nthreads; i++)
        free(s->threads[i].rows);
    free(s->threads);
    free(s);
}

void flame_source_use(struct flame_source *s, const struct pyramid *p)
{
    forget_rows(s);
    s->pyramid = p;
}

static size_t seek_nodes(const struct flame_row *row, size_t from, uint64_t t_ns)
{
    return pyramid_seek(&((const struct row_index *)row->index)->nodes, from, t_ns);
}

static size_t longest_of_nodes(const struct flame_row *row, size_t i, size_t j)
{
    return pyramid_longest(&((const struct row_index *)row->index)->nodes, i, j);
}

static uint8_t starts_of_nodes(const struct flame_row *row, size_t i, size_t j,
                               const uint64_t edge[9])
{
    return pyramid_starts(&((const struct row_index *)row->index)->nodes, i, j, edge);
}

static size_t off_cpu_of_index(const struct flame_row *row, size_t i, size_t j)
{
    const struct row_index *r = row->index;
    size_t lo = 0, hi = r->off.len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (r->off.data[mid] < i)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < r->off.len && r->off.data[lo] < j ? r->off.data[lo] : j;
}

static size_t off_cpu_never(const struct flame_row *row, size_t i, size_t j)
{
    (void)row;
    (void)i;
    return j;
}

static void find_off_cpu(struct row_index *r, const struct span *spans, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (spans[i].flags & SPAN_OFF_CPU)
            vec_push(&r->off, i);
    r->off_known = true;
}

struct flame_row flame_source_row(struct flame_source *s, size_t thread, size_t depth)
{
    size_t n = 0;
    if (thread >= s->nthreads || depth >= s->threads[thread].depths)
        return flame_row_of_spans(NULL, 0);
    const struct span *spans = trace_row(s->trace, thread, depth, &n);
    struct flame_row row = flame_row_of_spans(spans, n);
    struct row_index **slot = &s->threads[thread].rows[depth];
    if (!*slot) {
        *slot = xcalloc(1, sizeof **slot);
        if (s->pyramid)
            pyramid_row(&(*slot)->nodes, s->pyramid, thread, depth);
    }
    row.index = *slot;
    if (s->pyramid) {
        row.seek = seek_nodes;
        row.longest = longest_of_nodes;
        row.starts = starts_of_nodes;
    }
    if (s->may_be_off && !(*slot)->off_known)
        find_off_cpu(*slot, spans, n);
    row.off_cpu = s->may_be_off ? off_cpu_of_index : off_cpu_never;
    return row;
}

uint64_t flame_row_off_ns(const struct flame_row *row, uint64_t from, uint64_t to, uint64_t *count)
{
    uint64_t sum = 0;
    size_t k = row->seek(row, 0, from), end = row->seek(row, k, to);
    if (k > 0)
        k--;
    for (k = row->off_cpu(row, k, end); k < end; k = row->off_cpu(row, k + 1, end)) {
        const struct span *s = &row->spans[k];
        uint64_t a = s->start_ns > from ? s->start_ns : from, b = s->end_ns < to ? s->end_ns : to;
        sum += b > a ? b - a : 0;
        *count += b > a;
    }
    return sum;
}
