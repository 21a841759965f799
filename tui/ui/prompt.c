#include "tui/ui/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/utf8.h"
#include "core/base/vec.h"

#define HISTORY_MAX 100

struct prompt {
    char text[PROMPT_MAX];
    size_t len, cursor;
    size_t scroll; /* first byte shown */
    VEC(char *) history;
    size_t at;     /* history.len: the line being edited */
    char *edited;  /* that line, while an older one is shown */
};

struct prompt *prompt_new(void)
{
    return xcalloc(1, sizeof(struct prompt));
}

void prompt_free(struct prompt *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->history.len; i++)
        free(p->history.data[i]);
    vec_free(&p->history);
    free(p->edited);
    free(p);
}

static void replace_text(struct prompt *p, const char *text)
{
    size_t len = strlen(text);
    if (len >= sizeof p->text) {
        len = sizeof p->text - 1;
        while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
            len--; /* not inside a character */
    }
    memmove(p->text, text, len);
    p->text[len] = '\0';
    p->len = p->cursor = len;
    p->scroll = 0;
}

void prompt_set(struct prompt *p, const char *text)
{
    replace_text(p, text);
    p->at = p->history.len;
    free(p->edited);
    p->edited = NULL;
}

const char *prompt_text(const struct prompt *p)
{
    return p->text;
}

size_t prompt_cursor(const struct prompt *p)
{
    return p->cursor;
}

/* One character with its combining marks to the right / left of a place. */
static size_t step_right(const struct prompt *p, size_t at)
{
    uint32_t cp;
    if (at < p->len)
        at += utf8_decode(p->text + at, p->len - at, &cp);
    while (at < p->len) {
        size_t n = utf8_decode(p->text + at, p->len - at, &cp);
        if (utf8_cp_cols(cp) != 0)
            break;
        at += n;
    }
    return at;
}

static size_t step_left(const struct prompt *p, size_t at)
{
    size_t last = 0;
    for (size_t i = 0; i < at; i = step_right(p, i))
        last = i;
    return last;
}

static size_t word_left(const struct prompt *p, size_t at)
{
    while (at > 0 && p->text[at - 1] == ' ')
        at--;
    while (at > 0 && p->text[at - 1] != ' ')
        at--;
    return at;
}

static size_t word_right(const struct prompt *p, size_t at)
{
    while (at < p->len && p->text[at] == ' ')
        at++;
    while (at < p->len && p->text[at] != ' ')
        at++;
    return at;
}

static enum prompt_result erase(struct prompt *p, size_t from, size_t to)
{
    if (from >= to)
        return PROMPT_MOVED;
    memmove(p->text + from, p->text + to, p->len - to + 1);
    p->len -= to - from;
    p->cursor = from;
    return PROMPT_CHANGED;
}

static enum prompt_result insert(struct prompt *p, const char *bytes, size_t n)
{
    if (p->len + n >= sizeof p->text)
        return PROMPT_MOVED;
    memmove(p->text + p->cursor + n, p->text + p->cursor, p->len - p->cursor + 1);
    memcpy(p->text + p->cursor, bytes, n);
    p->cursor += n;
    p->len += n;
    return PROMPT_CHANGED;
}

static enum prompt_result move_to(struct prompt *p, size_t at)
{
    p->cursor = at;
    return PROMPT_MOVED;
}

static enum prompt_result recall(struct prompt *p, int step)
{
    if ((step < 0 && p->at == 0) || (step > 0 && p->at >= p->history.len))
        return PROMPT_MOVED;
    if (p->at == p->history.len) {
        free(p->edited);
        p->edited = xstrdup(p->text);
    }
    p->at = step < 0 ? p->at - 1 : p->at + 1;
    replace_text(p, p->at < p->history.len ? p->history.data[p->at] : p->edited);
    return PROMPT_CHANGED;
}

static enum prompt_result control_key(struct prompt *p, uint32_t code)
{
    switch (code) {
    case 'a':
        return move_to(p, 0);
    case 'e':
        return move_to(p, p->len);
    case 'b':
        return move_to(p, step_left(p, p->cursor));
    case 'f':
        return move_to(p, step_right(p, p->cursor));
    case 'd':
        return erase(p, p->cursor, step_right(p, p->cursor));
    case 'u':
        return erase(p, 0, p->cursor);
    case 'k':
        return erase(p, p->cursor, p->len);
    case 'w':
        return erase(p, word_left(p, p->cursor), p->cursor);
    case 'p':
        return recall(p, -1);
    case 'n':
        return recall(p, 1);
    case 'c':
        return PROMPT_CANCELLED;
    default:
        return PROMPT_IGNORED;
    }
}

