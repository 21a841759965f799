/* The `step` recorder: a child process of mtui that speaks perf's control protocol and writes
 * perf.data, so that everything above it treats it as a perf.
 *
 *   ping, enable, disable   answered at once
 *   snapshot                answered at once; written when the window in progress is over (or now,
 *                           when stepping goes on without windows, or one has ended and was not asked
 *                           for yet): OUTPUT.N, announced as perf announces its dumps
 *   stop                    windows end, what was asked for is written; in one_file mode OUTPUT itself
 *
 * When the other side of the control pipe is gone (mtui was killed), or on SIGTERM or SIGINT, it lets
 * go of the target in order and ends. */
#ifndef MTUI_CORE_STEP_RECORDER_H
#define MTUI_CORE_STEP_RECORDER_H

#include "core/err.h"
#include "core/step_tracer.h"

struct step_recorder_options {
    struct step_tracer_options tracer;
    const char *output; /* path of perf.data */
    bool one_file;      /* one file at the end instead of snapshots */
    int ctl_fd, ack_fd; /* −1: none; ended by a signal or the target's end */
    int say_fd;         /* messages, a line each */
};

/* Runs until it is told to stop or the target has ended. 0: everything asked for was written. */
int step_recorder_run(const struct step_recorder_options *options, struct err *err);

#endif
