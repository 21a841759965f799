/* Names of the code that a stepped program ran, by nm of the mapped files: without mtui's own symbols. */
#ifndef MTUI_TESTS_LIB_STEP_SYMBOLS_H
#define MTUI_TESTS_LIB_STEP_SYMBOLS_H

#include "lib_step.h"

struct step_symbols;

struct step_symbols *step_symbols_new(const struct step_rec *r);
void step_symbols_free(struct step_symbols *s);

/* Whether some symbol begins at ip (as mapped at that time); whether one of this name does. */
bool step_symbols_start(const struct step_symbols *s, uint64_t ip, uint64_t clock);
bool step_symbols_is(const struct step_symbols *s, uint64_t ip, uint64_t clock, const char *name);

/* Whether name and module are right for a function called at ip: the mapped file, and a symbol that begins
 * there; where none does, one around it, FUNCTION@plt, FILE+0xADDRESS of the unwind entry around it, or
 * "[unknown]" where there is no such entry either. */
bool step_symbols_fit(const struct step_symbols *s, uint64_t ip, uint64_t clock, const char *name,
                      const char *module);

/* Whether nm finds nothing but what dynamic linking needs. */
bool step_symbols_stripped(const struct step_symbols *s, const char *path);

#endif
