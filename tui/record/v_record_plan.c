/* The Plan pane: what a start will do, or what the running session does. */
#include "tui/record/v_record_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/base/utf8.h"
#include "core/step/step_recorder.h"
#include "tui/ui/bar.h"

#define ROWS 7

int v_record_plan_rows(const struct record *r)
{
    (void)r;
    return ROWS;
}

static void draw_mode(struct surface *s, struct rect at, int row, enum plan_mode mode)
{
    static const char *const names[] = {"snapshot on trigger or key", "ring until stopped",
                                        "whole run"};
    char text[128] = "";
    for (size_t i = 0; i < 3; i++) {
        strcat(text, (size_t)mode == i ? "(o) " : "( ) ");
        strcat(text, names[i]);
        strcat(text, i < 2 ? "   " : "");
    }
    v_record_field(s, at, row, "Mode", (struct style){0}, "%s", text);
}

/* counted: then what says nothing gives way to the counts. */
static void conditions(char *out, size_t size, const struct trigger_conditions *when, bool counted,
                       bool several)
{
    char a[FMT_MAX];
    size_t n = 0;
    if (when->hits > 1)
        n += (size_t)snprintf(out + n, size - n, ", each %s. hit", fmt_count(a, when->hits));
    else if (!counted || when->slower_than_ns)
        n += (size_t)snprintf(out + n, size - n, ", every hit");
    if (when->slower_than_ns && n < size)
        n += (size_t)snprintf(out + n, size - n, " slower than %s",
                              fmt_duration(a, when->slower_than_ns));
    if (when->not_before_ns && n < size)
        n += (size_t)snprintf(out + n, size - n, ", not before %s", fmt_duration(a, when->not_before_ns));
    else if (when->not_before_full && n < size)
        n += (size_t)snprintf(out + n, size - n, ", not before the ring is full");
    if (when->hold_off_ns && n < size)
        snprintf(out + n, size - n, ", hold-off %s%s",
                 fmt_duration(a, when->hold_off_ns), several ? " each" : "");
}

/* Whether the plan is what runs, or what the last recording was of: then that one's hits stand beside it. */
static bool is_recorded(const struct record *r, const struct session_setup *setup)
{
    const struct session_setup *last = r->session ? session_get_setup(r->session) : NULL;
    return last && !last->argv == !setup->argv && last->n_pids == setup->n_pids &&
           (!last->n_pids || memcmp(last->pids, setup->pids, last->n_pids * sizeof *last->pids) == 0);
}

/* Of triggers [from, to), as far as the recording had them; false: it had none of these. */
static bool hits_of(const struct record *r, const struct session_setup *setup, size_t from, size_t to, uint64_t *hits)
{
    const struct session_setup *last = session_get_setup(r->session);
    bool any = false;
    *hits = 0;
    for (size_t i = from; i < to; i++) {
        for (size_t k = 0; k < last->n_triggers; k++)
            any |= strcmp(last->triggers[k], setup->triggers[i]) == 0;
        for (size_t k = 0; k < session_member_count(r->session); k++) {
            const struct session_member *m = session_member_at(r->session, k);
            *hits += strcmp(m->trigger, setup->triggers[i]) == 0 ? m->hits : 0;
        }
    }
    return any;
}

/* " [12]": of some of several triggers. */
static const char *hits_text(const struct record *r, const struct session_setup *setup, size_t from, size_t to,
                             char out[FMT_MAX + 3])
{
    char n[FMT_MAX];
    uint64_t hits;
    if (setup->n_triggers < 2 || !is_recorded(r, setup) || !hits_of(r, setup, from, to, &hits))
        return "";
    (void)snprintf(out, FMT_MAX + 3, " [%s]", fmt_count_short(n, hits));
    return out;
}

/* As many triggers as fit, each with its hits, at least one; and how many more there are. */
static void names(const struct record *r, const struct session_setup *setup, int cols, char *text,
                  size_t size)
{
    char n[FMT_MAX + 3], one[300], more[48];
    size_t len = 0, of = setup->n_triggers, room = cols > 0 ? (size_t)cols : 0;
    for (size_t i = 0; i < of; i++) {
        (void)snprintf(one, sizeof one, "%s%.200s%s", i ? ", " : "", setup->triggers[i],
                       hits_text(r, setup, i, i + 1, n));
        int left = i + 1 < of ? snprintf(more, sizeof more, ", %zu more%s", of - i - 1, hits_text(r, setup, i + 1, of, n)) : 0;
        size_t wanted = utf8_cols(text, len) + utf8_cols(one, strlen(one)) + (size_t)left;
        if (i > 0 && (wanted > room || len + strlen(one) + sizeof more > size)) {
            (void)snprintf(text + len, size - len, ", %zu more%s", of - i, hits_text(r, setup, i, of, n));
            return;
        }
        len += (size_t)snprintf(text + len, size - len, "%s", one);
    }
}

