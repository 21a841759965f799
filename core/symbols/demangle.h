/* C++ (Itanium ABI) and Rust (legacy and v0) names made readable, by libiberty.
 *
 * Only names that begin with a mangling prefix are touched (`_Z`, `__Z`, `___Z`, `_R`, `__R`): the C
 * function `f` stays `f`. The hash of legacy Rust names (17h…E) is left out. A suffix that compilers
 * append to clones (.cold, .part.0, .constprop.0, .isra.0, .llvm.123) is kept, as written, after the
 * name. Hostile names are bounded: libiberty's recursion limit is on, names longer than
 * DEMANGLE_MAX_IN are left alone, results longer than DEMANGLE_MAX_OUT are refused. Thread-safe. */
#ifndef MTUI_CORE_DEMANGLE_H
#define MTUI_CORE_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

#define DEMANGLE_MAX_IN 8192
#define DEMANGLE_MAX_OUT 16384

enum demangle_style {
    DEMANGLE_FULL,    /* Http::Handler<int>::request(Conn&) const */
    DEMANGLE_NO_ARGS, /* Http::Handler<int>::request : what `perf script` prints */
    DEMANGLE_SHORT    /* Http::Handler::request : for lists, and for the hash of a colour */
};

/* True when the name has a mangling prefix (it may still not be a valid mangled name). */
bool demangle_is_mangled(const char *raw);

/* The readable form from malloc, or NULL when raw is not mangled (or not valid, or too long): then
 * raw itself is the name. */
char *demangle(const char *raw, enum demangle_style style);

/* The same, never NULL: a copy of raw when it was not mangled. */
char *demangle_or_copy(const char *raw, enum demangle_style style);

/* Removes template arguments and the parameter list from a readable name (without a return type), in
 * place: "std::vector<int>::push(int) const" → "std::vector::push". Knows `operator<`, `operator()`,
 * `(anonymous namespace)`, `{lambda(int)#1}`, Rust's `<A as B>::f`. */
void demangle_shorten(char *name);

#endif
