/* A branch line of `perf script` as a branch: which kind its flag words make it. */
#ifndef MTUI_DECODE_TEXT_BRANCH_H
#define MTUI_DECODE_TEXT_BRANCH_H

#include "decode/text/perf_text.h"
#include "decode/pt/pt_event.h"

/* ev is a BRANCH or an ERROR. The side that does not exist is 0, whatever was printed; the time is the
 * caller's to set. Lines without flag words (-F without flags) are told by their two ends: *guessed. */
struct pt_branch text_branch(const struct perf_text_event *ev, bool *guessed);

/* What an "instruction trace error" line says was lost, by its code (tools/perf/util/intel-pt-decoder,
 * intel-pt-decoder.h). */
enum gap_cause text_branch_cause(const struct perf_text_event *ev);

/* "foo" of the two names that parts of foo moved out of the way have: "foo.cold", "foo.cold.3" and,
 * demangled, "foo [clone .cold]". True when it was such a part. */
bool text_branch_whole(struct perf_text_str *symbol);

#endif
