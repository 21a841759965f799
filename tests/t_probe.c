/* core/trigger/probe and what is below it: real probes in a real program, with counts that the program
 * knows. Each test runs with every mechanism that works here. */
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/trigger/hwbreak.h"
#include "core/trigger/hit_output.h"
#include "core/trigger/perf_clock.h"
#include "core/trigger/probe.h"
#include "core/trigger/uprobe.h"
#include "tests/lib_victim.h"

struct mechanism {
    const char *name;
    struct probe_options options;
    bool works;
    char why[512];
};

static struct mechanism mechanisms[] = {
    {.name = "uprobe with BPF", .options = {.mechanism = PROBE_UPROBE}},
    {.name = "uprobe a thread", .options = {.mechanism = PROBE_UPROBE, .no_bpf = true}},
    {.name = "hardware breakpoint", .options = {.mechanism = PROBE_HWBREAK}},
};

struct seen {
    struct loop *loop;
    struct probe *probe;
    uint64_t hits, born, ended, children, execs, mapped, processes_ended;
    uint64_t last_time, unordered;
    struct probe_hit last;
    char trouble[512];
};

static void on_hit(void *arg, const struct probe_hit *hit)
{
    struct seen *s = arg;
    s->hits++;
    s->unordered += hit->time_ns < s->last_time;
    s->last_time = hit->time_ns;
    s->last = *hit;
}

static void on_event(void *arg, const struct probe_event *event)
{
    struct seen *s = arg;
    s->born += event->change == PROBE_THREAD_BORN;
    s->ended += event->change == PROBE_THREAD_ENDED;
    s->children += event->change == PROBE_CHILD;
    s->execs += event->change == PROBE_EXEC;
    s->mapped += event->change == PROBE_MAPPED;
    s->processes_ended += event->change == PROBE_PROCESS_ENDED;
}

static void on_trouble(void *arg, const char *sentence)
{
    struct seen *s = arg;
    snprintf(s->trouble, sizeof s->trouble, "%s", sentence);
}

static const struct probe_callbacks callbacks = {on_hit, on_event, on_trouble};

static struct probe_site site_of(const struct victim *v, char *path, size_t size)
{
    snprintf(path, size, "/proc/%d/exe", (int)v->pid);
    return (struct probe_site){.path = path,
                               .offset = victim_offset(v->pid, v->traced),
                               .addr = v->traced,
                               .trigger = 5,
                               .role = PROBE_ENTRY,
                               .condition = -1,
                               .label = "victim!traced"};
}

static void arm(struct seen *s, const struct mechanism *m, const struct victim *v, bool children)
{
    char path[64];
    struct err err = {0};
    struct probe_options options = m->options;
    options.children = children;
    *s = (struct seen){.loop = loop_new()};
    if (probe_new(s->loop, &options, &callbacks, s, &s->probe, &err) != 0)
        fail_msg("%s: %s", m->name, err.text);
    struct probe_site site = site_of(v, path, sizeof path);
    if (probe_watch(s->probe, v->pid, &err) != 0 ||
        probe_set_sites(s->probe, v->pid, &site, 1, &err) != 0)
        fail_msg("%s: %s", m->name, err.text);
}

static void disarm(struct seen *s)
{
    probe_free(s->probe);
    loop_free(s->loop);
}

static bool no_hits_left(void *arg)
{
    struct seen *s = arg;
    uint64_t before = s->hits;
    probe_drain(s->probe);
    probe_drain(s->probe);
    return s->hits == before;
}

/* All that has happened until now is read. */
static void settle(struct seen *s)
{
    assert_true(loop_until_true(s->loop, no_hits_left, s));
}

static bool told(const struct mechanism *m)
{
    print_message("  %s\n", m->name);
    return true;
}

#define EACH_MECHANISM(m)                                                                          \
    for (const struct mechanism *m = mechanisms; m < mechanisms + 3; m++)                          \
        if (m->works && told(m))

static void counts_calls_and_registers(void **state)
{
    (void)state;
    EACH_MECHANISM(m)
    {
        struct seen s;
        struct victim v = victim_start("victim");
        arm(&s, m, &v, false);
        assert_int_equal(victim_do(&v, s.loop, "call 100"), 100);
        settle(&s);
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
        disarm(&s);
        victim_kill(&v);
    }
}

