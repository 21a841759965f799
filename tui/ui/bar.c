#include "tui/ui/bar.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"
#include "tui/term/glyph.h"
#include "tui/ui/line.h"

static const struct style bar_style = {.ink = ROLE_BAR, .paper = ROLE_BAR};
static const struct style active_style = {.ink = ROLE_BAR_ACTIVE, .paper = ROLE_BAR_ACTIVE};

#define NAME_COLS 6 /* " mtui " */

#define STATE_COLS 22 /* what titles leave to the state: "SAMPLED snap 2  603 ms" */
#define SHORT_COLS 4
#define STATE_LEAST 8

/* How much of the titles there is room for: they must leave the state legible. */
enum titles { TITLES_NONE, TITLES_SHORT, TITLES_FULL };

/* "[1 Processes]" or " 2 Symbols "; short " 2 Symb " but for the active one; without titles "[1]". */
static void tab_text(char *out, size_t size, const struct view_ops *screen, size_t i, bool active,
                     enum titles titles)
{
    int most = titles == TITLES_FULL || (titles == TITLES_SHORT && active) ? INT_MAX
               : titles == TITLES_SHORT                                    ? SHORT_COLS
                                                                           : 0;
    snprintf(out, size, "%s%zu%s%.*s%s", active ? "[" : " ", i + 1, most ? " " : "", most,
             screen->title, active ? "]" : " ");
}

static int tabs_cols(const struct view_ops *const *screens, size_t n, size_t active,
                     enum titles titles)
{
    int cols = NAME_COLS;
    for (size_t i = 0; i < n; i++) {
        char text[64];
        tab_text(text, sizeof text, screens[i], i, i == active, titles);
        cols += (int)utf8_cols(text, strlen(text));
    }
    return cols;
}

static enum titles titles_for(const struct view_ops *const *screens, size_t n, size_t active,
                              int cols)
{
    if (tabs_cols(screens, n, active, TITLES_FULL) + STATE_COLS <= cols)
        return TITLES_FULL;
    return tabs_cols(screens, n, active, TITLES_SHORT) <= cols ? TITLES_SHORT : TITLES_NONE;
}

/* Bytes of the state that are shown: all, or whole groups (two blanks apart), or all of the first, to be cut; a
 * few letters of it would say nothing. */
static size_t state_len(const char *state, int room)
{
    size_t len = strlen(state), shown = 0;
    if (utf8_cols(state, len) <= (size_t)room)
        return len;
    for (const char *at = strstr(state, "  "); at; at = strstr(at + 2, "  "))
        if (utf8_cols(state, (size_t)(at - state)) <= (size_t)room)
            shown = (size_t)(at - state);
    return shown ? shown : room >= STATE_LEAST ? len : 0;
}

/* At the right end, with a sign before it while something is recorded. */
static void draw_state(struct surface *s, int row, int room, const char *state, bool recording, const struct glyphs *g)
{
    const struct style style = recording ? (struct style){.ink = ROLE_REC, .paper = ROLE_REC} : bar_style;
    const int sign = recording ? 2 : 0, end = surface_cols(s) - 1;
    char shown[200];
    room -= sign;
    snprintf(shown, sizeof shown, "%.*s", (int)state_len(state, room), state);
    int cols = (int)utf8_cols(shown, strlen(shown));
    cols = cols < room ? cols : room;
    if (recording) {
        surface_put(s, row, end - cols - 2, glyph(g, GLYPH_REC), style);
        surface_put(s, row, end - cols - 1, ' ', style);
    }
    line_cut(s, row, end - cols, cols, shown, style, g);
}

void bar_draw_tabs(struct surface *s, int row, const struct view_ops *const *screens, size_t n,
                   size_t active, const char *state, bool recording, const struct glyphs *g)
{
    int cols = surface_cols(s);
    enum titles titles = titles_for(screens, n, active, cols);
    surface_fill(s, (struct rect){row, 0, 1, cols}, ' ', bar_style);
    int at = surface_text(s, row, 0, cols, " mtui ", SIZE_MAX, bar_style);
    for (size_t i = 0; i < n; i++) {
        char text[64];
        tab_text(text, sizeof text, screens[i], i, i == active, titles);
        at += surface_text(s, row, at, cols - at, text, SIZE_MAX,
                           i == active ? active_style : bar_style);
    }
    int room = cols - at - 1;
    if (room > 0)
        draw_state(s, row, room, state, recording && room >= 2, g);
}

size_t bar_tab_at(const struct surface *s, const struct view_ops *const *screens, size_t n, size_t active,
                  int col)
{
    enum titles titles = titles_for(screens, n, active, surface_cols(s));
    int at = NAME_COLS;
    for (size_t i = 0; i < n; i++) {
        char text[64];
        tab_text(text, sizeof text, screens[i], i, i == active, titles);
        int width = (int)utf8_cols(text, strlen(text));
        if (col >= at && col < at + width)
            return i;
        at += width;
    }
    return SIZE_MAX;
}

/* Calls for each entry that fits: where it starts and ends. Room is kept for the last one (help). */
struct key_slot {
    struct bar_entry entry;
    int col, end;
};

