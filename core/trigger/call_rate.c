#include "core/trigger/call_rate.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/trigger/hit_cost.h"
#include "core/machine/proc_stat.h"

struct call_rate {
    struct loop *loop;
    struct probe *probe;
    pid_t pid;
    uint64_t start_ns, start_cpu_ns, hits;
    int timer;
    call_rate_fn *fn;
    void *arg;
};

void call_rate_judge(uint64_t hits, uint64_t duration_ns, uint64_t cpu_ns, uint64_t hit_ns,
                     struct call_rate_result *out)
{
    struct call_rate_result r = {.hits = hits,
                                 .duration_ns = duration_ns,
                                 .hit_ns = hit_ns ? hit_ns : HIT_COST_ASSUMED_NS,
                                 .assumed = !hit_ns};
    /* Several busy threads share the cost; a target that mostly waits has the wall time. */
    uint64_t of = cpu_ns > duration_ns ? cpu_ns : duration_ns;
    if (duration_ns > 0) {
        double share = (double)hits * (double)r.hit_ns * 1000.0 / (double)of;
        r.per_second = (double)hits * 1e9 / (double)duration_ns;
        r.permille = share > 1000.0 ? 1000 : (unsigned)(share + 0.5);
    }
    r.costly = r.permille > CALL_RATE_MAX_PERMILLE;
    *out = r;
}

char *call_rate_text(const struct call_rate_result *r, char *out, size_t size)
{
    char rate[FMT_MAX], cost[FMT_MAX];
    fmt_count_short(rate, (uint64_t)(r->per_second + 0.5));
    (void)snprintf(out, size,
                   "hit %s times a second; at %s %s a hit that takes %u.%u %% of the "
                   "program's time",
                   rate, r->assumed ? "an assumed" : "about", fmt_duration(cost, r->hit_ns), r->permille / 10, r->permille % 10);
    return out;
}

char *call_rate_brief(const struct call_rate_result *r, char *out, size_t size)
{
    char rate[FMT_MAX], cost[FMT_MAX];
    fmt_count_short(rate, (uint64_t)(r->per_second + 0.5));
    (void)snprintf(out, size, "%s hits/s x %s%s = %u.%u %% of the target's time", rate, r->assumed ? "~" : "",
                   fmt_duration(cost, r->hit_ns), r->permille / 10, r->permille % 10);
    return out;
}

static uint64_t cpu_time_ns(pid_t pid)
{
    struct proc_stat st;
    long ticks = sysconf(_SC_CLK_TCK);
    if (ticks <= 0 || proc_stat_read("/proc", pid, 0, &st, NULL) < 0)
        return 0;
    return st.cpu_ticks * (1000000000u / (uint64_t)ticks);
}

static void on_hit(void *arg, const struct probe_hit *hit)
{
    (void)hit;
    ((struct call_rate *)arg)->hits++;
}

static void on_over(void *arg)
{
    struct call_rate *c = arg;
    struct call_rate_result r;
    struct probe_stats stats;
    c->timer = 0;
    probe_drain(c->probe);
    probe_stats(c->probe, &stats);
    uint64_t cpu = cpu_time_ns(c->pid);
    call_rate_judge(c->hits + stats.lost, loop_now_ns(c->loop) - c->start_ns,
                    cpu > c->start_cpu_ns ? cpu - c->start_cpu_ns : 0, 0, &r);
    c->fn(c->arg, &r);
}

int call_rate_start(struct loop *loop, pid_t pid, const struct probe_site *sites, size_t n,
                    uint64_t duration_ns, call_rate_fn *fn, void *arg, struct call_rate **out,
                    struct err *err)
{
    static const struct probe_callbacks callbacks = {.hit = on_hit};
    struct call_rate *c = xcalloc(1, sizeof *c);
    *c = (struct call_rate){.loop = loop, .pid = pid, .fn = fn, .arg = arg};
    int rc = probe_new(loop, NULL, &callbacks, c, &c->probe, err);
    if (rc == 0)
        rc = probe_watch(c->probe, pid, err);
    if (rc == 0)
        rc = probe_set_sites(c->probe, pid, sites, n, err);
    if (rc < 0) {
        call_rate_free(c);
        return rc;
    }
    c->start_ns = loop_now_ns(loop);
    c->start_cpu_ns = cpu_time_ns(pid);
    c->timer = loop_add_timer(loop, c->start_ns + duration_ns, on_over, c);
    *out = c;
    return 0;
}

void call_rate_free(struct call_rate *c)
{
    if (!c)
        return;
    loop_remove(c->loop, c->timer);
    probe_free(c->probe);
    free(c);
}
