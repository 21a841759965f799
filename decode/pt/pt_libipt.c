#include "decode/pt/pt_libipt.h"

#include <Zydis/Zydis.h>
#include <intel-pt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/err.h"
#include "decode/pt/pt_far.h"
#include "decode/pt/pt_resume.h"

#define EVENTS 1024
#define KNOWN  4096 /* instructions remembered */

/* An instruction that ended a block. */
struct known {
    uint64_t ip;
    enum pt_exec_mode mode;
    enum pt_insn_class class;
    enum pt_far far;
    uint8_t len; /* 0: none */
};

struct pt_libipt {
    struct code_view *view;
    struct pt_nodes *nodes;
    const struct pt_clock *clock;
    struct pt_walk_sinks sink;
    struct pt_code code;
    ZydisDecoder disassembler[2]; /* 64-bit, 32-bit code */
    struct pt_image_section_cache *cache;
    struct pt_image *image;
    struct pt_block_decoder *blocks;
    uint8_t *bytes_copy; /* of the data; PSB+ are written into it */

    const struct pt_stamps *stamps;
    size_t first;  /* byte of the stream that the data begins with */
    uint64_t most; /* behind the last of them no timestamp can be as high */
    uint64_t now, insns, lost_bytes, bytes;
    /* The last instruction of the last block; its branch is known when the next block is. */
    bool pending;
    uint64_t from;
    uint64_t stuck; /* where it could not go on */
    enum pt_insn_class class;
    enum pt_exec_mode mode;
    bool aborted; /* a transaction: the next asynchronous branch goes back to its beginning */

    struct flow_event batch[EVENTS];
    size_t n;
    struct known known[KNOWN];
};

struct pt_libipt *pt_libipt_new(struct code_view *view, struct pt_nodes *nodes,
                                const struct pt_clock *clock, const struct pt_walk_sinks *sinks)
{
    struct pt_libipt *d = xcalloc(1, sizeof *d);
    d->view = view;
    d->nodes = nodes;
    d->clock = clock;
    d->sink = *sinks;
    d->code = code_view_code(view);
    ZydisDecoderInit(&d->disassembler[0], ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisDecoderInit(&d->disassembler[1], ZYDIS_MACHINE_MODE_LONG_COMPAT_32, ZYDIS_STACK_WIDTH_32);
    d->cache = pt_iscache_alloc(NULL); /* one of its own: a shared one is a lock that all wait for */
    return d;
}

void pt_libipt_free(struct pt_libipt *d)
{
    if (!d)
        return;
    pt_blk_free_decoder(d->blocks);
    free(d->bytes_copy);
    pt_image_free(d->image);
    pt_iscache_free(d->cache);
    free(d);
}

uint64_t pt_libipt_insns(const struct pt_libipt *d)
{
    return d->insns;
}

uint64_t pt_libipt_bytes(const struct pt_libipt *d)
{
    return d->bytes;
}

/* ---- the code ---- */

static int read_memory(uint8_t *buffer, size_t size, const struct pt_asid *asid, uint64_t ip,
                       void *context)
{
    struct pt_libipt *d = context;
    (void)asid;
    size_t n = d->code.read(d->code.arg, ip, buffer, size);
    return n ? (int)n : -pte_nomap;
}

/* The image of the view as it is now. */
static int make_image(struct pt_libipt *d)
{
    struct pt_image *image = pt_image_alloc(NULL);
    struct code_section s;
    char path[64];
    if (!image)
        return MTUI_E_NOMEM;
    for (size_t i = 0; code_view_section(d->view, i, &s); i++) {
        if (s.fd < 0)
            continue;
        snprintf(path, sizeof path, "/proc/self/fd/%d", s.fd);
        int isid = pt_iscache_add_file(d->cache, path, s.offset, s.len, s.start);
        if (isid > 0)
            pt_image_add_cached(image, d->cache, isid, NULL);
    }
    pt_image_set_callback(image, read_memory, d); /* code without a file */
    if (d->blocks)
        pt_blk_set_image(d->blocks, image);
    pt_image_free(d->image);
    d->image = image;
    return 0;
}

static enum pt_insn_class class_of(const ZydisDecodedInstruction *insn)
{
    bool far = insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
    if (insn->mnemonic == ZYDIS_MNEMONIC_XBEGIN || insn->mnemonic == ZYDIS_MNEMONIC_XEND ||
        insn->mnemonic == ZYDIS_MNEMONIC_XABORT)
        return ptic_other;
    switch ((int)insn->meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
        return ptic_cond_jump;
    case ZYDIS_CATEGORY_UNCOND_BR:
        return far ? ptic_far_jump : ptic_jump;
    case ZYDIS_CATEGORY_CALL:
        return far ? ptic_far_call : ptic_call;
    case ZYDIS_CATEGORY_RET:
        return far ? ptic_far_return : ptic_return;
    case ZYDIS_CATEGORY_SYSRET:
        return ptic_far_return;
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_INTERRUPT:
        return ptic_far_call;
    default:
        return ptic_other;
    }
}

static const struct known *look_at(struct pt_libipt *d, uint64_t ip)
{
    struct known *k = &d->known[(size_t)(ip * 0x9e3779b97f4a7c15u >> 32) % KNOWN];
    if (k->len && k->ip == ip && k->mode == d->mode)
        return k;
    uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
    ZydisDecodedInstruction insn;
    size_t n = d->code.read(d->code.arg, ip, bytes, sizeof bytes);
    *k = (struct known){.ip = ip, .mode = d->mode, .class = ptic_other};
    if (n && ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&d->disassembler[d->mode == ptem_32bit], NULL,
                                                        bytes, n, &insn))) {
        k->len = insn.length;
        k->class = class_of(&insn);
        k->far = pt_far_of(&insn);
    }
    return k;
}

