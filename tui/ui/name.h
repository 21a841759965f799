/* Names of functions made short: what a span of few columns, a table column, a title can show.
 *
 * Names are bytes from outside; nothing here changes or escapes them, levels are parts of the name. */
#ifndef MTUI_TUI_NAME_H
#define MTUI_TUI_NAME_H

#include <stddef.h>

/* From long to short. */
enum name_level {
    NAME_FULL,         /* as it is: "std::map<int, Foo<T>>::find(int const&) const" */
    NAME_NO_ARGUMENTS, /* "std::map<int, Foo<T>>::find" */
    NAME_NO_TEMPLATES, /* "std::map::find" */
    NAME_LAST,         /* "find"; also of Rust paths */
    NAME_LEVELS
};

/* Writes a level of name into out (size bytes, always terminated, cut if needed); returns its length.
 * Knows operators ("operator<", "operator()"), "(anonymous namespace)", "{lambda(int)#1}". */
size_t name_write(char *out, size_t size, const char *name, enum name_level level);

/* The longest level that fits into max_cols columns, else NAME_LAST; written into out as above. */
enum name_level name_fit(char *out, size_t size, const char *name, size_t max_cols);

#endif
