/* decode/perf/perf_file on files made by hand: one of everything with its fields, then the same files cut at
 * every byte and with random bytes changed, and files that lie about sizes. Run it under ASan, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zstd.h>

#include "decode/image/callchain.h"
#include "decode/perf/perf_file.h"
#include "tests/lib_perfwriter.h"

static int open_bytes(struct perf_file **out, const void *bytes, size_t len, struct err *err)
{
    int fd = memfd_create("perf.data", MFD_CLOEXEC);
    assert_true(fd >= 0);
    for (size_t at = 0; at < len;) {
        ssize_t n = write(fd, (const char *)bytes + at, len - at);
        assert_true(n > 0);
        at += (size_t)n;
    }
    int e = perf_file_open_fd(out, fd, "test", err);
    close(fd);
    return e;
}

/* ---- Every field ---- */

static void check_sample(const struct perf_record *r, uint64_t time_ns)
{
    assert_int_equal(r->time_ns, time_ns);
    assert_int_equal(r->pid, 7);
    assert_int_equal(r->cpu, 1);
    assert_int_equal(r->u.sample.ip, 0x401234);
    assert_int_equal(r->u.sample.addr, 0xadd7);
    assert_int_equal(r->u.sample.period, 4000);
    assert_int_equal(r->u.sample.chain_len, 5);
    assert_int_equal(r->u.sample.chain[4], 0x401300);
    assert_int_equal(r->u.sample.raw_len, 12);
    assert_memory_equal(r->u.sample.raw, "raw bytes...", 12);
    assert_int_equal(r->u.sample.nbranches, 2);
    assert_int_equal(r->u.sample.branches[1].to, 0x402100);
    assert_int_equal(r->u.sample.nregs, 9);
    assert_int_equal(r->u.sample.regs_abi, 2);
    assert_int_equal(r->u.sample.regs[8], 0x401234);
    assert_int_equal(r->u.sample.stack_len, 48);
    uint64_t word;
    memcpy(&word, r->u.sample.stack + 40, 8);
    assert_int_equal(word, 0x5005);
}

static void check_other(struct perf_file *f, const struct perf_record *r)
{
    size_t len = 0;
    switch ((int)r->kind) {
    case PERF_REC_COMM:
        assert_string_equal(r->u.comm.comm, r->time_ns == 10 ? "everything" : "packed");
        assert_int_equal(r->u.comm.exec, r->time_ns == 10);
        break;
    case PERF_REC_MMAP:
        assert_int_equal(r->u.mmap.start, 0x400000);
        assert_int_equal(r->u.mmap.prot, 5);
        assert_string_equal(r->u.mmap.path, "/bin/everything");
        break;
    case PERF_REC_FORK:
        assert_int_equal(r->u.fork.pid, 7);
        assert_int_equal(r->u.fork.ptid, 8);
        break;
    case PERF_REC_SWITCH:
        assert_int_equal(r->u.sw.out, r->time_ns == 13);
        assert_int_equal(r->u.sw.other_pid, r->time_ns == 13 ? -1 : 9);
        break;
    case PERF_REC_LOST:
        assert_int_equal(r->u.lost.count, 123);
        break;
    case PERF_REC_KSYMBOL:
        assert_string_equal(r->u.ksymbol.name, "bpf_prog_x");
        assert_int_equal(r->u.ksymbol.len, 64);
        break;
    case PERF_REC_TEXT_POKE:
        assert_memory_equal(r->u.text_poke.old_bytes, "\x90\x90", 2);
        assert_memory_equal(r->u.text_poke.new_bytes, "\xeb\xfe", 2);
        break;
    case PERF_REC_AUXTRACE_INFO:
        assert_int_equal(r->u.auxtrace_info.npriv, 2);
        assert_int_equal(r->u.auxtrace_info.priv[0], 8);
        break;
    case PERF_REC_TIME_CONV:
        assert_int_equal(r->u.time_conv.time_mult, 2);
        assert_int_equal(r->u.time_conv.time_mask, 5);
        assert_true(r->u.time_conv.cap_time_zero);
        assert_false(r->u.time_conv.cap_time_short);
        break;
    case PERF_REC_ITRACE_START:
        assert_int_equal(r->tid, 7);
        break;
    case PERF_REC_AUX:
        assert_int_equal(r->u.aux.aux_size, 16);
        break;
    case PERF_REC_AUXTRACE:
        assert_memory_equal(perf_file_aux_data(f, r, &len), "sixteen bytes...", 16);
        assert_int_equal(len, 16);
        break;
    case PERF_REC_AUXTRACE_ERROR:
        assert_string_equal(r->u.auxtrace_error.msg, "overflow");
        assert_int_equal(r->u.auxtrace_error.time_ns, 20);
        assert_int_equal(r->u.auxtrace_error.code, 2);
        break;
    case PERF_REC_BUILD_ID:
        assert_int_equal(r->u.build_id.build_id_len, 16);
        assert_string_equal(r->u.build_id.path, "x");
        break;
    default:
        break;
    }
}

