/* The directory that holds one recording, from before it starts to long after its target is gone.
 *
 *   <comm>-<pid>-<YYYYmmdd-HHMMSS>[-2…]/   below ${XDG_STATE_HOME:-~/.local/state}/mtui, or a name given
 *     session.ini     what was recorded, how, by which versions (grammar: core/base/conf.h)
 *     hits.tsv        a line for each hit of a trigger and each snapshot asked for by hand; fields behind those of
 *                     the header: "running" (still_running), "took=NS" (took_ns), "function=NAME"
 *     output          what a program that mtui started has printed
 *     maps/           mappings, build-ids, names, code without a file (core/session/maps_log.h)
 *     snap-1/ …       one snapshot each: perf.data, a file or a directory
 *     snap-end/       what the recorder wrote when it was stopped, where that is no numbered snapshot
 *   The recorder (core/record/recorder.h) makes the snap-* directories.
 *
 * Directories have mode 0700, files 0600. Nothing that an earlier recording wrote is overwritten: a name that is
 * taken gets -2, -3 …; a directory given by name must not hold a recording yet. Strings in the structs
 * below are owned by them (the *_free functions release them); they hold bytes from outside. */
#ifndef MTUI_CORE_SNAPSHOT_DIR_H
#define MTUI_CORE_SNAPSHOT_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

struct snapshot_dir;

/* What session.ini holds. Absent strings are NULL. */
struct session_info {
    char *recorder;        /* "pt", "step", "sample" */
    char *mode;            /* "trigger", "ring", "whole" */
    char *command_line;    /* of mtui, quoted for a shell */
    char *perf_command;    /* of the recorder, quoted for a shell */
    char *mtui_version, *perf_version, *kernel;
    char *clock;           /* "perf" (nanoseconds of perf's clock) or "instructions" */
    char *comm;            /* name of the first target process */
    char *target_command;  /* its command line */
    bool started;          /* mtui started the target itself */
    pid_t *pids;
    size_t npids;
    char **triggers;       /* as given: "SYMBOL", "SYMBOL@return", … */
    size_t ntriggers;
    uint64_t slower_than_ns; /* 0: not asked for */
    uint64_t ring_bytes;     /* per CPU (or thread); 0 unknown */
    uint64_t frequency_hz;   /* `sample`; 0 unknown */
    bool user_only;          /* kernel code was not asked for: what `sample` has of it is left out */
    uint64_t start_unix_ns;  /* wall clock when the recording began */
    uint64_t start_ns;       /* the same moment on the recording's clock; 0 unknown */
};

/* A line of hits.tsv. */
struct snapshot_hit {
    uint64_t time_ns;     /* the recording's clock */
    pid_t tid;            /* 0: none, asked for by hand */
    char *trigger;        /* the trigger as given; "key" and "end" for snapshots without one */
    uint64_t address;     /* run-time address that was hit; 0 without a trigger */
    uint64_t arg1, arg2;  /* first two integer argument registers at a function's entry */
    uint64_t duration_ns; /* of the call, where it was measured (--slower-than, @return); else 0 */
    unsigned snapshot;    /* the snapshot that it caused; 0: counted only */
    bool still_running;   /* the call had not returned yet: duration_ns is so far */
    uint64_t took_ns;     /* what it took in the end, where its return was seen; else 0 */
    char *function;       /* of a trigger that stands for several functions, the one that was hit; or NULL */
};

/* One snap-N, or snap-end. */
struct snapshot_entry {
    unsigned number; /* 0: snap-end */
    char *path;      /* of the snapshot's directory */
    char *data;      /* of its perf.data: a file, or the directory that `perf record --kcore` writes */
    uint64_t bytes;  /* of everything in it */
    int64_t mtime_ns; /* of perf.data, wall clock */
};

/* ---- Writing ---- */

/* ${XDG_STATE_HOME:-$HOME/.local/state}/mtui, from the environment given (NULL for a variable that is
 * not set); the caller frees it. MTUI_E_INVAL when neither is set. */
int snapshot_dir_root(char **out, const char *xdg_state_home, const char *home, struct err *err);

/* Reduces a process name to [A-Za-z0-9._-], at most 64 bytes; never empty, never with a leading dot. */
void snapshot_dir_comm(char out[65], const char *comm);

/* Makes a new directory below root (made too, mode 0700, with its parents) for a recording of comm/pid
 * that starts at now_unix_s (local time in the name). */
