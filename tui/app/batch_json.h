/* What `--batch --json` prints on stdout: a line for each snapshot, and with `--json-end` one when it ends. The manual page (doc.c) lists
 * the members; those whose value is not known are left out. */
#ifndef MTUI_TUI_BATCH_JSON_H
#define MTUI_TUI_BATCH_JSON_H

#include "core/session/session.h"

void batch_json_snapshot(struct session *session, const struct session_snapshot *s);

/* The recording has ended (session_end_name), with so many lines before. */
void batch_json_end(struct session *session, size_t snapshots);

/* The same of one that did not begin. */
void batch_json_refused(const struct err *err);

#endif
