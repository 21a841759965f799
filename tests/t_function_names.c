/* tui/ui/function_names: the three styles; overloads, modules and unknown code are told apart, all else stays short.
 * Mangled names by hand (Itanium C++ ABI), checked with c++filt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/symbols/demangle.h"
#include "tui/ui/function_names.h"
#include "tui/ui/stack_line.h"

struct named {
    const char *module, *raw, *name;
};

static struct functions *functions_of(const struct named *cases, size_t n)
{
    struct functions *f = functions_new();
    for (size_t i = 0; i < n; i++) {
        char *name = demangle_or_copy(cases[i].raw, DEMANGLE_NO_ARGS);
        const enum fn_kind kind = cases[i].raw[0] == '[' ? FN_UNKNOWN : FN_USER;
        assert_int_equal(functions_intern(f, cases[i].module, cases[i].raw, name, 0, kind), i);
        free(name);
    }
    return f;
}

#define COUNT(cases) (sizeof(cases) / sizeof *(cases))

static void overloads_have_parameters(void **state)
{
    (void)state;
    static const struct named cases[] = {
        {"a", "_Z1fi", "f(int) a"},
        {"a", "_Z1gv", "g"},
        {"a", "_Z1fd", "f(double)"},
        {"/lib/b", "_Z1fi", "f(int) b"},
        {"a", "f", "f a"}, /* of C: has no parameters */
        {"/lib/b", "_Z1fs", "f(short)"},
        {"/lib/c", "_Z1fs", "f c"},
        {"/lib/liba.so", "init", "init liba.so"},
        {"[vdso]", "init", "init [vdso]"},
        {"/lib/liba.so", "fini", "fini"},
        {"a", "_ZNK1A1mEPKc", "A::m(char const*) const"},
        {"a", "_ZN1A1mEv", "A::m()"},
        {"a", "_ZN1B1mEv", "B::m"},
        {"a", "_Z1fc.cold", "f.cold"},
        {"a", "_Z1fPFvvE", "f(void (*)())"},
        {"a", "_Z1hIiEvT_", "void h<int>(int)"}, /* alike without the arguments of the template */
        {"a", "_Z1hIdEvT_", "void h<double>(double)"},
        {"a", "_Z1kIiEvT_", "k"},
        {"/lib/b", "_Z1qv", "q()"},
        {"/lib/b", "q", "q"},
        {"/usr/lib/libz.so", "[unknown]", "[unknown] libz.so"},
        {"/tmp/perf-7.map", "[unknown]", "[unknown] perf-7.map"},
        {"[unknown]", "[unknown]", "[unknown]"},
    };
    const size_t n = COUNT(cases);
    struct functions *f = functions_of(cases, n);
    struct function_names *names = function_names_new();
    function_names_set(names, f, NAMES_SHORT);
    assert_string_equal(function_names_get(names, 1), "g");
    fn_id later = functions_intern(f, "a", "_Z1fs", "f", 0, FN_USER);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(function_names_get(names, (fn_id)i), cases[i].name);
    assert_string_equal(function_names_get(names, later), "f");
    assert_string_equal(function_names_in_module(names, 0), "f(int)");
    /* Each is found by what stands there, only those by their module that stand with it. */
    for (size_t i = 0; i < n; i++)
        assert_true(function_names_occur(names, cases[i].name));
    assert_true(function_names_occur(names, "NIT LIBa"));
    assert_false(function_names_occur(names, "fini liba.so"));
    assert_string_equal(function_names_in_module(names, (fn_id)n - 3), "[unknown]");
    function_names_free(names);
    functions_free(f);
}

static void in_every_style(void **state)
{
    (void)state;
    static const char *const raw[] = {"_ZN4HttpILi3EE7requestER4Conn", "_ZNK4Http4sizeEv", "main", "_Z1fi", "_Z1fd"};
    static const char *const styles[][COUNT(raw)] = {
        [NAMES_SHORT] = {"Http::request", "Http::size", "main", "f(int)", "f(double)"},
        [NAMES_FULL] = {"Http<3>::request(Conn&)", "Http::size() const", "main", "f(int)", "f(double)"},
        [NAMES_RAW] = {"_ZN4HttpILi3EE7requestER4Conn", "_ZNK4Http4sizeEv", "main", "_Z1fi", "_Z1fd"}};
    struct named cases[COUNT(raw)];
    for (size_t i = 0; i < COUNT(raw); i++)
        cases[i] = (struct named){"/bin/a", raw[i], NULL};
    struct functions *f = functions_of(cases, COUNT(raw));
    struct function_names *names = function_names_new();
    for (size_t style = 0; style < COUNT(styles); style++) {
        function_names_set(names, f, (enum name_style)style);
        for (size_t i = 0; i < COUNT(raw); i++)
            assert_string_equal(function_names_get(names, (fn_id)i), styles[style][i]);
        /* Whatever is shown, people find it by the name without its parameters. */
        assert_true(function_names_occur(names, "http<3>::REQ"));
        assert_int_equal(function_names_occur(names, "(conn"), style == NAMES_FULL);
        assert_int_equal(function_names_occur(names, "_Z1"), style == NAMES_RAW);
    }
    function_names_set(names, NULL, NAMES_FULL);
    assert_false(function_names_occur(names, "m"));
    function_names_free(names);
    functions_free(f);
}

