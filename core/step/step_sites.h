/* The list of calls that the step recorder is to step, handed over in a file, so that it may be long and
 * may change while the recording runs: a line a site, tab-separated:
 *
 *   TRIGGER  MEMBER  entry|point  uprobe|break  OFFSET (hex)  PATH
 *
 * "break": only a hardware breakpoint can sit there. The path is the rest of the line; one with a newline in it cannot be written. */
#ifndef MTUI_CORE_STEP_SITES_H
#define MTUI_CORE_STEP_SITES_H

#include <stddef.h>

#include "core/base/err.h"
#include "core/step/step_events.h"

/* Replaces the file as a whole. */
int step_sites_write(const char *path, const struct step_site *sites, size_t n, struct err *err);

/* A file that is not there is an empty list. MTUI_E_FORMAT with the line. *out is released with
 * step_sites_free. */
int step_sites_read(const char *path, struct step_site **out, size_t *n, struct err *err);
void step_sites_free(struct step_site *sites, size_t n);

#endif
