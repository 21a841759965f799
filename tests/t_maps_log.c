/* The log of mappings: what is written of a real process, against what /proc, readelf and the
 * process itself say; what is read back after it has died; hostile logs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/session/maps_log.h"
#include "tests/lib_run.h"

#define SECOND 1000000000u

struct fixture {
    char *dir;
    struct run_child target;
    uint64_t jit;
    struct maps_writer *w;
};

static uint64_t read_address(struct run_child *c)
{
    char line[64];
    assert_non_null(fgets(line, sizeof line, c->out));
    return strtoull(line, NULL, 16);
}

static void start(struct fixture *f, const char *program)
{
    struct err err = {0};
    f->dir = run_temp_dir();
    char *path = program ? xstrdup(program) : run_tool("maps_target");
    f->target = run_start((char *[]){path, NULL});
    free(path);
    f->jit = read_address(&f->target);
    assert_int_equal(maps_writer_new(&f->w, f->dir, "/proc", &err), 0);
}

static void capture(struct fixture *f, uint64_t time_ns, const char *reason)
{
    maps_writer_capture(f->w, f->target.pid, time_ns, reason);
    assert_true(maps_writer_flush(f->w, 20ull * SECOND));
}

static struct maps_log *finish(struct fixture *f)
{
    struct err err = {0};
    struct maps_log *log;
    maps_writer_free(f->w);
    assert_int_equal(maps_log_open(&log, f->dir, &err), 0);
    assert_null(maps_log_partial(log));
    return log;
}

static void clean(struct fixture *f, struct maps_log *log)
{
    maps_log_close(log);
    run_remove_tree(f->dir);
    free(f->dir);
}

/* Every line of /proc/PID/maps is in the capture, and nothing else. */
static void same_as_proc(const struct maps_capture *c, pid_t pid)
{
    char *path = xasprintf("/proc/%ld/maps", (long)pid);
    FILE *f = fopen(path, "r");
    char line[8192];
    size_t i = 0;
    for (; fgets(line, sizeof line, f); i++) {
        uint64_t start, end, off;
        unsigned maj, min;
        unsigned long long inode;
        char prot[5];
        int at = 0;
        assert_int_equal(sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %llu %n",
                                &start, &end, prot, &off, &maj, &min, &inode, &at),
                         7);
        line[strcspn(line, "\n")] = '\0';
        assert_true(i < c->n);
        const struct maps_mapping *m = &c->mappings[i];
        assert_true(m->start == start && m->end == end && m->pgoff == off);
        assert_string_equal(m->path, line + at);
        assert_int_equal(m->prot, (prot[0] == 'r' ? PROT_READ : 0) |
                                      (prot[1] == 'w' ? PROT_WRITE : 0) |
                                      (prot[2] == 'x' ? PROT_EXEC : 0));
        if (m->file)
            assert_true(m->file->inode == inode);
        if (prot[2] == 'x' && inode)
            assert_non_null(m->file);
    }
    assert_int_equal(i, c->n);
    fclose(f);
    free(path);
}

static char *build_id_by_readelf(const char *path)
{
    char *command = xasprintf("readelf -n '%s' 2>/dev/null | sed -n 's/.*Build ID: //p'", path);
    char *out = run_output(command, NULL);
    out[strcspn(out, "\n")] = '\0';
    free(command);
    return out;
}

static void assert_build_id(const struct maps_file *file, const char *hex)
{
    char have[41] = "";
    for (int i = 0; i < file->build_id_len; i++)
        sprintf(have + 2 * i, "%02x", file->build_id[i]);
    assert_string_equal(have, hex);
}

