#include "core/symbols/disasm.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>
#include <string.h>

/* What is known of each byte of a piece. */
enum { AT_START = 1, AT_TARGET = 2, AT_REACHED = 4 };

/* Instructions looked back from an indirect jump for the load from a table. */
#define LOOK_BACK 8

struct sweep {
    const struct disasm_piece *piece;
    uint8_t *marks;
    bool clean; /* every byte decoded */
};

struct decoded {
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    uint64_t vaddr;
};

static bool decode(const ZydisDecoder *d, const struct disasm_piece *p, size_t at,
                   struct decoded *out)
{
    out->vaddr = p->vaddr + at;
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(d, p->code + at, p->size - at, &out->insn, out->op));
}

/* Where a direct jump or call goes; 0: not direct. */
static uint64_t direct_target(const struct decoded *i)
{
    ZyanU64 target = 0;
    for (ZyanU8 k = 0; k < i->insn.operand_count_visible; k++)
        if (i->op[k].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && i->op[k].imm.is_relative &&
            ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&i->insn, &i->op[k], i->vaddr, &target)))
            return target;
    return 0;
}

/* Where they stand in a list of categories: among the jumps. */
static bool ends_transaction(const struct decoded *i)
{
    return i->insn.mnemonic == ZYDIS_MNEMONIC_XEND || i->insn.mnemonic == ZYDIS_MNEMONIC_XABORT;
}

static bool is_jump(const struct decoded *i)
{
    if (ends_transaction(i))
        return false;
    return i->insn.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
           i->insn.meta.category == ZYDIS_CATEGORY_COND_BR;
}

static const struct sweep *piece_of(const struct sweep *s, size_t n, uint64_t vaddr)
{
    for (size_t i = 0; i < n; i++)
        if (vaddr >= s[i].piece->vaddr && vaddr - s[i].piece->vaddr < s[i].piece->size)
            return &s[i];
    return NULL;
}

static void mark_target(const struct sweep *s, size_t n, uint64_t vaddr)
{
    const struct sweep *to = piece_of(s, n, vaddr);
    if (to)
        to->marks[vaddr - to->piece->vaddr] |= AT_TARGET;
}

/* From start to end, one instruction after the other. */
static void sweep_linear(const ZydisDecoder *d, struct sweep *all, size_t n, struct sweep *s)
{
    struct decoded i;
    s->clean = true;
    for (size_t at = 0; at < s->piece->size;) {
        if (!decode(d, s->piece, at, &i)) {
            s->clean = false;
            at++;
            continue;
        }
        s->marks[at] |= AT_START;
        if (is_jump(&i))
            mark_target(all, n, direct_target(&i));
        at += i.insn.length;
    }
}

static bool is_consistent(const struct sweep *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!s[i].clean)
            return false;
        for (size_t at = 0; at < s[i].piece->size; at++)
            if ((s[i].marks[at] & AT_TARGET) && !(s[i].marks[at] & AT_START))
                return false;
    }
    return true;
}

/* Follows control flow from the entries; what an indirect jump reaches stays unknown. */
static void sweep_reachable(const ZydisDecoder *d, struct sweep *all, size_t n)
{
    VEC(uint64_t) work = {0};
    struct decoded i;
    for (size_t k = 0; k < n; k++)
        vec_push(&work, all[k].piece->vaddr);
    while (work.len > 0) {
        uint64_t vaddr = work.data[--work.len];
        const struct sweep *s;
        while ((s = piece_of(all, n, vaddr))) {
            size_t at = (size_t)(vaddr - s->piece->vaddr);
            if ((s->marks[at] & AT_REACHED) || !decode(d, s->piece, at, &i))
                break;
            s->marks[at] |= AT_REACHED;
            uint64_t target = is_jump(&i) ? direct_target(&i) : 0;
            if (target && piece_of(all, n, target))
                vec_push(&work, target);
            if ((i.insn.meta.category == ZYDIS_CATEGORY_UNCOND_BR && !ends_transaction(&i)) ||
                i.insn.meta.category == ZYDIS_CATEGORY_RET ||
                i.insn.mnemonic == ZYDIS_MNEMONIC_UD2 || i.insn.mnemonic == ZYDIS_MNEMONIC_HLT)
                break;
            vaddr += i.insn.length;
        }
    }
    vec_free(&work);
}