/* The program was replaced by one that has none of them: the recording goes on without. */
static bool all_gone(const struct record *r)
{
    const struct trigger_set *t = session_triggers(r->session);
    size_t n = t && trigger_set_processes(t) ? trigger_set_count(t) : 0, gone = 0;
    for (uint32_t i = 0; i < n; i++)
        gone += trigger_set_status(t, i) == TRIGGER_DISARMED;
    return n > 0 && gone == n;
}

static void draw_trigger(struct record *r, struct surface *s, struct rect at, int row,
                         const struct session_setup *setup)
{
    char text[600] = "", when[200] = "", hits[80] = "", n[FMT_MAX];
    bool running = v_record_is_running(r);
    uint64_t hit;
    bool counted = is_recorded(r, setup) && hits_of(r, setup, 0, setup->n_triggers, &hit);
    if (!setup->n_triggers)
        snprintf(text, sizeof text, "none: snapshots by key (S)");
    else
        conditions(when, sizeof when, &setup->when, counted, setup->n_triggers > 1);
    if (counted && setup->n_triggers == 1) /* several have counts of their own */
        snprintf(hits, sizeof hits, "   [hits %s]", fmt_count(n, hit));
    if (running && all_gone(r))
        strcat(hits, " gone by exec");
    else if (running && r->status.disarmed)
        strcat(hits, " disarmed");
    int taken = 1 + V_RECORD_LABEL_COLS + (int)strlen(when) + (int)strlen(hits);
    names(r, setup, at.cols - taken, text, sizeof text);
    if (counted && setup->n_triggers == 1 && v_record_has_counts(r)) {
        char counts[400];
        taken += (int)utf8_cols(text, strlen(text)) + 2;
        if (v_record_counts_text(r, at.cols - taken, counts, sizeof counts)) {
            size_t len = strlen(text);
            snprintf(text + len, sizeof text - len, ": %s", counts);
        }
    }
    v_record_field(s, at, row, "Trigger", (struct style){0}, "%s%s%s", text, when, hits);
}

/* What is stepped, its budget, and what of it is kept. */
static void draw_window(struct surface *s, struct rect at, int row,
                        const struct session_setup *setup, const struct record_plan *plan)
{
    char n[FMT_MAX], time[FMT_MAX], size[FMT_MAX], kept[64] = "all of it kept";
    uint64_t budget = setup->budget || !setup->n_triggers ? setup->budget : STEP_DEFAULT_BUDGET;
    if (plan->mode != PLAN_WHOLE)
        snprintf(kept, sizeof kept, "the last %s of each thread kept",
                 fmt_size(size, plan_ring_bytes(plan, NULL)));
    if (setup->n_triggers)
        v_record_field(s, at, row, "Window", (struct style){0},
                       "one call, from its hit to its return, at most %s or %s",
                       fmt_counted(n, budget, "instruction", "instructions"), fmt_duration(time, STEP_DEFAULT_BUDGET_WALL_NS));
    else if (budget)
        v_record_field(s, at, row, "Window", (struct style){0},
                       "the next %s of each thread, %s",
                       fmt_counted(n, budget, "instruction", "instructions"), kept);
    else
        v_record_field(s, at, row, "Window", (struct style){0},
                       "from now on, until it is stopped; %s", kept);
}

static void draw_buffer(struct record *r, struct surface *s, struct rect at, int row,
                        const struct record_plan *plan)
{
    char size[FMT_MAX], note[120] = "", span[FMT_MAX];
    if (plan->mode == PLAN_WHOLE) {
        v_record_field(s, at, row, "Buffer", (struct style){0}, "none: everything is written");
        return;
    }
    bool rounded;
    uint64_t bytes = plan_ring_bytes(plan, &rounded);
    unsigned cpus = r->m->caps ? r->m->caps->cpus_online : 1;
    if (r->status.est_lookback_ns)
        snprintf(note, sizeof note, "   %s %s of history",
                 r->status.est_at_least ? "at least" : "est.",
                 fmt_duration(span, r->status.est_lookback_ns));
    v_record_field(s, at, row, "Buffer", (struct style){0}, "%s per %s  x %zu%s%s",
                   fmt_size(size, bytes), plan->n_tids ? "thread" : "CPU",
                   plan->n_tids ? plan->n_tids : (size_t)cpus, rounded ? "   (rounded up)" : "",
                   note);
}

/* Samples have the kernel's frames wherever it lets us see them (core/record/plan.c says why), and are opened without
 * them when they were not asked for. */
