/* Exact decoding held against independent answers: every program is stepped once and encoded again in many
 * ways; the branches that mtui lists must be perf's, libipt's and those that were recorded, line for line,
 * and the spans must be the call tree that the stack pointers give.
 *
 * MTUI_LONG=1 (make check-long): every program in every encoding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <intel-pt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/vec.h"
#include "core/step/step_thread.h"
#include "decode/open/open.h"
#include "lib_branches.h"
#include "lib_frames.h"
#include "lib_program.h"
#include "lib_step.h"
#include "lib_step_facts.h"
#include "lib_step_programs.h"
#include "lib_statistics.h"

/* ---- what is compared ---- */

#define EXACT    UINT64_C(0)
#define NO_TIMES UINT64_MAX

/* What may be expected of an encoding; everything else is equal. */
static const struct rule {
    const char *encoding;
    bool lossy;        /* only a part of the truth, and no spans */
    bool not_libipts;  /* libipt's blocks cannot be held against it */
    uint64_t perf_ns;  /* conditional branches and returns are at perf's time */
    unsigned bits;     /* of so many behind each other the last at the recorded time; 0: no such time */
    uint64_t span_ns;  /* spans begin and end at the recorded one */
    const char *why;
} rules[] = {
    {"cyc", false, false, EXACT, 6, EXACT, NULL},
    {"no-retcomp", false, false, EXACT, 6, EXACT, NULL},
    {"long-tnt", false, false, EXACT, 47, EXACT, "47 branches share the time of one packet"},
    {"small-psb", false, false, EXACT, 6, EXACT, NULL},
    {"chunked", false, false, EXACT, 6, EXACT, NULL},
    {"snapshots", false, false, EXACT, 6, EXACT, "what several snapshots tell is there once"},
    {"late-snapshots", true, true, NO_TIMES, 6, NO_TIMES,
     "what the ring lost between two snapshots is not there; libipt's blocks do not tell the last outcome before, "
     "and perf's clock goes on from there"},
    {"mtc", false, false, 330, 0, 600, "an MTC every 256 ns; what lies between is estimated"},
    {"tsc", false, false, NO_TIMES, 0, NO_TIMES, "a TSC each 4 KiB of packets; perf estimates between them"},
    {"per-cpu", false, true, EXACT, 0, NO_TIMES,
     "libipt's clock runs ahead where tracing ends, which makes another order over two CPUs"},
    {"cut-head", true, false, EXACT, 6, NO_TIMES, "decoding begins at the first PSB that is left"},
    {"overflow", true, true, NO_TIMES, 6, NO_TIMES,
     "branches behind the last packet before an overflow are lost; libipt's blocks do not tell the last outcome "
     "there, and perf's clock leaves out the cycles up to the next MTC behind it"},
};

/* Programs with instructions that do not take one tick each: a repeated string instruction takes one for each of
 * its rounds, which clear a page here and 32 KiB in gzip. Between two packets nothing tells which instruction took
 * how long. */
static const char uneven[] = "exceptions ls python3 gzip";
/* A handler's frame is over for the stack pointer once the code that it returns to has run, for the spans when
 * it returns. */
#define RESTORER_NS 2

static const struct row {
    const char *program, *encodings;
} matrix[] = {
    {"calls", "cyc mtc tsc no-retcomp long-tnt small-psb per-cpu chunked cut-head overflow snapshots late-snapshots"},
    {"tail calls", "cyc mtc tsc no-retcomp long-tnt small-psb per-cpu overflow"},
    {"longjmp", "cyc tsc no-retcomp small-psb per-cpu overflow"},
    {"longjmp outward", "cyc tsc small-psb per-cpu overflow"},
    {"longjmp outward, static", "cyc mtc tsc no-retcomp small-psb"},
    {"exceptions", "cyc mtc tsc long-tnt small-psb chunked cut-head overflow snapshots"},
    {"exceptions outward", "cyc mtc tsc small-psb overflow"},
    {"exceptions outward, static", "cyc tsc no-retcomp long-tnt small-psb"},
    {"signals", "cyc mtc tsc no-retcomp small-psb per-cpu overflow"},
    {"fibres", "cyc tsc no-retcomp small-psb per-cpu overflow"},
    {"retpolines", "cyc mtc tsc no-retcomp small-psb overflow"},
    {"libraries", "cyc mtc tsc no-retcomp small-psb per-cpu overflow snapshots"},
    {"libraries, old PLT", "cyc tsc long-tnt small-psb overflow"},
    {"static", "cyc tsc small-psb chunked cut-head overflow snapshots late-snapshots"},
    {"dlopen", "cyc mtc no-retcomp long-tnt small-psb chunked"},
    {"dlopen, one library", "cyc mtc tsc small-psb per-cpu cut-head overflow snapshots"},
    {"stripped", "cyc tsc small-psb per-cpu overflow"},
    {"ls", "cyc mtc tsc small-psb per-cpu chunked cut-head overflow snapshots late-snapshots"},
    {"gzip", "cyc mtc long-tnt small-psb chunked cut-head overflow snapshots late-snapshots"},
    {"python3", "cyc tsc no-retcomp long-tnt small-psb per-cpu cut-head overflow snapshots late-snapshots"},
};
#define ROWS (sizeof matrix / sizeof *matrix)

