#include "core/symbols/eh_frame.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/vec.h"
#include "core/symbols/eh_pointer.h"

#define SECTION_MAX ((uint64_t)256 << 20)
#define FUNCTIONS_MAX ((size_t)4 << 20)
#define CIE_REACH 4096 /* bytes of a CIE that are looked at: real ones have 20 to 40 */
#define ENCODING_NONE (-1)

struct eh_frame {
    const struct elf_file *file;
    uint8_t *data; /* ends in a NUL of ours */
    size_t size;
    uint64_t offset, vaddr;
    bool is_64;
    Dwarf_Off cie; /* the last that was read, and of its FDEs: */
    int encoding;  /* of addresses */
    int lsda_encoding; /* of the address of its language-specific data area */
    bool has_data; /* augmentation data, behind the addresses */
    bool is_signal;
    VEC(struct eh_function) list;
};

/* ---- Finding the section ---- */

static bool find_by_section(struct eh_frame *e, uint64_t *size)
{
    Elf *elf = elf_file_handle(e->file);
    size_t names;
    GElf_Shdr sh;
    if (elf_getshdrstrndx(elf, &names) != 0)
        return false;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        const char *name = gelf_getshdr(scn, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;
        if (!name || strcmp(name, ".eh_frame") != 0 || sh.sh_type == SHT_NOBITS ||
            (sh.sh_flags & SHF_COMPRESSED))
            continue;
        e->offset = sh.sh_offset;
        e->vaddr = sh.sh_addr;
        *size = sh.sh_size;
        return true;
    }
    return false;
}

/* .eh_frame_hdr: version, encodings of three fields, the address of .eh_frame. Every linker writes that
 * relative to its own place, in 32 bits. */
static bool find_by_header(struct eh_frame *e, uint64_t *size)
{
    Elf *elf = elf_file_handle(e->file);
    size_t n = 0;
    GElf_Phdr ph = {0};
    if (elf_getphdrnum(elf, &n) != 0)
        return false;
    for (size_t i = 0; i < n && ph.p_type != PT_GNU_EH_FRAME; i++)
        if (!gelf_getphdr(elf, (int)i, &ph))
            return false;
    uint8_t head[8];
    int32_t away;
    if (ph.p_type != PT_GNU_EH_FRAME || elf_file_read_at(e->file, ph.p_offset, head, sizeof head) != sizeof head ||
        head[0] != 1 || head[1] != (DW_EH_PE_pcrel | DW_EH_PE_sdata4))
        return false;
    memcpy(&away, head + 4, sizeof away);
    e->vaddr = ph.p_vaddr + 4 + (uint64_t)(int64_t)away;
    if (!elf_file_vaddr_to_offset(e->file, e->vaddr, &e->offset))
        return false;
    const struct elf_segment *s = elf_file_segments(e->file, &n); /* it ends in an empty entry, or with these */
    for (size_t i = 0; i < n; i++) {
        if (e->offset >= s[i].offset && e->offset - s[i].offset < s[i].filesz) {
            *size = s[i].filesz - (e->offset - s[i].offset);
            return true;
        }
    }
    return false;
}

static int read_section(struct eh_frame *e, uint64_t size, struct err *err)
{
    if (size > SECTION_MAX)
        size = SECTION_MAX;
    e->data = malloc((size_t)size + 1);
    if (!e->data)
        return err_set(err, MTUI_E_NOMEM, "no memory for the unwind entries of %s", elf_file_name(e->file));
    e->size = elf_file_read_at(e->file, e->offset, e->data, (size_t)size);
    e->data[e->size] = '\0';
    return 0;
}

/* ---- Entries ---- */

