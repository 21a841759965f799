#include "decode/open/open_losses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"

#define KSYM_TEXT 300 /* names of BPF programs have 40 bytes at most */

struct open_missing {
    char *where;
    const char *why; /* NULL: nothing to say */
    bool kernel;
    uint64_t bytes, times;
};

/* Before the stream has told any time, that of the first one that it does tell. */
static uint64_t time_of(const struct pt_piece *piece, const struct pt_loss *loss)
{
    if (loss->from_time)
        return loss->from_time;
    return loss->to_time ? loss->to_time : piece->time_ns;
}

static const char *where_is(const struct open_losses *l, const struct pt_piece *piece, const struct pt_loss *loss,
                            const char **why)
{
    uint64_t time = time_of(piece, loss);
    pid_t pid = pt_source_process(l->source, pt_source_thread(l->source, piece->stream, time));
    const char *path = code_image_where(l->source->image, pid, time, loss->ip, why);
    return path && !*path ? "memory without a file" : path;
}

static void add_missing(struct open_losses *l, const char *where, const char *why, bool kernel, uint64_t bytes)
{
    size_t i = 0;
    while (i < l->missing.len && strcmp(l->missing.data[i]->where, where) != 0)
        i++;
    if (i == l->missing.len) {
        struct open_missing *m = xcalloc(1, sizeof *m);
        *m = (struct open_missing){.where = xstrdup(where), .why = why, .kernel = kernel};
        vec_push(&l->missing, m);
    }
    l->missing.data[i]->bytes += bytes;
    l->missing.data[i]->times++;
}

/* A reason that names the file first says it all: where it is cut, the file and what is wrong stay. */
static bool begins_with(const char *why, const char *where)
{
    return why && strncmp(why, where, strlen(where)) == 0;
}

static char *describe(struct open_losses *l, const struct pt_piece *piece, const struct pt_loss *loss)
{
    if (loss->cause == GAP_NO_IMAGE) {
        const char *why, *where = where_is(l, piece, loss, &why);
        char bpf[KSYM_TEXT];
        uint64_t start;
        const char *ksymbol = where ? NULL : addrspaces_ksymbol(l->source->as, loss->ip, &start);
        bool kernel = !where && loss->ip >> 63;
        if (ksymbol) {
            snprintf(bpf, sizeof bpf, "BPF program %s", ksymbol);
            where = bpf;
        } else if (!where) {
            where = kernel ? "the kernel" : "memory where nothing is known to be mapped";
        }
        add_missing(l, where, why, kernel, loss->bytes);
        if (begins_with(why, where))
            return xstrdup(why);
        return why ? xasprintf("%s: %s: %s", where, loss->why, why) : xasprintf("%s: %s", where, loss->why);
    }
    if (loss->ip)
        return xasprintf("%s, at %llx", loss->why, (unsigned long long)loss->ip);
    return xstrdup(loss->why);
}

char *open_losses_add(struct open_losses *l, const struct pt_piece *piece, const struct pt_loss *loss)
{
    l->bytes += loss->bytes;
    l->count++;
    return describe(l, piece, loss);
}

/* The build-id recorded for a file, in hex; empty: none. */
static const char *build_id_of(const struct open_losses *l, const char *path, char out[2 * 64 + 1])
{
    *out = '\0';
    for (size_t i = 0; i < addrspaces_module_count(l->source->as) && !*out; i++) {
        struct addrspace_module m = addrspaces_module(l->source->as, (uint32_t)i);
        if (strcmp(m.path, path) == 0)
            for (size_t k = 0; k < m.build_id_len && k < 64; k++)
                snprintf(out + 2 * k, 3, "%02x", m.build_id[k]);
    }
    return out;
}

static int by_bytes(const void *a, const void *b)
{
    const struct open_missing *x = *(struct open_missing *const *)a, *y = *(struct open_missing *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return strcmp(x->where, y->where);
}

/* What was not at hand, the costliest first, and what can be done about it. */
static void note_missing_code(struct open_losses *l)
{
    char lost[FMT_MAX], all[FMT_MAX], id[2 * 64 + 1];
    bool files = false, kernel = false;
    if (l->missing.len)
        qsort(l->missing.data, l->missing.len, sizeof *l->missing.data, by_bytes);
    for (size_t i = 0; i < l->missing.len; i++) {
        const struct open_missing *m = l->missing.data[i];
        build_id_of(l, m->where, id);
        files |= *m->where == '/' && m->where[1] != '/';
        kernel |= m->kernel;
        fmt_size(lost, m->bytes);
        fmt_counted(all, m->times, "place", "places");
        if (begins_with(m->why, m->where))
            open_note(l->c, "%s: %s bytes of trace could not be followed, in %s%s%s", m->why, lost, all,
                      *id ? "; build-id " : "", id);
        else
            open_note(l->c, "the code of %s is not at hand: %s bytes of trace could not be followed, in "
                            "%s%s%s%s%s", m->where, lost, all, m->why ? ": " : "", m->why ? m->why : "",
                      *id ? "; build-id " : "", id);
    }
    if (files)
        open_note(l->c, "to decode the rest, copy those files from the machine that was recorded: below a "
                        "directory, with the same paths (--symfs DIR), or into the build-id cache ~/.debug (perf "
                        "buildid-cache -a FILE)");
    if (kernel)
        open_note(l->c, "code of the kernel is not decoded: record user space only (intel_pt//u) to spare the "
                        "space it takes");
}

void open_losses_note(struct open_losses *l)
{
    char lost[FMT_MAX], all[FMT_MAX], gaps[FMT_MAX];
    const struct pt_clock *clock = &l->source->clock;
    uint64_t bytes = pt_streams_bytes(l->source->streams, NULL);
    if (l->source->holes.len)
        open_note(l->c, "the kernel reports %s that trace data was lost before it was stored: a larger "
                        "buffer (--size) or less timing (--timing) helps",
                  fmt_counted(all, l->source->holes.len, "time", "times"));
    if (!bytes && l->c->partial)
        open_note(l->c, "no trace data in what is there of it");
    else if (!bytes)
        open_note(l->c, "no trace data in it: the target was idle, tracing was off, or a hypervisor "
                        "kept Intel PT for itself");
    note_missing_code(l); /* first: it says why */
    if (l->bytes)
        open_note(l->c, "%s of %s trace bytes told nothing, in %s", fmt_size(lost, l->bytes),
                  fmt_size(all, bytes), fmt_counted(gaps, l->count, "gap", "gaps"));
    if (!clock->tsc)
        open_note(l->c, "the trace has no timestamps: times count instructions");
    else if (!clock->time_mult)
        open_note(l->c, "the recording does not say how the timestamps of the trace relate to perf's clock (it "
                        "could not be read there, as in many virtual machines): times count instructions");
    if (l->c->seams && l->c->input && !pt_clock_has_time(clock))
        open_note(l->c, "without times, what two snapshots have in common is not found: such calls are shown, and "
                        "counted, in both (choose one with --snapshot N)");
}

void open_losses_free(struct open_losses *l)
{
    for (size_t i = 0; i < l->missing.len; i++) {
        free(l->missing.data[i]->where);
        free(l->missing.data[i]);
    }
    vec_free(&l->missing);
}
