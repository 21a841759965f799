#include "tui/ui/v_help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/alloc.h"
#include "decode/trace/trace.h"
#include "core/base/utf8.h"
#include "core/base/vec.h"
#include "tui/ui/bar.h"
#include "tui/term/glyph.h"
#include "tui/ui/help_legend.h"
#include "tui/ui/line.h"
#include "tui/ui/model.h"
#include "tui/ui/settings.h"

#define TWO_PANES_COLS 92 /* from this width on: this screen's keys to the left, the rest to the right */

struct help_line {
    size_t section;
    bool heading;
    enum action act; /* ACT_NONE: text only */
    char *keys, *text;
    uint16_t ink, paper; /* of keys; 0: as keys are drawn */
};

struct help_section {
    const char *title;
    bool folded;
    bool left; /* in the left pane, where there are two */
};

struct pane {
    VEC(size_t) lines; /* indices of the lines shown */
    size_t selected, top;
    struct rect r;
};

struct v_help {
    struct model *m;
    VEC(struct help_section) sections;
    VEC(struct help_line) lines;
    char *title; /* of the screen explained */
    char find[128];
    struct pane panes[2];
    size_t focus, pane_count;
    bool wide; /* one pane at any width: settings need it */
};

static void clear_lines(struct v_help *v)
{
    for (size_t i = 0; i < v->lines.len; i++) {
        free(v->lines.data[i].keys);
        free(v->lines.data[i].text);
    }
    v->lines.len = v->sections.len = 0;
}

static void *help_create(struct model *m)
{
    struct v_help *v = xcalloc(1, sizeof *v);
    v->m = m;
    v->pane_count = 1;
    v->title = xstrdup("");
    return v;
}

static void help_destroy(void *view)
{
    struct v_help *v = view;
    clear_lines(v);
    vec_free(&v->lines);
    vec_free(&v->sections);
    vec_free(&v->panes[0].lines);
    vec_free(&v->panes[1].lines);
    free(v->title);
    free(v);
}

/* ---- What there is to read ---- */

static const char settings_title[] = "Settings  (:set NAME VALUE)";

static void add_section(struct v_help *v, const char *title, bool folded, bool left)
{
    vec_push(&v->sections, ((struct help_section){title, folded, left}));
    struct help_line heading = {.section = v->sections.len - 1, .heading = true,
                                .keys = xstrdup(""), .text = xstrdup(title)};
    vec_push(&v->lines, heading);
}

static void add_line(struct v_help *v, enum action act, const char *keys, const char *text)
{
    struct help_line line = {.section = v->sections.len - 1, .act = act, .keys = xstrdup(keys),
                             .text = xstrdup(text)};
    vec_push(&v->lines, line);
}

/* The keys of one context, in the order of the table; those of one action together. */
static void add_context(struct v_help *v, const struct keymap *km, enum context ctx, bool folded,
                        bool left, const struct view_ops *screen)
{
    bool done[ACT_COUNT] = {false};
    add_section(v, context_title(ctx), folded, left);
    for (size_t i = 0; i < keymap_count(km); i++) {
        const struct binding *b = keymap_at(km, i);
        char keys[96], text[160];
        if (b->ctx != ctx || (done[b->act] && !b->args[0]) || (screen && view_lacks(screen, b->act)))
            continue;
        if (b->args[0]) {
            snprintf(text, sizeof text, ":%s %s", action_info(b->act)->command, b->args);
            add_line(v, b->act, key_format(b->key, keys), text);
            continue;
        }
        done[b->act] = true;
        keymap_keys(km, ctx, b->act, keys, sizeof keys);
        if (action_takes_letter(b->act))
            snprintf(keys + strlen(keys), sizeof keys - strlen(keys), "{a-z}");
        add_line(v, b->act, keys, action_info(b->act)->help);
    }
}

static bool has_key(const struct keymap *km, enum action act)
{
    for (size_t i = 0; i < keymap_count(km); i++)
        if (keymap_at(km, i)->act == act && !keymap_at(km, i)->args[0])
            return true;
    return false;
}

