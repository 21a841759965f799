/* decode/export/export: every format of a trace made by hand, and random traces read back by other readers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "decode/export/export.h"
#include "decode/trace/stats.h"
#include "tests/lib_gentrace.h"
#include "tests/lib_perf.h"

static char *dir;

static int setup(void **state)
{
    (void)state;
    dir = lib_mkdtemp();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    lib_rmdir(dir);
    return 0;
}

/* Two threads; names that need escaping everywhere. */
static struct trace *small(void)
{
    struct functions *f = functions_new();
    fn_id outer = functions_intern(f, "/bin/a b", "main", "main", 0, FN_USER);
    fn_id odd = functions_intern(f, "/lib/x\ty", "o", "op;\"<\\\t\n\x1b\xff>", 0, FN_USER);
    fn_id off = functions_intern(f, "[kernel]", "[off cpu]", "[off cpu]", 0, FN_PSEUDO);
    fn_id sys = functions_intern(f, "[kernel]", "do_sys", "do_sys", 0, FN_KERNEL);
    struct trace_builder *b = trace_builder_new(f);
    size_t one = trace_builder_thread(b, 10, 10), two = trace_builder_thread(b, 10, 11);
    trace_builder_comm(b, one, "pro\"g");
    trace_builder_comm(b, two, "worker");
    trace_builder_enter(b, one, 1000000, outer, SPAN_INFERRED_START);
    trace_builder_enter(b, one, 1000100, odd, SPAN_TAIL_CALL);
    trace_builder_leave(b, one, 1000350, 0);
    trace_builder_enter(b, one, 1000400, off, SPAN_SAMPLED | SPAN_OFF_CPU);
    trace_builder_leave(b, one, 1002400, SPAN_GAP_END);
    trace_builder_enter(b, one, 1003000, odd, 0);
    trace_builder_leave(b, one, 1003001, 0);
    trace_builder_enter(b, two, 1000100, sys, 0);
    trace_builder_leave(b, two, 1000100, 0);
    trace_builder_leave(b, one, 1004000, SPAN_INFERRED_END);
    trace_builder_gap(b, &(struct gap){10, 1003500, 1003700, 48, GAP_OVERFLOW, "over\tflow", 0});
    trace_builder_gap(b, &(struct gap){0, 1000000, 1000010, 0, GAP_LOST, "", 0});
    trace_builder_mark(b, &(struct mark){1002000, 11, MARK_TRIGGER, "main entry"});
    trace_builder_mark(b, &(struct mark){1003999, 0, MARK_SNAPSHOT, "key"});
    return gentrace_finish(b);
}

static char *text_of(const struct trace *t, const struct export_options *o)
{
    char *text = NULL;
    size_t len = 0;
    struct err err = {0};
    FILE *f = open_memstream(&text, &len);
    if (export_write(f, t, NULL, o, &err) < 0)
        fail_msg("%s", err.text);
    fclose(f);
    return text;
}

static void expect(const struct trace *t, const char *format, pid_t tid, const char *range,
                   const char *want)
{
    struct export_options o = {.tid = tid};
    assert_int_equal(export_parse_format(format, &o.format, NULL), 0);
    if (range)
        assert_int_equal(export_parse_range(range, &o, NULL), 0);
    char *got = text_of(t, &o);
    assert_string_equal(got, want);
    free(got);
}

#define ODD "op;\"<\\\\\\t\\n\\x1b\\xff>"
#define SPANS "tid\tdepth\tstart_ns\tend_ns\tflags\tfunction\tmodule\n"
#define FUNCTIONS "calls\ttotal_ns\tself_ns\tmin_ns\tp50_ns\tp99_ns\tmax_ns\tfunction\tmodule\n"

