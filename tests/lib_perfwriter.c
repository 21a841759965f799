#include "tests/lib_perfwriter.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "core/base/alloc.h"

#define EVENT_ID 77

void pw_bytes(struct perf_writer *w, const void *bytes, size_t len)
{
    if (w->len + len > w->cap) {
        w->cap = (w->len + len) * 2;
        w->data = xrealloc(w->data, w->cap);
    }
    if (len)
        memcpy(w->data + w->len, bytes, len);
    w->len += len;
}

void pw_u64(struct perf_writer *w, uint64_t v)
{
    pw_bytes(w, &v, sizeof v);
}

void pw_u32(struct perf_writer *w, uint32_t v)
{
    pw_bytes(w, &v, sizeof v);
}

void pw_u16(struct perf_writer *w, uint16_t v)
{
    pw_bytes(w, &v, sizeof v);
}

void pw_string(struct perf_writer *w, const char *s)
{
    size_t len = strlen(s) + 1;
    static const char zeros[8];
    pw_bytes(w, s, len);
    pw_bytes(w, zeros, (8 - len % 8) % 8);
}

static struct perf_event_attr make_attr(uint64_t sample_type)
{
    struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE,
                                .size = sizeof a,
                                .config = PERF_COUNT_SW_CPU_CLOCK,
                                .sample_period = 1000,
                                .sample_type = sample_type,
                                .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID |
                                               PERF_FORMAT_TOTAL_TIME_ENABLED,
                                .sample_id_all = 1,
                                .sample_regs_user = 0x1ff,
                                .sample_regs_intr = 0x3,
                                .sample_stack_user = 64};
    return a;
}

struct perf_writer pw_file(uint64_t sample_type)
{
    struct perf_writer w = {.sample_type = sample_type};
    struct perf_event_attr a = make_attr(sample_type);
    const uint64_t header = 104, entry = sizeof a + 16;
    pw_bytes(&w, "PERFILE2", 8);
    pw_u64(&w, header);
    pw_u64(&w, entry);
    pw_u64(&w, header);
    pw_u64(&w, entry);
    pw_u64(&w, header + entry + 8);
    w.data_size_at = w.len;
    for (int i = 0; i < 7; i++) /* data size, event types, features */
        pw_u64(&w, 0);
    pw_bytes(&w, &a, sizeof a);
    pw_u64(&w, header + entry);
    pw_u64(&w, 8);
    pw_u64(&w, EVENT_ID);
    w.data_start = w.len;
    return w;
}

struct perf_writer pw_pipe(uint64_t sample_type)
{
    struct perf_writer w = {.sample_type = sample_type};
    struct perf_event_attr a = make_attr(sample_type);
    pw_bytes(&w, "PERFILE2", 8);
    pw_u64(&w, 16);
    pw_begin(&w, 64, 0);
    pw_bytes(&w, &a, sizeof a);
    pw_u64(&w, EVENT_ID);
    pw_end(&w);
    return w;
}

void pw_free(struct perf_writer *w)
{
    free(w->data);
    *w = (struct perf_writer){0};
}

void pw_begin(struct perf_writer *w, uint32_t type, uint16_t misc)
{
    w->record = w->len;
    pw_u32(w, type);
    pw_u16(w, misc);
    pw_u16(w, 0);
}

void pw_end(struct perf_writer *w)
{
    uint16_t size = (uint16_t)(w->len - w->record);
    memcpy(w->data + w->record + 6, &size, sizeof size);
}

void pw_end_id(struct perf_writer *w, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
    if (w->sample_type & PERF_SAMPLE_TID) {
        pw_u32(w, pid);
        pw_u32(w, tid);
    }
    if (w->sample_type & PERF_SAMPLE_TIME)
        pw_u64(w, time_ns);
    if (w->sample_type & PERF_SAMPLE_ID)
        pw_u64(w, EVENT_ID);
    if (w->sample_type & PERF_SAMPLE_STREAM_ID)
        pw_u64(w, EVENT_ID);
    if (w->sample_type & PERF_SAMPLE_CPU)
        pw_u64(w, 1);
    if (w->sample_type & PERF_SAMPLE_IDENTIFIER)
        pw_u64(w, EVENT_ID);
    pw_end(w);
}

