#include "decode/functions.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/vec.h"
#include "decode/intern.h"

struct module_file {
    char *module, *file;
};

struct functions {
    VEC(struct function) list;
    struct intern *modules; /* each once; functions point into it */
    VEC(struct module_file) files;
    fn_id *slots;              /* open addressing, FN_NONE is free */
    size_t mask;
};

#define FIRST_SLOTS 256

static uint64_t hash_string(uint64_t h, const char *s)
{
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3ULL; /* FNV-1a */
    return h;
}

static size_t hash_key(const char *module, const char *raw)
{
    uint64_t h = hash_string(0xcbf29ce484222325ULL, raw);
    return (size_t)hash_string((h ^ 0xff) * 0x100000001b3ULL, module);
}

static fn_id *find(const struct functions *f, const char *module, const char *raw)
{
    size_t i = hash_key(module, raw) & f->mask;
    while (f->slots[i] != FN_NONE) {
        const struct function *fn = &f->list.data[f->slots[i]];
        if (strcmp(fn->raw, raw) == 0 && strcmp(fn->module, module) == 0)
            break;
        i = (i + 1) & f->mask;
    }
    return &f->slots[i];
}

static void resize(struct functions *f, size_t slots)
{
    free(f->slots);
    f->slots = xmalloc(slots * sizeof *f->slots);
    f->mask = slots - 1;
    for (size_t i = 0; i < slots; i++)
        f->slots[i] = FN_NONE;
    for (size_t i = 0; i < f->list.len; i++)
        *find(f, f->list.data[i].module, f->list.data[i].raw) = (fn_id)i;
}

struct functions *functions_new(void)
{
    struct functions *f = xcalloc(1, sizeof *f);
    f->modules = intern_new();
    resize(f, FIRST_SLOTS);
    return f;
}

void functions_free(struct functions *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->list.len; i++) {
        const struct function *fn = &f->list.data[i];
        if (fn->name != fn->raw)
            free((void *)(uintptr_t)fn->name);
        free((void *)(uintptr_t)fn->raw);
    }
    for (size_t i = 0; i < f->files.len; i++) {
        free(f->files.data[i].module);
        free(f->files.data[i].file);
    }
    vec_free(&f->files);
    intern_free(f->modules);
    vec_free(&f->list);
    free(f->slots);
    free(f);
}

fn_id functions_intern(struct functions *f, const char *module, const char *raw, const char *name,
                       uint64_t addr, enum fn_kind kind)
{
    fn_id *slot = find(f, module, raw);
    if (*slot != FN_NONE)
        return *slot;
    if (f->list.len >= f->mask / 3 * 2) {
        resize(f, (f->mask + 1) * 2);
        slot = find(f, module, raw);
    }
    struct function fn = {.addr = addr, .kind = kind};
    fn.module = intern_get(f->modules, intern_add(f->modules, module, strlen(module)));
    fn.raw = xstrdup(raw);
    fn.name = strcmp(name, raw) == 0 ? fn.raw : xstrdup(name);
    *slot = (fn_id)f->list.len;
    vec_push(&f->list, fn);
    return *slot;
}

size_t functions_count(const struct functions *f)
{
    return f->list.len;
}

const struct function *functions_get(const struct functions *f, fn_id id)
{
    return &f->list.data[id];
}

const char *functions_file(const struct functions *f, const char *module)
{
    for (size_t i = 0; i < f->files.len; i++)
        if (strcmp(f->files.data[i].module, module) == 0)
            return f->files.data[i].file;
    return NULL;
}

bool functions_have_files(const struct functions *f)
{
    return f->files.len > 0;
}

void functions_set_file(struct functions *f, const char *module, const char *file)
{
    if (!functions_file(f, module))
        vec_push(&f->files, ((struct module_file){xstrdup(module), xstrdup(file)}));
}
