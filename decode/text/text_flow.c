#include "decode/text/text_flow.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/err.h"
#include "core/base/vec.h"
#include "decode/trace/call_sites.h"
#include "core/base/hash64.h"
#include "decode/pt/pt_stack.h"
#include "decode/text/text_branch.h"
#include "decode/text/text_names.h"

#define BATCH_MOST ((size_t)1 << 20) /* events between two timestamps; more are not spread */

enum flow_state {
    FLOW_NEW, /* nothing known yet, or the flow was lost */
    FLOW_OFF,
    FLOW_ON
};

struct process {
    struct call_sites *sites;
};

struct thread {
    pid_t pid, tid;
    size_t index; /* in the builder */
    struct pt_stack *stack;
    char *comm;
    int cpu;
    enum flow_state state;
    bool in_tx;
    fn_id at; /* FLOW_ON: the function that the last line led into */
    VEC(struct flow_event) batch; /* of one time */
    size_t consumers;             /* of the batch: those between which time passes */
    uint64_t batch_ns, last_ns;   /* of the batch; of the last line */
    bool lost; /* a gap is open */
    struct gap gap;
};

struct text_flow {
    struct trace_builder *b;
    struct functions *functions;
    struct text_names *names;
    struct text_flow_counts counts;
    VEC(struct thread) threads;
    VEC(struct process) processes;
    struct hash64 thread_of, process_of;
    size_t last_thread; /* most lines are the last one's */
    uint64_t now_ns, mhz;
};

struct text_flow *text_flow_new(struct trace_builder *b, struct functions *functions)
{
    struct text_flow *t = xcalloc(1, sizeof *t);
    t->b = b;
    t->functions = functions;
    t->names = text_names_new(functions);
    return t;
}

static void close_gap(struct text_flow *t, struct thread *th, uint64_t end_ns)
{
    if (!th->lost)
        return;
    th->lost = false;
    th->gap.end_ns = end_ns > th->gap.start_ns ? end_ns : th->gap.start_ns;
    trace_builder_gap(t->b, &th->gap);
    free((void *)(uintptr_t)th->gap.detail);
    th->gap.detail = NULL;
}

void text_flow_free(struct text_flow *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->threads.len; i++) {
        struct thread *th = &t->threads.data[i];
        pt_stack_free(th->stack);
        free(th->comm);
        if (th->lost)
            free((void *)(uintptr_t)th->gap.detail);
        vec_free(&th->batch);
    }
    for (size_t i = 0; i < t->processes.len; i++)
        call_sites_free(t->processes.data[i].sites);
    vec_free(&t->threads);
    vec_free(&t->processes);
    hash64_free(&t->thread_of);
    hash64_free(&t->process_of);
    text_names_free(t->names);
    free(t);
}

const struct text_flow_counts *text_flow_counts(const struct text_flow *t)
{
    return &t->counts;
}

/* ---- threads ---- */

static struct call_sites *sites_of(struct text_flow *t, pid_t pid)
{
    uint32_t i = hash64_get(&t->process_of, (uint32_t)pid);
    if (i != HASH64_NONE)
        return t->processes.data[i].sites;
    struct process p = {call_sites_new()};
    if (hash64_set(&t->process_of, (uint32_t)pid, (uint32_t)t->processes.len) &&
        vec_try_push(&t->processes, p))
        return p.sites;
    call_sites_free(p.sites);
    return NULL;
}

