/* decode/image/addrspace: address spaces and names by time, on streams of records made by hand; what must come
 * out follows from what the kernel does, written beside each case. And decode/image/map_table against a table
 * of single addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "decode/image/addrspace.h"
#include "decode/image/map_table.h"
#include "tests/lib_run.h"

/* ---- Records ---- */

static void apply(struct addrspaces *as, struct perf_record rec)
{
    if (rec.cpumode == PERF_MODE_UNKNOWN)
        rec.cpumode = PERF_MODE_USER;
    assert_int_equal(addrspaces_apply(as, &rec, NULL), 0);
}

static void mmap_at(struct addrspaces *as, pid_t pid, uint64_t start, uint64_t len, uint64_t pgoff,
                    const char *path)
{
    struct perf_record rec = {.kind = PERF_REC_MMAP};
    rec.u.mmap.pid = rec.u.mmap.tid = pid;
    rec.u.mmap.start = start;
    rec.u.mmap.len = len;
    rec.u.mmap.pgoff = pgoff;
    rec.u.mmap.path = path;
    apply(as, rec);
}

static void fork_to(struct addrspaces *as, pid_t ppid, pid_t ptid, pid_t pid, pid_t tid)
{
    struct perf_record rec = {.kind = PERF_REC_FORK};
    rec.u.fork.pid = pid;
    rec.u.fork.tid = tid;
    rec.u.fork.ppid = ppid;
    rec.u.fork.ptid = ptid;
    apply(as, rec);
}

static void end(struct addrspaces *as, pid_t pid, pid_t tid)
{
    struct perf_record rec = {.kind = PERF_REC_EXIT};
    rec.u.fork.pid = pid;
    rec.u.fork.tid = tid;
    apply(as, rec);
}

static void name(struct addrspaces *as, pid_t pid, pid_t tid, const char *comm, bool exec)
{
    struct perf_record rec = {.kind = PERF_REC_COMM};
    rec.u.comm.pid = pid;
    rec.u.comm.tid = tid;
    rec.u.comm.comm = comm;
    rec.u.comm.exec = exec;
    apply(as, rec);
}

static void sample(struct addrspaces *as, pid_t pid, enum perf_cpumode mode)
{
    struct perf_record rec = {.kind = PERF_REC_SAMPLE, .pid = pid, .tid = pid, .cpumode = mode};
    apply(as, rec);
}

/* "path+offset" of an address, "-" when nothing is there. */
static const char *where(const struct addrspaces *as, pid_t pid, uint64_t ip)
{
    static char out[256];
    const struct addrspace_map *m = addrspaces_find(as, pid, ip, PERF_MODE_USER);
    if (!m)
        return "-";
    snprintf(out, sizeof out, "%s+%llx", addrspaces_module(as, m->module).path,
             (unsigned long long)(ip - m->start + m->pgoff));
    return out;
}

/* ---- Cases ---- */

static void overlaps(void **state)
{
    (void)state;
    struct addrspaces *as = addrspaces_new(NULL);
    mmap_at(as, 1, 0x10000, 0x10000, 0x1000, "/a");
    assert_string_equal(where(as, 1, 0xffff), "-");
    assert_string_equal(where(as, 1, 0x10000), "/a+1000");
    assert_string_equal(where(as, 1, 0x1ffff), "/a+10fff");
    assert_string_equal(where(as, 1, 0x20000), "-");

    mmap_at(as, 1, 0x14000, 0x2000, 0, "/b"); /* a hole in the middle */
    assert_string_equal(where(as, 1, 0x13fff), "/a+4fff");
    assert_string_equal(where(as, 1, 0x14000), "/b+0");
    assert_string_equal(where(as, 1, 0x15fff), "/b+1fff");
    assert_string_equal(where(as, 1, 0x16000), "/a+7000");

    mmap_at(as, 1, 0xf000, 0x2000, 0x5000, "/c"); /* the beginning */
    assert_string_equal(where(as, 1, 0xf000), "/c+5000");
    assert_string_equal(where(as, 1, 0x10fff), "/c+6fff");
    assert_string_equal(where(as, 1, 0x11000), "/a+2000");

    mmap_at(as, 1, 0x1f000, 0x2000, 0, "/d"); /* the end */
    assert_string_equal(where(as, 1, 0x1efff), "/a+ffff");
    assert_string_equal(where(as, 1, 0x1f000), "/d+0");

    mmap_at(as, 1, 0x12000, 0xc000, 0, "/e"); /* several at once */
    assert_string_equal(where(as, 1, 0x11fff), "/a+2fff");
    assert_string_equal(where(as, 1, 0x14000), "/e+2000");
    assert_string_equal(where(as, 1, 0x1dfff), "/e+bfff");
    assert_string_equal(where(as, 1, 0x1e000), "/a+f000");
    size_t n;
    const struct addrspace_map *maps = addrspaces_maps(as, 1, &n);
    assert_int_equal(n, 5);
    for (size_t i = 1; i < n; i++)
        assert_true(maps[i - 1].end <= maps[i].start);
    addrspaces_free(as);
}