static void tables(void **state)
{
    (void)state;
    struct trace *t = small();
    expect(t, "spans", 0, NULL,
           SPANS "10\t0\t1000000\t1004000\tse\tmain\t/bin/a b\n"
                 "10\t1\t1000100\t1000350\tt\t" ODD "\t/lib/x\\ty\n"
                 "11\t0\t1000100\t1000100\t-\tdo_sys\t[kernel]\n"
                 "10\t1\t1000400\t1002400\tgpo\t[off cpu]\t[kernel]\n"
                 "10\t1\t1003000\t1003001\t-\t" ODD "\t/lib/x\\ty\n");
    expect(t, "functions", 0, NULL,
           FUNCTIONS "1\t4000\t1539\t4000\t4000\t4000\t4000\tmain\t/bin/a b\n"
                     "1\t2000\t2000\t2000\t2000\t2000\t2000\t[off cpu]\t[kernel]\n"
                     "2\t251\t251\t1\t1\t250\t250\t" ODD "\t/lib/x\\ty\n"
                     "1\t0\t0\t0\t0\t0\t0\tdo_sys\t[kernel]\n");
    expect(t, "gaps", 0, NULL,
           "tid\tstart_ns\tend_ns\tbytes\tcause\tdetail\n"
           "0\t1000000\t1000010\t0\tlost\t\n"
           "10\t1003500\t1003700\t48\toverflow\tover\\tflow\n");
    expect(t, "marks", 0, NULL,
           "time_ns\ttid\tkind\tdetail\n"
           "1002000\t11\ttrigger\tmain entry\n"
           "1003999\t0\tsnapshot\tkey\n");
    /* One thread, and ranges: absolute, counted from the first event, open at one end. */
    expect(t, "spans", 11, NULL, SPANS "11\t0\t1000100\t1000100\t-\tdo_sys\t[kernel]\n");
    expect(t, "spans", 10, "1000350:1003000",
           SPANS "10\t0\t1000000\t1004000\tse\tmain\t/bin/a b\n"
                 "10\t1\t1000400\t1002400\tgpo\t[off cpu]\t[kernel]\n");
    expect(t, "spans", 0, "+3us:",
           SPANS "10\t0\t1000000\t1004000\tse\tmain\t/bin/a b\n"
                 "10\t1\t1003000\t1003001\t-\t" ODD "\t/lib/x\\ty\n");
    expect(t, "functions", 10, "+0:+500ns",
           FUNCTIONS "1\t500\t140\t4000\t4000\t4000\t4000\tmain\t/bin/a b\n"
                     "1\t250\t250\t250\t250\t250\t250\t" ODD "\t/lib/x\\ty\n"
                     "1\t100\t100\t2000\t2000\t2000\t2000\t[off cpu]\t[kernel]\n");
    expect(t, "marks", 10, "+0:1003000", "time_ns\ttid\tkind\tdetail\n");
    expect(t, "gaps", 11, NULL,
           "tid\tstart_ns\tend_ns\tbytes\tcause\tdetail\n"
           "0\t1000000\t1000010\t0\tlost\t\n");
    trace_free(t);
}

/* Calls that take no time, one in the other, return before a gap; what comes at that time stands higher, and behind
 * them all the same. */
static void spans_of_one_instant(void **state)
{
    (void)state;
    struct functions *f = functions_new();
    fn_id a = functions_intern(f, "m", "a", "a", 0, FN_USER), c = functions_intern(f, "m", "c", "c", 0, FN_USER);
    struct trace_builder *b = trace_builder_new(f);
    size_t th = trace_builder_thread(b, 10, 10);
    trace_builder_enter(b, th, 10, a, 0);
    trace_builder_enter(b, th, 20, c, 0);
    trace_builder_enter(b, th, 30, a, SPAN_TAIL_CALL);
    trace_builder_enter(b, th, 30, c, 0);
    trace_builder_cut(b, th, 30, SPAN_GAP_END);
    trace_builder_enter(b, th, 30, c, SPAN_INFERRED_START);
    trace_builder_leave(b, th, 30, 0);
    trace_builder_enter(b, th, 30, a, 0);
    trace_builder_leave(b, th, 40, 0);
    struct trace *t = gentrace_finish(b);
    expect(t, "spans", 0, NULL,
           SPANS "10\t0\t10\t30\tg\ta\tm\n"
                 "10\t1\t20\t30\tg\tc\tm\n"
                 "10\t2\t30\t30\ttg\ta\tm\n"
                 "10\t3\t30\t30\tg\tc\tm\n"
                 "10\t0\t30\t30\ts\tc\tm\n"
                 "10\t0\t30\t40\t-\ta\tm\n");
    trace_free(t);
}

