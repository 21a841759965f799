#include "tui/ui/ui.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/utf8.h"
#include "tui/ui/bar.h"
#include "tui/term/glyph.h"
#include "tui/ui/ui_state.h"
#include "tui/ui/v_help.h"

static void on_change(void *arg, enum model_change what)
{
    struct ui *ui = arg;
    for (size_t i = 0; i < ui->n_screens; i++)
        if (ui->screens[i]->changed)
            ui->screens[i]->changed(ui->views[i], what);
}

struct ui *ui_new(struct model *m, struct keymap *km, const struct view_ops *const *screens, size_t n,
                  const struct ui_hooks *hooks, void *hooks_arg)
{
    struct ui *ui = xcalloc(1, sizeof *ui);
    ui->m = m;
    ui->km = km;
    ui->hooks = hooks;
    ui->hooks_arg = hooks_arg;
    ui->screens = screens;
    ui->n_screens = n;
    ui->views = xcalloc(n, sizeof *ui->views);
    ui->search = xstrdup("");
    for (size_t i = UI_COMMAND; i <= UI_LINE; i++)
        ui->prompts[i] = prompt_new();
    for (size_t i = 0; i < n; i++) {
        ui->views[i] = screens[i]->create(m);
        ui->n_tabs += !screens[i]->apart;
    }
    ui->help = view_help.create(m);
    m->on_change = on_change;
    m->on_change_arg = ui;
    if (n == 0)
        ui_show_help(ui, true);
    ui_take_requests(ui);
    if (n > 0 && ui->active == 0 && screens[0]->show)
        screens[0]->show(ui->views[0]);
    return ui;
}

void ui_free(struct ui *ui)
{
    if (!ui)
        return;
    ui->m->on_change = NULL;
    for (size_t i = 0; i < ui->n_screens; i++)
        ui->screens[i]->destroy(ui->views[i]);
    view_help.destroy(ui->help);
    for (size_t i = UI_COMMAND; i <= UI_LINE; i++)
        prompt_free(ui->prompts[i]);
    vec_free(&ui->back);
    free(ui->views);
    free(ui->search);
    free(ui->label);
    free(ui);
}

const struct view_ops *ui_ops(const struct ui *ui)
{
    return ui->help_shown ? &view_help : ui->screens[ui->active];
}

void *ui_view(const struct ui *ui)
{
    return ui->help_shown ? ui->help : ui->views[ui->active];
}

const char *ui_screen(const struct ui *ui)
{
    return ui_ops(ui)->name;
}

void ui_show_help(struct ui *ui, bool shown)
{
    if (shown && !ui->help_shown)
        v_help_explain(ui->help, ui->km, ui->n_screens ? ui->screens[ui->active] : NULL);
    ui->help_shown = shown || ui->n_screens == 0;
    ui->m->dirty = true;
}

void ui_go(struct ui *ui, size_t screen)
{
    ui_show_help(ui, false);
    if (screen == ui->active || screen >= ui->n_screens)
        return;
    const struct view_ops *old = ui->screens[ui->active];
    if (old->hide)
        old->hide(ui->views[ui->active]);
    /* A screen stands once in the way back: going around in circles must not need as many q. */
    for (size_t i = 0; i < ui->back.len; i++) {
        if (ui->back.data[i] == screen) {
            ui->back.len = i;
            break;
        }
    }
    if (ui->back.len == 0 || ui->back.data[ui->back.len - 1] != ui->active)
        vec_push(&ui->back, ui->active);
    ui->active = screen;
    if (ui->screens[screen]->show)
        ui->screens[screen]->show(ui->views[screen]);
    ui->m->dirty = true;
}

static char *take(char **field)
{
    char *s = *field;
    *field = NULL;
    return s;
}

static void go_by_name(struct ui *ui, const char *name)
{
    for (size_t i = 0; i < ui->n_screens; i++) {
        if (strcmp(ui->screens[i]->name, name) == 0) {
            ui_go(ui, i);
            return;
        }
    }
}

void ui_take_requests(struct ui *ui)
{
    struct model_requests *w = &ui->m->want;
    char *s;
    while ((s = take(&w->screen))) {
        go_by_name(ui, s);
        free(s);
    }
    if ((w->question != NULL) != (ui->mode == UI_QUESTION)) {
        ui->mode = w->question ? UI_QUESTION : UI_NORMAL;
        ui->m->dirty = true;
    }
    if ((s = take(&w->prompt))) {
        char *initial = take(&w->prompt_initial);
        ui_open_prompt(ui, UI_LINE, s, initial ? initial : "");
        free(initial);
        free(s);
    }
    if ((s = take(&w->edit_path))) {
        if (ui->hooks && ui->hooks->edit)
            ui->hooks->edit(ui->hooks_arg, s, w->edit_line);
        else
            model_warn(ui->m, "there is no editor here for %s:%d", s, w->edit_line);
        free(s);
    }
    if ((s = take(&w->copy))) {
        char names[32];
        size_t n = 1;
        for (const char *p = s; *p; p++)
            n += *p == '\n';
        snprintf(names, sizeof names, "%zu names", n);
        if (ui->hooks && ui->hooks->copy && ui->hooks->copy(ui->hooks_arg, s))
            model_say(ui->m, n > 1 ? "copied %s" : "copied: %s", n > 1 ? names : s);
        else
            model_warn(ui->m, n > 1 ? "this terminal has no clipboard for %s" : "this terminal has no clipboard for: %s",
                       n > 1 ? names : s);
        free(s);
    }
}

