/* One capture of a process for the log of mappings: reads /proc, writes records and copies. Part of
 * core/session/maps_writer; its thread is the only user. */
#ifndef MTUI_CORE_MAPS_CAPTURE_H
#define MTUI_CORE_MAPS_CAPTURE_H

#include <stdint.h>
#include <sys/types.h>

struct maps_capturer;

struct capture_result {
    int changed;        /* 1: something was written */
    uint64_t bytes;     /* of copies and dumps */
    uint64_t left_out;
    char note[256];     /* about something left out; empty when nothing was */
};

/* dir is …/maps, which exists; log_fd is the log, positioned at its end, and stays the caller's. */
struct maps_capturer *maps_capturer_new(const char *dir, const char *proc_root, int log_fd);
void maps_capturer_free(struct maps_capturer *c);

/* Writes what has changed in pid since the last call; a process that is gone changes nothing. */
void maps_capturer_run(struct maps_capturer *c, pid_t pid, uint64_t time_ns, const char *reason,
                       struct capture_result *out);

#endif
