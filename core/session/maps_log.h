/* What mtui itself keeps of a target's address space, so that a process that has ended, a file that was
 * replaced and code that never had a file can still be named and decoded.
 *
 * Kept in `maps/` of a snapshot directory:
 *   log       text, a record a line, appended; version in its first line ("mtui-maps 1"); fields are
 *             separated by tabs, names escaped as utf8_escape writes them:
 *               P time pid reason        a capture of a process begins: the mappings that follow replace
 *                                        all that were known of it
 *               M start end pgoff prot dev inode file path
 *                                        one mapping: hex without 0x, prot "rwxsp" letters as in
 *                                        /proc/PID/maps; file is the number of an F record or 0
 *               E count                  the capture is whole: count M records
 *               F number dev inode size mtime_ns build-id state copy path
 *                                        a mapped file, before the first M that refers to it, numbered
 *                                        from 1; build-id in hex or -; state is "deleted" or "present";
 *                                        copy is the name of a file below maps/, or - when path itself
 *                                        is good, or when it could not be copied (an N says why)
 *               T time pid tid comm      a thread's name from now on
 *               X time pid start end copy name
 *                                        bytes of code without a file, as they were at that time
 *               C time pid start offset  a page (4096 bytes) of code as stepping saw it executed, from that
 *                                        time on, whatever is or was mapped there: its bytes are at
 *                                        offset of the file code-step; - when they could not be kept.
 *                                        Written by the step recorder (core/step/step_code_log.h)
 *               J time pid copy          a copy of /tmp/perf-PID.map
 *               N sentence               something that could not be kept
 *   file-N    copies of ELF files that would not be reachable later: deleted ones, and those of another
 *             mount namespace; at most MAPS_LOG_MAX_FILE each
 *   code-N    bytes of [vdso] and of executable mappings without a file, from /proc/PID/mem
 *   code-step bytes of pages as stepping saw them executed, one behind the other
 *   perf-N.map
 * A log whose end is missing (mtui was killed) is read as far as it goes. Times are those of the
 * recording's clock, 0 for "from the beginning". Format of /proc/PID/maps: proc(5). */
#ifndef MTUI_CORE_MAPS_LOG_H
#define MTUI_CORE_MAPS_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

#define MAPS_LOG_MAX_FILE (256u << 20) /* bytes of one file copy */
#define MAPS_LOG_MAX_CODE (64u << 20)  /* bytes of code dumps of one process */

/* ---- Writing ---- */

struct maps_writer;

struct maps_writer_stats {
    uint64_t captures;   /* written, because something had changed */
    uint64_t bytes;      /* of copies and dumps */
    uint64_t left_out;   /* files and dumps that were too big or could not be read */
    char note[256];      /* the last sentence about something left out; empty when none */
};

/* Makes dir/maps and starts the thread that reads /proc, so that nobody waits for a capture.
 * proc_root is "/proc" outside of tests. */
int maps_writer_new(struct maps_writer **out, const char *dir, const char *proc_root, struct err *err);

/* Asks for a capture of pid as of time_ns; reason is a word ("arm", "poll", "hit", "snapshot", "exec").
 * Returns at once. A capture that finds nothing changed writes nothing. A process that is gone is no
 * error: what was captured before stays. */
void maps_writer_capture(struct maps_writer *w, pid_t pid, uint64_t time_ns, const char *reason);

/* Waits until every capture asked for is written, at most timeout_ns; false when it takes longer. */
bool maps_writer_flush(struct maps_writer *w, uint64_t timeout_ns);

/* From any thread. */
void maps_writer_stats(struct maps_writer *w, struct maps_writer_stats *out);

/* Finishes what was asked for and closes. */
void maps_writer_free(struct maps_writer *w);

/* ---- Reading ---- */

struct maps_log;

