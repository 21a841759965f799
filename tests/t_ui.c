/* tui/ui, tui/script, tui/v_help, tui/bar: the whole user interface on a surface, with small views. */
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

#include "core/alloc.h"
#include "core/utf8.h"
#include "tests/lib_golden.h"
#include "tui/glyph.h"
#include "tui/script.h"
#include "tui/settings.h"
#include "tui/ui.h"

/* Two views that write down what comes to them. */
struct seen {
    struct model *m;
    char log[512];
    bool typing, takes_quit;
};

static void note(struct seen *v, const char *fmt, ...)
{
    size_t used = strlen(v->log);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(v->log + used, sizeof v->log - used, fmt, ap);
    va_end(ap);
}

static void *seen_create(struct model *m)
{
    struct seen *v = xcalloc(1, sizeof *v);
    v->m = m;
    return v;
}

static void seen_destroy(void *view)
{
    free(view);
}

static void seen_draw(void *view, struct surface *s, struct rect r)
{
    (void)view;
    surface_printf(s, r.row, r.col + 1, r.cols - 1, (struct style){0}, "body %dx%d at %d", r.cols,
                   r.rows, r.row);
}

static bool seen_action(void *view, enum action act, const char *arg)
{
    struct seen *v = view;
    if (act == ACT_QUIT)
        return v->takes_quit;
    note(v, "%s%s%s ", action_info(act)->command, arg ? "=" : "", arg ? arg : "");
    return act == ACT_OPEN || act == ACT_SEARCH || act == ACT_FILTER || act == ACT_MARK_SET ||
           act == ACT_DOWN;
}

/* Handles recording commands only. */
static bool other_action(void *view, enum action act, const char *arg)
{
    struct seen *v = view;
    if (act != ACT_PING && act != ACT_SNAPSHOT)
        return false;
    return note(v, "%s%s ", action_info(act)->command, arg ? arg : ""), true;
}

static bool seen_typing(const void *view)
{
    return ((const struct seen *)view)->typing;
}

static bool seen_key(void *view, struct key k)
{
    char name[KEY_NAME_MAX];
    return note(view, "<%s>", key_format(k, name)), true;
}

static bool seen_mouse(void *view, const struct mouse *m, struct rect r)
{
    return note(view, "mouse%d,%d ", m->row - r.row, m->col), true;
}

static void seen_changed(void *view, enum model_change what)
{
    note(view, "changed%d ", (int)what);
}

static int seen_condition(void *view, const char *name, const char *arg)
{
    if (strcmp(name, "seen") != 0)
        return -1;
    return strstr(((struct seen *)view)->log, arg) != NULL;
}

static void seen_status(void *view, char *out, size_t size)
{
    (void)view;
    snprintf(out, size, "all is well");
}

static void seen_state(void *view, char *out, size_t size)
{
    (void)view;
    snprintf(out, size, "4711 demo\x1b[2J");
}

static const struct view_ops first_view = {
    .name = "processes",
    .title = "Processes",
    .contexts = {CTX_PROCESSES, CTX_LIST, CTX_MOVE},
    .context_count = 3,
    .create = seen_create,
    .destroy = seen_destroy,
    .draw = seen_draw,
    .action = seen_action,
    .search_live = true,
    .typing = seen_typing,
    .key = seen_key,
    .mouse = seen_mouse,
    .changed = seen_changed,
    .status = seen_status,
    .state = seen_state,
    .condition = seen_condition,
};

static const struct view_ops second_view = {
    .name = "record",
    .title = "Record",
    .contexts = {CTX_RECORD, CTX_MOVE},
    .context_count = 2,
    .create = seen_create,
    .destroy = seen_destroy,
    .draw = seen_draw,
    .action = other_action,
};

static const struct view_ops timeline_view = {
    .name = "timeline",
    .title = "Timeline",
    .contexts = {CTX_TIMELINE},
    .context_count = 1,
    .create = seen_create,
    .destroy = seen_destroy,
    .draw = seen_draw,
    .action = seen_action,
};

static const struct view_ops *const views[] = {&first_view, &second_view, &timeline_view};

/* ui_new creates the views in order; the test wants to see inside of them. */
static struct seen *made[3];
static size_t made_count;

