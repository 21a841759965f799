#include "decode/pt/pt_streams.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"

#define AUXTRACE_INTEL_PT 1

/* Places in AUXTRACE_INFO's priv[] (arch/x86/util/intel-pt.c, intel_pt_info_fill). */
enum { INFO_PMU_TYPE, INFO_TIME_SHIFT, INFO_TIME_MULT, INFO_TIME_ZERO, INFO_CAP_TIME_ZERO, INFO_TSC_BIT,
       INFO_NORETCOMP_BIT, INFO_HAVE_SCHED_SWITCH, INFO_SNAPSHOT_MODE, INFO_PER_CPU, INFO_MTC_BIT,
       INFO_MTC_FREQ_BITS, INFO_TSC_CTC_N, INFO_TSC_CTC_D, INFO_CYC_BIT, INFO_MAX_NONTURBO, INFO_KNOWN };

struct part {
    pid_t tid;
    int cpu;
    uint32_t idx;
    uint64_t offset, order;
    const uint8_t *data;
    size_t len;
};

struct pt_streams {
    VEC(struct part) parts;
    VEC(struct pt_stream) streams;
    uint64_t bytes, overlapping;
    bool have_info;
    uint64_t pmu_type, config; /* of the intel_pt event */
    uint64_t info[INFO_KNOWN];
};

struct pt_streams *pt_streams_new(void)
{
    return xcalloc(1, sizeof(struct pt_streams));
}

void pt_streams_free(struct pt_streams *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->streams.len; i++)
        free(s->streams.data[i].joined);
    vec_free(&s->streams);
    vec_free(&s->parts);
    free(s);
}

static void take_info(struct pt_streams *s, const struct perf_file *f, const struct perf_record *rec)
{
    size_t n = rec->u.auxtrace_info.npriv;
    memset(s->info, 0, sizeof s->info);
    memcpy(s->info, rec->u.auxtrace_info.priv, (n < INFO_KNOWN ? n : INFO_KNOWN) * sizeof *s->info);
    s->have_info = true;
    for (size_t i = 0; i < perf_file_event_count(f); i++)
        if (perf_file_event(f, i)->type == s->info[INFO_PMU_TYPE])
            s->config = perf_file_event(f, i)->config;
}

int pt_streams_add(struct pt_streams *s, const struct perf_file *f, const struct perf_record *rec,
                   struct err *err)
{
    if (rec->kind == PERF_REC_AUXTRACE_INFO) {
        if (rec->u.auxtrace_info.type != AUXTRACE_INTEL_PT)
            return err_set(err, MTUI_E_NOTSUP, "the trace data is not Intel PT's (type %u)",
                           rec->u.auxtrace_info.type);
        take_info(s, f, rec);
    }
    if (rec->kind != PERF_REC_AUXTRACE)
        return 0;
    size_t len;
    const uint8_t *data = perf_file_aux_data(f, rec, &len);
    struct part p = {.tid = rec->u.auxtrace.tid,
                     .cpu = rec->u.auxtrace.cpu,
                     .idx = rec->u.auxtrace.idx,
                     .offset = rec->u.auxtrace.offset,
                     .order = s->parts.len,
                     .data = data,
                     .len = data ? len : 0};
    s->bytes += p.len;
    if (!vec_try_push(&s->parts, p))
        return err_set(err, MTUI_E_NOMEM, "not enough memory for the list of trace buffers");
    return 0;
}

static int by_queue(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    if (x->cpu != y->cpu)
        return x->cpu < y->cpu ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->idx != y->idx)
        return x->idx < y->idx ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static bool same_queue(const struct part *x, const struct part *y)
{
    return x->cpu == y->cpu && x->tid == y->tid && x->idx == y->idx;
}

