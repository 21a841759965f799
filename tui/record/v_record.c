#include "tui/record/v_record.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "tui/cli/cmd_open.h"
#include "tui/record/v_record_priv.h"

#define REFRESH_NS 250000000u /* of times that pass while recording */

void v_record_field(struct surface *s, struct rect at, int row, const char *label,
                    struct style style, const char *fmt, ...)
{
    char text[1200];
    va_list ap;
    if (row >= at.rows)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    surface_text(s, at.row + row, at.col + 1, at.cols - 1, label, SIZE_MAX,
                 (struct style){.ink = ROLE_HEADER});
    surface_text(s, at.row + row, at.col + 1 + V_RECORD_LABEL_COLS, at.cols - 1 - V_RECORD_LABEL_COLS, text, SIZE_MAX,
                 style);
}

/* ---- Life ---- */

/* What the command line asked for, once. */
static void take_preset(struct record *r)
{
    session_setup_free(&r->setup);
    session_setup_copy(&r->setup, r->m->preset);
    while (r->setup.n_triggers) {
        model_add_trigger(r->m, r->setup.triggers[0]);
        session_setup_remove_trigger(&r->setup, r->setup.triggers[0]);
    }
    r->preset_taken = true;
    r->starting = true;
}

/* While something runs or is awaited, times on the screen move. */
static void refresh(void *arg)
{
    struct record *r = arg;
    r->timer = loop_add_timer(r->m->loop, loop_now_ns(r->m->loop) + REFRESH_NS, refresh, r);
    if (r->m->preset && !r->preset_taken)
        take_preset(r);
    if (r->starting && r->m->caps)
        v_record_start(r);
    if (r->opened != UINT_MAX)
        v_record_tell_progress(r);
    if (!v_record_is_running(r))
        return;
    session_get_status(r->session, &r->status);
    model_redraw(r->m);
}

static void note_spans(struct record *r)
{
    for (size_t i = r->session ? session_snapshot_count(r->session) : 0; i-- > 0;) {
        unsigned number = session_snapshot_at(r->session, i)->number;
        struct decode_result d = decode_queue_result(r->decode, number);
        if (d.state != DECODE_DONE || !number)
            continue;
        if (r->status.est_from != number || r->status.est_lookback_ns != d.span_ns)
            session_note_span(r->session, number, d.span_ns);
        return;
    }
}

static void on_decode(void *arg)
{
    struct record *r = arg;
    note_spans(r);
    v_record_decoded(r);
    model_redraw(r->m);
}

static void *create(struct model *m)
{
    struct record *r = xcalloc(1, sizeof *r);
    r->m = m;
    r->setup.auto_recorder = true;
    r->setup.auto_mode = true;
    r->open_next = r->opened = UINT_MAX;
    r->machine.interactive = true;
    r->machine.xdg_state_home = getenv("XDG_STATE_HOME");
    r->machine.home = getenv("HOME");
    r->decode = decode_queue_new(m->loop, on_decode, r);
    v_record_new_lists(r);
    r->timer = loop_add_timer(m->loop, loop_now_ns(m->loop), refresh, r);
    return r;
}

static void destroy(void *view)
{
    struct record *r = view;
    loop_remove(r->m->loop, r->timer);
    v_record_end_start(r);
    v_record_free_session(r);
    cmd_open_end(r->opening);
    decode_queue_free(r->decode);
    list_free(r->snapshots);
    list_free(r->hits);
    list_free(r->counts);
    vec_free(&r->ranked);
    session_setup_free(&r->setup);
    free(r);
}

/* ---- Drawing ---- */

#define LISTS_ROWS 8 /* the fewest with which snapshots and some lines of the log stand together */

/* Rows for the lists, from what plan and live leave: snapshots get most, the others give way first,
 * but not the one that has the keys. */
