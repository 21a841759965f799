/* The program that `mtui demo` traces: a small web server without a network.
 *
 * Its call tree is worth looking at: named phases, nesting, recursion, four threads, and waits off the
 * CPU. The work is deterministic: the same calls each time, sized by `scale` (1: a request is some
 * thousand instructions, for single-stepping; 2000: a millisecond or so, for sampling). */
#ifndef MTUI_TUI_DEMO_PROGRAM_H
#define MTUI_TUI_DEMO_PROGRAM_H

#define DEMO_SCALE_STEP   1
#define DEMO_SCALE_SAMPLE 2000
#define DEMO_REQUESTS 60
#define DEMO_SLOW_REQUEST "handle_slow_request" /* the call worth stepping: it does everything */
#define DEMO_STEP_WORD "step" /* operand of the hidden subcommand: DEMO_SCALE_STEP */

/* Serves `requests` requests in each of its workers; returns an exit status. */
int demo_program(unsigned requests, unsigned scale);

#endif
