#include "decode/image/unwind.h"

#include <asm/perf_regs.h>
#include <linux/perf_event.h>
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "decode/image/sym_module.h"

#define KEPT 8           /* address spaces whose call frame information is kept at once */
#define MAX_MODULES 512  /* files of one address space, each with a descriptor */
#define DWARF_REGS 17
#define DWARF_PC 16

struct space {
    Dwfl *dwfl;
    struct unwinder *unwinder;
    uint64_t generation, used; /* used: when, for eviction */
};

struct unwinder {
    const struct addrspaces *as;
    struct symbolizer *symbols;
    struct space spaces[KEPT];
    uint64_t clock;
    /* the unwinding in progress */
    const struct perf_record *rec;
    uint64_t sp;
    uint64_t *pcs;
    bool *calls;
    size_t n, max;
};

/* ---- What libdw asks for ---- */

/* The number in perf's list of registers for each number of DWARF's. */
static const uint8_t perf_reg[DWARF_REGS] = {
    PERF_REG_X86_AX, PERF_REG_X86_DX, PERF_REG_X86_CX, PERF_REG_X86_BX, PERF_REG_X86_SI,
    PERF_REG_X86_DI, PERF_REG_X86_BP, PERF_REG_X86_SP, PERF_REG_X86_R8, PERF_REG_X86_R9,
    PERF_REG_X86_R10, PERF_REG_X86_R11, PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14,
    PERF_REG_X86_R15, PERF_REG_X86_IP};

static bool read_reg(const struct perf_record *rec, unsigned reg, uint64_t *value)
{
    uint64_t mask = rec->u.sample.regs_mask;
    if (!rec->u.sample.regs || !(mask >> reg & 1))
        return false;
    *value = rec->u.sample.regs[__builtin_popcountll(mask & ((1ull << reg) - 1))];
    return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
    const struct space *space = arg;
    Dwarf_Word regs[DWARF_REGS];
    for (unsigned i = 0; i < DWARF_REGS; i++) {
        uint64_t value = 0;
        read_reg(space->unwinder->rec, perf_reg[i], &value);
        regs[i] = value;
    }
    return dwfl_thread_state_registers(thread, 0, DWARF_REGS, regs);
}

/* Only the copied part of the stack is there. */
static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *arg)
{
    (void)dwfl;
    const struct unwinder *u = ((const struct space *)arg)->unwinder;
    uint64_t at = address - u->sp;
    size_t len = u->rec->u.sample.stack_len;
    if (!u->rec->u.sample.stack || address < u->sp || at >= len || len - at < sizeof *result)
        return false;
    memcpy(result, u->rec->u.sample.stack + at, sizeof *result);
    return true;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
    if (*thread_arg)
        return 0;
    *thread_arg = arg;
    return dwfl_pid(dwfl);
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
    (void)dwfl;
    (void)tid;
    *thread_arg = arg;
    return true;
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
    .next_thread = next_thread,
    .get_thread = get_thread,
    .memory_read = read_memory,
    .set_initial_registers = set_registers,
};

/* The call frame information that counts is in the file itself; never look elsewhere, least of all on
 * the network. */
static int no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                        const char *file, const char *link, GElf_Word crc, char **found)
{
    (void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)found;
    return -1;
}

static const Dwfl_Callbacks dwfl_callbacks = {
    .find_debuginfo = no_debuginfo,
    .section_address = dwfl_offline_section_address,
};

/* ---- Address spaces ---- */

static bool report_module(Dwfl *dwfl, struct unwinder *u, const struct addrspace_map *map)
{
    const struct sym_module *m = symbolizer_module(u->symbols, map);
    uint64_t vaddr;
    if (!m || !sym_module_vaddr(m, map->pgoff, &vaddr))
        return false;
    uint64_t bias = map->start - vaddr;
    if (dwfl_addrmodule(dwfl, map->start)) /* another executable mapping of the same file */
        return true;
    int fd = sym_module_fd(m);
    if (fd < 0)
        return false;
    if (dwfl_report_elf(dwfl, sym_module_source(m), sym_module_source(m), fd, bias, true))
        return true;
    close(fd);
    return false;
}

