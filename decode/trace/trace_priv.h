/* How a trace is stored: shared by trace.c (reading) and trace_builder.c (building) alone. */
#ifndef MTUI_DECODE_TRACE_PRIV_H
#define MTUI_DECODE_TRACE_PRIV_H

#include "decode/trace/trace.h"

/* The spans of a thread, row after row; row d is spans[row_first[d]] to spans[row_first[d + 1] − 1]. */
struct track {
    struct trace_thread info;
    struct span *spans; /* large_alloc(info.spans, sizeof *spans) */
    size_t *row_first;  /* info.depths + 1 entries; NULL without rows */
    uint64_t *nested;   /* a bit a span */
    char *comm;
};

struct tid_index {
    pid_t tid;
    size_t thread;
};

/* Strings that live as long as the trace. */
struct text_chunk {
    struct text_chunk *next;
    size_t used, cap;
    char bytes[];
};

struct trace {
    struct trace_info info;
    struct functions *functions;
    struct track *tracks; /* by pid, then tid */
    size_t ntracks;
    struct tid_index *by_tid; /* by tid, then place in tracks */
    struct gap *gaps;
    size_t ngaps;
    struct mark *marks;
    size_t nmarks;
    struct text_chunk *texts;
};

#endif
