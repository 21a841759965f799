#include "decode/perf/sched_switch.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "decode/perf/tracepoint.h"

/* common fields, char prev_comm[16], s32 prev_pid, s32 prev_prio, s64 prev_state, char next_comm[16] */
#define NEXT_PID_OFFSET 56

struct sched_switch {
    VEC(int) events; /* of the file */
    struct tracepoint_field next_pid;
};

struct sched_switch *sched_switch_new(const struct perf_file *f)
{
    struct sched_switch *s = xcalloc(1, sizeof *s);
    size_t len;
    const uint8_t *data = perf_file_tracing_data(f, &len);
    uint64_t id = 0;
    bool described = data && tracepoint_find(data, len, "sched", "sched_switch", &id) &&
                     tracepoint_find_field(data, len, "sched", "sched_switch", "next_pid", &s->next_pid);
    if (!described)
        s->next_pid = (struct tracepoint_field){NEXT_PID_OFFSET, sizeof(uint32_t)};
    for (size_t i = 0; i < perf_file_event_count(f); i++) {
        const struct perf_event_info *e = perf_file_event(f, i);
        if (e->type == PERF_TYPE_TRACEPOINT &&
            (described ? e->config == id : strcmp(e->name, "sched:sched_switch") == 0))
            vec_push(&s->events, (int)i);
    }
    return s;
}

void sched_switch_free(struct sched_switch *s)
{
    if (!s)
        return;
    vec_free(&s->events);
    free(s);
}

bool sched_switch_read(const struct sched_switch *s, const struct perf_record *rec, pid_t *next)
{
    uint32_t tid;
    const struct tracepoint_field *at = &s->next_pid;
    if (rec->kind != PERF_REC_SAMPLE || at->size != sizeof tid || at->offset > rec->u.sample.raw_len ||
        rec->u.sample.raw_len - at->offset < sizeof tid)
        return false;
    size_t i = 0;
    while (i < s->events.len && s->events.data[i] != rec->event)
        i++;
    if (i == s->events.len)
        return false;
    memcpy(&tid, rec->u.sample.raw + at->offset, sizeof tid);
    *next = (pid_t)tid;
    return true;
}
