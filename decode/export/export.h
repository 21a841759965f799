/* Traces in the formats that other tools read.
 *
 * Tables are tab-separated with one header line; tab, newline, backslash, control bytes and invalid bytes
 * in names become \\t \\n \\\\ \\xHH (core/base/utf8.h). Times are nanoseconds of the recording's clock.
 *
 *   spans      tid depth start_ns end_ns flags function module, by time, then tid, then as they were
 *              entered, callers first; flags are the letters of enum span_flag in the order s e t g p o,
 *              "-" if none
 *   functions  calls total_ns self_ns min_ns p50_ns p99_ns max_ns function module, by total
 *   gaps       tid start_ns end_ns bytes cause detail
 *   marks      time_ns tid kind detail
 *   json       Chrome trace events ("Trace Event Format", Google 2016): a complete event ("X") a span,
 *              instants for marks and gaps, names of processes and threads; ts and dur in µs with three
 *              decimals. Names are escaped as in tables, then as JSON.
 *   folded     stack;frames weight, by stack: sampled recordings give the sum of the periods of their
 *              samples (in units of the event), straight from the samples; exact ones give self time in ns.
 *              ";" inside a name becomes \\x3b.
 *   fxt        Fuchsia trace format (fuchsia.dev, "Fuchsia trace format"), gzipped on request
 *
 * A range keeps what intersects it, with its own times; `functions` and `folded` count only the time (the
 * samples) inside. Nothing here needs a terminal, and nothing is kept in memory but what sorting needs.
 * SIGPIPE must be ignored by the caller for its error to arrive as a sentence. */
#ifndef MTUI_DECODE_EXPORT_H
#define MTUI_DECODE_EXPORT_H

#include <stdio.h>

#include "decode/sample/sample_log.h"
#include "decode/trace/stats.h"
#include "decode/trace/trace.h"

enum export_format {
    EXPORT_SPANS,
    EXPORT_FUNCTIONS,
    EXPORT_GAPS,
    EXPORT_MARKS,
    EXPORT_JSON,
    EXPORT_FOLDED,
    EXPORT_FXT
};

/* One end of a range as the user writes it: "1234567" or "+5ms"; absent before or after the colon. */
struct export_time {
    bool given, relative;
    uint64_t ns;
};

struct export_options {
    enum export_format format;
    pid_t tid; /* 0: all threads */
    struct export_time from, to;
    bool gzip;
    unsigned workers; /* for `functions`; 0 and 1: none of its own */
    const struct stats *statistics; /* for `functions` of all threads and times; NULL: made from the spans */
};

/* MTUI_E_INVAL with the list of names. */
int export_parse_format(const char *name, enum export_format *format, struct err *err);
/* "FROM:TO" into options->from and to. */
int export_parse_range(const char *range, struct export_options *options, struct err *err);

/* log: the samples of a sampled recording, NULL for others. MTUI_E_NOENT: no such thread. */
int export_write(FILE *file, const struct trace *t, const struct sample_log *log,
                 const struct export_options *options, struct err *err);

/* Whether an export of the recording `in` may be written to `out`: not over the recording itself, another
 * perf.data, or a file of the snapshot directory that it lies in. MTUI_E_STATE. */
int export_check_output(const char *out, const char *in, struct err *err);

/* The same into a file, made anew (gzip is set when its name ends in ".gz"); "-" is standard output. */
int export_to_path(const char *path, const struct trace *t, const struct sample_log *log,
                   const struct export_options *options, struct err *err);

#endif
