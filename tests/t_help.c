/* tui/ui/v_help, tui/ui/script, and saved screens. */
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
#include "tui/term/glyph.h"
#include "tui/ui/help_legend.h"
#include "tui/ui/script.h"

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

/* What the picture is made of is explained where it is drawn, in the glyphs of the tier. */
static void legend(void **state)
{
    struct fixture *f = *state;
    press(f, "4 ?");
    ui_draw(f->ui, f->s);
    assert_true(golden_find(f->s, "several calls: Enter zooms in"));
    press(f, "? 1 ?");
    ui_draw(f->ui, f->s);
    assert_false(golden_find(f->s, "several calls: Enter zooms in"));
    for (int tier = 0; tier < GLYPH_TIERS; tier++) {
        struct legend_line l;
        size_t n = 0;
        for (; help_legend(glyphs_of((enum glyph_tier)tier), n, &l); n++) {
            assert_true(l.sample[0] && l.text[0] && strlen(l.text) <= 31);
            for (const char *p = l.sample; tier == GLYPHS_ASCII && *p; p++)
                assert_true(*p >= ' ' && *p <= '~');
        }
        assert_true(n > 10);
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

#define UI_TEST(f) cmocka_unit_test_setup_teardown(f, ui_set_up, ui_tear_down)

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    setenv("XDG_CONFIG_HOME", "/home/user/.config", 1);
    const struct CMUnitTest tests[] = {
        UI_TEST(help_screen),
        UI_TEST(help_is_complete),
        UI_TEST(legend),
        UI_TEST(scripts),
        UI_TEST(saved_screen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
