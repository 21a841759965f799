/* core/machine/perf_version, core/record/plan*, core/record/control_row: what is run for which perf. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/record/control.h"
#include "core/machine/perf_version.h"
#include "core/record/plan.h"

static struct perf_version version_of(const char *text)
{
    struct perf_version v = {0};
    char line[96];
    snprintf(line, sizeof line, "perf version %s\n", text);
    assert_int_equal(perf_version_parse(line, &v, NULL), 0);
    return v;
}

static void versions(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int major, minor;
        const char *text;
    } good[] = {
        {"perf version 6.1.187\n", 6, 1, "6.1.187"},
        {"perf version 5.4.0-rc1", 5, 4, "5.4.0-rc1"},
        {"perf version 4.19.ga1b2c3\n", 4, 19, "4.19.ga1b2c3"},
        {"perf version 6.12\n", 6, 12, "6.12"},
        {"warning: something\nperf version 5.15.167.el9.x86_64 (x)\n", 5, 15,
         "5.15.167.el9.x86_64"},
        {"perf version 5.10.\x1b[31m", 5, 10, "5.10.\\x1b[31m"},
    };
    struct perf_version v;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(perf_version_parse(good[i].line, &v, NULL), 0);
        assert_int_equal(v.major, good[i].major);
        assert_int_equal(v.minor, good[i].minor);
        assert_string_equal(v.text, good[i].text);
    }
    const char *bad[] = {"",
                         "perf",
                         "perf version ",
                         "perf version x.y",
                         "perf version 6",
                         "perf version 99999.1",
                         "bash: perf: command not found"};
    struct err err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(perf_version_parse(bad[i], &v, &err), MTUI_E_FORMAT);
    v = version_of("5.10.1");
    assert_true(perf_version_at_least(&v, 5, 10));
    assert_true(perf_version_at_least(&v, 4, 99));
    assert_false(perf_version_at_least(&v, 5, 11));
    assert_false(perf_version_at_least(&v, 6, 0));
}

static const char *fakeperf(void)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/tests/fakeperf", getenv("MTUI_BUILD"));
    return path;
}

static void probes(void **state)
{
    (void)state;
    struct perf_version v;
    struct err err;
    setenv("FAKEPERF_VERSION", "perf version 5.4.0-rc1", 1);
    assert_int_equal(perf_version_probe(fakeperf(), 20000, &v, &err), 0);
    assert_string_equal(v.text, "5.4.0-rc1");
    setenv("FAKEPERF_VERSION", "no idea", 1);
    assert_int_equal(perf_version_probe(fakeperf(), 20000, &v, &err), MTUI_E_FORMAT);
    unsetenv("FAKEPERF_VERSION");
    assert_int_equal(perf_version_probe("/nonexistent/perf", 20000, &v, &err), MTUI_E_NOENT);
    assert_non_null(strstr(err.text, "/nonexistent/perf"));
    assert_non_null(strstr(err.text, "MTUI_PERF"));
    assert_int_equal(perf_version_probe("/", 20000, &v, &err), MTUI_E_PERM);
    setenv("FAKEPERF", "hang-version", 1);
    assert_int_equal(perf_version_probe(fakeperf(), 100, &v, &err), MTUI_E_TIMEOUT);
    unsetenv("FAKEPERF");
    void (*old)(int) = signal(SIGCHLD, SIG_IGN);
    assert_int_equal(perf_version_probe(fakeperf(), 20000, &v, &err), 0);
    signal(SIGCHLD, old);
}

/* ---- the table of mechanisms ---- */

