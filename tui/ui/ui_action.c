#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/conf.h"
#include "core/base/utf8.h"
#include "core/trigger/trigger.h"
#include "tui/ui/bar.h"
#include "tui/ui/settings.h"
#include "tui/ui/ui_state.h"
#include "tui/ui/v_help.h"

#define COMMANDS_DEEP 16 /* a key that is bound to :key of itself must end */

/* True for actions that one screen owns (their key stands in its context), or that have no key. */
static bool belongs_to_a_screen(const struct ui *ui, enum action act)
{
    if (act == ACT_SNAPSHOT)
        return true;
    for (size_t i = 0; i < keymap_count(ui->km); i++) {
        const struct binding *b = keymap_at(ui->km, i);
        if (b->act == act && b->ctx <= CTX_LIST)
            return false;
    }
    return true;
}

static bool view_action(struct ui *ui, enum action act, const char *arg)
{
    if (ui_ops(ui)->action(ui_view(ui), act, arg))
        return true;
    if (!belongs_to_a_screen(ui, act))
        return false;
    for (size_t i = 0; i < ui->n_screens; i++)
        if ((ui->help_shown || i != ui->active) && ui->screens[i]->action(ui->views[i], act, arg))
            return true;
    return false;
}

static void quit_answer(void *arg, bool yes)
{
    struct ui *ui = arg;
    if (yes)
        model_quit(ui->m);
}

static void quit(struct ui *ui)
{
    for (size_t i = 0; i < ui->n_screens; i++)
        if (ui->screens[i]->action(ui->views[i], ACT_QUIT, NULL))
            return;
    if (ui->m->recording)
        model_ask(ui->m, "A recording is running. Stop it and quit?", quit_answer, ui);
    else
        model_quit(ui->m);
}

static void back(struct ui *ui)
{
    if (ui->help_shown && ui->n_screens) {
        ui_show_help(ui, false);
        return;
    }
    if (ui->back.len == 0) {
        quit(ui);
        return;
    }
    size_t screen = ui->back.data[--ui->back.len];
    size_t kept = ui->back.len;
    ui_go(ui, screen);
    ui->back.len = kept;
}

static bool call_hook(struct ui *ui, void (*hook)(void *arg))
{
    if (hook)
        hook(ui->hooks_arg);
    return hook != NULL;
}

static void cancel(struct ui *ui)
{
    ui->m->say[0] = '\0';
    if (ui->help_shown && !ui_ops(ui)->action(ui_view(ui), ACT_CANCEL, NULL))
        ui_show_help(ui, false);
    else if (!ui->help_shown)
        ui_ops(ui)->action(ui_view(ui), ACT_CANCEL, NULL);
}

/* What needs no view. */
static bool own_action(struct ui *ui, enum action act, const char *arg)
{
    switch ((int)act) {
    case ACT_SCREEN_PROCESSES:
    case ACT_SCREEN_SYMBOLS:
    case ACT_SCREEN_RECORD:
    case ACT_SCREEN_TIMELINE:
    case ACT_SCREEN_FUNCTIONS:
    case ACT_SCREEN_EVENTS:
        model_go(ui->m, action_info(act)->command); /* screens are named after their command */
        return true;
    case ACT_SEARCH:
        if (!arg)
            ui_open_prompt(ui, UI_SEARCH, "/", "");
        return !arg;
    case ACT_FILTER:
        if (!arg)
            ui_open_prompt(ui, UI_FILTER, "Filter: ", "");
        return !arg;
    case ACT_SORT:
        if (arg || view_lacks(ui_ops(ui), act))
            return false;
        ui_open_prompt(ui, UI_COMMAND, ":", "sort ");
        return true;
    case ACT_COMMAND:
        ui_open_prompt(ui, UI_COMMAND, ":", "");
        return true;
    case ACT_HELP:
    case ACT_BINDINGS:
        ui_show_help(ui, !ui->help_shown || act == ACT_BINDINGS);
        return true;
    case ACT_BACK:
        back(ui);
        return true;
    case ACT_QUIT:
        quit(ui);
        return true;
    case ACT_CANCEL:
        cancel(ui);
        return true;
    case ACT_INTERRUPT:
        if (model_stop_loading(ui->m))
            return true;
        model_say(ui->m, "nothing to stop here; Q quits");
        return true;
    case ACT_REDRAW:
        return call_hook(ui, ui->hooks ? ui->hooks->redraw : NULL);
    case ACT_SUSPEND:
        return call_hook(ui, ui->hooks ? ui->hooks->suspend : NULL);
    case ACT_SNAPSHOT:
        model_warn(ui->m, "nothing is being recorded: there is nothing to snapshot");
        return true;
    default:
        return false;
    }
}