static void add_commands(struct v_help *v, const struct keymap *km)
{
    add_section(v, "Commands", true, false);
    for (size_t i = ACT_NONE + 1; i < ACT_COUNT; i++) {
        const struct action_info *info = action_info((enum action)i);
        char name[80];
        if (has_key(km, (enum action)i) && (!info->args[0] || action_takes_letter((enum action)i)))
            continue;
        snprintf(name, sizeof name, ":%s %s", info->command, info->args);
        add_line(v, (enum action)i, name, info->help);
    }
}

static const char mistakes_title[] = "Wrong lines of the configuration file: they do nothing";

static void add_mistakes(struct v_help *v)
{
    size_t n = v->m->settings ? settings_mistake_count(v->m->settings) : 0;
    if (n)
        add_section(v, mistakes_title, false, false);
    for (size_t i = 0; i < n; i++) {
        const struct settings_mistake *mistake = settings_mistake(v->m->settings, i);
        char place[32];
        snprintf(place, sizeof place, "config:%d", mistake->line);
        add_line(v, ACT_NONE, place, mistake->text);
    }
}

/* Name and value; the words that it may be, where these are few. */
static void add_settings(struct v_help *v)
{
    add_section(v, settings_title, true, false);
    for (size_t i = 0; i < SET_COUNT; i++) {
        const struct setting_info *info = setting_info((enum setting)i);
        const char *value = v->m->settings ? settings_text(v->m->settings, (enum setting)i) : info->preset;
        char line[160], text[160];
        snprintf(line, sizeof line, "%s %s", info->name, value[0] ? value : "\"\"");
        if (info->type == SETTING_CHOICE)
            snprintf(text, sizeof text, "%s: %s", info->help, info->limits);
        else
            snprintf(text, sizeof text, "%s", info->help);
        add_line(v, ACT_NONE, line, text);
    }
}

static void add_filter(struct v_help *v, const struct filter_help *f)
{
    const bool instructions = v->m->trace && trace_info(v->m->trace)->instructions;
    char words[80];
    add_section(v, "Filter: words that all must hold", false, true);
    for (size_t i = 0; i < sizeof f->lines / sizeof *f->lines && f->lines[i].words; i++)
        add_line(v, ACT_NONE, filter_help_text(words, sizeof words, f->lines[i].words, instructions),
                 f->lines[i].meaning);
}

static void add_legend(struct v_help *v)
{
    struct legend_line l;
    add_section(v, "Picture", false, false);
    for (size_t i = 0; help_legend(v->m->glyphs, i, &l); i++) {
        add_line(v, ACT_NONE, l.sample, l.text);
        v->lines.data[v->lines.len - 1].ink = l.ink;
        v->lines.data[v->lines.len - 1].paper = l.paper;
    }
}

static void arrange(struct v_help *v);

void v_help_explain(void *view, const struct keymap *km, const struct view_ops *screen)
{
    struct v_help *v = view;
    bool shown[CTX_COUNT] = {[CTX_GLOBAL] = true};
    clear_lines(v);
    free(v->title);
    v->title = xstrdup(screen ? screen->title : context_title(CTX_GLOBAL));
    for (size_t i = 0; screen && i < screen->context_count; i++) {
        enum context ctx = screen->contexts[i];
        add_context(v, km, ctx, false, true, screen);
        shown[ctx] = true;
        if (i == 0 && screen->filter)
            add_filter(v, screen->filter);
    }
    if (shown[CTX_TIMELINE])
        add_legend(v);
    add_context(v, km, CTX_GLOBAL, false, false, NULL);
    add_section(v, "Mouse", false, false);
    for (const struct mouse_help *m = mouse_help_table(); m->gesture; m++)
        add_line(v, ACT_NONE, m->gesture, m->help);
    add_commands(v, km);
    add_mistakes(v);
    add_settings(v);
    for (size_t ctx = 0; ctx < CTX_COUNT; ctx++)
        if (!shown[ctx])
            add_context(v, km, (enum context)ctx, true, false, NULL);
    v->find[0] = '\0';
    v->wide = false;
    v->focus = 0;
    v->panes[0].selected = v->panes[1].selected = v->panes[0].top = v->panes[1].top = 0;
    arrange(v);
}

