/* From the Record screen to the Timeline: snapshots as far as they are decoded, and recordings by path. */
#include <limits.h>
#include <stdio.h>

#include "tui/cli/cmd_open.h"
#include "tui/record/v_record_priv.h"

void v_record_open_path(struct record *r, const char *path)
{
    struct cli c = {.path = path};
    struct err err;
    if (!path || !*path) {
        model_error(r->m, "open what? :open PATH");
        return;
    }
    cmd_open_end(r->opening);
    r->opening = NULL;
    r->opened = UINT_MAX;
    if (cmd_open_begin(&c, r->m, &r->opening, &err) < 0)
        model_error(r->m, "%s", err.text);
    else
        model_go(r->m, "timeline");
}

static void name_of(unsigned number, char out[64])
{
    if (number)
        snprintf(out, 64, "snap %u", number);
    else
        snprintf(out, 64, "snap end");
}

static void stop(void *arg)
{
    struct record *r = arg;
    decode_queue_stop(r->decode, r->opened);
}

void v_record_tell_progress(struct record *r)
{
    struct model_loading loading = {.active = false};
    if (r->opened != UINT_MAX) {
        struct decode_result d = decode_queue_result(r->decode, r->opened);
        loading = (struct model_loading){.active = d.state == DECODE_RUNNING,
                                         .percent = d.permille / 10,
                                         .finishing = d.finishing,
                                         .spans = d.spans,
                                         .part = true,
                                         .stopping = d.stopping,
                                         .cancel = stop,
                                         .cancel_arg = r};
        name_of(r->opened, loading.what);
    }
    model_set_loading(r->m, &loading);
}

/* What there is of a snapshot: anew, or more of what is shown. */
static void show(struct record *r, unsigned number, const struct decode_result *d)
{
    char label[64];
    bool more = r->opened == number && r->m->trace == r->opened_trace;
    void *held = decode_queue_hold(r->decode, number);
    name_of(number, label);
    r->opened = number;
    r->opened_trace = d->trace;
    v_record_tell_progress(r); /* the views look at it when they are told of the trace */
    if (more)
        model_grow_trace(r->m, d->trace, d->pyramid, decode_queue_release, held);
    else
        model_set_indexed_trace(r->m, d->trace, d->pyramid, label, decode_queue_release, held);
    if (d->state != DECODE_RUNNING)
        r->opened = UINT_MAX;
}

void v_record_open(struct record *r, unsigned number)
{
    struct decode_result d = decode_queue_result(r->decode, number);
    if (d.state == DECODE_FAILED) {
        r->open_next = UINT_MAX;
        model_error(r->m, "%s", d.sentence);
        return;
    }
    if (!d.trace) {
        decode_queue_add(r->decode, snapshot_dir_path(session_dir(r->session)), number);
        r->open_next = number;
        model_say(r->m, "opens as soon as some of it is decoded");
        return;
    }
    r->open_next = UINT_MAX;
    cmd_open_end(r->opening);
    r->opening = NULL;
    show(r, number, &d);
    model_go(r->m, "timeline");
}

/* The snapshot that the timeline has a part of. */
static void follow(struct record *r)
{
    struct decode_result d = decode_queue_result(r->decode, r->opened);
    if (r->m->trace != r->opened_trace || !d.trace) { /* left, deleted, or failed in the middle */
        r->opened = UINT_MAX;
        v_record_tell_progress(r);
        if (d.state == DECODE_FAILED)
            model_error(r->m, "%s", d.sentence);
    } else if (d.trace != r->opened_trace || d.state != DECODE_RUNNING) {
        show(r, r->opened, &d);
    }
}

void v_record_decoded(struct record *r)
{
    if (r->open_next != UINT_MAX) {
        struct decode_result d = decode_queue_result(r->decode, r->open_next);
        if (d.trace || d.state == DECODE_FAILED)
            v_record_open(r, r->open_next);
    } else if (r->opened != UINT_MAX) {
        follow(r);
    }
}
