#include "tui/cli/cmd_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "decode/open/open.h"

#define PROGRESS_NS 100000000u

struct cmd_opening {
    struct model *m;
    const struct trace *shown; /* the part that the model has from here, or NULL */
    bool stopping;
    struct open_job *job; /* NULL: done */
    char what[64];
    int timer;
    int stdin_fd; /* what was standard input, for "-"; −1 otherwise */
    bool over;    /* nobody wants the result */
};

unsigned cmd_open_snapshot(const struct cli *c)
{
    return c->which == CLI_SNAPSHOT_ALL      ? OPEN_ALL
           : c->which == CLI_SNAPSHOT_NUMBER ? c->snapshot
                                             : OPEN_LAST;
}

static void cancel(void *arg)
{
    struct cmd_opening *o = arg;
    o->stopping = true;
    if (o->job)
        open_job_enough(o->job);
}

static void tell_progress(struct cmd_opening *o)
{
    struct model_loading loading = {.active = true, .cancel = cancel, .cancel_arg = o};
    struct open_progress p = open_job_progress(o->job);
    loading.percent = p.total ? (unsigned)(p.done * 100 / p.total) : 0;
    loading.finishing = open_is_finishing(&p);
    loading.endless = p.total == 0 && p.done > 0;
    loading.read_bytes = loading.endless ? p.done : 0;
    loading.spans = p.spans;
    loading.stopping = o->stopping;
    loading.part = o->shown && o->m->trace == o->shown;
    snprintf(loading.what, sizeof loading.what, "%.50s", o->what);
    model_set_loading(o->m, &loading);
}

static void show_progress(void *arg)
{
    struct cmd_opening *o = arg;
    tell_progress(o);
    o->timer = loop_add_timer(o->m->loop, loop_now_ns(o->m->loop) + PROGRESS_NS, show_progress, o);
}

static void free_opening(struct cmd_opening *o)
{
    if (o->stdin_fd >= 0)
        close(o->stdin_fd);
    free(o);
}

static void release(void *arg)
{
    recording_free(arg);
}

static void label(const struct recording *r, char out[64], const char *what)
{
    if (r->nsnapshots == 1 && r->snapshots[0])
        snprintf(out, 64, "snap %u", r->snapshots[0]);
    else if (r->nsnapshots == 1)
        snprintf(out, 64, "snap end");
    else if (r->nsnapshots > 1)
        snprintf(out, 64, "%zu snaps", r->nsnapshots);
    else
        snprintf(out, 64, "%s", what);
}

/* Into the timeline, the first time anew, then as more of the same. Whoever has gone on to another trace
 * meanwhile is left alone. */
static void show(struct cmd_opening *o, struct recording *r)
{
    char text[64];
    if (!o->shown) {
        label(r, text, o->what);
        model_set_indexed_trace(o->m, r->trace, r->pyramid, text, release, r);
    } else if (o->m->trace == o->shown) {
        model_grow_trace(o->m, r->trace, r->pyramid, release, r);
    } else {
        recording_free(r);
        return;
    }
    o->shown = r->trace;
}

static void part(void *arg, struct recording *r)
{
    struct cmd_opening *o = arg;
    if (o->over) {
        recording_free(r);
        return;
    }
    o->m->loading.part = true; /* for those who are told of the trace */
    show(o, r);
    tell_progress(o);
}

static void done(void *arg, struct recording *r, const struct err *err)
{
    struct cmd_opening *o = arg;
    struct model_loading loading = {.active = false};
    o->job = NULL;
    if (o->over) {
        recording_free(r);
        return;
    }
    loop_remove(o->m->loop, o->timer);
    if (!r)
        snprintf(loading.failed, sizeof loading.failed, "%s", err->text);
    model_set_loading(o->m, &loading);
    if (!r) {
        model_error(o->m, "%s", err->text);
        return;
    }
    if (r->nnotes)
        model_warn(o->m, "%s", r->notes[0]);
    show(o, r);
}

/* "-": keys come from the terminal, so what was standard input moves to another descriptor. */
static int take_stdin(struct cmd_opening *o, struct err *err)
{
    int tty = open("/dev/tty", O_RDWR | O_CLOEXEC);
    if (tty < 0)
        return err_set(err, MTUI_E_NOTSUP,
                       "standard input is the recording, and there is no terminal for the keys");
    o->stdin_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    dup2(tty, STDIN_FILENO);
    close(tty);
    return 0;
}

int cmd_open_begin(struct cli *c, struct model *m, struct cmd_opening **out, struct err *err)
{
    struct cmd_opening *o = xcalloc(1, sizeof *o);
    const char *slash = strrchr(c->path, '/');
    o->m = m;
    o->stdin_fd = -1;
    snprintf(o->what, sizeof o->what, "%.50s",
             strcmp(c->path, "-") == 0 ? "standard input"
             : slash && slash[1]       ? slash + 1
                                       : c->path);
    int rc = open_check_path(c->path, err);
    if (rc == 0 && strcmp(c->path, "-") == 0)
        rc = take_stdin(o, err);
    if (rc < 0) {
        free_opening(o);
        return rc;
    }
    struct open_options options = {
        .snapshot = cmd_open_snapshot(c),
        .symfs = c->symfs,
        .threads = c->threads,
        .libipt = c->decoder == CLI_DECODER_LIBIPT,
        .stdin_fd = o->stdin_fd,
        .pyramid = true,
        .part = part,
        .part_arg = o,
    };
    o->job = open_start(m->loop, c->path, &options, done, o);
    show_progress(o);
    *out = o;
    return 0;
}

void cmd_open_end(struct cmd_opening *o)
{
    if (!o)
        return;
    loop_remove(o->m->loop, o->timer);
    o->over = true;
    if (o->job) {
        o->m->loading.active = false;
        open_job_cancel(o->job);
    }
    while (o->job) /* a moment */
        loop_run_once(o->m->loop, -1);
    free_opening(o);
}
