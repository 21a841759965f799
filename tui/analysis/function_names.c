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
    char **full;  /* by fn_id: with parameters; NULL: its name alone tells it apart in its module */
    char **apart; /* by fn_id: that with the module; NULL: it alone tells it apart */
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

/* Where the module is known. */
static void write_module(struct function_names *n, fn_id i)
{
    const struct function *fn = functions_get(n->functions, i);
    const char *last = strrchr(fn->module, '/'), *module = last ? last + 1 : fn->module;
    if (!n->apart[i] && strcmp(module, fn->name) != 0)
        n->apart[i] = xasprintf("%s %s", function_names_in_module(n, i), module);
}

/* Those that are called the same within a module get parameters. */
static void tell_overloads_apart(struct function_names *n)
{
    struct intern *called = intern_new();
    VEC(fn_id) first = {0}; /* by the number of what it is called */
    for (fn_id i = 0; i < n->count; i++) {
        const struct function *fn = functions_get(n->functions, i);
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
}

/* Those that still are called the same get their modules. */
static void tell_modules_apart(struct function_names *n)
{
    struct intern *called = intern_new();
    VEC(fn_id) first = {0};
    for (fn_id i = 0; i < n->count; i++) {
        const struct function *fn = functions_get(n->functions, i);
        const char *name = function_names_in_module(n, i);
        uint32_t number = intern_add(called, name, strlen(name));
        if (fn->kind == FN_UNKNOWN && strcmp(name, "[unknown]") == 0)
            write_module(n, i);
        if (number == first.len) {
            vec_push(&first, i);
            continue;
        }
        write_module(n, first.data[number]);
        write_module(n, i);
    }
    vec_free(&first);
    intern_free(called);
}

struct function_names *function_names_new(const struct functions *f)
{
    struct function_names *n = xcalloc(1, sizeof *n);
    n->functions = f;
    n->count = functions_count(f);
    n->full = xcalloc(n->count + 1, sizeof *n->full);
    n->apart = xcalloc(n->count + 1, sizeof *n->apart);
    tell_overloads_apart(n);
    tell_modules_apart(n);
    return n;
}

void function_names_free(struct function_names *n)
{
    if (!n)
        return;
    for (size_t i = 0; i < n->count; i++) {
        free(n->full[i]);
        free(n->apart[i]);
    }
    free(n->full);
    free(n->apart);
    free(n);
}

const char *function_names_get(const struct function_names *n, fn_id fn)
{
    const char *apart = fn < n->count ? n->apart[fn] : NULL;
    return apart ? apart : function_names_in_module(n, fn);
}

const char *function_names_in_module(const struct function_names *n, fn_id fn)
{
    const char *full = fn < n->count ? n->full[fn] : NULL;
    return full ? full : functions_get(n->functions, fn)->name;
}
