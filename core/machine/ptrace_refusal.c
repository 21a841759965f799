#include "core/machine/ptrace_refusal.h"

#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define YAMA_ADMIN 2 /* from here on no user without the capability may attach; 3: nobody */

struct standing {
    unsigned uid; /* the effective one */
    uint64_t permitted, effective;
    int seccomp, tracer;
    bool known;
};

static struct standing read_standing(const char *root, const char *who)
{
    struct standing s = {0};
    char path[512], line[256];
    unsigned long long caps;
    (void)snprintf(path, sizeof path, "%s/%s/status", root, who);
    FILE *f = fopen(path, "re");
    s.known = f != NULL;
    while (f && fgets(line, sizeof line, f)) {
        (void)sscanf(line, "Uid: %*u %u", &s.uid);
        (void)sscanf(line, "Seccomp: %d", &s.seccomp);
        (void)sscanf(line, "TracerPid: %d", &s.tracer);
        if (sscanf(line, "CapPrm: %llx", &caps) == 1)
            s.permitted = caps;
        if (sscanf(line, "CapEff: %llx", &caps) == 1)
            s.effective = caps;
    }
    if (f)
        (void)fclose(f);
    return s;
}

static int read_yama(const char *root)
{
    char path[512];
    int scope = 0;
    (void)snprintf(path, sizeof path, "%s/sys/kernel/yama/ptrace_scope", root);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%d", &scope) != 1)
        scope = 0;
    if (f)
        (void)fclose(f);
    return scope;
}

/* The files of a process that is not dumpable belong to root (proc(5)). */
static bool is_dumpable(const char *root, const char *who, unsigned uid)
{
    char path[512];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s/%s/status", root, who);
    return stat(path, &st) != 0 || st.st_uid == uid;
}

static const char *reason(const char *root, const char *who, bool attach, char *out, size_t size)
{
    struct standing its = read_standing(root, who), ours = read_standing(root, "self");
    int yama = attach ? read_yama(root) : 0;
    bool able = ours.effective >> CAP_SYS_PTRACE & 1;
    uint64_t more = its.permitted & ~ours.permitted;
    if (attach && its.tracer)
        (void)snprintf(out, size, "process %d traces it already (a debugger, strace); end that first", its.tracer);
    else if (yama > YAMA_ADMIN)
        (void)snprintf(out, size, "kernel.yama.ptrace_scope is %d, which forbids it to everyone until the next boot", yama);
    else if (attach && ours.seccomp == 2)
        (void)snprintf(out, size, "a seccomp filter is in force here; allow ptrace in the container's profile");
    else if (!able && its.known && its.uid != ours.uid)
        (void)snprintf(out, size, "it belongs to user %u; run as root or with CAP_SYS_PTRACE", its.uid);
    else if (!able && its.known && !is_dumpable(root, who, its.uid))
        (void)snprintf(out, size, "it is not dumpable (a setuid program, or it asked for that); run as root or with "
                                  "CAP_SYS_PTRACE");
    else if (!able && yama)
        (void)snprintf(out, size, "kernel.yama.ptrace_scope is %d; run as root, or sysctl kernel.yama.ptrace_scope=0", yama);
    else if (more)
        (void)snprintf(out, size, "%sit has capabilities that mtui lacks (0x%llx in CapPrm of its status); run mtui with "
                                  "those, outside of the container",
                       able ? "although CAP_SYS_PTRACE is in effect: " : "", (unsigned long long)more);
    else
        (void)snprintf(out, size, "%sa user namespace further out or a security module (SELinux, AppArmor) protects it; "
                                  "run mtui as root outside of the container",
                       able ? "although CAP_SYS_PTRACE is in effect: " : "");
    return out;
}

int ptrace_refusal_explain(struct err *err, int errno_value, const char *proc_root, pid_t pid, bool attach,
                           const char *what)
{
    char who[32], why[320];
    (void)snprintf(who, sizeof who, "%d", (int)pid);
    return err_set(err, MTUI_E_PERM, "%s: refused (%s): %s", what, strerror(errno_value),
                   reason(proc_root ? proc_root : "/proc", who, attach, why, sizeof why));
}