/* A name as JSON tells it, and as the table does. */
static void names_in_json(void **state)
{
    (void)state;
    struct trace *t = small();
    struct export_options o = {.format = EXPORT_JSON};
    char *text = text_of(t, &o);
    assert_non_null(strstr(text, "\"name\":\"op;\\\"<\\\\\\t\\n\\u001b\xef\xbf\xbd>\",\"cat\":\"user\""));
    assert_non_null(strstr(text, "{\"module\":\"/lib/x\\ty\",\"flags\":\"t\"}"));
    assert_non_null(strstr(text, "{\"name\":\"pro\\\"g\"}"));
    free(text);
    trace_free(t);
}

static void folded_self_time(void **state)
{
    (void)state;
    struct trace *t = small();
    expect(t, "folded", 0, NULL,
           "main 1539\n"
           "main;[off cpu] 2000\n"
           "main;op\\x3b\"<\\\\\\t\\n\\x1b\\xff> 251\n");
    expect(t, "folded", 10, "1003000:1003600", "main 499\nmain;op\\x3b\"<\\\\\\t\\n\\x1b\\xff> 1\n");
    trace_free(t);
}

static void json_text(void **state)
{
    (void)state;
    struct trace *t = small();
    expect(t, "json", 11, NULL,
           "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
           "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":10,\"tid\":11,\"args\":{\"name\":\"worker\"}},\n"
           "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"lost\",\"cat\":\"gap\",\"ts\":1000.000,\"pid\":10,\"tid\":0,"
           "\"args\":{\"detail\":\"\",\"dur_us\":0.010,\"bytes\":0}},\n"
           "{\"ph\":\"i\",\"s\":\"t\",\"name\":\"trigger\",\"cat\":\"mark\",\"ts\":1002.000,\"pid\":10,\"tid\":11,"
           "\"args\":{\"detail\":\"main entry\"}},\n"
           "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"snapshot\",\"cat\":\"mark\",\"ts\":1003.999,\"pid\":10,\"tid\":0,"
           "\"args\":{\"detail\":\"key\"}},\n"
           "{\"ph\":\"X\",\"name\":\"do_sys\",\"cat\":\"kernel\",\"ts\":1000.100,\"dur\":0.000,\"pid\":10,"
           "\"tid\":11,\"args\":{\"module\":\"[kernel]\",\"flags\":\"-\"}}\n"
           "]}\n");
    trace_free(t);
}

