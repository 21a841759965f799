/* The questions people bring to a trace, answered on a terminal by the keys they press: a program is stepped for
 * real, its slowest call found and compared with the median one, read in the source, measured between two marks,
 * and its range exported for other tools. What the screens say is checked against the program's source and
 * against the spans as `mtui export` lists them. */
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

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "tests/lib_program.h"
#include "tests/lib_pty.h"
#include "tests/lib_run.h"

#define SOON  100000 /* ms: a deadline, not a delay */
#define ITEMS 9
#define SLOW  5 /* the call that does more, of item(10) … item(18) */

/* item() is on line 7, and calls leaf() on line 9. */
static const char source[] = "__attribute__((noinline)) int leaf(int n)\n"
                             "{\n"
                             "    volatile int s = 0;\n"
                             "    for (int i = 0; i < n; i++) s += i;\n"
                             "    return s;\n"
                             "}\n"
                             "__attribute__((noinline)) int item(int n)\n"
                             "{\n"
                             "    return leaf(n) + 1;\n"
                             "}\n"
                             "__attribute__((noinline)) int work(void)\n"
                             "{\n"
                             "    int t = 0;\n"
                             "    for (int i = 0; i < 9; i++) t += item(i == 5 ? 400 : 10 + i);\n"
                             "    return t;\n"
                             "}\n"
                             "int main(void) { return work() == 0; }\n";

static char *mtui(void)
{
    const char *build = getenv("MTUI_BUILD");
    char *path = realpath(build ? build : "build/release", NULL), *out = xasprintf("%s/mtui", path);
    free(path);
    return out;
}

/* A recording of one call of work(), in DIR/rec. */
static char *record(const char *exe)
{
    if (geteuid() != 0 || !program_have("cc")) {
        print_message("SKIPPED: stepping from a trigger needs root, and the program a compiler\n");
        skip();
    }
    char *dir = program_mkdir();
    program_write(dir, "prog.c", source);
    assert_true(program_build(dir, "prog.c", "prog", "-g -O1 -fno-inline -fno-optimize-sibling-calls -fno-ipa-cp"));
    if (!program_shell(dir, "%s run -r step -t work --max-snapshots 1 --batch -o rec -- ./prog > log 2>&1", exe)) {
        char *path = xasprintf("%s/log", dir);
        fail_msg("not recorded: %s", run_read_file(path, NULL));
    }
    return dir;
}

/* Start and length of each item(), from the list of spans. */
static size_t list_items(const char *exe, const char *dir, uint64_t start[ITEMS], uint64_t length[ITEMS])
{
    int status;
    char *command = xasprintf("%s export -f spans -o - %s/rec", exe, dir), *save = NULL;
    char *text = run_output(command, &status);
    size_t n = 0;
    for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
        uint64_t from, to;
        char flags[64], name[64];
        if (sscanf(l, "%*d\t%*u\t%" SCNu64 "\t%" SCNu64 "%63[^a-z]%63s", &from, &to, flags, name) < 4 ||
            !strstr(l, "\titem\t") || n == ITEMS)
            continue;
        start[n] = from;
        length[n++] = to - from;
    }
    free(text);
    free(command);
    return n;
}

static char *screen(const char *dir, const char *name)
{
    char *path = xasprintf("%s/%s", dir, name), *text = run_read_file(path, NULL);
    if (!text)
        fail_msg("no screen %s", path);
    free(path);
    return text;
}

__attribute__((format(printf, 3, 4))) static void assert_on(const char *dir, const char *name,
                                                            const char *fmt, ...)
{
    char want[200], *text = screen(dir, name);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(want, sizeof want, fmt, ap);
    va_end(ap);
    if (!strstr(text, want))
        fail_msg("no '%s' on %s:\n%s", want, name, text);
    free(text);
}

/* Opens the recording and does what the script says; every "%s" in it is DIR. */
static void browse(const char *exe, const char *dir, const char *script)
{
    char *text = NULL, *rec = xasprintf("%s/rec", dir), *path = xasprintf("%s/script", dir);
    size_t len;
    FILE *f = open_memstream(&text, &len);
    for (const char *p = script, *next; *p; p = next) {
        next = strstr(p, "%s");
        fprintf(f, "%.*s%s", next ? (int)(next - p) : (int)strlen(p), p, next ? dir : "");
        next = next ? next + 2 : p + strlen(p);
    }
    fclose(f);
    program_write(dir, "script", text);
    char *argv[] = {(char *)(uintptr_t)exe, (char[]){"open"}, rec, (char[]){"--script"}, path, NULL};
    const char *env[] = {"TZ=UTC", NULL};
    struct pty *p = pty_start(env, argv, 40, 100);
    if (!pty_wait(p, "<<EXIT 0 modes=same>>", SOON))
        fail_msg("the script stopped: %s", p->text + (p->text_len > 3000 ? p->text_len - 3000 : 0));
    /* OSC 52: the terminal's clipboard gets "item", as base64 has it. */
    static const char clipboard[] = "\033]52;c;aXRlbQ==\033\\";
    assert_non_null(memmem(p->raw, p->raw_len, clipboard, sizeof clipboard - 1));
    pty_free(p);
    free(path);
    free(rec);
    free(text);
}

