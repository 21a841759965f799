#include "core/symbols/eh_cfa.h"

#include <dwarf.h>
#include <elf.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>

#include "core/symbols/eh_pointer.h"

#define ENTRY_MAX  4096 /* bytes of an entry that are looked at: the longest of libc has some hundred */
#define STATES_MAX 16   /* remembered at a time: compilers nest one */
#define RSP        7

/* A CIE or FDE without its length. */
struct record {
    uint8_t bytes[ENTRY_MAX];
    const uint8_t *at, *end;
    uint64_t vaddr; /* of bytes[0] */
};

struct cfa {
    uint64_t reg, offset;
    bool by_expression;
};

struct machine {
    struct cfa now, remembered[STATES_MAX];
    size_t depth;
    uint64_t place, code_factor;
    int encoding; /* of addresses in FDEs */
    bool has_data;
};

/* ---- Finding the entry ---- */

static bool header_vaddr(const struct elf_file *f, uint64_t *vaddr)
{
    Elf *elf = elf_file_handle(f);
    size_t n = 0;
    GElf_Phdr ph;
    if (elf_getphdrnum(elf, &n) != 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_GNU_EH_FRAME) {
            *vaddr = ph.p_vaddr;
            return true;
        }
    }
    return false;
}

/* Line i of the table: where a function begins and where its entry is, both relative to the table's header. */
static bool read_line(const struct elf_file *f, uint64_t header, uint64_t i, uint64_t *start, uint64_t *entry)
{
    uint8_t line[8];
    if (elf_file_read(f, header + 12 + i * sizeof line, line, sizeof line) != sizeof line)
        return false;
    *start = header + eh_read_number(line, 4, true);
    *entry = header + eh_read_number(line + 4, 4, true);
    return true;
}

/* The entry of the last function that begins at vaddr or before. Only the encoding that all linkers use is read:
 * numbers of 32 bits. */