/* Back, quit and the like are the ui's own business first: a view need not know of them. */
static bool is_ours_first(enum action act, const char *arg)
{
    switch ((int)act) {
    case ACT_COMMAND:
    case ACT_HELP:
    case ACT_BINDINGS:
    case ACT_QUIT:
    case ACT_REDRAW:
    case ACT_SUSPEND:
    case ACT_CANCEL:
        return true;
    case ACT_SEARCH:
    case ACT_FILTER:
        return arg == NULL;
    default:
        return false;
    }
}

bool ui_action(struct ui *ui, enum action act, const char *arg)
{
    bool done;
    if (action_takes_letter(act) && (!arg || !arg[0])) {
        ui->mode = UI_LETTER;
        ui->letter_for = act;
        done = true;
    } else if (is_ours_first(act, arg)) {
        done = own_action(ui, act, arg);
    } else {
        done = view_action(ui, act, arg) || own_action(ui, act, arg);
    }
    ui->m->dirty = true;
    ui_take_requests(ui);
    return done;
}

/* ---- Commands ---- */

static int run_keys(struct ui *ui, const struct conf_words *w, struct err *err)
{
    for (size_t i = 1; i < w->n; i++) {
        struct key k;
        int rc = key_parse(w->word[i], &k, err);
        if (rc < 0)
            return rc;
        ui_key(ui, k);
    }
    return 0;
}

static void type_text(struct ui *ui, const char *text)
{
    size_t len = strlen(text);
    for (size_t at = 0; at < len;) {
        uint32_t cp;
        at += utf8_decode(text + at, len - at, &cp);
        ui_key(ui, key_normal((struct key){cp, 0}));
    }
}

static int change_settings(struct ui *ui, const struct conf_words *w, struct err *err)
{
    enum setting which = SET_THEME;
    char *old[SET_COUNT];
    for (size_t i = 0; i < SET_COUNT; i++)
        old[i] = xstrdup(settings_text(ui->m->settings, (enum setting)i));
    int rc = settings_command(ui->m->settings, ui->km, w, err);
    if (rc == 0 && ui->hooks && ui->hooks->settings)
        rc = ui->hooks->settings(ui->hooks_arg, err);
    /* What cannot be applied (a theme that is not there) must not stay set. */
    for (size_t i = 0; i < SET_COUNT; i++) {
        if (rc < 0)
            settings_set(ui->m->settings, (enum setting)i, old[i], NULL);
        free(old[i]);
    }
    (void)which;
    if (rc == 0)
        model_changed(ui->m, MODEL_SETTINGS);
    return rc;
}

/* `set` alone shows all of them, `set NAME` the value of one that cannot be toggled. */
static bool show_setting(struct ui *ui, const struct conf_words *w)
{
    if (w->n == 1) {
        ui_show_help(ui, true);
        v_help_show_settings(ui->help);
        return true;
    }
    enum setting which = setting_find(w->word[1]);
    if (which == SET_COUNT || setting_info(which)->type == SETTING_BOOL)
        return false;
    const struct setting_info *info = setting_info(which);
    const char *value = settings_text(ui->m->settings, which);
    model_say(ui->m, "%s is %s%s%s%s", info->name, value[0] ? value : "empty",
              info->limits[0] ? "  (" : "", info->limits, info->limits[0] ? ")" : "");
    return true;
}

static int need_args(const struct conf_words *w, size_t n, enum action act, struct err *err)
{
    if (w->n == n + 1)
        return 0;
    return err_set(err, MTUI_E_INVAL, "%s takes: %s", w->word[0], action_info(act)->args);
}

