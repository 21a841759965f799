/* core/doctor/capability, core/machine/pmu: what is said of this machine against what the machine itself says, and of
 * machines that are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/doctor/capability.h"
#include "core/machine/pmu.h"

static char root[64];

static void put(const char *rel, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, rel);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/mtui-cap-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *sb, int flag, struct FTW *ftw)
{
    (void)sb, (void)flag, (void)ftw;
    return remove(path);
}

static int remove_root(void **state)
{
    (void)state;
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return 0;
}

static void field_H3_cpus_of_the_pmu(void **state)
{
    (void)state;
    struct pmu_intel_pt pt;
    pmu_read_intel_pt(root, &pt);
    assert_false(pt.present);

    /* the files of a Skylake server; caps are hexadecimal */
    put("bus/event_source/devices/intel_pt/type", "8\n");
    put("bus/event_source/devices/intel_pt/caps/psb_cyc", "1\n");
    put("bus/event_source/devices/intel_pt/caps/mtc", "1\n");
    put("bus/event_source/devices/intel_pt/caps/mtc_periods", "249\n");
    put("bus/event_source/devices/intel_pt/caps/cycle_thresholds", "1fff\n");
    put("bus/event_source/devices/intel_pt/caps/psb_periods", "3f\n");
    put("bus/event_source/devices/intel_pt/caps/num_address_ranges", "2\n");
    put("bus/event_source/devices/intel_pt/caps/topa_output", "1\n");
    put("bus/event_source/devices/intel_pt/caps/ptwrite", "0\n");
    put("bus/event_source/devices/intel_pt/cpus", "0-15\n");
    pmu_read_intel_pt(root, &pt);
    assert_true(pt.present);
    assert_int_equal(pt.type, 8);
    assert_true(pt.psb_cyc && pt.mtc && pt.snapshot);
    assert_false(pt.ptwrite);
    assert_int_equal(pt.mtc_periods, 0x249); /* periods 0, 3, 6, 9 */
    assert_int_equal(pt.cycle_thresholds, 0x1fff);
    assert_int_equal(pt.psb_periods, 0x3f);
    assert_int_equal(pt.address_ranges, 2);
    assert_string_equal(pt.cpus, "0-15"); /* a hybrid machine: not every CPU has it */
}

static void limits_from_proc(void **state)
{
    (void)state;
    put("sys/kernel/perf_event_paranoid", "4\n");
    put("sys/kernel/perf_event_mlock_kb", "516\n");
    put("sys/kernel/kptr_restrict", "2\n");
    put("sys/kernel/yama/ptrace_scope", "3\n");
    struct capability_paths paths = {root, "/sys", "/nonexistent/perf"};
    struct capabilities *c = calloc(1, sizeof *c);
    capability_probe(&paths, c);
    assert_int_equal(c->paranoid, 4);
    assert_string_equal(c->line[CAP_PARANOID].value, "4");
    assert_false(c->line[CAP_KPTR].present); /* 2 hides addresses even from root */
    assert_non_null(strstr(c->line[CAP_KPTR].remedy, "kptr_restrict=0"));
    assert_false(c->line[CAP_YAMA].present); /* 3: nobody, for good */
    assert_false(c->line[CAP_PERF].present);
    assert_non_null(strstr(c->line[CAP_PERF].remedy, "MTUI_PERF"));
    assert_false(c->line[CAP_CONTROL].present);
    for (size_t i = 0; i < CAPABILITIES; i++) {
        assert_non_null(c->line[i].name);
        assert_true(c->line[i].value[0] != '\0');
        if (!c->line[i].present && i != CAP_CONTROL)
            assert_true(c->line[i].reason[0] != '\0');
    }
    free(c);
}

static void this_machine(void **state)
{
    (void)state;
    struct capability_paths paths = {"/proc", "/sys", "perf"};
    struct capabilities *c = calloc(1, sizeof *c);
    capability_probe(&paths, c);
    assert_int_equal(c->intel_pt.present,
                     access("/sys/bus/event_source/devices/intel_pt", F_OK) == 0);
    FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "r");
    int paranoid = -9;
    assert_int_equal(fscanf(f, "%d", &paranoid), 1);
    fclose(f);
    assert_int_equal(c->paranoid, paranoid);
    f = popen("perf --version", "r");
    char word[64] = "";
    assert_int_equal(fscanf(f, "perf version %63s", word), 1);
    pclose(f);
    assert_true(c->line[CAP_PERF].present);
    assert_int_equal(strncmp(c->line[CAP_PERF].value, word, strlen(word)), 0);
    if (getuid() == 0) {
        assert_true(c->line[CAP_CONTROL].present); /* every perf of Debian 12 answers */
        assert_true(c->line[CAP_STEP].present);
    }
    free(c);
}

static void a_perf_that_does_not_answer(void **state)
{
    (void)state;
    char perf[128];
    put("perf", "#!/bin/sh\n[ \"$1\" = --version ] && echo perf version 6.1.1 && exit\nexit 1\n");
    snprintf(perf, sizeof perf, "%s/perf", root);
    chmod(perf, 0700);
    struct capability_paths paths = {"/proc", "/sys", perf};
    struct capabilities *c = calloc(1, sizeof *c);
    capability_probe(&paths, c);
    assert_true(c->line[CAP_PERF].present);
    assert_false(c->line[CAP_CONTROL].present);
    assert_non_null(strstr(c->line[CAP_CONTROL].reason, "signals"));
    put("perf", "#!/bin/sh\necho perf version 5.4.9\n");
    capability_probe(&paths, c);
    assert_non_null(strstr(c->line[CAP_CONTROL].reason, "older than 5.10"));
    free(c);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(field_H3_cpus_of_the_pmu, make_root, remove_root),
        cmocka_unit_test_setup_teardown(limits_from_proc, make_root, remove_root),
        cmocka_unit_test(this_machine),
        cmocka_unit_test_setup_teardown(a_perf_that_does_not_answer, make_root, remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