/* Of one name in one module, in full too: static functions, the two destructors of a class. */
static void told_apart_by_address(void **state)
{
    (void)state;
    static const struct {
        const char *module, *raw;
        uint64_t addr;
        const char *shown[3];
    } cases[] = {
        {"/a", "parse", 0x1196, {"parse 0x1196 a", "parse 0x1196 a", "parse 0x1196 a"}},
        {"/a", "parse", 0x11c3, {"parse 0x11c3", "parse 0x11c3", "parse 0x11c3"}},
        {"/b", "parse", 0x1196, {"parse 0x1196 b", "parse 0x1196 b", "parse 0x1196 b"}},
        {"/b", "parse", 0x1200, {"parse 0x1200", "parse 0x1200", "parse 0x1200"}},
        {"/a", "_ZN1VD0Ev", 0x20, {"V::~V() 0x20", "V::~V() 0x20", "_ZN1VD0Ev"}},
        {"/a", "_ZN1VD1Ev", 0x30, {"V::~V() 0x30", "V::~V() 0x30", "_ZN1VD1Ev"}},
        {"/a", "_ZN1fEv", 0x40, {"f() 0x40", "f() 0x40", "_ZN1fEv 0x40"}},
        {"/a", "_ZN1fEv", 0x50, {"f() 0x50", "f() 0x50", "_ZN1fEv 0x50"}},
        {"/a", "alone", 0x60, {"alone", "alone", "alone"}},
    };
    struct functions *f = functions_new();
    struct function_names *names = function_names_new();
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *name = demangle_or_copy(cases[i].raw, DEMANGLE_NO_ARGS);
        functions_intern_at(f, cases[i].module, cases[i].raw, name, cases[i].addr, FN_USER);
        free(name);
    }
    for (size_t style = 0; style < 3; style++) {
        function_names_set(names, f, (enum name_style)style);
        for (size_t i = 0; i < COUNT(cases); i++)
            assert_string_equal(function_names_get(names, (fn_id)i), cases[i].shown[style]);
    }
    function_names_free(names);
    functions_free(f);
}

/* A trace that is made anew with the functions of the former has a table of its own, and the former's goes. */
static void another_table_of_the_same(void **state)
{
    (void)state;
    static const struct named cases[] = {{"/lib/a", "init", NULL}, {"/lib/b", "init", NULL}};
    struct functions *before = functions_of(cases, COUNT(cases)), *now = functions_of(cases, COUNT(cases));
    struct function_names *names = function_names_new();
    function_names_set(names, before, NAMES_SHORT);
    assert_string_equal(function_names_get(names, 1), "init b");
    function_names_grow(names, now);
    functions_free(before);
    assert_string_equal(function_names_get(names, 1), "init b");
    assert_string_equal(function_names_module(names, 0), "a");
    function_names_free(names);
    functions_free(now);
}

static void modules_of_one_file_name(void **state)
{
    (void)state;
    static const struct {
        const char *path, *shown;
    } modules[] = {
        {"/usr/lib/libz.so", "usr/lib/libz.so"},
        {"/opt/lib/libz.so", "opt/lib/libz.so"},
        {"/opt/lib-new/libz.so", "lib-new/libz.so"},
        {"/srv/alib/libz.so", "alib/libz.so"},
        {"/usr/lib/libm.so", "libm.so"},
        {"/a", "a"},
        {"/x/prog", "/x/prog"}, /* all of it is the end of another */
        {"/chroot/x/prog", "chroot/x/prog"},
        {"rel.so", "rel.so"},
        {"-rel.so", "-rel.so"},
        {"dir/rel.so", "dir/rel.so"},
        {"[vdso]", "[vdso]"},
    };
    struct functions *f = functions_new();
    struct function_names *names = function_names_new();
    char expected[80];
    for (size_t i = 0; i < COUNT(modules); i++)
        functions_intern(f, modules[i].path, "init", "init", 0, FN_USER);
    functions_intern(f, modules[0].path, "only", "only", 0, FN_USER);
    function_names_set(names, f, NAMES_SHORT);
    for (size_t i = 0; i < COUNT(modules); i++) {
        assert_string_equal(function_names_module(names, (fn_id)i), modules[i].shown);
        snprintf(expected, sizeof expected, "init %s", modules[i].shown);
        assert_string_equal(function_names_get(names, (fn_id)i), expected);
    }
    assert_string_equal(function_names_get(names, COUNT(modules)), "only");
    assert_string_equal(function_names_module(names, COUNT(modules)), "usr/lib/libz.so");
    function_names_free(names);
    functions_free(f);
}

