/* What `perf script` prints of a hardware trace, opened as text, against the same recording opened as it
 * is: the two share the stack rules and nothing before them (perf's decoder here, mtui's own there). */
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
#include "tests/lib_open.h"
#include "lib_program.h"
#include "lib_run.h"
#include "lib_step.h"
#include "lib_step_programs.h"

/* How far perf's and our estimates between two timestamps may be apart: with CYC packets, and without. */
#define CYC_NS 200
#define MTC_NS 600

static const struct open_options plain = {.stdin_fd = -1};
static uint64_t compared, tolerance_ns;

static const char *name_of(const struct recording *r, const struct span *s)
{
    return functions_get(trace_functions(r->trace), s->fn)->name;
}

/* The times that perf printed, which never go back (for one thread, or two CPUs in turn). */
static VEC(uint64_t) stamps;

static void load_stamps(const char *text)
{
    char line[1024];
    FILE *f = fopen(text, "r");
    assert_non_null(f);
    stamps.len = 0;
    while (fgets(line, sizeof line, f)) {
        uint64_t s, ns;
        const char *bracket = strchr(line, ']');
        if (bracket && sscanf(bracket + 1, "%" SCNu64 ".%" SCNu64 ":", &s, &ns) == 2)
            vec_push(&stamps, s * 1000000000 + ns);
    }
    fclose(f);
}