static void processes(void **state)
{
    (void)state;
    struct addrspaces *as = addrspaces_new(NULL);
    name(as, 10, 10, "parent", false);
    mmap_at(as, 10, 0x1000, 0x1000, 0, "/bin/parent");

    /* fork: the child has what the parent had, and from then on each has its own */
    fork_to(as, 10, 10, 20, 20);
    assert_string_equal(where(as, 20, 0x1000), "/bin/parent+0");
    assert_string_equal(addrspaces_comm(as, 20), "parent");
    assert_int_equal(addrspaces_generation(as, 10), addrspaces_generation(as, 20));
    mmap_at(as, 20, 0x5000, 0x1000, 0, "/lib/child");
    mmap_at(as, 10, 0x7000, 0x1000, 0, "/lib/parent");
    assert_string_equal(where(as, 10, 0x5000), "-");
    assert_string_equal(where(as, 20, 0x7000), "-");
    assert_true(addrspaces_generation(as, 10) != addrspaces_generation(as, 20));

    /* a thread shares, and is named on its own */
    fork_to(as, 20, 20, 20, 21);
    assert_string_equal(addrspaces_comm(as, 21), "parent");
    name(as, 20, 21, "worker", false);
    assert_string_equal(addrspaces_comm(as, 20), "parent");
    assert_string_equal(addrspaces_comm(as, 21), "worker");
    assert_int_equal(addrspaces_pid(as, 21), 20);
    mmap_at(as, 20, 0x9000, 0x1000, 0, "/lib/late");
    assert_string_equal(where(as, addrspaces_pid(as, 21), 0x9000), "/lib/late+0");

    /* the end of a thread takes nothing away */
    end(as, 20, 21);
    assert_string_equal(where(as, 20, 0x9000), "/lib/late+0");
    end(as, 20, 20);
    assert_string_equal(where(as, 20, 0x9000), "/lib/late+0");
    assert_string_equal(addrspaces_comm(as, 21), "worker");

    /* the pid is used again */
    fork_to(as, 10, 10, 20, 20);
    assert_string_equal(where(as, 20, 0x9000), "-");
    assert_string_equal(where(as, 20, 0x7000), "/lib/parent+0");
    assert_int_equal(addrspaces_generation(as, 10), addrspaces_generation(as, 20));

    /* a thread's id becomes a process's */
    fork_to(as, 10, 10, 21, 21);
    assert_int_equal(addrspaces_pid(as, 21), 21);
    assert_string_equal(addrspaces_comm(as, 21), "parent");
    assert_string_equal(where(as, 21, 0x1000), "/bin/parent+0");

    assert_null(addrspaces_comm(as, 999));
    assert_int_equal(addrspaces_pid(as, 999), -1);
    assert_int_equal(addrspaces_generation(as, 999), 0);
    addrspaces_free(as);
}

static void exec_replaces(void **state)
{
    (void)state;
    struct addrspaces *as = addrspaces_new(NULL);
    name(as, 10, 10, "sh", false);
    mmap_at(as, 10, 0x1000, 0x3000, 0, "/bin/sh");
    fork_to(as, 10, 10, 11, 11);
    uint64_t before = addrspaces_generation(as, 11);

    name(as, 11, 11, "ls", true);
    assert_string_equal(addrspaces_comm(as, 11), "ls");
    assert_true(addrspaces_generation(as, 11) != before);
    sample(as, 11, PERF_MODE_KERNEL); /* still inside the call of exec: its caller is sh */
    assert_string_equal(where(as, 11, 0x1000), "/bin/sh+0");
    mmap_at(as, 11, 0x2000, 0x1000, 0, "/bin/ls");
    assert_string_equal(where(as, 11, 0x2000), "/bin/ls+0");
    assert_string_equal(where(as, 11, 0x1000), "/bin/sh+0");

    uint64_t during = addrspaces_generation(as, 11);
    sample(as, 11, PERF_MODE_USER); /* ls runs */
    assert_string_equal(where(as, 11, 0x1000), "-");
    assert_string_equal(where(as, 11, 0x2000), "/bin/ls+0");
    assert_true(addrspaces_generation(as, 11) != during);
    assert_string_equal(where(as, 10, 0x1000), "/bin/sh+0"); /* the parent is as it was */

    name(as, 10, 10, "renamed", false); /* prctl(PR_SET_NAME) is no exec */
    assert_string_equal(where(as, 10, 0x1000), "/bin/sh+0");
    addrspaces_free(as);
}

