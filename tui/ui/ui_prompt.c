#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "decode/trace/trace.h"
#include "tui/ui/line.h"
#include "tui/ui/settings.h"
#include "tui/ui/ui_state.h"

static void leave(struct ui *ui)
{
    ui->mode = UI_NORMAL;
    ui->m->dirty = true;
}

void ui_open_prompt(struct ui *ui, enum ui_mode mode, const char *label, const char *initial)
{
    ui->mode = mode;
    free(ui->label);
    ui->label = xstrdup(label);
    prompt_set(ui->prompts[mode], initial);
    ui->m->say[0] = '\0';
    ui->m->dirty = true;
}

/* ---- Questions and letters ---- */

static void answer(struct ui *ui, bool yes)
{
    struct model_requests *w = &ui->m->want;
    model_answer_fn *fn = w->answer;
    void *arg = w->answer_arg;
    free(w->question);
    w->question = NULL;
    w->answer = NULL;
    leave(ui);
    if (fn)
        fn(arg, yes);
}

static void question_key(struct ui *ui, struct key k)
{
    if (k.mods == 0 && (k.code == 'y' || k.code == 'Y'))
        answer(ui, true);
    else if ((k.mods == 0 && (k.code == 'n' || k.code == 'N' || k.code == K_ESC || k.code == 'q')) ||
             (k.mods == K_CTRL && k.code == 'c'))
        answer(ui, false);
}

static void letter_key(struct ui *ui, struct key k)
{
    leave(ui);
    if (k.mods == 0 && k.code >= 'a' && k.code <= 'z') {
        char letter[2] = {(char)k.code, '\0'};
        ui_action(ui, ui->letter_for, letter);
    } else if (k.code != K_ESC) {
        model_warn(ui->m, "marks are letters from a to z");
    }
}

/* ---- Completion of commands ---- */

/* What may stand as word number `index` behind `first`, one after the other; NULL behind the last. */
static const char *candidate(const char *first, size_t index, size_t i)
{
    if (index == 0)
        return i + 1 < ACT_COUNT ? action_info((enum action)(i + 1))->command : NULL;
    if (index == 1 && strcmp(first, "set") == 0)
        return i < SET_COUNT ? setting_info((enum setting)i)->name : NULL;
    if (index == 1 && strcmp(first, "theme") == 0) {
        static const char *const themes[] = {"default", "light", "high-contrast", "mono", NULL};
        return themes[i];
    }
    bool bind = strcmp(first, "bind") == 0 || strcmp(first, "unbind") == 0;
    if (index == 1 && bind)
        return i < CTX_COUNT ? context_name((enum context)i) : NULL;
    if (index == 3 && bind)
        return candidate("", 0, i);
    return NULL;
}

static void complete(struct ui *ui, struct prompt *p)
{
    char word[PROMPT_MAX], first[64] = "", common[PROMPT_MAX] = "", all[400] = "";
    size_t from = prompt_word(p, word, sizeof word), index = 0, n = 0, matches = 0;
    const char *text = prompt_text(p);
    sscanf(text, "%63s", first);
    for (size_t i = 1; i < from; i++)
        index += text[i] != ' ' && text[i - 1] == ' ';
    index += from > 0;
    const char *c;
    for (size_t i = 0; (c = candidate(first, index, i)); i++) {
        if (strncmp(c, word, strlen(word)) != 0)
            continue;
        if (matches++ == 0)
            snprintf(common, sizeof common, "%s", c);
        size_t same = 0;
        while (common[same] && common[same] == c[same])
            same++;
        common[same] = '\0';
        if (n < sizeof all)
            n += (size_t)snprintf(all + n, sizeof all - n, "%s ", c);
    }
    if (matches == 1)
        snprintf(common + strlen(common), sizeof common - strlen(common), " ");
    if (matches)
        prompt_complete(p, common);
    snprintf(ui->m->say, sizeof ui->m->say, "%s", matches > 1 ? all : "");
}

/* ---- Lines ---- */

