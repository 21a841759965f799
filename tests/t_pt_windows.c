/* One function stepped at many calls from different callers, some of them interrupted by a signal, in one
 * file: what the spans say is what the stack pointers of the truth say, and nothing is said about the time
 * between the windows. */
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
#include "decode/open/open.h"
#include "lib_program.h"
#include "lib_step.h"
#include "lib_step_symbols.h"
#include "lib_statistics.h"

#define WINDOWS 12

static const char source[] =
    "#include <signal.h>\n#include <unistd.h>\n"
    "volatile int n, k, caught;\n"
    "__attribute__((noinline)) int leaf(int x) { n += x; return n; }\n"
    "__attribute__((noinline)) void handler(int s) { caught += leaf(s) & 1; }\n"
    "__attribute__((noinline)) int target(int x) { leaf(x); if (++k % 3 == 0) raise(SIGUSR1); return leaf(x) + 1; }\n"
    "__attribute__((noinline)) int one(int x) { return target(x) + leaf(1); }\n"
    "__attribute__((noinline)) int two(int x) { int r = target(x); leaf(2); return r + one(r); }\n"
    "__attribute__((constructor)) void init(void) { signal(SIGUSR1, handler); }\n"
    STEP_MAIN("one(1); two(2); one(3)");

/* A stretch of the truth, and the function that its call of the target returned into. */
struct window {
    uint64_t from, to, entry_sp, ret;
    const char *caller;
    bool handler; /* a signal came */
};
static VEC(struct window) windows;

/* By nm; the program's code lies in its file where it says. */
static const char *caller_at(const struct step_rec *r, uint64_t ip, uint64_t clock)
{
    static const char *const names[] = {"one", "two"};
    const struct step_code_map *m = step_rec_map(r, ip, clock);
    const char *found = NULL;
    uint64_t best = 0;
    assert_non_null(m);
    for (size_t i = 0; i < 2; i++) {
        uint64_t at = program_nm(r->dir, "t", names[i]);
        if (at <= ip - m->start + m->pgoff && at > best) {
            best = at;
            found = names[i];
        }
    }
    assert_non_null(found);
    return found;
}

static void read_truth(const struct step_rec *r, const struct step_symbols *s)
{
    for (size_t i = 0; i < r->n_branches; i++) {
        const struct step_branch *b = &r->branches[i];
        bool begins = strcmp(b->kind, "begin") == 0;
        if (begins && step_symbols_is(s, b->to, b->clock, "target")) /* a handler goes back behind its start */
            vec_push(&windows, ((struct window){.from = b->clock}));
        struct window *w = &windows.data[windows.len - 1];
        w->to = b->clock;
        w->handler |= begins && step_symbols_is(s, b->to, b->clock, "handler");
        /* The outermost return leaves the stack higher than every other branch. */
        if (strcmp(b->kind, "return") == 0 && b->sp > w->entry_sp) {
            w->entry_sp = b->sp;
            w->ret = b->to;
        }
    }
    for (size_t i = 0; i < windows.len; i++)
        windows.data[i].caller = caller_at(r, windows.data[i].ret, windows.data[i].to);
}

static void check_windows(const struct trace *t)
{
    size_t n, targets = 0, callers = 0, handlers = 0;
    assert_int_equal(trace_thread_count(t), 1);
    for (size_t d = 0; d < trace_thread(t, 0)->depths; d++) {
        const struct span *row = trace_row(t, 0, d, &n);
        for (size_t i = 0; i < n; i++) {
            const struct function *f = functions_get(trace_functions(t), row[i].fn);
            const struct window *w = windows.data, *end = w + windows.len;
            if (f->kind == FN_PSEUDO || row[i].start_ns >= end[-1].to) /* the truth may stop a window earlier */
                continue;
            while (w < end && (row[i].start_ns < w->from || row[i].end_ns > w->to))
                w++;
            if (w == end)
                fail_msg("%s %" PRIu64 "-%" PRIu64 " at depth %zu is in no window", f->raw, row[i].start_ns,
                         row[i].end_ns, d);
            if (d == 0) {
                assert_string_equal(f->raw, w->caller);
                callers++;
            }
            if (strcmp(f->raw, "target") == 0) {
                assert_int_equal(d, 1);
                targets++;
            }
            handlers += strcmp(f->raw, "handler") == 0;
            assert_true(d < 12);
        }
    }
    assert_int_equal(targets, windows.len);
    assert_int_equal(callers, windows.len);
    for (size_t i = 0; i < windows.len; i++)
        handlers -= windows.data[i].handler;
    assert_int_equal(handlers, 0);
}

static void windows_are_what_the_stack_pointers_say(void **state)
{
    struct step_rec r;
    struct recording *rec;
    struct open_options o = {.threads = 1, .stdin_fd = -1};
    struct err err;
    size_t interrupted = 0, of_two = 0;
    (void)state;
    step_rec_make(&r, source, false, "-O1", "target", WINDOWS);
    struct step_symbols *s = step_symbols_new(&r);
    read_truth(&r, s);
    assert_int_equal(windows.len, WINDOWS);
    for (size_t i = 0; i < windows.len; i++) {
        interrupted += windows.data[i].handler;
        of_two += strcmp(windows.data[i].caller, "two") == 0;
    }
    assert_in_range(interrupted, 1, WINDOWS - 1);
    assert_in_range(of_two, 1, WINDOWS - 1);
    if (open_recording(&rec, r.data, &o, &err) < 0 || trace_check(rec->trace, &err) < 0)
        fail_msg("%s", err.text);
    check_windows(rec->trace);
    assert_true(statistics_check(r.data, &o, rec->trace));
    print_message("%zu windows, %zu of them with a handler, %zu called by two()\n", windows.len, interrupted, of_two);
    recording_free(rec);
    step_symbols_free(s);
    step_rec_free(&r);
    vec_free(&windows);
}

int main(void)
{
    if (getuid() != 0) {
        print_message("[  SKIPPED ] t_pt_windows: uprobes need root or CAP_PERFMON\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(windows_are_what_the_stack_pointers_say)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
