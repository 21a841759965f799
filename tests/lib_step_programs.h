/* Small programs with the kinds of flow that stacks get wrong, for lib_step.h: each has a function `work`. */
#ifndef MTUI_TESTS_LIB_STEP_PROGRAMS_H
#define MTUI_TESTS_LIB_STEP_PROGRAMS_H

#include <stdbool.h>

struct step_program {
    const char *name, *source, *flags;
    bool cxx;
};

/* Ended by one without a name. */
extern const struct step_program step_programs[];

#endif
