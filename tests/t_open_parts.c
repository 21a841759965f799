/* Recordings looked at while they are decoded: every part is a trace that holds, with what the one before
 * had, and the last word is what decoding at once gives; stopped in between, what is there stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/vec.h"
#include "decode/export/export.h"
#include "decode/open/open.h"
#include "lib_run.h"
#include "lib_step.h"
#include "lib_step_programs.h"

#define PARTS 64

/* ---- What a trace holds ---- */

struct call {
    pid_t tid;
    uint64_t start_ns, end_ns;
    char *function;
};

struct calls {
    VEC(struct call) list;
};

static int by_place(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    return strcmp(x->function, y->function);
}

/* Those that are over, sorted. Names live as long as the trace. */
static struct calls closed_calls(const struct trace *t)
{
    struct calls c = {0};
    for (size_t i = 0; i < trace_thread_count(t); i++)
        for (size_t d = 0; d < trace_thread(t, i)->depths; d++) {
            size_t n;
            const struct span *s = trace_row(t, i, d, &n);
            for (size_t k = 0; k < n; k++)
                if (!(s[k].flags & SPAN_INFERRED_END))
                    vec_push(&c.list, ((struct call){
                                          trace_thread(t, i)->tid, s[k].start_ns, s[k].end_ns,
                                          (char *)(uintptr_t)functions_get(trace_functions(t), s[k].fn)->name}));
        }
    qsort(c.list.data, c.list.len, sizeof *c.list.data, by_place);
    return c;
}

static void assert_all_in(const struct trace *less, const struct trace *more)
{
    struct calls a = closed_calls(less), b = closed_calls(more);
    size_t k = 0;
    for (size_t i = 0; i < a.list.len; i++, k++) {
        while (k < b.list.len && by_place(&b.list.data[k], &a.list.data[i]) < 0)
            k++;
        if (k == b.list.len || by_place(&b.list.data[k], &a.list.data[i]) != 0)
            fail_msg("tid %d: %s from %llu is gone", (int)a.list.data[i].tid, a.list.data[i].function,
                     (unsigned long long)a.list.data[i].start_ns);
    }
    vec_free(&a.list);
    vec_free(&b.list);
}

static uint64_t not_decoded(const struct trace *t, const char *detail)
{
    size_t n;
    uint64_t bytes = 0;
    const struct gap *g = trace_gaps(t, &n);
    for (size_t i = 0; i < n; i++)
        if (g[i].cause == GAP_NOT_DECODED) {
            assert_string_equal(g[i].detail, detail);
            bytes += g[i].bytes;
        }
    return bytes;
}

static uint64_t spans_of(const struct trace *t)
{
    uint64_t n = 0;
    for (size_t i = 0; i < trace_thread_count(t); i++)
        n += trace_thread(t, i)->spans;
    return n;
}

static char *export(const struct trace *t, enum export_format format)
{
    struct export_options e = {.format = format, .workers = 1};
    struct err err;
    char *out = NULL;
    size_t len;
    FILE *f = open_memstream(&out, &len);
    assert_int_equal(export_write(f, t, NULL, &e, &err), 0);
    fclose(f);
    return out;
}

/* ---- Opening in parts ---- */

struct watch {
    struct recording *part[PARTS];
    size_t n;
    struct open_progress progress, reading; /* the last, and the last of that stage */
    size_t enough_at, cancel_at; /* once there are so many parts; 0: never */
    atomic_bool enough, cancel;
};

static void on_part(void *arg, struct recording *r)
{
    struct watch *w = arg;
    if (w->n < PARTS)
        w->part[w->n++] = r;
    else
        recording_free(r);
    if (w->progress.total && strcmp(w->progress.stage, "decoding") == 0)
        assert_int_equal(w->progress.done + not_decoded(r->trace, "not decoded yet"), w->progress.total);
    if (w->enough_at && w->n >= w->enough_at)
        atomic_store(&w->enough, true);
    if (w->cancel_at && w->n >= w->cancel_at)
        atomic_store(&w->cancel, true);
}

static void on_progress(void *arg, const struct open_progress *p)
{
    struct watch *w = arg;
    w->progress = *p;
    if (strcmp(p->stage, "reading") == 0)
        w->reading = *p;
}