/* B1: threads that exist, threads that come later. */
static void field_B1_every_thread(void **state)
{
    (void)state;
    EACH_MECHANISM(m)
    {
        struct seen s;
        struct victim v = victim_start("victim");
        arm(&s, m, &v, false);
        struct probe_stats st;
        probe_stats(s.probe, &st);
        long calls = victim_do(&v, s.loop, "threads 8 200");
        assert_int_equal(calls, 1600);
        settle(&s);
        if (st.covers_births)
            assert_int_equal(s.hits, 1600);
        else
            assert_true(s.hits <= 1600); /* short threads may end before they are covered */
        assert_int_equal(s.born, 8);
        assert_true(s.ended <= 8); /* those that were watched before they ended */
        assert_string_equal(s.trouble, "");
        assert_int_equal(victim_do(&v, s.loop, "nested 5"), 1605);
        settle(&s);
        if (st.covers_births)
            assert_int_equal(s.hits, 1605);
        assert_true(s.born >= 9 && s.born <= 13);
        disarm(&s);
        victim_kill(&v);
    }
}

static void field_B1_late_thread_is_covered_soon(void **state)
{
    (void)state;
    EACH_MECHANISM(m)
    {
        struct seen s;
        struct victim v = victim_start("victim");
        arm(&s, m, &v, false);
        /* 100 calls 1 ms apart, the first as the thread's first act. Opening a uprobe waits while
         * any on this machine is being taken away, so without BPF the best of some tries counts. */
        struct probe_stats st;
        probe_stats(s.probe, &st);
        int least = 100;
        for (int i = 1; i <= 6 && least > 10; i++) {
            uint64_t before = s.hits;
            assert_int_equal(victim_do(&v, s.loop, "paced 1 100 1000"), 100 * i);
            settle(&s);
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
        disarm(&s);
        victim_kill(&v);
    }
}

/* Hundreds of threads at once: nothing of the target fails, and all are noticed. */
static void many_threads(void **state)
{
    (void)state;
    EACH_MECHANISM(m)
    {
        struct seen s;
        struct victim v = victim_start("victim");
        arm(&s, m, &v, false);
        struct probe_stats st;
        probe_stats(s.probe, &st);
        assert_int_equal(victim_do(&v, s.loop, "threads 300 3"), 900);
        settle(&s);
        if (st.covers_births)
            assert_int_equal(s.hits, 900);
        assert_true(s.born > 0 && s.born <= 300); /* so many at once may overrun a ring */
        assert_string_equal(s.trouble, "");
        disarm(&s);
        victim_kill(&v);
    }
}

static void fork_works_and_children_are_followed_when_asked(void **state)
{
    (void)state;
    EACH_MECHANISM(m)
    {
        for (int children = 0; children < 2; children++) {
            struct seen s;
            struct victim v = victim_start("victim");
            arm(&s, m, &v, children);
            assert_int_equal(victim_do(&v, s.loop, "fork 5 40"), 200);
            settle(&s);
            assert_int_equal(s.children, 5);
            if (!children)
                assert_int_equal(s.hits, 0);
            else
                assert_true(s.hits <= 200);
            /* The parent is armed as before. */
            uint64_t before = s.hits;
            assert_int_equal(victim_do(&v, s.loop, "call 10"), 210);
            settle(&s);
            assert_int_equal(s.hits, before + 10);
            assert_string_equal(s.trouble, "");
            disarm(&s);
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
            struct seen s;
            char path[64];
            struct victim v = victim_start("victim");
            arm(&s, m, &v, false);
            assert_int_equal(victim_do(&v, s.loop, "call 3"), 3);
            victim_send(&v, how[i]);
            assert_int_equal(victim_wait(&v, s.loop), 0); /* "ready" of the new program */
            settle(&s);
            assert_int_equal(s.execs, 1);
            assert_int_equal(s.hits, 3);
            struct probe_site site = site_of(&v, path, sizeof path);
            struct err err = {0};
            if (probe_set_sites(s.probe, v.pid, &site, 1, &err) != 0)
                fail_msg("%s: %s", m->name, err.text);
            assert_int_equal(victim_do(&v, s.loop, "call 4"), 4);
            assert_int_equal(victim_do(&v, s.loop, "late 1 0"), 4);
            settle(&s);
            assert_int_equal(s.hits, 7);
            assert_int_equal(s.last.ip, v.traced);
            disarm(&s);
            victim_kill(&v);
        }
    }
}

/* The thread that carries the events of all ends. */
static void first_thread_ends(void **state)
{
    (void)state;
    EACH_MECHANISM(m)
    {
        struct seen s;
        struct victim v = victim_start("victim");
        arm(&s, m, &v, false);
        assert_int_equal(victim_do(&v, s.loop, "leader 5"), 5);
        assert_true(loop_until(s.loop, &s.ended, 1));
        assert_int_equal(victim_do(&v, s.loop, "call 6"), 11);
        settle(&s);
        assert_string_equal(s.trouble, "");
        assert_int_equal(s.processes_ended, 0);
        assert_int_equal(s.hits, 11);
        disarm(&s);
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
        struct seen s = {.loop = loop_new()};
        struct loop *blind = loop_new(); /* nobody reads the probe's records */
        struct victim v = victim_start("victim");
        struct err err = {0};
        char path[64];
        struct probe_site site = site_of(&v, path, sizeof path);
        char *program = victim_path("victim"); /* /proc/PID/exe goes with the first thread */
        site.path = program;
        victim_do(&v, blind, "hold 2");
        assert_int_equal(probe_new(s.loop, &m->options, &callbacks, &s, &s.probe, &err), 0);
        assert_int_equal(probe_watch(s.probe, v.pid, &err), 0);
        assert_int_equal(victim_do(&v, blind, "leader 5"), 5);
        assert_true(loop_until_true(blind, leader_is_zombie, &v));
        if (probe_set_sites(s.probe, v.pid, &site, 1, &err) != 0)
            fail_msg("%s: %s", m->name, err.text);
        assert_true(loop_until(s.loop, &s.ended, 1));
        assert_int_equal(victim_do(&v, s.loop, "call 6"), 11);
        settle(&s);
        assert_string_equal(s.trouble, "");
        assert_int_equal(s.processes_ended, 0);
        assert_int_equal(s.hits, 6);
        disarm(&s);
        loop_free(blind);
        free(program);
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
        struct seen s;
        struct victim v = victim_start("victim");
        int byte = victim_byte(v.pid, v.traced);
        arm(&s, m, &v, false);
        if (m->options.mechanism == PROBE_UPROBE)
            assert_int_equal(victim_byte(v.pid, v.traced), 0xcc);
        disarm(&s);
        s.loop = loop_new();
        assert_true(loop_until_true(s.loop, original_byte, &v));
        assert_int_equal(victim_byte(v.pid, v.traced), byte);
        assert_int_equal(victim_do(&v, s.loop, "call 9"), 9); /* lives on */
        loop_free(s.loop);

        arm(&s, m, &v, false);
        victim_kill(&v);
        assert_true(loop_until(s.loop, &s.processes_ended, 1));
        struct err err = {0};
        assert_int_equal(probe_set_sites(s.probe, v.pid, NULL, 0, &err), MTUI_E_GONE);
        disarm(&s);
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
            struct seen s;
            arm(&s, m, &v, false);
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
        struct seen s;
        char path[64];
        struct err err = {0};
        struct victim v = victim_start("victim");
        arm(&s, m, &v, false);
        struct probe_site two[2] = {site_of(&v, path, sizeof path), site_of(&v, path, sizeof path)};
        two[1].trigger = 6;
        victim_send(&v, "call 3000");
        for (size_t i = 0; i < 6; i++)
            assert_int_equal(probe_set_sites(s.probe, v.pid, two, 1 + i % 2, &err), 0);
        victim_wait(&v, s.loop);
        settle(&s);
        victim_do(&v, s.loop, "call 1"); /* a loss is told before the next record */
        settle(&s);
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
        disarm(&s);
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
    struct probe_site site = site_of(&v, path, sizeof path);
    char *exe = victim_path("victim");
    char *command = NULL;
    assert_true(asprintf(&command,
                         "nm '%s' | awk '$3 == \"locked_entry\" || $3 == \"traced\" {print $1}'",
                         exe) > 0);
    char *names = command_output(command); /* in the order of the names */
    unsigned long locked = 0, traced = 0;
    assert_int_equal(sscanf(names, "%lx %lx", &locked, &traced), 2);
    site.addr += locked - traced;
    site.offset += locked - traced;
    free(names);
    free(command);
    free(exe);
    for (int i = 0; i < 2; i++) {
        struct seen s = {.loop = loop_new()};
        struct probe_options options = {.mechanism = i ? PROBE_AUTO : PROBE_UPROBE};
        assert_int_equal(probe_new(s.loop, &options, &callbacks, &s, &s.probe, &err), 0);
        assert_int_equal(probe_watch(s.probe, v.pid, &err), 0);
        int rc = probe_set_sites(s.probe, v.pid, &site, 1, &err);
        if (i == 1 && mechanisms[2].works) {
            assert_int_equal(rc, 0);
            victim_do(&v, s.loop, "locked 20");
            settle(&s);
            assert_int_equal(s.hits, 20);
        } else {
            assert_int_equal(rc, MTUI_E_NOTSUP);
            assert_non_null(strstr(err.text, "lock prefix"));
        }
        disarm(&s);
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
        struct seen s = {.loop = loop_new()};
        char path[64];
        struct err err = {0};
        struct rlimit limit = {120, 120};
        struct probe_options options = {.mechanism = PROBE_UPROBE, .no_bpf = true};
        struct probe_site sites[100];
        int rc = probe_new(s.loop, &options, &callbacks, &s, &s.probe, &err);
        if (rc == 0)
            rc = probe_watch(s.probe, v.pid, &err);
        setrlimit(RLIMIT_NOFILE, &limit);
        for (int i = 0; i < 100; i++)
            sites[i] = site_of(&v, path, sizeof path);
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

static int find_mechanisms(void **state)
{
    (void)state;
    struct err err = {0};
    struct hit_output *o = NULL;
    unsigned slots = 0;
    mechanisms[0].works = mechanisms[1].works = uprobe_self_test(&err) == 0;
    if (!mechanisms[0].works)
        snprintf(mechanisms[0].why, sizeof mechanisms[0].why, "%s", err.text);
    else if (hit_output_new(65536, &o, &err) != 0)
        mechanisms[0].works = false;
    hit_output_free(o);
    mechanisms[2].works = hwbreak_self_test(&slots, &err) == 0;
    for (size_t i = 0; i < 3; i++)
        print_message("%s: %s\n", mechanisms[i].name,
                      mechanisms[i].works ? "tested" : "SKIPPED, not possible here");
    return 0;
}

static void some_mechanism_works(void **state)
{
    (void)state;
    if (!mechanisms[0].works && !mechanisms[1].works && !mechanisms[2].works) {
        print_message("SKIP: no probes are permitted here: %s\n", mechanisms[0].why);
        skip();
    }
}

/* Bytes as objdump shows them. */
static void instructions_that_take_no_uprobe(void **state)
{
    (void)state;
    static const struct {
        uint8_t code[8];
        size_t n;
        bool refused;
    } cases[] = {
        {{0xf0, 0x48, 0x83, 0x07, 0x01}, 5, true},        /* lock addq $1, (%rdi) */
        {{0x66, 0xf0, 0x83, 0x07, 0x01}, 5, true},        /* lock addw $1, (%rdi) */
        {{0x3e, 0xff, 0xe0}, 3, true},                    /* notrack jmp *%rax */
        {{0xf4}, 1, true},                                /* hlt */
        {{0xcc}, 1, true},                                /* int3 */
        {{0x48, 0xcf}, 2, true},                          /* iretq */
        {{0xf3, 0x6d}, 2, true},                          /* rep insl */
        {{0xf3, 0x0f, 0x1e, 0xfa}, 4, false},             /* endbr64 */
        {{0x55}, 1, false},                               /* push %rbp */
        {{0x48, 0x83, 0xec, 0xf0}, 4, false},             /* sub $-16, %rsp */
        {{0x64, 0x48, 0x8b, 0x04, 0x25, 0x28}, 6, false}, /* mov %fs:0x28, %rax; cut off */
        {{0x66, 0x66}, 2, false},                         /* cut off */
        {{0}, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (uprobe_refuses(cases[i].code, cases[i].n) != cases[i].refused)
            fail_msg("case %zu", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(some_mechanism_works),
        cmocka_unit_test(clock_is_perfs),
        cmocka_unit_test(counts_calls_and_registers),
        cmocka_unit_test(field_B1_every_thread),
        cmocka_unit_test(field_B1_late_thread_is_covered_soon),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(fork_works_and_children_are_followed_when_asked),
        cmocka_unit_test(exec_is_noticed_and_sites_can_be_set_again),
        cmocka_unit_test(first_thread_ends),
        cmocka_unit_test(first_thread_has_just_ended),
        cmocka_unit_test(end_and_disarm),
        cmocka_unit_test(tracer_is_killed),
        cmocka_unit_test(sites_change_without_a_gap),
        cmocka_unit_test(lock_prefix),
        cmocka_unit_test(instructions_that_take_no_uprobe),
        cmocka_unit_test(too_few_descriptors),
    };
    return cmocka_run_group_tests(tests, find_mechanisms, NULL);
}
