/* The step recorder at work on tests/step_victim.c. Every failure fails the running test. */
#ifndef MTUI_TESTS_LIB_STEPPER_H
#define MTUI_TESTS_LIB_STEPPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/step/step_recorder.h"
#include "lib_run.h"

struct stepper {
    struct run_child target;
    pid_t pid; /* of the recorder; 0: none runs */
    int ctl, ack, say;
    char text[4096]; /* lines of the recorder that were not looked at yet */
    size_t len;
    char *dir, *data, *truth, *sites, *anchors;
};

/* Starts the victim; it has said "ready". Gated, it waits before its first round for stepper_go. */
void stepper_start(struct stepper *s, const char *scenario);
void stepper_start_gated(struct stepper *s, const char *scenario);
void stepper_go(struct stepper *s);
/* Puts the site of a function of the victim into the list (in place of what was there). */
void stepper_site(struct stepper *s, const char *function);
/* Several, numbered as triggers in this order; of a place inside a function, "+" and its label. */
void stepper_sites(struct stepper *s, const char *const *places, size_t n);
/* Starts a recorder in a process of its own. What the options leave out is filled in: pid, encoding, output,
 * truth; the sites with at_sites. With control it waits for commands. */
void stepper_record(struct stepper *s, const struct step_recorder_options *options, bool control);
/* The next line of the recorder that contains the words; fails after 20 seconds. Valid until the next call. */
const char *stepper_wait(struct stepper *s, const char *words);
/* A command, and its ack. */
void stepper_command(struct stepper *s, const char *command);
/* SIGTERM, or what has ended by itself; it must have succeeded. */
void stepper_stop(struct stepper *s);
/* The target runs on by itself, untraced and without a breakpoint in `function`. */
void stepper_runs_free(struct stepper *s, const char *function);
/* The target ends when told to, having found no error. Returns its rounds; removes everything. */
long stepper_end(struct stepper *s);

/* `perf script --itrace=be` of data lists exactly the branches of the truth, without an error. Returns how
 * many. */
size_t stepper_compare(const struct stepper *s, const char *data);

/* Address of a function in the victim's file, and in the running victim. */
uint64_t stepper_vaddr(const char *function);
uint64_t stepper_address(const struct stepper *s, const char *function);

#endif