/* ---- Jump tables ---- */

static bool is_table_load(const ZydisDecodedOperand *op)
{
    return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.index != ZYDIS_REGISTER_NONE &&
           (op->mem.scale == 4 || op->mem.scale == 8);
}

static ZydisRegister whole(ZydisRegister r)
{
    return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
}

/* `jmp *table(,%rax,8)`, or `jmp *%rax` where one of the instructions before loads from a table
 * with a scaled index into that register or into one that is added to it (gcc and clang: movslq
 * (base,index,4), tmp; add base, tmp; jmp *tmp). `notrack` marks a table in code built for CET. */
static bool is_jump_table(const struct decoded *jump, const struct decoded *before, size_t n)
{
    if (jump->insn.attributes & ZYDIS_ATTRIB_HAS_NOTRACK)
        return true;
    if (jump->op[0].type != ZYDIS_OPERAND_TYPE_REGISTER)
        return is_table_load(&jump->op[0]) && jump->op[0].mem.base == ZYDIS_REGISTER_NONE;
    ZydisRegister wanted[2] = {whole(jump->op[0].reg.value), ZYDIS_REGISTER_NONE};
    for (size_t k = n; k-- > 0;) {
        const struct decoded *i = &before[k];
        if (i->insn.operand_count_visible < 2 || i->op[0].type != ZYDIS_OPERAND_TYPE_REGISTER)
            continue;
        ZydisRegister to = whole(i->op[0].reg.value);
        if (to != wanted[0] && to != wanted[1])
            continue;
        if ((i->insn.mnemonic == ZYDIS_MNEMONIC_MOVSXD || i->insn.mnemonic == ZYDIS_MNEMONIC_MOV ||
             i->insn.mnemonic == ZYDIS_MNEMONIC_ADD) &&
            is_table_load(&i->op[1]))
            return true;
        if (i->insn.mnemonic == ZYDIS_MNEMONIC_ADD && i->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER)
            wanted[1] = whole(i->op[1].reg.value);
    }
    return false;
}

/* ---- Exits ---- */

/* Jcc by opcode: 70–7F short, 0F 80–8F near. jrcxz and loops are not Jcc: −1. */
static int8_t condition_of(const ZydisDecodedInstruction *i)
{
    bool is_short = i->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (i->opcode & 0xf0) == 0x70;
    bool is_near = i->opcode_map == ZYDIS_OPCODE_MAP_0F && (i->opcode & 0xf0) == 0x80;
    return is_short || is_near ? (int8_t)(i->opcode & 15) : (int8_t)-1;
}

/* True when the instruction leaves the function. */
static bool classify(const struct decoded *i, const struct decoded *before, size_t n_before,
                     const struct sweep *all, size_t n, struct disasm_exit *out, bool *complete)
{
    *out = (struct disasm_exit){.vaddr = i->vaddr, .condition = -1};
    if (i->insn.meta.category == ZYDIS_CATEGORY_RET) {
        out->kind = DISASM_RETURN;
        return i->insn.mnemonic == ZYDIS_MNEMONIC_RET;
    }
    if (!is_jump(i))
        return false;
    out->target = direct_target(i);
    if (out->target && piece_of(all, n, out->target))
        return false;
    if (i->insn.meta.category == ZYDIS_CATEGORY_COND_BR) {
        out->kind = DISASM_TAIL_CONDITIONAL;
        out->condition = condition_of(&i->insn);
        if (out->condition < 0)
            *complete = false;
        return out->condition >= 0;
    }
    if (out->target) {
        out->kind = DISASM_TAIL_JUMP;
        return true;
    }
    if (is_jump_table(i, before, n_before))
        return false;
    bool fixed_slot =
        i->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY && i->op[0].mem.base == ZYDIS_REGISTER_RIP;
    out->kind = fixed_slot ? DISASM_TAIL_JUMP : DISASM_TAIL_INDIRECT;
    out->from_table = is_table_load(&i->op[0]) && i->op[0].mem.scale == 8;
    return true;
}

