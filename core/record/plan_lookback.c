#include "core/record/plan.h"

/* What a sample takes: its header and registers of time and place, and its stack: some 30 frames of 8
 * bytes; with DWARF the 8 KiB of stack that perf copies; 32 branches of 24 bytes. */
#define SAMPLE_FP_BYTES    320u
#define SAMPLE_DWARF_BYTES 8700u
#define SAMPLE_LBR_BYTES   850u
/* Intel PT with branches and time makes 100 to 300 MB a second on a busy CPU. */
#define PT_BYTES_PER_S 200000000u

uint64_t plan_lookback_ns(const struct record_plan *plan)
{
    double per_s = PT_BYTES_PER_S;
    if (plan->recorder == PLAN_STEP || plan->mode == PLAN_WHOLE)
        return 0;
    if (plan->recorder == PLAN_SAMPLE) {
        unsigned sample = plan->call_graph == PLAN_CALL_GRAPH_DWARF ? SAMPLE_DWARF_BYTES
                          : plan->call_graph == PLAN_CALL_GRAPH_LBR ? SAMPLE_LBR_BYTES
                                                                    : SAMPLE_FP_BYTES;
        per_s = (double)sample * (plan->freq_hz ? plan->freq_hz : PLAN_DEFAULT_FREQ_HZ);
    }
    return (uint64_t)((double)plan_ring_bytes(plan, NULL) * 1e9 / per_s);
}
