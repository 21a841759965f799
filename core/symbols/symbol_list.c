#include "core/symbols/symbol_list.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/alloc.h"
#include "core/symbols/demangle.h"
#include "core/symbols/fuzzy.h"

#define CHUNKS_MAX 8192 /* of RANK_CHUNK names: 33 million */
#define BLOCK_SIZE ((size_t)1 << 20)
#define NOTIFY_NS 30000000u
#define CHECK_EVERY 1024 /* names between two looks at clock and cancel */

struct block {
    struct block *next;
    size_t used, size;
    char data[];
};

struct part { /* the names of one module */
    size_t module;
    const struct symtab *symtab;
    size_t from;
    atomic_size_t to;
};

struct symbol_list {
    struct modules *modules;
    size_t n_modules, budget;
    void (*changed)(void *arg);
    void *arg;
    pthread_t thread;
    bool joined;
    atomic_bool cancel, done;
    atomic_size_t names, parts_ready, modules_done, left_out, bytes;
    struct part *parts;           /* in the order of loading */
    struct rank_chunk *chunks[CHUNKS_MAX];
    struct block *blocks;         /* the worker's */
    uint64_t notified_ns;
};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- The worker ---- */

static bool within_budget(struct symbol_list *l, size_t more)
{
    return atomic_load(&l->bytes) + more <= l->budget;
}

static char *keep_name(struct symbol_list *l, const char *name, size_t len)
{
    struct block *b = l->blocks;
    if (!b || b->size - b->used < len + 1) {
        size_t size = len + 1 > BLOCK_SIZE ? len + 1 : BLOCK_SIZE;
        b = within_budget(l, size) ? malloc(sizeof *b + size) : NULL;
        if (!b)
            return NULL;
        *b = (struct block){.next = l->blocks, .size = size};
        l->blocks = b;
        atomic_fetch_add(&l->bytes, size);
    }
    char *copy = b->data + b->used;
    memcpy(copy, name, len);
    copy[len] = '\0';
    b->used += len + 1;
    return copy;
}

/* The name to list: readable, without "@@GLIBC_2.2.5"; NULL when there is no room. */
static const char *display_name(struct symbol_list *l, const char *raw, size_t *len)
{
    char *readable = demangle(raw, DEMANGLE_SHORT);
    const char *name = readable ? readable : raw;
    const char *at = strchr(name, '@');
    *len = at && at > name ? (size_t)(at - name) : strlen(name);
    if (readable || name[*len])
        name = keep_name(l, name, *len);
    free(readable);
    return name;
}

static bool add_name(struct symbol_list *l, const char *name, size_t len, uint32_t tag)
{
    size_t at = atomic_load(&l->names), c = at / RANK_CHUNK;
    if (c >= CHUNKS_MAX)
        return false;
    if (!l->chunks[c]) {
        if (!within_budget(l, sizeof **l->chunks) || !(l->chunks[c] = malloc(sizeof **l->chunks)))
            return false;
        atomic_fetch_add(&l->bytes, sizeof **l->chunks);
    }
    l->chunks[c]->masks[at % RANK_CHUNK] = fuzzy_mask(name, len);
    l->chunks[c]->items[at % RANK_CHUNK] = (struct rank_item){name, (uint32_t)len, tag};
    atomic_store(&l->names, at + 1); /* publishes the two lines above */
    return true;
}

static void notify(struct symbol_list *l, bool always)
{
    uint64_t now = now_ns();
    if (!l->changed || (!always && now - l->notified_ns < NOTIFY_NS))
        return;
    l->notified_ns = now;
    l->changed(l->arg);
}

/* True for an alias that reads like a name already listed for the same address: constructors come in
 * two kinds, and versions are cut off. */
static bool is_listed(const struct symbol_list *l, const struct part *p, const struct symbol *s,
                      const char *name, size_t len)
{
    for (size_t i = atomic_load(&l->names); i-- > p->from;) {
        const struct rank_item *it = &l->chunks[i / RANK_CHUNK]->items[i % RANK_CHUNK];
        struct symbol other;
        symtab_all_get(p->symtab, it->tag, &other);
        if (other.vaddr != s->vaddr || atomic_load(&l->names) - i > 64)
            return false;
        if (it->len == len && memcmp(it->text, name, len) == 0)
            return true;
    }
    return false;
}