/* Parts [from, to) as one stream. */
static int join(struct pt_streams *s, size_t from, size_t to, size_t len, struct err *err)
{
    const struct part *first = &s->parts.data[from];
    struct pt_stream st = {.tid = first->cpu < 0 ? first->tid : -1,
                           .owner = first->tid,
                           .cpu = first->cpu,
                           .order = first->order,
                           .data = first->data,
                           .len = len};
    if (to - from > 1) {
        st.joined = malloc(len ? len : 1);
        if (!st.joined)
            return err_set(err, MTUI_E_NOMEM, "not enough memory to join the trace buffers");
        size_t at = 0;
        for (size_t i = from; i < to; i++) {
            if (s->parts.data[i].len)
                memcpy(st.joined + at, s->parts.data[i].data, s->parts.data[i].len);
            at += s->parts.data[i].len;
        }
        st.data = st.joined;
    }
    if (!vec_try_push(&s->streams, st)) {
        free(st.joined);
        return err_set(err, MTUI_E_NOMEM, "not enough memory for the list of trace streams");
    }
    return 0;
}

static int by_order(const void *a, const void *b)
{
    const struct pt_stream *x = a, *y = b;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Whether part i goes on from those before it, [from, i), which make one stream so far; what both have is
 * cut from the older ones. They may overlap as snapshots of a ring do, and by less than 8 bytes: perf pads
 * each part, and the place of the next one does not count the padding. */
static bool goes_on(struct pt_streams *s, size_t from, size_t i)
{
    struct part *p = &s->parts.data[i], *older = p - 1;
    uint64_t end = older->offset + older->len;
    if (!same_queue(older, p) || p->offset <= s->parts.data[from].offset || p->offset > end)
        return false;
    if (p->offset + p->len <= end) { /* nothing new */
        s->overlapping += p->len;
        p->offset = end;
        p->len = 0;
        return true;
    }
    s->overlapping += end - p->offset;
    for (; older->offset >= p->offset; older--)
        older->len = 0;
    if (older->offset + older->len > p->offset)
        older->len = (size_t)(p->offset - older->offset);
    return true;
}

static size_t sum(const struct pt_streams *s, size_t from, size_t to)
{
    size_t len = 0;
    for (size_t i = from; i < to; i++)
        len += s->parts.data[i].len;
    return len;
}

int pt_streams_finish(struct pt_streams *s, struct err *err)
{
    int rc = 0;
    size_t from = 0, n = s->parts.len;
    if (n)
        qsort(s->parts.data, n, sizeof *s->parts.data, by_queue);
    for (size_t i = 1; i <= n && rc == 0; i++) {
        if (i < n && goes_on(s, from, i))
            continue;
        rc = join(s, from, i, sum(s, from, i), err);
        from = i;
    }
    if (s->streams.len)
        qsort(s->streams.data, s->streams.len, sizeof *s->streams.data, by_order);
    return rc;
}

size_t pt_streams_count(const struct pt_streams *s)
{
    return s->streams.len;
}

const struct pt_stream *pt_streams_at(const struct pt_streams *s, size_t i)
{
    return &s->streams.data[i];
}

uint64_t pt_streams_bytes(const struct pt_streams *s, uint64_t *overlapping)
{
    if (overlapping)
        *overlapping = s->overlapping;
    return s->bytes;
}

bool pt_streams_clock(const struct pt_streams *s, struct pt_clock *clock)
{
    const uint64_t *info = s->info;
    if (!s->have_info)
        return false;
    *clock = (struct pt_clock){.time_shift = info[INFO_TIME_SHIFT] & 63,
                               .time_mult = info[INFO_CAP_TIME_ZERO] ? info[INFO_TIME_MULT] : 0,
                               .time_zero = info[INFO_TIME_ZERO],
                               .tsc = (s->config & info[INFO_TSC_BIT]) != 0,
                               .tsc_ctc_n = (uint32_t)info[INFO_TSC_CTC_N],
                               .tsc_ctc_d = (uint32_t)info[INFO_TSC_CTC_D],
                               .max_nonturbo_ratio = (uint32_t)info[INFO_MAX_NONTURBO]};
    uint64_t mask = info[INFO_MTC_FREQ_BITS];
    if (mask)
        clock->mtc_period = (unsigned)((s->config & mask) >> __builtin_ctzll(mask)) & 15;
    return true;
}

bool pt_streams_per_cpu(const struct pt_streams *s)
{
    for (size_t i = 0; i < s->streams.len; i++)
        if (s->streams.data[i].tid < 0)
            return true;
    return false;
}
