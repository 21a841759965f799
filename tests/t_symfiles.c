/* Where decode/image/symbolize finds symbols, and what it refuses: build-ids, deleted files, symfs, the build-id
 * cache, mtui's copies, perf maps, [vdso], kallsyms, and files that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "decode/image/sym_jit.h"
#include "decode/image/symbolize.h"
#include "tests/lib_perf.h"

/* ---- A scene: one process with one mapping ---- */

static char *dir;
static char *program; /* a copy of a helper program, below dir */
static uint64_t spin_offset;
static uint8_t program_id[20];
static size_t program_id_len;

struct scene {
    struct addrspaces *as;
    struct functions *functions;
    struct symbolizer *symbols;
};

static struct scene make_scene(const struct symbolizer_options *options)
{
    struct scene s = {.as = addrspaces_new(options->log), .functions = functions_new()};
    struct symbolizer_options o = *options;
    char *nowhere = xasprintf("%s/none", dir);
    if (!o.build_id_dir)
        o.build_id_dir = nowhere;
    s.symbols = symbolizer_new(s.functions, s.as, &o);
    free(nowhere);
    return s;
}

static void close_scene(struct scene *s)
{
    symbolizer_free(s->symbols);
    addrspaces_free(s->as);
    functions_free(s->functions);
}

static void map(struct scene *s, pid_t pid, uint64_t start, uint64_t len, uint64_t pgoff,
                const char *path, const uint8_t *id, size_t id_len)
{
    struct perf_record rec = {.kind = PERF_REC_MMAP, .cpumode = PERF_MODE_USER};
    rec.u.mmap.pid = pid;
    rec.u.mmap.start = start;
    rec.u.mmap.len = len;
    rec.u.mmap.pgoff = pgoff;
    rec.u.mmap.prot = 5;
    rec.u.mmap.path = path;
    rec.u.mmap.build_id_len = (uint8_t)id_len;
    if (id_len)
        memcpy(rec.u.mmap.build_id, id, id_len);
    assert_int_equal(addrspaces_apply(s->as, &rec, NULL), 0);
}

static const struct function *at(struct scene *s, pid_t pid, uint64_t ip, enum perf_cpumode mode)
{
    return functions_get(s->functions, symbolizer_find(s->symbols, pid, ip, mode));
}

static struct symbolizer_account account(const struct scene *s, const char *module)
{
    for (size_t i = 0; i < symbolizer_account_count(s->symbols); i++)
        if (strcmp(symbolizer_account(s->symbols, i).module, module) == 0)
            return symbolizer_account(s->symbols, i);
    fail_msg("no account of %s", module);
    return (struct symbolizer_account){0};
}

/* From nm and readelf: where `spin` stands in the file, and the build-id. */
static int setup(void **state)
{
    (void)state;
    unsigned long long vaddr = 0, seg_offset = 0, seg_vaddr = 0;
    dir = lib_mkdtemp();
    program = xasprintf("%s/program", dir);
    free(lib_run(NULL, NULL, "cp %s %s", lib_tool("forker"), program));
    char *nm = lib_run(NULL, NULL, "nm %s | awk '$3 == \"spin\" {print $1}'", program);
    char *seg = lib_run(NULL, NULL, "readelf -lW %s | awk '$1 == \"LOAD\" && /R E/ {print $2, $3}'", program);
    char *id = lib_run(NULL, NULL, "readelf -n %s | awk '/Build ID/ {print $3}'", program);
    if (sscanf(nm, "%llx", &vaddr) != 1 || sscanf(seg, "%llx %llx", &seg_offset, &seg_vaddr) != 2)
        return -1;
    spin_offset = vaddr - seg_vaddr + seg_offset;
    for (const char *p = id; program_id_len < 20; p += 2, program_id_len++) {
        unsigned byte;
        if (sscanf(p, "%2x", &byte) != 1)
            break;
        program_id[program_id_len] = (uint8_t)byte;
    }
    free(nm);
    free(seg);
    free(id);
    return program_id_len == 20 ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    free(program);
    lib_rmdir(dir);
    return 0;
}

#define BASE 0x550000000000ull

