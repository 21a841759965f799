#include "decode/text/text_branch.h"

#include <string.h>

#include "decode/text/text_names.h"

static enum pt_end end_of(unsigned flags)
{
    static const struct {
        unsigned flag;
        enum pt_end end;
    } ends[] = {{PERF_TEXT_SYSCALL, PT_END_SYSCALL}, {PERF_TEXT_SYSRET, PT_END_SYSRET},
                {PERF_TEXT_IRET, PT_END_IRET},       {PERF_TEXT_INT, PT_END_INTERRUPT},
                {PERF_TEXT_HW_INT, PT_END_ASYNC},    {PERF_TEXT_ASYNC, PT_END_ASYNC},
                {PERF_TEXT_VMEXIT, PT_END_ASYNC},    {PERF_TEXT_CALL, PT_END_CALL},
                {PERF_TEXT_RETURN, PT_END_RETURN},   {PERF_TEXT_JUMP, PT_END_JUMP},
                {PERF_TEXT_CONDITIONAL, PT_END_JUMP}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (flags & ends[i].flag)
            return ends[i].end;
    return PT_END_UNKNOWN;
}

/* Without words: into the beginning of a function by a call, into the middle of another one by a return.
 * (A jump into a function counts as a call then; the next return is found by its address anyway.) */
static enum pt_branch_kind guess(const struct perf_text_place *from, const struct perf_text_place *to)
{
    if (!from->ip)
        return PT_BRANCH_BEGIN;
    if (!to->ip)
        return PT_BRANCH_END;
    if (to->has_offset && to->offset == 0)
        return PT_BRANCH_CALL;
    bool same = from->symbol.len == to->symbol.len && from->symbol.len &&
                memcmp(from->symbol.s, to->symbol.s, to->symbol.len) == 0;
    return same ? PT_BRANCH_COND : PT_BRANCH_RETURN;
}

/* Far branches come with "call" or "return" in some versions of perf: they are asked for first. */
static enum pt_branch_kind kind_of(unsigned flags)
{
    static const struct {
        unsigned flag;
        enum pt_branch_kind kind;
    } kinds[] = {{PERF_TEXT_BEGIN, PT_BRANCH_BEGIN},     {PERF_TEXT_END, PT_BRANCH_END},
                 {PERF_TEXT_ABORT, PT_BRANCH_ABORT},     {PERF_TEXT_SYSCALL, PT_BRANCH_SYSCALL},
                 {PERF_TEXT_SYSRET, PT_BRANCH_SYSRET},   {PERF_TEXT_IRET, PT_BRANCH_IRET},
                 {PERF_TEXT_HW_INT, PT_BRANCH_INTERRUPT}, {PERF_TEXT_INT, PT_BRANCH_INTERRUPT},
                 {PERF_TEXT_ASYNC, PT_BRANCH_INTERRUPT}, {PERF_TEXT_VMENTRY, PT_BRANCH_SYSCALL},
                 {PERF_TEXT_VMEXIT, PT_BRANCH_SYSRET},   {PERF_TEXT_CALL, PT_BRANCH_CALL},
                 {PERF_TEXT_RETURN, PT_BRANCH_RETURN},   {PERF_TEXT_CONDITIONAL, PT_BRANCH_COND},
                 {PERF_TEXT_JUMP, PT_BRANCH_JUMP}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (flags & kinds[i].flag)
            return kinds[i].kind;
    return PT_BRANCH_ERROR; /* none of them */
}

struct pt_branch text_branch(const struct perf_text_event *ev, bool *guessed)
{
    *guessed = false;
    if (ev->kind == PERF_TEXT_ERROR)
        return (struct pt_branch){.from = ev->u.error.ip, .kind = PT_BRANCH_ERROR};
    const struct perf_text_place *from = &ev->u.branch.from, *to = &ev->u.branch.to;
    enum pt_branch_kind kind = kind_of(ev->u.branch.flags);
    if (kind == PT_BRANCH_ERROR) {
        kind = guess(from, to);
        *guessed = true;
    }
    struct pt_branch b = {.from = from->ip, .to = to->ip, .kind = (uint8_t)kind, .end = PT_END_UNKNOWN};
    if (kind == PT_BRANCH_BEGIN)
        b.from = 0;
    if (kind == PT_BRANCH_END) {
        b.to = 0;
        b.end = (uint8_t)end_of(ev->u.branch.flags);
    }
    return b;
}

enum gap_cause text_branch_cause(const struct perf_text_event *ev)
{
    static const char before[] = " code ";
    const char *s = ev->u.error.message.s, *end = s + ev->u.error.message.len;
    const char *code = memmem(s, (size_t)(end - s), before, sizeof before - 1);
    unsigned n = 0;
    for (s = code ? code + sizeof before - 1 : end; s < end && *s >= '0' && *s <= '9' && n < 100; s++)
        n = n * 10 + (unsigned)(*s - '0');
    switch (n) {
    case 5: /* "Failed to get instruction" */
        return GAP_NO_IMAGE;
    case 7: /* "Overflow packet" */
        return GAP_OVERFLOW;
    case 4: /* "No more data" */
    case 8: /* "Lost trace data" */
        return GAP_LOST;
    default:
        return GAP_ERROR;
    }
}

bool text_branch_whole(struct perf_text_str *symbol)
{
    static const char clone[] = " [clone .cold", part[] = ".cold";
    const char *s = symbol->s;
    size_t n = symbol->len;
    const char *at = n && s[n - 1] == ']' ? memmem(s, n, clone, sizeof clone - 1) : NULL;
    if (!at && n >= sizeof part) { /* ".cold" or ".cold.3" at the end */
        size_t tail = n;
        while (tail > 0 && s[tail - 1] >= '0' && s[tail - 1] <= '9')
            tail--;
        if (tail < n && s[tail - 1] == '.')
            tail--;
        else
            tail = n;
        if (tail > 5 && memcmp(s + tail - 5, part, 5) == 0)
            at = s + tail - 5;
    }
    if (!at || at == s)
        return false;
    symbol->len = (size_t)(at - s);
    return true;
}
