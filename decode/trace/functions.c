#include "decode/trace/functions.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "core/base/intern.h"

/* Block 0 holds the first 2^FIRST_BITS functions, block b the next 2^(FIRST_BITS + b − 1): they never
 * move, so ids can be looked up while others are added. */
#define FIRST_BITS 8
#define BLOCKS (32 - FIRST_BITS + 1)

struct module_file {
    char *module, *file;
};

struct storage {
    atomic_uint users;
    atomic_size_t count;
    struct function *blocks[BLOCKS];
    struct intern *modules; /* each once; functions point into it */
    pthread_mutex_t lock;   /* files; whoever adds functions */
    VEC(struct module_file) files;
};

struct functions {
    struct storage *storage;
    size_t count;
    bool fixed;   /* shared: nothing is added any more */
    fn_id *slots; /* under the lock: open addressing, FN_NONE is free; NULL when fixed */
    size_t mask;
};

#define FIRST_SLOTS 256

static uint64_t hash_string(uint64_t h, const char *s)
{
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3ULL; /* FNV-1a */
    return h;
}

/* What makes a function one: addr counts only by_addr. */
struct key {
    const char *module, *raw;
    uint64_t addr;
    bool by_addr;
};

static size_t hash_key(const struct key *k)
{
    uint64_t h = hash_string(0xcbf29ce484222325ULL, k->raw);
    h = hash_string((h ^ 0xff) * 0x100000001b3ULL, k->module);
    return (size_t)(k->by_addr ? (h ^ k->addr) * 0x100000001b3ULL : h);
}

static bool is(const struct function *fn, const struct key *k)
{
    return fn->by_addr == k->by_addr && (!k->by_addr || fn->addr == k->addr) && strcmp(fn->raw, k->raw) == 0 &&
           strcmp(fn->module, k->module) == 0;
}

static size_t block_of(fn_id id, size_t *first)
{
    unsigned b = id >> FIRST_BITS ? 32u - (unsigned)__builtin_clz(id >> FIRST_BITS) : 0;
    *first = b ? (size_t)1 << (FIRST_BITS + b - 1) : 0;
    return b;
}

static struct function *at(const struct functions *f, fn_id id)
{
    size_t first, b = block_of(id, &first);
    return &f->storage->blocks[b][id - first];
}

static fn_id *find(const struct functions *f, const struct key *k)
{
    size_t i = hash_key(k) & f->mask;
    while (f->slots[i] != FN_NONE && !is(at(f, f->slots[i]), k))
        i = (i + 1) & f->mask;
    return &f->slots[i];
}

static void resize(struct functions *f, size_t slots)
{
    free(f->slots);
    f->slots = xmalloc(slots * sizeof *f->slots);
    f->mask = slots - 1;
    for (size_t i = 0; i < slots; i++)
        f->slots[i] = FN_NONE;
    for (fn_id i = 0; i < f->count; i++) {
        const struct function *fn = at(f, i);
        *find(f, &(struct key){fn->module, fn->raw, fn->addr, fn->by_addr}) = i;
    }
}

struct functions *functions_new(void)
{
    struct functions *f = xcalloc(1, sizeof *f);
    f->storage = xcalloc(1, sizeof *f->storage);
    atomic_init(&f->storage->users, 1);
    f->storage->modules = intern_new();
    pthread_mutex_init(&f->storage->lock, NULL);
    resize(f, FIRST_SLOTS);
    return f;
}

struct functions *functions_share(const struct functions *f)
{
    struct functions *g = xcalloc(1, sizeof *g);
    g->storage = f->storage;
    g->count = f->fixed ? f->count : atomic_load(&f->storage->count);
    g->fixed = true;
    atomic_fetch_add(&g->storage->users, 1);
    return g;
}

