#include "decode/export/export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/fmt.h"
#include "core/session/snapshot_dir.h"
#include "decode/export/export_priv.h"

static const struct {
    const char *name;
    int (*write)(const struct export_job *j, struct err *err);
} formats[] = {
    [EXPORT_SPANS] = {"spans", export_spans}, [EXPORT_FUNCTIONS] = {"functions", export_functions},
    [EXPORT_GAPS] = {"gaps", export_gaps},    [EXPORT_MARKS] = {"marks", export_marks},
    [EXPORT_JSON] = {"json", export_json},    [EXPORT_FOLDED] = {"folded", export_folded},
    [EXPORT_FXT] = {"fxt", export_fxt},
};

int export_parse_format(const char *name, enum export_format *format, struct err *err)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(name, formats[i].name) == 0) {
            *format = (enum export_format)i;
            return 0;
        }
    return err_set(err, MTUI_E_INVAL,
                   "unknown format \"%s\": say spans, functions, gaps, marks, json, folded or fxt",
                   name);
}

/* "1234567" or "+5ms", len bytes; empty: not given. */
static int parse_time(const char *s, size_t len, struct export_time *out, struct err *err)
{
    char text[48];
    struct export_time t = {.given = len > 0, .relative = len > 0 && s[0] == '+'};
    int rc = 0;
    if (len >= sizeof text)
        return err_set(err, MTUI_E_INVAL, "a time of %zu characters", len);
    memcpy(text, s, len);
    text[len] = '\0';
    if (t.relative && strcmp(text, "+0") != 0)
        rc = fmt_parse_duration(text + 1, &t.ns, err);
    else if (t.given && !t.relative)
        rc = fmt_parse_u64(text, 0, UINT64_MAX, &t.ns, err);
    if (rc == 0)
        *out = t;
    return rc;
}

int export_parse_range(const char *range, struct export_options *options, struct err *err)
{
    const char *colon = strchr(range, ':');
    struct export_time from, to;
    if (!colon)
        return err_set(err, MTUI_E_INVAL,
                       "range \"%s\": say FROM:TO, in nanoseconds or as +DURATION from the start",
                       range);
    int rc = parse_time(range, (size_t)(colon - range), &from, err);
    if (rc == 0)
        rc = parse_time(colon + 1, strlen(colon + 1), &to, err);
    if (rc < 0) {
        err_prefix(err, "range \"%s\"", range);
        return rc;
    }
    options->from = from;
    options->to = to;
    return 0;
}

static uint64_t resolve(const struct export_time *t, const struct trace *trace, uint64_t absent)
{
    uint64_t ns = t->ns;
    if (!t->given)
        return absent;
    if (t->relative && __builtin_add_overflow(trace_info(trace)->first_ns, ns, &ns))
        return UINT64_MAX;
    return ns;
}

bool export_has_gap(const struct export_job *j, const struct gap *g)
{
    return (!j->tid || !g->tid || g->tid == j->tid) && gap_touches(g, j->from_ns, j->to_ns);
}

bool export_has_mark(const struct export_job *j, const struct mark *m)
{
    return (!j->tid || !m->tid || m->tid == j->tid) && m->time_ns >= j->from_ns &&
           m->time_ns < j->to_ns;
}

const char *export_flags(unsigned flags, char out[8])
{
    size_t n = 0;
    for (unsigned i = 0; i < 6; i++)
        if (flags >> i & 1)
            out[n++] = "setgpo"[i];
    if (n == 0)
        out[n++] = '-';
    out[n] = '\0';
    return out;
}

int export_write(FILE *file, const struct trace *t, const struct sample_log *log,
                 const struct export_options *options, struct err *err)
{
    struct export_job j = {.trace = t,
                           .log = log,
                           .options = options,
                           .thread = -1,
                           .tid = options->tid,
                           .from_ns = resolve(&options->from, t, 0),
                           .to_ns = resolve(&options->to, t, UINT64_MAX)};
    if (j.from_ns > j.to_ns)
        return err_set(err, MTUI_E_INVAL, "the range ends before it begins");
    if (j.tid && (j.thread = trace_find_thread(t, j.tid)) < 0)
        return err_set(err, MTUI_E_NOENT, "no thread %d in this recording", (int)j.tid);
    j.out = export_out_new(file, options->gzip);
    int rc = formats[options->format].write(&j, err);
    int end = export_out_end(j.out, rc ? NULL : err);
    return rc ? rc : end;
}

static bool holds_perf_data(const char *path)
{
    char magic[8] = "";
    FILE *f = fopen(path, "re");
    bool is = f && fread(magic, 1, sizeof magic, f) == sizeof magic &&
              (!memcmp(magic, "PERFILE2", 8) || !memcmp(magic, "2ELIFREP", 8));
    if (f)
        (void)fclose(f);
    return is;
}

/* In the directory of a recording, or below it. */
static bool is_part_of(const char *path, const char *recording)
{
    char *real = realpath(path, NULL), *dir = realpath(recording, NULL);
    size_t n = dir ? strlen(dir) : 0;
    bool part = real && dir && snapshot_dir_is(dir) && strncmp(real, dir, n) == 0 && real[n] == '/';
    free(real);
    free(dir);
    return part;
}

int export_check_output(const char *out, const char *in, struct err *err)
{
    struct stat to, from;
    if (strcmp(out, "-") == 0 || stat(out, &to) != 0 || !S_ISREG(to.st_mode))
        return 0;
    bool itself = stat(in, &from) == 0 && to.st_dev == from.st_dev && to.st_ino == from.st_ino;
    if (!itself && !is_part_of(out, in) && !holds_perf_data(out))
        return 0;
    return err_set(err, MTUI_E_STATE,
                   "%s belongs to a recording, and mtui overwrites none: name another file", out);
}

static bool ends_in_gz(const char *path)
{
    size_t n = strlen(path);
    return n > 3 && strcmp(path + n - 3, ".gz") == 0;
}

int export_to_path(const char *path, const struct trace *t, const struct sample_log *log,
                   const struct export_options *options, struct err *err)
{
    struct export_options o = *options;
    if (strcmp(path, "-") == 0)
        return export_write(stdout, t, log, &o, err);
    o.gzip |= ends_in_gz(path);
    FILE *f = fopen(path, "we");
    if (!f)
        return err_errno(err, errno, "%s", path);
    int rc = export_write(f, t, log, &o, err);
    if (fclose(f) != 0 && rc == 0)
        rc = err_errno(err, errno, "%s", path);
    else if (rc < 0)
        err_prefix(err, "%s", path);
    return rc;
}
