/* Screen Symbols over a made-up process: what it finds, shows, chooses. The modules are assembled here from
 * tests/fixtures/symbols, so addresses, sizes and lines are those written there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/symbols/elf_file.h"
#include "core/base/loop.h"
#include "core/symbols/modules.h"
#include "tests/lib_golden.h"
#include "tests/lib_program.h"
#include "tui/term/glyph.h"
#include "tui/ui/model.h"
#include "tui/ui/settings.h"
#include "tui/choose/v_symbol.h"

struct fixture {
    char *root;
    struct loop *loop;
    struct settings *settings;
    struct model *m;
    struct surface *s;
    void *view;
};

/* A line of /proc/PID/maps for the executable segment of a file, loaded bias above its addresses. */
static void map_line(FILE *maps, const char *root, const char *path, uint64_t bias, unsigned inode)
{
    char file[512];
    struct elf_file *f;
    struct err err = {0};
    snprintf(file, sizeof file, "%s/4711/root%s", root, path);
    assert_int_equal(elf_file_open_path(file, &f, &err), 0);
    size_t n;
    const struct elf_segment *seg = elf_file_segments(f, &n); /* the executable one comes first */
    uint64_t start = (seg->vaddr & ~0xfffull) + bias, end = (seg->vaddr + seg->memsz + bias + 0xfff) & ~0xfffull;
    fprintf(maps, "%lx-%lx r-xp %08lx ff:7f %u %s\n", start, end, (uint64_t)(seg->offset & ~0xfffull), inode, path);
    elf_file_free(f);
}

static void build(const char *root)
{
    static const char link[] = "-nostdlib -Wl,--build-id=none";
    const char *top = getenv("PWD");
    assert_true(program_shell(root, "mkdir -p 4711/root/bin 4711/root/lib 4711/root/src/demo"));
    assert_true(program_shell(root, "ln -s /bin/demo-server 4711/exe"));
    assert_true(program_shell(root, "cc %s -static -no-pie -Wl,-Ttext=0x409000 -o 4711/root/bin/demo-server "
                                    "'%s'/tests/fixtures/symbols/demo-server.s", link, top));
    assert_true(program_shell(root, "cc %s -shared -Wl,-Ttext=0x9000 -o 4711/root/lib/libdemo.so.2 "
                                    "'%s'/tests/fixtures/symbols/lib.s", link, top));
    assert_true(program_shell(root, "cc %s -shared -Wa,--defsym,SSL=1 -Wl,-Ttext=0x38000 "
                                    "-o 4711/root/lib/libssl.so.3 '%s'/tests/fixtures/symbols/lib.s", link, top));
    char path[512];
    snprintf(path, sizeof path, "%s/4711/root/src/demo/http.c", root);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int line = 1; line < 216; line++)
        fprintf(f, "\n");
    fprintf(f, "/* One request, start to finish. */\nint\nhandle_request(struct conn *c, const struct req *r)\n"
               "{\n\tstruct resp out = { .status = 200 };\n\t/* \x1b[2J \xe6\x97\xa5\xe6\x9c\xac */\n");
    fclose(f);
    snprintf(path, sizeof path, "%s/4711/maps", root);
    f = fopen(path, "w");
    assert_non_null(f);
    map_line(f, root, "/bin/demo-server", 0, 11);
    map_line(f, root, "/lib/libdemo.so.2", 0x7f0000000000, 12);
    map_line(f, root, "/lib/libssl.so.3", 0x7f1000000000, 13);
    fclose(f);
}

static uint64_t no_clock(void *arg)
{
    (void)arg;
    return 5000000000u;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->root = program_mkdir();
    build(f->root);
    f->loop = loop_new_with_clock(no_clock, NULL);
    f->settings = settings_new();
    f->m = model_new(f->loop, f->settings);
    f->m->glyphs = glyphs_of(GLYPHS_ASCII);
    f->s = surface_new(27, 100);
    surface_set_replacement(f->s, '?', false);
    f->view = symbol_view_new(f->m, f->root);
    model_set_target(f->m, 4711, 10000, "demo-server");
    view_symbol.show(f->view);
    symbol_view_wait(f->view);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    view_symbol.destroy(f->view);
    model_free(f->m);
    settings_free(f->settings);
    loop_free(f->loop);
    surface_free(f->s);
    program_rmdir(f->root);
    free(f);
    return 0;
}

