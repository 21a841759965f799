/* core/trigger/probe where threads and processes come and go: threads born while a probe is armed, fork, exec,
 * first threads that end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/trigger/probe.h"
#include "tests/lib_probe.h"

/* B1: threads that exist, threads that come later. */
static void field_B1_every_thread(void **state)
{
    (void)state;
    EACH_MECHANISM(m)
    {
        struct probe_seen s;
        struct victim v = victim_start("victim");
        probe_seen_arm(&s, m, &v, false);
        struct probe_stats st;
        probe_stats(s.probe, &st);
        long calls = victim_do(&v, s.loop, "threads 8 200");
        assert_int_equal(calls, 1600);
        probe_seen_settle(&s);
        if (st.covers_births)
            assert_int_equal(s.hits, 1600);
        else
            assert_true(s.hits <= 1600); /* short threads may end before they are covered */
        assert_int_equal(s.born, 8);
        assert_true(s.ended <= 8); /* those that were watched before they ended */
        assert_string_equal(s.trouble, "");
        assert_int_equal(victim_do(&v, s.loop, "nested 5"), 1605);
        probe_seen_settle(&s);
        if (st.covers_births)
            assert_int_equal(s.hits, 1605);
        assert_true(s.born >= 9 && s.born <= 13);
        probe_seen_disarm(&s);
        victim_kill(&v);
    }
}

static void field_B1_late_thread_is_covered_soon(void **state)
{
    (void)state;
    EACH_MECHANISM(m)
    {
        struct probe_seen s;
        struct victim v = victim_start("victim");
        probe_seen_arm(&s, m, &v, false);
        /* 100 calls 1 ms apart, the first as the thread's first act. Opening a uprobe waits while
         * any on this machine is being taken away, so without BPF the best of some tries counts. */
        struct probe_stats st;
        probe_stats(s.probe, &st);
        int least = 100;
        for (int i = 1; i <= 6 && least > 10; i++) {
            uint64_t before = s.hits;
            assert_int_equal(victim_do(&v, s.loop, "paced 1 100 1000"), 100 * i);
            probe_seen_settle(&s);
            int missed = 100 - (int)(s.hits - before);
            least = missed < least ? missed : least;
            print_message("  missed %d of 100\n", missed);
            if (st.covers_births)
                assert_int_equal(missed, 0);
        }
        assert_true(least < 100);
        probe_stats(s.probe, &st);
        assert_int_equal(st.lost, 0);
        assert_true(st.late_threads >= 1);
        probe_seen_disarm(&s);
        victim_kill(&v);
    }
}

/* Hundreds of threads at once: nothing of the target fails, and all are noticed. */
static void many_threads(void **state)
{
    (void)state;
    EACH_MECHANISM(m)
    {
        struct probe_seen s;
        struct victim v = victim_start("victim");
        probe_seen_arm(&s, m, &v, false);
        struct probe_stats st;
        probe_stats(s.probe, &st);
        assert_int_equal(victim_do(&v, s.loop, "threads 300 3"), 900);
        probe_seen_settle(&s);
        if (st.covers_births)
            assert_int_equal(s.hits, 900);
        assert_true(s.born > 0 && s.born <= 300); /* so many at once may overrun a ring */
        assert_string_equal(s.trouble, "");
        probe_seen_disarm(&s);
        victim_kill(&v);
    }
}

static void fork_works_and_children_are_followed_when_asked(void **state)
{
    (void)state;
    EACH_MECHANISM(m)
    {
        for (int children = 0; children < 2; children++) {
            struct probe_seen s;
            struct victim v = victim_start("victim");
            probe_seen_arm(&s, m, &v, children);
            assert_int_equal(victim_do(&v, s.loop, "fork 5 40"), 200);
            probe_seen_settle(&s);
            assert_int_equal(s.children, 5);
            if (!children)
                assert_int_equal(s.hits, 0);
            else
                assert_true(s.hits <= 200);
            /* The parent is armed as before. */
            uint64_t before = s.hits;
            assert_int_equal(victim_do(&v, s.loop, "call 10"), 210);
            probe_seen_settle(&s);
            assert_int_equal(s.hits, before + 10);
            assert_string_equal(s.trouble, "");
            probe_seen_disarm(&s);
            victim_kill(&v);
        }
    }
}

