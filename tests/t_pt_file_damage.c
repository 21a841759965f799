/* A recording of Intel PT cut at every byte and changed at random, opened as a whole: a trace and gaps or one
 * sentence, never a crash; what is decoded, what is in gaps and what was there twice are all bytes; memory
 * stays within a small multiple of the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "decode/open/open.h"
#include "lib_packets.h"
#include "lib_program.h"
#include "lib_run.h"
#include "lib_step.h"
#include "lib_step_programs.h"
#include "lib_statistics.h"

struct scene {
    struct step_rec rec;
    char symfs[300], path[300];
    char *small, *large; /* files */
    size_t small_len, large_len;
};

static char *encode(struct scene *s, unsigned repeat, size_t *len)
{
    struct step_encoding e = step_encodings[0];
    e.repeat = repeat;
    e.packets.psb_period = 256;
    e.chunk = repeat > 1 ? 65536 : 0;
    step_rec_encode(&s->rec, &e, s->path);
    return run_read_file(s->path, len);
}

static int record(void **state)
{
    static struct scene s;
    step_rec_program(&s.rec, &step_program_tiny, 1);
    snprintf(s.symfs, sizeof s.symfs, "%s/root", s.rec.dir); /* the program, and nothing else, is at hand */
    snprintf(s.path, sizeof s.path, "%s/damaged.data", s.rec.dir);
    assert_true(program_shell(s.rec.dir, "mkdir -p root%s && cp t root%s/", s.rec.dir, s.rec.dir));
    s.small = encode(&s, 1, &s.small_len);
    s.large = encode(&s, 20000, &s.large_len);
    *state = &s;
    return 0;
}

static int forget(void **state)
{
    struct scene *s = *state;
    free(s->small);
    free(s->large);
    step_rec_free(&s->rec);
    return 0;
}

struct outcome {
    uint64_t spans, gaps;
    bool opened;
};

static struct outcome open_bytes(const struct scene *s, const char *bytes, size_t len, unsigned threads,
                                 bool libipt)
{
    struct open_options o = {.threads = threads, .symfs = s->symfs, .libipt = libipt};
    struct outcome out = {0};
    struct recording *r;
    struct err err = {0};
    FILE *f = fopen(s->path, "w");
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    fclose(f);
    if (open_recording(&r, s->path, &o, &err) < 0) {
        assert_true(err.text[0]);
        return out;
    }
    if (trace_check(r->trace, &err) < 0)
        fail_msg("%s", err.text);
    const struct trace_info *info = trace_info(r->trace);
    size_t n;
    const struct gap *g = trace_gaps(r->trace, &n);
    uint64_t lost = 0;
    for (size_t i = 0; i < n; i++)
        lost += g[i].bytes;
    if (info->decoded_bytes + lost + info->repeated_bytes != info->trace_bytes)
        fail_msg("%" PRIu64 " decoded, %" PRIu64 " in gaps, %" PRIu64 " twice, of %" PRIu64, info->decoded_bytes, lost,
                 info->repeated_bytes, info->trace_bytes);
    for (size_t t = 0; t < trace_thread_count(r->trace); t++)
        out.spans += trace_thread(r->trace, t)->spans;
    out.gaps = n;
    out.opened = true;
    if (threads == 1 && !libipt)
        statistics_check(s->path, &o, r->trace);
    recording_free(r);
    return out;
}

static void cut_at_every_byte(void **state)
{
    const struct scene *s = *state;
    struct outcome whole = open_bytes(s, s->small, s->small_len, 1, false);
    size_t opened = 0;
    assert_true(whole.opened);
    assert_true(whole.spans > 20);
    assert_int_equal(whole.gaps, 0);
    for (size_t n = 0; n < s->small_len; n++)
        opened += open_bytes(s, s->small, n, 1, false).opened;
    print_message("%zu truncations, %zu of them opened, %" PRIu64 " spans in the whole\n", s->small_len, opened,
                  whole.spans);
    assert_true(opened > s->small_len / 2);
}

static uint32_t seed = 4711;

static uint32_t dice(size_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((seed >> 8) % n);
}

static void damage(char *d, size_t len)
{
    size_t a = dice(len), b = dice(len), far = a > b ? a : b, n = 1 + dice(64);
    switch (dice(4)) {
    case 0:
        d[a] = (char)(d[a] ^ 1 << dice(8));
        break;
    case 1:
        d[a] = (char)dice(256);
        break;
    case 2:
        d[a] = dice(2) ? (char)0xff : 0;
        break;
    default:
        memmove(d + a, d + b, n < len - far ? n : len - far);
        break;
    }
}

static void random_corruptions(void **state)
{
    const struct scene *s = *state;
    size_t opened = 0;
    for (unsigned i = 0; i < 2000; i++) {
        char *copy = malloc(s->small_len);
        memcpy(copy, s->small, s->small_len);
        for (unsigned k = 0; k <= i % 6; k++)
            damage(copy, s->small_len);
        opened += open_bytes(s, copy, s->small_len, 1 + i % 2, i % 5 == 4).opened; /* libipt's as well */
        free(copy);
    }
    print_message("%zu of 2000 opened\n", opened);
    assert_true(opened > 1000);
}

/* Peak memory of a process that opens it whole and damaged, in each of 24 ways. */
static void memory_is_bounded(void **state)
{
    const struct scene *s = *state;
    int status;
    struct rusage before, used;
    struct outcome whole = {0};
    getrusage(RUSAGE_SELF, &before);
    pid_t child = fork();
    if (child == 0) {
        for (unsigned i = 0; i < 24; i++) {
            char *copy = malloc(s->large_len);
            memcpy(copy, s->large, s->large_len);
            for (unsigned k = 0; k < i * 40; k++)
                damage(copy, s->large_len);
            whole = open_bytes(s, copy, s->large_len - i * 1000, 1, false);
            free(copy);
            if (i == 0 && whole.spans < 200000)
                _exit(3);
        }
        _exit(0);
    }
    assert_int_equal(wait4(child, &status, 0, &used), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    long bytes = (used.ru_maxrss - before.ru_maxrss) * 1024;
    print_message("%zu bytes of file, at most %ld bytes more than before\n", s->large_len, bytes);
#ifndef __SANITIZE_ADDRESS__
    assert_true(bytes < (long)(24 * s->large_len) + (32 << 20));
#endif
}

int main(void)
{
    if (getuid() != 0) {
        print_message("[  SKIPPED ] t_pt_file_damage: recordings need root or CAP_PERFMON\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(random_corruptions),
        cmocka_unit_test(memory_is_bounded),
    };
    return cmocka_run_group_tests(tests, record, forget);
}