/* Equal as far as perf's times are exact: near, or nothing was printed in between. */
static bool near(uint64_t a, uint64_t b)
{
    uint64_t low = (a < b ? a : b) + tolerance_ns, high = a < b ? b : a;
    size_t lo = 0, hi = stamps.len;
    if (high <= low + tolerance_ns)
        return high <= low;
    high -= tolerance_ns;
    while (lo < hi) { /* the first stamp behind low */
        size_t mid = lo + (hi - lo) / 2;
        if (stamps.data[mid] <= low)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo == stamps.len || stamps.data[lo] >= high;
}

/* Named by its address, for want of a symbol: "libx.so+0x1200". Texts of perf script do not know such functions. */
static bool named_by_address(const char *name)
{
    const char *plus = strrchr(name, '+');
    return plus && strncmp(plus, "+0x", 3) == 0 && plus[3] && strspn(plus + 3, "0123456789abcdef") == strlen(plus + 3);
}

/* What the two cannot agree on: how long tracing was off (perf stamps where it goes on with an estimate),
 * and stubs of the PLT (perf knows fewer of them than mtui, and calls them by what stands before them). */
static bool counts(const struct recording *r, const struct span *s)
{
    const struct function *f = functions_get(trace_functions(r->trace), s->fn);
    size_t n = strlen(f->name);
    return f->kind != FN_PSEUDO && f->kind != FN_UNKNOWN && strcmp(f->name, "_init") != 0 && strcmp(f->name, ".plt") != 0 &&
           !(n >= 4 && strcmp(f->name + n - 4, "@plt") == 0);
}

static const struct span *next_span(const struct recording *r, const struct span *s, const struct span *end)
{
    while (s < end && !counts(r, s))
        s++;
    return s;
}

static void compare_row(const char *what, const struct recording *a, const struct recording *b, size_t thread_a,
                        size_t thread_b, size_t depth)
{
    size_t na, nb;
    const struct span *x = trace_row(a->trace, thread_a, depth, &na), *x_end = x + na;
    const struct span *y = trace_row(b->trace, thread_b, depth, &nb), *y_end = y + nb;
    for (;; x++, y++) {
        x = next_span(a, x, x_end);
        y = next_span(b, y, y_end);
        if (x == x_end || y == y_end)
            break;
        if (strcmp(name_of(a, x), name_of(b, y)) != 0 || ((x->flags ^ y->flags) & ((1u << SPAN_FLAG_BITS) - 1)) ||
            !near(x->start_ns, y->start_ns) || !near(x->end_ns, y->end_ns))
            fail_msg("%s: depth %zu, of %zu and %zu: %s %x %" PRIu64 "-%" PRIu64 ", as text %s %x %" PRIu64 "-%" PRIu64,
                     what, depth, na, nb, name_of(a, x), x->flags, x->start_ns, x->end_ns, name_of(b, y),
                     y->flags, y->start_ns, y->end_ns);
        compared++;
    }
    if (x != x_end || y != y_end)
        fail_msg("%s: depth %zu: %s has more spans, %s at %" PRIu64, what, depth, x != x_end ? "data" : "text",
                 x != x_end ? name_of(a, x) : name_of(b, y), x != x_end ? x->start_ns : y->start_ns);
}

static void compare_gaps(const char *what, const struct recording *a, const struct recording *b)
{
    size_t na, nb;
    const struct gap *x = trace_gaps(a->trace, &na), *y = trace_gaps(b->trace, &nb);
    if (na != nb)
        fail_msg("%s: %zu gaps, as text %zu", what, na, nb);
    for (size_t i = 0; i < na; i++)
        if (x[i].cause != y[i].cause || x[i].tid != y[i].tid || !near(x[i].start_ns, y[i].start_ns) ||
            !near(x[i].end_ns, y[i].end_ns))
            fail_msg("%s: gap %zu: %s %" PRIu64 "-%" PRIu64 ", as text %s %" PRIu64 "-%" PRIu64, what, i,
                     gap_cause_name(x[i].cause), x[i].start_ns, x[i].end_ns, gap_cause_name(y[i].cause),
                     y[i].start_ns, y[i].end_ns);
}

/* Lists of branches, without their times. */
static void compare_branches(const char *what, const char *data, const char *text)
{
    const char *const paths[] = {data, text};
    char command[1024], *lists[2];
    int status;
    for (size_t i = 0; i < 2; i++) {
        snprintf(command, sizeof command,
                 "%s/mtui export -f branches %s 2>/dev/null | cut -f 2- | sed 's/\\(error\\t[^\\t]*\\).*/\\1/'",
                 getenv("MTUI_BUILD"), paths[i]);
        lists[i] = run_output(command, &status);
    }
    const char *x = lists[0], *y = lists[1];
    size_t at = 0;
    for (size_t i = 0; x[i] && x[i] == y[i]; i++)
        at = x[i] == '\n' ? i + 1 : at;
    if (strlen(x) < 1000 || strcmp(x, y) != 0)
        fail_msg("%s: branches differ: %.100s, as text %.100s", what, x + at, y + at);
    free(lists[0]);
    free(lists[1]);
}

/* Functions of stripped files are not known to the text, nor where one jumps into the next. */
static bool any_named_by_address(const struct trace *t)
{
    bool any = false;
    for (size_t i = 0; i < functions_count(trace_functions(t)); i++)
        any |= named_by_address(functions_get(trace_functions(t), (fn_id)i)->name);
    return any;
}

/* Which activation of a recursive function catches is in its exception tables, which the text has not. */
static bool needs_tables(const char *what)
{
    return strncmp(what, "exceptions outward", 18) == 0;
}

static void compare(const char *what, const char *data, const char *text)
{
    struct recording *a = open_or_fail(data, &plain), *b = open_or_fail(text, &plain);
    bool rows = !any_named_by_address(a->trace) && !needs_tables(what);
    if (!rows)
        print_message("%s: branches and gaps only, functions there are named by their addresses%s\n", what,
                      needs_tables(what) ? " or need exception tables" : "");
    assert_int_equal(trace_thread_count(a->trace), trace_thread_count(b->trace));
    for (size_t i = 0; i < trace_thread_count(a->trace); i++) {
        const struct trace_thread *t = trace_thread(a->trace, i);
        ssize_t other = trace_find_thread(b->trace, t->tid);
        assert_true(other >= 0);
        for (size_t d = 0; rows && (d < t->depths || d < trace_thread(b->trace, (size_t)other)->depths); d++)
            compare_row(what, a, b, i, (size_t)other, d);
        assert_string_equal(t->comm, trace_thread(b->trace, (size_t)other)->comm);
    }
    compare_gaps(what, a, b);
    compare_branches(what, data, text);
    recording_free(a);
    recording_free(b);
}

static void print_text(const char *data, const char *text)
{
    char command[1024];
    int status;
    snprintf(command, sizeof command,
             "perf script -i %s --itrace=be --ns -F comm,pid,tid,cpu,time,event,flags,ip,addr,sym,symoff,dso >%s "
             "2>/dev/null",
             data, text);
    free(run_output(command, &status));
    assert_int_equal(status, 0);
}

static bool chosen(const struct step_encoding *e, bool first)
{
    static const char *const all[] = {"cyc", "overflow"}, *const some[] = {"mtc", "per-cpu", "no-retcomp", "small-psb"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(e->name, all[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        if (strcmp(e->name, some[i]) == 0)
            return first;
    return false;
}

static void text_gives_the_spans_of_the_recording(void **state)
{
    (void)state;
    for (const struct step_program *p = step_programs; p->name; p++) {
        struct step_rec r;
        char data[300], text[300], what[200];
        step_rec_program(&r, p, p == step_programs ? 2 : 1);
        for (const struct step_encoding *e = step_encodings; e->name; e++) {
            if (!chosen(e, p == step_programs))
                continue;
            snprintf(data, sizeof data, "%s/%s.data", r.dir, e->name);
            snprintf(text, sizeof text, "%s/%s.txt", r.dir, e->name);
            tolerance_ns = e->packets.cyc ? CYC_NS : MTC_NS;
            snprintf(what, sizeof what, "%s, %s", p->name, e->name);
            step_rec_encode(&r, e, data);
            print_text(data, text);
            load_stamps(text);
            compare(what, data, text);
        }
        step_rec_free(&r);
    }
    vec_free(&stamps);
    assert_true(compared > 10000);
    print_message("%" PRIu64 " spans compared with those of the text\n", compared);
}

int main(void)
{
    if (getuid() != 0 || !program_have("perf")) {
        print_message("[  SKIPPED ] t_text_pt: uprobes need root or CAP_PERFMON, and there must be a perf\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_gives_the_spans_of_the_recording),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
