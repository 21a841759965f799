/* Several snapshots of one ring, opened together: what two of them hold is shown once. The recording of a program
 * is cut into snapshots that overlap in every way; the spans are those of the whole, but for calls that are open
 * where one snapshot ends and the next one begins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/vec.h"
#include "core/session/snapshot_dir.h"
#include "decode/open/open.h"
#include "lib_open.h"
#include "lib_program.h"
#include "lib_run.h"
#include "lib_statistics.h"
#include "lib_step.h"
#include "lib_step_programs.h"

struct call {
    uint64_t start_ns, end_ns;
    const char *name;
    pid_t tid;
    unsigned flags;
};

typedef VEC(struct call) calls;

/* A snapshot holds percent [from, to) of each stream. */
struct part {
    unsigned from, to;
};

struct layout {
    const char *name;
    struct part parts[4];
    unsigned seams;   /* between parts that hold different things */
    bool lossy;       /* the parts do not touch at synchronisation points: something lies between them */
};

static const struct layout layouts[] = {
    {"a quarter", {{0, 60}, {35, 100}}, 1, false},
    {"wholly", {{0, 50}, {0, 100}}, 0, false},
    {"the same", {{0, 100}, {0, 100}}, 0, false},
    {"not at all", {{0, 50}, {50, 100}}, 1, true},
    {"three", {{0, 50}, {20, 80}, {45, 100}}, 2, false},
    {"wholly, then a half", {{0, 30}, {0, 60}, {40, 100}}, 1, false},
    {"two within", {{0, 20}, {0, 50}, {0, 100}}, 0, false},
};

