#include "tests/lib_statistics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* With several threads functions are numbered as they turn up. */
static bool same_function(const struct functions *a, fn_id f, const struct functions *b, fn_id g)
{
    const struct function *x = functions_get(a, f), *y = functions_get(b, g);
    return strcmp(x->name, y->name) == 0 && strcmp(x->module, y->module) == 0;
}

void statistics_assert_equal(const struct stats *a, const struct functions *of_a, const struct stats *b,
                             const struct functions *of_b, const char *what)
{
    size_t n = 0, m = 0;
    const struct function_stats *f = stats_functions(a, &n), *g = stats_functions(b, &m);
    if (n != m)
        fail_msg("%s: %zu functions, %zu in the whole trace", what, n, m);
    for (size_t i = 0; i < n; i++) {
        if (!same_function(of_a, f[i].fn, of_b, g[i].fn) || f[i].calls != g[i].calls || f[i].total_ns != g[i].total_ns ||
            f[i].self_ns != g[i].self_ns)
            fail_msg("%s: place %zu is %s, %llu calls, %llu total, %llu self; in the whole trace %s, %llu, %llu, %llu",
                     what, i, functions_get(of_a, f[i].fn)->name, (unsigned long long)f[i].calls,
                     (unsigned long long)f[i].total_ns, (unsigned long long)f[i].self_ns,
                     functions_get(of_b, g[i].fn)->name, (unsigned long long)g[i].calls,
                     (unsigned long long)g[i].total_ns, (unsigned long long)g[i].self_ns);
        if (f[i].min_ns != g[i].min_ns || f[i].max_ns != g[i].max_ns || f[i].p50_ns != g[i].p50_ns ||
            f[i].p99_ns != g[i].p99_ns || f[i].sum_ns != g[i].sum_ns ||
            memcmp(f[i].histogram, g[i].histogram, sizeof f[i].histogram) != 0)
            fail_msg("%s: the durations of %s differ", what, functions_get(of_a, f[i].fn)->name);
    }
    if (stats_gap_ns(a) != stats_gap_ns(b) || stats_gap_count(a) != stats_gap_count(b))
        fail_msg("%s: %llu ns in %zu gaps, %llu in %zu in the whole trace", what, (unsigned long long)stats_gap_ns(a),
                 stats_gap_count(a), (unsigned long long)stats_gap_ns(b), stats_gap_count(b));
}

bool statistics_check(const char *path, const struct open_options *options, const struct trace *whole)
{
    struct open_options o = *options;
    struct stats_options all = {.thread = -1};
    struct stats *want = NULL;
    struct recording *r = NULL;
    struct err err = {0};
    o.statistics = true;
    o.pyramid = false;
    if (stats_new(&want, whole, &all, &err) < 0 || open_recording(&r, path, &o, &err) < 0)
        fail_msg("%s: %s", path, err.text);
    bool counted = r->statistics != NULL;
    if (counted) {
        statistics_assert_equal(r->statistics, trace_functions(r->trace), want, trace_functions(whole), path);
        for (size_t i = 0; i < trace_thread_count(r->trace); i++)
            assert_int_equal(trace_thread(r->trace, i)->spans, 0);
    }
    recording_free(r);
    stats_free(want);
    return counted;
}
