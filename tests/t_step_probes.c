/* Windows in which places with a probe run again: of the trigger itself, of others, of others' tracers. The
 * kernel steps over such a place in its own way; the program must live, and the call be recorded as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/machine/perf_event.h"
#include "core/symbols/elf_file.h"
#include "core/trigger/uprobe.h"
#include "lib_stepper.h"

static const struct step_recorder_options calls = {
    .one_file = true, .when = {.max_snapshots = 1}, .tracer = {.at_sites = true, .budget = 200000}};

/* How often a function of the victim was called, by the truth. */
static size_t calls_of(const struct stepper *s, const char *function)
{
    char line[256], kind[16];
    uint64_t from, to, addr = stepper_address(s, function);
    size_t n = 0;
    FILE *f = fopen(s->truth, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        n += sscanf(line, "%*u\t%*d\t%15s\t%" SCNx64 "\t%" SCNx64, kind, &from, &to) == 3 &&
             strcmp(kind, "call") == 0 && to == addr;
    fclose(f);
    return n;
}

static size_t windows_of(const struct stepper *s)
{
    char *text = run_read_file(s->truth, NULL);
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, "\tbegin\t")); at++)
        n++;
    free(text);
    return n;
}

/* Steps one call from the first hit of these places to its return. Another place may begin a window of its own
 * before the command to stop is there: then once more. */
static void step_places(struct stepper *s, const char *const *places, size_t n)
{
    for (int tries = 0;; tries++) {
        stepper_start_gated(s, "recursion");
        stepper_sites(s, places, n);
        stepper_record(s, &calls, true);
        stepper_command(s, "enable");
        stepper_go(s);
        assert_non_null(strstr(stepper_wait(s, "ended: "), "ended: returned"));
        stepper_stop(s);
        stepper_runs_free(s, places[0] + (places[0][0] == '+'));
        if (windows_of(s) == 1 || tries == 20)
            break;
        stepper_end(s);
    }
    assert_true(stepper_compare(s, s->data) > 0);
}

/* fib(6) is 25 calls, the first of which is where the window begins; each calls leaf once. */
static void recursion(void **state)
{
    struct stepper s;
    const char *places[] = {"recurse"};
    (void)state;
    step_places(&s, places, 1);
    assert_int_equal(calls_of(&s, "recurse"), 24);
    assert_int_equal(calls_of(&s, "leaf"), 25);
    assert_true(stepper_end(&s) > 1);
}

static void nested_triggers(void **state)
{
    struct stepper s;
    const char *places[] = {"work", "recurse", "leaf"};
    (void)state;
    step_places(&s, places, 3);
    assert_int_equal(calls_of(&s, "recurse"), 25);
    assert_int_equal(calls_of(&s, "leaf"), 26);
    assert_true(stepper_end(&s) > 1);
}

/* The first hit of the place inside is in recurse(2), after recurse(1) has returned: recurse(0), with its
 * leaf, is what is left of that call. */
static void place_inside(void **state)
{
    struct stepper s;
    const char *places[] = {"+middle"};
    (void)state;
    step_places(&s, places, 1);
    assert_int_equal(calls_of(&s, "recurse"), 1);
    assert_int_equal(calls_of(&s, "leaf"), 1);
    assert_true(stepper_end(&s) > 1);
}

/* With an entry that contains it: the window is that of the entry. */
static void place_inside_an_entry(void **state)
{
    struct stepper s;
    const char *places[] = {"work", "+middle"};
    (void)state;
    step_places(&s, places, 2);
    assert_int_equal(calls_of(&s, "recurse"), 25);
    assert_true(stepper_end(&s) > 1);
}

