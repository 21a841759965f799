/* One record: which kind it is, and its fields (layouts: <linux/perf_event.h> and perf_format.h). */
#include "decode/perf/perf_format.h"
#include "decode/perf/perf_priv.h"

static const struct {
    uint16_t type, kind;
} kinds[] = {
    {PERF_RECORD_SAMPLE, PERF_REC_SAMPLE},
    {PERF_RECORD_MMAP, PERF_REC_MMAP},
    {PERF_RECORD_MMAP2, PERF_REC_MMAP},
    {PERF_RECORD_COMM, PERF_REC_COMM},
    {PERF_RECORD_FORK, PERF_REC_FORK},
    {PERF_RECORD_EXIT, PERF_REC_EXIT},
    {PERF_RECORD_SWITCH, PERF_REC_SWITCH},
    {PERF_RECORD_SWITCH_CPU_WIDE, PERF_REC_SWITCH},
    {PERF_RECORD_LOST, PERF_REC_LOST},
    {PERF_RECORD_LOST_SAMPLES, PERF_REC_LOST},
    {PERF_RECORD_THROTTLE, PERF_REC_THROTTLE},
    {PERF_RECORD_UNTHROTTLE, PERF_REC_THROTTLE},
    {PERF_RECORD_AUX, PERF_REC_AUX},
    {PERF_RECORD_ITRACE_START, PERF_REC_ITRACE_START},
    {PERF_RECORD_KSYMBOL, PERF_REC_KSYMBOL},
    {PERF_RECORD_TEXT_POKE, PERF_REC_TEXT_POKE},
    {PERF_FMT_AUXTRACE_INFO, PERF_REC_AUXTRACE_INFO},
    {PERF_FMT_AUXTRACE, PERF_REC_AUXTRACE},
    {PERF_FMT_AUXTRACE_ERROR, PERF_REC_AUXTRACE_ERROR},
    {PERF_FMT_TIME_CONV, PERF_REC_TIME_CONV},
    {PERF_FMT_BUILD_ID, PERF_REC_BUILD_ID},
};

static enum perf_record_kind kind_of(uint32_t type)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].type == type)
            return (enum perf_record_kind)kinds[i].kind;
    return PERF_REC_OTHER;
}

#define BUILD_ID_MAX sizeof((struct perf_record *)0)->u.mmap.build_id

