/* tui/ui/ui, tui/ui/bar: the whole user interface on a surface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib_golden.h"
#include "tests/lib_ui.h"
#include "tui/ui/bar.h"

static void frame(void **state)
{
    struct fixture *f = *state;
    golden_check(f->s, "ui_frame", "ui frame 100x30 tier=ascii");
    surface_resize(f->s, 16, 60);
    ui_draw(f->ui, f->s);
    assert_true(golden_find(f->s, "body 60x13 at 1"));
    surface_resize(f->s, 15, 80);
    f->m->recording = true;
    ui_draw(f->ui, f->s);
    assert_true(golden_find(f->s, "60x16 needed: this terminal is 80x15; recording goes on"));
    for (int rows = 0; rows < 20; rows++) {
        for (int cols = 0; cols < 70; cols += 3) {
            surface_resize(f->s, rows, cols);
            ui_draw(f->ui, f->s);
        }
    }
    f->m->recording = false;
}

/* Titles give way so that the state stays legible, and of that whole groups. */
static void tab_row(void **state)
{
    static const struct view_ops screens[] = {
        {.title = "Processes"}, {.title = "Symbols"},   {.title = "Record"},
        {.title = "Timeline"},  {.title = "Functions"}, {.title = "Events"}};
    static const struct {
        int cols;
        const char *state;
        bool recording;
        const char *row;
    } rows[] = {
        {100, "no PT: sampled  paranoid -1", false,
         " mtui  1 Processes  2 Symbols [3 Record] 4 Timeline  5 Functions  6 Events           no PT: sampled"},
        {80, "REC 00:00:05", true,
         " mtui  1 Proc  2 Symb [3 Record] 4 Time  5 Func  6 Even          * REC 00:00:05"},
        {80, "SAMPLED 603 ms  snap 2", false,
         " mtui  1 Proc  2 Symb [3 Record] 4 Time  5 Func  6 Even  SAMPLED 603 ms  snap 2"},
        {62, "SAMPLED 603 ms  snap 2", false,
         " mtui  1 Proc  2 Symb [3 Record] 4 Time  5 Func  6 Even"},
        {50, "12345 demo", false, " mtui  1  2 [3] 4  5  6                12345 demo"},
    };
    struct fixture *f = *state;
    const struct view_ops *ops[6];
    for (size_t i = 0; i < 6; i++)
        ops[i] = &screens[i];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        surface_resize(f->s, 1, rows[i].cols);
        bar_draw_tabs(f->s, 0, ops, 6, 2, rows[i].state, rows[i].recording, f->m->glyphs);
        char *got = golden_row(f->s, 0);
        assert_string_equal(got, rows[i].row);
        free(got);
    }
    surface_resize(f->s, 1, 80);
    assert_int_equal(bar_tab_at(f->s, ops, 6, 2, 16), 1);
    assert_int_equal(bar_tab_at(f->s, ops, 6, 2, 34), 3);
    assert_int_equal(bar_tab_at(f->s, ops, 6, 2, 60), SIZE_MAX);
}

static void screens_and_back(void **state)
{
    struct fixture *f = *state;
    press(f, "3");
    assert_string_equal(ui_screen(f->ui), "record");
    press(f, "4");
    press(f, "1");
    press(f, "4");
    assert_string_equal(ui_screen(f->ui), "timeline");
    press(f, "q");
    assert_string_equal(ui_screen(f->ui), "processes");
    assert_false(f->m->want.quit);
    press(f, "q");
    assert_true(f->m->want.quit);
    f->m->want.quit = false;
    /* Screens that do not exist are refused in words. */
    press(f, "5");
    assert_string_equal(ui_screen(f->ui), "processes");
    /* A click on a tab. */
    struct mouse m = {MOUSE_DOWN, 0, 24, 1, 0};
    ui_mouse(f->ui, &m);
    assert_string_equal(ui_screen(f->ui), "record");
}

static int shown_times[2];

static void *blank_create(struct model *m)
{
    return m;
}

static void blank_destroy(void *view)
{
    (void)view;
}

static bool blank_action(void *view, enum action act, const char *arg)
{
    (void)view;
    (void)act;
    (void)arg;
    return false;
}

static void show_first(void *view)
{
    (void)view;
    shown_times[0]++;
}

static void show_second(void *view)
{
    (void)view;
    shown_times[1]++;
}