static void rows(void **state)
{
    (void)state;
    enum { CMD = 0 };
    static const struct {
        const char *perf;
        enum plan_recorder recorder;
        enum plan_mode mode;
        enum plan_control control;
        bool ctlfd;
        const char *option;
        bool can;
        int snapshot; /* signal, or CMD */
        int finish;
        enum control_confirm confirm;
    } t[] = {
        /* the design's table, pt */
        {"5.10.0", PLAN_PT, PLAN_TRIGGER, PLAN_CONTROL_AUTO, true, "--snapshot", true, CMD, CMD,
         CONTROL_CONFIRM_AUX},
        {"6.1.187", PLAN_PT, PLAN_RING, PLAN_CONTROL_AUTO, true, "--snapshot=e", false, CMD, CMD,
         CONTROL_CONFIRM_END},
        {"5.9.3", PLAN_PT, PLAN_TRIGGER, PLAN_CONTROL_AUTO, false, "--snapshot", true, SIGUSR2,
         SIGTERM, CONTROL_CONFIRM_AUX},
        {"5.4.0", PLAN_PT, PLAN_RING, PLAN_CONTROL_AUTO, false, "--snapshot=e", false, SIGUSR2,
         SIGINT, CONTROL_CONFIRM_END},
        {"5.3.1", PLAN_PT, PLAN_TRIGGER, PLAN_CONTROL_AUTO, false, "--snapshot", true, SIGUSR2,
         SIGTERM, CONTROL_CONFIRM_AUX},
        {"5.3.1", PLAN_PT, PLAN_RING, PLAN_CONTROL_AUTO, false, "--snapshot", false, SIGUSR2,
         SIGTERM, CONTROL_CONFIRM_AUX},
        {"6.1.0", PLAN_PT, PLAN_WHOLE, PLAN_CONTROL_AUTO, true, NULL, false, CMD, CMD,
         CONTROL_CONFIRM_END},
        {"6.1.0", PLAN_PT, PLAN_TRIGGER, PLAN_CONTROL_SIGNALS, false, "--snapshot", true, SIGUSR2,
         SIGTERM, CONTROL_CONFIRM_AUX},
        /* without AUX data the signal asks for the snapshot, whatever the version */
        {"6.1.0", PLAN_SAMPLE, PLAN_TRIGGER, PLAN_CONTROL_AUTO, true, NULL, true, SIGUSR2, CMD,
         CONTROL_CONFIRM_DUMP},
        {"6.1.0", PLAN_SAMPLE, PLAN_RING, PLAN_CONTROL_AUTO, true, NULL, false, SIGUSR2, CMD,
         CONTROL_CONFIRM_END},
        {"5.4.0", PLAN_SAMPLE, PLAN_TRIGGER, PLAN_CONTROL_AUTO, false, NULL, true, SIGUSR2, SIGTERM,
         CONTROL_CONFIRM_DUMP},
        {"6.1.0", PLAN_SAMPLE, PLAN_WHOLE, PLAN_CONTROL_SIGNALS, false, NULL, false, SIGUSR2,
         SIGTERM, CONTROL_CONFIRM_END},
        {"6.1.0", PLAN_STEP, PLAN_TRIGGER, PLAN_CONTROL_AUTO, true, NULL, true, CMD, CMD,
         CONTROL_CONFIRM_DUMP},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct record_plan plan = {
            .recorder = t[i].recorder, .mode = t[i].mode, .control = t[i].control};
        struct perf_version v = version_of(t[i].perf);
        struct control_row row;
        assert_int_equal(control_select(&plan, &v, &row, NULL), 0);
        assert_int_equal(row.ctlfd, t[i].ctlfd);
        assert_int_equal(row.can_snapshot, t[i].can);
        assert_int_equal(row.snapshot.signal, t[i].snapshot);
        assert_int_equal(row.finish.signal, t[i].finish);
        assert_int_equal(row.confirm, t[i].confirm);
        if (t[i].option)
            assert_string_equal(row.snapshot_option, t[i].option);
        else
            assert_null(row.snapshot_option);
        assert_true(row.fallback.signal != 0);
        if (t[i].recorder != PLAN_STEP)
            assert_non_null(strstr(row.why, t[i].perf));
    }
    struct record_plan plan = {.recorder = PLAN_PT, .control = PLAN_CONTROL_CTLFD};
    struct perf_version v = version_of("5.9.0");
    struct control_row row, fallen;
    struct err err;
    assert_int_equal(control_select(&plan, &v, &row, &err), MTUI_E_NOTSUP);
    v = version_of("6.1.0");
    plan.control = PLAN_CONTROL_AUTO;
    assert_int_equal(control_select(&plan, &v, &row, &err), 0);
    control_fall_back(&row, "because", &fallen);
    assert_false(fallen.ctlfd);
    assert_int_equal(fallen.snapshot.signal, SIGUSR2);
    assert_int_equal(fallen.finish.signal, SIGINT);
    assert_string_equal(fallen.why, "signals: because");
}

/* ---- commands ---- */

static char *command_for(const struct record_plan *plan, const char *version,
                         const struct pmu_intel_pt *caps)
{
    struct perf_version v = version_of(version);
    struct control_row row;
    struct plan_argv argv = {0};
    struct err err = {0};
    assert_int_equal(control_select(plan, &v, &row, &err), 0);
    assert_int_equal(plan_perf_argv(plan, &v, caps, &row, &argv, &err), 0);
    assert_null(argv.data[argv.len]);
    char *line = plan_format_command(&argv);
    plan_argv_free(&argv);
    return line;
}