/* Processes that perf finds at its start: FORK says who belongs to whom, the maps come separately. */
static void found_at_start(void **state)
{
    (void)state;
    struct addrspaces *as = addrspaces_new(NULL);
    struct perf_record rec = {.kind = PERF_REC_FORK};
    mmap_at(as, 1, 0x1000, 0x1000, 0, "/sbin/init");
    rec.u.fork.synthesized = true;
    rec.u.fork.pid = rec.u.fork.tid = 50;
    rec.u.fork.ppid = rec.u.fork.ptid = 1;
    apply(as, rec);
    assert_string_equal(where(as, 50, 0x1000), "-");
    mmap_at(as, 50, 0x4000, 0x1000, 0, "/bin/fifty");
    assert_string_equal(where(as, 50, 0x4000), "/bin/fifty+0");
    addrspaces_free(as);
}

static void the_kernel(void **state)
{
    (void)state;
    struct addrspaces *as = addrspaces_new(NULL);
    struct perf_record rec = {.kind = PERF_REC_MMAP, .cpumode = PERF_MODE_KERNEL};
    rec.u.mmap.pid = -1;
    rec.u.mmap.start = 0xffffffff81000000;
    rec.u.mmap.len = 0x1000000;
    rec.u.mmap.pgoff = 0xffffffff81000000;
    rec.u.mmap.path = "[kernel.kallsyms]_text";
    apply(as, rec);
    const struct addrspace_map *m =
        addrspaces_find(as, 1234, 0xffffffff81000010, PERF_MODE_KERNEL); /* of every process */
    assert_non_null(m);
    assert_string_equal(addrspaces_module(as, m->module).path, "[kernel.kallsyms]_text");
    assert_null(addrspaces_find(as, 1234, 0xffffffff81000010, PERF_MODE_USER));

    struct perf_record ksym = {.kind = PERF_REC_KSYMBOL, .cpumode = PERF_MODE_KERNEL};
    uint64_t start = 0, generation = addrspaces_generation(as, -1);
    ksym.u.ksymbol.addr = 0xffffffffc0001000;
    ksym.u.ksymbol.len = 0x100;
    ksym.u.ksymbol.name = "bpf_prog_6deef7357e7b4530_sched";
    apply(as, ksym);
    assert_true(addrspaces_generation(as, -1) != generation);
    assert_string_equal(addrspaces_ksymbol(as, 0xffffffffc00010ff, &start),
                        "bpf_prog_6deef7357e7b4530_sched");
    assert_true(start == 0xffffffffc0001000);
    assert_null(addrspaces_ksymbol(as, 0xffffffffc0001100, &start));
    ksym.u.ksymbol.flags = 1; /* unregister */
    apply(as, ksym);
    assert_null(addrspaces_ksymbol(as, 0xffffffffc0001000, &start));
    addrspaces_free(as);
}

static void build_ids(void **state)
{
    (void)state;
    struct addrspaces *as = addrspaces_new(NULL);
    struct perf_record rec = {.kind = PERF_REC_BUILD_ID};
    rec.u.build_id.path = "/listed";
    memset(rec.u.build_id.build_id, 0xab, 20);
    rec.u.build_id.build_id_len = 20;
    mmap_at(as, 1, 0x1000, 0x1000, 0, "/listed");
    apply(as, rec);
    struct addrspace_module m =
        addrspaces_module(as, addrspaces_find(as, 1, 0x1000, PERF_MODE_USER)->module);
    assert_int_equal(m.build_id_len, 20);
    assert_int_equal(m.build_id[19], 0xab);

    /* two files of one path: a build-id of the mapping's own tells them apart */
    struct perf_record own = {.kind = PERF_REC_MMAP};
    own.u.mmap.pid = 2;
    own.u.mmap.start = 0x1000;
    own.u.mmap.len = 0x1000;
    own.u.mmap.path = "/listed";
    own.u.mmap.build_id_len = 16;
    memset(own.u.mmap.build_id, 0xcd, 16);
    apply(as, own);
    m = addrspaces_module(as, addrspaces_find(as, 2, 0x1000, PERF_MODE_USER)->module);
    assert_int_equal(m.build_id_len, 16);
    assert_int_equal(m.build_id[0], 0xcd);
    assert_int_equal(addrspaces_module_count(as), 2);
    addrspaces_free(as);
}

