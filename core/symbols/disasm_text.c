#include "core/symbols/disasm_text.h"

#include <Zydis/Zydis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void init_decoder(ZydisDecoder *d)
{
    (void)ZydisDecoderInit(d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

/* Numbers as objdump writes them: 0x1f, not 0x000000000000001F. */
static void init_formatter(ZydisFormatter *f)
{
    static const ZydisFormatterProperty padded[] = {
        ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_FORMATTER_PROP_ADDR_PADDING_RELATIVE,
        ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_FORMATTER_PROP_IMM_PADDING};
    (void)ZydisFormatterInit(f, ZYDIS_FORMATTER_STYLE_ATT);
    for (size_t i = 0; i < sizeof padded / sizeof *padded; i++)
        (void)ZydisFormatterSetProperty(f, padded[i], ZYDIS_PADDING_DISABLED);
    (void)ZydisFormatterSetProperty(f, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
}

/* Where a direct call or jump goes; 0: it is none, or not direct. */
static uint64_t direct_target(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *op,
                              uint64_t vaddr)
{
    ZyanU64 target = 0;
    for (ZyanU8 k = 0; k < insn->operand_count_visible; k++)
        if (op[k].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && op[k].imm.is_relative &&
            ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(insn, &op[k], vaddr, &target)))
            return target;
    return 0;
}

void disasm_find_calls(const struct disasm_piece *p, struct disasm_calls *out)
{
    ZydisDecoder d;
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    *out = (struct disasm_calls){0};
    init_decoder(&d);
    for (size_t at = 0; at < p->size;) {
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d, p->code + at, p->size - at, &insn, op))) {
            at++;
            continue;
        }
        uint64_t vaddr = p->vaddr + at;
        at += insn.length;
        struct disasm_call c = {vaddr, p->vaddr + at, direct_target(&insn, op, vaddr)};
        if (insn.meta.category == ZYDIS_CATEGORY_CALL && !vec_try_push(&out->list, c))
            return;
    }
}

void disasm_calls_free(struct disasm_calls *c)
{
    vec_free(&c->list);
}

/* Offsets of the last `before` instructions that begin before `stop`, as a ring; *n of them. Returns the
 * offset of the instruction that holds `stop`. */
static size_t walk_to(const ZydisDecoder *d, const struct disasm_piece *p, size_t stop, size_t *ring,
                      size_t before, size_t *n)
{
    ZydisDecodedInstruction insn;
    size_t at = 0;
    *n = 0;
    for (;;) {
        size_t length = 1;
        if (ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(d, NULL, p->code + at, p->size - at, &insn)))
            length = insn.length;
        if (at + length > stop)
            return at;
        if (before)
            ring[*n % before] = at;
        ++*n;
        at += length;
    }
}

/* AT&T marks an indirect target with a star, which Zydis leaves out. */
static void mark_indirect(char *text, size_t size)
{
    char *operand = strchr(text, ' ');
    size_t len = strlen(text);
    if (!operand || operand[1] == '*' || len + 2 > size)
        return;
    memmove(operand + 2, operand + 1, strlen(operand));
    operand[1] = '*';
}

static size_t write_line(const ZydisDecoder *d, const ZydisFormatter *f, const struct disasm_piece *p,
                         size_t at, struct disasm_line *out)
{
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    *out = (struct disasm_line){.vaddr = p->vaddr + at};
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(d, p->code + at, p->size - at, &insn, op))) {
        snprintf(out->text, sizeof out->text, "(bad)");
        return 1;
    }
    out->target = direct_target(&insn, op, out->vaddr);
    if (!ZYAN_SUCCESS(ZydisFormatterFormatInstruction(f, &insn, op, insn.operand_count_visible,
                                                      out->text, sizeof out->text, out->vaddr, NULL)))
        snprintf(out->text, sizeof out->text, "(bad)");
    bool branches = insn.meta.category == ZYDIS_CATEGORY_CALL ||
                    insn.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
    if (branches && op[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
        mark_indirect(out->text, sizeof out->text);
    return insn.length;
}

size_t disasm_lines(const struct disasm_piece *p, uint64_t vaddr, size_t before, size_t max,
                    struct disasm_line *out, size_t *at)
{
    ZydisDecoder d;
    ZydisFormatter f;
    if (vaddr < p->vaddr || vaddr - p->vaddr >= p->size || max == 0)
        return 0;
    before = before < max ? before : max - 1;
    size_t *ring = before ? malloc(before * sizeof *ring) : NULL, passed, n = 0;
    if (before && !ring)
        return 0;
    init_decoder(&d);
    init_formatter(&f);
    size_t here = walk_to(&d, p, (size_t)(vaddr - p->vaddr), ring, before, &passed);
    size_t kept = passed < before ? passed : before;
    for (size_t i = passed - kept; i < passed; i++)
        write_line(&d, &f, p, ring[i % before], &out[n++]);
    free(ring);
    *at = n;
    while (n < max && here < p->size)
        here += write_line(&d, &f, p, here, &out[n++]);
    return n;
}
