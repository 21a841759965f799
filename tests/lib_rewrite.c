#include "lib_rewrite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib_run.h"

#define SCHED_EVENT_ID 9001
#define SAMPLE_TYPE                                                                                \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |  \
     PERF_SAMPLE_RAW)

enum { HEADER_ATTR = 64, TRACING_DATA = 66, AUXTRACE = 71, EVENT_UPDATE = 78, HEADER_FEATURE = 80 };

void rewrite_put(struct rewrite *r, const void *bytes, size_t len)
{
    assert_int_equal(fwrite(bytes, 1, len, r->file), len);
}

static void put_header(struct rewrite *r, uint32_t type, size_t body)
{
    struct perf_event_header h = {.type = type, .size = (uint16_t)(sizeof h + body)};
    rewrite_put(r, &h, sizeof h);
}

static void put_attr(struct rewrite *r, const void *attr, size_t len, uint64_t id)
{
    put_header(r, HEADER_ATTR, len + sizeof id);
    rewrite_put(r, attr, len);
    rewrite_put(r, &id, sizeof id);
}

/* As tools/perf/util/trace-event-info.c writes it. */
static void put_tracing_data(struct rewrite *r)
{
    char *data = NULL;
    size_t len;
    FILE *f = open_memstream(&data, &len);
    uint32_t page = 4096, one = 1, none = 0;
    uint64_t size = 4, format = strlen(r->format);
    fwrite("\027\010\104tracing0.6", 1, 13, f);
    fwrite("\0\0\010", 1, 3, f); /* the NUL of the version; little endian; longs of 8 bytes */
    fwrite(&page, 4, 1, f);
    fwrite("header_page", 1, 12, f);
    fwrite(&size, 8, 1, f);
    fwrite("page", 1, 4, f);
    fwrite("header_event", 1, 13, f);
    fwrite(&size, 8, 1, f);
    fwrite("evnt", 1, 4, f);
    fwrite(&one, 4, 1, f); /* of ftrace */
    fwrite(&size, 8, 1, f);
    fwrite("ftrc", 1, 4, f);
    fwrite(&one, 4, 1, f);
    fwrite("sched", 1, 6, f);
    fwrite(&one, 4, 1, f);
    fwrite(&format, 8, 1, f);
    fwrite(r->format, 1, format, f);
    fwrite(&none, 4, 1, f);
    fclose(f);
    size_t padded = (len + 7) & ~(size_t)7;
    uint32_t n = (uint32_t)padded;
    put_header(r, TRACING_DATA, sizeof n);
    rewrite_put(r, &n, sizeof n);
    rewrite_put(r, data, len);
    rewrite_put(r, "\0\0\0\0\0\0\0", padded - len);
    free(data);
}

static void put_tracepoint(struct rewrite *r)
{
    struct perf_event_attr a = {.type = PERF_TYPE_TRACEPOINT,
                                .size = sizeof a,
                                .config = REWRITE_SCHED_ID,
                                .sample_period = 1,
                                .sample_type = SAMPLE_TYPE,
                                .sample_id_all = 1};
    struct {
        uint64_t type, id;
        char name[24];
    } update = {2, SCHED_EVENT_ID, "sched:sched_switch"};
    put_attr(r, &a, sizeof a, SCHED_EVENT_ID);
    if (r->format) {
        put_tracing_data(r);
    } else {
        put_header(r, EVENT_UPDATE, sizeof update);
        rewrite_put(r, &update, sizeof update);
    }
}

void rewrite_put_sched_switch(struct rewrite *r, uint32_t cpu, uint64_t time_ns, uint32_t next, size_t offset)
{
    struct {
        struct perf_event_header h;
        uint64_t identifier, ip;
        uint32_t pid, tid;
        uint64_t time;
        uint32_t cpu, reserved, raw_size;
        uint8_t raw[68];
    } s = {.h = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, sizeof s},
           .identifier = SCHED_EVENT_ID,
           .ip = 0xffffffff81000000,
           .time = time_ns,
           .cpu = cpu,
           .raw_size = sizeof s.raw};
    assert_true(offset + sizeof next <= sizeof s.raw);
    memset(s.raw, 0x11, sizeof s.raw);
    memcpy(s.raw + offset, &next, sizeof next);
    rewrite_put(r, &s, sizeof s);
}

static void put_records(struct rewrite *r, const uint8_t *p, const uint8_t *end)
{
    while (p < end) {
        struct perf_event_header h;
        uint64_t data = 0;
        memcpy(&h, p, sizeof h);
        if (h.type == AUXTRACE)
            memcpy(&data, p + sizeof h, sizeof data);
        if (!r->record || r->record(r, p, h.size, p + h.size, (size_t)data))
            rewrite_put(r, p, h.size + (size_t)data);
        p += h.size + data;
    }
}

void rewrite_pipe(struct rewrite *r, const char *in, const char *out)
{
    size_t len;
    char *bytes = run_read_file(in, &len);
    struct { /* of the file layout */
        uint64_t magic, size, attr_size, attrs, attrs_size, data, data_size;
    } h;
    memcpy(&h, bytes, sizeof h);
    r->file = fopen(out, "w");
    assert_non_null(r->file);
    uint64_t sixteen = 16;
    rewrite_put(r, "PERFILE2", 8);
    rewrite_put(r, &sixteen, 8);
    for (uint64_t at = h.attrs; at < h.attrs + h.attrs_size; at += h.attr_size) {
        uint64_t ids, id;
        memcpy(&ids, bytes + at + h.attr_size - 16, 8);
        memcpy(&id, bytes + ids, 8);
        put_attr(r, bytes + at, (size_t)h.attr_size - 16, id);
    }
    uint64_t auxtrace[2] = {18, 0}; /* the feature, no index */
    put_header(r, HEADER_FEATURE, sizeof auxtrace);
    rewrite_put(r, auxtrace, sizeof auxtrace);
    if (r->tracepoint)
        put_tracepoint(r);
    put_records(r, (const uint8_t *)bytes + h.data, (const uint8_t *)bytes + h.data + h.data_size);
    assert_int_equal(fclose(r->file), 0);
    free(bytes);
}
