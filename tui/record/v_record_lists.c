/* The panes Snapshots, Hits, Log and Output. */
#include "tui/record/v_record_priv.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/base/fmt.h"
#include "tui/ui/bar.h"
#include "tui/ui/line.h"
#include "tui/timeline/ruler.h"

static const struct list_column snapshot_columns[] = {
    {.title = "#", .cols = 3, .priority = 0, .right = true, .fixed = true},
    {.title = "TIME", .cols = 12, .priority = 2, .fixed = true},
    {.title = "TRIGGER", .cols = 20, .priority = 1, .fixed = true},
    {.title = "TID", .cols = 7, .priority = 4, .right = true, .fixed = true},
    {.title = "SIZE", .cols = 6, .priority = 3, .right = true, .fixed = true},
    {.title = "SPAN", .cols = 12, .priority = 2, .right = true, .fixed = true},
    {.title = "DECODE", .cols = 20, .priority = 0, .stretch = true, .fixed = true},
};

static const struct list_column hit_columns[] = {
    {.title = "TIME", .cols = 12, .priority = 0, .fixed = true},
    {.title = "TRIGGER", .cols = 12, .priority = 0, .stretch = true, .fixed = true},
    {.title = "TID", .cols = 7, .priority = 1, .right = true, .fixed = true},
    {.title = "DURATION", .cols = 9, .priority = 3, .right = true, .fixed = true},
    {.title = "ARG1", .cols = 18, .priority = 4, .right = true, .fixed = true},
    {.title = "ARG2", .cols = 18, .priority = 5, .right = true, .fixed = true},
    {.title = "SNAPSHOT", .cols = 24, .priority = 2, .fixed = true},
};

/* ---- Snapshots ---- */

static size_t snapshot_count(void *arg)
{
    const struct record *r = arg;
    return r->session ? session_snapshot_count(r->session) : 0;
}

static uint64_t snapshot_identity(void *arg, size_t row)
{
    const struct record *r = arg;
    unsigned n = session_snapshot_at(r->session, row)->number;
    return n ? n : UINT_MAX;
}

static void decode_cell(const struct record *r, const struct session_snapshot *snap,
                        struct list_cell *cell)
{
    struct decode_result d = decode_queue_result(r->decode, snap->number);
    char spans[FMT_MAX], gaps[FMT_MAX], bar[21];
    if (!snap->data) {
        snprintf(cell->text, sizeof cell->text, "deleted");
        return;
    }
    switch (d.state) {
    case DECODE_NONE:
        snprintf(cell->text, sizeof cell->text, "Enter decodes it");
        break;
    case DECODE_QUEUED:
        snprintf(cell->text, sizeof cell->text, "queued");
        break;
    case DECODE_RUNNING:
        for (unsigned i = 0; i < 20; i++)
            bar[i] = i < d.permille / 50 ? '#' : '.';
        bar[20] = '\0';
        if (d.finishing)
            snprintf(cell->text, sizeof cell->text, "finishing   [%s]", bar);
        else
            snprintf(cell->text, sizeof cell->text, "%u %%   [%s]", d.permille / 10, bar);
        break;
    case DECODE_DONE:
        snprintf(cell->text, sizeof cell->text, "%s%s span%s", snap->window_end ? "" : "done   ",
                 fmt_count(spans, d.spans), d.spans == 1 ? "" : "s");
        if (snap->window_end) {
            size_t len = strlen(cell->text);
            snprintf(cell->text + len, sizeof cell->text - len, "  %s%s", snap->window_short ? "! " : "",
                     snap->window_end);
        }
        if (d.gaps) {
            size_t len = strlen(cell->text);
            snprintf(cell->text + len, sizeof cell->text - len, "  %s gap%s",
                     fmt_count(gaps, d.gaps), d.gaps == 1 ? "" : "s");
        }
        break;
    case DECODE_FAILED:
        snprintf(cell->text, sizeof cell->text, "! %s", d.sentence);
        cell->style.ink = ROLE_ERROR;
        break;
    }
}