/* Triggers of two kinds may have the same function among theirs: it is a hit of each. */
static void two_at_one_place(void **state)
{
    static const struct step_recorder_options each = {.tracer = {.at_sites = true, .budget = 200000}};
    const char *places[] = {"recurse", "recurse"};
    struct stepper s;
    int tid[2], verdict;
    unsigned member;
    uint64_t address[2];
    (void)state;
    stepper_start_gated(&s, "recursion");
    stepper_sites(&s, places, 2);
    stepper_record(&s, &each, true);
    stepper_command(&s, "enable");
    stepper_go(&s);
    for (unsigned i = 0; i < 2; i++) {
        const char *start = i ? "hit 1 " : "hit 0 ", *hit = strstr(stepper_wait(&s, start), start);
        assert_int_equal(sscanf(hit + strlen(start), "%u %d %d %" SCNx64, &member, &verdict, &tid[i], &address[i]), 4);
    }
    assert_int_equal(tid[0], tid[1]);
    assert_int_equal(address[0], address[1]);
    assert_int_equal(address[0], stepper_address(&s, "recurse"));
    stepper_stop(&s);
    stepper_runs_free(&s, "recurse");
    stepper_end(&s);
}

/* Probes that are not the recorder's own: somebody counts the calls meanwhile. */
static void probes_of_others(void **state)
{
    struct stepper s;
    struct elf_file *f;
    struct perf_event_attr attr = {0};
    uint32_t type;
    uint64_t offset, count = 0;
    const char *place = "work";
    (void)state;
    stepper_start_gated(&s, "recursion");
    stepper_site(&s, place);
    char *exe = run_tool("step_victim");
    assert_int_equal(elf_file_open_path(exe, &f, NULL), 0);
    assert_true(elf_file_vaddr_to_offset(f, stepper_vaddr("leaf"), &offset));
    elf_file_free(f);
    assert_int_equal(uprobe_type("/sys", &type, NULL), 0);
    uprobe_attr(&attr, type, exe, offset);
    attr.size = sizeof attr;
    int fd = perf_event_open(&attr, s.target.pid, -1);
    assert_true(fd >= 0);
    stepper_record(&s, &calls, true);
    stepper_command(&s, "enable");
    stepper_go(&s);
    assert_non_null(strstr(stepper_wait(&s, "ended: "), "ended: returned"));
    stepper_stop(&s);
    assert_true(stepper_compare(&s, s.data) > 0);
    assert_int_equal(calls_of(&s, "leaf"), 26);
    assert_true(stepper_end(&s) > 1);
    assert_int_equal(read(fd, &count, sizeof count), sizeof count);
    assert_true(count > 26); /* the rounds at full speed too */
    close(fd);
    free(exe);
}

static double now_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

#define BIRTHS 50

/* Threads that come and go: the first call of each is seen, and none waits for the events of those before it to be
 * closed, which takes the kernel 50 to 200 ms each. */
static void threads_that_come_and_go(void **state)
{
    static const struct step_recorder_options each = {.tracer = {.at_sites = true, .budget = 200000}};
    double best = 1e9;
    (void)state;
    for (int attempt = 0; attempt < 3 && best > BIRTHS * 0.03; attempt++) {
        struct stepper s;
        pid_t last = 0;
        double start = 0;
        stepper_start_gated(&s, "births");
        stepper_site(&s, "born");
        stepper_record(&s, &each, true);
        stepper_command(&s, "enable");
        stepper_go(&s);
        for (int i = 0; i < BIRTHS; i++) {
            int tid, verdict;
            unsigned trigger, member;
            const char *hit = strstr(stepper_wait(&s, "hit "), "hit ");
            assert_int_equal(sscanf(hit, "hit %u %u %d %d", &trigger, &member, &verdict, &tid), 4);
            assert_int_not_equal(tid, last);
            last = tid;
            if (i == 0)
                start = now_s();
        }
        double took = now_s() - start;
        best = took < best ? took : best;
        stepper_stop(&s);
        stepper_runs_free(&s, "born");
        assert_true(stepper_end(&s) >= BIRTHS);
    }
    print_message("%d threads one after the other: %.0f ms\n", BIRTHS, best * 1e3);
    assert_true(best < BIRTHS * 0.03);
}

int main(void)
{
    if (getuid() != 0) {
        print_message("[  SKIPPED ] t_step_probes: uprobes need root or CAP_PERFMON\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recursion),
        cmocka_unit_test(nested_triggers),
        cmocka_unit_test(place_inside),
        cmocka_unit_test(place_inside_an_entry),
        cmocka_unit_test(two_at_one_place),
        cmocka_unit_test(probes_of_others),
        cmocka_unit_test(threads_that_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