#define assert_command(plan, version, caps, expected)                                              \
    do {                                                                                           \
        char *line_ = command_for(plan, version, caps);                                            \
        assert_string_equal(line_, expected);                                                      \
        free(line_);                                                                               \
    } while (0)

static void sample_commands(void **state)
{
    (void)state;
    pid_t pids[] = {4711, 4712};
    struct record_plan plan = {.recorder = PLAN_SAMPLE,
                               .pids = pids,
                               .n_pids = 2,
                               .sample_by_clock = true,
                               .output_dir = "/tmp/rec"};
    assert_command(&plan, "6.1.0", NULL,
                   "perf record -o /tmp/rec/perf.data --control=fd:3,4 -e cpu-clock -F 9999 "
                   "--call-graph fp --switch-events --sample-cpu -m 1024K --overwrite "
                   "--switch-output=signal -T --no-buildid-cache --no-bpf-event -p 4711,4712");
    plan.mode = PLAN_RING;
    plan.control = PLAN_CONTROL_SIGNALS;
    plan.ring_bytes = 3u << 20;
    plan.freq_hz = 500;
    plan.call_graph = PLAN_CALL_GRAPH_DWARF;
    plan.n_pids = 1;
    assert_command(&plan, "4.19.0", NULL,
                   "perf record -o /tmp/rec/perf.data -e cpu-clock -F 500 --call-graph dwarf "
                   "--switch-events --sample-cpu -m 4096K --overwrite -T --no-buildid-cache -p 4711");
    plan.mode = PLAN_WHOLE;
    plan.sample_by_clock = false;
    plan.call_graph = PLAN_CALL_GRAPH_LBR;
    plan.output_dir = "/tmp/with space";
    plan.tids = pids;
    plan.n_tids = 2;
    assert_command(&plan, "6.1.0", NULL,
                   "perf record -o '/tmp/with space/perf.data' -e cycles -F 500 --call-graph lbr "
                   "--switch-events --sample-cpu -m 4096K -T --no-buildid-cache --no-bpf-event --per-thread -t "
                   "4711,4712");
}

static void pt_commands(void **state)
{
    (void)state;
    pid_t pid = 1;
    struct record_plan plan = {.recorder = PLAN_PT,
                               .pids = &pid,
                               .n_pids = 1,
                               .output_dir = "/d",
                               .ring_bytes = 16u << 20};
    /* A Skylake: MTC periods 0, 3, 6, 9; PSB periods 0 to 5; cycle thresholds 0 to 12. */
    struct pmu_intel_pt caps = {.present = true,
                                .psb_cyc = true,
                                .mtc = true,
                                .mtc_periods = 0x249,
                                .cycle_thresholds = 0x1fff,
                                .psb_periods = 0x3f};
#define TAIL " -T --no-buildid-cache --no-bpf-event -p 1"
    assert_command(&plan, "6.1.0", &caps,
                   "perf record -o /d/perf.data --control=fd:3,4 --snapshot -e "
                   "intel_pt/cyc=1,cyc_thresh=1,mtc=1,mtc_period=3,psb_period=3/u -m ,16384K" TAIL);
    plan.timing = PLAN_TIMING_HIGH;
    plan.mode = PLAN_RING;
    assert_command(&plan, "6.1.0", &caps,
                   "perf record -o /d/perf.data --control=fd:3,4 --snapshot=e -e "
                   "intel_pt/cyc=1,cyc_thresh=1,mtc=1,mtc_period=3,psb_period=3,noretcomp=1/u -m "
                   ",16384K" TAIL);
    plan.timing = PLAN_TIMING_LOW;
    plan.mode = PLAN_WHOLE;
    plan.kernel = true;
    assert_command(&plan, "6.1.0", &caps,
                   "perf record -o /d/perf.data --control=fd:3,4 -e intel_pt/mtc=0,psb_period=3/uk "
                   "-m ,16384K --kcore" TAIL);
    /* A Broadwell: no CYC, no choice of PSB periods; MTC period 0 only; ptwrite of a later one. */
    struct pmu_intel_pt old = {.present = true, .mtc = true, .mtc_periods = 0x1, .ptwrite = true};
    plan = (struct record_plan){.recorder = PLAN_PT, .pids = &pid, .n_pids = 1, .output_dir = "/d"};
    assert_command(&plan, "5.3.0", &old,
                   "perf record -o /d/perf.data --snapshot -e "
                   "intel_pt/mtc=1,mtc_period=0,ptw=1/u -m ,4096K" TAIL);
    assert_command(&plan, "6.1.0", NULL,
                   "perf record -o /d/perf.data --control=fd:3,4 --snapshot -e intel_pt//u -m "
                   ",4096K" TAIL);
}