static void snapshot_cell(void *arg, size_t row, size_t column, struct list_cell *cell)
{
    const struct record *r = arg;
    const struct session_snapshot *snap = session_snapshot_at(r->session, row);
    struct decode_result d = decode_queue_result(r->decode, snap->number);
    char text[FMT_MAX];
    switch (column) {
    case 0:
        snprintf(cell->text, sizeof cell->text, snap->number ? "%u" : "end", snap->number);
        break;
    case 1:
        v_record_clock(cell->text, snap->unix_ns);
        break;
    case 2:
        snapshot_hit_text(cell->text, sizeof cell->text, snap->trigger, snap->function);
        if (snap->remark) {
            size_t len = strlen(cell->text);
            snprintf(cell->text + len, sizeof cell->text - len, "  ! %s", snap->remark);
        }
        break;
    case 3:
        if (snap->tid)
            snprintf(cell->text, sizeof cell->text, "%ld", (long)snap->tid);
        break;
    case 4:
        snprintf(cell->text, sizeof cell->text, "%s", fmt_size(text, snap->bytes));
        break;
    case 5:
        if (d.state == DECODE_DONE)
            snprintf(cell->text, sizeof cell->text, "%s", ruler_duration(text, d.span_ns,
                                                                   r->status.recorder == PLAN_STEP));
        break;
    default:
        decode_cell(r, snap, cell);
    }
}

/* ---- Hits, newest first ---- */

static size_t hit_count(void *arg)
{
    const struct record *r = arg;
    return r->session ? session_hit_count(r->session) : 0;
}

static const struct session_hit *hit_at(const struct record *r, size_t row)
{
    return session_hit_at(r->session, session_hit_count(r->session) - 1 - row);
}

static uint64_t hit_identity(void *arg, size_t row)
{
    const struct session_hit *h = hit_at(arg, row);
    return (h->hit.time_ns << 8 ^ (uint64_t)h->hit.tid) | 1;
}

static void hit_cell(void *arg, size_t row, size_t column, struct list_cell *cell)
{
    const struct session_hit *h = hit_at(arg, row);
    char text[FMT_MAX];
    switch (column) {
    case 0:
        v_record_clock(cell->text, h->unix_ns);
        break;
    case 1:
        snapshot_hit_text(cell->text, sizeof cell->text, h->hit.trigger, h->hit.function);
        break;
    case 2:
        snprintf(cell->text, sizeof cell->text, "%ld", (long)h->hit.tid);
        break;
    case 3:
        if (h->has_duration)
            snprintf(cell->text, sizeof cell->text, "%s%s", fmt_duration(text, h->hit.duration_ns),
                     h->still_running ? "+" : "");
        break;
    case 4:
    case 5:
        snprintf(cell->text, sizeof cell->text, "0x%" PRIx64,
                 column == 4 ? h->hit.arg1 : h->hit.arg2);
        break;
    default:
        if (h->hit.snapshot)
            snprintf(cell->text, sizeof cell->text, "%u%s", h->hit.snapshot,
                     h->still_running ? ", still running" : "");
        else
            snprintf(cell->text, sizeof cell->text, "%s", trigger_verdict_text(h->verdict));
    }
}

void v_record_new_lists(struct record *r)
{
    static const struct list_rows snapshot_rows = {
        .count = snapshot_count, .identity = snapshot_identity, .cell = snapshot_cell};
    static const struct list_rows hit_rows = {
        .count = hit_count, .identity = hit_identity, .cell = hit_cell};
    r->snapshots = list_new(snapshot_columns, sizeof snapshot_columns / sizeof *snapshot_columns,
                            &snapshot_rows, r);
    r->hits = list_new(hit_columns, sizeof hit_columns / sizeof *hit_columns, &hit_rows, r);
    r->counts = v_record_new_counts(r);
}

const struct session_snapshot *v_record_selected(const struct record *r)
{
    size_t row = list_selected(r->snapshots);
    if (!r->session || row >= session_snapshot_count(r->session))
        return NULL;
    return session_snapshot_at(r->session, row);
}

/* ---- Drawing ---- */

void v_record_pane_title(struct record *r, struct surface *s, struct rect at, enum record_pane pane,
                         const char *name, const char *right)
{
    bar_draw_rule(s, at.row, at.col, at.cols, name, right, r->m->glyphs);
    if (r->focus == pane)
        surface_restyle(s, (struct rect){at.row, at.col + 3, 1, (int)strlen(name)},
                        (struct style){.ink = ROLE_TITLE, .attr = CELL_BOLD | CELL_UNDERLINE});
}

static struct rect below(struct rect at)
{
    return (struct rect){at.row + 1, at.col, at.rows - 1, at.cols};
}