static const char *kernel_text(const struct record *r, const struct record_plan *plan)
{
    if (plan->recorder == PLAN_STEP)
        return "";
    if (plan->recorder != PLAN_SAMPLE || !plan->kernel)
        return plan->kernel ? "kernel on" : "kernel off";
    bool allowed = r->m->caps && (r->m->caps->paranoid <= 1 || geteuid() == 0);
    return allowed ? "kernel on" : "kernel as allowed";
}

static void draw_recorder(struct record *r, struct surface *s, struct rect at, int row,
                          const struct session_setup *setup, const struct record_plan *plan)
{
    static const char *const timings[] = {"cyc", "tsc only", "cyc, no return compression"};
    static const char *const graphs[] = {"frame pointers", "DWARF", "LBR"};
    char why[256] = "not known yet", how[160], n[FMT_MAX];
    if (r->m->caps)
        session_setup_recorder(setup, r->m->caps, why, sizeof why);
    v_record_field(s, at, row, "Recorder", (struct style){.attr = CELL_BOLD}, "%s: %s",
                   plan_recorder_name(plan->recorder), why);
    if (plan->recorder == PLAN_PT)
        snprintf(how, sizeof how, "timing %s   every branch", timings[plan->timing]);
    else if (plan->recorder == PLAN_STEP)
        snprintf(how, sizeof how,
                 "every call of the window, about 1000x slower meanwhile   time in instructions");
    else
        snprintf(how, sizeof how, "%s samples/s of %s, stacks by %s",
                 fmt_count(n, plan->freq_hz ? plan->freq_hz : PLAN_DEFAULT_FREQ_HZ),
                 plan->sample_by_clock ? "cpu-clock" : "cycles", graphs[plan->call_graph]);
    v_record_field(s, at, row + 1, "Detail", (struct style){0}, "%s   %s%s", how,
                   kernel_text(r, plan), plan->children ? "   children too" : "");
}

static void draw_limit(struct record *r, struct surface *s, struct rect at, int row,
                       const struct session_setup *setup)
{
    char text[200] = "none", n[FMT_MAX], d[FMT_MAX];
    const char *plural = setup->when.max_snapshots == 1 ? "" : "s";
    if (setup->when.max_snapshots && setup->duration_ns)
        snprintf(text, sizeof text, "stop after %s snapshot%s or %s",
                 fmt_count(n, setup->when.max_snapshots), plural, fmt_duration(d, setup->duration_ns));
    else if (setup->when.max_snapshots)
        snprintf(text, sizeof text, "stop after %s snapshot%s",
                 fmt_count(n, setup->when.max_snapshots), plural);
    else if (setup->duration_ns)
        snprintf(text, sizeof text, "stop after %s", fmt_duration(d, setup->duration_ns));
    const char *output = r->session      ? snapshot_dir_path(session_dir(r->session))
                         : setup->output ? setup->output
                                         : "a new directory";
    v_record_field(s, at, row, "Limit", (struct style){0}, "%s     Output  %s", text, output);
}

void v_record_draw_plan(struct record *r, struct surface *s, struct rect at)
{
    struct session_setup setup;
    struct record_plan plan;
    static const struct capabilities unknown;
    char target[128] = "no process is chosen";
    if (v_record_is_running(r))
        session_setup_copy(&setup, session_get_setup(r->session));
    else
        v_record_effective_setup(r, &setup);
    session_setup_plan(&setup, r->m->caps ? r->m->caps : &unknown, true, setup.pids, setup.n_pids,
                       "", &plan);
    if (setup.argv)
        snprintf(target, sizeof target, "run %s", setup.argv[0]);
    else if (setup.n_pids > 1)
        snprintf(target, sizeof target, "%zu processes", setup.n_pids);
    else if (setup.n_pids)
        snprintf(target, sizeof target, "%ld %s", (long)setup.pids[0], r->m->target.comm);
    bar_draw_rule(s, at.row, at.col, at.cols, "Plan", target, r->m->glyphs);
    draw_trigger(r, s, at, at.rows <= V_RECORD_PLAN_BRIEF ? 1 : 2, &setup);
    if (at.rows <= V_RECORD_PLAN_BRIEF) {
        session_setup_free(&setup);
        return;
    }
    draw_mode(s, at, 1, plan.mode);
    if (plan.recorder == PLAN_STEP)
        draw_window(s, at, 3, &setup, &plan);
    else
        draw_buffer(r, s, at, 3, &plan);
    draw_recorder(r, s, at, 4, &setup, &plan);
    draw_limit(r, s, at, 6, &setup);
    session_setup_free(&setup);
}
