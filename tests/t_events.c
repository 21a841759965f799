/* tui/analysis/events: walked forward, back and from the middle, against the list of all events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "core/base/alloc.h"
#include "tests/lib_gentrace.h"
#include "tui/analysis/events.h"

#define ALL_KINDS ((1u << EVENT_KINDS) - 1)

static void all_events_both_ways(void **state)
{
    (void)state;
    uint64_t seed = 6;
    for (unsigned round = 0; round < 6; round++) {
        struct trace *t = gentrace_random(&(struct gentrace){.spans = 4000,
                                                             .threads = 1 + round,
                                                             .depth = 7,
                                                             .functions = 20,
                                                             .gaps = 30,
                                                             .marks = 20,
                                                             .base_ns = 1000,
                                                             .step_ns = round == 3 ? 1 : 200,
                                                             .seed = 21 + round});
        struct flame_source *src = flame_source_new(t, NULL);
        uint64_t spans = 0;
        size_t ngaps, nmarks;
        for (size_t i = 0; i < trace_thread_count(t); i++)
            spans += trace_thread(t, i)->spans;
        trace_gaps(t, &ngaps);
        trace_marks(t, &nmarks);
        size_t total = (size_t)(2 * spans) + ngaps + nmarks, n = 0;
        struct event *list = xcalloc(total + 1, sizeof *list);
        struct events *e =
            events_new(t, src, (struct events_filter){.thread = EVENTS_ALL_THREADS, .kinds = ALL_KINDS});
        size_t depth[64] = {0};
        while (n <= total && events_next(e, &list[n])) {
            const struct event *ev = &list[n];
            assert_true(n == 0 || ev->time_ns >= list[n - 1].time_ns);
            /* Calls and returns of each thread nest. */
            if (ev->kind == EVENT_CALL)
                assert_int_equal(depth[ev->thread]++, ev->depth);
            if (ev->kind == EVENT_RETURN)
                assert_int_equal(--depth[ev->thread], ev->depth);
            n++;
        }
        assert_int_equal(n, total);
        struct event ev;
        for (size_t i = n; i-- > 0;) {
            assert_true(events_prev(e, &ev));
            assert_true(ev.time_ns == list[i].time_ns);
        }
        assert_false(events_prev(e, &ev));
        /* From anywhere: the same list. */
        for (int k = 0; k < 200; k++) {
            size_t i = gen_random(&seed) % n;
            uint64_t at = list[i].time_ns + gen_random(&seed) % 3 - 1;
            while (i > 0 && list[i - 1].time_ns >= at)
                i--;
            while (i < n && list[i].time_ns < at)
                i++;
            events_seek(e, at);
            for (size_t j = i; j < n && j < i + 40; j++) {
                assert_true(events_next(e, &ev));
                assert_true(ev.time_ns == list[j].time_ns);
            }
            events_seek(e, at);
            for (size_t j = i; j-- > 0 && j + 40 > i;) {
                assert_true(events_prev(e, &ev));
                assert_true(ev.time_ns == list[j].time_ns);
            }
        }
        events_free(e);
        /* One thread, calls only. */
        e = events_new(t, src, (struct events_filter){.kinds = 1u << EVENT_CALL});
        for (n = 0; events_next(e, &ev); n++)
            assert_true(ev.kind == EVENT_CALL && ev.thread == 0);
        assert_int_equal(n, trace_thread(t, 0)->spans);
        struct events *copy = events_copy(e);
        assert_true(events_prev(copy, &ev));
        assert_false(events_next(e, &ev));
        events_free(copy);
        events_free(e);
        free(list);
        flame_source_free(src);
        trace_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_events_both_ways)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
