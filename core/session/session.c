#include "core/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/trigger/call_rate.h"
#include "core/base/fmt.h"
#include "core/trigger/hit_cost.h"
#include "core/machine/maps.h"
#include "core/machine/perf_event.h"
#include "core/machine/proc_stat.h"
#include "core/machine/program_rights.h"
#include "core/machine/slow_close.h"
#include "core/session/session_priv.h"

/* How long hits are counted before the first snapshot may be taken, to see what a trigger costs. */
#define RATE_WINDOW_NS 250000000u
/* And how long the recorder must have run by then: a ring without a sample shows nothing. */
#define RING_START_NS 100000000u
#define FLUSH_NS            2000000000u

static void notify_now(void *arg)
{
    struct session *s = arg;
    s->notify_timer = 0;
    if (s->cb.changed)
        s->cb.changed(s->arg);
}

void session_notify(struct session *s)
{
    if (!s->notify_timer)
        s->notify_timer = loop_add_timer(s->loop, loop_now_ns(s->loop), notify_now, s);
}

/* ---- Starting ---- */

/* Who steps from the first instruction to the last one needs ptrace only. */
static bool session_needs_events(const struct session *s)
{
    return s->recorder != PLAN_STEP || s->setup.n_triggers > 0;
}

static int check_thread(const struct session_setup *setup, pid_t tid, struct err *err)
{
    char path[64];
    for (size_t i = 0; i < setup->n_pids; i++) {
        snprintf(path, sizeof path, "/proc/%d/task/%d", (int)setup->pids[i], (int)tid);
        if (access(path, F_OK) == 0)
            return 0;
    }
    return err_set(err, MTUI_E_NOENT, "process %d has no thread %d", (int)setup->pids[0], (int)tid);
}

