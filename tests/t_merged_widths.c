/* The merged flame graph against sums made from the lists of spans and gaps that `export` writes: every box is as
 * wide as the time its stack was open, gaps left out, in threads alone and together, ranges, and with recursion
 * folded; siblings stand by width from their caller's left edge on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/base/vec.h"
#include "decode/export/export.h"
#include "tests/lib_gentrace.h"
#include "tests/lib_golden.h"
#include "tests/lib_timeline.h"
#include "tui/timeline/timeline_merged.h"
#include "tui/timeline/v_timeline.h"

#define PATH_MAX_ 400
#define DEPTHS 16

struct line {
    int tid;
    unsigned depth;
    uint64_t start, end;
    char name[40];
};

/* What the files of `export` say. */
struct lists {
    VEC(struct line) spans, gaps;
};

/* The time of one stack, "main;f;g". */
struct sum {
    char path[PATH_MAX_];
    uint64_t total, self;
    bool seen;
};

struct sums {
    VEC(struct sum) list;
};

struct scope {
    int tid; /* 0: all */
    uint64_t from, to;
    bool fold;
};

static char *export(const struct trace *t, enum export_format format)
{
    struct export_options e = {.format = format, .workers = 1};
    char *out = NULL;
    size_t len;
    FILE *f = open_memstream(&out, &len);
    assert_int_equal(export_write(f, t, NULL, &e, NULL), 0);
    fclose(f);
    return out;
}

