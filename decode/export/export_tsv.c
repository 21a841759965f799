/* The tables: spans, functions, gaps, marks. */
#include <stdlib.h>

#include "core/base/vec.h"
#include "decode/export/export_priv.h"
#include "decode/trace/stats.h"

static void number(struct export_out *o, uint64_t v)
{
    export_out_u64(o, v);
    export_out_char(o, '\t');
}

static void name_and_module(const struct export_job *j, fn_id fn)
{
    const struct function *f = functions_get(trace_functions(j->trace), fn);
    export_out_escaped(j->out, f->name);
    export_out_char(j->out, '\t');
    export_out_escaped(j->out, f->module);
    export_out_char(j->out, '\n');
}

/* Spans of one thread that start at one time, in the order of entry: calls that took no time have returned before
 * others, of their depth or less, are entered. */
struct entered {
    const struct span *span;
    size_t order;
};

struct instant {
    VEC(struct entered) spans;
    pid_t tid;
};

static void put_span(const struct export_job *j, const struct span *s, pid_t tid)
{
    char flags[8];
    export_out_i64(j->out, tid);
    export_out_char(j->out, '\t');
    number(j->out, s->depth);
    number(j->out, s->start_ns);
    number(j->out, s->end_ns);
    export_out_str(j->out, export_flags(s->flags, flags));
    export_out_char(j->out, '\t');
    name_and_module(j, s->fn);
}

static int by_depth(const void *a, const void *b)
{
    const struct entered *x = a, *y = b;
    if (x->span->depth != y->span->depth)
        return x->span->depth < y->span->depth ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static void put_instant(const struct export_job *j, struct instant *at)
{
    struct entered *e = at->spans.data;
    size_t sorted = 1, n = at->spans.len;
    while (sorted < n && e[sorted].span->depth >= e[sorted - 1].span->depth)
        sorted++;
    if (sorted < n)
        qsort(e, n, sizeof *e, by_depth);
    for (size_t i = 0; i < n; i++)
        put_span(j, e[i].span, at->tid);
    at->spans.len = 0;
}

int export_spans(const struct export_job *j, struct err *err)
{
    struct export_merge *m = NULL;
    struct instant at = {0};
    const struct span *s = NULL;
    size_t thread = 0;
    int rc = export_merge_new(&m, j);
    export_out_str(j->out, "tid\tdepth\tstart_ns\tend_ns\tflags\tfunction\tmodule\n");
    while (rc == 0 && !export_out_failed(j->out) && (s = export_merge_next(m, &thread)) != NULL) {
        const pid_t tid = trace_thread(j->trace, thread)->tid;
        if (at.spans.len && (at.tid != tid || at.spans.data[0].span->start_ns != s->start_ns))
            put_instant(j, &at);
        at.tid = tid;
        if (!vec_try_push(&at.spans, ((struct entered){s, at.spans.len})))
            rc = MTUI_E_NOMEM;
    }
    put_instant(j, &at);
    vec_free(&at.spans);
    export_merge_free(m);
    return rc < 0 ? err_set(err, rc, "not enough memory to sort the spans") : 0;
}

int export_functions(const struct export_job *j, struct err *err)
{
    struct stats_options o = {.from_ns = j->from_ns,
                              .to_ns = j->to_ns,
                              .thread = j->thread,
                              .workers = j->options->workers};
    struct stats *made = NULL;
    const struct stats *s = j->options->statistics;
    size_t n = 0;
    int rc = s ? 0 : stats_new(&made, j->trace, &o, err);
    if (rc < 0)
        return rc;
    const struct function_stats *f = stats_functions(s ? s : made, &n);
    export_out_str(j->out, "calls\ttotal_ns\tself_ns\tmin_ns\tp50_ns\tp99_ns\tmax_ns\tfunction\t"
                           "module\n");
    for (size_t i = 0; i < n; i++) {
        number(j->out, f[i].calls);
        number(j->out, f[i].total_ns);
        number(j->out, f[i].self_ns);
        number(j->out, f[i].min_ns);
        number(j->out, f[i].p50_ns);
        number(j->out, f[i].p99_ns);
        number(j->out, f[i].max_ns);
        name_and_module(j, f[i].fn);
    }
    stats_free(made);
    return 0;
}

int export_gaps(const struct export_job *j, struct err *err)
{
    size_t n = 0;
    const struct gap *g = trace_gaps(j->trace, &n);
    (void)err;
    export_out_str(j->out, "tid\tstart_ns\tend_ns\tbytes\tcause\tdetail\n");
    for (size_t i = 0; i < n; i++) {
        if (!export_has_gap(j, &g[i]))
            continue;
        export_out_i64(j->out, g[i].tid);
        export_out_char(j->out, '\t');
        number(j->out, g[i].start_ns);
        number(j->out, g[i].end_ns);
        number(j->out, g[i].bytes);
        export_out_str(j->out, gap_cause_name(g[i].cause));
        export_out_char(j->out, '\t');
        export_out_escaped(j->out, g[i].detail);
        export_out_char(j->out, '\n');
    }
    return 0;
}

int export_marks(const struct export_job *j, struct err *err)
{
    size_t n = 0;
    const struct mark *m = trace_marks(j->trace, &n);
    (void)err;
    export_out_str(j->out, "time_ns\ttid\tkind\tdetail\n");
    for (size_t i = 0; i < n; i++) {
        if (!export_has_mark(j, &m[i]))
            continue;
        number(j->out, m[i].time_ns);
        export_out_i64(j->out, m[i].tid);
        export_out_char(j->out, '\t');
        export_out_str(j->out, mark_kind_name(m[i].kind));
        export_out_char(j->out, '\t');
        export_out_escaped(j->out, m[i].detail);
        export_out_char(j->out, '\n');
    }
    return 0;
}
