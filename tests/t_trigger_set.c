/* core/trigger/trigger_set on running programs: names to probes to decisions, with counts the programs
 * know. */
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
#include "core/trigger/call_rate.h"
#include "core/trigger/trigger_resolve.h"
#include "tests/lib_program.h"
#include "tests/lib_trigger.h"

static void entry_by_name(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s;
    static const char *const specs[] = {"traced", "victim:traced", "/^traced$/"};
    long calls = 0;
    for (size_t i = 0; i < 3; i++) {
        seen_arm(&s, &v, specs[i], NULL);
        calls += 50;
        assert_int_equal(victim_do(&v, s.loop, "call 50"), calls);
        seen_settle(&s);
        assert_int_equal(s.hits, 50);
        assert_int_equal(s.fired, 50);
        assert_int_equal(s.last.probe.ip, v.traced);
        assert_int_equal(s.last.probe.arg[0], 49);
        assert_false(s.last.has_duration);
        assert_non_null(strstr(trigger_set_where(s.set, 0), "victim!traced"));
        seen_close(&s);
    }
    char spec[32];
    snprintf(spec, sizeof spec, "0x%llx", (unsigned long long)v.traced);
    seen_arm(&s, &v, spec, NULL);
    assert_int_equal(victim_do(&v, s.loop, "call 5"), calls + 5);
    seen_settle(&s);
    assert_int_equal(s.hits, 5);
    seen_close(&s);
    victim_kill(&v);
}

static const struct trigger_member *hit_member(const struct seen *s)
{
    assert_in_range(s->last.probe.member, 0, trigger_set_members(s->set) - 1);
    return trigger_set_member(s->set, s->last.probe.member);
}

/* Which function of a set it was, also of returns and of a call that has not returned. */
static void a_hit_names_its_function(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    const struct trigger_conditions slow = {.slower_than_ns = 1};
    struct seen s;
    for (int returns = 0; returns < 2; returns++) {
        seen_arm(&s, &v, "/^(traced|recursive|jumper)$/", returns ? &slow : NULL);
        victim_do(&v, s.loop, "recurse 4");
        seen_settle(&s);
        assert_int_equal(s.hits, 4);
        assert_string_equal(hit_member(&s)->function, "recursive");
        victim_do(&v, s.loop, "call 3");
        seen_settle(&s);
        assert_int_equal(s.hits, 7);
        assert_string_equal(hit_member(&s)->function, "traced");
        assert_int_equal(trigger_set_members(s.set), 3);
        seen_close(&s);
    }
    seen_arm(&s, &v, "traced", NULL); /* needs no other name */
    victim_do(&v, s.loop, "call 1");
    seen_settle(&s);
    assert_null(hit_member(&s)->function);
    seen_close(&s);
    victim_kill(&v);
}

static void arm_and_call(struct seen *s, struct victim *v, const char *spec, const char *command,
                         uint64_t hits)
{
    seen_arm(s, v, spec, NULL);
    victim_do(v, s->loop, command);
    seen_settle(s);
    assert_int_equal(s->hits, hits);
}

static void field_B5_line_of_source(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s;
    /* The line of traced() that does the addition, by grep. */
    char *number =
        command_output("grep -n 'atomic_fetch_add(&calls, 1);' tests/victim.c | head -1");
    char *spec = xasprintf("victim.c:%d", atoi(number));
    seen_arm(&s, &v, spec, NULL);
    victim_do(&v, s.loop, "call 7");
    seen_settle(&s);
    assert_int_equal(s.hits, 7);
    assert_int_equal(s.last.probe.role, PROBE_POINT);
    free(spec);
    free(number);
    seen_close(&s);
    victim_kill(&v);
}