static const char checker[] =
    "import json, sys\n"
    "calls, open_ = {}, {}\n"
    "for e in json.load(open(sys.argv[1]))['traceEvents']:\n"
    "    if e['ph'] != 'X': continue\n"
    "    ts, end = round(e['ts'] * 1000), round((e['ts'] + e['dur']) * 1000)\n"
    "    s = open_.setdefault(e['tid'], [])\n"
    "    while s and s[-1] <= ts: s.pop()\n"
    "    assert not s or end <= s[-1], e\n"
    "    s.append(end)\n"
    "    calls[e['name']] = calls.get(e['name'], 0) + 1\n"
    "want = {}\n"
    "for l in open(sys.argv[2]).read().split('\\n')[1:]:\n"
    "    if l: want[l.split('\\t')[7]] = int(l.split('\\t')[0])\n"
    "assert calls == want, (calls, want)\n"
    "assert want['item'] >= 1 and want['leaf'] >= 1\n";

/* The exported range is what another program reads of it, call for call. */
static void check_exports(const char *dir)
{
    assert_true(program_shell(dir, "test -s range.json && test -s range.tsv"));
    if (!program_have("python3")) {
        print_message("SKIPPED: no python3 to read JSON with\n");
        return;
    }
    program_write(dir, "check.py", checker);
    if (!program_shell(dir, "python3 check.py range.json range.tsv 2> check.log")) {
        char *path = xasprintf("%s/check.log", dir);
        fail_msg("%s", run_read_file(path, NULL));
    }
}

static void slowest_call_is_found_compared_and_measured(void **state)
{
    (void)state;
    char *exe = mtui(), *dir = record(exe), d[FMT_MAX];
    uint64_t start[ITEMS], length[ITEMS];
    assert_int_equal(list_items(exe, dir, start, length), ITEMS);
    for (size_t i = 0; i < ITEMS; i++)
        assert_true(i == SLOW || length[i] < length[SLOW]);
    browse(exe, dir,
           "wait trace 100s\n"
           "wait screen timeline 100s\n"
           "key / = i t e m Enter\n"
           "wait selection item 100s\n"
           "key B\n" /* the slowest */
           "wait text \"longest of 9 calls\" 100s\n"
           "wait text prog.c:7 100s\n"
           "save-screen %s/slowest\n"
           "key y\n"
           "key i\n" /* with the source */
           "wait text \"return leaf(n) + 1;\" 100s\n"
           "save-screen %s/source\n"
           "key m a\n"
           "key ]\n" /* the next one */
           "key m b\n"
           "save-screen %s/marked\n"
           "key \"'\" a\n"
           "key v\n"
           "key \"'\" b\n"
           "key v\n"
           "wait text delta 100s\n"
           "save-screen %s/range\n"
           "export json %s/range.json\n"
           "wait text \"written\" 100s\n"
           "export functions %s/range.tsv\n"
           "wait text \"range.tsv\" 100s\n"
           "key Esc\n"
           "key B\n"
           "key L\n"
           "wait screen calls 100s\n"
           "wait text \"9 of 9 calls\" 100s\n"
           "save-screen %s/calls\n"
           "key M\n"
           "wait compare 100s\n"
           "save-screen %s/compare\n"
           "key Enter\n"
           "wait screen timeline 100s\n"
           "quit\n");
    assert_on(dir, "slowest", "longest of 9 calls: %s insn", fmt_count(d, length[SLOW]));
    assert_on(dir, "slowest", "main > work > [item]");
    assert_on(dir, "source", "return leaf(n) + 1;");
    assert_on(dir, "range", "delta %s insn", fmt_count(d, start[SLOW + 1] - start[SLOW]));
    assert_on(dir, "marked", "mark b");
    assert_on(dir, "calls", "9 calls");
    assert_on(dir, "calls", "%s insn", fmt_count(d, length[SLOW]));
    /* leaf() took the time: the first row of the comparison. Each item has one. */
    char *text = screen(dir, "compare"), *first = strstr(text, "+");
    assert_non_null(first);
    char *end = strchr(first, '\n');
    assert_non_null(end);
    *end = '\0';
    assert_non_null(strstr(first, "leaf"));
    free(text);
    /* item(10) … item(18) without item(15), and the slow one: item(14) is in the middle. */
    assert_on(dir, "compare", "median %5s insn", fmt_count(d, length[4]));
    check_exports(dir);
    program_rmdir(dir);
    free(exe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slowest_call_is_found_compared_and_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
