#include "decode/pt/pt_streams.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "decode/pt/pt_packet.h"

#define AUXTRACE_INTEL_PT 1
#define BLOCK             4096 /* bytes compared at once */
#define PARTS_BACK        64   /* that a snapshot is looked for in */

/* Places in AUXTRACE_INFO's priv[] (arch/x86/util/intel-pt.c, intel_pt_info_fill). */
enum { INFO_PMU_TYPE, INFO_TIME_SHIFT, INFO_TIME_MULT, INFO_TIME_ZERO, INFO_CAP_TIME_ZERO, INFO_TSC_BIT,
       INFO_NORETCOMP_BIT, INFO_HAVE_SCHED_SWITCH, INFO_SNAPSHOT_MODE, INFO_PER_CPU, INFO_MTC_BIT,
       INFO_MTC_FREQ_BITS, INFO_TSC_CTC_N, INFO_TSC_CTC_D, INFO_CYC_BIT, INFO_MAX_NONTURBO, INFO_KNOWN };

struct part {
    pid_t tid;
    int cpu;
    uint32_t idx;
    uint64_t offset, end, order; /* end: place behind its last byte */
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
    struct pt_clock time_conv; /* of a TIME_CONV record; time_mult 0: none */
    uint64_t first_ns, last_ns; /* of the records; first 0: none has a time */
    bool told_end; /* some of them say up to where trace data was there at a time */
};

struct pt_streams *pt_streams_new(void)
{
    return xcalloc(1, sizeof(struct pt_streams));
}

void pt_streams_free(struct pt_streams *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->streams.len; i++) {
        free(s->streams.data[i].joined);
        pt_stamps_free(&s->streams.data[i].stamps);
    }
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

/* Some perf files tell the relation of the clocks only by this record. */
static void take_time_conv(struct pt_streams *s, const struct perf_record *rec)
{
    if (rec->u.time_conv.time_mult)
        s->time_conv = (struct pt_clock){.time_shift = rec->u.time_conv.time_shift & 63,
                                         .time_mult = rec->u.time_conv.time_mult,
                                         .time_zero = rec->u.time_conv.time_zero};
}

static void take_time(struct pt_streams *s, const struct perf_record *rec)
{
    if (!rec->has_time)
        return;
    s->told_end |= rec->kind == PERF_REC_AUX;
    if (!s->first_ns || rec->time_ns < s->first_ns)
        s->first_ns = rec->time_ns;
    if (rec->time_ns > s->last_ns)
        s->last_ns = rec->time_ns;
}

