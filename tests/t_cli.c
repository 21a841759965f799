/* The command line: what is taken, what is refused and with which words, help and manual page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "tui/cli/cli.h"

/* Splits a line at blanks; "mtui" comes before. */
static int parse(struct cli *c, const char *line, struct err *err)
{
    static char text[512];
    static char *argv[64];
    int argc = 0;
    argv[argc++] = (char[]){"mtui"};
    snprintf(text, sizeof text, "%s", line);
    for (char *rest = text, *word; (word = strsep(&rest, " "));)
        if (*word)
            argv[argc++] = word;
    argv[argc] = NULL;
    *err = (struct err){0};
    return cli_parse(c, argc, argv, err);
}

static void takes(struct cli *c, const char *line)
{
    struct err err;
    if (parse(c, line, &err) != 0)
        fail_msg("%s: %s", line, err.text);
}

static void refuses(const char *line, const char *words)
{
    struct cli c;
    struct err err;
    if (parse(&c, line, &err) != MTUI_E_INVAL)
        fail_msg("%s was taken", line);
    if (!strstr(err.text, words))
        fail_msg("%s: \"%s\" does not say \"%s\"", line, err.text, words);
    cli_free(&c);
}

static void test_commands(void **state)
{
    (void)state;
    struct cli c;
    takes(&c, "");
    assert_int_equal(c.command, CLI_HOME);
    cli_free(&c);
    takes(&c, "--theme light --glyphs=ascii --color 16");
    assert_string_equal(c.theme, "light");
    assert_string_equal(c.glyphs, "ascii");
    assert_string_equal(c.color, "16");
    cli_free(&c);
    takes(&c, "doctor");
    assert_int_equal(c.command, CLI_DOCTOR);
    cli_free(&c);
    takes(&c, "open --snapshot all dir");
    assert_int_equal(c.command, CLI_OPEN);
    assert_string_equal(c.path, "dir");
    assert_int_equal(c.which, CLI_SNAPSHOT_ALL);
    cli_free(&c);
    takes(&c, "open -");
    assert_string_equal(c.path, "-");
    cli_free(&c);
    takes(&c, "export -f functions --tid 12 -o out --range 5:+5ms --snapshot 3 --threads 2 x");
    assert_string_equal(c.format, "functions");
    assert_string_equal(c.output, "out");
    assert_string_equal(c.range, "5:+5ms");
    assert_int_equal(c.tid, 12);
    assert_int_equal(c.which, CLI_SNAPSHOT_NUMBER);
    assert_int_equal(c.snapshot, 3);
    assert_int_equal(c.threads, 2);
    cli_free(&c);
    takes(&c, "attach --help");
    assert_true(c.help);
    cli_free(&c);
    takes(&c, "--check-theme f");
    assert_string_equal(c.check_theme, "f");
    cli_free(&c);
}

static void test_attach(void **state)
{
    (void)state;
    struct cli c;
    takes(&c,
          "attach -p 1,22 -p333 -r pt -t main -t ns::f@return -t main --slower-than 2ms --hits 5 "
          "--hold-off 1s --not-before 10ms --max-snapshots 7 -s 16M --freq 99 --call-graph dwarf "
          "--duration 3s --tid 4,5 --children --kernel --control signals -o d --timing low "
          "--batch --json --json-end --force");
    const struct session_setup *s = &c.setup;
    assert_int_equal(s->n_pids, 3);
    assert_int_equal(s->pids[1], 22);
    assert_int_equal(s->pids[2], 333);
    assert_false(s->auto_recorder);
    assert_int_equal(s->recorder, PLAN_PT);
    assert_int_equal(s->n_triggers, 2);
    assert_string_equal(s->triggers[1], "ns::f@return");
    assert_true(s->when.slower_than_ns == 2000000 && s->when.hits == 5);
    assert_true(s->when.hold_off_ns == 1000000000 && s->when.not_before_ns == 10000000);
    assert_int_equal(s->when.max_snapshots, 7);
    assert_int_equal(s->ring_bytes, 16 << 20);
    assert_int_equal(s->freq_hz, 99);
    assert_int_equal(s->call_graph, PLAN_CALL_GRAPH_DWARF);
    assert_true(s->duration_ns == 3000000000u);
    assert_int_equal(s->n_tids, 2);
    assert_true(s->children && s->kernel && s->force && c.batch && c.json && c.json_end && !c.print);
    assert_int_equal(s->control, PLAN_CONTROL_SIGNALS);
    assert_int_equal(s->timing, PLAN_TIMING_LOW);
    assert_string_equal(s->output, "d");
    assert_true(s->auto_mode);
    struct session_setup copy;
    session_setup_copy(&copy, s);
    char *again = session_setup_repeat(&copy);
    session_setup_free(&copy);
    assert_string_equal(again,
                        "mtui attach -p 1 -p 22 -p 333 -r pt -t main -t ns::f@return "
                        "--slower-than 2ms --timing low --hits 5 --hold-off 1s "
                        "--not-before 10ms --max-snapshots 7 --size 16777216 --freq 99 "
                        "--call-graph dwarf --duration 3s --tid 4 --tid 5 --children "
                        "--kernel --force --control signals -o d");
    /* What is printed is taken again, and means the same. */
    struct cli second;
    takes(&second, again + strlen("mtui "));
    char *third = session_setup_repeat(&second.setup);
    assert_string_equal(third, again);
    free(third);
    free(again);
    cli_free(&second);
    cli_free(&c);
}