static void exec_is_noticed_and_sites_can_be_set_again(void **state)
{
    (void)state;
    const char *how[] = {"exec", "exec-thread"};
    EACH_MECHANISM(m)
    {
        for (int i = 0; i < 2; i++) {
            struct probe_seen s;
            char path[64];
            struct victim v = victim_start("victim");
            probe_seen_arm(&s, m, &v, false);
            assert_int_equal(victim_do(&v, s.loop, "call 3"), 3);
            victim_send(&v, how[i]);
            assert_int_equal(victim_wait(&v, s.loop), 0); /* "ready" of the new program */
            probe_seen_settle(&s);
            assert_int_equal(s.execs, 1);
            assert_int_equal(s.hits, 3);
            struct probe_site site = probe_site_of(&v, path, sizeof path);
            struct err err = {0};
            if (probe_set_sites(s.probe, v.pid, &site, 1, &err) != 0)
                fail_msg("%s: %s", m->name, err.text);
            assert_int_equal(victim_do(&v, s.loop, "call 4"), 4);
            assert_int_equal(victim_do(&v, s.loop, "late 1 0"), 4);
            probe_seen_settle(&s);
            assert_int_equal(s.hits, 7);
            assert_int_equal(s.last.ip, v.traced);
            probe_seen_disarm(&s);
            victim_kill(&v);
        }
    }
}

static void remove_copy(char *program)
{
    unlink(program);
    *strrchr(program, '/') = '\0';
    rmdir(program);
    free(program);
}

/* A program that no other test's probes sit in: as long as nobody looks after the process whose first thread has
 * ended, the kernel takes a breakpoint out of it when another probe of the same place goes. */
static struct victim start_a_copy(char **path)
{
    char dir[] = "/tmp/mtui-test-XXXXXX", command[4200];
    char *program = victim_path("victim");
    assert_non_null(mkdtemp(dir));
    snprintf(command, sizeof command, "cp %s %s/victim", program, dir);
    free(command_output(command));
    free(program);
    program = xasprintf("%s/victim", dir);
    struct victim v = victim_start_path(program);
    if (path) {
        *path = program; /* for remove_copy */
        return v;
    }
    remove_copy(program);
    return v;
}

/* The thread that carries the events of all ends. */
static void first_thread_ends(void **state)
{
    (void)state;
    EACH_MECHANISM(m)
    {
        struct probe_seen s;
        struct victim v = start_a_copy(NULL);
        probe_seen_arm(&s, m, &v, false);
        assert_int_equal(victim_do(&v, s.loop, "leader 5"), 5);
        assert_true(loop_until(s.loop, &s.ended, 1));
        assert_int_equal(victim_do(&v, s.loop, "call 6"), 11);
        probe_seen_settle(&s);
        assert_true(m->options.no_links || s.trouble[0] == '\0');
        assert_int_equal(s.processes_ended, 0);
        assert_int_equal(s.hits, 11);
        probe_seen_disarm(&s);
        victim_kill(&v);
    }
}

/* And while calls go on. Two triggers at one place: each call is a hit of both. */
static void no_call_is_missed_when_the_first_thread_ends(void **state)
{
    (void)state;
    EACH_MECHANISM(m)
    {
        struct probe_seen s;
        struct probe_stats st;
        struct err err = {0};
        char path[64];
        struct victim v = start_a_copy(NULL);
        probe_seen_arm(&s, m, &v, false);
        struct probe_site sites[] = {probe_site_of(&v, path, sizeof path), probe_site_of(&v, path, sizeof path)};
        sites[1].trigger++;
        assert_int_equal(probe_set_sites(s.probe, v.pid, sites, 2, &err), 0);
        probe_stats(s.probe, &st);
        if (st.covers_births) { /* else the thread that goes on is covered late */
            victim_send(&v, "leader 5");
            victim_send(&v, "rate 2000 100");
            assert_true(victim_wait(&v, s.loop) >= 5);
            assert_int_equal(victim_wait(&v, s.loop), 2005);
            assert_true(loop_until(s.loop, &s.ended, 1));
            assert_int_equal(victim_do(&v, s.loop, "threads 4 100"), 2405);
            probe_seen_settle(&s);
            probe_stats(s.probe, &st);
            if (m->options.no_links) /* what is missed is said */
                assert_true(s.hits + st.lost <= 2 * 2405 && strstr(s.trouble, "calls were not seen until"));
            else
                assert_true(s.hits + st.lost == 2 * 2405 && s.trouble[0] == '\0');
        }
        probe_seen_disarm(&s);
        victim_kill(&v);
    }
}

