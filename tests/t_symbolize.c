/* decode/image/symbolize and decode/image/callchain against `perf script`, sample by sample and frame by frame, on
 * recordings made here and now of a program with threads, fork and exec.
 *
 * Intended differences, each checked to be exactly that:
 *   - In frame-pointer chains perf looks a caller up by the address behind the call, mtui by the call:
 *     they differ where the call is the last instruction of its function. So every frame's name is
 *     compared by the address as recorded, and mtui's own may differ only where ip and ip − 1 lie in
 *     different functions.
 *   - perf calls the kernel [kernel.kallsyms], mtui [kernel].
 *   - Stubs of the PLT: perf 6.1 takes the relocations in their order for the stubs in theirs, which is
 *     wrong for libc.so.6 (compare `objdump -d -j .plt`), leaves IFUNC stubs without a name ("@plt") and
 *     knows no .plt.got, nor the code that all stubs share. mtui follows each stub to its relocation;
 *     the names are checked by the tests of core/symbols/symtab. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/symbols/debug_file.h"
#include "core/symbols/symtab.h"
#include "core/base/vec.h"
#include "decode/image/callchain.h"
#include "decode/image/symbolize.h"
#include "tests/lib_perf.h"
#include "tests/lib_perfwriter.h"
#include "tests/lib_run.h"

static char *dir;
static bool perf_works;

static int setup(void **state)
{
    (void)state;
    dir = lib_mkdtemp();
    perf_works = lib_perf_works();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    lib_rmdir(dir);
    return 0;
}

/* ---- perf's answer: COMM PID/TID TIME: then lines "ADDRESS NAME (MODULE)" ---- */

struct frame {
    char *name, *module;
};

struct stack {
    char *comm;
    int pid, tid;
    unsigned long long time_ns;
    VEC(struct frame) frames; /* innermost first */
};

typedef VEC(struct stack) stacks;

static void parse_frame(struct stack *s, char *line)
{
    struct frame f;
    char *at = line + strspn(line, " \t");
    at += strcspn(at, " ");
    at += strspn(at, " ");
    char *open = NULL; /* the parenthesis that belongs to the last one */
    size_t len = strlen(at);
    int depth = 0;
    for (char *p = at + len; p-- > at;) {
        depth += *p == ')';
        depth -= *p == '(';
        if (*p == '(' && depth == 0) {
            open = p;
            break;
        }
    }
    assert_non_null(open);
    f.name = xstrndup(at, (size_t)(open - at - (open > at)));
    f.module = xstrndup(open + 1, len - (size_t)(open + 1 - at) - 1);
    vec_push(&s->frames, f);
}

static stacks perf_stacks(const char *path)
{
    stacks out = {0};
    struct stack s = {0};
    char *save = NULL;
    char *text = lib_run(NULL, NULL, "%s script --ns --no-inline -F comm,pid,tid,time,ip,sym,dso -i %s "
                                     "2>/dev/null",
                         lib_perf(), path);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (line[0] == '\t') {
            parse_frame(&out.data[out.len - 1], line);
            continue;
        }
        unsigned long long seconds, ns;
        char *pid = line;
        int end = 0;
        while (sscanf(pid, "%d/%d %llu.%llu:%n", &s.pid, &s.tid, &seconds, &ns, &end) != 4)
            assert_non_null(pid = strchr(pid + 1, ' '));
        s.time_ns = seconds * 1000000000 + ns;
        size_t comm = (size_t)(pid - line);
        while (comm && line[comm - 1] == ' ')
            comm--;
        s.comm = xstrndup(line + strspn(line, " "), comm - strspn(line, " "));
        vec_push(&out, s);
        char *rest = pid + end; /* without a chain the one frame stands here */
        if (rest[strspn(rest, " ")])
            parse_frame(&out.data[out.len - 1], rest);
    }
    free(text);
    return out;
}

static void stacks_free(stacks *l)
{
    for (size_t i = 0; i < l->len; i++) {
        for (size_t k = 0; k < l->data[i].frames.len; k++) {
            free(l->data[i].frames.data[k].name);
            free(l->data[i].frames.data[k].module);
        }
        vec_free(&l->data[i].frames);
        free(l->data[i].comm);
    }
    vec_free(l);
}

/* ---- Comparing ---- */

struct opened {
    struct perf_file *file;
    struct addrspaces *as;
    struct functions *functions;
    struct symbolizer *symbols;
    struct callchain *chain;
};

