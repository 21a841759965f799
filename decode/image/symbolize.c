#include "decode/image/symbolize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "core/base/alloc.h"
#include "core/symbols/demangle.h"
#include "core/base/vec.h"
#include "core/base/hash64.h"
#include "core/symbols/symbol_name.h"
#include "core/base/intern.h"
#include "decode/image/sym_jit.h"
#include "decode/image/sym_kernel.h"
#include "decode/image/sym_module.h"

/* What addresses of one kind of place are counted under. */
struct account {
    struct symbolizer_account a;
    fn_id unknown;     /* "[unknown]" of this module */
    const char *why;   /* for a.reason when something stays unknown; NULL: nothing to say */
};

/* A file: its symbols, and the functions already made of them. */
struct file {
    struct sym_module *module;
    uint32_t account;
    fn_id *fns; /* by symbol; FN_NONE: not yet; NULL: no symbols */
};

/* The compiled code of one process. */
struct jit {
    struct sym_jit *map; /* NULL: none */
    uint32_t account;
};

struct found {
    fn_id fn;
    uint32_t account;
    bool resolved;
};

struct cache_entry {
    uint64_t generation, ip;
    struct found found; /* fn is FN_NONE: free */
};
#define CACHE_SIZE 16384

struct symbolizer {
    struct functions *functions;
    const struct addrspaces *as;
    struct symbolizer_options options; /* strings are ours */
    VEC(struct account) accounts;
    struct intern *account_names, *file_keys;
    VEC(char *) strings;
    VEC(uint32_t) file_of; /* of an address space's module: index in files; NO_FILE: not yet */
    VEC(struct file) files;
    VEC(struct jit) jits;
    struct hash64 jit_of; /* pid → index in jits */
    struct sym_kernel *kernel;
    bool kernel_tried;
    char *kernel_why;
    struct cache_entry cache[CACHE_SIZE];
};
#define NO_FILE UINT32_MAX

/* ---- Making and freeing ---- */

static char *copy_or_null(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

static char *default_build_id_dir(void)
{
    const char *home = getenv("HOME");
    return home && *home ? xasprintf("%s/.debug", home) : NULL;
}

/* What absolute paths are put behind: without slashes of its own at the end. */
static char *root_or_null(const char *dir)
{
    size_t n = dir ? strlen(dir) : 0;
    while (n && dir[n - 1] == '/')
        n--;
    return dir ? xasprintf("%.*s", (int)n, dir) : NULL;
}

struct symbolizer *symbolizer_new(struct functions *functions, const struct addrspaces *as,
                                  const struct symbolizer_options *options)
{
    struct symbolizer *s = xcalloc(1, sizeof *s);
    s->functions = functions;
    s->as = as;
    s->options.log = options->log;
    s->options.symfs = root_or_null(options->symfs);
    s->options.build_id_dir =
        options->build_id_dir ? xstrdup(options->build_id_dir) : default_build_id_dir();
    s->options.tmp = xstrdup(options->tmp ? options->tmp : "/tmp");
    s->options.proc = xstrdup(options->proc ? options->proc : "/proc");
    s->options.os_release = copy_or_null(options->os_release);
    s->account_names = intern_new();
    s->file_keys = intern_new();
    for (size_t i = 0; i < CACHE_SIZE; i++)
        s->cache[i].found.fn = FN_NONE;
    return s;
}

static void free_string(const char *s)
{
    free((void *)(uintptr_t)s);
}

void symbolizer_free(struct symbolizer *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->files.len; i++) {
        sym_module_free(s->files.data[i].module);
        free(s->files.data[i].fns);
    }
    for (size_t i = 0; i < s->jits.len; i++)
        sym_jit_free(s->jits.data[i].map);
    for (size_t i = 0; i < s->strings.len; i++)
        free(s->strings.data[i]);
    sym_kernel_free(s->kernel);
    free(s->kernel_why);
    intern_free(s->account_names);
    intern_free(s->file_keys);
    hash64_free(&s->jit_of);
    vec_free(&s->accounts);
    vec_free(&s->strings);
    vec_free(&s->file_of);
    vec_free(&s->files);
    vec_free(&s->jits);
    free_string(s->options.symfs);
    free_string(s->options.build_id_dir);
    free_string(s->options.tmp);
    free_string(s->options.proc);
    free_string(s->options.os_release);
    free(s);
}

