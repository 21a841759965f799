/* Decodes pieces of trace streams, on one thread or several, and hands over what they gave piece by piece,
 * in their order: the result is the same for any number of threads. */
#ifndef MTUI_DECODE_PT_DECODE_H
#define MTUI_DECODE_PT_DECODE_H

#include "decode/pt/pt_pieces.h"
#include "decode/pt/pt_source.h"
#include "decode/pt/pt_walk.h"

struct pt_decode_options {
    unsigned threads; /* 0: as many as there are CPUs; 1: the caller's alone */
    bool libipt;      /* by libipt's block decoder instead of the flow walker (whole streams at a time) */
};

/* Called one at a time and in order, by any of the decoding threads, one of which is the caller's. A piece's
 * losses may come before or after its events. */
struct pt_decode_sink {
    void (*begin)(void *arg, const struct pt_piece *piece); /* what follows is this piece's */
    void (*events)(void *arg, const struct flow_event *events, size_t n); /* NULL: not wanted */
    void (*branches)(void *arg, const struct pt_branch *branches, size_t n);
    void (*loss)(void *arg, const struct pt_loss *loss);
    void (*mark)(void *arg, enum mark_kind kind, uint64_t time, uint64_t value);
    /* It was decoded whole: instructions executed in it, bytes that told something. */
    void (*end)(void *arg, uint64_t insns, uint64_t bytes);
    void *arg;
};

/* MTUI_E_CANCEL, MTUI_E_NOMEM. When the context has enough, the pieces that have not ended by then are left
 * out (libipt's are whole streams: cancelled). Every sink but events and branches must be given. */
int pt_decode_run(const struct pt_source *s, const struct pt_pieces *pieces,
                  const struct pt_decode_options *options, const struct pt_decode_sink *sink,
                  struct err *err);

#endif