static void options_and_faults(void **state)
{
    (void)state;
    struct export_options o = {0};
    struct err err = {0};
    struct trace *t = small();
    assert_int_equal(export_parse_format("svg", &o.format, &err), MTUI_E_INVAL);
    assert_non_null(strstr(err.text, "folded"));
    const char *wrong[] = {"", "5", "a:b", "5:+x", "+5:6", "1e3:", "-1:5"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(export_parse_range(wrong[i], &o, &err), MTUI_E_INVAL);
    assert_int_equal(export_parse_range("2000:1000", &o, &err), 0);
    FILE *null = fopen("/dev/null", "w");
    assert_int_equal(export_write(null, t, NULL, &o, &err), MTUI_E_INVAL);
    o = (struct export_options){.tid = 99};
    assert_int_equal(export_write(null, t, NULL, &o, &err), MTUI_E_NOENT);
    assert_string_equal(err.text, "no thread 99 in this recording");
    fclose(null);
    o = (struct export_options){0};
    assert_int_equal(export_to_path("/dev/full", t, NULL, &o, &err), MTUI_E_IO);
    assert_string_equal(err.text, "/dev/full: the disk is full: the export is incomplete");
    assert_int_equal(export_to_path("/nowhere/x", t, NULL, &o, &err), MTUI_E_NOENT);
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    close(fds[0]);
    FILE *broken = fdopen(fds[1], "w");
    o.format = EXPORT_FXT;
    o.gzip = true;
    assert_int_equal(export_write(broken, t, NULL, &o, &err), MTUI_E_PIPE);
    assert_string_equal(err.text, "the reader of the export has gone away");
    fclose(broken);
    signal(SIGPIPE, before);
    trace_free(t);
}

/* ---- Random traces ---- */

static uint64_t rnd(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

static struct trace *random_trace(unsigned nfn, pid_t threads, size_t events, uint64_t seed)
{
    struct functions *f = functions_new();
    for (unsigned i = 0; i < nfn; i++) {
        char name[32];
        snprintf(name, sizeof name, "fn_%u", i);
        functions_intern(f, i % 3 ? "/bin/a" : "/lib/b", name, name, 0, FN_USER);
    }
    struct trace_builder *b = trace_builder_new(f);
    uint64_t r = seed, now = UINT64_C(339457445933440);
    size_t *depth = calloc((size_t)threads, sizeof *depth);
    for (size_t i = 0; i < events; i++) {
        pid_t tid = (pid_t)(rnd(&r) % (uint64_t)threads);
        size_t th = trace_builder_thread(b, 500, 500 + tid);
        now += rnd(&r) % 40;
        if (rnd(&r) % 2 && depth[tid] < 15) {
            trace_builder_enter(b, th, now, (fn_id)(rnd(&r) % nfn), 0);
            depth[tid]++;
        } else if (depth[tid]) {
            trace_builder_leave(b, th, now, 0);
            depth[tid]--;
        }
    }
    free(depth);
    return gentrace_finish(b);
}

/* Spans come by time and tid, each behind its caller, all of them; folded weights add up to the functions' self times. */
static void order_and_sums(void **state)
{
    (void)state;
    struct trace *t = random_trace(20, 7, 20000, 11);
    struct export_options o = {.format = EXPORT_SPANS};
    char *text = text_of(t, &o), *line = strchr(text, '\n') + 1;
    uint64_t last[2] = {0}, n = 0, want = 0;
    struct {
        unsigned long long start, end;
    } open[7][16] = {0}; /* of each thread the last one of every depth */
    for (size_t i = 0; i < trace_thread_count(t); i++)
        want += trace_thread(t, i)->spans;
    for (; *line; line = strchr(line, '\n') + 1, n++) {
        unsigned long long tid, depth, start, end;
        assert_int_equal(sscanf(line, "%llu\t%llu\t%llu\t%llu", &tid, &depth, &start, &end), 4);
        assert_true(start > last[0] || (start == last[0] && tid >= last[1]));
        last[0] = start;
        last[1] = tid;
        const ssize_t thread = trace_find_thread(t, (pid_t)tid);
        assert_in_range(thread, 0, 6);
        assert_in_range(depth, 0, 15);
        if (depth > 0)
            assert_true(open[thread][depth - 1].start <= start && open[thread][depth - 1].end >= end);
        open[thread][depth].start = start;
        open[thread][depth].end = end;
    }
    assert_int_equal(n, want);
    free(text);
    o.format = EXPORT_FOLDED;
    text = text_of(t, &o);
    uint64_t self[20] = {0};
    for (char *save = NULL, *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
        char *weight = strrchr(l, ' '), *leaf;
        *weight++ = '\0';
        leaf = strrchr(l, ';') ? strrchr(l, ';') + 1 : l;
        self[atoi(leaf + 3)] += strtoull(weight, NULL, 10);
    }
    struct stats_options so = {.thread = -1};
    struct stats *s = NULL;
    assert_int_equal(stats_new(&s, t, &so, NULL), 0);
    for (fn_id fn = 0; fn < 20; fn++)
        assert_int_equal(self[fn], stats_find(s, fn)->self_ns);
    stats_free(s);
    free(text);
    trace_free(t);
}

/* A reader of its own (tests/read_trace.py): well-formed, in order, nested, as many calls as `functions` says,
 * odd names as they are there. */
static void json_and_fxt_are_read_by_python(void **state)
{
    static const enum export_format formats[] = {EXPORT_FUNCTIONS, EXPORT_JSON, EXPORT_FXT};
    static const char *const names[] = {"functions", "json", "fxt"};
    (void)state;
    for (unsigned seed = 0; seed < 2; seed++) {
        struct trace *t = seed ? small() : random_trace(20, 5, 20000, 5);
        for (size_t i = 0; i < 3; i++) {
            char path[300];
            int status;
            struct export_options o = {.format = formats[i]};
            snprintf(path, sizeof path, "%s/%s", dir, names[i]);
            assert_int_equal(export_to_path(path, t, NULL, &o, NULL), 0);
            if (i == 0)
                continue;
            char *got = lib_run(&status, NULL, "python3 tests/read_trace.py %s %s %s/functions", names[i], path, dir);
            assert_int_equal(status, 0);
            uint64_t spans = 0;
            for (size_t k = 0; k < trace_thread_count(t); k++)
                spans += trace_thread(t, k)->spans;
            assert_int_equal(strtoull(got, NULL, 10), spans);
            free(got);
        }
        trace_free(t);
    }
}

/* ---- fxt: a reader written from the published format ---- */

struct fxt_reader {
    const uint64_t *words;
    size_t n, at;
    char *strings[32768];
    uint64_t thread[256][2];
    size_t events, instants, names;
    uint64_t sum;
    char last_thread_name[64];
};

static const char *fxt_string(const struct fxt_reader *r, uint64_t ref)
{
    assert_true(ref < 32768); /* never inline */
    if (ref == 0)
        return "";
    assert_non_null(r->strings[ref]);
    return r->strings[ref];
}

static void fxt_event(struct fxt_reader *r, uint64_t h, const uint64_t *w, size_t words)
{
    uint64_t type = h >> 16 & 15, nargs = h >> 20 & 15, thread = h >> 24 & 255;
    const char *name = fxt_string(r, h >> 48);
    assert_true(*fxt_string(r, h >> 32 & 0xffff));
    assert_int_not_equal(thread, 0);
    assert_int_not_equal(r->thread[thread][0], 0);
    if (type == 4) {
        assert_int_equal(words, 3);
        assert_int_equal(nargs, 0);
        assert_true(w[1] <= w[2]);
        unsigned fn = 0;
        if (sscanf(name, "fn_%u", &fn) == 1)
            r->sum += (w[2] - w[1]) * (fn + 1) + w[1] % 1000003 * r->thread[thread][1];
        r->events++;
        return;
    }
    assert_int_equal(type, 0);
    r->instants++;
    size_t at = 2;
    for (uint64_t i = 0; i < nargs; i++) {
        assert_true(at < words);
        assert_true(*fxt_string(r, w[at] >> 16 & 0xffff));
        at += w[at] >> 4 & 0xfff;
    }
    assert_int_equal(at, words);
}

static void fxt_read(struct fxt_reader *r)
{
    assert_true(r->n >= 3 && r->words[0] == UINT64_C(0x0016547846040010));
    r->at = 1;
    while (r->at < r->n) {
        const uint64_t *w = r->words + r->at;
        uint64_t h = w[0], type = h & 15, words = h >> 4 & 0xfff;
        assert_true(words > 0 && r->at + words <= r->n);
        if (type == 1) {
            assert_int_equal(w[1], 1000000000);
        } else if (type == 2) {
            uint64_t i = h >> 16 & 0x7fff, len = h >> 32 & 0x7fff;
            assert_true(i && len && words == 1 + (len + 7) / 8);
            free(r->strings[i]);
            r->strings[i] = strndup((const char *)(w + 1), len);
        } else if (type == 3) {
            assert_int_equal(words, 3);
            r->thread[h >> 16 & 255][0] = w[1];
            r->thread[h >> 16 & 255][1] = w[2];
        } else if (type == 4) {
            fxt_event(r, h, w, words);
        } else {
            assert_int_equal(type, 7);
            r->names++;
            snprintf(r->last_thread_name, sizeof r->last_thread_name, "%s",
                     fxt_string(r, h >> 24 & 0xffff));
        }
        r->at += words;
    }
}

static struct fxt_reader *fxt_open(const char *path)
{
    struct fxt_reader *r = calloc(1, sizeof *r);
    size_t cap = 64u << 20, n = 0;
    char *bytes = malloc(cap);
    gzFile f = gzopen(path, "rb"); /* reads plain files too */
    assert_non_null(f);
    for (int got; (got = gzread(f, bytes + n, (unsigned)(cap - n))) > 0;)
        n += (size_t)got;
    assert_int_equal(gzclose(f), Z_OK);
    assert_int_equal(n % 8, 0);
    r->words = (const uint64_t *)(void *)bytes;
    r->n = n / 8;
    fxt_read(r);
    return r;
}

static void fxt_close(struct fxt_reader *r)
{
    for (size_t i = 0; i < 32768; i++)
        free(r->strings[i]);
    free((void *)(uintptr_t)r->words);
    free(r);
}

static void fxt_is_read_back(void **state)
{
    (void)state;
    char path[300];
    struct export_options o = {.format = EXPORT_FXT};
    struct trace *t = small();
    snprintf(path, sizeof path, "%s/small.fxt", dir);
    assert_int_equal(export_to_path(path, t, NULL, &o, NULL), 0);
    struct fxt_reader *r = fxt_open(path);
    assert_int_equal(r->events, 5);
    assert_int_equal(r->instants, 4);
    assert_int_equal(r->names, 3); /* a process, two threads */
    assert_string_equal(r->last_thread_name, "worker");
    fxt_close(r);
    trace_free(t);
    /* More strings and threads than the tables hold, gzipped by its name. */
    t = random_trace(50000, 600, 400000, 3);
    snprintf(path, sizeof path, "%s/big.fxt.gz", dir);
    assert_int_equal(export_to_path(path, t, NULL, &o, NULL), 0);
    r = fxt_open(path);
    uint64_t events = 0, sum = 0;
    for (size_t i = 0; i < trace_thread_count(t); i++)
        for (size_t d = 0; d < trace_thread(t, i)->depths; d++) {
            size_t n = 0;
            const struct span *row = trace_row(t, i, d, &n);
            events += n;
            for (size_t k = 0; k < n; k++)
                sum += (row[k].end_ns - row[k].start_ns) * (row[k].fn + 1) +
                       row[k].start_ns % 1000003 * (uint64_t)trace_thread(t, i)->tid;
        }
    assert_int_equal(r->events, events);
    assert_true(r->sum == sum);
    fxt_close(r);
    trace_free(t);
}

static void samples_weigh_their_periods(void **state)
{
    (void)state;
    struct functions *f = functions_new();
    fn_id fn[2] = {functions_intern(f, "m", "a", "a", 0, FN_USER),
                   functions_intern(f, "m", "b", "b", 0, FN_USER)};
    fn_id twin = functions_intern(f, "other", "b", "b", 0, FN_USER);
    struct sample_log *l = sample_log_new();
    sample_log_add_event(l, "cycles", true, 0);
    uint32_t th = sample_log_thread(l, 4, 5), other = sample_log_thread(l, 4, 6);
    stack_id a, ab, at;
    sample_log_stack(l, fn, 1, &a);
    sample_log_stack(l, fn, 2, &ab);
    fn[1] = twin;
    sample_log_stack(l, fn, 2, &at);
    const struct sample_event e[] = {
        {100, 7, a, th, -1, 0, SAMPLE_STACK},
        {110, 1000, ab, th, -1, 0, SAMPLE_STACK},
        {120, 30, at, other, -1, 0, SAMPLE_STACK}, /* the same names: one line */
        {SAMPLE_NO_TIME, 5, a, other, -1, 0, SAMPLE_STACK},
        {130, 9, STACK_EMPTY, th, -1, 0, SAMPLE_STACK},
        {140, 400, STACK_EMPTY, th, -1, 0, SAMPLE_SWITCH_OUT},
    };
    for (size_t i = 0; i < sizeof e / sizeof *e; i++)
        sample_log_add(l, &e[i]);
    struct trace_builder *b = trace_builder_new(f);
    struct sample_log_account acc;
    assert_int_equal(sample_log_build(l, b, f, &acc, NULL), 0);
    trace_builder_set_info(b, &(struct trace_info){.sampled = true, .recorder = "sample"});
    struct trace *t = gentrace_finish(b);
    const struct {
        pid_t tid;
        const char *range, *want;
    } cases[] = {
        {0, NULL, "a 12\na;b 1030\n"},
        {5, NULL, "a 7\na;b 1000\n"},
        {0, "110:120", "a;b 1000\n"},
        {6, "+0:+1ms", "a;b 30\n"},
    };
    for (size_t i = 0; i < 4; i++) {
        struct export_options o = {.format = EXPORT_FOLDED, .tid = cases[i].tid};
        char *text = NULL;
        size_t len = 0;
        if (cases[i].range)
            assert_int_equal(export_parse_range(cases[i].range, &o, NULL), 0);
        FILE *out = open_memstream(&text, &len);
        assert_int_equal(export_write(out, t, l, &o, NULL), 0);
        fclose(out);
        assert_string_equal(text, cases[i].want);
        free(text);
    }
    trace_free(t);
    sample_log_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables),
        cmocka_unit_test(folded_self_time),
        cmocka_unit_test(json_text),
        cmocka_unit_test(options_and_faults),
        cmocka_unit_test(order_and_sums),
        cmocka_unit_test(spans_of_one_instant),
        cmocka_unit_test(names_in_json),
        cmocka_unit_test(json_and_fxt_are_read_by_python),
        cmocka_unit_test(fxt_is_read_back),
        cmocka_unit_test(samples_weigh_their_periods),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
