/* Where calls stand in the source: looked up in the background, one at a time, and remembered. */
#ifndef MTUI_TUI_SOURCE_FINDER_H
#define MTUI_TUI_SOURCE_FINDER_H

#include "decode/trace/functions.h"
#include "tui/trace/source_answer.h"

struct loop;
struct source_finder;

/* ready runs in the loop's thread when an answer has come; without a loop answers come at once. */
struct source_finder *source_finder_new(struct loop *loop, void (*ready)(void *arg), void *arg);
void source_finder_free(struct source_finder *f);
/* Forgets all answers: another trace, whose modules may be others. Waits for the question at hand. */
void source_finder_clear(struct source_finder *f);

/* What is known of a call of callee by caller (NULL: none), functions of fns, whose span has these flags.
 * NULL: not known yet; it is being looked up and ready will tell. The answer is good until the next
 * question. */
const struct source_answer *source_find(struct source_finder *f, const struct functions *fns,
                                        const struct function *callee, const struct function *caller,
                                        unsigned flags);

#endif