static void *first_create(struct model *m)
{
    return made[made_count++] = seen_create(m);
}

struct fixture {
    struct settings *settings;
    struct keymap *km;
    struct model *m;
    struct ui *ui;
    struct surface *s;
    struct view_ops ops[3];
    const struct view_ops *list[3];
    bool suspended;
    char copied[64], edited[64];
    int settings_rc;
};

static void hook_suspend(void *arg)
{
    ((struct fixture *)arg)->suspended = true;
}

static bool hook_copy(void *arg, const char *text)
{
    struct fixture *f = arg;
    snprintf(f->copied, sizeof f->copied, "%s", text);
    return true;
}

static void hook_edit(void *arg, const char *path, int line)
{
    struct fixture *f = arg;
    snprintf(f->edited, sizeof f->edited, "%s:%d", path, line);
}

static int hook_settings(void *arg, struct err *err)
{
    struct fixture *f = arg;
    return f->settings_rc ? err_set(err, f->settings_rc, "cannot have that") : 0;
}

static const struct ui_hooks hooks = {.suspend = hook_suspend, .copy = hook_copy, .edit = hook_edit,
                                      .settings = hook_settings};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->settings = settings_new();
    f->km = keymap_new();
    f->m = model_new(NULL, f->settings);
    f->m->glyphs = glyphs_of(GLYPHS_ASCII);
    made_count = 0;
    for (size_t i = 0; i < 3; i++) {
        f->ops[i] = *views[i];
        f->ops[i].create = first_create;
        f->list[i] = &f->ops[i];
    }
    f->ui = ui_new(f->m, f->km, f->list, 3, &hooks, f);
    f->s = surface_new(30, 100);
    ui_draw(f->ui, f->s);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    ui_free(f->ui);
    surface_free(f->s);
    model_free(f->m);
    keymap_free(f->km);
    settings_free(f->settings);
    free(f);
    return 0;
}

static void press(struct fixture *f, const char *keys)
{
    struct err e;
    char *line = xasprintf("key %s", keys);
    if (ui_command(f->ui, line, &e) < 0)
        fail_msg("%s: %s", line, e.text);
    free(line);
}

static void type(struct fixture *f, const char *text)
{
    for (size_t at = 0, len = strlen(text); at < len;) {
        uint32_t cp;
        at += utf8_decode(text + at, len - at, &cp);
        ui_key(f->ui, (struct key){cp, 0});
    }
}

static int command(struct fixture *f, const char *line, struct err *e)
{
    e->text[0] = '\0';
    return ui_command(f->ui, line, e);
}

static void assert_row(struct fixture *f, int row, const char *want)
{
    ui_draw(f->ui, f->s);
    char *got = golden_row(f->s, row);
    assert_string_equal(got, want);
    free(got);
}

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
    assert_true(golden_find(f->s, "terminal too small: 80x15, needs 60x16; recording goes on"));
    for (int rows = 0; rows < 20; rows++) {
        for (int cols = 0; cols < 70; cols += 3) {
            surface_resize(f->s, rows, cols);
            ui_draw(f->ui, f->s);
        }
    }
    f->m->recording = false;
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

static void help_screen(void **state)
{
    struct fixture *f = *state;
    press(f, "4 ?");
    ui_draw(f->ui, f->s);
    assert_string_equal(ui_screen(f->ui), "help");
    golden_check(f->s, "help_timeline", "help of Timeline 100x30 tier=ascii");
    press(f, "/");
    type(f, "zoom");
    ui_draw(f->ui, f->s);
    assert_true(golden_find(f->s, "zoom in at the cursor"));
    assert_false(golden_find(f->s, "longest child"));
    press(f, "Enter Esc");
    ui_draw(f->ui, f->s);
    assert_true(golden_find(f->s, "longest child"));
    /* Folding the first section hides its lines. */
    press(f, "g Enter");
    ui_draw(f->ui, f->s);
    assert_false(golden_find(f->s, "longest child"));
    press(f, "q");
    assert_string_equal(ui_screen(f->ui), "timeline");
    for (int rows = 0; rows < 40; rows += 3) {
        press(f, "?");
        surface_resize(f->s, rows, 60 + rows);
        ui_draw(f->ui, f->s);
        press(f, "G PgUp Tab Enter ?");
    }
}

