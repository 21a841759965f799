#include "tui/term/keys.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/utf8.h"

static const struct {
    const char *name;
    uint32_t code;
} named[] = {
    {"Up", K_UP},       {"Down", K_DOWN},   {"Left", K_LEFT},      {"Right", K_RIGHT},
    {"Home", K_HOME},   {"End", K_END},     {"PgUp", K_PGUP},      {"PgDn", K_PGDN},
    {"Ins", K_INSERT},  {"Del", K_DELETE},  {"Bksp", K_BACKSPACE}, {"Enter", K_ENTER},
    {"Tab", K_TAB},     {"Esc", K_ESC},     {"Space", ' '},        {"Insert", K_INSERT},
    {"Delete", K_DELETE}, {"Backspace", K_BACKSPACE},
};

static const struct {
    const char *prefix;
    uint32_t mod;
} modifiers[] = {{"S-", K_SHIFT}, {"Shift-", K_SHIFT}, {"Alt-", K_ALT}, {"A-", K_ALT},
                 {"M-", K_ALT},   {"Ctrl-", K_CTRL},   {"C-", K_CTRL},  {"^", K_CTRL}};

bool key_is_text(struct key k)
{
    return k.mods == 0 && k.code < 0x110000 && k.code >= ' ' && !utf8_is_unsafe(k.code);
}

static uint32_t lower_ascii(uint32_t c)
{
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

struct key key_normal(struct key k)
{
    if (k.mods & K_CTRL && k.code < 128 && strchr("hHmMjJiI[", (int)k.code) && k.code) {
        /* What a terminal sends for these is the control character of a named key. */
        k.code &= 0x1f;
        k.mods &= ~(uint32_t)K_CTRL;
    }
    if (k.code == '\r' || k.code == '\n')
        k.code = K_ENTER;
    else if (k.code == '\t')
        k.code = K_TAB;
    else if (k.code == 27)
        k.code = K_ESC;
    else if (k.code == 8 || k.code == 127)
        k.code = K_BACKSPACE;
    else if (k.code < 32) {
        k.code = k.code ? lower_ascii(k.code + 64) : ' ';
        k.mods |= K_CTRL;
    }
    if (k.code < 0x110000) {
        if (k.mods & K_CTRL)
            k.code = lower_ascii(k.code);
        else if (k.mods & K_SHIFT && k.code >= 'a' && k.code <= 'z')
            k.code -= 32;
        if (!(k.mods & K_CTRL))
            k.mods &= ~(uint32_t)K_SHIFT;
    }
    return k;
}

/* The code for a name without modifiers, or K_NONE. */
static uint32_t parse_base(const char *s)
{
    uint32_t cp;
    size_t len = strlen(s);
    if (len && utf8_decode(s, len, &cp) == len && !(cp == UTF8_INVALID && len == 1))
        return utf8_is_unsafe(cp) ? K_NONE : cp;
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (strcasecmp(s, named[i].name) == 0)
            return named[i].code;
    unsigned n;
    char rest;
    if ((s[0] == 'F' || s[0] == 'f') && sscanf(s + 1, "%2u%c", &n, &rest) == 1 && n >= 1 && n <= 12)
        return K_F1 + n - 1;
    return K_NONE;
}

int key_parse(const char *name, struct key *key, struct err *err)
{
    struct key k = {0};
    const char *s = name;
    for (size_t i = 0; i < sizeof modifiers / sizeof *modifiers;) {
        size_t len = strlen(modifiers[i].prefix);
        if (strncasecmp(s, modifiers[i].prefix, len) == 0 && s[len]) {
            k.mods |= modifiers[i].mod;
            s += len;
            i = 0;
        } else {
            i++;
        }
    }
    k.code = parse_base(s);
    if (k.code == K_NONE)
        return err_set(err, MTUI_E_INVAL,
                       "'%s' is no key: write a character, ^N, Alt-1, S-Tab, or one of Up Down Left "
                       "Right Home End PgUp PgDn Ins Del Bksp Enter Tab Esc Space F1-F12",
                       name);
    *key = key_normal(k);
    return 0;
}

char *key_format(struct key k, char *out)
{
    char base[8] = "";
    for (size_t i = 0; i < sizeof named / sizeof *named && !base[0]; i++)
        if (named[i].code == k.code)
            snprintf(base, sizeof base, "%s", named[i].name);
    if (k.code >= K_F1 && k.code <= K_F12)
        snprintf(base, sizeof base, "F%u", (unsigned)(k.code - K_F1 + 1));
    else if (!base[0] && k.code < 0x110000 && !utf8_is_unsafe(k.code)) {
        uint32_t shown = k.code;
        if (k.mods & K_CTRL && shown >= 'a' && shown <= 'z')
            shown -= 32;
        base[utf8_encode(shown, base)] = '\0';
    }
    snprintf(out, KEY_NAME_MAX, "%s%s%s%s", k.mods & K_ALT ? "Alt-" : "",
             k.mods & K_SHIFT ? "S-" : "", k.mods & K_CTRL ? "^" : "", base[0] ? base : "?");
    return out;
}
