/* Functions from what `perf script` prints at an address: "symbol+0xoffset (module)". No symbol table is
 * looked at. */
#ifndef MTUI_DECODE_TEXT_NAMES_H
#define MTUI_DECODE_TEXT_NAMES_H

#include "decode/trace/functions.h"
#include "decode/text/perf_text.h"

struct text_names;

/* functions must outlive it. */
struct text_names *text_names_new(struct functions *functions);
void text_names_free(struct text_names *n);

/* The function at p; "[unknown]" where none was printed. Frames behind p in its call chain reach up to end
 * (p + 1: there is none): an inlined frame belongs to the module of the frame it was inlined into, which
 * is the next one. FN_NONE: memory is short. */
fn_id text_names_find(struct text_names *n, const struct perf_text_place *p,
                      const struct perf_text_place *end);

/* A terminated copy of s, good until the next call of either; NULL: memory is short. */
const char *text_names_string(struct text_names *n, struct perf_text_str s);

bool perf_text_equals(struct perf_text_str a, const char *b);

#endif
