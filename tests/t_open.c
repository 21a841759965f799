/* decode/open/open with real recordings: every sample's stack and period held against `perf script`, the same
 * recording as perf.data, as text, on a pipe; what cannot be opened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/export/export.h"
#include "decode/open/open.h"
#include "tests/lib_open.h"
#include "tests/lib_perf.h"
#include "tests/lib_perfwriter.h"

static const struct open_options plain = {.stdin_fd = -1};

static void assert_refused(const char *path, int code, const char *says)
{
    struct recording *r = NULL;
    struct err err = {0};
    assert_int_equal(open_recording(&r, path, &plain, &err), code);
    assert_null(r);
    if (!strstr(err.text, says))
        fail_msg("\"%s\" lacks \"%s\"", err.text, says);
}

/* One recording of threads, fork and exec for all tests of this file; NULL where perf cannot record. */
static char *dir;
static char data[300];

static int setup(void **state)
{
    (void)state;
    dir = open_record_forker(data, sizeof data);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (dir)
        lib_rmdir(dir);
    return 0;
}

#define NEED_PERF                                                                                  \
    do {                                                                                           \
        if (!dir)                                                                                  \
            skip();                                                                                \
    } while (0)

/* ---- Against perf script ---- */

/* perf's own list of samples: time, tid, period and symbols innermost first, by a scanner of its own. */
static void every_stack_equals_perf_script(void **state)
{
    (void)state;
    NEED_PERF;
    int status = 1;
    char *text = lib_run(&status, NULL,
                         "%s script -i %s --no-inline -F pid,tid,time,period,ip,sym --ns 2>/dev/null",
                         lib_perf(), data);
    assert_int_equal(status, 0);
    struct recording *r = open_or_fail(data, &plain);
    const struct sample_event *e = sample_log_events(r->samples);
    size_t n = sample_log_count(r->samples), at = 0, samples = 0;
    char want[8192] = "", got[8192];
    size_t wlen = 0;
    uint64_t sum = 0, perf_sum = 0;
    bool open = false;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        int pid, tid;
        unsigned long long sec, ns, period, ip;
        char symbol[512];
        bool head = line[0] != '\t' && sscanf(line, "%d/%d %llu.%llu: %llu", &pid, &tid, &sec, &ns, &period) == 5;
        if (head && open) {
            assert_string_equal(got, want);
            open = false;
        }
        if (head) {
            while (at < n && e[at].kind != SAMPLE_STACK)
                at++;
            assert_true(at < n);
            assert_int_equal(e[at].time_ns, sec * 1000000000 + ns);
            assert_int_equal(sample_log_thread_at(r->samples, e[at].thread)->tid, tid);
            assert_int_equal(sample_log_thread_at(r->samples, e[at].thread)->pid, pid);
            assert_int_equal(e[at].period, period);
            open_stack_of(r, &e[at], got, sizeof got);
            sum += e[at++].period;
            perf_sum += period;
            samples++;
            wlen = 0;
            want[0] = '\0';
            open = true;
        } else if (sscanf(line, " %llx %511[^\n]", &ip, symbol) == 2) {
            wlen += (size_t)snprintf(want + wlen, sizeof want - wlen, "%s;", symbol);
        }
    }
    if (open)
        assert_string_equal(got, want);
    while (at < n && e[at].kind != SAMPLE_STACK)
        at++;
    assert_int_equal(at, n); /* we have none that perf lacks */
    assert_true(samples > 100);
    assert_int_equal(sum, perf_sum);
    free(text);
    recording_free(r);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sums of periods by stack, from perf's text alone, against the folded export. */
