/* Calls, returns and jumps become frames on a thread's stack, and so spans of a trace.
 *
 *   - A return is matched by its address against the places that the open calls will return to, so
 *     exceptions, longjmp and everything else that skips frames pops the right number.
 *   - A call that returns into another function than made it shows that one has fallen into the next: the
 *     frame goes on as that (SPAN_TAIL_CALL).
 *   - A jump into another function replaces the top frame (SPAN_TAIL_CALL); one into the middle of a
 *     function that is open is a longjmp, or an exception that goes on there. Where that function is open more
 *     than once, it is the innermost in which a call of setjmp has returned to the same place, or whose call that is
 *     pending has its landing pad there; else the innermost.
 *   - Tracing that stops and goes on at the interrupted place has paused. Time in between is a span
 *     "[syscall]" or "[untraced]".
 *   - Where it stops in between and goes on at the beginning of a function, that is a signal handler or the
 *     first call of another window: which, shows when the function returns. A handler returns to the code
 *     that does nothing but call sigreturn (signal(7), sigreturn(2)), and what it interrupted goes on. After
 *     any other return, what was open had ended at the pause as far as anyone knows: nothing of it goes on.
 *   - Where it stops because the traced code is left (address filters), a return or a tail call ends the
 *     frame; after a call, the beginning of a function is a callback from the code that is not traced.
 *   - A return to a place that belongs to another stack (swapcontext, goroutines) parks this stack and
 *     takes that one up again; one to a place never seen starts a stack of its own.
 *   - When the outermost frame returns, what it returns to was running all the time: a frame with an
 *     inferred start is put around everything since the last loss.
 *   - What runs in a transaction (TSX) is put in when that is committed; of one that is aborted nothing is
 *     left, the frames are those of its beginning. Where the outcome is lost, what was seen counts.
 *   - A loss ends every frame (SPAN_GAP_END); nothing is invented behind it.
 *
 * Time never goes back; depth is bounded by what was called. One stack belongs to one thread. */
#ifndef MTUI_DECODE_PT_STACK_H
#define MTUI_DECODE_PT_STACK_H

#include "decode/trace/call_sites.h"
#include "decode/pt/pt_event.h"
#include "decode/trace/trace.h"

struct pt_stack;

/* b and its functions must outlive it; thread as from trace_builder_thread. */
struct pt_stack *pt_stack_new(struct trace_builder *b, size_t thread, struct functions *functions);
/* Puts in what may still wait for the end of a transaction: before the trace is finished. */
void pt_stack_free(struct pt_stack *s);

/* From now on the addr of a CALL is that of the call itself, not where it returns to: sites tells what
 * belongs together. Must outlive it. */
void pt_stack_set_sites(struct pt_stack *s, struct call_sites *sites);

/* Where the program goes on when an exception passes through the call at `call` (any byte of the instruction), as
 * code_view_landing_pad; time as that of the event. */
struct pt_stack_landing {
    bool (*pad)(void *arg, uint64_t time, uint64_t call, uint64_t *pad);
    void *arg;
};
void pt_stack_set_landing(struct pt_stack *s, const struct pt_stack_landing *landing);

/* Events in order. Negative: memory is short. */
int pt_stack_events(struct pt_stack *s, const struct flow_event *events, size_t n);

/* What was put into the builder before it stays as it is, whatever comes; NULL: all of it. Holds until the next
 * event. */
const struct trace_pause *pt_stack_doubtful(const struct pt_stack *s);

/* Another program runs in the process (exec), or the recording jumps to another snapshot: nothing that
 * was open is open any more. flags: of those spans, how they ended (SPAN_INFERRED_END: they may have gone on). */
void pt_stack_reset(struct pt_stack *s, unsigned flags);

#endif