static void share_rows(struct record *r, int rows, int share[RECORD_PANES])
{
    bool output = v_record_has_output(r), counts = v_record_has_counts(r);
    memset(share, 0, RECORD_PANES * sizeof *share);
    if (r->full_log) {
        share[RECORD_LOG] = rows;
        return;
    }
    if ((r->focus == RECORD_OUTPUT && !output) || (r->focus == RECORD_COUNTS && !counts))
        r->focus = RECORD_SNAPSHOTS;
    int log = (rows + 1) / 4;
    share[RECORD_LOG] = rows < 5 ? 0 : rows < LISTS_ROWS ? 2 : log > 3 ? log : 3;
    enum record_pane third = r->focus == RECORD_COUNTS                ? RECORD_COUNTS
                             : output && r->focus != RECORD_HITS ? RECORD_OUTPUT
                                                                 : RECORD_HITS;
    share[third] = rows < 11 ? 0 : third == r->focus ? (rows - share[RECORD_LOG]) * 5 / 8 : (rows + 1) / 4;
    if (!share[r->focus] && rows >= 3 && r->focus != RECORD_SNAPSHOTS) {
        memset(share, 0, RECORD_PANES * sizeof *share);
        share[r->focus] = rows;
        return;
    }
    share[RECORD_SNAPSHOTS] = rows - share[third] - share[RECORD_LOG];
}

/* In a low window the running recorder matters more than its plan, and after the end the next plan more
 * than how the recorder did; what the lists show is not shown anywhere else. */
static void fold(const struct record *r, int rows, int *plan, int *live)
{
    if (v_record_is_running(r))
        *plan = rows < V_RECORD_PLAN_BRIEF + *live + LISTS_ROWS ? 0 : V_RECORD_PLAN_BRIEF;
    else if (*live > V_RECORD_LIVE_BRIEF)
        *live = V_RECORD_LIVE_BRIEF;
}

static void draw(void *view, struct surface *s, struct rect at)
{
    struct record *r = view;
    int share[RECORD_PANES];
    struct rect next = at;
    if (r->session)
        session_get_status(r->session, &r->status);
    list_refresh(r->snapshots, false);
    list_refresh(r->hits, false);
    v_record_rank(r);
    list_refresh(r->counts, false);
    if (!r->full_log) {
        int plan = v_record_plan_rows(r), live = v_record_live_rows(r);
        if (at.rows < plan + live + LISTS_ROWS)
            fold(r, at.rows, &plan, &live);
        next.rows = plan < next.rows ? plan : next.rows;
        v_record_draw_plan(r, s, next);
        next.row += next.rows;
        next.rows = live < at.row + at.rows - next.row ? live : at.row + at.rows - next.row;
        v_record_draw_live(r, s, next);
        next.row += next.rows;
    }
    share_rows(r, at.row + at.rows - next.row, share);
    static void (*const panes[])(struct record *, struct surface *, struct rect) = {
        v_record_draw_snapshots, v_record_draw_hits, v_record_draw_counts, v_record_draw_log, v_record_draw_output};
    for (size_t i = 0; i < RECORD_PANES; i++) {
        next.rows = share[i];
        r->pane[i] = next;
        if (share[i] > 0)
            panes[i](r, s, next);
        next.row += share[i];
    }
}

static void state(void *view, char *out, size_t size)
{
    struct record *r = view;
    char age[FMT_MAX];
    if (!v_record_is_running(r)) {
        snprintf(out, size, "%s",
                 r->asks_force       ? "asking"
                 : r->status.too_hot ? "not armed"
                 : r->session        ? session_state_name(r->status.state)
                                     : "");
        return;
    }
    uint64_t since = r->status.armed_ns ? r->status.armed_ns : r->status.started_ns;
    snprintf(out, size, "%s %s",
             r->status.state == SESSION_ARMED ? "REC" : session_state_name(r->status.state),
             fmt_age(age, (loop_now_ns(r->m->loop) - since) / 1000000000u));
}