static void folded_equals_perf_script(void **state)
{
    (void)state;
    NEED_PERF;
    int status = 1;
    char *text = lib_run(&status, NULL,
                         "%s script -i %s --no-inline -F period,ip,sym,time,tid 2>/dev/null | awk '"
                         "function flush() { if (n) { s = f[n]; for (i = n - 1; i > 0; i--) s = s \";\" f[i]; w[s] += p } n = 0 } "
                         "/^\t/ { sub(/^[ \t]*[0-9a-f]+ /, \"\"); f[++n] = $0; next } "
                         "NF { flush(); p = $NF } END { flush(); for (s in w) print s \" \" w[s] }'",
                         lib_perf(), data);
    assert_int_equal(status, 0);
    char *want[4096], path[400];
    size_t nwant = 0, at = 0, len = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        want[nwant++] = line;
    qsort(want, nwant, sizeof *want, by_text);
    struct recording *r = open_or_fail(data, &plain);
    struct export_options o = {.format = EXPORT_FOLDED};
    snprintf(path, sizeof path, "%s/folded", dir);
    assert_int_equal(export_to_path(path, r->trace, r->samples, &o, NULL), 0);
    char *got = lib_read(path, &len), *lines[4096];
    size_t ngot = 0;
    for (char *line = strtok(got, "\n"); line; line = strtok(NULL, "\n"))
        lines[ngot++] = line;
    qsort(lines, ngot, sizeof *lines, by_text);
    for (; at < nwant && at < ngot; at++)
        assert_string_equal(lines[at], want[at]);
    assert_int_equal(nwant, ngot);
    assert_true(nwant >= 5);
    free(got);
    free(text);
    recording_free(r);
}

/* ---- The trace ---- */

static size_t count_spans(const struct recording *r, const char *function, unsigned flags, uint64_t *ns)
{
    size_t count = 0;
    for (size_t th = 0; th < trace_thread_count(r->trace); th++)
        for (size_t d = 0; d < trace_thread(r->trace, th)->depths; d++) {
            size_t n = 0;
            const struct span *row = trace_row(r->trace, th, d, &n);
            for (size_t i = 0; i < n; i++) {
                const char *name = functions_get(trace_functions(r->trace), row[i].fn)->name;
                if ((!function || strcmp(name, function) == 0) && (row[i].flags & flags) == flags) {
                    count++;
                    *ns += row[i].end_ns - row[i].start_ns;
                }
            }
        }
    return count;
}

static void calls_become_spans(void **state)
{
    (void)state;
    NEED_PERF;
    struct open_options o = {.stdin_fd = -1, .pyramid = true};
    struct recording *r = open_or_fail(data, &o);
    const struct trace_info *info = trace_info(r->trace);
    uint64_t ns = 0, off = 0;
    assert_true(info->sampled);
    assert_string_equal(info->recorder, "sample");
    /* 2000 Hz, in CPU time */
    assert_true(info->period_ns > 400000 && info->period_ns < 600000);
    assert_true(info->input_bytes > 1000);
    assert_non_null(r->pyramid);
    size_t threads = 0;
    bool second = false;
    for (size_t i = 0; i < trace_thread_count(r->trace); i++) {
        threads += trace_thread(r->trace, i)->samples > 0;
        second |= strcmp(trace_thread(r->trace, i)->comm, "second") == 0;
    }
    assert_true(threads >= 4); /* three threads and the child; main may never be hit */
    assert_true(second);
    /* Each thread's own function is few long spans, not one per sample. */
    const char *once[] = {"thread_one", "thread_two", "after_exec"}; /* the caller of a leaf has no frame */
    for (size_t i = 0; i < 3; i++) {
        ns = 0;
        size_t n = count_spans(r, once[i], SPAN_SAMPLED, &ns);
        if (n < 1 || n > 3)
            fail_msg("%s: %zu spans", once[i], n);
        assert_true(ns > 2000000);
    }
    /* Five busy threads on few CPUs, and main that waits for them. */
    assert_true(count_spans(r, "[off cpu]", SPAN_OFF_CPU | SPAN_SAMPLED, &off) > 0);
    assert_true(off > 10000000);
    bool forker = false;
    for (size_t i = 0; i < r->nmodules; i++)
        forker |= strstr(r->modules[i].name, "forker") && r->modules[i].resolved > 50 &&
                  r->modules[i].source;
    assert_true(forker);
    recording_free(r);
}

static char *exported(const struct recording *r, enum export_format format)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    struct export_options o = {.format = format};
    assert_int_equal(export_write(f, r->trace, r->samples, &o, NULL), 0);
    fclose(f);
    return text;
}