/* `mtui open` has no use for the processes: that screen does not read them before it is looked at. */
static void begins_where_it_is_told(void **state)
{
    (void)state;
    static const struct view_ops first = {.name = "a", .title = "A", .create = blank_create, .destroy = blank_destroy,
                                          .action = blank_action, .show = show_first};
    static const struct view_ops second = {.name = "b", .title = "B", .create = blank_create,
                                           .destroy = blank_destroy, .action = blank_action,
                                           .show = show_second};
    static const struct view_ops *const both[] = {&first, &second};
    struct keymap *km = keymap_new();
    struct model *m = model_new(NULL, NULL);
    shown_times[0] = shown_times[1] = 0;
    struct ui *ui = ui_new(m, km, both, 2, NULL, NULL);
    assert_int_equal(shown_times[0], 1);
    assert_int_equal(shown_times[1], 0);
    ui_free(ui);
    model_go(m, "b");
    ui = ui_new(m, km, both, 2, NULL, NULL);
    assert_string_equal(ui_screen(ui), "b");
    assert_int_equal(shown_times[0], 1);
    assert_int_equal(shown_times[1], 1);
    assert_true(ui_action(ui, ACT_BACK, NULL));
    assert_string_equal(ui_screen(ui), "a");
    assert_int_equal(shown_times[0], 2);
    ui_free(ui);
    model_free(m);
    keymap_free(km);
}

static void quitting(void **state)
{
    struct fixture *f = *state;
    f->m->recording = true;
    press(f, "Q");
    assert_false(f->m->want.quit);
    assert_row(f, 28, " A recording is running. Stop it and quit?  y/n");
    press(f, "x n");
    assert_false(f->m->want.quit);
    press(f, "q y");
    assert_true(f->m->want.quit);
    f->m->want.quit = false;
    made[1]->takes_quit = true; /* only seen_action asks it: this one goes on */
    made[0]->takes_quit = true;
    press(f, "Q");
    assert_null(f->m->want.question);
    assert_false(f->m->want.quit);
    /* ^C never leaves. */
    made[0]->takes_quit = false;
    press(f, "^C ^C");
    assert_false(f->m->want.quit);
    f->m->recording = false;
}

static void actions_reach_views(void **state)
{
    struct fixture *f = *state;
    press(f, "Enter j");
    assert_string_equal(made[0]->log, "enter down ");
    /* Not handled: said so. */
    made[0]->log[0] = '\0';
    press(f, "t");
    assert_row(f, 28, " threads on/off: nothing to do here");
    /* S and commands of one screen go where they belong. */
    press(f, "S");
    assert_string_equal(made[1]->log, "snapshot ");
    struct err e;
    assert_int_equal(command(f, ":ping", &e), 0);
    assert_string_equal(made[1]->log, "snapshot ping ");
    assert_int_equal(command(f, "page-up", &e), MTUI_E_STATE);
    assert_string_equal(e.text, "page-up does nothing on this screen");
    assert_int_equal(command(f, "fly", &e), MTUI_E_INVAL);
    assert_int_equal(command(f, "filter 'a  b'", &e), 0);
    assert_non_null(strstr(made[0]->log, "filter=a  b "));
    /* A key that is bound to nothing comes as a key. */
    made[0]->log[0] = '\0';
    press(f, "F9");
    assert_string_equal(made[0]->log, "<F9>");
    /* Typing takes text keys, and only those. */
    made[0]->typing = true;
    made[0]->log[0] = '\0';
    press(f, "q 1 Space Enter");
    assert_string_equal(made[0]->log, "<q><1><Space>enter ");
}

static void searches(void **state)
{
    struct fixture *f = *state;
    press(f, "/ a b");
    assert_string_equal(made[0]->log, "search=a search=ab ");
    assert_row(f, 28, "/ab");
    press(f, "Enter");
    assert_string_equal(made[0]->log, "search=a search=ab search=ab ");
    made[0]->log[0] = '\0';
    press(f, "/ x Esc"); /* back to the pattern before */
    assert_string_equal(made[0]->log, "search=x search=ab ");
    press(f, "/ Up");
    assert_row(f, 28, "/ab");
    made[0]->log[0] = '\0';
    press(f, "Esc \\\\ z Enter");
    assert_non_null(strstr(made[0]->log, "filter=z "));
}

static void letters(void **state)
{
    struct fixture *f = *state;
    press(f, "4 m");
    assert_row(f, 28, " set a mark: a letter, a to z");
    press(f, "k");
    assert_string_equal(made[2]->log, "mark-set=k ");
    press(f, "m 5");
    assert_row(f, 28, " marks are letters from a to z");
    struct err e;
    assert_int_equal(command(f, "mark-set q", &e), 0);
    assert_string_equal(made[2]->log, "mark-set=k mark-set=q ");
}

