#include "decode/pt/pt_pieces.h"

#include <stdlib.h>

#include "core/base/vec.h"
#include "decode/pt/pt_packet.h"

/* The time that the PSB+ at the piece's beginning tells, or where that is wrong the next one. */
static uint64_t time_of(const struct pt_piece *p, const struct pt_clock *clock)
{
    const struct pt_stream *s = p->stream;
    if (!s->stamps.len || !clock->time_mult)
        return 0;
    const uint8_t *psb = pt_packet_find_psb(s->data + p->from, s->data + p->stop);
    const struct pt_stamp *t = psb ? pt_stamps_of_psb(&s->stamps, (size_t)(psb - s->data)) : NULL;
    const struct pt_stamp *end = s->stamps.data + s->stamps.len;
    while (t && t < end && t->at < p->stop && t->wrong)
        t++;
    return t && t < end && t->at < p->stop ? pt_time_ns(clock, t->tsc) : 0;
}

bool pt_stream_next_sync(const struct pt_stream *s, const struct pt_clock *clock, size_t *at, uint64_t *time_ns)
{
    size_t i = *at ? pt_stamps_from(&s->stamps, *at) : 0;
    for (; i < s->stamps.len && clock->time_mult; i++) {
        const struct pt_stamp *t = &s->stamps.data[i];
        if (t->psb == PT_STAMP_NO_PSB || t->psb < *at || (*time_ns = pt_time_ns(clock, t->tsc)) == 0)
            continue;
        *at = t->psb;
        return true;
    }
    return false;
}

/* Where the stream can be cut at or behind a byte: a walk that begins there learns what time it is. */
static size_t next_cut(const struct pt_stream *s, size_t at)
{
    const uint8_t *end = s->data + s->limits.to, *psb = s->data + at;
    for (; (psb = pt_packet_find_psb(psb, end)) != NULL; psb += PT_PSB_BYTES) {
        const struct pt_stamp *t = s->stamps.wrong ? pt_stamps_of_psb(&s->stamps, (size_t)(psb - s->data)) : NULL;
        if (!t || !t->wrong)
            return (size_t)(psb - s->data);
    }
    return s->limits.to;
}

static int cut_stream(struct pt_pieces *out, const struct pt_stream *s, const struct pt_clock *clock,
                      size_t bytes)
{
    uint64_t last_ns = 0;
    for (size_t from = s->limits.from; from < s->limits.to;) {
        struct pt_piece p = {.stream = s,
                             .from = from,
                             .stop = s->limits.to - from > bytes ? next_cut(s, from + bytes) : s->limits.to,
                             .inner = from > s->limits.from};
        p.time_ns = time_of(&p, clock);
        if (p.time_ns < last_ns)
            p.time_ns = last_ns;
        last_ns = p.time_ns;
        if (!vec_try_push(out, p))
            return MTUI_E_NOMEM;
        from = p.stop;
    }
    return 0;
}

uint64_t pt_piece_end_ns(const struct pt_piece *p, const struct pt_clock *clock)
{
    const struct pt_stamps *stamps = &p->stream->stamps;
    uint64_t last_ns = p->time_ns;
    for (size_t i = pt_stamps_from(stamps, p->from); i < stamps->len && stamps->data[i].at < p->stop; i++) {
        const struct pt_stamp *t = &stamps->data[i];
        uint64_t ns = clock->time_mult && !t->wrong && t->psb != PT_STAMP_NO_PSB ? pt_time_ns(clock, t->tsc) : 0;
        if (ns > last_ns)
            last_ns = ns;
    }
    return last_ns;
}

static int compare_times(const void *a, const void *b)
{
    const struct pt_piece *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    if (x->stream != y->stream)
        return x->stream->order < y->stream->order ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

int pt_pieces_cut(struct pt_pieces *out, const struct pt_streams *streams,
                  const struct pt_clock *clock, size_t bytes, bool by_time)
{
    for (size_t i = 0; i < pt_streams_count(streams); i++)
        if (cut_stream(out, pt_streams_at(streams, i), clock, bytes) < 0)
            return MTUI_E_NOMEM;
    if (by_time && out->len)
        qsort(out->data, out->len, sizeof *out->data, compare_times);
    return 0;
}

void pt_pieces_free(struct pt_pieces *p)
{
    vec_free(p);
}