static void field_B4_conditions_on_hits(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s;
    struct trigger_conditions when = {.hits = 10, .max_snapshots = 3};
    seen_arm(&s, &v, "traced", &when);
    victim_do(&v, s.loop, "call 100");
    seen_settle(&s);
    const struct trigger_counts *c = trigger_set_counts(s.set, 0);
    assert_int_equal(c->hits, 100);
    assert_int_equal(c->fired, 3);
    assert_int_equal(c->not_nth, 90);
    assert_int_equal(c->spent, 7);
    assert_true(trigger_set_exhausted(s.set));
    trigger_set_snapshot_begin(s.set);
    seen_close(&s);

    struct trigger_conditions any = {0};
    seen_arm(&s, &v, "traced", &any);
    trigger_set_snapshot_begin(s.set);
    victim_do(&v, s.loop, "call 4");
    seen_settle(&s);
    assert_int_equal(s.fired, 0);
    assert_int_equal(trigger_set_counts(s.set, 0)->busy, 4);
    trigger_set_snapshot_done(s.set);
    victim_do(&v, s.loop, "call 4");
    seen_settle(&s);
    assert_int_equal(s.fired, 4);
    seen_close(&s);
    victim_kill(&v);
}

static void returns_with_durations(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s;
    seen_arm(&s, &v, "traced@return", NULL);
    assert_int_equal(victim_do(&v, s.loop, "threads 4 25"), 100);
    seen_settle(&s);
    assert_int_equal(s.hits, 100);
    assert_int_equal(s.with_duration, 100);
    assert_true(s.longest_ns > 0);
    assert_int_equal(s.last.probe.arg[0], 24); /* of the entry */
    assert_int_equal(s.last.probe.result, 24 + 25);
    seen_close(&s);

    /* Recursion: each level is a call; the outermost is the longest. */
    seen_arm(&s, &v, "recursive@return", NULL);
    victim_do(&v, s.loop, "recurse 40");
    seen_settle(&s);
    assert_int_equal(s.hits, 40);
    assert_int_equal(s.with_duration, 40);
    assert_int_equal(s.last.probe.arg[0], 40);
    assert_int_equal(s.last.probe.result, 40 * 41 / 2);
    assert_int_equal(s.last.duration_ns, s.longest_ns);
    seen_close(&s);

    /* Left by longjmp: no return, and none invented. */
    seen_arm(&s, &v, "jumper@return", NULL);
    victim_do(&v, s.loop, "longjmp 30");
    seen_settle(&s);
    assert_int_equal(s.hits, 0);
    seen_close(&s);
    victim_kill(&v);
}

/* The case that kills programs with uretprobes: an exception thrown through the traced function. */
static void exceptions_pass_through(void **state)
{
    (void)state;
    struct victim v = victim_start("victim_throw");
    struct seen s;
    seen_arm(&s, &v, "thrower@return", NULL);
    assert_int_equal(victim_do(&v, s.loop, "throw 200"), 100);
    seen_settle(&s);
    assert_int_equal(s.hits, 100); /* the even ones return */
    assert_int_equal(s.with_duration, 100);
    assert_int_equal(s.last.probe.arg[0], 198);
    assert_int_equal(s.last.probe.result, 198 + 200);
    struct trigger_calls calls = {0};
    trigger_set_add_calls(s.set, 0, &calls);
    assert_int_equal(calls.begun, 200);
    assert_int_equal(calls.durations.count, 100);
    assert_int_equal(calls.left, 99); /* of the last one nothing has shown yet that it was left */
    assert_int_equal(victim_do(&v, s.loop, "mixed 4 50"), 200);
    seen_settle(&s);
    assert_int_equal(s.hits, 200);
    assert_int_equal(s.with_duration, 200);
    seen_close(&s);
    victim_kill(&v);
}

static void slower_than_counts_only_slow_calls(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s;
    struct trigger_conditions when = {.slower_than_ns = 1000000000}; /* no stall of the machine is so long */
    seen_arm(&s, &v, "rate", &when); /* a function of the program that sleeps */
    victim_do(&v, s.loop, "rate 1 1");
    victim_do(&v, s.loop, "rate 1 1100000");
    victim_do(&v, s.loop, "rate 1 2");
    seen_settle(&s);
    assert_int_equal(s.hits, 1);
    assert_int_equal(s.fired, 1);
    assert_true(s.last.duration_ns > 1100000000);
    assert_int_equal(trigger_set_counts(s.set, 0)->fast, 2);
    seen_close(&s);
    victim_kill(&v);
}