static void load_part(struct symbol_list *l, struct part *p)
{
    size_t n = symtab_all_count(p->symtab);
    for (size_t i = 0; i < n && i < UINT32_MAX; i++) {
        struct symbol s;
        symtab_all_get(p->symtab, i, &s);
        if (s.flags & (SYMBOL_PLT | SYMBOL_IFUNC))
            continue;
        size_t len;
        const char *name = display_name(l, s.name, &len);
        if (name && (s.flags & SYMBOL_ALIAS) && is_listed(l, p, &s, name, len))
            continue;
        if (!name || !add_name(l, name, len, (uint32_t)i)) {
            atomic_fetch_add(&l->left_out, n - i);
            return;
        }
        atomic_store(&p->to, atomic_load(&l->names));
        if (i % CHECK_EVERY == 0) {
            if (atomic_load(&l->cancel))
                return;
            notify(l, false);
        }
    }
}

static void load_module(struct symbol_list *l, size_t module)
{
    size_t k = atomic_load(&l->parts_ready);
    struct part *p = &l->parts[k];
    p->module = module;
    p->symtab = modules_symtab(l->modules, module, NULL);
    if (p->symtab) {
        p->from = atomic_load(&l->names);
        atomic_store(&p->to, p->from);
        atomic_store(&l->parts_ready, k + 1); /* before its first name is published */
        load_part(l, p);
    }
    atomic_fetch_add(&l->modules_done, 1);
    notify(l, false);
}

static void *work(void *arg)
{
    struct symbol_list *l = arg;
    for (int main_first = 1; main_first >= 0; main_first--) {
        for (size_t i = 0; i < l->n_modules && !atomic_load(&l->cancel); i++)
            if (modules_at(l->modules, i)->is_main == (main_first == 1))
                load_module(l, i);
    }
    atomic_store(&l->done, true);
    notify(l, true);
    return NULL;
}

/* ---- The owner's side ---- */

struct symbol_list *symbol_list_start(struct modules *m, size_t budget, void (*changed)(void *arg),
                                      void *arg)
{
    struct symbol_list *l = xcalloc(1, sizeof *l);
    l->modules = m;
    l->n_modules = modules_count(m);
    l->budget = budget ? budget : SYMBOL_LIST_BUDGET;
    l->changed = changed;
    l->arg = arg;
    l->parts = xcalloc(l->n_modules + 1, sizeof *l->parts);
    if (pthread_create(&l->thread, NULL, work, l) != 0) {
        l->joined = true;
        work(l); /* no thread to be had: slow, but right */
    }
    return l;
}

void symbol_list_cancel(struct symbol_list *l)
{
    atomic_store(&l->cancel, true);
}

void symbol_list_wait(struct symbol_list *l)
{
    if (!l->joined)
        pthread_join(l->thread, NULL);
    l->joined = true;
}

void symbol_list_free(struct symbol_list *l)
{
    if (!l)
        return;
    symbol_list_cancel(l);
    symbol_list_wait(l);
    for (size_t i = 0; i < CHUNKS_MAX && l->chunks[i]; i++)
        free(l->chunks[i]);
    for (struct block *b = l->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(l->parts);
    free(l);
}

void symbol_list_progress(const struct symbol_list *l, struct symbol_progress *out)
{
    bool done = atomic_load(&l->done);
    *out = (struct symbol_progress){
        .names = atomic_load(&l->names),
        .modules_done = atomic_load(&l->modules_done),
        .modules = l->n_modules,
        .done = done,
        .cancelled = atomic_load(&l->cancel),
        .left_out = atomic_load(&l->left_out),
        .bytes = atomic_load(&l->bytes),
    };
}

size_t symbol_list_count(const struct symbol_list *l)
{
    return atomic_load(&l->names);
}

void symbol_list_get(const struct symbol_list *l, size_t i, struct symbol_item *out)
{
    const struct rank_item *it = &l->chunks[i / RANK_CHUNK]->items[i % RANK_CHUNK];
    size_t lo = 0, hi = atomic_load(&l->parts_ready); /* the last part that begins at or before i */
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (l->parts[mid].from <= i)
            lo = mid;
        else
            hi = mid;
    }
    struct symbol s;
    symtab_all_get(l->parts[lo].symtab, it->tag, &s);
    *out = (struct symbol_item){.name = it->text,
                                .raw = s.name,
                                .module = l->parts[lo].module,
                                .vaddr = s.vaddr,
                                .size = s.size,
                                .flags = s.flags};
}

void symbol_list_module_range(const struct symbol_list *l, size_t module, size_t *from, size_t *to)
{
    *from = *to = 0;
    for (size_t i = 0, n = atomic_load(&l->parts_ready); i < n; i++) {
        if (l->parts[i].module == module) {
            *from = l->parts[i].from;
            *to = atomic_load(&l->parts[i].to);
        }
    }
}

const struct rank_chunk *symbol_list_chunk(void *list, size_t chunk)
{
    return ((const struct symbol_list *)list)->chunks[chunk];
}
