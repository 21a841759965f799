#include "decode/image/code_image.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/hash64.h"
#include "core/symbols/demangle.h"
#include "core/symbols/lsda.h"
#include "core/base/vec.h"
#include "core/session/code_versions.h"
#include "decode/image/map_history.h"
#include "decode/image/sym_module.h"

#define FD_UNKNOWN (-2) /* not asked for yet */

/* Of a file. */
struct exceptions {
    bool asked;
    struct lsda *tables; /* NULL: none */
};

struct code_image {
    const struct addrspaces *as;
    struct symbolizer *symbols;
    struct functions *functions;
    const struct maps_log *log;
    struct map_history *history;
    pthread_mutex_t lock; /* symbols, functions, files, exceptions */
    VEC(int) files;       /* of modules, by their number; −1: no bytes */
    VEC(struct exceptions) exceptions; /* likewise */
    struct hash64 wholes; /* of functions that are parts of others: fn_id of the other one */
};

struct code_view {
    struct code_image *img;
    struct map_state maps;
    uint64_t state; /* of the history, in maps */
    pid_t pid;
    uint64_t time_ns;
    struct hash64 pads; /* of calls that were asked for: how far away, modulo 2^32; 0: none */
};

struct code_image *code_image_new(const struct addrspaces *as, struct symbolizer *symbols,
                              struct functions *functions, const struct maps_log *log)
{
    struct code_image *img = xcalloc(1, sizeof *img);
    img->as = as;
    img->symbols = symbols;
    img->functions = functions;
    img->log = log;
    img->history = map_history_new();
    pthread_mutex_init(&img->lock, NULL);
    return img;
}

void code_image_free(struct code_image *img)
{
    if (!img)
        return;
    for (size_t i = 0; i < img->files.len; i++)
        if (img->files.data[i] >= 0)
            close(img->files.data[i]);
    vec_free(&img->files);
    for (size_t i = 0; i < img->exceptions.len; i++)
        lsda_free(img->exceptions.data[i].tables);
    vec_free(&img->exceptions);
    hash64_free(&img->wholes);
    map_history_free(img->history);
    pthread_mutex_destroy(&img->lock);
    free(img);
}

int code_image_note(struct code_image *img, pid_t pid, uint64_t time_ns)
{
    size_t n;
    const struct addrspace_map *maps = addrspaces_maps(img->as, pid, &n);
    return map_history_note(img->history, pid, time_ns, addrspaces_generation(img->as, pid), maps, n);
}

bool code_image_knows(const struct code_image *img, pid_t pid)
{
    return map_history_knows(img->history, pid);
}

const char *code_image_where(struct code_image *img, pid_t pid, uint64_t time_ns, uint64_t ip,
                             const char **why)
{
    struct map_state maps = {0};
    map_history_at(img->history, pid, time_ns, &maps);
    const struct addrspace_map *m = map_state_find(&maps, ip);
    map_state_free(&maps);
    if (!m)
        m = map_history_next(img->history, pid, time_ns, ip);
    const char *path = m ? addrspaces_module(img->as, m->module).path : NULL;
    if (why) {
        pthread_mutex_lock(&img->lock);
        *why = m ? symbolizer_why_missing(img->symbols, m) : NULL;
        pthread_mutex_unlock(&img->lock);
    }
    return path && symbolizer_is_anonymous(path) ? "" : path;
}

/* ---- views ---- */

struct code_view *code_view_new(struct code_image *img)
{
    struct code_view *v = xcalloc(1, sizeof *v);
    v->img = img;
    return v;
}

void code_view_free(struct code_view *v)
{
    if (!v)
        return;
    map_state_free(&v->maps);
    hash64_free(&v->pads);
    free(v);
}

bool code_view_at(struct code_view *v, pid_t pid, uint64_t time_ns)
{
    v->time_ns = time_ns;
    v->pid = pid;
    uint64_t state = map_history_state(v->img->history, pid, time_ns);
    if (state == v->state)
        return false;
    v->state = state;
    hash64_clear(&v->pads);
    map_history_at(v->img->history, pid, time_ns, &v->maps); /* short of memory: as if nothing were known */
    return true;
}

