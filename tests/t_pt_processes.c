/* Buffers of CPUs on which several processes run, with other code at the same addresses: after fork the child
 * has its parent's, exec replaces it, a library takes the place of another. Packets and records by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/step/perf_writer.h"
#include "decode/export/export.h"
#include "decode/open/open.h"
#include "lib_packets.h"
#include "lib_program.h"
#include "lib_rewrite.h"
#include "lib_statistics.h"

#define AT 0x7f0000000000u
#define PARENT 7
#define CHILD 8

static char *dir;

struct scene {
    struct perf_writer *w;
    struct packets packets;
    char path[300];
};

static struct perf_writer_id id(pid_t pid, uint64_t time_ns)
{
    return (struct perf_writer_id){.pid = pid, .tid = pid, .cpu = 0, .time_ns = time_ns};
}

static void begin(struct scene *s)
{
    struct perf_writer_options o = {.encoding = {.tsc = true}, .per_cpu = true};
    *s = (struct scene){0};
    snprintf(s->path, sizeof s->path, "%s/perf.data", dir);
    unlink(s->path);
    assert_int_equal(perf_writer_open(&s->w, s->path, &o, NULL), 0);
    packets_psb(&s->packets, 0, 500);
}

static void map(struct scene *s, pid_t pid, const char *library, uint64_t time_ns)
{
    char path[300];
    struct perf_writer_mapping m = {.start = AT, .len = 0x3000, .prot = 5, .flags = 2, .path = path};
    snprintf(path, sizeof path, "%s/%s", dir, library);
    perf_writer_mmap(s->w, id(pid, time_ns), &m);
}

/* The thread comes onto the CPU, calls the library's function, and goes, 400 ns later; the call that this makes
 * is the first of two instructions, so it is made half way. */
static void run(struct scene *s, pid_t pid, const char *library, const char *function, uint64_t time_ns)
{
    uint64_t ip = AT + program_nm(dir, library, function);
    perf_writer_switch(s->w, id(pid, time_ns - 10), false);
    packets_tsc(&s->packets, time_ns);
    packets_ip(&s->packets, PACKET_PGE, ip);
    packets_tnt(&s->packets, "T"); /* leaf() returns */
    packets_tsc(&s->packets, time_ns + 400);
    packets_ip(&s->packets, PACKET_FUP, ip + 5); /* behind the call, which comes first */
    packets_ip(&s->packets, PACKET_PGD, 0);
    perf_writer_switch(s->w, id(pid, time_ns + 410), true);
}

static void expect(struct scene *s, const char *want)
{
    struct open_options o = {.threads = 1};
    struct recording *r;
    struct err err;
    char *got = NULL;
    size_t len, n;
    perf_writer_auxtrace(s->w, id(PARENT, 9000), 0, 0, s->packets.bytes, s->packets.len);
    assert_int_equal(perf_writer_close(s->w, NULL), 0);
    if (open_recording(&r, s->path, &o, &err) < 0)
        fail_msg("%s", err.text);
    if (trace_check(r->trace, &err) < 0)
        fail_msg("%s", err.text);
    statistics_check(s->path, &o, r->trace);
    FILE *f = open_memstream(&got, &len);
    for (size_t t = 0; t < trace_thread_count(r->trace); t++) {
        const struct trace_thread *th = trace_thread(r->trace, t);
        fprintf(f, "%s%d:", t ? " / " : "", (int)th->tid);
        for (size_t d = 0; d < th->depths; d++) {
            const struct span *row = trace_row(r->trace, t, d, &n);
            for (size_t i = 0; i < n; i++)
                fprintf(f, " %zu %s %" PRIu64, d, functions_get(trace_functions(r->trace), row[i].fn)->raw,
                        row[i].start_ns);
        }
    }
    fclose(f);
    assert_string_equal(got, want);
    trace_gaps(r->trace, &n);
    assert_int_equal(n, 0);
    free(got);
    recording_free(r);
}

