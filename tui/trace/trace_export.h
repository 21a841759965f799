/* `x` and `:export` on the screens of a trace: writes it to a file in the background (formats:
 * decode/export/export.h). With a range A-B only what lies in it. A file that is there is never overwritten. */
#ifndef MTUI_TUI_TRACE_EXPORT_H
#define MTUI_TUI_TRACE_EXPORT_H

#include "tui/ui/model.h"

struct trace_export;

/* format: what `x` proposes on this screen. */
struct trace_export *trace_export_new(struct model *m, const char *format);
/* Of one thread alone; 0: all. */
void trace_export_thread(struct trace_export *x, pid_t tid);
/* Waits for a file that is being written. */
void trace_export_free(struct trace_export *x);

/* "FORMAT [FILE]"; without it the user is asked. Says what came of it. */
void trace_export_action(struct trace_export *x, const char *arg);

/* For MODEL_TRACE, while the old trace is still there: waits as _free does, and says what came of it. */
void trace_export_finish(struct trace_export *x);

#endif
