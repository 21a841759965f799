#include "core/symbols/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"

#define SEGMENTS_MAX 4096 /* a real file has fewer than 20 */

struct elf_file {
    Elf *elf;
    int fd;      /* −1: image */
    void *image; /* ours, or NULL */
    uint64_t size;
    char *name;
    int bits;
    unsigned machine;
    enum elf_kind kind;
    uint64_t entry;
    struct elf_segment *segments;
    size_t n_segments;
    uint8_t build_id[ELF_BUILD_ID_MAX];
    size_t build_id_len;
    uint64_t build_id_offset;
};

static void libelf_start(void)
{
    elf_version(EV_CURRENT);
}

size_t elf_file_read_at(const struct elf_file *f, uint64_t offset, void *buf, size_t len)
{
    if (offset >= f->size)
        return 0;
    if (len > f->size - offset)
        len = (size_t)(f->size - offset);
    if (f->image) {
        memcpy(buf, (const char *)f->image + offset, len);
        return len;
    }
    size_t done = 0;
    while (done < len) {
        ssize_t n = pread(f->fd, (char *)buf + done, len - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}

static int segment_order(const void *a, const void *b)
{
    const struct elf_segment *x = a, *y = b;
    int xc = (x->flags & PF_X) != 0, yc = (y->flags & PF_X) != 0;
    return xc != yc ? yc - xc : (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

/* A segment's numbers made safe: no wrap-around, nothing beyond the file. */
static bool segment_from(const struct elf_file *f, const GElf_Phdr *ph, struct elf_segment *s)
{
    if (ph->p_memsz == 0 || ph->p_vaddr > UINT64_MAX - ph->p_memsz)
        return false;
    *s = (struct elf_segment){.vaddr = ph->p_vaddr, .memsz = ph->p_memsz, .offset = ph->p_offset,
                              .filesz = ph->p_filesz, .flags = ph->p_flags};
    if (s->filesz > s->memsz)
        s->filesz = s->memsz;
    if (s->offset > f->size)
        s->filesz = 0;
    else if (s->filesz > f->size - s->offset)
        s->filesz = f->size - s->offset;
    return true;
}

/* Notes (elf(5), "Notes (Nhdr)") in len bytes at data; true when the build-id is among them. */
static bool notes_find_build_id(struct elf_file *f, const uint8_t *data, size_t len, size_t align)
{
    for (size_t at = 0; len - at >= 12;) {
        Elf64_Nhdr n; /* three 32-bit words in both classes */
        memcpy(&n, data + at, sizeof n);
        at += sizeof n;
        size_t name = ((size_t)n.n_namesz + align - 1) & ~(align - 1);
        size_t desc = ((size_t)n.n_descsz + align - 1) & ~(align - 1);
        if (n.n_namesz > len || n.n_descsz > len || name > len - at ||
            n.n_descsz > len - at - name)
            return false;
        if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && memcmp(data + at, "GNU", 4) == 0 &&
            n.n_descsz > 0 && n.n_descsz <= ELF_BUILD_ID_MAX) {
            memcpy(f->build_id, data + at + name, n.n_descsz);
            f->build_id_len = n.n_descsz;
            f->build_id_offset = at + name; /* from the start of the notes */
            return true;
        }
        if (desc > len - at - name)
            return false;
        at += name + desc;
    }
    return false;
}

static bool notes_at(struct elf_file *f, uint64_t offset, uint64_t size, uint64_t align)
{
    uint8_t buf[4096]; /* build-ids come first; a note section is a few hundred bytes */
    size_t n = elf_file_read_at(f, offset, buf, size < sizeof buf ? (size_t)size : sizeof buf);
    if (!notes_find_build_id(f, buf, n, align == 8 ? 8 : 4))
        return false;
    f->build_id_offset += offset;
    return true;
}

static void find_build_id_in_sections(struct elf_file *f)
{
    Elf_Scn *scn = NULL;
    while ((scn = elf_nextscn(f->elf, scn))) {
        GElf_Shdr sh;
        if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_NOTE &&
            notes_at(f, sh.sh_offset, sh.sh_size, sh.sh_addralign))
            return;
    }
}

/* Debug files keep the program headers of the original while their code sections are SHT_NOBITS. */
static bool is_debug_only(Elf *elf)
{
    Elf_Scn *scn = NULL;
    bool nobits = false;
    while ((scn = elf_nextscn(elf, scn))) {
        GElf_Shdr sh;
        if (!gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_EXECINSTR) || sh.sh_size == 0)
            continue;
        if (sh.sh_type != SHT_NOBITS)
            return false;
        nobits = true;
    }
    return nobits;
}

/* DF_1_PIE tells a program from a library, both are ET_DYN; older linkers did not set it, but a
 * library has no interpreter. */
static bool dynamic_says_pie(struct elf_file *f, const GElf_Phdr *dyn)
{
    size_t entry = f->bits == 64 ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
    uint64_t n = dyn->p_filesz / entry;
    for (uint64_t i = 0; i < n && i < 4096; i++) {
        union {
            Elf64_Dyn d64;
            Elf32_Dyn d32;
        } d;
        if (dyn->p_offset > f->size ||
            elf_file_read_at(f, dyn->p_offset + i * entry, &d, entry) != entry)
            return false;
        int64_t tag = f->bits == 64 ? d.d64.d_tag : d.d32.d_tag;
        uint64_t val = f->bits == 64 ? d.d64.d_un.d_val : d.d32.d_un.d_val;
        if (tag == DT_FLAGS_1)
            return (val & DF_1_PIE) != 0;
        if (tag == DT_NULL)
            return false;
    }
    return false;
}

static int read_segments(struct elf_file *f, GElf_Half type, struct err *err)
{
    size_t n = 0;
    if (elf_getphdrnum(f->elf, &n) != 0)
        n = 0;
    if (n > SEGMENTS_MAX)
        n = SEGMENTS_MAX;
    f->segments = calloc(n ? n : 1, sizeof *f->segments);
    if (!f->segments)
        return err_set(err, MTUI_E_NOMEM, "no memory for the segments of %s", f->name);
    bool interp = false, dynamic = false, pie = false;
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr ph;
        if (!gelf_getphdr(f->elf, (int)i, &ph))
            break;
        if (ph.p_type == PT_LOAD && segment_from(f, &ph, &f->segments[f->n_segments]))
            f->n_segments++;
        else if (ph.p_type == PT_INTERP)
            interp = true;
        else if (ph.p_type == PT_NOTE && f->build_id_len == 0)
            notes_at(f, ph.p_offset, ph.p_filesz, ph.p_align);
        else if (ph.p_type == PT_DYNAMIC) {
            dynamic = true;
            pie = dynamic_says_pie(f, &ph);
        }
    }
    qsort(f->segments, f->n_segments, sizeof *f->segments, segment_order);
    if (f->build_id_len == 0)
        find_build_id_in_sections(f);
    if (type != ET_EXEC && type != ET_DYN)
        f->kind = ELF_KIND_OTHER;
    else if (is_debug_only(f->elf))
        f->kind = ELF_KIND_DEBUG;
    else if (type == ET_EXEC)
        f->kind = interp || dynamic ? ELF_KIND_EXEC : ELF_KIND_STATIC;
    else if (interp)
        f->kind = ELF_KIND_PIE;
    else
        f->kind = pie ? ELF_KIND_STATIC_PIE : ELF_KIND_SHARED;
    return 0;
}