static void status(void *view, char *out, size_t size)
{
    struct record *r = view;
    char n[FMT_MAX];
    const struct session_snapshot *snap = r->focus == RECORD_SNAPSHOTS ? v_record_selected(r) : NULL;
    if (snap && snap->remark) /* its column cuts it */
        snprintf(out, size, "%s%.0u: %s", snap->number ? "snapshot " : "the end file", snap->number, snap->remark);
    else if (v_record_is_running(r) && r->status.counted)
        snprintf(out, size, "%s counted, not snapped",
                 fmt_counted(n, r->status.counted, "hit was", "hits were"));
    else if (r->session && r->status.maps_left_out)
        snprintf(out, size, "%s", r->status.maps_note);
    else if (r->session && r->pane[RECORD_LOG].rows < 2 && session_log_count(r->session))
        snprintf(out, size, "%s", session_log_at(r->session, session_log_count(r->session) - 1).text);
    else if (!r->session && !r->m->target.pid && !r->setup.argv && !r->setup.n_pids)
        snprintf(out, size, "Choose a process first (1), then functions (2), then Space here.");
}

/* ---- Actions ---- */

static void line_buffer(void *arg, const char *text)
{
    if (text)
        v_record_set_buffer(arg, text);
}

static void line_triggers(void *arg, const char *text)
{
    if (text)
        v_record_set_triggers(arg, text);
}

static void line_options(void *arg, const char *text)
{
    if (text)
        v_record_set_options(arg, text);
}

/* A request while recording: what is refused is said. */
static void ask_session(struct record *r, int (*request)(struct session *s, struct err *err))
{
    struct err err;
    if (!r->session)
        model_warn(r->m, "nothing is recorded; Space starts");
    else if (request(r->session, &err) < 0)
        model_warn(r->m, "%s", err.text);
}

static void answer_delete(void *arg, bool yes)
{
    struct record *r = arg;
    const struct session_snapshot *snap = v_record_selected(r);
    struct err err;
    if (!yes || !snap)
        return;
    unsigned number = snap->number;
    if (session_delete(r->session, number, &err) < 0)
        model_error(r->m, "%s", err.text);
    else
        decode_queue_forget(r->decode, number);
}

static void delete_snapshot(struct record *r)
{
    const struct session_snapshot *snap = v_record_selected(r);
    char question[80];
    if (!snap || !snap->data) {
        model_warn(r->m, "there is no snapshot to delete");
        return;
    }
    if (snap->number)
        snprintf(question, sizeof question, "Delete snapshot %u and its files?", snap->number);
    else
        snprintf(question, sizeof question, "Delete the end file?");
    model_ask(r->m, question, answer_delete, r);
}

static void open_selected(struct record *r)
{
    const struct session_snapshot *snap =
        r->focus == RECORD_COUNTS ? v_record_counts_snapshot(r) : v_record_selected(r);
    if (r->focus == RECORD_HITS && r->session) {
        size_t row = list_selected(r->hits), n = session_hit_count(r->session);
        unsigned number = row < n ? session_hit_at(r->session, n - 1 - row)->hit.snapshot : 0;
        if (number)
            v_record_open(r, number);
        else
            model_say(r->m, "this hit made no snapshot");
        return;
    }
    if (!snap || !snap->data)
        model_say(r->m, "no snapshot yet");
    else
        v_record_open(r, snap->number);
}

