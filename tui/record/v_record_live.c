/* The Live pane: what the recorder answers. */
#include "tui/record/v_record_priv.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/fmt.h"
#include "tui/ui/bar.h"

#define ROWS 9

static const struct style plain, dim = {.ink = ROLE_DIM}, warn = {.ink = ROLE_WARN},
                                 error = {.ink = ROLE_ERROR};

int v_record_live_rows(const struct record *r)
{
    return r->session && !r->asks_force ? ROWS + v_record_calls_rows(r) : 2;
}

char *v_record_clock(char out[16], int64_t unix_ns)
{
    time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm tm;
    if (!localtime_r(&seconds, &tm) || !strftime(out, 16, "%H:%M:%S", &tm))
        snprintf(out, 16, "--:--:--");
    size_t len = strlen(out);
    snprintf(out + len, 16 - len, ".%03d", (int)(unix_ns / 1000000 % 1000));
    return out;
}

/* A moment of the loop's clock as time of day. */
static char *clock_of(const struct record *r, char out[16], uint64_t loop_ns)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    int64_t now = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
    return v_record_clock(out, now - (int64_t)(loop_now_ns(r->m->loop) - loop_ns));
}

static void draw_state(struct record *r, struct surface *s, struct rect at, int row)
{
    static const struct {
        enum recorder_state state;
        const char *name;
    } chain[] = {{RECORDER_SPAWNED, "spawned"},   {RECORDER_PINGED, "pinged"},
                 {RECORDER_ENABLED, "enabled"},   {RECORDER_SNAPSHOT, "snapshot"},
                 {RECORDER_STOPPING, "stopping"}, {RECORDER_ENDED, "ended"}};
    const struct session_status *st = &r->status;
    char text[256] = "", pid[32] = "";
    enum recorder_state now = st->rec.state;
    for (size_t i = 0; i < sizeof chain / sizeof *chain; i++) {
        bool here = chain[i].state == now || (now == RECORDER_DISABLED && i == 2) ||
                    (now == RECORDER_FAILED && i == 5);
        const char *name = now == RECORDER_DISABLED && i == 2 ? "disabled"
                           : now == RECORDER_FAILED && i == 5 ? "failed"
                                                              : chain[i].name;
        char upper[16];
        snprintf(upper, sizeof upper, "%s", name);
        for (char *p = upper; here && *p; p++)
            *p = (char)(*p - 'a' + 'A');
        size_t len = strlen(text);
        snprintf(text + len, sizeof text - len, "%s%s%s%s", i ? " > " : "", here ? "[" : "", upper,
                 here ? "]" : "");
    }
    if (st->rec.pid > 0)
        snprintf(pid, sizeof pid, "   %s pid %ld",
                 st->recorder == PLAN_STEP ? "recorder" : "perf", (long)st->rec.pid);
    struct style style = {.ink = now == RECORDER_FAILED ? ROLE_ERROR
                                 : st->state == SESSION_ARMED && now != RECORDER_ENDED
                                     ? ROLE_OK
                                     : ROLE_DEFAULT};
    v_record_field(s, at, row, "State", style, "%s%s", text, pid);
}

static void draw_ack(struct record *r, struct surface *s, struct rect at, int row)
{
    const struct recorder_status *rec = &r->status.rec;
    char sent[16], took[FMT_MAX], min[FMT_MAX], avg[FMT_MAX], max[FMT_MAX], stats[160] = "";
    if (!rec->has_command) {
        v_record_field(s, at, row, "Last ack", dim, "nothing sent yet");
        return;
    }
    if (rec->acks.count)
        snprintf(stats, sizeof stats, "   (min %s  avg %s  max %s)",
                 fmt_duration(min, rec->acks.min_ns),
                 fmt_duration(avg, rec->acks.sum_ns / rec->acks.count),
                 fmt_duration(max, rec->acks.max_ns));
    clock_of(r, sent, rec->last_sent_ns);
    if (rec->last_acked)
        v_record_field(s, at, row, "Last ack", plain, "%s   sent %s   acked +%s%s",
                       rec->last_command, sent, fmt_duration(took, rec->last_ack_ns), stats);
    else if (!rec->ctlfd || !strncmp(rec->last_command, "SIG", 3))
        v_record_field(s, at, row, "Last ack", plain, "%s   sent %s   a signal is not answered",
                       rec->last_command, sent);
    else if (r->status.state >= SESSION_ENDED)
        v_record_field(s, at, row, "Last ack", plain, "%s   sent %s   never acked%s",
                       rec->last_command, sent, stats);
    else
        v_record_field(s, at, row, "Last ack", rec->last_overdue ? warn : plain,
                       "%s   sent %s   %s for %s%s", rec->last_command, sent,
                       rec->last_overdue ? "LATE, waiting" : "waiting",
                       fmt_duration(took, loop_now_ns(r->m->loop) - rec->last_sent_ns), stats);
}