#define PROGRAMS_MIN  20
#define ENCODINGS_MIN 5 /* of a program */
#define APPLIED_MIN   5 /* of an encoding */

/* The recorder tells the encoder of every instruction; what is encoded again, of branches only. So there are MTCs in
 * the midst of repeated string instructions, where perf's estimate and ours are at times rounded to different sides. */
static const struct rule as_recorded = {"as recorded", false, false, 1, 6, EXACT, "rounding around MTCs"};

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

static const struct rule *rule_of(const char *encoding)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].encoding, encoding) == 0)
            return &rules[i];
    fail_msg("there is no rule for %s", encoding);
    return NULL;
}

static bool applies(const struct step_program *p, const struct step_encoding *e)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(matrix[i].program, p->name) == 0)
            return has_word(matrix[i].encodings, e->name);
    return false;
}

/* Whatever is missing from the table for a reason of its own. Without packets of time between two PSB+ nobody
 * knows which of two libraries at one address it was; the other thread of the recordings per CPU comes when
 * they are gone. Short streams have no second PSB, and no second piece. */
static bool makes_no_sense(const struct step_program *p, const struct step_encoding *e, const struct step_rec *r)
{
    bool replaced = strcmp(p->name, "dlopen") == 0;
    return (replaced && (e->per_cpu || !e->packets.mtc)) || ((e->cut_head || e->chunk) && r->n_branches < 2000);
}

/* Every program is there in several encodings, every encoding for several programs. */
static void the_table_is_full(void **state)
{
    size_t programs = 0;
    (void)state;
    for (const struct step_program *p = step_programs; p->name; p++, programs++) {
        size_t n = 0;
        for (const struct step_encoding *e = step_encodings; e->name; e++)
            n += applies(p, e);
        if (n < ENCODINGS_MIN)
            fail_msg("%s is compared in %zu encodings only", p->name, n);
    }
    assert_int_equal(programs, ROWS);
    assert_true(programs >= PROGRAMS_MIN);
    for (const struct step_encoding *e = step_encodings; e->name; e++) {
        size_t n = 0;
        for (const struct step_program *p = step_programs; p->name; p++)
            n += applies(p, e);
        if (n < APPLIED_MIN)
            fail_msg("%s is applied to %zu programs only", e->name, n);
        assert_non_null(rule_of(e->name));
    }
}

/* What an encoding is about is really there: by libipt's packet decoder. */
static void check_packets(const struct step_rec *r, const struct step_encoding *e, const char *what)
{
    size_t len, seen[64] = {0}; /* by type */
    uint8_t *bytes = step_rec_packets(r, e, &len);
    struct pt_config config;
    struct pt_packet p;
    pt_config_init(&config);
    config.begin = bytes;
    config.end = bytes + len;
    struct pt_packet_decoder *d = pt_pkt_alloc_decoder(&config);
    assert_non_null(d);
    for (int rc = pt_pkt_sync_forward(d); rc >= 0 && (rc = pt_pkt_next(d, &p, sizeof p)) > 0;)
        seen[(unsigned)p.type % 64]++;
    const struct {
        const char *packet;
        bool wanted;
        enum pt_packet_type type;
    } all[] = {
        {"TSC", true, ppt_tsc},
        {"MTC", e->packets.mtc, ppt_mtc},
        {"CYC", e->packets.cyc, ppt_cyc},
        {"OVF", e->overflow_every != 0, ppt_ovf},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].wanted != (seen[all[i].type] > 0))
            fail_msg("%s: %zu %s packets", what, seen[all[i].type], all[i].packet);
    if (!e->packets.long_tnt && seen[ppt_tnt_64])
        fail_msg("%s: %zu long TNT packets", what, seen[ppt_tnt_64]);
    if (e->packets.psb_period && !e->cut_head && len > 2 * e->packets.psb_period && seen[ppt_psb] < 2)
        fail_msg("%s: one PSB in %zu bytes", what, len);
    if (e->chunk && len <= e->chunk)
        fail_msg("%s: one piece of %zu bytes", what, len);
    pt_pkt_free_decoder(d);
    free(bytes);
}

