#include "tui/analysis/function_names.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/intern.h"
#include "core/base/vec.h"
#include "core/symbols/demangle.h"

struct function_names {
    const struct functions *functions;
    size_t count;
    char **full; /* by fn_id; NULL: its name alone tells it apart */
};

/* The number of what a function is called in its module. */
static uint32_t number_of(struct intern *called, const struct function *fn)
{
    char *key = xasprintf("%s%c%s", fn->module, '\n', fn->name);
    uint32_t number = intern_add(called, key, strlen(key));
    free(key);
    return number;
}

static void write_full(struct function_names *n, fn_id fn)
{
    if (!n->full[fn])
        n->full[fn] = demangle_or_copy(functions_get(n->functions, fn)->raw, DEMANGLE_FULL);
}

/* Of unknown code: which module's, where that is known. */
static void write_module(struct function_names *n, fn_id i, const struct function *fn)
{
    const char *last = strrchr(fn->module, '/'), *module = last ? last + 1 : fn->module;
    if (strcmp(module, fn->name) != 0)
        n->full[i] = xasprintf("%s %s", fn->name, module);
}

struct function_names *function_names_new(const struct functions *f)
{
    struct function_names *n = xcalloc(1, sizeof *n);
    struct intern *called = intern_new();
    VEC(fn_id) first = {0}; /* by the number of what it is called */
    n->functions = f;
    n->count = functions_count(f);
    n->full = xcalloc(n->count + 1, sizeof *n->full);
    for (fn_id i = 0; i < n->count; i++) {
        const struct function *fn = functions_get(f, i);
        if (fn->kind == FN_UNKNOWN && strcmp(fn->name, "[unknown]") == 0)
            write_module(n, i, fn);
        if (strcmp(fn->name, fn->raw) == 0)
            continue; /* not mangled: there are no parameters to be had */
        uint32_t number = number_of(called, fn);
        if (number == first.len) {
            vec_push(&first, i);
            continue;
        }
        write_full(n, first.data[number]);
        write_full(n, i);
    }
    vec_free(&first);
    intern_free(called);
    return n;
}

void function_names_free(struct function_names *n)
{
    if (!n)
        return;
    for (size_t i = 0; i < n->count; i++)
        free(n->full[i]);
    free(n->full);
    free(n);
}

const char *function_names_get(const struct function_names *n, fn_id fn)
{
    const char *full = fn < n->count ? n->full[fn] : NULL;
    return full ? full : functions_get(n->functions, fn)->name;
}
