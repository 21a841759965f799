#include "lib_step_symbols.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/symbols/elf_file.h"
#include "core/base/vec.h"

struct name {
    uint64_t offset, size; /* in the file */
    char *text;
};

struct file {
    const char *path;
    bool stripped, has_debug;
    VEC(struct name) names;
    VEC(struct name) unwind; /* of a stripped one, by readelf: as mtui names what has no symbol */
};

struct step_symbols {
    const struct step_rec *rec;
    VEC(struct file) files;
};

static size_t read_names(struct file *f, const struct elf_file *elf, const char *options, const char *path)
{
    char command[700], line[4096], text[4000], type;
    size_t n = 0;
    snprintf(command, sizeof command, "nm --defined-only -S %s '%s' 2>/dev/null", options, path);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    while (fgets(line, sizeof line, p)) {
        struct name name = {0};
        uint64_t vaddr;
        if (sscanf(line, "%" SCNx64 " %" SCNx64 " %c %3999s", &vaddr, &name.size, &type, text) != 4 &&
            sscanf(line, "%" SCNx64 " %c %3999s", &vaddr, &type, text) != 3)
            continue;
        if (!strchr("tTwWiuVv", type) || !elf_file_vaddr_to_offset(elf, vaddr, &name.offset))
            continue;
        text[strcspn(text, "@")] = '\0'; /* the version */
        name.text = xstrdup(text);
        vec_push(&f->names, name);
        n++;
    }
    pclose(p);
    return n;
}

/* Where Debian's packages of debug symbols put them. */
static void read_debug_names(struct file *f, const struct elf_file *elf)
{
    char path[2 * ELF_BUILD_ID_MAX + 64], hex[2 * ELF_BUILD_ID_MAX + 1];
    size_t len;
    const uint8_t *id = elf_file_build_id(elf, &len);
    elf_build_id_hex(id, len, hex);
    snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, len ? hex + 2 : "");
    f->has_debug = read_names(f, elf, "", path) > 0;
}

/* A function for each entry of .eh_frame. */
static void read_unwind(struct file *f, const struct elf_file *elf)
{
    char command[700], line[4096];
    const char *slash = strrchr(f->path, '/');
    snprintf(command, sizeof command, "readelf --debug-dump=frames '%s' 2>/dev/null", f->path);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    while (fgets(line, sizeof line, p)) {
        struct name name = {0};
        uint64_t vaddr, end;
        const char *pc = strstr(line, " FDE ") ? strstr(line, " pc=") : NULL;
        if (!pc || sscanf(pc, " pc=%" SCNx64 "..%" SCNx64, &vaddr, &end) != 2 ||
            !elf_file_vaddr_to_offset(elf, vaddr, &name.offset))
            continue;
        name.size = end - vaddr;
        name.text = xasprintf("%s+0x%" PRIx64, slash + 1, vaddr);
        vec_push(&f->unwind, name);
    }
    pclose(p);
}

static void read_file(struct step_symbols *s, const char *path)
{
    struct file f = {.path = path};
    struct elf_file *elf;
    for (size_t i = 0; i < s->files.len; i++)
        if (strcmp(s->files.data[i].path, path) == 0)
            return;
    if (path[0] != '/' || elf_file_open_path(path, &elf, NULL) < 0)
        return;
    f.stripped = read_names(&f, elf, "", path) == 0;
    read_names(&f, elf, "-D", path);
    read_debug_names(&f, elf);
    if (f.stripped && !f.has_debug)
        read_unwind(&f, elf);
    elf_file_free(elf);
    vec_push(&s->files, f);
}

struct step_symbols *step_symbols_new(const struct step_rec *r)
{
    struct step_symbols *s = xcalloc(1, sizeof *s);
    s->rec = r;
    for (size_t i = 0; i < r->n_maps; i++)
        read_file(s, r->maps[i].path);
    return s;
}

void step_symbols_free(struct step_symbols *s)
{
    for (size_t i = 0; i < s->files.len; i++) {
        for (size_t k = 0; k < s->files.data[i].names.len; k++)
            free(s->files.data[i].names.data[k].text);
        for (size_t k = 0; k < s->files.data[i].unwind.len; k++)
            free(s->files.data[i].unwind.data[k].text);
        vec_free(&s->files.data[i].names);
        vec_free(&s->files.data[i].unwind);
    }
    vec_free(&s->files);
    free(s);
}

/* The file that ip lies in, and where; NULL: none that nm can read. */
static const struct file *file_at(const struct step_symbols *s, uint64_t ip, uint64_t clock, uint64_t *offset)
{
    const struct step_code_map *m = step_rec_map(s->rec, ip, clock);
    for (size_t i = 0; m && i < s->files.len; i++)
        if (strcmp(s->files.data[i].path, m->path) == 0) {
            *offset = ip - m->start + m->pgoff;
            return &s->files.data[i];
        }
    return NULL;
}

/* Debug files have versions in the names themselves: "f@@GLIBC_2.2.5". */
static bool same_name(const char *symbol, const char *name)
{
    size_t n = strlen(symbol);
    return strncmp(symbol, name, n) == 0 && (name[n] == '\0' || (name[n] == '@' && strcmp(name + n, "@plt") != 0));
}

bool step_symbols_is(const struct step_symbols *s, uint64_t ip, uint64_t clock, const char *name)
{
    uint64_t offset;
    const struct file *f = file_at(s, ip, clock, &offset);
    for (size_t i = 0; f && i < f->names.len; i++)
        if (f->names.data[i].offset == offset && (!name || same_name(f->names.data[i].text, name)))
            return true;
    return false;
}

bool step_symbols_start(const struct step_symbols *s, uint64_t ip, uint64_t clock)
{
    return step_symbols_is(s, ip, clock, NULL);
}

/* Symbols of assembler may have no size: they go on to the next one. */
static bool is_around(const struct file *f, const struct name *name, uint64_t offset)
{
    if (offset <= name->offset || name->size)
        return offset > name->offset && offset - name->offset < name->size;
    for (size_t i = 0; i < f->names.len; i++)
        if (f->names.data[i].offset > name->offset && f->names.data[i].offset <= offset)
            return false;
    return true;
}

bool step_symbols_fit(const struct step_symbols *s, uint64_t ip, uint64_t clock, const char *name,
                      const char *module)
{
    uint64_t offset;
    const struct step_code_map *m = step_rec_map(s->rec, ip, clock);
    const struct file *f = file_at(s, ip, clock, &offset);
    if (!m || strcmp(m->path, module) != 0)
        return false;
    if (!f) /* [vdso]: no file to ask */
        return true;
    if (step_symbols_start(s, ip, clock))
        return step_symbols_is(s, ip, clock, name);
    for (size_t i = 0; i < f->names.len; i++)
        if (same_name(f->names.data[i].text, name) && is_around(f, &f->names.data[i], offset))
            return true;
    for (size_t i = 0; i < f->unwind.len; i++)
        if (is_around(f, &f->unwind.data[i], offset) || f->unwind.data[i].offset == offset)
            if (strcmp(f->unwind.data[i].text, name) == 0)
                return true;
    size_t n = strlen(name);
    return strcmp(name, "[unknown]") == 0 || (n > 4 && strcmp(name + n - 4, "@plt") == 0);
}

bool step_symbols_stripped(const struct step_symbols *s, const char *path)
{
    for (size_t i = 0; i < s->files.len; i++)
        if (strcmp(s->files.data[i].path, path) == 0)
            return s->files.data[i].stripped;
    return false;
}
