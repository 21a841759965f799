#include "core/machine/perf_event.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* include/linux/errno.h of the kernel; leaks out of uprobes for instructions they cannot step. */
#define ENOTSUPP_KERNEL 524

int perf_event_open(const struct perf_event_attr *attr, pid_t tid, int cpu)
{
    return (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int read_long(const char *path, long *value)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    int n = fscanf(f, "%ld", value);
    (void)fclose(f);
    return n == 1 ? 0 : -1;
}

int perf_event_pmu_type(const char *sys_root, const char *name, uint32_t *type, struct err *err)
{
    char path[512];
    long value = 0;
    (void)snprintf(path, sizeof path, "%s/bus/event_source/devices/%s/type",
                   sys_root ? sys_root : "/sys", name);
    if (read_long(path, &value) != 0 || value < 0 || value > UINT32_MAX)
        return err_set(err, MTUI_E_NOTSUP, "the kernel has no %s PMU (%s is missing)", name, path);
    *type = (uint32_t)value;
    return 0;
}

void perf_event_dummy_attr(struct perf_event_attr *attr)
{
    memset(attr, 0, sizeof *attr);
    attr->size = sizeof *attr;
    attr->type = PERF_TYPE_SOFTWARE;
    attr->config = PERF_COUNT_SW_DUMMY;
    attr->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
    attr->sample_id_all = 1;
    attr->exclude_kernel = 1; /* allowed at paranoid level 2 */
    attr->exclude_hv = 1;
    attr->task = 1;
    attr->comm = 1;
    attr->comm_exec = 1;
    attr->mmap = 1; /* executable mappings only */
    attr->mmap2 = 1;
    attr->watermark = 1;
    attr->wakeup_watermark = 1;
}

void perf_event_sample_hits(struct perf_event_attr *attr)
{
    attr->sample_period = 1;
    attr->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                        PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    attr->sample_regs_user = 1u << PERF_REG_X86_AX | 1u << PERF_REG_X86_CX | 1u << PERF_REG_X86_DX |
                             1u << PERF_REG_X86_SI | 1u << PERF_REG_X86_DI | 1u << PERF_REG_X86_SP |
                             1u << PERF_REG_X86_FLAGS | 1u << PERF_REG_X86_R8 |
                             1u << PERF_REG_X86_R9;
    attr->sample_stack_user = sizeof(uint64_t);
    attr->wakeup_events = 1;
}

/* PERF_SAMPLE_STACK_USER: {size; data[size]; dyn_size}, or a size of 0. */
static uint64_t parse_top(const unsigned char *p, const unsigned char *end)
{
    uint64_t v[3] = {0};
    if ((size_t)(end - p) < sizeof v)
        return 0;
    memcpy(v, p, sizeof v);
    return v[0] == sizeof v[1] && v[2] == sizeof v[1] ? v[1] : 0;
}

bool perf_hit_parse(const struct perf_event_header *h, bool with_raw, struct perf_hit *out)
{
    const unsigned char *p = (const unsigned char *)(h + 1);
    const unsigned char *end = (const unsigned char *)h + h->size;
    struct perf_hit hit = {0};
    uint64_t abi = 0;
    if (end - p < 32 + (with_raw ? 16 : 0) + 8)
        return false;
    memcpy(&hit.id, p, 8);
    memcpy(&hit.ip, p + 8, 8);
    memcpy(&hit.pid, p + 16, 4);
    memcpy(&hit.tid, p + 20, 4);
    memcpy(&hit.time_ns, p + 24, 8);
    p += 32;
    if (with_raw) {
        uint32_t size = 0;
        memcpy(&size, p, 4);
        if (size < 8 || size > (size_t)(end - p) - 4 - 8)
            return false;
        memcpy(&hit.id, p + 4, 8);
        p += 4 + size;
    }
    memcpy(&abi, p, 8);
    if (abi == PERF_SAMPLE_REGS_ABI_64) {
        if ((size_t)(end - p) < 8 + sizeof hit.regs)
            return false;
        memcpy(hit.regs, p + 8, sizeof hit.regs);
        hit.top = parse_top(p + 8 + sizeof hit.regs, end);
    }
    *out = hit;
    return true;
}

bool perf_record_id_parse(const struct perf_event_header *h, struct perf_record_id *out)
{
    if (h->size < sizeof *h + sizeof *out)
        return false;
    memcpy(out, (const unsigned char *)h + h->size - sizeof *out, sizeof *out);
    return true;
}

/* ---- Refusals ---- */

/* What decides about perf_event_open, of this process; -1: not known. */
struct standing {
    long paranoid;
    bool perfmon;     /* CAP_PERFMON or CAP_SYS_ADMIN are in effect */
    bool admin;       /* CAP_SYS_ADMIN is */
    bool other_users; /* CAP_SYS_PTRACE is */
    long seccomp;     /* 2: a filter is in force (proc_pid_status(5)) */
};

static struct standing read_standing(const char *proc_root)
{
    struct standing st = {.paranoid = -1, .seccomp = -1};
    char path[512], line[256];
    unsigned long long caps = 0;
    (void)snprintf(path, sizeof path, "%s/sys/kernel/perf_event_paranoid", proc_root);
    if (read_long(path, &st.paranoid) != 0)
        st.paranoid = -1;
    (void)snprintf(path, sizeof path, "%s/self/status", proc_root);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        (void)sscanf(line, "CapEff: %llx", &caps);
        (void)sscanf(line, "Seccomp: %ld", &st.seccomp);
    }
    if (f)
        (void)fclose(f);
    st.admin = caps >> CAP_SYS_ADMIN & 1;
    st.perfmon = st.admin || caps >> CAP_PERFMON & 1;
    st.other_users = caps >> CAP_SYS_PTRACE & 1;
    return st;
}

