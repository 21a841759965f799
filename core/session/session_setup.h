/* What to record: everything that the options of `run` and `attach`, or the Record screen, say, and
 * what follows from it on this machine. */
#ifndef MTUI_CORE_SESSION_SETUP_H
#define MTUI_CORE_SESSION_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/doctor/capability.h"
#include "core/base/err.h"
#include "core/record/plan.h"
#include "core/trigger/trigger.h"

/* Zero is the default of each. Strings and arrays belong to it. */
struct session_setup {
    bool auto_recorder;              /* pt where it works, else sample */
    enum plan_recorder recorder;     /* when not auto */
    bool auto_mode;                  /* by triggers, interactive or not: session_setup_mode */
    enum plan_mode mode;
    enum plan_timing timing;
    enum plan_call_graph call_graph;
    enum plan_control control;
    pid_t *pids;                     /* attach; empty for run */
    size_t n_pids;
    pid_t *tids;
    size_t n_tids;
    char **argv;                     /* run: NULL-terminated; NULL for attach */
    char **triggers;                 /* SPECs */
    size_t n_triggers;
    struct trigger_conditions when;  /* of every trigger */
    bool children, kernel, force;
    bool inherit_stdio;              /* run: the program's stdout goes to our stderr (batch) */
    uint64_t ring_bytes;
    unsigned freq_hz;
    uint64_t duration_ns;            /* stop after it; 0: never */
    uint64_t budget;                 /* step: instructions a window */
    char *truth;                     /* step */
    char *output;                    /* -o DIR; NULL: a new one below the root */
    char *command_line;              /* of mtui, for session.ini */
};

/* Copies everything; session_setup_free zeroes. */
void session_setup_copy(struct session_setup *to, const struct session_setup *from);
void session_setup_free(struct session_setup *s);
void session_setup_add_trigger(struct session_setup *s, const char *spec); /* once each */
/* False when it was not there. */
bool session_setup_remove_trigger(struct session_setup *s, const char *spec);

/* The recorder that auto means on this machine, and a sentence why; the one chosen otherwise. */
enum plan_recorder session_setup_recorder(const struct session_setup *s,
                                          const struct capabilities *caps, char *why, size_t size);
/* The mode: as set, or, with auto_mode, snapshots by trigger when there are triggers or someone can
 * press the key, else one at the end. */
enum plan_mode session_setup_mode(const struct session_setup *s, bool interactive);

/* Options that make no sense together, or not with this recorder. MTUI_E_INVAL, MTUI_E_NOTSUP. */
int session_setup_check(const struct session_setup *s, enum plan_recorder recorder, struct err *err);

/* The plan for the recorder; it points into *s and to output_dir. pids: of the setup, or, for run, the
 * one process started. */
void session_setup_plan(const struct session_setup *s, const struct capabilities *caps,
                        bool interactive, const pid_t *pids, size_t n_pids, const char *output_dir,
                        struct record_plan *plan);

/* The complete command of the recorder as it would run, for --print; the caller frees *out. */
int session_setup_command(const struct session_setup *s, const struct capabilities *caps,
                          const struct perf_version *version, bool interactive, char **out,
                          struct err *err);

/* For a screen: a trigger that is hit all the time would make snapshots without end, so that nothing else gets
 * done. Unless a hold-off or a number of snapshots is set, each trigger gets this hold-off. */
#define SESSION_SETUP_PACE_NS UINT64_C(1000000000)
void session_setup_pace(struct session_setup *s);

/* The mtui command that repeats this setup on a screen (with --batch, defaults are other ones), quoted for a
 * shell; the caller frees. */
char *session_setup_repeat(const struct session_setup *s);

#endif