int pt_streams_add(struct pt_streams *s, const struct perf_file *f, const struct perf_record *rec,
                   struct err *err)
{
    take_time(s, rec);
    if (rec->kind == PERF_REC_AUXTRACE_INFO) {
        if (rec->u.auxtrace_info.type != AUXTRACE_INTEL_PT)
            return err_set(err, MTUI_E_NOTSUP, "the trace data is not Intel PT's (type %u)",
                           rec->u.auxtrace_info.type);
        take_info(s, f, rec);
    }
    if (rec->kind == PERF_REC_TIME_CONV)
        take_time_conv(s, rec);
    if (rec->kind != PERF_REC_AUXTRACE)
        return 0;
    size_t len;
    const uint8_t *data = perf_file_aux_data(f, rec, &len);
    struct part p = {.tid = rec->u.auxtrace.tid,
                     .cpu = rec->u.auxtrace.cpu,
                     .idx = rec->u.auxtrace.idx,
                     .offset = rec->u.auxtrace.offset,
                     .end = rec->u.auxtrace.offset + (data ? len : 0),
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
                           .len = len,
                           .limits = {.to = len, .to_ns = UINT64_MAX}};
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

/* Whether the bytes of parts [from, to), less `pad` at their end, end with these. Each block that is equal
 * counts: with bytes made for it the search would take for ever. */
static bool ends_with(const struct pt_streams *s, size_t from, size_t to, size_t pad, const uint8_t *bytes,
                      size_t n, size_t *budget)
{
    while (n > 0 && to-- > from) {
        const struct part *p = &s->parts.data[to];
        size_t len = p->len - (pad < p->len ? pad : p->len);
        pad = 0;
        while (n > 0 && len > 0) {
            size_t k = n < len ? n : len;
            k = k < BLOCK ? k : BLOCK;
            if (*budget < k || memcmp(p->data + len - k, bytes + n - k, k) != 0)
                return false;
            *budget -= k;
            len -= k;
            n -= k;
        }
    }
    return n == 0;
}

/* The bytes of the PSB+ at psb, with the time in it; SIZE_MAX: it is not whole. */
static size_t psb_plus_bytes(const uint8_t *psb, const uint8_t *end)
{
    struct packet p;
    int n;
    for (const uint8_t *at = psb; (n = pt_packet_read(at, end, &p)) > 0; at += n)
        if (p.kind == PT_PSBEND)
            return (size_t)(at + n - psb);
    return SIZE_MAX;
}

/* How many bytes from psb on the parts [from, i), less pad at their end, end with; 0: none. Every PSB is like
 * every other: what follows up to its end must be the same at least. */
static size_t told_before(const struct pt_streams *s, size_t from, size_t i, size_t pad, const uint8_t *psb,
                          size_t len, size_t *budget)
{
    size_t least = psb_plus_bytes(psb, psb + len);
    size_t first = i, behind = 0, most = len + pad; /* bytes at the end that can be the same */
    while (first > from && behind < most && i - first < PARTS_BACK)
        behind += s->parts.data[--first].len;
    for (size_t k = first; k < i; k++) {
        const struct part *p = &s->parts.data[k];
        const uint8_t *end = p->data + p->len;
        const uint8_t *at = p->data + (behind > most ? behind - most : 0);
        for (; (at = pt_packet_find_psb(at, end)); at += PT_PSB_BYTES) {
            size_t n = behind - (size_t)(at - p->data);
            if (n >= pad && n - pad >= least && ends_with(s, from, i, pad, psb, n - pad, budget))
                return n - pad;
        }
        behind -= p->len;
    }
    return 0;
}

/* A snapshot of a ring tells again what the one before had of it, when the writer has not gone round in
 * between. Places do not say whether it has: in snapshots they are places in the ring. What does is the bytes
 * from the first PSB on, with its time; as in intel_pt_find_overlap() of perf, up to seven bytes of padding
 * apart. */
static bool overlaps(struct pt_streams *s, size_t from, size_t i)
{
    struct part *p = &s->parts.data[i], *older = p - 1;
    const uint8_t *psb = p->len ? pt_packet_find_psb(p->data, p->data + p->len) : NULL;
    if (!psb)
        return false;
    size_t front = (size_t)(psb - p->data), same = 0, budget = 8 * p->len;
    for (size_t pad = 0; pad < 8 && !same; pad++) {
        if (pad > older->len || (pad && older->data[older->len - pad] != 0))
            break;
        same = told_before(s, from, i, pad, psb, p->len - front, &budget);
        if (same) {
            older->len -= pad;
            s->overlapping += pad;
        }
    }
    if (!same)
        return false;
    p->data += front + same;
    p->len -= front + same;
    s->overlapping += front + same;
    return true;
}

/* Whether part i goes on from those before it, [from, i), which make one stream so far; what both have is
 * cut. perf pads each part to 8 bytes, and the place of the next one does not count the padding. */
static bool goes_on(struct pt_streams *s, size_t from, size_t i)
{
    struct part *p = &s->parts.data[i], *older = p - 1;
    uint64_t end = older->end;
    if (!same_queue(older, p))
        return false;
    if (s->info[INFO_SNAPSHOT_MODE]) {
        if (overlaps(s, from, i))
            return true;
        /* All of the ring, and then less than it from the same place on. */
        if (p->offset == older->offset && p->end < end)
            return true;
    }
    if (p->offset > end || end - p->offset >= 8 || end - p->offset > older->len)
        return false;
    older->len -= end - p->offset;
    s->overlapping += end - p->offset;
    return true;
}

static size_t sum(const struct pt_streams *s, size_t from, size_t to)
{
    size_t len = 0;
    for (size_t i = from; i < to; i++)
        len += s->parts.data[i].len;
    return len;
}

/* The time of the recording, and as much again on either side. Where no record says when the trace data was there, the
 * last of them may be from long before the end. */
static bool find_limits(const struct pt_streams *s, const struct pt_clock *clock, struct pt_stamp_limits *limits)
{
    uint64_t length = s->last_ns - s->first_ns;
    *limits = (struct pt_stamp_limits){clock, s->first_ns > length ? s->first_ns - length : 0, s->last_ns + length};
    return s->told_end && length && limits->to_ns > s->last_ns && pt_clock_has_time(clock);
}

int pt_streams_finish(struct pt_streams *s, struct err *err)
{
    int rc = 0;
    struct pt_clock clock;
    struct pt_stamp_limits limits;
    bool limited = pt_streams_clock(s, &clock) && find_limits(s, &clock, &limits);
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
    for (size_t i = 0; i < s->streams.len && rc == 0; i++) {
        struct pt_stream *st = &s->streams.data[i];
        if (pt_stamps_find(&st->stamps, st->data, st->len, limited ? &limits : NULL) < 0)
            rc = err_set(err, MTUI_E_NOMEM, "not enough memory for the timestamps of the trace");
    }
    return rc;
}

void pt_streams_limit(struct pt_streams *s, size_t i, struct pt_stream_limits limits)
{
    struct pt_stream *st = &s->streams.data[i];
    st->limits = limits;
    if (limits.from > limits.to)
        st->limits.from = limits.to;
    s->overlapping += st->len - (st->limits.to - st->limits.from);
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
    if (!clock->time_mult) {
        clock->time_mult = s->time_conv.time_mult;
        clock->time_shift = s->time_conv.time_shift;
        clock->time_zero = s->time_conv.time_zero;
    }
    return true;
}

bool pt_streams_per_cpu(const struct pt_streams *s)
{
    for (size_t i = 0; i < s->streams.len; i++)
        if (s->streams.data[i].tid < 0)
            return true;
    return false;
}
