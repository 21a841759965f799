/* Keeps pages of code for decoding: appends them to `maps/code-step` of a snapshot directory and tells of them
 * in `maps/log`, as core/session/maps_log.h describes. Each record goes out in one write(2) to a file opened
 * with O_APPEND, so that mtui itself can write there too. */
#ifndef MTUI_CORE_STEP_CODE_LOG_H
#define MTUI_CORE_STEP_CODE_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

#define STEP_CODE_PAGE     4096u       /* bytes */
#define STEP_CODE_LOG_MOST (64u << 20) /* bytes of pages that are kept */

struct step_code_log;

/* dir is `maps/`, whose log is there. */
int step_code_log_open(struct step_code_log **out, const char *dir, pid_t pid, struct err *err);
void step_code_log_close(struct step_code_log *l);

/* From clock on (0: from the beginning) the page at start holds these bytes. False when they are not kept, as
 * they are too many or the disk is full: then the log says that they are unknown, if it takes that. */
bool step_code_log_put(struct step_code_log *l, uint64_t clock, uint64_t start,
                       const uint8_t bytes[STEP_CODE_PAGE]);

#endif
