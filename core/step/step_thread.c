#include "core/step/step_thread.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"

/* So many instructions in a row whose code cannot be read are no trace: the page [vsyscall] is one. */
#define UNREAD_MAX 16

struct step_thread {
    pid_t tid;
    struct step_thread_options opt;
    pt_encode *encoder;
    bool tracing; /* between a begin and an end in the stream */
    uint64_t begun; /* clock of the last begin */
    bool no_memory;
    int truth_errno; /* why the truth is not whole */
    uint64_t instructions;
    unsigned unread; /* instructions, up to now, whose code could not be read */
    VEC(uint8_t) bytes;
    VEC(size_t) syncs;      /* positions of PSBs in bytes */
    uint64_t dropped;       /* bytes cut off at the front */
};

/* Keeps the newest ring_bytes, at least back to a PSB; called when twice as much has gathered, so that
 * each byte moves about once. */
static void trim(struct step_thread *t)
{
    size_t keep_from = t->bytes.len - t->opt.ring_bytes, cut = 0, gone = 0;
    for (size_t i = 0; i < t->syncs.len && t->syncs.data[i] <= keep_from; i++) {
        cut = t->syncs.data[i];
        gone = i;
    }
    if (!cut)
        return;
    memmove(t->bytes.data, t->bytes.data + cut, t->bytes.len - cut);
    t->bytes.len -= cut;
    t->dropped += cut;
    memmove(t->syncs.data, t->syncs.data + gone, (t->syncs.len - gone) * sizeof *t->syncs.data);
    t->syncs.len -= gone;
    for (size_t i = 0; i < t->syncs.len; i++)
        t->syncs.data[i] -= cut;
}

static void take_packet(void *arg, const uint8_t *bytes, size_t len, bool sync)
{
    struct step_thread *t = arg;
    if (sync) {
        if (t->opt.ring_bytes && t->bytes.len > 2 * t->opt.ring_bytes)
            trim(t);
        vec_push(&t->syncs, t->bytes.len);
    }
    for (size_t i = 0; i < len; i++)
        if (!vec_try_push(&t->bytes, bytes[i]))
            t->no_memory = true;
}

struct step_thread *step_thread_new(pid_t tid, const struct step_thread_options *options)
{
    struct step_thread *t = xcalloc(1, sizeof *t);
    t->tid = tid;
    t->opt = *options;
    t->encoder = pt_encode_new(&t->opt.encoding, take_packet, t);
    return t;
}

void step_thread_free(struct step_thread *t)
{
    if (!t)
        return;
    pt_encode_free(t->encoder);
    vec_free(&t->bytes);
    vec_free(&t->syncs);
    free(t);
}

static struct step_insn decode_at(struct step_thread *t, uint64_t ip, uint8_t code[STEP_INSN_MAX])
{
    size_t n = t->opt.read_code(t->opt.read_code_arg, ip, code, STEP_INSN_MAX);
    t->unread = n ? 0 : t->unread + 1;
    return step_insn_decode(code, n, ip);
}

static void note(struct step_thread *t, const char *kind, uint64_t from, uint64_t to, uint64_t sp)
{
    if (!t->opt.truth || t->truth_errno)
        return;
    if (fprintf(t->opt.truth, "%" PRIu64 "\t%d\t%s\t%" PRIx64 "\t%" PRIx64 "\t%" PRIx64 "\n",
                *t->opt.clock, (int)t->tid, kind, from, to, sp) < 0)
        t->truth_errno = errno;
}

static void end_here(struct step_thread *t, uint64_t from)
{
    pt_encode_end_at(t->encoder, from, *t->opt.clock);
    t->tracing = false;
    note(t, "async", from, 0, 0);
}

/* Whether the code at ip is another than a decoder knows that looked when tracing began. */
static bool is_new_code(struct step_thread *t, uint64_t ip, const uint8_t *code, size_t n)
{
    return t->opt.code_since && n && t->opt.code_since(t->opt.code_since_arg, ip, code, n) > t->begun;
}

struct step_insn step_thread_begin(struct step_thread *t, uint64_t ip)
{
    uint8_t code[STEP_INSN_MAX];
    struct step_insn insn = decode_at(t, ip, code);
    if (is_new_code(t, ip, code, insn.len) && t->tracing)
        end_here(t, ip);
    if (!t->tracing) {
        pt_encode_begin(t->encoder, ip, *t->opt.clock);
        t->tracing = true;
        t->begun = *t->opt.clock;
        note(t, "begin", 0, ip, 0);
    } else {
        pt_encode_tick(t->encoder, ip, *t->opt.clock);
    }
    return insn;
}

static void end_by_branch(struct step_thread *t, const char *kind, uint64_t from, uint64_t to,
                          uint64_t sp)
{
    pt_encode_end(t->encoder, *t->opt.clock);
    t->tracing = false;
    note(t, kind, from, to, sp);
}