static const struct function *spin_in(struct scene *s, const char *path, const uint8_t *id, size_t id_len)
{
    map(s, 1, BASE, 0x100000, 0, path, id, id_len);
    return at(s, 1, BASE + spin_offset + 1, PERF_MODE_USER);
}

/* ---- Files ---- */

static void field_E2_E11_build_id_must_fit(void **state)
{
    (void)state;
    struct symbolizer_options options = {0};
    struct scene s = make_scene(&options);
    const struct function *fn = spin_in(&s, program, program_id, 20);
    assert_string_equal(fn->name, "spin");
    assert_string_equal(fn->module, program);
    assert_int_equal(fn->kind, FN_USER);
    assert_null(account(&s, program).reason);
    assert_string_equal(account(&s, program).source, program);
    close_scene(&s);

    uint8_t other[20];
    memcpy(other, program_id, 20);
    other[0] ^= 1;
    s = make_scene(&options);
    for (int i = 0; i < 3; i++)
        fn = spin_in(&s, program, other, 20);
    assert_string_equal(fn->name, "[unknown]");
    assert_string_equal(fn->module, program);
    assert_int_equal(fn->kind, FN_UNKNOWN);
    struct symbolizer_account a = account(&s, program);
    assert_int_equal(a.lookups, 3);
    assert_int_equal(a.resolved, 0);
    assert_null(a.source);
    assert_non_null(strstr(a.reason, "is not the file that ran"));
    close_scene(&s);

    /* an old perf pads short build-ids with zeros */
    uint8_t padded[20] = {0};
    memcpy(padded, program_id, 16);
    s = make_scene(&options);
    assert_string_equal(spin_in(&s, program, padded, 20)->name, "[unknown]");
    close_scene(&s);
}

/* Without symbols, the unwind entry names a function by its file and where it begins. */
static void stripped_file(void **state)
{
    (void)state;
    char *path = xasprintf("%s/bare", dir), *name;
    free(lib_run(NULL, NULL, "strip -o %s %s", path, program));
    name = lib_run(NULL, NULL, "printf 'bare+0x%%x' 0x$(nm %s | awk '$3 == \"spin\" {print $1}')", program);
    struct symbolizer_options options = {0};
    struct scene s = make_scene(&options);
    const struct function *fn = spin_in(&s, path, program_id, 20);
    assert_string_equal(fn->name, name);
    assert_string_equal(fn->module, path);
    assert_int_equal(fn->kind, FN_USER);
    assert_null(account(&s, path).reason);
    const struct function *init = at(&s, 1, BASE + 0x1001, PERF_MODE_USER); /* .init has no entry */
    assert_string_equal(init->name, "[unknown]");
    assert_non_null(strstr(account(&s, path).reason, "named by address"));
    close_scene(&s);
    free(name);
    free(path);
}

static void build_id_cache(void **state)
{
    (void)state;
    char *cache = xasprintf("%s/cache", dir), hex[41];
    for (size_t i = 0; i < 20; i++)
        snprintf(hex + 2 * i, 3, "%02x", program_id[i]);
    free(lib_run(NULL, NULL, "mkdir -p %s/.build-id/%.2s/%s && cp %s %s/.build-id/%.2s/%s/elf", cache,
                 hex, hex + 2, program, cache, hex, hex + 2));
    struct symbolizer_options options = {.build_id_dir = cache};
    struct scene s = make_scene(&options);
    assert_string_equal(spin_in(&s, "/gone/program", program_id, 20)->name, "spin");
    assert_string_equal(at(&s, 1, BASE + spin_offset, PERF_MODE_USER)->module, "/gone/program");
    close_scene(&s);
    free(cache);
}