/* ---- comparing ---- */

struct sums {
    uint64_t branches[3]; /* with perf, with libipt, with the truth */
    uint64_t times, frames, programs, pairs;
    uint64_t counted; /* statistics while decoding, with two numbers of threads */
};
enum { PERF, LIBIPT, TRUTH };

struct subject {
    const struct step_program *program;
    struct step_rec rec;
    struct step_symbols *symbols;
    struct frames *frames;
    struct sums *sums;
};

static char what_text[200];

static const char *what(const struct subject *s, const struct rule *rule, const char *with)
{
    snprintf(what_text, sizeof what_text, "%s, %s%s%s", s->program->name, rule->encoding, *with ? ", against " : "",
             with);
    return what_text;
}

/* gaps: there are some between snapshots. */
static void against_perf(struct subject *s, const struct rule *rule, const char *path, const struct branches *ours,
                         bool gaps)
{
    struct branches perf = branches_of_perf(path);
    if (gaps) /* perf now and then says so where the next snapshot begins, and goes on all the same */
        branches_drop_blank_errors(&perf);
    branches_equal(what(s, rule, "perf script"), ours, &perf);
    s->sums->branches[PERF] += ours->len;
    if (rule->perf_ns != NO_TIMES)
        s->sums->times += branches_same_times(what(s, rule, "perf's times"), ours, &perf, rule->perf_ns);
    branches_free(&perf);
}

static void against_truth(struct subject *s, const struct rule *rule, const struct branches *ours)
{
    pid_t tid = s->rec.branches[0].tid;
    struct branches truth = branches_of_truth(&s->rec, tid), one = {0};
    for (size_t i = 0; i < ours->len; i++)
        vec_push(&one, ours->data[i]);
    branches_keep(&one, tid); /* per CPU there is another one */
    if (rule->lossy)
        branches_left_of(what(s, rule, "the truth"), &one, &truth, rule->bits);
    else
        branches_equal(what(s, rule, "the truth"), &one, &truth);
    if (rule->bits && !rule->lossy)
        s->sums->times += branches_true_times(what(s, rule, "the true times"), &one, &truth, rule->bits);
    s->sums->branches[TRUTH] += one.len;
    branches_free(&one);
    branches_free(&truth);
}

static void against_mtui(struct subject *s, const struct rule *rule, const char *path, const char *options,
                         const struct branches *ours)
{
    struct branches others = branches_of_mtui(path, options);
    branches_equal(what(s, rule, options), &others, ours);
    branches_free(&others);
}

/* A stripped libc: the code that a signal handler returns through has no name to know it by. */
static bool handlers_return_unnamed(const struct trace *t)
{
    for (size_t i = 0; i < functions_count(trace_functions(t)); i++)
        if (strcmp(functions_get(trace_functions(t), (fn_id)i)->raw, "__restore_rt") == 0)
            return false;
    return true;
}

static void against_frames(struct subject *s, const struct rule *rule, const char *path)
{
    struct recording *rec;
    struct open_options o = {.threads = 1};
    struct err err;
    unsigned bits = rule->bits ? rule->bits : 6;
    bool signals = strcmp(s->program->name, "signals") == 0;
    uint64_t most_ns = signals && rule->span_ns < RESTORER_NS ? RESTORER_NS : rule->span_ns;
    if (open_recording(&rec, path, &o, &err) < 0 || trace_check(rec->trace, &err) < 0)
        fail_msg("%s: %s", what(s, rule, ""), err.text);
    if (signals && handlers_return_unnamed(rec->trace))
        print_message("[  SKIPPED ] spans of signals: this libc has no names for its own functions\n");
    else
        s->sums->frames += frames_compare(s->frames, what(s, rule, "the stack pointers"), rec->trace,
                                           most_ns, has_word(uneven, s->program->name) ? bits : 0);
    recording_free(rec);
}

