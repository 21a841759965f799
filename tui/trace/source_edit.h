/* The source of what a list has chosen, in $EDITOR: looked up in the background, opened when it is found. */
#ifndef MTUI_TUI_SOURCE_EDIT_H
#define MTUI_TUI_SOURCE_EDIT_H

#include "decode/trace/trace.h"
#include "tui/trace/source_answer.h"
#include "tui/ui/model.h"

struct source_edit;

struct source_edit *source_edit_new(struct model *m);
/* Waits for the look-up at hand. */
void source_edit_free(struct source_edit *e);

/* Opens what arg says of the subject, a function or a call of t (t is not looked at any more afterwards).
 * What cannot be opened is said; a subject that is not valid is nothing chosen. */
void source_edit_subject(struct source_edit *e, const struct trace *t, struct model_subject subject,
                         const char *arg);

/* The argument of ACT_SOURCE: "" or NULL is where the function is defined, "call" where it is called. False,
 * after an error, for anything else. */
bool source_edit_parse(struct model *m, const char *arg, bool *call);
/* Opens the one of the two places, or says why not; the call's when the function's own is not here. */
void source_edit_answer(struct model *m, const struct source_answer *a, bool call);

#endif
