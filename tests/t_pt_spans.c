/* Spans of real programs against the call tree that the recorded stack pointers give: a frame begins at a
 * call and is over when the stack pointer is above the place of its return address. That knows nothing of
 * return addresses, functions or packets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/vec.h"
#include "decode/open.h"
#include "lib_run.h"
#include "lib_step.h"
#include "lib_step_programs.h"

#define SIGNAL_FRAME 256 /* at least so far below the interrupted stack a handler's stack begins */

struct frame {
    uint64_t start, end, sp, target;
    size_t depth;
};

typedef VEC(struct frame) frames;

/* The stack of one context (fibre): a range of 256 KiB, or the thread's own. */
struct context {
    uint64_t key;
    VEC(size_t) open; /* indices of frames */
    uint64_t last_sp;
};

struct truth {
    frames all;
    VEC(struct context) contexts;
    size_t now;
    bool left; /* the call that the window began with has returned */
};

static uint64_t key_of(uint64_t sp)
{
    return sp >> 40 == 0x7f ? 0 : sp >> 18;
}

static struct context *context_of(struct truth *t, uint64_t sp)
{
    uint64_t key = key_of(sp);
    for (t->now = 0; t->now < t->contexts.len; t->now++)
        if (t->contexts.data[t->now].key == key)
            return &t->contexts.data[t->now];
    vec_push(&t->contexts, ((struct context){.key = key}));
    return &t->contexts.data[t->now];
}

static void open_frame(struct truth *t, struct context *c, uint64_t sp, uint64_t target, uint64_t clock)
{
    struct frame f = {.start = clock, .sp = sp, .target = target, .depth = c->open.len};
    vec_push(&c->open, t->all.len);
    vec_push(&t->all, f);
}

