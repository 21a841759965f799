/* A walk through a recording of a program of someone else's, by hand as it were: python3 is stepped, and in a
 * terminal the slowest call of a function is found, compared with the median one, read in its code, measured
 * up to the next, and the range between exported in every format. What must be seen is worked out here, from the
 * list of spans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/base/vec.h"
#include "tests/lib_program.h"
#include "tests/lib_run.h"
#include "tests/lib_tmux.h"

#define PYTHON "/usr/bin/python3"
#define BUDGET 150000
#define FEW    7 /* calls: a function worth asking about has at least so many */
#define LONG   30 /* columns: longer names give way on a screen of 80 */

struct call {
    uint64_t start, end, length;
    unsigned depth;
    char name[80], flags[16], module[200];
};

struct walk {
    char *dir, *exe;
    VEC(struct call) calls; /* of all functions, by start, callers first */
    size_t slowest, next;   /* of calls */
    uint64_t n, median;     /* of its function */
    struct tmux *t;
};

/* ---- What is to be seen ---- */

static char *output(struct walk *w, const char *args)
{
    int status;
    char *command = xasprintf("%s export %s -o - %s/rec", w->exe, args, w->dir), *text = run_output(command, &status);
    assert_int_equal(status, 0);
    free(command);
    return text;
}

static void read_calls(struct walk *w)
{
    char *text = output(w, "-f spans"), *save = NULL;
    struct call c;
    for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
        if (sscanf(l, "%*d\t%u\t%" SCNu64 "\t%" SCNu64 "\t%15s\t%79[^\t]\t%199[^\n]", &c.depth, &c.start, &c.end,
                   c.flags, c.name, c.module) == 6) {
            c.length = c.end - c.start;
            vec_push(&w->calls, c);
        }
    assert_true(w->calls.len > 500);
    free(text);
}