static void test_live_process(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, NULL);
    capture(&f, 0, "arm");
    struct maps_writer_stats stats;
    maps_writer_stats(f.w, &stats);
    assert_int_equal(stats.captures, 1);
    assert_int_equal(stats.left_out, 0);
    char *exe = run_tool("maps_target");
    char *real = realpath(exe, NULL);
    struct maps_log *log = finish(&f);
    assert_int_equal(maps_log_capture_count(log), 1);
    const struct maps_capture *c = maps_log_capture(log, 0);
    assert_int_equal(c->pid, f.target.pid);
    assert_string_equal(c->reason, "arm");
    same_as_proc(c, f.target.pid);

    const struct maps_file *file = maps_log_file(log, real);
    assert_non_null(file);
    char *hex = build_id_by_readelf(real);
    assert_int_equal(strlen(hex), 40);
    assert_build_id(file, hex);
    assert_null(file->copy); /* it is where it was */
    assert_false(file->deleted);
    free(hex);

    /* Its own mapping finds the code page; the hole below address 4096 finds nothing. */
    assert_true(maps_capture_find(c, f.jit)->start <= f.jit);
    assert_null(maps_capture_find(c, 16));

    assert_string_equal(maps_log_comm(log, f.target.pid, 5), "maps_target");
    bool worker = false;
    for (size_t i = 0; i < maps_log_thread_count(log); i++)
        worker |= !strcmp(maps_log_thread(log, i)->comm, "wörker\t1");
    assert_true(worker);

    size_t len;
    char *map = run_read_file(maps_log_perf_map(log, f.target.pid), &len);
    assert_string_equal(map, "1000 10 jitted_function\n");
    free(map);
    free(real);
    free(exe);
    run_finish(&f.target);
    clean(&f, log);
}

static void test_dead_process_keeps_code(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, NULL);
    capture(&f, 0, "arm");
    run_kill(&f.target);
    capture(&f, 900, "snapshot"); /* gone: changes nothing */
    char *map = xasprintf("/tmp/perf-%ld.map", (long)f.target.pid);
    unlink(map);
    free(map);
    struct maps_log *log = finish(&f);
    assert_int_equal(maps_log_capture_count(log), 1);
    unsigned char bytes[16];
    assert_int_equal(maps_log_code_read(log, f.target.pid, 0, f.jit, bytes, 4), 4);
    assert_memory_equal(bytes, "\xc3\x90\x90\x90", 4);
    assert_int_equal(maps_log_code_read(log, f.target.pid, 0, f.jit + 4095, bytes, 16), 1);
    assert_int_equal(maps_log_code_read(log, f.target.pid, 0, f.jit + 4096, bytes, 16), 0);

    /* One kernel gives every process the same vdso: ours is the independent answer. */
    const unsigned char *own = (const unsigned char *)getauxval(AT_SYSINFO_EHDR);
    bool vdso = false;
    for (size_t i = 0; own && i < maps_log_code_count(log); i++) {
        const struct maps_code *code = maps_log_code(log, i);
        if (strcmp(code->name, "[vdso]") != 0)
            continue;
        size_t len;
        char *kept = run_read_file(code->path, &len);
        assert_int_equal(len, code->end - code->start);
        assert_memory_equal(kept, own, 4096);
        free(kept);
        vdso = true;
    }
    assert_true(vdso || !own);
    clean(&f, log);
}

static void test_only_changes_are_written(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, NULL);
    capture(&f, 0, "arm");
    capture(&f, 100, "poll");
    assert_int_equal(write(f.target.in, "m", 1), 1);
    uint64_t second = read_address(&f.target);
    capture(&f, 200, "poll");
    capture(&f, 300, "hit");
    struct maps_log *log = finish(&f);
    assert_int_equal(maps_log_capture_count(log), 2);
    assert_int_equal(maps_log_capture(log, 1)->time_ns, 200);
    assert_ptr_equal(maps_log_at(log, f.target.pid, 199), maps_log_capture(log, 0));
    assert_ptr_equal(maps_log_at(log, f.target.pid, 200), maps_log_capture(log, 1));
    assert_ptr_equal(maps_log_at(log, f.target.pid, UINT64_MAX), maps_log_capture(log, 1));
    assert_null(maps_log_at(log, 1, 0));
    assert_null(maps_capture_find(maps_log_capture(log, 0), second));
    assert_non_null(maps_capture_find(maps_log_capture(log, 1), second));
    unsigned char bytes[2];
    assert_int_equal(maps_log_code_read(log, f.target.pid, 250, second, bytes, 2), 2);
    assert_memory_equal(bytes, "\xc3\x91", 2);
    run_finish(&f.target);
    clean(&f, log);
}