/* Whether the processor can be at `to` after this one instruction. */
static bool can_follow(const struct step_insn *insn, uint64_t from, uint64_t to)
{
    uint64_t next = from + insn->len;
    switch (insn->kind) {
    case STEP_JUMP:
    case STEP_CALL:
        return to == insn->target;
    case STEP_CONDITIONAL:
        return to == insn->target || to == next;
    case STEP_JUMP_INDIRECT:
    case STEP_CALL_INDIRECT:
    case STEP_RETURN:
    case STEP_SYSCALL:
    case STEP_TRAP:
        return true;
    case STEP_BAD:
        return false;
    case STEP_PLAIN:
        break;
    }
    return to == next;
}

/* One instruction whose successor is known, and can be that. */
static void report(struct step_thread *t, uint64_t from, const struct step_insn *insn, uint64_t to,
                   uint64_t sp)
{
    uint64_t next = from + insn->len, now = ++*t->opt.clock;
    pt_encode *e = t->encoder;
    t->instructions++;
    switch (insn->kind) {
    case STEP_JUMP:
        note(t, "jump", from, to, sp);
        break;
    case STEP_CONDITIONAL:
        pt_encode_conditional(e, to == insn->target, now);
        if (to == insn->target)
            note(t, "cond", from, to, sp);
        break;
    case STEP_CALL:
        pt_encode_direct_call(e, next, to, now);
        note(t, "call", from, to, sp);
        break;
    case STEP_JUMP_INDIRECT:
        pt_encode_indirect_jump(e, to, now);
        note(t, "jump", from, to, sp);
        break;
    case STEP_CALL_INDIRECT:
        pt_encode_indirect_call(e, next, to, now);
        note(t, "call", from, to, sp);
        break;
    case STEP_RETURN:
        pt_encode_return(e, to, now);
        note(t, "return", from, to, sp);
        break;
    case STEP_SYSCALL:
        end_by_branch(t, "syscall", from, to, sp);
        break;
    case STEP_TRAP:
        end_by_branch(t, "trap", from, to, sp);
        break;
    case STEP_PLAIN:
    case STEP_BAD:
        break;
    }
}

/* Some steps cover two instructions: the trap behind CPUID in a virtual machine comes one late, so does
 * the one behind a load of SS, and an instruction with a uprobe that the kernel emulates is not trapped
 * at all. True when a second instruction explains where the thread is. */
static bool report_two(struct step_thread *t, uint64_t from, const struct step_insn *insn, uint64_t to,
                       uint64_t sp)
{
    uint64_t next = from + insn->len, seconds[2];
    size_t n = 0;
    if (insn->kind == STEP_PLAIN || insn->kind == STEP_CONDITIONAL)
        seconds[n++] = next;
    if (insn->kind == STEP_JUMP || insn->kind == STEP_CALL || insn->kind == STEP_CONDITIONAL)
        seconds[n++] = insn->target;
    for (size_t i = 0; i < n; i++) {
        uint8_t code[STEP_INSN_MAX];
        struct step_insn late = decode_at(t, seconds[i], code);
        if (!can_follow(&late, seconds[i], to))
            continue;
        report(t, from, insn, seconds[i], sp);
        step_thread_begin(t, seconds[i]);
        report(t, seconds[i], &late, to, sp);
        return true;
    }
    return false;
}

void step_thread_executed(struct step_thread *t, uint64_t from, const struct step_insn *insn,
                          uint64_t to, uint64_t sp)
{
    if (can_follow(insn, from, to)) {
        report(t, from, insn, to, sp);
        return;
    }
    if (insn->repeats && to == from)
        return; /* one iteration: it counts, as one instruction, when it is through */
    if (report_two(t, from, insn, to, sp))
        return;
    end_here(t, from); /* flow that the code does not explain: a break, nothing invented */
    ++*t->opt.clock;
    t->instructions++;
}

void step_thread_interrupted(struct step_thread *t, uint64_t ip)
{
    if (!t->tracing)
        return;
    end_here(t, ip);
}

void step_thread_sync(struct step_thread *t)
{
    pt_encode_flush(t->encoder, *t->opt.clock);
}

void step_thread_finish(struct step_thread *t, uint64_t ip)
{
    if (t->tracing)
        end_here(t, ip);
    pt_encode_flush(t->encoder, *t->opt.clock);
    if (t->opt.truth && !t->truth_errno && fflush(t->opt.truth) != 0)
        t->truth_errno = errno;
}

uint64_t step_thread_instructions(const struct step_thread *t)
{
    return t->instructions;
}

const uint8_t *step_thread_packets(const struct step_thread *t, size_t *len, uint64_t *stream_offset)
{
    *len = t->bytes.len;
    *stream_offset = t->dropped;
    return t->bytes.data;
}

int step_thread_status(const struct step_thread *t, struct err *err)
{
    if (t->no_memory)
        return err_set(err, MTUI_E_NOMEM, "no memory for the trace of thread %d: use a smaller ring",
                       (int)t->tid);
    if (t->truth_errno)
        return err_errno(err, t->truth_errno, "the truth (--truth) cannot be written whole");
    if (t->unread >= UNREAD_MAX)
        return err_set(err, MTUI_E_IO, "the code that thread %d executes cannot be read", (int)t->tid);
    return pt_encode_status(t->encoder, err);
}