static void field_H8_fork_exec_and_remap(void **state)
{
    struct scene s;
    (void)state;
    begin(&s);
    map(&s, PARENT, "one.so", 100);
    run(&s, PARENT, "one.so", "first", 1000);
    perf_writer_fork(s.w, id(CHILD, 1900), PARENT, PARENT);
    run(&s, CHILD, "one.so", "first", 2000);
    perf_writer_comm(s.w, id(CHILD, 2900), "new", true);
    map(&s, CHILD, "two.so", 2910);
    run(&s, CHILD, "two.so", "second", 3000);
    run(&s, PARENT, "one.so", "first", 4000); /* of the child's exec it knows nothing */
    map(&s, PARENT, "two.so", 4900);          /* dlclose, dlopen */
    run(&s, PARENT, "two.so", "second", 5000);
    run(&s, CHILD, "two.so", "second", 6000);
    /* What the child's program had open has ended with it; a function that has begun before begins another
     * window, and the other one may be a handler inside of what has not returned. */
    expect(&s, "7: 0 first 1000 0 first 4000 1 leaf_one 1200 1 leaf_one 4200 1 [untraced] 4400 1 second 5000 "
               "2 leaf_two 5200 / 8: 0 first 2000 0 second 3000 0 second 6000 1 leaf_one 2200 1 leaf_two 3200 "
               "1 leaf_two 6200");
}

/* ---- Code that is not at hand ---- */

static struct recording *open_checked(const char *path)
{
    struct open_options o = {.threads = 1};
    struct recording *r = NULL;
    struct err err;
    if (open_recording(&r, path, &o, &err) < 0)
        fail_msg("%s", err.text);
    if (trace_check(r->trace, &err) < 0)
        fail_msg("%s", err.text);
    statistics_check(path, &o, r->trace);
    return r;
}

static void close_scene(struct scene *s)
{
    perf_writer_auxtrace(s->w, id(PARENT, 9000), 0, 0, s->packets.bytes, s->packets.len);
    assert_int_equal(perf_writer_close(s->w, NULL), 0);
}

/* All gaps are code that is not at hand; so many begin with these words. */
static size_t gaps_at(const struct recording *r, const char *where)
{
    size_t n, found = 0;
    const struct gap *g = trace_gaps(r->trace, &n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(g[i].cause, GAP_NO_IMAGE);
        found += strncmp(g[i].detail, where, strlen(where)) == 0;
    }
    return found;
}

static size_t notes_with(const struct recording *r, const char *text)
{
    size_t found = 0;
    for (size_t i = 0; i < r->nnotes; i++)
        found += strstr(r->notes[i], text) != NULL;
    return found;
}

/* Sideband that comes too late, or not at all, and a mapping whose file is gone: neither is an error of the trace.
 * Each place is named once with its count, what is known later is followed, and nothing is guessed before. */
static void field_C6_sideband_out_of_step(void **state)
{
    struct scene s;
    char gone[340], said[400];
    size_t n;
    (void)state;
    begin(&s);
    for (uint64_t t = 1000; t < 4000; t += 1000)
        run(&s, CHILD, "one.so", "first", t); /* no mapping of this process is ever told */
    map(&s, PARENT, "gone.so", 4500);
    run(&s, PARENT, "one.so", "first", 5000);
    run(&s, PARENT, "one.so", "first", 6000);
    map(&s, PARENT, "two.so", 6500);
    run(&s, PARENT, "two.so", "second", 7000);
    close_scene(&s);
    struct recording *r = open_checked(s.path);
    snprintf(gone, sizeof gone, "%s/gone.so", dir);
    assert_int_equal(gaps_at(r, "memory where nothing is known to be mapped: "), 3);
    assert_int_equal(gaps_at(r, gone), 2);
    assert_int_equal(gaps_at(r, ""), 5);
    assert_int_equal(notes_with(r, "is not at hand"), 2);
    assert_int_equal(notes_with(r, "memory where nothing is known to be mapped is not at hand"), 1);
    snprintf(said, sizeof said, "the code of %s is not at hand", gone);
    assert_int_equal(notes_with(r, said), 1);
    assert_int_equal(notes_with(r, "in 3 places"), 1);
    assert_int_equal(notes_with(r, "in 2 places"), 1);
    const struct span *row = trace_row(r->trace, (size_t)trace_find_thread(r->trace, PARENT), 0, &n);
    assert_true(n > 0);
    assert_string_equal(functions_get(trace_functions(r->trace), row[n - 1].fn)->raw, "second");
    assert_int_equal(row[n - 1].start_ns, 7000);
    recording_free(r);
}

