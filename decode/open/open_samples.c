/* perf.data with samples: its records, with stacks resolved at the moment of each, into the log. */
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "decode/image/callchain.h"
#include "decode/open/open_calls.h"
#include "decode/open/open_find.h"
#include "decode/open/open_priv.h"
#include "decode/perf/sched_switch.h"
#include "decode/text/text_log.h"

struct reader {
    struct open_context *c;
    struct perf_file *f;
    struct sched_switch *switches; /* of a hardware trace's sideband, no samples of code; NULL: no such trace */
    struct addrspaces *as;
    struct symbolizer *symbols;
    struct callchain *chains;
    VEC(uint16_t) events; /* perf_file's event → the log's */
    VEC(fn_id) stack;
    fn_id kernel; /* stands for a stack that is in the kernel altogether, where that is left out */
    uint64_t samples;
    size_t first_event; /* of this file, in the log */
    bool any_chain;
};

static bool is_clock(const struct perf_event_info *e)
{
    if (e->type == PERF_TYPE_SOFTWARE)
        return e->config == PERF_COUNT_SW_CPU_CLOCK || e->config == PERF_COUNT_SW_TASK_CLOCK;
    if (e->type == PERF_TYPE_HARDWARE)
        return (uint32_t)e->config == PERF_COUNT_HW_CPU_CYCLES ||
               (uint32_t)e->config == PERF_COUNT_HW_REF_CPU_CYCLES;
    return e->name && event_name_is_clock(e->name);
}

/* Distance of two samples in CPU time, where the event says it. */
static uint64_t expected_period(const struct perf_event_info *e)
{
    if (e->freq)
        return e->sample_period_or_freq ? 1000000000 / e->sample_period_or_freq : 0;
    return e->type == PERF_TYPE_SOFTWARE && is_clock(e) ? e->sample_period_or_freq : 0;
}

static void add_events(struct reader *r)
{
    for (size_t i = 0; i < perf_file_event_count(r->f); i++) {
        const struct perf_event_info *e = perf_file_event(r->f, i);
        vec_push(&r->events, sample_log_add_event(r->c->log, e->name ? e->name : "unknown",
                                                  is_clock(e), expected_period(e)));
    }
    vec_push(&r->events, sample_log_add_event(r->c->log, "unknown", false, 0));
}

static bool is_user(enum perf_cpumode mode)
{
    return mode == PERF_MODE_USER || mode == PERF_MODE_GUEST_USER || mode == PERF_MODE_UNKNOWN;
}

/* Names are those that `perf script` prints, so that both tell the same story of one recording: the
 * address before the return address for chains unwound from stack copies, the return address itself for
 * chains recorded by the kernel. */
static int add_sample(struct reader *r, const struct perf_record *rec, struct sample_event *e)
{
    const struct callframe *frames = NULL;
    size_t n = callchain_frames(r->chains, rec, &frames);
    bool unwound = rec->u.sample.stack_len > 0;
    r->stack.len = 0;
    for (size_t i = 0; i < n; i++) {
        if (r->c->user_only && !is_user(frames[i].mode))
            continue;
        uint64_t ip = unwound ? frames[i].lookup_ip : frames[i].ip;
        fn_id fn = symbolizer_find(r->symbols, rec->pid, ip, frames[i].mode);
        if (!vec_try_push(&r->stack, fn))
            return MTUI_E_NOMEM;
    }
    if (n > 0 && r->stack.len == 0 && !vec_try_push(&r->stack, r->kernel))
        return MTUI_E_NOMEM;
    r->any_chain |= n > 1;
    r->samples++;
    size_t known = r->events.len - 1;
    e->event = r->events.data[rec->event >= 0 && (size_t)rec->event < known ? (size_t)rec->event
                                                                              : known];
    e->period = rec->u.sample.period ? rec->u.sample.period : 1;
    e->kind = SAMPLE_STACK;
    return sample_log_stack(r->c->log, r->stack.data, r->stack.len, &e->stack);
}