/* Commands that are not actions of a view; 1 when it is none of them. */
/* `:trigger f if arg1 > 3`, with or without quotes. */
static int add_trigger(struct ui *ui, const struct conf_words *w, struct err *err)
{
    struct trigger t;
    size_t taken;
    char *spec = trigger_join(w->word + 1, w->n - 1, &taken);
    int rc = taken == w->n - 1 ? trigger_parse(&t, spec, NULL, err)
                               : need_args(w, 1, ACT_TRIGGER, err);
    if (rc == 0) {
        const bool there = model_has_trigger(ui->m, spec);
        trigger_fini(&t);
        model_add_trigger(ui->m, spec);
        model_say(ui->m, there ? "%s is among the triggers already" : "trigger added: %s", spec);
    }
    free(spec);
    return rc;
}

/* A key that is bound on one screen no longer does there what it does everywhere: that is said. */
static int bind(struct ui *ui, const struct conf_words *w, struct err *err)
{
    const struct binding *hidden = NULL;
    struct key key;
    enum context ctx = w->n > 2 ? context_find(w->word[1]) : CTX_COUNT;
    if (ctx != CTX_COUNT && ctx != CTX_GLOBAL && key_parse(w->word[2], &key, NULL) == 0)
        hidden = keymap_find(ui->km, &ctx, 1, false, key);
    if (hidden && hidden->ctx != CTX_GLOBAL)
        hidden = NULL;
    enum action act = hidden ? hidden->act : ACT_NONE;
    int rc = change_settings(ui, w, err);
    if (rc == 0 && hidden)
        model_warn(ui->m, "%s no longer means '%s' in %s; :unbind %s %s undoes it", w->word[2],
                   action_info(act)->help, context_title(ctx), w->word[1], w->word[2]);
    return rc;
}

static int own_command(struct ui *ui, enum action act, const struct conf_words *w, struct err *err)
{
    int rc;
    switch ((int)act) {
    case ACT_SET:
        if (w->n <= 2 && show_setting(ui, w))
            return 0;
        return change_settings(ui, w, err);
    case ACT_BIND:
        return bind(ui, w, err);
    case ACT_THEME:
    case ACT_UNBIND:
        return change_settings(ui, w, err);
    case ACT_KEY:
        rc = w->n < 2 ? need_args(w, 1, act, err) : 0;
        return rc == 0 ? run_keys(ui, w, err) : rc;
    case ACT_TYPE:
        rc = need_args(w, 1, act, err);
        if (rc == 0)
            type_text(ui, w->word[1]);
        return rc;
    case ACT_SAVE_SCREEN:
        rc = need_args(w, 1, act, err);
        return rc == 0 ? ui_save_screen(ui, w->word[1], err) : rc;
    case ACT_WAIT:
        return err_set(err, MTUI_E_STATE, "wait has a meaning in scripts only");
    case ACT_TRIGGER:
        rc = w->n < 2 ? need_args(w, 1, act, err) : 0;
        return rc == 0 ? add_trigger(ui, w, err) : rc;
    case ACT_UNTRIGGER:
        rc = need_args(w, 1, act, err);
        if (rc == 0 && !model_remove_trigger(ui->m, w->word[1]))
            return err_set(err, MTUI_E_NOENT, "'%s' is not among the triggers", w->word[1]);
        if (rc == 0)
            model_say(ui->m, "trigger removed: %s", w->word[1]);
        return rc;
    default:
        return 1;
    }
}

int ui_command(struct ui *ui, const char *line, struct err *err)
{
    struct conf_words w;
    while (*line == ':' || *line == ' ')
        line++;
    int rc = conf_split(line, &w, err);
    if (rc < 0 || w.n == 0)
        return rc;
    /* A time alone goes there, as a line's number does elsewhere. */
    const char digit = line[line[0] == '+'];
    const bool place = digit >= '0' && digit <= '9';
    if (place)
        return ui_action(ui, ACT_GOTO, line) ? 0 : err_set(err, MTUI_E_STATE, "no trace is open: %s leads nowhere", line);
    enum action act = action_find(w.word[0]);
    if (act == ACT_NONE)
        return err_set(err, MTUI_E_INVAL, "no command is called '%s'; ? lists them", w.word[0]);
    if (w.n > 1 && !*action_info(act)->args)
        return err_set(err, MTUI_E_INVAL, "%s stands alone: it takes nothing behind it", w.word[0]);
    if (ui->depth >= COMMANDS_DEEP)
        return err_set(err, MTUI_E_LIMIT, "commands call each other without end");
    ui->depth++;
    rc = own_command(ui, act, &w, err);
    ui->depth--;
    if (rc <= 0)
        return rc;
    /* One argument is handed over without its quotes, several as they were written. */
    const char *arg = w.n == 2 ? w.word[1] : w.n > 2 ? w.tail[1] : NULL;
    if (!ui_action(ui, act, arg))
        return err_set(err, MTUI_E_STATE, "%s does nothing on this screen", w.word[0]);
    return 0;
}

