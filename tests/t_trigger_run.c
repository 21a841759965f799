/* core/trigger/trigger_set on programs that start, exec and load libraries: what is pending comes true. */
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
#include "core/machine/target.h"
#include "core/trigger/hwbreak.h"
#include "core/trigger/trigger_prepare.h"
#include "tests/lib_program.h"
#include "tests/lib_trigger.h"

static void on_target(void *arg, enum target_state state)
{
    if (state == TARGET_ENDED)
        ++*(uint64_t *)arg;
}

/* Runs ARGV to its end with one trigger armed before its first instruction. */
static void run_prepared(struct seen *s, char *const *argv, const char *spec, bool children,
                         struct trigger_prepared *prepared)
{
    struct target_callbacks events = {.changed = on_target};
    struct target_run_options run = {.argv = argv, .stdio = TARGET_PTY};
    struct target *target = NULL;
    struct err err = {0};
    uint64_t ended = 0;
    *s = (struct seen){.loop = loop_new()};
    if (target_run(s->loop, &run, &events, &ended, &target, &err) != 0)
        fail_msg("%s", err.text);
    struct trigger_set_options options = {.may_pend = true,
                                          .executable = target_executable(target),
                                          .prepared = prepared,
                                          .probe = {.children = children}};
    seen_open(s, &options, spec, NULL);
    if (trigger_set_arm(s->set, target_pid(target), &err) != 0)
        fail_msg("%s: %s", spec, err.text);
    assert_int_equal(target_go(target, &err), 0);
    assert_true(loop_until(s->loop, &ended, 1));
    seen_settle(s);
    target_free(target, TARGET_END);
}

static void run_program(struct seen *s, char *const *argv, const char *spec, bool children)
{
    run_prepared(s, argv, spec, children, NULL);
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
    seen_close(&s);
    free(libc);
}

/* What sat where it was expected and was not hit was not called: that is another thing than not to be there. */
static void never_called(void **state)
{
    (void)state;
    struct seen s;
    char true_name[] = "true";
    char *program[] = {true_name, NULL};
    char *libc = command_output("ldd /bin/true | grep -c libc.so.6");
    run_program(&s, program, "libc.so.6:getppid", false);
    if (atoi(libc) > 0)
        assert_null(trigger_set_why_not_found(s.set, 0));
    assert_int_equal(s.hits, 0);
    seen_close(&s);
    run_program(&s, program, "no_such_function_anywhere", false);
    char *why = trigger_set_why_not_found(s.set, 0);
    assert_non_null(why);
    assert_non_null(strstr(why, "no_such_function_anywhere"));
    free(why);
    seen_close(&s);
    free(libc);
}

/* A script's interpreter is another program than the file that was started: what it runs is found
 * at the exec. */
static void script(void **state)
{
    (void)state;
    char *path = victim_path("victim");
    char sh[] = "sh", c[] = "-c";
    char *text = xasprintf("i=0; while [ $((i += 1)) -le 20 ]; do echo rate 100 1000; done | "
                           "'%s'; true",
                           path);
    char *argv[] = {sh, c, text, NULL};
    struct seen s;
    run_program(&s, argv, "traced", true);
    assert_true(s.hits > 0 && s.hits <= 2000);
    print_message("  missed %d ms\n", 2000 - (int)s.hits);
    seen_close(&s);
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
        assert_int_equal(s.last.probe.arg[0], 3);
        seen_close(&s);
    }
    free(path);
    program_rmdir(dir);
}

/* Of a program that is always loaded at the same place, an address, here from nm, is one before it runs; of another it
 * is refused. */
