/* Where frames are skipped: which one goes on after an exception or a longjmp. */
#include "decode/pt/pt_stack_priv.h"

#include <string.h>

/* ---- what functions do, by name ---- */

static const struct {
    const char *name;
    uint8_t trait;
} names[] = {
    /* Fibres that call these at the same place cannot be told apart by the address they return to. */
    {"swapcontext", TRAIT_SWITCHES},
    {"__swapcontext", TRAIT_SWITCHES},
    {"setcontext", TRAIT_SWITCHES},
    {"__setcontext", TRAIT_SWITCHES},
    {"jump_fcontext", TRAIT_SWITCHES},
    {"ontop_fcontext", TRAIT_SWITCHES},
    /* Its caller never runs again (Itanium C++ ABI, exception handling, 1.6.3). */
    {"_Unwind_Resume", TRAIT_RESUMES},
    /* setjmp(3), and what glibc's jump on to (sysdeps/x86_64/setjmp.S). */
    {"setjmp", TRAIT_SETS_JUMP},
    {"_setjmp", TRAIT_SETS_JUMP},
    {"sigsetjmp", TRAIT_SETS_JUMP},
    {"__sigsetjmp", TRAIT_SETS_JUMP},
    {"__sigjmp_save", TRAIT_SETS_JUMP},
};

unsigned pt_stack_ask_traits(struct pt_stack *s, fn_id fn)
{
    while (s->traits.len <= fn)
        vec_push(&s->traits, 0);
    uint8_t traits = TRAIT_ASKED;
    const char *raw = functions_get(s->functions, fn)->raw;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(raw, names[i].name) == 0)
            traits |= names[i].trait;
    return s->traits.data[fn] = traits;
}

/* ---- the frame that goes on ---- */

size_t pt_stack_find_open(struct pt_stack *s, fn_id fn, size_t below)
{
    if (!pt_stack_known(s, fn))
        return SIZE_MAX;
    for (size_t i = below; i > 0; i--)
        if (s->open.data[i - 1].fn == fn &&
            (i == s->open.len || !(pt_stack_traits(s, s->open.data[i].fn) & TRAIT_RESUMES)))
            return i - 1;
    return SIZE_MAX;
}

/* The innermost in which setjmp has returned to addr, and so does longjmp. */
static size_t find_set_jump(const struct pt_stack *s, fn_id fn, uint64_t addr, size_t below)
{
    for (size_t i = below; i > 0; i--) {
        const struct frame *f = &s->open.data[i - 1];
        if (f->fn == fn && f->set_jump && f->set_jump == (uint32_t)addr)
            return i - 1;
    }
    return SIZE_MAX;
}

/* A byte of the call that a frame waits for, by the frame that it made: where an exception finds it. */
static bool pending_call(const struct pt_stack *s, const struct frame *made, uint64_t *call)
{
    *call = pt_stack_is_call(made) && !s->sites ? made->ret - 1 : made->ret;
    return pt_stack_is_call(made) || made->kind == FRAME_SIGNAL;
}

static bool is_open_twice(const struct pt_stack *s, fn_id fn, size_t below)
{
    size_t n = 0;
    for (size_t i = below; i > 0 && n < 2; i--)
        n += s->open.data[i - 1].fn == fn;
    return n == 2;
}

size_t pt_stack_find_landing(struct pt_stack *s, const struct flow_event *e, size_t below)
{
    uint64_t asked = 0, call, pad; /* recursion makes the same call again and again */
    if (!s->landing.pad || !pt_stack_known(s, e->fn) || !is_open_twice(s, e->fn, below))
        return SIZE_MAX;
    for (size_t i = below; i > 0; i--) {
        if (s->open.data[i - 1].fn != e->fn || !pending_call(s, &s->open.data[i], &call) || call == asked)
            continue;
        asked = call;
        if (s->landing.pad(s->landing.arg, e->time, call, &pad) && pad == e->addr) {
            s->careful = true;
            return i - 1;
        }
    }
    return SIZE_MAX;
}

size_t pt_stack_find_resumed(struct pt_stack *s, const struct flow_event *e, size_t below)
{
    size_t innermost = pt_stack_find_open(s, e->fn, below);
    if (innermost == SIZE_MAX || !is_open_twice(s, e->fn, below))
        return innermost;
    size_t at = find_set_jump(s, e->fn, e->addr, below);
    if (at == SIZE_MAX)
        at = pt_stack_find_landing(s, e, below);
    return at == SIZE_MAX ? innermost : at;
}
