#include "decode/image/sym_module.h"

#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/symbols/debug_file.h"
#include "core/symbols/elf_file.h"
#include "core/base/vec.h"
#include "decode/image/sym_file.h"

#define VDSO_MAX (1u << 20)

struct sym_module {
    struct symtab *symbols; /* NULL: no file was used */
    VEC(struct elf_segment) segments;
    char *source, *reason;
};

/* While a file is looked for. */
struct search {
    const struct addrspace_module *module;
    const struct symbolizer_options *options;
    char *path;      /* without the " (deleted)" that the kernel appends */
    bool deleted;
    struct elf_file *elf; /* found */
    char *source;
    char *why_not;   /* the most telling sentence so far */
    bool mismatch;   /* it is about a file that is another one */
};

/* ---- Trying files ---- */

/* Date and time of day, with as much of the second as tells two builds of a script apart. */
static const char *local_time(char out[32], int64_t ns)
{
    struct tm tm = {0};
    time_t seconds = (time_t)(ns / 1000000000);
    char date[24];
    localtime_r(&seconds, &tm);
    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &tm);
    snprintf(out, 32, "%s.%03d", date, (int)(ns / 1000000 % 1000));
    return out;
}

static void note(struct search *s, char *sentence, bool mismatch)
{
    if (s->why_not && (s->mismatch || !mismatch)) {
        free(sentence);
        return;
    }
    free(s->why_not);
    s->why_not = sentence;
    s->mismatch = mismatch;
}

static bool build_id_fits(const struct search *s, const struct elf_file *elf)
{
    size_t len;
    const uint8_t *id = elf_file_build_id(elf, &len);
    const struct addrspace_module *m = s->module;
    /* perf keeps 20 bytes, and pads shorter ids with zeros where it does not tell the length */
    if (len > sizeof ((struct perf_record *)0)->u.build_id.build_id)
        len = sizeof ((struct perf_record *)0)->u.build_id.build_id;
    if (len == 0 || len > m->build_id_len || memcmp(id, m->build_id, len) != 0)
        return false;
    for (size_t i = len; i < m->build_id_len; i++)
        if (m->build_id[i])
            return false;
    return true;
}

/* Takes elf over. */
static bool offer(struct search *s, struct elf_file *elf, const char *path)
{
    if (s->module->build_id_len && !build_id_fits(s, elf)) {
        char recorded[2 * ELF_BUILD_ID_MAX + 1], found[2 * ELF_BUILD_ID_MAX + 1];
        size_t len;
        const uint8_t *id = elf_file_build_id(elf, &len);
        elf_build_id_hex(id, len, found);
        elf_build_id_hex(s->module->build_id, s->module->build_id_len, recorded);
        note(s, xasprintf("%s is not the file that ran: its build-id is %.12s, recorded was %.12s; "
                          "not used", path, len ? found : "missing", recorded), true);
        elf_file_free(elf);
        return false;
    }
    s->elf = elf;
    s->source = xstrdup(path);
    return true;
}

/* Where no build-id was recorded, size and time of the last change tell two files apart. A copy (that of
 * a symfs) may have another time. */
static bool stat_fits(struct search *s, const struct elf_file *elf, const char *path, bool is_copy)
{
    const struct maps_log *log = s->options->log;
    const struct maps_file *file = log && !s->module->build_id_len ? maps_log_file(log, s->path) : NULL;
    struct stat st;
    if (!file || !file->size || fstat(elf_file_fd(elf), &st) != 0)
        return true; /* nothing is known to compare with */
    if ((uint64_t)st.st_size != file->size) {
        note(s, xasprintf("%s is not the file that ran: it has %" PRIu64 " bytes, recorded were %" PRIu64
                          "; not used", path, (uint64_t)st.st_size, file->size), true);
        return false;
    }
    int64_t mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    if (is_copy || !file->mtime_ns || mtime_ns == file->mtime_ns)
        return true;
    char now[32], then[32];
    note(s, xasprintf("%s is not the file that ran: it was changed at %s, recorded was that of %s; not used",
                      path, local_time(now, mtime_ns), local_time(then, file->mtime_ns)), true);
    return false;
}