/* ---- what is found ---- */

static void flush(struct pt_libipt *d)
{
    if (d->n && d->sink.events)
        d->sink.events(d->sink.arg, d->batch, d->n);
    d->n = 0;
}

static void emit(struct pt_libipt *d, enum pt_event_kind kind, uint64_t addr, uint64_t to,
                 unsigned how)
{
    bool at_start = false;
    if (!d->sink.events)
        return;
    if (d->n == EVENTS)
        flush(d);
    fn_id fn = to ? pt_nodes_function(d->nodes, to, &at_start) : FN_NONE;
    d->batch[d->n++] = (struct flow_event){
        .time = pt_clock_has_time(d->clock) ? d->now : d->insns,
        .addr = addr,
        .insns = d->insns,
        .fn = fn,
        .kind = (uint8_t)kind,
        .how = (uint8_t)how,
        .at_start = at_start,
    };
}

static void branch(struct pt_libipt *d, enum pt_branch_kind kind, uint64_t from, uint64_t to,
                   enum pt_end end)
{
    if (!d->sink.branch)
        return;
    struct pt_branch b = {.time = pt_clock_has_time(d->clock) ? d->now : d->insns,
                          .from = from,
                          .to = to,
                          .kind = (uint8_t)kind,
                          .end = (uint8_t)end};
    d->sink.branch(d->sink.arg, &b);
}

static void jump(struct pt_libipt *d, enum pt_branch_kind kind, uint64_t to)
{
    branch(d, kind, d->from, to, PT_END_UNKNOWN);
    if (d->sink.events &&
        pt_nodes_function(d->nodes, d->from, NULL) != pt_nodes_function(d->nodes, to, NULL))
        emit(d, PT_EVENT_JUMP, to, to, 0);
}

/* The pending branch went to `to`. */
static void resolve(struct pt_libipt *d, uint64_t to)
{
    if (!d->pending)
        return;
    d->pending = false;
    const struct known *k = look_at(d, d->from);
    uint64_t next = d->from + k->len;
    /* Blocks out of libipt's cache may come without a class. */
    switch (d->class == ptic_error ? k->class : d->class) {
    case ptic_cond_jump:
        if (to != next)
            jump(d, PT_BRANCH_COND, to);
        break;
    case ptic_jump:
        jump(d, PT_BRANCH_JUMP, to);
        break;
    case ptic_call:
        branch(d, PT_BRANCH_CALL, d->from, to, PT_END_UNKNOWN);
        if (to != next)
            emit(d, PT_EVENT_CALL, next, to, 0);
        break;
    case ptic_return:
        branch(d, PT_BRANCH_RETURN, d->from, to, PT_END_UNKNOWN);
        emit(d, PT_EVENT_RETURN, to, to, 0);
        break;
    case ptic_far_call:
    case ptic_far_return:
    case ptic_far_jump:
        branch(d, pt_far_branch(k->far), d->from, to, PT_END_UNKNOWN);
        if (pt_far_returns(k->far))
            emit(d, PT_EVENT_RETURN, to, to, 0);
        else
            emit(d, PT_EVENT_CALL, next, to, 0);
        break;
    case ptic_error:
    case ptic_other:
    case ptic_ptwrite:
    default:
        break;
    }
}