/* tid, depth, times and names; modules and flags differ where text knows less. */
static char *span_lines(const struct recording *r)
{
    char *text = exported(r, EXPORT_SPANS), *out = text;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char tid[32], depth[32], start[32], end[32], flags[32], name[512], line_out[700];
        if (sscanf(line, "%31s %31s %31s %31s %31s %511[^\t]", tid, depth, start, end, flags, name) != 6)
            continue;
        int n = snprintf(line_out, sizeof line_out, "%s %s %s %s %s %s\n", tid, depth, start, end, flags, name);
        memmove(out, line_out, (size_t)n);
        out += n;
    }
    *out = '\0';
    return text;
}

/* The two readers share nothing but the rules of samples.h: what perf prints gives the same spans. */
static void text_gives_the_same_trace(void **state)
{
    (void)state;
    NEED_PERF;
    int status = 1;
    char path[400];
    snprintf(path, sizeof path, "%s/script.txt", dir);
    free(lib_run(&status, NULL,
                 "%s script -i %s --no-inline --ns --show-switch-events --show-task-events "
                 "--show-lost-events -F comm,pid,tid,time,period,event,ip,sym,symoff,dso >%s 2>/dev/null",
                 lib_perf(), data, path));
    assert_int_equal(status, 0);
    struct recording *a = open_or_fail(data, &plain), *b = open_or_fail(path, &plain);
    assert_true(open_has_note(b, "names are those in the text"));
    assert_false(open_has_note(b, "partial"));
    char *x = span_lines(a), *y = span_lines(b);
    if (strcmp(x, y) != 0) {
        size_t i = 0, line = 0;
        for (; x[i] && x[i] == y[i]; i++)
            line = x[i] == '\n' ? i + 1 : line;
        fail_msg("perf.data: %.200s\ntext: %.200s", x + line, y + line);
    }
    free(x);
    free(y);
    x = exported(a, EXPORT_FOLDED);
    y = exported(b, EXPORT_FOLDED);
    assert_string_equal(x, y);
    free(x);
    free(y);
    /* The same, gzipped, and on standard input. */
    free(lib_run(&status, NULL, "gzip -k %s", path));
    assert_int_equal(status, 0);
    strcat(path, ".gz");
    struct recording *c = open_or_fail(path, &plain);
    x = exported(b, EXPORT_SPANS);
    y = exported(c, EXPORT_SPANS);
    assert_string_equal(x, y);
    free(y);
    recording_free(c);
    path[strlen(path) - 3] = '\0';
    struct open_options o = {.stdin_fd = open(path, O_RDONLY)};
    c = open_or_fail("-", &o);
    y = exported(c, EXPORT_SPANS);
    assert_string_equal(x, y);
    close(o.stdin_fd);
    free(x);
    free(y);
    recording_free(a);
    recording_free(b);
    recording_free(c);
}

/* perf record -o - | mtui open -: the pipe layout, through a pipe. */
static void pipe_layout_on_standard_input(void **state)
{
    (void)state;
    NEED_PERF;
    char command[700];
    snprintf(command, sizeof command,
             "%s record -q -o - -e cpu-clock:u -F 1000 -g --switch-events -- %s 10 2>/dev/null", lib_perf(),
             lib_tool("forker"));
    FILE *p = popen(command, "r");
    assert_non_null(p);
    struct open_options o = {.stdin_fd = fileno(p)};
    struct recording *r = open_or_fail("-", &o);
    pclose(p);
    uint64_t ns = 0;
    assert_true(count_spans(r, "thread_one", SPAN_SAMPLED, &ns) >= 1);
    recording_free(r);
}

/* ---- What cannot be shown ---- */

