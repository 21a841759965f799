/* Text of perf script, plain or gzipped, from a file or a pipe. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/base/fmt.h"
#include "core/base/alloc.h"
#include "decode/open/open_priv.h"
#include "decode/text/text_branch.h"
#include "decode/text/text_flow.h"
#include "decode/text/text_log.h"

#define CHUNK ((size_t)1 << 20)

#define EARLY_MOST 100

/* Where events go: samples and tasks to the log, branches to the trace or to whoever lists them. */
struct reader {
    struct open_context *c;
    struct text_log *log;
    struct text_flow *flow; /* NULL: no branch has come yet */
    VEC(struct perf_text_event) early; /* decode errors before the first branch; their messages are ours */
};

static void list_branch(struct open_context *c, const struct perf_text_event *ev)
{
    bool guessed;
    struct open_branch b = {.tid = ev->tid, .cpu = ev->cpu, .branch = text_branch(ev, &guessed)};
    b.time_ns = b.branch.time = ev->has_time ? ev->time_ns : ev->line;
    c->options->branch(c->options->branch_arg, &b);
}

static int keep_early(struct reader *r, const struct perf_text_event *ev)
{
    struct perf_text_event copy = *ev;
    if (r->early.len == EARLY_MOST)
        return 0;
    copy.comm.len = 0;
    copy.u.error.message.s = xstrndup(ev->u.error.message.s, ev->u.error.message.len);
    copy.u.error.message.len = strlen(copy.u.error.message.s);
    vec_push(&r->early, copy);
    return 0;
}

static int start_flow(struct reader *r)
{
    struct open_context *c = r->c;
    int rc = 0;
    if (!c->exact)
        c->exact = trace_builder_new(c->functions);
    r->flow = text_flow_new(c->exact, c->functions);
    for (size_t i = 0; rc == 0 && i < r->early.len; i++)
        rc = text_flow_event(r->flow, &r->early.data[i]);
    return rc;
}

static int on_event(void *arg, const struct perf_text_event *ev)
{
    struct reader *r = arg;
    int rc = 0;
    if (ev->kind == PERF_TEXT_PACKET)
        return r->flow ? text_flow_event(r->flow, ev) : 0;
    if (ev->kind != PERF_TEXT_BRANCH && ev->kind != PERF_TEXT_ERROR)
        return text_log_event(r->log, ev);
    if (r->c->options->branch) {
        list_branch(r->c, ev);
        return 0;
    }
    if (!r->flow && ev->kind == PERF_TEXT_ERROR)
        return keep_early(r, ev);
    if (!r->flow)
        rc = start_flow(r);
    return rc ? rc : text_flow_event(r->flow, ev);
}

static void free_reader(struct reader *r)
{
    for (size_t i = 0; i < r->early.len; i++)
        free((void *)(uintptr_t)r->early.data[i].u.error.message.s);
    vec_free(&r->early);
    text_flow_free(r->flow);
    text_log_free(r->log);
}

struct source {
    int fd;
    const unsigned char *first; /* bytes that were read before */
    size_t nfirst;
    bool gzip, ended;
    z_stream z;
    unsigned char *packed;
};

static ssize_t read_raw(struct source *s, void *buf, size_t size)
{
    if (s->nfirst) {
        size_t n = s->nfirst < size ? s->nfirst : size;
        memcpy(buf, s->first, n);
        s->first += n;
        s->nfirst -= n;
        return (ssize_t)n;
    }
    ssize_t n;
    do
        n = read(s->fd, buf, size);
    while (n < 0 && errno == EINTR);
    return n;
}

/* Whoever writes into a pipe may take their time: false when there is something else to do meanwhile. */
static bool has_input(struct open_context *c, const struct source *s)
{
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    return s->nfirst || (s->gzip && s->z.avail_in) || poll(&p, 1, open_part_wait_ms(c)) != 0;
}

