#include "lib_step_facts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/step/step_insn.h"

struct window {
    const struct step_rec *r;
    const struct step_symbols *s;
};

static bool is(const struct step_branch *b, const char *kind)
{
    return strcmp(b->kind, kind) == 0;
}

static enum step_kind instruction(const struct window *w, const struct step_branch *b)
{
    const struct step_code_map *m = step_rec_map(w->r, b->from, b->clock);
    return m ? step_insn_decode(m->bytes + (b->from - m->start), (size_t)(m->start + m->len - b->from), b->from).kind
             : STEP_BAD;
}

static const char *path_of(const struct window *w, uint64_t ip, uint64_t clock)
{
    const struct step_code_map *m = step_rec_map(w->r, ip, clock);
    return m ? m->path : "";
}

static bool same_file(const struct window *w, const struct step_branch *b)
{
    return strcmp(path_of(w, b->from, b->clock), path_of(w, b->to, b->clock)) == 0;
}

static bool path_ends(const char *path, const char *end)
{
    size_t n = strlen(path), k = strlen(end);
    return n >= k && strcmp(path + n - k, end) == 0;
}

/* ---- functions ---- */

static bool inside(const struct window *w, uint64_t ip, const struct step_branch *b)
{
    uint64_t at = b->to; /* calls from up to 256 bytes behind its beginning, with no other one between */
    if (ip < at || ip - at > 256)
        return false;
    for (uint64_t k = at + 1; k <= ip; k++)
        if (step_symbols_start(w->s, k, b->clock))
            return false;
    return true;
}

static bool goes_to(const struct window *w, size_t i, const char *how, const char *name)
{
    const struct step_branch *b = &w->r->branches[i];
    if (strcmp(how, "handler") == 0) {
        if (!i || !is(b, "begin") || !is(b - 1, "async"))
            return false;
    } else if (strcmp(how, "tail") == 0) {
        if ((!is(b, "jump") && !is(b, "cond")) || !same_file(w, b))
            return false;
    } else if (strcmp(how, "enters") != 0 && !is(b, "call")) {
        return false;
    }
    if (!step_symbols_is(w->s, b->to, b->clock, name))
        return false;
    if (strcmp(how, "calls") == 0)
        return instruction(w, b) == STEP_CALL;
    if (strcmp(how, "indirect") == 0)
        return instruction(w, b) == STEP_CALL_INDIRECT;
    if (strcmp(how, "callback") == 0)
        return !same_file(w, b);
    if (strcmp(how, "recursion") == 0)
        return inside(w, b->from, b);
    if (strcmp(how, "tail") == 0)
        return !inside(w, b->from, b);
    return true;
}

static bool any(const struct window *w, const char *how, const char *name)
{
    for (size_t i = 0; i < w->r->n_branches; i++)
        if (goes_to(w, i, how, name))
            return true;
    return false;
}

/* ---- everything else ---- */

static size_t kinds(const struct window *w, const char *kind)
{
    size_t n = 0;
    for (size_t i = 0; i < w->r->n_branches; i++)
        n += is(&w->r->branches[i], kind);
    return n;
}

static size_t stacks(const struct window *w)
{
    uint64_t seen[16];
    size_t n = 0, k;
    for (size_t i = 0; i < w->r->n_branches && n < 16; i++) {
        uint64_t at = w->r->branches[i].sp >> 18;
        for (k = 0; k < n && seen[k] != at; k++)
            ;
        if (k == n && at)
            seen[n++] = at;
    }
    return n;
}

/* Straight to the other file, or through the code of the dynamic linker that looks for it. */
static bool through_plt(const struct window *w)
{
    for (size_t i = 0; i + 4 < w->r->n_branches; i++) {
        const struct step_branch *call = &w->r->branches[i], *jump = call + 1;
        if (is(call, "call") && instruction(w, jump) == STEP_JUMP_INDIRECT && jump->from >= call->to &&
            jump->from - call->to < 16 && !(same_file(w, jump) && same_file(w, jump + 1) && same_file(w, jump + 2)))
            return true;
    }
    return false;
}

/* Whether code of this mapping was run while it was there. */
static bool has_run(const struct window *w, const struct step_code_map *m)
{
    for (size_t i = 0; i < w->r->n_branches; i++) {
        const struct step_branch *b = &w->r->branches[i];
        if (step_rec_map(w->r, b->to, b->clock) == m)
            return true;
    }
    return false;
}

static bool two_mappings(const struct window *w, const char *path)
{
    for (size_t i = 0; i < w->r->n_maps; i++)
        for (size_t k = 0; k < i; k++) {
            const struct step_code_map *a = &w->r->maps[i], *b = &w->r->maps[k];
            bool one_file = strcmp(a->path, b->path) == 0, one_address = a->start == b->start;
            bool wanted = path ? path_ends(a->path, path) && one_file && !one_address
                               : !one_file && one_address;
            if (wanted && has_run(w, a) && has_run(w, b))
                return true;
        }
    return false;
}

static bool code_of(const struct window *w, const char *path)
{
    for (size_t i = 0; i < w->r->n_maps; i++)
        if (path_ends(w->r->maps[i].path, path) && has_run(w, &w->r->maps[i]))
            return true;
    return false;
}

static bool stripped(const struct window *w)
{
    char *path = realpath(w->r->exe, NULL); /* as it is mapped */
    bool is_so = path && step_symbols_stripped(w->s, path);
    free(path);
    return is_so;
}

static bool holds(const struct window *w, const char *how, const char *name)
{
    if (strcmp(how, "code") == 0)
        return code_of(w, name);
    if (strcmp(how, "plt") == 0)
        return through_plt(w);
    if (strcmp(how, "stacks") == 0)
        return stacks(w) >= strtoul(name, NULL, 10);
    if (strcmp(how, "syscalls") == 0)
        return kinds(w, "syscall") >= strtoul(name, NULL, 10);
    if (strcmp(how, "moved") == 0)
        return two_mappings(w, name);
    if (strcmp(how, "address") == 0)
        return two_mappings(w, NULL);
    if (strcmp(how, "stripped") == 0)
        return stripped(w);
    return any(w, how, name);
}

void step_facts_check(const struct step_rec *r, const struct step_symbols *s, const char *program,
                      const char *facts)
{
    const struct window w = {r, s};
    char how[32], name[64];
    size_t n = 0;
    for (const char *at = facts; at; n++) {
        *name = '\0';
        assert_true(sscanf(at, " %31[^ ;] %63[^;]", how, name) >= 1);
        if (!holds(&w, how, name))
            fail_msg("%s: the recorded window has no \"%s %s\"", program, how, name);
        at = strchr(at, ';');
        at += at != NULL;
    }
    assert_true(n > 0);
}
