#include "core/symbols/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/symbols/debug_file.h"
#include "core/symbols/dwarf_line.h"
#include "core/machine/maps.h"
#include "core/machine/proc_stat.h"
#include "core/base/vec.h"

#define VDSO_MAX ((uint64_t)1 << 20)
#define MODULES_MAX 20000

struct entry {
    struct module pub;
    uint64_t inode;
    uint32_t dev_major, dev_minor;
    uint64_t map_start, map_offset; /* of the first executable mapping seen: the key where there is
                                       no bias to compare */
    struct elf_file *elf;           /* NULL: pub.why */
    struct symtab *symtab;
    struct dwarf_lines *dwarf;
    bool symtab_tried, dwarf_tried;
    struct err symtab_err, dwarf_err;
};

struct range {
    uint64_t start, end;
    size_t module;
};

struct modules {
    pthread_mutex_t lock; /* covers lazy loading */
    char *proc_root, *debug_root;
    pid_t pid;
    VEC(struct entry *) list; /* each on its own, so that struct module never moves */
    VEC(struct range) ranges; /* executable mappings, ascending */
};

/* ---- Making entries ---- */

static struct entry *entry_new(struct modules *m, const char *path)
{
    struct entry *e = xcalloc(1, sizeof *e);
    char *copy = xstrdup(path);
    const char *slash = strrchr(copy, '/');
    e->pub.path = copy;
    e->pub.name = slash && slash[1] ? slash + 1 : copy;
    e->pub.mapped = true;
    vec_push(&m->list, e);
    return e;
}

static void entry_free(struct entry *e)
{
    elf_file_free(e->elf);
    symtab_free(e->symtab);
    dwarf_lines_free(e->dwarf);
    free((char *)(uintptr_t)e->pub.path);
    free((char *)(uintptr_t)e->pub.open_path);
    free((char *)(uintptr_t)e->pub.why);
    free(e);
}

static void entry_set_elf(struct entry *e, struct elf_file *elf)
{
    size_t len;
    const uint8_t *id = elf_file_build_id(elf, &len);
    e->elf = elf;
    e->pub.kind = elf_file_kind(elf);
    e->pub.bits = elf_file_bits(elf);
    memcpy(e->pub.build_id, id, len);
    e->pub.build_id_len = len;
}

/* bias = where the mapping lies − where the segment behind it was linked. Kernel and ld.so map whole
 * pages, so a mapping may begin before its segment. */
static bool bias_of(const struct elf_file *elf, const struct map *map, uint64_t *bias)
{
    size_t n;
    const struct elf_segment *s = elf_file_segments(elf, &n);
    uint64_t length = map->end - map->start;
    for (size_t i = 0; i < n; i++) { /* executable segments come first */
        uint64_t first = s[i].offset & ~(uint64_t)4095;
        if (map->offset + length <= first || map->offset >= s[i].offset + s[i].filesz)
            continue;
        *bias = map->start - (s[i].vaddr - s[i].offset + map->offset);
        return true;
    }
    return false;
}

/* What the process's directory in /proc has of this name. */
static void proc_path(const char *proc_root, pid_t pid, const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s/%d/%s", proc_root, (int)proc_living_thread(proc_root, pid), name);
}

