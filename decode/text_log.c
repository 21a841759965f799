#include "decode/text_log.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/err.h"
#include "core/vec.h"

struct text_log {
    struct functions *functions;
    struct sample_log *log;
    VEC(char) strings; /* of the function at hand, terminated */
    VEC(fn_id) stack;  /* of the sample at hand, outermost first */
};

struct text_log *text_log_new(struct functions *f, struct sample_log *log)
{
    struct text_log *t = xcalloc(1, sizeof *t);
    t->functions = f;
    t->log = log;
    return t;
}

void text_log_free(struct text_log *t)
{
    if (!t)
        return;
    vec_free(&t->strings);
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

static bool equals(struct perf_text_str a, const char *b)
{
    return a.len == strlen(b) && memcmp(a.s, b, a.len) == 0;
}

static bool begins(struct perf_text_str a, const char *b)
{
    return a.len >= strlen(b) && memcmp(a.s, b, strlen(b)) == 0;
}

static bool ends(struct perf_text_str a, const char *b)
{
    size_t n = strlen(b);
    return a.len > n && memcmp(a.s + a.len - n, b, n) == 0;
}

static enum fn_kind kind_of(const struct perf_text_place *p, struct perf_text_str symbol)
{
    if (equals(symbol, "[unknown]"))
        return FN_UNKNOWN;
    if (equals(p->module, "[vdso]"))
        return FN_VDSO;
    if (p->ip >> 63 || begins(p->module, "[kernel") || begins(p->module, "[guest.kernel"))
        return FN_KERNEL;
    return ends(symbol, "@plt") ? FN_PLT : FN_USER;
}

/* The module as the reader of perf.data names it. */
static struct perf_text_str module_of(const struct perf_text_place *p)
{
    static const struct perf_text_str kernel = {"[kernel]", 8}, unknown = {"[unknown]", 9};
    bool nothing = p->module.len == 0 || equals(p->module, "[unknown]");
    if (begins(p->module, "[kernel.") || begins(p->module, "[guest.kernel.") ||
        (nothing && p->ip >> 63))
        return kernel;
    return nothing ? unknown : p->module;
}

static char *add_string(struct text_log *t, struct perf_text_str s)
{
    size_t at = t->strings.len;
    for (size_t i = 0; i <= s.len; i++) {
        char c = i < s.len ? s.s[i] : '\0';
        if (!vec_try_push(&t->strings, c))
            return NULL;
    }
    return t->strings.data + at;
}

/* FN_NONE: memory is short. An inlined frame belongs to the module of the frame it was inlined into,
 * which is the next one. */
static fn_id function_of(struct text_log *t, const struct perf_text_place *p,
                         const struct perf_text_place *end)
{
    static const struct perf_text_str unknown = {"[unknown]", 9};
    const struct perf_text_place *real = p;
    while (real + 1 < end && equals(real->module, "inlined"))
        real++;
    struct perf_text_str symbol = p->symbol.len ? p->symbol : unknown, module = module_of(real);
    t->strings.len = 0;
    if (!add_string(t, symbol))
        return FN_NONE;
    size_t second = t->strings.len;
    if (!add_string(t, module))
        return FN_NONE;
    const char *name = t->strings.data;
    return functions_intern(t->functions, t->strings.data + second, name, name, 0,
                            kind_of(real, symbol));
}

static int add_sample(struct text_log *t, const struct perf_text_event *ev,
                      struct sample_event *event)
{
    const struct perf_text_place *frames = ev->u.sample.frames;
    t->stack.len = 0;
    for (size_t i = ev->u.sample.nframes; i-- > 0;) {
        fn_id fn = function_of(t, &frames[i], frames + ev->u.sample.nframes);
        if (fn == FN_NONE || !vec_try_push(&t->stack, fn))
            return MTUI_E_NOMEM;
    }
    t->strings.len = 0;
    const char *name = add_string(t, ev->event);
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
    t->strings.len = 0;
    const char *name = add_string(t, comm);
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
    if (ev->kind == PERF_TEXT_BRANCH || ev->kind == PERF_TEXT_ERROR)
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
    case PERF_TEXT_ERROR:
        break;
    }
    return 0;
}
