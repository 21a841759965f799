#include "core/step/step_code.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "core/machine/proc_stat.h"

#define INT3     0xcc
#define AUXV_MAX 1024

/* An opened file behind a mapping; fd −1: cannot be opened. */
struct open_map {
    uint64_t start;
    int fd;
};

/* What the kernel has handed to a program at its start: with addresses it chose at random, so another program's
 * differs, unless it lies exactly where the former one did. */
struct auxv {
    size_t len;
    uint8_t bytes[AUXV_MAX];
};

struct step_code {
    pid_t pid, through;
    struct auxv program; /* whose mappings are told */
    struct maps *maps;
    VEC(struct open_map) files;
};

static void read_auxv(pid_t pid, struct auxv *out)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/auxv", (int)proc_living_thread("/proc", pid));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, out->bytes, sizeof out->bytes);
    out->len = n < 0 ? 0 : (size_t)n;
    if (fd >= 0)
        close(fd);
}

/* By an execve(2) that is still under way, or whose stop is yet to come. */
static bool is_replaced(const struct step_code *c)
{
    struct auxv now;
    read_auxv(c->pid, &now);
    return now.len != c->program.len || memcmp(now.bytes, c->program.bytes, now.len) != 0;
}

int step_code_new(struct step_code **out, pid_t pid, struct err *err)
{
    struct maps *maps;
    int rc = maps_read(NULL, pid, &maps, err);
    if (rc < 0)
        return rc;
    struct step_code *c = xcalloc(1, sizeof *c);
    c->pid = c->through = pid;
    c->maps = maps;
    read_auxv(pid, &c->program);
    *out = c;
    return 0;
}

static void close_files(struct step_code *c)
{
    for (size_t i = 0; i < c->files.len; i++)
        if (c->files.data[i].fd >= 0)
            close(c->files.data[i].fd);
    c->files.len = 0;
}

void step_code_free(struct step_code *c)
{
    if (!c)
        return;
    close_files(c);
    vec_free(&c->files);
    maps_free(c->maps);
    free(c);
}

int step_code_refresh(struct step_code *c, struct err *err)
{
    struct maps *maps;
    int rc = maps_read(NULL, c->pid, &maps, err);
    if (rc < 0)
        return rc;
    if (is_replaced(c)) {
        maps_free(maps);
        return err_set(err, MTUI_E_GONE, "the program of process %d is being replaced by another", (int)c->pid);
    }
    close_files(c);
    maps_free(c->maps);
    c->maps = maps;
    return 0;
}

int step_code_replaced(struct step_code *c, struct err *err)
{
    read_auxv(c->pid, &c->program);
    return step_code_refresh(c, err);
}

void step_code_read_through(struct step_code *c, pid_t tid)
{
    c->through = tid;
}

const struct maps *step_code_maps(const struct step_code *c)
{
    return c->maps;
}

static int file_of(struct step_code *c, const struct map *m)
{
    for (size_t i = 0; i < c->files.len; i++)
        if (c->files.data[i].start == m->start)
            return c->files.data[i].fd;
    char path[512];
    int fd = map_open(NULL, c->pid, m, path, sizeof path, NULL);
    vec_push(&c->files, ((struct open_map){m->start, fd < 0 ? -1 : fd}));
    return fd < 0 ? -1 : fd;
}

bool step_code_read_file(struct step_code *c, const struct map *m, uint64_t address, uint8_t *out, size_t n)
{
    int fd = file_of(c, m);
    ssize_t got = fd < 0 ? -1 : pread(fd, out, n, (off_t)(address - m->start + m->offset));
    if (got <= 0)
        return false;
    memset(out + got, 0, n - (size_t)got);
    return true;
}

static void restore_probed_bytes(struct step_code *c, uint64_t ip, uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct map *m = bytes[i] == INT3 ? maps_find(c->maps, ip + i) : NULL;
        if (!m || !map_has_file(m) || (m->prot & MAPS_W))
            continue; /* writable code is the program's own: what is there is what it wrote */
        int fd = file_of(c, m);
        uint8_t true_byte;
        if (fd >= 0 && pread(fd, &true_byte, 1, (off_t)(ip + i - m->start + m->offset)) == 1)
            bytes[i] = true_byte;
    }
}

size_t step_code_read(void *arg, uint64_t ip, uint8_t *out, size_t n)
{
    struct step_code *c = arg;
    /* In two pieces at a page border: a read that runs into an unmapped page gives nothing else. */
    size_t first = 4096 - (size_t)(ip & 4095);
    struct iovec local = {out, n}, remote[2];
    unsigned long pieces = 1;
    remote[0].iov_base = (void *)(uintptr_t)ip;
    remote[0].iov_len = n;
    if (first < n) {
        remote[0].iov_len = first;
        remote[1].iov_base = (void *)(uintptr_t)(ip + first);
        remote[1].iov_len = n - first;
        pieces = 2;
    }
    ssize_t got = process_vm_readv(c->through, &local, 1, remote, pieces, 0);
    if (got <= 0)
        return 0;
    restore_probed_bytes(c, ip, out, (size_t)got);
    return (size_t)got;
}