/* What is being stepped now, and how fast. */
static void draw_stepping(struct record *r, struct surface *s, struct rect at, int row)
{
    const struct recorder_status *rec = &r->status.rec;
    char n[FMT_MAX], took[FMT_MAX], rate[FMT_MAX];
    if (!rec->step_tid) {
        v_record_field(s, at, row, "Stepping", dim, "no thread; the program runs at full speed");
        return;
    }
    uint64_t ms = rec->step_wall_ns / 1000000;
    v_record_field(s, at, row, "Stepping", warn,
                   "thread %ld: %s in %s, %s a second   S %s",
                   (long)rec->step_tid, fmt_counted(n, rec->step_instructions, "instruction", "instructions"),
                   fmt_duration(took, rec->step_wall_ns),
                   fmt_count_short(rate, ms ? rec->step_instructions * 1000 / ms : 0),
                   session_get_setup(r->session)->n_triggers ? "ends the window" : "keeps it");
}

static void draw_ring(struct record *r, struct surface *s, struct rect at, int row)
{
    const struct session_status *st = &r->status;
    char size[FMT_MAX], full[16], span[FMT_MAX];
    if (st->mode == PLAN_WHOLE)
        v_record_field(s, at, row, "Ring", dim, "none: everything is written");
    else if (st->est_lookback_ns && st->est_at_least)
        v_record_field(s, at, row, "Ring", plain,
                       "%s each   not full in any snapshot   look-back at least %s (snapshot %u)",
                       fmt_size(size, st->ring_bytes), fmt_duration(span, st->est_lookback_ns),
                       st->est_from);
    else if (st->est_lookback_ns)
        v_record_field(s, at, row, "Ring", plain,
                       "%s each   est. full since %s   look-back est. %s (from snapshot %u)",
                       fmt_size(size, st->ring_bytes), clock_of(r, full, st->est_full_ns),
                       fmt_duration(span, st->est_lookback_ns), st->est_from);
    else if (st->est_fill_permille)
        v_record_field(s, at, row, "Ring", plain,
                       "%s each   est. %u %% full   look-back is not known before the first snapshot",
                       fmt_size(size, st->ring_bytes), st->est_fill_permille / 10);
    else
        v_record_field(s, at, row, "Ring", plain,
                       "%s each   fill and look-back are not known before the first snapshot",
                       fmt_size(size, st->ring_bytes));
}

/* One bar a ping, by powers of four from 16 us up; a late one is a full cell in the colour of
 * errors. */
static void draw_heartbeat(struct record *r, struct surface *s, struct rect at, int row)
{
    const struct recorder_status *rec = &r->status.rec;
    char last[FMT_MAX], text[80];
    if (!rec->n_heartbeats) {
        v_record_field(s, at, row, "Heartbeat", dim,
                       rec->ctlfd ? "no ping answered yet" : "none: signals are not answered");
        return;
    }
    uint64_t newest = rec->heartbeats_ns[rec->n_heartbeats - 1];
    snprintf(text, sizeof text, "last %s%s   ", newest == UINT64_MAX ? "" : "+",
             newest == UINT64_MAX ? "LATE" : fmt_duration(last, newest));
    v_record_field(s, at, row, "Heartbeat", plain, "%s", text);
    int col = at.col + 13 + (int)strlen(text);
    size_t room = at.col + at.cols > col ? (size_t)(at.col + at.cols - col) : 0;
    size_t n = rec->n_heartbeats < room ? rec->n_heartbeats : room;
    for (size_t i = 0; i < n; i++) {
        uint64_t ns = rec->heartbeats_ns[rec->n_heartbeats - n + i];
        int level = 0;
        for (uint64_t step = 16000; level < 7 && ns > step; step *= 4)
            level++;
        surface_put(s, at.row + row, col + (int)i,
                    glyph(r->m->glyphs, (enum glyph)(GLYPH_BAR1 + level)),
                    ns == UINT64_MAX ? error : plain);
    }
}

#define FULL_SOON_S 86400 /* what takes longer to fill is no news */

static void draw_written(struct record *r, struct surface *s, struct rect at, int row)
{
    const struct recorder_status *rec = &r->status.rec;
    char bytes[FMT_MAX], rate[FMT_MAX], left[FMT_MAX], n[FMT_MAX], full[FMT_MAX], flow[64] = "", room[160] = "";
    if (rec->bytes_per_s && v_record_is_running(r))
        snprintf(flow, sizeof flow, "   %s/s", fmt_size(rate, rec->bytes_per_s));
    if (v_record_is_running(r) && rec->disk_free != UINT64_MAX && rec->bytes_per_s &&
        rec->disk_free / rec->bytes_per_s < FULL_SOON_S)
        snprintf(room, sizeof room, "   free on disk %s, full in %s at this rate", fmt_size(left, rec->disk_free),
                 fmt_age(full, rec->disk_free / rec->bytes_per_s));
    else if (rec->disk_free != UINT64_MAX)
        snprintf(room, sizeof room, "   free on disk %s", fmt_size(left, rec->disk_free));
    bool tight = rec->disk_free < r->status.ring_bytes * 8;
    v_record_field(s, at, row, "Written", tight ? warn : plain, "%s in %s snapshot%s%s%s",
                   fmt_size(bytes, rec->bytes_written), fmt_count(n, rec->snapshots),
                   rec->snapshots == 1 ? "" : "s", flow, room);
}

