/* The code of processes over time: what is mapped over something else is what runs from then on; fork, exec
 * and mprotect; dumps of code without a file; files that are not the ones that ran. Bytes are compared with
 * those of the files, read here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "decode/image/code_image.h"
#include "lib_program.h"

#define AT 0x7f0000000000u
#define LEN 0x1000
#define FLAGS "-O1 -shared -fPIC -nostdlib -Wl,-z,separate-code "
#define ID_ONE "1111111111111111111111111111111111111111"
#define ID_TWO "2222222222222222222222222222222222222222"

static char *dir;
static char one[300], two[300];

struct scene {
    struct maps_log *log;
    struct functions *functions;
    struct addrspaces *as;
    struct symbolizer *symbols;
    struct code_image *image;
    struct code_view *view;
};

static struct scene scene(const char *snapshot, const struct symbolizer_options *options)
{
    struct scene s = {.functions = functions_new()};
    struct symbolizer_options o = options ? *options : (struct symbolizer_options){.build_id_dir = "/nowhere"};
    if (snapshot)
        assert_int_equal(maps_log_open(&s.log, snapshot, NULL), 0);
    o.log = s.log;
    s.as = addrspaces_new(s.log);
    s.symbols = symbolizer_new(s.functions, s.as, &o);
    s.image = code_image_new(s.as, s.symbols, s.functions, s.log);
    s.view = code_view_new(s.image);
    return s;
}

static void leave(struct scene *s)
{
    code_view_free(s->view);
    code_image_free(s->image);
    symbolizer_free(s->symbols);
    addrspaces_free(s->as);
    functions_free(s->functions);
    if (s->log)
        maps_log_close(s->log);
}

static void apply(struct scene *s, struct perf_record *rec, pid_t pid, uint64_t time_ns)
{
    rec->cpumode = PERF_MODE_USER;
    rec->time_ns = time_ns;
    rec->has_time = true;
    assert_int_equal(addrspaces_apply(s->as, rec, NULL), 0);
    assert_int_equal(code_image_note(s->image, pid, time_ns), 0);
}

static void map_at(struct scene *s, pid_t pid, uint64_t start, uint64_t len, const char *path, uint64_t time_ns)
{
    struct perf_record rec = {.kind = PERF_REC_MMAP};
    rec.u.mmap.pid = rec.u.mmap.tid = pid;
    rec.u.mmap.start = start;
    rec.u.mmap.len = len;
    rec.u.mmap.pgoff = 0x1000;
    rec.u.mmap.prot = PROT_READ | PROT_EXEC;
    rec.u.mmap.path = path;
    apply(s, &rec, pid, time_ns);
}

static void fork_at(struct scene *s, pid_t parent, pid_t child, uint64_t time_ns)
{
    struct perf_record rec = {.kind = PERF_REC_FORK};
    rec.u.fork.pid = rec.u.fork.tid = child;
    rec.u.fork.ppid = rec.u.fork.ptid = parent;
    apply(s, &rec, child, time_ns);
}

static void exec_at(struct scene *s, pid_t pid, uint64_t time_ns)
{
    struct perf_record rec = {.kind = PERF_REC_COMM};
    rec.u.comm.pid = rec.u.comm.tid = pid;
    rec.u.comm.exec = true;
    rec.u.comm.comm = "new";
    apply(s, &rec, pid, time_ns);
}

/* The 16 bytes at AT + offset are those of the file there; path NULL: there are none. */
static void expect(struct scene *s, pid_t pid, uint64_t time_ns, uint64_t offset, const char *path)
{
    uint8_t got[16], want[16];
    code_view_at(s->view, pid, time_ns);
    struct pt_code code = code_view_code(s->view);
    size_t n = code.read(code.arg, AT + offset, got, sizeof got);
    if (!path) {
        assert_int_equal(n, 0);
        return;
    }
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, want, sizeof want, (off_t)(0x1000 + offset)), sizeof want);
    close(fd);
    assert_int_equal(n, sizeof want);
    assert_memory_equal(got, want, sizeof want);
}