/* The functions, counted while decoding: the same as out of the spans. */
static void against_whole_trace(struct subject *s, const char *path)
{
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        struct open_options o = {.threads = threads};
        struct recording *rec;
        struct err err;
        if (open_recording(&rec, path, &o, &err) < 0)
            fail_msg("%s", err.text);
        s->sums->counted += statistics_check(path, &o, rec->trace);
        if (trace_info(rec->trace)->first_ns < STEP_CLOCK_START)
            fail_msg("%s begins at %" PRIu64, path, trace_info(rec->trace)->first_ns);
        recording_free(rec);
    }
}

/* A file's branches and spans; gaps: there are some between its snapshots. */
static void compare_file(struct subject *s, const struct rule *rule, const char *path, bool gaps, bool spans)
{
    struct branches ours = branches_of_mtui(path, "--threads 1");
    against_perf(s, rule, path, &ours, gaps);
    against_truth(s, rule, &ours);
    if (!rule->not_libipts) {
        against_mtui(s, rule, path, "--decoder libipt", &ours);
        s->sums->branches[LIBIPT] += ours.len;
    }
    against_mtui(s, rule, path, "--threads 7", &ours);
    if (spans)
        against_frames(s, rule, path);
    branches_free(&ours);
    against_whole_trace(s, path);
    s->sums->pairs++;
}

static void compare(struct subject *s, const struct step_encoding *e)
{
    const struct rule *rule = rule_of(e->name);
    char path[300];
    snprintf(path, sizeof path, "%s/%s.data", s->rec.dir, e->name);
    check_packets(&s->rec, e, what(s, rule, ""));
    step_rec_encode(&s->rec, e, path);
    compare_file(s, rule, path, e->ring && e->fill > 100, !rule->lossy && !e->per_cpu);
    unlink(path);
}

static void branches_and_spans(void **state)
{
    struct sums sums = {0};
    bool all = getenv("MTUI_LONG") != NULL;
    (void)state;
    for (const struct step_program *p = step_programs; p->name; p++) {
        struct subject s = {.program = p, .sums = &sums};
        if (getenv("ONLY") && strcmp(getenv("ONLY"), p->name) != 0)
            continue;
        step_rec_program(&s.rec, p, 1);
        s.symbols = step_symbols_new(&s.rec);
        s.frames = frames_new(&s.rec, s.symbols);
        step_facts_check(&s.rec, s.symbols, p->name, p->exercises);
        compare_file(&s, &as_recorded, s.rec.data, false, true);
        for (const struct step_encoding *e = step_encodings; e->name; e++)
            if (applies(p, e) || (all && !makes_no_sense(p, e, &s.rec)))
                compare(&s, e);
        sums.programs++;
        frames_free(s.frames);
        step_symbols_free(s.symbols);
        step_rec_free(&s.rec);
    }
    print_message("Compared: %" PRIu64 " programs in %" PRIu64 " encodings: %" PRIu64 " branches with perf script, %" PRIu64
                  " with libipt, %" PRIu64 " with the truth, %" PRIu64 " times, %" PRIu64 " frames\n",
                  sums.programs, sums.pairs, sums.branches[PERF], sums.branches[LIBIPT], sums.branches[TRUTH],
                  sums.times, sums.frames);
    print_message("Functions counted while decoding: %" PRIu64 " of %" PRIu64 ", equal to those of the spans\n",
                  sums.counted, 2 * sums.pairs);
    assert_int_equal(sums.counted, 2 * sums.pairs); /* so no gap of theirs lies within a call either */
}

int main(void)
{
    if (getuid() != 0) {
        print_message("[  SKIPPED ] t_pt_matrix: uprobes need root or CAP_PERFMON\n");
        return 0;
    }
    if (!program_have("perf")) {
        print_message("[  SKIPPED ] t_pt_matrix: there is no perf to compare with\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_full),
        cmocka_unit_test(branches_and_spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