static int open_mem(const struct modules *m)
{
    char path[PATH_MAX];
    proc_path(m->proc_root, m->pid, "mem", path, sizeof path);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static void entry_load_vdso(struct modules *m, struct entry *e, const struct map *map)
{
    uint64_t size = map->end - map->start;
    void *image = size <= VDSO_MAX ? malloc((size_t)size) : NULL;
    int fd = open_mem(m);
    struct err err;
    struct elf_file *elf;
    if (!image || fd < 0 || pread(fd, image, (size_t)size, (off_t)map->start) != (ssize_t)size) {
        e->pub.why = xasprintf("cannot read [vdso] from /proc/%d/mem: %s", (int)m->pid,
                               strerror(errno));
        free(image);
    } else if (elf_file_open_memory(image, (size_t)size, "[vdso]", &elf, &err) < 0) {
        e->pub.why = xstrdup(err.text);
    } else {
        entry_set_elf(e, elf);
        e->pub.bias = map->start;
        bias_of(elf, map, &e->pub.bias);
    }
    if (fd >= 0)
        close(fd);
}

/* A file that was found only by its path may be a namesake: its build-id must be the one in memory,
 * where that can be read. */
static bool contradicts_memory(const struct modules *m, const struct entry *e)
{
    uint64_t offset, vaddr;
    uint8_t id[ELF_BUILD_ID_MAX];
    size_t len;
    const uint8_t *want = elf_file_build_id(e->elf, &len);
    if (len == 0 || !elf_file_build_id_offset(e->elf, &offset) ||
        !elf_file_offset_to_vaddr(e->elf, offset, &vaddr))
        return false;
    int fd = open_mem(m);
    if (fd < 0)
        return false;
    ssize_t n = pread(fd, id, len, (off_t)(vaddr + e->pub.bias));
    close(fd);
    return n == (ssize_t)len && memcmp(id, want, len) != 0;
}

static bool was_replaced(const struct modules *m, const struct map *map, int fd)
{
    struct stat st, now;
    char root[PATH_MAX], path[2 * PATH_MAX];
    if (map->deleted || fstat(fd, &st) != 0)
        return map->deleted;
    proc_path(m->proc_root, m->pid, "root", root, sizeof root);
    snprintf(path, sizeof path, "%s%s", root, map->path);
    return st.st_nlink == 0 || (stat(path, &now) == 0 && now.st_dev == st.st_dev &&
                                now.st_ino != st.st_ino);
}

static void entry_load_file(struct modules *m, struct entry *e, const struct map *map)
{
    char path[2 * PATH_MAX];
    struct err err;
    struct elf_file *elf;
    e->pub.deleted = map->deleted;
    int fd = map_open(m->proc_root, m->pid, map, path, sizeof path, &err);
    if (fd < 0) {
        e->pub.why = xstrdup(err.text);
        return;
    }
    e->pub.deleted = was_replaced(m, map, fd);
    e->pub.open_path = xstrdup(path);
    if (elf_file_open(fd, map->path, &elf, &err) < 0) {
        e->pub.why = xstrdup(err.text);
        return;
    }
    entry_set_elf(e, elf);
    if (!bias_of(elf, map, &e->pub.bias)) {
        e->pub.why = xasprintf("no segment of %s is what is mapped at 0x%" PRIx64, map->path,
                               map->start);
    } else if (strstr(path, "/root/") && contradicts_memory(m, e)) {
        e->pub.why = xasprintf("%s is another file than the one that is mapped (build-id differs)",
                               path);
    } else {
        return;
    }
    elf_file_free(e->elf);
    e->elf = NULL;
}

/* ---- Scanning the mappings ---- */

static bool is_vdso(const struct map *map)
{
    return strcmp(map->path, "[vdso]") == 0;
}

static bool entry_is(const struct entry *e, const struct map *map)
{
    if (e->inode != map->inode || e->dev_major != map->dev_major ||
        e->dev_minor != map->dev_minor || strcmp(e->pub.path, map->path) != 0)
        return false;
    if (!e->elf || is_vdso(map))
        return e->map_start == map->start && e->map_offset == map->offset;
    uint64_t bias;
    return bias_of(e->elf, map, &bias) && bias == e->pub.bias;
}

static struct entry *entry_for(struct modules *m, const struct map *map, size_t *index, bool *added)
{
    for (size_t i = m->list.len; i-- > 0;) {
        if (entry_is(m->list.data[i], map)) {
            *index = i;
            return m->list.data[i];
        }
    }
    if (m->list.len >= MODULES_MAX)
        return NULL;
    struct entry *e = entry_new(m, map->path);
    e->inode = map->inode;
    e->dev_major = map->dev_major;
    e->dev_minor = map->dev_minor;
    e->map_start = map->start;
    e->map_offset = map->offset;
    e->pub.is_vdso = is_vdso(map);
    if (e->pub.is_vdso)
        entry_load_vdso(m, e, map);
    else
        entry_load_file(m, e, map);
    *index = m->list.len - 1;
    *added = true;
    return e;
}

/* The path of the program, " (deleted)" cut off; "" when it cannot be read. */
static void read_exe(const struct modules *m, char *out, size_t size)
{
    static const char suffix[] = " (deleted)";
    char path[PATH_MAX];
    proc_path(m->proc_root, m->pid, "exe", path, sizeof path);
    ssize_t n = readlink(path, out, size - 1);
    out[n < 0 ? 0 : n] = '\0';
    size_t len = strlen(out), cut = sizeof suffix - 1;
    if (len > cut && strcmp(out + len - cut, suffix) == 0)
        out[len - cut] = '\0';
}

static int scan(struct modules *m, struct err *err)
{
    struct maps *maps;
    int rc = maps_read(m->proc_root, m->pid, &maps, err);
    if (rc < 0)
        return rc;
    char exe[PATH_MAX];
    read_exe(m, exe, sizeof exe);
    bool changed = false;
    bool *before = xcalloc(m->list.len + 1, sizeof *before);
    size_t known = m->list.len;
    for (size_t i = 0; i < known; i++) {
        before[i] = m->list.data[i]->pub.mapped;
        m->list.data[i]->pub.mapped = false;
    }
    m->ranges.len = 0;
    for (size_t i = 0; i < maps_count(maps); i++) {
        const struct map *map = maps_at(maps, i);
        if (!(map->prot & MAPS_X) || !(map_has_file(map) || is_vdso(map)))
            continue;
        size_t index = 0;
        struct entry *e = entry_for(m, map, &index, &changed);
        if (!e)
            break;
        if (!e->pub.mapped || e->pub.end == 0) {
            e->pub.start = map->start;
            e->pub.end = map->end;
        }
        e->pub.mapped = true;
        e->pub.is_main = !e->pub.is_vdso && strcmp(e->pub.path, exe) == 0;
        if (map->end > e->pub.end)
            e->pub.end = map->end;
        vec_push(&m->ranges, ((struct range){map->start, map->end, index}));
    }
    for (size_t i = 0; i < known; i++)
        changed |= before[i] != m->list.data[i]->pub.mapped;
    free(before);
    maps_free(maps);
    return changed;
}

/* ---- Opening and closing ---- */

/* "" in our own mount namespace, else PROC/PID/root. */
static char *debug_root(const char *proc_root, pid_t pid)
{
    char root[PATH_MAX], path[PATH_MAX];
    struct stat theirs, ours;
    proc_path(proc_root, pid, "root", root, sizeof root);
    bool same = stat(root, &theirs) != 0 || stat("/", &ours) != 0 ||
                (theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino);
    if (same) { /* the same root directory, but perhaps other things mounted below it */
        proc_path(proc_root, pid, "ns/mnt", path, sizeof path);
        same = stat(path, &theirs) != 0 || stat("/proc/self/ns/mnt", &ours) != 0 ||
               theirs.st_ino == ours.st_ino;
    }
    return xstrdup(same ? "" : root);
}

static struct modules *modules_new(const char *proc_root, pid_t pid)
{
    struct modules *m = xcalloc(1, sizeof *m);
    pthread_mutex_init(&m->lock, NULL);
    m->proc_root = xstrdup(proc_root ? proc_root : "/proc");
    m->pid = pid;
    m->debug_root = pid ? debug_root(m->proc_root, pid) : xstrdup("");
    return m;
}

int modules_of_pid(const char *proc_root, pid_t pid, struct modules **out, struct err *err)
{
    struct modules *m = modules_new(proc_root, pid);
    int rc = scan(m, err);
    if (rc < 0) {
        modules_free(m);
        return rc;
    }
    *out = m;
    return 0;
}

int modules_of_file(const char *path, struct modules **out, struct err *err)
{
    char *real = realpath(path, NULL);
    if (!real)
        return err_errno(err, errno, "%s", path);
    struct elf_file *elf;
    int rc = elf_file_open_path(real, &elf, err);
    if (rc < 0) {
        free(real);
        return rc;
    }
    struct modules *m = modules_new(NULL, 0);
    struct entry *e = entry_new(m, real);
    e->pub.open_path = xstrdup(real);
    e->pub.is_main = true;
    entry_set_elf(e, elf);
    free(real);
    *out = m;
    return 0;
}

int modules_refresh(struct modules *m, struct err *err)
{
    return m->pid ? scan(m, err) : 0;
}

void modules_free(struct modules *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->list.len; i++)
        entry_free(m->list.data[i]);
    vec_free(&m->list);
    vec_free(&m->ranges);
    pthread_mutex_destroy(&m->lock);
    free(m->proc_root);
    free(m->debug_root);
    free(m);
}

