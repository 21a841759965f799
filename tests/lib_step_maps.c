#include "lib_step_maps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "lib_run.h"

#define RECORD_AUXTRACE 71
#define AT_DATA_SECTION 40 /* of perf.data's header: its offset and size */

/* PERF_RECORD_MMAP2 without a build-id; the name follows, and struct sample_id ends the record. */
struct mmap2 {
    struct perf_event_header header;
    uint32_t pid, tid;
    uint64_t start, len, pgoff;
    uint32_t major, minor;
    uint64_t ino, ino_generation;
    uint32_t prot, flags;
    char name[];
};

/* What ends it here: TID, TIME, CPU, IDENTIFIER. */
struct sample_id {
    uint32_t pid, tid;
    uint64_t time, cpu, identifier;
};

static void read_code(struct step_code_map *m)
{
    m->bytes = xcalloc(1, (size_t)m->len);
    if (strcmp(m->path, "[vdso]") == 0) {
        memcpy(m->bytes, (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR), (size_t)m->len);
        return;
    }
    int fd = open(m->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) /* no file: nothing of it has run, or the truth will not be followed */
        return;
    assert_true(pread(fd, m->bytes, (size_t)m->len, (off_t)m->pgoff) > 0);
    close(fd);
}

void step_maps_read(struct step_rec *r)
{
    VEC(struct step_code_map) maps = {0};
    uint64_t section[2];
    size_t size;
    char *file = run_read_file(r->data, &size);
    assert_true(file && size > AT_DATA_SECTION + sizeof section);
    memcpy(section, file + AT_DATA_SECTION, sizeof section);
    assert_true(section[0] + section[1] <= size);
    for (char *at = file + section[0], *end = at + section[1]; at < end;) {
        struct perf_event_header header;
        uint64_t data = 0;
        memcpy(&header, at, sizeof header);
        if (header.type == RECORD_AUXTRACE)
            memcpy(&data, at + sizeof header, sizeof data);
        const struct mmap2 *e = (const void *)at;
        if (header.type == PERF_RECORD_MMAP2 && (e->prot & PROT_EXEC) && strcmp(e->name, "[vsyscall]")) {
            struct sample_id id;
            memcpy(&id, at + header.size - sizeof id, sizeof id);
            struct step_code_map m = {.clock = id.time, .start = e->start, .len = e->len,
                                      .pgoff = e->pgoff, .ino = e->ino, .major = e->major, .minor = e->minor};
            snprintf(m.path, sizeof m.path, "%s", e->name);
            read_code(&m);
            vec_push(&maps, m);
        }
        at += header.size + data;
    }
    free(file);
    r->maps = maps.data;
    r->n_maps = maps.len;
}

void step_maps_free(struct step_rec *r)
{
    for (size_t i = 0; i < r->n_maps; i++)
        free(r->maps[i].bytes);
    free(r->maps);
    r->maps = NULL;
    r->n_maps = 0;
}

const struct step_code_map *step_rec_map(const struct step_rec *r, uint64_t ip, uint64_t clock)
{
    for (size_t i = r->n_maps; i-- > 0;) {
        const struct step_code_map *m = &r->maps[i];
        if (m->clock <= clock && ip >= m->start && ip - m->start < m->len)
            return m;
    }
    return NULL;
}

size_t step_rec_code(const struct step_rec *r, uint64_t ip, uint8_t *out, size_t n)
{
    const struct step_code_map *m = step_rec_map(r, ip, UINT64_MAX);
    if (!m)
        return 0;
    if (n > m->start + m->len - ip)
        n = (size_t)(m->start + m->len - ip);
    memcpy(out, m->bytes + (ip - m->start), n);
    return n;
}
