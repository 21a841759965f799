/* From the request of a snapshot to the command written to perf, and to its file: real perf with
 * `sample`, and `pt` against the fake perf (the way over the control descriptors). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "core/base/fmt.h"
#include "tests/lib_record.h"

#define ROUNDS 15 /* lib_record keeps 16 snapshots, one is the end file */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void print_row(const char *what, uint64_t *ns, int n)
{
    char low[FMT_MAX], mid[FMT_MAX], high[FMT_MAX];
    qsort(ns, (size_t)n, sizeof *ns, by_value);
    printf("%-44s min %-9s median %-9s max %s\n", what, fmt_duration(low, ns[0]),
           fmt_duration(mid, ns[n / 2]), fmt_duration(high, ns[n - 1]));
}

static void measure(struct record_run *run, const char *name)
{
    uint64_t sent[ROUNDS], done[ROUNDS];
    char what[96];
    fake_start(run);
    record_wait_state(run, RECORDER_ENABLED, 30);
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(recorder_snapshot(run->recorder, "bench", NULL), 0);
        record_wait_snapshots(run, i + 1, 30);
        sent[i] = run->snapshots[i].sent_ns - run->snapshots[i].requested_ns;
        done[i] = run->snapshots[i].done_ns - run->snapshots[i].requested_ns;
    }
    recorder_stop(run->recorder, NULL);
    record_wait_end(run, 30);
    snprintf(what, sizeof what, "%s: request to command written", name);
    print_row(what, sent, ROUNDS);
    snprintf(what, sizeof what, "%s: request to finished file", name);
    print_row(what, done, ROUNDS);
    record_teardown(run);
}

static void bench(void **state)
{
    (void)state;
    struct record_run run;
    record_setup(&run, false);
    measure(&run, "sample, perf");
    fake_use();
    fake_setup(&run, "", "6.1.0", false);
    run.plan.recorder = PLAN_PT;
    measure(&run, "pt, fake perf");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bench)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
