#include "decode/pt/pt_stack_priv.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "decode/trace/trace_builder_add.h"

#define PARKED_MAX 1024 /* stacks that were left and may be taken up again */
#define HELD_MAX   ((size_t)1 << 18) /* events; transactions are ended by the next interrupt at the latest */

struct pt_stack *pt_stack_new(struct trace_builder *b, size_t thread, struct functions *functions)
{
    struct pt_stack *s = xcalloc(1, sizeof *s);
    s->b = b;
    s->thread = thread;
    s->t = thread_builder_of(b, thread);
    s->functions = functions;
    s->syscall_fn =
        functions_intern(functions, "[kernel]", "[syscall]", "[syscall]", 0, FN_PSEUDO);
    s->untraced_fn =
        functions_intern(functions, "[kernel]", "[untraced]", "[untraced]", 0, FN_PSEUDO);
    return s;
}

void pt_stack_set_sites(struct pt_stack *s, struct call_sites *sites)
{
    s->sites = sites;
    s->careful = sites != NULL;
}

void pt_stack_set_landing(struct pt_stack *s, const struct pt_stack_landing *landing)
{
    s->landing = *landing;
}

void pt_stack_forget_parked(struct pt_stack *s)
{
    s->switched = false;
    for (size_t i = 0; i < s->parked.len; i++)
        free(s->parked.data[i].data);
    s->parked.len = 0;
}

static void end_tx(struct pt_stack *s, bool happened);

void pt_stack_free(struct pt_stack *s)
{
    if (!s)
        return;
    end_tx(s, true);
    pt_stack_settle(s, NULL);
    vec_free(&s->held);
    vec_free(&s->doubts);
    pt_stack_forget_parked(s);
    vec_free(&s->parked);
    vec_free(&s->traits);
    free(s->open.data);
    free(s);
}

/* ---- frames ---- */

static void enter(struct pt_stack *s, uint64_t time, fn_id fn, unsigned flags)
{
    if (trace_builder_enter(s->b, s->thread, time, fn, flags) < 0)
        s->no_memory = true;
}

static inline void leave(struct pt_stack *s, uint64_t time, unsigned flags)
{
    thread_builder_leave(s->t, time, flags);
}

/* Where the call was made, when this is one. A tail call is shown with the call that it answers. */
static unsigned site_of(const struct pt_stack *s, const struct frame *f)
{
    uint64_t ret = f->ret;
    if (!pt_stack_is_call(f) || (s->sites && !call_sites_behind(s->sites, f->ret, &ret)))
        return 0;
    return span_site_flags(ret);
}

void pt_stack_push(struct pt_stack *s, uint64_t time, enum frame_kind kind, fn_id fn, uint64_t ret,
                   unsigned flags)
{
    struct frame f = {.ret = ret, .fn = fn, .was = FN_NONE, .kind = kind};
    if (!vec_try_push(&s->open, f)) {
        s->no_memory = true;
        return;
    }
    enter(s, time, fn, flags | site_of(s, &f));
}

void pt_stack_pop_to(struct pt_stack *s, uint64_t time, size_t len)
{
    while (s->open.len > len) {
        s->open.len--;
        leave(s, time, 0);
    }
}

/* The top frame goes on as another function. */
void pt_stack_replace_top(struct pt_stack *s, uint64_t time, fn_id fn, unsigned flags)
{
    struct frame *t = pt_stack_top(s);
    if (!t) {
        pt_stack_push(s, time, FRAME_ROOT, fn, 0, flags);
        return;
    }
    leave(s, time, 0);
    t->was = t->fn;
    t->fn = fn;
    if (t->kind == FRAME_INNER)
        t->kind = FRAME_CALL;
    if (t->kind == FRAME_CALL && (pt_stack_traits(s, fn) & TRAIT_SETS_JUMP))
        t->kind = FRAME_SETJMP;
    enter(s, time, fn, flags | site_of(s, t));
}

/* ---- other stacks ---- */

static void park(struct pt_stack *s, uint64_t time)
{
    s->switched = true;
    if (!s->open.len)
        return;
    for (size_t i = 0; i < s->open.len; i++)
        leave(s, time, 0);
    if (s->parked.len == PARKED_MAX) {
        free(s->parked.data[0].data);
        vec_remove(&s->parked, 0);
    }
    vec_push(&s->parked, s->open);
    s->open = (struct frames){0};
}