static void address_in_a_program_that_does_not_run_yet(void **state)
{
    static const char *const flags[] = {"-O1 -no-pie -static", "-O1 -no-pie", "-O1 -fPIE -pie"};
    struct target_callbacks events = {.changed = on_target};
    struct err err = {0};
    (void)state;
    char *dir = program_mkdir();
    program_write(
        dir, "fixed.c",
        "__attribute__((noinline)) void step(int i) { __asm__ volatile(\"\" :: \"r\"(i)); }\n"
        "int main(void) { step(1); step(2); step(3); return 0; }\n");
    char *path = xasprintf("%s/fixed", dir);
    char *argv[] = {path, NULL};
    for (size_t i = 0; i < 3; i++) {
        struct seen s;
        assert_true(program_build(dir, "fixed.c", "fixed", flags[i]));
        char *spec = xasprintf("0x%llx", (unsigned long long)program_nm(dir, "fixed", "step"));
        if (i < 2) {
            run_program(&s, argv, spec, false);
            assert_int_equal(s.hits, 3);
            assert_int_equal(s.last.probe.arg[0], 3);
            seen_close(&s);
        } else {
            struct target_run_options run = {.argv = argv, .stdio = TARGET_PTY};
            struct target *target = NULL;
            uint64_t ended = 0;
            s = (struct seen){.loop = loop_new()};
            assert_int_equal(target_run(s.loop, &run, &events, &ended, &target, &err), 0);
            struct trigger_set_options options = {.may_pend = true, .executable = target_executable(target)};
            seen_open(&s, &options, spec, NULL);
            assert_int_equal(trigger_set_arm(s.set, target_pid(target), &err), MTUI_E_INVAL);
            assert_non_null(strstr(err.text, "may be loaded anywhere"));
            target_free(target, TARGET_END);
            seen_close(&s);
        }
        free(spec);
    }
    free(path);
    program_rmdir(dir);
}

/* Names looked for beforehand, in a thread, before the program is started: the set takes what was found. */
static void prepared_before_the_start(void **state)
{
    (void)state;
    char *dir = program_mkdir();
    program_write(dir, "two.c",
                  "__attribute__((noinline)) void step(int i) { __asm__ volatile(\"\" :: \"r\"(i)); }\n"
                  "int main(void) { step(1); step(2); return 0; }\n");
    assert_true(program_build(dir, "two.c", "two", "-O1 -fPIE -pie"));
    char *path = xasprintf("%s/two", dir);
    char step[] = "step", none[] = "not_there", bad[] = "/(/";
    char *both[] = {step, none}, *one[] = {step}, *wrong[] = {bad}, *argv[] = {path, NULL};
    struct trigger_prepared *p = NULL;
    struct trigger_places places = {0};
    struct err err = {0};
    int rc = 1;
    assert_int_equal(trigger_prepare_program(path, both, 2, NULL, NULL, &p, &err), 0);
    assert_false(trigger_prepared_take_program(p, "/bin/true", 0, 2, &places, &rc, &err));
    assert_false(trigger_prepared_take_program(p, path, 0, 1, &places, &rc, &err));
    assert_true(trigger_prepared_take_program(p, path, 0, 2, &places, &rc, &err));
    assert_int_equal(rc, 0);
    assert_int_equal(places.sites.len, 1);
    trigger_places_free(&places);
    assert_false(trigger_prepared_take_program(p, path, 0, 2, &places, &rc, &err));
    assert_true(trigger_prepared_take_program(p, path, 1, 2, &places, &rc, &err));
    assert_int_equal(rc, MTUI_E_NOENT);
    assert_non_null(strstr(err.text, "not_there"));
    trigger_prepared_free(p);
    assert_true(trigger_prepare_program(path, wrong, 1, NULL, NULL, &p, &err) < 0);

    struct seen s;
    assert_int_equal(trigger_prepare_program(path, one, 1, NULL, NULL, &p, &err), 0);
    run_prepared(&s, argv, step, false, p);
    assert_int_equal(s.hits, 2);
    assert_false(trigger_prepared_take_program(p, path, 0, 1, &places, &rc, &err)); /* it was taken */
    trigger_prepared_free(p);
    seen_close(&s);
    free(path);
    program_rmdir(dir);
}