static struct opened open_recording(const char *path, const struct symbolizer_options *options)
{
    struct opened o = {0};
    struct err err;
    if (perf_file_open(&o.file, path, &err) < 0)
        fail_msg("%s", err.text);
    o.as = addrspaces_new(options->log);
    o.functions = functions_new();
    o.symbols = symbolizer_new(o.functions, o.as, options);
    o.chain = callchain_new(o.file, o.as, o.symbols);
    return o;
}

static void close_recording(struct opened *o)
{
    callchain_free(o->chain);
    symbolizer_free(o->symbols);
    addrspaces_free(o->as);
    functions_free(o->functions);
    perf_file_close(o->file);
}

static bool same_module(const char *perf, const char *ours)
{
    if (strcmp(perf, "[kernel.kallsyms]") == 0)
        return strcmp(ours, "[kernel]") == 0;
    return strcmp(perf, ours) == 0;
}

/* Where perf knows nothing, mtui may know the unwind entry (t_symtab holds those against readelf). */
static bool by_unwind_entry(const struct frame *f, const struct function *fn)
{
    const char *slash = strrchr(fn->module, '/');
    char *name = xasprintf("%s+0x%llx", slash ? slash + 1 : fn->module, (unsigned long long)fn->addr);
    bool same = strcmp(f->name, "[unknown]") == 0 && (fn->kind == FN_USER || fn->kind == FN_PART) &&
                strcmp(fn->name, name) == 0;
    free(name);
    return same;
}

static void assert_frame(const struct stack *s, size_t i, const struct function *fn, uint64_t ip)
{
    const struct frame *f = &s->frames.data[i];
    bool plt = fn->kind == FN_PLT;
    bool same = same_module(f->module, fn->module) && (plt || strcmp(f->name, fn->name) == 0 || by_unwind_entry(f, fn));
    if (!same)
        fail_msg("%s %d/%d %llu frame %zu at %llx: perf says %s (%s), mtui %s (%s)", s->comm, s->pid,
                 s->tid, s->time_ns, i, (unsigned long long)ip, f->name, f->module, fn->name, fn->module);
}

struct tally {
    size_t samples, frames, moved, named;
    size_t differ; /* stacks that the two unwinders end at different frames */
};

/* After exec perf 6.1 goes on unwinding with what it knew of the old program and leaves frames out. The
 * stack that is true by the source of forker is what counts there. */
static bool assert_true_stack(struct opened *o, const struct perf_record *rec, const char *comm,
                              const struct callframe *frames, size_t n)
{
    static const char *const expected[] = {"spin", "inner_work", "after_exec", "main"};
    if (strcmp(comm, "exe") != 0)
        return false;
    const char *names[8] = {0};
    for (size_t i = 0; i < 8 && i < n; i++) {
        const struct callframe *f = &frames[n - 1 - i];
        names[i] = functions_get(o->functions,
                                 symbolizer_find(o->symbols, rec->pid, f->lookup_ip, f->mode))->name;
    }
    if (strcmp(names[0], "spin") == 0)
        for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
            if (strcmp(names[i], expected[i]) != 0)
                fail_msg("%llu frame %zu of %zu at %llx: %s, not %s", (unsigned long long)rec->time_ns,
                         i, n, (unsigned long long)frames[n - 1 - i].ip, names[i], expected[i]);
    return true;
}