static const char *name_at(struct scene *s, pid_t pid, uint64_t time_ns)
{
    uint64_t offset;
    code_view_at(s->view, pid, time_ns);
    struct pt_code code = code_view_code(s->view);
    return functions_get(s->functions, code.function(code.arg, AT, &offset))->name;
}

/* dlclose, and another library at the same address: there is no record of the first. */
static void mapped_over(void **state)
{
    struct scene s = scene(NULL, NULL);
    (void)state;
    map_at(&s, 7, AT, LEN, one, 100);
    map_at(&s, 7, AT, LEN, two, 200);
    map_at(&s, 7, AT, LEN, one, 300);
    expect(&s, 7, 150, 0, one);
    assert_string_equal(name_at(&s, 7, 150), "first");
    expect(&s, 7, 200, 0, two);
    assert_string_equal(name_at(&s, 7, 299), "second");
    expect(&s, 7, 300, 0, one);
    expect(&s, 7, 199, 0, one);
    assert_string_equal(code_image_where(s.image, 7, 250, AT, NULL), two);
    assert_null(code_image_where(s.image, 7, 250, AT + LEN, NULL));
    assert_null(code_image_where(s.image, 8, 250, AT, NULL));
    leave(&s);
}

/* A view says when the code is another, and only then. */
static void field_C8_changes_are_told(void **state)
{
    struct scene s = scene(NULL, NULL);
    (void)state;
    map_at(&s, 7, AT, LEN, one, 100);
    map_at(&s, 7, AT + 0x10000, LEN, two, 200);
    map_at(&s, 8, AT, LEN, one, 250);
    assert_true(code_view_at(s.view, 7, 50));
    assert_false(code_view_at(s.view, 7, 150));
    assert_true(code_view_at(s.view, 7, 200));
    assert_false(code_view_at(s.view, 7, 1000));
    assert_true(code_view_at(s.view, 8, 1000));
    assert_true(code_view_at(s.view, 9, 1000));
    assert_false(code_view_at(s.view, 10, 1000));
    leave(&s);
}

/* mprotect makes the kernel record a mapping of the part; what lies beside it stays. */
static void part_of_a_mapping(void **state)
{
    struct scene s = scene(NULL, NULL);
    (void)state;
    map_at(&s, 7, AT, 0x3000, one, 100);
    map_at(&s, 7, AT + 0x1000, 0x1000, two, 200);
    expect(&s, 7, 250, 0, one);
    assert_string_equal(code_image_where(s.image, 7, 250, AT + 0x1800, NULL), two);
    assert_string_equal(code_image_where(s.image, 7, 250, AT + 0x2000, NULL), one);
    assert_string_equal(code_image_where(s.image, 7, 150, AT + 0x1800, NULL), one);
    leave(&s);
}

static void fork_and_exec(void **state)
{
    struct scene s = scene(NULL, NULL);
    (void)state;
    map_at(&s, 7, AT, LEN, one, 100);
    fork_at(&s, 7, 8, 200);
    map_at(&s, 7, AT, LEN, two, 250); /* the parent goes its own way */
    expect(&s, 8, 260, 0, one);
    expect(&s, 7, 260, 0, two);
    exec_at(&s, 8, 300);
    map_at(&s, 8, AT, LEN, two, 310);
    expect(&s, 8, 299, 0, one);
    expect(&s, 8, 320, 0, two);
    leave(&s);
}

/* Where the times of a trace are coarse, code seems to run before it is mapped: then the next mapping there
 * is meant. What is mapped already comes first. */
static void mapped_a_little_later(void **state)
{
    struct scene s = scene(NULL, NULL);
    (void)state;
    map_at(&s, 7, AT + 0x100000, LEN, one, 100);
    map_at(&s, 7, AT, LEN, two, 200);
    map_at(&s, 7, AT, LEN, one, 300);
    expect(&s, 7, 150, 0, two);
    expect(&s, 7, 250, 0, two);
    expect(&s, 7, 350, 0, one);
    expect(&s, 7, 150, 0x10000, NULL);
    leave(&s);
}

