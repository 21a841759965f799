/* The stack rules one by one, on events made by hand: what becomes of frames, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib_rig.h"

static void expect(struct rig *r, const char *want)
{
    char *got = rig_finish(r, RIG_FLAGS);
    assert_string_equal(got, want);
    free(got);
}

static void calls_nest(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'a', 0);      /* 110 */
    rig_call(&r, 'a', 5, 'b');  /* 120 */
    rig_call(&r, 'b', 9, 'c');  /* 130 */
    rig_ret(&r, 'b', 9);        /* 140 */
    rig_call(&r, 'b', 20, 'c'); /* 150 */
    rig_ret(&r, 'b', 20);       /* 160 */
    rig_ret(&r, 'a', 5);        /* 170 */
    rig_end(&r, 'a', 8, PT_END_SYSCALL);
    expect(&r, "a 110-180 e / b 120-170 / c 130-140, c 150-160");
}

/* Return to any live ancestor pops all between (D6); longjmp by jump into an open function (D1). */
static void field_D1_D6_skipped_frames(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'a', 0);      /* 110 */
    rig_call(&r, 'a', 5, 'b');  /* 120 */
    rig_call(&r, 'b', 9, 'c');  /* 130 */
    rig_ret(&r, 'a', 5);        /* 140: over b */
    rig_call(&r, 'a', 15, 'b'); /* 150 */
    rig_call(&r, 'b', 9, 'c');  /* 160 */
    rig_jump(&r, 'a', 77);      /* 170: longjmp */
    rig_call(&r, 'a', 90, 'd'); /* 180 */
    rig_ret(&r, 'a', 90);       /* 190 */
    expect(&r, "a 110-190 e / b 120-140, b 150-170, d 180-190 / c 130-140, c 160-170");
}

static void field_D1_longjmp_a_hundred_thousand_times(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'a', 0);
    for (unsigned i = 0; i < 100000; i++) {
        rig_call(&r, 'a', 5, 'b');
        rig_call(&r, 'b', 9, 'c');
        if (i & 1)
            rig_jump(&r, 'a', 77); /* by a jump, or by a return that nothing waits for */
        else
            rig_ret(&r, 'a', 77);
    }
    char *got = rig_finish(&r, RIG_FLAGS);
    unsigned rows = 1;
    for (const char *p = got; (p = strstr(p, " / ")) != NULL; p++)
        rows++;
    assert_int_equal(rows, 3);
    free(got);
}

static void tail_calls(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'a', 0);     /* 110 */
    rig_call(&r, 'a', 5, 'b'); /* 120 */
    rig_jump(&r, 'c', 0);      /* 130 */
    rig_call(&r, 'c', 9, 'd'); /* 140 */
    rig_ret(&r, 'c', 9);       /* 150 */
    rig_ret(&r, 'a', 5);       /* 160 */
    expect(&r, "a 110-160 e / b 120-130, c 130-160 t / d 140-150");
}

/* call thunk; inside: call over the pause loop; the return goes to the real target. */
static void retpolines(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'a', 0);                                          /* 110 */
    rig_call(&r, 'a', 5, 't');                                      /* 120 */
    rig_event(&r, PT_EVENT_CALL, rig_at('t', 5), 't', false, 0);        /* 130: into the middle of t */
    rig_ret(&r, 'b', 0);                                            /* 140: the indirect call */
    rig_ret(&r, 'a', 5);                                            /* 150 */
    expect(&r, "a 110-150 e / t 120-140, b 140-150 t / t 130-140");
}

/* A handler nests where the program was, sigreturn goes on there; the restorer belongs to it. */
static void field_D6_signals_nest(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'a', 0);               /* 110 */
    rig_call(&r, 'a', 5, 'b');           /* 120 */
    rig_end(&r, 'b', 30, PT_END_ASYNC);  /* 130 */
    rig_begin(&r, 'h', 0);               /* 140 */
    rig_call(&r, 'h', 9, 'c');           /* 150 */
    rig_ret(&r, 'h', 9);                 /* 160 */
    rig_ret(&r, 'r', 0);                 /* 170: the restorer */
    rig_end(&r, 'r', 7, PT_END_SYSCALL); /* 180: sigreturn */
    rig_begin(&r, 'b', 30);              /* 190 */
    rig_ret(&r, 'a', 5);                 /* 200 */
    expect(&r, "a 110-200 e / b 120-200 / [untraced] 130-140, h 140-170, r 170-190 / c 150-160, [syscall] 180-190");
}