bool perf_event_is_allowed(void)
{
    struct perf_event_attr attr;
    perf_event_dummy_attr(&attr);
    int fd = perf_event_open(&attr, 0, -1);
    if (fd < 0)
        return false;
    (void)close(fd);
    return true;
}

bool perf_event_is_filtered(void)
{
    if (perf_event_is_allowed())
        return false;
    int why = errno;
    struct standing st = read_standing("/proc");
    return st.seccomp == 2 && (why == ENOSYS || st.perfmon || st.paranoid <= 2);
}

/* The one that stands in the way: the level for those without the capability, else what can refuse
 * those that have it. */
static int explain_refusal(struct err *err, int errno_value, const char *proc_root,
                           const char *what)
{
    struct standing st = read_standing(proc_root ? proc_root : "/proc");
    const char *why = strerror(errno_value);
    /* Not every kernel has those levels: asked, where it can be. */
    if (!st.perfmon && st.paranoid >= 3 && (proc_root || !perf_event_is_allowed()))
        return err_set(
            err, MTUI_E_PERM,
            "%s: the kernel refuses (%s): perf_event_paranoid is %ld, which forbids perf events to "
            "ordinary users; sysctl kernel.perf_event_paranoid=1, or run as root or with "
            "CAP_PERFMON",
            what, why, st.paranoid);
    if (!st.perfmon && st.seccomp == 2)
        return err_set(err, MTUI_E_PERM,
                       "%s: the kernel refuses (%s): this process has no CAP_PERFMON in effect, "
                       "and a seccomp filter "
                       "is in force (containers: allow perf_event_open and add CAP_PERFMON)",
                       what, why);
    if (!st.perfmon)
        return err_set(
            err, MTUI_E_PERM,
            "%s: the kernel refuses (%s): this process has no CAP_PERFMON in effect "
            "(perf_event_paranoid is "
            "%ld); run as root or with CAP_PERFMON, and CAP_SYS_PTRACE for other users' processes",
            what, why, st.paranoid);
    if (st.seccomp == 2)
        return err_set(err, MTUI_E_PERM,
                       "%s: refused (%s) although CAP_PERFMON is in effect: a seccomp filter is in "
                       "force; allow "
                       "perf_event_open in the container's profile",
                       what, why);
    if (!st.admin || !st.other_users)
        return err_set(err, MTUI_E_PERM,
                       "%s: refused (%s) although CAP_PERFMON is in effect: some kernels want "
                       "CAP_SYS_ADMIN for uprobes, "
                       "and other users' processes need CAP_SYS_PTRACE",
                       what, why);
    return err_set(err, MTUI_E_PERM,
                   "%s: refused (%s) although the capabilities are in effect: a security module "
                   "(SELinux, lockdown) "
                   "stands in the way",
                   what, why);
}

int perf_event_explain(struct err *err, int errno_value, const char *proc_root, const char *what)
{
    switch (errno_value) {
    case ESRCH:
        return err_set(err, MTUI_E_GONE, "%s: the thread has ended", what);
    case EMFILE:
    case ENFILE:
        return err_set(err, MTUI_E_LIMIT,
                       "%s: no file descriptor is left; raise the limit (ulimit -n) or choose "
                       "fewer triggers",
                       what);
    case ENOSPC:
        return err_set(err, MTUI_E_LIMIT,
                       "%s: all hardware breakpoint slots of the thread are in use (a debugger may "
                       "hold some)",
                       what);
    case ENOSYS:
        return err_set(err, MTUI_E_NOTSUP,
                       "%s: perf_event_open does not exist here; the kernel has no perf support or "
                       "a seccomp filter hides it (containers: allow perf_event_open)",
                       what);
    case EPERM:
    case EACCES:
        return explain_refusal(err, errno_value, proc_root, what);
    case ENOTSUPP_KERNEL:
        return err_set(err, MTUI_E_NOTSUP,
                       "%s: the kernel cannot put a uprobe on the instruction there (one with a "
                       "lock prefix, say); choose another place",
                       what);
    case EOPNOTSUPP:
    case EINVAL:
        return err_set(err, MTUI_E_NOTSUP, "%s: the kernel cannot probe there (%s)", what,
                       strerror(errno_value));
    default:
        return err_errno(err, errno_value, "%s", what);
    }
}
