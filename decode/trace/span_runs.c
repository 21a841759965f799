#include "decode/trace/span_runs.h"

struct span_runs span_runs_start(const struct thread_builder *t, const struct trace_pause *until)
{
    struct span_runs r = {.t = t, .chunk = t->first, .at = t->taken};
    if (until) {
        r.end_chunk = until->chunk;
        r.end = until->used - until->shown;
    }
    return r;
}

static size_t end_of(const struct span_runs *r)
{
    return r->chunk == r->end_chunk ? r->end : r->chunk->used;
}

bool span_runs_next(struct span_runs *r, struct span_run *out)
{
    const struct thread_builder *t = r->t;
    while (r->chunk && r->at == end_of(r)) {
        if (r->chunk == r->end_chunk || !r->chunk->next)
            return false;
        r->chunk = r->chunk->next;
        r->at = 0;
    }
    if (!r->chunk)
        return false;
    *out = (struct span_run){.spans = r->chunk->spans + r->at};
    while (!r->left) {
        const struct stretch *st = r->stretch < t->stretches.len ? &t->stretches.data[r->stretch] : &t->now;
        out->begins |= r->stretch > 0 || !st->gone;
        r->stretch++;
        r->left = st->spans - st->gone;
        r->floor = st->floor;
    }
    out->n = end_of(r) - r->at;
    if (out->n > r->left)
        out->n = (size_t)r->left;
    out->floor = r->floor;
    r->at += out->n;
    r->left -= out->n;
    return true;
}

const struct span *span_runs_open(const struct thread_builder *t, size_t *at)
{
    while (*at < t->stack.len && !t->stack.data[*at].span)
        ++*at;
    return *at < t->stack.len ? t->stack.data[(*at)++].span : NULL;
}
