/* The frames of a thread: shared by pt_stack.c (calls, returns, jumps), pt_stack_unwind.c (exceptions, longjmp)
 * and pt_stack_pause.c (where tracing stops and goes on) alone. */
#ifndef MTUI_DECODE_PT_STACK_PRIV_H
#define MTUI_DECODE_PT_STACK_PRIV_H

#include "core/base/vec.h"
#include "decode/pt/pt_stack.h"

#define INSN_MAX   15

enum frame_kind {
    FRAME_CALL,   /* will return to `ret` */
    FRAME_ROOT,   /* was there already; where it returns to is not known */
    FRAME_INNER,  /* a call to the middle of a function (a retpoline's) */
    FRAME_SETJMP, /* a call that has become setjmp */
    FRAME_SIGNAL, /* a handler; the program goes on at `ret` when it is left */
    FRAME_BEGUN,  /* tracing went on at its beginning: a handler as above, or a call of nobody knows whom */
    FRAME_CALLBACK /* called by what is not traced, which was called at `ret` or just before it */
};

struct frame {
    uint64_t ret;
    fn_id fn;
    fn_id was; /* the function that jumped into fn; FN_NONE: it was called */
    uint32_t kind;     /* enum frame_kind */
    uint32_t set_jump; /* the lower half of where its last call of setjmp returned to: fn has less than 4 GiB. 0: none */
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
    struct pt_stack_landing landing; /* pad NULL: nothing is known of exceptions */
    bool careful; /* returns are to be looked at: calls do not tell where they return to, or what a call never
                     returns to, an exception has gone on at */
    fn_id syscall_fn, untraced_fn;
    struct frames open;
    VEC(struct frames) parked;
    VEC(uint8_t) traits; /* by function: TRAIT_*; 0: not asked yet */
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

static inline bool pt_stack_is_call(const struct frame *f)
{
    return f->kind == FRAME_CALL || f->kind == FRAME_INNER || f->kind == FRAME_SETJMP;
}

/* What a function is known to do by its name. */
enum {
    TRAIT_ASKED = 1,
    TRAIT_SWITCHES = 2, /* leaves by another stack than it was called on */
    TRAIT_RESUMES = 4,  /* never returns: an exception goes on to a frame further out */
    TRAIT_SETS_JUMP = 8 /* where its call returns to, longjmp returns to again */
};
unsigned pt_stack_ask_traits(struct pt_stack *s, fn_id fn);

static inline unsigned pt_stack_traits(struct pt_stack *s, fn_id fn)
{
    unsigned known = fn < s->traits.len ? s->traits.data[fn] : 0;
    return known ? known : pt_stack_ask_traits(s, fn);
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
size_t pt_stack_find_open(struct pt_stack *s, fn_id fn, size_t below);
/* Likewise of e->fn, which goes on at e->addr: where it is open more than once, the one that this fits. */
size_t pt_stack_find_resumed(struct pt_stack *s, const struct flow_event *e, size_t below);
/* Likewise, where it is open more than once and a call that is pending has its landing pad there. */
size_t pt_stack_find_landing(struct pt_stack *s, const struct flow_event *e, size_t below);
/* The program goes on at addr when that frame is left. */
size_t pt_stack_find_signal(const struct pt_stack *s, uint64_t addr);

static inline bool pt_stack_known(const struct pt_stack *s, fn_id fn)
{
    return functions_get(s->functions, fn)->kind != FN_UNKNOWN;
}

/* Tracing goes on. */
void pt_stack_begin(struct pt_stack *s, const struct flow_event *e);
/* The top frame was begun and returns: what that tells waits for what comes next (NULL: nothing). */
void pt_stack_doubt(struct pt_stack *s, const struct flow_event *e);
void pt_stack_settle(struct pt_stack *s, const struct flow_event *next);

#endif