/* mtui's own log: captures of pid 7 at 100 (before an exec) and at 200. */
static void own_log(void **state)
{
    (void)state;
    char *dir = run_temp_dir(), path[4096];
    snprintf(path, sizeof path, "mkdir %s/maps", dir);
    assert_int_equal(system(path), 0);
    snprintf(path, sizeof path, "%s/maps/log", dir);
    run_write_file(path, "mtui-maps 1\n"
                         "F\t1\t801\t11\t4096\t0\taabbccddaabbccddaabbccddaabbccddaabbccdd\tpresent\t-\t/old\n"
                         "P\t100\t7\tarm\nM\t1000\t2000\t0\tr-xp\t801\t11\t1\t/old\nE\t1\n"
                         "T\t100\t7\t7\tolder\n"
                         "P\t200\t7\tpoll\nM\t4000\t5000\t1000\tr-xp\t0\t0\t0\t\nE\t1\n");
    struct maps_log *log = NULL;
    struct err err;
    if (maps_log_open(&log, dir, &err) < 0)
        fail_msg("%s", err.text);
    assert_null(maps_log_partial(log));
    struct addrspaces *as = addrspaces_new(log);
    struct perf_record rec = {.kind = PERF_REC_OTHER};

    mmap_at(as, 7, 0x1000, 0x1000, 0, "/end-state"); /* from the dump, time 0 */
    assert_string_equal(where(as, 7, 0x1000), "/end-state+0");
    rec.time_ns = 150;
    apply(as, rec);
    assert_string_equal(where(as, 7, 0x1000), "/old+0");
    assert_string_equal(addrspaces_comm(as, 7), "older");
    struct addrspace_module m =
        addrspaces_module(as, addrspaces_find(as, 7, 0x1000, PERF_MODE_USER)->module);
    assert_int_equal(m.build_id_len, 20);
    assert_int_equal(m.build_id[0], 0xaa);
    rec.time_ns = 250;
    apply(as, rec);
    assert_string_equal(where(as, 7, 0x1000), "-");
    assert_string_equal(where(as, 7, 0x4000), "//anon+1000");
    addrspaces_free(as);
    maps_log_close(log);
    run_remove_tree(dir);
    free(dir);
}

/* ---- The table against single addresses ---- */

static void random_tables(void **state)
{
    (void)state;
    enum { SIZE = 64 };
    srand(1);
    for (int round = 0; round < 500; round++) {
        struct map_table *t = map_table_new();
        uint32_t module[SIZE] = {0};
        uint64_t offset[SIZE] = {0};
        for (uint32_t step = 1; step <= 20; step++) {
            uint64_t start = (uint64_t)(rand() % SIZE), len = (uint64_t)(rand() % 20);
            if (start + len > SIZE)
                len = SIZE - start;
            struct addrspace_map m = {.start = start, .end = start + len, .pgoff = step * 100,
                                      .module = step};
            bool cut = rand() % 5 == 0;
            assert_true(cut ? map_table_cut(t, start, start + len) : map_table_insert(t, &m));
            for (uint64_t a = start; a < start + len; a++) {
                module[a] = cut ? 0 : step;
                offset[a] = step * 100 + a - start;
            }
            for (uint64_t a = 0; a < SIZE; a++) {
                const struct addrspace_map *found = map_table_find(t, a);
                assert_int_equal(found ? found->module : 0, module[a]);
                if (found)
                    assert_int_equal(a - found->start + found->pgoff, offset[a]);
            }
        }
        map_table_drop(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlaps),      cmocka_unit_test(processes),
        cmocka_unit_test(exec_replaces), cmocka_unit_test(found_at_start),
        cmocka_unit_test(the_kernel),    cmocka_unit_test(build_ids),
        cmocka_unit_test(own_log),       cmocka_unit_test(random_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