static void draw_outstanding(struct record *r, struct surface *s, struct rect at, int row)
{
    const struct session_status *st = &r->status;
    char took[FMT_MAX], n[FMT_MAX];
    if (st->rec.snapshot_busy)
        v_record_field(s, at, row, "Snapshot", warn, "being written for %s (%s); ^C gives it up",
                       fmt_duration(took, st->rec.snapshot_elapsed_ns),
                       st->rec.snapshot_reason ? st->rec.snapshot_reason : "");
    else if (st->hit_to_command_ns)
        v_record_field(s, at, row, "Snapshot", plain,
                       "%s from the last hit to the command   %s hit%s counted, not snapped",
                       fmt_duration(took, st->hit_to_command_ns), fmt_count(n, st->counted),
                       st->counted == 1 ? "" : "s");
    else
        v_record_field(s, at, row, "Snapshot", dim, "none asked for yet");
}

/* After the end, in place of the control mechanism: what there is now. A recorder that failed has
 * taken its rings with it. */
static void draw_kept(struct record *r, struct surface *s, struct rect at, int row)
{
    const struct session_status *st = &r->status;
    char n[FMT_MAX], bytes[FMT_MAX];
    uint64_t kept = 0, size = 0;
    for (size_t i = 0; i < session_snapshot_count(r->session); i++) {
        const struct session_snapshot *snap = session_snapshot_at(r->session, i);
        kept += snap->data != NULL;
        size += snap->bytes;
    }
    const char *lost = st->state != SESSION_FAILED || st->too_hot ? ""
                       : st->mode == PLAN_WHOLE ? "   lost: what was not written yet"
                       : st->rec.snapshots      ? "   lost: what was held since the last one"
                                                : "   lost: all that was held";
    if (kept)
        v_record_field(s, at, row, "Kept", plain, "%s file%s (%s): Enter opens%s", fmt_count(n, kept),
                       kept == 1 ? "" : "s", fmt_size(bytes, size), lost);
    else
        v_record_field(s, at, row, "Kept", plain, "nothing%s", lost);
}

static void draw_ended(struct record *r, struct surface *s, struct rect at, int row)
{
    v_record_field(s, at, row, "Ended", r->status.state == SESSION_ENDED ? plain : error, "%s", r->status.sentence);
}

void v_record_draw_live(struct record *r, struct surface *s, struct rect at)
{
    const struct session_status *st = &r->status;
    if (!r->session || !st->has_recorder || r->asks_force) {
        bar_draw_rule(s, at.row, at.col, at.cols, "Live", "", r->m->glyphs);
        v_record_field(s, at, 1, "State", r->asks_force ? warn : dim,
                       r->asks_force ? "not armed yet: waiting for the answer below"
                       : r->starting ? "looking at the machine…"
                       : r->start    ? "looking for the functions…; Space gives up"
                                     : "nothing is recorded; Space starts");
        return;
    }
    bar_draw_rule(s, at.row, at.col, at.cols, "Live", st->rec.mechanism, r->m->glyphs);
    if (at.rows > ROWS)
        v_record_draw_calls(r, s,
                            (struct rect){at.row + ROWS, at.col, at.rows - ROWS, at.cols});
    draw_state(r, s, at, 1);
    if (st->sentence && at.rows <= V_RECORD_LIVE_BRIEF) {
        draw_kept(r, s, at, 2);
        draw_ended(r, s, at, 3);
        return;
    }
    draw_ack(r, s, at, 2);
    if (st->recorder == PLAN_STEP)
        draw_stepping(r, s, at, 3);
    else
        draw_ring(r, s, at, 3);
    draw_heartbeat(r, s, at, 4);
    draw_written(r, s, at, 5);
    draw_outstanding(r, s, at, 6);
    if (st->sentence)
        draw_kept(r, s, at, 7);
    else if (st->state == SESSION_STOPPING)
        v_record_field(s, at, 7, "Stopping", warn, "Space again presses: gives up the snapshot, then SIGTERM%s",
                       st->recorder == PLAN_STEP ? "" : ", SIGKILL");
    else
        v_record_field(s, at, 7, "Control", dim, "%s", st->rec.why);
    if (st->sentence)
        draw_ended(r, s, at, 8);
    else
        v_record_field(s, at, 8, st->recorder == PLAN_STEP ? "It says" : "perf says", dim, "%s",
                       st->rec.n_tail ? st->rec.tail[st->rec.n_tail - 1] : "nothing");
}
