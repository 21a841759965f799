#include "core/machine/proc_access.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/machine/perf_event.h"

/* The best kind of function symbols that the section headers promise. */
static enum proc_syms syms_of(Elf *elf)
{
    enum proc_syms best = PROC_SYMS_NONE;
    size_t names;
    if (elf_getshdrstrndx(elf, &names) != 0)
        return best;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr sh;
        if (!gelf_getshdr(scn, &sh))
            continue;
        const char *name = elf_strptr(elf, names, sh.sh_name);
        enum proc_syms has = PROC_SYMS_NONE;
        if (sh.sh_type == SHT_SYMTAB)
            has = PROC_SYMS_SYMTAB;
        else if (sh.sh_type == SHT_DYNSYM)
            has = PROC_SYMS_DYNSYM;
        else if (name && (strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0))
            has = PROC_SYMS_DEBUG;
        if (has > best)
            best = has;
    }
    return best;
}

void proc_exe_look(const char *root, const struct proc_stat *st, struct proc_exe *exe)
{
    if (st->kernel_thread) {
        exe->syms = PROC_SYMS_KERNEL;
        return;
    }
    char path[PATH_MAX];
    struct stat sb;
    snprintf(path, sizeof path, "%s/%d/exe", root, (int)proc_living_thread(root, st->pid));
    if (stat(path, &sb) != 0 || !S_ISREG(sb.st_mode)) {
        *exe = (struct proc_exe){.syms = PROC_SYMS_UNKNOWN};
        return;
    }
    if (exe->ino == sb.st_ino && exe->dev == sb.st_dev)
        return;
    *exe = (struct proc_exe){.dev = sb.st_dev, .ino = sb.st_ino, .syms = PROC_SYMS_UNKNOWN};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    if (elf && elf_kind(elf) == ELF_K_ELF) {
        exe->is_32bit = gelf_getclass(elf) == ELFCLASS32;
        exe->syms = syms_of(elf);
    }
    elf_end(elf);
    close(fd);
}

static bool perf_may_open(pid_t pid)
{
    struct perf_event_attr attr = {.size = sizeof attr,
                                   .type = PERF_TYPE_SOFTWARE,
                                   .config = PERF_COUNT_SW_DUMMY,
                                   .disabled = 1,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    long fd = syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return false;
    close((int)fd);
    return true;
}

/* pid_namespaces(7): /proc/self shows the reader as the namespace of the mount numbers it. */
bool proc_access_is_own(void)
{
    char self[32];
    ssize_t n = readlink("/proc/self", self, sizeof self - 1);
    if (n <= 0)
        return false;
    self[n] = '\0';
    return strtol(self, NULL, 10) == getpid();
}

enum proc_trace proc_access_check(bool live, const struct proc_stat *st,
                                  const struct proc_exe *exe)
{
    if (st->kernel_thread)
        return PROC_TRACE_KERNEL;
    if (st->state == 'Z' || st->state == 'X')
        return PROC_TRACE_ZOMBIE;
    if (exe->is_32bit)
        return PROC_TRACE_32BIT;
    if (live && !proc_access_is_own())
        return PROC_TRACE_FOREIGN;
    if (live && st->pid == getpid())
        return PROC_TRACE_SELF;
    if (live && !perf_may_open(proc_living_thread("/proc", st->pid)))
        return perf_event_is_filtered() ? PROC_TRACE_SECCOMP : PROC_TRACE_NO_PERM;
    return PROC_TRACE_OK;
}