static bool try_path(struct search *s, const char *path, bool is_copy)
{
    struct elf_file *elf;
    struct err err;
    if (elf_file_open_path(path, &elf, &err) < 0) {
        note(s, xasprintf("no symbols: %s", err.text), false);
        return false;
    }
    if (stat_fits(s, elf, path, is_copy))
        return offer(s, elf, path);
    elf_file_free(elf);
    return false;
}

static bool try_copy(struct search *s)
{
    const struct maps_log *log = s->options->log;
    const struct maps_file *file = log ? maps_log_file(log, s->path) : NULL;
    return file && file->copy && try_path(s, file->copy, true);
}

static bool try_build_id_cache(struct search *s)
{
    if (!s->module->build_id_len || !s->options->build_id_dir)
        return false;
    char hex[2 * ELF_BUILD_ID_MAX + 1];
    elf_build_id_hex(s->module->build_id, s->module->build_id_len, hex);
    const char *const ends[] = {"/elf", "/vdso", ""}; /* the last: perf before Linux 4.12 */
    bool found = false;
    for (size_t i = 0; !found && i < sizeof ends / sizeof *ends; i++) {
        char *path = xasprintf("%s/.build-id/%.2s/%s%s", s->options->build_id_dir, hex, hex + 2, ends[i]);
        struct elf_file *elf;
        if (elf_file_open_path(path, &elf, NULL) == 0)
            found = offer(s, elf, path);
        free(path);
    }
    return found;
}

static bool find_file(struct search *s)
{
    const char *symfs = s->options->symfs;
    if (try_copy(s))
        return true;
    if (symfs) {
        char *path = xasprintf("%s%s%s", symfs, s->path[0] == '/' ? "" : "/", s->path);
        bool found = try_path(s, path, true);
        free(path);
        if (found)
            return true;
    } else if (s->deleted && !s->module->build_id_len) {
        note(s, xasprintf("%s was deleted or replaced before it was recorded, and nothing tells "
                          "whether the file there now is the same", s->path), false);
    } else if (try_path(s, s->path, false)) {
        return true;
    }
    return try_build_id_cache(s);
}

/* ---- [vdso] ---- */

static bool offer_image(struct search *s, void *image, size_t size, const char *source)
{
    struct elf_file *elf;
    struct err err;
    if (elf_file_open_memory(image, size, "[vdso]", &elf, &err) == 0)
        return offer(s, elf, source);
    note(s, xasprintf("no symbols: %s", err.text), false);
    return false;
}

static bool try_logged_vdso(struct search *s)
{
    const struct maps_log *log = s->options->log;
    for (size_t i = 0; log && i < maps_log_code_count(log); i++) {
        const struct maps_code *c = maps_log_code(log, i);
        char *image;
        size_t len;
        if (strcmp(c->name, "[vdso]") != 0 ||
            sym_file_read(c->path, VDSO_MAX, false, &image, &len, NULL) < 0)
            continue;
        if (offer_image(s, image, len, c->path))
            return true;
    }
    return false;
}

#define OWN_VDSO "[vdso]" /* as a source: that of this process */

static const void *own_vdso(size_t *size)
{
    const ElfW(Ehdr) *e = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    *size = e ? e->e_shoff + (size_t)e->e_shnum * e->e_shentsize : 0;
    return *size <= VDSO_MAX ? e : NULL;
}

/* All processes of a kernel have the same vdso, so ours will do when it is the same kernel. */
static bool try_own_vdso(struct search *s)
{
    struct utsname u;
    size_t size;
    const void *image = own_vdso(&size);
    const char *release = s->options->os_release;
    if (!image)
        return false;
    if (!s->module->build_id_len && release && uname(&u) == 0 && strcmp(u.release, release) != 0) {
        note(s, xasprintf("[vdso] belongs to kernel %s, which does not run here", release), false);
        return false;
    }
    void *copy = xmalloc(size);
    memcpy(copy, image, size);
    return offer_image(s, copy, size, OWN_VDSO);
}

/* ---- Loading ---- */

