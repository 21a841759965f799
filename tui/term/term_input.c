#include "tui/term/term_input.h"

#include <stdio.h>
#include <string.h>

void mouse_report_start(struct mouse_report *r, bool sgr)
{
    *r = (struct mouse_report){.active = true, .sgr = sgr};
}

/* Button bits: 0–1 button, 2 shift(4), 3 alt(8), 4 ctrl(16), 5 motion(32), 6 wheel(64). */
static bool decode(unsigned bits, bool release, struct mouse *m)
{
    m->mods = (bits & 4 ? K_SHIFT : 0u) | (bits & 8 ? K_ALT : 0u) | (bits & 16 ? K_CTRL : 0u);
    if (bits & 64) {
        if ((bits & 3) > 1)
            return false; /* a wheel that goes sideways */
        m->kind = bits & 1 ? MOUSE_WHEEL_DOWN : MOUSE_WHEEL_UP;
        m->button = 0;
        return !release;
    }
    m->button = (int)(bits & 3) + 1;
    if (bits & 32) {
        m->kind = MOUSE_DRAG;
        return m->button <= 3;
    }
    m->kind = release || m->button == 4 ? MOUSE_UP : MOUSE_DOWN;
    if (m->button == 4)
        m->button = 1; /* the old form does not say which one was released */
    return true;
}

static int finish_sgr(struct mouse_report *r, bool release, struct mouse *m)
{
    unsigned bits, col, row;
    char rest;
    r->bytes[r->len] = '\0';
    if (sscanf(r->bytes, "%5u;%5u;%5u%c", &bits, &col, &row, &rest) != 3 || !col || !row)
        return 0;
    m->col = (int)col - 1;
    m->row = (int)row - 1;
    return decode(bits, release, m);
}

int mouse_report_add(struct mouse_report *r, int byte, struct mouse *m)
{
    if (r->sgr && (byte == 'M' || byte == 'm')) {
        r->active = false;
        return finish_sgr(r, byte == 'm', m);
    }
    if (r->sgr && byte != ';' && (byte < '0' || byte > '9')) {
        r->active = false;
        return 0;
    }
    if (r->len + 1 >= sizeof r->bytes) {
        r->active = false;
        return 0;
    }
    r->bytes[r->len++] = (char)byte;
    if (r->sgr || r->len < 3)
        return 0;
    r->active = false;
    unsigned b[3];
    for (int i = 0; i < 3; i++)
        b[i] = (unsigned char)r->bytes[i];
    if (b[0] < 32 || b[1] < 33 || b[2] < 33)
        return 0;
    m->col = (int)b[1] - 33;
    m->row = (int)b[2] - 33;
    return decode(b[0] - 32, false, m);
}

void mouse_tell_double(struct mouse_clicks *c, uint64_t now_ns, struct mouse *m)
{
    if (m->kind != MOUSE_DOWN)
        return;
    bool again = c->last_ns && now_ns - c->last_ns <= 400000000u && c->row == m->row &&
                 c->col == m->col && c->button == m->button;
    *c = (struct mouse_clicks){again ? 0 : now_ns, m->row, m->col, m->button};
    if (again)
        m->kind = MOUSE_DOUBLE;
}

void key_sequence_start(struct key_sequence *q, char intro)
{
    *q = (struct key_sequence){.active = true, .intro = intro};
}

bool key_sequence_is_alt(struct key_sequence *q, struct key *key)
{
    if (q->len)
        return false;
    q->active = false;
    *key = (struct key){(unsigned char)q->intro, K_ALT};
    return true;
}

/* The key that a final letter names, whatever the parameters; K_NONE if it names none. */
static uint32_t key_of_letter(char letter)
{
    switch (letter) {
    case 'A': return K_UP;
    case 'B': return K_DOWN;
    case 'C': return K_RIGHT;
    case 'D': return K_LEFT;
    case 'F': return K_END;
    case 'H': return K_HOME;
    case 'P': case 'Q': case 'R': case 'S': return K_F1 + (uint32_t)(letter - 'P');
    default: return K_NONE;
    }
}

