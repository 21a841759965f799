#include "lib_frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"

#define SIGNAL_FRAME 256 /* at least so far below the interrupted stack a handler's stack begins */

struct frame {
    uint64_t start, end, sp, target;
    size_t depth;
};

/* The stack of one context (fibre): a range of 256 KiB, or the thread's own. */
struct context {
    uint64_t key;
    VEC(size_t) open; /* indices of frames */
    uint64_t last_sp;
};

struct frames {
    const struct step_rec *rec;
    const struct step_symbols *symbols;
    VEC(struct frame) all;
    VEC(struct context) contexts;
    size_t now, deepest;
    bool left; /* the call that the window began with has returned */
};

static uint64_t key_of(uint64_t sp)
{
    return sp >> 40 == 0x7f ? 0 : sp >> 18;
}

static struct context *context_of(struct frames *t, uint64_t sp)
{
    uint64_t key = key_of(sp);
    for (t->now = 0; t->now < t->contexts.len; t->now++)
        if (t->contexts.data[t->now].key == key)
            return &t->contexts.data[t->now];
    vec_push(&t->contexts, ((struct context){.key = key}));
    return &t->contexts.data[t->now];
}

static void open_frame(struct frames *t, struct context *c, uint64_t sp, uint64_t target, uint64_t clock)
{
    struct frame f = {.start = clock, .sp = sp, .target = target, .depth = c->open.len};
    if (f.depth > t->deepest)
        t->deepest = f.depth;
    vec_push(&c->open, t->all.len);
    vec_push(&t->all, f);
}

/* The thread went to another stack: what is open there is shown anew, a stack never seen begins. */
static void switch_to(struct frames *t, const struct step_branch *b)
{
    struct context *old = &t->contexts.data[t->now];
    for (size_t i = 0; i < old->open.len; i++)
        t->all.data[old->open.data[i]].end = b->clock;
    struct context *c = context_of(t, b->sp);
    size_t n = c->open.len;
    if (!n) {
        open_frame(t, c, UINT64_MAX, b->to, b->clock);
        return;
    }
    c->open.len = 0;
    for (size_t i = 0; i < n; i++) {
        struct frame f = t->all.data[c->open.data[i]];
        if (f.sp >= b->sp)
            open_frame(t, c, f.sp, f.target, b->clock);
    }
}

static size_t close_above(struct frames *t, struct context *c, uint64_t sp, uint64_t clock)
{
    size_t n = c->open.len;
    while (c->open.len && t->all.data[c->open.data[c->open.len - 1]].sp < sp)
        t->all.data[c->open.data[--c->open.len]].end = clock;
    return n - c->open.len;
}

static void on_begin(struct frames *t, const struct step_branch *before, const struct step_branch *b)
{
    struct context *c = t->contexts.len ? &t->contexts.data[t->now] : context_of(t, ~UINT64_C(0) >> 17);
    bool interrupted = before && (strcmp(before->kind, "async") == 0 || strcmp(before->kind, "trap") == 0);
    bool handler = interrupted && step_symbols_start(t->symbols, b->to, b->clock);
    if (!before || handler)
        open_frame(t, c, before ? c->last_sp - SIGNAL_FRAME : UINT64_MAX, b->to, b->clock);
}

static void on_branch(struct frames *t, const struct step_branch *b)
{
    if (t->contexts.data[t->now].key != key_of(b->sp))
        switch_to(t, b);
    struct context *c = context_of(t, b->sp);
    size_t closed = close_above(t, c, b->sp, b->clock);
    t->left |= strcmp(b->kind, "return") == 0 && !closed && c->open.len == 1;
    if (strcmp(b->kind, "call") == 0 && b->to != b->from + 5)
        open_frame(t, c, b->sp, b->to, b->clock);
    c->last_sp = b->sp;
}

struct frames *frames_new(const struct step_rec *r, const struct step_symbols *s)
{
    struct frames *t = xcalloc(1, sizeof *t);
    t->rec = r;
    t->symbols = s;
    for (size_t i = 0; i < r->n_branches; i++) {
        const struct step_branch *b = &r->branches[i];
        if (strcmp(b->kind, "begin") == 0)
            on_begin(t, i ? b - 1 : NULL, b);
        else if (b->sp)
            on_branch(t, b);
    }
    for (size_t i = 0; i < t->all.len; i++)
        if (!t->all.data[i].end)
            t->all.data[i].end = r->branches[r->n_branches - 1].clock;
    return t;
}

void frames_free(struct frames *t)
{
    for (size_t i = 0; i < t->contexts.len; i++)
        vec_free(&t->contexts.data[i].open);
    vec_free(&t->contexts);
    vec_free(&t->all);
    free(t);
}

/* ---- comparing ---- */

/* What the truth has no frame for: jumps into another function, the kernel's code that ends a handler, and
 * the caller of the window once it has been left. */
static bool counts(const struct trace *t, const struct span *s)
{
    const struct function *f = functions_get(trace_functions(t), s->fn);
    return !(s->flags & SPAN_TAIL_CALL) && f->kind != FN_PSEUDO && strcmp(f->name, "__restore_rt") != 0 &&
           strcmp(f->name, "main") != 0;
}

/* A window that ends behind the return of its call shows the caller, who is then known to have been there
 * all the time. */
