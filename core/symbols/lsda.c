#include "core/symbols/lsda.h"

#include <dwarf.h>
#include <stdlib.h>

#include "core/symbols/eh_frame.h"
#include "core/symbols/eh_pointer.h"

#define AREA_FIRST 512                /* bytes: most are shorter */
#define AREA_MOST  ((size_t)1 << 20)  /* of one function; what lies further on is not looked at */

struct lsda {
    struct elf_file *file;
    struct eh_function *functions; /* those that have an area */
    size_t n;
    uint8_t *bytes; /* of the area looked at */
    size_t cap;
};

int lsda_new(struct elf_file *f, struct lsda **out, struct err *err)
{
    struct lsda *l = calloc(1, sizeof *l);
    size_t n = 0;
    if (!l) {
        elf_file_free(f);
        return err_set(err, MTUI_E_NOMEM, "no memory for exception tables");
    }
    l->file = f;
    int rc = eh_frame_functions(f, &l->functions, &l->n, err);
    if (rc < 0) {
        lsda_free(l);
        return rc;
    }
    for (size_t i = 0; i < l->n; i++)
        if (l->functions[i].lsda)
            l->functions[n++] = l->functions[i];
    l->n = n;
    *out = l;
    return 0;
}

void lsda_free(struct lsda *l)
{
    if (!l)
        return;
    elf_file_free(l->file);
    free(l->functions);
    free(l->bytes);
    free(l);
}

static const struct eh_function *function_at(const struct lsda *l, uint64_t vaddr)
{
    size_t lo = 0, hi = l->n;
    while (lo < hi) { /* the first that begins behind it */
        size_t mid = lo + (hi - lo) / 2;
        if (l->functions[mid].vaddr <= vaddr)
            lo = mid + 1;
        else
            hi = mid;
    }
    const struct eh_function *f = lo ? &l->functions[lo - 1] : NULL;
    return f && vaddr - f->vaddr < f->size ? f : NULL;
}

/* What stands in front of the call sites. */
struct header {
    uint64_t base;     /* of landing pads */
    int encoding;      /* of call sites */
    uint64_t size;     /* of all call sites, in bytes */
    const uint8_t *at; /* the first */
};

static bool read_header(const uint8_t *at, const uint8_t *end, bool is_64, uint64_t place, uint64_t start,
                        struct header *h)
{
    const uint8_t *begin = at;
    uint64_t types;
    if (at == end)
        return false;
    int encoding = *at++;
    h->base = start;
    if (encoding != DW_EH_PE_omit &&
        !eh_read_pointer(&at, end, encoding, is_64, place + (uint64_t)(at - begin), &h->base))
        return false;
    if (at == end || (*at++ != DW_EH_PE_omit && !eh_read_uleb(&at, end, &types)) || at == end)
        return false;
    h->encoding = *at++;
    if ((h->encoding & 0xf0) != 0 || !eh_read_uleb(&at, end, &h->size))
        return false;
    h->at = at;
    return true;
}

bool lsda_find(const uint8_t *bytes, size_t size, bool is_64, uint64_t place, uint64_t start, uint64_t vaddr,
               uint64_t *pad)
{
    struct header h;
    const uint8_t *end = bytes + size;
    if (!read_header(bytes, end, is_64, place, start, &h))
        return false;
    if (h.size < (uint64_t)(end - h.at))
        end = h.at + h.size;
    for (const uint8_t *at = h.at; at < end;) {
        uint64_t first, length, landing, action;
        if (!eh_read_pointer(&at, end, h.encoding, is_64, 0, &first) ||
            !eh_read_pointer(&at, end, h.encoding, is_64, 0, &length) ||
            !eh_read_pointer(&at, end, h.encoding, is_64, 0, &landing) || !eh_read_uleb(&at, end, &action) ||
            vaddr - start < first)
            return false;
        if (vaddr - start - first < length) {
            *pad = h.base + landing;
            return landing != 0;
        }
    }
    return false;
}

/* At least `want` bytes of the area, as far as there are so many; how many. */
static size_t read_area(struct lsda *l, uint64_t vaddr, size_t want)
{
    if (want > l->cap) {
        uint8_t *bytes = realloc(l->bytes, want);
        if (!bytes)
            return 0;
        l->bytes = bytes;
        l->cap = want;
    }
    return elf_file_read(l->file, vaddr, l->bytes, want);
}

bool lsda_landing_pad(struct lsda *l, uint64_t vaddr, uint64_t *pad)
{
    const struct eh_function *f = function_at(l, vaddr);
    bool is_64 = elf_file_bits(l->file) == 64;
    struct header h;
    uint64_t found;
    if (!f)
        return false;
    size_t n = read_area(l, f->lsda, AREA_FIRST);
    if (!n || !read_header(l->bytes, l->bytes + n, is_64, f->lsda, f->vaddr, &h))
        return false;
    size_t before = (size_t)(h.at - l->bytes);
    if (h.size > n - before)
        n = read_area(l, f->lsda, h.size < AREA_MOST - before ? (size_t)h.size + before : AREA_MOST);
    if (!lsda_find(l->bytes, n, is_64, f->lsda, f->vaddr, vaddr, &found) || !elf_file_is_code(l->file, found))
        return false;
    *pad = found;
    return true;
}
