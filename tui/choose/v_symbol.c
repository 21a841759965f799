/* Screen 2, Symbols: typing finds functions, Tab chooses them as triggers, Enter arms. */
#include "tui/choose/v_symbol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/alloc.h"
#include "core/doctor/capability.h"
#include "core/base/fmt.h"
#include "core/base/loop.h"
#include "tui/ui/model.h"
#include "tui/ui/settings.h"
#include "tui/choose/symbol_detail.h"
#include "tui/choose/symbol_view.h"

#define KEY_BUDGET_NS 25000000u  /* matching after a key, before the screen is drawn */
#define WORK_EVERY_NS 10000000u  /* and then in the background */

/* ---- Background work ---- */

static uint64_t soon(uint64_t ns)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + ns;
}

static void on_timer(void *arg)
{
    struct symbol_view *v = arg;
    v->timer = 0;
    symbol_work(v, WORK_EVERY_NS);
}

void symbol_work(struct symbol_view *v, uint64_t budget_ns)
{
    struct source_lookup *source = symbol_rows_source(v->rows);
    size_t before = symbol_rows_count(v->rows);
    bool more = symbol_rows_work(v->rows, soon(budget_ns));
    if (source && source_lookup_poll(source))
        model_redraw(v->m);
    if (more || symbol_rows_count(v->rows) != before) {
        list_refresh(v->list, false);
        model_redraw(v->m);
    }
    if ((more || (source && source_lookup_busy(source))) && !v->timer)
        v->timer = loop_add_timer(v->m->loop, loop_now_ns(v->m->loop) + WORK_EVERY_NS, on_timer, v);
}

/* ---- Life ---- */

void *symbol_view_new(struct model *m, const char *proc_root)
{
    struct symbol_view *v = xcalloc(1, sizeof *v);
    struct list_rows callbacks = symbol_rows_callbacks();
    v->m = m;
    v->proc_root = xstrdup(proc_root);
    v->rows = symbol_rows_new(m);
    v->list = list_new(symbol_columns, SYMBOL_COLUMNS, &callbacks, v->rows);
    list_set_header(v->list, false);
    v->query = prompt_new();
    return v;
}

static void *create(struct model *m)
{
    return symbol_view_new(m, "/proc");
}

static void destroy(void *view)
{
    struct symbol_view *v = view;
    loop_remove(v->m->loop, v->timer);
    list_free(v->list);
    prompt_free(v->query);
    symbol_rows_free(v->rows);
    free(v->proc_root);
    free(v);
}

static void load(struct symbol_view *v)
{
    v->loaded_pid = v->m->target.pid;
    v->loaded_start = v->m->target.start_time;
    v->trouble.code = 0;
    symbol_rows_load(v->rows, v->proc_root, v->m->target.pid, &v->trouble);
    list_select(v->list, 0);
    symbol_work(v, KEY_BUDGET_NS);
}

static void show(void *view)
{
    struct symbol_view *v = view;
    if (v->m->target.pid != v->loaded_pid || v->m->target.start_time != v->loaded_start)
        load(v);
    symbol_work(v, 0);
}

void symbol_view_wait(void *view)
{
    struct symbol_view *v = view;
    symbol_rows_wait(v->rows);
    symbol_work(v, UINT64_MAX / 4);
}

/* ---- The query ---- */

static void ask(struct symbol_view *v, size_t module)
{
    v->refused.code = 0;
    if (symbol_rows_query(v->rows, v->mode, prompt_text(v->query), module, &v->refused) < 0) {
        model_redraw(v->m);
        return;
    }
    symbol_rows_work(v->rows, soon(KEY_BUDGET_NS));
    list_select(v->list, 0);
    symbol_work(v, 0);
    model_redraw(v->m);
}

static void query_changed(struct symbol_view *v)
{
    v->in_triggers = false;
    ask(v, symbol_rows_module(v->rows));
}

static bool typing(const void *view)
{
    (void)view;
    return true;
}

static bool key(void *view, struct key k)
{
    struct symbol_view *v = view;
    switch (prompt_key(v->query, k)) {
    case PROMPT_CHANGED:
        query_changed(v);
        return true;
    case PROMPT_MOVED:
        model_redraw(v->m);
        return true;
    case PROMPT_IGNORED:
    case PROMPT_DONE:
    case PROMPT_CANCELLED:
        break;
    }
    return false;
}

static void next_mode(struct symbol_view *v)
{
    v->mode = v->mode == MATCH_FUZZY ? MATCH_REGEX : v->mode == MATCH_REGEX ? MATCH_EXACT : MATCH_FUZZY;
    ask(v, symbol_rows_module(v->rows));
}

static void choose_module(struct symbol_view *v, const char *name)
{
    size_t module = symbol_rows_next_module(v->rows);
    if (name && *name) {
        module = strcmp(name, "all") == 0 ? SIZE_MAX : symbol_rows_find_module(v->rows, name);
        if (module == SIZE_MAX && strcmp(name, "all") != 0) {
            model_warn(v->m, "no module begins with '%s'", name);
            return;
        }
    }
    ask(v, module);
}

/* ---- Actions ---- */

bool symbol_selected(struct symbol_view *v, struct symbol_item *item)
{
    return symbol_rows_get(v->rows, list_selected(v->list), item);
}

static void edit(struct symbol_view *v, struct key k)
{
    if (prompt_key(v->query, k) == PROMPT_CHANGED)
        query_changed(v);
}

