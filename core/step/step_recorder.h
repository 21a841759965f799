/* The `step` recorder: a child process of mtui that speaks perf's control protocol and writes
 * perf.data, so that everything above it treats it as a perf.
 *
 *   ping      answered at once
 *   enable    reads the list of sites (again) and arms them, or begins to step
 *   disable   windows in progress end, nothing is armed
 *   snapshot  answered at once; OUTPUT.N is written as soon as the window in progress is over (or now,
 *             when everything is stepped, or one has ended and was not asked for yet), and announced as
 *             perf announces its dumps. Asked for once more, it ends the window in progress.
 *   stop      windows end, what was asked for is written; in one_file mode OUTPUT itself
 *
 * At a site it is the recorder that decides whether this hit is stepped (trigger_policy.h), since the
 * thread waits there; it reports every hit (step_message.h). One call is stepped at a time: from the hit
 * to its file, other hits are "busy".
 *
 * A file that cannot be written whole (a full disk, a quota, a limit) ends the recording: the target is
 * let go of, and the failure says why. The file is removed, unless it has windows that are whole.
 *
 * When the other side of the control pipe is gone (mtui was killed), or on any signal that would end a
 * process (step_signals.h), it lets go of the target in order, writes what there is and ends. Nobody who
 * does not read its lines can stop it: what the pipe does not take waits in memory, and beyond a limit hits
 * are left out. */
#ifndef MTUI_CORE_STEP_RECORDER_H
#define MTUI_CORE_STEP_RECORDER_H

#include "core/base/err.h"
#include "core/step/step_tracer.h"
#include "core/trigger/trigger.h"

/* A window's limits where none are given: less than a minute of a stopped-and-go thread. */
#define STEP_DEFAULT_BUDGET         1000000u
#define STEP_DEFAULT_BUDGET_WALL_NS 60000000000u

struct step_recorder_options {
    struct step_tracer_options tracer;
    const char *sites;              /* file of sites (step_sites.h), with tracer.at_sites */
    struct trigger_conditions when; /* of every trigger */
    const char *output;             /* path of perf.data */
    const char *anchors; /* path of step_anchors.h's file; NULL: none */
    bool one_file;       /* one file at the end instead of snapshots */
    int ctl_fd, ack_fd;  /* −1: none; ended by a signal or the target's end */
    int say_fd;          /* messages, a line each */
};

/* Runs until it is told to stop or the target has ended. 0: everything asked for was written. */
int step_recorder_run(const struct step_recorder_options *options, struct err *err);

#endif
