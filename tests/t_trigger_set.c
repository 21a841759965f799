/* core/trigger_set on real programs: names to probes to decisions, with counts the programs know.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/call_rate.h"
#include "core/target.h"
#include "core/trigger_resolve.h"
#include "core/trigger_set.h"
#include "core/uprobe.h"
#include "tests/lib_program.h"
#include "tests/lib_victim.h"

struct seen {
    struct loop *loop;
    struct trigger_set *set;
    uint64_t hits, fired, with_duration, messages;
    uint64_t longest_ns;
    struct trigger_hit last;
    char message[4096]; /* all of them, a line each */
};

static void on_hit(void *arg, const struct trigger_hit *hit)
{
    struct seen *s = arg;
    s->hits++;
    s->fired += hit->verdict == TRIGGER_FIRE;
    s->with_duration += hit->has_duration;
    if (hit->has_duration && hit->duration_ns > s->longest_ns)
        s->longest_ns = hit->duration_ns;
    if (hit->verdict == TRIGGER_FIRE)
        trigger_set_snapshot_done(s->set);
    s->last = *hit;
}

static void on_message(void *arg, const char *sentence)
{
    struct seen *s = arg;
    s->messages++;
    size_t len = strlen(s->message);
    snprintf(s->message + len, sizeof s->message - len, "%s\n", sentence);
}

static const struct trigger_set_callbacks callbacks = {.hit = on_hit, .message = on_message};