static void field_B8_refused_with_the_reason(void **state)
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
        {"libc:no_such_function_at_all", MTUI_E_NOENT, "no_such_function_at_all in libc"},
        {"0x10", MTUI_E_NOENT, "executable"},
        {link_time, MTUI_E_NOENT, "executable"},
        {"victim.c:100000", MTUI_E_NOENT, "100000"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seen s = {0};
        seen_open(&s, NULL, cases[i].spec, NULL);
        int rc = trigger_set_arm(s.set, v.pid, &err);
        if (rc != cases[i].code || !strstr(err.text, cases[i].why))
            fail_msg("%s: %d %s", cases[i].spec, rc, err.text);
        seen_close(&s);
    }
    /* traced() begins with `nop` or with `endbr64; nop`: one byte in is an instruction, or not. */
    int byte = victim_byte(v.pid, v.traced);
    struct seen s = {0};
    seen_open(&s, NULL, inside, NULL);
    int rc = trigger_set_arm(s.set, v.pid, &err);
    if (byte == 0xf3) {
        assert_int_equal(rc, MTUI_E_NOTSUP);
        assert_non_null(strstr(err.text, "not where an instruction begins"));
    }
    seen_close(&s);
    free(dir);
    free(path);
    victim_kill(&v);
}

static void field_B9_kernel_function_is_refused(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct err err = {0};
    char *known = command_output("grep -c ' T vfs_read$' /proc/kallsyms");
    struct seen s = {0};
    seen_open(&s, NULL, "vfs_read", NULL);
    assert_int_equal(trigger_set_arm(s.set, v.pid, &err),
                     atoi(known) > 0 ? MTUI_E_NOTSUP : MTUI_E_NOENT);
    if (atoi(known) > 0)
        assert_non_null(strstr(err.text, "kernel function"));
    free(known);
    seen_close(&s);
    victim_kill(&v);
}

/* B7: the same source linked in every way. */
static void field_B7_kinds_of_programs(void **state)
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
            seen_arm(&s, &v, "traced@return", NULL);
            assert_int_equal(victim_do(&v, s.loop, "threads 2 10"), 20);
            seen_settle(&s);
            if (s.hits != 20 || s.with_duration != 20)
                fail_msg("%s: %d hits", flags[i], (int)s.hits);
            seen_close(&s);
            victim_kill(&v);
        }
        free(all);
        free(name);
        free(path);
    }
    program_rmdir(dir);
}

/* As some programs do that put their code into large pages: two mappings of one file, and no function more. */
static void a_file_that_is_mapped_twice(void **state)
{
    (void)state;
    char *dir = program_mkdir();
    program_write(dir, "twice.c",
                  "#include <fcntl.h>\n#include <stdio.h>\n#include <sys/mman.h>\n#include <unistd.h>\n"
                  "int twin_a(int x) { return x + 1; }\n"
                  "int twin_b(int x) { return x + 2; }\n"
                  "int twin_c(int x) { return x + 3; }\n"
                  "int main(void)\n{\n    int fd = open(\"/proc/self/exe\", O_RDONLY);\n"
                  "    for (int i = 0; i < 2; i++)\n"
                  "        if (mmap(NULL, (size_t)lseek(fd, 0, SEEK_END), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) "
                  "== MAP_FAILED)\n            return 1;\n"
                  "    puts(\"ready\");\n    fflush(stdout);\n    return getchar();\n}\n");
    assert_true(program_build(dir, "twice.c", "twice", "-O1 -g"));
    struct program p;
    program_start(&p, dir, "./twice");
    struct victim v = {.pid = p.pid};
    struct seen s;
    seen_arm(&s, &v, "/^twin_/", NULL);
    assert_string_equal(trigger_set_where(s.set, 0), "3 functions");
    assert_int_equal(trigger_set_members(s.set), 3);
    seen_close(&s);
    seen_arm(&s, &v, "twin_b", NULL);
    assert_non_null(strstr(trigger_set_where(s.set, 0), "twice!twin_b at 0x"));
    assert_null(trigger_set_member(s.set, 0)->function); /* the trigger says it all */
    seen_close(&s);
    program_end(&p);
    program_rmdir(dir);
}

