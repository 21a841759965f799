#include "decode/pt/pt_pieces.h"

#include <stdlib.h>

#include "core/base/vec.h"
#include "decode/pt/pt_packet.h"

/* The time that the PSB+ at the piece's beginning tells. */
static uint64_t time_of(const struct pt_piece *p, const struct pt_clock *clock)
{
    const uint8_t *at = p->stream->data + p->from, *end = p->stream->data + p->stop;
    struct packet packet;
    int n;
    if (!clock->time_mult || (at = pt_packet_find_psb(at, end)) == NULL)
        return 0;
    while ((n = pt_packet_read(at, end, &packet)) > 0 && packet.kind != PT_PSBEND) {
        if (packet.kind == PT_TSC)
            return pt_time_ns(clock, packet.value);
        at += n;
    }
    return 0;
}

bool pt_stream_next_sync(const struct pt_stream *s, const struct pt_clock *clock, size_t *at, uint64_t *time_ns)
{
    const uint8_t *end = s->data + s->len, *psb = s->data + *at;
    while (*at < s->len && (psb = pt_packet_find_psb(psb, end)) != NULL) {
        struct pt_piece p = {.stream = s, .from = (size_t)(psb - s->data), .stop = s->len};
        if ((*time_ns = time_of(&p, clock)) != 0) {
            *at = p.from;
            return true;
        }
        psb++;
    }
    return false;
}

static int cut_stream(struct pt_pieces *out, const struct pt_stream *s, const struct pt_clock *clock,
                      size_t bytes)
{
    uint64_t last_ns = 0;
    for (size_t from = s->limits.from; from < s->limits.to;) {
        const uint8_t *psb =
            s->limits.to - from > bytes ? pt_packet_find_psb(s->data + from + bytes, s->data + s->limits.to) : NULL;
        struct pt_piece p = {.stream = s,
                             .from = from,
                             .stop = psb ? (size_t)(psb - s->data) : s->limits.to,
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
    const uint8_t *end = p->stream->data + p->stop;
    uint64_t last_ns = p->time_ns;
    struct pt_piece from = *p;
    while (from.from < p->stop) {
        const uint8_t *psb = pt_packet_find_psb(p->stream->data + from.from, end);
        if (!psb)
            break;
        from.from = (size_t)(psb - p->stream->data);
        uint64_t t = time_of(&from, clock);
        if (t > last_ns)
            last_ns = t;
        from.from++;
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