static void free_storage(struct storage *s, size_t count)
{
    struct functions all = {.storage = s};
    for (fn_id i = 0; i < count; i++) {
        const struct function *fn = at(&all, i);
        if (fn->name != fn->raw)
            free((void *)(uintptr_t)fn->name);
        free((void *)(uintptr_t)fn->raw);
    }
    for (size_t b = 0; b < BLOCKS; b++)
        free(s->blocks[b]);
    for (size_t i = 0; i < s->files.len; i++) {
        free(s->files.data[i].module);
        free(s->files.data[i].file);
    }
    vec_free(&s->files);
    pthread_mutex_destroy(&s->lock);
    intern_free(s->modules);
    free(s);
}

void functions_free(struct functions *f)
{
    if (!f)
        return;
    if (atomic_fetch_sub(&f->storage->users, 1) == 1)
        free_storage(f->storage, atomic_load(&f->storage->count));
    free(f->slots);
    free(f);
}

/* Under the lock. */
static fn_id add(struct functions *f, const struct key *k, const char *name, enum fn_kind kind)
{
    fn_id *slot = find(f, k);
    if (*slot != FN_NONE)
        return *slot;
    if (f->count >= f->mask / 3 * 2) {
        resize(f, (f->mask + 1) * 2);
        slot = find(f, k);
    }
    size_t first, b = block_of((fn_id)f->count, &first);
    if (!f->storage->blocks[b])
        f->storage->blocks[b] =
            xcalloc((size_t)1 << (b ? FIRST_BITS + b - 1 : FIRST_BITS), sizeof(struct function));
    struct function *fn = at(f, (fn_id)f->count);
    *fn = (struct function){.addr = k->addr, .kind = kind, .by_addr = k->by_addr};
    fn->module =
        intern_get(f->storage->modules, intern_add(f->storage->modules, k->module, strlen(k->module)));
    fn->raw = xstrdup(k->raw);
    fn->name = strcmp(name, k->raw) == 0 ? fn->raw : xstrdup(name);
    *slot = (fn_id)f->count++;
    atomic_store(&f->storage->count, f->count);
    return *slot;
}

static fn_id intern(struct functions *f, const struct key *k, const char *name, enum fn_kind kind)
{
    pthread_mutex_lock(&f->storage->lock);
    fn_id id = add(f, k, name, kind);
    pthread_mutex_unlock(&f->storage->lock);
    return id;
}

fn_id functions_intern(struct functions *f, const char *module, const char *raw, const char *name,
                       uint64_t addr, enum fn_kind kind)
{
    return intern(f, &(struct key){module, raw, addr, false}, name, kind);
}

fn_id functions_intern_at(struct functions *f, const char *module, const char *raw, const char *name,
                          uint64_t addr, enum fn_kind kind)
{
    return intern(f, &(struct key){module, raw, addr, true}, name, kind);
}

size_t functions_count(const struct functions *f)
{
    return f->fixed ? f->count : atomic_load(&f->storage->count);
}

const struct function *functions_get(const struct functions *f, fn_id id)
{
    return at(f, id);
}

/* Under the lock. */
static const char *find_file(const struct storage *s, const char *module)
{
    for (size_t i = 0; i < s->files.len; i++)
        if (strcmp(s->files.data[i].module, module) == 0)
            return s->files.data[i].file;
    return NULL;
}

const char *functions_file(const struct functions *f, const char *module)
{
    pthread_mutex_lock(&f->storage->lock);
    const char *file = find_file(f->storage, module);
    pthread_mutex_unlock(&f->storage->lock);
    return file;
}

bool functions_have_files(const struct functions *f)
{
    pthread_mutex_lock(&f->storage->lock);
    bool any = f->storage->files.len > 0;
    pthread_mutex_unlock(&f->storage->lock);
    return any;
}

void functions_set_file(struct functions *f, const char *module, const char *file)
{
    pthread_mutex_lock(&f->storage->lock);
    if (!find_file(f->storage, module))
        vec_push(&f->storage->files, ((struct module_file){xstrdup(module), xstrdup(file)}));
    pthread_mutex_unlock(&f->storage->lock);
}
