#include "core/doctor/capability.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/doctor/capability_probe.h"
#include "core/base/fmt.h"
#include "core/machine/perf_event.h"
#include "core/machine/proc_stat.h"

static const char *const names[CAPABILITIES] = {
    [CAP_PERF] = "perf",
    [CAP_CONTROL] = "control fd",
    [CAP_KERNEL] = "kernel",
    [CAP_INTEL_PT] = "intel_pt",
    [CAP_CYCLES] = "cycle counter",
    [CAP_PARANOID] = "perf_event_paranoid",
    [CAP_OTHERS] = "other users' processes",
    [CAP_MLOCK] = "locked memory",
    [CAP_KPTR] = "kernel symbols",
    [CAP_YAMA] = "ptrace",
    [CAP_PRIVILEGES] = "privileges",
    [CAP_KCORE] = "kcore",
    [CAP_HWBREAK] = "hardware breakpoints",
    [CAP_UPROBE] = "uprobes",
    [CAP_STEP] = "single-stepping",
};

struct capability_paths capability_paths_default(void)
{
    const char *perf = getenv("MTUI_PERF");
    return (struct capability_paths){"/proc", "/sys", perf && *perf ? perf : "perf"};
}

void capability_say(struct capability *c, bool present, const char *value, const char *reason,
                    const char *remedy)
{
    c->present = present;
    snprintf(c->value, sizeof c->value, "%s", value);
    snprintf(c->reason, sizeof c->reason, "%s", reason);
    snprintf(c->remedy, sizeof c->remedy, "%s", remedy);
}

/* A number in a file of /proc/sys; false when it is not there. */
static bool read_sysctl(const struct capability_paths *paths, const char *file, long *value)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/sys/%s", paths->proc, file);
    char *text = proc_read_file(path, 256, NULL);
    if (!text)
        return false;
    char *end;
    *value = strtol(text, &end, 10);
    bool ok = end != text;
    free(text);
    return ok;
}

static uint64_t effective_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &head, data) != 0)
        return 0;
    return data[0].effective | (uint64_t)data[1].effective << 32;
}

static bool has_capability(int cap)
{
    return effective_capabilities() >> cap & 1;
}

static void find_kernel(struct capabilities *c)
{
    struct utsname u;
    uname(&u);
    capability_say(&c->line[CAP_KERNEL], true, u.release, "", "");
}

static void find_intel_pt(const struct capability_paths *paths, struct capabilities *c)
{
    struct capability *line = &c->line[CAP_INTEL_PT];
    struct pmu_intel_pt *pt = &c->intel_pt;
    pmu_read_intel_pt(paths->sys, pt);
    if (!pt->present) {
        capability_say(line, false, "no PMU",
                       "the kernel offers no intel_pt: not an Intel processor of 2015 or later, or a "
                       "virtual machine that does not pass it on",
                       "");
        return;
    }
    char value[192];
    snprintf(value, sizeof value,
             "psb_cyc %s, mtc %s, ptwrite %s, ip filter %u ranges, snapshot %s%s%s",
             pt->psb_cyc ? "yes" : "no", pt->mtc ? "yes" : "no", pt->ptwrite ? "yes" : "no",
             pt->address_ranges, pt->snapshot ? "yes" : "no", pt->cpus[0] ? ", CPUs " : "",
             pt->cpus);
    capability_say(line, true, value, "", "");
}

static void find_cycles(struct capabilities *c)
{
    struct capability *line = &c->line[CAP_CYCLES];
    int why;
    c->cycles_count = pmu_cycles_count(&why);
    if (c->cycles_count) {
        capability_say(line, true, "counts", "", "");
        return;
    }
    char reason[160];
    if (why == EACCES || why == EPERM)
        snprintf(reason, sizeof reason, "the kernel refuses it: %s", strerror(why));
    else if (why)
        snprintf(reason, sizeof reason,
                 "no hardware counter here (%s): `sample` uses the timer event cpu-clock",
                 strerror(why));
    else
        snprintf(reason, sizeof reason,
                 "it opens and stays at 0: `sample` uses the timer event cpu-clock");
    capability_say(line, false, why ? "none" : "does not count", reason,
                   why == EACCES || why == EPERM ? "sysctl kernel.perf_event_paranoid=1" : "");
}

static void find_paranoid(const struct capability_paths *paths, struct capabilities *c)
{
    struct capability *line = &c->line[CAP_PARANOID];
    long v;
    if (!read_sysctl(paths, "kernel/perf_event_paranoid", &v)) {
        c->paranoid = -2;
        capability_say(line, false, "unknown", "the kernel has no perf events",
                       "a kernel with CONFIG_PERF_EVENTS");
        return;
    }
    c->paranoid = (int)v;
    char value[32];
    snprintf(value, sizeof value, "%ld", v);
    if (has_capability(CAP_PERFMON) || has_capability(CAP_SYS_ADMIN))
        capability_say(line, true, value, "this user's privileges lift it", "");
    else if (v >= 3 && perf_event_is_allowed())
        capability_say(line, true, value,
                       "this kernel does not know level 3: own processes, user code only, no uprobes",
                       "sysctl kernel.perf_event_paranoid=1 (kernel code), root or CAP_SYS_ADMIN (uprobes)");
    else if (v >= 3)
        capability_say(line, false, value,
                       "level 3 and above (set by some distributions) forbids perf to ordinary users",
                       "sysctl kernel.perf_event_paranoid=1");
    else if (v == 2)
        capability_say(line, true, value, "own processes, user code only: no kernel, no uprobes",
                       "sysctl kernel.perf_event_paranoid=1 (kernel code), root or CAP_SYS_ADMIN (uprobes)");
    else
        capability_say(line, true, value, "own processes, kernel code included", "");
}

