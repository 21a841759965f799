#include "decode/pt/pt_nodes.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "decode/pt/pt_far.h"

#define STEPS_MAX 24
#define INSNS_MAX 4096
#define CODE_WINDOW 64 /* bytes read at a time */

struct block { /* nodes and their steps are carved from blocks that never move */
    struct block *older;
    size_t used, cap;
    max_align_t bytes[];
};

struct slot {
    uint64_t ip;
    unsigned mode;
    struct pt_node *node; /* NULL: free */
};

struct pt_nodes {
    struct pt_code code;
    ZydisDecoder decoders[2]; /* 64-bit, 32-bit code */
    unsigned mode;            /* index of the one in use */
    struct slot *slots;       /* open addressing, of both */
    size_t n_slots, n;
    struct block *blocks;
    size_t bytes; /* of the blocks */
};

struct pt_nodes *pt_nodes_new(const struct pt_code *code)
{
    struct pt_nodes *c = xcalloc(1, sizeof *c);
    c->code = *code;
    ZydisDecoderInit(&c->decoders[0], ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisDecoderInit(&c->decoders[1], ZYDIS_MACHINE_MODE_LONG_COMPAT_32, ZYDIS_STACK_WIDTH_32);
    return c;
}

void pt_nodes_set_bits(struct pt_nodes *c, unsigned bits)
{
    c->mode = bits == 32;
}

void pt_nodes_forget(struct pt_nodes *c)
{
    while (c->blocks) {
        struct block *older = c->blocks->older;
        free(c->blocks);
        c->blocks = older;
    }
    free(c->slots);
    c->slots = NULL;
    c->n_slots = c->n = c->bytes = 0;
}

void pt_nodes_free(struct pt_nodes *c)
{
    if (!c)
        return;
    pt_nodes_forget(c);
    free(c);
}

size_t pt_nodes_count(const struct pt_nodes *c)
{
    return c->n;
}

size_t pt_nodes_bytes(const struct pt_nodes *c)
{
    return c->bytes;
}

/* ---- memory and look-up ---- */

static void *carve(struct pt_nodes *c, size_t size)
{
    size = (size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
    if (!c->blocks || c->blocks->cap - c->blocks->used < size) {
        size_t cap = size > ((size_t)1 << 16) ? size : (size_t)1 << 16;
        struct block *b = malloc(sizeof *b + cap);
        if (!b)
            return NULL;
        *b = (struct block){.older = c->blocks, .cap = cap};
        c->bytes += cap;
        c->blocks = b;
    }
    void *p = (char *)c->blocks->bytes + c->blocks->used;
    c->blocks->used += size;
    memset(p, 0, size);
    return p;
}

static size_t slot_of(const struct pt_nodes *c, uint64_t ip, unsigned mode)
{
    size_t i = (size_t)((ip ^ mode) * 0x9e3779b97f4a7c15u >> 24) & (c->n_slots - 1);
    while (c->slots[i].node && (c->slots[i].ip != ip || c->slots[i].mode != mode))
        i = (i + 1) & (c->n_slots - 1);
    return i;
}

static bool grow(struct pt_nodes *c)
{
    size_t old_n = c->n_slots;
    struct slot *old = c->slots;
    size_t n = old_n ? old_n * 2 : 1024;
    struct slot *fresh = calloc(n, sizeof *fresh);
    if (!fresh)
        return false;
    c->slots = fresh;
    c->n_slots = n;
    for (size_t i = 0; i < old_n; i++)
        if (old[i].node)
            c->slots[slot_of(c, old[i].ip, old[i].mode)] = old[i];
    free(old);
    return true;
}

fn_id pt_nodes_function(struct pt_nodes *c, uint64_t ip, bool *at_start)
{
    uint64_t offset;
    fn_id fn = c->code.function(c->code.arg, ip, &offset);
    if (at_start)
        *at_start = offset == 0;
    return fn;
}

/* ---- reading code ---- */

struct reader {
    struct pt_nodes *c;
    uint64_t base;
    size_t have;
    uint8_t bytes[CODE_WINDOW];
};

static bool decode_at(struct reader *r, uint64_t ip, ZydisDecodedInstruction *insn,
                      ZydisDecodedOperand *operands)
{
    if (ip < r->base || ip - r->base + ZYDIS_MAX_INSTRUCTION_LENGTH > r->have) {
        r->base = ip;
        r->have = r->c->code.read(r->c->code.arg, ip, r->bytes, sizeof r->bytes);
    }
    size_t at = (size_t)(ip - r->base);
    return at < r->have && ZYAN_SUCCESS(ZydisDecoderDecodeFull(&r->c->decoders[r->c->mode], r->bytes + at,
                                                               r->have - at, insn, operands));
}

/* What an instruction is to a trace. */
enum flow { FLOW_ON, FLOW_JUMP, FLOW_CALL, FLOW_END, FLOW_NONE };

static enum flow flow_of(const ZydisDecodedInstruction *insn, bool relative, struct pt_node *n)
{
    n->far = (uint8_t)pt_far_of(insn);
    if (n->far) {
        n->kind = PT_NODE_FAR;
        return FLOW_END;
    }
    switch ((int)insn->meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
        if (insn->mnemonic == ZYDIS_MNEMONIC_XBEGIN || insn->mnemonic == ZYDIS_MNEMONIC_XEND)
            return FLOW_ON; /* a transaction jumps only when it is aborted, which is told otherwise */
        n->kind = PT_NODE_CONDITIONAL;
        return FLOW_END;
    case ZYDIS_CATEGORY_UNCOND_BR:
        if (insn->mnemonic != ZYDIS_MNEMONIC_JMP)
            return FLOW_ON;
        n->kind = PT_NODE_JUMP;
        return relative ? FLOW_JUMP : FLOW_END;
    case ZYDIS_CATEGORY_CALL:
        n->kind = PT_NODE_CALL;
        return relative ? FLOW_CALL : FLOW_END;
    case ZYDIS_CATEGORY_RET:
        n->kind = PT_NODE_RETURN;
        return FLOW_END;
    default:
        return FLOW_ON;
    }
}

/* ---- building ---- */

struct draft {
    struct pt_node node;
    struct pt_step steps[STEPS_MAX];
    unsigned n_calls;
};

static void add_step(struct pt_nodes *c, struct draft *d, enum flow flow, uint64_t from,
                     uint64_t next, uint64_t target)
{
    struct pt_step *s = &d->steps[d->node.n_steps++];
    bool at_start;
    fn_id fn = pt_nodes_function(c, target, &at_start);
    *s = (struct pt_step){.from = from, .to = target, .next = next, .fn = fn, .at_start = at_start,
                          .insns = (uint16_t)d->node.insns};
    if (flow == FLOW_CALL)
        s->kind = target == next ? PT_STEP_CALL_NEXT : PT_STEP_CALL;
    else
        s->kind = fn == d->node.fn ? PT_STEP_JUMP : PT_STEP_LEAVE;
    if (s->kind != PT_STEP_CALL_NEXT)
        d->node.fn = fn;
    d->n_calls += s->kind == PT_STEP_CALL || s->kind == PT_STEP_LEAVE;
}

static void follow(struct pt_nodes *c, struct draft *d)
{
    struct reader r = {.c = c};
    struct pt_node *n = &d->node;
    uint64_t ip = n->start;
    for (;;) {
        ZydisDecodedInstruction insn;
        ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
        n->term = ip;
        if (n->n_steps == STEPS_MAX || n->insns == INSNS_MAX) {
            n->kind = PT_NODE_ON;
            n->next = ip;
            return;
        }
        if (!decode_at(&r, ip, &insn, op)) {
            n->kind = PT_NODE_BAD;
            return;
        }
        n->insns++;
        n->next = ip + insn.length;
        bool relative = insn.operand_count_visible > 0 &&
                        op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && op[0].imm.is_relative;
        uint64_t target = relative ? n->next + (uint64_t)op[0].imm.value.s : 0;
        enum flow flow = flow_of(&insn, relative, n);
        if (flow == FLOW_END) {
            n->target = target;
            return;
        }
        if (flow == FLOW_ON) {
            ip = n->next;
            continue;
        }
        add_step(c, d, flow, ip, n->next, target);
        ip = target;
    }
}

static struct pt_node *keep(struct pt_nodes *c, const struct draft *d)
{
    struct pt_node *n = carve(c, sizeof *n);
    struct pt_step *steps = carve(c, (d->node.n_steps ? d->node.n_steps : 1) * sizeof *steps);
    struct pt_step **calls = carve(c, (d->n_calls ? d->n_calls : 1) * sizeof *calls);
    if (!n || !steps || !calls)
        return NULL;
    *n = d->node;
    memcpy(steps, d->steps, d->node.n_steps * sizeof *steps);
    n->steps = steps;
    n->calls = calls;
    for (uint32_t i = 0; i < n->n_steps; i++)
        if (steps[i].kind == PT_STEP_CALL || steps[i].kind == PT_STEP_LEAVE)
            calls[n->n_calls++] = &steps[i];
    return n;
}

static struct pt_node *build(struct pt_nodes *c, uint64_t ip)
{
    struct draft d = {.node = {.start = ip}};
    d.node.fn = d.node.start_fn = pt_nodes_function(c, ip, &d.node.starts_fn);
    follow(c, &d);
    if (d.node.kind == PT_NODE_CONDITIONAL)
        d.node.leaves = pt_nodes_function(c, d.node.target, NULL) != d.node.fn;
    return keep(c, &d);
}

struct pt_node *pt_nodes_at(struct pt_nodes *c, uint64_t ip)
{
    if (c->n * 2 >= c->n_slots && !grow(c))
        return NULL;
    size_t slot = slot_of(c, ip, c->mode);
    if (!c->slots[slot].node) {
        struct pt_node *n = build(c, ip);
        if (!n)
            return NULL;
        c->slots[slot] = (struct slot){ip, c->mode, n};
        c->n++;
    }
    return c->slots[slot].node;
}

int pt_node_steps_to(const struct pt_node *n, uint64_t ip)
{
    uint64_t from = n->start;
    for (uint32_t i = 0; i < n->n_steps; i++) {
        if (ip >= from && ip <= n->steps[i].from)
            return (int)i;
        from = n->steps[i].to;
    }
    return ip >= from && ip <= n->term ? (int)n->n_steps : -1;
}

uint32_t pt_nodes_insns_to(struct pt_nodes *c, const struct pt_node *n, uint32_t steps, uint64_t ip)
{
    struct reader r = {.c = c};
    uint64_t at = steps ? n->steps[steps - 1].to : n->start;
    uint32_t insns = steps ? n->steps[steps - 1].insns : 0;
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    for (; at < ip && insns < n->insns && decode_at(&r, at, &insn, op); at += insn.length)
        insns++;
    return insns;
}
