/* The list of branches of an exact recording, as a table:
 *
 *   branches  time_ns tid cpu kind from to   addresses in hex without 0x, 0 for the side that does not exist;
 *             cpu −1: not known. One line a branch that `perf script --itrace=be` lists, in the order of time
 *
 * Kinds, for perf's flag words: call · return · jump · cond (taken) · syscall · sysret · interrupt · iret ·
 * abort · begin · end with what ended it (end:call, end:return, end:jump, end:syscall, end:sysret,
 * end:interrupt, end:iret, end:async) · error (from: where). */
#ifndef MTUI_DECODE_EXPORT_BRANCHES_H
#define MTUI_DECODE_EXPORT_BRANCHES_H

#include "decode/export/export.h"
#include "decode/open/open.h"

/* Decodes path and writes to out ("-": standard output; gzipped when it ends in ".gz"), as it goes. Range
 * and thread of the export options count. On success *r is the recording without spans: its notes tell
 * what was not decoded. MTUI_E_NOTSUP: the recording is none with branches. */
int export_branches(struct recording **r, const char *path, const struct open_options *open,
                    const char *out, const struct export_options *options, struct err *err);

#endif
