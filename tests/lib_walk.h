/* mtui attached, on a pseudo-terminal, to a server of our own, with the real perf, led by a script. What fails
 * fails the test. */
#ifndef MTUI_TESTS_LIB_WALK_H
#define MTUI_TESTS_LIB_WALK_H

#include <stdbool.h>

#include "tests/lib_pty.h"
#include "tests/lib_run.h"

#define WALK_SOON 100000 /* ms: a deadline, not a delay; machines under test stand still for seconds */

struct walk {
    char *tmp, *state_env;
    struct run_child target; /* tests/batch_target */
    struct pty *p;
};

/* perf records, and uprobes are permitted. */
bool walk_can_record(void);

/* A trigger that fires once. */
extern const char *const walk_options[];

/* options: of `mtui attach`, NULL at the end. script: a : command a line, in which %s is the directory for
 * screens. */
void walk_start(struct walk *b, const char *const *options, int rows, int cols, const char *script);
/* Ends mtui; nothing may record the target any more, which must be alive, unless it was killed. */
void walk_tear_down(struct walk *b, bool target_lives);

char *walk_path(const struct walk *b, const char *name); /* in the directory for screens */
void walk_wait_for(struct walk *b, const char *text);
/* The script says with a file `mark` that it has come to a point. */
void walk_wait_mark(struct walk *b);
/* The saved screen has each of the texts, NULL at the end. */
void walk_assert_screen(struct walk *b, const char *name, const char *const *texts);

bool walk_is_alive(pid_t pid);
/* Of arg, a struct walk: nothing records its target. For run_until. */
bool walk_no_perf(void *arg);

#endif