static bool returns_to(const struct pt_stack *s, const struct frame *f, uint64_t addr)
{
    return s->sites ? call_sites_skip_to(s->sites, f->ret, addr) : f->ret == addr;
}

/* The frame whose call returns to addr, counted from the outermost; SIZE_MAX: none. */
size_t pt_stack_find_call(const struct pt_stack *s, const struct frames *f, uint64_t addr)
{
    for (size_t i = f->len; i > 0; i--)
        if (pt_stack_is_call(&f->data[i - 1]) && returns_to(s, &f->data[i - 1], addr))
            return i - 1;
    return SIZE_MAX;
}

/* Takes up a parked stack in which a call returns to addr; that call is over. Those that wait for just
 * that come first, of several the one that has waited longest: fibres take turns. */
static bool unpark(struct pt_stack *s, uint64_t time, uint64_t addr)
{
    size_t found = SIZE_MAX, frame = SIZE_MAX;
    for (size_t i = 0; i < s->parked.len; i++) {
        const struct frames *f = &s->parked.data[i];
        size_t at = pt_stack_find_call(s, f, addr);
        if (at == SIZE_MAX || (found != SIZE_MAX && at != f->len - 1))
            continue;
        found = i;
        frame = at;
        if (at == f->len - 1)
            break;
    }
    if (found == SIZE_MAX)
        return false;
    struct frames f = s->parked.data[found];
    vec_remove(&s->parked, found);
    park(s, time);
    f.len = frame;
    s->open = f;
    for (size_t k = 0; k < f.len; k++) {
        if (f.data[k].kind == FRAME_BEGUN) /* too late to undo */
            f.data[k].kind = FRAME_SIGNAL;
        enter(s, time, f.data[k].fn, site_of(s, &f.data[k]));
    }
    return true;
}

/* ---- finding frames ---- */

/* A part of some function, which goes on there. */
static bool is_part(const struct pt_stack *s, fn_id fn)
{
    return functions_get(s->functions, fn)->kind == FN_PART;
}

size_t pt_stack_find_signal(const struct pt_stack *s, uint64_t addr)
{
    for (size_t i = s->open.len; i > 0; i--) {
        const struct frame *f = &s->open.data[i - 1];
        /* A system call that was interrupted goes on behind itself, or is made again. */
        uint64_t reach = f->kind == FRAME_CALLBACK                              ? INSN_MAX
                         : f->kind == FRAME_SIGNAL || f->kind == FRAME_BEGUN ? 2
                                                                                : 0;
        if (reach && addr >= f->ret && addr - f->ret <= reach)
            return i - 1;
    }
    return SIZE_MAX;
}

/* ---- the rules ---- */

void pt_stack_wrap(struct pt_stack *s, uint64_t time, fn_id fn)
{
    if (s->switched) { /* it was around its own calls, not around the other stacks' */
        pt_stack_push(s, time, FRAME_ROOT, fn, 0, SPAN_INFERRED_START);
        return;
    }
    struct frame f = {.fn = fn, .was = FN_NONE, .kind = FRAME_ROOT};
    if (!vec_try_push(&s->open, f) ||
        trace_builder_wrap(s->b, s->thread, time, fn) < 0)
        s->no_memory = true;
}

static inline void on_call(struct pt_stack *s, const struct flow_event *e)
{
    enum frame_kind kind = e->at_start ? FRAME_CALL : FRAME_INNER;
    if (__builtin_expect(s->sites || s->open.len == s->open.cap, 0)) {
        pt_stack_push(s, e->time, kind, e->fn, e->addr, 0);
        return;
    }
    struct frame *f = &s->open.data[s->open.len++]; /* field by field: as one, gcc clears it first */
    f->ret = e->addr;
    f->fn = e->fn;
    f->was = FN_NONE;
    f->kind = kind;
    f->set_jump = 0;
    if (thread_builder_enter(s->t, e->time, e->fn, span_site_flags(e->addr)) < 0)
        s->no_memory = true;
}