static size_t outer_rows(const struct frames *f, const struct trace *t)
{
    size_t n;
    const struct span *s = trace_row(t, 0, 0, &n);
    if (!f->left || f->contexts.len > 1) /* not around what ran on other stacks */
        return 0;
    assert_true(n == 1 && (s->flags & SPAN_INFERRED_START));
    return 1;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* Tracing stops and begins with packets of their own. */
static bool is_pause(const struct step_branch *b)
{
    return strcmp(b->kind, "begin") == 0 || step_branch_ends(b);
}

static bool has_outcome(const struct step_branch *b)
{
    return strcmp(b->kind, "cond") == 0 || strcmp(b->kind, "return") == 0;
}

/* How far from a moment the packets with times around it are: of so many outcomes behind each other at least
 * one completes a packet. */
static void packets_around(const struct frames *f, uint64_t at, unsigned bits, uint64_t *before, uint64_t *behind)
{
    const struct step_branch *b = f->rec->branches;
    size_t n = f->rec->n_branches, lo = 0, hi = n;
    while (lo < hi) { /* the first that is not earlier */
        size_t mid = lo + (hi - lo) / 2;
        if (b[mid].clock < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    size_t i = lo, k = lo;
    for (unsigned seen = 0; i + 1 < n && !is_pause(&b[i]) && (seen += has_outcome(&b[i])) < bits; i++)
        ;
    *behind = b[i < n ? i : n - 1].clock;
    while (k + 1 < n && b[k + 1].clock == at)
        k++;
    k = k < n && b[k].clock > at && k > 0 ? k - 1 : k < n ? k : n - 1;
    for (unsigned seen = 0; k > 0 && !is_pause(&b[k]) && (seen += has_outcome(&b[k])) < bits; k--)
        ;
    *before = b[k].clock;
}

/* Whether a time may stand for the true one: not more from it than most_ns, beyond what no packet tells. */
static bool in_time(const struct frames *f, uint64_t time, uint64_t truth, uint64_t most_ns, unsigned bits)
{
    uint64_t before, behind;
    if (apart(time, truth) <= most_ns)
        return true;
    if (!bits)
        return false;
    packets_around(f, truth, bits, &before, &behind);
    return time + most_ns >= before && time <= behind + most_ns;
}

static const struct frame *next_at(const struct frames *f, size_t *at, size_t depth)
{
    while (*at < f->all.len && f->all.data[*at].depth != depth)
        ++*at;
    return *at < f->all.len ? &f->all.data[(*at)++] : NULL;
}

/* The end of a frame: that of the last function that it went on as by jumps. */
static uint64_t end_with_tails(const struct span *s, size_t i, size_t n)
{
    while (i + 1 < n && (s[i + 1].flags & SPAN_TAIL_CALL) && s[i + 1].start_ns == s[i].end_ns)
        i++;
    return s[i].end_ns;
}

static size_t compare_row(const struct frames *f, const char *what, const struct trace *t, size_t row,
                          size_t depth, uint64_t most_ns, unsigned bits)
{
    size_t n, at = 0, compared = 0;
    const struct span *s = trace_row(t, 0, row, &n);
    const struct frame *frame;
    for (size_t i = 0; i < n; i++) {
        bool pause = functions_get(trace_functions(t), s[i].fn)->kind == FN_PSEUDO;
        if (s[i].end_ns < s[i].start_ns || (pause && !most_ns && s[i].end_ns > s[i].start_ns))
            fail_msg("%s: depth %zu: a time that was never, %" PRIu64 " to %" PRIu64, what, depth, s[i].start_ns,
                     s[i].end_ns);
        if (!counts(t, &s[i]))
            continue;
        const struct function *fn = functions_get(trace_functions(t), s[i].fn);
        const char *name = fn->raw;
        frame = next_at(f, &at, depth);
        if (!frame)
            fail_msg("%s: %s at depth %zu, which was not called, at %" PRIu64, what, name, depth, s[i].start_ns);
        if (!step_symbols_fit(f->symbols, frame->target, frame->start, name, fn->module))
            fail_msg("%s: depth %zu: %s at %" PRIu64 ", and not %" PRIx64 " at %" PRIu64, what, depth, name,
                     s[i].start_ns, frame->target, frame->start);
        uint64_t end = end_with_tails(s, i, n);
        if (!in_time(f, s[i].start_ns, frame->start, most_ns, bits) || !in_time(f, end, frame->end, most_ns, bits))
            fail_msg("%s: depth %zu: %s from %" PRIu64 " to %" PRIu64 ", and not from %" PRIu64 " to %" PRIu64,
                     what, depth, name, s[i].start_ns, end, frame->start, frame->end);
        compared++;
    }
    if ((frame = next_at(f, &at, depth)))
        fail_msg("%s: nothing at depth %zu for the call to %" PRIx64 " at %" PRIu64, what, depth, frame->target,
                 frame->start);
    return compared;
}

size_t frames_compare(const struct frames *f, const char *what, const struct trace *t, uint64_t most_ns,
                      unsigned bits)
{
    size_t outer = outer_rows(f, t), n = 0;
    assert_int_equal(trace_thread_count(t), 1);
    assert_true(trace_thread(t, 0)->depths >= f->deepest + 1 + outer);
    for (size_t d = 0; d + outer < trace_thread(t, 0)->depths; d++)
        n += compare_row(f, what, t, d + outer, d, most_ns, bits);
    return n;
}
