#include "decode/image/addrspace.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "core/base/hash64.h"
#include "core/base/intern.h"
#include "decode/image/map_table.h"

struct process {
    struct map_table *maps;
    struct map_table *replaced; /* by exec, until the new program's first instruction; else NULL */
};

struct task {
    pid_t pid;
    uint32_t comm; /* in strings; HASH64_NONE: no name known */
};

struct build_id {
    uint8_t bytes[20];
    uint8_t len;
};

struct module {
    uint32_t path; /* in strings */
    struct build_id id;
};

struct addrspaces {
    const struct maps_log *log;
    size_t next_capture, next_thread; /* of the log, not yet applied */
    VEC(struct process) processes;
    VEC(struct task) tasks;
    struct hash64 pids, tids;
    struct map_table *kernel, *ksymbols;
    uint64_t last_generation;
    struct intern *strings;
    struct intern *module_keys; /* path, NUL, build-id: the number is the module's */
    VEC(struct module) modules;
    struct hash64 listed;       /* path → number in listed_ids */
    VEC(struct build_id) listed_ids;
};

struct addrspaces *addrspaces_new(const struct maps_log *log)
{
    struct addrspaces *as = xcalloc(1, sizeof *as);
    as->log = log;
    as->strings = intern_new();
    as->module_keys = intern_new();
    as->kernel = map_table_new();
    as->ksymbols = map_table_new();
    return as;
}

void addrspaces_free(struct addrspaces *as)
{
    if (!as)
        return;
    for (size_t i = 0; i < as->processes.len; i++) {
        map_table_drop(as->processes.data[i].maps);
        map_table_drop(as->processes.data[i].replaced);
    }
    map_table_drop(as->kernel);
    map_table_drop(as->ksymbols);
    vec_free(&as->processes);
    vec_free(&as->tasks);
    vec_free(&as->modules);
    vec_free(&as->listed_ids);
    hash64_free(&as->pids);
    hash64_free(&as->tids);
    hash64_free(&as->listed);
    intern_free(as->strings);
    intern_free(as->module_keys);
    free(as);
}

static uint32_t add_string(struct addrspaces *as, const char *s)
{
    return intern_add(as->strings, s, strlen(s));
}

/* ---- Processes and threads ---- */

static struct process *find_process(const struct addrspaces *as, pid_t pid)
{
    uint32_t i = hash64_get(&as->pids, (uint32_t)pid);
    return i == HASH64_NONE ? NULL : &as->processes.data[i];
}

static struct process *get_process(struct addrspaces *as, pid_t pid)
{
    struct process *p = find_process(as, pid);
    if (p)
        return p;
    struct process fresh = {.maps = map_table_new()};
    if (!hash64_set(&as->pids, (uint32_t)pid, (uint32_t)as->processes.len) ||
        !vec_try_push(&as->processes, fresh)) {
        map_table_drop(fresh.maps);
        return NULL;
    }
    return &as->processes.data[as->processes.len - 1];
}

static void replace_maps(struct process *p, struct map_table *maps)
{
    map_table_drop(p->maps);
    map_table_drop(p->replaced);
    p->maps = maps;
    p->replaced = NULL;
}

/* exec: the name and the mappings change while the thread is still inside the system call, with the
 * old program's registers; its samples have callers in what was replaced. */
static void begin_exec(struct addrspaces *as, struct process *p)
{
    map_table_drop(p->replaced);
    p->replaced = p->maps;
    p->maps = map_table_new();
    p->maps->generation = ++as->last_generation;
}

static void apply_sample(struct addrspaces *as, const struct perf_record *rec)
{
    struct process *p = rec->cpumode == PERF_MODE_USER ? find_process(as, rec->pid) : NULL;
    if (p && p->replaced) {
        map_table_drop(p->replaced);
        p->replaced = NULL;
        p->maps->generation = ++as->last_generation;
    }
}

static struct task *find_task(const struct addrspaces *as, pid_t tid)
{
    uint32_t i = hash64_get(&as->tids, (uint32_t)tid);
    return i == HASH64_NONE ? NULL : &as->tasks.data[i];
}

static bool set_task(struct addrspaces *as, pid_t tid, struct task task)
{
    struct task *old = find_task(as, tid);
    if (old) {
        *old = task;
        return true;
    }
    return hash64_set(&as->tids, (uint32_t)tid, (uint32_t)as->tasks.len) &&
           vec_try_push(&as->tasks, task);
}

/* ---- Modules ---- */

