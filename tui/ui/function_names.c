#include "tui/ui/function_names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/intern.h"
#include "core/base/path_ends.h"
#include "core/base/vec.h"
#include "core/symbols/demangle.h"
#include "tui/ui/name.h"

struct function_names {
    const struct functions *functions; /* NULL: none */
    enum name_style style;
    bool made;
    size_t count;
    char **shown; /* by fn_id: in the style, or in full; NULL: as the trace has it */
    char **apart; /* by fn_id: that with the module; NULL: it alone tells it apart */
    bool *overload; /* by fn_id: in its module another is called the same but for parameters, arguments of templates */
    uint32_t *module; /* by fn_id: the number of its module */
    struct intern *paths; /* of modules, by number */
    const char **modules; /* by number: what is shown of it, the end of its path */
};

struct function_names *function_names_new(void)
{
    return xcalloc(1, sizeof(struct function_names));
}

static void forget(struct function_names *n)
{
    for (size_t i = 0; i < n->count; i++) {
        free(n->shown[i]);
        free(n->apart[i]);
    }
    free(n->shown);
    free(n->apart);
    free(n->module);
    free(n->overload);
    free(n->modules);
    intern_free(n->paths);
    *n = (struct function_names){.functions = n->functions, .style = n->style};
}

void function_names_free(struct function_names *n)
{
    if (n)
        forget(n);
    free(n);
}

void function_names_set(struct function_names *n, const struct functions *f, enum name_style style)
{
    forget(n);
    n->functions = f;
    n->style = style;
}

void function_names_grow(struct function_names *n, const struct functions *f)
{
    if (n->made && f && functions_count(f) == n->count)
        n->functions = f;
    else
        function_names_set(n, f, n->style);
}

static bool is_mangled(const struct function *fn)
{
    return strcmp(fn->name, fn->raw) != 0;
}

static const char *in_module(const struct function_names *n, fn_id fn)
{
    return fn < n->count && n->shown[fn] ? n->shown[fn] : functions_get(n->functions, fn)->name;
}

/* ---- Modules ---- */

static void make_modules(struct function_names *n)
{
    VEC(const char *) modules = {0};
    n->paths = intern_new();
    for (fn_id i = 0; i < n->count; i++) {
        const char *path = functions_get(n->functions, i)->module;
        n->module[i] = intern_add(n->paths, path, strlen(path));
        if (n->module[i] == modules.len)
            vec_push(&modules, intern_get(n->paths, n->module[i]));
    }
    n->modules = xcalloc(modules.len + 1, sizeof *n->modules);
    path_ends(modules.data, modules.len, n->modules);
    vec_free(&modules);
}

/* ---- Functions ---- */

static void write_short(struct function_names *n, fn_id i)
{
    const struct function *fn = functions_get(n->functions, i);
    if (!is_mangled(fn) || !strpbrk(fn->name, "<("))
        return;
    n->shown[i] = xstrdup(fn->name);
    demangle_shorten(n->shown[i]);
}

static void mark_overload(struct function_names *n, fn_id i)
{
    n->overload[i] = is_mangled(functions_get(n->functions, i)); /* else there are no parameters to be had */
}

static void write_styled(struct function_names *n, fn_id i)
{
    const struct function *fn = functions_get(n->functions, i);
    if (!is_mangled(fn) || (n->style == NAMES_SHORT && !n->overload[i]))
        return;
    free(n->shown[i]);
    n->shown[i] = n->style == NAMES_RAW ? xstrdup(fn->raw) : demangle_or_copy(fn->raw, DEMANGLE_FULL);
}

/* Nothing but where it is tells it apart: a static function of another source file, a second destructor. */
static void write_address(struct function_names *n, fn_id i)
{
    const struct function *fn = functions_get(n->functions, i);
    if (!fn->addr)
        return;
    char *name = xasprintf("%s 0x%" PRIx64, in_module(n, i), fn->addr);
    free(n->shown[i]);
    n->shown[i] = name;
}

/* Where the module is known. */
static void write_module(struct function_names *n, fn_id i)
{
    const char *module = n->modules[n->module[i]], *name = in_module(n, i);
    if (!n->apart[i] && strcmp(module, name) != 0)
        n->apart[i] = xasprintf("%s %s", name, module);
}