/* Draws until nothing more is being looked up: rows ask, answers come, and bring questions of their own. */
static void draw(struct fixture *f)
{
    for (int i = 0; i < 3; i++) {
        surface_clear(f->s);
        view_symbol.draw(f->view, f->s, (struct rect){0, 0, surface_rows(f->s), surface_cols(f->s)});
        symbol_view_wait(f->view);
    }
}

static void type(struct fixture *f, const char *text)
{
    for (; *text; text++)
        assert_true(view_symbol.key(f->view, (struct key){(uint32_t)*text, 0}));
}

static void act(struct fixture *f, enum action a)
{
    assert_true(view_symbol.action(f->view, a, NULL));
}

static void the_picker(void **state)
{
    struct fixture *f = *state;
    type(f, "handreq");
    act(f, ACT_TOGGLE);
    act(f, ACT_DOWN);
    act(f, ACT_ENTRY_RETURN);
    act(f, ACT_UP);
    act(f, ACT_UP);
    draw(f);
    golden_check(f->s, "symbols_100x27_ascii", "symbols 100x27 tier=ascii query=handreq, two chosen");
    surface_resize(f->s, 21, 80);
    draw(f);
    golden_check(f->s, "symbols_80x21_ascii", "symbols 80x21 tier=ascii: columns dropped by priority");
    f->m->glyphs = glyphs_of(GLYPHS_UNICODE);
    surface_resize(f->s, 27, 100);
    surface_set_replacement(f->s, 0xfffd, true);
    draw(f);
    golden_check(f->s, "symbols_100x27_unicode", "symbols 100x27 tier=unicode query=handreq, two chosen");
    surface_resize(f->s, 21, 80);
    draw(f);
    golden_check(f->s, "symbols_80x21_unicode", "symbols 80x21 tier=unicode");
}

static void field_B8_addresses_where_it_runs(void **state)
{
    struct fixture *f = *state;
    type(f, "handle_request");
    draw(f);
    char *row = golden_row(f->s, 2);
    assert_non_null(strstr(row, "handle_request  "));
    assert_non_null(strstr(row, "demo-server"));
    assert_non_null(strstr(row, "0x41a2c0"));
    assert_non_null(strstr(row, "http.c:218"));
    free(row);
    /* a library's own follows, at the address where it runs, not where it was linked */
    assert_true(golden_find(f->s, "libdemo.so.2         0x7f0000009b00"));
}

static void source_is_shown_harmlessly(void **state)
{
    struct fixture *f = *state;
    type(f, "handle_request");
    draw(f);
    assert_true(golden_find(f->s, ">   218  handle_request(struct conn *c"));
    assert_true(golden_find(f->s, "220          struct resp out"));
    for (int r = 0; r < surface_rows(f->s); r++)
        for (int c = 0; c < surface_cols(f->s); c++)
            assert_true(surface_at(f->s, r, c)->cp == 0 || surface_at(f->s, r, c)->cp >= 0x20);
    act(f, ACT_SOURCE);
    assert_string_equal(f->m->want.edit_path, "/src/demo/http.c");
    assert_int_equal(f->m->want.edit_line, 218);
}

static void triggers_are_chosen_and_armed(void **state)
{
    struct fixture *f = *state;
    /* the name is in two modules: the trigger says which */
    type(f, "handle_request");
    act(f, ACT_TOGGLE);
    assert_int_equal(f->m->triggers.len, 1);
    assert_string_equal(f->m->triggers.data[0], "demo-server:handle_request");
    assert_true(view_symbol.action(f->view, ACT_MODULE, "libdemo"));
    act(f, ACT_TOGGLE);
    assert_string_equal(f->m->triggers.data[1], "libdemo.so.2:handle_request");
    assert_true(view_symbol.action(f->view, ACT_MODULE, "all"));
    draw(f);
    assert_true(golden_find(f->s, "[x] handle_request "));
    act(f, ACT_TRIGGER_LIST);
    act(f, ACT_DOWN);
    act(f, ACT_ENTRY_RETURN);
    assert_string_equal(f->m->triggers.data[1], "libdemo.so.2:handle_request@return");
    act(f, ACT_UP);
    act(f, ACT_TOGGLE); /* takes the first away */
    assert_int_equal(f->m->triggers.len, 1);
    act(f, ACT_BACK); /* leaves the list, not the screen */
    assert_null(f->m->want.screen);
    act(f, ACT_KILL_LINE);
    type(f, "Handler::request");
    act(f, ACT_TOGGLE);
    assert_string_equal(f->m->triggers.data[1], "Http::Handler::request(Conn&)");
    act(f, ACT_ARM);
    assert_string_equal(f->m->want.screen, "record");
    assert_int_equal(f->m->triggers.len, 2);
}