static void below_symfs(void **state)
{
    (void)state;
    char *root = xasprintf("%s/root", dir);
    free(lib_run(NULL, NULL, "mkdir -p %s/opt/app && cp %s %s/opt/app/program", root, program, root));
    struct symbolizer_options options = {.symfs = root};
    struct scene s = make_scene(&options);
    assert_string_equal(spin_in(&s, "/opt/app/program", NULL, 0)->name, "spin");
    assert_string_equal(spin_in(&s, program, NULL, 0)->name, "[unknown]"); /* ours does not count */
    assert_non_null(account(&s, program).reason);
    close_scene(&s);
    char *slashes = xasprintf("%s//", root), *shown = xasprintf("%s%s:", root, program);
    options.symfs = slashes;
    s = make_scene(&options);
    assert_string_equal(spin_in(&s, "/opt/app/program", NULL, 0)->name, "spin");
    spin_in(&s, program, NULL, 0);
    assert_non_null(strstr(account(&s, program).reason, shown));
    close_scene(&s);
    free(slashes);
    free(shown);
    free(root);
}

static void deleted_file(void **state)
{
    (void)state;
    struct symbolizer_options options = {0};
    char *path = xasprintf("%s (deleted)", program);
    struct scene s = make_scene(&options);
    assert_string_equal(spin_in(&s, path, NULL, 0)->name, "[unknown]");
    assert_non_null(strstr(account(&s, path).reason, "was deleted or replaced"));
    close_scene(&s);
    s = make_scene(&options); /* the same contents are there again: its build-id tells */
    assert_string_equal(spin_in(&s, path, program_id, 20)->name, "spin");
    close_scene(&s);
    free(path);
}

/* mtui kept a copy of a file that is gone by now. */
static void kept_copy(void **state)
{
    (void)state;
    char hex[41], *log_path = xasprintf("%s/maps/log", dir);
    for (size_t i = 0; i < 20; i++)
        snprintf(hex + 2 * i, 3, "%02x", program_id[i]);
    free(lib_run(NULL, NULL, "mkdir -p %s/maps && cp %s %s/maps/file-1", dir, program, dir));
    char *text = xasprintf("mtui-maps 1\nF\t1\t801\t11\t4096\t0\t%s\tdeleted\tfile-1\t/gone/now\n"
                           "P\t0\t1\tarm\nM\t%llx\t%llx\t0\tr-xp\t801\t11\t1\t/gone/now\nE\t1\n",
                           hex, BASE, BASE + 0x100000);
    lib_write(log_path, text, strlen(text));
    struct maps_log *log = NULL;
    assert_int_equal(maps_log_open(&log, dir, NULL), 0);
    assert_null(maps_log_partial(log));
    struct symbolizer_options options = {.log = log};
    struct scene s = make_scene(&options);
    struct perf_record rec = {.kind = PERF_REC_OTHER};
    assert_int_equal(addrspaces_apply(s.as, &rec, NULL), 0);
    const struct function *fn = at(&s, 1, BASE + spin_offset, PERF_MODE_USER);
    assert_string_equal(fn->name, "spin");
    assert_string_equal(fn->module, "/gone/now");
    close_scene(&s);
    maps_log_close(log);
    free(text);
    free(log_path);
}

/* What the account of a file without a recorded build-id says, with the log telling its size and time. */
static void expect_stat(const char *path, const char *symfs, long long size, long long mtime_ns, const char *reason)
{
    char *log_path = xasprintf("%s/stat/maps/log", dir), *stat_dir = xasprintf("%s/stat", dir);
    free(lib_run(NULL, NULL, "mkdir -p %s/maps", stat_dir));
    char *text = xasprintf("mtui-maps 1\nF\t1\t801\t11\t%lld\t%lld\t-\tpresent\t-\t%s\n"
                           "P\t0\t1\tarm\nM\t%llx\t%llx\t0\tr-xp\t801\t11\t1\t%s\nE\t1\n",
                           size, mtime_ns, path, BASE, BASE + 0x100000, path);
    lib_write(log_path, text, strlen(text));
    struct maps_log *log = NULL;
    assert_int_equal(maps_log_open(&log, stat_dir, NULL), 0);
    assert_null(maps_log_partial(log));
    struct symbolizer_options options = {.log = log, .symfs = symfs};
    struct scene s = make_scene(&options);
    const struct function *fn = spin_in(&s, path, NULL, 0);
    assert_string_equal(fn->name, reason ? "[unknown]" : "spin");
    struct symbolizer_account a = account(&s, path);
    if (reason) {
        assert_null(a.source);
        assert_non_null(strstr(a.reason, "is not the file that ran: "));
        assert_non_null(strstr(a.reason, reason));
    } else {
        assert_null(a.reason);
    }
    close_scene(&s);
    maps_log_close(log);
    free(text);
    free(log_path);
    free(stat_dir);
}