/* c++filt: app::handle(std::string const&, long), app::handle(int). */
static struct functions *overloads(struct function_names *names, enum name_style style)
{
    static const struct named cases[] = {{"a", "_ZN3app6handleERKSsl", NULL},
                                         {"a", "_ZN3app6handleEi", NULL},
                                         {"a", "_ZN3app4loneERKSsl", NULL},
                                         {"a", "main", NULL},
                                         {"a", "run", NULL}};
    struct functions *f = functions_of(cases, COUNT(cases));
    function_names_set(names, f, style);
    return f;
}

/* Only where they tell two apart parameters outlast the scopes, in every style. */
static void in_a_room(void **state)
{
    (void)state;
    static const struct {
        enum name_style style;
        int cols;
        const char *string, *integer, *lone;
    } cases[] = {
        {NAMES_SHORT, 60, "app::handle(std::string const&, long)", "app::handle(int)", "app::lone"},
        {NAMES_SHORT, 15, "handle(std::st…", "handle(int)", "app::lone"},
        {NAMES_SHORT, 10, "handle(st…", "handle(in…", "app::lone"},
        {NAMES_FULL, 60, "app::handle(std::string const&, long)", "app::handle(int)", "app::lone(std::string const&, long)"},
        {NAMES_FULL, 15, "handle(std::st…", "handle(int)", "app::lone"},
        {NAMES_RAW, 15, "_ZN3app6handle…", "_ZN3app6handle…", "_ZN3app4loneER…"},
    };
    struct function_names *names = function_names_new();
    char out[100];
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct functions *f = overloads(names, cases[i].style);
        const char *want[] = {cases[i].string, cases[i].integer, cases[i].lone};
        for (fn_id fn = 0; fn < 3; fn++) {
            function_names_fit(names, fn, out, sizeof out, cases[i].cols, glyphs_of(GLYPHS_UNICODE));
            assert_string_equal(out, want[fn]);
            function_names_fit_in_module(names, fn, out, sizeof out, cases[i].cols, glyphs_of(GLYPHS_UNICODE));
            assert_string_equal(out, want[fn]);
        }
        function_names_set(names, NULL, NAMES_SHORT);
        functions_free(f);
    }
    function_names_free(names);
}

static void stacks_on_a_line(void **state)
{
    (void)state;
    static const fn_id calls[] = {0, 4, 3};
    static const struct {
        int cols;
        bool whole;
        const char *want;
    } cases[] = {
        /* 37 + 3 + 3 + 3 + 4 of the names and what stands between, 15 of the frame. */
        {65, true, "stack  main > run > [app::handle(std::string const&, long)]"},
        {65, false, "stack  ... > main > run > [app::handle(std::string const&, long)]"},
        {64, true, "stack  main > run > [handle(std::string const&, long)]"},
        {50, true, "stack  main > run > [handle(std::string co…]"},
        {40, true, "stack  main > run > [handle(std:…]"},
        {30, true, "stack  ... > run > [handle]"}, /* of 15 half for a name: 7; 6 + 3 + 3 and 3 + 4 are too many */
    };
    struct function_names *names = function_names_new();
    struct functions *f = overloads(names, NAMES_SHORT);
    char out[256];
    for (size_t i = 0; i < COUNT(cases); i++) {
        stack_line_write(out, sizeof out, names, calls, 3, cases[i].whole, true, cases[i].cols,
                         glyphs_of(GLYPHS_UNICODE));
        assert_string_equal(out, cases[i].want);
    }
    stack_line_write(out, 20, names, calls, 3, true, true, 65, glyphs_of(GLYPHS_UNICODE));
    assert_string_equal(out, "stack  main > run >");
    function_names_free(names);
    functions_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(overloads_have_parameters), cmocka_unit_test(in_a_room),
                                       cmocka_unit_test(stacks_on_a_line), cmocka_unit_test(in_every_style),
                                       cmocka_unit_test(told_apart_by_address),
        cmocka_unit_test(another_table_of_the_same), cmocka_unit_test(modules_of_one_file_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