/* ---- Accounts ---- */

static uint32_t account_for(struct symbolizer *s, const char *module, const char *source,
                            const char *why)
{
    uint32_t i = intern_add(s->account_names, module, strlen(module));
    if (i < s->accounts.len)
        return i;
    struct account fresh = {.a.module = intern_get(s->account_names, i), .a.source = source, .why = why};
    fresh.unknown = functions_intern(s->functions, module, "[unknown]", "[unknown]", 0, FN_UNKNOWN);
    vec_push(&s->accounts, fresh);
    return i;
}

static struct found unknown_in(struct symbolizer *s, uint32_t account)
{
    return (struct found){s->accounts.data[account].unknown, account, false};
}

typedef fn_id intern_fn(struct functions *f, const char *module, const char *raw, const char *name, uint64_t addr,
                        enum fn_kind kind);

static fn_id make_function_by(intern_fn *intern, struct symbolizer *s, const char *module, const char *raw, uint64_t addr,
                              enum fn_kind kind)
{
    char *name = demangle(raw, DEMANGLE_NO_ARGS);
    fn_id fn = intern(s->functions, module, raw, name ? name : raw, addr, kind);
    free(name);
    return fn;
}

/* One of its name in the module. */
static fn_id make_function(struct symbolizer *s, const char *module, const char *raw, uint64_t addr,
                           enum fn_kind kind)
{
    return make_function_by(functions_intern, s, module, raw, addr, kind);
}

/* ---- Files ---- */

/* Mappings of one file, with and without a build-id of their own, share what is loaded. */
static uint32_t open_file(struct symbolizer *s, const struct addrspace_module *m)
{
    size_t path_len = strlen(m->path), len = path_len + 1 + m->build_id_len;
    char *key = xmalloc(len);
    memcpy(key, m->path, path_len + 1);
    if (m->build_id_len)
        memcpy(key + path_len + 1, m->build_id, m->build_id_len);
    uint32_t number = intern_add(s->file_keys, key, len);
    free(key);
    if (number < s->files.len)
        return number;
    struct file f = {.module = sym_module_open(m, &s->options)};
    f.account = account_for(s, m->path, sym_module_source(f.module), sym_module_reason(f.module));
    if (sym_module_source(f.module))
        functions_set_file(s->functions, m->path, sym_module_source(f.module));
    size_t n = sym_module_count(f.module);
    f.fns = n ? malloc(n * sizeof *f.fns) : NULL;
    for (size_t i = 0; f.fns && i < n; i++)
        f.fns[i] = FN_NONE;
    vec_push(&s->files, f);
    return number;
}

static struct file *file_of_module(struct symbolizer *s, uint32_t module)
{
    while (s->file_of.len <= module)
        vec_push(&s->file_of, NO_FILE);
    if (s->file_of.data[module] == NO_FILE) {
        struct addrspace_module m = addrspaces_module(s->as, module);
        s->file_of.data[module] = open_file(s, &m);
    }
    return &s->files.data[s->file_of.data[module]];
}

static struct found find_in_file(struct symbolizer *s, const struct addrspace_map *map, uint64_t ip)
{
    struct file *f = file_of_module(s, map->module);
    struct symbol sym;
    size_t i;
    if (!f->fns || !sym_module_find(f->module, ip - map->start + map->pgoff, &sym, &i))
        return unknown_in(s, f->account);
    if (f->fns[i] == FN_NONE) {
        const char *module = s->accounts.data[f->account].a.module;
        enum fn_kind kind = sym.flags & SYMBOL_PLT                ? FN_PLT
                            : sym.flags & SYMBOL_PART || symbol_name_is_cold(sym.name) ? FN_PART
                            : strcmp(module, "[vdso]") == 0 ? FN_VDSO
                                                                  : FN_USER;
        f->fns[i] = make_function_by(kind == FN_PLT ? functions_intern : functions_intern_at, s, module, sym.name,
                                     sym.vaddr, kind);
    }
    return (struct found){f->fns[i], f->account, true};
}

