/* Triggers in a program that does not run yet: looked for in its file and in the libraries that it will load
 * (core/symbols/needed.h). The symbols of each file are read once. One thread at a time. */
#ifndef MTUI_CORE_TRIGGER_PROGRAM_H
#define MTUI_CORE_TRIGGER_PROGRAM_H

#include "core/base/err.h"
#include "core/trigger/trigger.h"
#include "core/trigger/trigger_resolve.h"

struct trigger_program;

/* Asks the program's loader for its libraries: milliseconds, at most two seconds. */
struct trigger_program *trigger_program_open(const char *executable);
void trigger_program_free(struct trigger_program *p); /* NULL allowed */

/* As trigger_resolve, in the first file that has it; else the most telling failure: that of the program, or one that
 * is more than "not here". The symbols of big files take seconds to read. An address without a file is one of the
 * program; MTUI_E_INVAL when that may be loaded anywhere. */
int trigger_program_resolve(struct trigger_program *p, const struct trigger *t, uint32_t number,
                            struct trigger_places *out, struct err *err);

#endif
