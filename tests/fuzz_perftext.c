/* Fuzz target: hostile text of `perf script`, through parser, log of samples, stacks of branches, and the
 * traces of both; what comes out must keep every invariant of a trace. */
#include <stdint.h>
#include <stdlib.h>

#include "decode/text/perf_text.h"
#include "decode/text/text_flow.h"
#include "decode/text/text_log.h"
#include "decode/trace/trace.h"
#include "lib_seeds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* In two pieces, so that lines are joined too. */
static void feed(perf_text_fn *fn, void *arg, const uint8_t *data, size_t size)
{
    struct perf_text *p = perf_text_new(fn, arg);
    size_t third = size / 3;
    if (perf_text_feed(p, (const char *)data, third) ||
        perf_text_feed(p, (const char *)data + third, size - third) || perf_text_end(p))
        abort();
    perf_text_free(p);
}

static void finish(struct trace_builder *b)
{
    struct trace *trace = NULL;
    if (trace_builder_finish(b, &trace, NULL) || trace_check(trace, NULL))
        abort();
    trace_free(trace);
    trace_builder_free(b);
}

static void samples(const uint8_t *data, size_t size)
{
    struct functions *f = functions_new();
    struct sample_log *log = sample_log_new();
    struct text_log *t = text_log_new(f, log);
    struct sample_log_account account;
    feed(text_log_event, t, data, size);
    struct trace_builder *b = trace_builder_new(f);
    if (sample_log_build(log, b, f, &account, NULL))
        abort();
    finish(b);
    text_log_free(t);
    sample_log_free(log);
}

static void branches(const uint8_t *data, size_t size)
{
    struct functions *f = functions_new();
    struct trace_builder *b = trace_builder_new(f);
    struct text_flow *t = text_flow_new(b, f);
    feed(text_flow_event, t, data, size);
    if (text_flow_end(t))
        abort();
    text_flow_free(t);
    finish(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    samples(data, size);
    branches(data, size);
    return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    seeds_write(seeds_perftext);
    return 0;
}
