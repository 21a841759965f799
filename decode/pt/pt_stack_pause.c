/* Where tracing stops and goes on: pauses, handlers, windows, code that is left out. */
#include "decode/pt/pt_stack_priv.h"

#define SIGRETURN_BYTES 9 /* mov $__NR_rt_sigreturn, %eax or %rax; syscall */
#define CALLBACKS_MAX 256 /* of one function from one call: more have been left by exceptions */

/* The time since tracing stopped, as a span of its own inside the frame that it stopped in. */
static struct trace_pause show_pause(struct pt_stack *s, uint64_t time)
{
    struct trace_pause p;
    fn_id fn = s->pause.how == PT_END_SYSCALL ? s->syscall_fn : s->untraced_fn;
    if (trace_builder_pause(s->b, s->thread, s->pause.time, time, fn, &p) < 0)
        s->no_memory = true;
    return p;
}

/* Nothing goes on that was open until `end`. */
static void restart(struct pt_stack *s, const struct flow_event *e, uint64_t end, unsigned flags)
{
    trace_builder_cut(s->b, s->thread, end, flags);
    s->open.len = 0;
    pt_stack_forget_parked(s);
    pt_stack_push(s, e->time, FRAME_ROOT, e->fn, 0, e->at_start ? 0 : SPAN_INFERRED_START);
}

static void forget_doubts(struct pt_stack *s, size_t depth)
{
    while (s->doubts.len && s->doubts.data[s->doubts.len - 1].depth >= depth)
        s->doubts.len--;
}

void pt_stack_doubt(struct pt_stack *s, const struct flow_event *e)
{
    s->returning = true;
    s->ret = *e;
}

/* What the top frame, which was begun, returned to is known by what came next. */
void pt_stack_settle(struct pt_stack *s, const struct flow_event *next)
{
    const struct flow_event *e = &s->ret;
    size_t depth = s->open.len - 1;
    if (!s->returning)
        return;
    s->returning = false;
    if (next && next->kind == PT_EVENT_END && next->how == PT_END_SYSCALL && next->addr >= e->addr &&
        next->addr - e->addr < SIGRETURN_BYTES) {
        s->open.data[depth].kind = FRAME_SIGNAL;
        pt_stack_replace_top(s, e->time, e->fn, 0);
        return;
    }
    forget_doubts(s, depth + 1);
    trace_builder_split(s->b, s->thread, &s->doubts.data[s->doubts.len - 1].pause, depth);
    s->doubts.len = 0;
    s->open.data[0] = s->open.data[depth];
    s->open.len = 1;
    pt_stack_pop_to(s, e->time, 0);
    pt_stack_forget_parked(s);
    pt_stack_wrap(s, e->time, e->fn);
}

const struct trace_pause *pt_stack_doubtful(const struct pt_stack *s)
{
    for (size_t i = 0; i < s->doubts.len; i++) {
        const struct doubt *d = &s->doubts.data[i];
        if (d->depth < s->open.len && s->open.data[d->depth].kind == FRAME_BEGUN)
            return &d->pause;
    }
    return NULL;
}

/* Tracing ended because its frame was left for code that is not traced. */
static bool code_left(uint8_t how)
{
    return how == PT_END_RETURN || how == PT_END_JUMP;
}

/* True when e is where the program goes on that stopped at the instruction pause->addr. */
static bool goes_on(const struct flow_event *pause, const struct flow_event *e)
{
    if (code_left(pause->how))
        return false;
    if (e->addr == pause->addr)
        return true;
    return pause->how != PT_END_ASYNC && !e->at_start && e->addr > pause->addr &&
           e->addr - pause->addr <= INSN_MAX;
}

/* True when fn is open, and was begun itself: a new window, since handlers do not interrupt themselves. */
static bool begun_before(const struct pt_stack *s, fn_id fn)
{
    for (size_t i = s->open.len; i > 0; i--) {
        const struct frame *f = &s->open.data[i - 1];
        if (f->fn == fn && (f->kind == FRAME_ROOT || f->kind == FRAME_BEGUN))
            return true;
    }
    return false;
}

static void push_begun(struct pt_stack *s, const struct flow_event *e, uint64_t ret)
{
    struct doubt d = {.depth = s->open.len, .pause = show_pause(s, e->time)};
    forget_doubts(s, d.depth);
    vec_push(&s->doubts, d);
    pt_stack_push(s, e->time, FRAME_BEGUN, e->fn, ret, 0);
}

static void push_callback(struct pt_stack *s, const struct flow_event *e, uint64_t ret)
{
    size_t same = 0;
    for (size_t i = s->open.len; i > 0 && same < CALLBACKS_MAX; i--) {
        const struct frame *f = &s->open.data[i - 1];
        same += f->kind == FRAME_CALLBACK && f->fn == e->fn && f->ret == ret;
    }
    if (same == CALLBACKS_MAX) {
        restart(s, e, s->pause.time, SPAN_INFERRED_END);
        return;
    }
    show_pause(s, e->time);
    pt_stack_push(s, e->time, FRAME_CALLBACK, e->fn, ret, 0);
}

/* Tracing goes on at the beginning of a function, and not where it stopped. */
static void on_begin_of_function(struct pt_stack *s, const struct flow_event *e)
{
    uint64_t ret = s->pause.addr;
    bool callback = s->pause.how == PT_END_CALL;
    if (code_left(s->pause.how)) {
        struct frame left = *pt_stack_top(s);
        pt_stack_pop_to(s, s->pause.time, s->open.len - 1);
        callback = left.kind != FRAME_BEGUN && left.kind != FRAME_SIGNAL;
        ret = left.ret;
    }
    if (!s->open.len || (!callback && begun_before(s, e->fn)))
        restart(s, e, s->pause.time, SPAN_INFERRED_END);
    else if (callback)
        push_callback(s, e, ret);
    else
        push_begun(s, e, ret);
}

void pt_stack_begin(struct pt_stack *s, const struct flow_event *e)
{
    bool paused = s->paused;
    uint8_t how = s->pause.how;
    s->paused = false;
    if (!paused || !s->open.len) {
        restart(s, e, e->time, 0);
        return;
    }
    if (goes_on(&s->pause, e)) {
        show_pause(s, e->time);
        return;
    }
    size_t at = pt_stack_find_signal(s, e->addr);
    if (at == SIZE_MAX && code_left(how))
        at = pt_stack_find_call(s, &s->open, e->addr);
    if (at == SIZE_MAX && e->at_start) {
        on_begin_of_function(s, e);
        return;
    }
    if (at == SIZE_MAX) {
        at = pt_stack_find_open(s, e->fn, s->open.len);
        at += at != SIZE_MAX;
    }
    if (at == SIZE_MAX) {
        restart(s, e, s->pause.time, SPAN_INFERRED_END);
        return;
    }
    if (code_left(how)) /* and the frame was */
        pt_stack_pop_to(s, s->pause.time, at);
    show_pause(s, e->time);
    pt_stack_pop_to(s, e->time, at);
}
