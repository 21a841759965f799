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
    uint64_t start_ns, start_cpu_ns, start_wait_ns, hits;
    int timer;
    call_rate_fn *fn;
    void *arg;
};

/* Of the target's running time. Several busy threads share the cost; a target that mostly sleeps has the wall time, but
 * not what it waits for a CPU: on a machine where others run, a thread that does nothing but hit would look half idle. */
static unsigned permille_of(uint64_t hits, uint64_t hit_ns, const struct call_rate_seen *seen)
{
    uint64_t awake = seen->waited_ns < seen->duration_ns ? seen->duration_ns - seen->waited_ns : 0;
    uint64_t of = seen->ran_ns > awake ? seen->ran_ns : awake;
    double share = (double)hits * (double)hit_ns * 1000.0 / (double)(of ? of : seen->duration_ns);
    return share > 1000.0 ? 1000 : (unsigned)(share + 0.5);
}

void call_rate_judge(const struct call_rate_seen *seen, uint64_t hit_ns, struct call_rate_result *out)
{
    struct call_rate_result r = {.seen = *seen, .hit_ns = hit_ns ? hit_ns : HIT_COST_ASSUMED_NS, .assumed = !hit_ns};
    if (seen->duration_ns > 0) {
        r.per_second = (double)seen->hits * 1e9 / (double)seen->duration_ns;
        r.permille = permille_of(seen->hits, r.hit_ns, seen);
    }
    r.costly = r.permille > CALL_RATE_MAX_PERMILLE;
    *out = r;
}

bool call_rate_returns_cost(const struct call_rate_result *r)
{
    return r->costly && r->seen.watches_calls &&
           permille_of(r->seen.calls, r->hit_ns, &r->seen) <= CALL_RATE_MAX_PERMILLE;
}

static void put_calls(const struct call_rate_result *r, char *out, size_t size)
{
    char calls[FMT_MAX];
    out[0] = '\0';
    if (r->seen.watches_calls && r->seen.duration_ns) {
        uint64_t n = (uint64_t)((double)r->seen.calls * 1e9 / (double)r->seen.duration_ns + 0.5);
        (void)snprintf(out, size, " (%s call%s)", fmt_count_short(calls, n), n == 1 ? "" : "s");
    }
}

char *call_rate_text(const struct call_rate_result *r, char *out, size_t size)
{
    char rate[FMT_MAX], cost[FMT_MAX], calls[FMT_MAX + 16];
    fmt_count_short(rate, (uint64_t)(r->per_second + 0.5));
    put_calls(r, calls, sizeof calls);
    (void)snprintf(out, size,
                   "hit %s times a second%s; at %s %s a hit that takes %u.%u %% of the "
                   "program's time",
                   rate, calls, r->assumed ? "an assumed" : "about", fmt_duration(cost, r->hit_ns), r->permille / 10, r->permille % 10);
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
    uint64_t cpu = cpu_time_ns(c->pid), waited = proc_wait_ns("/proc", c->pid);
    struct call_rate_seen seen = {.hits = c->hits + stats.lost,
                                  .duration_ns = loop_now_ns(c->loop) - c->start_ns,
                                  .ran_ns = cpu > c->start_cpu_ns ? cpu - c->start_cpu_ns : 0,
                                  .waited_ns = waited > c->start_wait_ns ? waited - c->start_wait_ns : 0};
    call_rate_judge(&seen, 0, &r);
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
    c->start_wait_ns = proc_wait_ns("/proc", pid);
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
