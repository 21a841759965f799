/* Screen Symbols: functions become triggers. */
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "tui/ui/model.h"
#include "tui/choose/symbol_view.h"

static void resolved(void *arg, const char *spec, int rc, const struct module_addrs *a, const struct err *err)
{
    struct symbol_view *v = arg;
    if (rc < 0) {
        model_error(v->m, "%s", err->text);
        return;
    }
    model_add_trigger(v->m, spec);
    model_say(v->m, "%s: %zu address%s, the first in %s", spec, a->len, a->len == 1 ? "" : "es",
              a->data[0].name ? a->data[0].name : "code without a name");
    if (v->arm_when_resolved)
        model_go(v->m, "record");
}

/* What was typed is no name of the list, but may be FILE:LINE, an address, a module:name. */
static void resolve_query(struct symbol_view *v, bool arm)
{
    const char *text = prompt_text(v->query);
    struct source_lookup *source = symbol_rows_source(v->rows);
    if (!*text || !source) {
        model_warn(v->m, source ? "nothing to choose here" : "choose a process first");
        return;
    }
    char *regex = v->mode == MATCH_REGEX ? xasprintf("/%s/", text) : NULL;
    v->arm_when_resolved = arm;
    model_say(v->m, "looking for %s", text);
    source_lookup_resolve(source, regex ? regex : text, resolved, v);
    free(regex);
    symbol_work(v, 0);
}

/* Puts the function's trigger into a state; none takes it away. */
static void set_choice(struct symbol_view *v, const struct symbol_item *item, enum symbol_choice choice)
{
    char *spec = symbol_rows_spec(v->rows, item), *at_return = xasprintf("%s@return", spec);
    if (choice == SYMBOL_AT_ENTRY)
        model_add_trigger(v->m, spec);
    else
        model_remove_trigger(v->m, spec);
    if (choice == SYMBOL_AT_RETURN)
        model_add_trigger(v->m, at_return);
    else
        model_remove_trigger(v->m, at_return);
    free(spec);
    free(at_return);
}

void symbol_toggle(struct symbol_view *v)
{
    struct symbol_item item;
    if (!symbol_selected(v, &item)) {
        resolve_query(v, false);
        return;
    }
    bool chosen = symbol_rows_choice(v->rows, &item) != SYMBOL_NOT_CHOSEN;
    set_choice(v, &item, chosen ? SYMBOL_NOT_CHOSEN : SYMBOL_AT_ENTRY);
    if (!chosen)
        list_action(v->list, ACT_DOWN);
}

static void remove_listed(struct symbol_view *v)
{
    if (v->trigger < v->m->triggers.len) {
        char *spec = xstrdup(v->m->triggers.data[v->trigger]);
        model_remove_trigger(v->m, spec);
        free(spec);
    }
    if (v->trigger >= v->m->triggers.len)
        v->trigger = v->m->triggers.len ? v->m->triggers.len - 1 : 0;
    v->in_triggers = v->m->triggers.len > 0;
}

/* The order of the list is kept: the trigger is changed where it stands. */
static void flip_listed(struct symbol_view *v)
{
    if (v->trigger >= v->m->triggers.len)
        return;
    const char *old = v->m->triggers.data[v->trigger];
    size_t len = strlen(old);
    bool at_return = len > 7 && strcmp(old + len - 7, "@return") == 0;
    char *spec = at_return ? xstrndup(old, len - 7) : xasprintf("%s@return", old);
    if (modules_spec_kind(old) == MODULE_SPEC_LINE || modules_spec_kind(old) == MODULE_SPEC_ADDR) {
        model_warn(v->m, "%s is a place, not a function: it has no return", old);
        free(spec);
        return;
    }
    VEC(char *) kept = {0};
    for (size_t i = 0; i < v->m->triggers.len; i++)
        vec_push(&kept, xstrdup(i == v->trigger ? spec : v->m->triggers.data[i]));
    model_clear_triggers(v->m);
    for (size_t i = 0; i < kept.len; i++) {
        model_add_trigger(v->m, kept.data[i]);
        free(kept.data[i]);
    }
    vec_free(&kept);
    free(spec);
}

void symbol_entry_or_return(struct symbol_view *v)
{
    struct symbol_item item;
    if (v->in_triggers)
        flip_listed(v);
    else if (symbol_selected(v, &item))
        set_choice(v, &item, symbol_rows_choice(v->rows, &item) == SYMBOL_AT_RETURN ? SYMBOL_AT_ENTRY
                                                                                      : SYMBOL_AT_RETURN);
}

void symbol_arm(struct symbol_view *v)
{
    struct symbol_item item;
    if (v->m->triggers.len == 0) {
        if (!symbol_selected(v, &item)) {
            resolve_query(v, true);
            return;
        }
        set_choice(v, &item, SYMBOL_AT_ENTRY);
    }
    model_go(v->m, "record");
}

bool symbol_trigger_action(struct symbol_view *v, enum action act)
{
    switch ((int)act) {
    case ACT_UP:
        v->trigger -= v->trigger > 0;
        return true;
    case ACT_DOWN:
        v->trigger += v->trigger + 1 < v->m->triggers.len;
        return true;
    case ACT_TOGGLE:
        remove_listed(v);
        return true;
    case ACT_TRIGGER_LIST:
    case ACT_BACK:
        v->in_triggers = false;
        return true;
    default:
        return false;
    }
}