/* ---- What is shown of it ---- */

static bool matches(const struct v_help *v, const struct help_line *l)
{
    return strcasestr(l->text, v->find) || strcasestr(l->keys, v->find) ||
           (l->act && strcasestr(action_info(l->act)->command, v->find));
}

static bool section_matches(const struct v_help *v, size_t section)
{
    for (size_t i = 0; i < v->lines.len; i++)
        if (v->lines.data[i].section == section && !v->lines.data[i].heading &&
            matches(v, &v->lines.data[i]))
            return true;
    return false;
}

static bool is_shown(const struct v_help *v, const struct help_line *l)
{
    if (v->find[0])
        return l->heading ? section_matches(v, l->section) : matches(v, l);
    return l->heading || !v->sections.data[l->section].folded;
}

/* Fills the panes with the lines that are shown now. */
static void arrange(struct v_help *v)
{
    for (size_t p = 0; p < 2; p++)
        v->panes[p].lines.len = 0;
    for (size_t i = 0; i < v->lines.len; i++) {
        const struct help_line *l = &v->lines.data[i];
        size_t pane = v->pane_count == 2 && !v->sections.data[l->section].left;
        if (is_shown(v, l))
            vec_push(&v->panes[pane].lines, i);
    }
    if (v->panes[v->focus].lines.len == 0)
        v->focus = v->pane_count == 2 && v->panes[1].lines.len ? 1 : 0;
    for (size_t p = 0; p < 2; p++)
        if (v->panes[p].selected >= v->panes[p].lines.len)
            v->panes[p].selected = v->panes[p].lines.len ? v->panes[p].lines.len - 1 : 0;
}

static const struct help_line *selected_line(const struct v_help *v)
{
    const struct pane *p = &v->panes[v->focus];
    return p->lines.len ? &v->lines.data[p->lines.data[p->selected]] : NULL;
}

/* Selects a line of all, where it stands now, at the top. */
static void select_line(struct v_help *v, size_t line)
{
    for (size_t p = 0; p < v->pane_count; p++)
        for (size_t i = 0; i < v->panes[p].lines.len; i++)
            if (v->panes[p].lines.data[i] == line) {
                v->focus = p;
                v->panes[p].selected = v->panes[p].top = i;
            }
}

void v_help_show_settings(void *view)
{
    struct v_help *v = view;
    size_t heading = 0, mistakes = 0;
    v->find[0] = '\0';
    for (size_t i = 0; i < v->lines.len; i++) {
        const char *title = v->sections.data[v->lines.data[i].section].title;
        if (v->lines.data[i].heading && title == settings_title)
            heading = i;
        else if (v->lines.data[i].heading && title == mistakes_title)
            mistakes = i;
    }
    v->sections.data[v->lines.data[heading].section].folded = false;
    if (mistakes)
        heading = mistakes;
    v->wide = true;
    v->pane_count = 1;
    arrange(v);
    select_line(v, heading);
}

static int keys_cols(const struct pane *p)
{
    return p->r.cols < 60 ? 15 : 22;
}

