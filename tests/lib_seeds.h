/* Seeds of the fuzz targets (tests/fuzz_*.c), made by our own encoders: what a target should know of its
 * input's form before it begins to guess; and inputs that once broke something. */
#ifndef MTUI_TESTS_LIB_SEEDS_H
#define MTUI_TESTS_LIB_SEEDS_H

#include <stddef.h>
#include <stdint.h>

typedef void seed_fn(void *arg, const char *name, const uint8_t *bytes, size_t len);

/* Each calls fn with every seed of a target. */
void seeds_pt(seed_fn *fn, void *arg);       /* as fuzz_pt.c reads it: code and packets */
void seeds_perfdata(seed_fn *fn, void *arg); /* perf.data files */
void seeds_perftext(seed_fn *fn, void *arg); /* text of perf script */

/* For LLVMFuzzerInitialize: writes the seeds into the directory that MTUI_SEEDS names, if it does. */
void seeds_write(void (*seeds)(seed_fn *fn, void *arg));

/* For tests: runs a target on every seed, on every truncation of it when it is not longer than that, and on so
 * many random changes of it. Returns how many inputs that were. */
size_t seeds_run(void (*seeds)(seed_fn *fn, void *arg), int (*target)(const uint8_t *data, size_t size),
                 size_t truncate_up_to, unsigned changes);

#endif
