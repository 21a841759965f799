/* core/trigger/probe and what is below it: real probes in a real program, with counts that the program
 * knows; they come, change and go. Threads and processes that come and go: t_probe_threads.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/trigger/hwbreak.h"
#include "core/trigger/perf_clock.h"
#include "core/trigger/probe.h"
#include "core/trigger/uprobe.h"
#include "tests/lib_probe.h"

static void counts_calls_and_registers(void **state)
{
    (void)state;
    EACH_MECHANISM(m)
    {
        struct probe_seen s;
        struct victim v = victim_start("victim");
        probe_seen_arm(&s, m, &v, false);
        assert_int_equal(victim_do(&v, s.loop, "call 100"), 100);
        probe_seen_settle(&s);
        assert_int_equal(s.hits, 100);
        assert_int_equal(s.unordered, 0);
        assert_int_equal(s.last.arg[0], 99);
        assert_int_equal(s.last.arg[1], 100);
        assert_int_equal(s.last.ip, v.traced);
        assert_int_equal(s.last.pid, v.pid);
        assert_int_equal(s.last.tid, v.pid);
        assert_int_equal(s.last.trigger, 5);
        assert_int_equal(s.last.sp % 16, 8); /* the ABI's alignment at an entry */
        assert_true(s.last.noticed_ns >= s.last.time_ns);
        struct probe_stats st;
        probe_stats(s.probe, &st);
        assert_int_equal(st.lost, 0);
        assert_int_equal(st.threads, 1);
        assert_int_equal(st.mechanism, m->options.mechanism);
        probe_seen_disarm(&s);
        victim_kill(&v);
    }
}

static bool original_byte(void *arg)
{
    struct victim *v = arg;
    return victim_byte(v->pid, v->traced) != 0xcc;
}

static void end_and_disarm(void **state)
{
    (void)state;
    EACH_MECHANISM(m)
    {
        struct probe_seen s;
        struct victim v = victim_start("victim");
        int byte = victim_byte(v.pid, v.traced);
        probe_seen_arm(&s, m, &v, false);
        if (m->options.mechanism == PROBE_UPROBE)
            assert_int_equal(victim_byte(v.pid, v.traced), 0xcc);
        probe_seen_disarm(&s);
        s.loop = loop_new();
        assert_true(loop_until_true(s.loop, original_byte, &v));
        assert_int_equal(victim_byte(v.pid, v.traced), byte);
        assert_int_equal(victim_do(&v, s.loop, "call 9"), 9); /* lives on */
        loop_free(s.loop);

        probe_seen_arm(&s, m, &v, false);
        victim_kill(&v);
        assert_true(loop_until(s.loop, &s.processes_ended, 1));
        struct err err = {0};
        assert_int_equal(probe_set_sites(s.probe, v.pid, NULL, 0, &err), MTUI_E_GONE);
        probe_seen_disarm(&s);
    }
}

/* The tracer is killed: nothing stays in the target. */
static void tracer_is_killed(void **state)
{
    (void)state;
    EACH_MECHANISM(m)
    {
        struct victim v = victim_start("victim");
        int byte = victim_byte(v.pid, v.traced);
        int ready[2];
        assert_int_equal(pipe(ready), 0);
        pid_t tracer = fork();
        if (tracer == 0) {
            struct probe_seen s;
            probe_seen_arm(&s, m, &v, false);
            if (write(ready[1], "x", 1) != 1)
                _exit(1);
            pause();
        }
        char c;
        assert_int_equal(read(ready[0], &c, 1), 1);
        if (m->options.mechanism == PROBE_UPROBE)
            assert_int_equal(victim_byte(v.pid, v.traced), 0xcc);
        kill(tracer, SIGKILL);
        waitpid(tracer, NULL, 0);
        close(ready[0]);
        close(ready[1]);
        struct loop *loop = loop_new();
        assert_true(loop_until_true(loop, original_byte, &v));
        assert_int_equal(victim_byte(v.pid, v.traced), byte);
        assert_int_equal(victim_do(&v, loop, "threads 3 5"), 15);
        assert_int_equal(victim_do(&v, loop, "fork 2 1"), 17);
        loop_free(loop);
        victim_kill(&v);
    }
}