static int entry_cols(const struct bar_entry *e)
{
    return (int)(utf8_cols(e->keys, strlen(e->keys)) + 1 + utf8_cols(e->label, strlen(e->label)));
}

#define SLOTS_MAX 24

static size_t layout_keys(const struct keymap *km, const enum context *contexts, size_t n, int cols,
                          struct key_slot slots[SLOTS_MAX])
{
    size_t count = 0, used = 0;
    while (count < SLOTS_MAX && keymap_bar(km, contexts, n, count, &slots[count].entry))
        count++;
    if (!count)
        return 0;
    int last = entry_cols(&slots[count - 1].entry) + 2;
    int at = 1;
    for (size_t i = 0; i < count; i++) {
        int width = entry_cols(&slots[i].entry);
        if (at + width + (i + 1 < count ? last : 0) > cols)
            continue;
        slots[used] = slots[i];
        slots[used].col = at;
        slots[used++].end = at + width;
        at += width + 2;
    }
    return used;
}

void bar_draw_keys(struct surface *s, int row, const struct keymap *km, const enum context *contexts,
                   size_t n)
{
    struct key_slot slots[SLOTS_MAX];
    int cols = surface_cols(s);
    size_t used = layout_keys(km, contexts, n, cols, slots);
    surface_fill(s, (struct rect){row, 0, 1, cols}, ' ', bar_style);
    for (size_t i = 0; i < used; i++) {
        int at = slots[i].col;
        at += surface_text(s, row, at, cols - at, slots[i].entry.keys, SIZE_MAX, active_style);
        at += surface_text(s, row, at, cols - at, " ", SIZE_MAX, bar_style);
        surface_text(s, row, at, cols - at, slots[i].entry.label, SIZE_MAX, bar_style);
    }
}

enum action bar_key_at(const struct surface *s, const struct keymap *km, const enum context *contexts,
                       size_t n, int col)
{
    struct key_slot slots[SLOTS_MAX];
    size_t used = layout_keys(km, contexts, n, surface_cols(s), slots);
    for (size_t i = 0; i < used; i++)
        if (col >= slots[i].col && col < slots[i].end)
            return slots[i].entry.act;
    return ACT_NONE;
}

void bar_draw_status(struct surface *s, int row, const char *say, enum model_severity severity,
                     const char *status, const struct glyphs *g)
{
    int cols = surface_cols(s);
    if (!say[0]) {
        line_draw(s, row, 1, cols - 1, status, (struct style){.ink = ROLE_DIM}, g);
        return;
    }
    static const uint16_t roles[] = {
        [SAY_INFO] = ROLE_DEFAULT, [SAY_WARN] = ROLE_WARN, [SAY_ERROR] = ROLE_ERROR};
    struct style style = {.ink = roles[severity], .paper = roles[severity]};
    int at = 1;
    if (severity == SAY_ERROR)
        at += surface_text(s, row, at, cols - at, "! ", SIZE_MAX, style);
    line_cut(s, row, at, cols - at, say, style, g);
}

#define FILTER_LABEL " Filter: "
#define FILTER_LEAST 8

void bar_draw_filter(struct surface *s, struct rect r, const char *filter, const char *note, const char *right,
                     const struct glyphs *g)
{
    const struct style style = {0};
    const char *text = *filter ? filter : "none";
    const int label = (int)strlen(FILTER_LABEL), behind = (int)utf8_cols(note, strlen(note));
    int tail = (int)utf8_cols(right, strlen(right)), cols = (int)utf8_cols(text, strlen(text));
    if (label + FILTER_LEAST + behind + 1 + tail > r.cols)
        tail = 0;
    const int room = r.cols - label - behind - tail - 1;
    cols = cols < room ? cols : room;
    surface_text(s, r.row, r.col, r.cols, FILTER_LABEL, SIZE_MAX, style);
    line_cut_left(s, r.row, r.col + label, cols, text, style, g);
    if (cols > 0)
        line_cut(s, r.row, r.col + label + cols, behind, note, style, g);
    surface_text(s, r.row, r.col + r.cols - tail, tail, right, SIZE_MAX, style);
}

void bar_draw_rule(struct surface *s, int row, int col, int cols, const char *title,
                   const char *right, const struct glyphs *g)
{
    struct style style = {.ink = ROLE_TITLE};
    surface_fill(s, (struct rect){row, col, 1, cols}, glyph(g, GLYPH_RULE_H), style);
    int width = (int)utf8_cols(title, strlen(title));
    if (title[0] && cols > 6) {
        int n = surface_text(s, row, col + 3, width < cols - 6 ? width : cols - 6, title, SIZE_MAX,
                             style);
        surface_put(s, row, col + 2, ' ', style);
        surface_put(s, row, col + 3 + n, ' ', style);
        width = n + 5;
    }
    int tail = (int)utf8_cols(right, strlen(right));
    if (right[0] && tail + 4 < cols - width) {
        int at = col + cols - tail - 1;
        surface_put(s, row, at - 1, ' ', style);
        surface_text(s, row, at, tail, right, SIZE_MAX, style);
        surface_put(s, row, at + tail, ' ', style);
    }
}
