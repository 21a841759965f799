/* The two themes that are always there, taken from their files when mtui is built. */
#include "tui/term/theme_builtin.h"

#define EMBED(symbol, file)                                                                        \
    __asm__(".section .rodata\n"                                                                   \
            ".global " #symbol "\n" #symbol ":\n"                                                  \
            ".incbin \"" file "\"\n"                                                               \
            ".byte 0\n"                                                                            \
            ".previous\n")

EMBED(theme_builtin_default, "themes/default.theme");
EMBED(theme_builtin_mono, "themes/mono.theme");
