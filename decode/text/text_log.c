#include "decode/text/text_log.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/err.h"
#include "core/base/vec.h"
#include "decode/text/text_names.h"

struct text_log {
    struct sample_log *log;
    struct text_names *names;
    VEC(fn_id) stack;  /* of the sample at hand, outermost first */
};

struct text_log *text_log_new(struct functions *f, struct sample_log *log)
{
    struct text_log *t = xcalloc(1, sizeof *t);
    t->names = text_names_new(f);
    t->log = log;
    return t;
}

void text_log_free(struct text_log *t)
{
    if (!t)
        return;
    text_names_free(t->names);
    vec_free(&t->stack);
    free(t);
}

bool event_name_is_clock(const char *name)
{
    static const char *const clocks[] = {"cycles",     "cpu-cycles", "cpu-clock", "task-clock",
                                         "ref-cycles", "bus-cycles", "cpu/cycles", "cpu/cpu-cycles",
                                         "cpu_core/cycles", "cpu_atom/cycles"};
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        size_t n = strlen(clocks[i]);
        if (strncmp(name, clocks[i], n) == 0 && strchr(":/,", name[n])) /* the end counts too */
            return true;
    }
    return false;
}

static int add_sample(struct text_log *t, const struct perf_text_event *ev,
                      struct sample_event *event)
{
    const struct perf_text_place *frames = ev->u.sample.frames;
    t->stack.len = 0;
    for (size_t i = ev->u.sample.nframes; i-- > 0;) {
        fn_id fn = text_names_find(t->names, &frames[i], frames + ev->u.sample.nframes);
        if (fn == FN_NONE || !vec_try_push(&t->stack, fn))
            return MTUI_E_NOMEM;
    }
    const char *name = text_names_string(t->names, ev->event);
    if (!name)
        return MTUI_E_NOMEM;
    event->event = sample_log_add_event(t->log, name, event_name_is_clock(name), 0);
    event->period = ev->period;
    event->kind = SAMPLE_STACK;
    int rc = sample_log_stack(t->log, t->stack.data, t->stack.len, &event->stack);
    return rc ? rc : sample_log_add(t->log, event);
}

static int set_comm(struct text_log *t, uint32_t thread, struct perf_text_str comm)
{
    if (comm.len == 0)
        return 0;
    const char *name = text_names_string(t->names, comm);
    return name ? sample_log_comm(t->log, thread, name) : MTUI_E_NOMEM;
}

static int add_switch(struct text_log *t, const struct perf_text_event *ev,
                      struct sample_event *event)
{
    event->kind = SAMPLE_SWITCH_IN;
    if (ev->u.sw.out)
        event->kind = ev->u.sw.preempted ? SAMPLE_SWITCH_OUT_PREEMPT : SAMPLE_SWITCH_OUT;
    return sample_log_add(t->log, event);
}

int text_log_event(void *arg, const struct perf_text_event *ev)
{
    struct text_log *t = arg;
    struct sample_event event = {.time_ns = ev->has_time ? ev->time_ns : SAMPLE_NO_TIME,
                                 .period = 1,
                                 .stack = STACK_EMPTY,
                                 .thread = SAMPLE_NO_THREAD,
                                 .cpu = ev->cpu};
    if (ev->kind == PERF_TEXT_BRANCH || ev->kind == PERF_TEXT_ERROR || ev->kind == PERF_TEXT_PACKET)
        return 0;
    if (ev->tid >= 0) {
        event.thread = sample_log_thread(t->log, ev->pid, ev->tid);
        if (event.thread == SAMPLE_NO_THREAD)
            return MTUI_E_NOMEM;
    }
    switch (ev->kind) {
    case PERF_TEXT_SAMPLE:
        if (event.thread != SAMPLE_NO_THREAD && set_comm(t, event.thread, ev->comm) < 0)
            return MTUI_E_NOMEM;
        return add_sample(t, ev, &event);
    case PERF_TEXT_SWITCH:
        return add_switch(t, ev, &event);
    case PERF_TEXT_COMM:
        event.kind = SAMPLE_EXEC;
        if (event.thread != SAMPLE_NO_THREAD && set_comm(t, event.thread, ev->u.comm.name) < 0)
            return MTUI_E_NOMEM;
        return ev->u.comm.exec ? sample_log_add(t->log, &event) : 0;
    case PERF_TEXT_FORK:
    case PERF_TEXT_EXIT:
        event.kind = ev->kind == PERF_TEXT_FORK ? SAMPLE_FORK : SAMPLE_EXIT;
        return sample_log_add(t->log, &event);
    case PERF_TEXT_LOST:
        event.kind = SAMPLE_LOST;
        event.period = ev->u.lost;
        return sample_log_add(t->log, &event);
    case PERF_TEXT_BRANCH:
    case PERF_TEXT_PACKET:
    case PERF_TEXT_ERROR:
        break;
    }
    return 0;
}
