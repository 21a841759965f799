/* What `\` takes on a screen. Lengths stand in it as of a clock that tells time ("1us", "2ms"). */
#ifndef MTUI_TUI_FILTER_HELP_H
#define MTUI_TUI_FILTER_HELP_H

#include <stdbool.h>
#include <stddef.h>

struct filter_help {
    const char *brief; /* above the prompt */
    struct {
        const char *words, *meaning;
    } lines[8]; /* in the help and the manual; words NULL ends them */
};

/* A text of it for a trace whose clock counts instructions, or tells time: "self>=1k" for "self>=1us", since a
 * nanosecond stands for an instruction. Returns out. */
char *filter_help_text(char *out, size_t size, const char *text, bool instructions);

#endif