static void read_lists(struct lists *l, const struct trace *t)
{
    char *spans = export(t, EXPORT_SPANS), *gaps = export(t, EXPORT_GAPS), *save = NULL;
    struct line s;
    *l = (struct lists){0};
    for (char *p = strtok_r(spans, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
        if (sscanf(p, "%d\t%u\t%" SCNu64 "\t%" SCNu64 "\t%*s\t%39s", &s.tid, &s.depth, &s.start, &s.end, s.name) == 5)
            vec_push(&l->spans, s);
    for (char *p = strtok_r(gaps, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
        if (sscanf(p, "%d\t%" SCNu64 "\t%" SCNu64, &s.tid, &s.start, &s.end) == 3)
            vec_push(&l->gaps, s);
    free(spans);
    free(gaps);
}

static void free_lists(struct lists *l)
{
    vec_free(&l->spans);
    vec_free(&l->gaps);
}

static struct sum *sum_of(struct sums *s, const char *path)
{
    for (size_t i = 0; i < s->list.len; i++)
        if (strcmp(s->list.data[i].path, path) == 0)
            return &s->list.data[i];
    struct sum new = {0};
    snprintf(new.path, sizeof new.path, "%s", path);
    vec_push(&s->list, new);
    return &s->list.data[s->list.len - 1];
}

/* The stack of a thread that is open all through [from, to), each of its callers with it. */
static void add_stack(struct sums *sums, const struct lists *l, int tid, uint64_t from, uint64_t to, bool fold)
{
    char path[PATH_MAX_] = "", last[40] = "";
    for (unsigned depth = 0; depth < DEPTHS; depth++) {
        const struct line *open = NULL;
        for (size_t i = 0; i < l->spans.len && !open; i++) {
            const struct line *s = &l->spans.data[i];
            if (s->tid == tid && s->depth == depth && s->start <= from && s->end >= to)
                open = s;
        }
        if (!open)
            break;
        if (fold && strcmp(last, open->name) == 0)
            continue;
        snprintf(last, sizeof last, "%s", open->name);
        size_t len = strlen(path);
        snprintf(path + len, sizeof path - len, "%s%s", len ? ";" : "", open->name);
        sum_of(sums, path)->total += to - from;
    }
    if (path[0])
        sum_of(sums, path)->self += to - from;
}

static int by_time(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Between two times at which anything begins or ends, nothing changes. */
static void sum_thread(struct sums *sums, const struct lists *l, int tid, const struct scope *sc)
{
    VEC(uint64_t) times = {0};
    vec_push(&times, sc->from);
    vec_push(&times, sc->to);
    for (int gaps = 0; gaps < 2; gaps++)
        for (size_t i = 0; i < (gaps ? l->gaps.len : l->spans.len); i++) {
            const struct line *s = gaps ? &l->gaps.data[i] : &l->spans.data[i];
            vec_push(&times, s->start);
            vec_push(&times, s->end);
        }
    qsort(times.data, times.len, sizeof *times.data, by_time);
    for (size_t i = 1; i < times.len; i++) {
        uint64_t from = times.data[i - 1], to = times.data[i];
        bool quiet = from == to || from < sc->from || to > sc->to;
        for (size_t g = 0; g < l->gaps.len && !quiet; g++) {
            const struct line *gap = &l->gaps.data[g];
            quiet = (gap->tid == 0 || gap->tid == tid) && gap->start <= from && gap->end >= to;
        }
        if (!quiet)
            add_stack(sums, l, tid, from, to, sc->fold);
    }
    vec_free(&times);
}

static void sum_all(struct sums *sums, const struct trace *t, const struct lists *l, const struct scope *sc)
{
    *sums = (struct sums){0};
    for (size_t i = 0; i < trace_thread_count(t); i++)
        if (sc->tid == 0 || sc->tid == trace_thread(t, i)->tid)
            sum_thread(sums, l, trace_thread(t, i)->tid, sc);
}

static uint64_t length(const struct span *s)
{
    return s->end_ns - s->start_ns;
}

static const char *name_of(const struct trace *t, const struct span *s)
{
    return functions_get(trace_functions(t), s->fn)->name;
}

/* A row of boxes: each inside the one above that is its caller, the first at its left edge, the next where the one
 * before ended, none wider than that. */
static void check_row(struct tl_merged *g, struct sums *sums, size_t depth)
{
    const struct trace *t = merged_trace(g->merged);
    size_t n, callers = 0, at = SIZE_MAX;
    const struct span *row = trace_row(t, 0, depth, &n), *above = depth ? trace_row(t, 0, depth - 1, &callers) : NULL;
    for (size_t i = 0; i < n; i++) {
        const struct span *s = &row[i], *before = i && length(&row[i - 1]) ? &row[i - 1] : NULL;
        if (length(s) == 0)
            continue;
        size_t caller = 0;
        while (caller < callers && (above[caller].start_ns > s->start_ns || above[caller].end_ns < s->end_ns))
            caller++;
        assert_true(depth == 0 || caller < callers);
        bool first = depth ? caller != at : i == 0;
        at = caller;
        assert_int_equal(s->start_ns, !first ? before->end_ns : depth ? above[caller].start_ns : 0);
        assert_true(first || length(s) <= length(before));
        /* The stack by its names, from the innermost out. */
        char path[PATH_MAX_], longer[PATH_MAX_ * 2];
        snprintf(path, sizeof path, "%s", name_of(t, s));
        for (size_t d = depth; d-- > 0;) {
            size_t m, k = 0;
            const struct span *up = trace_row(t, 0, d, &m);
            while (k < m && (up[k].start_ns > s->start_ns || up[k].end_ns < s->end_ns))
                k++;
            assert_true(k < m);
            snprintf(longer, sizeof longer, "%s;%s", name_of(t, &up[k]), path);
            snprintf(path, sizeof path, "%.*s", PATH_MAX_ - 1, longer);
        }
        struct sum *want = sum_of(sums, path);
        const struct merged_node node = merged_node(g->merged, depth, i);
        assert_false(want->seen); /* one box a stack */
        want->seen = true;
        assert_int_equal(length(s), want->total);
        assert_int_equal(node.total_ns, want->total);
        assert_int_equal(node.self_ns, want->self);
        assert_true(node.calls > 0);
    }
}

static void check_scope(struct rig *r, const struct lists *l, const struct scope *sc)
{
    struct tl_merged *g = r->tl->merged;
    struct sums sums;
    uint64_t all = 0;
    sum_all(&sums, r->t, l, sc);
    const struct trace *t = merged_trace(g->merged);
    assert_true(trace_thread_count(t) > 0);
    for (size_t d = 0; d < trace_thread(t, 0)->depths; d++)
        check_row(g, &sums, d);
    for (size_t i = 0; i < sums.list.len; i++) {
        if (!sums.list.data[i].seen)
            fail_msg("no box for %s, which took %" PRIu64, sums.list.data[i].path, sums.list.data[i].total);
        all += sums.list.data[i].self;
    }
    assert_true(all > 0);
    char total[FMT_MAX], head[FMT_MAX + 8];
    draw(r);
    snprintf(head, sizeof head, "%s in all", tl_duration(r->tl, total, all));
    if (!golden_find(r->s, head))
        fail_msg("no '%s' on\n%s", head, golden_dump(r->s, "the screen"));
    assert_int_equal(golden_find(r->s, "range A-B") != 0, r->m->range_end_ns > 0);
    assert_int_equal(golden_find(r->s, "recursion folded") != 0, sc->fold);
    vec_free(&sums.list);
}

/* All threads, then each alone, each with recursion and without, by the keys. */
static void check_scopes(struct rig *r, const struct lists *l, uint64_t from, uint64_t to)
{
    for (size_t thread = 0; thread <= trace_thread_count(r->t); thread++) {
        struct scope sc = {.from = from, .to = to};
        sc.tid = thread ? trace_thread(r->t, thread - 1)->tid : 0;
        check_scope(r, l, &sc);
        act(r, ACT_RECURSION);
        sc.fold = true;
        check_scope(r, l, &sc);
        act(r, ACT_RECURSION);
        act(r, ACT_THREAD_NEXT);
    }
}

static void widths(void **state)
{
    (void)state;
    static const int sizes[][2] = {{24, 80}, {30, 100}, {60, 200}};
    for (uint64_t seed = 1; seed <= 9; seed++) {
        struct rig r;
        struct lists l;
        const struct gentrace g = {.spans = 260, .threads = 3, .depth = 8, .functions = seed % 3 ? 5 : 2,
                                   .gaps = seed % 2 ? 6 : 0, .base_ns = 7000, .step_ns = seed % 4 ? 30 : 1, .seed = seed};
        rig_open(&r, gentrace_random(&g), GLYPHS_UNICODE, COLOR_256, sizes[seed % 3][0], sizes[seed % 3][1]);
        read_lists(&l, r.t);
        const uint64_t first = trace_info(r.t)->first_ns, last = trace_info(r.t)->last_ns;
        act(&r, ACT_MERGED);
        check_scopes(&r, &l, first, last);
        const uint64_t from = first + (last - first) / 5, to = last - (last - first) / 3;
        model_set_range(r.m, from, to);
        view_timeline.changed(r.tl, MODEL_CURSOR);
        check_scopes(&r, &l, from, to);
        free_lists(&l);
        rig_close(&r);
    }
}

/* By hand: f is in itself once, a gap takes 40 of 100 of the second thread's f. */
static const char gap_and_recursion[] = "thread 10 a\n+ 0 main\n+ 100 f\n+ 150 f\n+ 160 g\n- 190\n- 250\n- 300\n- 1000\n"
                                        "thread 11 b\n+ 0 main\n+ 200 f\n- 300\ngap 220 260 overflow\n- 500\n";

static void looks(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum glyph_tier glyphs;
        enum color_tier color;
        int rows, cols;
    } looks[] = {{"merged_gap_80x24_ascii_mono", GLYPHS_ASCII, COLOR_MONO, 24, 80},
                 {"merged_gap_100x30_unicode_256", GLYPHS_UNICODE, COLOR_256, 30, 100}};
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        struct rig r;
        rig_open(&r, gentrace_parse(gap_and_recursion), looks[i].glyphs, looks[i].color, looks[i].rows, looks[i].cols);
        act(&r, ACT_MERGED);
        draw(&r);
        /* main 1,000 + 500 − 40; f 200 + 100 − 40; f in f 100; g 30. */
        assert_true(golden_find(r.s, "5 stacks") == 0);
        assert_true(golden_find(r.s, "4 stacks   1.46 us in all"));
        act(&r, ACT_CALLEE);
        draw(&r);
        assert_true(golden_find(r.s, "total 260 ns (17.8 %"));
        assert_true(golden_find(r.s, "self 160 ns (61.5 %)"));
        assert_true(golden_find(r.s, "2 calls"));
        golden_check(r.s, looks[i].name, "two threads merged, f in itself, a gap left out");
        rig_close(&r);
    }
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widths),
        cmocka_unit_test(looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