int snapshot_dir_create(struct snapshot_dir **out, const char *root, const char *comm, pid_t pid,
                        int64_t now_unix_s, struct err *err);
/* For a program that has no pid yet: a directory below root with a passing name, which
 * snapshot_dir_name changes into what snapshot_dir_create would have given. Files in it stay open. */
int snapshot_dir_create_unnamed(struct snapshot_dir **out, const char *root, struct err *err);
int snapshot_dir_name(struct snapshot_dir *d, const char *root, const char *comm, pid_t pid,
                      int64_t now_unix_s, struct err *err);

/* Takes path, made (mode 0700) when it does not exist; MTUI_E_STATE when it holds a recording. Other
 * files in it are left alone, and so is the mode of a directory that was there before. */
int snapshot_dir_create_at(struct snapshot_dir **out, const char *path, struct err *err);

/* Opens a recording that exists, for reading and for deleting snapshots. */
int snapshot_dir_open(struct snapshot_dir **out, const char *path, struct err *err);
/* True when path is a directory that snapshot_dir_open would take. */
bool snapshot_dir_is(const char *path);

void snapshot_dir_close(struct snapshot_dir *d);
/* Absolute. */
const char *snapshot_dir_path(const struct snapshot_dir *d);

/* Tries to write, and compares free space with what is needed (0: only that there is some); the
 * sentence names the path and both figures. *free_bytes may be NULL. */
int snapshot_dir_check(const struct snapshot_dir *d, uint64_t need_bytes, uint64_t *free_bytes,
                       struct err *err);

/* Writes session.ini whole (by rename). */
int snapshot_dir_write_info(struct snapshot_dir *d, const struct session_info *info, struct err *err);

/* Appends a line to hits.tsv in one write(2). The return of a call that was a hit while it was running is added as one
 * of its own, with the duration; reading and sorting join the two. */
int snapshot_dir_add_hit(struct snapshot_dir *d, const struct snapshot_hit *hit, struct err *err);
/* Puts hits.tsv into the order of time (then tid), when no more are to come: a hit is added when its snapshot is known,
 * so later ones may stand before it. The file is replaced whole, or on failure left as it was. */
int snapshot_dir_sort_hits(struct snapshot_dir *d, struct err *err);
/* Keeps a hit beside hits.tsv whose snapshot is still to come, for the step recorder to add should we be killed
 * (core/step/step_orphan.h), and forgets it. */
int snapshot_dir_open_hit(struct snapshot_dir *d, const struct snapshot_hit *hit, struct err *err);
void snapshot_dir_close_hit(struct snapshot_dir *d);

/* Removes snap-N (0: snap-end) and all in it; nothing outside of the directory is touched. */
int snapshot_dir_delete(struct snapshot_dir *d, unsigned number, struct err *err);

/* Removes the whole recording when it holds no snapshot and no output (a start that failed); returns
 * whether it did. d stays open, good only for snapshot_dir_close. */
bool snapshot_dir_discard_empty(struct snapshot_dir *d);

/* ---- Reading ---- */

/* Snapshots that hold a perf.data, by number, snap-end last. *out is released with snapshot_dir_free_list. */
int snapshot_dir_list(const struct snapshot_dir *d, struct snapshot_entry **out, size_t *n,
                      struct err *err);
void snapshot_dir_free_list(struct snapshot_entry *list, size_t n);
/* What the recorder wrote and nobody put into a snapshot, because mtui was killed: the paths of regular
 * files named perf.data or perf.data.…, oldest first; each and the list are released with free(). A
 * recorder that runs has such files too. */
int snapshot_dir_leftovers(const struct snapshot_dir *d, char ***out, size_t *n, struct err *err);

/* A missing or damaged session.ini is an error; unknown keys are skipped. */
int snapshot_dir_read_info(const struct snapshot_dir *d, struct session_info *info, struct err *err);
void session_info_free(struct session_info *info); /* what it owns, then zeroes it */

/* Sorted by time. A missing hits.tsv is no hits; lines that do not parse are counted in *bad_lines (NULL allowed). */
int snapshot_dir_read_hits(const struct snapshot_dir *d, struct snapshot_hit **out, size_t *n,
                           size_t *bad_lines, struct err *err);
/* For people, cut to size: "serve_user (/^serve_/)", or the trigger alone. Raw bytes. */
char *snapshot_hit_text(char *out, size_t size, const char *trigger, const char *function);
void snapshot_dir_free_hits(struct snapshot_hit *hits, size_t n);

#endif