pid_t modules_pid(const struct modules *m)
{
    return m->pid;
}

const char *modules_root(const struct modules *m)
{
    return m->debug_root;
}

size_t modules_count(const struct modules *m)
{
    return m->list.len;
}

const struct module *modules_at(const struct modules *m, size_t i)
{
    return &m->list.data[i]->pub;
}

bool modules_same_file(const struct modules *m, size_t a, size_t b)
{
    const struct entry *x = m->list.data[a], *y = m->list.data[b];
    return x->inode && x->inode == y->inode && x->dev_major == y->dev_major && x->dev_minor == y->dev_minor;
}

ssize_t modules_find_addr(const struct modules *m, uint64_t addr)
{
    size_t lo = 0, hi = m->ranges.len; /* the first range that ends after addr */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (m->ranges.data[mid].end <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < m->ranges.len && m->ranges.data[lo].start <= addr
               ? (ssize_t)m->ranges.data[lo].module
               : -1;
}

/* ---- What is loaded when asked for ---- */

static struct debug_search search_of(const struct modules *m, const struct entry *e)
{
    return (struct debug_search){.root = m->debug_root,
                                 .path = e->pub.path[0] == '/' ? e->pub.path : NULL};
}

const struct symtab *modules_symtab(struct modules *m, size_t i, struct err *err)
{
    struct entry *e = m->list.data[i];
    pthread_mutex_lock(&m->lock);
    if (!e->symtab_tried) {
        e->symtab_tried = true;
        struct debug_search search = search_of(m, e);
        if (!e->elf)
            err_set(&e->symtab_err, MTUI_E_NOENT, "%s", e->pub.why);
        else
            symtab_load(e->elf, &search, &e->symtab, &e->symtab_err);
    }
    if (!e->symtab && err)
        *err = e->symtab_err;
    pthread_mutex_unlock(&m->lock);
    return e->symtab;
}

struct dwarf_lines *modules_dwarf(struct modules *m, size_t i, struct err *err)
{
    struct entry *e = m->list.data[i];
    pthread_mutex_lock(&m->lock);
    if (!e->dwarf_tried) {
        e->dwarf_tried = true;
        struct debug_search search = search_of(m, e);
        if (!e->elf)
            err_set(&e->dwarf_err, MTUI_E_NOENT, "%s", e->pub.why);
        else
            dwarf_lines_open(e->elf, &search, &e->dwarf, &e->dwarf_err);
    }
    if (!e->dwarf && err)
        *err = e->dwarf_err;
    pthread_mutex_unlock(&m->lock);
    return e->dwarf;
}

char *modules_why_no_symbols(struct modules *m, size_t i)
{
    struct err err;
    const struct symtab *t = modules_symtab(m, i, &err);
    if (!t)
        return xstrdup(err.text);
    const char *note = symtab_note(t);
    return note ? xstrdup(note) : NULL;
}

size_t modules_read_code(struct modules *m, size_t i, uint64_t vaddr, void *buf, size_t len)
{
    const struct entry *e = m->list.data[i];
    return e->elf ? elf_file_read(e->elf, vaddr, buf, len) : 0;
}

enum eh_stack modules_stack_at(struct modules *m, size_t i, uint64_t vaddr)
{
    const struct entry *e = m->list.data[i];
    pthread_mutex_lock(&m->lock);
    enum eh_stack stack = e->elf ? eh_cfa_stack_at(e->elf, vaddr) : EH_STACK_UNKNOWN;
    pthread_mutex_unlock(&m->lock);
    return stack;
}

bool modules_file_offset(struct modules *m, size_t i, uint64_t vaddr, uint64_t *offset)
{
    const struct entry *e = m->list.data[i];
    return e->elf && elf_file_is_code(e->elf, vaddr) &&
           elf_file_vaddr_to_offset(e->elf, vaddr, offset);
}

bool modules_symbolize(struct modules *m, uint64_t addr, struct symbol *out, size_t *module)
{
    ssize_t i = modules_find_addr(m, addr);
    const struct symtab *t = i < 0 ? NULL : modules_symtab(m, (size_t)i, NULL);
    uint64_t bias = t ? modules_at(m, (size_t)i)->bias : 0;
    ssize_t s = t ? symtab_find(t, addr - bias) : -1;
    if (s < 0)
        return false;
    symtab_get(t, (size_t)s, out);
    out->vaddr += bias;
    *module = (size_t)i;
    return true;
}