static void field_C17_refusals_and_foreign_files(void **state)
{
    (void)state;
    char *tmp = lib_mkdtemp(), path[300];
    snprintf(path, sizeof path, "%s/none", tmp);
    assert_refused(path, MTUI_E_NOENT, "none");
    snprintf(path, sizeof path, "%s/empty", tmp);
    lib_write(path, "", 0);
    assert_refused(path, MTUI_E_FORMAT, "is empty");
    snprintf(path, sizeof path, "%s/binary", tmp);
    lib_write(path, "\177ELF\0\0\1\2", 8);
    assert_refused(path, MTUI_E_FORMAT, "neither a perf.data nor text");
    snprintf(path, sizeof path, "%s/prose", tmp);
    lib_write(path, "Dear all,\nthis is a letter.\n", 28);
    assert_refused(path, MTUI_E_FORMAT, "2 lines, none of them an event");
    /* Two bytes of a gzip file. */
    snprintf(path, sizeof path, "%s/cut.gz", tmp);
    lib_write(path, "\x1f\x8b", 2);
    assert_refused(path, MTUI_E_FORMAT, "none of them an event");
    lib_rmdir(tmp);
    const char *pt = "../shared/data/perf-data/skylake-user-kernel.perf.data";
    if (access(pt, R_OK) == 0) { /* 15 samples of cycles beside the trace (perf script -D) */
        struct recording *r = open_or_fail(pt, &plain);
        size_t n = 0;
        for (size_t i = 0; i < sample_log_count(r->samples); i++)
            n += sample_log_events(r->samples)[i].kind == SAMPLE_STACK;
        assert_int_equal(n, 15);
        /* The trace goes before them; its programs' files are of another machine, and that is told. */
        assert_true(open_has_note(r, "also holds samples, which are not shown beside its hardware trace"));
        assert_false(trace_info(r->trace)->sampled);
        assert_true(trace_find_thread(r->trace, 3174) >= 0);
        assert_true(open_has_note(r, "the code of the kernel is not at hand"));
        assert_true(open_has_note(r, "the code of /lib64/ld-2.23.so is not at hand"));
        assert_true(open_has_note(r, "the code of /usr/bin/coreutils is not at hand"));
        assert_true(open_has_note(r, "copy those files from the machine that was recorded"));
        assert_false(open_has_note(r, "no call chains"));
        assert_false(open_has_note(r, "went backwards"));
        recording_free(r);
    }
}

/* Lines that are not understood cost only themselves, and are told. */
static void field_C13_partial_text(void **state)
{
    (void)state;
    char *tmp = lib_mkdtemp(), path[300];
    snprintf(path, sizeof path, "%s/text", tmp);
    const char *text = "p 1/2 1.000000: 1 cpu-clock: \n\t401000 f (m)\n\nwhat is this?\n"
                       "p 1/2 1.001000: 1 cpu-clock: \n\t401000 f (m)\n\n";
    lib_write(path, text, strlen(text));
    struct recording *r = open_or_fail(path, &plain);
    assert_true(open_has_note(r, "partial: 1 line was not understood, the first is line 4: what is this?"));
    assert_int_equal(sample_log_count(r->samples), 2);
    recording_free(r);
    lib_rmdir(tmp);
}

/* ---- In the background ---- */

struct outcome {
    bool done;
    struct recording *r;
    struct err err;
};

static void on_done(void *arg, struct recording *r, const struct err *err)
{
    struct outcome *o = arg;
    o->done = true;
    o->r = r;
    o->err = *err;
}

static void in_the_background(void **state)
{
    (void)state;
    NEED_PERF;
    struct loop *loop = loop_new();
    struct outcome o = {0};
    struct open_job *job = open_start(loop, data, &plain, on_done, &o);
    assert_non_null(open_job_progress(job).stage);
    while (!o.done)
        loop_run_once(loop, 1000000000);
    assert_non_null(o.r);
    recording_free(o.r);
    o = (struct outcome){0};
    job = open_start(loop, data, &plain, on_done, &o);
    open_job_cancel(job);
    while (!o.done)
        loop_run_once(loop, 1000000000);
    if (o.r)
        recording_free(o.r); /* it was faster than the request */
    else
        assert_int_equal(o.err.code, MTUI_E_CANCEL);
    o = (struct outcome){0};
    open_start(loop, "/nowhere/at/all", &plain, on_done, &o);
    while (!o.done)
        loop_run_once(loop, 1000000000);
    assert_null(o.r);
    assert_int_equal(o.err.code, MTUI_E_NOENT);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stack_equals_perf_script),
        cmocka_unit_test(folded_equals_perf_script),
        cmocka_unit_test(calls_become_spans),
        cmocka_unit_test(text_gives_the_same_trace),
        cmocka_unit_test(pipe_layout_on_standard_input),
        cmocka_unit_test(field_C17_refusals_and_foreign_files),
        cmocka_unit_test(field_C13_partial_text),
        cmocka_unit_test(in_the_background),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