static void draw_line(const struct v_help *v, struct surface *s, const struct pane *p, int y,
                      const struct help_line *l, bool selected)
{
    const struct glyphs *g = v->m->glyphs;
    struct style style = {0}, key_style = {.ink = ROLE_BAR_ACTIVE};
    if (l->heading)
        style.ink = ROLE_TITLE;
    if (selected) {
        style = key_style = (struct style){.ink = ROLE_SELECT, .paper = ROLE_SELECT};
        surface_fill(s, (struct rect){y, p->r.col, 1, p->r.cols}, ' ', style);
    }
    if (l->heading) {
        bool folded = v->sections.data[l->section].folded && !v->find[0];
        surface_put(s, y, p->r.col + 1, glyph(g, folded ? GLYPH_FOLDED : GLYPH_UNFOLDED), style);
        surface_text(s, y, p->r.col + 3, p->r.cols - 3, l->text, SIZE_MAX, style);
        return;
    }
    if (l->ink && !selected)
        key_style = (struct style){.ink = l->ink, .paper = l->paper};
    int width = keys_cols(p), need = (int)utf8_cols(l->keys, strlen(l->keys));
    surface_text(s, y, p->r.col + 4, p->r.cols - 5, l->keys, SIZE_MAX, key_style);
    int at = 4 + (need < width ? width : need + 1);
    if (p->r.cols > at)
        line_cut(s, y, p->r.col + at, p->r.cols - at - 1, l->text, style, g);
}

static void draw_pane(struct v_help *v, struct surface *s, size_t which)
{
    struct pane *p = &v->panes[which];
    size_t room = p->r.rows > 0 ? (size_t)p->r.rows : 0;
    if (!room)
        return;
    if (p->selected < p->top)
        p->top = p->selected;
    if (p->selected >= p->top + room)
        p->top = p->selected - room + 1;
    for (size_t i = 0; i < room && p->top + i < p->lines.len; i++)
        draw_line(v, s, p, p->r.row + (int)i, &v->lines.data[p->lines.data[p->top + i]],
                  which == v->focus && p->top + i == p->selected);
}

static void help_draw(void *view, struct surface *s, struct rect r)
{
    struct v_help *v = view;
    size_t panes = 1;
    for (size_t i = 0; i < v->sections.len; i++)
        if (v->sections.data[i].left && r.cols >= TWO_PANES_COLS && !v->wide)
            panes = 2;
    if (panes != v->pane_count) {
        const struct help_line *was = selected_line(v);
        v->pane_count = panes;
        v->focus = 0;
        arrange(v);
        if (was)
            select_line(v, (size_t)(was - v->lines.data));
    }
    surface_printf(s, r.row, r.col + 1, r.cols - 1, (struct style){.ink = ROLE_PROMPT},
                   v->find[0] ? "Find: %s" : "%s", v->find[0] ? v->find : "/ finds");
    const char note[] = "every key here comes from the key table";
    if (r.cols > 70)
        surface_text(s, r.row, r.col + r.cols - (int)sizeof note, (int)sizeof note, note, SIZE_MAX,
                     (struct style){.ink = ROLE_DIM});
    int half = panes == 2 ? r.cols / 2 : r.cols;
    v->panes[0].r = (struct rect){r.row + 1, r.col, r.rows - 2, half};
    v->panes[1].r = (struct rect){r.row + 1, r.col + half, r.rows - 2, r.cols - half};
    for (size_t p = 0; p < panes; p++)
        draw_pane(v, s, p);
    char path[256];
    surface_printf(s, r.row + r.rows - 1, r.col + 1, r.cols - 1, (struct style){.ink = ROLE_DIM},
                   "Rebind in %s:  bind timeline z zoom-range",
                   settings_config_path(path, sizeof path));
}

/* ---- Moving in it ---- */

static void move_by(struct v_help *v, ptrdiff_t by)
{
    struct pane *p = &v->panes[v->focus];
    ptrdiff_t at = (ptrdiff_t)p->selected + by, last = (ptrdiff_t)p->lines.len - 1;
    p->selected = at < 0 || last < 0 ? 0 : (size_t)(at > last ? last : at);
}

static void toggle_fold(struct v_help *v)
{
    const struct help_line *l = selected_line(v);
    if (!l || v->find[0])
        return;
    size_t section = l->section;
    v->sections.data[section].folded = !v->sections.data[section].folded;
    arrange(v);
    struct pane *p = &v->panes[v->focus];
    for (size_t i = 0; i < p->lines.len; i++) {
        const struct help_line *at = &v->lines.data[p->lines.data[i]];
        if (at->heading && at->section == section)
            p->selected = i;
    }
}