void pw_mmap2(struct perf_writer *w, uint32_t pid, uint64_t start, uint64_t len, uint64_t pgoff,
              const char *path, uint64_t time_ns)
{
    pw_begin(w, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
    pw_u32(w, pid);
    pw_u32(w, pid);
    pw_u64(w, start);
    pw_u64(w, len);
    pw_u64(w, pgoff);
    for (int i = 0; i < 3; i++) /* device, inode, generation */
        pw_u64(w, 1);
    pw_u32(w, 5); /* PROT_READ | PROT_EXEC */
    pw_u32(w, 2); /* MAP_PRIVATE */
    pw_string(w, path);
    pw_end_id(w, pid, pid, time_ns);
}

void pw_comm(struct perf_writer *w, uint32_t pid, uint32_t tid, const char *comm, int exec,
             uint64_t time_ns)
{
    pw_begin(w, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
    pw_u32(w, pid);
    pw_u32(w, tid);
    pw_string(w, comm);
    pw_end_id(w, pid, tid, time_ns);
}

void pw_sample_ip(struct perf_writer *w, uint32_t pid, uint64_t ip, uint64_t time_ns)
{
    pw_begin(w, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    pw_u64(w, ip);
    pw_u32(w, pid);
    pw_u32(w, pid);
    pw_u64(w, time_ns);
    pw_end(w);
}

void pw_finish(struct perf_writer *w)
{
    uint64_t size = w->len - w->data_start;
    if (w->data_start)
        memcpy(w->data + w->data_size_at, &size, sizeof size);
}

/* ---- One of everything ---- */

#define ALL_FIELDS                                                                                 \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |                \
     PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |                 \
     PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |             \
     PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER |                   \
     PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION |                         \
     PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_AUX | PERF_SAMPLE_CGROUP |        \
     PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE)

static void full_sample(struct perf_writer *w, uint64_t time_ns)
{
    const uint64_t fixed[] = {EVENT_ID, 0x401234, 7ull << 32 | 7, time_ns, 0xadd7, EVENT_ID, EVENT_ID,
                              1, 4000};
    const uint64_t read[] = {2, 1000, 11, EVENT_ID, 22, EVENT_ID + 1};
    const uint64_t chain[] = {5, PERF_CONTEXT_KERNEL, 0xffffffff81000010, PERF_CONTEXT_USER, 0x401234,
                              0x401300};
    const uint64_t branches[] = {2, 0x401000, 0x401100, 1, 0x402000, 0x402100, 2};
    pw_begin(w, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    pw_bytes(w, fixed, sizeof fixed);
    pw_bytes(w, read, sizeof read);
    pw_bytes(w, chain, sizeof chain);
    pw_u32(w, 12); /* raw */
    pw_bytes(w, "raw bytes...", 12);
    pw_bytes(w, branches, sizeof branches);
    pw_u64(w, 2); /* user registers, 64-bit */
    for (uint64_t i = 0; i < 9; i++)
        pw_u64(w, i == 7 ? 0x7ffe0000 : i == 8 ? 0x401234 : i);
    pw_u64(w, 64); /* user stack */
    for (uint64_t i = 0; i < 8; i++)
        pw_u64(w, 0x5000 + i);
    pw_u64(w, 48);
    pw_u64(w, 1); /* weight, data source, transaction */
    pw_u64(w, 2);
    pw_u64(w, 3);
    pw_u64(w, 2); /* registers at the interrupt */
    pw_u64(w, 10);
    pw_u64(w, 11);
    for (uint64_t i = 0; i < 4; i++) /* physical address, cgroup, page sizes */
        pw_u64(w, i);
    pw_u64(w, 8); /* AUX */
    pw_bytes(w, "auxbytes", 8);
    pw_end(w);
}

static void sideband(struct perf_writer *w)
{
    pw_comm(w, 7, 7, "everything", 1, 10);
    pw_mmap2(w, 7, 0x400000, 0x10000, 0, "/bin/everything", 11);
    pw_begin(w, PERF_RECORD_FORK, 0);
    for (uint32_t i = 0; i < 4; i++)
        pw_u32(w, 7 + (i >= 2));
    pw_u64(w, 12);
    pw_end_id(w, 7, 7, 12);
    pw_begin(w, PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT);
    pw_end_id(w, 7, 7, 13);
    pw_begin(w, PERF_RECORD_SWITCH_CPU_WIDE, 0);
    pw_u64(w, 9ull << 32 | 9);
    pw_end_id(w, 7, 7, 14);
    pw_begin(w, PERF_RECORD_LOST, 0);
    pw_u64(w, EVENT_ID);
    pw_u64(w, 123);
    pw_end_id(w, 7, 7, 15);
    pw_begin(w, PERF_RECORD_KSYMBOL, 0);
    pw_u64(w, 0xffffffffc0000000);
    pw_u32(w, 64);
    pw_u16(w, 1);
    pw_u16(w, 0);
    pw_string(w, "bpf_prog_x");
    pw_end_id(w, 0, 0, 16);
    pw_begin(w, PERF_RECORD_TEXT_POKE, PERF_RECORD_MISC_KERNEL);
    pw_u64(w, 0xffffffff81000000);
    pw_u16(w, 2);
    pw_u16(w, 2);
    pw_bytes(w, "\x90\x90\xeb\xfe", 4);
    pw_end_id(w, 0, 0, 17);
    pw_begin(w, PERF_RECORD_EXIT, 0);
    for (uint32_t i = 0; i < 4; i++)
        pw_u32(w, 7);
    pw_u64(w, 90);
    pw_end_id(w, 7, 7, 90);
}

static void trace_records(struct perf_writer *w)
{
    pw_begin(w, 70, 0); /* AUXTRACE_INFO */
    pw_u32(w, 1);
    pw_u32(w, 0);
    pw_u64(w, 8);
    pw_u64(w, 5);
    pw_end(w);
    pw_begin(w, 79, 0); /* TIME_CONV */
    for (uint64_t i = 1; i <= 6; i++)
        pw_u64(w, i);
    pw_end(w);
    pw_begin(w, PERF_RECORD_ITRACE_START, 0);
    pw_u64(w, 7ull << 32 | 7);
    pw_end_id(w, 7, 7, 18);
    pw_begin(w, PERF_RECORD_AUX, 0);
    pw_u64(w, 0);
    pw_u64(w, 16);
    pw_u64(w, 1);
    pw_end_id(w, 7, 7, 19);
    pw_begin(w, 71, 0); /* AUXTRACE, its data behind it */
    pw_u64(w, 16);
    pw_u64(w, 0);
    pw_u64(w, 0x1234);
    pw_u32(w, 0);
    pw_u32(w, 7);
    pw_u64(w, 1);
    pw_end(w);
    pw_bytes(w, "sixteen bytes...", 16);
    pw_begin(w, 72, 0); /* AUXTRACE_ERROR */
    for (uint32_t i = 1; i <= 6; i++)
        pw_u32(w, i);
    pw_u64(w, 0x401234);
    pw_u64(w, 20);
    char message[64] = "overflow";
    pw_bytes(w, message, sizeof message);
    pw_end(w);
}

static void build_id_record(struct perf_writer *w, uint32_t type)
{
    uint8_t id[24] = {1, 2, 3, 4, 5};
    id[20] = 16;
    pw_begin(w, type, PERF_RECORD_MISC_USER | 1 << 15);
    pw_u32(w, 7);
    pw_bytes(w, id, sizeof id);
    pw_u32(w, 'x'); /* a path of one letter */
    pw_end(w);
}

/* A compressed record with two records inside. */
static void compressed(struct perf_writer *w)
{
    struct perf_writer inner = {.sample_type = w->sample_type};
    uint8_t packed[1024];
    pw_comm(&inner, 7, 7, "packed", 0, 30);
    full_sample(&inner, 31);
    size_t n = ZSTD_compress(packed, sizeof packed, inner.data, inner.len, 3);
    pw_begin(w, 81, 0);
    pw_bytes(w, packed, n);
    pw_end(w);
    pw_free(&inner);
}

static void feature_string(struct perf_writer *w, const char *s)
{
    size_t len = (strlen(s) + 8) / 8 * 8;
    pw_u32(w, (uint32_t)len);
    pw_string(w, s);
}

/* Bits 2 (build-ids), 3 (host name), 11 (command line), 12 (events), 16 (PMUs), 18, 29 (clock). */
static void features(struct perf_writer *w)
{
    static const unsigned bits[] = {2, 3, 11, 12, 16, 18, 29};
    enum { N = sizeof bits / sizeof *bits };
    uint64_t table = w->len, mask = 0, zero = 0;
    struct perf_event_attr a = make_attr(w->sample_type);
    for (int i = 0; i < 2 * N; i++)
        pw_u64(w, 0);
    for (uint64_t i = 0; i < N; i++) {
        uint64_t section[2] = {w->len, 0};
        mask |= 1ull << bits[i];
        switch (bits[i]) {
        case 2:
            build_id_record(w, 0);
            break;
        case 3:
            feature_string(w, "host.example");
            break;
        case 11:
            pw_u32(w, 2);
            feature_string(w, "perf");
            feature_string(w, "record");
            break;
        case 12:
            pw_u32(w, 1);
            pw_u32(w, sizeof a);
            pw_bytes(w, &a, sizeof a);
            pw_u32(w, 1);
            feature_string(w, "clock-event");
            pw_u64(w, EVENT_ID);
            break;
        case 16:
            pw_u32(w, 1);
            pw_u32(w, 8);
            feature_string(w, "intel_pt");
            break;
        case 29:
            pw_u32(w, 1);
            pw_u32(w, 4);
            pw_u64(w, 5);
            pw_u64(w, 6);
            break;
        default:
            pw_bytes(w, &zero, 8);
        }
        section[1] = w->len - section[0];
        memcpy(w->data + table + i * 16, section, sizeof section);
    }
    memcpy(w->data + w->data_size_at + 24, &mask, sizeof mask);
}

struct perf_writer pw_everything(int pipe)
{
    struct perf_writer w = pipe ? pw_pipe(ALL_FIELDS) : pw_file(ALL_FIELDS);
    sideband(&w);
    full_sample(&w, 21);
    trace_records(&w);
    compressed(&w);
    pw_begin(&w, 200, 0); /* of a perf to come */
    pw_u64(&w, 1);
    pw_end(&w);
    if (pipe) {
        build_id_record(&w, 67);
        pw_begin(&w, 80, 0); /* HEADER_FEATURE: host name */
        pw_u64(&w, 3);
        feature_string(&w, "host.example");
        pw_end(&w);
        pw_begin(&w, 78, 0); /* EVENT_UPDATE: name */
        pw_u64(&w, 2);
        pw_u64(&w, EVENT_ID);
        pw_string(&w, "clock-event");
        pw_end(&w);
    }
    full_sample(&w, 40);
    pw_finish(&w);
    if (!pipe)
        features(&w);
    return w;
}
