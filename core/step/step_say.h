/* Lines from the step recorder to whoever started it. Writing never blocks, since a traced thread may be
 * waiting meanwhile: what the pipe does not take is kept and written later. */
#ifndef MTUI_CORE_STEP_SAY_H
#define MTUI_CORE_STEP_SAY_H

#include <stdbool.h>

struct step_say;

struct step_say *step_say_new(int fd);
/* Waits a little for what is left, and frees. */
void step_say_free(struct step_say *s);

/* One line of raw bytes (the reader escapes them); returns false when it was left out because too much waits already (with
 * important: never). */
bool step_say_line(struct step_say *s, bool important, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Writes what waits, as far as that goes. True: all is written. */
bool step_say_flush(struct step_say *s);

#endif