/* A KSYMBOL record (perf_event_open(2)) in front of the first one that has a time. */
static bool with_ksymbol(struct rewrite *w, const uint8_t *rec, size_t len, const uint8_t *data, size_t data_len)
{
    static const struct {
        uint64_t addr;
        uint32_t len;
        uint16_t type, flags;
        char name[40];
    } bpf = {0xffffffffc0001000, 0x100, 1, 0, "bpf_prog_6deef7357e7b4530_sched"};
    struct perf_event_header h;
    const size_t id_len = 4 * sizeof(uint64_t); /* pid and tid, time, cpu, identifier: those of that record */
    (void)data;
    (void)data_len;
    memcpy(&h, rec, sizeof h);
    if (h.type != PERF_RECORD_SWITCH_CPU_WIDE && h.type != PERF_RECORD_SWITCH)
        return true;
    if (!*(bool *)w->arg) {
        assert_true(len >= sizeof h + id_len);
        struct perf_event_header k = {PERF_RECORD_KSYMBOL, PERF_RECORD_MISC_KERNEL,
                                      (uint16_t)(sizeof h + sizeof bpf + id_len)};
        rewrite_put(w, &k, sizeof k);
        rewrite_put(w, &bpf, sizeof bpf);
        rewrite_put(w, rec + len - id_len, id_len);
    }
    *(bool *)w->arg = true;
    return true;
}

/* Kernel code that the recording does not hold, in a trace of the kernel: BPF programs by their names. */
static void field_C9_code_of_bpf_programs(void **state)
{
    static const uint64_t places[] = {0xffffffffc0001010, 0xffffffffc0001020, 0xffffffff81000010, 0xffffffffc00010ff};
    struct scene s;
    bool written = false;
    struct rewrite w = {.record = with_ksymbol, .arg = &written};
    char out[340];
    (void)state;
    begin(&s);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        uint64_t time_ns = 1000 * (i + 1);
        perf_writer_switch(s.w, id(PARENT, time_ns - 10), false);
        packets_tsc(&s.packets, time_ns);
        packets_ip(&s.packets, PACKET_PGE, places[i]);
        packets_tnt(&s.packets, "T");
        packets_tsc(&s.packets, time_ns + 400);
        packets_ip(&s.packets, PACKET_PGD, 0);
        perf_writer_switch(s.w, id(PARENT, time_ns + 410), true);
    }
    close_scene(&s);
    snprintf(out, sizeof out, "%s/pipe.data", dir);
    rewrite_pipe(&w, s.path, out);
    struct recording *r = open_checked(out);
    assert_int_equal(gaps_at(r, "BPF program bpf_prog_6deef7357e7b4530_sched: "), 3);
    assert_int_equal(gaps_at(r, "the kernel: "), 1);
    assert_int_equal(gaps_at(r, ""), 4);
    assert_int_equal(notes_with(r, "the code of BPF program bpf_prog_6deef7357e7b4530_sched is not at hand"), 1);
    assert_int_equal(notes_with(r, "in 3 places"), 1);
    assert_int_equal(notes_with(r, "code of the kernel is not decoded"), 1);
    recording_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_H8_fork_exec_and_remap),
        cmocka_unit_test(field_C6_sideband_out_of_step),
        cmocka_unit_test(field_C9_code_of_bpf_programs),
    };
    static const char source[] = ".globl %s\n.type %s,@function\n%s: call %s\n nop\n ret\n.size %s,.-%s\n"
                                 ".type %s,@function\n%s: ret\n.size %s,.-%s\n.section .note.GNU-stack,\"\"\n";
    static const char *const names[2][3] = {{"one", "first", "leaf_one"}, {"two", "second", "leaf_two"}};
    dir = program_mkdir();
    for (int i = 0; i < 2; i++) {
        char text[600], file[16], so[16];
        const char *f = names[i][1], *l = names[i][2];
        snprintf(text, sizeof text, source, f, f, f, l, f, f, l, l, l, l);
        snprintf(file, sizeof file, "%s.s", names[i][0]);
        snprintf(so, sizeof so, "%s.so", names[i][0]);
        program_write(dir, file, text);
        if (!program_build(dir, file, so, "-shared -nostdlib"))
            return 1;
    }
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    program_rmdir(dir);
    return bad;
}
