#include "decode/export/export_branches.h"

#include <errno.h>
#include <string.h>

#include "decode/export/export_out.h"

struct lister {
    struct export_out *out;
    const struct export_options *options;
    uint64_t from_ns, to_ns;
    bool any, tid_seen;
};

static uint64_t resolve(const struct export_time *t, uint64_t first_ns, uint64_t absent)
{
    uint64_t ns = t->ns;
    if (!t->given)
        return absent;
    return t->relative && __builtin_add_overflow(first_ns, ns, &ns) ? UINT64_MAX : ns;
}

static void put_hex(struct export_out *o, uint64_t v)
{
    char text[17];
    size_t at = sizeof text;
    do {
        text[--at] = "0123456789abcdef"[v & 15];
        v >>= 4;
    } while (v);
    export_out_bytes(o, text + at, sizeof text - at);
}

static const char *kind_name(const struct pt_branch *b)
{
    static const char *const kinds[] = {
        [PT_BRANCH_CALL] = "call",       [PT_BRANCH_RETURN] = "return",
        [PT_BRANCH_JUMP] = "jump",       [PT_BRANCH_COND] = "cond",
        [PT_BRANCH_SYSCALL] = "syscall", [PT_BRANCH_SYSRET] = "sysret",
        [PT_BRANCH_INTERRUPT] = "interrupt", [PT_BRANCH_IRET] = "iret",
        [PT_BRANCH_ABORT] = "abort",     [PT_BRANCH_BEGIN] = "begin",
        [PT_BRANCH_END] = "end",         [PT_BRANCH_ERROR] = "error",
    };
    static const char *const ends[] = {
        [PT_END_ASYNC] = "end:async",   [PT_END_SYSCALL] = "end:syscall",
        [PT_END_CALL] = "end:call",     [PT_END_RETURN] = "end:return",
        [PT_END_JUMP] = "end:jump",     [PT_END_IRET] = "end:iret",
        [PT_END_SYSRET] = "end:sysret", [PT_END_INTERRUPT] = "end:interrupt",
        [PT_END_UNKNOWN] = "end",
    };
    return b->kind == PT_BRANCH_END ? ends[b->end] : kinds[b->kind];
}

static void on_branch(void *arg, const struct open_branch *b)
{
    struct lister *l = arg;
    if (!l->any) {
        l->any = true;
        l->from_ns = resolve(&l->options->from, b->time_ns, 0);
        l->to_ns = resolve(&l->options->to, b->time_ns, UINT64_MAX);
    }
    if (l->options->tid && b->tid != l->options->tid)
        return;
    l->tid_seen = true;
    if (b->time_ns < l->from_ns || b->time_ns >= l->to_ns)
        return;
    export_out_u64(l->out, b->time_ns);
    export_out_char(l->out, '\t');
    export_out_i64(l->out, b->tid);
    export_out_char(l->out, '\t');
    export_out_i64(l->out, b->cpu);
    export_out_char(l->out, '\t');
    export_out_str(l->out, kind_name(&b->branch));
    export_out_char(l->out, '\t');
    put_hex(l->out, b->branch.from);
    export_out_char(l->out, '\t');
    put_hex(l->out, b->branch.to);
    export_out_char(l->out, '\n');
}

static int list(struct recording **r, FILE *file, bool gzip, const char *path,
                const struct open_options *open, const struct export_options *options,
                struct err *err)
{
    struct lister l = {.out = export_out_new(file, gzip), .options = options};
    struct open_options o = *open;
    o.branch = on_branch;
    o.branch_arg = &l;
    export_out_str(l.out, "time_ns\ttid\tcpu\tkind\tfrom\tto\n");
    int rc = open_recording(r, path, &o, err);
    int end = export_out_end(l.out, rc < 0 ? NULL : err);
    if (rc < 0)
        return rc;
    if (end == 0 && options->tid && !l.tid_seen)
        end = err_set(err, MTUI_E_NOENT, "no thread %d in this recording", (int)options->tid);
    if (end < 0) {
        recording_free(*r);
        *r = NULL;
    }
    return end;
}

int export_branches(struct recording **r, const char *path, const struct open_options *open,
                    const char *out, const struct export_options *options, struct err *err)
{
    size_t n = strlen(out);
    if (strcmp(out, "-") == 0)
        return list(r, stdout, options->gzip, path, open, options, err);
    FILE *f = fopen(out, "we");
    if (!f)
        return err_errno(err, errno, "%s", out);
    bool gzip = options->gzip || (n > 3 && strcmp(out + n - 3, ".gz") == 0);
    int rc = list(r, f, gzip, path, open, options, err);
    if (fclose(f) != 0 && rc == 0)
        rc = err_errno(err, errno, "%s", out);
    return rc;
}