/* One function stepped again and again, from here and there: where it returned to may be over when it is
 * called the next time. Nothing is nested in what is not known to be open, nothing lasts longer than seen. */
static void windows_of_one_function(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'f', 0);              /* 110 */
    rig_ret(&r, 'a', 5);                /* 120 */
    rig_end(&r, 'a', 5, PT_END_ASYNC);  /* 130 */
    rig_begin(&r, 'f', 0);              /* 140: of another caller */
    rig_call(&r, 'f', 9, 'c');          /* 150 */
    rig_ret(&r, 'f', 9);                /* 160 */
    rig_ret(&r, 'b', 7);                /* 170 */
    rig_end(&r, 'b', 7, PT_END_ASYNC);  /* 180 */
    rig_begin(&r, 'f', 0);              /* 190: of the same function, but is it the same call? */
    rig_ret(&r, 'b', 7);                /* 200 */
    rig_end(&r, 'b', 7, PT_END_ASYNC);  /* 210 */
    expect(&r, "a 110-130 se, [untraced] 130-140, b 140-180 se, [untraced] 180-190, b 190-210 se / "
               "f 110-120, f 140-170, f 190-200 / c 150-160");
}

static void windows_that_end_inside(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'f', 0);              /* 110 */
    rig_call(&r, 'f', 9, 'c');          /* 120 */
    rig_end(&r, 'c', 5, PT_END_ASYNC);  /* 130: the budget is spent */
    rig_begin(&r, 'f', 0);              /* 140 */
    rig_ret(&r, 'a', 5);                /* 150 */
    expect(&r, "f 110-130 e, a 140-150 se / c 120-130 e, f 140-150");
}

/* A window of another function inside of what was open, and a handler in that window. */
static void handler_in_a_window(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'f', 0);               /* 110 */
    rig_ret(&r, 'a', 5);                 /* 120 */
    rig_end(&r, 'a', 5, PT_END_ASYNC);   /* 130 */
    rig_begin(&r, 'g', 0);               /* 140 */
    rig_end(&r, 'g', 12, PT_END_ASYNC);  /* 150 */
    rig_begin(&r, 'h', 0);               /* 160 */
    rig_ret(&r, 'r', 32);                /* 170: a restorer that has no name of its own */
    rig_end(&r, 'r', 39, PT_END_SYSCALL);/* 180 */
    rig_begin(&r, 'g', 12);              /* 190 */
    rig_ret(&r, 'b', 5);                 /* 200 */
    rig_end(&r, 'b', 5, PT_END_ASYNC);   /* 210 */
    expect(&r, "a 110-130 se, [untraced] 130-140, b 140-210 se / f 110-120, g 140-200 / "
               "[untraced] 150-160, h 160-170, r 170-190 / [syscall] 180-190");
}

/* What is left of the picture that rows give is as deep as one window. */
static void a_hundred_thousand_windows(void **state)
{
    static const char callers[] = "abd", functions[] = "fg";
    (void)state;
    for (unsigned inside = 0; inside < 2; inside++) {
        struct rig r = rig_new();
        for (unsigned i = 0; i < 100000; i++) {
            char f = functions[i / 7 % 2], caller = callers[i % 3];
            rig_begin(&r, f, 0);
            rig_call(&r, f, 9, 'c');
            if (!inside || i % 16 == 15) {
                rig_ret(&r, f, 9);
                rig_ret(&r, caller, 5);
                rig_end(&r, caller, 5, PT_END_ASYNC);
            } else {
                rig_end(&r, 'c', 5, PT_END_ASYNC);
            }
        }
        char *got = rig_finish(&r, RIG_FLAGS);
        unsigned rows = 1;
        for (const char *p = got; (p = strstr(p, " / ")) != NULL; p++)
            rows++;
        assert_true(rows <= 6); /* caller, f, c; where windows end inside, those of f and g in one another */
        free(got);
    }
}

/* An address filter on f alone: it is left by its return, or by calls that may call it back. */
static void address_filters(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'f', 0);               /* 110 */
    rig_end(&r, 'f', 40, PT_END_RETURN); /* 120 */
    rig_begin(&r, 'f', 0);               /* 130 */
    rig_end(&r, 'f', 20, PT_END_CALL);   /* 140: qsort, which is not traced, */
    rig_begin(&r, 'g', 0);               /* 150: calls back */
    rig_end(&r, 'g', 9, PT_END_RETURN);  /* 160 */
    rig_begin(&r, 'g', 0);               /* 170 */
    rig_end(&r, 'g', 9, PT_END_RETURN);  /* 180 */
    rig_begin(&r, 'f', 25);              /* 190 */
    rig_end(&r, 'f', 40, PT_END_RETURN); /* 200 */
    rig_begin(&r, 'f', 0);               /* 210 */
    rig_end(&r, 'f', 30, PT_END_JUMP);   /* 220: a tail call */
    rig_begin(&r, 'f', 0);               /* 230 */
    expect(&r, "f 110-120, f 130-200, f 210-220, f 230-230 e / [untraced] 140-150, g 150-160, [untraced] 160-170, "
               "g 170-180, [untraced] 180-190");
}