static bool build_space(struct unwinder *u, struct space *space, pid_t pid, uint64_t generation)
{
    size_t n, reported = 0;
    const struct addrspace_map *maps = addrspaces_maps(u->as, pid, &n);
    space->dwfl = dwfl_begin(&dwfl_callbacks);
    space->unwinder = u;
    space->generation = generation;
    if (!space->dwfl)
        return false;
    dwfl_report_begin(space->dwfl);
    for (size_t i = 0; i < n && reported < MAX_MODULES; i++)
        if (maps[i].prot & PROT_EXEC)
            reported += report_module(space->dwfl, u, &maps[i]);
    dwfl_report_end(space->dwfl, NULL, NULL);
    return reported && dwfl_attach_state(space->dwfl, NULL, pid, &thread_callbacks, space);
}

static void drop_space(struct space *space)
{
    if (space->dwfl)
        dwfl_end(space->dwfl);
    *space = (struct space){0};
}

static struct space *find_space(struct unwinder *u, pid_t pid)
{
    uint64_t generation = addrspaces_generation(u->as, pid);
    struct space *oldest = &u->spaces[0];
    if (generation == 0)
        return NULL;
    for (size_t i = 0; i < KEPT; i++) {
        struct space *s = &u->spaces[i];
        if (s->generation == generation) {
            s->used = ++u->clock;
            return s;
        }
        if (s->used < oldest->used)
            oldest = s;
    }
    drop_space(oldest);
    bool ok = build_space(u, oldest, pid, generation);
    if (!ok && oldest->dwfl) { /* remembered: nothing to unwind with */
        dwfl_end(oldest->dwfl);
        oldest->dwfl = NULL;
    }
    oldest->used = ++u->clock;
    return oldest;
}

/* ---- Unwinding ---- */

static int take_frame(Dwfl_Frame *frame, void *arg)
{
    struct unwinder *u = arg;
    Dwarf_Addr pc;
    bool activation;
    if (!dwfl_frame_pc(frame, &pc, &activation))
        return DWARF_CB_ABORT;
    u->pcs[u->n] = pc;
    u->calls[u->n] = !activation;
    return ++u->n < u->max ? DWARF_CB_OK : DWARF_CB_ABORT;
}

struct unwinder *unwinder_new(const struct addrspaces *as, struct symbolizer *symbols)
{
    struct unwinder *u = xcalloc(1, sizeof *u);
    u->as = as;
    u->symbols = symbols;
    return u;
}

void unwinder_free(struct unwinder *u)
{
    if (!u)
        return;
    for (size_t i = 0; i < KEPT; i++)
        drop_space(&u->spaces[i]);
    free(u);
}

size_t unwinder_unwind(struct unwinder *u, const struct perf_record *rec, uint64_t *pcs, bool *calls,
                       size_t max, bool *complete)
{
    uint64_t ip;
    *complete = false;
    if (rec->u.sample.regs_abi != PERF_SAMPLE_REGS_ABI_64 || rec->u.sample.stack_len == 0 || max == 0 ||
        !read_reg(rec, PERF_REG_X86_SP, &u->sp) || !read_reg(rec, PERF_REG_X86_IP, &ip))
        return 0;
    u->rec = rec;
    u->pcs = pcs;
    u->calls = calls;
    u->n = 0;
    u->max = max;
    struct space *space = find_space(u, rec->pid);
    if (space && space->dwfl)
        *complete = dwfl_getthread_frames(space->dwfl, dwfl_pid(space->dwfl), take_frame, u) == 0;
    u->rec = NULL;
    if (u->n == 0) { /* at least where it was */
        pcs[0] = ip;
        calls[0] = false;
        u->n = 1;
    }
    return u->n;
}
