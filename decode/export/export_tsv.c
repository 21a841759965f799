/* The tables: spans, functions, gaps, marks. */
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

int export_spans(const struct export_job *j, struct err *err)
{
    struct export_merge *m = NULL;
    const struct span *s;
    size_t thread = 0;
    int rc = export_merge_new(&m, j);
    if (rc < 0)
        return err_set(err, rc, "not enough memory to sort the spans");
    export_out_str(j->out, "tid\tdepth\tstart_ns\tend_ns\tflags\tfunction\tmodule\n");
    while (!export_out_failed(j->out) && (s = export_merge_next(m, &thread)) != NULL)
        put_span(j, s, trace_thread(j->trace, thread)->tid);
    export_merge_free(m);
    return 0;
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