static void open_set(struct seen *s, const struct trigger_set_options *options, const char *spec,
                     const struct trigger_conditions *when)
{
    struct trigger t;
    struct err err = {0};
    if (!s->loop)
        s->loop = loop_new();
    s->set = trigger_set_new(s->loop, options, &callbacks, s);
    if (trigger_parse(&t, spec, when, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(trigger_set_add(s->set, &t), 0);
}

static void arm(struct seen *s, const struct victim *v, const char *spec,
                const struct trigger_conditions *when)
{
    struct err err = {0};
    *s = (struct seen){0};
    open_set(s, NULL, spec, when);
    if (trigger_set_arm(s->set, v->pid, &err) != 0)
        fail_msg("%s: %s", spec, err.text);
    assert_int_equal(trigger_set_status(s->set, 0), TRIGGER_ARMED);
}

static void close_set(struct seen *s)
{
    trigger_set_free(s->set);
    loop_free(s->loop);
}

static bool quiet(void *arg)
{
    struct seen *s = arg;
    uint64_t before = s->hits;
    trigger_set_drain(s->set);
    trigger_set_drain(s->set);
    return s->hits == before;
}

static void settle(struct seen *s)
{
    assert_true(loop_until_true(s->loop, quiet, s));
}

static void entry_by_name(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s;
    static const char *const specs[] = {"traced", "victim:traced", "/^traced$/"};
    long calls = 0;
    for (size_t i = 0; i < 3; i++) {
        arm(&s, &v, specs[i], NULL);
        calls += 50;
        assert_int_equal(victim_do(&v, s.loop, "call 50"), calls);
        settle(&s);
        assert_int_equal(s.hits, 50);
        assert_int_equal(s.fired, 50);
        assert_int_equal(s.last.probe.ip, v.traced);
        assert_int_equal(s.last.probe.arg1, 49);
        assert_false(s.last.has_duration);
        assert_non_null(strstr(trigger_set_where(s.set, 0), "victim!traced"));
        close_set(&s);
    }
    char spec[32];
    snprintf(spec, sizeof spec, "0x%llx", (unsigned long long)v.traced);
    arm(&s, &v, spec, NULL);
    assert_int_equal(victim_do(&v, s.loop, "call 5"), calls + 5);
    settle(&s);
    assert_int_equal(s.hits, 5);
    close_set(&s);
    victim_kill(&v);
}

static void line_of_source(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s;
    /* The line of traced() that does the addition, by grep. */
    char *number =
        command_output("grep -n 'atomic_fetch_add(&calls, 1);' tests/victim.c | head -1");
    char *spec = xasprintf("victim.c:%d", atoi(number));
    arm(&s, &v, spec, NULL);
    victim_do(&v, s.loop, "call 7");
    settle(&s);
    assert_int_equal(s.hits, 7);
    assert_int_equal(s.last.probe.role, PROBE_POINT);
    free(spec);
    free(number);
    close_set(&s);
    victim_kill(&v);
}

static void conditions(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s;
    struct trigger_conditions when = {.hits = 10, .max_snapshots = 3};
    arm(&s, &v, "traced", &when);
    victim_do(&v, s.loop, "call 100");
    settle(&s);
    const struct trigger_counts *c = trigger_set_counts(s.set, 0);
    assert_int_equal(c->hits, 100);
    assert_int_equal(c->fired, 3);
    assert_int_equal(c->not_nth, 90);
    assert_int_equal(c->spent, 7);
    assert_true(trigger_set_exhausted(s.set));
    trigger_set_snapshot_begin(s.set);
    close_set(&s);

    struct trigger_conditions any = {0};
    arm(&s, &v, "traced", &any);
    trigger_set_snapshot_begin(s.set);
    victim_do(&v, s.loop, "call 4");
    settle(&s);
    assert_int_equal(s.fired, 0);
    assert_int_equal(trigger_set_counts(s.set, 0)->busy, 4);
    trigger_set_snapshot_done(s.set);
    victim_do(&v, s.loop, "call 4");
    settle(&s);
    assert_int_equal(s.fired, 4);
    close_set(&s);
    victim_kill(&v);
}

static void returns_with_durations(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s;
    arm(&s, &v, "traced@return", NULL);
    assert_int_equal(victim_do(&v, s.loop, "threads 4 25"), 100);
    settle(&s);
    assert_int_equal(s.hits, 100);
    assert_int_equal(s.with_duration, 100);
    assert_true(s.longest_ns > 0);
    assert_int_equal(s.last.probe.arg1, 24); /* of the entry */
    assert_int_equal(s.last.probe.result, 24 + 25);
    close_set(&s);

    /* Recursion: each level is a call; the outermost is the longest. */
    arm(&s, &v, "recursive@return", NULL);
    victim_do(&v, s.loop, "recurse 40");
    settle(&s);
    assert_int_equal(s.hits, 40);
    assert_int_equal(s.with_duration, 40);
    assert_int_equal(s.last.probe.arg1, 40);
    assert_int_equal(s.last.probe.result, 40 * 41 / 2);
    assert_int_equal(s.last.duration_ns, s.longest_ns);
    close_set(&s);

    /* Left by longjmp: no return, and none invented. */
    arm(&s, &v, "jumper@return", NULL);
    victim_do(&v, s.loop, "longjmp 30");
    settle(&s);
    assert_int_equal(s.hits, 0);
    close_set(&s);
    victim_kill(&v);
}

/* The case that kills programs with uretprobes: an exception thrown through the traced function. */
static void exceptions_pass_through(void **state)
{
    (void)state;
    struct victim v = victim_start("victim_throw");
    struct seen s;
    arm(&s, &v, "thrower@return", NULL);
    assert_int_equal(victim_do(&v, s.loop, "throw 200"), 100);
    settle(&s);
    assert_int_equal(s.hits, 100); /* the even ones return */
    assert_int_equal(s.with_duration, 100);
    assert_int_equal(s.last.probe.arg1, 198);
    assert_int_equal(s.last.probe.result, 198 + 200);
    assert_int_equal(victim_do(&v, s.loop, "mixed 4 50"), 200);
    settle(&s);
    assert_int_equal(s.hits, 200);
    assert_int_equal(s.with_duration, 200);
    close_set(&s);
    victim_kill(&v);
}

static void slower_than_counts_only_slow_calls(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s;
    struct trigger_conditions when = {.slower_than_ns = 20000000};
    arm(&s, &v, "rate", &when); /* a function of the program that sleeps */
    victim_do(&v, s.loop, "rate 1 1");
    victim_do(&v, s.loop, "rate 1 30000");
    victim_do(&v, s.loop, "rate 1 2");
    settle(&s);
    assert_int_equal(s.hits, 1);
    assert_int_equal(s.fired, 1);
    assert_true(s.last.duration_ns > 30000000);
    assert_int_equal(trigger_set_counts(s.set, 0)->fast, 2);
    close_set(&s);
    victim_kill(&v);
}

static void refused_with_the_reason(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct err err = {0};
    char inside[32], link_time[32];
    snprintf(inside, sizeof inside, "0x%llx", (unsigned long long)v.traced + 1);
    char *path = victim_path("victim");
    char *dir = xstrdup(path);
    *strrchr(dir, '/') = '\0';
    snprintf(link_time, sizeof link_time, "0x%llx",
             (unsigned long long)program_nm(dir, "victim", "traced"));
    const struct {
        const char *spec;
        int code;
        const char *why;
    } cases[] = {
        {"tracde", MTUI_E_NOENT, "traced"},
        {"no_such_function_at_all", MTUI_E_NOENT, "no function"},
        {"libnothere.so:malloc", MTUI_E_NOENT, "libnothere"},
        {"0x10", MTUI_E_NOENT, "executable"},
        {link_time, MTUI_E_NOENT, "executable"},
        {"victim.c:100000", MTUI_E_NOENT, "100000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seen s = {0};
        open_set(&s, NULL, cases[i].spec, NULL);
        int rc = trigger_set_arm(s.set, v.pid, &err);
        if (rc != cases[i].code || !strstr(err.text, cases[i].why))
            fail_msg("%s: %d %s", cases[i].spec, rc, err.text);
        close_set(&s);
    }
    /* traced() begins with `nop` or with `endbr64; nop`: one byte in is an instruction, or not. */
    int byte = victim_byte(v.pid, v.traced);
    struct seen s = {0};
    open_set(&s, NULL, inside, NULL);
    int rc = trigger_set_arm(s.set, v.pid, &err);
    if (byte == 0xf3) {
        assert_int_equal(rc, MTUI_E_NOTSUP);
        assert_non_null(strstr(err.text, "not where an instruction begins"));
    }
    close_set(&s);
    free(dir);
    free(path);
    victim_kill(&v);
}

static void kernel_function(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct err err = {0};
    char *known = command_output("grep -c ' T vfs_read$' /proc/kallsyms");
    struct seen s = {0};
    open_set(&s, NULL, "vfs_read", NULL);
    assert_int_equal(trigger_set_arm(s.set, v.pid, &err),
                     atoi(known) > 0 ? MTUI_E_NOTSUP : MTUI_E_NOENT);
    if (atoi(known) > 0)
        assert_non_null(strstr(err.text, "kernel function"));
    free(known);
    close_set(&s);
    victim_kill(&v);
}

/* B7: the same source linked in every way. */
static void kinds_of_programs(void **state)
{
    (void)state;
    static const char *const flags[] = {"-fPIE -pie",
                                        "-no-pie",
                                        "-static",
                                        "-static-pie",
                                        "-no-pie -Wl,-Ttext-segment=0x10000000",
                                        "-fPIE -pie -Wl,-z,noseparate-code"};
    char *dir = program_mkdir();
    assert_true(program_shell(dir, "cp '%s/tests/victim.c' .", getenv("PWD")));
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        char *all = xasprintf("-std=c11 -D_GNU_SOURCE -O1 -g -pthread %s", flags[i]);
        char *name = xasprintf("v%zu", i), *path = xasprintf("%s/v%zu", dir, i);
        if (!program_build(dir, "victim.c", name, all)) {
            print_message("  SKIPPED: cannot build with %s\n", flags[i]);
        } else {
            struct victim v = victim_start_path(path);
            struct seen s;
            arm(&s, &v, "traced@return", NULL);
            assert_int_equal(victim_do(&v, s.loop, "threads 2 10"), 20);
            settle(&s);
            if (s.hits != 20 || s.with_duration != 20)
                fail_msg("%s: %d hits", flags[i], (int)s.hits);
            close_set(&s);
            victim_kill(&v);
        }
        free(all);
        free(name);
        free(path);
    }
    program_rmdir(dir);
}

/* ---- run ---- */

static void on_target(void *arg, enum target_state state)
{
    if (state == TARGET_ENDED)
        ++*(uint64_t *)arg;
}

/* Runs ARGV to its end with one trigger armed before its first instruction. */
static void run_program(struct seen *s, char *const *argv, const char *spec, bool children)
{
    struct target_callbacks events = {.changed = on_target};
    struct target_run_options run = {.argv = argv, .stdio = TARGET_PTY};
    struct target *target = NULL;
    struct err err = {0};
    uint64_t ended = 0;
    *s = (struct seen){.loop = loop_new()};
    if (target_run(s->loop, &run, &events, &ended, &target, &err) != 0)
        fail_msg("%s", err.text);
    struct trigger_set_options options = {
        .may_pend = true, .executable = target_executable(target), .probe = {.children = children}};
    open_set(s, &options, spec, NULL);
    if (trigger_set_arm(s->set, target_pid(target), &err) != 0)
        fail_msg("%s: %s", spec, err.text);
    assert_int_equal(target_go(target, &err), 0);
    assert_true(loop_until(s->loop, &ended, 1));
    settle(s);
    target_free(target, TARGET_END);
}

/* Nothing of a short program is missed: here in a library that it needs. */
static void short_program(void **state)
{
    (void)state;
    struct seen s;
    char true_name[] = "true";
    char *program[] = {true_name, NULL};
    char *libc = command_output("ldd /bin/true | grep -c libc.so.6");
    run_program(&s, program, "libc.so.6:__libc_start_main", false);
    if (atoi(libc) > 0)
        assert_int_equal(s.hits, 1);
    close_set(&s);
    free(libc);
}

/* A script's interpreter is another program than the file that was started: what it runs is found
 * at the exec. */
static void script(void **state)
{
    (void)state;
    char *path = victim_path("victim");
    char sh[] = "sh", c[] = "-c";
    char *text = xasprintf("echo rate 100 1000 | '%s'; true", path);
    char *argv[] = {sh, c, text, NULL};
    struct seen s;
    run_program(&s, argv, "traced", true);
    assert_true(s.hits > 0 && s.hits <= 100);
    print_message("  missed %d of 100\n", 100 - (int)s.hits);
    close_set(&s);
    free(text);
    free(path);
}

static void own_functions_of_a_started_program(void **state)
{
    (void)state;
    char *dir = program_mkdir();
    program_write(
        dir, "three.c",
        "__attribute__((noinline)) void step(int i) { __asm__ volatile(\"\" :: \"r\"(i)); }\n"
        "int main(void) { step(1); step(2); step(3); return 0; }\n");
    assert_true(program_build(dir, "three.c", "three", "-O1 -fPIE -pie"));
    char *path = xasprintf("%s/three", dir);
    char *argv[] = {path, NULL};
    for (int i = 0; i < 10; i++) {
        struct seen s;
        run_program(&s, argv, "step@return", false);
        assert_int_equal(s.hits, 3);
        assert_int_equal(s.with_duration, 3);
        assert_int_equal(s.last.probe.arg1, 3);
        close_set(&s);
    }
    free(path);
    program_rmdir(dir);
}

static void pending_until_mapped(void **state)
{
    (void)state;
    char *dir = program_mkdir();
    program_write(dir, "plug.c",
                  "#include <time.h>\n"
                  "void plugged(long i) { struct timespec t = {0, 1000000}; (void)i;"
                  " nanosleep(&t, 0); }\n");
    assert_true(program_build(dir, "plug.c", "plug.so", "-O1 -shared -fPIC"));
    struct victim v = victim_start("victim");
    struct seen s = {0};
    struct err err = {0};
    struct trigger_set_options options = {.may_pend = true};
    open_set(&s, &options, "plugged", NULL);
    assert_int_equal(trigger_set_arm(s.set, v.pid, &err), 0);
    assert_int_equal(trigger_set_status(s.set, 0), TRIGGER_PENDING);
    assert_non_null(strstr(trigger_set_where(s.set, 0), "pending"));
    char *command = xasprintf("dlopen %s/plug.so plugged 300", dir);
    victim_do(&v, s.loop, command);
    settle(&s);
    assert_int_equal(trigger_set_status(s.set, 0), TRIGGER_ARMED);
    assert_non_null(strstr(s.message, "plug.so!plugged"));
    assert_true(s.hits >= 100 && s.hits <= 300); /* 300 ms; the first few are missed */
    print_message("  missed %d of 300\n", 300 - (int)s.hits);
    free(command);
    close_set(&s);
    victim_kill(&v);
    program_rmdir(dir);
}

static void exec_in_the_target(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s;
    arm(&s, &v, "traced", NULL);
    victim_do(&v, s.loop, "call 3");
    victim_send(&v, "exec-thread");
    victim_wait(&v, s.loop);
    settle(&s);
    assert_int_equal(trigger_set_status(s.set, 0), TRIGGER_ARMED);
    assert_int_equal(victim_do(&v, s.loop, "threads 2 20"), 40);
    settle(&s);
    assert_int_equal(s.hits, 43);
    assert_non_null(strstr(s.message, "another program"));
    close_set(&s);
    victim_kill(&v);
}

static bool disarmed(void *arg)
{
    struct seen *s = arg;
    return trigger_set_status(s->set, 0) == TRIGGER_DISARMED;
}

static void exec_of_something_else(void **state)
{
    (void)state;
    char sh[] = "sh", c[] = "-c", text[] = "read x; exec cat";
    char *argv[] = {sh, c, text, NULL};
    struct target_run_options run = {.argv = argv, .stdio = TARGET_PTY};
    struct target *target = NULL;
    struct err err = {0};
    uint64_t ended = 0;
    struct target_callbacks events = {.changed = on_target};
    struct seen s = {.loop = loop_new()};
    assert_int_equal(target_run(s.loop, &run, &events, &ended, &target, &err), 0);

    assert_int_equal(target_go(target, &err), 0);
    while (target_state(target) == TARGET_WAITING)
        loop_run_once(s.loop, 1000000);
    char *shell = command_output("readlink -f $(command -v sh) | xargs basename");
    shell[strcspn(shell, "\n")] = '\0';
    /* An address range of the shell's own: its entry point, whatever symbols it has. */
    char *entry = command_output("readelf -h $(readlink -f $(command -v sh)) | "
                                 "awk '/Entry point/ {print $NF}'");
    entry[strcspn(entry, "\n")] = '\0';
    char *spec = xasprintf("%s:%s", shell, entry);
    open_set(&s, NULL, spec, NULL);
    if (trigger_set_arm(s.set, target_pid(target), &err) != 0)
        fail_msg("%s: %s", spec, err.text);
    assert_int_equal(target_input(target, "x\n", 2, &err), 0);
    assert_true(loop_until_true(s.loop, disarmed, &s));
    assert_non_null(strstr(s.message, "disarmed"));
    target_free(target, TARGET_END);
    free(spec);
    free(entry);
    free(shell);
    close_set(&s);
}

static void children_are_followed(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s = {0};
    struct err err = {0};
    struct trigger_set_options options = {.probe = {.children = true}};
    open_set(&s, &options, "traced", NULL);
    assert_int_equal(trigger_set_arm(s.set, v.pid, &err), 0);
    assert_int_equal(victim_do(&v, s.loop, "call 1"), 1);
    assert_int_equal(victim_do(&v, s.loop, "fork 3 10"), 31);
    assert_int_equal(victim_do(&v, s.loop, "call 2"), 33);
    settle(&s);
    assert_true(s.hits >= 3 && s.hits <= 33);
    assert_int_equal(s.last.probe.pid, v.pid);
    close_set(&s);
    victim_kill(&v);
}

/* ---- Call rates ---- */

static void on_rate(void *arg, const struct call_rate_result *r)
{
    *(struct call_rate_result *)arg = *r;
}

static void rate_is_measured(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct loop *loop = loop_new();
    struct modules *m = NULL;
    struct trigger t;
    struct trigger_places places = {0};
    struct call_rate_result result = {0};
    struct call_rate *rate = NULL;
    struct err err = {0};
    assert_int_equal(modules_of_pid(NULL, v.pid, &m, &err), 0);
    assert_int_equal(trigger_parse(&t, "traced", NULL, &err), 0);
    assert_int_equal(trigger_resolve(m, &t, 0, &places, &err), 0);
    assert_int_equal(call_rate_start(loop, v.pid, places.sites.data, places.sites.len, 200000000,
                                     on_rate, &result, &rate, &err),
                     0);
    victim_do(&v, loop, "call 300");
    assert_true(loop_until(loop, &result.duration_ns, 1));
    assert_int_equal(result.hits, 300);
    assert_true(result.duration_ns >= 200000000);
    assert_true(result.per_second > 0 && result.per_second <= 1500.0);
    call_rate_free(rate);
    trigger_places_free(&places);
    trigger_fini(&t);
    modules_free(m);
    loop_free(loop);
    victim_kill(&v);
}

static int need_uprobes(void **state)
{
    (void)state;
    struct err err = {0};
    if (uprobe_self_test(&err) == 0)
        return 0;
    print_message("SKIP: uprobes are not permitted: %s\n", err.text);
    exit(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entry_by_name),
        cmocka_unit_test(line_of_source),
        cmocka_unit_test(conditions),
        cmocka_unit_test(returns_with_durations),
        cmocka_unit_test(exceptions_pass_through),
        cmocka_unit_test(slower_than_counts_only_slow_calls),
        cmocka_unit_test(refused_with_the_reason),
        cmocka_unit_test(kernel_function),
        cmocka_unit_test(kinds_of_programs),
        cmocka_unit_test(short_program),
        cmocka_unit_test(script),
        cmocka_unit_test(own_functions_of_a_started_program),
        cmocka_unit_test(pending_until_mapped),
        cmocka_unit_test(exec_in_the_target),
        cmocka_unit_test(exec_of_something_else),
        cmocka_unit_test(children_are_followed),
        cmocka_unit_test(rate_is_measured),
    };
    return cmocka_run_group_tests(tests, need_uprobes, NULL);
}
