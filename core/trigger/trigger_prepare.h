/* Names of triggers resolved beforehand, in a thread of its own: the symbols of a very big program take
 * seconds to read, and whoever arms must not wait for that. */
#ifndef MTUI_CORE_TRIGGER_PREPARE_H
#define MTUI_CORE_TRIGGER_PREPARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/symbols/modules.h"
#include "core/trigger/trigger_resolve.h"

struct trigger_prepared;

/* Any thread. Resolves n specs, as they would be armed, in each of the running processes. Errors as
 * trigger_parse and trigger_resolve; MTUI_E_CANCEL. cancel may be NULL. */
int trigger_prepare(const pid_t *pids, size_t n_pids, char *const *specs, size_t n,
                    const struct trigger_conditions *when, const atomic_bool *cancel,
                    struct trigger_prepared **out, struct err *err);
/* The same for a program that is to be started. What is not found there is no error: it may be mapped later. */
int trigger_prepare_program(const char *executable, char *const *specs, size_t n,
                            const struct trigger_conditions *when, const atomic_bool *cancel,
                            struct trigger_prepared **out, struct err *err);
void trigger_prepared_free(struct trigger_prepared *p); /* NULL allowed */

/* Hands over what is known of a process: its modules and the places of each of the n triggers. False:
 * nothing, or it was taken already. */
bool trigger_prepared_take(struct trigger_prepared *p, pid_t pid, struct modules **modules,
                           struct trigger_places *places, size_t n);

/* Hands over what came of trigger i of n in that program: *rc and err as of trigger_program_resolve. False: nothing is
 * known of it, or it was taken already. p may be NULL. */
bool trigger_prepared_take_program(struct trigger_prepared *p, const char *executable, size_t i, size_t n,
                                   struct trigger_places *places, int *rc, struct err *err);

#endif
