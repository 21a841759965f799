#include "core/step/step_sideband.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "core/machine/proc_stat.h"
#include "core/symbols/elf_file.h"

enum note_kind { NOTE_THREAD, NOTE_NAME, NOTE_EXEC, NOTE_MAP, NOTE_EXIT };

struct note {
    enum note_kind kind;
    uint64_t clock;
    pid_t tid;
    char *text; /* name of a thread, path of a mapping */
    struct perf_writer_mapping map;
    uint8_t build_id[ELF_BUILD_ID_MAX]; /* of a mapping */
};

struct step_sideband {
    pid_t pid;
    VEC(struct note) notes; /* clocks never go back */
    size_t since_exec;      /* first note that tells of the present program */
};

struct step_sideband *step_sideband_new(pid_t pid)
{
    struct step_sideband *s = xcalloc(1, sizeof *s);
    s->pid = pid;
    return s;
}

void step_sideband_free(struct step_sideband *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->notes.len; i++)
        free(s->notes.data[i].text);
    vec_free(&s->notes);
    free(s);
}

static bool known(const struct step_sideband *s, const struct map *m)
{
    /* The latest note about an address counts: something else may have been mapped there since. */
    for (size_t i = s->notes.len; i > s->since_exec; i--) {
        const struct note *n = &s->notes.data[i - 1];
        if (n->kind != NOTE_MAP || m->start >= n->map.start + n->map.len || m->end <= n->map.start)
            continue;
        return n->map.start <= m->start && n->map.start + n->map.len >= m->end &&
               n->map.pgoff + (m->start - n->map.start) == m->offset && n->map.ino == m->inode &&
               strcmp(n->text, m->path) == 0;
    }
    return false;
}

/* By it a decoder knows the file again, which may be built anew by then. */
static size_t read_build_id(pid_t pid, const struct map *m, uint8_t id[ELF_BUILD_ID_MAX])
{
    char opened[4200];
    int fd = map_has_file(m) ? map_open("/proc", pid, m, opened, sizeof opened, NULL) : -1;
    if (fd < 0)
        return 0;
    size_t len = elf_build_id_of(fd, m->path, id);
    close(fd);
    return len;
}

static void note_map(struct step_sideband *s, const struct map *m, uint64_t clock)
{
    struct note n = {.kind = NOTE_MAP, .clock = clock, .tid = s->pid};
    n.text = xstrdup(*m->path ? m->path : "//anon"); /* as perf names it */
    n.map = (struct perf_writer_mapping){.start = m->start,
                                         .len = m->end - m->start,
                                         .pgoff = m->offset,
                                         .ino = m->inode,
                                         .major = m->dev_major,
                                         .minor = m->dev_minor,
                                         .prot = PROT_READ | PROT_EXEC,
                                         .flags = MAP_PRIVATE,
                                         .build_id_len = read_build_id(s->pid, m, n.build_id)};
    vec_push(&s->notes, n);
}

void step_sideband_maps(struct step_sideband *s, const struct maps *maps, uint64_t clock)
{
    for (size_t i = 0; i < maps_count(maps); i++) {
        const struct map *m = maps_at(maps, i);
        if ((m->prot & MAPS_X) && !known(s, m))
            note_map(s, m, clock);
    }
}

void step_sideband_code(struct step_sideband *s, const struct map *m, uint64_t start, uint64_t len,
                        uint64_t clock)
{
    struct map part = m ? *m : (struct map){.path = "", .start = start};
    part.offset += start - part.start;
    part.start = start;
    part.end = start + len;
    note_map(s, &part, clock);
}

static void note_name(struct step_sideband *s, enum note_kind kind, pid_t tid, uint64_t clock)
{
    struct proc_stat st;
    const char *name = proc_stat_read("/proc", s->pid, tid, &st, NULL) == 0 ? st.comm : "?";
    vec_push(&s->notes, ((struct note){.kind = kind, .clock = clock, .tid = tid, .text = xstrdup(name)}));
}

void step_sideband_exec(struct step_sideband *s, uint64_t clock)
{
    s->since_exec = s->notes.len;
    note_name(s, NOTE_EXEC, s->pid, clock);
}

void step_sideband_thread(struct step_sideband *s, pid_t tid, uint64_t clock)
{
    note_name(s, NOTE_THREAD, tid, clock);
}

static const char *known_name(const struct step_sideband *s, pid_t tid)
{
    for (size_t i = s->notes.len; i-- > 0;) {
        const struct note *n = &s->notes.data[i];
        if (n->tid == tid && n->kind != NOTE_MAP && n->kind != NOTE_EXIT)
            return n->text;
    }
    return "";
}

void step_sideband_name(struct step_sideband *s, pid_t tid, uint64_t clock)
{
    struct proc_stat st;
    if (proc_stat_read("/proc", s->pid, tid, &st, NULL) == 0 &&
        strcmp(st.comm, known_name(s, tid)) != 0)
        note_name(s, NOTE_NAME, tid, clock);
}

void step_sideband_exit(struct step_sideband *s, pid_t tid, uint64_t clock)
{
    vec_push(&s->notes, ((struct note){.kind = NOTE_EXIT, .clock = clock, .tid = tid}));
}

void step_sideband_write(const struct step_sideband *s, struct perf_writer *w)
{
    for (size_t i = 0; i < s->notes.len; i++) {
        const struct note *n = &s->notes.data[i];
        struct perf_writer_id id = {.pid = s->pid, .tid = n->tid, .cpu = 0, .time_ns = n->clock};
        struct perf_writer_mapping m = n->map;
        switch (n->kind) {
        case NOTE_THREAD:
            if (n->tid != s->pid)
                perf_writer_fork(w, id, s->pid, s->pid);
            perf_writer_comm(w, id, n->text, false);
            break;
        case NOTE_NAME:
            perf_writer_comm(w, id, n->text, false);
            break;
        case NOTE_EXEC:
            perf_writer_comm(w, id, n->text, true);
            break;
        case NOTE_MAP:
            m.path = n->text;
            m.build_id = n->build_id;
            perf_writer_mmap(w, id, &m);
            break;
        case NOTE_EXIT:
            perf_writer_exit(w, id);
            break;
        }
    }
}
