/* Where the stack pointer of another thread is, without stopping it.
 *
 * A thread that waits in the kernel shows it in /proc/TID/syscall (proc(5)); one that runs is sampled
 * by a clock event of its own for a moment (perf_event_open(2): PERF_COUNT_SW_CPU_CLOCK with
 * PERF_SAMPLE_REGS_USER). Ask again until it is known: a thread that is ready to run but gets no CPU
 * shows nothing. */
#ifndef MTUI_CORE_THREAD_SP_H
#define MTUI_CORE_THREAD_SP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

struct thread_sp;

/* MTUI_E_GONE: it has ended. Others: it may only be seen while it waits. */
int thread_sp_new(pid_t tid, struct thread_sp **out, struct err *err);
void thread_sp_free(struct thread_sp *t);

/* The stack pointer at some moment after thread_sp_new; false: not known yet. */
bool thread_sp_read(struct thread_sp *t, uint64_t *sp);

/* A word of its memory; false: it cannot be read. */
bool thread_sp_word(const struct thread_sp *t, uint64_t address, uint64_t *value);

#endif
