/* From the events of `perf script` text to a log of samples: frames become functions by their printed
 * names, without any symbol table. Branch lines, packets and decode errors are not for here. */
#ifndef MTUI_DECODE_TEXT_LOG_H
#define MTUI_DECODE_TEXT_LOG_H

#include "decode/trace/functions.h"
#include "decode/text/perf_text.h"
#include "decode/sample/sample_log.h"

struct text_log;

struct text_log *text_log_new(struct functions *f, struct sample_log *log);
void text_log_free(struct text_log *t);

/* A perf_text_fn; arg is the text_log. */
int text_log_event(void *arg, const struct perf_text_event *ev);

/* Whether samples of an event of this name come at even distances while a thread runs: clocks and
 * cycle counters. */
bool event_name_is_clock(const char *name);

#endif
