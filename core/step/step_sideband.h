/* What a decoder must know besides the packets: which code was mapped when, how threads are named,
 * where they come from. Gathered while stepping, written into each file. */
#ifndef MTUI_CORE_STEP_SIDEBAND_H
#define MTUI_CORE_STEP_SIDEBAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/machine/maps.h"
#include "core/step/perf_writer.h"

struct step_sideband;

struct step_sideband *step_sideband_new(pid_t pid);
void step_sideband_free(struct step_sideband *s);

/* The executable mappings as of clock: those not known before are noted. */
void step_sideband_maps(struct step_sideband *s, const struct maps *maps, uint64_t clock);
/* Part of the executable mapping m (NULL: not known) holds other code from clock on. */
void step_sideband_code(struct step_sideband *s, const struct map *m, uint64_t start, uint64_t len,
                        uint64_t clock);
/* The process runs another program from clock on: the mappings known so far are history. */
void step_sideband_exec(struct step_sideband *s, uint64_t clock);
/* A thread, by its present name in /proc. */
void step_sideband_thread(struct step_sideband *s, pid_t tid, uint64_t clock);
/* Notes the present name of a thread, if it is not the one known. */
void step_sideband_name(struct step_sideband *s, pid_t tid, uint64_t clock);
void step_sideband_exit(struct step_sideband *s, pid_t tid, uint64_t clock);

/* Writes everything, in the order of time. */
void step_sideband_write(const struct step_sideband *s, struct perf_writer *w);

#endif