static void test_run(void **state)
{
    (void)state;
    struct cli c;
    takes(&c, "run --mode whole -- prog -p 1 --help -- x");
    assert_string_equal(c.setup.argv[0], "prog");
    assert_string_equal(c.setup.argv[3], "--help");
    assert_string_equal(c.setup.argv[4], "--");
    assert_string_equal(c.setup.argv[5], "x");
    assert_null(c.setup.argv[6]);
    assert_false(c.help);
    assert_int_equal(c.setup.mode, PLAN_WHOLE);
    assert_false(c.setup.auto_mode);
    cli_free(&c);
    takes(&c, "run -t f prog --batch");
    assert_string_equal(c.setup.argv[1], "--batch");
    assert_false(c.batch);
    cli_free(&c);
}

static void test_budget(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        uint64_t instructions;
    } cases[] = {{"attach -p 1 -r step -t f --budget 3M", 3000000},
                 {"attach -p 1 -r step -t f --budget 12.5k", 12500},
                 {"attach -p 1 -r step -t f --budget=2G", 2000000000},
                 {"attach -p 1 -r step -t f --budget 700", 700}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cli c;
        takes(&c, cases[i].line);
        assert_int_equal(c.setup.budget, cases[i].instructions);
        cli_free(&c);
    }
    refuses("attach -p 1 -r step -t f --budget 0", "--budget");
    refuses("attach -p 1 -r step -t f --budget 3X", "--budget: '3X' is no count: write it as 1200, 12.4k or 3M");
    refuses("attach -p 1 -r step -t f --budget -3", "--budget");
}

static void test_refused(void **state)
{
    (void)state;
    refuses("atach -p 1", "mtui attach?");
    refuses("frobnicate", "--help");
    refuses("/dev/null", "mtui open /dev/null");
    refuses("attach", "-p PID");
    refuses("attach 123", "-p PID");
    refuses("attach -p 0", "--pid");
    refuses("attach -p 1,x", "--pid");
    refuses("attach -p 1 --triger f", "--trigger?");
    refuses("attach -p 1 --snapshot 1", "no option of attach");
    refuses("attach -p 1 -x", "-x is no option");
    refuses("attach -p 1 -r magic", "auto, pt, step, sample");
    refuses("attach -p 1 -r sampel", "did you mean sample?");
    refuses("attach -p 1 --batch=yes", "takes no value");
    refuses("attach -p 1 -t", "needs a value");
    refuses("attach -p 1 -t f --slower-than 2", "--slower-than");
    refuses("attach -p 1 --slower-than 2ms", "-t SYMBOL");
    refuses("attach -p 1 -t /(/", "--trigger");
    refuses("attach -p 1 -t f --mode ring", "--mode trigger");
    refuses("attach -p 1 --json", "--batch");
    refuses("attach -p 1 --batch --json-end", "--json");
    refuses("attach -p 1 -s 0", "--size");
    refuses("attach -p 1 --hits 0", "--hits");
    refuses("run", "mtui run [OPTIONS] -- CMD");
    refuses("run --", "mtui run [OPTIONS] -- CMD");
    refuses("run --tid 4 -- x", "--tid");
    refuses("open", "needs a recording");
    refuses("open a b", "too many");
    refuses("export x", "needs a format");
    refuses("export -f fnctions x", "did you mean functions?");
    refuses("export -f json --range 5 x", "FROM:TO");
    refuses("export -f json --snapshot first x", "--snapshot");
    refuses("doctor x", "too many");
}

static char *printed(void (*print)(FILE *out, enum cli_command command), enum cli_command command)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    print(out, command);
    fclose(out);
    return text;
}

static void print_man(FILE *out, enum cli_command command)
{
    (void)command;
    cli_print_man(out);
}

static void test_help(void **state)
{
    (void)state;
    char *all = printed(cli_print_help, CLI_HOME), *attach = printed(cli_print_help, CLI_ATTACH);
    static const char *const everything[] = {
        "--recorder auto|pt|step|sample",
        "--trigger SPEC",
        "--slower-than DURATION",
        "--mode",
        "--timing",
        "--hits N",
        "--hold-off",
        "--not-before",
        "--max-snapshots",
        "--size SIZE",
        "--freq HZ",
        "--call-graph",
        "--duration",
        "--tid",
        "--children",
        "--kernel",
        "--control",
        "--output",
        "--budget",
        "--truth",
        "--batch",
        "--json",
        "--json-end",
        "--print",
        "--force",
        "--snapshot",
        "--symfs",
        "--decoder",
        "--threads",
        "--theme",
        "--check-theme",
        "--glyphs",
        "--color",
        "--script",
        "--version",
        "--help",
        "mtui doctor",
        "mtui demo",
        "mtui open",
    };
    for (size_t i = 0; i < sizeof everything / sizeof *everything; i++)
        if (!strstr(all, everything[i]))
            fail_msg("--help does not have %s", everything[i]);
    assert_null(strstr(all, "demo-program")); /* hidden */
    assert_non_null(strstr(attach, "-p, --pid"));
    assert_null(strstr(attach, "--symfs"));
    for (const char *line = all; *line;) {
        size_t len = strcspn(line, "\n");
        if (len > 100)
            fail_msg("too wide: %.*s", (int)len, line);
        line += len + (line[len] == '\n');
    }
    char *man = printed(print_man, CLI_HOME);
    assert_non_null(strstr(man, ".SH SYNOPSIS"));
    assert_non_null(strstr(man, "\\-\\-slower\\-than DURATION"));
    free(man);
    free(attach);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands), cmocka_unit_test(test_attach), cmocka_unit_test(test_run),
        cmocka_unit_test(test_budget), cmocka_unit_test(test_refused),  cmocka_unit_test(test_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