/* The program imports it: its PLT stub is no place to stop, the library's function is. */
static void imported_function(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s;
    arm_and_call(&s, &v, "getppid", "libc 12", 12);
    assert_non_null(strstr(trigger_set_where(s.set, 0), "libc.so.6!"));
    seen_close(&s);
    victim_kill(&v);
}

/* E2: the file is unlinked, and another one stands in its place. E1: it exists in another mount
 * namespace only. */
static void field_E1_E2_files_out_of_reach(void **state)
{
    (void)state;
    char *dir = program_mkdir(), *built = victim_path("victim");
    char *path = xasprintf("%s/gone", dir), *script = xasprintf("%s/inside", dir);
    struct seen s;
    assert_true(program_shell(dir, "cp '%s' gone && cp '%s' kept", built, built));
    struct victim v = victim_start_path(path);
    assert_true(program_shell(dir, "rm gone && cp /bin/true gone"));
    arm_and_call(&s, &v, "traced@return", "call 9", 9);
    seen_close(&s);
    victim_kill(&v);

    char *text = xasprintf("#!/bin/sh\nexec unshare -m sh -c 'mount -t tmpfs none %s/mnt && "
                           "cp %s/kept %s/mnt/v && exec %s/mnt/v'\n",
                           dir, dir, dir, dir);
    program_write(dir, "inside", text);
    if (program_shell(dir, "mkdir mnt && chmod +x inside && unshare -m true")) {
        v = victim_start_path(script);
        arm_and_call(&s, &v, "traced@return", "threads 2 6", 12);
        seen_close(&s);
        victim_kill(&v);
    } else {
        print_message("  SKIPPED: no mount namespaces here\n");
    }
    free(text);
    free(script);
    free(path);
    free(built);
    program_rmdir(dir);
}

static void children_are_followed(void **state)
{
    (void)state;
    struct victim v = victim_start("victim");
    struct seen s = {0};
    struct err err = {0};
    struct trigger_set_options options = {.probe = {.children = true}};
    seen_open(&s, &options, "traced", NULL);
    assert_int_equal(trigger_set_arm(s.set, v.pid, &err), 0);
    assert_int_equal(victim_do(&v, s.loop, "call 1"), 1);
    assert_int_equal(victim_do(&v, s.loop, "fork 3 10"), 31);
    assert_int_equal(victim_do(&v, s.loop, "call 2"), 33);
    seen_settle(&s);
    assert_true(s.hits >= 3 && s.hits <= 33);
    assert_int_equal(s.last.probe.pid, v.pid);
    seen_close(&s);
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
    assert_true(loop_until(loop, &result.seen.duration_ns, 1));
    assert_int_equal(result.seen.hits, 300);
    assert_true(result.seen.duration_ns >= 200000000);
    assert_true(result.per_second > 0 && result.per_second <= 1500.0);
    call_rate_free(rate);
    trigger_places_free(&places);
    trigger_fini(&t);
    modules_free(m);
    loop_free(loop);
    victim_kill(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entry_by_name),
        cmocka_unit_test(a_hit_names_its_function),
        cmocka_unit_test(field_B5_line_of_source),
        cmocka_unit_test(field_B4_conditions_on_hits),
        cmocka_unit_test(returns_with_durations),
        cmocka_unit_test(exceptions_pass_through),
        cmocka_unit_test(slower_than_counts_only_slow_calls),
        cmocka_unit_test(field_B8_refused_with_the_reason),
        cmocka_unit_test(field_B9_kernel_function_is_refused),
        cmocka_unit_test(field_B7_kinds_of_programs),
        cmocka_unit_test(a_file_that_is_mapped_twice),
        cmocka_unit_test(imported_function),
        cmocka_unit_test(field_E1_E2_files_out_of_reach),
        cmocka_unit_test(children_are_followed),
        cmocka_unit_test(rate_is_measured),
    };
    return cmocka_run_group_tests(tests, seen_need_uprobes, NULL);
}
