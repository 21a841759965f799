#include "tests/lib_trigger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/trigger/uprobe.h"

static void on_hit(void *arg, const struct trigger_hit *hit)
{
    struct seen *s = arg;
    s->hits++;
    s->running += hit->still_running;
    s->known += hit->verdict == TRIGGER_KNOWN;
    if (hit->verdict == TRIGGER_FIRE && s->fired++ == 0)
        s->first = *hit;
    s->with_duration += hit->has_duration;
    if (hit->has_duration && hit->duration_ns > s->longest_ns)
        s->longest_ns = hit->duration_ns;
    if (hit->verdict == TRIGGER_FIRE)
        trigger_set_snapshot_done(s->set);
    s->last = *hit;
}

static void on_message(void *arg, const char *sentence)
{
    struct seen *s = arg;
    s->messages++;
    size_t len = strlen(s->message);
    snprintf(s->message + len, sizeof s->message - len, "%s\n", sentence);
}

static const struct trigger_set_callbacks callbacks = {.hit = on_hit, .message = on_message};

void seen_open(struct seen *s, const struct trigger_set_options *options, const char *spec,
               const struct trigger_conditions *when)
{
    struct trigger t;
    struct err err = {0};
    if (!s->loop)
        s->loop = loop_new();
    s->set = trigger_set_new(s->loop, options, &callbacks, s);
    if (trigger_parse(&t, spec, when, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(trigger_set_add(s->set, &t), 0);
}

void seen_arm(struct seen *s, const struct victim *v, const char *spec,
              const struct trigger_conditions *when)
{
    struct err err = {0};
    *s = (struct seen){0};
    seen_open(s, NULL, spec, when);
    if (trigger_set_arm(s->set, v->pid, &err) != 0)
        fail_msg("%s: %s", spec, err.text);
    assert_int_equal(trigger_set_status(s->set, 0), TRIGGER_ARMED);
}

void seen_close(struct seen *s)
{
    trigger_set_free(s->set);
    loop_free(s->loop);
}

static bool quiet(void *arg)
{
    struct seen *s = arg;
    uint64_t before = s->hits;
    trigger_set_drain(s->set);
    trigger_set_drain(s->set);
    return s->hits == before;
}

void seen_settle(struct seen *s)
{
    assert_true(loop_until_true(s->loop, quiet, s));
}

int seen_need_uprobes(void **state)
{
    (void)state;
    struct err err = {0};
    if (uprobe_self_test(&err) == 0)
        return 0;
    print_message("SKIP: uprobes are not permitted: %s\n", err.text);
    exit(0);
}
