/* Fuzz target: hostile text of `perf script`, through parser, log and trace; what comes out must
 * keep every invariant of a trace. */
#include <stdint.h>
#include <stdlib.h>

#include "decode/perf_text.h"
#include "decode/text_log.h"
#include "decode/trace.h"
#include "lib_seeds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct functions *f = functions_new();
    struct sample_log *log = sample_log_new();
    struct text_log *t = text_log_new(f, log);
    struct perf_text *p = perf_text_new(text_log_event, t);
    size_t half = size / 3; /* in two pieces, so that lines are joined too */
    if (perf_text_feed(p, (const char *)data, half) ||
        perf_text_feed(p, (const char *)data + half, size - half) || perf_text_end(p))
        abort();
    struct trace_builder *b = trace_builder_new(f);
    struct sample_log_account account;
    struct trace *trace = NULL;
    if (sample_log_build(log, b, f, &account, NULL) || trace_builder_finish(b, &trace, NULL) ||
        trace_check(trace, NULL))
        abort();
    trace_free(trace);
    trace_builder_free(b);
    perf_text_free(p);
    text_log_free(t);
    sample_log_free(log);
    return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    seeds_write(seeds_perftext);
    return 0;
}
