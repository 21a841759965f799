/* One process or thread as /proc shows it: the files stat, status and cmdline, parsed.
 *
 * Every byte of them is under the control of the process's owner: a name may hold spaces, ')',
 * newlines and escapes, so stat is parsed from the last ')'. Format: proc_pid_stat(5),
 * proc_pid_status(5), proc_pid_cmdline(5). */
#ifndef MTUI_CORE_PROC_STAT_H
#define MTUI_CORE_PROC_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

#define PROC_COMM_MAX 64 /* the kernel cuts a name at 15 bytes, those of kernel threads later */

struct proc_stat {
    pid_t pid, ppid;
    char comm[PROC_COMM_MAX]; /* raw bytes */
    char state;               /* R S D Z T t I …; Z of a process: all of its threads have ended */
    bool kernel_thread;       /* PF_KTHREAD */
    bool exiting;             /* PF_EXITING: it has ended, or runs no more code of its program and is about to */
    uint64_t cpu_ticks;       /* user + system, in sysconf(_SC_CLK_TCK) */
    uint64_t start_ticks;     /* since boot: with the pid it names a process for good */
    uint64_t rss_pages;
    unsigned threads;
    int cpu; /* the one it last ran on, −1 unknown */
};

/* Parses the contents of a stat file. */
int proc_stat_parse(const char *text, size_t len, struct proc_stat *out, struct err *err);

/* Reads ROOT/PID/stat, or ROOT/PID/task/TID/stat when tid is not 0. MTUI_E_GONE when it ended. A process whose
 * main thread has ended (pthread_exit(3) in main) while others live on has the state and the memory of one of those. */
int proc_stat_read(const char *root, pid_t pid, pid_t tid, struct proc_stat *out, struct err *err);

/* Nanoseconds for which the threads that a process has now were ready to run and others ran (ROOT/PID/task/TID/schedstat,
 * second number; kernel, Documentation/scheduler/sched-stats); 0 where the kernel does not tell. */
uint64_t proc_wait_ns(const char *root, pid_t pid);

/* The number by which ROOT shows a process's memory, files and namespaces (maps, mem, exe, root, cmdline): pid, or
 * when its main thread has ended, and all that with it, one of its living threads: each has a directory ROOT/TID, which
 * is only not listed (proc(5)), and is as good a number for process_vm_readv(2) and perf_event_open(2). */
pid_t proc_living_thread(const char *root, pid_t pid);

/* The value of a line "Key:\t…" of ROOT/PID/status, without the newline; false when absent. */
bool proc_status_value(const char *root, pid_t pid, const char *key, char *out, size_t size);

/* The command line, arguments joined by spaces (a space inside an argument stays bare), at most
 * max bytes; "[comm]" for a process without one. The caller frees it. Raw bytes. */
char *proc_command(const char *root, pid_t pid, const char *comm, size_t max);

/* Reads a whole small file of /proc into a fresh buffer with a final NUL; NULL when it cannot be
 * read or is larger than max. */
char *proc_read_file(const char *path, size_t max, size_t *len);

#endif
