/* The code of a stopped process as it executes: its memory, without the bytes of probes.
 *
 * A uprobe shows as 0xCC (int3) when memory is read, while the kernel executes the original
 * instruction out of line; the true byte is the one in the mapped file. */
#ifndef MTUI_CORE_STEP_CODE_H
#define MTUI_CORE_STEP_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/machine/maps.h"

struct step_code;

int step_code_new(struct step_code **out, pid_t pid, struct err *err);
void step_code_free(struct step_code *c);

/* The mappings have changed: reads them again. On failure the old ones stay; MTUI_E_GONE when they are those of another
 * program already, by an execve(2) that has not been told by step_code_replaced. */
int step_code_refresh(struct step_code *c, struct err *err);
/* The program has been replaced by another, or may have been: reads its mappings. As step_code_refresh otherwise. */
int step_code_replaced(struct step_code *c, struct err *err);
/* Memory is read through this thread of the process from now on, one that is stopped: any other may end meanwhile, the
 * main thread too, and what has ended has no memory. */
void step_code_read_through(struct step_code *c, pid_t tid);
const struct maps *step_code_maps(const struct step_code *c);

/* Code as the file behind a mapping has it: n bytes for address, zeros behind the file's end. False when the file
 * cannot be read. */
bool step_code_read_file(struct step_code *c, const struct map *m, uint64_t address, uint8_t *out, size_t n);

/* A step_read_code_fn: arg is the struct step_code. */
size_t step_code_read(void *arg, uint64_t ip, uint8_t *out, size_t n);

#endif