bool ui_run_binding(struct ui *ui, const struct binding *b)
{
    if (!b->args[0])
        return ui_action(ui, b->act, NULL);
    struct err err = {0};
    char *line = xasprintf("%s %s", action_info(b->act)->command, b->args);
    int rc = ui_command(ui, line, &err);
    free(line);
    if (rc < 0)
        model_error(ui->m, "%s", err.text);
    return true;
}

/* ---- Input ---- */

static bool is_typing(const struct ui *ui)
{
    return ui_ops(ui)->typing && ui_ops(ui)->typing(ui_view(ui));
}

static void normal_key(struct ui *ui, struct key k)
{
    const struct view_ops *ops = ui_ops(ui);
    const struct binding *b =
        keymap_find(ui->km, ops->contexts, ops->context_count, is_typing(ui), k);
    model_hush(ui->m);
    if (!b) {
        char name[KEY_NAME_MAX];
        if (!(ops->key && ops->key(ui_view(ui), k)))
            model_say(ui->m, "%s does nothing here; ? lists the keys", key_format(k, name));
        return;
    }
    enum action act = b->act;
    bool done = ui_run_binding(ui, b);
    if (!done && !ui->m->say[0])
        model_say(ui->m, "%s: nothing to do here", action_info(act)->help);
}

/* A terminal sends the same for Alt with a character as for Esc and that character when they come at once, as they
 * do on a slow line. Where the combination means nothing, Esc and the character are meant. */
static bool is_esc_and_text(const struct ui *ui, struct key k)
{
    if (k.mods != K_ALT || !key_is_text((struct key){k.code, 0}))
        return false;
    if (ui->mode == UI_QUESTION || ui->mode == UI_LETTER)
        return true;
    bool typing = ui->mode != UI_NORMAL || is_typing(ui);
    if (typing && prompt_key_moves_by_word(k))
        return false;
    const struct view_ops *ops = ui_ops(ui);
    return ui->mode != UI_NORMAL || !keymap_find(ui->km, ops->contexts, ops->context_count, typing, k);
}

static void one_key(struct ui *ui, struct key k)
{
    ui->m->dirty = true;
    if (ui->mode != UI_NORMAL)
        ui_prompt_key(ui, k);
    else
        normal_key(ui, k);
    ui_take_requests(ui);
}

void ui_key(struct ui *ui, struct key k)
{
    if (is_esc_and_text(ui, k)) {
        one_key(ui, (struct key){K_ESC, 0});
        if (ui->m->want.quit)
            return;
        k.mods = 0;
    }
    one_key(ui, k);
}

static bool inside(struct rect r, const struct mouse *m)
{
    return m->row >= r.row && m->row < r.row + r.rows && m->col >= r.col && m->col < r.col + r.cols;
}

void ui_mouse(struct ui *ui, const struct mouse *m)
{
    const struct view_ops *ops = ui_ops(ui);
    ui->m->dirty = true;
    if (inside(ui->body, m) || m->kind == MOUSE_DRAG || m->kind == MOUSE_UP) {
        if (ui->mode == UI_NORMAL && ops->mouse && ui->body.rows > 0)
            ops->mouse(ui_view(ui), m, ui->body);
    } else if (m->kind == MOUSE_DOWN && m->button == 1 && ui->body.rows > 0 &&
               ui->mode == UI_NORMAL) {
        struct surface *row = surface_new(1, ui->cols);
        size_t tab = m->row == 0 ? bar_tab_at(row, ui->screens, ui->n_tabs, ui->active, m->col)
                                 : SIZE_MAX;
        enum action act = m->row == ui->rows - 1
                              ? bar_key_at(row, ui->km, ops->contexts, ops->context_count, m->col)
                              : ACT_NONE;
        surface_free(row);
        model_hush(ui->m);
        if (tab != SIZE_MAX)
            ui_go(ui, tab);
        if (act != ACT_NONE)
            ui_action(ui, act, NULL);
    }
    ui_take_requests(ui);
}