static uint32_t add_module(struct addrspaces *as, const char *path, const uint8_t *id, size_t id_len)
{
    struct module m = {.path = add_string(as, path)};
    size_t path_len = strlen(path);
    m.id.len = (uint8_t)(id_len < sizeof m.id.bytes ? id_len : sizeof m.id.bytes);
    if (m.id.len)
        memcpy(m.id.bytes, id, m.id.len);
    char *key = xmalloc(path_len + 1 + sizeof m.id.bytes);
    memcpy(key, path, path_len + 1);
    memcpy(key + path_len + 1, m.id.bytes, m.id.len);
    uint32_t number = intern_add(as->module_keys, key, path_len + 1 + m.id.len);
    free(key);
    if (number == as->modules.len)
        vec_push(&as->modules, m);
    return number;
}

static int list_build_id(struct addrspaces *as, const struct perf_record *rec)
{
    struct build_id id = {.len = rec->u.build_id.build_id_len};
    memcpy(id.bytes, rec->u.build_id.build_id, sizeof id.bytes);
    vec_push(&as->listed_ids, id);
    return hash64_set(&as->listed, add_string(as, rec->u.build_id.path),
                      (uint32_t)as->listed_ids.len - 1)
               ? 0
               : MTUI_E_NOMEM;
}

/* ---- Records ---- */

static bool change(struct addrspaces *as, struct map_table **maps, const struct addrspace_map *map)
{
    if (!map_table_own(maps) || !map_table_insert(*maps, map))
        return false;
    (*maps)->generation = ++as->last_generation;
    return true;
}

static int apply_mmap(struct addrspaces *as, const struct perf_record *rec)
{
    struct addrspace_map map = {
        .start = rec->u.mmap.start,
        .end = rec->u.mmap.start + rec->u.mmap.len,
        .pgoff = rec->u.mmap.pgoff,
        .prot = rec->u.mmap.prot,
        .owner = rec->u.mmap.pid,
        .module = add_module(as, rec->u.mmap.path, rec->u.mmap.build_id, rec->u.mmap.build_id_len),
    };
    struct map_table **maps = &as->kernel;
    if (rec->cpumode == PERF_MODE_USER) {
        struct process *p = get_process(as, rec->u.mmap.pid);
        if (!p)
            return MTUI_E_NOMEM;
        maps = &p->maps;
    } else if (rec->cpumode != PERF_MODE_KERNEL) {
        return 0; /* of a guest */
    }
    return change(as, maps, &map) ? 0 : MTUI_E_NOMEM;
}

static int apply_fork(struct addrspaces *as, const struct perf_record *rec)
{
    pid_t pid = rec->u.fork.pid, ppid = rec->u.fork.ppid;
    const struct task *parent = find_task(as, rec->u.fork.ptid);
    struct task child = {pid, parent ? parent->comm : HASH64_NONE};
    if (!set_task(as, rec->u.fork.tid, child))
        return MTUI_E_NOMEM;
    if (pid == ppid) /* a thread */
        return 0;
    struct process *p = get_process(as, pid); /* first: it may move the others */
    if (!p)
        return MTUI_E_NOMEM;
    const struct process *from = rec->u.fork.synthesized ? NULL : find_process(as, ppid);
    replace_maps(p, from ? map_table_share(from->maps) : map_table_new());
    return 0;
}

static int apply_comm(struct addrspaces *as, const struct perf_record *rec)
{
    struct task task = {rec->u.comm.pid, add_string(as, rec->u.comm.comm)};
    if (!set_task(as, rec->u.comm.tid, task))
        return MTUI_E_NOMEM;
    if (!rec->u.comm.exec)
        return 0;
    struct process *p = get_process(as, rec->u.comm.pid);
    if (!p)
        return MTUI_E_NOMEM;
    begin_exec(as, p);
    return 0;
}

static int apply_ksymbol(struct addrspaces *as, const struct perf_record *rec)
{
    uint64_t start = rec->u.ksymbol.addr;
    uint64_t end = rec->u.ksymbol.len > UINT64_MAX - start ? UINT64_MAX : start + rec->u.ksymbol.len;
    struct addrspace_map map = {.start = start, .end = end};
    as->kernel->generation = ++as->last_generation; /* names of kernel code change, too */
    if (rec->u.ksymbol.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER)
        return map_table_cut(as->ksymbols, start, end) ? 0 : MTUI_E_NOMEM;
    map.module = add_string(as, rec->u.ksymbol.name);
    return map_table_insert(as->ksymbols, &map) ? 0 : MTUI_E_NOMEM;
}

static int apply_record(struct addrspaces *as, const struct perf_record *rec)
{
    switch ((int)rec->kind) {
    case PERF_REC_MMAP:
        return apply_mmap(as, rec);
    case PERF_REC_FORK:
        return apply_fork(as, rec);
    case PERF_REC_COMM:
        return apply_comm(as, rec);
    case PERF_REC_KSYMBOL:
        return apply_ksymbol(as, rec);
    case PERF_REC_BUILD_ID:
        return list_build_id(as, rec);
    case PERF_REC_SAMPLE:
        apply_sample(as, rec);
        return 0;
    default:
        return 0;
    }
}

/* ---- mtui's own log ---- */