/* By the instruction that was last. */
static enum pt_end end_by(struct pt_libipt *d)
{
    const struct known *k = look_at(d, d->from);
    switch (d->class == ptic_error ? k->class : d->class) {
    case ptic_call:
        return PT_END_CALL;
    case ptic_return:
        return PT_END_RETURN;
    case ptic_jump:
    case ptic_cond_jump:
        return PT_END_JUMP;
    case ptic_far_call:
    case ptic_far_return:
    case ptic_far_jump:
        return pt_far_end(k->far);
    case ptic_error:
    case ptic_other:
    case ptic_ptwrite:
    default:
        return PT_END_UNKNOWN;
    }
}

static void end_at(struct pt_libipt *d, uint64_t at, enum pt_end how)
{
    d->pending = false;
    emit(d, PT_EVENT_END, at, 0, how);
    branch(d, PT_BRANCH_END, at, 0, how);
}

static void renew_code(struct pt_libipt *d)
{
    if (!d->sink.code_changed || !d->sink.code_changed(d->sink.arg, d->now))
        return;
    memset(d->known, 0, sizeof d->known);
    pt_nodes_forget(d->nodes);
    make_image(d);
}

static void go_on(struct pt_libipt *d, uint64_t ip, bool begins)
{
    d->pending = false;
    renew_code(d);
    if (begins)
        branch(d, PT_BRANCH_BEGIN, 0, ip, PT_END_UNKNOWN);
    emit(d, PT_EVENT_BEGIN, ip, ip, 0);
}

static void lose(struct pt_libipt *d, enum gap_cause cause, uint64_t ip)
{
    d->pending = false;
    emit(d, PT_EVENT_LOST, 0, 0, cause);
    branch(d, PT_BRANCH_ERROR, ip, 0, PT_END_UNKNOWN);
}

static void tell_loss(struct pt_libipt *d, enum gap_cause cause, uint64_t first, uint64_t end,
                      uint64_t from_time, uint64_t ip, const char *why)
{
    struct pt_loss loss = {.first_byte = first,
                           .bytes = end > first ? end - first : 0,
                           .from_time = from_time,
                           .to_time = d->now,
                           .ip = ip,
                           .cause = cause,
                           .why = why};
    d->lost_bytes += loss.bytes;
    d->sink.loss(d->sink.arg, &loss);
}

/* ---- the decoder ---- */

/* libipt believes every timestamp: it can be no later than the next one that is right. */
static uint64_t believable(const struct pt_libipt *d, uint64_t tsc)
{
    const struct pt_stamps *s = d->stamps;
    uint64_t at;
    if (!s->wrong || pt_blk_get_offset(d->blocks, &at) < 0)
        return tsc;
    size_t i = pt_stamps_from(s, d->first + (size_t)at);
    while (i < s->len && s->data[i].wrong)
        i++;
    bool late = i < s->len ? tsc > s->data[i].tsc : tsc >= d->most;
    return late ? 0 : tsc;
}

/* The lowest of those that are wrong because they are too high for the end. */
static uint64_t lowest_wrong(const struct pt_stamps *s)
{
    uint64_t last = 0, lowest = UINT64_MAX;
    for (size_t i = 0; i < s->len; i++)
        if (!s->data[i].wrong)
            last = s->data[i].tsc;
    for (size_t i = 0; i < s->len; i++)
        if (s->data[i].wrong && s->data[i].tsc > last && s->data[i].tsc < lowest)
            lowest = s->data[i].tsc;
    return lowest;
}

static void update_time(struct pt_libipt *d)
{
    uint64_t tsc;
    if (pt_clock_has_time(d->clock) && pt_blk_time(d->blocks, &tsc, NULL, NULL) >= 0) {
        uint64_t ns = pt_time_ns(d->clock, believable(d, tsc));
        if (ns > d->now)
            d->now = ns;
    }
}