/* Of an augmentation "z…", which letter stands for what in its data. */
static void read_augmentation(struct eh_frame *e, const Dwarf_CIE *c)
{
    const uint8_t *at = c->augmentation_data, *end = e->data + e->size;
    e->encoding = c->augmentation[0] == '\0' ? DW_EH_PE_absptr : ENCODING_NONE;
    if (c->augmentation[0] != 'z' || !at || at < e->data || at > end)
        return;
    if (c->augmentation_data_size < (size_t)(end - at))
        end = at + c->augmentation_data_size;
    int encoding = DW_EH_PE_absptr;
    for (const char *letter = c->augmentation + 1; *letter; letter++) {
        size_t personality;
        switch (*letter) {
        case 'R':
            if (at == end)
                return;
            e->encoding = encoding = *at++;
            break;
        case 'L':
            if (at == end)
                return;
            e->lsda_encoding = *at++;
            break;
        case 'P':
            personality = at < end ? eh_pointer_size(*at, e->is_64) : 0;
            if (personality == 0 || (size_t)(end - at) < 1 + personality)
                return;
            at += 1 + personality;
            break;
        case 'S': /* a signal's frame */
        case 'B': /* AArch64: signed return addresses */
            break;
        default: /* what lies behind it is not known */
            return;
        }
    }
    e->encoding = encoding;
}

static int encoding_of_cie(struct eh_frame *e, Dwarf_Off cie)
{
    if (cie == e->cie)
        return e->encoding;
    e->cie = cie;
    e->encoding = e->lsda_encoding = ENCODING_NONE;
    Elf *elf = elf_file_handle(e->file);
    Dwarf_CFI_Entry entry;
    Dwarf_Off next;
    if (cie >= e->size)
        return ENCODING_NONE;
    /* Two made-up long ones that many FDEs refer to in turns would take for ever. */
    Elf_Data data = {.d_buf = e->data, .d_size = e->size - cie > CIE_REACH ? cie + CIE_REACH : e->size};
    if (dwarf_next_cfi((const unsigned char *)elf_getident(elf, NULL), &data, true, cie, &next, &entry) == 0 &&
        dwarf_cfi_cie_p(&entry)) {
        read_augmentation(e, &entry.cie);
        e->has_data = entry.cie.augmentation[0] == 'z';
        e->is_signal = strchr(entry.cie.augmentation, 'S') != NULL;
    }
    return e->encoding;
}

/* Whether the rules for the first instruction differ from those of a function that has just been called:
 * "the frame begins one address above the stack pointer", which the CIE says. Opcodes: DWARF 5, 7.24. */
static bool begins_within_frame(const struct eh_frame *e, const uint8_t *at, const uint8_t *end)
{
    uint64_t reg, offset, length = 0, called = e->is_64 ? 8 : 4;
    if (e->is_signal || (e->has_data && !eh_read_uleb(&at, end, &length)) || length > (uint64_t)(end - at))
        return false;
    for (at += length; at < end;) {
        uint8_t op = *at++;
        if (op >> 6 == DW_CFA_offset >> 6) /* a register has been saved already */
            return true;
        switch (op) {
        case DW_CFA_nop:
            break;
        case DW_CFA_def_cfa:
            if (!eh_read_uleb(&at, end, &reg) || !eh_read_uleb(&at, end, &offset))
                return false;
            if (offset != called)
                return true;
            break;
        case DW_CFA_def_cfa_offset:
            if (!eh_read_uleb(&at, end, &offset))
                return false;
            if (offset != called)
                return true;
            break;
        case DW_CFA_def_cfa_register:
        case DW_CFA_def_cfa_expression:
            return true;
        default: /* the rules of a later instruction, or none that matters */
            return false;
        }
    }
    return false;
}

/* The augmentation data behind the addresses: that is all that stands in it. 0: none. */
static uint64_t lsda_of(const struct eh_frame *e, const uint8_t *at, const uint8_t *end)
{
    uint64_t length, lsda;
    if (e->lsda_encoding == ENCODING_NONE || e->lsda_encoding == DW_EH_PE_omit || !eh_read_uleb(&at, end, &length) ||
        length > (uint64_t)(end - at))
        return 0;
    return eh_read_pointer(&at, at + length, e->lsda_encoding, e->is_64, e->vaddr + (uint64_t)(at - e->data), &lsda)
               ? lsda
               : 0;
}

