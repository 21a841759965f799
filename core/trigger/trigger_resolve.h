/* From a trigger to the places where probes must sit. */
#ifndef MTUI_CORE_TRIGGER_RESOLVE_H
#define MTUI_CORE_TRIGGER_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/symbols/modules.h"
#include "core/trigger/probe.h"
#include "core/trigger/trigger.h"
#include "core/base/vec.h"

/* Each place costs the kernel some milliseconds to arm and to disarm. */
#define TRIGGER_PLACES_MAX 512

struct trigger_places {
    VEC(struct probe_site) sites; /* strings are its own */
    size_t functions;             /* functions, lines or addresses found; where a file is mapped twice, once */
    char *where;                  /* "libc.so.6!malloc at 0x7f1234567890", "12 functions" */
    char *file;                   /* that the first is in, as the program has mapped it */
    char *note;                   /* what is not covered, a sentence; NULL: nothing */
};

/* number goes into each site. For a trigger that needs returns: the entry, and each return and tail
 * jump of the function. MTUI_E_NOENT with the nearest names; MTUI_E_NOTSUP for what cannot hit (a
 * kernel function, [vdso], an ifunc, a function whose returns cannot be found); MTUI_E_LIMIT for
 * more than TRIGGER_PLACES_MAX places. With err NULL a name that is not there is found out faster. */
int trigger_resolve(struct modules *m, const struct trigger *t, uint32_t number,
                    struct trigger_places *out, struct err *err);
void trigger_places_free(struct trigger_places *p);

#endif
