/* What the screens share, and what they ask the app for.
 *
 * Views read the fields and change them through the functions, which tell every other view. What a
 * view wants from outside (another screen, a line of input, the editor) is left here as a request; the
 * app takes it at the end of the round, a test reads it. Belongs to the loop's thread; strings handed
 * in are copied. */
#ifndef MTUI_TUI_MODEL_H
#define MTUI_TUI_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/vec.h"
#include "tui/term/surface.h"
#include "tui/ui/view.h"

struct loop;
struct settings;
struct glyphs;
struct theme;
struct capabilities;
struct session;
struct session_setup;
struct trace;
struct pyramid;
struct function_names;

struct model_target {
    pid_t pid;           /* 0: none chosen */
    uint64_t start_time; /* field 22 of /proc/PID/stat: a pid alone may be used again */
    char comm[64];       /* bytes from outside */
};

/* The call or function that an analysis is asked for, in the terms of the model's trace. */
struct model_subject {
    bool valid, call; /* call: a certain one, at trace_row(thread, depth)[index] */
    uint32_t fn;      /* fn_id */
    size_t thread, depth, index;
};

typedef void model_answer_fn(void *arg, bool yes);
/* text is NULL when the prompt was left with Esc. */
typedef void model_line_fn(void *arg, const char *text);

/* A recording on its way to become a trace. */
struct model_loading {
    bool active;
    unsigned percent;
    bool endless;     /* how much there will be is not known (a pipe): percent says nothing */
    uint64_t read_bytes; /* endless: so far; 0: not known */
    bool finishing;   /* all is decoded; what is left (ordering, indexes) is not measured */
    uint64_t spans;   /* decoded so far; 0: not known */
    char what[64];    /* "snap 3" */
    char failed[512]; /* not active: why there is no trace, or "" */
    bool part;        /* the open trace is what is there of it so far */
    bool stopping;    /* cancel was called */
    void (*cancel)(void *arg); /* stops it, what is there stays; NULL: cannot be stopped */
    void *cancel_arg;
};

enum model_severity { SAY_INFO, SAY_WARN, SAY_ERROR };

struct model_requests {
    char *screen; /* NULL: stay; the view_ops.name to go to */

    char *question; /* NULL: none; answered by y / n / Esc */
    model_answer_fn *answer;
    void *answer_arg;

    char *prompt; /* NULL: none; the label before the input */
    char *prompt_initial;
    model_line_fn *line;
    void *line_arg;

    char *edit_path; /* NULL: none */
    int edit_line;

    char *copy; /* NULL: none; text for the clipboard */

    bool quit;
};

struct model {
    struct loop *loop;
    struct settings *settings;
    const struct glyphs *glyphs; /* of the tier in use; changes with MODEL_SETTINGS */
    const struct theme *theme;
    const struct capabilities *caps; /* NULL until they are known */

    /* What the command line asked to record, or NULL. The Record screen takes it once and starts as soon as
     * the machine is known. */
    const struct session_setup *preset;

    struct model_target target;
    VEC(struct model_target) more_targets; /* recorded together with target; empty when that is 0 */
    VEC(char *) triggers;     /* in the grammar of `-t`: SYMBOL, SYMBOL@return, FILE:LINE, … */
    struct session *session;  /* the recording in progress, or NULL; owned by who set it */
    bool recording;           /* true from start to stop: quitting asks, S snaps */
    const struct trace *trace; /* the opened trace, or NULL */
    const struct pyramid *pyramid; /* its index, or NULL: views make their own */
    struct function_names *names;  /* of its functions, as `set demangle` wants them (tui/ui/function_names.h) */
    char trace_label[64];      /* "snap 1" */
    struct model_loading loading;

    /* Shared between timeline, functions and events; 0/0 range: none. */
    uint64_t cursor_ns;
    pid_t cursor_tid;    /* 0: none */
    size_t cursor_depth; /* of the call meant, or SIZE_MAX */
    uint64_t range_start_ns, range_end_ns;
    struct model_subject subject; /* see model_name_subject */

    char say[512]; /* the last message, already harmless; "" when there is none */
    enum model_severity say_severity;
    char *say_first; /* NULL: none; an error that is shown before it, see model_error_first */
    bool dirty; /* something on the screen may have changed */

    struct model_requests want;

    /* NULL, or the model that this one stands inside of: a screen within a screen has its own trace, cursor
     * and range, but messages, redraws and requests go to the outer one. */
    struct model *outer;

    /* Set by the app: told of each change, at once. NULL in tests. */
    void (*on_change)(void *arg, enum model_change what);
    void *on_change_arg;

    void (*trace_release)(void *arg);
    void *trace_release_arg;
};

