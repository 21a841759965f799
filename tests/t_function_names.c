/* tui/analysis/function_names: overloads and unknown code are told apart, all else stays short. Mangled names by hand
 * (Itanium C++ ABI), checked with c++filt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "core/symbols/demangle.h"
#include "tui/analysis/function_names.h"

static void overloads_have_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *module, *raw, *name;
    } cases[] = {
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
        {"/usr/lib/libz.so", "[unknown]", "[unknown] libz.so"},
        {"/tmp/perf-7.map", "[unknown]", "[unknown] perf-7.map"},
        {"[unknown]", "[unknown]", "[unknown]"},
    };
    const size_t n = sizeof cases / sizeof *cases;
    struct functions *f = functions_new();
    for (size_t i = 0; i < n; i++) {
        char *name = demangle_or_copy(cases[i].raw, DEMANGLE_NO_ARGS);
        const enum fn_kind kind = cases[i].raw[0] == '[' ? FN_UNKNOWN : FN_USER;
        assert_int_equal(functions_intern(f, cases[i].module, cases[i].raw, name, 0, kind), i);
        free(name);
    }
    struct function_names *names = function_names_new(f);
    fn_id later = functions_intern(f, "a", "_Z1fs", "f", 0, FN_USER);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(function_names_get(names, (fn_id)i), cases[i].name);
    assert_string_equal(function_names_get(names, later), "f");
    assert_string_equal(function_names_in_module(names, 0), "f(int)");
    assert_string_equal(function_names_in_module(names, (fn_id)n - 3), "[unknown]");
    function_names_free(names);
    functions_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(overloads_have_parameters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
