/* Pairs of colours are numbered by us and never recycled: curses' alloc_pair reuses numbers when it runs
 * out and hands out numbers past what the classic calls take. */
#define NCURSES_WIDECHAR 1
#define NCURSES_NOMACROS 1
#include "tui/term/term.h"

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "tui/term/term_input.h"
#include "tui/term/term_keys.h"
#include "tui/term/term_reset.h"

/* Key codes of ours, past those that curses gives out: a mouse report begins. */
#define KEYCODE_SGR 3000
#define KEYCODE_X10 3001

#define PAIRS_MAX 32767 /* pair numbers fit a short */
#define NO_PAIR (-1)
#define SEQUENCE_NS 1000000000u /* how long the rest of a key sequence may take */

struct terminal {
    SCREEN *screen;
    FILE *in, *out;
    int in_fd, out_fd;
    bool away;      /* between term_leave and term_enter */
    bool has_mouse, mouse_on;
    bool direct;    /* colour numbers are 0xrrggbb */
    bool has_default;
    int colors;
    int rows, cols;

    struct cell *shown; /* rows × cols: what curses was told */
    bool fresh;         /* shown counts for nothing */

    /* For each (ink, paper) of the theme: its look, and the number of its pair. */
    struct {
        bool known;
        short pair;
        attr_t attr;
    } styles[ROLE_COUNT][ROLE_COUNT];
    struct {
        int fg, bg;
    } pairs[PAIRS_MAX];
    int pair_count; /* pair 0 is the terminal's default */

    struct key_sequence sequence;
    uint64_t sequence_ns; /* when it began */
    struct mouse_report report;
    struct mouse_clicks clicks;
};

/* ---- Opening and closing ---- */

/* A capability without its padding marks ($<5>), appended to out. */
static void add_capability(char *out, size_t size, const char *name)
{
    char buf[32];
    snprintf(buf, sizeof buf, "%s", name);
    const char *s = tigetstr(buf);
    size_t used = strlen(out);
    if (!s || s == (const char *)-1)
        return;
    while (*s && used + 1 < size) {
        if (s[0] == '$' && s[1] == '<') {
            const char *end = strchr(s, '>');
            if (end) {
                s = end + 1;
                continue;
            }
        }
        out[used++] = *s++;
    }
    out[used] = '\0';
}

static void arm_reset(const struct terminal *t)
{
    char bytes[256] = "";
    if (t->has_mouse)
        snprintf(bytes, sizeof bytes, TERM_MOUSE_OFF "\033[?2004l");
    add_capability(bytes, sizeof bytes, "sgr0");
    add_capability(bytes, sizeof bytes, "op");
    add_capability(bytes, sizeof bytes, "rmkx");
    add_capability(bytes, sizeof bytes, "cnorm");
    add_capability(bytes, sizeof bytes, "rmcup");
    term_reset_arm(bytes);
}

static void put_raw(const struct terminal *t, const char *bytes)
{
    fputs(bytes, t->out);
    fflush(t->out);
}

/* The common sequences that a terminfo entry may lack. */
static void define_keys(void)
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

static bool key_of_code(int code, struct key *key)
{
    const char *name = keyname(code);
    return name && key_of_curses_name(name, key);
}

static void set_up_screen(struct terminal *t, int escdelay_ms)
{
    set_escdelay(escdelay_ms);
    raw();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    meta(stdscr, TRUE);
    curs_set(0);
    char kmous[] = "kmous";
    const char *mouse = tigetstr(kmous);
    t->has_mouse = mouse && mouse != (const char *)-1;
    t->colors = has_colors() ? COLORS : 0;
    if (has_colors()) {
        start_color();
        t->colors = COLORS;
        t->has_default = use_default_colors() == OK;
    }
    define_keys();
}

/* Looks for an entry without writing anything. */
static bool entry_exists(const char *name, int out_fd)
{
    int status = 0;
    if (!name[0] || setupterm(name, out_fd, &status) != OK || status != 1)
        return false;
    char cup[] = "cup";
    const char *s = tigetstr(cup);
    bool usable = s && s != (const char *)-1;
    del_curterm(cur_term);
    return usable;
}