static void pending_until_mapped(void **state)
{
    (void)state;
    char *dir = program_mkdir();
    program_write(dir, "plug.c",
                  "#include <poll.h>\n"
                  "void plugged(long i) { (void)i; poll(0, 0, 1); }\n");
    assert_true(program_build(dir, "plug.c", "plug.so", "-O1 -shared -fPIC"));
    struct victim v = victim_start("victim");
    struct seen s = {0};
    struct err err = {0};
    struct trigger_set_options options = {.may_pend = true};
    seen_open(&s, &options, "plugged", NULL);
    assert_int_equal(trigger_set_arm(s.set, v.pid, &err), 0);
    assert_int_equal(trigger_set_status(s.set, 0), TRIGGER_PENDING);
    assert_non_null(strstr(trigger_set_where(s.set, 0), "pending"));
    /* Calls 1 ms apart until it is found; then each is seen. */
    char *command = xasprintf("dlopen %s/plug.so plugged 10", dir);
    for (int i = 0; i < 200 && trigger_set_status(s.set, 0) == TRIGGER_PENDING; i++)
        victim_do(&v, s.loop, command);
    assert_int_equal(trigger_set_status(s.set, 0), TRIGGER_ARMED);
    assert_non_null(strstr(s.message, "plug.so!plugged"));
    seen_settle(&s);
    uint64_t before = s.hits;
    victim_do(&v, s.loop, command);
    seen_settle(&s);
    assert_int_equal(s.hits, before + 10);
    free(command);
    seen_close(&s);
    victim_kill(&v);
    program_rmdir(dir);
}

/* Looked up again by another thread. */
static bool is_armed(void *arg)
{
    return trigger_set_status(((struct seen *)arg)->set, 0) == TRIGGER_ARMED;
}

static void field_H8_exec_in_the_target(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s;
    seen_arm(&s, &v, "traced", NULL);
    victim_do(&v, s.loop, "call 3");
    victim_send(&v, "exec-thread");
    victim_wait(&v, s.loop);
    seen_settle(&s);
    assert_true(loop_until_true(s.loop, is_armed, &s));
    assert_int_equal(victim_do(&v, s.loop, "threads 2 20"), 40);
    seen_settle(&s);
    assert_int_equal(s.hits, 43);
    assert_non_null(strstr(s.message, "another program"));
    seen_close(&s);
    victim_kill(&v);
}

static bool has_fired(void *arg)
{
    return ((struct seen *)arg)->hits > 0;
}

static bool was_told(void *arg)
{
    return strstr(((struct seen *)arg)->message, "waiting for") != NULL;
}

/* Starts ARGV with one trigger armed before it runs, and waits for something to become true. */
static void run_until(struct seen *s, char *const *argv, const char *spec, bool (*what)(void *arg))
{
    struct target_callbacks events = {.changed = on_target};
    struct target_run_options run = {.argv = argv, .stdio = TARGET_PTY};
    struct target *target = NULL;
    struct err err = {0};
    uint64_t ended = 0;
    *s = (struct seen){.loop = loop_new()};
    assert_int_equal(target_run(s->loop, &run, &events, &ended, &target, &err), 0);
    struct trigger_set_options options = {.may_pend = true, .executable = target_executable(target)};
    seen_open(s, &options, spec, NULL);
    if (trigger_set_arm(s->set, target_pid(target), &err) != 0)
        fail_msg("%s: %s", spec, err.text);
    assert_int_equal(target_go(target, &err), 0);
    assert_true(loop_until_true(s->loop, what, s));
    target_free(target, TARGET_END);
}

/* The kernel takes no uprobe at a lock prefix, and does not say so for a file that is mapped later. */
static void instruction_that_takes_no_uprobe(void **state)
{
    (void)state;
    char *dir = program_mkdir();
    unsigned slots = 0;
    struct seen s;
    struct err err = {0};
    program_write(dir, "locked.c",
                  "#include <poll.h>\n"
                  "long n;\n"
                  "void locked(void), many(void);\n"
                  "__asm__(\".text\\n.globl locked\\n.type locked,@function\\n\"\n"
                  "        \"locked: lock addq $1, n(%rip)\\n test %rdi, %rdi\\n jz 1f\\n ret\\n\"\n"
                  "        \"1: ret\\n\\n nop\\n ret\\n nop\\n ret\\n nop\\n ret\\n .size locked, . - locked\\n\");\n"
                  "int main(void) { for (;;) { locked(); poll(0, 0, 1); } }\n");
    assert_true(program_build(dir, "locked.c", "locked", "-O1 -fPIE -pie"));
    char *path = xasprintf("%s/locked", dir);
    char *argv[] = {path, NULL};
    bool fire = hwbreak_self_test(&slots, NULL) == 0;
    if (fire) {
        run_until(&s, argv, "locked", has_fired);
        assert_int_equal(trigger_set_status(s.set, 0), TRIGGER_ARMED);
        assert_non_null(strstr(s.message, "\"lock addq"));
        seen_close(&s);
    }

    /* More places than there are breakpoints, or breakpoints not wanted: refused, not waited for. */
    struct target_callbacks events = {.changed = on_target};
    struct target_run_options run = {.argv = argv, .stdio = TARGET_PTY};
    uint64_t ended = 0;
    for (int i = 0; i < 2; i++) {
        struct target *target = NULL;
        s = (struct seen){.loop = loop_new()};
        assert_int_equal(target_run(s.loop, &run, &events, &ended, &target, &err), 0);
        struct trigger_set_options options = {.may_pend = true,
                                              .probe.mechanism = i ? PROBE_UPROBE : PROBE_AUTO,
                                              .executable = target_executable(target)};
        seen_open(&s, &options, i ? "locked" : "locked@return", NULL);
        assert_int_equal(trigger_set_arm(s.set, target_pid(target), &err), MTUI_E_NOTSUP);
        assert_non_null(strstr(err.text, "\"lock addq"));
        target_free(target, TARGET_END);
        seen_close(&s);
    }
    free(path);
    program_rmdir(dir);
}

