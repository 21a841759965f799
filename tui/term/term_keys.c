#define NCURSES_NOMACROS 1
#include "tui/term/term_keys.h"

#include <curses.h>
#include <stddef.h>
#include <stdint.h>

#include "tui/term/term_input.h"

void term_keys_define(void)
{
    /* What terminals send when they have not switched to application keys, whatever terminfo says. */
    static const struct {
        const char *bytes;
        int code;
    } extra[] = {
        {"\033[A", KEY_UP},    {"\033[B", KEY_DOWN},   {"\033[C", KEY_RIGHT}, {"\033[D", KEY_LEFT},
        {"\033[H", KEY_HOME},  {"\033[F", KEY_END},    {"\033[1~", KEY_HOME}, {"\033[4~", KEY_END},
        {"\033[Z", KEY_BTAB},  {"\033OM", KEY_ENTER},  {"\033[5~", KEY_PPAGE}, {"\033[6~", KEY_NPAGE},
        {"\033[3~", KEY_DC},   {"\033OP", KEY_F(1)},   {"\033[11~", KEY_F(1)},
    };
    for (size_t i = 0; i < sizeof extra / sizeof *extra; i++)
        if (key_defined(extra[i].bytes) == 0)
            define_key(extra[i].bytes, extra[i].code);
    define_key("\033[<", KEYCODE_SGR);
    if (key_defined("\033[M") != KEYCODE_SGR)
        define_key("\033[M", KEYCODE_X10);
}

static const struct {
    int code;
    struct key key;
} curses_keys[] = {
    {KEY_UP, {K_UP, 0}},          {KEY_DOWN, {K_DOWN, 0}},       {KEY_LEFT, {K_LEFT, 0}},
    {KEY_RIGHT, {K_RIGHT, 0}},    {KEY_HOME, {K_HOME, 0}},       {KEY_END, {K_END, 0}},
    {KEY_FIND, {K_HOME, 0}},      {KEY_SELECT, {K_END, 0}},      {KEY_A1, {K_HOME, 0}},
    {KEY_C1, {K_END, 0}},         {KEY_A3, {K_PGUP, 0}},         {KEY_C3, {K_PGDN, 0}},
    {KEY_PPAGE, {K_PGUP, 0}},     {KEY_NPAGE, {K_PGDN, 0}},      {KEY_IC, {K_INSERT, 0}},
    {KEY_DC, {K_DELETE, 0}},      {KEY_BACKSPACE, {K_BACKSPACE, 0}}, {KEY_ENTER, {K_ENTER, 0}},
    {KEY_BTAB, {K_TAB, K_SHIFT}}, {KEY_SLEFT, {K_LEFT, K_SHIFT}}, {KEY_SRIGHT, {K_RIGHT, K_SHIFT}},
    {KEY_SF, {K_DOWN, K_SHIFT}},  {KEY_SR, {K_UP, K_SHIFT}},     {KEY_SHOME, {K_HOME, K_SHIFT}},
    {KEY_SEND, {K_END, K_SHIFT}}, {KEY_SPREVIOUS, {K_PGUP, K_SHIFT}}, {KEY_SNEXT, {K_PGDN, K_SHIFT}},
    {KEY_SDC, {K_DELETE, K_SHIFT}}, {KEY_SIC, {K_INSERT, K_SHIFT}},
};

bool term_key_of_code(int code, struct key *key)
{
    for (size_t i = 0; i < sizeof curses_keys / sizeof *curses_keys; i++) {
        if (curses_keys[i].code == code) {
            *key = curses_keys[i].key;
            return true;
        }
    }
    /* xterm's entry counts on past F12 for shift, control, both, Alt, and Alt with shift. */
    static const uint32_t mods[] = {0, K_SHIFT, K_CTRL, K_CTRL | K_SHIFT, K_ALT, K_ALT | K_SHIFT};
    if (code > KEY_F0 && code <= KEY_F(63)) {
        uint32_t n = (uint32_t)(code - KEY_F(1));
        *key = (struct key){K_F1 + n % 12, mods[n / 12]};
        return true;
    }
    const char *name = keyname(code);
    return name && key_of_capability(name, key);
}