static void command_line(void **state)
{
    struct fixture *f = *state;
    press(f, ":");
    type(f, "the");
    press(f, "Tab");
    assert_row(f, 28, ":theme"); /* and a blank */
    type(f, "lig");
    press(f, "Tab");
    assert_row(f, 28, ":theme light");
    press(f, "Enter");
    assert_string_equal(settings_text(f->settings, SET_THEME), "light");
    assert_non_null(strstr(made[0]->log, "changed5 "));
    press(f, ":");
    type(f, "fly me");
    press(f, "Enter");
    assert_row(f, 28, " ! no command is called 'fly'; ? lists them");
    press(f, ": d o w n Space 5 Enter");
    assert_row(f, 28, " ! down stands alone: it takes nothing behind it");
    press(f, ": + Enter");
    assert_row(f, 28, " ! no command is called '+'; ? lists them");
    press(f, ": k e y Enter");
    assert_row(f, 28, " ! key takes: KEY...");
    press(f, ": t r i g g e r Space f Enter");
    assert_row(f, 28, " trigger added: f");
    press(f, ": t r i g g e r Space f Enter");
    assert_row(f, 28, " f is among the triggers already");
    press(f, ": u n t r i g g e r Space f Enter");
    assert_row(f, 28, " trigger removed: f");
    press(f, "? F8");
    assert_row(f, 28, " F8 does nothing here; ? lists the keys");
    press(f, "Esc");
    assert_row(f, 28, " all is well");
    /* A setting that cannot be applied goes back. */
    struct err e;
    f->settings_rc = MTUI_E_NOENT;
    assert_int_equal(command(f, "theme mono", &e), MTUI_E_NOENT);
    assert_string_equal(settings_text(f->settings, SET_THEME), "light");
    f->settings_rc = 0;
    assert_int_equal(command(f, "bind processes X set theme mono", &e), 0);
    press(f, "X");
    assert_string_equal(settings_text(f->settings, SET_THEME), "mono");
    assert_string_equal(f->m->say, "");
    /* One that hides a key of everywhere tells so, and what brings that back. */
    assert_int_equal(command(f, "bind processes 5 set theme mono", &e), 0);
    assert_string_equal(f->m->say,
                        "5 no longer means 'go to Functions' in Processes; :unbind processes 5 undoes it");
    assert_int_equal(command(f, "unbind processes 5", &e), 0);
    /* A binding that runs itself ends. */
    assert_int_equal(command(f, "bind processes X key X", &e), 0);
    press(f, "X");
    ui_draw(f->ui, f->s);
    assert_true(golden_find(f->s, "commands call each other without end"));
    assert_int_equal(command(f, "trigger 'a b'", &e), 0);
    assert_true(model_has_trigger(f->m, "a b"));
    assert_int_equal(command(f, "untrigger other", &e), MTUI_E_NOENT);
    assert_int_equal(command(f, "", &e), 0);
    assert_int_equal(command(f, "wait text x", &e), MTUI_E_STATE);
}

/* What a slow line, or someone fast, sends for Esc and a character is read as one key with Alt. */
static void esc_and_a_character(void **state)
{
    struct fixture *f = *state;
    press(f, "? Alt-:");
    type(f, "screen");
    assert_row(f, 28, ":screen");
    assert_string_equal(ui_screen(f->ui), "processes"); /* Esc has left the help */
    press(f, "Alt-:"); /* and the line */
    assert_row(f, 28, ":");
    type(f, "one two");
    press(f, "Alt-b");
    type(f, "x");
    assert_row(f, 28, ":one xtwo");
    press(f, "Alt-j Alt-j"); /* out of the line; the second Esc is the view's */
    assert_string_equal(made[0]->log, "down cancel down ");
    /* A question is answered no, a letter is not given. */
    press(f, "m Alt-3");
    assert_string_equal(ui_screen(f->ui), "record");
    f->m->recording = true;
    press(f, "Q Alt-y");
    assert_false(f->m->want.quit);
    f->m->recording = false;
    /* What is bound stays what it is. */
    struct err e;
    assert_int_equal(command(f, "bind everywhere Alt-1 set theme mono", &e), 0);
    press(f, "Alt-1");
    assert_string_equal(settings_text(f->settings, SET_THEME), "mono");
    assert_string_equal(ui_screen(f->ui), "record");
}

/* `set` alone shows every setting with its value, `set NAME` one; neither is an error. */
static void settings_shown(void **state)
{
    struct fixture *f = *state;
    struct err e;
    assert_int_equal(command(f, "set refresh 3s", &e), 0);
    assert_int_equal(command(f, "set", &e), 0);
    assert_string_equal(ui_screen(f->ui), "help");
    ui_draw(f->ui, f->s);
    for (size_t i = 0; i < SET_COUNT; i++)
        if (!golden_find(f->s, setting_info((enum setting)i)->name))
            fail_msg("%s is not shown", setting_info((enum setting)i)->name);
    assert_true(golden_find(f->s, "refresh 3s"));
    press(f, "q");
    assert_int_equal(command(f, "set refresh", &e), 0);
    assert_row(f, 28, " refresh is 3s  (100ms 60s)");
    assert_int_equal(command(f, "set glyphs", &e), 0);
    assert_row(f, 28, " glyphs is auto  (auto unicode vga ascii)");
    assert_int_equal(command(f, "set nothing", &e), MTUI_E_INVAL);
}

