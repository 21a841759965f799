/* The functions of a trace by the names that screens show: in the style that is set, and told apart where two would read
 * the same. "f(int)" and "f(double)" stand with their parameters where that is enough, else functions of one module with
 * their addresses in it, "parse 0x1196" and "parse 0x11c3", those of several with the modules, "init liba.so" and "init
 * libb.so"; unknown code, which has no name, always with its module, "[unknown] libz.so". A module is
 * the shortest end of its path that tells it from the trace's others: "libz.so", or "lib/libz.so" and "opt/libz.so".
 *
 * Worked out when first asked for. Strings are bytes from outside, as all names, and live until the next
 * function_names_set or _grow. */
#ifndef MTUI_TUI_FUNCTION_NAMES_H
#define MTUI_TUI_FUNCTION_NAMES_H

#include "decode/trace/functions.h"
#include "tui/term/glyph.h"

enum name_style {
    NAMES_SHORT, /* Http::Handler::request */
    NAMES_FULL,  /* Http::Handler<int>::request(Conn&) const */
    NAMES_RAW    /* as in the symbol table */
};

struct function_names;

/* Of no functions. */
struct function_names *function_names_new(void);
void function_names_free(struct function_names *n);

/* Of those that f has now; f must live until the next _set or _grow, NULL: of none. */
void function_names_set(struct function_names *n, const struct functions *f, enum name_style style);

/* Of those of f, which are those there were, by the same ids, and perhaps more. */
void function_names_grow(struct function_names *n, const struct functions *f);

/* The second is for where the module is known, or stands too. */
const char *function_names_get(struct function_names *n, fn_id fn);
const char *function_names_in_module(struct function_names *n, fn_id fn);
const char *function_names_module(struct function_names *n, fn_id fn);

/* Whether parameters, or arguments of templates, tell it apart from another of its module. */
bool function_names_overload(struct function_names *n, fn_id fn);

/* Written into out (size bytes) as far as it fits into cols columns, and what tells it apart longest: see name_fit of
 * tui/ui/name.h. */
size_t function_names_fit(struct function_names *n, fn_id fn, char *out, size_t size, int cols, const struct glyphs *g);
size_t function_names_fit_in_module(struct function_names *n, fn_id fn, char *out, size_t size, int cols,
                                    const struct glyphs *g);

/* What people may call it who look for it: as it is shown, with its module where that tells it apart and without, and
 * demangled without parameters; the i-th from 0, NULL behind the last. */
const char *function_names_form(struct function_names *n, fn_id fn, int i);
/* Whether the text is part of a form of some function's name, whatever the case. */
bool function_names_occur(struct function_names *n, const char *text);

#endif