static int apply_capture(struct addrspaces *as, const struct maps_capture *c)
{
    struct process *p = get_process(as, c->pid);
    struct map_table *maps = map_table_new();
    if (!p) {
        map_table_drop(maps);
        return MTUI_E_NOMEM;
    }
    replace_maps(p, maps);
    maps->generation = ++as->last_generation;
    for (size_t i = 0; i < c->n; i++) {
        const struct maps_mapping *m = &c->mappings[i];
        const struct maps_file *file = m->file;
        struct addrspace_map map = {.start = m->start, .end = m->end, .pgoff = m->pgoff,
                                    .prot = m->prot, .owner = c->pid};
        map.module = file ? add_module(as, file->path, file->build_id, file->build_id_len)
                          : add_module(as, *m->path ? m->path : "//anon", NULL, 0);
        if (!map_table_insert(maps, &map))
            return MTUI_E_NOMEM;
    }
    return 0;
}

/* A name that perf did not record, or not yet. */
static int apply_thread(struct addrspaces *as, const struct maps_thread *t)
{
    struct task task = {t->pid, add_string(as, t->comm)};
    return set_task(as, t->tid, task) ? 0 : MTUI_E_NOMEM;
}

static int apply_log(struct addrspaces *as, uint64_t now_ns)
{
    int e = 0;
    for (; e == 0 && as->next_capture < maps_log_capture_count(as->log); as->next_capture++) {
        const struct maps_capture *c = maps_log_capture(as->log, as->next_capture);
        if (c->time_ns > now_ns)
            break;
        e = apply_capture(as, c);
    }
    for (; e == 0 && as->next_thread < maps_log_thread_count(as->log); as->next_thread++) {
        const struct maps_thread *t = maps_log_thread(as->log, as->next_thread);
        if (t->time_ns > now_ns)
            break;
        e = apply_thread(as, t);
    }
    return e;
}

int addrspaces_apply(struct addrspaces *as, const struct perf_record *rec, struct err *err)
{
    int e = as->log ? apply_log(as, rec->time_ns) : 0;
    if (e == 0)
        e = apply_record(as, rec);
    return e == 0 ? 0 : err_set(err, e, "not enough memory for the mappings of %zu processes",
                                as->processes.len);
}

/* ---- Questions ---- */

const struct addrspace_map *addrspaces_find(const struct addrspaces *as, pid_t pid, uint64_t ip,
                                            enum perf_cpumode mode)
{
    if (mode == PERF_MODE_KERNEL)
        return map_table_find(as->kernel, ip);
    const struct process *p = mode == PERF_MODE_USER ? find_process(as, pid) : NULL;
    const struct addrspace_map *map = p ? map_table_find(p->maps, ip) : NULL;
    return map || !p || !p->replaced ? map : map_table_find(p->replaced, ip);
}

const struct addrspace_map *addrspaces_maps(const struct addrspaces *as, pid_t pid, size_t *n)
{
    const struct process *p = find_process(as, pid);
    *n = p ? p->maps->len : 0;
    return p ? p->maps->data : NULL;
}

const char *addrspaces_ksymbol(const struct addrspaces *as, uint64_t ip, uint64_t *start)
{
    const struct addrspace_map *m = map_table_find(as->ksymbols, ip);
    if (!m)
        return NULL;
    *start = m->start;
    return intern_get(as->strings, m->module);
}

uint64_t addrspaces_generation(const struct addrspaces *as, pid_t pid)
{
    if (pid == -1)
        return as->kernel->generation;
    const struct process *p = find_process(as, pid);
    return p ? p->maps->generation : 0;
}

size_t addrspaces_module_count(const struct addrspaces *as)
{
    return as->modules.len;
}

struct addrspace_module addrspaces_module(const struct addrspaces *as, uint32_t module)
{
    const struct module *m = &as->modules.data[module];
    struct addrspace_module out = {intern_get(as->strings, m->path), m->id.bytes, m->id.len};
    const struct maps_file *file = !m->id.len && as->log ? maps_log_file(as->log, out.path) : NULL;
    if (file && file->build_id_len) {
        out.build_id = file->build_id;
        out.build_id_len = file->build_id_len;
    } else if (!m->id.len) {
        uint32_t i = hash64_get(&as->listed, m->path);
        if (i != HASH64_NONE) {
            out.build_id = as->listed_ids.data[i].bytes;
            out.build_id_len = as->listed_ids.data[i].len;
        }
    }
    return out;
}

const char *addrspaces_comm(const struct addrspaces *as, pid_t tid)
{
    const struct task *t = find_task(as, tid);
    return t && t->comm != HASH64_NONE ? intern_get(as->strings, t->comm) : NULL;
}

pid_t addrspaces_pid(const struct addrspaces *as, pid_t tid)
{
    const struct task *t = find_task(as, tid);
    return t ? t->pid : -1;
}