static int by_length(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool is_plain(const struct call *c)
{
    for (const char *p = c->name; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_')
            return false;
    return strlen(c->name) < LONG && strstr(c->module, "python3") && strcmp(c->flags, "-") == 0;
}

/* Looks at the function of one call: false when it is of no use. */
static bool consider(struct walk *w, const char *name, double *best)
{
    VEC(uint64_t) lengths = {0};
    size_t slowest = SIZE_MAX, next = SIZE_MAX, as_slow = 0;
    bool plain = true;
    for (size_t i = 0; i < w->calls.len; i++) {
        const struct call *c = &w->calls.data[i];
        if (strcmp(c->name, name) != 0)
            continue;
        plain &= is_plain(c);
        vec_push(&lengths, c->length);
        if (slowest == SIZE_MAX || c->length > w->calls.data[slowest].length) {
            slowest = i;
            next = SIZE_MAX;
            as_slow = 0;
        } else if (next == SIZE_MAX) {
            next = i;
        }
        as_slow += c->length == w->calls.data[slowest].length;
    }
    qsort(lengths.data, lengths.len, sizeof *lengths.data, by_length);
    uint64_t median = lengths.data[(lengths.len - 1) / 2];
    bool settled = median == lengths.data[lengths.len / 2]; /* whichever of two is called the median */
    double ratio = median ? (double)w->calls.data[slowest].length / (double)median : 0;
    bool good = plain && settled && as_slow == 1 && next != SIZE_MAX && lengths.len >= FEW && median >= 10 &&
                ratio > *best;
    if (good) {
        *best = ratio;
        w->slowest = slowest;
        w->next = next;
        w->n = lengths.len;
        w->median = median;
    }
    vec_free(&lengths);
    return good;
}

/* The function whose slowest call is the farthest from the median one. */
static void choose_function(struct walk *w)
{
    double best = 1.5;
    bool found = false;
    for (size_t i = 0; i < w->calls.len; i++)
        if (is_plain(&w->calls.data[i]))
            found |= consider(w, w->calls.data[i].name, &best);
    assert_true(found);
}

static int record(void **state)
{
    static const char script[] = "code = compile('''\n"
                                 "class A:\n"
                                 "    def __init__(self, n): self.n = n\n"
                                 "t = ','.join(str(x) for x in sorted(range(20), key=lambda x: -x))\n"
                                 "u = [A(i).n * 3 for i in range(9)]\n"
                                 "''', 'code', 'exec')\n"
                                 "exec(code, {})\n";
    if (geteuid() != 0 || access(PYTHON, X_OK) != 0 || !program_have("tmux")) {
        print_message("SKIPPED: needs root, " PYTHON " and tmux\n");
        return 0;
    }
    struct walk *w = xcalloc(1, sizeof *w);
    const char *build = getenv("MTUI_BUILD");
    char *path = realpath(build ? build : "build/release", NULL);
    w->exe = xasprintf("%s/mtui", path);
    free(path);
    w->dir = program_mkdir();
    *state = w;
    program_write(w->dir, "t.py", script);
    if (!program_shell(w->dir,
                       "%s run -r step -t PyEval_EvalCode --budget %d --max-snapshots 1 --batch -o rec -- " PYTHON
                       " -E -S t.py > log 2>&1",
                       w->exe, BUDGET)) {
        char *log = xasprintf("%s/log", w->dir);
        fail_msg("not recorded: %s", run_read_file(log, NULL));
    }
    read_calls(w);
    choose_function(w);
    return 0;
}

static int clean_up(void **state)
{
    struct walk *w = *state;
    if (!w)
        return 0;
    if (w->t)
        tmux_free(w->t);
    program_rmdir(w->dir);
    vec_free(&w->calls);
    free(w->exe);
    free(w);
    return 0;
}

/* ---- The walk ---- */

static void command(struct walk *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void command(struct walk *w, const char *fmt, ...)
{
    char line[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    tmux_type(w->t, ":");
    tmux_type(w->t, line);
    tmux_press(w->t, "Enter");
}

static void find_and_compare(struct walk *w)
{
    const struct call *slow = &w->calls.data[w->slowest];
    char n[FMT_MAX], d[FMT_MAX], m[FMT_MAX], at[FMT_MAX];
    tmux_type(w->t, "/");
    tmux_type(w->t, "=");
    tmux_type(w->t, slow->name);
    tmux_press(w->t, "Enter");
    tmux_see(w->t, " of %s\n", fmt_count(n, w->n)); /* match 1 of N */
    tmux_type(w->t, "B");
    tmux_see(w->t, "longest of %s calls: %s insn", fmt_count(n, w->n), fmt_count(d, slow->length));
    tmux_see(w->t, "dur %s insn", d);
    tmux_type(w->t, "M");
    tmux_see(w->t, "%s: this call and the median one", slow->name);
    tmux_see(w->t, " %s insn  at %s ", d, fmt_count(at, slow->start - w->calls.data[0].start));
    tmux_see(w->t, "median %5s insn  at ", fmt_count(m, w->median));
    tmux_see(w->t, "   of %s calls", n);
    tmux_type(w->t, "qL");
    tmux_see(w->t, "calls of %s", slow->name);
    tmux_see(w->t, "%s of %s calls", n, n);
    /* The first row is the slowest; its duration stands whole. */
    tmux_see(w->t, ">%13s ", d);
    tmux_press(w->t, "Enter");
    tmux_see(w->t, "[4 ");
}

/* No source is here: the code is, from where nm says that the function begins. */
static void read_code(struct walk *w)
{
    const struct call *slow = &w->calls.data[w->slowest];
    char *address = xasprintf(">  %7" PRIx64 "  ", program_nm("/", slow->module + 1, slow->name));
    tmux_type(w->t, "i");
    tmux_see(w->t, "%s", address);
    free(address);
    tmux_type(w->t, "ii"); /* away, and without code again */
    tmux_see(w->t, " > [%s]", slow->name);
}

static void measure(struct walk *w)
{
    const struct call *slow = &w->calls.data[w->slowest], *next = &w->calls.data[w->next];
    char d[FMT_MAX], n[FMT_MAX];
    uint64_t spans = 0;
    for (size_t i = 0; i < w->calls.len; i++)
        spans += w->calls.data[i].start < next->start && w->calls.data[i].end > slow->start;
    tmux_type(w->t, "ma]");
    tmux_see(w->t, "cursor +%s insn", fmt_count(d, next->start - slow->start));
    tmux_type(w->t, "mb'av'bv");
    tmux_see(w->t, "delta %s insn", d);
    tmux_see(w->t, ": %s spans", fmt_count(n, spans));
    tmux_see(w->t, "gaps 0"); /* at 80 columns, too */
}

/* Copying goes through tmux to its clipboard. */
static void copy(struct walk *w)
{
    tmux_type(w->t, "y");
    tmux_see(w->t, "copied: %s", w->calls.data[w->next].name);
    char *text = tmux_clipboard(w->t);
    assert_string_equal(text, w->calls.data[w->next].name);
    free(text);
}

/* The weight of all stacks together is what was spent in the outermost calls. */
static void check_folded(struct walk *w, uint64_t from, uint64_t to)
{
    char *path = xasprintf("%s/out.folded", w->dir), *text = run_read_file(path, NULL), *save = NULL;
    uint64_t sum = 0, want = 0;
    assert_non_null(text);
    for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
        sum += strtoull(strrchr(l, ' ') + 1, NULL, 10);
    for (size_t i = 0; i < w->calls.len; i++) {
        const struct call *c = &w->calls.data[i];
        if (c->depth == 0 && c->start < to && c->end > from)
            want += (c->end < to ? c->end : to) - (c->start > from ? c->start : from);
    }
    assert_int_equal(sum, want);
    free(text);
    free(path);
}

static const char *const formats[] = {"json", "fxt", "folded", "functions", "spans", "gaps", "marks"};

static void export_range(struct walk *w)
{
    uint64_t from = w->calls.data[w->slowest].start, to = w->calls.data[w->next].start;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        command(w, "export %s %s/out.%s", formats[i], w->dir, formats[i]);
        tmux_see(w->t, " written to ");
        tmux_see(w->t, "%s (the range A-B", formats[i]);
    }
    /* The tables are those that the command line writes. */
    for (size_t i = 3; i < sizeof formats / sizeof *formats; i++)
        assert_true(program_shell(w->dir, "%s export -f %s --range %" PRIu64 ":%" PRIu64 " -o want rec && cmp want out.%s",
                                  w->exe, formats[i], from, to, formats[i]));
    char *reader = realpath("tests/read_trace.py", NULL);
    assert_non_null(reader);
    for (size_t i = 0; i < 2; i++)
        if (!program_shell(w->dir, PYTHON " %s %s out.%s out.functions 2> why > spans", reader, formats[i], formats[i])) {
            char *why = xasprintf("%s/why", w->dir);
            fail_msg("%s: %s", formats[i], run_read_file(why, NULL));
        }
    free(reader);
    check_folded(w, from, to);
    assert_true(program_shell(w->dir, "rm out.*"));
}

static void walk(struct walk *w, int rows, int cols)
{
    char *open = xasprintf("mkdir home && exec env -u XDG_CONFIG_HOME -u XDG_STATE_HOME HOME=%s/home LC_ALL=C.UTF-8 "
                           "%s open rec\n",
                           w->dir, w->exe);
    w->t = tmux_start(w->dir, rows, cols, open);
    free(open);
    tmux_see(w->t, "[4 Timeline]");
    tmux_see(w->t, "snap 1");
    find_and_compare(w);
    read_code(w);
    measure(w);
    copy(w);
    export_range(w);
    tmux_type(w->t, "5");
    tmux_see(w->t, " A-B\n"); /* the functions of just this range */
    tmux_free(w->t);
    w->t = NULL;
    assert_true(program_shell(w->dir, "rmdir home")); /* nothing was left in it */
}

static void through_python3(void **state)
{
    struct walk *w = *state;
    if (!w)
        skip();
    print_message("%s: %" PRIu64 " calls\n", w->calls.data[w->slowest].name, w->n);
    walk(w, 30, 100);
    walk(w, 24, 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(through_python3, record, clean_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