static void set_find(struct v_help *v, const char *pattern)
{
    snprintf(v->find, sizeof v->find, "%s", pattern);
    arrange(v);
    /* The first line that is no heading. */
    struct pane *p = &v->panes[v->focus];
    p->selected = p->top = 0;
    if (pattern[0] && p->lines.len > 1)
        p->selected = 1;
}

static bool help_action(void *view, enum action act, const char *arg)
{
    struct v_help *v = view;
    ptrdiff_t page = v->panes[v->focus].r.rows > 1 ? v->panes[v->focus].r.rows - 1 : 1;
    switch ((int)act) {
    case ACT_UP:
    case ACT_SEARCH_PREV:
        move_by(v, -1);
        return true;
    case ACT_DOWN:
    case ACT_SEARCH_NEXT:
        move_by(v, 1);
        return true;
    case ACT_PAGE_UP:
    case ACT_HALF_UP:
        move_by(v, act == ACT_PAGE_UP ? -page : -(page + 1) / 2);
        return true;
    case ACT_PAGE_DOWN:
    case ACT_HALF_DOWN:
        move_by(v, act == ACT_PAGE_DOWN ? page : (page + 1) / 2);
        return true;
    case ACT_FIRST:
    case ACT_LAST:
        move_by(v, act == ACT_FIRST ? PTRDIFF_MIN / 2 : PTRDIFF_MAX / 2);
        return true;
    case ACT_PANE_NEXT:
    case ACT_PANE_PREV:
    case ACT_LEFT:
    case ACT_RIGHT:
        if (v->pane_count == 2 && v->panes[!v->focus].lines.len)
            v->focus = !v->focus;
        return true;
    case ACT_OPEN:
        toggle_fold(v);
        return true;
    case ACT_SEARCH:
    case ACT_FILTER:
        set_find(v, arg ? arg : "");
        return true;
    case ACT_CANCEL:
        if (!v->find[0])
            return false;
        set_find(v, "");
        return true;
    default:
        return false;
    }
}

static bool help_mouse(void *view, const struct mouse *m, struct rect r)
{
    struct v_help *v = view;
    (void)r;
    for (size_t i = 0; i < v->pane_count; i++) {
        struct pane *p = &v->panes[i];
        size_t row = p->top + (size_t)(m->row - p->r.row);
        if (m->col < p->r.col || m->col >= p->r.col + p->r.cols || m->row < p->r.row)
            continue;
        v->focus = i;
        if (m->kind == MOUSE_WHEEL_UP || m->kind == MOUSE_WHEEL_DOWN)
            move_by(v, m->kind == MOUSE_WHEEL_UP ? -3 : 3);
        else if ((m->kind == MOUSE_DOWN || m->kind == MOUSE_DOUBLE) && row < p->lines.len) {
            p->selected = row;
            if (selected_line(v)->heading)
                toggle_fold(v);
        }
        return true;
    }
    return false;
}

static void help_status(void *view, char *out, size_t size)
{
    const struct v_help *v = view;
    const struct help_line *l = selected_line(v);
    if (l && !l->heading && l->act)
        snprintf(out, size, "command  :%s %s", action_info(l->act)->command,
                 action_info(l->act)->args);
    else if (l && !l->heading)
        snprintf(out, size, "%s", l->text); /* a narrow pane cuts it */
}

static void help_state(void *view, char *out, size_t size)
{
    snprintf(out, size, "help: %s", ((struct v_help *)view)->title);
}

const struct view_ops view_help = {
    .name = "help",
    .title = "Help",
    .contexts = {CTX_HELP, CTX_MOVE},
    .context_count = 2,
    .create = help_create,
    .destroy = help_destroy,
    .draw = help_draw,
    .action = help_action,
    .search_live = true,
    .mouse = help_mouse,
    .status = help_status,
    .state = help_state,
};