static bool find_entry(const struct elf_file *f, uint64_t vaddr, uint64_t *entry)
{
    static const uint8_t usual[] = {1, DW_EH_PE_pcrel | DW_EH_PE_sdata4, DW_EH_PE_udata4,
                                    DW_EH_PE_datarel | DW_EH_PE_sdata4};
    uint64_t header, start, at;
    uint8_t head[12];
    bool found = false;
    if (!header_vaddr(f, &header) || elf_file_read(f, header, head, sizeof head) != sizeof head ||
        memcmp(head, usual, sizeof usual) != 0)
        return false;
    uint64_t low = 0, high = eh_read_number(head + 8, 4, false);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (!read_line(f, header, middle, &start, &at))
            return false;
        if (start <= vaddr) {
            *entry = at;
            found = true;
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return found;
}

static bool read_record(const struct elf_file *f, uint64_t vaddr, struct record *out)
{
    uint8_t length[4];
    if (elf_file_read(f, vaddr, length, sizeof length) != sizeof length)
        return false;
    uint64_t size = eh_read_number(length, 4, false);
    if (size < 4 || size > sizeof out->bytes || elf_file_read(f, vaddr + 4, out->bytes, (size_t)size) != size)
        return false; /* also the mark of the 64-bit format, which is for sections beyond 4 GiB */
    out->vaddr = vaddr + 4;
    out->at = out->bytes + 4; /* behind the id of a CIE, the distance to its CIE in an FDE */
    out->end = out->bytes + size;
    return true;
}

/* ---- Its instructions ---- */

static bool take_bytes(struct record *r, size_t n, uint64_t *out)
{
    if ((size_t)(r->end - r->at) < n)
        return false;
    *out = eh_read_number(r->at, n, false);
    r->at += n;
    return true;
}

static bool take_uleb(struct record *r, uint64_t *out)
{
    return eh_read_uleb(&r->at, r->end, out);
}

/* An operand that says nothing of the CFA. Signed or not, it is as long. */
static bool skip_leb(struct record *r)
{
    while (r->at < r->end)
        if (!(*r->at++ & 0x80))
            return true;
    return false;
}

static bool skip_block(struct record *r)
{
    uint64_t n;
    if (!take_uleb(r, &n) || n > (uint64_t)(r->end - r->at))
        return false;
    r->at += n;
    return true;
}

static bool advance(struct machine *m, uint64_t units)
{
    m->place += units * m->code_factor;
    return true;
}

static bool remember(struct machine *m)
{
    if (m->depth == STATES_MAX)
        return false;
    m->remembered[m->depth++] = m->now;
    return true;
}

static bool restore(struct machine *m)
{
    if (m->depth == 0)
        return false;
    m->now = m->remembered[--m->depth];
    return true;
}

/* One instruction (DWARF 5, 7.24). False: damaged, or one that says of the CFA what is not known here. */
static bool step(struct machine *m, struct record *r)
{
    uint64_t n;
    uint8_t op = *r->at++;
    switch (op & 0xc0) {
    case DW_CFA_advance_loc:
        return advance(m, op & 0x3f);
    case DW_CFA_offset:
        return skip_leb(r);
    case DW_CFA_restore:
        return true;
    default:
        break;
    }
    switch (op) {
    case DW_CFA_nop:
        return true;
    case DW_CFA_advance_loc1:
        return take_bytes(r, 1, &n) && advance(m, n);
    case DW_CFA_advance_loc2:
        return take_bytes(r, 2, &n) && advance(m, n);
    case DW_CFA_advance_loc4:
        return take_bytes(r, 4, &n) && advance(m, n);
    case DW_CFA_set_loc:
        return eh_read_pointer(&r->at, r->end, m->encoding, true, r->vaddr + (uint64_t)(r->at - r->bytes), &m->place);
    case DW_CFA_def_cfa:
        m->now.by_expression = false;
        return take_uleb(r, &m->now.reg) && take_uleb(r, &m->now.offset);
    case DW_CFA_def_cfa_register:
        return take_uleb(r, &m->now.reg);
    case DW_CFA_def_cfa_offset:
        return take_uleb(r, &m->now.offset);
    case DW_CFA_def_cfa_expression:
        m->now.by_expression = true;
        return skip_block(r);
    case DW_CFA_remember_state:
        return remember(m);
    case DW_CFA_restore_state:
        return restore(m);
    case DW_CFA_undefined:
    case DW_CFA_same_value:
    case DW_CFA_restore_extended:
    case DW_CFA_GNU_args_size:
        return skip_leb(r);
    case DW_CFA_offset_extended:
    case DW_CFA_offset_extended_sf:
    case DW_CFA_val_offset:
    case DW_CFA_val_offset_sf:
    case DW_CFA_register:
    case DW_CFA_GNU_negative_offset_extended:
        return skip_leb(r) && skip_leb(r);
    case DW_CFA_expression:
    case DW_CFA_val_expression:
        return skip_leb(r) && skip_block(r);
    default:
        return false;
    }
}

/* Up to the rules of the instruction at vaddr. */
static bool run(struct machine *m, struct record *r, uint64_t vaddr)
{
    while (r->at < r->end) {
        if (!step(m, r))
            return false;
        if (m->place > vaddr) /* what comes now is of later instructions */
            return true;
    }
    return true;
}

/* ---- Entries ---- */

/* Version, augmentation, factors, the return address's register, and the first rules. */
static bool run_cie(struct machine *m, struct record *r)
{
    uint64_t version, n;
    const char *letters = (const char *)r->at + 1;
    if (eh_read_number(r->bytes, 4, false) != 0 || !take_bytes(r, 1, &version) || (version != 1 && version != 3))
        return false;
    const uint8_t *nul = memchr(r->at, '\0', (size_t)(r->end - r->at));
    if (!nul)
        return false;
    r->at = nul + 1;
    if (!take_uleb(r, &m->code_factor) || !skip_leb(r) || !(version == 1 ? take_bytes(r, 1, &n) : take_uleb(r, &n)))
        return false;
    m->encoding = DW_EH_PE_absptr;
    m->has_data = *letters == 'z';
    if (!m->has_data)
        return *letters == '\0' && run(m, r, UINT64_MAX);
    if (!take_uleb(r, &n) || n > (uint64_t)(r->end - r->at))
        return false;
    const uint8_t *data = r->at;
    r->at += n;
    for (letters++; *letters; letters++) {
        size_t size = *letters == 'P' && data < r->at ? eh_pointer_size(*data, true) : 0;
        if (*letters == 'S' || *letters == 'B')
            continue;
        if (data >= r->at || (*letters == 'P' && (size == 0 || (size_t)(r->at - data) <= size)) ||
            !strchr("RLP", *letters))
            return false;
        if (*letters == 'R')
            m->encoding = *data;
        data += 1 + size;
    }
    return run(m, r, UINT64_MAX);
}

static bool run_fde(struct machine *m, struct record *r, uint64_t vaddr)
{
    uint64_t start, length;
    if (!eh_read_pointer(&r->at, r->end, m->encoding, true, r->vaddr + 4, &start) ||
        !eh_read_pointer(&r->at, r->end, m->encoding & 0x0f, true, 0, &length) || vaddr < start ||
        vaddr - start >= length || (m->has_data && !skip_block(r)))
        return false;
    m->place = start;
    return run(m, r, vaddr);
}

enum eh_stack eh_cfa_stack_at(const struct elf_file *f, uint64_t vaddr)
{
    struct machine m = {0};
    struct record fde, cie;
    uint64_t entry;
    if (elf_file_machine(f) != EM_X86_64 || !find_entry(f, vaddr, &entry) || !read_record(f, entry, &fde) ||
        !read_record(f, entry + 4 - eh_read_number(fde.bytes, 4, false), &cie) || !run_cie(&m, &cie) ||
        !run_fde(&m, &fde, vaddr) || m.now.by_expression)
        return EH_STACK_UNKNOWN;
    return m.now.reg == RSP && m.now.offset == 8 ? EH_STACK_RETURN : EH_STACK_WITHIN;
}