static void enter_takes_the_selected(void **state)
{
    struct fixture *f = *state;
    type(f, "requeue");
    act(f, ACT_ARM);
    assert_int_equal(f->m->triggers.len, 1);
    assert_string_equal(f->m->triggers.data[0], "handle_requeue");
    assert_string_equal(f->m->want.screen, "record");
}

static void field_B5_a_line_or_address_is_resolved(void **state)
{
    struct fixture *f = *state;
    type(f, "queue.c:77");
    draw(f);
    assert_true(golden_find(f->s, "no name matches"));
    act(f, ACT_TOGGLE);
    symbol_view_wait(f->view);
    assert_int_equal(f->m->triggers.len, 1);
    assert_string_equal(f->m->triggers.data[0], "queue.c:77");
    assert_non_null(strstr(f->m->say, "1 address, the first in handle_requeue"));
    act(f, ACT_KILL_LINE);
    type(f, "handle_requets!");
    act(f, ACT_ARM);
    act(f, ACT_TRIGGER_LIST);
    model_clear_triggers(f->m);
    act(f, ACT_KILL_LINE);
    type(f, "0x10");
    act(f, ACT_TOGGLE);
    symbol_view_wait(f->view);
    assert_int_equal(f->m->triggers.len, 0);
    assert_int_equal(f->m->say_severity, SAY_ERROR);
    assert_non_null(strstr(f->m->say, "not in the executable memory"));
}