/* The entry to use for TERM; NULL when none will do. */
static const char *choose_entry(const char *name, bool want_rgb, int out_fd, char *direct,
                                size_t direct_size, char *notice, size_t notice_size)
{
    static const char *const fallbacks[] = {"xterm-256color", "xterm", "vt100"};
    const char *found = entry_exists(name, out_fd) ? name : NULL;
    notice[0] = '\0';
    for (size_t i = 0; !found && i < sizeof fallbacks / sizeof *fallbacks; i++)
        if (entry_exists(fallbacks[i], out_fd))
            found = fallbacks[i];
    if (found && strcmp(found, name) != 0)
        snprintf(notice, notice_size, "TERM=%s is not known here; using %s",
                 name[0] ? name : "(unset)", found);
    if (!found || !want_rgb)
        return found;
    snprintf(direct, direct_size, "%.40s", found);
    char *suffix = strstr(direct, "-256color");
    if (suffix)
        *suffix = '\0';
    strncat(direct, "-direct", direct_size - strlen(direct) - 1);
    if (entry_exists(direct, out_fd))
        return direct;
    snprintf(notice, notice_size, "no terminfo entry %s (Debian: ncurses-term): 256 colours instead",
             direct);
    direct[0] = '\0';
    return found;
}

static int open_files(struct terminal *t, const struct term_options *o, struct err *err)
{
    t->out_fd = o->out_fd >= 0 ? o->out_fd : STDOUT_FILENO;
    t->in_fd = o->in_fd >= 0 ? o->in_fd : STDIN_FILENO;
    if (o->need_tty && !isatty(t->out_fd))
        return err_set(err, MTUI_E_NOTSUP,
                       "standard output is no terminal; --batch and export work without one");
    int in = o->need_tty && !isatty(t->in_fd) ? open("/dev/tty", O_RDWR | O_CLOEXEC)
                                              : fcntl(t->in_fd, F_DUPFD_CLOEXEC, 3);
    if (in < 0)
        return err_set(err, MTUI_E_NOTSUP, "there is no terminal to read keys from");
    t->in_fd = in;
    t->in = fdopen(in, "r");
    int out = fcntl(t->out_fd, F_DUPFD_CLOEXEC, 3);
    t->out = out >= 0 ? fdopen(out, "w") : NULL;
    if (!t->in || !t->out)
        return err_errno(err, errno, "the terminal cannot be opened");
    t->out_fd = out;
    return 0;
}

static void free_term(struct terminal *t)
{
    if (t->in)
        fclose(t->in);
    if (t->out)
        fclose(t->out);
    free(t->shown);
    free(t);
}

int term_open(struct terminal **out, const struct term_options *o, char *notice, size_t notice_size,
              struct err *err)
{
    const char *name = o->name ? o->name : "";
    char direct[64] = "";
    if (strcmp(name, "dumb") == 0)
        return err_set(err, MTUI_E_NOTSUP, "TERM=dumb cannot show screens; --batch and export work "
                                           "without one");
    struct terminal *t = xcalloc(1, sizeof *t);
    int rc = open_files(t, o, err);
    if (rc < 0) {
        free_term(t);
        return rc;
    }
    const char *entry =
        choose_entry(name, o->want_rgb, t->out_fd, direct, sizeof direct, notice, notice_size);
    term_reset_remember(t->in_fd, t->out_fd);
    t->screen = entry ? newterm(entry, t->out, t->in) : NULL;
    if (!t->screen) {
        free_term(t);
        return err_set(err, MTUI_E_NOTSUP,
                       "no terminal description for TERM=%s, nor for xterm-256color, xterm, vt100 "
                       "(package ncurses-base)",
                       name);
    }
    t->direct = entry == direct;
    set_up_screen(t, o->escdelay_ms);
    arm_reset(t);
    term_set_mouse(t, o->mouse);
    t->fresh = true;
    t->pair_count = 1;
    term_resize(t);
    *out = t;
    return 0;
}