/* The thread went to another stack: what is open there is shown anew, a stack never seen begins. */
static void switch_to(struct truth *t, const struct step_branch *b)
{
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

static size_t close_above(struct truth *t, struct context *c, uint64_t sp, uint64_t clock)
{
    size_t n = c->open.len;
    while (c->open.len && t->all.data[c->open.data[c->open.len - 1]].sp < sp)
        t->all.data[c->open.data[--c->open.len]].end = clock;
    return n - c->open.len;
}

static bool starts_function(const struct step_rec *r, uint64_t ip);

static void build_truth(struct truth *t, const struct step_rec *r)
{
    const struct step_branch *before = NULL;
    for (size_t i = 0; i < r->n_branches; i++) {
        const struct step_branch *b = &r->branches[i];
        if (strcmp(b->kind, "begin") == 0) {
            struct context *c = t->contexts.len ? &t->contexts.data[t->now] : context_of(t, ~UINT64_C(0) >> 17);
            bool handler = before && starts_function(r, b->to) && strcmp(before->kind, "async") == 0;
            if (!before || handler)
                open_frame(t, c, before ? c->last_sp - SIGNAL_FRAME : UINT64_MAX, b->to, b->clock);
        } else if (b->sp) {
            if (t->contexts.data[t->now].key != key_of(b->sp))
                switch_to(t, b);
            struct context *c = context_of(t, b->sp);
            size_t closed = close_above(t, c, b->sp, b->clock);
            t->left |= strcmp(b->kind, "return") == 0 && !closed && c->open.len == 1;
            if (strcmp(b->kind, "call") == 0 && b->to != b->from + 5)
                open_frame(t, c, b->sp, b->to, b->clock);
            c->last_sp = b->sp;
        }
        before = b;
    }
    uint64_t last = r->branches[r->n_branches - 1].clock;
    for (size_t i = 0; i < t->all.len; i++)
        if (!t->all.data[i].end)
            t->all.data[i].end = last;
}

static void free_truth(struct truth *t)
{
    for (size_t i = 0; i < t->contexts.len; i++)
        vec_free(&t->contexts.data[i].open);
    vec_free(&t->contexts);
    vec_free(&t->all);
}

/* ---- names ---- */

static char *symbols; /* nm of the program */

static bool named(const struct step_rec *r, uint64_t ip, const char *name)
{
    char line[64];
    uint64_t bias = 0;
    bool found = false, known = false;
    for (size_t i = 0; i < r->n_maps; i++)
        if (strcmp(r->maps[i].path, r->exe) == 0) {
            bias = r->maps[i].start - r->maps[i].pgoff;
            if (bias == 0x400000)
                bias = 0; /* not a PIE */
            if (ip < r->maps[i].start || ip >= r->maps[i].start + r->maps[i].len)
                return true;
        }
    snprintf(line, sizeof line, "\n%016" PRIx64 " ", ip - bias);
    for (const char *at = symbols; (at = strstr(at, line)) != NULL; at++) {
        const char *sym = at + strlen(line) + 2;
        size_t n = strcspn(sym, "\n");
        known = true;
        found |= !name || (strlen(name) == n && memcmp(name, sym, n) == 0);
    }
    return name ? found || !known : known;
}

static bool starts_function(const struct step_rec *r, uint64_t ip)
{
    return named(r, ip, NULL);
}

/* ---- comparing ---- */

static bool counts(const struct trace *t, const struct span *s)
{
    const struct function *f = functions_get(trace_functions(t), s->fn);
    return !(s->flags & SPAN_TAIL_CALL) && f->kind != FN_PSEUDO && strcmp(f->name, "__restore_rt") != 0 &&
           strcmp(f->name, "main") != 0;
}

/* A window that ends behind the return of its call shows the caller, who is then known to have been there
 * all the time. */
static size_t outer_rows(const struct trace *t, const struct truth *truth)
{
    size_t n;
    const struct span *s = trace_row(t, 0, 0, &n);
    if (!truth->left || truth->contexts.len > 1) /* not around what ran on other stacks */
        return 0;
    assert_true(n == 1 && (s->flags & SPAN_INFERRED_START));
    return 1;
}

static size_t compare_row(const char *program, const struct step_rec *r, const struct trace *t,
                          const struct truth *truth, size_t row, size_t depth)
{
    size_t n, at = 0, compared = 0;
    const struct span *s = trace_row(t, 0, row, &n);
    for (size_t i = 0; i < n; i++) {
        if (!counts(t, &s[i]))
            continue;
        const char *name = functions_get(trace_functions(t), s[i].fn)->raw;
        while (at < truth->all.len && truth->all.data[at].depth != depth)
            at++;
        if (at == truth->all.len)
            fail_msg("%s: %s at depth %zu, which was not called, at %" PRIu64, program, name, depth,
                     s[i].start_ns);
        const struct frame *f = &truth->all.data[at++];
        if (!named(r, f->target, name))
            fail_msg("%s: depth %zu: %s at %" PRIu64 ", and not %" PRIx64 " at %" PRIu64, program, depth,
                     name, s[i].start_ns, f->target, f->start);
        compared++;
    }
    for (; at < truth->all.len; at++)
        if (truth->all.data[at].depth == depth)
            fail_msg("%s: nothing at depth %zu for the call to %" PRIx64 " at %" PRIu64, program, depth,
                     truth->all.data[at].target, truth->all.data[at].start);
    return compared;
}

static void compare(const char *program, const struct step_rec *r, const struct trace *t)
{
    struct truth truth = {0};
    size_t n = 0, deepest = 0;
    build_truth(&truth, r);
    size_t outer = outer_rows(t, &truth);
    for (size_t i = 0; i < truth.all.len; i++)
        if (truth.all.data[i].depth > deepest)
            deepest = truth.all.data[i].depth;
    assert_int_equal(trace_thread_count(t), 1);
    assert_true(trace_thread(t, 0)->depths >= deepest + 1 + outer);
    for (size_t d = 0; d + outer < trace_thread(t, 0)->depths; d++)
        n += compare_row(program, r, t, &truth, d + outer, d);
    print_message("%s: %zu frames\n", program, n);
    free_truth(&truth);
}

/* A stripped libc: the code that a signal handler returns through has no name to know it by. */
static bool handlers_return_unnamed(const struct trace *t)
{
    for (size_t i = 0; i < functions_count(trace_functions(t)); i++) {
        const struct function *f = functions_get(trace_functions(t), (fn_id)i);
        if (strcmp(f->name, "__restore_rt") == 0)
            return false;
    }
    return true;
}

static void spans_are_the_frames(void **state)
{
    char command[400], path[300];
    int status;
    (void)state;
    for (const struct step_program *p = step_programs; p->name; p++) {
        struct step_rec r;
        struct recording *rec;
        struct open_options o = {.threads = 1};
        struct err err;
        if (getenv("ONLY") && strcmp(getenv("ONLY"), p->name) != 0)
            continue;
        step_rec_program(&r, p, 1);
        snprintf(command, sizeof command, "echo; nm %s 2>/dev/null", r.exe);
        symbols = run_output(command, &status);
        snprintf(path, sizeof path, "%s/again.data", r.dir);
        step_rec_encode(&r, &step_encodings[0], path);
        if (open_recording(&rec, path, &o, &err) < 0)
            fail_msg("%s: %s", p->name, err.text);
        if (trace_check(rec->trace, &err) < 0)
            fail_msg("%s: %s", p->name, err.text);
        if (strcmp(p->name, "signals") == 0 && handlers_return_unnamed(rec->trace))
            print_message("[  SKIPPED ] %s: this libc has no names for its own functions\n", p->name);
        else
            compare(p->name, &r, rec->trace);
        recording_free(rec);
        free(symbols);
        step_rec_free(&r);
    }
}

int main(void)
{
    if (getuid() != 0) {
        print_message("[  SKIPPED ] t_pt_spans: uprobes need root or CAP_PERFMON\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_the_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