static struct tally compare(const char *path, bool dwarf)
{
    struct symbolizer_options options = {0};
    struct opened o = open_recording(path, &options);
    stacks perf = perf_stacks(path);
    struct perf_record rec;
    struct tally t = {0};
    assert_true(perf.len > 0);
    while (perf_file_next(o.file, &rec, NULL) > 0) {
        assert_int_equal(addrspaces_apply(o.as, &rec, NULL), 0);
        if (rec.kind != PERF_REC_SAMPLE)
            continue;
        assert_true(t.samples < perf.len);
        const struct stack *s = &perf.data[t.samples++];
        assert_int_equal(rec.time_ns, s->time_ns);
        assert_int_equal(rec.pid, s->pid);
        assert_int_equal(rec.tid, s->tid);
        assert_string_equal(addrspaces_comm(o.as, rec.tid), s->comm);
        const struct callframe *frames;
        size_t n = callchain_frames(o.chain, &rec, &frames);
        if (dwarf && assert_true_stack(&o, &rec, s->comm, frames, n))
            continue;
        /* Two unwinders may stop at different frames of one odd stack (in the middle of a prologue, in
         * code without call frame information): rarely, or one of them is wrong. */
        if (dwarf && n != s->frames.len) {
            t.differ++;
            continue;
        }
        assert_int_equal(n, s->frames.len);
        for (size_t i = 0; i < n; i++, t.frames++) {
            const struct callframe *f = &frames[n - 1 - i];
            fn_id mine = symbolizer_find(o.symbols, rec.pid, f->lookup_ip, f->mode);
            fn_id at = symbolizer_find(o.symbols, rec.pid, f->ip, f->mode);
            assert_frame(s, i, functions_get(o.functions, dwarf ? mine : at), f->ip);
            t.moved += mine != at;
            t.named += functions_get(o.functions, mine)->kind != FN_UNKNOWN;
        }
    }
    assert_int_equal(t.samples, perf.len);
    assert_true(t.differ * 50 <= t.samples);
    stacks_free(&perf);
    close_recording(&o);
    return t;
}

static char *record(const char *options, const char *command)
{
    static int n;
    int status;
    char *path = xasprintf("%s/%d.data", dir, n++);
    free(lib_run(&status, NULL, "%s record -q -e cpu-clock -F 5000 -o %s %s -- %s 2>/dev/null", lib_perf(),
                 path, options, command));
    assert_int_equal(status, 0);
    return path;
}

static void recorded(const char *options, bool dwarf)
{
    if (!perf_works)
        skip();
    char *command = xasprintf("%s 8", lib_tool("forker"));
    char *path = record(options, command);
    struct tally t = compare(path, dwarf);
    assert_true(t.samples > 200);
    /* Not all: code without frame pointers leaves odd addresses, a stripped libc has names for few. */
    assert_true(t.named * 5 > t.frames);
    print_message("%zu samples, %zu frames, %zu named, %zu moved to the call\n", t.samples, t.frames,
                  t.named, t.moved);
    free(command);
    free(path);
}

static void leaf_only(void **state)
{
    (void)state;
    recorded("", false);
}

static void frame_pointers(void **state)
{
    (void)state;
    recorded("-g", false);
}

static void user_only(void **state)
{
    (void)state;
    recorded("-g -e cpu-clock:u", false);
}

static void with_build_ids(void **state)
{
    (void)state;
    recorded("-g --buildid-mmap", false);
}

static void unwound(void **state)
{
    (void)state;
    recorded("--call-graph dwarf,8192", true);
}

/* ---- A ring that is written when the target is dead ---- */

struct started {
    pid_t pid;
    const char *program;
};

static bool runs_program(void *arg)
{
    const struct started *s = arg;
    char link[64], exe[4096];
    snprintf(link, sizeof link, "/proc/%d/exe", (int)s->pid);
    ssize_t n = readlink(link, exe, sizeof exe - 1);
    char *real = realpath(s->program, NULL);
    bool same = n > 0 && real && strlen(real) == (size_t)n && strncmp(exe, real, (size_t)n) == 0;
    free(real);
    return same;
}

/* It has more threads than the first: its libraries are all mapped, and what it runs as well. While a program is
 * being replaced, /proc/PID/exe is the new one before anything of it is mapped. */
static bool has_threads(void *arg)
{
    const struct started *s = arg;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)s->pid);
    DIR *d = opendir(path);
    size_t n = 0;
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n > 3 && runs_program(arg); /* "." and ".." as well */
}

static size_t named_user_samples(const char *path, pid_t pid, const struct maps_log *log, size_t *all)
{
    struct symbolizer_options options = {.log = log};
    struct opened o = open_recording(path, &options);
    struct perf_record rec;
    size_t named = 0;
    *all = 0;
    while (perf_file_next(o.file, &rec, NULL) > 0) {
        assert_int_equal(addrspaces_apply(o.as, &rec, NULL), 0);
        if (rec.kind != PERF_REC_SAMPLE || rec.cpumode != PERF_MODE_USER || rec.pid != pid)
            continue;
        fn_id fn = symbolizer_find(o.symbols, rec.pid, rec.u.sample.ip, rec.cpumode);
        named += strcmp(functions_get(o.functions, fn)->name, "spin") == 0;
        ++*all;
    }
    close_recording(&o);
    return named;
}