void term_close(struct terminal *t)
{
    if (!t)
        return;
    set_term(t->screen);
    if (!t->away)
        term_leave(t);
    delscreen(t->screen);
    free_term(t);
}

void term_leave(struct terminal *t)
{
    if (t->has_mouse)
        put_raw(t, TERM_MOUSE_OFF);
    curs_set(1);
    endwin();
    fflush(t->out);
    term_reset_disarm();
    t->away = true;
}

void term_enter(struct terminal *t)
{
    arm_reset(t);
    reset_prog_mode();
    curs_set(0);
    t->away = false;
    t->mouse_on = !t->mouse_on;
    term_set_mouse(t, !t->mouse_on);
    term_resize(t);
    term_invalidate(t);
}

int term_fd(const struct terminal *t)
{
    return t->in_fd;
}

enum color_tier term_tier(const struct terminal *t)
{
    if (t->direct)
        return COLOR_RGB;
    return t->colors >= 256 ? COLOR_256 : t->colors >= 8 ? COLOR_16 : COLOR_MONO;
}

void term_size(const struct terminal *t, int *rows, int *cols)
{
    *rows = t->rows;
    *cols = t->cols;
}

void term_resize(struct terminal *t)
{
    struct winsize ws;
    if (ioctl(t->out_fd, TIOCGWINSZ, &ws) == 0 && ws.ws_row > 0 && ws.ws_col > 0 &&
        (ws.ws_row != LINES || ws.ws_col != COLS))
        resizeterm(ws.ws_row, ws.ws_col);
    if (t->shown && LINES == t->rows && COLS == t->cols)
        return;
    t->rows = LINES;
    t->cols = COLS;
    free(t->shown);
    t->shown = xcalloc((size_t)t->rows * (size_t)t->cols, sizeof *t->shown);
    term_invalidate(t);
}

void term_set_mouse(struct terminal *t, bool on)
{
    if (t->has_mouse && on != t->mouse_on)
        put_raw(t, on ? TERM_MOUSE_ON : TERM_MOUSE_OFF);
    t->mouse_on = on;
}

void term_set_escdelay(struct terminal *t, int ms)
{
    (void)t;
    set_escdelay(ms);
}

bool term_copy(struct terminal *t, const char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t len = strlen(text);
    if (!t->has_mouse || len > 65536)
        return false; /* not one of xterm's kin */
    fputs("\033]52;c;", t->out);
    for (size_t i = 0; i < len; i += 3) {
        unsigned v = 0;
        for (size_t j = 0; j < 3; j++)
            v = v << 8 | (i + j < len ? (unsigned char)text[i + j] : 0u);
        for (size_t j = 0; j < 4; j++)
            fputc(i + j <= len ? digits[v >> (18 - 6 * j) & 63] : '=', t->out);
    }
    fputs("\033\\", t->out);
    fflush(t->out);
    return true;
}

/* ---- Showing ---- */

static int color_number(const struct terminal *t, struct color c, attr_t *bold)
{
    if (c.kind == COLOR_KIND_DEFAULT)
        return -1;
    if (t->direct) {
        if (c.kind == COLOR_KIND_INDEX && c.value < 8)
            return (int)c.value;
        return (int)(c.kind == COLOR_KIND_RGB ? c.value : color_index_rgb((uint8_t)c.value));
    }
    int n = c.kind == COLOR_KIND_INDEX ? (int)c.value : 0;
    if (n >= t->colors && n < 16) {
        /* Eight colours: bright ones are bold. */
        n -= 8;
        if (bold)
            *bold |= A_BOLD;
    }
    return n < t->colors ? n : -1;
}

