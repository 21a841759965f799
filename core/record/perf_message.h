/* What perf prints, read: its Dump lines, and its failures in one plain sentence. */
#ifndef MTUI_CORE_PERF_MESSAGE_H
#define MTUI_CORE_PERF_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/machine/child.h"

/* "[ perf record: Dump BASE.2026112916394494 ]": true, and suffix (size bytes) gets what follows
 * BASE, here ".2026112916394494". Any other line, another base, or a suffix with a '/' in it:
 * false. */
bool perf_message_is_dump(const char *line, size_t len, const char *base, char *suffix,
                          size_t size);

/* A number for the known complaint in a line, -1 if there is none. Of several lines the lowest
 * number is the one that explains the rest. */
int perf_message_find(const char *line);

/* What it means and what to do, in one sentence without a full stop. */
const char *perf_message_sentence(int complaint);

/* The same for a write that failed with this errno; NULL: nothing more is known than strerror says. */
const char *perf_message_of_write_error(int errno_value);

/* True for complaints about writing the recording: it is not whole then, however perf ends. */
bool perf_message_is_loss(int complaint);

/* Those of them that come from a disk, or quota, that is full. */
bool perf_message_is_full(int complaint);

/* "perf exited with status 255", "perf was killed by signal 9 (Killed)", with who for perf. */
void perf_message_end(const char *who, const struct child_end *end, char *out, size_t size);

#endif