static void test_deleted_program_is_copied(void **state)
{
    (void)state;
    char *bin_dir = run_temp_dir(), *tool = run_tool("maps_target");
    char *copy = xasprintf("%s/a name\nwith newline", bin_dir);
    size_t len, kept_len;
    char *original = run_read_file(tool, &len);
    FILE *out = fopen(copy, "we");
    assert_int_equal(fwrite(original, 1, len, out), len);
    fclose(out);
    chmod(copy, 0755);
    struct fixture f;
    start(&f, copy);
    unlink(copy);
    capture(&f, 0, "arm");
    struct maps_log *log = finish(&f);
    const struct maps_file *file = maps_log_file(log, copy);
    assert_non_null(file);
    assert_true(file->deleted);
    assert_non_null(file->copy);
    char *kept = run_read_file(file->copy, &kept_len);
    assert_int_equal(kept_len, len);
    assert_memory_equal(kept, original, len);
    char *hex = build_id_by_readelf(tool);
    assert_build_id(file, hex);
    free(hex);
    free(kept);
    free(original);
    run_finish(&f.target);
    clean(&f, log);
    run_remove_tree(bin_dir);
    free(bin_dir);
    free(copy);
    free(tool);
}

/* A program replaced by another of the same name: the bytes kept are those that run. */
static void test_replaced_program_is_copied(void **state)
{
    (void)state;
    char *bin_dir = run_temp_dir(), *tool = run_tool("maps_target");
    char *command = xasprintf("cp '%s' '%s/p'", tool, bin_dir);
    assert_int_equal(system(command), 0);
    char *program = xasprintf("%s/p", bin_dir), *fresh = xasprintf("%s/new", bin_dir);
    struct fixture f;
    start(&f, program);
    run_write_file(fresh, "#!/bin/sh\n");
    assert_int_equal(rename(fresh, program), 0);
    capture(&f, 0, "arm");
    struct maps_log *log = finish(&f);
    const struct maps_file *file = maps_log_file(log, program);
    assert_non_null(file->copy);
    size_t a, b;
    char *kept = run_read_file(file->copy, &a), *original = run_read_file(tool, &b);
    assert_int_equal(a, b);
    assert_memory_equal(kept, original, a);
    free(kept);
    free(original);
    run_finish(&f.target);
    clean(&f, log);
    run_remove_tree(bin_dir);
    free(command);
    free(program);
    free(fresh);
    free(bin_dir);
    free(tool);
}

/* ---- Logs from outside ---- */

static struct maps_log *open_text(const char *text, char **dir)
{
    struct err err = {0};
    struct maps_log *log = NULL;
    *dir = run_temp_dir();
    char *maps = xasprintf("%s/maps", *dir), *path = xasprintf("%s/log", maps);
    mkdir(maps, 0700);
    run_write_file(path, text);
    if (maps_log_open(&log, *dir, &err) < 0)
        assert_true(err.text[0] != '\0');
    free(path);
    free(maps);
    return log;
}

static void close_text(struct maps_log *log, char *dir)
{
    maps_log_close(log);
    run_remove_tree(dir);
    free(dir);
}

static void test_cut_and_damaged_logs(void **state)
{
    (void)state;
    char *dir;
    struct maps_log *log = open_text("mtui-maps 2\n", &dir);
    assert_null(log);
    close_text(log, dir);

    /* The second capture has no end: the first stays. */
    log = open_text("mtui-maps 1\n"
                    "F\t1\t802\t77\t4096\t5\tabcd\tpresent\t-\t/a\\tb\n"
                    "P\t0\t12\tarm\n"
                    "M\t1000\t2000\t0\tr-xp\t802\t77\t1\t/a\\tb\n"
                    "E\t1\n"
                    "P\t9\t12\tpoll\n"
                    "M\t1000\t2000\t0\tr-xp\t802\t77\t1\t/a\\tb\n",
                    &dir);
    assert_int_equal(maps_log_capture_count(log), 1);
    assert_non_null(maps_log_partial(log));
    const struct maps_mapping *m = maps_capture_find(maps_log_capture(log, 0), 0x1fff);
    assert_string_equal(m->path, "/a\tb");
    assert_int_equal(m->file->build_id_len, 2);
    assert_memory_equal(m->file->build_id, "\xab\xcd", 2);
    assert_string_equal(maps_log_comm(log, 12, 0) ? "x" : "none", "none");
    close_text(log, dir);

    /* File numbers beyond the files, overlapping mappings, wrong counts, names that lead out. */
    log = open_text("mtui-maps 1\n"
                    "P\t0\t12\tarm\nM\t1000\t2000\t0\tr-xp\t0\t0\t7\t/x\nE\t1\n"
                    "P\t1\t12\tarm\nM\t1000\t3000\t0\tr-xp\t0\t0\t0\t/x\n"
                    "M\t2000\t4000\t0\tr-xp\t0\t0\t0\t/y\nE\t2\n"
                    "X\t0\t12\t1000\t2000\t../../etc/passwd\t[vdso]\n"
                    "X\t0\t12\t2000\t1000\tcode-1\t[vdso]\n"
                    "J\t0\t12\t.hidden\n"
                    "T\t0\t99999999999\t1\tx\n"
                    "Z\tfrom a later version\n"
                    "M\t1\n\nP\n",
                    &dir);
    assert_int_equal(maps_log_capture_count(log), 0);
    assert_int_equal(maps_log_code_count(log), 0);
    assert_null(maps_log_perf_map(log, 12));
    assert_int_equal(maps_log_thread_count(log), 0);
    close_text(log, dir);
}

