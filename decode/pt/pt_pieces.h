/* Trace streams cut at synchronisation points into pieces that can be decoded on their own.
 *
 * Where the cuts are depends on the bytes alone, so the result of decoding does not depend on how many
 * workers there are. At every PSB the hardware forgets its return stack and writes addresses and times in
 * full; a piece is walked up to behind the PSB+ of the next one, which tells where the flow has arrived,
 * so nothing is lost at a seam. Intel SDM vol. 3, "Packet Stream Boundary". */
#ifndef MTUI_DECODE_PT_PIECES_H
#define MTUI_DECODE_PT_PIECES_H

#include "decode/pt/pt_streams.h"

/* What is handed from a decoding thread to the one that makes the stacks: its events should still be in a cache then,
 * at some 50 bytes of them a byte of trace. Shorter pieces are mostly the PSB at their beginning. */
#define PT_PIECE_BYTES ((size_t)8 << 10)

struct pt_piece {
    const struct pt_stream *stream;
    size_t from, stop; /* [from, stop) of the stream's bytes */
    bool inner;        /* the piece before ends where this one begins */
    uint64_t time_ns;  /* of its first timestamp; 0: none */
};

struct pt_pieces {
    struct pt_piece *data;
    size_t len, cap;
};

/* The next synchronisation point with a time, at or behind *at, which becomes its place. Only perf's clock counts. */
bool pt_stream_next_sync(const struct pt_stream *s, const struct pt_clock *clock, size_t *at, uint64_t *time_ns);

/* Cuts what is to be decoded of every stream into pieces of about `bytes` bytes. Those of one stream are in order; with by_time,
 * those of all streams are in the order of their times, else stream after stream. MTUI_E_NOMEM. */
int pt_pieces_cut(struct pt_pieces *out, const struct pt_streams *streams,
                  const struct pt_clock *clock, size_t bytes, bool by_time);
void pt_pieces_free(struct pt_pieces *p);

/* The time of the last synchronisation point of a piece, a moment before its end; 0: none is told. */
uint64_t pt_piece_end_ns(const struct pt_piece *p, const struct pt_clock *clock);

#endif