static int read_headers(struct elf_file *f, struct err *err)
{
    GElf_Ehdr eh;
    if (!f->elf || elf_kind(f->elf) != ELF_K_ELF || !gelf_getehdr(f->elf, &eh))
        return err_set(err, MTUI_E_FORMAT, "%s is not an ELF file", f->name);
    if (eh.e_ident[EI_DATA] != ELFDATA2LSB)
        return err_set(err, MTUI_E_FORMAT, "%s is a big-endian ELF file", f->name);
    f->bits = gelf_getclass(f->elf) == ELFCLASS64 ? 64 : 32;
    f->machine = eh.e_machine;
    f->entry = eh.e_entry;
    return read_segments(f, eh.e_type, err);
}

static int finish_open(struct elf_file *f, struct elf_file **out, struct err *err)
{
    int rc = read_headers(f, err);
    if (rc < 0) {
        elf_file_free(f);
        return rc;
    }
    *out = f;
    return 0;
}

int elf_file_open(int fd, const char *name, struct elf_file **out, struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, libelf_start);
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return err_set(err, MTUI_E_FORMAT, "%s is not a regular file", name);
    }
    struct elf_file *f = xcalloc(1, sizeof *f);
    f->name = xstrdup(name);
    f->fd = fd;
    f->size = (uint64_t)st.st_size;
    f->elf = elf_begin(fd, ELF_C_READ, NULL);
    return finish_open(f, out, err);
}

