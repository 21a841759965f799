#include "tui/cli/cli_options.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"

const struct cli_command_info cli_commands[CLI_COMMANDS] = {
    [CLI_HOME] = {NULL, "", "the home screen: pick a process", false},
    [CLI_RUN] = {"run", "-- CMD [ARG...]", "start a program under tracing", false},
    [CLI_ATTACH] = {"attach", "-p PID[,PID...]", "trace running processes", false},
    [CLI_OPEN] = {"open", "FILE|DIR|-", "browse a recording (also perf.data, perf script text)",
                  false},
    [CLI_EXPORT] = {"export", "-f FORMAT FILE|DIR|-", "write a recording as text for other tools",
                    false},
    [CLI_DOCTOR] = {"doctor", "", "what can be recorded here, and what would help", false},
    [CLI_DEMO] = {"demo", "", "trace a small built-in program", false},
    [CLI_DEMO_PROGRAM] = {"demo-program", "", "the program that demo traces", true},
};

/* ---- Values ---- */

static int choose(const char *option, const char *arg, const char *const *words, size_t n,
                  size_t *index, struct err *err)
{
    char list[256] = "";
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(arg, words[i])) {
            *index = i;
            return 0;
        }
        strcat(list, i ? ", " : "");
        strcat(list, words[i]);
    }
    const char *near = cli_nearest(arg, words, n);
    return err_set(err, MTUI_E_INVAL, "--%s: \"%s\" is none of %s%s%s%s", option, arg, list,
                   near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

#define CHOOSE(option, arg, words, index, err)                                                     \
    choose(option, arg, words, sizeof(words) / sizeof *(words), index, err)

static int parse_count(const char *option, const char *arg, uint64_t max, uint64_t *out,
                       struct err *err)
{
    int rc = fmt_parse_u64(arg, 1, max, out, err);
    return rc < 0 ? err_prefix(err, "--%s", option) : 0;
}

static int parse_duration(const char *option, const char *arg, uint64_t *out, struct err *err)
{
    int rc = fmt_parse_duration(arg, out, err);
    return rc < 0 ? err_prefix(err, "--%s", option) : 0;
}

static int add_ids(const char *option, const char *arg, pid_t **ids, size_t *n, struct err *err)
{
    char *copy = xstrdup(arg), *rest = copy;
    int rc = 0;
    for (char *word; rc == 0 && (word = strsep(&rest, ","));) {
        uint64_t v;
        rc = fmt_parse_u64(word, 1, INT_MAX, &v, err);
        if (rc < 0) {
            err_prefix(err, "--%s", option);
            break;
        }
        *ids = xrealloc(*ids, (*n + 1) * sizeof **ids);
        (*ids)[(*n)++] = (pid_t)v;
    }
    free(copy);
    return rc;
}

static int set_text(char **to, const char *arg)
{
    free(*to);
    *to = xstrdup(arg);
    return 0;
}

/* ---- Recording ---- */

static int set_recorder(struct cli *c, const char *arg, struct err *err)
{
    static const char *const words[] = {"auto", "pt", "step", "sample"};
    static const enum plan_recorder recorders[] = {PLAN_PT, PLAN_PT, PLAN_STEP, PLAN_SAMPLE};
    size_t i;
    int rc = CHOOSE("recorder", arg, words, &i, err);
    if (rc == 0) {
        c->setup.auto_recorder = i == 0;
        c->setup.recorder = recorders[i];
    }
    return rc;
}

static int add_trigger(struct cli *c, const char *arg, struct err *err)
{
    struct trigger t;
    int rc = trigger_parse(&t, arg, NULL, err);
    if (rc < 0)
        return err_prefix(err, "--trigger");
    trigger_fini(&t);
    session_setup_add_trigger(&c->setup, arg);
    return 0;
}

static int set_slower_than(struct cli *c, const char *arg, struct err *err)
{
    return parse_duration("slower-than", arg, &c->setup.when.slower_than_ns, err);
}

static int set_mode(struct cli *c, const char *arg, struct err *err)
{
    static const char *const words[] = {"trigger", "ring", "whole"};
    static const enum plan_mode modes[] = {PLAN_TRIGGER, PLAN_RING, PLAN_WHOLE};
    size_t i;
    int rc = CHOOSE("mode", arg, words, &i, err);
    if (rc == 0) {
        c->setup.auto_mode = false;
        c->setup.mode = modes[i];
    }
    return rc;
}

static int set_timing(struct cli *c, const char *arg, struct err *err)
{
    static const char *const words[] = {"low", "normal", "high"};
    static const enum plan_timing timings[] = {PLAN_TIMING_LOW, PLAN_TIMING_NORMAL,
                                               PLAN_TIMING_HIGH};
    size_t i;
    int rc = CHOOSE("timing", arg, words, &i, err);
    if (rc == 0)
        c->setup.timing = timings[i];
    return rc;
}

static int set_hits(struct cli *c, const char *arg, struct err *err)
{
    return parse_count("hits", arg, UINT64_MAX, &c->setup.when.hits, err);
}

static int set_hold_off(struct cli *c, const char *arg, struct err *err)
{
    return parse_duration("hold-off", arg, &c->setup.when.hold_off_ns, err);
}

static int set_not_before(struct cli *c, const char *arg, struct err *err)
{
    struct trigger_conditions *when = &c->setup.when;
    int rc = 0;
    when->not_before_full = !strcmp(arg, "full");
    if (when->not_before_full)
        when->not_before_ns = 0;
    else
        rc = parse_duration("not-before", arg, &when->not_before_ns, err);
    return rc;
}

static int set_max_snapshots(struct cli *c, const char *arg, struct err *err)
{
    return parse_count("max-snapshots", arg, UINT64_MAX, &c->setup.when.max_snapshots, err);
}

static int set_size(struct cli *c, const char *arg, struct err *err)
{
    int rc = fmt_parse_size(arg, &c->setup.ring_bytes, err);
    if (rc < 0)
        return err_prefix(err, "--size");
    if (c->setup.ring_bytes == 0)
        return err_set(err, MTUI_E_INVAL, "--size: a ring of no bytes holds nothing");
    return 0;
}

static int set_freq(struct cli *c, const char *arg, struct err *err)
{
    uint64_t v;
    int rc = parse_count("freq", arg, 1000000, &v, err);
    if (rc == 0)
        c->setup.freq_hz = (unsigned)v;
    return rc;
}

static int set_call_graph(struct cli *c, const char *arg, struct err *err)
{
    static const char *const words[] = {"fp", "dwarf", "lbr"};
    static const enum plan_call_graph graphs[] = {PLAN_CALL_GRAPH_FP, PLAN_CALL_GRAPH_DWARF,
                                                  PLAN_CALL_GRAPH_LBR};
    size_t i;
    int rc = CHOOSE("call-graph", arg, words, &i, err);
    if (rc == 0)
        c->setup.call_graph = graphs[i];
    return rc;
}

static int set_duration(struct cli *c, const char *arg, struct err *err)
{
    return parse_duration("duration", arg, &c->setup.duration_ns, err);
}

/* --tid: threads to record, or the one thread to export. */
static int add_tid(struct cli *c, const char *arg, struct err *err)
{
    if (c->command != CLI_EXPORT)
        return add_ids("tid", arg, &c->setup.tids, &c->setup.n_tids, err);
    uint64_t v;
    int rc = parse_count("tid", arg, INT_MAX, &v, err);
    if (rc == 0)
        c->tid = (pid_t)v;
    return rc;
}

static int add_pid(struct cli *c, const char *arg, struct err *err)
{
    return add_ids("pid", arg, &c->setup.pids, &c->setup.n_pids, err);
}

static int set_control(struct cli *c, const char *arg, struct err *err)
{
    static const char *const words[] = {"auto", "ctlfd", "signals"};
    static const enum plan_control controls[] = {PLAN_CONTROL_AUTO, PLAN_CONTROL_CTLFD,
                                                 PLAN_CONTROL_SIGNALS};
    size_t i;
    int rc = CHOOSE("control", arg, words, &i, err);
    if (rc == 0)
        c->setup.control = controls[i];
    return rc;
}

static int set_output(struct cli *c, const char *arg, struct err *err)
{
    if (!*arg)
        return err_set(err, MTUI_E_INVAL, "--output: the name is empty");
    if (c->command == CLI_EXPORT)
        c->output = arg;
    else
        set_text(&c->setup.output, arg);
    return 0;
}

static int set_budget(struct cli *c, const char *arg, struct err *err)
{
    uint64_t n;
    int rc = fmt_parse_count(arg, &n, err);
    if (rc == 0 && n == 0)
        rc = err_set(err, MTUI_E_INVAL, "at least one instruction");
    if (rc < 0)
        return err_prefix(err, "--budget");
    c->setup.budget = n;
    return 0;
}

static int set_truth(struct cli *c, const char *arg, struct err *err)
{
    (void)err;
    return set_text(&c->setup.truth, arg);
}

/* ---- Reading ---- */

static int set_snapshot(struct cli *c, const char *arg, struct err *err)
{
    uint64_t v = 0;
    if (!strcmp(arg, "last")) {
        c->which = CLI_SNAPSHOT_LAST;
    } else if (!strcmp(arg, "all")) {
        c->which = CLI_SNAPSHOT_ALL;
    } else if (fmt_parse_u64(arg, 1, UINT_MAX, &v, NULL) == 0) {
        c->which = CLI_SNAPSHOT_NUMBER;
        c->snapshot = (unsigned)v;
    } else {
        return err_set(err, MTUI_E_INVAL, "--snapshot: \"%s\" is no number, nor last, nor all",
                       arg);
    }
    return 0;
}

static int set_symfs(struct cli *c, const char *arg, struct err *err)
{
    (void)err;
    c->symfs = arg;
    return 0;
}

static int set_decoder(struct cli *c, const char *arg, struct err *err)
{
    static const char *const words[] = {"flow", "libipt"};
    size_t i;
    int rc = CHOOSE("decoder", arg, words, &i, err);
    if (rc == 0)
        c->decoder = i ? CLI_DECODER_LIBIPT : CLI_DECODER_FLOW;
    return rc;
}

static int set_threads(struct cli *c, const char *arg, struct err *err)
{
    uint64_t v;
    int rc = parse_count("threads", arg, 1024, &v, err);
    if (rc == 0)
        c->threads = (unsigned)v;
    return rc;
}

static int set_format(struct cli *c, const char *arg, struct err *err)
{
    static const char *const words[] = {"branches", "spans", "functions", "gaps",
                                        "marks",    "json",  "fxt",       "folded"};
    size_t i;
    int rc = CHOOSE("format", arg, words, &i, err);
    if (rc == 0)
        c->format = words[i];
    return rc;
}

static int set_range(struct cli *c, const char *arg, struct err *err)
{
    if (!strchr(arg, ':'))
        return err_set(err, MTUI_E_INVAL,
                       "--range: \"%s\" is not FROM:TO (nanoseconds, or +5ms from the start)", arg);
    c->range = arg;
    return 0;
}

/* ---- Everywhere ---- */

#define TEXT_OPTION(name)                                                                          \
    static int set_##name(struct cli *c, const char *arg, struct err *err)                         \
    {                                                                                              \
        (void)err;                                                                                 \
        c->name = arg;                                                                             \
        return 0;                                                                                  \
    }
TEXT_OPTION(theme)
TEXT_OPTION(check_theme)
TEXT_OPTION(script)

static int set_glyphs(struct cli *c, const char *arg, struct err *err)
{
    static const char *const words[] = {"unicode", "vga", "ascii"};
    size_t i;
    int rc = CHOOSE("glyphs", arg, words, &i, err);
    if (rc == 0)
        c->glyphs = words[i];
    return rc;
}

static int set_color(struct cli *c, const char *arg, struct err *err)
{
    static const char *const words[] = {"auto", "mono", "16", "256", "rgb"};
    size_t i;
    int rc = CHOOSE("color", arg, words, &i, err);
    if (rc == 0)
        c->color = words[i];
    return rc;
}

#define FLAG(function, member)                                                                     \
    static int function(struct cli *c, const char *arg, struct err *err)                           \
    {                                                                                              \
        (void)arg;                                                                                 \
        (void)err;                                                                                 \
        c->member = true;                                                                          \
        return 0;                                                                                  \
    }
FLAG(set_children, setup.children)
FLAG(set_kernel, setup.kernel)
FLAG(set_force, setup.force)
FLAG(set_batch, batch)
FLAG(set_json, json)
FLAG(set_json_end, json_end)
FLAG(set_print, print)
FLAG(set_help, help)
FLAG(set_version, version)

#define RUN    (1u << CLI_RUN)
#define ATTACH (1u << CLI_ATTACH)
#define RECORD (RUN | ATTACH)
#define DEMO   (1u << CLI_DEMO)
#define EXPORT (1u << CLI_EXPORT)
#define READ   ((1u << CLI_OPEN) | EXPORT)
#define ALL    ((1u << CLI_COMMANDS) - 1)

const struct cli_option cli_options[] = {
    {'p', "pid", "PID[,PID...]", "the processes to trace", ATTACH, add_pid},
    {'r', "recorder", "auto|pt|step|sample", "how to record; auto: pt where it works, else sample",
     RECORD | DEMO, set_recorder},
    {'t', "trigger", "SPEC",
     "snapshot when SYMBOL, SYMBOL@return, MODULE:SYMBOL, FILE:LINE, 0xADDR or /REGEX/ is reached; "
     "\"SPEC if arg1 > 4096 and ret != 0\" only then (repeatable)",
     RECORD, add_trigger},
    {0, "slower-than", "DURATION", "only calls that take longer fire (2ms, 300us)", RECORD,
     set_slower_than},
    {0, "mode", "trigger|ring|whole",
     "snapshots by trigger or key; one at the end; everything, without a ring", RECORD, set_mode},
    {0, "timing", "low|normal|high",
     "pt: time by TSC; by cycles; by cycles without return compression", RECORD, set_timing},
    {0, "hits", "N", "fire at the Nth hit, and each N after", RECORD, set_hits},
    {0, "hold-off", "DURATION", "after firing, only count for so long", RECORD, set_hold_off},
    {0, "not-before", "DURATION|full",
     "after arming, only count for so long, or until the ring is full (an estimate)", RECORD,
     set_not_before},
    {0, "max-snapshots", "N", "stop after so many (with --batch: 1)", RECORD, set_max_snapshots},
    {'s', "size", "SIZE", "of the ring (16M), rounded up to a power of two of pages", RECORD,
     set_size},
    {0, "freq", "HZ", "sample: samples a second", RECORD, set_freq},
    {0, "call-graph", "fp|dwarf|lbr", "sample: how stacks are found", RECORD, set_call_graph},
    {0, "duration", "DURATION", "stop after it", RECORD | DEMO, set_duration},
    {0, "tid", "TID[,TID...]", "only these threads (export: one thread)", RECORD | EXPORT, add_tid},
    {0, "children", NULL, "trace forked children too", RECORD, set_children},
    {0, "kernel", NULL, "record the kernel too", RECORD, set_kernel},
    {0, "control", "auto|ctlfd|signals", "how perf is told what to do", RECORD, set_control},
    {'o', "output", "DIR|FILE", "where the recording goes (export: the file; - is stdout)",
     RECORD | EXPORT | DEMO, set_output},
    {0, "budget", "N", "step: instructions a window, as 500k or 3M", RECORD, set_budget},
    {0, "truth", "FILE", "step: also write each branch with its stack pointer", RECORD, set_truth},
    {0, "batch", NULL, "no screen: record, wait, print the snapshot directory, exit", RECORD | DEMO,
     set_batch},
    {0, "json", NULL, "with --batch: one line of JSON a snapshot instead", RECORD, set_json},
    {0, "json-end", NULL, "with --json: also a last line that says how it ended", RECORD, set_json_end},
    {0, "print", NULL,
     "print the command of the recorder that mtui would run, and exit; triggers and the like, which are mtui's own, "
     "are not in it",
     RECORD, set_print},
    {0, "force", NULL, "arm although the measured call rate makes the trigger costly", RECORD,
     set_force},
    {'f', "format", "FORMAT",
     "branches, spans, functions, gaps, marks (tab-separated), json, fxt, folded", EXPORT,
     set_format},
    {0, "range", "FROM:TO", "only this time: nanoseconds, or +5ms from the first event", EXPORT,
     set_range},
    {0, "snapshot", "N|last|all", "which snapshot of a directory (last)", READ, set_snapshot},
    {0, "symfs", "DIR", "look for programs and libraries below DIR", READ, set_symfs},
    {0, "decoder", "flow|libipt", "how Intel PT is decoded", READ, set_decoder},
    {0, "threads", "N", "decoding threads", READ, set_threads},
    {0, "theme", "NAME", "colours", ALL, set_theme},
    {0, "check-theme", "FILE", "read a theme, print the contrast of each role, and exit", ALL,
     set_check_theme},
    {0, "glyphs", "unicode|vga|ascii", "which characters may be drawn", ALL, set_glyphs},
    {0, "color", "auto|mono|16|256|rgb", "which colours may be used", ALL, set_color},
    {0, "script", "FILE", "run : commands from a file", ALL, set_script},
    {0, "version", NULL, "print the version", ALL, set_version},
    {'h', "help", NULL, "print this", ALL, set_help},
};
const size_t cli_option_count = sizeof cli_options / sizeof *cli_options;