/* A file that was mapped; the same for every mapping of it. */
struct maps_file {
    const char *path;         /* as in /proc/PID/maps, in the target's mount namespace, without the
                                 " (deleted)" that the kernel appends */
    uint8_t build_id[20];
    uint8_t build_id_len;     /* 0: it has none, or it could not be read */
    bool deleted;             /* was deleted or replaced at the time of the capture */
    const char *copy;         /* path of the copy kept, or NULL: look at path itself */
    uint64_t dev, inode, size;
    int64_t mtime_ns;
};

struct maps_mapping {
    uint64_t start, end, pgoff;
    unsigned prot;                 /* PROT_* */
    const char *path;              /* file path, "[vdso]", "[heap]", "" for anonymous */
    const struct maps_file *file;  /* NULL without a file */
};

/* The whole address space of a process from time_ns on, until the next capture of the same pid. */
struct maps_capture {
    uint64_t time_ns; /* 0: from the beginning */
    pid_t pid;
    const char *reason;
    const struct maps_mapping *mappings; /* by address, disjoint */
    size_t n;
};

/* Bytes of code that has no file. */
struct maps_code {
    uint64_t time_ns;
    pid_t pid;
    uint64_t start, end;
    const char *name; /* "[vdso]", "" */
    const char *path; /* of the file that holds the bytes, end − start of them */
};

struct maps_thread {
    uint64_t time_ns;
    pid_t pid, tid;
    const char *comm;
};

/* dir is the snapshot directory. MTUI_E_NOENT when it has no maps/log. All strings live as long as the
 * log; it is immutable, any thread may read it. */
int maps_log_open(struct maps_log **out, const char *dir, struct err *err);
void maps_log_close(struct maps_log *log);
/* A sentence about what could not be read, or NULL. */
const char *maps_log_partial(const struct maps_log *log);

/* Captures in the order of time, for all processes. */
size_t maps_log_capture_count(const struct maps_log *log);
const struct maps_capture *maps_log_capture(const struct maps_log *log, size_t i);

/* The capture of pid that holds at time_ns: the latest not after it, else the first; NULL when there
 * is none of that pid. */
const struct maps_capture *maps_log_at(const struct maps_log *log, pid_t pid, uint64_t time_ns);
/* The mapping of a capture that covers address, or NULL. */
const struct maps_mapping *maps_capture_find(const struct maps_capture *c, uint64_t address);

/* What is known of a file by its path as mapped (the latest, if it was replaced), or NULL. */
const struct maps_file *maps_log_file(const struct maps_log *log, const char *path);

/* Code dumps, in the order of time. maps_log_code_read fills buf with up to len bytes as of time_ns at
 * address; returns how many are known (0: none). */
size_t maps_log_code_count(const struct maps_log *log);
const struct maps_code *maps_log_code(const struct maps_log *log, size_t i);
size_t maps_log_code_read(const struct maps_log *log, pid_t pid, uint64_t time_ns, uint64_t address,
                          void *buf, size_t len);

/* Code as stepping saw it executed, which is right whatever else is known: fills buf with up to len bytes at
 * address, no further than the end of its page, and returns how many (0: they could not be kept), or −1 when
 * stepping has told nothing of that page until then. */
ssize_t maps_log_code_stepped(const struct maps_log *log, pid_t pid, uint64_t time_ns, uint64_t address,
                              void *buf, size_t len);
/* Whether it has told something of any page in [start, end). */
bool maps_log_has_stepped(const struct maps_log *log, pid_t pid, uint64_t time_ns, uint64_t start,
                          uint64_t end);

/* Names of threads, in the order of time; the name of tid at a time, or NULL. */
size_t maps_log_thread_count(const struct maps_log *log);
const struct maps_thread *maps_log_thread(const struct maps_log *log, size_t i);
const char *maps_log_comm(const struct maps_log *log, pid_t tid, uint64_t time_ns);

/* Path of the latest copy of /tmp/perf-PID.map, or NULL. */
const char *maps_log_perf_map(const struct maps_log *log, pid_t pid);

#endif
