/* tui/term/term: curses on a pipe, without a terminal. Each case in a process of its own, since curses keeps
 * state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tui/term/term.h"
#include "tui/term/term_input.h"

/* What check() says of the first failure comes back through a pipe. */
static int report_fd;

#define check(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            dprintf(report_fd, "line %d: %s", __LINE__, #what);                                    \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void in_child(void (*body)(void))
{
    int p[2];
    char text[512] = "";
    assert_int_equal(pipe(p), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        report_fd = p[1];
        close(p[0]);
        setenv("LINES", "30", 1);
        setenv("COLUMNS", "100", 1);
        setlocale(LC_ALL, "C.UTF-8");
        body();
        _exit(0);
    }
    close(p[1]);
    ssize_t n = read(p[0], text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    close(p[0]);
    int status;
    waitpid(pid, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s (status %x)", text, (unsigned)status);
}

struct fake {
    int keys;          /* to write what is typed */
    int in, out;
    struct terminal *t;
    char notice[200];
};

static struct fake open_fake(const char *term, bool mouse)
{
    struct fake f = {0};
    int p[2];
    struct err err = {0};
    check(pipe(p) == 0);
    f.in = p[0];
    f.keys = p[1];
    f.out = open("/dev/null", O_WRONLY);
    struct term_options o = {.name = term, .in_fd = f.in, .out_fd = f.out, .mouse = mouse,
                             .escdelay_ms = 20};
    int rc = term_open(&f.t, &o, f.notice, sizeof f.notice, &err);
    if (rc < 0) {
        dprintf(report_fd, "%s", err.text);
        _exit(1);
    }
    return f;
}

static void send_bytes(const struct fake *f, const char *bytes, size_t len)
{
    check(write(f->keys, bytes, len) == (ssize_t)len);
}

/* The names of all keys that come, joined by blanks; mouse events in a form of their own. */
static const char *read_all(const struct fake *f)
{
    static const char *const kinds[] = {"down", "up", "drag", "double", "wheel-up", "wheel-down"};
    static char out[1024];
    struct term_event e;
    size_t n = 0;
    out[0] = '\0';
    while (term_read(f->t, 1000, &e)) {
        char name[KEY_NAME_MAX];
        if (e.is_mouse)
            n += (size_t)snprintf(out + n, sizeof out - n, "%s%s(%d,%d,%d,%u)", n ? " " : "",
                                  kinds[e.mouse.kind], e.mouse.row, e.mouse.col, e.mouse.button,
                                  e.mouse.mods);
        else
            n += (size_t)snprintf(out + n, sizeof out - n, "%s%s", n ? " " : "",
                                  key_format(e.key, name));
    }
    return out;
}

#define check_text(got, want)                                                                      \
    do {                                                                                           \
        const char *g_ = (got);                                                                    \
        if (strcmp(g_, want) != 0) {                                                               \
            dprintf(report_fd, "line %d: '%s', not '%s'", __LINE__, g_, want);                     \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void keys_body(void)
{
    struct fake f = open_fake("xterm-256color", false);
    const struct {
        const char *bytes, *names;
    } cases[] = {
        {"a", "a"},
        {"\xe6\x97\xa5\xc3\xa9", "\xe6\x97\xa5 \xc3\xa9"},
        {"\x0e\x10\x03\x1a", "^N ^P ^C ^Z"},
        {"\r\t\x7f\x08", "Enter Tab Bksp Bksp"},
        {"\033OA\033OB\033OC\033OD", "Up Down Right Left"},
        {"\033[A\033[B\033[C\033[D", "Up Down Right Left"},
        {"\033[5~\033[6~\033[3~\033[2~", "PgUp PgDn Del Ins"},
        {"\033OH\033OF\033[H\033[F", "Home End Home End"},
        {"\033OP\033OQ\033[15~\033[21~\033[24~", "F1 F2 F5 F10 F12"},
        {"\033[Z", "S-Tab"},
        {"\033[1;2A\033[1;5C\033[1;3D", "S-Up ^Right Alt-Left"},
        {"\033[6;5~", "^PgDn"},
        {"\0331\033x", "Alt-1 Alt-x"},
        {"q", "q"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        send_bytes(&f, cases[i].bytes, strlen(cases[i].bytes));
        check_text(read_all(&f), cases[i].names);
    }
    send_bytes(&f, "\033", 1);
    check_text(read_all(&f), "Esc");
    send_bytes(&f, "\0", 1);
    check_text(read_all(&f), "^Space");
    term_close(f.t);
}

static void mouse_body(void)
{
    struct fake f = open_fake("xterm-256color", true);
    const struct {
        const char *bytes, *names;
    } cases[] = {
        {"\033[<0;10;5M\033[<0;10;5m", "down(4,9,1,0) up(4,9,1,0)"},
        {"\033[<0;10;5M", "double(4,9,1,0)"},
        {"\033[<2;401;301M", "down(300,400,3,0)"},
        {"\033[<32;11;5M", "drag(4,10,1,0)"},
        {"\033[<64;1;1M\033[<65;1;1M", "wheel-up(0,0,0,0) wheel-down(0,0,0,0)"},
        {"\033[<68;1;1M\033[<80;2;1M", "wheel-up(0,0,0,1) wheel-up(0,1,0,4)"},
        {"\033[<0;1;1M\033[<64;1;1Mj", "down(0,0,1,0) wheel-up(0,0,0,0) j"},
        {"\033[<66;1;1Mx", "x"},          /* sideways */
        {"\033[<0;0;1Mx", "x"},           /* column 0 does not exist */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        send_bytes(&f, cases[i].bytes, strlen(cases[i].bytes));
        check_text(read_all(&f), cases[i].names);
    }
    /* A report that comes in two pieces. */
    send_bytes(&f, "\033[<0;7", 6);
    check_text(read_all(&f), "");
    send_bytes(&f, ";8Mk", 4);
    check_text(read_all(&f), "down(7,6,1,0) k");
    term_close(f.t);
}

static struct term_cell show_one(struct fake *f, struct cell cell, const struct theme *theme)
{
    struct surface *s = surface_new(30, 100);
    struct term_cell got = {0};
    surface_put_cell(s, 3, 4, cell);
    term_show(f->t, s, theme);
    check(term_peek(f->t, 3, 4, &got));
    surface_free(s);
    return got;
}

static void cells_body(void)
{
    struct fake f = open_fake("xterm-256color", false);
    int rows, cols;
    term_size(f.t, &rows, &cols);
    check(rows == 30 && cols == 100);
    check(term_tier(f.t) == COLOR_256);
    struct theme *theme = theme_new(COLOR_256);
    struct term_cell c = show_one(&f, (struct cell){.cp = 0x258d, .ink = ROLE_FN0, .paper = ROLE_FN0 + 1,
                                                    .attr = CELL_BOLD}, theme);
    check(c.cp == 0x258d && c.fg == 216 && c.bg == 172 && c.attr == CELL_BOLD);
    /* The right part of a cell: a left block reversed on the default paper. */
    c = show_one(&f, (struct cell){.cp = 0x258d, .ink = ROLE_FN0, .attr = CELL_REVERSE}, theme);
    check(c.fg == 216 && c.bg == -1 && c.attr == CELL_REVERSE);
    c = show_one(&f, (struct cell){.cp = 'e', .mark = 0x301}, theme);
    check(c.cp == 'e' && c.mark == 0x301 && c.fg == -1 && c.bg == -1 && c.attr == 0);
    c = show_one(&f, (struct cell){.cp = 0x65e5, .ink = ROLE_SELECT, .paper = ROLE_SELECT}, theme);
    check(c.cp == 0x65e5 && c.fg == 0 && c.bg == 6);
    /* Every ink on every paper has a pair of its own, and all fit. */
    struct surface *s = surface_new(30, 100);
    for (unsigned ink = 0; ink < ROLE_COUNT; ink++) {
        for (unsigned paper = 0; paper < ROLE_COUNT; paper++)
            surface_put_cell(s, (int)(paper % 30), (int)(ink % 100),
                             (struct cell){.cp = 'x', .ink = (uint16_t)ink, .paper = (uint16_t)paper});
        term_show(f.t, s, theme);
    }
    for (unsigned n = 0; n < 16; n++) {
        surface_put_cell(s, 0, (int)n, (struct cell){.cp = 'y', .ink = (uint16_t)(ROLE_FN0 + n),
                                                     .paper = (uint16_t)(ROLE_FN0 + (n + 5) % 16)});
    }
    term_show(f.t, s, theme);
    for (unsigned n = 0; n < 16; n++) {
        struct term_cell p;
        check(term_peek(f.t, 0, (int)n, &p));
        check((uint32_t)p.fg == color_palette_fill(COLOR_256, n).value);
        check((uint32_t)p.bg == color_palette_fill(COLOR_256, (n + 5) % 16).value);
    }
    surface_free(s);
    theme_free(theme);
    term_close(f.t);
}

static void few_colors_body(void)
{
    struct fake f = open_fake("linux", false);
    check(term_tier(f.t) == COLOR_16);
    struct theme *theme = theme_new(COLOR_16);
    /* Entry 0 is bright green: green, and bold as ink, where there are eight colours. */
    struct term_cell c = show_one(&f, (struct cell){.cp = '#', .ink = ROLE_FN0}, theme);
    check(c.fg == 2 && c.bg == -1 && c.attr == CELL_BOLD);
    theme_free(theme);
    term_close(f.t);
}

static void vt100_body(void)
{
    struct fake f = open_fake("vt100", true);
    check(term_tier(f.t) == COLOR_MONO);
    struct theme *theme = theme_new(COLOR_MONO);
    struct term_cell c =
        show_one(&f, (struct cell){.cp = 'x', .ink = ROLE_FN0, .paper = ROLE_FN0}, theme);
    check(c.fg == -1 && c.bg == -1 && c.attr == CELL_REVERSE);
    send_bytes(&f, "\033OA\033[B\033OP", 9);
    check_text(read_all(&f), "Up Down F1");
    theme_free(theme);
    term_close(f.t);
}

/* Keys that the entry of vt100 lacks: known sequences are understood, others are swallowed whole. */
static void beyond_terminfo_body(void)
{
    struct fake f = open_fake("vt100", false);
    const struct {
        const char *bytes, *names;
    } cases[] = {
        {"\033[15~q", "F5 q"},
        {"\033[17~\033[20~\033[21~\033[23~\033[24~", "F6 F9 F10 F11 F12"},
        {"\033[7~\033[8~\033[2~", "Home End Ins"},
        {"\033[1;5C\033[1;2A\033[1;3D\033[1;6H", "^Right S-Up Alt-Left S-^Home"},
        {"\033[5;5~\033[6;2~\033[15;2~\033[1;5P", "^PgUp S-PgDn S-F5 ^F1"},
        {"\033O5P\033[[Ex", "^F1 F5 x"},
        {"\033[97;5uj", "j"},
        {"\033[200~ab\033[201~", "a b"},
        {"\033[?62;1;2;4;6;9;15;18;21;22cz", "z"},
        {"\033[9999999999~\033[1;99A\033[99~\033[;~\033[1;5;5A\033[[Fz", "z"},
        {"\033OzGk", "G k"},
        {"\033[12\033[Bj", "Down j"},
        {"\033[12\x03\033[3\xc3\xa9", "^C \xc3\xa9"},
        {"\033[", "Alt-["},
        {"\033O", "Alt-O"},
        {"\033", "Esc"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        send_bytes(&f, cases[i].bytes, strlen(cases[i].bytes));
        check_text(read_all(&f), cases[i].names);
    }
    /* In two pieces, further apart than any delay; a piece whose rest never comes costs no later key. */
    send_bytes(&f, "\033[1;", 4);
    check_text(read_all(&f), "");
    send_bytes(&f, "5Aj", 3);
    check_text(read_all(&f), "^Up j");
    send_bytes(&f, "\033[1", 3);
    check_text(read_all(&f), "");
    struct term_event e;
    send_bytes(&f, "q", 1);
    check(term_read(f.t, 2000000000, &e) && e.key.code == 'q' && e.key.mods == 0);
    term_close(f.t);
}

static void xterm_function_keys_body(void)
{
    struct fake f = open_fake("xterm-256color", false);
    send_bytes(&f, "\033[1;2P\033[15;5~\033[24;6~\033[1;3Qz", 27);
    check_text(read_all(&f), "S-F1 ^F5 S-^F12 Alt-F2 z");
    term_close(f.t);
}

static void unknown_body(void)
{
    struct fake f = open_fake("xterm-kitty", false);
    check_text(f.notice, "TERM=xterm-kitty is not known here; using xterm-256color");
    term_close(f.t);
    f = open_fake("", false);
    check_text(f.notice, "TERM=(unset) is not known here; using xterm-256color");
    term_close(f.t);
}

/* An entry with direct colours, compiled into a folder of our own: Debian's base set has none. */
static void rgb_body(void)
{
    char folder[] = "/tmp/mtui-terminfo-XXXXXX", command[256], path[64];
    check(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/source", folder);
    FILE *f = fopen(path, "w");
    fprintf(f, "xterm-direct|direct colour,\n\tRGB, colors#0x1000000, pairs#0x7fff,\n"
               "\tsetaf=\\E[%%?%%p1%%{8}%%<%%t3%%p1%%d%%e38;2;%%p1%%{65536}%%/%%d;%%p1%%{256}%%/%%{255}%%&"
               "%%d;%%p1%%{255}%%&%%d%%;m,\n"
               "\tsetab=\\E[%%?%%p1%%{8}%%<%%t4%%p1%%d%%e48;2;%%p1%%{65536}%%/%%d;%%p1%%{256}%%/%%{255}%%&"
               "%%d;%%p1%%{255}%%&%%d%%;m,\n\tuse=xterm-256color,\n");
    fclose(f);
    snprintf(command, sizeof command, "tic -x -o %s %s 2>&1", folder, path);
    int made = system(command);
    check(made == 0);
    char folders[128];
    snprintf(folders, sizeof folders, "%s:/lib/terminfo:/usr/share/terminfo", folder);
    setenv("TERMINFO_DIRS", folders, 1);
    int in[2];
    char notice[200];
    struct err err = {0};
    struct fake g = {0};
    check(pipe(in) == 0);
    struct term_options o = {.name = "xterm-256color", .in_fd = in[0], .want_rgb = true,
                             .out_fd = open("/dev/null", O_WRONLY), .escdelay_ms = 20};
    int rc = term_open(&g.t, &o, notice, sizeof notice, &err);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    made = system(command);
    check(made == 0);
    check(rc == 0);
    check_text(notice, "");
    check(term_tier(g.t) == COLOR_RGB);
    struct theme *theme = theme_new(COLOR_RGB);
    struct term_cell c =
        show_one(&g, (struct cell){.cp = 'x', .ink = ROLE_FN0, .paper = ROLE_FN0 + 17}, theme);
    check((uint32_t)c.fg == color_palette_fill(COLOR_RGB, 0).value);
    check((uint32_t)c.bg == color_palette_fill(COLOR_RGB, 17).value);
    theme_free(theme);
    term_close(g.t);
}

static void no_rgb_body(void)
{
    int in[2];
    char notice[200];
    struct err err = {0};
    struct terminal *t = NULL;
    setenv("TERMINFO_DIRS", "/lib/terminfo", 1); /* the base set, whatever else is installed */
    check(pipe(in) == 0);
    struct term_options o = {.name = "xterm-256color", .in_fd = in[0], .want_rgb = true,
                             .out_fd = open("/dev/null", O_WRONLY), .escdelay_ms = 20};
    check(term_open(&t, &o, notice, sizeof notice, &err) == 0);
    check(strstr(notice, "no terminfo entry xterm-direct") != NULL);
    check(term_tier(t) == COLOR_256);
    term_close(t);
}

/* A slow line: the parts of a key come one after the other. */
static void slow_line(const char *term, const char *bytes, const char *name)
{
    struct fake f = open_fake(term, false);
    term_set_escdelay(f.t, 1000);
    pid_t writer = fork();
    if (writer == 0) {
        for (const char *c = bytes; *c; c++) {
            send_bytes(&f, c, 1);
            poll(NULL, 0, 20);
        }
        _exit(0);
    }
    struct pollfd p = {.fd = f.in, .events = POLLIN};
    const char *got = "";
    while (!got[0] && poll(&p, 1, 10000) == 1)
        got = read_all(&f);
    check_text(got, name);
    waitpid(writer, NULL, 0);
    check_text(read_all(&f), "");
    term_close(f.t);
}

static void slow_line_body(void)
{
    slow_line("xterm-256color", "\033OA", "Up");
}

static void slow_line_beyond_terminfo_body(void)
{
    slow_line("vt100", "\033[15;5~", "^F5");
    slow_line("vt100", "\033[97;5uj", "j");
}

static void refused_body(void)
{
    int p[2];
    char notice[100], got[16];
    struct err err;
    struct terminal *t = NULL;
    check(pipe2(p, O_NONBLOCK) == 0);
    struct term_options o = {.name = "dumb", .in_fd = p[0], .out_fd = p[1], .need_tty = false,
                             .escdelay_ms = 50};
    check(term_open(&t, &o, notice, sizeof notice, &err) == MTUI_E_NOTSUP);
    check_text(err.text, "TERM=dumb cannot show screens; --batch and export work without one");
    o.name = "xterm-256color";
    o.need_tty = true;
    check(term_open(&t, &o, notice, sizeof notice, &err) == MTUI_E_NOTSUP);
    check_text(err.text, "standard output is no terminal; --batch and export work without one");
    check(t == NULL);
    check(read(p[0], got, sizeof got) < 0); /* not one byte was written */
}

/* What goes to the terminal for a change of one cell, and for none. */
static void only_changes_body(void)
{
    int out[2], in[2];
    char notice[100], bytes[65536];
    struct err err;
    struct terminal *t = NULL;
    check(pipe(in) == 0 && pipe2(out, O_NONBLOCK) == 0);
    fcntl(out[1], F_SETPIPE_SZ, 1 << 20);
    struct term_options o = {.name = "xterm-256color", .in_fd = in[0], .out_fd = out[1],
                             .escdelay_ms = 50};
    check(term_open(&t, &o, notice, sizeof notice, &err) == 0);
    struct theme *theme = theme_new(COLOR_256);
    struct surface *s = surface_new(30, 100);
    for (int i = 0; i < 30; i++)
        surface_printf(s, i, 0, 100, (struct style){.ink = (uint16_t)(ROLE_FN0 + i % 16)},
                       "%d: some text that fills a part of the row", i);
    term_show(t, s, theme);
    while (read(out[0], bytes, sizeof bytes) > 0)
        ;
    term_show(t, s, theme);
    ssize_t none = read(out[0], bytes, sizeof bytes);
    check(none <= 8); /* at most the cursor */
    surface_put(s, 10, 50, 'X', (struct style){0});
    term_show(t, s, theme);
    ssize_t one = read(out[0], bytes, sizeof bytes);
    check(one > 0 && one < 40);
    term_invalidate(t);
    term_show(t, s, theme);
    check(read(out[0], bytes, sizeof bytes) > 1000);
    surface_free(s);
    theme_free(theme);
    term_close(t);
    ssize_t n = read(out[0], bytes, sizeof bytes - 1);
    check(n > 0);
    bytes[n] = '\0';
    check(strstr(bytes, "\033[?1049l") != NULL);
}

static void keys(void **state)
{
    (void)state;
    in_child(keys_body);
}

static void mouse(void **state)
{
    (void)state;
    in_child(mouse_body);
}

static void cells(void **state)
{
    (void)state;
    in_child(cells_body);
}

static void few_colors(void **state)
{
    (void)state;
    in_child(few_colors_body);
}

static void vt100(void **state)
{
    (void)state;
    in_child(vt100_body);
}

static void keys_beyond_terminfo(void **state)
{
    (void)state;
    in_child(beyond_terminfo_body);
    in_child(xterm_function_keys_body);
}

static void field_F7_unknown_terminal(void **state)
{
    (void)state;
    in_child(unknown_body);
}

static void no_terminal(void **state)
{
    (void)state;
    in_child(refused_body);
}

static void direct_colors(void **state)
{
    (void)state;
    in_child(rgb_body);
    in_child(no_rgb_body);
}

static void field_F12_arrow_keys_on_a_slow_line(void **state)
{
    (void)state;
    in_child(slow_line_body);
    in_child(slow_line_beyond_terminfo_body);
}

static void field_G4_only_changed_cells_are_sent(void **state)
{
    (void)state;
    in_child(only_changes_body);
}

static void capabilities(void **state)
{
    (void)state;
    struct key k;
    assert_true(key_of_capability("kUP5", &k));
    assert_int_equal(k.code, K_UP);
    assert_int_equal(k.mods, K_CTRL);
    assert_true(key_of_capability("kDC8", &k));
    assert_int_equal(k.mods, K_SHIFT | K_ALT | K_CTRL);
    assert_true(key_of_capability("kDN", &k));
    assert_int_equal(k.mods, K_SHIFT);
    assert_false(key_of_capability("kUP9", &k));
    assert_false(key_of_capability("kmous", &k));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys),       cmocka_unit_test(mouse),
        cmocka_unit_test(cells),      cmocka_unit_test(few_colors),
        cmocka_unit_test(vt100),      cmocka_unit_test(field_F7_unknown_terminal),
        cmocka_unit_test(no_terminal), cmocka_unit_test(field_G4_only_changed_cells_are_sent),
        cmocka_unit_test(capabilities), cmocka_unit_test(direct_colors),
        cmocka_unit_test(field_F12_arrow_keys_on_a_slow_line),
        cmocka_unit_test(keys_beyond_terminfo),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
