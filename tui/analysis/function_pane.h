/* The pane below the table of functions: callers, callees, the histogram of durations, the longest calls
 * of one function. What needs a walk over the trace is found in the background. */
#ifndef MTUI_TUI_FUNCTION_PANE_H
#define MTUI_TUI_FUNCTION_PANE_H

#include "decode/trace/stats.h"
#include "tui/ui/function_names.h"
#include "tui/term/glyph.h"
#include "tui/term/surface.h"

struct loop;
struct function_pane;

struct function_pane *function_pane_new(struct loop *loop, void (*ready)(void *arg), void *arg);
void function_pane_free(struct function_pane *p);

/* Tells of fn from now on; nothing happens when it does already. t must live until the next _show of
 * another trace, _clear or _free. */
void function_pane_show(struct function_pane *p, const struct trace *t, fn_id fn,
                        const struct stats_options *options);
void function_pane_clear(struct function_pane *p);

/* The chosen one of the longest calls, the longest at first; NULL when they are not known yet. */
const struct stats_call *function_pane_call(const struct function_pane *p);
void function_pane_step(struct function_pane *p, int delta);

void function_pane_draw(struct function_pane *p, struct surface *s, struct rect r,
                        const struct function_stats *f, struct function_names *names,
                        const struct glyphs *g);

/* "Duration (log2)", then a row a bucket: from, bar, calls; the bucket of at_ns is marked (UINT64_MAX: none).
 * Where there are more buckets than rows, empty ones are left out, then the shortest durations share the first
 * row, "<16 ns". */
void function_pane_histogram(struct surface *s, struct rect r, const struct function_stats *f,
                             uint64_t at_ns, bool instructions, const struct glyphs *g);

/* Its buckets, from the first to the last that has calls. */
int function_pane_buckets(const struct function_stats *f);

#endif
