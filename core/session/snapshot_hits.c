/* hits.tsv: written a line at a time while recording, put into the order of time at its end, read back whole. */
#include "core/session/snapshot_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/utf8.h"
#include "core/base/vec.h"
#include "core/base/write_all.h"
#include "core/step/step_orphan.h"

static const char header[] = "time_ns\ttid\ttrigger\taddress\targ1\targ2\tduration_ns\tsnapshot\n";
#define COLUMNS 8
/* Fields behind those. */
#define RUNNING  "running" /* the call had not returned */
#define TOOK     "took="   /* until it did, later */
#define FUNCTION "function="

/* What stands behind the number of the snapshot; from malloc. */
static char *more_of(const struct snapshot_hit *hit)
{
    const char *function = hit->function ? hit->function : "";
    size_t room = strlen(function) * 4 + 1;
    char *name = xmalloc(room);
    utf8_escape(name, room, function, strlen(function));
    char took[40] = "";
    if (hit->took_ns)
        snprintf(took, sizeof took, "\t" TOOK "%" PRIu64, hit->took_ns);
    char *more = xasprintf("%s%s%s%s", hit->still_running ? "\t" RUNNING : "", took, *name ? "\t" FUNCTION : "", name);
    free(name);
    return more;
}

/* Up to the number of the snapshot; from malloc. */
static char *row_of(const struct snapshot_hit *hit)
{
    size_t room = strlen(hit->trigger) * 4 + 1;
    char *name = xmalloc(room);
    utf8_escape(name, room, hit->trigger, strlen(hit->trigger));
    char *row = xasprintf("%" PRIu64 "\t%ld\t%s\t%" PRIx64 "\t%" PRIx64 "\t%" PRIx64 "\t%" PRIu64 "\t", hit->time_ns,
                          (long)hit->tid, name, hit->address, hit->arg1, hit->arg2, hit->duration_ns);
    free(name);
    return row;
}

static char *hit_line(const struct snapshot_hit *hit)
{
    char *row = row_of(hit), *more = more_of(hit);
    char *line = xasprintf("%s%u%s\n", row, hit->snapshot, more);
    free(more);
    free(row);
    return line;
}

/* Behind what is there; flags of open(2). The header of hits.tsv stands in front where there is nothing yet. */
static int write_row(const char *path, int flags, const char *head, const char *row, struct err *err)
{
    int rc = 0;
    struct stat st;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    if (fd < 0 || fstat(fd, &st) < 0) {
        rc = err_errno(err, errno, "cannot write %s", path);
    } else {
        char *line = xasprintf("%s%s", st.st_size == 0 ? head : "", row);
        if (write_all(fd, line, strlen(line)) < 0)
            rc = err_errno(err, errno, "cannot write %s", path);
        free(line);
    }
    if (fd >= 0)
        close(fd);
    return rc;
}

int snapshot_dir_open_hit(struct snapshot_dir *d, const struct snapshot_hit *hit, struct err *err)
{
    char *hits = xasprintf("%s/" STEP_ORPHAN_HITS, snapshot_dir_path(d));
    char *path = xasprintf("%s/" STEP_ORPHAN_HIT, snapshot_dir_path(d)), *before = row_of(hit), *behind = more_of(hit);
    char *row = xasprintf("%s\n%s", before, behind);
    int rc = write_row(hits, O_APPEND, header, "", err);
    if (rc == 0)
        rc = write_row(path, O_TRUNC, "", row, err);
    free(row);
    free(behind);
    free(before);
    free(path);
    free(hits);
    return rc;
}

int snapshot_dir_add_hit(struct snapshot_dir *d, const struct snapshot_hit *hit, struct err *err)
{
    char *path = xasprintf("%s/" STEP_ORPHAN_HITS, snapshot_dir_path(d)), *line = hit_line(hit);
    int rc = write_row(path, O_APPEND, header, line, err);
    free(line);
    free(path);
    return rc;
}

