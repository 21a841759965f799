/* The table of processes: what runs, what it uses, and whether it can be traced.
 *
 * Refreshed at an interval by its user. A row is identified by pid and start time, so that a reused
 * pid is a new row. A process that disappears in the middle of a scan is no error. Strings of a row
 * are raw bytes from outside, and live until the next refresh. */
#ifndef MTUI_CORE_PROC_H
#define MTUI_CORE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/machine/proc_stat.h"

#define PROC_HISTORY 60 /* refreshes that the CPU history remembers */

enum proc_syms { PROC_SYMS_UNKNOWN, PROC_SYMS_NONE, PROC_SYMS_DYNSYM, PROC_SYMS_SYMTAB,
                 PROC_SYMS_DEBUG, PROC_SYMS_KERNEL };
/* "?" "none" "dynsym" "symtab" "debug" "kernel" */
const char *proc_syms_name(enum proc_syms syms);

enum proc_trace {
    PROC_TRACE_OK,
    PROC_TRACE_NO_PERM, /* perf_event_open on it is refused */
    PROC_TRACE_KERNEL,  /* a kernel thread: no user code */
    PROC_TRACE_ZOMBIE,
    PROC_TRACE_32BIT,
    PROC_TRACE_SELF,    /* mtui itself */
    PROC_TRACE_SECCOMP, /* a seccomp filter refuses perf events altogether */
    PROC_TRACE_FOREIGN  /* its number is of another pid namespace, that of /proc */
};
/* "ok" "no-perm" "kernel" "zombie" "32-bit" "self" "seccomp" "other ns" */
const char *proc_trace_name(enum proc_trace trace);

struct proc {
    struct proc_stat stat;
    uid_t uid;
    const char *user;       /* name or number */
    const char *command;    /* proc_command() */
    unsigned cpu_permille;  /* of one CPU, since the last refresh; of its whole life at first sight */
    uint64_t rss_bytes;
    uint64_t age_s;
    enum proc_syms syms;
    enum proc_trace trace;
    uint16_t history[PROC_HISTORY]; /* permille, oldest first */
    unsigned history_len;
};

struct proc_table;

/* root is "/proc"; tests give a tree of their own (no access checks are made then). */
struct proc_table *proc_table_new(const char *root);
void proc_table_free(struct proc_table *t);

/* Reads the present state. now_ns: CLOCK_MONOTONIC, for rates. MTUI_E_IO when root cannot be read. */
int proc_table_refresh(struct proc_table *t, uint64_t now_ns, struct err *err);

/* Rows ordered by pid. */
size_t proc_table_count(const struct proc_table *t);
const struct proc *proc_table_at(const struct proc_table *t, size_t i);
const struct proc *proc_table_find(const struct proc_table *t, pid_t pid);

/* One sentence why a process cannot be traced and what would help; "" when it can. */
void proc_trace_reason(const struct proc *p, char *out, size_t size);

/* The threads of a process, ordered by tid; the caller frees the array. Returns their number, or
 * MTUI_E_GONE. */
ssize_t proc_threads(const char *root, pid_t pid, struct proc_stat **out, struct err *err);

#endif