/* The key that ESC [ number ~ names. */
static uint32_t key_of_number(unsigned number)
{
    static const uint32_t keys[] = {
        [1] = K_HOME,      [2] = K_INSERT,    [3] = K_DELETE,    [4] = K_END,       [5] = K_PGUP,
        [6] = K_PGDN,      [7] = K_HOME,      [8] = K_END,       [11] = K_F1,       [12] = K_F1 + 1,
        [13] = K_F1 + 2,   [14] = K_F1 + 3,   [15] = K_F1 + 4,   [17] = K_F1 + 5,   [18] = K_F1 + 6,
        [19] = K_F1 + 7,   [20] = K_F1 + 8,   [21] = K_F1 + 9,   [23] = K_F1 + 10,  [24] = K_F1 + 11};
    return number < sizeof keys / sizeof *keys ? keys[number] : K_NONE;
}

/* Of the forms "A", "1;5A", "5A", "5~" and "5;5~", and the console's "[A" for F1 to F5. */
static bool sequence_key(const struct key_sequence *q, struct key *key)
{
    if (q->len >= sizeof q->bytes)
        return false;
    char final = q->bytes[q->len - 1];
    if (q->bytes[0] == '[') {
        *key = (struct key){K_F1 + (uint32_t)(final - 'A'), 0};
        return q->len == 2 && final >= 'A' && final <= 'E';
    }
    unsigned number[2] = {1, 1};
    int given = 0, used = 0;
    if (q->len > 1)
        given = sscanf(q->bytes, "%3u%n;%3u%n", &number[0], &used, &number[1], &used);
    if ((size_t)used + 1 != q->len)
        return false;
    /* xterm: 1 + shift 1 + alt 2 + ctrl 4, which are our bits; SS3 has no other parameter. */
    unsigned param = q->intro == 'O' && given == 1 ? number[0] : number[1];
    if (param < 1 || param > 8)
        return false;
    uint32_t code = final == '~' ? key_of_number(given ? number[0] : 0) : key_of_letter(final);
    *key = (struct key){code, param - 1};
    return code != K_NONE;
}

enum sequence_state key_sequence_add(struct key_sequence *q, uint32_t ch, struct key *key)
{
    if (ch < 0x20 || ch > 0x7e) {
        q->active = false;
        return SEQUENCE_BROKEN;
    }
    if (q->len + 1 < sizeof q->bytes) {
        q->bytes[q->len] = (char)ch;
        q->bytes[q->len + 1] = '\0';
    }
    q->len++;
    if (ch < 0x40 || (ch == '[' && q->intro == '[' && q->len == 1))
        return SEQUENCE_MORE;
    q->active = false;
    return sequence_key(q, key) ? SEQUENCE_KEY : SEQUENCE_NOTHING;
}

bool key_of_capability(const char *name, struct key *key)
{
    static const struct {
        const char *name;
        uint32_t code;
    } caps[] = {{"kUP", K_UP},    {"kDN", K_DOWN},  {"kLFT", K_LEFT}, {"kRIT", K_RIGHT},
                {"kHOM", K_HOME}, {"kEND", K_END},  {"kPRV", K_PGUP}, {"kNXT", K_PGDN},
                {"kIC", K_INSERT}, {"kDC", K_DELETE}};
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
        size_t len = strlen(caps[i].name);
        if (strncmp(name, caps[i].name, len) != 0)
            continue;
        const char *digit = name + len;
        uint32_t param = 2; /* "kUP" alone is shifted */
        if (digit[0] >= '3' && digit[0] <= '8' && !digit[1])
            param = (uint32_t)(digit[0] - '0');
        else if (digit[0])
            continue;
        /* xterm: 1 + shift 1 + alt 2 + ctrl 4, which are our bits. */
        *key = (struct key){caps[i].code, param - 1};
        return true;
    }
    return false;
}