static void check_everything(int pipe)
{
    struct perf_writer w = pw_everything(pipe);
    struct perf_file *f = NULL;
    struct perf_record r;
    struct err err;
    unsigned count[PERF_REC_OTHER + 1] = {0};
    if (open_bytes(&f, w.data, w.len, &err) < 0)
        fail_msg("%s", err.text);
    assert_null(perf_file_partial(f));
    assert_int_equal(perf_file_info(f)->skipped_records, 0);
    assert_string_equal(perf_file_info(f)->hostname, "host.example");
    assert_string_equal(perf_file_event(f, 0)->name, "clock-event");
    if (!pipe) {
        assert_string_equal(perf_file_info(f)->cmdline, "perf record");
        assert_int_equal(perf_file_info(f)->clock_id, 4);
    }
    assert_true(perf_file_info(f)->has_auxtrace);
    const uint64_t sample_times[] = {21, 31, 40};
    while (perf_file_next(f, &r, &err) > 0) {
        if (r.kind == PERF_REC_SAMPLE)
            check_sample(&r, sample_times[count[PERF_REC_SAMPLE]]);
        else
            check_other(f, &r);
        count[r.kind]++;
    }
    assert_int_equal(count[PERF_REC_SAMPLE], 3);
    assert_int_equal(count[PERF_REC_COMM], 2);
    assert_int_equal(count[PERF_REC_SWITCH], 2);
    for (int kind = PERF_REC_MMAP; kind <= PERF_REC_BUILD_ID; kind++)
        assert_true(kind == PERF_REC_THROTTLE || count[kind] > 0);
    perf_file_close(f);
    pw_free(&w);
}

static void everything_file(void **state)
{
    (void)state;
    check_everything(0);
}

static void everything_pipe(void **state)
{
    (void)state;
    check_everything(1);
}

/* ---- Damage ---- */

static volatile uint64_t sink;

/* Reads everything that a record points to. Returns the records read. */
static size_t read_all(const void *bytes, size_t len)
{
    struct perf_file *f = NULL;
    struct perf_record r;
    size_t n = 0;
    if (open_bytes(&f, bytes, len, NULL) < 0)
        return 0;
    struct addrspaces *as = addrspaces_new(NULL);
    struct callchain *chain = callchain_new(f, as, NULL);
    uint64_t last = 0;
    while (perf_file_next(f, &r, NULL) > 0) {
        const struct callframe *frames;
        size_t aux = 0;
        n++;
        assert_true(r.time_ns >= last);
        last = r.time_ns;
        assert_int_equal(addrspaces_apply(as, &r, NULL), 0);
        if (r.kind == PERF_REC_SAMPLE) {
            sink += callchain_frames(chain, &r, &frames);
            for (size_t i = 0; i < r.u.sample.raw_len; i++)
                sink += r.u.sample.raw[i];
            for (size_t i = 0; i < r.u.sample.stack_len; i++)
                sink += r.u.sample.stack[i];
            for (size_t i = 0; i < r.u.sample.nregs; i++)
                sink += r.u.sample.regs[i];
        }
        const uint8_t *data = perf_file_aux_data(f, &r, &aux);
        if (data && aux)
            sink += data[0] + data[aux - 1];
        if (r.kind == PERF_REC_MMAP)
            sink += strlen(r.u.mmap.path);
    }
    callchain_free(chain);
    addrspaces_free(as);
    perf_file_close(f);
    return n;
}

static void truncations(void **state)
{
    (void)state;
    for (int pipe = 0; pipe < 2; pipe++) {
        struct perf_writer w = pw_everything(pipe);
        size_t whole = read_all(w.data, w.len), before = 0;
        for (size_t len = 0; len < w.len; len++) {
            size_t n = read_all(w.data, len);
            assert_true(n <= whole);
            if (pipe)
                assert_true(n >= before);
            before = n;
        }
        /* one byte short of the end of the records: all but the last record, and a sentence */
        struct perf_file *f = NULL;
        size_t cut = pipe ? w.len - 1 : w.data_start + 100;
        assert_int_equal(open_bytes(&f, w.data, cut, NULL), 0);
        assert_non_null(perf_file_partial(f));
        perf_file_close(f);
        pw_free(&w);
    }
}