/* All fields zero but those given; loop and settings stay the caller's. */
struct model *model_new(struct loop *loop, struct settings *settings);
void model_free(struct model *m);

/* ---- Shared state ---- */

void model_changed(struct model *m, enum model_change what);
/* The screen needs a redraw (cheap; the app draws at most 60 times a second). */
void model_redraw(struct model *m);

/* The one process to trace; pid 0 takes the choice away. Chosen triggers stay. */
void model_set_target(struct model *m, pid_t pid, uint64_t start_time, const char *comm);
/* One more, besides the one set before. */
void model_add_target(struct model *m, pid_t pid, uint64_t start_time, const char *comm);

/* Adds a trigger unless it is there already; returns its index. */
size_t model_add_trigger(struct model *m, const char *spec);
bool model_remove_trigger(struct model *m, const char *spec);
bool model_has_trigger(const struct model *m, const char *spec);
void model_clear_triggers(struct model *m);

void model_set_session(struct model *m, struct session *session, bool recording);

/* Opens a trace (NULL: none). release(release_arg) runs when it is replaced, after every view has been
 * told; NULL when it belongs to somebody else. Range and cursor are reset. */
void model_set_trace(struct model *m, const struct trace *trace, const char *label,
                     void (*release)(void *arg), void *release_arg);
/* The same with the trace's index, which lives as long as the trace. */
void model_set_indexed_trace(struct model *m, const struct trace *trace,
                             const struct pyramid *pyramid, const char *label,
                             void (*release)(void *arg), void *release_arg);

/* More of the trace that is open, while it is being decoded; cursor and range stay. */
void model_grow_trace(struct model *m, const struct trace *trace, const struct pyramid *pyramid,
                      void (*release)(void *arg), void *release_arg);

/* Progress of the decoder, as often as it likes; active false ends it. Copied. */
void model_set_loading(struct model *m, const struct model_loading *loading);

bool model_is_growing(const struct model *m);
/* "decoding snap 3: 62 %, 1,204,331 spans, ^C keeps them", of a pipe "decoding standard input: 12.3M read, 40,112
 * spans, ^C keeps them"; "" when nothing is decoded. */
void model_loading_text(const struct model *m, char *out, size_t size);
/* Its beginning alone: "decoding 62 %", "decoding 12.3M", without a number where there is none. */
void model_loading_short(const struct model *m, char *out, size_t size);
/* How far it is: "62 %", of a pipe what was read ("12.3M"), "" when neither is known. out, which is returned, holds
 * FMT_MAX bytes. */
const char *model_loading_far(const struct model_loading *l, char *out);
/* Stops what is being decoded; false: there is nothing, or it cannot be stopped. */
bool model_stop_loading(struct model *m);

void model_set_cursor(struct model *m, pid_t tid, uint64_t time_ns);
/* At one call: the one of that depth that covers the time. */
void model_set_cursor_call(struct model *m, pid_t tid, uint64_t time_ns, size_t depth);
void model_set_range(struct model *m, uint64_t start_ns, uint64_t end_ns);

/* A screen that gets ACT_COMPARE or ACT_CALLS names what is chosen on it and lets the action pass (returns
 * false) to the screen that answers, which takes it. The first one to name something wins: the one shown is
 * asked first. */
void model_name_subject(struct model *m, struct model_subject subject);
/* False when nothing was named. */
bool model_take_subject(struct model *m, struct model_subject *subject);

/* ---- Requests ---- */

/* One line in the status row, until the next key. */
void model_say(struct model *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void model_warn(struct model *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void model_error(struct model *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* One that is not to be missed: it stays until a key is pressed, whatever is said meanwhile, which comes up
 * then. */
void model_error_first(struct model *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A key was pressed: takes away what was said. */
void model_hush(struct model *m);

/* Goes to the screen whose view_ops.name that is. */
void model_go(struct model *m, const char *screen);

/* Asks a question that y or n answers; one at a time, a newer one cancels (answers no to) the older. */
void model_ask(struct model *m, const char *question, model_answer_fn *answer, void *arg);

/* The reason for a question has gone: it is answered no, if it is the one whose answer and arg these are.
 * True: it was. */
bool model_withdraw(struct model *m, model_answer_fn *answer, const void *arg);

/* Reads a line, with `initial` in it at first; a newer prompt cancels the older. */
void model_prompt(struct model *m, const char *label, const char *initial, model_line_fn *line,
                  void *arg);

/* Opens $EDITOR (vi when unset) at a line. */
void model_edit_source(struct model *m, const char *path, int line);

/* Puts text on the terminal's clipboard (OSC 52). */
void model_copy(struct model *m, const char *text);

/* Leaves mtui without asking (the app has asked). */
void model_quit(struct model *m);

#endif
