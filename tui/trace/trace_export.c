#include "tui/trace/trace_export.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "decode/export/export.h"
#include "tui/ui/worker.h"

#define PROPOSED_MAX 200

struct trace_export {
    struct model *m;
    const char *format;
    struct worker *worker;
    bool busy;
    pid_t tid; /* 0: all threads */
    const struct trace *trace;
    struct export_options options;
    char path[PATH_MAX];
    int rc;
    struct err err;
};

struct trace_export *trace_export_new(struct model *m, const char *format)
{
    struct trace_export *x = xcalloc(1, sizeof *x);
    x->m = m;
    x->format = format;
    return x;
}

void trace_export_thread(struct trace_export *x, pid_t tid)
{
    x->tid = tid;
}

static void run(void *arg, const atomic_bool *cancel)
{
    struct trace_export *x = arg;
    (void)cancel;
    x->rc = export_to_path(x->path, x->trace, NULL, &x->options, &x->err);
}

static void done(void *arg)
{
    struct trace_export *x = arg;
    struct stat st = {0};
    char size[FMT_MAX];
    worker_stop(x->worker);
    x->worker = NULL;
    x->busy = false;
    if (x->rc < 0) {
        model_error(x->m, "%s", x->err.text);
        return;
    }
    stat(x->path, &st);
    const bool range = x->options.from.given, thread = x->options.tid != 0;
    model_say(x->m, "%s%s written to %s%s", fmt_size(size, (uint64_t)st.st_size),
              st.st_size < 1024 ? " bytes" : "", x->path,
              range && thread ? " (the range A-B of one thread)"
              : range         ? " (the range A-B only)"
              : thread        ? " (one thread only)"
                              : "");
}

void trace_export_finish(struct trace_export *x)
{
    if (x->busy)
        done(x);
}

void trace_export_free(struct trace_export *x)
{
    if (!x)
        return;
    worker_stop(x->worker);
    free(x);
}

static const char *extension(const char *format)
{
    static const char *const own[] = {"json", "fxt", "folded"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(format, own[i]))
            return own[i];
    return "tsv";
}

/* "snap 3" and "functions": snap-3-functions.tsv; "json": snap-3.json */
static void propose_path(const struct trace_export *x, const char *format, char *out, size_t size)
{
    char label[sizeof x->m->trace_label];
    size_t n = 0;
    for (const char *p = x->m->trace_label; *p; p++)
        label[n++] = strchr(" /\\\"'", *p) ? '-' : *p;
    label[n] = '\0';
    const char *name = n ? label : "trace", *ext = extension(format);
    if (strcmp(format, ext) == 0)
        snprintf(out, size, "%s.%s", name, ext);
    else
        snprintf(out, size, "%s-%s.%s", name, format, ext);
}

static void begin(struct trace_export *x, const char *format, const char *path)
{
    struct err err;
    char proposed[PROPOSED_MAX];
    x->options = (struct export_options){.workers = 1, .tid = x->tid};
    if (strcmp(format, "branches") == 0) {
        model_error(x->m, "branches come from the recording: mtui export -f branches DIR");
        return;
    }
    if (export_parse_format(format, &x->options.format, &err) < 0) {
        model_error(x->m, "%s", err.text);
        return;
    }
    if (x->options.format == EXPORT_FOLDED && trace_info(x->m->trace)->sampled) {
        model_error(x->m, "folded stacks of samples come from the recording: mtui export -f folded DIR");
        return;
    }
    propose_path(x, format, proposed, sizeof proposed);
    snprintf(x->path, sizeof x->path, "%s", *path ? path : proposed);
    if (access(x->path, F_OK) == 0) {
        model_error(x->m, "%s is there already: choose another name", x->path);
        return;
    }
    if (x->m->range_end_ns > x->m->range_start_ns) {
        x->options.from = (struct export_time){.given = true, .ns = x->m->range_start_ns};
        x->options.to = (struct export_time){.given = true, .ns = x->m->range_end_ns};
    }
    x->trace = x->m->trace;
    x->busy = true;
    model_say(x->m, "writing %s", x->path);
    x->worker = worker_start(x->m->loop, run, done, x);
}

static void on_line(void *arg, const char *text)
{
    if (text && *text)
        trace_export_action(arg, text);
}

void trace_export_action(struct trace_export *x, const char *arg)
{
    char format[32] = "", initial[400], path[PROPOSED_MAX];
    int used = 0;
    if (!x->m->trace) {
        model_warn(x->m, "no recording is open: there is nothing to export");
    } else if (model_is_growing(x->m)) {
        model_warn(x->m, "decoding goes on: export when it is done, or stop it with ^C");
    } else if (x->busy) {
        model_warn(x->m, "%s is still being written", x->path);
    } else if (!arg || sscanf(arg, " %31s %n", format, &used) < 1) {
        propose_path(x, x->format, path, sizeof path);
        snprintf(initial, sizeof initial, "%s %s", x->format, path);
        model_prompt(x->m, "Export (FORMAT FILE): ", initial, on_line, x);
    } else {
        begin(x, format, arg + used);
    }
}
