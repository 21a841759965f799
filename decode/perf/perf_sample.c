/* The fields of a sample, in the order of enum perf_event_sample_format's description in
 * <linux/perf_event.h> (PERF_RECORD_SAMPLE), and the sample id behind all other records. */
#include "decode/perf/perf_priv.h"

#define ID_FIELDS                                                                                  \
    (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |                 \
     PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

static size_t count_before(uint64_t sample_type, uint64_t fields)
{
    return (size_t)__builtin_popcountll(sample_type & fields);
}

/* Which event a record belongs to. Several events of one recording always put their ids at the same
 * place: at the front (or the very end) with IDENTIFIER, else where the first event has ID. */
static int find_event(const struct perf_file *f, const struct perf_cursor *body, bool sample)
{
    if (f->events.len <= 1)
        return (int)f->events.len - 1;
    uint64_t type = f->events.data[0].info.sample_type;
    size_t words = perf_cursor_left(body) / 8, at;
    if (type & PERF_SAMPLE_IDENTIFIER)
        at = sample ? 0 : words - 1;
    else if (!(type & PERF_SAMPLE_ID))
        return 0;
    else if (sample)
        at = count_before(type, PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR);
    else
        at = words - 1 - count_before(type, PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU);
    if (at >= words)
        return -1;
    uint64_t id;
    memcpy(&id, body->p + at * 8, sizeof id);
    uint32_t ev = hash64_get(&f->ids, id);
    if (ev == HASH64_NONE)
        return id == 0 ? 0 : -1; /* what perf makes up carries no id */
    return (int)ev;
}

bool perf_sample_parse_id(const struct perf_file *f, struct perf_cursor *body,
                          struct perf_record *rec, bool *carries_time)
{
    int ev = find_event(f, body, false);
    if (ev < 0 || !f->events.data[ev].info.sample_id_all)
        return true;
    uint64_t type = f->events.data[ev].info.sample_type;
    size_t size = 8 * count_before(type, ID_FIELDS);
    if (size > perf_cursor_left(body))
        return false;
    body->end -= size;
    struct perf_cursor c = perf_cursor_make(body->end, size);
    rec->event = ev;
    if (type & PERF_SAMPLE_TID) {
        rec->pid = perf_cursor_s32(&c);
        rec->tid = perf_cursor_s32(&c);
    }
    if (type & PERF_SAMPLE_TIME) {
        rec->time_ns = perf_cursor_u64(&c);
        *carries_time = true;
    }
    if (type & PERF_SAMPLE_ID)
        perf_cursor_u64(&c);
    if (type & PERF_SAMPLE_STREAM_ID)
        perf_cursor_u64(&c);
    if (type & PERF_SAMPLE_CPU)
        rec->cpu = perf_cursor_s32(&c);
    return true;
}

/* PERF_SAMPLE_READ: the values are of no use here, their size is. */
static void skip_read(struct perf_cursor *c, uint64_t format)
{
    uint64_t times = count_before(format, PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
    uint64_t each = 1 + count_before(format, PERF_FORMAT_ID | PERF_FORMAT_LOST);
    uint64_t n = format & PERF_FORMAT_GROUP ? perf_cursor_u64(c) : 1;
    if (n > perf_cursor_left(c) / 8)
        c->bad = true;
    else
        perf_cursor_bytes(c, 8 * (times + n * each));
}

static void read_chain(struct perf_cursor *c, struct perf_record *rec)
{
    rec->u.sample.chain_len = perf_cursor_u64(c);
    rec->u.sample.chain = perf_cursor_u64s(c, rec->u.sample.chain_len);
}

static void read_raw(struct perf_cursor *c, struct perf_record *rec)
{
    rec->u.sample.raw_len = perf_cursor_u32(c);
    rec->u.sample.raw = perf_cursor_bytes(c, rec->u.sample.raw_len);
}

static void read_branches(struct perf_cursor *c, struct perf_record *rec, uint64_t branch_type)
{
    uint64_t n = perf_cursor_u64(c);
    if (branch_type & PERF_SAMPLE_BRANCH_HW_INDEX)
        perf_cursor_u64(c);
    if (n > perf_cursor_left(c) / sizeof(struct perf_branch)) {
        c->bad = true;
        return;
    }
    rec->u.sample.branches = (const void *)perf_cursor_u64s(c, n * 3);
    rec->u.sample.nbranches = (size_t)n;
    if (branch_type & (1u << 19)) /* PERF_SAMPLE_BRANCH_COUNTERS, Linux 6.8 */
        perf_cursor_u64s(c, n);
}

static void read_user_regs(struct perf_cursor *c, struct perf_record *rec, uint64_t mask)
{
    uint64_t abi = perf_cursor_u64(c);
    if (abi == PERF_SAMPLE_REGS_ABI_NONE)
        return;
    rec->u.sample.regs_abi = abi;
    rec->u.sample.regs_mask = mask;
    rec->u.sample.nregs = (size_t)__builtin_popcountll(mask);
    rec->u.sample.regs = perf_cursor_u64s(c, rec->u.sample.nregs);
}

static void read_user_stack(struct perf_cursor *c, struct perf_record *rec)
{
    uint64_t size = perf_cursor_u64(c);
    if (size == 0)
        return;
    const uint8_t *bytes = perf_cursor_bytes(c, size);
    uint64_t used = perf_cursor_u64(c); /* of the size bytes, those really copied */
    rec->u.sample.stack = bytes;
    rec->u.sample.stack_len = (size_t)(used < size ? used : size);
}

static void skip_intr_regs(struct perf_cursor *c, unsigned count)
{
    if (perf_cursor_u64(c) != PERF_SAMPLE_REGS_ABI_NONE)
        perf_cursor_u64s(c, count);
}

/* The fields of fixed size that stand first; IP, TID and so on. */
static void read_front(struct perf_cursor *c, struct perf_record *rec, uint64_t type,
                       bool *carries_time)
{
    if (type & PERF_SAMPLE_IDENTIFIER)
        perf_cursor_u64(c);
    if (type & PERF_SAMPLE_IP)
        rec->u.sample.ip = perf_cursor_u64(c);
    if (type & PERF_SAMPLE_TID) {
        rec->pid = perf_cursor_s32(c);
        rec->tid = perf_cursor_s32(c);
    }
    if (type & PERF_SAMPLE_TIME) {
        rec->time_ns = perf_cursor_u64(c);
        *carries_time = true;
    }
    if (type & PERF_SAMPLE_ADDR)
        rec->u.sample.addr = perf_cursor_u64(c);
    if (type & PERF_SAMPLE_ID)
        perf_cursor_u64(c);
    if (type & PERF_SAMPLE_STREAM_ID)
        perf_cursor_u64(c);
    if (type & PERF_SAMPLE_CPU) {
        rec->cpu = perf_cursor_s32(c);
        perf_cursor_u32(c);
    }
    if (type & PERF_SAMPLE_PERIOD)
        rec->u.sample.period = perf_cursor_u64(c);
}

bool perf_sample_parse(const struct perf_file *f, struct perf_cursor c, struct perf_record *rec,
                       bool *carries_time)
{
    int ev = find_event(f, &c, true);
    if (ev < 0)
        return false;
    const struct perf_event *event = &f->events.data[ev];
    const struct perf_event_info *info = &event->info;
    uint64_t type = info->sample_type;
    rec->event = ev;
    if (!info->freq)
        rec->u.sample.period = info->sample_period_or_freq;
    read_front(&c, rec, type, carries_time);
    if (type & PERF_SAMPLE_READ)
        skip_read(&c, info->read_format);
    if (type & PERF_SAMPLE_CALLCHAIN)
        read_chain(&c, rec);
    if (type & PERF_SAMPLE_RAW)
        read_raw(&c, rec);
    if (type & PERF_SAMPLE_BRANCH_STACK)
        read_branches(&c, rec, info->branch_sample_type);
    if (type & PERF_SAMPLE_REGS_USER)
        read_user_regs(&c, rec, info->sample_regs_user);
    if (type & PERF_SAMPLE_STACK_USER)
        read_user_stack(&c, rec);
    if (type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
        perf_cursor_u64(&c);
    if (type & PERF_SAMPLE_DATA_SRC)
        perf_cursor_u64(&c);
    if (type & PERF_SAMPLE_TRANSACTION)
        perf_cursor_u64(&c);
    if (type & PERF_SAMPLE_REGS_INTR)
        skip_intr_regs(&c, event->regs_intr);
    for (uint64_t bit = PERF_SAMPLE_PHYS_ADDR; bit <= PERF_SAMPLE_CODE_PAGE_SIZE; bit <<= 1)
        if (bit != PERF_SAMPLE_AUX && (type & bit)) /* physical address, cgroup, page sizes */
            perf_cursor_u64(&c);
    if (type & PERF_SAMPLE_AUX)
        perf_cursor_bytes(&c, perf_cursor_u64(&c));
    return !c.bad;
}