static void find_others(struct capabilities *c)
{
    bool ok = (has_capability(CAP_PERFMON) || has_capability(CAP_SYS_ADMIN)) &&
              has_capability(CAP_SYS_PTRACE);
    capability_say(&c->line[CAP_OTHERS], ok, ok ? "yes" : "no",
                   ok ? "" : "needs CAP_PERFMON and CAP_SYS_PTRACE, or root",
                   ok ? "" : "sudo mtui, or setcap cap_perfmon,cap_sys_ptrace+ep on mtui and perf");
}

static void find_mlock(const struct capability_paths *paths, struct capabilities *c)
{
    struct capability *line = &c->line[CAP_MLOCK];
    long cpus = sysconf(_SC_NPROCESSORS_ONLN), kb = 0;
    struct rlimit rl = {0};
    c->cpus_online = cpus > 0 ? (unsigned)cpus : 1;
    getrlimit(RLIMIT_MEMLOCK, &rl);
    bool known = read_sysctl(paths, "kernel/perf_event_mlock_kb", &kb) && kb >= 0;
    if (has_capability(CAP_IPC_LOCK) || rl.rlim_cur == RLIM_INFINITY || c->paranoid == -1) {
        c->mlock_bytes = UINT64_MAX;
        capability_say(line, true, "no limit",
                       has_capability(CAP_IPC_LOCK) ? "CAP_IPC_LOCK lifts it" : "", "");
        return;
    }
    c->mlock_bytes = (known ? (uint64_t)kb * 1024 * c->cpus_online : 0) + rl.rlim_cur;
    char sys_text[FMT_MAX], rl_text[FMT_MAX], sum[FMT_MAX], value[128];
    snprintf(value, sizeof value, "%s in all: %s (perf_event_mlock_kb) x %u CPUs + %s (ulimit -l)",
             fmt_size(sum, c->mlock_bytes), fmt_size(sys_text, known ? (uint64_t)kb * 1024 : 0),
             c->cpus_online, fmt_size(rl_text, rl.rlim_cur));
    capability_say(line, true, value, "it bounds the rings of all recordings of this user",
                   "sysctl kernel.perf_event_mlock_kb=65536, or ulimit -l unlimited");
}

static void find_kernel_symbols(const struct capability_paths *paths, struct capabilities *c)
{
    long v = 0;
    char value[48];
    bool known = read_sysctl(paths, "kernel/kptr_restrict", &v);
    bool shown = known && (v == 0 || (v == 1 && has_capability(CAP_SYSLOG)));
    snprintf(value, sizeof value, known ? "kptr_restrict %ld" : "unknown", v);
    capability_say(&c->line[CAP_KPTR], shown, value,
                   shown ? "" : "kernel addresses are hidden: kernel code stays without names",
                   shown ? "" : "sysctl kernel.kptr_restrict=0");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/kcore", paths->proc);
    bool readable = access(path, R_OK) == 0;
    capability_say(&c->line[CAP_KCORE], readable, readable ? "readable" : "not readable",
                   readable ? "" : errno == ENOENT ? "the kernel has no /proc/kcore: no kernel code"
                                                   : "only root may read kernel code",
                   readable || errno == ENOENT ? "" : "sudo mtui");
}

static void find_yama(const struct capability_paths *paths, struct capabilities *c)
{
    struct capability *line = &c->line[CAP_YAMA];
    long v;
    if (!read_sysctl(paths, "kernel/yama/ptrace_scope", &v)) {
        capability_say(line, true, "no yama", "", "");
        return;
    }
    char value[32];
    snprintf(value, sizeof value, "yama scope %ld", v);
    bool ok = v == 0 || (v < 3 && has_capability(CAP_SYS_PTRACE));
    capability_say(line, ok, value,
                   ok       ? ""
                   : v == 1 ? "only a program's own children may be traced by ptrace"
                            : "ptrace is for administrators only, or off",
                   ok ? "" : v < 3 ? "sysctl kernel.yama.ptrace_scope=0, or sudo mtui" : "reboot");
}

static void find_privileges(struct capabilities *c)
{
    static const struct {
        int bit;
        const char *name;
    } wanted[] = {{CAP_PERFMON, "perfmon"},
                  {CAP_SYS_PTRACE, "sys_ptrace"},
                  {CAP_SYS_ADMIN, "sys_admin"},
                  {CAP_IPC_LOCK, "ipc_lock"},
                  {CAP_SYSLOG, "syslog"}};
    char value[128] = "", *at = value;
    size_t left = sizeof value;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (!has_capability(wanted[i].bit))
            continue;
        int n = snprintf(at, left, "%s%s", at == value ? "" : " ", wanted[i].name);
        at += n;
        left -= (size_t)n;
    }
    bool any = value[0] != '\0';
    capability_say(&c->line[CAP_PRIVILEGES], any, any ? value : "none",
                   any ? "" : "own processes only", any ? "" : "sudo mtui");
}

void capability_probe(const struct capability_paths *paths, struct capabilities *out)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < CAPABILITIES; i++)
        out->line[i].name = names[i];
    find_kernel(out);
    find_intel_pt(paths, out);
    find_cycles(out);
    find_paranoid(paths, out);
    find_others(out);
    find_mlock(paths, out);
    find_kernel_symbols(paths, out);
    find_yama(paths, out);
    find_privileges(out);
    capability_try_perf(paths, out);
    capability_try_hwbreak(out);
    capability_try_uprobe(out);
    capability_try_step(out);
}