/* The traced function is left by an exception from code that is not traced. */
static void a_hundred_thousand_exceptions(void **state)
{
    struct rig r = rig_new();
    (void)state;
    for (unsigned i = 0; i < 100000; i++) {
        rig_begin(&r, 'f', 0);
        rig_end(&r, 'f', 20, PT_END_CALL);
    }
    char *got = rig_finish(&r, RIG_FLAGS);
    unsigned rows = 1;
    for (const char *p = got; (p = strstr(p, " / ")) != NULL; p++)
        rows++;
    assert_true(rows <= 300);
    free(got);
}

static void system_calls(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'a', 0);               /* 110 */
    rig_end(&r, 'a', 30, PT_END_SYSCALL);/* 120 */
    rig_begin(&r, 'a', 32);              /* 130 */
    rig_end(&r, 'a', 40, PT_END_ASYNC);  /* 140: a fault */
    rig_begin(&r, 'a', 40);              /* 150 */
    expect(&r, "a 110-150 e / [syscall] 120-130, [untraced] 140-150");
}

/* The exception goes on from _Unwind_Resume to the next frame of the same function. */
static void exceptions_through_recursion(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'a', 0);      /* 110 */
    rig_call(&r, 'a', 5, 'f');  /* 120 */
    rig_call(&r, 'f', 9, 'f');  /* 130 */
    rig_call(&r, 'f', 20, 'x'); /* 140: throws */
    rig_jump(&r, 'f', 50);      /* 150: landing pad of the inner one */
    rig_call(&r, 'f', 60, 'U'); /* 160 */
    rig_jump(&r, 'f', 50);      /* 170: of the outer one */
    rig_call(&r, 'f', 60, 'U'); /* 180 */
    rig_jump(&r, 'a', 70);      /* 190: caught */
    expect(&r, "a 110-190 e / f 120-190 / f 130-170, _Unwind_Resume 180-190 / x 140-150, _Unwind_Resume 160-170");
}

/* What was left comes up again where it waits; two that wait at the same place take turns. */
static void fibres(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'a', 0);     /* 110 */
    rig_call(&r, 'a', 5, 'C'); /* 120 */
    rig_ret(&r, 'f', 0);       /* 130: a stack of its own */
    rig_call(&r, 'f', 9, 'C'); /* 140 */
    rig_ret(&r, 'a', 5);       /* 150: back */
    rig_call(&r, 'a', 15, 'C');/* 160 */
    rig_ret(&r, 'f', 9);       /* 170 */
    rig_call(&r, 'f', 19, 'C');/* 180 */
    rig_ret(&r, 'a', 15);      /* 190 */
    expect(&r, "a 110-130, f 130-150, a 150-170, f 170-190, a 190-190 e / swapcontext 120-130, "
               "swapcontext 140-150, swapcontext 160-170, swapcontext 180-190");
}

/* The caller of the first function was there all the time: inferred, around everything. */
static void field_D8_inferred_starts(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'b', 20);    /* 110 */
    rig_call(&r, 'b', 30, 'c');/* 120 */
    rig_ret(&r, 'b', 30);      /* 130 */
    rig_ret(&r, 'a', 44);      /* 140 */
    rig_call(&r, 'a', 60, 'd');/* 150 */
    rig_ret(&r, 'a', 60);      /* 160 */
    expect(&r, "a 110-160 se / b 110-140 s, d 150-160 / c 120-130");
}

/* After a loss nothing is invented: what was open has ended, and a recursion is seen only where it was
 * called (D2). */
static void field_D2_nothing_is_invented_after_a_loss(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'a', 0);      /* 110 */
    rig_call(&r, 'a', 5, 'b');  /* 120 */
    rig_lost(&r);               /* 130 */
    rig_begin(&r, 'b', 40);     /* 140 */
    rig_ret(&r, 'a', 5);        /* 150 */
    expect(&r, "a 110-130 g, a 140-150 se / b 120-130 g, b 140-150 s");
}