/* No build-id was recorded: size and time of the last change must be those of the recording; of a copy below
 * symfs the size. What was not recorded (0) is not compared. */
static void size_and_time_must_fit(void **state)
{
    (void)state;
    char *root = xasprintf("%s/copies", dir), *size_text, *copy = xasprintf("%s%s", root, program);
    struct stat st;
    assert_int_equal(stat(program, &st), 0);
    long long size = st.st_size, mtime_ns = (long long)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    expect_stat(program, NULL, size, mtime_ns, NULL);
    size_text = xasprintf("%s is not the file that ran: it has %lld bytes, recorded were %lld;", program, size, size + 1);
    expect_stat(program, NULL, size + 1, mtime_ns, size_text);
    expect_stat(program, NULL, size, mtime_ns + 1, "it was changed at ");
    expect_stat(program, NULL, size, mtime_ns - 1000000000, "it was changed at ");
    expect_stat(program, NULL, size, 0, NULL);
    expect_stat(program, NULL, 0, 0, NULL);
    free(lib_run(NULL, NULL, "mkdir -p $(dirname %s) && cp %s %s && touch -d 2020-02-02 %s", copy, program, copy, copy));
    expect_stat(program, root, size, mtime_ns, NULL);
    expect_stat(program, root, size - 1, mtime_ns, copy);
    free(root);
    free(copy);
    free(size_text);
}