/* Pages as stepping saw them: each holds until the next of its page, whatever order they come in, and up to the
 * end of the page. Damaged ones are left out. */
static void test_stepped_code(void **state)
{
    (void)state;
    char *dir, got[16];
    struct maps_log *log = open_text("mtui-maps 1\n"
                                     "C\t300\t12\t5000\t8192\n"
                                     "C\t0\t12\t5000\t0\n"
                                     "C\t100\t12\t5000\t4096\n"
                                     "C\t100\t12\t7000\t-\n"
                                     "C\t100\t12\t5001\t0\n"
                                     "C\t100\t12\t9000\t-1\n"
                                     "C\t100\t12\t9000\n"
                                     "C\t0\t12\ta000\t9223372036854775807\n",
                                     &dir);
    assert_int_equal(maps_log_code_stepped(log, 12, 0, 0x5000, got, 16), 0); /* no file */
    maps_log_close(log);
    char *path = xasprintf("%s/maps/code-step", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int page = 0; page < 3; page++)
        for (int i = 0; i < 4096; i++)
            fputc('a' + page, f);
    fclose(f);
    free(path);
    assert_int_equal(maps_log_open(&log, dir, NULL), 0);
    assert_non_null(maps_log_partial(log));
    const struct {
        uint64_t time;
        char byte;
    } at[] = {{0, 'a'}, {99, 'a'}, {100, 'b'}, {299, 'b'}, {300, 'c'}, {UINT64_MAX, 'c'}};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        assert_int_equal(maps_log_code_stepped(log, 12, at[i].time, 0x5ffe, got, 16), 2);
        assert_int_equal(got[0], at[i].byte);
        assert_int_equal(got[1], at[i].byte);
    }
    assert_int_equal(maps_log_code_stepped(log, 12, 99, 0x7000, got, 16), -1);
    assert_int_equal(maps_log_code_stepped(log, 12, 100, 0x7000, got, 16), 0);
    assert_int_equal(maps_log_code_stepped(log, 12, 100, 0x4fff, got, 16), -1);
    assert_int_equal(maps_log_code_stepped(log, 12, 100, 0x6000, got, 16), -1);
    assert_int_equal(maps_log_code_stepped(log, 12, 100, 0x9000, got, 16), -1);
    assert_int_equal(maps_log_code_stepped(log, 13, 100, 0x5000, got, 16), -1);
    assert_int_equal(maps_log_code_stepped(log, 12, 100, 0xa000, got, 16), 0); /* behind the file's end */
    assert_true(maps_log_has_stepped(log, 12, 0, 0x4000, 0x6000));
    assert_false(maps_log_has_stepped(log, 12, 99, 0x6000, 0xa000));
    assert_true(maps_log_has_stepped(log, 12, 100, 0x7fff, 0x8000));
    assert_false(maps_log_has_stepped(log, 12, 100, 0x3000, 0x5000));
    close_text(log, dir);
}

static void test_no_log(void **state)
{
    (void)state;
    struct maps_log *log;
    struct err err = {0};
    char *dir = run_temp_dir();
    assert_int_equal(maps_log_open(&log, dir, &err), MTUI_E_NOENT);
    run_remove_tree(dir);
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_live_process),
        cmocka_unit_test(test_dead_process_keeps_code),
        cmocka_unit_test(test_only_changes_are_written),
        cmocka_unit_test(test_deleted_program_is_copied),
        cmocka_unit_test(test_replaced_program_is_copied),
        cmocka_unit_test(test_cut_and_damaged_logs),
        cmocka_unit_test(test_stepped_code),
        cmocka_unit_test(test_no_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