/* Another program, another snapshot: nothing crosses the border (D5). */
static void field_D5_no_frame_crosses_a_border(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'a', 0);     /* 110 */
    rig_call(&r, 'a', 5, 'b'); /* 120 */
    pt_stack_reset(r.stack, 0);
    rig_begin(&r, 'a', 3);     /* 130 */
    rig_ret(&r, 'm', 9);       /* 140 */
    expect(&r, "a 110-120, m 130-140 se / b 120-120, a 130-140 s");
}

/* The first stream's beginning is no event: the trace begins with what happened first. */
static void a_border_before_everything(void **state)
{
    struct rig r = rig_new();
    uint64_t first = 0, last = 0;
    (void)state;
    pt_stack_reset(r.stack, 0);
    rig_begin(&r, 'a', 0); /* 110 */
    trace_builder_times(r.b, &first, &last);
    assert_int_equal(first, 110);
    expect(&r, "a 110-110 e");
}

/* A function that is not known is in no open frame: a jump into it is none back. */
static void unknown_code(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'a', 0);                             /* 110 */
    rig_event(&r, PT_EVENT_CALL, rig_at('a', 5), '?', true, 0); /* 120 */
    rig_event(&r, PT_EVENT_CALL, rig_at('?', 5), 'b', true, 0); /* 130 */
    rig_event(&r, PT_EVENT_JUMP, rig_at('?', 900), '?', false, 0); /* 140 */
    rig_ret(&r, 'a', 5);                               /* 150 */
    expect(&r, "a 110-150 e / [unknown] 120-150 / b 130-140, [unknown] 140-150 t");
}

/* What lies apart from its function is a part of the one that jumps there, also for what is called from it. */
static void parts(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'a', 0);     /* 110 */
    rig_call(&r, 'a', 5, 'b'); /* 120 */
    rig_call(&r, 'b', 5, 'b'); /* 130: recursion: the part does not lead back to the outer one */
    rig_jump(&r, 'P', 0);      /* 140 */
    rig_call(&r, 'P', 9, 'd'); /* 150 */
    rig_ret(&r, 'P', 9);       /* 160 */
    rig_jump(&r, 'b', 40);     /* 170 */
    rig_call(&r, 'b', 50, 'd'); /* 180 */
    rig_ret(&r, 'b', 50);      /* 190 */
    rig_jump(&r, 'P', 30);     /* 200 */
    rig_ret(&r, 'b', 5);       /* 210: out of the part */
    rig_ret(&r, 'a', 5);       /* 220 */
    expect(&r, "a 110-220 e / b 120-220 / b 130-210 / d 150-160, d 180-190");
}

/* A trace that begins in a part knows its function when that goes on. */
static void begins_in_a_part(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'P', 7);     /* 110 */
    rig_call(&r, 'P', 9, 'd'); /* 120 */
    rig_ret(&r, 'P', 9);       /* 130 */
    rig_jump(&r, 'b', 40);     /* 140 */
    rig_ret(&r, 'a', 5);       /* 150 */
    rig_jump(&r, 'P', 0);      /* 160 */
    expect(&r, "a 110-160 se / part 110-140 s, b 140-150 t / d 120-130");
}

/* A part that looks like a function leads back into the frame that jumped there, not into an outer one. */
static void back_from_where_it_jumped(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'a', 0);     /* 110 */
    rig_call(&r, 'a', 5, 'b'); /* 120 */
    rig_call(&r, 'b', 5, 'b'); /* 130 */
    rig_jump(&r, 'c', 0);      /* 140 */
    rig_jump(&r, 'b', 40);     /* 150 */
    rig_ret(&r, 'b', 5);       /* 160 */
    rig_ret(&r, 'a', 5);       /* 170 */
    expect(&r, "a 110-170 e / b 120-170 / b 130-140, c 140-150 t, b 150-160 t");
}

/* Of the kernel's side: an interrupt nests, iret goes back to where it came. */
static void field_D6_interrupts(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'a', 0);                                     /* 110 */
    rig_event(&r, PT_EVENT_INTERRUPT, rig_at('a', 30), 'k', true, 0); /* 120 */
    rig_call(&r, 'k', 9, 'l');                                 /* 130 */
    rig_event(&r, PT_EVENT_RETURN, rig_at('a', 30), 'a', false, 0);/* 140: iret out of l */
    expect(&r, "a 110-140 e / k 120-140 / l 130-140");
}

/* Functions lie at multiples of 4096, so the nine bits are the offset that the call returns to. A tail call
 * keeps the place of the call that it answers; so does a stack that is taken up again. */