static size_t allocated(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* Thousands of mappings, each at a time of its own: memory for the changes, not for every state. */
static void many_changes(void **state)
{
    enum { N = 20000 };
    struct scene s = scene(NULL, NULL);
    char path[64];
    (void)state;
    size_t before = allocated();
    for (unsigned i = 0; i < N; i++) {
        snprintf(path, sizeof path, "/nowhere/%u", i % 100);
        map_at(&s, 7, AT + (uint64_t)i * 0x10000, LEN, path, 1000 + i);
    }
    size_t used = allocated() - before;
    print_message("%zu bytes a mapping\n", used / N);
    assert_true(used < N * (size_t)1000);
    assert_string_equal(code_image_where(s.image, 7, 1000 + 5, AT + 5 * 0x10000, NULL), "/nowhere/5");
    assert_null(code_image_where(s.image, 7, 1000 + N, AT + N * UINT64_C(0x10000), NULL));
    assert_string_equal(code_image_where(s.image, 7, 1000 + N, AT + (N - 1) * UINT64_C(0x10000), NULL), "/nowhere/99");
    leave(&s);
}

/* ---- where bytes come from ---- */

static void write_log(const char *text)
{
    assert_true(program_shell(dir, "mkdir -p snap/maps"));
    char *path = xasprintf("%s/snap/maps/log", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    free(path);
}

/* Code without a file comes from the dumps of the snapshot directory, by time; a file that was mapped there
 * since is what runs. */
static void field_C7_code_without_a_file(void **state)
{
    char *snap = xasprintf("%s/snap", dir), text[1000];
    (void)state;
    assert_true(program_shell(dir, "mkdir -p snap/maps; printf 'early code 12345' >snap/maps/code-1; "
                                   "printf 'late code, other' >snap/maps/code-2"));
    snprintf(text, sizeof text, "mtui-maps 1\nX\t100\t7\t%llx\t%llx\tcode-1\t\nX\t200\t7\t%llx\t%llx\tcode-2\t\n",
             (unsigned long long)AT, (unsigned long long)AT + 16, (unsigned long long)AT,
             (unsigned long long)AT + 16);
    write_log(text);
    struct scene s = scene(snap, NULL);
    uint8_t got[16];
    map_at(&s, 7, AT, LEN, "//anon", 50);
    map_at(&s, 7, AT, LEN, one, 300);
    struct pt_code code = code_view_code(s.view);
    code_view_at(s.view, 7, 120);
    assert_int_equal(code.read(code.arg, AT, got, sizeof got), 16);
    assert_memory_equal(got, "early code 12345", 16);
    assert_int_equal(code.read(code.arg, AT + 6, got, sizeof got), 10);
    assert_memory_equal(got, "code 12345", 10);
    code_view_at(s.view, 7, 250);
    assert_int_equal(code.read(code.arg, AT, got, sizeof got), 16);
    assert_memory_equal(got, "late code, other", 16);
    expect(&s, 7, 300, 0, one);
    leave(&s);
    free(snap);
}

/* Below symfs, and nowhere else. */
static void below_symfs(void **state)
{
    char *root = xasprintf("%s/root", dir), *copy = xasprintf("%s/root/lib/l.so", dir);
    struct symbolizer_options o = {.symfs = root, .build_id_dir = "/nowhere"};
    (void)state;
    assert_true(program_shell(dir, "mkdir -p root/lib && cp two.so root/lib/l.so"));
    struct scene s = scene(NULL, &o);
    map_at(&s, 7, AT, LEN, "/lib/l.so", 100);
    expect(&s, 7, 100, 0, copy);
    leave(&s);
    s = scene(NULL, &o);
    map_at(&s, 7, AT, LEN, one, 100);
    expect(&s, 7, 100, 0, NULL);
    leave(&s);
    free(root);
    free(copy);
}

static void map_with_id(struct scene *s, const char *path, const char *id, uint64_t time_ns)
{
    struct perf_record rec = {.kind = PERF_REC_MMAP};
    rec.u.mmap.pid = rec.u.mmap.tid = 7;
    rec.u.mmap.start = AT;
    rec.u.mmap.len = LEN;
    rec.u.mmap.pgoff = 0x1000;
    rec.u.mmap.prot = PROT_READ | PROT_EXEC;
    rec.u.mmap.path = path;
    for (size_t i = 0; i < 20; i++) {
        unsigned byte;
        assert_int_equal(sscanf(id + 2 * i, "%2x", &byte), 1);
        rec.u.mmap.build_id[i] = (uint8_t)byte;
    }
    rec.u.mmap.build_id_len = 20;
    apply(s, &rec, 7, time_ns);
}

/* Another build of it gives no code, and the sentence names the file and both ids; the cache of perf has the
 * right one. */
static void build_ids(void **state)
{
    char *cache = xasprintf("%s/debug", dir), *cached = xasprintf("%s/debug/.build-id/22/%s/elf", dir, &ID_TWO[2]);
    struct symbolizer_options o = {.build_id_dir = cache};
    const char *why;
    (void)state;
    struct scene s = scene(NULL, &o);
    map_with_id(&s, one, ID_ONE, 100);
    expect(&s, 7, 100, 0, one);
    assert_string_equal(code_image_where(s.image, 7, 100, AT, &why), one);
    assert_null(why);
    map_with_id(&s, one, ID_TWO, 200);
    expect(&s, 7, 200, 0, NULL);
    assert_string_equal(code_image_where(s.image, 7, 200, AT, &why), one);
    assert_non_null(strstr(why, one));
    assert_non_null(strstr(why, "is not the file that ran"));
    assert_non_null(strstr(why, "111111111111"));
    assert_non_null(strstr(why, "222222222222"));
    leave(&s);
    assert_true(program_shell(dir, "mkdir -p debug/.build-id/22/%s && cp two.so %s", &ID_TWO[2], cached));
    s = scene(NULL, &o);
    map_with_id(&s, one, ID_TWO, 200);
    expect(&s, 7, 200, 0, cached);
    leave(&s);
    free(cache);
    free(cached);
}

/* A file that is gone, one that is no program, and one without a single symbol: of the last the code is good. */
static void no_names(void **state)
{
    char *none = xasprintf("%s/none.so", dir), *text = xasprintf("%s/one.c", dir);
    char *bare = xasprintf("%s/bare.so", dir);
    const char *why;
    (void)state;
    assert_true(program_build(dir, "one.c", "bare.so", "-O1 -shared -fPIC -nostdlib -fvisibility=hidden -s "
                                                       "-Wl,-z,separate-code"));
    assert_true(program_shell(dir, "strip --remove-section=.symtab bare.so"));
    struct scene s = scene(NULL, NULL);
    map_at(&s, 7, AT, LEN, none, 100);
    expect(&s, 7, 100, 0, NULL);
    code_image_where(s.image, 7, 100, AT, &why);
    assert_non_null(strstr(why, "No such file"));
    map_at(&s, 7, AT, LEN, text, 200);
    expect(&s, 7, 200, 0, NULL);
    code_image_where(s.image, 7, 200, AT, &why);
    assert_non_null(why);
    map_at(&s, 7, AT, LEN, bare, 300);
    expect(&s, 7, 300, 0, bare);
    leave(&s);
    free(none);
    free(text);
    free(bare);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mapped_over),
        cmocka_unit_test(field_C8_changes_are_told),
        cmocka_unit_test(part_of_a_mapping),
        cmocka_unit_test(fork_and_exec),
        cmocka_unit_test(mapped_a_little_later),
        cmocka_unit_test(many_changes),
        cmocka_unit_test(field_C7_code_without_a_file),         cmocka_unit_test(below_symfs),
        cmocka_unit_test(build_ids),     cmocka_unit_test(no_names),
    };
    dir = program_mkdir();
    program_write(dir, "one.c", "int first(int x) { return x * 3 + 1; } int more(int x) { return x + 7; }");
    program_write(dir, "two.c", "int second(int x) { return x / 5 - 9; } int most(int x) { return x - 4; }");
    if (!program_build(dir, "one.c", "one.so", FLAGS "-Wl,--build-id=0x" ID_ONE) ||
        !program_build(dir, "two.c", "two.so", FLAGS "-Wl,--build-id=0x" ID_TWO))
        return 1;
    snprintf(one, sizeof one, "%s/one.so", dir);
    snprintf(two, sizeof two, "%s/two.so", dir);
    int bad = cmocka_run_group_tests(tests, NULL, NULL);
    program_rmdir(dir);
    return bad;
}