/* Neither opened nor waited for. */
static void no_real_files(void **state)
{
    (void)state;
    struct symbolizer_options options = {0};
    struct scene s = make_scene(&options);
    char *fifo = xasprintf("%s/fifo", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const char *paths[] = {fifo, "/dev/null", "/dev/tty", "/proc/self/mem", "relative/path", "/"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        assert_string_equal(spin_in(&s, paths[i], NULL, 0)->name, "[unknown]");
        assert_string_equal(at(&s, 1, BASE + spin_offset, PERF_MODE_USER)->module, paths[i]);
        assert_non_null(account(&s, paths[i]).reason);
    }
    close_scene(&s);
    free(fifo);
}

static void nothing_mapped(void **state)
{
    (void)state;
    struct symbolizer_options options = {0};
    struct scene s = make_scene(&options);
    const struct function *user = at(&s, 1, 0x1234, PERF_MODE_USER);
    const struct function *kernel = at(&s, 1, 0xffffffff81000000, PERF_MODE_KERNEL);
    const struct function *guessed = at(&s, 1, 0xffffffff81000000, PERF_MODE_UNKNOWN);
    assert_string_equal(user->module, "[unknown]");
    assert_string_equal(kernel->module, "[kernel]");
    assert_ptr_equal(kernel, guessed);
    assert_string_equal(user->name, kernel->name);
    assert_true(user != kernel);
    assert_string_equal(at(&s, 1, 1, PERF_MODE_GUEST_USER)->module, "[guest]");
    close_scene(&s);
}

/* ---- [vdso] ---- */

static void field_C7_vdso(void **state)
{
    (void)state;
    unsigned long own = getauxval(AT_SYSINFO_EHDR);
    if (!own)
        skip();
    struct symbolizer_options options = {0};
    struct scene s = make_scene(&options);
    map(&s, 1, own, 0x4000, 0, "[vdso]", NULL, 0);
    bool found = false;
    for (uint64_t ip = own; ip < own + 0x2000 && !found; ip += 16) {
        const struct function *fn = at(&s, 1, ip, PERF_MODE_USER);
        found = strcmp(fn->name, "__vdso_clock_gettime") == 0 || strcmp(fn->name, "clock_gettime") == 0;
        if (found)
            assert_int_equal(fn->kind, FN_VDSO);
        assert_string_equal(fn->module, "[vdso]");
    }
    assert_true(found);
    close_scene(&s);

    options.os_release = "2.6.32-of-another-machine";
    s = make_scene(&options);
    map(&s, 1, own, 0x4000, 0, "[vdso]", NULL, 0);
    assert_string_equal(at(&s, 1, own + 0x1000, PERF_MODE_USER)->name, "[unknown]");
    assert_non_null(strstr(account(&s, "[vdso]").reason, "2.6.32-of-another-machine"));
    close_scene(&s);
}

/* ---- Perf maps ---- */

static const char *jit_name(const struct sym_jit *j, uint64_t address)
{
    static char out[64];
    size_t len;
    uint64_t start;
    const char *name = sym_jit_find(j, address, &len, &start);
    if (!name)
        return "-";
    snprintf(out, sizeof out, "%.*s@%llx", (int)len, name, (unsigned long long)start);
    return out;
}

static void field_E9_perf_map_lines(void **state)
{
    (void)state;
    static const char text[] = "1000 100 first one\n"
                               "0x2000 0x10 LazyCompile:~f /x.js:1\r\n"
                               "1080 10 inside\n" /* overlaps the first: wins */
                               "10f0 20 across\n"
                               "2000 8 again\n"
                               "not a line\n3000\n4000 0 empty\n5000 10\n"
                               "ffffffffffffffff 10 top\n123456789abcdef01 10 too long\n"
                               "6000 10 last";
    struct sym_jit *j = NULL;
    assert_int_equal(sym_jit_parse(&j, text, sizeof text - 1, NULL), 0);
    assert_string_equal(jit_name(j, 0xfff), "-");
    assert_string_equal(jit_name(j, 0x1000), "first one@1000");
    assert_string_equal(jit_name(j, 0x107f), "first one@1000");
    assert_string_equal(jit_name(j, 0x1080), "inside@1080");
    assert_string_equal(jit_name(j, 0x108f), "inside@1080");
    assert_string_equal(jit_name(j, 0x1090), "first one@1000");
    assert_string_equal(jit_name(j, 0x10ef), "first one@1000");
    assert_string_equal(jit_name(j, 0x10f0), "across@10f0");
    assert_string_equal(jit_name(j, 0x110f), "across@10f0");
    assert_string_equal(jit_name(j, 0x1110), "-");
    assert_string_equal(jit_name(j, 0x2007), "again@2000");
    assert_string_equal(jit_name(j, 0x2008), "LazyCompile:~f /x.js:1@2000");
    assert_string_equal(jit_name(j, 0x2010), "-");
    assert_string_equal(jit_name(j, 0x4000), "-");
    assert_string_equal(jit_name(j, 0x5000), "-");
    assert_string_equal(jit_name(j, 0x600f), "last@6000");
    sym_jit_free(j);
}

/* Random lines against painting single addresses in their order. */
static void field_E9_overlapping_entries_the_latest_wins(void **state)
{
    (void)state;
    enum { SIZE = 200, LINES = 40 };
    srand(3);
    for (int round = 0; round < 300; round++) {
        char text[LINES * 32], name[16];
        int len = 0, painted[SIZE];
        struct sym_jit *j = NULL;
        memset(painted, -1, sizeof painted);
        for (int i = 0; i < LINES; i++) {
            int start = rand() % (SIZE - 40), size = 1 + rand() % 40;
            len += snprintf(text + len, sizeof text - (size_t)len, "%x %x %d\n", start, size, i);
            for (int a = start; a < start + size; a++)
                painted[a] = i;
        }
        assert_int_equal(sym_jit_parse(&j, text, (size_t)len, NULL), 0);
        for (int a = 0; a < SIZE; a++) {
            size_t n;
            uint64_t start;
            const char *found = sym_jit_find(j, (uint64_t)a, &n, &start);
            snprintf(name, sizeof name, "%d", painted[a]);
            assert_int_equal(found != NULL, painted[a] >= 0);
            if (found) {
                assert_int_equal(n, strlen(name));
                assert_memory_equal(found, name, n);
            }
        }
        sym_jit_free(j);
    }
}

static void field_E9_perf_map_of_process_and_its_owner(void **state)
{
    (void)state;
    char *path = xasprintf("%s/perf-42.map", dir), *odd = xasprintf("%s/perf-43.map", dir);
    lib_write(path, "7f0000001000 20 py::main:/x.py\n", 31);
    struct symbolizer_options options = {.tmp = dir};
    struct scene s = make_scene(&options);
    map(&s, 42, 0x7f0000001000, 0x1000, 0, "//anon", NULL, 0);
    const struct function *fn = at(&s, 42, 0x7f0000001010, PERF_MODE_USER);
    assert_string_equal(fn->name, "py::main:/x.py");
    assert_string_equal(fn->module, "/tmp/perf-42.map");
    assert_string_equal(at(&s, 42, 0x7f0000001020, PERF_MODE_USER)->name, "[unknown]");

    /* a forked child runs the code that its parent compiled */
    struct perf_record rec = {.kind = PERF_REC_FORK, .u.fork = {.pid = 44, .tid = 44, .ppid = 42, .ptid = 42}};
    assert_int_equal(addrspaces_apply(s.as, &rec, NULL), 0);
    assert_string_equal(at(&s, 44, 0x7f0000001010, PERF_MODE_USER)->name, "py::main:/x.py");
    map(&s, 42, 0x7fffffffe000, 0x1000, 0, "[uprobes]", NULL, 0); /* as the kernel names it */
    fn = at(&s, 42, 0x7fffffffe080, PERF_MODE_USER);
    assert_true(!strcmp(fn->name, "[uprobe]") && !strcmp(fn->module, "[kernel]") && fn->kind == FN_KERNEL);

    map(&s, 45, 0x1000, 0x1000, 0, "//anon", NULL, 0);
    assert_string_equal(at(&s, 45, 0x1010, PERF_MODE_USER)->module, "[anon]");
    assert_non_null(strstr(account(&s, "[anon]").reason, "wrote no map"));
    close_scene(&s);

    /* a jitdump is not read, and that is said */
    s = make_scene(&options);
    map(&s, 46, 0x1000, 0x1000, 0, "//anon", NULL, 0);
    map(&s, 46, 0x9000, 0x1000, 0, "/home/x/.debug/jit/jit-46.dump", NULL, 0);
    assert_string_equal(at(&s, 46, 0x1010, PERF_MODE_USER)->name, "[unknown]");
    assert_non_null(strstr(account(&s, "[anon]").reason, "the jitdump /home/x/.debug/jit/jit-46.dump"));
    assert_non_null(strstr(account(&s, "[anon]").reason, "perf inject --jit"));
    close_scene(&s);

    if (geteuid() == 0) { /* of another user: not believed */
        lib_write(odd, "1000 20 trick\n", 14);
        assert_int_equal(chown(odd, 12345, 12345), 0);
        s = make_scene(&options);
        map(&s, 43, 0x1000, 0x1000, 0, "//anon", NULL, 0);
        assert_string_equal(at(&s, 43, 0x1010, PERF_MODE_USER)->name, "[unknown]");
        assert_non_null(strstr(account(&s, "[anon]").reason, "neither you nor root"));
        close_scene(&s);
    }
    free(odd);
    free(path);
}

/* ---- The kernel ---- */

static void map_kernel(struct scene *s, uint64_t start, uint64_t len, uint64_t pgoff, const char *path)
{
    struct perf_record rec = {.kind = PERF_REC_MMAP, .cpumode = PERF_MODE_KERNEL};
    rec.u.mmap.pid = -1;
    rec.u.mmap.start = start;
    rec.u.mmap.len = len;
    rec.u.mmap.pgoff = pgoff;
    rec.u.mmap.path = path;
    assert_int_equal(addrspaces_apply(s->as, &rec, NULL), 0);
}

static void kernel_names(void **state)
{
    (void)state;
    char *proc = xasprintf("%s/proc", dir), *kallsyms = xasprintf("%s/kallsyms", proc);
    static const char text[] = "ffffffff81000000 T _text\n"
                               "ffffffff81000000 T startup_64\n"
                               "ffffffff81000200 t helper\n"
                               "ffffffff81000200 T alias\n"
                               "ffffffff81000300 W weak_one\n"
                               "ffffffff81000400 D data_here\n"
                               "ffffffffc0000000 t snd_play\t[snd_seq]\n"
                               "ffffffffc0001000 t other\t[other_mod]\n";
    struct utsname u;
    uname(&u);
    mkdir(proc, 0700);
    lib_write(kallsyms, text, sizeof text - 1);
    struct symbolizer_options options = {.proc = proc, .os_release = u.release};
    struct scene s = make_scene(&options);
    map_kernel(&s, 0xffffffff81000000, 0x1000000, 0xffffffff81000000, "[kernel.kallsyms]_text");
    map_kernel(&s, 0xffffffffc0000000, 0x1000, 0, "/lib/modules/6.1/kernel/sound/snd-seq.ko.xz");
    map_kernel(&s, 0xffffffffc0001000, 0x1000, 0, "/lib/modules/6.1/kernel/nothing.ko");
    const struct function *fn = at(&s, 1, 0xffffffff81000250, PERF_MODE_KERNEL);
    assert_string_equal(fn->name, "alias");
    assert_string_equal(fn->module, "[kernel]");
    assert_int_equal(fn->kind, FN_KERNEL);
    assert_string_equal(at(&s, 1, 0xffffffff81000010, PERF_MODE_KERNEL)->name, "startup_64");
    assert_string_equal(at(&s, 1, 0xffffffffc0000010, PERF_MODE_KERNEL)->name, "snd_play");
    assert_string_equal(at(&s, 1, 0xffffffffc0000010, PERF_MODE_KERNEL)->module, "[snd_seq]");
    assert_string_equal(at(&s, 1, 0xffffffffc0001010, PERF_MODE_KERNEL)->name, "[unknown]");
    close_scene(&s);

    /* the kernel was loaded 0x2000000 higher when that was recorded */
    s = make_scene(&options);
    map_kernel(&s, 0xffffffff83000000, 0x1000000, 0xffffffff83000000, "[kernel.kallsyms]_text");
    assert_string_equal(at(&s, 1, 0xffffffff83000250, PERF_MODE_KERNEL)->name, "alias");
    close_scene(&s);

    options.os_release = "4.14.18"; /* another kernel */
    s = make_scene(&options);
    map_kernel(&s, 0xffffffff81000000, 0x1000000, 0xffffffff81000000, "[kernel.kallsyms]_text");
    assert_string_equal(at(&s, 1, 0xffffffff81000250, PERF_MODE_KERNEL)->name, "[unknown]");
    assert_non_null(strstr(account(&s, "[kernel]").reason, "recorded on kernel 4.14.18"));
    close_scene(&s);

    lib_write(kallsyms, "0000000000000000 T _text\n0000000000000000 T x\n", 46);
    options.os_release = u.release;
    s = make_scene(&options);
    map_kernel(&s, 0xffffffff81000000, 0x1000000, 0xffffffff81000000, "[kernel.kallsyms]_text");
    assert_string_equal(at(&s, 1, 0xffffffff81000250, PERF_MODE_KERNEL)->name, "[unknown]");
    assert_non_null(strstr(account(&s, "[kernel]").reason, "kptr_restrict"));
    close_scene(&s);
    free(kallsyms);
    free(proc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_E2_E11_build_id_must_fit), cmocka_unit_test(stripped_file),
        cmocka_unit_test(build_id_cache),
        cmocka_unit_test(below_symfs),       cmocka_unit_test(deleted_file),
        cmocka_unit_test(kept_copy),         cmocka_unit_test(size_and_time_must_fit),
        cmocka_unit_test(no_real_files),
        cmocka_unit_test(nothing_mapped),    cmocka_unit_test(field_C7_vdso),
        cmocka_unit_test(field_E9_perf_map_lines),
        cmocka_unit_test(field_E9_overlapping_entries_the_latest_wins),
        cmocka_unit_test(field_E9_perf_map_of_process_and_its_owner),
        cmocka_unit_test(kernel_names),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
