#include "decode/open/open.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "decode/open/open_find.h"
#include "decode/open/open_priv.h"
#include "decode/text/perf_text.h"

#define SNIFF 65536

bool open_cancelled(const struct open_context *c)
{
    return c->options->cancel && atomic_load_explicit(c->options->cancel, memory_order_relaxed);
}

void open_progress(const struct open_context *c, const char *stage, uint64_t done, uint64_t total)
{
    struct open_progress p = {stage, done, total, c->spans};
    if (c->options->progress)
        c->options->progress(c->options->progress_arg, &p);
}

bool open_is_finishing(const struct open_progress *p)
{
    return strcmp(p->stage, "building") == 0 || strcmp(p->stage, "indexing") == 0;
}

void open_note(struct open_context *c, const char *fmt, ...)
{
    if (c->in_part)
        return;
    va_list ap;
    va_start(ap, fmt);
    char *text = NULL;
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    for (size_t i = 0; i < c->notes.len; i++)
        if (strcmp(c->notes.data[i], text) == 0) {
            free(text);
            return;
        }
    vec_push(&c->notes, text);
}

/* ---- One input ---- */

static int read_exact(struct open_context *c, struct perf_file *f, struct err *err)
{
    if (!c->exact)
        c->exact = trace_builder_new(c->functions);
    if (!c->flow && c->options->statistics)
        c->flow = stats_flow_new(c->exact);
    return c->options->branch ? open_branches(c, f, err) : open_pt(c, f, c->exact, err);
}

static void note_partial(struct open_context *c, const struct perf_file *f)
{
    if (!perf_file_partial(f))
        return;
    open_note(c, "partial: %s", perf_file_partial(f));
    if (!c->partial)
        c->partial = c->notes.data[c->notes.len - 1];
}

/* The latest time that is known of what was read, of samples from `before` on. */
static uint64_t latest_time(const struct open_context *c, size_t before)
{
    uint64_t first = 0, last = 0;
    const struct sample_event *e = sample_log_events(c->log);
    if (c->exact) {
        trace_builder_times(c->exact, &first, &last);
        return last;
    }
    for (size_t i = before; i < sample_log_count(c->log); i++)
        if (e[i].time_ns != SAMPLE_NO_TIME && e[i].time_ns > last)
            last = e[i].time_ns;
    return last;
}

/* The end of a file that is cut or damaged is a gap where everything known ends. */
static void take_cut(struct open_context *c, const struct perf_file *f, size_t before)
{
    const struct perf_file_info *info = perf_file_info(f);
    if (!info->unread_offset)
        return;
    struct gap g = {.bytes = info->unread_bytes,
                    .cause = GAP_LOST,
                    .detail = xasprintf("%s (%llu bytes from byte %llu of the file on)",
                                        perf_file_partial(f) ? perf_file_partial(f) : "the file is cut",
                                        (unsigned long long)info->unread_bytes,
                                        (unsigned long long)info->unread_offset)};
    g.start_ns = g.end_ns = latest_time(c, before);
    vec_push(&c->cuts, g);
}

static void put_cuts(struct open_context *c, struct trace_builder *b)
{
    for (size_t i = 0; i < c->cuts.len; i++) {
        trace_builder_gap(b, &c->cuts.data[i]);
        c->trace_bytes += c->cuts.data[i].bytes; /* announced, and skipped */
        free((void *)(uintptr_t)c->cuts.data[i].detail);
    }
    c->cuts.len = 0;
}

static int read_perf(struct open_context *c, struct perf_file *f, const char *name, struct err *err)
{
    if (c->options->branch && !perf_file_info(f)->has_auxtrace)
        return err_set(err, MTUI_E_NOTSUP, "%s holds no hardware trace, so it has no branches", name);
    size_t before = sample_log_count(c->log);
    int rc = open_samples(c, f, err);
    if (rc < 0)
        return rc;
    note_partial(c, f);
    bool samples = false;
    const struct sample_event *e = sample_log_events(c->log);
    for (size_t i = before; i < sample_log_count(c->log) && !samples; i++)
        samples = e[i].kind == SAMPLE_STACK;
    if (perf_file_info(f)->has_auxtrace) {
        if (samples)
            open_note(c, "%s also holds samples, which are not shown beside its hardware trace", name);
        rc = read_exact(c, f, err);
    } else if (!samples) {
        open_note(c, "%s holds no samples", name);
    }
    perf_file_check(f); /* it was mapped all the time */
    note_partial(c, f);
    take_cut(c, f, before);
    return rc;
}

static int read_perf_path(struct open_context *c, const char *path, struct err *err)
{
    struct perf_file *f = NULL;
    int rc = perf_file_open(&f, path, err);
    if (rc < 0)
        return rc;
    rc = read_perf(c, f, path, err);
    perf_file_close(f);
    return rc;
}

