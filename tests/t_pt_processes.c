/* Buffers of CPUs on which several processes run, with other code at the same addresses: after fork the child
 * has its parent's, exec replaces it, a library takes the place of another. Packets and records by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/step/perf_writer.h"
#include "decode/export/export.h"
#include "decode/open/open.h"
#include "lib_packets.h"
#include "lib_program.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(field_H8_fork_exec_and_remap)};
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