void ui_tick(struct ui *ui)
{
    if (ui_ops(ui)->tick)
        ui_ops(ui)->tick(ui_view(ui));
    ui_take_requests(ui);
}

/* ---- Drawing ---- */

static void draw_too_small(const struct ui *ui, struct surface *s)
{
    char line[96];
    int rows = surface_rows(s), cols = surface_cols(s);
    snprintf(line, sizeof line, "%dx%d needed: this terminal is %dx%d%s", UI_MIN_COLS, UI_MIN_ROWS,
             cols, rows, ui->m->recording ? "; recording goes on" : "");
    int width = (int)strlen(line);
    surface_text(s, rows / 2, width < cols ? (cols - width) / 2 : 0, cols, line, SIZE_MAX,
                 (struct style){.ink = ROLE_WARN});
}

static void draw_status(struct ui *ui, struct surface *s, int row)
{
    char status[512] = "";
    if (ui->mode != UI_NORMAL) {
        ui_draw_prompt(ui, s, row);
        return;
    }
    if (model_is_growing(ui->m)) {
        model_loading_text(ui->m, status, sizeof status - 4);
        strcat(status, "   ");
    }
    size_t len = strlen(status);
    if (ui_ops(ui)->status)
        ui_ops(ui)->status(ui_view(ui), status + len, sizeof status - len);
    const struct model *m = ui->m;
    bar_draw_status(s, row, m->say_first ? m->say_first : m->say, m->say_first ? SAY_ERROR : m->say_severity, status,
                    m->glyphs);
}

void ui_draw(struct ui *ui, struct surface *s)
{
    int rows = surface_rows(s), cols = surface_cols(s);
    char state[128] = "";
    ui->rows = rows;
    ui->cols = cols;
    ui->m->dirty = false;
    surface_clear(s);
    surface_set_replacement(s, glyph(ui->m->glyphs, GLYPH_REPLACEMENT),
                            ui->m->glyphs->tier != GLYPHS_ASCII);
    if (rows < UI_MIN_ROWS || cols < UI_MIN_COLS) {
        ui->body = (struct rect){0, 0, 0, 0};
        draw_too_small(ui, s);
        return;
    }
    const struct view_ops *ops = ui_ops(ui);
    if (ops->state)
        ops->state(ui_view(ui), state, sizeof state);
    if (ui->m->recording && !state[0])
        snprintf(state, sizeof state, "REC");
    bar_draw_tabs(s, 0, ui->screens, ui->n_tabs, ui->active, state, ui->m->recording,
                  ui->m->glyphs);
    ui->body = (struct rect){1, 0, rows - 3, cols};
    ops->draw(ui_view(ui), s, ui->body);
    draw_status(ui, s, rows - 2);
    bar_draw_keys(s, rows - 1, ui->km, ops->contexts, ops->context_count);
}

static void put_row(FILE *f, const struct surface *s, int row)
{
    int last = surface_cols(s) - 1;
    while (last >= 0 && surface_at(s, row, last)->cp == ' ')
        last--;
    for (int col = 0; col <= last; col++) {
        const struct cell *c = surface_at(s, row, col);
        char bytes[4];
        if (c->cp)
            fwrite(bytes, 1, utf8_encode(c->cp, bytes), f);
        if (c->mark)
            fwrite(bytes, 1, utf8_encode(c->mark, bytes), f);
    }
    fputc('\n', f);
}

/* The present screen on a surface of its own. */
static struct surface *draw_apart(struct ui *ui)
{
    bool dirty = ui->m->dirty;
    struct surface *s = surface_new(ui->rows ? ui->rows : 30, ui->cols ? ui->cols : 100);
    ui_draw(ui, s);
    ui->m->dirty = dirty;
    return s;
}

int ui_save_screen(struct ui *ui, const char *path, struct err *err)
{
    FILE *f = fopen(path, "we");
    if (!f)
        return err_errno(err, errno, "cannot write %s", path);
    struct surface *s = draw_apart(ui);
    for (int row = 0; row < surface_rows(s); row++)
        put_row(f, s, row);
    surface_free(s);
    int failed = ferror(f);
    if (fclose(f) != 0 || failed)
        return err_errno(err, errno, "cannot write %s", path);
    return 0;
}

static bool text_on_screen(struct ui *ui, const char *text)
{
    struct surface *s = draw_apart(ui);
    char *all = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&all, &size);
    for (int row = 0; f && row < surface_rows(s); row++)
        put_row(f, s, row);
    if (f)
        fclose(f);
    bool found = all && strstr(all, text);
    free(all);
    surface_free(s);
    return found;
}

int ui_condition(struct ui *ui, const char *name, const char *arg)
{
    if (strcmp(name, "text") == 0)
        return text_on_screen(ui, arg);
    if (strcmp(name, "screen") == 0)
        return strcmp(ui_screen(ui), arg) == 0;
    if (strcmp(name, "recording") == 0)
        return ui->m->recording;
    for (size_t i = 0; i < ui->n_screens; i++) {
        const struct view_ops *ops = ui->screens[i];
        int holds = ops->condition ? ops->condition(ui->views[i], name, arg) : -1;
        if (holds >= 0)
            return holds;
    }
    return -1;
}
