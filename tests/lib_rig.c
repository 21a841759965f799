#include "lib_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct rig rig_new(void)
{
    struct rig r = {.functions = functions_new(), .now = 100};
    r.b = trace_builder_new(r.functions);
    r.stack = pt_stack_new(r.b, trace_builder_thread(r.b, 1, 1), r.functions);
    return r;
}

uint64_t rig_at(char fn, unsigned offset)
{
    return ((uint64_t)fn << 12) + offset;
}

fn_id rig_id(struct rig *r, char fn)
{
    static const char *const named[] = {['?'] = "[unknown]",      ['C'] = "swapcontext",   ['G'] = "__sigsetjmp",
                                        ['L'] = "__longjmp",      ['M'] = "__sigjmp_save", ['P'] = "part",
                                        ['S'] = "_setjmp",        ['T'] = "__cxa_throw",   ['U'] = "_Unwind_Resume"};
    char letter[2] = {fn, '\0'};
    const char *name = fn < 'a' && named[(unsigned)fn] ? named[(unsigned)fn] : letter;
    unsigned flags = fn == 'P' ? FN_PART : fn == '?' ? FN_UNKNOWN : FN_USER;
    return functions_intern(r->functions, "m", name, name, 0, flags);
}

void rig_event(struct rig *r, enum pt_event_kind kind, uint64_t addr, char fn, bool at_start, unsigned how)
{
    struct flow_event e = {.time = r->now += 10,
                           .addr = addr,
                           .fn = fn ? rig_id(r, fn) : FN_NONE,
                           .kind = (uint8_t)kind,
                           .how = (uint8_t)how,
                           .at_start = at_start};
    assert_int_equal(pt_stack_events(r->stack, &e, 1), 0);
}

void rig_begin(struct rig *r, char fn, unsigned offset)
{
    rig_event(r, PT_EVENT_BEGIN, rig_at(fn, offset), fn, offset == 0, 0);
}

void rig_end(struct rig *r, char fn, unsigned offset, enum pt_end how)
{
    rig_event(r, PT_EVENT_END, rig_at(fn, offset), 0, false, how);
}

void rig_call(struct rig *r, char from, unsigned offset, char to)
{
    rig_event(r, PT_EVENT_CALL, rig_at(from, r->sites ? offset - 5 : offset), to, true, 0);
}

void rig_ret(struct rig *r, char to, unsigned offset)
{
    rig_event(r, PT_EVENT_RETURN, rig_at(to, offset), to, offset == 0, 0);
}

void rig_jump(struct rig *r, char to, unsigned offset)
{
    rig_event(r, PT_EVENT_JUMP, rig_at(to, offset), to, offset == 0, 0);
}

void rig_lost(struct rig *r)
{
    rig_event(r, PT_EVENT_LOST, 0, 0, false, GAP_OVERFLOW);
}

static void print(FILE *f, const struct trace *t, const struct span *s, unsigned what)
{
    fprintf(f, "%s %" PRIu64 "-%" PRIu64, functions_get(trace_functions(t), s->fn)->raw, s->start_ns, s->end_ns);
    if (what & RIG_FLAGS && s->flags & ((1u << SPAN_FLAG_BITS) - 1))
        fputc(' ', f);
    for (unsigned k = 0; k < 4; k++)
        if (what & RIG_FLAGS && s->flags >> k & 1)
            fputc("setg"[k], f);
    if (what & RIG_SITES && s->flags & SPAN_HAS_SITE)
        fprintf(f, "@%x", s->flags >> SPAN_SITE_SHIFT);
}

char *rig_finish(struct rig *r, unsigned what)
{
    char *out = NULL;
    size_t len, n;
    struct trace *t;
    struct err err = {0};
    pt_stack_free(r->stack);
    assert_int_equal(trace_builder_clamped(r->b), 0);
    assert_int_equal(trace_builder_finish(r->b, &t, &err), 0);
    trace_builder_free(r->b);
    if (trace_check(t, &err) < 0)
        fail_msg("%s", err.text);
    FILE *f = open_memstream(&out, &len);
    for (size_t d = 0; d < trace_thread(t, 0)->depths; d++) {
        const struct span *s = trace_row(t, 0, d, &n);
        fprintf(f, "%s", d ? " / " : "");
        for (size_t i = 0; i < n; i++) {
            fprintf(f, "%s", i ? ", " : "");
            print(f, t, &s[i], what);
        }
    }
    fclose(f);
    trace_free(t);
    call_sites_free(r->sites);
    return out;
}