/* A pipe may be silent for long: ECANCELED when opening is cancelled meanwhile. */
static ssize_t read_some(const struct open_context *c, int fd, void *buf, size_t size)
{
    size_t n = 0;
    while (n < size) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (open_cancelled(c) || open_enough(c)) {
            errno = ECANCELED;
            return -1;
        }
        if (poll(&p, 1, open_part_wait_ms(c)) == 0)
            continue;
        ssize_t got = read(fd, (char *)buf + n, size - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

static int read_failed(struct err *err, const char *name)
{
    if (errno == ECANCELED)
        return err_set(err, MTUI_E_CANCEL, "cancelled");
    return err_errno(err, errno, "reading %s", name);
}

static bool is_perf_magic(const void *bytes, size_t n)
{
    return n >= 8 && (memcmp(bytes, "PERFILE2", 8) == 0 || memcmp(bytes, "2ELIFREP", 8) == 0 ||
                      memcmp(bytes, "PERFFILE", 8) == 0);
}

/* perf.data on a pipe: its first bytes are read already, so it is spooled into memory. */
static int read_perf_pipe(struct open_context *c, int fd, const void *bytes, size_t n,
                          struct err *err)
{
    struct perf_file *f = NULL;
    char *buf = xmalloc(SNIFF);
    int rc = 0, mem = memfd_create("perf.data", MFD_CLOEXEC);
    if (mem < 0)
        rc = err_errno(err, errno, "a place for standard input");
    memcpy(buf, bytes, n);
    for (ssize_t got = (ssize_t)n; rc == 0 && got > 0;) {
        for (ssize_t put = 0, w; rc == 0 && put < got; put += w > 0 ? w : 0)
            if ((w = write(mem, buf + put, (size_t)(got - put))) < 0 && errno != EINTR)
                rc = err_errno(err, errno, "keeping standard input");
        if (rc == 0 && (got = read_some(c, fd, buf, SNIFF)) < 0)
            rc = read_failed(err, "standard input");
    }
    if (rc == 0 && lseek(mem, 0, SEEK_SET) < 0)
        rc = err_errno(err, errno, "standard input");
    if (rc == 0)
        rc = perf_file_open_fd(&f, mem, "standard input", err);
    if (rc == 0)
        rc = read_perf(c, f, "standard input", err);
    if (f)
        perf_file_close(f);
    if (mem >= 0)
        close(mem);
    free(buf);
    return rc;
}

static int read_fd(struct open_context *c, int fd, const char *path, struct err *err)
{
    char *bytes = xmalloc(SNIFF);
    bool is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "standard input" : path;
    ssize_t n = read_some(c, fd, bytes, SNIFF);
    int rc;
    bool gzip = n >= 2 && (unsigned char)bytes[0] == 0x1f && (unsigned char)bytes[1] == 0x8b;
    if (n < 0)
        rc = read_failed(err, name);
    else if (n == 0)
        rc = err_set(err, MTUI_E_FORMAT, "%s is empty", name);
    else if (is_perf_magic(bytes, (size_t)n))
        rc = is_stdin ? read_perf_pipe(c, fd, bytes, (size_t)n, err) : read_perf_path(c, path, err);
    else if (gzip || perf_text_is(bytes, (size_t)n))
        rc = open_text(c, fd, bytes, (size_t)n, name, err);
    else
        rc = err_set(err, MTUI_E_FORMAT, "%s is neither a perf.data nor text of perf script", name);
    free(bytes);
    return rc;
}

static int read_input(struct open_context *c, const char *path, struct err *err)
{
    struct stat st;
    if (strcmp(path, "-") == 0)
        return read_fd(c, c->options->stdin_fd, path, err);
    if (stat(path, &st) < 0)
        return err_errno(err, errno, "%s", path);
    if (S_ISDIR(st.st_mode)) /* perf record --kcore, --threads */
        return read_perf_path(c, path, err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, errno, "%s", path);
    int rc = read_fd(c, fd, path, err);
    close(fd);
    return rc;
}

/* Snapshots of a ring repeat one another: which tells what is known before the first is decoded. */
static int find_seams(struct open_context *c, const struct open_found *found, struct err *err)
{
    int rc = 0;
    if (found->ninputs < 2)
        return 0;
    c->seams = pt_seams_new();
    for (size_t i = 0; i < found->ninputs && rc == 0; i++) {
        struct perf_file *f = NULL;
        struct err e = {0}; /* what cannot be read is said when it is its turn */
        if (open_cancelled(c))
            return err_set(err, MTUI_E_CANCEL, "cancelled");
        if (perf_file_open(&f, found->inputs[i], &e) < 0)
            f = NULL;
        rc = pt_seams_add(c->seams, f && perf_file_info(f)->has_auxtrace ? f : NULL, err);
        if (f)
            perf_file_close(f);
    }
    return rc;
}

/* All inputs, with a border between two. One that fails among several costs only itself. */
static int read_inputs(struct open_context *c, const struct open_found *found, struct err *err)
{
    size_t good = 0;
    int rc = find_seams(c, found, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < found->ninputs; i++) {
        struct err e = {0};
        if (good && open_enough(c)) {
            open_note(c, "not looked at: %zu more of %zu snapshots", found->ninputs - i,
                      found->ninputs);
            break;
        }
        if (good) {
            struct sample_event border = {.kind = SAMPLE_BORDER,
                                          .time_ns = SAMPLE_NO_TIME,
                                          .stack = STACK_EMPTY,
                                          .thread = SAMPLE_NO_THREAD,
                                          .cpu = -1};
            if (sample_log_add(c->log, &border) < 0)
                return err_set(err, MTUI_E_NOMEM, "not enough memory");
        }
        c->input = i;
        int one = read_input(c, found->inputs[i], &e);
        good += one == 0;
        if (one == MTUI_E_CANCEL || one == MTUI_E_NOMEM || (one < 0 && found->ninputs == 1))
            return err_set(err, one, "%s", e.text);
        if (one < 0) {
            open_note(c, "left out: %s", e.text);
            rc = err_set(err, one, "%s", e.text);
        }
    }
    return good ? 0 : rc;
}

/* ---- From what was read to a trace ---- */

static void note_account(struct open_context *c, const struct sample_log_account *a)
{
    char n[FMT_MAX], m[FMT_MAX];
    if (a->without_time)
        open_note(c, "%s no time, so no place on the timeline: record with timestamps",
                  fmt_counted(n, a->without_time, "sample has", "samples have"));
    if (a->lost)
        open_note(c, "%s lost", fmt_counted(n, a->lost, "record was", "records were"));
    if (a->throttled)
        open_note(c, "the kernel throttled the sampling %s: lower the frequency",
                  fmt_counted(n, a->throttled, "time", "times"));
    if (a->idle)
        open_note(c, "not on the timeline: %s of idle CPUs", fmt_counted(n, a->idle, "sample", "samples"));
    if (a->repeated)
        open_note(c, "%s in two snapshots, shown once",
                  fmt_counted(n, a->repeated, "sample stands", "samples stand"));
    if (a->not_clock && sample_log_source_count(c->log) > 1)
        open_note(c, "of %s, %s from events that are no clock",
                  fmt_counted(m, a->samples, "sample", "samples"), fmt_counted(n, a->not_clock, "comes", "come"));
    else if (a->not_clock)
        open_note(c, "%s counts events, not time: spans show only where samples fell",
                  sample_log_source(c->log, 0)->name);
}

void open_note_raised(struct open_context *c, uint64_t n)
{
    char text[FMT_MAX];
    if (n)
        open_note(c, "%s backwards: raised", fmt_counted(text, n, "time went", "times went"));
}

static void note_builder(struct open_context *c, const struct trace_builder *b)
{
    char n[FMT_MAX];
    open_note_raised(c, trace_builder_clamped(b));
    if (trace_builder_too_deep(b))
        open_note(c, "%s nested more than %u deep, and not shown",
                  fmt_counted(n, trace_builder_too_deep(b), "call was", "calls were"), (unsigned)TRACE_MAX_DEPTH);
}

/* Recordings by single-stepping have instructions for a clock. */
static bool counts_instructions(const struct recording *r)
{
    return r->has_session && r->session.clock && strcmp(r->session.clock, "instructions") == 0;
}

static int build_trace(struct open_context *c, struct recording *r, struct err *err)
{
    bool exact = c->exact != NULL;
    struct trace_builder *b = exact ? c->exact : trace_builder_new(c->functions);
    struct sample_log_account a = {0};
    char n[FMT_MAX];
    c->exact = NULL;
    open_progress(c, "building", 0, 0);
    int rc = exact ? 0 : sample_log_build(c->log, b, c->functions, &a, err);
    if (rc == 0) {
        if (!exact && c->stopped)
            open_not_decoded(c, b, 0, a.last_ns, a.last_ns, c->rest_bytes);
        put_cuts(c, b);
        if (c->flow && stats_flow_end(c->flow) < 0)
            rc = err_set(err, MTUI_E_NOMEM, "not enough memory for the statistics");
        if (rc == 0)
            rc = open_finish_trace(c, b, &a, exact, &r->trace, err);
        if (rc == 0 && c->flow)
            rc = stats_flow_finish(c->flow, r->trace, &r->statistics, err);
        if (c->seams && c->repeated_bytes)
            open_note(c, "%s of trace data stand in two snapshots and are shown once", fmt_size(n, c->repeated_bytes));
        note_account(c, &a);
        note_builder(c, b);
    }
    trace_builder_free(b);
    c->functions = NULL; /* in the trace now, or freed with the builder */
    return rc;
}

static int make(struct open_context *c, struct recording *r, struct err *err)
{
    if (c->found->leftover)
        open_note(c, "this was not put into a snapshot, mtui was ended before: it is what had been written");
    int rc = read_inputs(c, c->found, err);
    if (rc == 0 && open_cancelled(c))
        rc = err_set(err, MTUI_E_CANCEL, "cancelled");
    if (rc == 0)
        rc = build_trace(c, r, err);
    if (rc == 0 && c->options->pyramid) {
        open_progress(c, "indexing", 0, 0);
        rc = pyramid_new(&r->pyramid, r->trace, c->options->cancel, err);
    }
    return rc;
}

static void hand_over(struct open_context *c, struct open_found *found, struct recording *r)
{
    r->samples = c->log;
    r->notes = c->notes.data;
    r->nnotes = c->notes.len;
    r->modules = c->modules.data;
    r->nmodules = c->modules.len;
    r->snapshots = found->snapshots;
    r->nsnapshots = found->nsnapshots;
    found->snapshots = NULL;
}

static int open_once(struct recording **out, const char *path, const struct open_options *options, struct err *err)
{
    struct open_context c = {.options = options};
    struct open_found found = {0};
    struct maps_log *maps = NULL;
    int rc = open_check_path(path, err);
    if (rc == 0)
        rc = open_find(&found, path, options->snapshot, err);
    if (rc < 0)
        return rc;
    struct recording *r = xcalloc(1, sizeof *r);
    c.found = &found;
    c.functions = functions_new();
    c.log = sample_log_new();
    if (found.dir) {
        struct err e = {0};
        r->has_session = snapshot_dir_read_info(found.dir, &r->session, &e) == 0;
        if (!r->has_session)
            open_note(&c, "%s", e.text);
        c.user_only = r->session.user_only;
        if (maps_log_open(&maps, snapshot_dir_path(found.dir), &e) == 0)
            c.maps = maps;
        else if (e.code != MTUI_E_NOENT)
            open_note(&c, "%s", e.text);
    }
    c.instructions = counts_instructions(r);
    open_part_begin(&c);
    rc = make(&c, r, err);
    if (c.exact) {
        trace_builder_free(c.exact); /* and the functions with it */
        c.functions = NULL;
    }
    if (c.functions)
        functions_free(c.functions);
    hand_over(&c, &found, r);
    if (maps)
        maps_log_close(maps);
    open_found_free(&found);
    for (size_t i = 0; i < c.cuts.len; i++)
        free((void *)(uintptr_t)c.cuts.data[i].detail);
    vec_free(&c.cuts);
    stats_flow_free(c.flow);
    pt_seams_free(c.seams);
    if (rc < 0) {
        recording_free(r);
        return rc;
    }
    *out = r;
    return 0;
}

int open_recording(struct recording **out, const char *path, const struct open_options *options,
                   struct err *err)
{
    struct open_options o = *options;
    o.statistics &= strcmp(path, "-") != 0; /* it can be read once only */
    int rc = open_once(out, path, &o, err);
    if (rc != MTUI_E_NOTSUP || !o.statistics)
        return rc;
    o.statistics = false; /* what was lost lies within calls: they are needed all at once */
    return open_once(out, path, &o, err);
}

void recording_free(struct recording *r)
{
    if (!r)
        return;
    pyramid_free(r->pyramid);
    trace_free(r->trace);
    stats_free(r->statistics);
    sample_log_free(r->samples);
    for (size_t i = 0; i < r->nmodules; i++) {
        free(r->modules[i].name);
        free(r->modules[i].source);
        free(r->modules[i].reason);
    }
    free(r->modules);
    for (size_t i = 0; i < r->nnotes; i++)
        free(r->notes[i]);
    free(r->notes);
    free(r->snapshots);
    session_info_free(&r->session);
    free(r);
}

int open_parse_snapshot(const char *s, unsigned *snapshot, struct err *err)
{
    uint64_t n = 0;
    if (strcmp(s, "last") == 0)
        *snapshot = OPEN_LAST;
    else if (strcmp(s, "all") == 0)
        *snapshot = OPEN_ALL;
    else if (strcmp(s, "end") == 0)
        *snapshot = OPEN_END;
    else if (fmt_parse_u64(s, 1, OPEN_END - 1, &n, NULL) == 0)
        *snapshot = (unsigned)n;
    else
        return err_set(err, MTUI_E_INVAL, "snapshot \"%s\": say a number, last, all or end", s);
    return 0;
}