static bool edit(struct record *r, enum action act, const char *arg)
{
    char *text = NULL, size[FMT_MAX];
    bool edits = act == ACT_MODE || act == ACT_BUFFER || act == ACT_TRIGGERS || act == ACT_OPTIONS;
    if (!edits || !v_record_may_edit(r)) /* before anything is typed */
        return edits;
    if (act == ACT_MODE) {
        v_record_set_mode(r, arg);
    } else if (act == ACT_BUFFER && arg) {
        v_record_set_buffer(r, arg);
    } else if (act == ACT_BUFFER) {
        uint64_t bytes = r->setup.ring_bytes;
        model_prompt(r->m, "Buffer size: ", bytes ? fmt_size(size, bytes) : "", line_buffer, r);
    } else if (act == ACT_TRIGGERS && arg) {
        v_record_set_triggers(r, arg);
    } else if (act == ACT_TRIGGERS) {
        text = v_record_triggers_text(r);
        model_prompt(r->m, "Triggers: ", text, line_triggers, r);
    } else if (act == ACT_OPTIONS && arg) {
        v_record_set_options(r, arg);
    } else {
        text = v_record_options_text(r);
        model_prompt(r->m, "Options: ", text, line_options, r);
    }
    free(text);
    return true;
}

static void copy_command(struct record *r)
{
    struct session_setup setup;
    v_record_effective_setup(r, &setup);
    v_record_name_output(r, &setup);
    char *text = session_setup_repeat(&setup);
    session_setup_free(&setup);
    model_copy(r->m, text);
    if (r->session)
        session_log(r->session, SESSION_INFO, "copied: %s", text);
    model_say(r->m, "copied: %s", text);
    free(text);
}

static void move_focus(struct record *r, bool forward)
{
    do
        r->focus = (enum record_pane)((r->focus + (forward ? 1 : RECORD_PANES - 1)) % RECORD_PANES);
    while ((r->focus == RECORD_OUTPUT && !v_record_has_output(r)) ||
           (r->focus == RECORD_COUNTS && !v_record_has_counts(r)));
}

static bool scroll(struct record *r, enum action act)
{
    if (r->focus == RECORD_SNAPSHOTS && !r->full_log)
        return list_action(r->snapshots, act);
    if (r->focus == RECORD_HITS && !r->full_log)
        return list_action(r->hits, act);
    if (r->focus == RECORD_COUNTS && !r->full_log)
        return list_action(r->counts, act);
    if (r->focus == RECORD_OUTPUT && !r->full_log)
        return false;
    size_t page = r->log_rows > 1 ? (size_t)(r->log_rows - 1) : 1, all = SIZE_MAX / 2;
    size_t by = act == ACT_UP || act == ACT_DOWN             ? 1
                : act == ACT_HALF_UP || act == ACT_HALF_DOWN ? (page + 1) / 2
                : act == ACT_PAGE_UP || act == ACT_PAGE_DOWN ? page
                : act == ACT_FIRST || act == ACT_LAST        ? all
                                                             : 0;
    if (!by)
        return false;
    if (act == ACT_UP || act == ACT_HALF_UP || act == ACT_PAGE_UP || act == ACT_FIRST)
        r->log_up += by;
    else
        r->log_up = r->log_up > by ? r->log_up - by : 0;
    return true;
}

/* Its few lines beside the other panes follow the newest again. */
static void show_full_log(struct record *r, bool full)
{
    r->full_log = full;
    r->log_up = 0;
}

static bool interrupt(struct record *r)
{
    if (r->open_next != UINT_MAX) {
        r->open_next = UINT_MAX;
        model_say(r->m, "not opened");
        return true;
    }
    if (v_record_is_running(r) && r->status.rec.snapshot_busy) {
        ask_session(r, session_give_up);
        return true;
    }
    if (v_record_is_running(r)) {
        v_record_start_stop(r);
        return true;
    }
    return false;
}

