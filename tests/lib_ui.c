#include "tests/lib_ui.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/utf8.h"
#include "tests/lib_golden.h"
#include "tui/term/glyph.h"

__attribute__((format(printf, 2, 3))) static void note(struct seen *v, const char *fmt, ...)
{
    size_t used = strlen(v->log);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(v->log + used, sizeof v->log - used, fmt, ap);
    va_end(ap);
}

static void *seen_create(struct model *m)
{
    struct seen *v = xcalloc(1, sizeof *v);
    v->m = m;
    return v;
}

static void seen_destroy(void *view)
{
    free(view);
}

static void seen_draw(void *view, struct surface *s, struct rect r)
{
    (void)view;
    surface_printf(s, r.row, r.col + 1, r.cols - 1, (struct style){0}, "body %dx%d at %d", r.cols,
                   r.rows, r.row);
}

static bool seen_action(void *view, enum action act, const char *arg)
{
    struct seen *v = view;
    if (act == ACT_QUIT)
        return v->takes_quit;
    note(v, "%s%s%s ", action_info(act)->command, arg ? "=" : "", arg ? arg : "");
    return act == ACT_OPEN || act == ACT_SEARCH || act == ACT_FILTER || act == ACT_MARK_SET ||
           act == ACT_DOWN;
}

/* Handles recording commands only. */
static bool other_action(void *view, enum action act, const char *arg)
{
    struct seen *v = view;
    if (act != ACT_PING && act != ACT_SNAPSHOT)
        return false;
    return note(v, "%s%s ", action_info(act)->command, arg ? arg : ""), true;
}

static bool seen_typing(const void *view)
{
    return ((const struct seen *)view)->typing;
}

static bool seen_key(void *view, struct key k)
{
    char name[KEY_NAME_MAX];
    return note(view, "<%s>", key_format(k, name)), true;
}

static bool seen_mouse(void *view, const struct mouse *m, struct rect r)
{
    return note(view, "mouse%d,%d ", m->row - r.row, m->col), true;
}

static void seen_changed(void *view, enum model_change what)
{
    note(view, "changed%d ", (int)what);
}

static int seen_condition(void *view, const char *name, const char *arg)
{
    if (strcmp(name, "seen") != 0)
        return -1;
    return strstr(((struct seen *)view)->log, arg) != NULL;
}

static void seen_status(void *view, char *out, size_t size)
{
    (void)view;
    snprintf(out, size, "all is well");
}

static void seen_state(void *view, char *out, size_t size)
{
    (void)view;
    snprintf(out, size, "4711 demo\x1b[2J");
}

static const struct view_ops first_view = {
    .name = "processes",
    .title = "Processes",
    .contexts = {CTX_PROCESSES, CTX_LIST, CTX_MOVE},
    .context_count = 3,
    .create = seen_create,
    .destroy = seen_destroy,
    .draw = seen_draw,
    .action = seen_action,
    .search_live = true,
    .typing = seen_typing,
    .key = seen_key,
    .mouse = seen_mouse,
    .changed = seen_changed,
    .status = seen_status,
    .state = seen_state,
    .condition = seen_condition,
};

static const struct view_ops second_view = {
    .name = "record",
    .title = "Record",
    .contexts = {CTX_RECORD, CTX_MOVE},
    .context_count = 2,
    .create = seen_create,
    .destroy = seen_destroy,
    .draw = seen_draw,
    .action = other_action,
};

static const struct view_ops timeline_view = {
    .name = "timeline",
    .title = "Timeline",
    .contexts = {CTX_TIMELINE},
    .context_count = 1,
    .create = seen_create,
    .destroy = seen_destroy,
    .draw = seen_draw,
    .action = seen_action,
};

static const struct view_ops *const views[] = {&first_view, &second_view, &timeline_view};

/* ui_new creates the views in order; the test wants to see inside of them. */
struct seen *made[UI_SEEN];
static size_t made_count;

static void *first_create(struct model *m)
{
    return made[made_count++] = seen_create(m);
}

static void hook_suspend(void *arg)
{
    ((struct fixture *)arg)->suspended = true;
}

static bool hook_copy(void *arg, const char *text)
{
    struct fixture *f = arg;
    snprintf(f->copied, sizeof f->copied, "%s", text);
    return true;
}

static void hook_edit(void *arg, const char *path, int line)
{
    struct fixture *f = arg;
    snprintf(f->edited, sizeof f->edited, "%s:%d", path, line);
}

static int hook_settings(void *arg, struct err *err)
{
    struct fixture *f = arg;
    return f->settings_rc ? err_set(err, f->settings_rc, "cannot have that") : 0;
}

static const struct ui_hooks hooks = {.suspend = hook_suspend, .copy = hook_copy, .edit = hook_edit,
                                      .settings = hook_settings};

int ui_set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->settings = settings_new();
    f->km = keymap_new();
    f->m = model_new(NULL, f->settings);
    f->m->glyphs = glyphs_of(GLYPHS_ASCII);
    made_count = 0;
    for (size_t i = 0; i < 3; i++) {
        f->ops[i] = *views[i];
        f->ops[i].create = first_create;
        f->list[i] = &f->ops[i];
    }
    f->ui = ui_new(f->m, f->km, f->list, 3, &hooks, f);
    f->s = surface_new(30, 100);
    ui_draw(f->ui, f->s);
    *state = f;
    return 0;
}

int ui_tear_down(void **state)
{
    struct fixture *f = *state;
    ui_free(f->ui);
    surface_free(f->s);
    model_free(f->m);
    keymap_free(f->km);
    settings_free(f->settings);
    free(f);
    return 0;
}

void press(struct fixture *f, const char *keys)
{
    struct err e;
    char *line = xasprintf("key %s", keys);
    if (ui_command(f->ui, line, &e) < 0)
        fail_msg("%s: %s", line, e.text);
    free(line);
}

void type(struct fixture *f, const char *text)
{
    for (size_t at = 0, len = strlen(text); at < len;) {
        uint32_t cp;
        at += utf8_decode(text + at, len - at, &cp);
        ui_key(f->ui, (struct key){cp, 0});
    }
}

int command(struct fixture *f, const char *line, struct err *e)
{
    e->text[0] = '\0';
    return ui_command(f->ui, line, e);
}

void assert_row(struct fixture *f, int row, const char *want)
{
    ui_draw(f->ui, f->s);
    char *got = golden_row(f->s, row);
    assert_string_equal(got, want);
    free(got);
}
