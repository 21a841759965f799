/* The frames of a thread: shared by pt_stack.c (calls, returns, jumps) and pt_stack_pause.c (where tracing
 * stops and goes on) alone. */
#ifndef MTUI_DECODE_PT_STACK_PRIV_H
#define MTUI_DECODE_PT_STACK_PRIV_H

#include "core/base/vec.h"
#include "decode/pt/pt_stack.h"

#define INSN_MAX   15

enum frame_kind {
    FRAME_CALL,   /* will return to `ret` */
    FRAME_ROOT,   /* was there already; where it returns to is not known */
    FRAME_INNER,  /* a call to the middle of a function (a retpoline's) */
    FRAME_SIGNAL, /* a handler; the program goes on at `ret` when it is left */
    FRAME_BEGUN,  /* tracing went on at its beginning: a handler as above, or a call of nobody knows whom */
    FRAME_CALLBACK /* called by what is not traced, which was called at `ret` or just before it */
};

struct frame {
    uint64_t ret;
    fn_id fn;
    fn_id was; /* the function that jumped into fn; FN_NONE: it was called */
    uint8_t kind;
};

struct frames {
    struct frame *data;
    size_t len, cap;
};

/* What to undo if the frame at a depth turns out to be no handler. */
struct doubt {
    size_t depth;
    struct trace_pause pause;
};

struct pt_stack {
    struct trace_builder *b;
    size_t thread;
    struct thread_builder *t; /* the same thread */
    struct functions *functions;
    struct call_sites *sites; /* NULL: frames know where they return to */
    fn_id syscall_fn, untraced_fn;
    struct frames open;
    VEC(struct frames) parked;
    VEC(uint8_t) switchers; /* by function: whether it switches stacks; 0: not asked yet */
    bool switched; /* not everything since the last cut happened on this stack */
    bool paused;   /* tracing has ended and not gone on */
    struct flow_event pause;
    VEC(struct doubt) doubts; /* of frames begun, the innermost last; some are left already */
    bool returning;           /* the top frame has been begun and has returned */
    struct flow_event ret;
    uint64_t last_ns; /* time of the last event */
    bool in_tx;       /* its outcome is not known yet: events are held back */
    VEC(struct flow_event) held;
    bool no_memory;
};

static inline struct frame *pt_stack_top(struct pt_stack *s)
{
    return s->open.len ? &s->open.data[s->open.len - 1] : NULL;
}

void pt_stack_push(struct pt_stack *s, uint64_t time, enum frame_kind kind, fn_id fn, uint64_t ret,
                   unsigned flags);
void pt_stack_pop_to(struct pt_stack *s, uint64_t time, size_t len);
/* The top frame goes on as another function. */
void pt_stack_replace_top(struct pt_stack *s, uint64_t time, fn_id fn, unsigned flags);
/* The outermost frame has returned into fn, which was there all the time. */
void pt_stack_wrap(struct pt_stack *s, uint64_t time, fn_id fn);
void pt_stack_forget_parked(struct pt_stack *s);

/* Each finds the innermost such frame, counted from the outermost; SIZE_MAX: none. Its call returns to
 * addr. */
size_t pt_stack_find_call(const struct pt_stack *s, const struct frames *f, uint64_t addr);
/* Of fn, below `below`, and it can go on. */
size_t pt_stack_find_open(const struct pt_stack *s, fn_id fn, size_t below);
/* The program goes on at addr when that frame is left. */
size_t pt_stack_find_signal(const struct pt_stack *s, uint64_t addr);

/* Tracing goes on. */
void pt_stack_begin(struct pt_stack *s, const struct flow_event *e);
/* The top frame was begun and returns: what that tells waits for what comes next (NULL: nothing). */
void pt_stack_doubt(struct pt_stack *s, const struct flow_event *e);
void pt_stack_settle(struct pt_stack *s, const struct flow_event *next);

#endif
