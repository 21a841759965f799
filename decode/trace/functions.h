/* The table of functions that a trace refers to: each once, by a small number.
 *
 * Names are bytes from outside: escape them before they reach a terminal or a file. Any thread may add, and look
 * up ids that were handed to it. */
#ifndef MTUI_DECODE_FUNCTIONS_H
#define MTUI_DECODE_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t fn_id; /* index into the table; FN_NONE is "no function" */
#define FN_NONE UINT32_MAX

enum fn_kind {
    FN_USER,
    FN_KERNEL,
    FN_VDSO,
    FN_PLT,
    FN_PART,    /* lies apart from its function, and whose it is is not known: f.cold of a stripped file, or of several f */
    FN_UNKNOWN, /* code whose function is not known: name is "[unknown]" or "[module]" */
    FN_PSEUDO   /* no code at all: "[off cpu]", "[lost]" */
};

struct function {
    const char *name;   /* demangled; never NULL */
    const char *raw;    /* as in the symbol table; equals name when it was not mangled */
    const char *module; /* path or "[vdso]", "[kernel]", "[unknown]"; never NULL */
    uint64_t addr;      /* start, as an address of the module's file; 0 when unknown */
    enum fn_kind kind;
    bool by_addr; /* of that name in the module there may be others (static in C, say), at other addresses */
};

struct functions;

struct functions *functions_new(void);
void functions_free(struct functions *f);

/* The table as it is now, for a trace of its own: the same functions by the same ids, whatever is added to
 * f later. Costs nothing; each of them is freed by itself, in any order. Nothing can be added to it. */
struct functions *functions_share(const struct functions *f);

/* The id of (module, raw), added when new; strings are copied. */
fn_id functions_intern(struct functions *f, const char *module, const char *raw, const char *name,
                       uint64_t addr, enum fn_kind kind);
/* Where addr tells functions of one name apart: the id of (module, raw, addr). */
fn_id functions_intern_at(struct functions *f, const char *module, const char *raw, const char *name,
                          uint64_t addr, enum fn_kind kind);

/* The file whose symbols and code stand for a module: a copy, or the module's own path after its build-id
 * was compared. Strings are copied; the first file of a module stays. NULL: none was used. */
void functions_set_file(struct functions *f, const char *module, const char *file);
const char *functions_file(const struct functions *f, const char *module);
/* Whether any module has one. */
bool functions_have_files(const struct functions *f);

size_t functions_count(const struct functions *f);
const struct function *functions_get(const struct functions *f, fn_id id);

#endif