int elf_file_open_path(const char *path, struct elf_file **out, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return err_errno(err, errno, "open %s", path);
    return elf_file_open(fd, path, out, err);
}

int elf_file_open_memory(void *image, size_t size, const char *name, struct elf_file **out,
                         struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, libelf_start);
    struct elf_file *f = xcalloc(1, sizeof *f);
    f->name = xstrdup(name);
    f->fd = -1;
    f->image = image;
    f->size = size;
    f->elf = elf_memory(image, size);
    return finish_open(f, out, err);
}

int elf_file_dup(const struct elf_file *f, struct elf_file **out, struct err *err)
{
    if (f->fd >= 0) {
        int fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
        return fd < 0 ? err_errno(err, errno, "dup %s", f->name)
                      : elf_file_open(fd, f->name, out, err);
    }
    void *copy = malloc((size_t)f->size + 1);
    if (!copy)
        return err_set(err, MTUI_E_NOMEM, "no memory for a copy of %s", f->name);
    memcpy(copy, f->image, (size_t)f->size);
    return elf_file_open_memory(copy, (size_t)f->size, f->name, out, err);
}

void elf_file_free(struct elf_file *f)
{
    if (!f)
        return;
    if (f->elf)
        elf_end(f->elf);
    if (f->fd >= 0)
        close(f->fd);
    free(f->image);
    free(f->segments);
    free(f->name);
    free(f);
}

const char *elf_file_name(const struct elf_file *f)
{
    return f->name;
}

int elf_file_fd(const struct elf_file *f)
{
    return f->fd;
}

int elf_file_bits(const struct elf_file *f)
{
    return f->bits;
}

unsigned elf_file_machine(const struct elf_file *f)
{
    return f->machine;
}

enum elf_kind elf_file_kind(const struct elf_file *f)
{
    return f->kind;
}

const char *elf_kind_name(enum elf_kind kind)
{
    static const char *const names[] = {
        [ELF_KIND_EXEC] = "program (fixed address)",
        [ELF_KIND_STATIC] = "static program",
        [ELF_KIND_PIE] = "program (PIE)",
        [ELF_KIND_STATIC_PIE] = "static program (PIE)",
        [ELF_KIND_SHARED] = "shared object",
        [ELF_KIND_DEBUG] = "debug file",
        [ELF_KIND_OTHER] = "object file",
    };
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

uint64_t elf_file_entry(const struct elf_file *f)
{
    return f->entry;
}

const uint8_t *elf_file_build_id(const struct elf_file *f, size_t *len)
{
    *len = f->build_id_len;
    return f->build_id;
}

size_t elf_build_id_of(int fd, const char *name, uint8_t id[ELF_BUILD_ID_MAX])
{
    struct elf_file *f;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0 || elf_file_open(copy, name, &f, NULL) < 0)
        return 0;
    size_t len = f->build_id_len;
    memcpy(id, f->build_id, len);
    elf_file_free(f);
    return len;
}

