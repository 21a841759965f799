/* Names of functions made short: what a span of few columns, a table column, a title can show.
 *
 * Names are bytes from outside; nothing here changes or escapes them, levels are parts of the name. */
#ifndef MTUI_TUI_NAME_H
#define MTUI_TUI_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is kept of "std::map<int, Foo<T>>::find(int const&) const" beside "find", the last component, also of Rust paths. */
enum name_part {
    NAME_SCOPES = 1,    /* "std::map::" */
    NAME_TEMPLATES = 2, /* "<int, Foo<T>>", of scopes that are kept and of the function; those of parameters stay */
    NAME_PARAMETERS = 4 /* "(int const&) const", and all that stands behind it */
};
#define NAME_WHOLE (NAME_SCOPES | NAME_TEMPLATES | NAME_PARAMETERS)

/* Writes those parts of name into out (size bytes, always terminated, cut if needed); returns its length.
 * Knows operators ("operator<", "operator()"), "(anonymous namespace)", "{lambda(int)#1}". */
size_t name_write(char *out, size_t size, const char *name, unsigned parts);

/* What fits into max_cols columns, written into out as above: without parameters, then without templates, then without
 * scopes, then cut with the ellipsis, a character of one column. Of an overload, which parameters tell apart, these stay
 * longest and are cut before they go: "find(int const&) const", "find(int…", "find". */
size_t name_fit(char *out, size_t size, const char *name, bool overload, size_t max_cols, uint32_t ellipsis);

/* Any text, which may stand in out, as far as it fits, with the ellipsis at its end where it does not; returns its length. */
size_t name_cut(char *out, size_t size, const char *text, size_t max_cols, uint32_t ellipsis);

#endif
