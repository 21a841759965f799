/* decode/pt/pt_stack: which of several activations of a function goes on when frames are skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/pt/pt_stack.h"

struct rig {
    struct functions *functions;
    struct trace_builder *b;
    struct pt_stack *stack;
    struct call_sites *sites;
    uint64_t now;
};

/* Functions are letters, 4 KiB long; capitals stand for some by name. */
static uint64_t at(char fn, unsigned offset)
{
    return ((uint64_t)fn << 12) + offset;
}

static fn_id id(struct rig *r, char fn)
{
    static const char *const named[] = {['S'] = "_setjmp", ['G'] = "__sigsetjmp", ['M'] = "__sigjmp_save",
                                        ['L'] = "__longjmp", ['U'] = "_Unwind_Resume", ['T'] = "__cxa_throw"};
    char letter[2] = {fn, '\0'};
    const char *name = fn < 'a' && named[(unsigned)fn] ? named[(unsigned)fn] : letter;
    return functions_intern(r->functions, "m", name, name, 0, FN_USER);
}

static struct rig rig(void)
{
    struct rig r = {.functions = functions_new(), .now = 100};
    r.b = trace_builder_new(r.functions);
    r.stack = pt_stack_new(r.b, trace_builder_thread(r.b, 1, 1), r.functions);
    return r;
}

/* Every event comes ten nanoseconds after the one before. */
static void event(struct rig *r, enum pt_event_kind kind, uint64_t addr, char fn, bool at_start)
{
    struct flow_event e = {
        .time = r->now += 10, .addr = addr, .fn = id(r, fn), .kind = (uint8_t)kind, .at_start = at_start};
    assert_int_equal(pt_stack_events(r->stack, &e, 1), 0);
}

static void begin(struct rig *r, char fn)
{
    event(r, PT_EVENT_BEGIN, at(fn, 0), fn, true);
}

/* A call that returns to offset of `from`; where only its place is known, it is five bytes long. */
static void call(struct rig *r, char from, unsigned offset, char to)
{
    event(r, PT_EVENT_CALL, at(from, r->sites ? offset - 5 : offset), to, true);
}

static void ret(struct rig *r, char to, unsigned offset)
{
    event(r, PT_EVENT_RETURN, at(to, offset), to, offset == 0);
}

static void jump(struct rig *r, char to, unsigned offset)
{
    event(r, PT_EVENT_JUMP, at(to, offset), to, offset == 0);
}

/* What came out: "name start-end" of each span, rows divided by "/". */
static void expect(struct rig *r, const char *want)
{
    char *got = NULL;
    size_t len, n;
    struct trace *t;
    struct err err = {0};
    pt_stack_free(r->stack);
    assert_int_equal(trace_builder_finish(r->b, &t, &err), 0);
    trace_builder_free(r->b);
    if (trace_check(t, &err) < 0)
        fail_msg("%s", err.text);
    FILE *f = open_memstream(&got, &len);
    for (size_t d = 0; d < trace_thread(t, 0)->depths; d++) {
        const struct span *s = trace_row(t, 0, d, &n);
        for (size_t i = 0; i < n; i++)
            fprintf(f, "%s%s %" PRIu64 "-%" PRIu64, i ? ", " : d ? " / " : "",
                    functions_get(trace_functions(t), s[i].fn)->raw, s[i].start_ns, s[i].end_ns);
    }
    fclose(f);
    assert_string_equal(got, want);
    free(got);
    trace_free(t);
    call_sites_free(r->sites);
}

/* ---- longjmp ---- */

/* The innermost f has not called setjmp, the one around it has. */
static void outward(struct rig *r)
{
    begin(r, 'a');         /* 110 */
    call(r, 'a', 5, 'f');  /* 120 */
    call(r, 'f', 20, 'S'); /* 130 */
    jump(r, 'G', 0);       /* 140 */
    jump(r, 'M', 0);       /* 150 */
    ret(r, 'f', 20);       /* 160 */
    call(r, 'f', 30, 'f'); /* 170 */
    call(r, 'f', 40, 'L'); /* 180 */
    jump(r, 'f', 20);      /* 190 */
    ret(r, 'a', 5);        /* 200 */
}

#define OUTWARD                                                                                    \
    "a 110-200 / f 120-200 / _setjmp 130-140, __sigsetjmp 140-150, __sigjmp_save 150-160, f 170-190 / "  \
    "__longjmp 180-190"

static void longjmp_to_who_called_setjmp(void **state)
{
    struct rig r = rig();
    (void)state;
    outward(&r);
    expect(&r, OUTWARD);
}

static void longjmp_where_calls_have_no_length(void **state)
{
    struct rig r = rig();
    (void)state;
    r.sites = call_sites_new();
    pt_stack_set_sites(r.stack, r.sites);
    outward(&r);
    expect(&r, OUTWARD);
}

/* Both have called it, at two places; one returns to both again and again. */
static void longjmp_to_the_place_of_setjmp(void **state)
{
    struct rig r = rig();
    (void)state;
    begin(&r, 'f');         /* 110 */
    call(&r, 'f', 20, 'S'); /* 120 */
    jump(&r, 'G', 0);       /* 130 */
    ret(&r, 'f', 20);       /* 140 */
    call(&r, 'f', 30, 'f'); /* 150 */
    call(&r, 'f', 50, 'S'); /* 160 */
    jump(&r, 'G', 0);       /* 170 */
    ret(&r, 'f', 50);       /* 180 */
    call(&r, 'f', 60, 'L'); /* 190 */
    jump(&r, 'f', 50);      /* 200: the inner one */
    call(&r, 'f', 60, 'L'); /* 210 */
    jump(&r, 'f', 20);      /* 220: the outer one */
    call(&r, 'f', 30, 'f'); /* 230: has called none yet */
    call(&r, 'f', 60, 'L'); /* 240 */
    jump(&r, 'f', 20);      /* 250 */
    expect(&r, "f 110-250 / _setjmp 120-130, __sigsetjmp 130-140, f 150-220, f 230-250 / "
               "_setjmp 160-170, __sigsetjmp 170-180, __longjmp 190-200, __longjmp 210-220, __longjmp 240-250");
}