void v_record_draw_snapshots(struct record *r, struct surface *s, struct rect at)
{
    char right[64] = "", n[FMT_MAX], max[FMT_MAX];
    size_t count = 0;
    for (size_t i = 0; i < snapshot_count(r); i++)
        count += session_snapshot_at(r->session, i)->number != 0;
    uint64_t limit = r->session ? session_get_setup(r->session)->when.max_snapshots : 0;
    if (limit)
        snprintf(right, sizeof right, "%s of %s", fmt_count(n, count), fmt_count(max, limit));
    else if (count)
        snprintf(right, sizeof right, "%s", fmt_count(n, count));
    v_record_pane_title(r, s, at, RECORD_SNAPSHOTS, "Snapshots", right);
    list_draw(r->snapshots, s, below(at), r->m->glyphs);
}

void v_record_draw_hits(struct record *r, struct surface *s, struct rect at)
{
    char right[96], hits[FMT_MAX], fired[FMT_MAX];
    snprintf(right, sizeof right, "%s hit%s, %s snapped", fmt_count(hits, r->status.hits),
             r->status.hits == 1 ? "" : "s",
             fmt_count(fired, r->status.fired));
    if (r->focus != RECORD_HITS) /* follows the newest until someone looks at an older one */
        list_select(r->hits, 0);
    v_record_pane_title(r, s, at, RECORD_HITS, "Hits", r->session ? right : "");
    list_draw(r->hits, s, below(at), r->m->glyphs);
}

#define LOG_CLOCK_COLS 14

/* Rows of a line of the log: whole sentences where the log has the screen, else one. */
static int log_line_rows(const struct record *r, size_t i, int cols)
{
    struct session_line line = session_log_at(r->session, i);
    return r->full_log ? line_rows(line.text, cols - 1 - LOG_CLOCK_COLS - (line.level == SESSION_INFO ? 0 : 2)) : 1;
}

static void draw_log_line(struct record *r, struct surface *s, struct rect at, size_t i)
{
    static const uint16_t roles[] = {ROLE_DEFAULT, ROLE_WARN, ROLE_ERROR};
    struct session_line line = session_log_at(r->session, i);
    struct style style = {.ink = roles[line.level]};
    char clock[16];
    int indent = 1 + LOG_CLOCK_COLS + (line.level == SESSION_INFO ? 0 : 2);
    surface_printf(s, at.row, at.col + 1, at.cols - 1, style, "%s  %s", v_record_clock(clock, line.unix_ns),
                   line.level == SESSION_INFO ? "" : "! ");
    line_wrap(s, (struct rect){at.row, at.col + indent, at.rows, at.cols - indent}, line.text, style, r->m->glyphs);
}

void v_record_draw_log(struct record *r, struct surface *s, struct rect at)
{
    size_t n = r->session ? session_log_count(r->session) : 0, most = n;
    int rows = at.rows > 1 ? at.rows - 1 : 0, used = 0;
    r->log_rows = rows;
    for (int top = 0; most > 0; most--) { /* scrolled back so far, the oldest ones fill the pane */
        top += log_line_rows(r, n - most, at.cols);
        if (top > rows)
            break;
    }
    if (r->log_up > most)
        r->log_up = most;
    v_record_pane_title(r, s, at, RECORD_LOG, "Log", r->log_up ? "scrolled back" : n && !r->full_log ? "l shows all" : "");
    size_t end = n - r->log_up, first = end;
    while (first > 0 && used + log_line_rows(r, first - 1, at.cols) <= rows)
        used += log_line_rows(r, --first, at.cols);
    if (first == end && end > 0 && rows > 0) /* longer than the pane */
        first--;
    for (int row = 1; first < end; first++) {
        int take = log_line_rows(r, first, at.cols);
        draw_log_line(r, s, (struct rect){at.row + row, at.col, take < rows ? take : rows, at.cols}, first);
        row += take;
    }
}

bool v_record_has_output(const struct record *r)
{
    return r->session && r->setup.argv && target_is_ours(session_target(r->session));
}

/* The last lines that the program has printed. */
void v_record_draw_output(struct record *r, struct surface *s, struct rect at)
{
    char how[128];
    struct target *t = session_target(r->session);
    size_t rows = at.rows > 1 ? (size_t)(at.rows - 1) : 0, len;
    v_record_pane_title(r, s, at, RECORD_OUTPUT, "Output", target_describe(t, how, sizeof how));
    const char *text = target_last_lines(t, rows, &len);
    for (size_t i = 0; i < rows && len; i++) {
        const char *end = memchr(text, '\n', len);
        size_t line = end ? (size_t)(end - text) : len, shown = line;
        if (shown && text[shown - 1] == '\r')
            shown--;
        surface_text(s, at.row + 1 + (int)i, at.col + 1, at.cols - 1, text, shown,
                     (struct style){0});
        text += line + (end ? 1 : 0);
        len -= line + (end ? 1 : 0);
    }
}
