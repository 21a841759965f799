/* Programs with every kind of flow that decoders and stacks get wrong, to be stepped. */
#ifndef MTUI_TESTS_LIB_STEP_PROGRAMS_H
#define MTUI_TESTS_LIB_STEP_PROGRAMS_H

#include "lib_step.h"

/* Ended by one without a name. */
extern const struct step_program step_programs[];

/* A small one of calls, recursion and indirect calls. No library: its symbols would have to be read each time. */
extern const struct step_program step_program_tiny;

#endif