static short pair_number(struct terminal *t, int fg, int bg)
{
    if (fg == -1 && bg == -1)
        return 0;
    if (!t->has_default) {
        fg = fg == -1 ? COLOR_WHITE : fg;
        bg = bg == -1 ? COLOR_BLACK : bg;
    }
    for (int i = 1; i < t->pair_count; i++)
        if (t->pairs[i].fg == fg && t->pairs[i].bg == bg)
            return (short)i;
    int most = COLOR_PAIRS < PAIRS_MAX ? COLOR_PAIRS : PAIRS_MAX;
    if (t->pair_count >= most)
        return bg == -1 ? 0 : pair_number(t, fg, -1);
    t->pairs[t->pair_count].fg = fg;
    t->pairs[t->pair_count].bg = bg;
    init_extended_pair(t->pair_count, fg, bg);
    return (short)t->pair_count++;
}

static attr_t curses_attr(unsigned attr)
{
    return (attr & CELL_BOLD ? A_BOLD : 0) | (attr & CELL_DIM ? A_DIM : 0) |
           (attr & CELL_UNDERLINE ? A_UNDERLINE : 0) | (attr & CELL_REVERSE ? A_REVERSE : 0) |
           (attr & CELL_STANDOUT ? A_STANDOUT : 0);
}

static void find_style(struct terminal *t, const struct theme *theme, const struct cell *c)
{
    struct cell plain = {.ink = c->ink, .paper = c->paper};
    struct look look = theme_look(theme, &plain);
    attr_t bold = 0;
    int fg = color_number(t, look.fg, &bold), bg = color_number(t, look.bg, NULL);
    t->styles[c->ink][c->paper].attr = curses_attr(look.attr) | bold;
    t->styles[c->ink][c->paper].pair = pair_number(t, fg, bg);
    t->styles[c->ink][c->paper].known = true;
}

static void show_cell(struct terminal *t, int row, int col, const struct cell *c,
                      const struct theme *theme)
{
    if (!t->styles[c->ink][c->paper].known)
        find_style(t, theme, c);
    attr_t attr = t->styles[c->ink][c->paper].attr | curses_attr(c->attr);
    wchar_t text[3] = {(wchar_t)c->cp, (wchar_t)c->mark, 0};
    cchar_t cc;
    setcchar(&cc, text, attr, t->styles[c->ink][c->paper].pair, NULL);
    mvadd_wch(row, col, &cc); /* fails in the last cell of the screen, after drawing it */
}

static bool same_cell(const struct cell *a, const struct cell *b)
{
    return a->cp == b->cp && a->mark == b->mark && a->ink == b->ink && a->paper == b->paper &&
           a->attr == b->attr;
}

void term_show(struct terminal *t, const struct surface *s, const struct theme *theme)
{
    if (t->away)
        return;
    if (t->fresh) {
        erase();
        clearok(stdscr, TRUE);
    }
    for (int row = 0; row < t->rows; row++) {
        for (int col = 0; col < t->cols; col++) {
            const struct cell *c = surface_at(s, row, col);
            struct cell *old = &t->shown[(size_t)row * (size_t)t->cols + (size_t)col];
            if (!c || (!t->fresh && same_cell(c, old)))
                continue;
            *old = *c;
            if (c->cp && c->ink < ROLE_COUNT && c->paper < ROLE_COUNT)
                show_cell(t, row, col, c, theme);
        }
    }
    t->fresh = false;
    int row, col;
    surface_get_cursor(s, &row, &col);
    curs_set(row >= 0);
    move(row >= 0 ? row : t->rows - 1, row >= 0 ? col : 0);
    refresh();
}

void term_invalidate(struct terminal *t)
{
    t->fresh = true;
    memset(t->styles, 0, sizeof t->styles);
    t->pair_count = 1;
}

bool term_peek(struct terminal *t, int row, int col, struct term_cell *cell)
{
    cchar_t cc;
    wchar_t text[CCHARW_MAX + 1] = {0};
    attr_t attr = 0;
    short pair = 0;
    if (row >= t->rows || col >= t->cols || mvin_wch(row, col, &cc) == ERR ||
        getcchar(&cc, text, &attr, &pair, NULL) == ERR)
        return false;
    *cell = (struct term_cell){.cp = (uint32_t)text[0], .mark = (uint32_t)text[1], .fg = -1, .bg = -1};
    if (pair > 0 && pair < t->pair_count) {
        cell->fg = t->pairs[pair].fg;
        cell->bg = t->pairs[pair].bg;
    }
    cell->attr = (attr & A_BOLD ? CELL_BOLD : 0u) | (attr & A_DIM ? CELL_DIM : 0u) |
                 (attr & A_UNDERLINE ? CELL_UNDERLINE : 0u) |
                 (attr & A_REVERSE ? CELL_REVERSE : 0u) | (attr & A_STANDOUT ? CELL_STANDOUT : 0u);
    return true;
}