static int by_start(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void calls_of(const struct trace *t, calls *out)
{
    for (size_t k = 0; k < trace_thread_count(t); k++)
        for (size_t d = 0; d < trace_thread(t, k)->depths; d++) {
            size_t n;
            const struct span *row = trace_row(t, k, d, &n);
            for (size_t i = 0; i < n; i++)
                vec_push(out, ((struct call){row[i].start_ns, row[i].end_ns,
                                             functions_get(trace_functions(t), row[i].fn)->raw,
                                             trace_thread(t, k)->tid, row[i].flags}));
        }
    qsort(out->data, out->len, sizeof *out->data, by_start);
}

/* Those of the whole that are not there were open at a seam; those that are there instead say so. */
static void compare(const calls *whole, const calls *all, const struct layout *l, unsigned streams)
{
    size_t i = 0, k = 0, cut = 0, pieces = 0;
    while (i < whole->len || k < all->len) {
        int c = i == whole->len ? 1 : k == all->len ? -1 : by_start(&whole->data[i], &all->data[k]);
        if (c == 0) {
            i++;
            k++;
        } else if (c < 0) {
            cut++;
            i++;
        } else {
            const struct call *p = &all->data[k++];
            if (!l->lossy && !(p->flags & (SPAN_INFERRED_START | SPAN_INFERRED_END)))
                fail_msg("%s: %s %" PRIu64 "-%" PRIu64 " is not in the whole", l->name, p->name, p->start_ns, p->end_ns);
            pieces++;
        }
    }
    print_message("%s: %zu calls, %zu cut into %zu\n", l->name, whole->len, cut, pieces);
    size_t seams = (size_t)l->seams * streams; /* at one between two windows, an empty piece of the caller is left */
    if (!l->lossy)
        assert_true(cut <= 8 * seams && pieces <= 2 * cut + seams);
    else
        assert_true(cut <= 200);
}

static void make_session(const struct step_rec *r, const struct step_encoding *e, const struct layout *l,
                         const char *session, size_t bytes)
{
    struct snapshot_dir *d = NULL;
    struct err err = {0};
    char recorder[] = "step", mode[] = "manual", path[700];
    pid_t pid = r->pid;
    struct session_info info = {.recorder = recorder, .mode = mode, .pids = &pid, .npids = 1};
    assert_int_equal(snapshot_dir_create_at(&d, session, &err), 0);
    assert_int_equal(snapshot_dir_write_info(d, &info, &err), 0);
    snapshot_dir_close(d);
    for (unsigned i = 0; i < 4 && l->parts[i].to; i++) {
        struct step_encoding part = *e;
        part.cut_head = bytes * l->parts[i].from / 100;
        part.keep = l->parts[i].to < 100 ? bytes * l->parts[i].to / 100 : 0;
        assert_true(program_shell(r->dir, "mkdir %s/snap-%u", session, i + 1));
        snprintf(path, sizeof path, "%s/snap-%u/perf.data", session, i + 1);
        step_rec_encode(r, &part, path);
    }
}

struct count {
    uint64_t n, last_ns;
};

static void on_branch(void *arg, const struct open_branch *b)
{
    struct count *c = arg;
    c->n += b->branch.kind != PT_BRANCH_BEGIN && b->branch.kind != PT_BRANCH_ERROR;
    c->last_ns = b->time_ns;
}

static uint64_t branches_of(const char *path)
{
    struct count c = {0};
    struct open_options o = {.threads = 2, .stdin_fd = -1, .snapshot = OPEN_ALL, .branch = on_branch, .branch_arg = &c};
    recording_free(open_or_fail(path, &o));
    return c.n;
}

static void check(const struct step_rec *r, const struct step_encoding *e, const struct layout *l, size_t bytes,
                  const char *whole_path, const calls *whole)
{
    char session[400];
    struct open_options o = {.threads = 2, .stdin_fd = -1, .snapshot = OPEN_ALL};
    struct err err;
    calls all = {0};
    uint64_t lost = 0, branches = branches_of(whole_path);
    size_t n;
    snprintf(session, sizeof session, "%s/session-%s", r->dir, e->name);
    make_session(r, e, l, session, bytes);
    struct recording *rec = open_or_fail(session, &o);
    if (trace_check(rec->trace, &err) < 0)
        fail_msg("%s: %s", l->name, err.text);
    const struct trace_info *info = trace_info(rec->trace);
    const struct gap *gaps = trace_gaps(rec->trace, &n);
    for (size_t i = 0; i < n; i++)
        lost += gaps[i].bytes;
    assert_int_equal(info->decoded_bytes + lost + info->repeated_bytes, info->trace_bytes);
    assert_int_equal(info->repeated_bytes > 0, !l->lossy);
    assert_int_equal(open_has_note(rec, "are shown once"), !l->lossy);
    assert_false(open_has_note(rec, "went backwards"));
    if (!l->lossy) { /* at a seam, some may be told on neither side */
        assert_int_equal(lost, 0);
        assert_in_range(branches_of(session), branches - 4 * l->seams, branches);
    }
    calls_of(rec->trace, &all);
    compare(whole, &all, l, e->per_cpu ? 2 : 1);
    statistics_check(session, &o, rec->trace);
    recording_free(rec);
    vec_free(&all);
    assert_true(program_shell(r->dir, "rm -r %s", session));
}

static void check_encoding(const struct step_rec *r, struct step_encoding e)
{
    char path[400];
    struct open_options o = {.threads = 2, .stdin_fd = -1};
    calls whole = {0};
    e.packets.psb_period = 256;
    e.repeat = 60;
    snprintf(path, sizeof path, "%s/whole.data", r->dir);
    step_rec_encode(r, &e, path);
    struct recording *rec = open_or_fail(path, &o);
    calls_of(rec->trace, &whole);
    size_t bytes = (size_t)trace_info(rec->trace)->trace_bytes / (e.per_cpu ? 2 : 1);
    assert_true(bytes > 4000);
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        check(r, &e, &layouts[i], bytes, path, &whole);
    vec_free(&whole);
    recording_free(rec);
}

static void a_threads_snapshots(void **state)
{
    check_encoding(*state, step_encodings[0]);
}

static int record(void **state)
{
    static struct step_rec r;
    step_rec_program(&r, &step_program_tiny, 2);
    *state = &r;
    return 0;
}

static int forget(void **state)
{
    step_rec_free(*state);
    return 0;
}

/* Nothing tells what two snapshots without times have in common: that is said, and the second one comes behind the
 * first. */
static void without_times(void **state)
{
    const struct step_rec *r = *state;
    static const struct layout twice = {"the same", {{0, 100}, {0, 100}}, 0, false};
    struct step_encoding e = {.name = "timeless", .packets = {.ret_compression = true, .psb_period = 256}, .repeat = 60};
    struct open_options one = {.threads = 2, .stdin_fd = -1}, all = one;
    char session[400];
    size_t len;
    free(step_rec_packets(r, &e, &len));
    snprintf(session, sizeof session, "%s/session-timeless", r->dir);
    make_session(r, &e, &twice, session, len);
    all.snapshot = OPEN_ALL;
    struct recording *last = open_or_fail(session, &one), *both = open_or_fail(session, &all);
    assert_false(open_has_note(last, "what two snapshots have in common"));
    assert_true(open_has_note(both, "what two snapshots have in common is not found"));
    assert_false(open_has_note(both, "went backwards"));
    calls x = {0}, y = {0};
    calls_of(last->trace, &x);
    calls_of(both->trace, &y);
    assert_true(x.len > 100);
    assert_int_equal(y.len, 2 * x.len);
    uint64_t shift = trace_info(last->trace)->last_ns;
    assert_int_equal(trace_info(both->trace)->last_ns, 2 * shift);
    for (size_t i = 0; i < x.len; i++) /* each of them once more, as long */
        assert_int_equal(y.data[x.len + i].end_ns - y.data[x.len + i].start_ns,
                         y.data[i].end_ns - y.data[i].start_ns);
    vec_free(&x);
    vec_free(&y);
    recording_free(last);
    recording_free(both);
    assert_true(program_shell(r->dir, "rm -r %s", session));
}

/* Two CPUs, between which two threads move. */
static void the_snapshots_of_cpus(void **state)
{
    for (const struct step_encoding *e = step_encodings; e->name; e++)
        if (e->per_cpu)
            check_encoding(*state, *e);
}

int main(void)
{
    if (getuid() != 0) {
        print_message("[  SKIPPED ] t_pt_snapshots: uprobes need root or CAP_PERFMON\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_threads_snapshots), cmocka_unit_test(the_snapshots_of_cpus),
                                       cmocka_unit_test(without_times)};
    return cmocka_run_group_tests(tests, record, forget);
}
