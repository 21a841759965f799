/* Chrome trace events: one object a line, in the order of time. */
#include "core/base/utf8.h"
#include "decode/export/export_priv.h"

static void json_string(struct export_out *o, const char *s)
{
    size_t n = 0;
    const char *text = export_out_text(o, utf8_json, s, &n);
    export_out_char(o, '"');
    export_out_bytes(o, text, n);
    export_out_char(o, '"');
}

/* Nanoseconds as microseconds with three decimals. */
static void micros(struct export_out *o, uint64_t ns)
{
    char rest[5] = {'.', (char)('0' + ns % 1000 / 100), (char)('0' + ns % 100 / 10),
                    (char)('0' + ns % 10), '\0'};
    export_out_u64(o, ns / 1000);
    export_out_str(o, rest);
}

static void ids(struct export_out *o, pid_t pid, pid_t tid)
{
    export_out_str(o, ",\"pid\":");
    export_out_i64(o, pid);
    export_out_str(o, ",\"tid\":");
    export_out_i64(o, tid);
}

static void begin(struct export_out *o, bool *first)
{
    export_out_str(o, *first ? "\n{" : ",\n{");
    *first = false;
}

static void metadata(const struct export_job *j, bool *first)
{
    for (size_t i = 0; i < trace_thread_count(j->trace); i++) {
        const struct trace_thread *t = trace_thread(j->trace, i);
        if (j->thread >= 0 && (size_t)j->thread != i)
            continue;
        const char *kinds[] = {"process_name", "thread_name"};
        for (size_t k = t->pid == t->tid ? 0 : 1; k < 2; k++) {
            begin(j->out, first);
            export_out_str(j->out, "\"ph\":\"M\",\"name\":\"");
            export_out_str(j->out, kinds[k]);
            export_out_char(j->out, '"');
            ids(j->out, t->pid, t->tid);
            export_out_str(j->out, ",\"args\":{\"name\":");
            json_string(j->out, t->comm);
            export_out_str(j->out, "}}");
        }
    }
}

static const char *category(const struct span *s, const struct function *f)
{
    if (s->flags & SPAN_OFF_CPU)
        return "off-cpu";
    switch (f->kind) {
    case FN_KERNEL:
        return "kernel";
    case FN_VDSO:
        return "vdso";
    case FN_PLT:
        return "plt";
    case FN_UNKNOWN:
        return "unknown";
    case FN_PSEUDO:
        return "pseudo";
    case FN_USER:
    case FN_PART:
        break;
    }
    return "user";
}

static void span(const struct export_job *j, const struct span *s, const struct trace_thread *t,
                 bool *first)
{
    struct export_out *o = j->out;
    const struct function *f = functions_get(trace_functions(j->trace), s->fn);
    char flags[8];
    begin(o, first);
    export_out_str(o, "\"ph\":\"X\",\"name\":");
    json_string(o, f->name);
    export_out_str(o, ",\"cat\":\"");
    export_out_str(o, category(s, f));
    export_out_str(o, "\",\"ts\":");
    micros(o, s->start_ns);
    export_out_str(o, ",\"dur\":");
    micros(o, s->end_ns - s->start_ns);
    ids(o, t->pid, t->tid);
    export_out_str(o, ",\"args\":{\"module\":");
    json_string(o, f->module);
    export_out_str(o, ",\"flags\":\"");
    export_out_str(o, export_flags(s->flags, flags));
    export_out_str(o, "\"}}");
}

static pid_t pid_of(const struct export_job *j, pid_t tid)
{
    ssize_t i = tid > 0 ? trace_find_thread(j->trace, tid) : -1;
    if (i >= 0)
        return trace_thread(j->trace, (size_t)i)->pid;
    return trace_thread_count(j->trace) ? trace_thread(j->trace, 0)->pid : tid;
}

/* An instant: in its thread, or across the whole trace for tid 0. */
static void instant(const struct export_job *j, const char *name, const char *cat, uint64_t time_ns,
                    pid_t tid, const char *detail, bool *first)
{
    struct export_out *o = j->out;
    begin(o, first);
    export_out_str(o, "\"ph\":\"i\",\"s\":\"");
    export_out_str(o, tid ? "t" : "g");
    export_out_str(o, "\",\"name\":");
    json_string(o, name);
    export_out_str(o, ",\"cat\":\"");
    export_out_str(o, cat);
    export_out_str(o, "\",\"ts\":");
    micros(o, time_ns);
    ids(o, pid_of(j, tid), tid);
    export_out_str(o, ",\"args\":{\"detail\":");
    json_string(o, detail);
}

static void gaps_and_marks(const struct export_job *j, bool *first)
{
    size_t n = 0;
    const struct gap *g = trace_gaps(j->trace, &n);
    for (size_t i = 0; i < n; i++) {
        if (!export_has_gap(j, &g[i]))
            continue;
        instant(j, gap_cause_name(g[i].cause), "gap", g[i].start_ns, g[i].tid, g[i].detail, first);
        export_out_str(j->out, ",\"dur_us\":");
        micros(j->out, g[i].end_ns - g[i].start_ns);
        export_out_str(j->out, ",\"bytes\":");
        export_out_u64(j->out, g[i].bytes);
        export_out_str(j->out, "}}");
    }
    const struct mark *m = trace_marks(j->trace, &n);
    for (size_t i = 0; i < n; i++) {
        if (!export_has_mark(j, &m[i]))
            continue;
        instant(j, mark_kind_name(m[i].kind), "mark", m[i].time_ns, m[i].tid, m[i].detail, first);
        export_out_str(j->out, "}}");
    }
}

int export_json(const struct export_job *j, struct err *err)
{
    struct export_merge *m = NULL;
    const struct span *s = NULL;
    size_t thread = 0;
    bool first = true;
    if (export_merge_new(&m, j) < 0)
        return err_set(err, MTUI_E_NOMEM, "not enough memory to sort the spans");
    export_out_str(j->out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    metadata(j, &first);
    gaps_and_marks(j, &first);
    while (!export_out_failed(j->out) && (s = export_merge_next(m, &thread)) != NULL)
        span(j, s, trace_thread(j->trace, thread), &first);
    export_out_str(j->out, "\n]}\n");
    export_merge_free(m);
    return 0;
}
