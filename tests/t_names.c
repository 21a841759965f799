/* What functions and modules are called on the screens of a trace: in the style that is set, switched live, and told
 * apart where two would read the same. Mangled names by hand (Itanium C++ ABI), checked with c++filt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "tests/lib_gentrace.h"
#include "tests/lib_screens.h"

/* draw(int), draw(double), ns::H<int>::req(int); init of two files of one name. */
static const char program[] = "thread 100 main\n"
                              "+ 0 main /bin/app\n"
                              "+ 100 _Z4drawi /bin/app\n - 200\n"
                              "+ 300 _Z4drawd /bin/app\n"
                              "+ 310 init /opt/a/libx.so\n - 340\n+ 350 init /opt/b/libx.so\n - 390\n"
                              "- 500\n"
                              "+ 600 _ZN2ns1HIiE3reqEi /bin/app\n - 900\n"
                              "- 1000\n";

static void open_program(struct screens *r, struct settings *settings)
{
    screens_open(r, &(struct screens_setup){.t = gentrace_parse(program), .settings = settings, .rows = 40, .cols = 140,
                                            .glyphs = GLYPHS_ASCII});
}

#define assert_sees(r, text)                                                                                           \
    do {                                                                                                               \
        if (!screens_see(r, text))                                                                                     \
            fail_msg("on %s: no \"%s\"", ui_screen((r)->ui), text);                                                    \
    } while (0)

/* In every style, on every screen; `\` and `/` find what is shown. */
static void in_every_style(void **state)
{
    (void)state;
    static const struct {
        const char *style, *req, *req_label, *draw_int, *draw_double;
    } cases[] = {{"short", "ns::H::req ", "[ns::H::req--", "draw(int)", "draw(double)"},
                 {"full", "ns::H<int>::req(int)", "[ns::H<int>::req(int)--", "draw(int)", "draw(double)"},
                 {"raw", "_ZN2ns1HIiE3reqEi", "[_ZN2ns1HIiE3reqEi--", "_Z4drawi", "_Z4drawd"}};
    struct settings *settings = settings_new();
    struct screens r;
    char line[80];
    open_program(&r, settings);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        screens_command(&r, "functions");
        snprintf(line, sizeof line, "set demangle %s", cases[i].style);
        screens_command(&r, line);
        assert_sees(&r, cases[i].req);
        assert_sees(&r, cases[i].draw_int);
        screens_type(&r, "\\", cases[i].draw_double);
        assert_sees(&r, "1 of 6 functions");
        assert_sees(&r, "init a/libx.so"); /* a callee */
        screens_press(&r, "L");
        snprintf(line, sizeof line, "calls of %s   app", cases[i].draw_double);
        assert_sees(&r, line);
        screens_command(&r, "functions");
        screens_type(&r, "\\", "");
        screens_command(&r, "timeline");
        assert_sees(&r, cases[i].req_label);
        snprintf(line, sizeof line, "=%s", cases[i].draw_int);
        screens_type(&r, "/", line);
        snprintf(line, sizeof line, "-- %s   app", cases[i].draw_int);
        assert_sees(&r, line);
        snprintf(line, sizeof line, "stack  main > [%s]", cases[i].draw_int);
        assert_sees(&r, line);
        screens_press(&r, "M");
        snprintf(line, sizeof line, "-- %s: this call and the median one", cases[i].draw_int);
        assert_sees(&r, line);
        screens_command(&r, "events");
        assert_sees(&r, cases[i].draw_int);
        snprintf(line, sizeof line, "from %s", cases[i].draw_double);
        assert_sees(&r, line);
        screens_command(&r, "merged");
        assert_sees(&r, cases[i].req_label);
        snprintf(line, sizeof line, "-- %s   app", cases[i].draw_int);
        assert_sees(&r, line);
        screens_command(&r, "merged");
    }
    screens_close(&r);
    settings_free(settings);
}

/* Callers in Calls, and what is in the details of a call whose module is another's by its file's name. */
static void modules_by_their_paths(void **state)
{
    (void)state;
    struct screens r;
    open_program(&r, NULL);
    screens_command(&r, "functions");
    screens_type(&r, "\\", "module=/b/");
    assert_sees(&r, "init b/libx.so");
    assert_sees(&r, "-- init   b/libx.so --");
    screens_press(&r, "Enter");
    assert_sees(&r, "-- init   b/libx.so --");
    assert_sees(&r, "stack  main > draw(double) > [init b/libx.so]");
    screens_press(&r, "L");
    assert_sees(&r, "calls of init   b/libx.so");
    screens_command(&r, "events");
    assert_sees(&r, "init a/libx.so");
    assert_sees(&r, " b/libx.so   from draw(double)"); /* the pane */
    screens_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_every_style), cmocka_unit_test(modules_by_their_paths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
