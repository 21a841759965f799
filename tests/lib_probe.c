#include "tests/lib_probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdio.h>

#include "core/trigger/hit_output.h"
#include "core/trigger/hwbreak.h"
#include "core/trigger/uprobe.h"

struct mechanism probe_mechanisms[PROBE_MECHANISMS] = {
    {.name = "uprobes with BPF", .options = {.mechanism = PROBE_UPROBE}},
    {.name = "uprobe a thread", .options = {.mechanism = PROBE_UPROBE, .no_bpf = true}},
    {.name = "hardware breakpoint", .options = {.mechanism = PROBE_HWBREAK}},
    {.name = "uprobe events with BPF", .options = {.mechanism = PROBE_UPROBE, .no_links = true}},
};

static void on_hit(void *arg, const struct probe_hit *hit)
{
    struct probe_seen *s = arg;
    s->hits++;
    s->unordered += hit->time_ns < s->last_time;
    s->last_time = hit->time_ns;
    s->last = *hit;
}

static void on_event(void *arg, const struct probe_event *event)
{
    struct probe_seen *s = arg;
    s->born += event->change == PROBE_THREAD_BORN;
    s->ended += event->change == PROBE_THREAD_ENDED;
    s->children += event->change == PROBE_CHILD;
    s->execs += event->change == PROBE_EXEC;
    s->mapped += event->change == PROBE_MAPPED;
    s->processes_ended += event->change == PROBE_PROCESS_ENDED;
}

static void on_trouble(void *arg, const char *sentence)
{
    struct probe_seen *s = arg;
    snprintf(s->trouble, sizeof s->trouble, "%s", sentence);
}

const struct probe_callbacks probe_seen_callbacks = {on_hit, on_event, on_trouble};

struct probe_site probe_site_of(const struct victim *v, char *path, size_t size)
{
    snprintf(path, size, "/proc/%d/exe", (int)v->pid);
    return (struct probe_site){.path = path,
                               .offset = victim_offset(v->pid, v->traced),
                               .addr = v->traced,
                               .trigger = 5,
                               .role = PROBE_ENTRY,
                               .condition = -1,
                               .label = "victim!traced"};
}

void probe_seen_arm(struct probe_seen *s, const struct mechanism *m, const struct victim *v, bool children)
{
    char path[64];
    struct err err = {0};
    struct probe_options options = m->options;
    options.children = children;
    *s = (struct probe_seen){.loop = loop_new()};
    if (probe_new(s->loop, &options, &probe_seen_callbacks, s, &s->probe, &err) != 0)
        fail_msg("%s: %s", m->name, err.text);
    struct probe_site site = probe_site_of(v, path, sizeof path);
    if (probe_watch(s->probe, v->pid, &err) != 0 ||
        probe_set_sites(s->probe, v->pid, &site, 1, &err) != 0)
        fail_msg("%s: %s", m->name, err.text);
}

void probe_seen_disarm(struct probe_seen *s)
{
    probe_free(s->probe);
    loop_free(s->loop);
}

static bool no_hits_left(void *arg)
{
    struct probe_seen *s = arg;
    uint64_t before = s->hits;
    probe_drain(s->probe);
    probe_drain(s->probe);
    return s->hits == before;
}

void probe_seen_settle(struct probe_seen *s)
{
    assert_true(loop_until_true(s->loop, no_hits_left, s));
}

bool probe_told(const struct mechanism *m)
{
    print_message("  %s\n", m->name);
    return true;
}

int probe_find_mechanisms(void **state)
{
    (void)state;
    struct err err = {0};
    struct hit_output *o = NULL;
    unsigned slots = 0;
    probe_mechanisms[0].works = probe_mechanisms[1].works = uprobe_self_test(&err) == 0;
    if (!probe_mechanisms[0].works)
        snprintf(probe_mechanisms[0].why, sizeof probe_mechanisms[0].why, "%s", err.text);
    else if (hit_output_new(65536, &o, &err) != 0)
        probe_mechanisms[0].works = false;
    hit_output_free(o);
    probe_mechanisms[3].works = probe_mechanisms[0].works;
    probe_mechanisms[2].works = hwbreak_self_test(&slots, &err) == 0;
    for (size_t i = 0; i < PROBE_MECHANISMS; i++)
        print_message("%s: %s\n", probe_mechanisms[i].name,
                      probe_mechanisms[i].works ? "tested" : "SKIPPED, not possible here");
    return 0;
}

void probe_some_mechanism_works(void **state)
{
    (void)state;
    if (!probe_mechanisms[0].works && !probe_mechanisms[1].works && !probe_mechanisms[2].works) {
        print_message("SKIP: no probes are permitted here: %s\n", probe_mechanisms[0].why);
        skip();
    }
}