static uint32_t number_of_name(const struct function_names *n, fn_id i, bool within_module, struct intern *called)
{
    const char *name = in_module(n, i);
    const size_t module = within_module ? sizeof n->module[i] : 0, len = strlen(name);
    char *key = xmalloc(module + len + 1);
    memcpy(key, &n->module[i], module);
    memcpy(key + module, name, len);
    uint32_t number = intern_add(called, key, module + len);
    free(key);
    return number;
}

/* Hands those that are called the same, within a module or in all, to write. */
static void each_of_a_name(struct function_names *n, bool within_module, void (*write)(struct function_names *n, fn_id i))
{
    struct intern *called = intern_new();
    VEC(fn_id) first = {0}; /* by the number of the name; FN_NONE: was handed over */
    for (fn_id i = 0; i < n->count; i++) {
        uint32_t number = number_of_name(n, i, within_module, called);
        if (number == first.len) {
            vec_push(&first, i);
            continue;
        }
        if (first.data[number] != FN_NONE)
            write(n, first.data[number]);
        first.data[number] = FN_NONE;
        write(n, i);
    }
    vec_free(&first);
    intern_free(called);
}

static void make(struct function_names *n)
{
    n->made = true;
    n->count = n->functions ? functions_count(n->functions) : 0;
    n->shown = xcalloc(n->count + 1, sizeof *n->shown);
    n->apart = xcalloc(n->count + 1, sizeof *n->apart);
    n->module = xcalloc(n->count + 1, sizeof *n->module);
    n->overload = xcalloc(n->count + 1, sizeof *n->overload);
    make_modules(n);
    for (fn_id i = 0; i < n->count; i++)
        write_short(n, i);
    each_of_a_name(n, true, mark_overload);
    for (fn_id i = 0; i < n->count; i++)
        write_styled(n, i);
    each_of_a_name(n, true, write_address);
    each_of_a_name(n, false, write_module);
    for (fn_id i = 0; i < n->count; i++)
        if (functions_get(n->functions, i)->kind == FN_UNKNOWN && strcmp(in_module(n, i), "[unknown]") == 0)
            write_module(n, i);
}

/* ---- Answers ---- */

const char *function_names_in_module(struct function_names *n, fn_id fn)
{
    if (!n->made)
        make(n);
    return in_module(n, fn);
}

const char *function_names_get(struct function_names *n, fn_id fn)
{
    const char *name = function_names_in_module(n, fn);
    return fn < n->count && n->apart[fn] ? n->apart[fn] : name;
}

const char *function_names_module(struct function_names *n, fn_id fn)
{
    if (!n->made)
        make(n);
    return fn < n->count ? n->modules[n->module[fn]] : functions_get(n->functions, fn)->module;
}

bool function_names_overload(struct function_names *n, fn_id fn)
{
    if (!n->made)
        make(n);
    return fn < n->count && n->overload[fn];
}

static size_t fit(struct function_names *n, fn_id fn, const char *name, char *out, size_t size, int cols,
                  const struct glyphs *g)
{
    return name_fit(out, size, name, function_names_overload(n, fn), cols > 0 ? (size_t)cols : 0,
                    glyph(g, GLYPH_ELLIPSIS));
}

size_t function_names_fit(struct function_names *n, fn_id fn, char *out, size_t size, int cols, const struct glyphs *g)
{
    return fit(n, fn, function_names_get(n, fn), out, size, cols, g);
}

size_t function_names_fit_in_module(struct function_names *n, fn_id fn, char *out, size_t size, int cols,
                                    const struct glyphs *g)
{
    return fit(n, fn, function_names_in_module(n, fn), out, size, cols, g);
}

const char *function_names_form(struct function_names *n, fn_id fn, int i)
{
    return i == 0   ? function_names_get(n, fn)
           : i == 1 ? function_names_in_module(n, fn)
           : i == 2 ? functions_get(n->functions, fn)->name
                    : NULL;
}

bool function_names_occur(struct function_names *n, const char *text)
{
    const char *form;
    for (fn_id fn = 0; n->functions && fn < functions_count(n->functions); fn++)
        for (int i = 0; (form = function_names_form(n, fn, i)); i++)
            if (strcasestr(form, text))
                return true;
    return false;
}