/* ---- Compiled code ---- */

/* A run-time that writes a jitdump maps a page of it, so that recordings know the file jit-PID.dump
 * (tools/perf/Documentation/jitdump-specification.txt). NULL: it does not. */
static const char *find_jitdump(const struct symbolizer *s, pid_t pid)
{
    size_t n = 0;
    const struct addrspace_map *maps = addrspaces_maps(s->as, pid, &n);
    for (size_t i = 0; i < n; i++) {
        const char *path = addrspaces_module(s->as, maps[i].module).path, *name = strrchr(path, '/');
        size_t len = name ? strlen(name) : 0;
        if (len > 10 && strncmp(name, "/jit-", 5) == 0 && strcmp(name + len - 5, ".dump") == 0)
            return path;
    }
    return NULL;
}

static struct jit open_jit(struct symbolizer *s, pid_t pid)
{
    struct jit j = {0};
    struct err err;
    const char *copy = s->options.log ? maps_log_perf_map(s->options.log, pid) : NULL;
    char *path = copy ? xstrdup(copy) : xasprintf("%s/perf-%d.map", s->options.tmp, (int)pid);
    char *module = xasprintf("/tmp/perf-%d.map", (int)pid);
    char *why;
    int e = sym_jit_load(&j.map, path, copy != NULL, &err);
    const char *dump = e == MTUI_E_NOENT ? find_jitdump(s, pid) : NULL;
    if (dump)
        why = xasprintf("code that has no file; the program keeps its names in the jitdump %s, which mtui does not "
                        "read: `perf inject --jit` makes a recording with these names, or have the run-time write "
                        "a perf map",
                        dump);
    else if (e == MTUI_E_NOENT)
        why = xstrdup("code that has no file, and the program wrote no map of it (see the perf map "
                      "option of its run-time, for instance python -X perf, node --perf-basic-prof)");
    else if (e < 0)
        why = xasprintf("no symbols: %s", err.text);
    else
        why = xasprintf("some of this code is not in %s", path);
    vec_push(&s->strings, path);
    vec_push(&s->strings, why);
    j.account = account_for(s, e == 0 ? module : "[anon]", e == 0 ? path : NULL, why);
    free(module);
    return j;
}

static struct found find_jit(struct symbolizer *s, pid_t pid, uint64_t ip)
{
    uint32_t i = hash64_get(&s->jit_of, (uint32_t)pid);
    if (i == HASH64_NONE) {
        struct jit fresh = open_jit(s, pid);
        i = (uint32_t)s->jits.len;
        vec_push(&s->jits, fresh);
        hash64_set(&s->jit_of, (uint32_t)pid, i);
    }
    const struct jit *j = &s->jits.data[i];
    size_t len;
    uint64_t start;
    const char *name = j->map ? sym_jit_find(j->map, ip, &len, &start) : NULL;
    if (!name)
        return unknown_in(s, j->account);
    char *raw = xstrndup(name, len);
    fn_id fn = make_function(s, s->accounts.data[j->account].a.module, raw, start, FN_USER);
    free(raw);
    return (struct found){fn, j->account, true};
}

/* perf's idea of memory that has no file (tools/perf/util/map.c, is_anon_memory), and heaps. */
bool symbolizer_is_anonymous(const char *path)
{
    static const char *const starts[] = {"//anon", "/dev/zero", "/anon_hugepage", "[heap]", "[stack",
                                         "/memfd:", "/SYSV", "anon_inode:"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(path, starts[i], strlen(starts[i])) == 0)
            return true;
    return *path == '\0';
}