/* Where nothing is known of setjmp (it was called before the trace began), the innermost. */
static void longjmp_to_who_knows(void **state)
{
    struct rig r = rig();
    (void)state;
    begin(&r, 'f');         /* 110 */
    call(&r, 'f', 30, 'f'); /* 120 */
    call(&r, 'f', 60, 'L'); /* 130 */
    jump(&r, 'f', 20);      /* 140 */
    call(&r, 'f', 70, 'x'); /* 150 */
    expect(&r, "f 110-150 / f 120-150 / __longjmp 130-140, x 150-150");
}

/* ---- exceptions ---- */

/* Calls and their landing pads, ended by a call at 0. */
struct pads {
    uint64_t call, pad;
};

/* call: a byte of the instruction, which is five bytes long here. */
static bool pad_of(void *arg, uint64_t time, uint64_t call, uint64_t *pad)
{
    assert_true(time > 100);
    for (const struct pads *p = arg; p->call; p++)
        if (call >= p->call && call - p->call < 5) {
            *pad = p->pad;
            return true;
        }
    return false;
}

static struct rig rig_with(struct pads *pads)
{
    struct rig r = rig();
    pt_stack_set_landing(r.stack, &(struct pt_stack_landing){pad_of, pads});
    return r;
}

/* The innermost f throws where it has no landing pad; the one around it has. */
static void landing_of_the_pending_call(void **state)
{
    struct pads pads[] = {{at('f', 15), at('f', 60)}, {0, 0}};
    struct rig r = rig_with(pads);
    (void)state;
    begin(&r, 'a');         /* 110 */
    call(&r, 'a', 5, 'f');  /* 120 */
    call(&r, 'f', 20, 'f'); /* 130 */
    call(&r, 'f', 20, 'f'); /* 140 */
    call(&r, 'f', 40, 'T'); /* 150 */
    jump(&r, 'f', 60);      /* 160: in the one that began at 130 */
    call(&r, 'f', 70, 'U'); /* 170 */
    jump(&r, 'f', 60);      /* 180: in the one that began at 120 */
    call(&r, 'f', 80, 'x'); /* 190 */
    ret(&r, 'f', 80);       /* 200 */
    ret(&r, 'a', 5);        /* 210 */
    expect(&r, "a 110-210 / f 120-210 / f 130-180, x 190-200 / f 140-160, _Unwind_Resume 170-180 / __cxa_throw 150-160");
}

/* Unwinders that get there by a return, and landing pads that lie where the calls that throw return to, which they
 * never do: that of __cxa_throw at 40, that of _Unwind_Resume at 70. */
static void landing_behind_a_call(void **state)
{
    struct pads pads[] = {{at('f', 15), at('f', 40)}, {at('f', 25), at('f', 70)}, {0, 0}};
    struct rig r = rig_with(pads);
    (void)state;
    begin(&r, 'a');         /* 110 */
    call(&r, 'a', 5, 'f');  /* 120 */
    call(&r, 'f', 30, 'f'); /* 130 */
    call(&r, 'f', 20, 'f'); /* 140 */
    call(&r, 'f', 40, 'T'); /* 150 */
    call(&r, 'T', 40, 'y'); /* 160 */
    ret(&r, 'f', 40);       /* 170: in the one that began at 130, not in that which threw */
    call(&r, 'f', 50, 'x'); /* 180 */
    ret(&r, 'f', 50);       /* 190 */
    call(&r, 'f', 70, 'U'); /* 200 */
    ret(&r, 'f', 70);       /* 210: in the one that began at 120 */
    call(&r, 'f', 80, 'x'); /* 220 */
    ret(&r, 'f', 80);       /* 230 */
    ret(&r, 'a', 5);        /* 240 */
    expect(&r, "a 110-240 / f 120-240 / f 130-210, x 220-230 / f 140-170, x 180-190, _Unwind_Resume 200-210 / "
               "__cxa_throw 150-170 / y 160-170");
}

/* No call that is pending has its landing pad there, or f is open once: as without tables. */
static void landing_of_none(void **state)
{
    struct pads pads[] = {{at('f', 15), at('f', 90)}, {at('g', 15), at('g', 90)}, {0, 0}};
    struct rig r = rig_with(pads);
    (void)state;
    begin(&r, 'g');         /* 110 */
    call(&r, 'g', 20, 'f'); /* 120 */
    call(&r, 'f', 20, 'f'); /* 130 */
    call(&r, 'f', 40, 'T'); /* 140 */
    jump(&r, 'f', 60);      /* 150 */
    call(&r, 'f', 40, 'T'); /* 160 */
    jump(&r, 'g', 60);      /* 170 */
    expect(&r, "g 110-170 / f 120-170 / f 130-170 / __cxa_throw 140-150, __cxa_throw 160-170");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longjmp_to_who_called_setjmp),
        cmocka_unit_test(longjmp_where_calls_have_no_length),
        cmocka_unit_test(longjmp_to_the_place_of_setjmp),
        cmocka_unit_test(longjmp_to_who_knows),
        cmocka_unit_test(landing_of_the_pending_call),
        cmocka_unit_test(landing_behind_a_call),
        cmocka_unit_test(landing_of_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