/* Every action that has a key or a command stands in the help. */
static void help_is_complete(void **state)
{
    struct fixture *f = *state;
    surface_resize(f->s, 40, 100);
    for (size_t i = ACT_NONE + 1; i < ACT_COUNT; i++) {
        press(f, "? /");
        type(f, action_info((enum action)i)->command);
        press(f, "Enter");
        ui_draw(f->ui, f->s);
        char text[24];
        snprintf(text, sizeof text, "%.20s", action_info((enum action)i)->help);
        if (!golden_find(f->s, text))
            fail_msg("%s is not in the help", action_info((enum action)i)->command);
        press(f, "Esc q");
    }
}

static char *write_script(const char *text)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/mtui-script-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    return path;
}

static void scripts(void **state)
{
    struct fixture *f = *state;
    struct script *s = NULL;
    struct err e;
    char *path = write_script("# hello\nwait screen processes\n:key 4\nwait screen timeline 1s\n"
                              "wait seen mark-set 2s\ntype m\nkey a\nwait text nothing here 50ms\n");
    assert_int_equal(script_open(&s, path, &e), 0);
    unlink(path);
    assert_int_equal(script_step(s, f->ui, 0, &e), SCRIPT_MORE);
    assert_int_equal(script_step(s, f->ui, 0, &e), SCRIPT_MORE);
    assert_int_equal(script_step(s, f->ui, 0, &e), SCRIPT_MORE);
    assert_int_equal(script_step(s, f->ui, 0, &e), SCRIPT_WAITING);
    snprintf(made[0]->log, sizeof made[0]->log, "mark-set");
    assert_int_equal(script_step(s, f->ui, 1999999999, &e), SCRIPT_MORE);
    assert_int_equal(script_step(s, f->ui, 0, &e), SCRIPT_MORE);
    assert_int_equal(script_step(s, f->ui, 0, &e), SCRIPT_MORE);
    assert_string_equal(made[2]->log, "mark-set=a ");
    assert_int_equal(script_step(s, f->ui, 1000, &e), SCRIPT_WAITING);
    assert_int_equal(script_step(s, f->ui, 60000000, &e), MTUI_E_TIMEOUT);
    assert_non_null(strstr(e.text, ":8: 'text nothing here' did not come true within 50.0 ms"));
    script_free(s);
    path = write_script("quit\nfly\n");
    assert_int_equal(script_open(&s, path, &e), MTUI_E_FORMAT);
    assert_non_null(strstr(e.text, ":2: no command is called 'fly'"));
    unlink(path);
    path = write_script("wait weather\n");
    assert_int_equal(script_open(&s, path, &e), 0);
    unlink(path);
    assert_int_equal(script_step(s, f->ui, 0, &e), MTUI_E_INVAL);
    script_free(s);
}

static void saved_screen(void **state)
{
    struct fixture *f = *state;
    struct err e;
    char path[] = "/tmp/mtui-screen-XXXXXX", line[256];
    close(mkstemp(path));
    line[0] = '\0';
    snprintf(line, sizeof line, "save-screen %s", path);
    assert_int_equal(command(f, line, &e), 0);
    FILE *in = fopen(path, "r");
    int rows = 0;
    bool body = false;
    while (fgets(line, sizeof line, in)) {
        rows++;
        body |= strcmp(line, " body 100x27 at 1\n") == 0;
    }
    fclose(in);
    unlink(path);
    assert_int_equal(rows, 30);
    assert_true(body);
    assert_int_equal(command(f, "save-screen /nonexistent/x", &e), MTUI_E_NOENT);
}

#define UI_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    setenv("XDG_CONFIG_HOME", "/home/user/.config", 1);
    const struct CMUnitTest tests[] = {
        UI_TEST(frame),        UI_TEST(screens_and_back), UI_TEST(quitting),
        UI_TEST(actions_reach_views), UI_TEST(searches),  UI_TEST(letters),
        UI_TEST(command_line), UI_TEST(requests),         UI_TEST(mouse_events),
        UI_TEST(help_screen),  UI_TEST(help_is_complete), UI_TEST(scripts),
        UI_TEST(saved_screen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
