/* Which perf is this? The version decides which control mechanism and which options it knows.
 *
 * The version that counts is the tool's own: perf of one kernel runs on another. */
#ifndef MTUI_CORE_PERF_VERSION_H
#define MTUI_CORE_PERF_VERSION_H

#include <stdbool.h>

#include "core/base/err.h"

struct perf_version {
    int major, minor;
    char text[64]; /* as perf says it, without "perf version ": "6.1.187", "5.4.0-rc1"; escaped */
};

/* The perf to run: $MTUI_PERF, else "perf" (looked up in PATH by execvp). */
const char *perf_program(void);

/* Parses the output of `perf --version`: "perf version 6.1.187\n", "perf version 5.4.0-rc1",
 * "perf version 4.19.ga1b2c3", with anything after it on further lines. MTUI_E_FORMAT otherwise. */
int perf_version_parse(const char *text, struct perf_version *v, struct err *err);

bool perf_version_at_least(const struct perf_version *v, int major, int minor);

/* Runs `program --version` and parses it. Waits at most timeout_ms for the answer, then ends what
 * it started. MTUI_E_NOENT: no such program (the sentence names it and MTUI_PERF), MTUI_E_TIMEOUT,
 * MTUI_E_FORMAT, MTUI_E_PERM. Works with SIGCHLD ignored. */
int perf_version_probe(const char *program, int timeout_ms, struct perf_version *v,
                       struct err *err);

#endif