static void sites_change_without_a_gap(void **state)
{
    (void)state;
    EACH_MECHANISM(m)
    {
        struct probe_seen s;
        char path[64];
        struct err err = {0};
        struct victim v = victim_start("victim");
        probe_seen_arm(&s, m, &v, false);
        struct probe_site two[2] = {probe_site_of(&v, path, sizeof path), probe_site_of(&v, path, sizeof path)};
        two[1].trigger = 6;
        victim_send(&v, "call 3000");
        for (size_t i = 0; i < 6; i++)
            assert_int_equal(probe_set_sites(s.probe, v.pid, two, 1 + i % 2, &err), 0);
        victim_wait(&v, s.loop);
        probe_seen_settle(&s);
        victim_do(&v, s.loop, "call 1"); /* a loss is told before the next record */
        probe_seen_settle(&s);
        struct probe_stats st;
        probe_stats(s.probe, &st);
        print_message("  %d hits, %d lost\n", (int)s.hits, (int)st.lost);
        assert_true(s.hits + st.lost >= 3001); /* the second site adds some */
        /* A refusal changes nothing. */
        struct probe_site bad = two[0];
        bad.path = "/nonexistent/file";
        bad.addr = 0;
        if (m->options.mechanism == PROBE_UPROBE) {
            assert_int_equal(probe_set_sites(s.probe, v.pid, &bad, 1, &err), MTUI_E_NOENT);
            assert_non_null(strstr(err.text, "victim!traced"));
        }
        probe_seen_disarm(&s);
        victim_kill(&v);
    }
}

/* Where another function of the victim's is, seen from traced(), by nm. */
static long distance_from_traced(const char *name)
{
    unsigned long at[2] = {0};
    const char *names[2] = {name, "traced"};
    char *exe = victim_path("victim");
    for (size_t i = 0; i < 2; i++) {
        char *command = NULL;
        assert_true(asprintf(&command, "nm '%s' | awk '$3 == \"%s\" {print $1}'", exe, names[i]) > 0);
        char *text = command_output(command);
        assert_int_equal(sscanf(text, "%lx", &at[i]), 1);
        free(text);
        free(command);
    }
    free(exe);
    return (long)at[0] - (long)at[1];
}

static uint32_t events_held(const struct probe_seen *s)
{
    struct probe_stats st;
    probe_stats(s->probe, &st);
    return st.events;
}

/* The places of a trigger in one file: each hit says of which it is, and of a place that is mapped twice there is one;
 * with links they take one descriptor. */
static void places_of_one_file(void **state)
{
    (void)state;
    struct utsname u;
    int major = 0, minor = 0;
    assert_int_equal(uname(&u), 0);
    assert_int_equal(sscanf(u.release, "%d.%d", &major, &minor), 2);
    bool new_kernel = major > 6 || (major == 6 && minor >= 12);
    long away = distance_from_traced("recursive");
    EACH_MECHANISM(m)
    {
        struct probe_seen s;
        char path[64];
        struct err err = {0};
        struct victim v = victim_start("victim");
        int byte = victim_byte(v.pid, v.traced);
        probe_seen_arm(&s, m, &v, false);
        uint32_t before = events_held(&s);
        struct probe_site sites[3];
        for (size_t i = 0; i < 3; i++)
            sites[i] = probe_site_of(&v, path, sizeof path);
        sites[0].member = 1;
        sites[1].member = 2;
        sites[1].addr += (uint64_t)away;
        sites[1].offset += (uint64_t)away;
        sites[2].addr += 1 << 20;
        size_t n = m->options.mechanism == PROBE_HWBREAK ? 2 : 3;
        assert_int_equal(probe_set_sites(s.probe, v.pid, NULL, 0, &err), 0);
        assert_int_equal(probe_set_sites(s.probe, v.pid, sites, n, &err), 0);
        assert_int_equal(events_held(&s) - before, m == probe_mechanisms && new_kernel ? 0 : 1);
        victim_do(&v, s.loop, "call 3");
        probe_seen_settle(&s);
        assert_int_equal(s.hits, 3);
        assert_int_equal(s.last.member, 1);
        victim_do(&v, s.loop, "recurse 4");
        probe_seen_settle(&s);
        assert_int_equal(s.hits, 7);
        assert_int_equal(s.last.member, 2);
        /* One of them goes. */
        assert_int_equal(probe_set_sites(s.probe, v.pid, sites + 1, 1, &err), 0);
        victim_do(&v, s.loop, "call 3");
        victim_do(&v, s.loop, "recurse 4");
        probe_seen_settle(&s);
        assert_int_equal(s.hits, 11);
        assert_int_equal(probe_set_sites(s.probe, v.pid, NULL, 0, &err), 0);
        assert_true(loop_until_true(s.loop, original_byte, &v));
        assert_int_equal(victim_byte(v.pid, v.traced), byte);
        probe_seen_disarm(&s);
        victim_kill(&v);
    }
}