/* A return whose place no open call is waiting at. */
static void on_strange_return(struct pt_stack *s, const struct flow_event *e)
{
    struct frame *t = pt_stack_top(s);
    if (t && t->kind == FRAME_SIGNAL) { /* the handler returns into the code that ends it */
        pt_stack_replace_top(s, e->time, e->fn, 0);
        return;
    }
    if (t && t->kind == FRAME_INNER && e->at_start) { /* a retpoline: an indirect jump in disguise */
        pt_stack_pop_to(s, e->time, s->open.len - 1);
        pt_stack_replace_top(s, e->time, e->fn, SPAN_TAIL_CALL);
        return;
    }
    if (unpark(s, e->time, e->addr))
        return;
    if (s->open.len <= 1 && !e->at_start && (!t || t->kind == FRAME_ROOT)) {
        pt_stack_pop_to(s, e->time, 0);
        pt_stack_wrap(s, e->time, e->fn);
        return;
    }
    size_t below = e->at_start || !s->open.len ? SIZE_MAX : pt_stack_find_resumed(s, e, s->open.len - 1);
    if (below != SIZE_MAX) {
        pt_stack_pop_to(s, e->time, below + 1);
        return;
    }
    park(s, e->time);
    pt_stack_push(s, e->time, FRAME_ROOT, e->fn, 0, e->at_start ? 0 : SPAN_INFERRED_START);
}

/* The frame that a call has come back to. It may have become another function without a jump, where one
 * falls into the next (assembly with more than one name). */
static inline void go_on_in(struct pt_stack *s, const struct flow_event *e)
{
    const struct frame *t = pt_stack_top(s);
    if (t && t->fn != e->fn && pt_stack_known(s, t->fn) && pt_stack_known(s, e->fn) && !is_part(s, e->fn))
        pt_stack_replace_top(s, e->time, e->fn, SPAN_TAIL_CALL);
}

/* Whether the top frame's call is over, and tells nothing more by that. */
static __attribute__((noinline)) bool returns_carefully(struct pt_stack *s, const struct frame *t, uint64_t addr)
{
    if (t->kind != FRAME_CALL && t->kind != FRAME_INNER)
        return false;
    if (s->sites)
        return call_sites_return(s->sites, t->ret, addr);
    return t->ret == addr && !(pt_stack_traits(s, t->fn) & TRAIT_RESUMES);
}

/* An exception goes on where a call returns to that never does (of __cxa_throw, of _Unwind_Resume): the landing
 * pads of a function lie behind it. */
static bool on_landing(struct pt_stack *s, const struct flow_event *e)
{
    const struct frame *t = pt_stack_top(s);
    bool returns = t && pt_stack_is_call(t) && returns_to(s, t, e->addr) && !(pt_stack_traits(s, t->fn) & TRAIT_RESUMES);
    size_t at = e->at_start || !t || returns ? SIZE_MAX : pt_stack_find_landing(s, e, s->open.len - 1);
    if (at == SIZE_MAX)
        return false;
    pt_stack_pop_to(s, e->time, at + 1);
    return true;
}

/* The top frame's call does not return there, or is one of setjmp. */
static __attribute__((noinline)) void on_return_further(struct pt_stack *s, const struct flow_event *e)
{
    const struct frame *t = pt_stack_top(s);
    if (t && t->kind == FRAME_BEGUN) {
        pt_stack_doubt(s, e);
        return;
    }
    if (on_landing(s, e))
        return;
    size_t at = pt_stack_find_call(s, &s->open, e->addr);
    if (at == SIZE_MAX)
        at = pt_stack_find_signal(s, e->addr);
    if (at == SIZE_MAX) {
        on_strange_return(s, e);
        return;
    }
    bool set_jump = s->open.data[at].kind == FRAME_SETJMP;
    pt_stack_pop_to(s, e->time, at);
    go_on_in(s, e);
    if (set_jump && at > 0)
        pt_stack_top(s)->set_jump = (uint32_t)e->addr;
}

static inline void on_return(struct pt_stack *s, const struct flow_event *e)
{
    const struct frame *t = pt_stack_top(s);
    if (t && s->parked.len && (pt_stack_traits(s, t->fn) & TRAIT_SWITCHES) && unpark(s, e->time, e->addr))
        return;
    if (t && (__builtin_expect(s->careful, 0) ? returns_carefully(s, t, e->addr)
                                              : t->kind == FRAME_CALL && t->ret == e->addr)) {
        s->open.len--;
        leave(s, e->time, 0);
        go_on_in(s, e);
        return;
    }
    on_return_further(s, e);
}