/* Bytes of text; 0 at the end, −1 with a sentence. A damaged or cut gzip file gives what it has. */
static ssize_t read_text(struct source *s, char *buf, struct open_context *c, const char *name,
                         struct err *err)
{
    if (!s->gzip) {
        ssize_t n = read_raw(s, buf, CHUNK);
        return n < 0 ? err_errno(err, errno, "reading %s", name), -1 : n;
    }
    s->z.next_out = (unsigned char *)buf;
    s->z.avail_out = CHUNK;
    while (!s->ended && s->z.avail_out) {
        if (s->z.avail_in == 0) {
            ssize_t n = read_raw(s, s->packed, CHUNK);
            if (n < 0)
                return err_errno(err, errno, "reading %s", name), -1;
            if (n == 0) {
                open_note(c, "%s ends in the middle of its compressed data", name);
                s->ended = true;
                break;
            }
            s->z.next_in = s->packed;
            s->z.avail_in = (uInt)n;
        }
        int rc = inflate(&s->z, Z_NO_FLUSH);
        if (rc == Z_STREAM_END) {
            s->ended = true;
        } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
            open_note(c, "the compressed data of %s is damaged: shown as far as it goes", name);
            s->ended = true;
        }
    }
    return (ssize_t)(CHUNK - s->z.avail_out);
}

/* 0: not known, a pipe. */
static uint64_t size_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

static bool has_anything(const struct perf_text_counts *n)
{
    return n->samples || n->branches;
}

/* What has been read so far, and a gap for the rest of it. */
static void put_rest(struct open_context *c, struct trace_builder *b, uint64_t rest)
{
    uint64_t first = 0, last = 0;
    trace_builder_times(b, &first, &last);
    open_not_decoded(c, b, 0, last, last, rest);
}

static void show_part(struct open_context *c, const struct perf_text_counts *n, uint64_t rest,
                      uint64_t total)
{
    if (c->exact) {
        struct trace_builder *b = trace_builder_fork(c->exact);
        put_rest(c, b, rest);
        open_part(c, b, NULL);
    } else if (n->samples) {
        open_part_samples(c, rest, total);
    }
}

static int feed_all(struct open_context *c, struct source *s, struct perf_text *p, const char *name,
                    struct err *err)
{
    char *buf = xmalloc(CHUNK);
    uint64_t total = s->gzip ? 0 : size_of(s->fd), done = 0;
    ssize_t n = 1;
    int rc = 0;
    while (rc == 0 && n > 0 && !open_enough(c)) {
        if (has_input(c, s) && (n = read_text(s, buf, c, name, err)) > 0) {
            done += (uint64_t)n;
            rc = perf_text_feed(p, buf, (size_t)n);
        }
        if (c->exact)
            c->spans = trace_builder_spans(c->exact);
        open_progress(c, "reading", done, total);
        bool more = total == 0 || done < total;
        if (rc == 0 && n > 0 && more && open_part_due(c))
            show_part(c, perf_text_counts(p), total > done ? total - done : 0, total);
        if (open_cancelled(c) || (open_enough(c) && !has_anything(perf_text_counts(p))))
            rc = MTUI_E_CANCEL;
    }
    c->input_bytes += done;
    if (rc == 0 && n > 0) {
        c->stopped = true;
        c->rest_bytes = total > done ? total - done : 0;
        open_note_stopped(c, c->rest_bytes, total);
        perf_text_stop(p);
    }
    if (rc == 0 && n >= 0)
        rc = perf_text_end(p);
    free(buf);
    if (n < 0)
        return MTUI_E_IO;
    if (rc == MTUI_E_CANCEL)
        return err_set(err, rc, "cancelled");
    return rc ? err_set(err, rc, "not enough memory for %s", name) : 0;
}

