/* decode/pt/pt_stack: which of several activations of a function goes on when frames are skipped. */
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
    char *got = rig_finish(r, 0);
    assert_string_equal(got, want);
    free(got);
}

/* ---- longjmp ---- */

/* The innermost f has not called setjmp, the one around it has. */
static void outward(struct rig *r)
{
    rig_begin(r, 'a', 0);         /* 110 */
    rig_call(r, 'a', 5, 'f');  /* 120 */
    rig_call(r, 'f', 20, 'S'); /* 130 */
    rig_jump(r, 'G', 0);       /* 140 */
    rig_jump(r, 'M', 0);       /* 150 */
    rig_ret(r, 'f', 20);       /* 160 */
    rig_call(r, 'f', 30, 'f'); /* 170 */
    rig_call(r, 'f', 40, 'L'); /* 180 */
    rig_jump(r, 'f', 20);      /* 190 */
    rig_ret(r, 'a', 5);        /* 200 */
}

#define OUTWARD                                                                                    \
    "a 110-200 / f 120-200 / _setjmp 130-140, __sigsetjmp 140-150, __sigjmp_save 150-160, f 170-190 / "  \
    "__longjmp 180-190"

static void longjmp_to_who_called_setjmp(void **state)
{
    struct rig r = rig_new();
    (void)state;
    outward(&r);
    expect(&r, OUTWARD);
}

static void longjmp_where_calls_have_no_length(void **state)
{
    struct rig r = rig_new();
    (void)state;
    r.sites = call_sites_new();
    pt_stack_set_sites(r.stack, r.sites);
    outward(&r);
    expect(&r, OUTWARD);
}

/* Both have called it, at two places; one returns to both again and again. */
static void longjmp_to_the_place_of_setjmp(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'f', 0);         /* 110 */
    rig_call(&r, 'f', 20, 'S'); /* 120 */
    rig_jump(&r, 'G', 0);       /* 130 */
    rig_ret(&r, 'f', 20);       /* 140 */
    rig_call(&r, 'f', 30, 'f'); /* 150 */
    rig_call(&r, 'f', 50, 'S'); /* 160 */
    rig_jump(&r, 'G', 0);       /* 170 */
    rig_ret(&r, 'f', 50);       /* 180 */
    rig_call(&r, 'f', 60, 'L'); /* 190 */
    rig_jump(&r, 'f', 50);      /* 200: the inner one */
    rig_call(&r, 'f', 60, 'L'); /* 210 */
    rig_jump(&r, 'f', 20);      /* 220: the outer one */
    rig_call(&r, 'f', 30, 'f'); /* 230: has called none yet */
    rig_call(&r, 'f', 60, 'L'); /* 240 */
    rig_jump(&r, 'f', 20);      /* 250 */
    expect(&r, "f 110-250 / _setjmp 120-130, __sigsetjmp 130-140, f 150-220, f 230-250 / "
               "_setjmp 160-170, __sigsetjmp 170-180, __longjmp 190-200, __longjmp 210-220, __longjmp 240-250");
}

/* Where nothing is known of setjmp (it was called before the trace began), the innermost. */
static void longjmp_to_who_knows(void **state)
{
    struct rig r = rig_new();
    (void)state;
    rig_begin(&r, 'f', 0);         /* 110 */
    rig_call(&r, 'f', 30, 'f'); /* 120 */
    rig_call(&r, 'f', 60, 'L'); /* 130 */
    rig_jump(&r, 'f', 20);      /* 140 */
    rig_call(&r, 'f', 70, 'x'); /* 150 */
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
    struct rig r = rig_new();
    pt_stack_set_landing(r.stack, &(struct pt_stack_landing){pad_of, pads});
    return r;
}

/* The innermost f throws where it has no landing pad; the one around it has. */
static void landing_of_the_pending_call(void **state)
{
    struct pads pads[] = {{rig_at('f', 15), rig_at('f', 60)}, {0, 0}};
    struct rig r = rig_with(pads);
    (void)state;
    rig_begin(&r, 'a', 0);         /* 110 */
    rig_call(&r, 'a', 5, 'f');  /* 120 */
    rig_call(&r, 'f', 20, 'f'); /* 130 */
    rig_call(&r, 'f', 20, 'f'); /* 140 */
    rig_call(&r, 'f', 40, 'T'); /* 150 */
    rig_jump(&r, 'f', 60);      /* 160: in the one that began at 130 */
    rig_call(&r, 'f', 70, 'U'); /* 170 */
    rig_jump(&r, 'f', 60);      /* 180: in the one that began at 120 */
    rig_call(&r, 'f', 80, 'x'); /* 190 */
    rig_ret(&r, 'f', 80);       /* 200 */
    rig_ret(&r, 'a', 5);        /* 210 */
    expect(&r, "a 110-210 / f 120-210 / f 130-180, x 190-200 / f 140-160, _Unwind_Resume 170-180 / "
               "__cxa_throw 150-160");
}

/* Unwinders that get there by a return, and landing pads that lie where the calls that throw return to, which they
 * never do: that of __cxa_throw at 40, that of _Unwind_Resume at 70. */
static void landing_behind_a_call(void **state)
{
    struct pads pads[] = {{rig_at('f', 15), rig_at('f', 40)}, {rig_at('f', 25), rig_at('f', 70)}, {0, 0}};
    struct rig r = rig_with(pads);
    (void)state;
    rig_begin(&r, 'a', 0);         /* 110 */
    rig_call(&r, 'a', 5, 'f');  /* 120 */
    rig_call(&r, 'f', 30, 'f'); /* 130 */
    rig_call(&r, 'f', 20, 'f'); /* 140 */
    rig_call(&r, 'f', 40, 'T'); /* 150 */
    rig_call(&r, 'T', 40, 'y'); /* 160 */
    rig_ret(&r, 'f', 40);       /* 170: in the one that began at 130, not in that which threw */
    rig_call(&r, 'f', 50, 'x'); /* 180 */
    rig_ret(&r, 'f', 50);       /* 190 */
    rig_call(&r, 'f', 70, 'U'); /* 200 */
    rig_ret(&r, 'f', 70);       /* 210: in the one that began at 120 */
    rig_call(&r, 'f', 80, 'x'); /* 220 */
    rig_ret(&r, 'f', 80);       /* 230 */
    rig_ret(&r, 'a', 5);        /* 240 */
    expect(&r, "a 110-240 / f 120-240 / f 130-210, x 220-230 / f 140-170, x 180-190, _Unwind_Resume 200-210 / "
               "__cxa_throw 150-170 / y 160-170");
}

/* No call that is pending has its landing pad there, or f is open once: as without tables. */
static void landing_of_none(void **state)
{
    struct pads pads[] = {{rig_at('f', 15), rig_at('f', 90)}, {rig_at('g', 15), rig_at('g', 90)}, {0, 0}};
    struct rig r = rig_with(pads);
    (void)state;
    rig_begin(&r, 'g', 0);         /* 110 */
    rig_call(&r, 'g', 20, 'f'); /* 120 */
    rig_call(&r, 'f', 20, 'f'); /* 130 */
    rig_call(&r, 'f', 40, 'T'); /* 140 */
    rig_jump(&r, 'f', 60);      /* 150 */
    rig_call(&r, 'f', 40, 'T'); /* 160 */
    rig_jump(&r, 'g', 60);      /* 170 */
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
