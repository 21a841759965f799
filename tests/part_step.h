/* Inside of tests/step_victim.c: what its scenarios share, and those that stand in files of their own. */
#ifndef MTUI_TESTS_PART_STEP_H
#define MTUI_TESTS_PART_STEP_H

#include <signal.h>

#ifdef __clang__ /* which never clones and does not know the word */
#define NI __attribute__((noinline))
#else
#define NI __attribute__((noinline, noclone))
#endif

/* Counts an error, and says what, unless the condition holds. */
void expect(int condition, const char *what);

/* x * 3 + 1: a call that does nothing else. */
long leaf(long x);

extern volatile sig_atomic_t caught; /* by catch_signal */
void catch_signal(int sig, int flags);
void change_trap(int how); /* SIG_BLOCK or SIG_UNBLOCK of SIGTRAP */
unsigned long flags_now(void);
void pause_ms(long ms);

/* part_step_signals.c */
void raise_signals(void);
void restart_calls(void);
void own_breakpoint(void);
void send_traps(void);
void fault(void);
void stop_self(void);
void block_trap(void);
void keep_trap(void);
void ignore_trap(void);
void stay_deaf(void);
void starve(void);

/* part_step_code.c */
void look_at_flags(void);
void call_itself(void);
void odd_instructions(void);
void rewrite_code(void);
void leave_call(void);
void switch_stacks(void);
void repeat_strings(void);

#endif
