/* core/symbols/symbol_list: what is listed, while it loads, when it is cancelled, when memory runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/symbols/fuzzy.h"
#include "core/symbols/symbol_list.h"
#include "tests/lib_program.h"

static const char source[] =
    "#include <cstdio>\n#include <unistd.h>\n"
    "struct Foo { Foo(); ~Foo(); int run(int); };\n"
    "Foo::Foo() { puts(\"ready\"); fflush(stdout); }\n"
    "Foo::~Foo() {}\n"
    "int Foo::run(int x) { return x; }\n"
    "extern \"C\" int f(int x) { return x; }\n"
    "extern \"C\" int f_alias(int x) __attribute__((alias(\"f\")));\n"
    "int main() { Foo a; char c; return a.run((int)read(0, &c, 1)); }\n";

static size_t count_named(const struct symbol_list *l, const char *name, struct symbol_item *last)
{
    size_t n = 0;
    for (size_t i = 0; i < symbol_list_count(l); i++) {
        struct symbol_item it;
        symbol_list_get(l, i, &it);
        if (strcmp(it.name, name) == 0) {
            n++;
            if (last)
                *last = it;
        }
    }
    return n;
}

static void tell(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void names_of_a_process(void **state)
{
    (void)state;
    char *dir = program_mkdir();
    program_write(dir, "p.cc", source);
    assert_true(program_build(dir, "p.cc", "p", "-O0"));
    struct program p;
    program_start(&p, dir, "./p");
    struct modules *m;
    assert_int_equal(modules_of_pid(NULL, p.pid, &m, NULL), 0);
    atomic_int told = 0;
    struct symbol_list *l = symbol_list_start(m, 0, tell, &told);
    /* readable while the worker adds: a rank over it never sees half a name */
    struct rank *r = rank_new(symbol_list_chunk, l);
    struct symbol_progress progress;
    do {
        symbol_list_progress(l, &progress);
        assert_int_equal(rank_set(r, MATCH_FUZZY, "read", 0, symbol_list_count(l), NULL), 0);
        assert_true(rank_run(r, UINT64_MAX));
    } while (!progress.done);
    symbol_list_wait(l);
    assert_true(told >= 1);
    symbol_list_progress(l, &progress);
    assert_int_equal(progress.modules_done, modules_count(m));
    assert_int_equal(progress.left_out, 0);
    assert_int_equal(progress.names, symbol_list_count(l));
    assert_true(progress.names > 1000); /* the C library's */

    struct symbol_item it;
    assert_int_equal(count_named(l, "Foo::run", &it), 1);
    assert_string_equal(it.raw, "_ZN3Foo3runEi");
    assert_true(modules_at(m, it.module)->is_main);
    assert_int_equal(it.vaddr, program_nm(dir, "p", "_ZN3Foo3runEi"));
    assert_int_equal(count_named(l, "Foo::Foo", NULL), 1); /* C1 and C2 are one */
    assert_int_equal(count_named(l, "f", NULL), 1);
    assert_int_equal(count_named(l, "f_alias", NULL), 1);
    assert_int_equal(count_named(l, "puts@plt", NULL), 0);
    size_t from, to;
    symbol_list_module_range(l, it.module, &from, &to);
    assert_int_equal(from, 0); /* the program comes first */
    assert_true(to > 5);
    for (size_t i = 0; i < symbol_list_count(l); i++) {
        struct symbol_item x;
        symbol_list_get(l, i, &x);
        assert_int_equal(x.module == it.module, i >= from && i < to);
        const struct rank_chunk *c = symbol_list_chunk(l, i / RANK_CHUNK);
        assert_int_equal(c->masks[i % RANK_CHUNK], fuzzy_mask(x.name, strlen(x.name)));
        assert_null(strstr(x.name, "@"));
    }
    rank_free(r);
    symbol_list_free(l);

    l = symbol_list_start(m, 0, NULL, NULL);
    symbol_list_cancel(l);
    symbol_list_wait(l);
    symbol_list_progress(l, &progress);
    assert_true(progress.done && progress.cancelled);
    symbol_list_free(l);

    /* one chunk of names and no more */
    l = symbol_list_start(m, sizeof(struct rank_chunk) + 1, NULL, NULL);
    symbol_list_wait(l);
    symbol_list_progress(l, &progress);
    assert_true(progress.left_out > 0);
    assert_true(progress.bytes <= sizeof(struct rank_chunk) + 1);
    symbol_list_free(l);
    modules_free(m);
    program_end(&p);
    program_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_a_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