/* Wrong lines of the configuration file stand above the settings, with what would be right. */
static void mistakes_shown(void **state)
{
    struct fixture *f = *state;
    struct err e;
    char path[] = "/tmp/mtui-config-XXXXXX";
    static const char text[] = "set refresh 5s\nset nothing 1\nset threads on\nbind lists z fly\n";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    assert_int_equal(settings_read_config(f->settings, f->km, path, &e), 2);
    unlink(path);
    assert_int_equal(command(f, "set", &e), 0);
    ui_draw(f->ui, f->s);
    assert_true(golden_find(f->s, "Wrong lines of the configuration file"));
    assert_true(golden_find(f->s, "config:2              no setting is called 'nothing'; :set lists them"));
    assert_true(golden_find(f->s, "config:4              no command is called 'fly'; ? lists them"));
    assert_true(golden_find(f->s, "refresh 5s"));
    assert_true(golden_find(f->s, "threads on"));
}

/* What must not be missed outlasts what is said meanwhile, which is there to be read after it. */
static void first_things_first(void **state)
{
    struct fixture *f = *state;
    model_error_first(f->m, "2 wrong lines in %s", "fi\x1b[1mle");
    model_say(f->m, "opened");
    assert_row(f, 28, " ! 2 wrong lines in fi\\x1b[1mle");
    model_warn(f->m, "names are those in the text");
    assert_row(f, 28, " ! 2 wrong lines in fi\\x1b[1mle");
    press(f, "F12"); /* bound to nothing */
    assert_row(f, 28, " names are those in the text");
    press(f, "F12");
    ui_draw(f->ui, f->s);
    assert_false(golden_find(f->s, "names are"));
}

static bool answered;
static char line_got[32];

static void on_answer(void *arg, bool yes)
{
    (void)arg;
    answered = yes;
}

static void on_line(void *arg, const char *text)
{
    (void)arg;
    snprintf(line_got, sizeof line_got, "%s", text ? text : "(none)");
}

static void requests(void **state)
{
    struct fixture *f = *state;
    model_ask(f->m, "Really?", on_answer, NULL);
    ui_take_requests(f->ui);
    press(f, "y");
    assert_true(answered);
    model_ask(f->m, "Really?", on_answer, NULL);
    model_ask(f->m, "And now?", on_answer, NULL); /* the older one is answered no */
    assert_false(answered);
    ui_take_requests(f->ui);
    press(f, "Esc");
    model_prompt(f->m, "Size: ", "16M", on_line, NULL);
    ui_take_requests(f->ui);
    assert_row(f, 28, "Size: 16M");
    press(f, "Bksp K Enter");
    assert_string_equal(line_got, "16K");
    model_prompt(f->m, "Size: ", "", on_line, NULL);
    ui_take_requests(f->ui);
    press(f, "Esc");
    assert_string_equal(line_got, "(none)");
    model_copy(f->m, "name");
    model_edit_source(f->m, "/a.c", 12);
    model_go(f->m, "timeline");
    ui_take_requests(f->ui);
    assert_string_equal(f->copied, "name");
    assert_string_equal(f->edited, "/a.c:12");
    assert_string_equal(ui_screen(f->ui), "timeline");
    press(f, "^Z");
    assert_true(f->suspended);
}

static void mouse_events(void **state)
{
    struct fixture *f = *state;
    struct mouse m = {MOUSE_DOWN, 5, 9, 1, 0};
    ui_mouse(f->ui, &m);
    assert_string_equal(made[0]->log, "mouse4,9 ");
    /* On the key bar: Enter is its first entry. */
    made[0]->log[0] = '\0';
    m = (struct mouse){MOUSE_DOWN, 29, 3, 1, 0};
    ui_mouse(f->ui, &m);
    assert_string_equal(made[0]->log, "enter ");
}

#define UI_TEST(f) cmocka_unit_test_setup_teardown(f, ui_set_up, ui_tear_down)

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    setenv("XDG_CONFIG_HOME", "/home/user/.config", 1);
    const struct CMUnitTest tests[] = {
        UI_TEST(frame),
        UI_TEST(tab_row),
        UI_TEST(screens_and_back),
        UI_TEST(quitting),
        UI_TEST(actions_reach_views),
        UI_TEST(searches),
        UI_TEST(letters),
        UI_TEST(command_line),
        UI_TEST(esc_and_a_character),
        UI_TEST(settings_shown), UI_TEST(mistakes_shown), UI_TEST(first_things_first),
        cmocka_unit_test(begins_where_it_is_told),
        UI_TEST(requests),
        UI_TEST(mouse_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