void snapshot_dir_close_hit(struct snapshot_dir *d)
{
    char *path = xasprintf("%s/" STEP_ORPHAN_HIT, snapshot_dir_path(d));
    unlink(path);
    free(path);
}

static bool parse_number(const char *s, int base, uint64_t max, uint64_t *value)
{
    if (!*s || strspn(s, base == 16 ? "0123456789abcdef" : "0123456789") != strlen(s))
        return false;
    errno = 0;
    unsigned long long v = strtoull(s, NULL, base);
    if (errno || v > max)
        return false;
    *value = v;
    return true;
}

/* The function stays in the line. */
static bool parse_more(char *rest, struct snapshot_hit *hit)
{
    for (char *field; (field = strsep(&rest, "\t"));) {
        if (strcmp(field, RUNNING) == 0)
            hit->still_running = true;
        else if (strncmp(field, TOOK, strlen(TOOK)) == 0 &&
                 parse_number(field + strlen(TOOK), 10, UINT64_MAX, &hit->took_ns))
            ;
        else if (strncmp(field, FUNCTION, strlen(FUNCTION)) == 0)
            utf8_unescape(hit->function = field + strlen(FUNCTION));
        else
            return false;
    }
    return true;
}

static bool parse_line(char *line, struct snapshot_hit *hit)
{
    char *col[COLUMNS];
    char *rest = line;
    for (int i = 0; i < COLUMNS; i++) {
        col[i] = strsep(&rest, "\t");
        if (!col[i])
            return false;
    }
    uint64_t tid, snapshot;
    struct snapshot_hit h = {0};
    if (!parse_more(rest, &h) || !parse_number(col[0], 10, UINT64_MAX, &h.time_ns) ||
        !parse_number(col[1], 10, INT32_MAX, &tid) ||
        !parse_number(col[3], 16, UINT64_MAX, &h.address) ||
        !parse_number(col[4], 16, UINT64_MAX, &h.arg1) ||
        !parse_number(col[5], 16, UINT64_MAX, &h.arg2) ||
        !parse_number(col[6], 10, UINT64_MAX, &h.duration_ns) ||
        !parse_number(col[7], 10, UINT32_MAX, &snapshot))
        return false;
    h.tid = (pid_t)tid;
    h.snapshot = (unsigned)snapshot;
    utf8_unescape(col[2]);
    h.trigger = xstrdup(col[2]);
    h.function = h.function ? xstrdup(h.function) : NULL;
    *hit = h;
    return true;
}

static int by_time(const void *a, const void *b)
{
    const struct snapshot_hit *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? -1 : 1;
    return (x->tid > y->tid) - (x->tid < y->tid);
}

static uint64_t begin_of(const struct snapshot_hit *h)
{
    return h->time_ns - h->duration_ns;
}

/* The hits of one call stand together. */
static int by_call(const void *a, const void *b)
{
    const struct snapshot_hit *x = a, *y = b;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (begin_of(x) != begin_of(y))
        return begin_of(x) < begin_of(y) ? -1 : 1;
    int rc = strcmp(x->trigger, y->trigger);
    return rc ? rc : by_time(a, b);
}

static bool is_return_of(const struct snapshot_hit *h, const struct snapshot_hit *running)
{
    return running->still_running && !running->took_ns && !h->still_running && h->duration_ns && h->tid == running->tid &&
           begin_of(h) == begin_of(running) && strcmp(h->trigger, running->trigger) == 0;
}

/* A call that was a hit while it was running and then returned is one hit. */
static size_t join_returns(struct snapshot_hit *hits, size_t n)
{
    size_t kept = 0;
    qsort(hits, n, sizeof *hits, by_call);
    for (size_t i = 0; i < n; i++) {
        if (kept && is_return_of(&hits[i], &hits[kept - 1])) {
            hits[kept - 1].took_ns = hits[i].duration_ns;
            free(hits[i].trigger);
            free(hits[i].function);
        } else {
            hits[kept++] = hits[i];
        }
    }
    return kept;
}