static void read_mmap(struct perf_cursor *c, struct perf_record *rec)
{
    rec->u.mmap.pid = perf_cursor_s32(c);
    rec->u.mmap.tid = perf_cursor_s32(c);
    rec->u.mmap.start = perf_cursor_u64(c);
    rec->u.mmap.len = perf_cursor_u64(c);
    rec->u.mmap.pgoff = perf_cursor_u64(c);
    rec->u.mmap.data = rec->misc & PERF_RECORD_MISC_MMAP_DATA;
    rec->u.mmap.prot = rec->u.mmap.data ? 1 : 1 | 4; /* PROT_READ, PROT_EXEC */
    if (rec->type == PERF_RECORD_MMAP2) {
        /* u32 maj, min, u64 ino, generation; or u8 length, u8, u16, u8 build_id[20] */
        const uint8_t *id = perf_cursor_bytes(c, 24);
        rec->u.mmap.prot = perf_cursor_u32(c);
        perf_cursor_u32(c); /* flags */
        if (id && (rec->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
            rec->u.mmap.build_id_len = id[0] < BUILD_ID_MAX ? id[0] : BUILD_ID_MAX;
            memcpy(rec->u.mmap.build_id, id + 4, rec->u.mmap.build_id_len);
        }
    }
    rec->u.mmap.path = perf_cursor_string(c);
    if (rec->u.mmap.len > UINT64_MAX - rec->u.mmap.start)
        rec->u.mmap.len = UINT64_MAX - rec->u.mmap.start;
}

static void read_build_id(struct perf_cursor *c, struct perf_record *rec)
{
    rec->u.build_id.pid = perf_cursor_s32(c);
    const uint8_t *id = perf_cursor_bytes(c, 24);
    uint8_t len = 20; /* before Linux 5.10 the length was not told */
    if (id && (rec->misc & PERF_FMT_MISC_BUILD_ID_SIZE) && id[20] < len)
        len = id[20];
    if (id)
        memcpy(rec->u.build_id.build_id, id, len);
    rec->u.build_id.build_id_len = len;
    rec->u.build_id.path = perf_cursor_string(c);
}

static void read_comm(struct perf_cursor *c, struct perf_record *rec)
{
    rec->u.comm.pid = perf_cursor_s32(c);
    rec->u.comm.tid = perf_cursor_s32(c);
    rec->u.comm.exec = rec->misc & PERF_RECORD_MISC_COMM_EXEC;
    rec->u.comm.comm = perf_cursor_string(c);
}

static void read_fork(struct perf_cursor *c, struct perf_record *rec, bool *carries_time)
{
    rec->u.fork.pid = perf_cursor_s32(c);
    rec->u.fork.ppid = perf_cursor_s32(c);
    rec->u.fork.tid = perf_cursor_s32(c);
    rec->u.fork.ptid = perf_cursor_s32(c);
    rec->u.fork.synthesized = rec->misc & PERF_FMT_MISC_FORK_SYNTHESIZED;
    uint64_t time_ns = perf_cursor_u64(c);
    if (!*carries_time && time_ns) {
        rec->time_ns = time_ns;
        *carries_time = true;
    }
}

static void read_switch(struct perf_cursor *c, struct perf_record *rec)
{
    rec->u.sw.out = rec->misc & PERF_RECORD_MISC_SWITCH_OUT;
    rec->u.sw.preempted = rec->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    rec->u.sw.other_pid = rec->u.sw.other_tid = -1;
    if (rec->type == PERF_RECORD_SWITCH_CPU_WIDE) {
        rec->u.sw.other_pid = perf_cursor_s32(c);
        rec->u.sw.other_tid = perf_cursor_s32(c);
    }
}

static void read_auxtrace(struct perf_cursor *c, struct perf_record *rec, uint64_t record_offset)
{
    rec->u.auxtrace.size = perf_cursor_u64(c);
    rec->u.auxtrace.offset = perf_cursor_u64(c);
    rec->u.auxtrace.reference = perf_cursor_u64(c);
    rec->u.auxtrace.idx = perf_cursor_u32(c);
    rec->u.auxtrace.tid = perf_cursor_s32(c);
    rec->u.auxtrace.cpu = perf_cursor_s32(c);
    rec->u.auxtrace.data_offset = record_offset;
}

static void read_auxtrace_info(struct perf_cursor *c, struct perf_record *rec)
{
    rec->u.auxtrace_info.type = perf_cursor_u32(c);
    perf_cursor_u32(c);
    rec->u.auxtrace_info.npriv = perf_cursor_left(c) / 8;
    rec->u.auxtrace_info.priv = perf_cursor_u64s(c, rec->u.auxtrace_info.npriv);
}

static void read_auxtrace_error(struct perf_cursor *c, struct perf_record *rec)
{
    perf_cursor_u32(c); /* type: instruction trace */
    rec->u.auxtrace_error.code = perf_cursor_u32(c);
    rec->u.auxtrace_error.cpu = perf_cursor_u32(c);
    rec->u.auxtrace_error.pid = perf_cursor_s32(c);
    rec->u.auxtrace_error.tid = perf_cursor_s32(c);
    uint32_t fmt = perf_cursor_u32(c);
    rec->u.auxtrace_error.ip = perf_cursor_u64(c);
    if (fmt > 0)
        rec->u.auxtrace_error.time_ns = perf_cursor_u64(c);
    rec->u.auxtrace_error.msg = perf_cursor_string(c);
}

static void read_time_conv(struct perf_cursor *c, struct perf_record *rec)
{
    rec->u.time_conv.time_shift = perf_cursor_u64(c);
    rec->u.time_conv.time_mult = perf_cursor_u64(c);
    rec->u.time_conv.time_zero = perf_cursor_u64(c);
    rec->u.time_conv.cap_time_zero = true; /* else perf writes no such record */
    if (perf_cursor_left(c) < 24)          /* before Linux 5.10 */
        return;
    rec->u.time_conv.time_cycles = perf_cursor_u64(c);
    rec->u.time_conv.time_mask = perf_cursor_u64(c);
    const uint8_t *caps = perf_cursor_bytes(c, 2);
    rec->u.time_conv.cap_time_zero = caps && caps[0];
    rec->u.time_conv.cap_time_short = caps && caps[1];
}

static void read_ksymbol(struct perf_cursor *c, struct perf_record *rec)
{
    rec->u.ksymbol.addr = perf_cursor_u64(c);
    rec->u.ksymbol.len = perf_cursor_u32(c);
    rec->u.ksymbol.ksym_type = perf_cursor_u16(c);
    rec->u.ksymbol.flags = perf_cursor_u16(c);
    rec->u.ksymbol.name = perf_cursor_string(c);
}

static void read_text_poke(struct perf_cursor *c, struct perf_record *rec)
{
    rec->u.text_poke.addr = perf_cursor_u64(c);
    rec->u.text_poke.old_len = perf_cursor_u16(c);
    rec->u.text_poke.new_len = perf_cursor_u16(c);
    rec->u.text_poke.old_bytes = perf_cursor_bytes(c, rec->u.text_poke.old_len);
    rec->u.text_poke.new_bytes = perf_cursor_bytes(c, rec->u.text_poke.new_len);
}

static void read_body(struct perf_cursor *c, struct perf_record *rec, bool *carries_time)
{
    switch (rec->kind) {
    case PERF_REC_MMAP:
        read_mmap(c, rec);
        break;
    case PERF_REC_COMM:
        read_comm(c, rec);
        break;
    case PERF_REC_FORK:
    case PERF_REC_EXIT:
        read_fork(c, rec, carries_time);
        break;
    case PERF_REC_SWITCH:
        read_switch(c, rec);
        break;
    case PERF_REC_LOST:
        if (rec->type == PERF_RECORD_LOST)
            perf_cursor_u64(c); /* id */
        rec->u.lost.count = perf_cursor_u64(c);
        break;
    case PERF_REC_AUX:
        rec->u.aux.aux_offset = perf_cursor_u64(c);
        rec->u.aux.aux_size = perf_cursor_u64(c);
        rec->u.aux.flags = perf_cursor_u64(c);
        break;
    case PERF_REC_ITRACE_START:
        rec->pid = perf_cursor_s32(c);
        rec->tid = perf_cursor_s32(c);
        break;
    case PERF_REC_AUXTRACE_INFO:
        read_auxtrace_info(c, rec);
        break;
    case PERF_REC_AUXTRACE_ERROR:
        read_auxtrace_error(c, rec);
        break;
    case PERF_REC_TIME_CONV:
        read_time_conv(c, rec);
        break;
    case PERF_REC_KSYMBOL:
        read_ksymbol(c, rec);
        break;
    case PERF_REC_TEXT_POKE:
        read_text_poke(c, rec);
        break;
    case PERF_REC_BUILD_ID:
        read_build_id(c, rec);
        break;
    case PERF_REC_SAMPLE:
    case PERF_REC_AUXTRACE:
    case PERF_REC_THROTTLE:
    case PERF_REC_OTHER:
        break;
    }
}

bool perf_record_parse(struct perf_file *f, const uint8_t *p, struct perf_record *rec,
                       bool *carries_time)
{
    struct perf_event_header h;
    memcpy(&h, p, sizeof h);
    const uint8_t *at = p;
    if ((uintptr_t)p % 8) {
        memcpy(f->scratch, p, h.size);
        at = (const uint8_t *)f->scratch;
    }
    struct perf_cursor body = perf_cursor_make(at + sizeof h, h.size - sizeof h);
    uint16_t mode = h.misc & PERF_RECORD_MISC_CPUMODE_MASK;
    memset(rec, 0, sizeof *rec);
    rec->type = p >= f->build_ids.p && p < f->build_ids.end ? PERF_FMT_BUILD_ID : h.type;
    rec->kind = kind_of(rec->type);
    rec->misc = h.misc;
    rec->pid = rec->tid = rec->cpu = rec->event = -1;
    rec->cpumode = mode <= PERF_MODE_GUEST_USER ? (enum perf_cpumode)mode : PERF_MODE_UNKNOWN;
    *carries_time = false;
    if (rec->kind == PERF_REC_SAMPLE)
        return perf_sample_parse(f, body, rec, carries_time);
    if (rec->kind == PERF_REC_AUXTRACE) {
        read_auxtrace(&body, rec, perf_file_offset(f, p) + h.size);
        return !body.bad;
    }
    if (rec->type < PERF_FMT_HEADER_ATTR && !perf_sample_parse_id(f, &body, rec, carries_time))
        return false;
    read_body(&body, rec, carries_time);
    return !body.bad;
}