static uint64_t thread_key(pid_t pid, pid_t tid)
{
    return (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
}

/* NULL: memory is short. */
static struct thread *thread_of(struct text_flow *t, pid_t pid, pid_t tid)
{
    struct thread *last = t->threads.len ? &t->threads.data[t->last_thread] : NULL;
    if (last && last->tid == tid && last->pid == pid)
        return last;
    uint32_t i = hash64_get(&t->thread_of, thread_key(pid, tid));
    if (i != HASH64_NONE) {
        t->last_thread = i;
        return &t->threads.data[i];
    }
    struct thread th = {.pid = pid, .tid = tid, .cpu = -1};
    struct call_sites *sites = sites_of(t, pid);
    if (!sites || t->threads.len >= HASH64_NONE ||
        !hash64_set(&t->thread_of, thread_key(pid, tid), (uint32_t)t->threads.len))
        return NULL;
    th.index = trace_builder_thread(t->b, pid, tid);
    th.stack = pt_stack_new(t->b, th.index, t->functions);
    pt_stack_set_sites(th.stack, sites);
    if (!vec_try_push(&t->threads, th)) {
        pt_stack_free(th.stack);
        return NULL;
    }
    t->last_thread = t->threads.len - 1;
    return &t->threads.data[t->last_thread];
}

static int note_comm(struct text_flow *t, struct thread *th, struct perf_text_str comm)
{
    if (!comm.len || (th->comm && perf_text_equals(comm, th->comm)))
        return 0;
    const char *name = text_names_string(t->names, comm);
    if (!name)
        return MTUI_E_NOMEM;
    free(th->comm);
    th->comm = xstrdup(name);
    trace_builder_comm(t->b, th->index, name);
    return 0;
}

static void note_cpu(struct text_flow *t, struct thread *th, const struct perf_text_event *ev)
{
    int before = th->cpu;
    if (ev->cpu < 0 || ev->cpu == before)
        return;
    th->cpu = ev->cpu;
    trace_builder_cpu(t->b, th->index, ev->cpu);
    if (before < 0)
        return;
    char *detail = xasprintf(MIGRATION_DETAIL, before, ev->cpu);
    struct mark m = {t->now_ns, th->tid, MARK_MIGRATION, detail};
    trace_builder_mark(t->b, &m);
    free(detail);
}

/* ---- time ---- */

/* What the batch holds happened between its time and to_ns: every call takes an equal share, returns
 * take none. */
static int flush(struct thread *th, uint64_t to_ns)
{
    uint64_t passed = to_ns > th->batch_ns ? to_ns - th->batch_ns : 0, done = 0;
    size_t left = th->consumers;
    for (size_t i = 0; i < th->batch.len; i++) {
        struct flow_event *e = &th->batch.data[i];
        bool consumes = e->insns;
        e->insns = 0;
        e->time = th->batch_ns + done;
        if (consumes && left)
            done += (passed - done) / left--;
    }
    size_t n = th->batch.len;
    th->batch.len = th->consumers = 0;
    return n ? pt_stack_events(th->stack, th->batch.data, n) : 0;
}

/* Until the batch is flushed, `insns` tells whether time passes behind the event. */
static int add(struct text_flow *t, struct thread *th, struct flow_event e, bool consumes)
{
    int rc = 0;
    if (t->now_ns > th->batch_ns || th->batch.len == BATCH_MOST) {
        rc = flush(th, t->now_ns);
        if (t->now_ns > th->batch_ns)
            th->batch_ns = t->now_ns;
    }
    e.insns = consumes;
    th->consumers += consumes;
    if (rc == 0 && !vec_try_push(&th->batch, e))
        rc = MTUI_E_NOMEM;
    return rc;
}

/* ---- lines ---- */

struct end {
    fn_id fn;
    bool at_start;
};

static bool is_known(const struct text_flow *t, fn_id fn)
{
    return functions_get(t->functions, fn)->kind != FN_UNKNOWN;
}

/* as_start: whether a branch to it comes in at its beginning, where the text has no offsets. */
static int find_end(struct text_flow *t, const struct perf_text_place *p, bool as_start, struct end *out)
{
    struct perf_text_place whole = *p;
    bool part = text_branch_whole(&whole.symbol);
    out->fn = text_names_find(t->names, &whole, &whole + 1);
    if (out->fn == FN_NONE)
        return MTUI_E_NOMEM;
    bool known = is_known(t, out->fn);
    out->at_start = known && !part && (p->has_offset ? p->offset == 0 : as_start);
    t->counts.no_offset += known && !p->has_offset;
    return 0;
}

static int begin_at(struct text_flow *t, struct thread *th, uint64_t addr, struct end at, bool consumes)
{
    struct flow_event e = {.kind = PT_EVENT_BEGIN, .addr = addr, .fn = at.fn, .at_start = at.at_start};
    th->state = FLOW_ON;
    th->at = at.fn;
    return add(t, th, e, consumes);
}

/* The flow is at `from`, whether or not the text says how it came there. */
static int be_at(struct text_flow *t, struct thread *th, const struct pt_branch *b, struct end from)
{
    from.at_start = false;
    if (th->state != FLOW_ON)
        return begin_at(t, th, b->from, from, false);
    if (th->at == from.fn || t->counts.jumps || !is_known(t, th->at) || !is_known(t, from.fn))
        return 0; /* with every jump printed, a function that was not led into was fallen into */
    t->counts.leaps++;
    struct flow_event e = {.kind = PT_EVENT_JUMP, .addr = b->from, .fn = from.fn};
    return add(t, th, e, false);
}

static int end_at(struct text_flow *t, struct thread *th, const struct pt_branch *b)
{
    struct flow_event e = {.kind = PT_EVENT_END, .addr = b->from, .fn = FN_NONE, .how = b->end};
    th->state = FLOW_OFF;
    int rc = add(t, th, e, false);
    return rc ? rc : flush(th, th->batch_ns); /* the time that follows is not this code's */
}

/* What perf marks with "(x)" ran in a transaction: its end shows by the first line without, or by an abort. */
static int follow_tx(struct text_flow *t, struct thread *th, unsigned flags)
{
    bool aborted = flags & PERF_TEXT_ABORT, in_tx = (flags & PERF_TEXT_IN_TX) && !aborted;
    struct flow_event e = {.kind = in_tx ? PT_EVENT_TX_BEGIN : PT_EVENT_TX_COMMIT, .fn = FN_NONE};
    if (th->in_tx == in_tx)
        return 0;
    if (aborted)
        e.kind = PT_EVENT_TX_ABORT;
    th->in_tx = in_tx;
    return add(t, th, e, false);
}

/* A call to the next instruction only reads the program counter. */
static bool is_next(const struct pt_branch *b, struct end from, struct end to)
{
    return b->to - b->from == 5 && from.fn == to.fn && !to.at_start;
}

/* What a branch inside of traced code is to a stack. */
static int go(struct text_flow *t, struct thread *th, const struct pt_branch *b, struct end from,
              struct end to, bool hardware)
{
    struct flow_event e = {.addr = b->to, .fn = to.fn, .at_start = to.at_start};
    fn_id before = th->at; /* not from.fn: what runs may have fallen from one function into the next */
    th->at = to.fn;
    switch ((enum pt_branch_kind)b->kind) {
    case PT_BRANCH_CALL:
        if (is_next(b, from, to))
            return 0;
        e.kind = PT_EVENT_CALL;
        e.addr = b->from;
        t->counts.calls++;
        return add(t, th, e, true);
    case PT_BRANCH_SYSCALL:
    case PT_BRANCH_INTERRUPT:
        e.kind = hardware ? PT_EVENT_INTERRUPT : PT_EVENT_CALL;
        e.addr = b->from;
        e.at_start = true;
        return add(t, th, e, true);
    case PT_BRANCH_RETURN:
    case PT_BRANCH_SYSRET:
    case PT_BRANCH_IRET:
        e.kind = PT_EVENT_RETURN;
        t->counts.returns++;
        e.at_start &= b->kind == PT_BRANCH_RETURN;
        return add(t, th, e, e.at_start); /* to the beginning of one: another function runs */
    case PT_BRANCH_JUMP:
    case PT_BRANCH_COND:
    case PT_BRANCH_ABORT:
        t->counts.jumps++;
        if (before == to.fn && b->kind != PT_BRANCH_ABORT)
            return 0;
        e.kind = PT_EVENT_JUMP;
        e.at_start &= b->kind != PT_BRANCH_ABORT;
        return add(t, th, e, true);
    case PT_BRANCH_BEGIN:
    case PT_BRANCH_END:
    case PT_BRANCH_ERROR:
        break;
    }
    return 0;
}

static int on_branch(struct text_flow *t, struct thread *th, const struct perf_text_event *ev)
{
    bool guessed;
    struct pt_branch b = text_branch(ev, &guessed);
    unsigned kind = b.kind;
    bool in = kind == PT_BRANCH_CALL || kind == PT_BRANCH_JUMP;
    struct end from = {FN_NONE, false}, to = from;
    t->counts.guessed += guessed;
    th->last_ns = t->now_ns;
    close_gap(t, th, t->now_ns);
    if (kind != PT_BRANCH_BEGIN && find_end(t, &ev->u.branch.from, false, &from) < 0)
        return MTUI_E_NOMEM;
    if (kind != PT_BRANCH_END && find_end(t, &ev->u.branch.to, in && from.fn != FN_NONE, &to) < 0)
        return MTUI_E_NOMEM;
    if (kind == PT_BRANCH_BEGIN)
        return begin_at(t, th, b.to, to, th->state != FLOW_OFF);
    int rc = be_at(t, th, &b, from);
    if (rc == 0)
        rc = follow_tx(t, th, ev->u.branch.flags);
    if (rc == 0)
        rc = kind == PT_BRANCH_END ? end_at(t, th, &b)
                                   : go(t, th, &b, from, to, ev->u.branch.flags & PERF_TEXT_HW_INT);
    return rc;
}

/* ---- errors ---- */

/* "Overflow packet, at 7f5948676e18" */
static char *describe(const struct perf_text_event *ev)
{
    static const char before[] = " code ";
    struct perf_text_str m = ev->u.error.message;
    const char *end = m.s + m.len, *code = memmem(m.s, m.len, before, sizeof before - 1);
    const char *why = code ? memchr(code, ':', (size_t)(end - code)) : NULL;
    if (!why)
        return xstrndup(m.s, m.len);
    why += why + 1 < end && why[1] == ' ' ? 2 : 1;
    return ev->u.error.ip ? xasprintf("%.*s, at %llx", (int)(end - why), why,
                                      (unsigned long long)ev->u.error.ip)
                          : xstrndup(why, (size_t)(end - why));
}

static int lose(struct text_flow *t, struct thread *th, const struct perf_text_event *ev)
{
    struct flow_event e = {.kind = PT_EVENT_LOST, .fn = FN_NONE};
    e.how = (uint8_t)text_branch_cause(ev);
    close_gap(t, th, t->now_ns);
    int rc = add(t, th, e, false);
    if (rc == 0)
        rc = flush(th, th->batch_ns);
    th->state = FLOW_NEW;
    th->in_tx = false;
    if (rc)
        return rc;
    th->lost = true;
    th->gap = (struct gap){.tid = th->tid,
                           .start_ns = th->batch_ns,
                           .cause = text_branch_cause(ev),
                           .detail = describe(ev)};
    return 0;
}

/* The thread is not always named: it is the one that ran on that CPU, or it may be any. */
static int on_error(struct text_flow *t, const struct perf_text_event *ev)
{
    int rc = 0;
    t->counts.losses++;
    if (ev->tid >= 0) {
        struct thread *th = thread_of(t, ev->pid, ev->tid);
        return th ? lose(t, th, ev) : MTUI_E_NOMEM;
    }
    for (size_t i = 0; rc == 0 && i < t->threads.len; i++) {
        struct thread *th = &t->threads.data[i];
        if (ev->cpu < 0 || th->cpu < 0 || th->cpu == ev->cpu)
            rc = lose(t, th, ev);
    }
    return rc;
}

/* Of the frequency, which is told again and again, only a change is of interest. */
static void on_packet(struct text_flow *t, const struct perf_text_event *ev)
{
    uint64_t value = ev->u.packet.value, before = t->mhz;
    bool ptwrite = ev->u.packet.kind == PERF_TEXT_PTWRITE;
    if (ev->u.packet.kind == PERF_TEXT_NO_VALUE)
        return;
    if (!ptwrite && (t->mhz = value, !before || before == value))
        return;
    char *detail = ptwrite ? xasprintf("0x%llx", (unsigned long long)value)
                           : xasprintf("%llu MHz", (unsigned long long)value);
    struct mark m = {t->now_ns, ev->tid > 0 ? ev->tid : 0, ptwrite ? MARK_PTWRITE : MARK_FREQUENCY, detail};
    trace_builder_mark(t->b, &m);
    free(detail);
}

int text_flow_event(void *arg, const struct perf_text_event *ev)
{
    struct text_flow *t = arg;
    if (ev->kind != PERF_TEXT_BRANCH && ev->kind != PERF_TEXT_PACKET && ev->kind != PERF_TEXT_ERROR)
        return 0;
    if (ev->has_time)
        t->now_ns = ev->time_ns;
    else if (ev->kind == PERF_TEXT_BRANCH && t->counts.no_time++ == t->now_ns)
        t->now_ns++; /* none before had one either */
    if (ev->kind == PERF_TEXT_ERROR)
        return on_error(t, ev);
    if (ev->kind == PERF_TEXT_PACKET) {
        on_packet(t, ev);
        return 0;
    }
    struct thread *th = thread_of(t, ev->pid, ev->tid);
    if (!th || note_comm(t, th, ev->comm) < 0)
        return MTUI_E_NOMEM;
    note_cpu(t, th, ev);
    return on_branch(t, th, ev);
}

int text_flow_end(struct text_flow *t)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < t->threads.len; i++) {
        struct thread *th = &t->threads.data[i];
        close_gap(t, th, th->batch_ns);
        rc = flush(th, th->state == FLOW_ON ? th->last_ns : th->batch_ns);
        if (th->state == FLOW_ON)
            trace_builder_pass(t->b, th->index, th->last_ns);
    }
    return rc ? MTUI_E_NOMEM : 0;
}
