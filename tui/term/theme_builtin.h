/* themes/default.theme and themes/mono.theme as text (see theme_builtin.c). */
#ifndef MTUI_TUI_THEME_BUILTIN_H
#define MTUI_TUI_THEME_BUILTIN_H

extern const char theme_builtin_default[];
extern const char theme_builtin_mono[];

#endif