static const struct addrspace_map *find_map(const struct code_view *v, uint64_t ip)
{
    const struct addrspace_map *m = map_state_find(&v->maps, ip);
    return m ? m : map_history_next(v->img->history, v->pid, v->time_ns, ip);
}

static int file_of(struct code_image *img, const struct addrspace_map *map)
{
    while (img->files.len <= map->module)
        vec_push(&img->files, FD_UNKNOWN);
    int *fd = &img->files.data[map->module];
    if (*fd == FD_UNKNOWN) {
        const struct sym_module *m = symbolizer_module(img->symbols, map);
        *fd = m ? sym_module_fd(m) : -1;
    }
    return *fd;
}

bool code_view_section(struct code_view *v, size_t i, struct code_section *out)
{
    if (i >= v->maps.len)
        return false;
    const struct addrspace_map *m = v->maps.data[i];
    pthread_mutex_lock(&v->img->lock);
    int fd = file_of(v->img, m);
    pthread_mutex_unlock(&v->img->lock);
    if (v->img->log && maps_log_has_stepped(v->img->log, v->pid, v->time_ns, m->start, m->end))
        fd = -1;
    *out = (struct code_section){m->start, m->end - m->start, m->pgoff, fd};
    return true;
}

/* ---- exceptions ---- */

static struct lsda *exceptions_of(struct code_image *img, const struct addrspace_map *map,
                                  const struct sym_module *m)
{
    while (img->exceptions.len <= map->module)
        vec_push(&img->exceptions, (struct exceptions){0});
    struct exceptions *e = &img->exceptions.data[map->module];
    if (e->asked)
        return e->tables;
    e->asked = true;
    int fd = sym_module_fd(m);
    struct elf_file *f;
    if (fd >= 0 && elf_file_open(fd, sym_module_source(m), &f, NULL) == 0 && lsda_new(f, &e->tables, NULL) < 0)
        e->tables = NULL;
    return e->tables;
}

static bool look_up_pad(struct code_view *v, uint64_t call, uint64_t *pad)
{
    const struct addrspace_map *map = find_map(v, call);
    uint64_t vaddr, to;
    bool found = false;
    if (!map)
        return false;
    pthread_mutex_lock(&v->img->lock);
    const struct sym_module *m = symbolizer_module(v->img->symbols, map);
    if (m && sym_module_vaddr(m, call - map->start + map->pgoff, &vaddr)) {
        struct lsda *tables = exceptions_of(v->img, map, m);
        found = tables && lsda_landing_pad(tables, vaddr, &to);
    }
    pthread_mutex_unlock(&v->img->lock);
    if (found)
        *pad = call + (to - vaddr);
    return found;
}

bool code_view_landing_pad(struct code_view *v, uint64_t call, uint64_t *pad)
{
    uint32_t away = hash64_get(&v->pads, call);
    if (away == HASH64_NONE) {
        uint64_t to;
        bool found = look_up_pad(v, call, &to);
        if (found && to - call + INT32_MAX >= UINT32_MAX) /* further than any function is long */
            return false;
        away = found ? (uint32_t)(to - call) : 0;
        if (away != HASH64_NONE)
            (void)hash64_set(&v->pads, call, away); /* short of memory, it is looked up each time */
    }
    if (!away)
        return false;
    *pad = call + (uint64_t)(int64_t)(int32_t)away;
    return true;
}

/* ---- bytes ---- */

/* Of code that has no file, mtui's dump. A file that is mapped there now has taken its place. */
static size_t read_dump(const struct code_view *v, const struct addrspace_map *map, uint64_t ip, uint8_t *out,
                        size_t n)
{
    const char *path = map ? addrspaces_module(v->img->as, map->module).path : "";
    if (!v->img->log || (*path == '/' && !symbolizer_is_anonymous(path)))
        return 0;
    return maps_log_code_read(v->img->log, v->pid, v->time_ns, ip, out, n);
}