static bool action(void *view, enum action act, const char *arg)
{
    struct record *r = view;
    model_redraw(r->m);
    if (edit(r, act, arg))
        return true;
    switch ((int)act) {
    case ACT_START_STOP:
        v_record_start_stop(r);
        return true;
    case ACT_SNAPSHOT: /* comes from every screen */
        if (v_record_is_running(r))
            ask_session(r, session_snapshot);
        return v_record_is_running(r);
    case ACT_OPEN_RECORDING:
        v_record_open_path(r, arg);
        return true;
    case ACT_ENABLE:
        ask_session(r, session_toggle_enabled);
        return true;
    case ACT_PING:
        ask_session(r, session_ping);
        return true;
    case ACT_DISARM:
        ask_session(r, session_disarm);
        return true;
    case ACT_LOG:
        show_full_log(r, !r->full_log);
        return true;
    case ACT_DELETE_SNAPSHOT:
        delete_snapshot(r);
        return true;
    case ACT_OPEN:
        open_selected(r);
        return true;
    case ACT_COPY:
        copy_command(r);
        return true;
    case ACT_PANE_NEXT:
    case ACT_PANE_PREV:
        move_focus(r, act == ACT_PANE_NEXT);
        return true;
    case ACT_CANCEL:
    case ACT_BACK:
        if (!r->full_log)
            return false;
        show_full_log(r, false);
        return true;
    case ACT_INTERRUPT:
        return interrupt(r);
    case ACT_QUIT:
        return v_record_quit(r);
    default:
        return scroll(r, act);
    }
}

static bool inside(struct rect r, int row, int col)
{
    return row >= r.row && row < r.row + r.rows && col >= r.col && col < r.col + r.cols;
}

static bool on_mouse(void *view, const struct mouse *m, struct rect at)
{
    struct record *r = view;
    (void)at;
    for (size_t i = 0; i < RECORD_PANES; i++) {
        if (!inside(r->pane[i], m->row, m->col))
            continue;
        r->focus = (enum record_pane)i;
        model_redraw(r->m);
        if (i == RECORD_LOG || i == RECORD_OUTPUT)
            return i == RECORD_OUTPUT || scroll(r, m->kind == MOUSE_WHEEL_UP     ? ACT_UP
                                                   : m->kind == MOUSE_WHEEL_DOWN ? ACT_DOWN
                                                                                 : ACT_NONE);
        enum list_hit hit = list_mouse(i == RECORD_HITS ? r->hits : i == RECORD_COUNTS ? r->counts : r->snapshots, m);
        if (hit == LIST_OPENED)
            open_selected(r);
        return hit != LIST_MISS;
    }
    return false;
}

static void changed(void *view, enum model_change what)
{
    struct record *r = view;
    /* A process chosen on the screen takes the place of those from the command line. */
    if (what == MODEL_TARGET && r->m->target.pid && !r->starting) {
        free(r->setup.pids);
        r->setup.pids = NULL;
        r->setup.n_pids = 0;
    }
}

/* "snapshots N": at least so many; "decoded N"; "hits N"; "armed"; "ended". */
static int condition(void *view, const char *name, const char *arg)
{
    struct record *r = view;
    uint64_t n = strtoull(arg, NULL, 10), have = 0;
    size_t count = r->session ? session_snapshot_count(r->session) : 0;
    if (r->session)
        session_get_status(r->session, &r->status);
    if (!strcmp(name, "snapshots"))
        return count >= n;
    if (!strcmp(name, "hits"))
        return r->status.hits >= n;
    if (!strcmp(name, "decoded")) {
        for (size_t i = 0; i < count; i++)
            have +=
                decode_queue_result(r->decode, session_snapshot_at(r->session, i)->number).state ==
                DECODE_DONE;
        return have >= n;
    }
    if (!strcmp(name, "armed"))
        return v_record_is_running(r) && r->status.state == SESSION_ARMED;
    if (!strcmp(name, "ended"))
        return r->session && r->status.state >= SESSION_ENDED;
    return -1;
}

const struct view_ops view_record = {
    .name = "record",
    .title = "Record",
    .contexts = {CTX_RECORD, CTX_MOVE},
    .context_count = 2,
    .create = create,
    .destroy = destroy,
    .draw = draw,
    .action = action,
    .mouse = on_mouse,
    .changed = changed,
    .status = status,
    .state = state,
    .condition = condition,
};
