/* The experiments behind some lines of the capability table; see capability.h for the others. */
#ifndef MTUI_CORE_CAPABILITY_PROBE_H
#define MTUI_CORE_CAPABILITY_PROBE_H

#include "core/doctor/capability.h"

/* Fills one line; strings are cut to their fields. */
void capability_say(struct capability *c, bool present, const char *value, const char *reason,
                    const char *remedy);

/* CAP_PERF and CAP_CONTROL: the version, and a ping to a perf that records nothing. */
void capability_try_perf(const struct capability_paths *paths, struct capabilities *out);
/* CAP_HWBREAK, CAP_UPROBE, CAP_STEP. */
void capability_try_hwbreak(struct capabilities *out);
void capability_try_uprobe(struct capabilities *out);
void capability_try_step(struct capabilities *out);

#endif