/* False: no memory. */
static bool take_fde(struct eh_frame *e, const Dwarf_FDE *fde)
{
    int encoding = encoding_of_cie(e, fde->CIE_pointer);
    int relative = encoding & 0x70;
    size_t size = encoding == ENCODING_NONE || (encoding & DW_EH_PE_indirect) ? 0 : eh_pointer_size(encoding, e->is_64);
    const uint8_t *at = fde->start;
    if (size == 0 || (relative != 0 && relative != DW_EH_PE_pcrel) || at < e->data || fde->end < at ||
        fde->end > e->data + e->size || (size_t)(fde->end - at) < 2 * size)
        return true;
    uint64_t vaddr = eh_read_number(at, size, encoding & DW_EH_PE_signed);
    uint64_t length = eh_read_number(at + size, size, false);
    if (relative == DW_EH_PE_pcrel)
        vaddr += e->vaddr + (uint64_t)(at - e->data);
    if (!e->is_64)
        vaddr &= UINT32_MAX;
    /* A linker that has dropped a function leaves its entry at 0. */
    if (length == 0 || length > UINT32_MAX || vaddr > UINT64_MAX - length ||
        !elf_file_is_code(e->file, vaddr) || !elf_file_is_code(e->file, vaddr + length - 1))
        return true;
    struct eh_function f = {.vaddr = vaddr,
                            .lsda = lsda_of(e, at + 2 * size, fde->end),
                            .size = (uint32_t)length,
                            .is_part = begins_within_frame(e, at + 2 * size, fde->end)};
    return vec_try_push(&e->list, f);
}

static int read_entries(struct eh_frame *e, struct err *err)
{
    const unsigned char *ident = (const unsigned char *)elf_getident(elf_file_handle(e->file), NULL);
    Elf_Data data = {.d_buf = e->data, .d_size = e->size};
    for (Dwarf_Off at = 0, next; at < e->size && e->list.len < FUNCTIONS_MAX; at = next) {
        Dwarf_CFI_Entry entry;
        next = at;
        int rc = dwarf_next_cfi(ident, &data, true, at, &next, &entry);
        if (rc == 0 && !dwarf_cfi_cie_p(&entry) && !take_fde(e, &entry.fde))
            return err_set(err, MTUI_E_NOMEM, "no memory for the unwind entries of %s", elf_file_name(e->file));
        if (rc > 0 || next <= at) /* the end, or no telling where the next begins */
            break;
    }
    return 0;
}

/* ---- The list ---- */

static int function_order(const void *a, const void *b)
{
    const struct eh_function *x = a, *y = b;
    if (x->vaddr != y->vaddr)
        return x->vaddr < y->vaddr ? -1 : 1;
    return (x->size < y->size) - (x->size > y->size);
}

/* Of several at one place the longest counts. */
static void sort_and_cut(struct eh_frame *e)
{
    size_t n = 0;
    struct eh_function *list = e->list.data;
    if (e->list.len)
        qsort(list, e->list.len, sizeof *list, function_order);
    for (size_t i = 0; i < e->list.len; i++) {
        if (n && list[n - 1].vaddr == list[i].vaddr)
            continue;
        if (n && list[i].vaddr - list[n - 1].vaddr < list[n - 1].size)
            list[n - 1].size = (uint32_t)(list[i].vaddr - list[n - 1].vaddr);
        list[n++] = list[i];
    }
    e->list.len = n;
}

int eh_frame_functions(const struct elf_file *f, struct eh_function **out, size_t *n, struct err *err)
{
    struct eh_frame e = {.file = f, .is_64 = elf_file_bits(f) == 64, .cie = UINT64_MAX, .encoding = ENCODING_NONE,
                         .lsda_encoding = ENCODING_NONE};
    const char *ident = elf_getident(elf_file_handle(f), NULL);
    uint64_t size = 0;
    int rc = 0;
    if (ident && ident[EI_DATA] == ELFDATA2LSB && (find_by_section(&e, &size) || find_by_header(&e, &size)))
        rc = read_section(&e, size, err);
    if (rc == 0 && e.data)
        rc = read_entries(&e, err);
    free(e.data);
    if (rc < 0) {
        vec_free(&e.list);
        return rc;
    }
    sort_and_cut(&e);
    *out = e.list.data;
    *n = e.list.len;
    return 0;
}