static void note_flow(struct open_context *c, const struct text_flow_counts *n)
{
    char a[FMT_MAX];
    if (n->losses)
        open_note(c, "%s in it: each is a gap", fmt_counted(a, n->losses, "decode error", "decode errors"));
    if (n->guessed)
        open_note(c, "%s no flag words, so calls and returns were told by where they lead: "
                     "print with perf script -F +flags",
                  fmt_counted(a, n->guessed, "branch has", "branches have"));
    if (n->leaps && !n->returns)
        open_note(c, "only calls were printed: that a call is over shows when its caller makes the next one "
                     "(print with perf script --itrace=be)");
    else if (n->leaps)
        open_note(c, "%s not printed, by their neighbours: calls may last too long there",
                  fmt_counted(a, n->leaps, "branch was", "branches were"));
    if (n->no_offset)
        open_note(c, "the names have no offsets, so jumps into functions cannot be told from calls and "
                     "returns: print with perf script -F +symoff");
    if (n->no_time)
        open_note(c, "%s no time: lines are counted there instead (print with perf script -F +time)",
                  fmt_counted(a, n->no_time, "line has", "lines have"));
}

/* What the counts say about the whole. */
static int judge(struct open_context *c, const struct perf_text_counts *n, const char *name,
                 struct err *err)
{
    char a[FMT_MAX], b[FMT_MAX];
    if (n->half_branches && !n->branches)
        return err_set(err, MTUI_E_NOTSUP,
                       "%s has branch lines (%s) that do not tell where they lead: print it with "
                       "perf script -F +addr",
                       name, fmt_count(a, n->half_branches));
    if (c->options->branch && !n->branches)
        return err_set(err, MTUI_E_NOTSUP, "%s has no branch lines of a hardware trace", name);
    if (!n->samples && !n->other_events && !n->branches)
        return err_set(err, MTUI_E_FORMAT,
                       "%s is neither a perf.data nor text of perf script (%s, none of them an "
                       "event)",
                       name, fmt_counted(a, n->lines, "line", "lines"));
    if (n->samples && n->branches)
        open_note(c, "%s also holds %s not shown beside its hardware trace", name,
                  fmt_counted(a, n->samples, "sample, which is", "samples, which are"));
    if (n->errors && !n->branches)
        open_note(c, "%s of a hardware trace left out", fmt_counted(a, n->errors, "decode error", "decode errors"));
    if (n->unknown_words)
        open_note(c, "%s not known and passed over",
                  fmt_counted(a, n->unknown_words, "flag word is", "flag words are"));
    if (n->unknown_lines || n->cut_lines)
        open_note(c, "partial: %s line%s not understood, the first is line %s: %s",
                  fmt_count(a, n->unknown_lines + n->cut_lines),
                  n->unknown_lines + n->cut_lines == 1 ? " was" : "s were",
                  fmt_count(b, n->first_unknown_line), n->first_unknown);
    open_note(c, "names are those in the text: no file was looked at");
    return 0;
}

int open_text(struct open_context *c, int fd, const void *bytes, size_t n, const char *name,
              struct err *err)
{
    struct source s = {.fd = fd, .first = bytes, .nfirst = n};
    s.gzip = n >= 2 && s.first[0] == 0x1f && s.first[1] == 0x8b;
    if (s.gzip) {
        s.packed = xmalloc(CHUNK);
        if (inflateInit2(&s.z, 15 + 16) != Z_OK) { /* 15 bits of window, gzip only (zlib.h) */
            free(s.packed);
            return err_set(err, MTUI_E_NOMEM, "not enough memory to unpack %s", name);
        }
    }
    struct reader r = {.c = c, .log = text_log_new(c->functions, c->log)};
    struct perf_text *p = perf_text_new(on_event, &r);
    int rc = feed_all(c, &s, p, name, err);
    if (rc == 0 && r.flow && text_flow_end(r.flow) < 0)
        rc = err_set(err, MTUI_E_NOMEM, "not enough memory for %s", name);
    if (rc == 0 && r.flow) {
        note_flow(c, text_flow_counts(r.flow));
        if (c->stopped)
            put_rest(c, c->exact, c->rest_bytes);
    }
    if (rc == 0)
        rc = judge(c, perf_text_counts(p), name, err);
    perf_text_free(p);
    free_reader(&r);
    if (s.gzip)
        inflateEnd(&s.z);
    free(s.packed);
    return rc;
}