static void done_line(struct ui *ui, const char *text)
{
    struct model_requests *w = &ui->m->want;
    model_line_fn *fn = w->line;
    void *arg = w->line_arg;
    w->line = NULL;
    if (fn)
        fn(arg, text);
}

static void search_for(struct ui *ui, const char *pattern)
{
    if (!ui_action(ui, ACT_SEARCH, pattern) && pattern[0])
        model_warn(ui->m, "nothing to search here, or no match for %s", pattern);
}

static void finish(struct ui *ui, enum ui_mode mode, struct prompt *p)
{
    char *text = xstrdup(prompt_text(p));
    struct err err = {0};
    prompt_remember(p, text);
    leave(ui);
    if (mode == UI_COMMAND) {
        ui->m->say[0] = '\0';
        if (text[0] && ui_command(ui, text, &err) < 0)
            model_error(ui->m, "%s", err.text);
    } else if (mode == UI_SEARCH) {
        free(ui->search);
        ui->search = xstrdup(text);
        search_for(ui, text);
    } else if (mode == UI_FILTER) {
        if (!ui_action(ui, ACT_FILTER, text))
            model_warn(ui->m, "nothing to filter here");
    } else {
        done_line(ui, text);
    }
    free(text);
}

static void cancel(struct ui *ui, enum ui_mode mode)
{
    leave(ui);
    ui->m->say[0] = '\0';
    if (mode == UI_SEARCH && ui_ops(ui)->search_live)
        ui_action(ui, ACT_SEARCH, ui->search);
    else if (mode == UI_LINE)
        done_line(ui, NULL);
}

void ui_prompt_key(struct ui *ui, struct key k)
{
    if (ui->mode == UI_QUESTION) {
        question_key(ui, k);
        return;
    }
    if (ui->mode == UI_LETTER) {
        letter_key(ui, k);
        return;
    }
    struct prompt *p = ui->prompts[ui->mode];
    if (ui->mode == UI_COMMAND && k.code == K_TAB && k.mods == 0) {
        complete(ui, p);
        return;
    }
    switch (prompt_key(p, k)) {
    case PROMPT_DONE:
        finish(ui, ui->mode, p);
        break;
    case PROMPT_CANCELLED:
        cancel(ui, ui->mode);
        break;
    case PROMPT_CHANGED:
        ui->m->say[0] = '\0';
        if (ui->mode == UI_SEARCH && ui_ops(ui)->search_live)
            ui_action(ui, ACT_SEARCH, prompt_text(p));
        break;
    case PROMPT_MOVED:
    case PROMPT_IGNORED:
        break;
    }
}

void ui_draw_prompt(struct ui *ui, struct surface *s, int row)
{
    struct style style = {.ink = ROLE_PROMPT};
    int cols = surface_cols(s);
    if (ui->mode == UI_QUESTION) {
        int n = surface_text(s, row, 1, cols - 1, ui->m->want.question, SIZE_MAX, style);
        surface_text(s, row, 1 + n, cols - 1 - n, "  y/n", SIZE_MAX, style);
        surface_set_cursor(s, row, 1 + n + 6);
    } else if (ui->mode == UI_LETTER) {
        surface_printf(s, row, 1, cols - 1, style, "%s: a letter, a to z",
                       action_info(ui->letter_for)->help);
    } else {
        /* Candidates of a completion stand above the line, or what may be typed. */
        const struct filter_help *filter = ui->mode == UI_FILTER ? ui_ops(ui)->filter : NULL;
        const bool instructions = ui->m->trace && trace_info(ui->m->trace)->instructions;
        char brief[200];
        const char *above = ui->m->say[0] ? ui->m->say
                            : filter      ? filter_help_text(brief, sizeof brief, filter->brief, instructions)
                                          : "";
        if (*above) {
            surface_fill(s, (struct rect){row - 1, 0, 1, cols}, ' ', style);
            line_cut(s, row - 1, 1, cols - 1, above, style, ui->m->glyphs);
        }
        prompt_draw(ui->prompts[ui->mode], s, row, 0, cols, ui->label, style, ui->m->glyphs);
    }
}