static void load_symbols(struct sym_module *m, struct search *s)
{
    struct debug_search debug = {.root = s->options->symfs ? s->options->symfs : "", .path = s->path};
    struct err err;
    if (symtab_load(s->elf, &debug, &m->symbols, &err) < 0) {
        m->reason = xasprintf("no symbols: %s", err.text);
        m->symbols = NULL;
        return;
    }
    size_t n;
    const struct elf_segment *segments = elf_file_segments(s->elf, &n);
    for (size_t i = 0; i < n; i++)
        vec_push(&m->segments, segments[i]);
    m->source = s->source;
    s->source = NULL;
    const char *note = symtab_note(m->symbols);
    m->reason = note ? xstrdup(note)
                     : xasprintf("some addresses of %s lie between its symbols", m->source);
}

struct sym_module *sym_module_open(const struct addrspace_module *module,
                                   const struct symbolizer_options *options)
{
    static const char deleted[] = " (deleted)";
    const size_t tail = sizeof deleted - 1;
    struct sym_module *m = xcalloc(1, sizeof *m);
    struct search s = {.module = module, .options = options, .path = xstrdup(module->path)};
    size_t len = strlen(s.path);
    if (len > tail && strcmp(s.path + len - tail, deleted) == 0) {
        s.path[len - tail] = '\0';
        s.deleted = true;
    }
    bool found = strcmp(s.path, "[vdso]") == 0
                     ? try_logged_vdso(&s) || try_own_vdso(&s) || try_build_id_cache(&s)
                     : s.path[0] == '/' && find_file(&s);
    if (found)
        load_symbols(m, &s);
    else
        m->reason = s.why_not ? xstrdup(s.why_not) : xasprintf("%s is not a file", s.path);
    if (s.elf)
        elf_file_free(s.elf);
    free(s.path);
    free(s.source);
    free(s.why_not);
    return m;
}

void sym_module_free(struct sym_module *m)
{
    if (!m)
        return;
    if (m->symbols)
        symtab_free(m->symbols);
    vec_free(&m->segments);
    free(m->source);
    free(m->reason);
    free(m);
}

/* ---- Questions ---- */

/* Executable segments come first. */
bool sym_module_vaddr(const struct sym_module *m, uint64_t offset, uint64_t *vaddr)
{
    for (size_t i = 0; i < m->segments.len; i++) {
        const struct elf_segment *seg = &m->segments.data[i];
        if (offset >= seg->offset && offset - seg->offset < seg->filesz) {
            *vaddr = seg->vaddr + (offset - seg->offset);
            return true;
        }
    }
    return false;
}

bool sym_module_find(const struct sym_module *m, uint64_t offset, struct symbol *out, size_t *index)
{
    uint64_t vaddr;
    if (!m->symbols || !sym_module_vaddr(m, offset, &vaddr))
        return false;
    ssize_t i = symtab_find(m->symbols, vaddr);
    if (i < 0)
        return false;
    symtab_get(m->symbols, (size_t)i, out);
    *index = (size_t)i;
    return true;
}

struct only {
    uint64_t vaddr;
    bool any, several;
};

static void meet(void *arg, const struct symbol *s)
{
    struct only *o = arg;
    o->several |= o->any && s->vaddr != o->vaddr;
    o->any = true;
    o->vaddr = s->vaddr;
}

bool sym_module_find_only(const struct sym_module *m, const char *raw, struct symbol *out)
{
    struct only o = {0};
    if (!m->symbols)
        return false;
    symtab_find_name(m->symbols, raw, meet, &o);
    ssize_t i = o.any && !o.several ? symtab_find(m->symbols, o.vaddr) : -1;
    if (i < 0)
        return false;
    symtab_get(m->symbols, (size_t)i, out);
    return true;
}

size_t sym_module_count(const struct sym_module *m)
{
    return m->symbols ? symtab_count(m->symbols) : 0;
}

int sym_module_fd(const struct sym_module *m)
{
    size_t size;
    if (!m->source)
        return -1;
    if (strcmp(m->source, OWN_VDSO) != 0)
        return open(m->source, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const void *image = own_vdso(&size);
    int fd = image ? memfd_create("vdso", MFD_CLOEXEC) : -1;
    if (fd >= 0 && write(fd, image, size) != (ssize_t)size) {
        close(fd);
        return -1;
    }
    return fd;
}

const char *sym_module_source(const struct sym_module *m)
{
    return m->source;
}

const char *sym_module_reason(const struct sym_module *m)
{
    return m->reason;
}