/* The kernel refuses a uprobe on a lock prefix: said, or mended by a hardware breakpoint. */
static void lock_prefix(void **state)
{
    (void)state;
    char path[64];
    struct err err = {0};
    struct victim v = victim_start("victim");
    struct probe_site site = probe_site_of(&v, path, sizeof path);
    long away = distance_from_traced("locked_entry");
    site.addr += (uint64_t)away;
    site.offset += (uint64_t)away;
    for (int i = 0; i < 2; i++) {
        struct probe_seen s = {.loop = loop_new()};
        struct probe_options options = {.mechanism = i ? PROBE_AUTO : PROBE_UPROBE};
        assert_int_equal(probe_new(s.loop, &options, &probe_seen_callbacks, &s, &s.probe, &err), 0);
        assert_int_equal(probe_watch(s.probe, v.pid, &err), 0);
        int rc = probe_set_sites(s.probe, v.pid, &site, 1, &err);
        if (i == 1 && probe_mechanisms[2].works) {
            assert_int_equal(rc, 0);
            victim_do(&v, s.loop, "locked 20");
            probe_seen_settle(&s);
            assert_int_equal(s.hits, 20);
        } else {
            assert_int_equal(rc, MTUI_E_NOTSUP);
            assert_non_null(strstr(err.text, "lock prefix"));
        }
        probe_seen_disarm(&s);
    }
    victim_kill(&v);
}

/* Descriptors are counted first: arming fails as a whole, with the figures. */
static void too_few_descriptors(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    int ready[2], status = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t tracer = fork(); /* a process of its own, since the hard limit cannot go up again */
    if (tracer == 0) {
        struct probe_seen s = {.loop = loop_new()};
        char path[64];
        struct err err = {0};
        struct rlimit limit = {120, 120};
        struct probe_options options = {.mechanism = PROBE_UPROBE, .no_bpf = true};
        struct probe_site sites[100];
        int rc = probe_new(s.loop, &options, &probe_seen_callbacks, &s, &s.probe, &err);
        if (rc == 0)
            rc = probe_watch(s.probe, v.pid, &err);
        setrlimit(RLIMIT_NOFILE, &limit);
        for (int i = 0; i < 100; i++)
            sites[i] = probe_site_of(&v, path, sizeof path);
        if (rc == 0)
            rc = probe_set_sites(s.probe, v.pid, sites, 100, &err);
        _exit(rc == MTUI_E_LIMIT && strstr(err.text, "100 file descriptors") ? 42 : 1);
    }
    waitpid(tracer, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
    victim_kill(&v);
}

static void clock_is_perfs(void **state)
{
    (void)state;
    struct perf_clock *c = NULL;
    struct err err = {0};
    if (perf_clock_new(&c, &err) != 0)
        fail_msg("%s", err.text);
    uint64_t last = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t now = perf_clock_now_ns(c);
        assert_true(now > last);
        last = now;
    }
    perf_clock_free(c);
    assert_int_equal(perf_clock_now_ns(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probe_some_mechanism_works),
        cmocka_unit_test(clock_is_perfs),
        cmocka_unit_test(counts_calls_and_registers),
        cmocka_unit_test(end_and_disarm),
        cmocka_unit_test(tracer_is_killed),
        cmocka_unit_test(sites_change_without_a_gap),
        cmocka_unit_test(places_of_one_file),
        cmocka_unit_test(lock_prefix),
        cmocka_unit_test(too_few_descriptors),
    };
    return cmocka_run_group_tests(tests, probe_find_mechanisms, NULL);
}