/* Threads that are asked to carry the probes are ending themselves, then. A machine that stalls may have one end while it
 * is being asked: that is said. */
static void no_call_is_missed_when_threads_end_together(void **state)
{
    (void)state;
    EACH_MECHANISM(m)
    {
        struct probe_seen s;
        struct probe_stats st;
        struct victim v = start_a_copy(NULL);
        probe_seen_arm(&s, m, &v, false);
        probe_stats(s.probe, &st);
        if (st.covers_births) {
            victim_do(&v, s.loop, "crowd 8 100 1000"); /* all of them older than the one that goes on */
            victim_do(&v, s.loop, "leader 0");
            victim_do(&v, s.loop, "rate 400 1000");
            assert_int_equal(victim_do(&v, s.loop, "gather"), 8 * 100 + 400);
            assert_true(loop_until(s.loop, &s.ended, 9));
            assert_int_equal(victim_do(&v, s.loop, "rate 600 1000"), 1800); /* until another one has taken over */
            probe_seen_settle(&s);
            probe_stats(s.probe, &st);
            if (s.trouble[0])
                assert_true(s.hits + st.lost <= 1800 && strstr(s.trouble, "seen until they hung on another one"));
            else
                assert_int_equal(s.hits + st.lost, 1800);
        }
        probe_seen_disarm(&s);
        victim_kill(&v);
    }
}

static bool leader_is_zombie(void *arg)
{
    char command[128], *text;
    snprintf(command, sizeof command, "cut -d' ' -f3 /proc/%d/task/%d/stat",
             (int)((struct victim *)arg)->pid, (int)((struct victim *)arg)->pid);
    text = command_output(command);
    bool zombie = text[0] == 'Z';
    free(text);
    return zombie;
}

/* The same while sites are set, before any record has told of it. */
static void first_thread_has_just_ended(void **state)
{
    (void)state;
    EACH_MECHANISM(m)
    {
        struct probe_seen s = {.loop = loop_new()};
        struct loop *blind = loop_new(); /* nobody reads the probe's records */
        char *program; /* /proc/PID/exe goes with the first thread */
        struct victim v = start_a_copy(&program);
        struct err err = {0};
        char path[64];
        struct probe_site site = probe_site_of(&v, path, sizeof path);
        site.path = program;
        victim_do(&v, blind, "hold 2");
        assert_int_equal(probe_new(s.loop, &m->options, &probe_seen_callbacks, &s, &s.probe, &err), 0);
        assert_int_equal(probe_watch(s.probe, v.pid, &err), 0);
        assert_int_equal(victim_do(&v, blind, "leader 5"), 5);
        assert_true(loop_until_true(blind, leader_is_zombie, &v));
        if (probe_set_sites(s.probe, v.pid, &site, 1, &err) != 0)
            fail_msg("%s: %s", m->name, err.text);
        assert_true(loop_until(s.loop, &s.ended, 1));
        assert_int_equal(victim_do(&v, s.loop, "call 6"), 11);
        probe_seen_settle(&s);
        assert_true(m->options.no_links || s.trouble[0] == '\0');
        assert_int_equal(s.processes_ended, 0);
        assert_int_equal(s.hits, 6);
        probe_seen_disarm(&s);
        loop_free(blind);
        remove_copy(program);
        victim_kill(&v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probe_some_mechanism_works),
        cmocka_unit_test(field_B1_every_thread),
        cmocka_unit_test(field_B1_late_thread_is_covered_soon),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(fork_works_and_children_are_followed_when_asked),
        cmocka_unit_test(exec_is_noticed_and_sites_can_be_set_again),
        cmocka_unit_test(first_thread_ends),
        cmocka_unit_test(no_call_is_missed_when_the_first_thread_ends),
        cmocka_unit_test(no_call_is_missed_when_threads_end_together),
        cmocka_unit_test(first_thread_has_just_ended),
    };
    return cmocka_run_group_tests(tests, probe_find_mechanisms, NULL);
}
