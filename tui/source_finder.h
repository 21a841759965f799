/* Where functions stand in the source: looked up in the background, one at a time, and remembered. */
#ifndef MTUI_TUI_SOURCE_FINDER_H
#define MTUI_TUI_SOURCE_FINDER_H

#include "decode/functions.h"

struct loop;
struct source_finder;

struct source_place {
    const char *file; /* NULL: not known */
    int line;
};

/* ready runs in the loop's thread when an answer has come; without a loop answers come at once. */
struct source_finder *source_finder_new(struct loop *loop, void (*ready)(void *arg), void *arg);
void source_finder_free(struct source_finder *f);
/* Forgets all answers: another trace, whose modules may be others. */
void source_finder_clear(struct source_finder *f);

/* The declaration of fn, by the DWARF of its module (a path) or of its separate debug file. NULL: not
 * known yet; it is being looked up and ready will tell. The answer is good until the next question. */
const struct source_place *source_find(struct source_finder *f, const struct function *fn);

#endif