/* As far as the bytes come from one place: no further than the page. */
static size_t read_piece(struct code_view *v, uint64_t ip, uint8_t *out, size_t n)
{
    struct code_image *img = v->img;
    uint64_t left = CODE_VERSION_PAGE - ip % CODE_VERSION_PAGE;
    if (n > left)
        n = (size_t)left;
    ssize_t stepped = img->log ? maps_log_code_stepped(img->log, v->pid, v->time_ns, ip, out, n) : -1;
    if (stepped >= 0)
        return (size_t)stepped;
    const struct addrspace_map *map = find_map(v, ip);
    if (map && n > map->end - ip)
        n = (size_t)(map->end - ip);
    size_t dumped = read_dump(v, map, ip, out, n);
    if (dumped || !map)
        return dumped;
    pthread_mutex_lock(&img->lock);
    int fd = file_of(img, map);
    pthread_mutex_unlock(&img->lock);
    ssize_t got = fd < 0 ? -1 : pread(fd, out, n, (off_t)(ip - map->start + map->pgoff));
    return got > 0 ? (size_t)got : 0;
}

static size_t read_code(void *arg, uint64_t ip, uint8_t *out, size_t n)
{
    size_t have = 0;
    while (have < n) {
        size_t got = read_piece(arg, ip + have, out + have, n - have);
        if (!got)
            break;
        have += got;
    }
    return have;
}

/* gcc moves rarely executed parts of f out into f.cold; they are the same function to a reader. Where several functions
 * are called f, nobody knows whose it is: it stays a part (FN_PART). */
static fn_id whole_of(struct code_image *img, const struct addrspace_map *map, fn_id fn, const char *raw)
{
    const struct function f = *functions_get(img->functions, fn);
    const struct sym_module *m = symbolizer_module(img->symbols, map);
    struct symbol whole;
    if (m && !sym_module_find_only(m, raw, &whole))
        return fn;
    char *name = demangle(m ? whole.name : raw, DEMANGLE_NO_ARGS);
    fn_id id = m ? functions_intern_at(img->functions, f.module, whole.name, name ? name : whole.name, whole.vaddr, FN_USER)
                 : functions_intern(img->functions, f.module, raw, name ? name : raw, 0, FN_USER);
    free(name);
    return id;
}

static fn_id join_cold_part(struct code_image *img, const struct addrspace_map *map, fn_id fn)
{
    const char *raw = functions_get(img->functions, fn)->raw, *cold = strstr(raw, ".cold");
    if (!cold || (cold[5] != '\0' && cold[5] != '.'))
        return fn;
    fn_id whole = hash64_get(&img->wholes, fn);
    if (whole == HASH64_NONE) {
        char *of = xstrndup(raw, (size_t)(cold - raw));
        whole = whole_of(img, map, fn, of);
        free(of);
        hash64_set(&img->wholes, fn, whole);
    }
    return whole;
}

static fn_id function_at(void *arg, uint64_t ip, uint64_t *offset)
{
    struct code_view *v = arg;
    struct code_image *img = v->img;
    const struct addrspace_map *map = find_map(v, ip);
    *offset = UINT64_MAX;
    pthread_mutex_lock(&img->lock);
    fn_id fn;
    if (!map) {
        fn = functions_intern(img->functions, "[unknown]", "[unknown]", "[unknown]", 0, FN_UNKNOWN);
    } else {
        fn = symbolizer_find_mapped(img->symbols, map, ip);
        const struct sym_module *m = symbolizer_module(img->symbols, map);
        struct symbol sym;
        size_t index;
        uint64_t vaddr;
        if (m && sym_module_find(m, ip - map->start + map->pgoff, &sym, &index) &&
            sym_module_vaddr(m, ip - map->start + map->pgoff, &vaddr))
            *offset = vaddr - sym.vaddr;
        fn_id whole = join_cold_part(img, map, fn);
        if (whole != fn)
            *offset = UINT64_MAX;
        fn = whole;
    }
    pthread_mutex_unlock(&img->lock);
    return fn;
}

struct pt_code code_view_code(struct code_view *v)
{
    return (struct pt_code){read_code, function_at, v};
}