static int open_watched(struct watch *w, const char *path, unsigned threads, struct recording **r,
                        struct err *err)
{
    struct open_options o = {.threads = threads,
                             .pyramid = true,
                             .enough = &w->enough,
                             .cancel = &w->cancel,
                             .part = on_part,
                             .part_arg = w,
                             .part_ns = 1,
                             .progress = on_progress,
                             .progress_arg = w};
    return open_recording(r, path, &o, err);
}

static void check_parts(struct watch *w, const struct recording *last)
{
    struct err err;
    for (size_t i = 0; i < w->n; i++) {
        const struct trace *t = w->part[i]->trace, *next = i + 1 < w->n ? w->part[i + 1]->trace : last->trace;
        if (trace_check(t, &err) < 0)
            fail_msg("part %zu: %s", i, err.text);
        assert_non_null(w->part[i]->pyramid);
        assert_all_in(t, next);
        assert_true(spans_of(t) <= spans_of(next));
        /* The view stands on the whole of it from the beginning: within a hundredth. */
        const struct trace_info *a = trace_info(t), *b = trace_info(last->trace);
        assert_int_equal(a->first_ns, b->first_ns);
        assert_true(a->last_ns <= b->last_ns);
        if (!b->sampled)
            assert_true(b->last_ns - a->last_ns <= (b->last_ns - b->first_ns) / 100);
        assert_true(trace_thread_count(t) <= trace_thread_count(last->trace));
        for (size_t k = 0; k < functions_count(trace_functions(t)); k++)
            assert_string_equal(functions_get(trace_functions(t), (fn_id)k)->name,
                                functions_get(trace_functions(last->trace), (fn_id)k)->name);
    }
}

static void free_parts(struct watch *w)
{
    for (size_t i = 0; i < w->n; i++)
        recording_free(w->part[i]);
    w->n = 0;
}

static void assert_same(const struct trace *a, const struct trace *b)
{
    static const enum export_format formats[] = {EXPORT_SPANS, EXPORT_GAPS, EXPORT_FUNCTIONS, EXPORT_MARKS};
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        char *x = export(a, formats[f]), *y = export(b, formats[f]);
        if (strcmp(x, y) != 0)
            fail_msg("export %zu is another", f);
        free(x);
        free(y);
    }
}

/* ---- Intel PT ---- */

static int record_signals(void **state)
{
    static struct step_rec r;
    if (getuid() == 0)
        for (const struct step_program *p = step_programs; p->name; p++)
            if (strcmp(p->name, "signals") == 0)
                step_rec_program(&r, p, 1);
    *state = &r;
    return 0;
}

static int forget(void **state)
{
    if (getuid() == 0)
        step_rec_free(*state);
    return 0;
}

/* Several pieces of it; the encoding by name. */
static void encode(const struct step_rec *r, const char *name, const char *file, char path[400])
{
    if (getuid() != 0)
        skip(); /* uprobes need root or CAP_PERFMON */
    const struct step_encoding *e = step_encodings;
    while (strcmp(e->name, name) != 0)
        e++;
    struct step_encoding big = *e;
    big.repeat = 2500;
    snprintf(path, 400, "%s/%s.data", r->dir, file);
    step_rec_encode(r, &big, path);
}

static void parts_of(const struct step_rec *r, const char *encoding)
{
    char path[400];
    struct err err;
    encode(r, encoding, encoding, path);
    for (unsigned threads = 1; threads <= 7; threads = threads == 1 ? 2 : threads + 5) {
        struct open_options plain = {.threads = threads};
        struct recording *once, *last;
        struct watch w = {0};
        assert_int_equal(open_recording(&once, path, &plain, &err), 0);
        assert_int_equal(open_watched(&w, path, threads, &last, &err), 0);
        assert_true(w.n >= 2);
        assert_true(spans_of(w.part[0]->trace) > 0);
        assert_true(spans_of(w.part[0]->trace) < spans_of(last->trace));
        check_parts(&w, last);
        assert_same(last->trace, once->trace);
        assert_int_equal(not_decoded(last->trace, ""), 0);
        free_parts(&w);
        recording_free(once);
        recording_free(last);
    }
}

static void buffers_of_threads(void **state)
{
    parts_of(*state, "cyc");
}