static void refused_plans(void **state)
{
    (void)state;
    pid_t pid = 1;
    struct perf_version v = version_of("6.1.0"), ancient = version_of("4.4.0");
    struct control_row row = {0};
    struct plan_argv argv = {0};
    struct err err;
    struct record_plan plan = {.recorder = PLAN_SAMPLE, .output_dir = "/d"};
    assert_int_equal(plan_perf_argv(&plan, &v, NULL, &row, &argv, &err), MTUI_E_INVAL);
    plan.pids = &pid;
    plan.n_pids = 1;
    plan.output_dir = NULL;
    assert_int_equal(plan_perf_argv(&plan, &v, NULL, &row, &argv, &err), MTUI_E_INVAL);
    plan.output_dir = "/d";
    plan.call_graph = PLAN_CALL_GRAPH_LBR;
    plan.sample_by_clock = true;
    assert_int_equal(plan_perf_argv(&plan, &v, NULL, &row, &argv, &err), MTUI_E_NOTSUP);
    plan.call_graph = PLAN_CALL_GRAPH_FP;
    assert_int_equal(plan_perf_argv(&plan, &ancient, NULL, &row, &argv, &err), MTUI_E_NOTSUP);
    plan.mode = PLAN_WHOLE;
    assert_int_equal(plan_perf_argv(&plan, &ancient, NULL, &row, &argv, &err), 0);
    plan_argv_free(&argv);
    plan.recorder = PLAN_STEP;
    assert_int_equal(plan_perf_argv(&plan, &v, NULL, &row, &argv, &err), MTUI_E_NOTSUP);
    assert_null(argv.data);
}

/* What a shell makes of the line is the arguments again. */
static void quoting(void **state)
{
    (void)state;
    const char *args[] = {"printf",
                          "%s\\n",
                          "a b",
                          "it's",
                          "",
                          "$HOME `x` \"q\"",
                          "tab\there",
                          "esc\x1b[31m",
                          "new\nline",
                          "\xff"
                          "f",
                          "日本",
                          "*?[",
                          "~",
                          "\xe2\x80\xae"
                          "9"};
    struct plan_argv argv = {0};
    for (size_t i = 0; i < sizeof args / sizeof *args; i++)
        plan_argv_add(&argv, args[i]);
    char *line = plan_format_command(&argv);
    for (const char *s = line; *s; s++)
        assert_true((unsigned char)*s >= 0x20 && *s != 0x7f);
    assert_null(strstr(line, "\xe2\x80\xae"));
    setenv("LINE", line, 1);
    FILE *f = popen("bash -c \"$LINE\"", "r");
    char got[512] = "", want[512] = "";
    size_t n = fread(got, 1, sizeof got - 1, f);
    got[n] = '\0';
    assert_int_equal(pclose(f), 0);
    for (size_t i = 2; i < sizeof args / sizeof *args; i++) {
        strcat(want, args[i]);
        strcat(want, "\n");
    }
    assert_string_equal(got, want);
    free(line);
    plan_argv_free(&argv);
}

/* ---- limits ---- */

static void ring_sizes(void **state)
{
    (void)state;
    struct record_plan plan = {.recorder = PLAN_SAMPLE};
    bool rounded;
    assert_int_equal(plan_ring_bytes(&plan, &rounded), 1u << 20);
    assert_false(rounded);
    plan.ring_bytes = 1;
    assert_int_equal(plan_ring_bytes(&plan, &rounded), sysconf(_SC_PAGESIZE));
    assert_true(rounded);
    plan.ring_bytes = (3u << 20) + 1;
    assert_int_equal(plan_ring_bytes(&plan, &rounded), 4u << 20);
    assert_true(rounded);
    plan.recorder = PLAN_PT;
    plan.ring_bytes = 0;
    assert_int_equal(plan_ring_bytes(&plan, &rounded), 4u << 20);
}

/* Counted by hand with 4 KiB pages: 516 KiB per CPU on 2 CPUs are 258 pages, 64 KiB of memlock 16
 * more, 137 for each of two rings; one is the control page, so 128 pages, 512 KiB, fit. */
