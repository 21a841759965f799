/* A perf map: names of code that a just-in-time compiler made, a line "START SIZE NAME" in hex each, with
 * or without 0x (tools/perf/Documentation/jit-interface.txt). Where entries overlap, the later line wins:
 * code memory is used again. Lines that do not parse are left out. */
#ifndef MTUI_DECODE_SYM_JIT_H
#define MTUI_DECODE_SYM_JIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

#define SYM_JIT_MAX_FILE (512u << 20)

struct sym_jit;

/* any_owner: the file is a copy of ours; else it must belong to us or to root. */
int sym_jit_load(struct sym_jit **out, const char *path, bool any_owner, struct err *err);
/* The same from bytes (copied). */
int sym_jit_parse(struct sym_jit **out, const char *text, size_t len, struct err *err);
void sym_jit_free(struct sym_jit *j);

/* The name of the code at address (len bytes, not terminated), or NULL; *start gets where it begins. */
const char *sym_jit_find(const struct sym_jit *j, uint64_t address, size_t *len, uint64_t *start);

#endif
