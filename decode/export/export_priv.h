/* Between export.c and the writers of the formats. */
#ifndef MTUI_DECODE_EXPORT_PRIV_H
#define MTUI_DECODE_EXPORT_PRIV_H

#include "decode/export/export.h"
#include "decode/export/export_out.h"
#include "decode/trace/walk.h"

struct export_job {
    struct export_out *out;
    const struct trace *trace;
    const struct sample_log *log;
    const struct export_options *options;
    ssize_t thread;          /* index; −1: all */
    pid_t tid;               /* 0: all */
    uint64_t from_ns, to_ns; /* half open; 0 and UINT64_MAX: everything */
};

/* Spans of all threads of a job in the order of time, then tid, then as they were entered. */
struct export_merge;
int export_merge_new(struct export_merge **out, const struct export_job *j); /* MTUI_E_NOMEM */
void export_merge_free(struct export_merge *m);
/* NULL at the end. */
const struct span *export_merge_next(struct export_merge *m, size_t *thread);

/* Gaps and marks that belong to the job. */
bool export_has_gap(const struct export_job *j, const struct gap *g);
bool export_has_mark(const struct export_job *j, const struct mark *m);

/* "setgpo" letters, or "-". */
const char *export_flags(unsigned flags, char out[8]);

/* Each writes everything; errors stick in j->out, other ones are returned. */
int export_spans(const struct export_job *j, struct err *err);
int export_functions(const struct export_job *j, struct err *err);
int export_gaps(const struct export_job *j, struct err *err);
int export_marks(const struct export_job *j, struct err *err);
int export_json(const struct export_job *j, struct err *err);
int export_folded(const struct export_job *j, struct err *err);
int export_fxt(const struct export_job *j, struct err *err);

#endif
