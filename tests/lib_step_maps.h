/* The code that a stepped program had mapped, and when: from the mapping records of its recording (read here
 * as perf_event_open(2) lays them out, without mtui's own reader) and the mapped files. */
#ifndef MTUI_TESTS_LIB_STEP_MAPS_H
#define MTUI_TESTS_LIB_STEP_MAPS_H

#include "lib_step.h"

/* Fills r->maps from r->data. The code of [vdso] is this process's: it is the same in all. */
void step_maps_read(struct step_rec *r);
void step_maps_free(struct step_rec *r);

#endif