bool elf_file_build_id_offset(const struct elf_file *f, uint64_t *offset)
{
    if (f->build_id_len)
        *offset = f->build_id_offset;
    return f->build_id_len > 0;
}

void elf_build_id_hex(const uint8_t *id, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len && i < ELF_BUILD_ID_MAX; i++) {
        *out++ = digits[id[i] >> 4];
        *out++ = digits[id[i] & 15];
    }
    *out = '\0';
}

const struct elf_segment *elf_file_segments(const struct elf_file *f, size_t *n)
{
    *n = f->n_segments;
    return f->segments;
}

bool elf_file_vaddr_to_offset(const struct elf_file *f, uint64_t vaddr, uint64_t *offset)
{
    for (size_t i = 0; i < f->n_segments; i++) {
        const struct elf_segment *s = &f->segments[i];
        if (vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz) {
            *offset = s->offset + (vaddr - s->vaddr);
            return true;
        }
    }
    return false;
}

bool elf_file_offset_to_vaddr(const struct elf_file *f, uint64_t offset, uint64_t *vaddr)
{
    for (size_t i = 0; i < f->n_segments; i++) {
        const struct elf_segment *s = &f->segments[i];
        if (offset >= s->offset && offset - s->offset < s->filesz) {
            *vaddr = s->vaddr + (offset - s->offset);
            return true;
        }
    }
    return false;
}

bool elf_file_is_code(const struct elf_file *f, uint64_t vaddr)
{
    for (size_t i = 0; i < f->n_segments; i++) {
        const struct elf_segment *s = &f->segments[i];
        if ((s->flags & PF_X) && vaddr >= s->vaddr && vaddr - s->vaddr < s->memsz)
            return true;
    }
    return false;
}

size_t elf_file_read(const struct elf_file *f, uint64_t vaddr, void *buf, size_t len)
{
    for (size_t i = 0; i < f->n_segments; i++) {
        const struct elf_segment *s = &f->segments[i];
        if (vaddr < s->vaddr || vaddr - s->vaddr >= s->filesz)
            continue;
        uint64_t into = vaddr - s->vaddr;
        if (len > s->filesz - into)
            len = (size_t)(s->filesz - into);
        return elf_file_read_at(f, s->offset + into, buf, len);
    }
    return 0;
}

struct Elf *elf_file_handle(const struct elf_file *f)
{
    return f->elf;
}

int elf_file_read_section(const struct elf_file *f, const char *section, size_t max, void **out,
                          size_t *size, struct err *err)
{
    size_t names;
    if (elf_getshdrstrndx(f->elf, &names) != 0)
        return err_set(err, MTUI_E_NOENT, "%s has no sections", f->name);
    Elf_Scn *scn = NULL;
    while ((scn = elf_nextscn(f->elf, scn))) {
        GElf_Shdr sh;
        if (!gelf_getshdr(scn, &sh) || sh.sh_type == SHT_NOBITS)
            continue;
        const char *name = elf_strptr(f->elf, names, sh.sh_name);
        if (!name || strcmp(name, section) != 0)
            continue;
        if (sh.sh_size > max)
            return err_set(err, MTUI_E_LIMIT, "%s: section %s is too large", f->name, section);
        void *buf = malloc(sh.sh_size ? sh.sh_size : 1);
        if (!buf)
            return err_set(err, MTUI_E_NOMEM, "%s: no memory for section %s", f->name, section);
        if (elf_file_read_at(f, sh.sh_offset, buf, sh.sh_size) != sh.sh_size) {
            free(buf);
            return err_set(err, MTUI_E_FORMAT, "%s: section %s is cut off", f->name, section);
        }
        *out = buf;
        *size = sh.sh_size;
        return 0;
    }
    return err_set(err, MTUI_E_NOENT, "%s has no section %s", f->name, section);
}