/* perf writes the mappings that exist at the dump: none any more. mtui's own log names them. */
static void dead_target(void **state)
{
    (void)state;
    if (!perf_works)
        skip();
    struct maps_writer *writer = NULL;
    struct maps_log *log = NULL;
    size_t all, named;
    char *path = xasprintf("%s/dead.data", dir), *tool = run_tool("forker");
    char *argv[] = {tool, (char *)(uintptr_t)"250", NULL};
    assert_int_equal(maps_writer_new(&writer, dir, "/proc", NULL), 0);
    struct run_child target = run_start(argv);
    assert_true(run_until(has_threads, &(struct started){target.pid, tool}, 20));
    maps_writer_capture(writer, target.pid, 0, "arm");
    assert_true(maps_writer_flush(writer, 20000000000u));
    free(lib_run(NULL, NULL, "%s record -q -e cpu-clock -F 2000 --overwrite -o %s -p %d 2>/dev/null",
                 lib_perf(), path, (int)target.pid)); /* until the target ends */
    run_finish(&target);
    maps_writer_free(writer);
    assert_int_equal(maps_log_open(&log, dir, NULL), 0);
    named = named_user_samples(path, target.pid, NULL, &all);
    assert_true(all > 50);
    assert_int_equal(named, 0);
    named = named_user_samples(path, target.pid, log, &all);
    if (named * 10 <= all * 9)
        fail_msg("%zu of %zu samples are named", named, all);
    maps_log_close(log);
    free(tool);
    free(path);
}

/* ---- Every symbol of a file ---- */

/* Samples at the first, second and last byte of every symbol, where the file could be mapped. */
static size_t sample_all(struct perf_writer *w, const char *path)
{
    const uint64_t base = 0x7f0000000000, page = 4096;
    struct elf_file *elf;
    struct symtab *t;
    struct debug_search search = {.root = "", .path = path};
    size_t n, samples = 0;
    if (elf_file_open_path(path, &elf, NULL) < 0)
        return 0;
    assert_int_equal(symtab_load(elf, &search, &t, NULL), 0);
    const struct elf_segment *seg = elf_file_segments(elf, &n);
    uint64_t bias = elf_file_kind(elf) == ELF_KIND_EXEC || elf_file_kind(elf) == ELF_KIND_STATIC ? 0 : base;
    pw_comm(w, 1, 1, "all", 0, 1);
    uint64_t start = seg[0].vaddr / page * page, skew = seg[0].vaddr - start;
    pw_mmap2(w, 1, bias + start, (seg[0].filesz + skew + page - 1) / page * page,
             seg[0].offset - skew, path, 2);
    for (size_t i = 0; i < symtab_count(t); i++) {
        struct symbol sym;
        symtab_get(t, i, &sym);
        const uint64_t at[] = {sym.vaddr, sym.vaddr + 1, sym.vaddr + sym.size - 1};
        for (size_t k = 0; k < 3 && sym.size > 1; k++)
            if (at[k] >= seg[0].vaddr && at[k] - seg[0].vaddr < seg[0].filesz)
                pw_sample_ip(w, 1, bias + at[k], 10 + samples++);
    }
    symtab_free(t);
    elf_file_free(elf);
    return samples;
}

static void every_symbol(void **state)
{
    (void)state;
    if (!perf_works)
        skip();
    static const char *const files[] = {"/lib64/ld-linux-x86-64.so.2",
                                        "/lib/x86_64-linux-gnu/libc.so.6",
                                        "/lib/x86_64-linux-gnu/libstdc++.so.6",
                                        "/lib/x86_64-linux-gnu/libelf.so.1", "/usr/bin/perf", "/bin/bash"};
    size_t all = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct perf_writer w = pw_file(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME);
        char *file = realpath(files[i], NULL), *path = xasprintf("%s/all.data", dir);
        size_t n = file ? sample_all(&w, file) : 0;
        if (n) {
            pw_finish(&w);
            lib_write(path, w.data, w.len);
            struct tally t = compare(path, false);
            assert_int_equal(t.samples, n);
            print_message("%s: %zu addresses\n", file, n);
            all += n;
        }
        pw_free(&w);
        free(file);
        free(path);
    }
    assert_true(all > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_symbol),
        cmocka_unit_test(dead_target),
        cmocka_unit_test(leaf_only),
        cmocka_unit_test(frame_pointers),
        cmocka_unit_test(user_only),
        cmocka_unit_test(with_build_ids),
        cmocka_unit_test(unwound),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