static enum prompt_result named_key(struct prompt *p, uint32_t code)
{
    switch (code) {
    case K_LEFT:
        return move_to(p, step_left(p, p->cursor));
    case K_RIGHT:
        return move_to(p, step_right(p, p->cursor));
    case K_HOME:
        return move_to(p, 0);
    case K_END:
        return move_to(p, p->len);
    case K_UP:
        return recall(p, -1);
    case K_DOWN:
        return recall(p, 1);
    case K_DELETE:
        return erase(p, p->cursor, step_right(p, p->cursor));
    case K_BACKSPACE:
        return p->len ? erase(p, step_left(p, p->cursor), p->cursor) : PROMPT_CANCELLED;
    case K_ENTER:
        return PROMPT_DONE;
    case K_ESC:
        return PROMPT_CANCELLED;
    default:
        return PROMPT_IGNORED;
    }
}

bool prompt_key_moves_by_word(struct key k)
{
    return k.mods == K_ALT && (k.code == 'b' || k.code == 'f');
}

enum prompt_result prompt_key(struct prompt *p, struct key k)
{
    if (key_is_text(k)) {
        char bytes[4];
        return insert(p, bytes, utf8_encode(k.code, bytes));
    }
    if (k.mods == K_CTRL)
        return control_key(p, k.code);
    if (prompt_key_moves_by_word(k))
        return move_to(p, k.code == 'b' ? word_left(p, p->cursor) : word_right(p, p->cursor));
    return k.mods == 0 ? named_key(p, k.code) : PROMPT_IGNORED;
}

void prompt_remember(struct prompt *p, const char *line)
{
    if (!line[0])
        return;
    for (size_t i = 0; i < p->history.len; i++) {
        if (strcmp(p->history.data[i], line) == 0) {
            free(p->history.data[i]);
            vec_remove(&p->history, i);
            break;
        }
    }
    if (p->history.len == HISTORY_MAX) {
        free(p->history.data[0]);
        vec_remove(&p->history, 0);
    }
    vec_push(&p->history, xstrdup(line));
    p->at = p->history.len;
}

size_t prompt_word(const struct prompt *p, char *out, size_t size)
{
    size_t from = p->cursor;
    while (from > 0 && p->text[from - 1] != ' ')
        from--;
    snprintf(out, size, "%.*s", (int)(p->cursor - from), p->text + from);
    return from;
}

void prompt_complete(struct prompt *p, const char *candidate)
{
    char word[PROMPT_MAX];
    size_t from = prompt_word(p, word, sizeof word);
    if (p->len - (p->cursor - from) + strlen(candidate) >= sizeof p->text)
        return;
    erase(p, from, p->cursor);
    insert(p, candidate, strlen(candidate));
}

void prompt_draw(struct prompt *p, struct surface *s, int row, int col, int cols, const char *label,
                 struct style style, const struct glyphs *g)
{
    surface_fill(s, (struct rect){row, col, 1, cols}, ' ', style);
    int used = surface_text(s, row, col, cols, label, SIZE_MAX, style);
    int room = cols - used;
    if (room < 2)
        return;
    /* Scroll so that the cursor has a cell inside the field, behind the ellipsis. */
    if (p->scroll > p->cursor)
        p->scroll = p->cursor;
    while (utf8_cols(p->text + p->scroll, p->cursor - p->scroll) + (p->scroll > 0) > (size_t)room - 1)
        p->scroll = step_right(p, p->scroll);
    if (p->scroll > 0) {
        surface_put(s, row, col + used++, glyph(g, GLYPH_ELLIPSIS), style);
        room--;
    }
    surface_text(s, row, col + used, room, p->text + p->scroll, p->len - p->scroll, style);
    surface_set_cursor(s, row,
                       col + used + (int)utf8_cols(p->text + p->scroll, p->cursor - p->scroll));
}