static void on_async_branch(struct pt_libipt *d, uint64_t from, uint64_t to)
{
    resolve(d, from);
    if (d->aborted) {
        emit(d, PT_EVENT_TX_ABORT, from, 0, 0);
        emit(d, PT_EVENT_JUMP, to, to, 0);
        if (d->n)
            d->batch[d->n - 1].at_start = false;
    } else {
        emit(d, PT_EVENT_INTERRUPT, from, to, 0);
    }
    branch(d, d->aborted ? PT_BRANCH_ABORT : PT_BRANCH_INTERRUPT, from, to, PT_END_UNKNOWN);
    d->aborted = false;
}

static void on_tsx(struct pt_libipt *d, const struct pt_event *e)
{
    d->aborted = e->variant.tsx.aborted;
    if (d->aborted)
        return;
    resolve(d, e->variant.tsx.ip);
    emit(d, e->variant.tsx.speculative ? PT_EVENT_TX_BEGIN : PT_EVENT_TX_COMMIT, e->variant.tsx.ip, 0, 0);
}

static void on_event(struct pt_libipt *d, const struct pt_event *e)
{
    switch ((int)e->type) {
    case ptev_enabled:
        go_on(d, e->variant.enabled.ip, true);
        break;
    case ptev_disabled:
        end_at(d, d->from, end_by(d));
        break;
    case ptev_async_disabled:
        resolve(d, e->variant.async_disabled.at);
        end_at(d, e->variant.async_disabled.at, PT_END_ASYNC);
        break;
    case ptev_async_branch:
        on_async_branch(d, e->variant.async_branch.from, e->variant.async_branch.to);
        break;
    case ptev_tsx:
        if (!e->status_update && !e->ip_suppressed)
            on_tsx(d, e);
        break;
    case ptev_overflow:
        lose(d, GAP_OVERFLOW, d->from);
        if (!e->ip_suppressed)
            go_on(d, e->variant.overflow.ip, true);
        break;
    case ptev_exec_mode:
        pt_nodes_set_bits(d->nodes, e->variant.exec_mode.mode == ptem_32bit ? 32 : 64);
        break;
    default:
        break;
    }
}

/* From a PSB on; the status that ended it (−pte_eos: the end). told: it is said already that tracing goes on there. */
static int from_psb(struct pt_libipt *d, int status, bool told)
{
    bool first = !told;
    d->stuck = 0;
    for (;;) {
        while (status >= 0 && status & pts_event_pending) {
            struct pt_event e;
            status = pt_blk_event(d->blocks, &e, sizeof e);
            if (status < 0)
                return status;
            update_time(d);
            on_event(d, &e);
            first = false;
        }
        if (status < 0 || status & pts_eos)
            return status < 0 ? status : -pte_eos;
        struct pt_block b = {0};
        status = pt_blk_next(d->blocks, &b, sizeof b);
        if (b.ninsn) {
            update_time(d);
            if (first) /* it was on all the time */
                go_on(d, b.ip, false);
            first = false;
            resolve(d, b.ip);
            d->insns += b.ninsn;
            d->pending = true;
            d->from = b.end_ip;
            d->class = b.iclass;
            d->mode = b.mode;
        }
        if (status == -pte_nomap && b.ninsn) /* comes again, for the instruction behind the block */
            status = 0;
        d->stuck = b.ip;
    }
}

static int alloc(struct pt_libipt *d, const uint8_t *data, size_t len)
{
    struct pt_config c;
    free(d->bytes_copy);
    d->bytes_copy = malloc(len ? len : 1);
    if (!d->bytes_copy)
        return MTUI_E_NOMEM;
    memcpy(d->bytes_copy, data, len);
    pt_config_init(&c);
    c.begin = d->bytes_copy;
    c.end = c.begin + len;
    c.cpuid_0x15_eax = d->clock->tsc_ctc_d;
    c.cpuid_0x15_ebx = d->clock->tsc_ctc_n;
    c.mtc_freq = (uint8_t)d->clock->mtc_period;
    c.nom_freq = (uint8_t)d->clock->max_nonturbo_ratio;
    c.flags.variant.block.end_on_call = 1;
    c.flags.variant.block.end_on_jump = 1;
    pt_blk_free_decoder(d->blocks);
    d->blocks = pt_blk_alloc_decoder(&c);
    if (!d->blocks || !d->cache)
        return MTUI_E_NOMEM;
    return make_image(d);
}