/* Where the kernel has copies of the instructions that uprobes sit on, for the program to step over them: probes of
 * triggers, for instance. Source: kernel/events/uprobes.c (xol_area). */
#define UPROBE_COPIES "[uprobes]"

static struct found find_in_map(struct symbolizer *s, const struct addrspace_map *map, uint64_t ip)
{
    const char *path = addrspaces_module(s->as, map->module).path;
    if (strcmp(path, UPROBE_COPIES) == 0)
        return (struct found){functions_intern(s->functions, "[kernel]", "[uprobe]", "[uprobe]", 0, FN_KERNEL),
                              account_for(s, path, NULL, NULL), true};
    if (symbolizer_is_anonymous(path))
        return find_jit(s, map->owner, ip);
    return find_in_file(s, map, ip);
}

static struct found find_user(struct symbolizer *s, pid_t pid, uint64_t ip)
{
    const struct addrspace_map *map = addrspaces_find(s->as, pid, ip, PERF_MODE_USER);
    if (!map)
        return unknown_in(s, account_for(s, "[unknown]", NULL,
                                         "addresses at which nothing was mapped, as far as was "
                                         "recorded"));
    return find_in_map(s, map, ip);
}

/* ---- The kernel ---- */

static void open_kernel(struct symbolizer *s)
{
    struct utsname u;
    struct err err;
    const char *release = s->options.os_release;
    s->kernel_tried = true;
    if (release && uname(&u) == 0 && strcmp(u.release, release) != 0) {
        s->kernel_why = xasprintf("recorded on kernel %s; kernel %s runs here", release, u.release);
        return;
    }
    char *path = xasprintf("%s/kallsyms", s->options.proc);
    if (sym_kernel_load(&s->kernel, path, &err) < 0)
        s->kernel_why = xstrdup(err.text);
    free(path);
}

/* perf names the kernel's own text "[kernel.kallsyms]_text" and puts the address of that symbol into
 * pgoff; a kernel module is mapped under its path, or under "[name]". */
static bool is_kernel_text(const char *path)
{
    return strncmp(path, "[kernel.kallsyms]", 17) == 0 || strncmp(path, "[guest.kernel", 13) == 0;
}

/* "/lib/modules/…/snd-seq.ko.xz" is "[snd_seq]" in kallsyms. */
static bool is_module_named(const char *path, const char *bracketed)
{
    const char *base = strrchr(path, '/');
    size_t len = strlen(bracketed);
    if (!base)
        return strcmp(path, bracketed) == 0;
    base++;
    for (size_t i = 1; i + 1 < len; i++)
        if (base[i - 1] != bracketed[i] && !(base[i - 1] == '-' && bracketed[i] == '_'))
            return false;
    return base[len - 2] == '.';
}

static struct found find_kernel(struct symbolizer *s, uint64_t ip)
{
    uint64_t start = 0;
    const char *bpf = addrspaces_ksymbol(s->as, ip, &start);
    if (bpf) {
        uint32_t account = account_for(s, "[bpf]", NULL, NULL);
        return (struct found){make_function(s, "[bpf]", bpf, start, FN_KERNEL), account, true};
    }
    if (!s->kernel_tried)
        open_kernel(s);
    uint32_t kernel = account_for(s, "[kernel]", s->kernel ? "/proc/kallsyms" : NULL,
                                  s->kernel_why ? s->kernel_why
                                                : "some addresses lie outside the kernel's symbols");
    const struct addrspace_map *map = addrspaces_find(s->as, -1, ip, PERF_MODE_KERNEL);
    if (!s->kernel || !map)
        return unknown_in(s, kernel);
    const char *path = addrspaces_module(s->as, map->module).path;
    bool text = is_kernel_text(path);
    uint64_t now = sym_kernel_text(s->kernel);
    uint64_t at = text && now && map->pgoff ? ip - map->pgoff + now : ip;
    const struct kernel_symbol *sym = sym_kernel_find(s->kernel, at);
    if (!sym || (sym->module && text && at != ip) ||
        (!text && (!sym->module || !is_module_named(path, sym->module))))
        return unknown_in(s, kernel);
    uint32_t account = sym->module ? account_for(s, sym->module, "/proc/kallsyms", NULL) : kernel;
    return (struct found){
        make_function(s, s->accounts.data[account].a.module, sym->name, sym->address, FN_KERNEL),
        account, true};
}

