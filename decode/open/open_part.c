/* A recording as far as it is decoded: parts for those who want to look meanwhile, and the end when decoding
 * was stopped. A part is a fork of what the decoder has filled, at times that double and never take
 * more than a fifth of the whole. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "decode/open/open_find.h"
#include "decode/open/open_marks.h"
#include "decode/open/open_priv.h"

#define LOOK_MS 100
#define PART_SHARE 4 /* so many times as long as a part took, there is none */

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool open_enough(const struct open_context *c)
{
    return c->options->enough && atomic_load_explicit(c->options->enough, memory_order_relaxed);
}

void open_part_begin(struct open_context *c)
{
    c->part_wait_ns = c->options->part_ns ? c->options->part_ns : OPEN_PART_NS;
    c->part_next_ns = now_ns() + c->part_wait_ns;
}

bool open_part_due(const struct open_context *c)
{
    return c->options->part && !open_enough(c) && !open_cancelled(c) && now_ns() >= c->part_next_ns;
}

int open_part_wait_ms(const struct open_context *c)
{
    uint64_t now = now_ns();
    if (!c->options->part || now >= c->part_next_ns)
        return LOOK_MS;
    uint64_t ms = (c->part_next_ns - now) / 1000000u + 1;
    return ms < LOOK_MS ? (int)ms : LOOK_MS;
}

/* ---- A trace of what is in a builder ---- */

int open_finish_trace(struct open_context *c, struct trace_builder *b,
                      const struct sample_log_account *a, bool exact, struct trace **out,
                      struct err *err)
{
    struct trace_info info = {.first_ns = a->first_ns,
                              .last_ns = a->last_ns,
                              .sampled = !exact,
                              .period_ns = a->period_ns,
                              .instructions = c->instructions,
                              .input_bytes = c->input_bytes,
                              .trace_bytes = c->trace_bytes,
                              .decoded_bytes = c->decoded_bytes,
                              .repeated_bytes = c->repeated_bytes,
                              .recorder = !exact            ? "sample"
                                          : c->instructions ? "step"
                                                            : "pt",
                              .partial = c->partial};
    if (c->found->dir && !c->options->branch) { /* the list of branches leaves the trace empty */
        uint64_t first = a->first_ns, last = a->last_ns;
        trace_builder_times(b, &first, &last);
        open_marks(c, c->found->dir, c->found->snapshots, c->found->nsnapshots, first, last, b);
        if (c->instructions)
            open_window_marks(c, c->found->dir, first, last, b);
    }
    trace_builder_set_info(b, &info);
    return trace_builder_finish(b, out, err);
}

static struct recording *make(struct open_context *c, struct trace_builder *b,
                              const struct sample_log_account *a, bool exact)
{
    struct recording *r = xcalloc(1, sizeof *r);
    const char *partial = c->partial;
    c->partial = partial ? partial : "decoding has not come to its end";
    int rc = open_finish_trace(c, b, a, exact, &r->trace, NULL);
    c->partial = partial;
    if (rc == 0 && c->options->pyramid)
        rc = pyramid_new(&r->pyramid, r->trace, c->options->cancel, NULL);
    if (rc < 0) { /* short of memory, or cancelled: the decoder will see for itself */
        recording_free(r);
        return NULL;
    }
    r->nsnapshots = c->found->nsnapshots;
    r->snapshots = r->nsnapshots ? xcalloc(r->nsnapshots, sizeof *r->snapshots) : NULL;
    if (r->nsnapshots)
        memcpy(r->snapshots, c->found->snapshots, r->nsnapshots * sizeof *r->snapshots);
    return r;
}

void open_part(struct open_context *c, struct trace_builder *b, const struct sample_log_account *a)
{
    static const struct sample_log_account none;
    uint64_t began_ns = now_ns();
    c->in_part = true;
    struct recording *r = make(c, b, a ? a : &none, !a);
    c->in_part = false;
    trace_builder_free(b);
    uint64_t now = now_ns(), least_ns = PART_SHARE * (now - began_ns);
    c->part_wait_ns *= 2;
    if (!c->options->part_ns && c->part_wait_ns < least_ns)
        c->part_wait_ns = least_ns;
    c->part_next_ns = now + c->part_wait_ns;
    if (r)
        c->options->part(c->options->part_arg, r);
}

/* How far the samples will go if those to come are as dense in the file as those read. */
static uint64_t expected_end(const struct sample_log_account *a, uint64_t rest, uint64_t total)
{
    double part = total > rest ? (double)rest / (double)(total - rest) : 0;
    return a->last_ns + (uint64_t)(part * (double)(a->last_ns - a->first_ns));
}

void open_part_samples(struct open_context *c, uint64_t rest, uint64_t total)
{
    struct trace_builder *b = trace_builder_new(NULL);
    struct sample_log_account a = {0};
    if (sample_log_build(c->log, b, c->functions, &a, NULL) < 0 || a.samples == 0) {
        trace_builder_free(b);
        return;
    }
    trace_builder_functions(b, functions_share(c->functions));
    c->spans = trace_builder_spans(b);
    open_not_decoded(c, b, 0, a.last_ns, total ? expected_end(&a, rest, total) : a.last_ns, rest);
    open_part(c, b, &a);
}

/* ---- What was not decoded ---- */

void open_not_decoded(struct open_context *c, struct trace_builder *b, pid_t tid, uint64_t from_ns,
                      uint64_t to_ns, uint64_t bytes)
{
    struct gap g = {.tid = tid,
                    .start_ns = from_ns,
                    .end_ns = to_ns,
                    .bytes = bytes,
                    .cause = GAP_NOT_DECODED,
                    .detail = open_enough(c) ? "not decoded: cancelled" : "not decoded yet"};
    trace_builder_gap(b, &g);
}

void open_note_stopped(struct open_context *c, uint64_t rest, uint64_t total)
{
    char a[FMT_MAX], b[FMT_MAX];
    if (total)
        open_note(c, "decoding was stopped: %s of %s were not decoded", fmt_size(a, rest),
                  fmt_size(b, total));
    else
        open_note(c, "reading was stopped: what came after it is not shown");
    char *said = c->notes.data[c->notes.len - 1];
    for (size_t i = c->notes.len - 1; i > 0; i--)
        c->notes.data[i] = c->notes.data[i - 1];
    c->notes.data[0] = said;
    c->partial = said;
}