/* What could not be followed. */
struct stretch {
    uint64_t from, time, ip;
    enum gap_cause cause;
    const char *why;
};

/* To the place where libipt can go on behind a stretch, whose loss is told. */
static int go_behind(struct pt_libipt *d, const struct stretch *s, const struct pt_resume *r, size_t len)
{
    uint64_t at = len;
    int status = r->psb < r->end ? pt_blk_sync_set(d->blocks, r->psb) : -pte_nosync;
    bool resumed = status >= 0;
    if (resumed)
        at = r->at;
    else if ((status = pt_blk_sync_forward(d->blocks)) >= 0)
        pt_blk_get_sync_offset(d->blocks, &at);
    if (status >= 0)
        update_time(d);
    if (at > s->from || resumed)
        tell_loss(d, s->cause, s->from, at, s->time, s->ip, s->why);
    if (resumed)
        go_on(d, r->ip, true);
    else if (status >= 0)
        renew_code(d);
    return status;
}

static void decode(struct pt_libipt *d, size_t len)
{
    struct stretch s = {.cause = GAP_LOST, .why = "before the first synchronisation point"};
    struct pt_resume r = {0};
    for (;;) {
        bool resumed = r.end > 0;
        uint64_t sync = 0, at = 0;
        int status = go_behind(d, &s, &r, len);
        if (status < 0)
            return;
        status = from_psb(d, status, resumed);
        if (status == -pte_eos || (d->sink.cancelled && d->sink.cancelled(d->sink.arg)))
            return;
        pt_blk_get_offset(d->blocks, &at);
        pt_blk_get_sync_offset(d->blocks, &sync);
        bool missing = status == -pte_nomap;
        s = (struct stretch){.from = at > r.end ? at : r.end,
                             .time = d->now,
                             .ip = missing ? d->stuck : d->from,
                             .cause = missing ? GAP_NO_IMAGE : GAP_ERROR,
                             .why = missing ? "the code there is not at hand" : pt_errstr(pt_errcode(status))};
        if (missing) /* how it came there is known */
            resolve(d, s.ip);
        lose(d, s.cause, s.ip);
        if (!pt_resume_before_psb(&r, d->clock, d->bytes_copy, len, (size_t)sync, (size_t)s.from))
            r = (struct pt_resume){.psb = SIZE_MAX};
    }
}

/* Those are known before anything is decoded; their bytes are not lost to libipt. */
static void tell_wrong_stamps(const struct pt_libipt *d, size_t len)
{
    const struct pt_stamps *s = d->stamps;
    uint64_t before = 0;
    if (!s->wrong || !pt_clock_has_time(d->clock))
        return;
    for (size_t i = pt_stamps_from(s, d->first); i < s->len && s->data[i].at < d->first + len; i++) {
        size_t next = i + 1;
        if (!s->data[i].wrong) {
            before = pt_time_ns(d->clock, s->data[i].tsc);
            continue;
        }
        if (next < s->len && s->data[next].wrong) /* a run of them is told once, with its last */
            continue;
        struct pt_loss loss = {.first_byte = s->data[i].at - d->first, .from_time = before, .to_time = before,
                               .cause = GAP_ERROR, .why = PT_STAMP_WRONG};
        if (next < s->len)
            loss.to_time = pt_time_ns(d->clock, s->data[next].tsc);
        d->sink.loss(d->sink.arg, &loss);
    }
}

int pt_libipt_run(struct pt_libipt *d, const uint8_t *data, size_t len, const struct pt_stamps *stamps,
                  size_t first)
{
    d->stamps = stamps;
    d->first = first;
    d->most = stamps->wrong ? lowest_wrong(stamps) : UINT64_MAX;
    d->now = d->insns = d->lost_bytes = 0;
    d->pending = false;
    d->from = 0;
    int rc = alloc(d, data, len);
    if (rc == 0) {
        tell_wrong_stamps(d, len);
        decode(d, len);
    }
    flush(d);
    d->bytes = len - d->lost_bytes;
    return rc;
}
