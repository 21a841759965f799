/* Inside of the Record screen: the state that its panes draw. v_record.c dispatches, v_record_control.c
 * starts, stops and edits the plan, v_record_open.c opens what was recorded, v_record_plan.c,
 * v_record_live.c, v_record_lists.c and v_record_counts.c draw, record_decode.c decodes snapshots in the background. */
#ifndef MTUI_TUI_V_RECORD_PRIV_H
#define MTUI_TUI_V_RECORD_PRIV_H

#include "core/base/vec.h"
#include "core/session/session.h"
#include "tui/ui/list.h"
#include "tui/ui/model.h"
#include "tui/record/record_decode.h"
#include "tui/term/surface.h"

/* COUNTS is there when several functions can be hit, OUTPUT when mtui started the program. */
enum record_pane { RECORD_SNAPSHOTS, RECORD_HITS, RECORD_COUNTS, RECORD_LOG, RECORD_OUTPUT, RECORD_PANES };

/* A member of the session (session_member_at). */
struct record_rank {
    uint64_t hits;
    size_t member;
};

struct record {
    struct model *m;
    struct session_setup setup; /* as edited; target and triggers are the model's unless run or several */
    bool preset_taken;
    bool starting;              /* as soon as the machine is known */
    struct session_machine machine;
    struct perf_version version;
    bool version_known;

    struct record_start *start; /* names are being looked for; or NULL */
    struct session *session; /* the last one, also after its end; NULL before the first */
    struct session_status status; /* of this round */
    struct decode_queue *decode;
    struct cmd_opening *opening; /* of `:open`, or NULL */
    unsigned open_next; /* the snapshot to show as soon as some of it is decoded; UINT_MAX: none */
    unsigned opened;    /* the one that the timeline has a part of, while it grows; UINT_MAX: none */
    const struct trace *opened_trace;

    struct list *snapshots, *hits, *counts;
    VEC(struct record_rank) ranked; /* the busiest first, of the last draw */
    enum record_pane focus;
    bool full_log;
    size_t log_up;  /* lines scrolled back from the newest */
    int log_rows;   /* of the last draw */
    struct rect pane[RECORD_PANES]; /* of the last draw; empty when not shown */
    bool asks_force;         /* the triggers cost too much: arm them all the same? */
    bool quitting;           /* leaves mtui as soon as the recording has ended */
    enum target_leave leave; /* what becomes of a program that mtui started */
    int timer;
};

/* ---- v_record_control.c ---- */

void v_record_start(struct record *r);
/* Gives up a start that is still looking for its functions. */
void v_record_end_start(struct record *r);
/* Space: starts, or stops; says why not. */
void v_record_start_stop(struct record *r);
bool v_record_is_running(const struct record *r);
/* The setup that a start would use now: the edited one with the model's target and triggers. */
void v_record_effective_setup(const struct record *r, struct session_setup *out);
/* After the first recording, -o DIR is taken: DIR-2 and so on is the next one. */
void v_record_name_output(const struct record *r, struct session_setup *setup);
/* False while recording, which is said. */
bool v_record_may_edit(struct record *r);
/* Options in the words of the command line ("--freq 99 --duration 5s"), there and back. */
char *v_record_options_text(const struct record *r);
void v_record_set_options(struct record *r, const char *text);
void v_record_set_mode(struct record *r, const char *mode); /* NULL: the next one */
void v_record_set_buffer(struct record *r, const char *size);
void v_record_set_triggers(struct record *r, const char *specs);
char *v_record_triggers_text(const struct record *r);
/* Opens a snapshot of the session in the Timeline, now or as soon as some of it is decoded. */
void v_record_open(struct record *r, unsigned number);
void v_record_tell_progress(struct record *r);
/* News of the decoder: what is open and waits for them gets them. */
void v_record_decoded(struct record *r);
/* Any recording, by its path. */
void v_record_open_path(struct record *r, const char *path);
void v_record_free_session(struct record *r);
/* Q: asks what there is to ask. False when there is nothing: the app quits. */
bool v_record_quit(struct record *r);

/* ---- drawing ---- */

/* With fewer rows than these the two panes show what matters most, in these many: the trigger; how it ended. */
#define V_RECORD_PLAN_BRIEF 2
#define V_RECORD_LIVE_BRIEF 4
int v_record_plan_rows(const struct record *r);
void v_record_draw_plan(struct record *r, struct surface *s, struct rect at);
int v_record_live_rows(const struct record *r);
void v_record_draw_live(struct record *r, struct surface *s, struct rect at);
/* Durations of watched calls, below the live rows; 0 rows without any. */
int v_record_calls_rows(const struct record *r);
void v_record_draw_calls(struct record *r, struct surface *s, struct rect at);
void v_record_new_lists(struct record *r);
void v_record_draw_snapshots(struct record *r, struct surface *s, struct rect at);
void v_record_draw_hits(struct record *r, struct surface *s, struct rect at);
void v_record_draw_log(struct record *r, struct surface *s, struct rect at);
void v_record_draw_output(struct record *r, struct surface *s, struct rect at);
bool v_record_has_output(const struct record *r);
bool v_record_has_counts(const struct record *r);
/* Anew, at the beginning of a draw. */
void v_record_rank(struct record *r);
/* "serve_user [12], serve_item [3], 4 more [7]", as many as fit into so many columns; false: not even one. */
bool v_record_counts_text(const struct record *r, int cols, char *out, size_t size);
/* The last one made by what is selected there, or NULL. */
const struct session_snapshot *v_record_counts_snapshot(const struct record *r);
struct list *v_record_new_counts(struct record *r);
void v_record_draw_counts(struct record *r, struct surface *s, struct rect at);
/* The title of the pane that the keys go to carries a pointer. */
void v_record_pane_title(struct record *r, struct surface *s, struct rect at, enum record_pane pane,
                         const char *name, const char *right);
/* The snapshot under the cursor, or NULL. */
const struct session_snapshot *v_record_selected(const struct record *r);

/* "label      " and then text, in one row, behind one blank column. */
#define V_RECORD_LABEL_COLS 12
void v_record_field(struct surface *s, struct rect at, int row, const char *label, struct style style,
                  const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* "14:11:52.118", local time. */
char *v_record_clock(char out[16], int64_t unix_ns);

#endif