/* Two libraries of one file name: rows and triggers say which, by as much of the path as it takes. */
static void libraries_of_one_file_name(void **state)
{
    struct fixture *f = *state;
    char from[300], to[300];
    snprintf(to, sizeof to, "%s/4711/root/opt", f->root);
    assert_int_equal(mkdir(to, 0700), 0);
    snprintf(from, sizeof from, "%s/4711/root/lib/libdemo.so.2", f->root);
    snprintf(to, sizeof to, "%s/4711/root/opt/libdemo.so.2", f->root);
    assert_int_equal(link(from, to), 0);
    snprintf(from, sizeof from, "%s/4711/maps", f->root);
    FILE *maps = fopen(from, "a");
    assert_non_null(maps);
    map_line(maps, f->root, "/opt/libdemo.so.2", 0x7f2000000000, 14);
    fclose(maps);
    act(f, ACT_RELOAD);
    symbol_view_wait(f->view);
    type(f, "handle_request");
    draw(f);
    assert_true(golden_find(f->s, " lib/libdemo.so.2 "));
    assert_true(golden_find(f->s, " opt/libdemo.so.2 "));
    assert_true(golden_find(f->s, " demo-server "));
    assert_true(view_symbol.action(f->view, ACT_MODULE, "opt/lib"));
    draw(f);
    assert_true(golden_find(f->s, "module: opt/libdemo.so.2"));
    act(f, ACT_TOGGLE);
    assert_string_equal(f->m->triggers.data[0], "opt/libdemo.so.2:handle_request");
    struct modules *m = NULL;
    struct module_addrs a = {0};
    static const struct {
        const char *spec;
        size_t found;
    } cases[] = {{"opt/libdemo.so.2:handle_request", 1}, {"/opt/libdemo.so.2:handle_request", 1},
                 {"libdemo.so.2:handle_request", 2},     {"libdemo:handle_request", 2},
                 {"pt/libdemo.so.2:handle_request", 0}};
    assert_int_equal(modules_of_pid(f->root, 4711, &m, NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(modules_resolve(m, cases[i].spec, &a, NULL), cases[i].found ? 0 : MTUI_E_NOENT);
        if (!cases[i].found)
            continue;
        assert_int_equal(a.len, cases[i].found);
        if (cases[i].found == 1)
            assert_string_equal(modules_at(m, a.data[0].module)->path, "/opt/libdemo.so.2");
        module_addrs_free(&a);
    }
    modules_free(m);
}

static void modes_and_modules(void **state)
{
    struct fixture *f = *state;
    type(f, "h.*_r");
    draw(f);
    assert_true(golden_find(f->s, "no name matches"));
    act(f, ACT_MATCH_MODE);
    draw(f);
    assert_true(golden_find(f->s, "regex (PCRE2)"));
    assert_true(golden_find(f->s, "handle_requeue"));
    type(f, "(");
    draw(f);
    assert_true(golden_find(f->s, "at character 6")); /* the rows of the pattern before stay */
    assert_true(golden_find(f->s, "handle_requeue"));
    act(f, ACT_KILL_LINE);
    assert_true(view_symbol.action(f->view, ACT_MODULE, "libdemo"));
    draw(f);
    assert_true(golden_find(f->s, "2 / 2"));
    assert_true(golden_find(f->s, "hash_and_request"));
    assert_false(golden_find(f->s, "handle_requeue"));
    assert_true(view_symbol.action(f->view, ACT_MODULE, "all"));
    act(f, ACT_MODULE); /* the first */
    draw(f);
    assert_true(golden_find(f->s, "module: demo-server"));
}

/* The end of the match is in sight though the name does not fit; nothing leaves its column. */
static void field_E13_F14_long_and_wide_names(void **state)
{
    struct fixture *f = *state;
    type(f, "request_end");
    draw(f);
    char *row = golden_row(f->s, 2);
    assert_non_null(strstr(row, "request_end"));
    assert_non_null(strstr(row, "[ ] ~"));
    assert_non_null(strstr(row, " demo-server "));
    free(row);
    act(f, ACT_KILL_LINE);
    type(f, "handlerequest");
    f->m->glyphs = glyphs_of(GLYPHS_UNICODE);
    surface_set_replacement(f->s, 0xfffd, true);
    for (int cols = 1; cols <= 120; cols += 7) {
        surface_resize(f->s, 24, cols);
        surface_set_replacement(f->s, 0xfffd, true);
        draw(f);
    }
    surface_resize(f->s, 24, 100);
    draw(f);
    assert_true(golden_find(f->s, "handle_\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e_request"));
    for (int rows = 0; rows < 24; rows++) {
        surface_resize(f->s, rows ? rows : 1, 60);
        view_symbol.draw(f->view, f->s, (struct rect){0, 0, rows, 60});
    }
}

static void without_a_process(void **state)
{
    struct fixture *f = *state;
    model_set_target(f->m, 0, 0, "");
    view_symbol.changed(f->view, MODEL_TARGET);
    view_symbol.show(f->view);
    draw(f);
    assert_true(golden_find(f->s, "no process is chosen"));
    act(f, ACT_ARM);
    assert_null(f->m->want.screen);
    model_set_target(f->m, 4712, 1, "gone");
    view_symbol.show(f->view);
    draw(f);
    assert_true(golden_find(f->s, "process 4712 has ended"));
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_picker, setup, teardown),
        cmocka_unit_test_setup_teardown(field_B8_addresses_where_it_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(source_is_shown_harmlessly, setup, teardown),
        cmocka_unit_test_setup_teardown(triggers_are_chosen_and_armed, setup, teardown),
        cmocka_unit_test_setup_teardown(enter_takes_the_selected, setup, teardown),
        cmocka_unit_test_setup_teardown(field_B5_a_line_or_address_is_resolved, setup, teardown),
        cmocka_unit_test_setup_teardown(libraries_of_one_file_name, setup, teardown),
        cmocka_unit_test_setup_teardown(modes_and_modules, setup, teardown),
        cmocka_unit_test_setup_teardown(field_E13_F14_long_and_wide_names, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_process, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