static void buffers_of_cpus(void **state)
{
    parts_of(*state, "per-cpu");
}

/* A part outlives the decoder that made it, and all others. */
static void parts_stand_alone(void **state)
{
    char path[400];
    struct err err;
    struct recording *last;
    struct watch w = {.cancel_at = 2};
    encode(*state, "mtc", "alone", path);
    assert_int_equal(open_watched(&w, path, 2, &last, &err), MTUI_E_CANCEL);
    assert_int_equal(w.n, 2);
    recording_free(w.part[1]);
    char *spans = export(w.part[0]->trace, EXPORT_SPANS);
    assert_non_null(strstr(spans, "\twork\t"));
    free(spans);
    recording_free(w.part[0]);
}

static void stopped(void **state)
{
    char path[400];
    struct err err;
    encode(*state, "cyc", "stopped", path);
    for (unsigned threads = 1; threads <= 2; threads++) {
        struct recording *r;
        struct watch w = {.enough_at = 1};
        assert_int_equal(open_watched(&w, path, threads, &r, &err), 0);
        assert_int_equal(w.n, 1);
        check_parts(&w, r);
        uint64_t rest = not_decoded(r->trace, "not decoded: cancelled");
        assert_true(rest > 0);
        assert_int_equal(w.progress.stage[0], 'i'); /* indexing: it has gone to the end */
        assert_non_null(trace_info(r->trace)->partial);
        assert_non_null(strstr(r->notes[0], "decoding was stopped: "));
        /* With what was decoded and what was skipped, that is all there is. */
        struct open_options plain = {.threads = 1};
        struct recording *whole;
        assert_int_equal(open_recording(&whole, path, &plain, &err), 0);
        assert_all_in(r->trace, whole->trace);
        assert_true(spans_of(r->trace) < spans_of(whole->trace));
        recording_free(whole);
        recording_free(r);
        free_parts(&w);
    }
    struct watch at_once = {.enough_at = 0};
    struct recording *r;
    atomic_store(&at_once.enough, true); /* before anything is there to keep */
    assert_int_equal(open_watched(&at_once, path, 2, &r, &err), MTUI_E_CANCEL);
}

/* ---- Samples ---- */

#define SAMPLES 20000

/* Text of perf script: main calls a or b in turn, one sample each millisecond. */
static void write_text(int fd, size_t from, size_t to)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    for (size_t i = from; i < to; i++)
        fprintf(f,
                "prog  100/100  %zu.%06zu:    1000000 cpu-clock: \n"
                "\t    55500%04zu %s+0x10 (/bin/prog)\n"
                "\t    555000010 main+0x10 (/bin/prog)\n\n",
                1000 + i / 1000, i % 1000 * 1000, i % 2 ? (size_t)100 : (size_t)200, i % 2 ? "a" : "b");
    fclose(f);
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, text + done, len - done);
        assert_true(n > 0);
        done += (size_t)n;
    }
    free(text);
}