static void collect(const ZydisDecoder *d, const struct sweep *all, size_t n, const struct sweep *s,
                    uint8_t mark, struct disasm_exits *out)
{
    struct decoded window[LOOK_BACK + 1];
    size_t held = 0;
    for (size_t at = 0; at < s->piece->size; at++) {
        if (!(s->marks[at] & mark))
            continue;
        if (held == LOOK_BACK) {
            memmove(window, window + 1, (LOOK_BACK - 1) * sizeof *window);
            held--;
        }
        if (!decode(d, s->piece, at, &window[held]))
            continue;
        struct disasm_exit e;
        if (classify(&window[held], window, held, all, n, &e, &out->complete))
            vec_push(&out->list, e);
        held++;
    }
}

static int sweeps_new(const struct disasm_piece *pieces, size_t n, struct sweep **out,
                      struct err *err)
{
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += pieces[i].size;
    if (n == 0 || pieces[0].size == 0)
        return err_set(err, MTUI_E_INVAL, "the function's code cannot be read");
    if (total > DISASM_MAX_BYTES)
        return err_set(err, MTUI_E_INVAL, "the function is too long to search (%zu bytes)", total);
    struct sweep *s = calloc(n, sizeof *s);
    uint8_t *marks = calloc(total, 1);
    if (!s || !marks) {
        free(s);
        free(marks);
        return err_set(err, MTUI_E_NOMEM, "no memory to search the function's code");
    }
    for (size_t i = 0; i < n; i++) {
        s[i] = (struct sweep){.piece = &pieces[i], .marks = marks};
        marks += pieces[i].size;
    }
    *out = s;
    return 0;
}

static void sweeps_free(struct sweep *s)
{
    free(s[0].marks);
    free(s);
}

static void init_decoder(ZydisDecoder *d)
{
    (void)ZydisDecoderInit(d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

int disasm_find_exits(const struct disasm_piece *pieces, size_t n, struct disasm_exits *out,
                      struct err *err)
{
    ZydisDecoder d;
    struct sweep *s = NULL;
    int rc = sweeps_new(pieces, n, &s, err);
    if (rc < 0)
        return rc;
    init_decoder(&d);
    for (size_t i = 0; i < n; i++)
        sweep_linear(&d, s, n, &s[i]);
    struct disasm_exits found = {.complete = is_consistent(s, n)};
    uint8_t mark = AT_START;
    if (!found.complete) {
        sweep_reachable(&d, s, n);
        mark = AT_REACHED;
    }
    for (size_t i = 0; i < n; i++)
        collect(&d, s, n, &s[i], mark, &found);
    sweeps_free(s);
    *out = found;
    return 0;
}

void disasm_exits_free(struct disasm_exits *e)
{
    vec_free(&e->list);
}

bool disasm_is_boundary(const struct disasm_piece *piece, uint64_t vaddr)
{
    ZydisDecoder d;
    struct sweep *s = NULL;
    if (vaddr < piece->vaddr || vaddr - piece->vaddr >= piece->size ||
        sweeps_new(piece, 1, &s, NULL) < 0)
        return false;
    init_decoder(&d);
    sweep_linear(&d, s, 1, s);
    uint8_t mark = AT_START;
    if (!is_consistent(s, 1)) {
        sweep_reachable(&d, s, 1);
        mark = AT_REACHED;
    }
    bool is = s->marks[vaddr - piece->vaddr] & mark;
    sweeps_free(s);
    return is;
}