/* Fills the kind of an event of the log; false: the record is of no interest there. */
static bool event_of(const struct perf_record *rec, struct sample_event *e, pid_t *pid, pid_t *tid)
{
    *pid = rec->pid;
    *tid = rec->tid;
    switch (rec->kind) {
    case PERF_REC_SAMPLE:
        e->kind = SAMPLE_STACK;
        return true;
    case PERF_REC_SWITCH:
        e->kind = SAMPLE_SWITCH_IN;
        if (rec->u.sw.out)
            e->kind = rec->u.sw.preempted ? SAMPLE_SWITCH_OUT_PREEMPT : SAMPLE_SWITCH_OUT;
        return rec->has_time;
    case PERF_REC_FORK:
    case PERF_REC_EXIT:
        *pid = rec->u.fork.pid;
        *tid = rec->u.fork.tid;
        e->kind = rec->kind == PERF_REC_FORK ? SAMPLE_FORK : SAMPLE_EXIT;
        return rec->has_time && !rec->u.fork.synthesized;
    case PERF_REC_COMM:
        *pid = rec->u.comm.pid;
        *tid = rec->u.comm.tid;
        e->kind = SAMPLE_EXEC;
        return rec->has_time && rec->u.comm.exec;
    case PERF_REC_LOST:
        *tid = -1;
        e->kind = SAMPLE_LOST;
        e->period = rec->u.lost.count;
        return rec->has_time && rec->u.lost.count > 0;
    case PERF_REC_THROTTLE:
        *tid = -1;
        e->kind = SAMPLE_THROTTLE;
        return rec->has_time && rec->type == PERF_RECORD_THROTTLE;
    case PERF_REC_MMAP:
    case PERF_REC_AUX:
    case PERF_REC_ITRACE_START:
    case PERF_REC_AUXTRACE_INFO:
    case PERF_REC_AUXTRACE:
    case PERF_REC_AUXTRACE_ERROR:
    case PERF_REC_TIME_CONV:
    case PERF_REC_KSYMBOL:
    case PERF_REC_TEXT_POKE:
    case PERF_REC_BUILD_ID:
    case PERF_REC_OTHER:
        break;
    }
    return false;
}

static int take_record(struct reader *r, const struct perf_record *rec)
{
    struct sample_event e = {.time_ns = rec->has_time ? rec->time_ns : SAMPLE_NO_TIME,
                             .period = 1,
                             .stack = STACK_EMPTY,
                             .thread = SAMPLE_NO_THREAD,
                             .cpu = rec->cpu};
    pid_t pid = -1, tid = -1;
    pid_t next;
    if (!event_of(rec, &e, &pid, &tid) || (r->switches && sched_switch_read(r->switches, rec, &next)))
        return 0;
    if (tid >= 0) {
        e.thread = sample_log_thread(r->c->log, pid, tid);
        if (e.thread == SAMPLE_NO_THREAD)
            return MTUI_E_NOMEM;
    }
    if (rec->kind == PERF_REC_SAMPLE && add_sample(r, rec, &e) < 0)
        return MTUI_E_NOMEM;
    return sample_log_add(r->c->log, &e);
}

void open_add_modules(struct open_context *c, const struct symbolizer *symbols)
{
    for (size_t i = 0; i < symbolizer_account_count(symbols); i++) {
        struct symbolizer_account a = symbolizer_account(symbols, i);
        struct open_module m = {.name = xstrdup(a.module),
                                .lookups = a.lookups,
                                .resolved = a.resolved,
                                .source = a.source ? xstrdup(a.source) : NULL,
                                .reason = a.reason ? xstrdup(a.reason) : NULL};
        vec_push(&c->modules, m);
    }
}

static void add_comms(struct reader *r)
{
    for (uint32_t i = 0; i < sample_log_thread_count(r->c->log); i++) {
        const char *comm = addrspaces_comm(r->as, sample_log_thread_at(r->c->log, i)->tid);
        if (comm)
            sample_log_comm(r->c->log, i, comm);
    }
}

