/* What a probe costs: per hit in the target, from the hit to our callback, arming, disarming. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/trigger/probe.h"
#include "core/base/vec.h"
#include "tests/lib_victim.h"

struct seen {
    struct probe *probe;
    uint64_t hits;
    VEC(uint64_t) latency_ns;
};

static void on_hit(void *arg, const struct probe_hit *hit)
{
    struct seen *s = arg;
    s->hits++;
    if (s->latency_ns.len < 100000)
        vec_push(&s->latency_ns, probe_now_ns(s->probe) - hit->time_ns);
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool byte_is_original(void *arg)
{
    const struct victim *v = arg;
    return victim_byte(v->pid, v->traced) != 0xcc;
}

static double took_us(struct loop *loop, uint64_t since_ns)
{
    return (double)(loop_now_ns(loop) - since_ns) / 1000.0;
}

static void measure(const char *name, const struct probe_options *options)
{
    static const struct probe_callbacks callbacks = {.hit = on_hit};
    enum { CALLS = 50000, PACED = 1000 };
    struct seen s = {0};
    struct err err = {0};
    struct loop *loop = loop_new();
    struct victim v = victim_start("victim");
    char path[64], command[64];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)v.pid);
    snprintf(command, sizeof command, "call %d", CALLS);
    struct probe_site site = {.path = path,
                              .offset = victim_offset(v.pid, v.traced),
                              .addr = v.traced,
                              .role = PROBE_ENTRY,
                              .condition = -1,
                              .label = "traced"};
    uint64_t start = loop_now_ns(loop);
    victim_do(&v, loop, command);
    double bare_us = took_us(loop, start);

    start = loop_now_ns(loop);
    int rc = probe_new(loop, options, &callbacks, &s, &s.probe, &err);
    if (rc == 0)
        rc = probe_watch(s.probe, v.pid, &err);
    if (rc == 0)
        rc = probe_set_sites(s.probe, v.pid, &site, 1, &err);
    double arm_us = took_us(loop, start);
    if (rc < 0) {
        printf("%-22s not possible: %s\n", name, err.text);
    } else {
        start = loop_now_ns(loop);
        victim_do(&v, loop, command);
        double probed_us = took_us(loop, start);
        probe_drain(s.probe);
        probe_drain(s.probe);
        struct probe_stats st;
        probe_stats(s.probe, &st);
        s.latency_ns.len = 0;
        snprintf(command, sizeof command, "rate %d 500", PACED);
        victim_do(&v, loop, command);
        probe_drain(s.probe);
        qsort(s.latency_ns.data, s.latency_ns.len, sizeof *s.latency_ns.data, ascending);
        printf("%-22s %5.1f us a hit, %llu of %d read, %llu lost; hit to callback %.0f us median, "
               "%.0f us p99; armed in %.1f ms",
               name, (probed_us - bare_us) / CALLS, (unsigned long long)st.hits, CALLS,
               (unsigned long long)st.lost,
               (double)s.latency_ns.data[s.latency_ns.len / 2] / 1000.0,
               (double)s.latency_ns.data[s.latency_ns.len * 99 / 100] / 1000.0, arm_us / 1000.0);
    }
    start = loop_now_ns(loop);
    probe_free(s.probe);
    double free_us = took_us(loop, start);
    if (rc == 0 && loop_until_true(loop, byte_is_original, &v))
        printf(", freed in %.1f ms, gone from the target after %.1f ms\n", free_us / 1000.0,
               took_us(loop, start) / 1000.0);
    vec_free(&s.latency_ns);
    victim_kill(&v);
    loop_free(loop);
}

int main(void)
{
    measure("uprobe with BPF", &(struct probe_options){.mechanism = PROBE_UPROBE});
    measure("uprobe a thread", &(struct probe_options){.mechanism = PROBE_UPROBE, .no_bpf = true});
    measure("hardware breakpoint", &(struct probe_options){.mechanism = PROBE_HWBREAK});
    return 0;
}
