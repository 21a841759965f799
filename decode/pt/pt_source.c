#include "decode/pt/pt_source.h"

#include <linux/perf_event.h>
#include <stdlib.h>

/* Mappings that mtui itself captured came in with the record at hand. */
static int note_captures(struct pt_source *s, uint64_t time_ns, size_t *next)
{
    const struct maps_log *log = s->input.maps;
    int rc = 0;
    for (; log && rc == 0 && *next < maps_log_capture_count(log); (*next)++) {
        const struct maps_capture *c = maps_log_capture(log, *next);
        if (c->time_ns > time_ns)
            break;
        rc = code_image_note(s->image, c->pid, c->time_ns);
    }
    return rc;
}

static bool note_hole(struct pt_source *s, const struct perf_record *rec)
{
    const uint64_t telling = PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_COLLISION;
    if (rec->kind != PERF_REC_AUX || !(rec->u.aux.flags & telling))
        return true;
    struct pt_hole h = {rec->time_ns, rec->u.aux.flags, rec->tid};
    return vec_try_push(&s->holes, h);
}

static bool note_exec(struct pt_source *s, const struct perf_record *rec)
{
    if (rec->kind != PERF_REC_COMM || !rec->u.comm.exec || !rec->has_time)
        return true;
    struct pt_exec e = {rec->time_ns, rec->u.comm.pid};
    return vec_try_push(&s->execs, e);
}

bool pt_source_exec_between(const struct pt_source *s, pid_t pid, uint64_t after_ns, uint64_t until_ns)
{
    size_t lo = 0, hi = s->execs.len;
    while (lo < hi) { /* the first after that time */
        size_t mid = lo + (hi - lo) / 2;
        if (s->execs.data[mid].time_ns <= after_ns)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < s->execs.len && s->execs.data[lo].time_ns <= until_ns; lo++)
        if (s->execs.data[lo].pid == pid)
            return true;
    return false;
}

bool pt_source_cancelled(const struct pt_source *s)
{
    return s->input.cancelled(s->input.arg);
}

bool pt_source_enough(const struct pt_source *s)
{
    return s->input.enough(s->input.arg);
}

static int read_records(struct pt_source *s, struct perf_file *f, struct err *err)
{
    struct perf_record rec;
    size_t captures = 0;
    int rc;
    while ((rc = perf_file_next(f, &rec, err)) > 0) {
        if (pt_source_cancelled(s))
            return err_set(err, MTUI_E_CANCEL, "cancelled");
        if ((rc = addrspaces_apply(s->as, &rec, err)) < 0 ||
            (rc = pt_streams_add(s->streams, f, &rec, err)) < 0)
            return rc;
        pid_t pid = rec.kind == PERF_REC_MMAP   ? rec.u.mmap.pid
                    : rec.kind == PERF_REC_COMM ? rec.u.comm.pid
                    : rec.kind == PERF_REC_FORK ? rec.u.fork.pid
                                                : -1;
        if (note_captures(s, rec.time_ns, &captures) < 0 ||
            (pid > 0 && code_image_note(s->image, pid, rec.has_time ? rec.time_ns : 0) < 0) ||
            pt_switches_apply(s->switches, &rec) < 0 || !note_hole(s, &rec) ||
            !note_exec(s, &rec))
            return err_set(err, MTUI_E_NOMEM, "not enough memory for the mappings");
    }
    return rc < 0 ? rc : pt_streams_finish(s->streams, err);
}

static int read_clock(struct pt_source *s, struct err *err)
{
    if (!pt_streams_clock(s->streams, &s->clock))
        return err_set(err, MTUI_E_FORMAT,
                       "the recording does not say how its trace was made (no AUXTRACE_INFO)");
    return 0;
}

/* Threads share CPUs: without knowing who ran, their stacks would be mixed. */
static int check_switches(const struct pt_source *s, struct err *err)
{
    for (size_t i = 0; i < pt_streams_count(s->streams); i++) {
        const struct pt_stream *st = pt_streams_at(s->streams, i);
        if (st->tid < 0 && st->owner < 0 && st->len && !pt_switches_know(s->switches, st->cpu))
            return err_set(err, MTUI_E_FORMAT,
                           "the trace of CPU %d belongs to whatever ran there, and the recording does not "
                           "say what did: record with --switch-events, or with --per-thread",
                           st->cpu);
        if (st->tid < 0 && st->owner < 0 && st->len && !pt_clock_has_time(&s->clock) &&
            pt_switches_threads(s->switches, st->cpu) > 1)
            return err_set(err, MTUI_E_FORMAT,
                           "several threads ran on CPU %d, and without times in the trace that relate to perf's "
                           "clock nothing tells which did what: record with tsc=1 where perf can read the "
                           "processor's clock, or with --per-thread",
                           st->cpu);
    }
    return 0;
}

int pt_source_open(struct pt_source *s, const struct pt_input *input, struct perf_file *f,
                   struct err *err)
{
    struct symbolizer_options so = {
        .log = input->maps, .symfs = input->symfs, .os_release = perf_file_info(f)->os_release};
    *s = (struct pt_source){.input = *input};
    s->as = addrspaces_new(input->maps);
    s->symbols = symbolizer_new(input->functions, s->as, &so);
    s->image = code_image_new(s->as, s->symbols, input->functions, input->maps);
    s->streams = pt_streams_new();
    s->switches = pt_switches_new(f);
    perf_file_rewind(f);
    int rc = read_records(s, f, err);
    if (rc == 0)
        rc = read_clock(s, err);
    if (rc == 0 && input->seams)
        pt_seams_apply(input->seams, input->snapshot, s->streams, &s->clock);
    return rc < 0 ? rc : check_switches(s, err);
}

void pt_source_close(struct pt_source *s)
{
    pt_switches_free(s->switches);
    pt_streams_free(s->streams);
    code_image_free(s->image);
    symbolizer_free(s->symbols);
    addrspaces_free(s->as);
    vec_free(&s->holes);
    vec_free(&s->execs);
    *s = (struct pt_source){0};
}

pid_t pt_source_thread(const struct pt_source *s, const struct pt_stream *stream, uint64_t time_ns)
{
    if (stream->tid >= 0)
        return stream->tid;
    pid_t tid = pt_switches_at(s->switches, stream->cpu, time_ns);
    return tid >= 0 ? tid : stream->owner;
}

pid_t pt_source_process(const struct pt_source *s, pid_t tid)
{
    pid_t pid = addrspaces_pid(s->as, tid);
    return pid > 0 ? pid : tid;
}