static void corruptions(void **state)
{
    (void)state;
    srand(7);
    int rounds = getenv("MTUI_LONG") ? 100000 : 8000;
    for (int pipe = 0; pipe < 2; pipe++) {
        struct perf_writer w = pw_everything(pipe);
        uint8_t *copy = malloc(w.len);
        for (int i = 0; i < rounds; i++) {
            memcpy(copy, w.data, w.len);
            for (int k = rand() % 4; k >= 0; k--) {
                size_t at = (size_t)rand() % w.len;
                copy[at] = rand() % 3 == 0 ? 0xff : rand() % 2 ? 0 : (uint8_t)rand();
            }
            read_all(copy, w.len);
        }
        free(copy);
        pw_free(&w);
    }
}

static void field_A8_unfinished(void **state)
{
    (void)state;
    struct perf_writer w = pw_file(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME);
    struct perf_file *f = NULL;
    struct perf_record r;
    pw_comm(&w, 1, 1, "x", 0, 5);
    pw_sample_ip(&w, 1, 0x1000, 6);
    assert_int_equal(open_bytes(&f, w.data, w.len, NULL), 0); /* the size of the data is still 0 */
    assert_non_null(strstr(perf_file_partial(f), "not finished properly"));
    assert_int_equal(perf_file_next(f, &r, NULL), 1);
    assert_int_equal(perf_file_next(f, &r, NULL), 1);
    assert_int_equal(r.u.sample.ip, 0x1000);
    assert_int_equal(perf_file_next(f, &r, NULL), 0);
    perf_file_rewind(f);
    assert_int_equal(perf_file_next(f, &r, NULL), 1);
    assert_int_equal(r.kind, PERF_REC_COMM);
    perf_file_close(f);
    pw_free(&w);
}

/* Records out of order, some without a time: sorted, equal times in file order. */
static void order(void **state)
{
    (void)state;
    struct perf_writer w = pw_file(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME);
    const uint64_t times[] = {50, 60, 60, 70, 10, 20, 60, 65, 60, 0, 30};
    const uint64_t sorted[] = {10 /* ip 9: made up, time 0 */, 5, 6, 11, 1, 2, 3, 7, 9, 8, 4};
    struct perf_file *f = NULL;
    struct perf_record r;
    for (uint64_t i = 0; i < 11; i++)
        pw_sample_ip(&w, 1, i + 1, times[i]);
    pw_finish(&w);
    assert_int_equal(open_bytes(&f, w.data, w.len, NULL), 0);
    for (size_t i = 0; i < 11; i++) {
        assert_int_equal(perf_file_next(f, &r, NULL), 1);
        assert_int_equal(r.u.sample.ip, sorted[i]);
        assert_int_equal(r.has_time, i != 0);
    }
    perf_file_close(f);
    pw_free(&w);
}

/* What inflates without end is stopped at a hundred times the size of the file. */
static void inflation(void **state)
{
    (void)state;
    struct perf_writer w = pw_file(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME);
    struct perf_file *f = NULL;
    size_t block = 8 << 20, cap = ZSTD_compressBound(block);
    uint64_t *records = malloc(block);
    uint8_t *packed = malloc(cap);
    for (size_t i = 0; i < block / 8; i++) /* type 200, size 32 KiB: mostly zeros */
        records[i] = i % 4096 ? 0 : 200 | (uint64_t)32768 << 48;
    size_t n = ZSTD_compress(packed, cap, records, block, 1);
    assert_true(n < 60000);
    for (int i = 0; i < 200; i++) {
        pw_begin(&w, 81, 0);
        pw_bytes(&w, packed, n);
        pw_end(&w);
    }
    pw_finish(&w);
    struct rusage before, after;
    free(records);
    free(packed);
    getrusage(RUSAGE_SELF, &before);
    assert_int_equal(open_bytes(&f, w.data, w.len, NULL), 0);
    getrusage(RUSAGE_SELF, &after);
    assert_non_null(strstr(perf_file_partial(f), "out of all proportion"));
    size_t limit = 100 * w.len + (64 << 20);
    assert_true(limit < 200 * block);
    assert_true((size_t)(after.ru_maxrss - before.ru_maxrss) << 10 < limit);
    perf_file_close(f);
    pw_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_file), cmocka_unit_test(everything_pipe),
        cmocka_unit_test(truncations),     cmocka_unit_test(corruptions),
        cmocka_unit_test(field_A8_unfinished),      cmocka_unit_test(order),
        cmocka_unit_test(inflation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
