#include "decode/code_image.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/demangle.h"
#include "core/vec.h"
#include "decode/sym_module.h"

/* The mappings of a process from a time on. */
struct epoch {
    pid_t pid;
    uint64_t from_ns, generation;
    struct addrspace_map *maps;
    size_t n;
};

struct open_file { /* of a module; fd −1: no bytes */
    uint32_t module;
    int fd;
};

struct code_image {
    const struct addrspaces *as;
    struct symbolizer *symbols;
    struct functions *functions;
    const struct maps_log *log;
    VEC(struct epoch) epochs; /* in the order of time */
    pthread_mutex_t lock;     /* symbols, functions, files */
    VEC(struct open_file) files;
};

struct code_view {
    struct code_image *img;
    const struct epoch *epoch; /* NULL: nothing is known */
    pid_t pid;
    uint64_t time_ns;
};

struct code_image *code_image_new(const struct addrspaces *as, struct symbolizer *symbols,
                              struct functions *functions, const struct maps_log *log)
{
    struct code_image *img = xcalloc(1, sizeof *img);
    img->as = as;
    img->symbols = symbols;
    img->functions = functions;
    img->log = log;
    pthread_mutex_init(&img->lock, NULL);
    return img;
}

void code_image_free(struct code_image *img)
{
    if (!img)
        return;
    for (size_t i = 0; i < img->epochs.len; i++)
        free(img->epochs.data[i].maps);
    for (size_t i = 0; i < img->files.len; i++)
        if (img->files.data[i].fd >= 0)
            close(img->files.data[i].fd);
    vec_free(&img->epochs);
    vec_free(&img->files);
    pthread_mutex_destroy(&img->lock);
    free(img);
}

/* The epoch that holds at a time: the latest not after it, else the first (what perf found mapped at its
 * start may be stamped later than the first packets). */
static const struct epoch *epoch_at(const struct code_image *img, pid_t pid, uint64_t time_ns)
{
    const struct epoch *first = NULL, *best = NULL;
    for (size_t i = 0; i < img->epochs.len; i++) {
        const struct epoch *e = &img->epochs.data[i];
        if (e->pid != pid)
            continue;
        if (!first)
            first = e;
        if (e->from_ns <= time_ns)
            best = e;
    }
    return best ? best : first;
}

int code_image_note(struct code_image *img, pid_t pid, uint64_t time_ns)
{
    uint64_t generation = addrspaces_generation(img->as, pid);
    const struct epoch *last = epoch_at(img, pid, UINT64_MAX);
    if (!generation || (last && last->generation == generation))
        return 0;
    struct epoch e = {.pid = pid, .from_ns = time_ns, .generation = generation};
    const struct addrspace_map *maps = addrspaces_maps(img->as, pid, &e.n);
    e.maps = malloc((e.n ? e.n : 1) * sizeof *e.maps);
    if (!e.maps)
        return MTUI_E_NOMEM;
    if (e.n)
        memcpy(e.maps, maps, e.n * sizeof *maps);
    /* Records of the same time, as perf writes them at its start, make one epoch. */
    if (last && last->from_ns == time_ns) {
        struct epoch *same = &img->epochs.data[last - img->epochs.data];
        free(same->maps);
        *same = e;
        return 0;
    }
    if (!vec_try_push(&img->epochs, e)) {
        free(e.maps);
        return MTUI_E_NOMEM;
    }
    return 0;
}

bool code_image_knows(const struct code_image *img, pid_t pid)
{
    return epoch_at(img, pid, UINT64_MAX) != NULL;
}

static const struct addrspace_map *find_map(const struct epoch *e, uint64_t ip)
{
    size_t lo = 0, hi = e ? e->n : 0;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (e->maps[mid].end <= ip)
            lo = mid + 1;
        else
            hi = mid;
    }
    return e && lo < e->n && ip >= e->maps[lo].start ? &e->maps[lo] : NULL;
}

const char *code_image_where(const struct code_image *img, pid_t pid, uint64_t time_ns, uint64_t ip)
{
    const struct addrspace_map *m = find_map(epoch_at(img, pid, time_ns), ip);
    return m ? addrspaces_module(img->as, m->module).path : NULL;
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
    free(v);
}

bool code_view_at(struct code_view *v, pid_t pid, uint64_t time_ns)
{
    v->time_ns = time_ns;
    v->pid = pid;
    const struct epoch *e = epoch_at(v->img, pid, time_ns);
    bool other = e != v->epoch;
    v->epoch = e;
    return other;
}

static int file_of(struct code_image *img, const struct addrspace_map *map)
{
    for (size_t i = 0; i < img->files.len; i++)
        if (img->files.data[i].module == map->module)
            return img->files.data[i].fd;
    const struct sym_module *m = symbolizer_module(img->symbols, map);
    struct open_file f = {map->module, m ? sym_module_fd(m) : -1};
    vec_push(&img->files, f);
    return f.fd;
}

bool code_view_section(struct code_view *v, size_t i, struct code_section *out)
{
    if (!v->epoch || i >= v->epoch->n)
        return false;
    const struct addrspace_map *m = &v->epoch->maps[i];
    pthread_mutex_lock(&v->img->lock);
    int fd = file_of(v->img, m);
    pthread_mutex_unlock(&v->img->lock);
    *out = (struct code_section){m->start, m->end - m->start, m->pgoff, fd};
    return true;
}

static size_t read_code(void *arg, uint64_t ip, uint8_t *out, size_t n)
{
    struct code_view *v = arg;
    struct code_image *img = v->img;
    size_t dumped = img->log ? maps_log_code_read(img->log, v->pid, v->time_ns, ip, out, n) : 0;
    if (dumped)
        return dumped;
    const struct addrspace_map *map = find_map(v->epoch, ip);
    if (!map)
        return 0;
    if (n > map->end - ip)
        n = (size_t)(map->end - ip);
    pthread_mutex_lock(&img->lock);
    int fd = file_of(img, map);
    pthread_mutex_unlock(&img->lock);
    ssize_t got = fd < 0 ? -1 : pread(fd, out, n, (off_t)(ip - map->start + map->pgoff));
    return got > 0 ? (size_t)got : 0;
}

/* gcc moves rarely executed parts of f out into f.cold; they are the same function to a reader. */
static fn_id join_cold_part(struct code_image *img, fn_id fn, uint64_t *offset)
{
    const struct function *f = functions_get(img->functions, fn);
    const char *cold = strstr(f->raw, ".cold");
    if (!cold || (cold[5] != '\0' && cold[5] != '.'))
        return fn;
    *offset = UINT64_MAX;
    char *raw = xstrndup(f->raw, (size_t)(cold - f->raw)), *module = xstrdup(f->module);
    char *name = demangle(raw, DEMANGLE_NO_ARGS);
    fn_id whole = functions_intern(img->functions, module, raw, name ? name : raw, 0, FN_USER);
    free(name);
    free(raw);
    free(module);
    return whole;
}

static fn_id function_at(void *arg, uint64_t ip, uint64_t *offset)
{
    struct code_view *v = arg;
    struct code_image *img = v->img;
    const struct addrspace_map *map = find_map(v->epoch, ip);
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
        fn = join_cold_part(img, fn, offset);
    }
    pthread_mutex_unlock(&img->lock);
    return fn;
}

struct pt_code code_view_code(struct code_view *v)
{
    return (struct pt_code){read_code, function_at, v};
}