static void call_sites(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'a', 0);          /* 110 */
    rig_call(&r, 'a', 0x25, 'b');   /* 120 */
    rig_jump(&r, 'c', 0);           /* 130 */
    rig_ret(&r, 'a', 0x25);         /* 140 */
    rig_call(&r, 'a', 0x3e1, 'b');  /* 150 */
    rig_call(&r, 'b', 0x10, 'd');   /* 160 */
    rig_ret(&r, 'b', 0x10);         /* 170 */
    rig_ret(&r, 'a', 0x3e1);        /* 180 */
    char *got = rig_finish(&r, RIG_FLAGS | RIG_SITES);
    assert_string_equal(got, "a 110-180 e / b 120-130@25, c 130-140 t@25, b 150-180@1e1 / d 160-170@10");
    free(got);
}

/* Times that go backwards are raised to the latest one before and counted; how many events come at once does not
 * matter. The end of tracing at 90 is none of them: nothing begins or ends then. */
static void raised_times_are_counted_alike(void **state)
{
    const struct {
        uint64_t time;
        enum pt_event_kind kind;
        char fn, to;
        unsigned offset;
    } steps[] = {{100, PT_EVENT_BEGIN, 'a', 'a', 0},  {110, PT_EVENT_CALL, 'a', 'b', 8},
                 {50, PT_EVENT_CALL, 'b', 'c', 8}, /* raised */
                 {120, PT_EVENT_RETURN, 'b', 'b', 8}, {200, PT_EVENT_END, 'b', 0, 16},
                 {90, PT_EVENT_BEGIN, 'b', 'b', 16},  {190, PT_EVENT_RETURN, 'a', 'a', 8} /* raised */};
    size_t n = sizeof steps / sizeof *steps;
    (void)state;
    for (size_t at_once = 1; at_once <= n; at_once++) {
        struct rig r = rig_new();
        struct flow_event e[sizeof steps / sizeof *steps];
        for (size_t i = 0; i < n; i++)
            e[i] = (struct flow_event){.time = steps[i].time,
                                       .addr = rig_at(steps[i].fn, steps[i].offset),
                                       .fn = steps[i].to ? rig_id(&r, steps[i].to) : FN_NONE,
                                       .kind = (uint8_t)steps[i].kind,
                                       .how = PT_END_ASYNC,
                                       .at_start = steps[i].kind == PT_EVENT_CALL || i == 0};
        for (size_t i = 0; i < n; i += at_once)
            assert_int_equal(pt_stack_events(r.stack, e + i, n - i < at_once ? n - i : at_once), 0);
        pt_stack_free(r.stack);
        assert_int_equal(trace_builder_clamped(r.b), 2);
        struct trace *t;
        assert_int_equal(trace_builder_finish(r.b, &t, NULL), 0);
        trace_builder_free(r.b);
        for (size_t depth = 1, spans; depth <= 2; depth++) { /* b, c */
            const struct span *s = trace_row(t, 0, depth, &spans);
            assert_int_equal(spans, 1);
            assert_int_equal(s->start_ns, 110);
            assert_int_equal(s->end_ns, depth == 1 ? 200 : 120);
        }
        trace_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raised_times_are_counted_alike),
        cmocka_unit_test(calls_nest),       cmocka_unit_test(field_D1_D6_skipped_frames),
        cmocka_unit_test(field_D1_longjmp_a_hundred_thousand_times),
        cmocka_unit_test(tail_calls),       cmocka_unit_test(retpolines),
        cmocka_unit_test(field_D6_signals_nest),          cmocka_unit_test(system_calls),
        cmocka_unit_test(exceptions_through_recursion),
        cmocka_unit_test(fibres),           cmocka_unit_test(field_D8_inferred_starts),
        cmocka_unit_test(field_D2_nothing_is_invented_after_a_loss),
        cmocka_unit_test(field_D5_no_frame_crosses_a_border),
        cmocka_unit_test(parts),            cmocka_unit_test(begins_in_a_part),
        cmocka_unit_test(back_from_where_it_jumped),
        cmocka_unit_test(unknown_code),     cmocka_unit_test(field_D6_interrupts),
        cmocka_unit_test(call_sites),
        cmocka_unit_test(windows_of_one_function),
        cmocka_unit_test(windows_that_end_inside),
        cmocka_unit_test(handler_in_a_window),
        cmocka_unit_test(a_hundred_thousand_windows),
        cmocka_unit_test(address_filters),
        cmocka_unit_test(a_border_before_everything),
        cmocka_unit_test(a_hundred_thousand_exceptions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