static char *text_file(void)
{
    static char path[] = "/tmp/t_open_parts.XXXXXX";
    strcpy(path + sizeof path - 7, "XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    write_text(fd, 0, SAMPLES);
    close(fd);
    return path;
}

static void samples_in_parts(void **state)
{
    (void)state;
    const char *path = text_file();
    struct open_options plain = {.threads = 1};
    struct recording *once, *last;
    struct watch w = {0};
    struct err err;
    assert_int_equal(open_recording(&once, path, &plain, &err), 0);
    assert_int_equal(open_watched(&w, path, 1, &last, &err), 0);
    assert_true(w.n >= 1);
    for (size_t i = 0; i < w.n; i++) {
        const struct trace *t = w.part[i]->trace;
        assert_int_equal(trace_check(t, &err), 0);
        assert_true(trace_info(t)->sampled);
        assert_int_equal(trace_info(t)->first_ns, trace_info(last->trace)->first_ns);
        assert_true(not_decoded(t, "not decoded yet") > 0);
        /* As long as the whole will be, to a tenth: the text is even. */
        uint64_t whole = trace_info(last->trace)->last_ns - trace_info(last->trace)->first_ns;
        uint64_t seen = trace_info(t)->last_ns - trace_info(t)->first_ns;
        assert_true(seen > whole / 10 * 9 && seen < whole / 10 * 11);
    }
    assert_same(last->trace, once->trace);
    recording_free(once);
    recording_free(last);
    free_parts(&w);
    unlink(path);
}

static void samples_stopped(void **state)
{
    (void)state;
    const char *path = text_file();
    struct recording *r;
    struct watch w = {.enough_at = 1};
    struct err err;
    assert_int_equal(open_watched(&w, path, 1, &r, &err), 0);
    assert_int_equal(trace_check(r->trace, &err), 0);
    assert_true(not_decoded(r->trace, "not decoded: cancelled") > 0);
    assert_non_null(trace_info(r->trace)->partial);
    recording_free(r);
    free_parts(&w);
    unlink(path);
}

/* main calls f again and again: one nanosecond of each, two branch lines. */
static void write_branches(int fd, size_t calls)
{
    FILE *f = fdopen(dup(fd), "w");
    for (size_t i = 0; i < calls; i++)
        fprintf(f,
                "prog  100/100  5.%09zu:   call        55500010 main+0x10 (/bin/prog) =>     55600000 f+0x0 (/bin/prog)\n"
                "prog  100/100  5.%09zu:   return      55600020 f+0x20 (/bin/prog) =>     55500015 main+0x15 (/bin/prog)\n",
                2 * i, 2 * i + 1);
    fclose(f);
}

/* Of a pipe nobody knows how much is still to come, nor whether anything is: stopped while it is silent, what
 * came is there whole, and behind it stands a gap of unknown length. */
static void pipe_stopped(void **state)
{
    (void)state;
    for (int branches = 0; branches < 2; branches++) {
        char path[100];
        struct recording *r;
        struct watch w = {.enough_at = 1};
        struct err err;
        snprintf(path, sizeof path, "/tmp/t_open_parts.%d", (int)getpid());
        unlink(path);
        assert_int_equal(mkfifo(path, 0600), 0);
        int fd = open(path, O_RDWR | O_CLOEXEC); /* a writer that never ends */
        assert_true(fd >= 0);
        assert_true(fcntl(fd, F_SETPIPE_SZ, 1 << 20) >= 1 << 20);
        if (branches)
            write_branches(fd, 3000);
        else
            write_text(fd, 0, 5000);
        assert_int_equal(open_watched(&w, path, 1, &r, &err), 0);
        assert_int_equal(trace_check(r->trace, &err), 0);
        /* What was read, and the calls in it, is told all along. */
        assert_int_equal(w.reading.total, 0);
        assert_int_equal(w.reading.done, trace_info(r->trace)->input_bytes);
        const uint64_t spans = spans_of(branches ? r->trace : w.part[0]->trace);
        assert_in_range(w.progress.spans, spans - (branches ? 1 : 0), spans); /* the last line is known to end later */
        assert_true(w.progress.spans >= (branches ? 100 : 2));
        size_t n, last = 0;
        const struct gap *g = trace_gaps(r->trace, &n);
        for (size_t i = 0; i < n; i++)
            if (g[i].cause == GAP_NOT_DECODED)
                last = i + 1;
        assert_true(last > 0);
        assert_string_equal(g[last - 1].detail, "not decoded: cancelled");
        assert_int_equal(g[last - 1].bytes, 0);
        assert_int_equal(g[last - 1].start_ns, g[last - 1].end_ns);
        assert_int_equal(g[last - 1].end_ns, trace_info(r->trace)->last_ns);
        assert_string_equal(r->notes[0], "reading was stopped: what came after it is not shown");
        assert_string_equal(trace_info(r->trace)->partial, r->notes[0]);
        char *gaps = export(r->trace, EXPORT_GAPS);
        assert_non_null(strstr(gaps, "\tnot-decoded\tnot decoded: cancelled\n"));
        free(gaps);
        recording_free(r);
        free_parts(&w);
        close(fd);
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_of_threads), cmocka_unit_test(buffers_of_cpus),
        cmocka_unit_test(parts_stand_alone),  cmocka_unit_test(stopped),
        cmocka_unit_test(samples_in_parts),   cmocka_unit_test(samples_stopped),
        cmocka_unit_test(pipe_stopped),
    };
    return cmocka_run_group_tests(tests, record_signals, forget);
}