/* ---- Reading ---- */

/* Feeds waiting bytes to the mouse report; true when one is complete. */
static bool read_report(struct terminal *t, uint64_t now_ns, struct term_event *e)
{
    wint_t ch;
    while (t->report.active) {
        int kind = get_wch(&ch);
        if (kind == ERR)
            return false;
        if (kind != OK) {
            t->report.active = false;
            return false;
        }
        if (mouse_report_add(&t->report, ch < 256 ? (int)ch : 0, &e->mouse) == 1) {
            e->is_mouse = true;
            mouse_tell_double(&t->clicks, now_ns, &e->mouse);
            return true;
        }
    }
    return false;
}

/* Feeds waiting bytes to the key sequence; true when it has become a key. One that means nothing is
 * swallowed whole, and what cannot belong to it is read again. */
static bool read_sequence(struct terminal *t, struct term_event *e)
{
    wint_t ch;
    while (t->sequence.active) {
        int kind = get_wch(&ch);
        if (kind == ERR)
            return key_sequence_is_alt(&t->sequence, &e->key);
        if (kind == KEY_CODE_YES) {
            t->sequence.active = false;
            ungetch((int)ch);
            return false;
        }
        switch (key_sequence_add(&t->sequence, (uint32_t)ch, &e->key)) {
        case SEQUENCE_KEY:
            return true;
        case SEQUENCE_BROKEN:
            unget_wch((wchar_t)ch);
            return false;
        case SEQUENCE_MORE:
        case SEQUENCE_NOTHING:
            break;
        }
    }
    return false;
}

/* What follows an Esc at once belongs to it: a sequence that curses does not know (false: t->sequence
 * has begun), or Alt. */
static bool read_after_esc(struct terminal *t, uint64_t now_ns, struct key *key)
{
    wint_t next;
    int more = get_wch(&next);
    *key = key_normal((struct key){27, 0});
    if (more == OK && (next == '[' || next == 'O')) {
        key_sequence_start(&t->sequence, (char)next);
        t->sequence_ns = now_ns;
        return false;
    }
    if (more == OK && next != 27)
        *key = key_normal((struct key){(uint32_t)next, K_ALT});
    else if (more == KEY_CODE_YES && key_of_code((int)next, key))
        key->mods |= K_ALT;
    else if (more != ERR)
        unget_wch((wchar_t)next);
    return true;
}

bool term_read(struct terminal *t, uint64_t now_ns, struct term_event *e)
{
    wint_t ch;
    e->is_mouse = false;
    if (now_ns - t->sequence_ns > SEQUENCE_NS)
        t->sequence.active = false; /* the rest of it got lost */
    for (;;) {
        if (t->report.active) {
            if (read_report(t, now_ns, e))
                return true;
            if (t->report.active)
                return false;
        }
        if (t->sequence.active) {
            if (read_sequence(t, e))
                return true;
            if (t->sequence.active)
                return false;
        }
        int kind = get_wch(&ch);
        if (kind == ERR)
            return false;
        if (kind == KEY_CODE_YES) {
            if (ch == KEYCODE_SGR || ch == KEYCODE_X10)
                mouse_report_start(&t->report, ch == KEYCODE_SGR);
            else if (key_of_code((int)ch, &e->key))
                return true;
        } else if (ch == 27) {
            if (read_after_esc(t, now_ns, &e->key))
                return true;
        } else if (ch != 0xfffd) {
            e->key = key_normal((struct key){(uint32_t)ch, 0});
            return true;
        }
    }
}