/* Between two records: what is to be done now and then. 1: reading ends here. */
static int look_up(struct reader *r, uint64_t offset, struct err *err)
{
    const struct perf_file_info *info = perf_file_info(r->f);
    open_progress(r->c, "reading", offset, info->size_bytes);
    if (open_cancelled(r->c) || (open_enough(r->c) && (info->has_auxtrace || !r->samples)))
        return err_set(err, MTUI_E_CANCEL, "cancelled");
    if (open_enough(r->c)) {
        r->c->stopped = true;
        r->c->rest_bytes = info->size_bytes - offset;
        open_note_stopped(r->c, r->c->rest_bytes, info->size_bytes);
        return 1;
    }
    if (r->samples && !info->has_auxtrace && open_part_due(r->c)) {
        add_comms(r);
        open_part_samples(r->c, info->size_bytes - offset, info->size_bytes);
    }
    return 0;
}

static int read_records(struct reader *r, struct err *err)
{
    struct perf_record rec;
    uint64_t n = 0;
    int rc = 0;
    while ((rc = perf_file_next(r->f, &rec, err)) > 0) {
        if ((n++ & 0xff) == 0 && (rc = look_up(r, rec.offset, err)) != 0)
            return rc < 0 ? rc : 0;
        if ((rc = addrspaces_apply(r->as, &rec, err)) < 0)
            return rc;
        if (take_record(r, &rec) < 0)
            return err_set(err, MTUI_E_NOMEM, "not enough memory for the samples of this recording");
    }
    return rc;
}

static void add_notes(struct reader *r)
{
    const struct perf_file_info *info = perf_file_info(r->f);
    char n[FMT_MAX];
    bool switches = false;
    if (info->skipped_records)
        open_note(r->c, "%s could not be read: skipped",
                  fmt_counted(n, info->skipped_records, "record", "records"));
    for (size_t i = 0; i < perf_file_event_count(r->f); i++)
        switches |= perf_file_event(r->f, i)->context_switch;
    if (!r->samples || perf_file_info(r->f)->has_auxtrace) /* beside a hardware trace they are not shown */
        return;
    if (!r->any_chain)
        open_note(r->c, "no call chains were recorded, so a stack is one function deep: record with "
                        "--call-graph");
    if (callchain_note(r->chains))
        open_note(r->c, "%s", callchain_note(r->chains));
    if (!switches)
        open_note(r->c, "no context switches were recorded, so waiting shows as missing samples: "
                        "record with --switch-events");
}

int open_samples(struct open_context *c, struct perf_file *f, struct err *err)
{
    struct reader r = {.c = c, .f = f, .first_event = sample_log_count(c->log)};
    const struct perf_file_info *info = perf_file_info(f);
    uint64_t too_deep = 0;
    char n[FMT_MAX];
    struct symbolizer_options o = {
        .log = c->maps, .symfs = c->options->symfs, .os_release = info->os_release};
    r.as = addrspaces_new(c->maps);
    r.symbols = symbolizer_new(c->functions, r.as, &o);
    r.chains = callchain_new(f, r.as, r.symbols);
    r.kernel = functions_intern(c->functions, "[kernel]", "[kernel]", "[kernel]", 0, FN_PSEUDO);
    r.switches = info->has_auxtrace ? sched_switch_new(f) : NULL;
    add_events(&r);
    int rc = read_records(&r, err);
    if (rc == 0) {
        c->input_bytes += info->size_bytes;
        if (c->found->dir && !info->has_auxtrace && r.samples)
            rc = open_known_calls(c->log, r.first_event, c->found->dir,
                                  c->input < c->found->nsnapshots ? c->found->snapshots[c->input] : 0, r.as, r.symbols,
                                  &too_deep);
        if (too_deep)
            open_note(c, "%s in %u others or more: left out", fmt_counted(n, too_deep, "timed call is", "timed calls are"),
                      OPEN_CALLS_DEEPEST);
        if (rc < 0)
            err_set(err, rc, "not enough memory for the samples of this recording");
        add_comms(&r);
        open_add_modules(c, r.symbols);
        add_notes(&r);
    }
    sched_switch_free(r.switches);
    callchain_free(r.chains);
    symbolizer_free(r.symbols);
    addrspaces_free(r.as);
    vec_free(&r.events);
    vec_free(&r.stack);
    return rc;
}