/* A mistyped name is not waited for in silence. */
static void name_that_is_not_there(void **state)
{
    (void)state;
    char *path = victim_path("victim");
    char *argv[] = {path, NULL};
    struct seen s;
    run_until(&s, argv, "tracde", was_told);
    assert_non_null(strstr(s.message, "tracde: no function of that name in victim or its libraries"));
    assert_non_null(strstr(s.message, "near: traced"));
    assert_int_equal(trigger_set_status(s.set, 0), TRIGGER_PENDING);
    seen_close(&s);
    run_until(&s, argv, "libc:no_such_function_at_all", was_told);
    assert_non_null(strstr(s.message, "no function no_such_function_at_all in libc"));
    seen_close(&s);
    free(path);
}

/* Said once, when hits begin to count. */
static void late_births_are_told(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    for (int i = 0; i < 4; i++) {
        struct seen s = {0};
        struct err err = {0};
        struct trigger_set_options options = {.probe = {.children = i & 1, .no_bpf = i & 2}};
        seen_open(&s, &options, "traced", NULL);
        trigger_set_hold(s.set, true);
        assert_int_equal(trigger_set_arm(s.set, v.pid, &err), 0);
        assert_int_equal(s.messages, 0);
        struct probe_stats stats;
        probe_stats(trigger_set_probe(s.set), &stats);
        trigger_set_hold(s.set, false);
        trigger_set_hold(s.set, false);
        assert_int_equal(s.messages, i & 1 || !stats.covers_births);
        assert_int_equal(strstr(s.message, "children") != NULL, i & 1);
        assert_int_equal(strstr(s.message, "new threads") != NULL, !stats.covers_births);
        assert_true(!(i & 2) || !stats.covers_births);
        seen_close(&s);
    }
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
    seen_open(&s, NULL, spec, NULL);
    if (trigger_set_arm(s.set, target_pid(target), &err) != 0)
        fail_msg("%s: %s", spec, err.text);
    assert_int_equal(target_input(target, "x\n", 2, &err), 0);
    assert_true(loop_until_true(s.loop, disarmed, &s));
    assert_non_null(strstr(s.message, "disarmed: the program was replaced (exec) by one that does not have it, which was in /"));
    assert_null(strstr(s.message, "No such file")); /* what the old program had mapped is not opened again */
    target_free(target, TARGET_END);
    free(spec);
    free(entry);
    free(shell);
    seen_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_program),
        cmocka_unit_test(never_called),
        cmocka_unit_test(script),
        cmocka_unit_test(prepared_before_the_start),
        cmocka_unit_test(address_in_a_program_that_does_not_run_yet),
        cmocka_unit_test(own_functions_of_a_started_program),
        cmocka_unit_test(pending_until_mapped),
        cmocka_unit_test(instruction_that_takes_no_uprobe),
        cmocka_unit_test(name_that_is_not_there),
        cmocka_unit_test(late_births_are_told),
        cmocka_unit_test(field_H8_exec_in_the_target),
        cmocka_unit_test(exec_of_something_else),
    };
    return cmocka_run_group_tests(tests, seen_need_uprobes, NULL);
}