static void field_A11_the_next_smaller_ring_is_offered(void **state)
{
    (void)state;
    struct plan_limits l = {.mlock_kb = 516, .memlock_bytes = 65536, .cpus = 2};
    struct record_plan plan = {.recorder = PLAN_SAMPLE, .ring_bytes = 64u << 20};
    struct err err;
    uint64_t fits;
    if (sysconf(_SC_PAGESIZE) != 4096)
        skip();
    assert_int_equal(plan_check_limits(&plan, &l, &fits, &err), MTUI_E_LIMIT);
    assert_int_equal(fits, 512 << 10);
    assert_non_null(strstr(err.text, "64.0M"));
    assert_non_null(strstr(err.text, "1.1M")); /* 274 pages */
    assert_non_null(strstr(err.text, "-s 512K works"));
    plan.ring_bytes = 512u << 10;
    assert_int_equal(plan_check_limits(&plan, &l, &fits, &err), 0);
    /* With pt 129 pages of each ring's share are perf's data ring: 8 are left. */
    plan = (struct record_plan){.recorder = PLAN_PT, .ring_bytes = 4u << 20};
    assert_int_equal(plan_check_limits(&plan, &l, &fits, &err), MTUI_E_LIMIT);
    assert_int_equal(fits, 8 * 4096);
    /* (258 + 2048) / 2 - 129 = 1024 pages: exactly 4 MiB. A page less of memlock, and it is half.
     */
    l.memlock_bytes = 8u << 20;
    assert_int_equal(plan_check_limits(&plan, &l, &fits, &err), 0);
    l.memlock_bytes -= 4096;
    assert_int_equal(plan_check_limits(&plan, &l, &fits, &err), MTUI_E_LIMIT);
    assert_int_equal(fits, 2u << 20);
    assert_non_null(strstr(err.text, "-s 2M works"));
}

static void exempt(void **state)
{
    (void)state;
    struct plan_limits l = {.mlock_kb = 0, .memlock_bytes = 0, .cpus = 64, .exempt = true};
    struct record_plan plan = {.recorder = PLAN_PT, .ring_bytes = 1u << 30};
    uint64_t fits;
    assert_int_equal(plan_check_limits(&plan, &l, &fits, NULL), 0);
    assert_int_equal(fits, 1u << 30);
    l.exempt = false;
    assert_int_equal(plan_check_limits(&plan, &l, &fits, NULL), MTUI_E_LIMIT);
    assert_int_equal(fits, 0);
    l.memlock_bytes = UINT64_MAX;
    assert_int_equal(plan_check_limits(&plan, &l, &fits, NULL), 0);
}

static void put_file(const char *dir, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void field_A11_limits_from_proc(void **state)
{
    (void)state;
    char dir[] = "/tmp/t_plan.XXXXXX", path[512];
    assert_non_null(mkdtemp(dir));
    struct plan_limits l;
    plan_read_limits(dir, &l); /* nothing there: the kernel's defaults */
    assert_int_equal(l.mlock_kb, 516);
    assert_false(l.exempt);
    assert_int_equal(l.cpus, sysconf(_SC_NPROCESSORS_ONLN));
    const char *subdirs[] = {"sys", "sys/kernel", "self"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, subdirs[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    put_file(dir, "sys/kernel/perf_event_mlock_kb", "1032\n");
    put_file(dir, "sys/kernel/perf_event_paranoid", "2\n");
    put_file(dir, "self/status",
             "Name:\tx\nCapInh:\t00000000ffffffff\nCapEff:\t0000000000003fff\n");
    plan_read_limits(dir, &l);
    assert_int_equal(l.mlock_kb, 1032);
    assert_false(l.exempt);
    put_file(dir, "self/status", "Name:\tx\nCapEff:\t0000000000004000\n");
    plan_read_limits(dir, &l);
    assert_true(l.exempt); /* CAP_IPC_LOCK */
    put_file(dir, "self/status", "Name:\tx\nCapEff:\t0000000000000000\n");
    put_file(dir, "sys/kernel/perf_event_paranoid", "-1\n");
    plan_read_limits(dir, &l);
    assert_true(l.exempt);
    snprintf(path, sizeof path, "rm -rf %s", dir);
    assert_int_equal(system(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions),
        cmocka_unit_test(probes),
        cmocka_unit_test(rows),
        cmocka_unit_test(sample_commands),
        cmocka_unit_test(pt_commands),
        cmocka_unit_test(refused_plans),
        cmocka_unit_test(quoting),
        cmocka_unit_test(ring_sizes),
        cmocka_unit_test(field_A11_the_next_smaller_ring_is_offered),
        cmocka_unit_test(exempt),
        cmocka_unit_test(field_A11_limits_from_proc),
    };
    unsetenv("MTUI_PERF");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