/* ---- The question ---- */

static struct found find(struct symbolizer *s, pid_t pid, uint64_t ip, enum perf_cpumode mode)
{
    switch (mode) {
    case PERF_MODE_USER:
        return find_user(s, pid, ip);
    case PERF_MODE_KERNEL:
        return find_kernel(s, ip);
    case PERF_MODE_HYPERVISOR:
        return unknown_in(s, account_for(s, "[hypervisor]", NULL, "code of the hypervisor"));
    case PERF_MODE_GUEST_KERNEL:
    case PERF_MODE_GUEST_USER:
        return unknown_in(s, account_for(s, "[guest]", NULL, "code of a virtual machine's guest"));
    case PERF_MODE_UNKNOWN:
        break;
    }
    return find(s, pid, ip, ip >> 63 ? PERF_MODE_KERNEL : PERF_MODE_USER);
}

fn_id symbolizer_find(struct symbolizer *s, pid_t pid, uint64_t ip, enum perf_cpumode mode)
{
    if (mode == PERF_MODE_UNKNOWN)
        mode = ip >> 63 ? PERF_MODE_KERNEL : PERF_MODE_USER;
    struct found f;
    uint64_t generation = addrspaces_generation(s->as, mode == PERF_MODE_KERNEL ? -1 : pid);
    if (generation == 0 || mode > PERF_MODE_USER) { /* nothing known: it costs nothing to ask */
        f = find(s, pid, ip, mode);
    } else {
        uint64_t h = (ip ^ generation * 0x9e3779b97f4a7c15ULL) * 0xff51afd7ed558ccdULL;
        struct cache_entry *entry = &s->cache[h >> 40 & (CACHE_SIZE - 1)];
        if (entry->found.fn == FN_NONE || entry->ip != ip || entry->generation != generation)
            *entry = (struct cache_entry){generation, ip, find(s, pid, ip, mode)};
        f = entry->found;
    }
    struct account *account = &s->accounts.data[f.account];
    account->a.lookups++;
    account->a.resolved += f.resolved;
    return f.fn;
}

fn_id symbolizer_find_mapped(struct symbolizer *s, const struct addrspace_map *map, uint64_t ip)
{
    struct found f = find_in_map(s, map, ip);
    struct account *account = &s->accounts.data[f.account];
    account->a.lookups++;
    account->a.resolved += f.resolved;
    return f.fn;
}

const struct sym_module *symbolizer_module(struct symbolizer *s, const struct addrspace_map *map)
{
    if (symbolizer_is_anonymous(addrspaces_module(s->as, map->module).path))
        return NULL;
    const struct file *f = file_of_module(s, map->module);
    return sym_module_source(f->module) ? f->module : NULL;
}

const char *symbolizer_why_missing(struct symbolizer *s, const struct addrspace_map *map)
{
    if (symbolizer_is_anonymous(addrspaces_module(s->as, map->module).path))
        return NULL;
    const struct file *f = file_of_module(s, map->module);
    return sym_module_source(f->module) ? NULL : sym_module_reason(f->module);
}

size_t symbolizer_account_count(const struct symbolizer *s)
{
    return s->accounts.len;
}

struct symbolizer_account symbolizer_account(const struct symbolizer *s, size_t i)
{
    struct symbolizer_account a = s->accounts.data[i].a;
    a.reason = a.resolved < a.lookups ? s->accounts.data[i].why : NULL;
    return a;
}