static int attach_targets(struct session *s, struct err *err)
{
    for (size_t i = 0; i < s->setup.n_pids; i++) {
        struct target *t;
        int rc = target_check(s->setup.pids[i], err);
        if (rc == 0) /* `step`, too: they stop the threads of a process that runs already */
            rc = target_check_perf(s->setup.pids[i], err);
        if (rc == 0)
            rc = target_attach(s->loop, s->setup.pids[i], &session_target_callbacks, s, &t, err);
        if (rc < 0)
            return rc;
        vec_push(&s->targets, t);
        struct err why;
        if (maps_check(NULL, s->setup.pids[i], &why) == MTUI_E_PERM)
            session_log(s, SESSION_WARNING, "functions of process %d will have no names: %s", (int)s->setup.pids[i],
                        why.text);
    }
    for (size_t i = 0; i < s->setup.n_tids; i++) {
        int rc = check_thread(&s->setup, s->setup.tids[i], err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Root may trace what runs with other rights; perf's events go whoever opened them. */
static int check_rights(struct session *s, const char *program, struct err *err)
{
    char what[80];
    if (!program || !program_rights_gained(program, getuid(), getgid(), what, sizeof what))
        return 0;
    if (s->recorder != PLAN_STEP)
        return err_set(err, MTUI_E_PERM,
                       "nothing of %s can be recorded from its start: it %s, and the kernel takes away what records it; "
                       "start it without mtui and attach to it then, as root", program, what);
    if (geteuid() != 0)
        session_log(s, SESSION_WARNING, "%s %s: traced by an ordinary user it starts without these rights, and may "
                                        "behave differently; run mtui as root", program, what);
    return 0;
}

static int run_target(struct session *s, struct err *err)
{
    struct target *t;
    char *output = xasprintf("%s/output", snapshot_dir_path(s->dir));
    struct target_run_options run = {
        .argv = s->setup.argv,
        .stdio = s->setup.inherit_stdio ? TARGET_INHERIT : TARGET_PTY,
        .output_path = s->setup.inherit_stdio ? NULL : output,
    };
    int rc = target_run(s->loop, &run, &session_target_callbacks, s, &t, err);
    free(output);
    if (rc == 0) {
        vec_push(&s->targets, t);
        rc = check_rights(s, target_executable(t), err);
    }
    return rc;
}

/* The first target's name: of its program for one that does not run yet. */
static void read_comm(const struct session *s, char *comm, size_t size)
{
    struct proc_stat stat = {0};
    const char *name = stat.comm;
    if (s->setup.argv) {
        const char *slash = strrchr(s->setup.argv[0], '/');
        name = slash ? slash + 1 : s->setup.argv[0];
    } else {
        proc_stat_read("/proc", s->setup.pids[0], 0, &stat, NULL);
    }
    snprintf(comm, size, "%s", name);
}

/* Holds the targets and makes the directory, which is named after the first of them; a program that
 * is to be started gets its pid only when its output file exists. */
static int take_targets(struct session *s, struct err *err)
{
    char comm[64] = "", *root = NULL;
    bool given = s->setup.output != NULL, run = s->setup.argv != NULL;
    int64_t now = (int64_t)time(NULL);
    int rc = given ? 0 : snapshot_dir_root(&root, s->machine.xdg_state_home, s->machine.home, err);
    if (rc == 0 && !run)
        rc = attach_targets(s, err);
    if (rc == 0)
        read_comm(s, comm, sizeof comm);
    if (rc == 0 && given)
        rc = snapshot_dir_create_at(&s->dir, s->setup.output, err);
    else if (rc == 0 && run)
        rc = snapshot_dir_create_unnamed(&s->dir, root, err);
    else if (rc == 0)
        rc = snapshot_dir_create(&s->dir, root, comm, s->setup.pids[0], now, err);
    if (rc == 0 && run)
        rc = run_target(s, err);
    if (rc == 0 && run && !given)
        rc = snapshot_dir_name(s->dir, root, comm, target_pid(s->targets.data[0]), now, err);
    free(root);
    return rc;
}

/* perf lowers it by itself, but says so on its own stderr only. */
static void say_if_too_frequent(struct session *s, const struct record_plan *plan)
{
    unsigned most = 0;
    FILE *f = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");
    if (f && fscanf(f, "%u", &most) == 1 && plan->recorder == PLAN_SAMPLE && plan->freq_hz > most)
        session_log(s, SESSION_WARNING,
                    "%u samples a second are asked for and the kernel allows %u "
                    "(kernel.perf_event_max_sample_rate): recording with that",
                    plan->freq_hz, most);
    if (f)
        (void)fclose(f);
}

/* Room for one snapshot of every buffer, and memory for the buffers themselves. */
static int check_limits(struct session *s, const struct record_plan *plan, struct err *err)
{
    struct plan_limits limits;
    plan_read_limits("/proc", &limits);
    bool rounded = false;
    s->ring_bytes = plan_ring_bytes(plan, &rounded);
    if (rounded && plan->mode != PLAN_WHOLE) {
        char size[FMT_MAX];
        session_log(s, SESSION_WARNING, "the ring is rounded up to %s, a power of two of pages",
                    fmt_size(size, s->ring_bytes));
    }
    say_if_too_frequent(s, plan);
    int rc = plan_check_limits(plan, &limits, NULL, err);
    uint64_t buffers = plan->n_tids ? plan->n_tids : limits.cpus;
    if (rc == 0)
        rc = snapshot_dir_check(s->dir, plan->mode == PLAN_WHOLE ? session_disk_reserve(0) : s->ring_bytes * buffers,
                                NULL, err);
    return rc;
}

static int arm_triggers(struct session *s, struct err *err)
{
    struct trigger_set_options options = {
        .probe.children = s->setup.children,
        .may_pend = s->setup.argv != NULL,
        .shared = s->targets.len > 1,
        .handed_over = s->recorder == PLAN_STEP && s->setup.argv,
        .prepared = s->machine.prepared,
        .executable = s->setup.argv ? target_executable(s->targets.data[0]) : NULL,
    };
    s->triggers = trigger_set_new(s->loop, &options, &session_trigger_callbacks, s);
    for (size_t i = 0; i < s->setup.n_triggers; i++) {
        struct trigger t;
        int rc = trigger_parse(&t, s->setup.triggers[i], &s->setup.when, err);
        if (rc == 0 && s->recorder == PLAN_STEP && t.at_return) {
            trigger_fini(&t);
            rc = err_set(err, MTUI_E_NOTSUP,
                         "step follows a call from its beginning: name %s without @return",
                         s->setup.triggers[i]);
        }
        if (rc == 0 && s->recorder == PLAN_STEP && t.condition.n) {
            trigger_fini(&t);
            rc = err_set(err, MTUI_E_NOTSUP,
                         "step begins at every hit and does not look at registers first: name %s "
                         "without its condition, or use -r sample",
                         s->setup.triggers[i]);
        }
        if (rc < 0)
            return rc;
        s->watches_calls |= trigger_needs_return(&t);
        trigger_set_add(s->triggers, &t);
        trigger_fini(&t);
    }
    if (!session_needs_events(s) && !perf_event_is_allowed())
        return 0; /* threads and mappings are learned of by the recorder itself */
    /* Until the recorder is ready, hits only tell what the triggers cost. */
    trigger_set_hold(s->triggers, true);
    for (size_t i = 0; i < s->targets.len; i++) {
        int rc = trigger_set_arm(s->triggers, target_pid(s->targets.data[i]), err);
        if (rc < 0)
            return rc;
    }
    s->machine.prepared = NULL; /* its owner's again */
    int checked = trigger_set_check(s->triggers, err);
    if (checked < 0)
        return checked;
    session_mark_rate(s, &s->probed);
    return 0;
}

static int start_recorder(struct session *s, struct record_plan *plan, const pid_t *pids,
                          struct err *err)
{
    struct recorder_events events = session_recorder_events;
    events.arg = s;
    plan->pids = pids;
    plan->n_pids = s->targets.len;
    if (s->recorder == PLAN_STEP)
        return session_start_step(s, plan, &events, err);
    struct recorder_options options = {
        .plan = plan,
        .version = s->machine.version,
        .caps = &s->machine.caps->intel_pt,
    };
    return recorder_new(s->loop, &options, &events, &s->rec, err);
}

static int check_perf(struct session *s, struct err *err)
{
    const struct capability *perf = &s->machine.caps->line[CAP_PERF];
    const struct capability *step = &s->machine.caps->line[CAP_STEP];
    if (s->recorder == PLAN_STEP && !step->present)
        return err_set(err, MTUI_E_NOTSUP, "single-stepping does not work here: %s; use -r sample",
                       step->reason[0] ? step->reason : "ptrace is not allowed");
    if (s->recorder == PLAN_STEP) /* mtui is that recorder itself */
        return 0;
    if (!s->machine.version)
        return err_set(err, MTUI_E_NOENT, "perf cannot be used: %s%s%s",
                       perf->reason[0] ? perf->reason : "it is not there",
                       perf->remedy[0] ? "; " : "", perf->remedy);
    if (s->recorder == PLAN_PT && !s->machine.caps->intel_pt.present) {
        const struct capability *pt = &s->machine.caps->line[CAP_INTEL_PT];
        return err_set(err, MTUI_E_NOTSUP, "no Intel PT here: %s; use -r sample",
                       pt->reason[0] ? pt->reason : "the kernel has no intel_pt PMU");
    }
    return 0;
}

static int start(struct session *s, struct err *err)
{
    struct record_plan plan;
    s->recorder = session_setup_recorder(&s->setup, s->machine.caps, s->why, sizeof s->why);
    s->mode = session_setup_mode(&s->setup, s->machine.interactive);
    int rc = session_setup_check(&s->setup, s->recorder, err);
    if (rc == 0)
        rc = check_perf(s, err);
    if (rc == 0)
        rc = take_targets(s, err);
    if (rc < 0)
        return rc;
    session_setup_plan(&s->setup, s->machine.caps, s->machine.interactive, NULL, 0,
                       snapshot_dir_path(s->dir), &plan);
    rc = check_limits(s, &plan, err);
    if (rc == 0)
        rc = arm_triggers(s, err);
    if (rc < 0)
        return rc;
    perf_clock_new(&s->clock, NULL); /* without it times of keys are not known, no more */
    s->anchor_perf_ns = perf_clock_now_ns(s->clock);
    s->anchor_unix_ns = s->started_unix_ns = session_unix_now();
    session_fill_info(s);
    rc = snapshot_dir_write_info(s->dir, &s->info, err);
    if (rc == 0)
        rc = maps_writer_new(&s->maps, snapshot_dir_path(s->dir), "/proc", err);
    if (rc == 0)
        rc = start_recorder(s, &plan, s->info.pids, err);
    if (rc == 0)
        session_watch(s, &plan);
    /* A program that waits before its execve has none of its own mappings yet. */
    if (rc == 0 && !s->setup.argv)
        session_capture_all(s, 0, "arm");
    return rc;
}

int session_start(struct session **out, struct loop *loop, const struct session_setup *setup,
                  const struct session_machine *machine, const struct session_callbacks *callbacks,
                  void *arg, struct err *err)
{
    struct session *s = xcalloc(1, sizeof *s);
    s->loop = loop;
    s->machine = *machine;
    s->cb = *callbacks;
    s->arg = arg;
    memcpy(s->key, "key", sizeof s->key);
    s->started_ns = loop_now_ns(loop);
    session_setup_copy(&s->setup, setup);
    int rc = start(s, err);
    if (rc < 0) {
        session_free(s, TARGET_END);
        return rc;
    }
    *out = s;
    return 0;
}

/* ---- Armed ---- */

static void stop_after_duration(void *arg)
{
    struct session *s = arg;
    char text[FMT_MAX], sentence[96];
    s->duration_timer = 0;
    snprintf(sentence, sizeof sentence, "stopped after %s, as asked for",
             fmt_duration(text, s->setup.duration_ns));
    session_begin_stop(s, SESSION_END_DURATION, sentence);
}

static void become_armed(struct session *s)
{
    struct err err;
    s->state = SESSION_ARMED;
    s->armed_ns = loop_now_ns(s->loop);
    if (s->recorder == PLAN_STEP && s->setup.n_triggers)
        trigger_set_hand_over(s->triggers);
    trigger_set_hold(s->triggers, false);
    if (s->setup.duration_ns)
        s->duration_timer =
            loop_add_timer(s->loop, s->armed_ns + s->setup.duration_ns, stop_after_duration, s);
    session_watch_armed(s);
    session_log(s, SESSION_INFO, "armed");
    if (s->setup.argv && target_go(s->targets.data[0], &err) < 0)
        session_begin_stop(s, SESSION_END_NOT_STARTED, err.text);
    session_notify(s);
}

void session_refuse_hot(struct session *s)
{
    char text[200], sentence[400];
    s->too_hot = true;
    call_rate_text(&s->rate, text, sizeof text);
    if (s->machine.interactive) { /* whoever is there is asked */
        session_log(s, SESSION_WARNING, "the trigger is %s", text);
        snprintf(sentence, sizeof sentence, "not armed: %s", call_rate_brief(&s->rate, text, sizeof text));
    } else {
        snprintf(sentence, sizeof sentence, "the trigger is %s: %s, or insist (--force)", text,
                 call_rate_returns_cost(&s->rate) ? "take the calls alone, without --slower-than and @return"
                                                  : "choose a function that is called less often");
    }
    session_begin_stop(s, SESSION_END_TOO_HOT, sentence);
}

/* Fails when the triggers take too much of the target's time. */
static void check_rate(void *arg)
{
    struct session *s = arg;
    char text[200];
    s->hot_timer = 0;
    if (s->state != SESSION_PREPARING)
        return;
    session_judge_rate(s, &s->probed, &s->rate);
    if (s->rate.costly && !s->setup.force) {
        session_refuse_hot(s);
        return;
    }
    if (s->rate.seen.hits)
        session_log(s, SESSION_INFO, "the triggers are %s", call_rate_text(&s->rate, text, sizeof text));
    become_armed(s);
}

void session_on_recorder_ready(struct session *s)
{
    /* A program that has not begun yet must not be waited for, and one without triggers need not be. */
    if (s->setup.argv || !s->setup.n_triggers) {
        become_armed(s);
        return;
    }
    uint64_t window = s->probed.time_ns + RATE_WINDOW_NS;
    uint64_t start = loop_now_ns(s->loop) + RING_START_NS;
    s->hot_timer = loop_add_timer(s->loop, window > start ? window : start, check_rate, s);
}

/* ---- Ending ---- */

/* What the end is called: as long as nothing is, or for a better reason. */
static void say_end(struct session *s, bool better, enum session_end end, const char *sentence)
{
    if (!sentence || (s->sentence[0] && !better))
        return;
    snprintf(s->sentence, sizeof s->sentence, "%s", sentence);
    s->end = end;
}

/* What is hit from now on is of no recording, and nobody counts it. */
static void become_stopping(struct session *s)
{
    session_end_calls(s);
    s->state = SESSION_STOPPING;
    if (s->triggers)
        trigger_set_hold(s->triggers, true);
}

void session_begin_stop(struct session *s, enum session_end end, const char *sentence)
{
    struct err err;
    if (s->state != SESSION_PREPARING && s->state != SESSION_ARMED)
        return;
    say_end(s, false, end, sentence);
    become_stopping(s);
    if (s->rec && recorder_stop(s->rec, &err) < 0 && err.code == MTUI_E_GONE)
        session_finish_later(s, true, SESSION_END_RECORDER, NULL);
    session_notify(s);
}

/* A trigger whose function never came is another thing than one that was never hit. */
static void say_never_found(struct session *s)
{
    for (uint32_t i = 0; s->triggers && i < trigger_set_count(s->triggers); i++) {
        char *why = trigger_set_why_not_found(s->triggers, i);
        if (why)
            session_log(s, SESSION_WARNING, "trigger %s was never found: %s", s->setup.triggers[i], why);
        free(why);
    }
}

/* The screen's counts go with the triggers. */
static void say_counts(struct session *s)
{
    char hits[FMT_MAX], fired[FMT_MAX];
    for (uint32_t i = 0; s->triggers && i < trigger_set_count(s->triggers); i++) {
        const struct trigger_counts *c = trigger_set_counts(s->triggers, i);
        s->unmet += c->unmet;
        s->fast += c->fast;
        s->early += c->early;
        s->not_nth += c->not_nth;
        trigger_set_add_calls(s->triggers, i, &s->calls);
        if (c->hits)
            session_log(s, SESSION_INFO, "trigger %s: %s hit%s, %s snapshot%s", s->setup.triggers[i],
                        fmt_count(hits, c->hits), c->hits == 1 ? "" : "s", fmt_count(fired, c->fired),
                        c->fired == 1 ? "" : "s");
    }
}

void session_say_probes_left(struct session *s)
{
    struct probe_stats stats;
    char text[256];
    if (!s->triggers || !trigger_set_probe(s->triggers))
        return;
    probe_stats(trigger_set_probe(s->triggers), &stats);
    if (!s->target_gone && slow_close_text(text, sizeof text, stats.slow_events))
        session_log(s, SESSION_WARNING, "%s", text);
}

/* Out of the callbacks: now everything may be freed. */
static void finish(void *arg)
{
    struct session *s = arg;
    struct err err;
    s->end_timer = 0;
    say_never_found(s);
    say_counts(s);
    session_say_probes_left(s);
    trigger_set_free(s->triggers);
    s->triggers = NULL;
    maps_writer_flush(s->maps, FLUSH_NS);
    maps_writer_stats(s->maps, &s->maps_stats);
    if (s->rec) {
        struct recorder_status rec;
        recorder_get_status(s->rec, &rec);
        free(s->info.perf_command);
        s->info.perf_command = xstrdup(rec.command);
    }
    if (snapshot_dir_write_info(s->dir, &s->info, &err) < 0)
        session_log(s, SESSION_ERROR, "%s", err.text);
    if (snapshot_dir_sort_hits(s->dir, &err) < 0)
        session_log(s, SESSION_WARNING, "hits.tsv is not in the order of time: %s", err.text);
    s->ended_ns = loop_now_ns(s->loop);
    s->state = s->ok ? SESSION_ENDED : SESSION_FAILED;
    session_log(s, s->ok ? SESSION_INFO : SESSION_ERROR, "%s", s->sentence);
    if (s->cb.changed)
        s->cb.changed(s->arg);
    if (s->cb.ended)
        s->cb.ended(s->arg);
}

void session_finish_later(struct session *s, bool ok, enum session_end end, const char *sentence)
{
    if (s->end_timer || s->state >= SESSION_ENDED)
        return;
    s->ok = ok && !s->too_hot;
    /* What the recorder says of its own failure matters more than why we asked it to stop. */
    say_end(s, !ok && !s->too_hot, end, sentence);
    say_end(s, false, end, "the recording has ended");
    become_stopping(s);
    s->end_timer = loop_add_timer(s->loop, loop_now_ns(s->loop), finish, s);
}

void session_free(struct session *s, enum target_leave leave)
{
    if (!s)
        return;
    int timers[] = {s->duration_timer, s->hot_timer,  s->notify_timer,
                    s->end_timer,      s->maps_timer, s->key_timer,
                    s->watch_timer};
    recorder_free(s->rec);
    hit_cost_free(s->hit_cost);
    trigger_set_free(s->triggers);
    bool ours = s->setup.argv != NULL;
    for (size_t i = 0; i < s->targets.len; i++)
        target_free(s->targets.data[i], ours ? leave : TARGET_LEAVE);
    maps_writer_free(s->maps);
    perf_clock_free(s->clock);
    if (s->dir && s->state != SESSION_ENDED)
        snapshot_dir_discard_empty(s->dir);
    snapshot_dir_close(s->dir);
    for (size_t i = 0; i < sizeof timers / sizeof *timers; i++)
        loop_remove(s->loop, timers[i]);
    vec_free(&s->targets);
    session_free_notes(s);
    session_setup_free(&s->setup);
    free(s);
}