static void on_jump(struct pt_stack *s, const struct flow_event *e)
{
    const struct frame *t = pt_stack_top(s);
    /* Back into the code that is running (an aborted transaction, or out of a part of it), or into a part of it. */
    if (t && ((!e->at_start && t->fn == e->fn && pt_stack_known(s, e->fn)) || is_part(s, e->fn))) {
        trace_builder_pass(s->b, s->thread, e->time);
        return;
    }
    if (!e->at_start && t && t->was == e->fn && pt_stack_known(s, e->fn)) {
        pt_stack_replace_top(s, e->time, e->fn, SPAN_TAIL_CALL); /* what it jumped into is a part of it */
        return;
    }
    if (!e->at_start && s->open.len) {
        size_t below = pt_stack_find_resumed(s, e, s->open.len - 1);
        if (below != SIZE_MAX) {
            pt_stack_pop_to(s, e->time, below + 1);
            return;
        }
        if (unpark(s, e->time, e->addr))
            return;
    }
    pt_stack_replace_top(s, e->time, e->fn, SPAN_TAIL_CALL);
}

static void on_other(struct pt_stack *s, const struct flow_event *e)
{
    switch ((enum pt_event_kind)e->kind) {
    case PT_EVENT_CALL:
    case PT_EVENT_RETURN:
        break;
    case PT_EVENT_JUMP:
        on_jump(s, e);
        break;
    case PT_EVENT_INTERRUPT:
        pt_stack_push(s, e->time, FRAME_SIGNAL, e->fn, e->addr, 0);
        break;
    case PT_EVENT_BEGIN:
        pt_stack_begin(s, e);
        break;
    case PT_EVENT_END:
        s->paused = true;
        s->pause = *e;
        trace_builder_pass(s->b, s->thread, e->time);
        break;
    case PT_EVENT_LOST:
        s->paused = false;
        s->open.len = 0;
        pt_stack_forget_parked(s);
        trace_builder_pass(s->b, s->thread, e->time);
        trace_builder_cut(s->b, s->thread, e->time, SPAN_GAP_END);
        break;
    case PT_EVENT_TX_BEGIN:
        s->in_tx = true;
        break;
    case PT_EVENT_TX_COMMIT:
    case PT_EVENT_TX_ABORT:
        break;
    }
}

/* Nearly all are calls and returns. */
static inline void on_event(struct pt_stack *s, const struct flow_event *e)
{
    if (__builtin_expect(s->returning, 0))
        pt_stack_settle(s, e);
    if (e->kind == PT_EVENT_CALL)
        on_call(s, e);
    else if (e->kind == PT_EVENT_RETURN)
        on_return(s, e);
    else
        on_other(s, e);
}

/* ---- transactions ---- */

static void end_tx(struct pt_stack *s, bool happened)
{
    size_t n = happened ? s->held.len : 0;
    s->held.len = 0;
    s->in_tx = false;
    pt_stack_events(s, s->held.data, n);
}

/* Events of a transaction wait for its outcome. Where that stays unknown, what was seen counts. */
static __attribute__((noinline)) void on_tx_event(struct pt_stack *s, const struct flow_event *e)
{
    if (e->kind == PT_EVENT_TX_COMMIT || e->kind == PT_EVENT_TX_ABORT) {
        end_tx(s, e->kind == PT_EVENT_TX_COMMIT);
        trace_builder_pass(s->b, s->thread, e->time);
    } else if (e->kind == PT_EVENT_LOST || s->held.len == HELD_MAX) {
        end_tx(s, true);
        pt_stack_events(s, e, 1);
    } else if (e->kind != PT_EVENT_TX_BEGIN && !vec_try_push(&s->held, *e)) {
        s->no_memory = true;
    }
}

int pt_stack_events(struct pt_stack *s, const struct flow_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (__builtin_expect(s->in_tx, 0))
            on_tx_event(s, &events[i]);
        else
            on_event(s, &events[i]);
    }
    if (n && !s->in_tx && !s->returning)
        s->last_ns = events[n - 1].time;
    return s->no_memory ? MTUI_E_NOMEM : 0;
}

void pt_stack_reset(struct pt_stack *s, unsigned flags)
{
    end_tx(s, true);
    if (s->returning) /* that was the last event */
        s->last_ns = s->ret.time;
    pt_stack_settle(s, NULL);
    s->paused = false;
    s->open.len = 0;
    pt_stack_forget_parked(s);
    if (s->last_ns) /* else nothing has happened yet */
        trace_builder_pass(s->b, s->thread, s->last_ns);
    trace_builder_cut(s->b, s->thread, s->last_ns, flags);
}
