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