static bool open_source(struct symbol_view *v)
{
    struct symbol_item item;
    const char *file;
    int line;
    if (!symbol_selected(v, &item))
        return false;
    if (symbol_detail_place(v->rows, &item, &file, &line))
        model_edit_source(v->m, file, line);
    else
        model_warn(v->m, "no source is known for %s", item.name);
    return true;
}

static bool view_action(struct symbol_view *v, enum action act, const char *arg)
{
    struct symbol_item item;
    switch ((int)act) {
    case ACT_TOGGLE:
        symbol_toggle(v);
        return true;
    case ACT_MATCH_MODE:
        next_mode(v);
        return true;
    case ACT_MODULE:
        choose_module(v, arg);
        return true;
    case ACT_ENTRY_RETURN:
        symbol_entry_or_return(v);
        return true;
    case ACT_TRIGGER_LIST:
        v->in_triggers = v->m->triggers.len > 0;
        v->trigger = 0;
        if (!v->in_triggers)
            model_say(v->m, "no trigger is chosen yet; Tab chooses");
        return true;
    case ACT_KILL_LINE:
        edit(v, (struct key){'u', K_CTRL});
        return true;
    case ACT_KILL_WORD:
        edit(v, (struct key){'w', K_CTRL});
        return true;
    case ACT_ARM:
    case ACT_OPEN:
        symbol_arm(v);
        return true;
    case ACT_FILTER:
        prompt_set(v->query, arg ? arg : "");
        query_changed(v);
        return true;
    case ACT_RELOAD:
        load(v);
        return true;
    case ACT_SOURCE:
        return open_source(v);
    case ACT_COPY:
        if (symbol_selected(v, &item))
            model_copy(v->m, item.raw);
        return true;
    default:
        return list_action(v->list, act);
    }
}

static bool action(void *view, enum action act, const char *arg)
{
    struct symbol_view *v = view;
    bool done = (v->in_triggers && symbol_trigger_action(v, act)) || view_action(v, act, arg);
    if (done) {
        symbol_work(v, 0);
        model_redraw(v->m);
    }
    return done;
}

static bool mouse(void *view, const struct mouse *m, struct rect r)
{
    struct symbol_view *v = view;
    (void)r;
    switch (list_mouse(v->list, m)) {
    case LIST_OPENED:
        v->in_triggers = false;
        symbol_toggle(v);
        return true;
    case LIST_SELECTED:
    case LIST_SORTED:
        v->in_triggers = false;
        symbol_work(v, 0);
        return true;
    case LIST_MISS:
        break;
    }
    return false;
}

static void changed(void *view, enum model_change what)
{
    struct symbol_view *v = view;
    if (what == MODEL_TRIGGERS && v->trigger >= v->m->triggers.len)
        v->in_triggers = v->in_triggers && v->m->triggers.len > 0, v->trigger = 0;
    if (what == MODEL_TARGET && v->m->target.pid == 0)
        load(v);
}

/* What the rows asked for while they were drawn comes by itself. */
static void draw(void *view, struct surface *s, struct rect r)
{
    struct symbol_view *v = view;
    struct source_lookup *source = symbol_rows_source(v->rows);
    if (source)
        source_lookup_poll(source);
    symbol_draw(v, s, r);
    if (source && source_lookup_busy(source) && !v->timer)
        v->timer = loop_add_timer(v->m->loop, loop_now_ns(v->m->loop) + WORK_EVERY_NS, on_timer, v);
}

static void status(void *view, char *out, size_t size)
{
    struct symbol_view *v = view;
    struct symbol_progress p;
    char names[FMT_MAX];
    symbol_rows_progress(v->rows, &p);
    if (!p.done)
        snprintf(out, size, "reading symbols: %s, %zu of %zu modules", fmt_counted(names, p.names, "name", "names"),
                 p.modules_done, p.modules);
    else if (p.left_out)
        snprintf(out, size, "%s left out: the list may take %zu MiB",
                 fmt_counted(names, p.left_out, "name is", "names are"),
                 SYMBOL_LIST_BUDGET >> 20);
    else if (v->m->caps)
        snprintf(out, size, "triggers by %s",
                 v->m->caps->hwbreak_fires  ? "hardware breakpoints, then uprobes"
                 : v->m->caps->uprobe_works ? "uprobes (hardware breakpoints do not fire here)"
                                            : "nothing: see mtui doctor");
}

static void state(void *view, char *out, size_t size)
{
    const struct model *m = ((struct symbol_view *)view)->m;
    char more[32] = "";
    if (m->more_targets.len)
        snprintf(more, sizeof more, " +%zu", m->more_targets.len);
    if (m->target.pid)
        snprintf(out, size, "%d %s%s", (int)m->target.pid, m->target.comm, more);
}

static int condition(void *view, const char *name, const char *arg)
{
    struct symbol_view *v = view;
    struct symbol_progress p;
    (void)arg;
    if (strcmp(name, "symbols") != 0)
        return -1;
    symbol_rows_progress(v->rows, &p);
    return v->loaded_pid != 0 && p.done && !symbol_rows_work(v->rows, 0);
}

const struct view_ops view_symbol = {
    .name = "symbols",
    .title = "Symbols",
    .contexts = {CTX_SYMBOLS},
    .context_count = 1,
    .create = create,
    .destroy = destroy,
    .draw = draw,
    .show = show,
    .action = action,
    .typing = typing,
    .key = key,
    .mouse = mouse,
    .changed = changed,
    .status = status,
    .state = state,
    .condition = condition,
};