/* All of them into a new file, which then takes the place of the old one. */
static int write_hits(const char *path, const struct snapshot_hit *hits, size_t n, struct err *err)
{
    char *temporary = xasprintf("%s.new", path);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    bool ok = f && fputs(header, f) >= 0;
    for (size_t i = 0; ok && i < n; i++) {
        char *line = hit_line(&hits[i]);
        ok = fputs(line, f) >= 0;
        free(line);
    }
    int cause = errno;
    if (f && fclose(f) != 0 && ok) {
        ok = false;
        cause = errno;
    } else if (!f && fd >= 0) {
        close(fd);
    }
    if (ok && rename(temporary, path) < 0) {
        ok = false;
        cause = errno;
    }
    int rc = ok ? 0 : err_errno(err, cause, "cannot write %s", temporary);
    if (!ok)
        (void)unlink(temporary);
    free(temporary);
    return rc;
}

int snapshot_dir_read_hits(const struct snapshot_dir *d, struct snapshot_hit **out, size_t *n,
                           size_t *bad_lines, struct err *err)
{
    char *path = xasprintf("%s/hits.tsv", snapshot_dir_path(d));
    FILE *f = fopen(path, "re");
    if (!f && errno != ENOENT) {
        int rc = err_errno(err, errno, "cannot read %s", path);
        free(path);
        return rc;
    }
    VEC(struct snapshot_hit) hits = {0};
    size_t bad = 0, size = 0;
    char *line = NULL;
    bool first = true, no_memory = false;
    for (ssize_t len; f && !no_memory && (len = getline(&line, &size, f)) > 0; first = false) {
        struct snapshot_hit hit;
        if (first && strcmp(line, header) == 0)
            continue;
        /* The last line may be cut when the writer was killed: without its end it is not used. */
        if (line[len - 1] != '\n' || memchr(line, '\0', (size_t)len)) {
            bad++;
            continue;
        }
        line[len - 1] = '\0';
        if (!parse_line(line, &hit)) {
            bad++;
        } else if (!vec_try_push(&hits, hit)) {
            free(hit.trigger);
            free(hit.function);
            no_memory = true;
        }
    }
    free(line);
    if (f)
        fclose(f);
    int rc = 0;
    if (no_memory) {
        snapshot_dir_free_hits(hits.data, hits.len);
        rc = err_set(err, MTUI_E_NOMEM, "%s is too big for the memory at hand", path);
    } else {
        /* A hit is written when its snapshot is known, so later ones may stand before it. */
        if (hits.len)
            hits.len = join_returns(hits.data, hits.len);
        if (hits.len)
            qsort(hits.data, hits.len, sizeof *hits.data, by_time);
        *out = hits.data;
        *n = hits.len;
        if (bad_lines)
            *bad_lines = bad;
    }
    free(path);
    return rc;
}

int snapshot_dir_sort_hits(struct snapshot_dir *d, struct err *err)
{
    struct snapshot_hit *hits;
    size_t n, bad;
    int rc = snapshot_dir_read_hits(d, &hits, &n, &bad, err);
    if (rc < 0 || n == 0)
        return rc;
    char *path = xasprintf("%s/hits.tsv", snapshot_dir_path(d));
    if (bad == 0) /* a line that cannot be read has no place in the order; it is not thrown away */
        rc = write_hits(path, hits, n, err);
    free(path);
    snapshot_dir_free_hits(hits, n);
    return rc;
}

char *snapshot_hit_text(char *out, size_t size, const char *trigger, const char *function)
{
    if (function)
        (void)snprintf(out, size, "%.300s (%.200s)", function, trigger);
    else
        (void)snprintf(out, size, "%s", trigger);
    return out;
}

void snapshot_dir_free_hits(struct snapshot_hit *hits, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(hits[i].trigger);
        free(hits[i].function);
    }
    free(hits);
}
