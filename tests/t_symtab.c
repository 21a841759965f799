/* core/symbols/symtab, core/symbols/plt, core/symbols/debug_file, core/symbols/demangle: against nm, objdump and what the mangling's
 * own documentation says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/symbols/debug_file.h"
#include "core/symbols/demangle.h"
#include "core/symbols/symtab.h"
#include "tests/lib_program.h"

static const char source[] =
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "#include <string.h>\n"
    "__attribute__((noinline)) static int hidden_one(int x) { __asm__(\"\"); return x; }\n"
    "__attribute__((noinline)) int exported(int x) { __asm__(\"\"); return hidden_one(x) + 1; }\n"
    "int __exported_alias(int x) __attribute__((alias(\"exported\")));\n"
    "int exported_weak_alias_of_it(int x) __attribute__((weak, alias(\"exported\")));\n"
    "static int local_alias_with_long_name(int x) __attribute__((alias(\"exported\"), used));\n"
    "__asm__(\".text\\n.globl asm_label\\nasm_label: nop\\nasm_label2: nop\\nret\\n\"\n"
    "        \".type sized,@function\\nsized: nop\\nnop\\ninner: nop\\nnop\\nret\\n.size sized,.-sized\\n\");\n"
    "int main(int argc, char **argv) {\n"
    "    puts(argv[0]); char *p = malloc((size_t)argc); free(p);\n"
    "    return exported(argc) + (int)strlen(argv[0]) + (getenv == (void *)argv); }\n";

static struct symtab *load(const char *dir, const char *name, const char *root)
{
    char path[512];
    struct elf_file *f;
    struct symtab *t;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    struct debug_search search = {.root = "", .path = path, .dir = root};
    assert_int_equal(elf_file_open_path(path, &f, NULL), 0);
    assert_int_equal(symtab_load(f, &search, &t, NULL), 0);
    elf_file_free(f);
    return t;
}

static const char *name_at(const struct symtab *t, uint64_t vaddr, struct symbol *s)
{
    ssize_t i = symtab_find(t, vaddr);
    if (i < 0)
        return "";
    symtab_get(t, (size_t)i, s);
    assert_true(vaddr >= s->vaddr && vaddr < s->vaddr + s->size);
    return s->name;
}

struct sought {
    const char *name;
    struct symbol found;
    size_t n;
};

static void keep(void *arg, const struct symbol *s)
{
    struct sought *x = arg;
    x->found = *s;
    x->n++;
}

static struct symbol named(const struct symtab *t, const char *name)
{
    struct sought x = {.name = name};
    symtab_find_name(t, name, keep, &x);
    assert_int_equal(x.n, 1);
    return x.found;
}

/* Every T, t, W, i symbol of nm -S is there, at its address and with its size. */
static void check_against_nm(const struct symtab *t, const char *dir, const char *name)
{
    char command[512], line[4096], sym[4000];
    unsigned long addr, size;
    char type;
    size_t n = 0;
    snprintf(command, sizeof command, "cd '%s' && nm -S '%s'", dir, name);
    FILE *p = popen(command, "r");
    while (fgets(line, sizeof line, p)) {
        if (sscanf(line, "%lx %lx %c %3999s", &addr, &size, &type, sym) != 4 || !strchr("TtWi", type))
            continue;
        bool found = false;
        for (size_t i = 0; i < symtab_all_count(t) && !found; i++) {
            struct symbol s;
            symtab_all_get(t, i, &s);
            found = s.vaddr == addr && s.size == size && strcmp(s.name, sym) == 0;
        }
        if (!found)
            fail_msg("%s of nm is missing", sym);
        n++;
    }
    pclose(p);
    assert_true(n >= 5);
}

static void symbols_equal_nm(void **state)
{
    (void)state;
    char *dir = program_mkdir();
    program_write(dir, "p.c", source);
    static const char *const flags[] = {"-O1", "-O1 -no-pie -fno-pie", "-O1 -static -fno-pie -no-pie"};
    for (size_t k = 0; k < 3; k++) {
        assert_true(program_build(dir, "p.c", "p", flags[k]));
        struct symtab *t = load(dir, "p", NULL);
        check_against_nm(t, dir, "p");
        assert_null(symtab_note(t));
        struct symbol s;
        /* perf's choice among aliases: not weak, then global, then fewer underscores */
        uint64_t e = program_nm(dir, "p", "exported");
        assert_string_equal(name_at(t, e, &s), "exported");
        assert_true(named(t, "__exported_alias").flags & SYMBOL_ALIAS);
        assert_true(named(t, "exported_weak_alias_of_it").flags & SYMBOL_WEAK);
        assert_true(named(t, "local_alias_with_long_name").flags & SYMBOL_LOCAL);
        assert_false(named(t, "exported").flags & SYMBOL_ALIAS);
        /* untyped labels without a size reach to the next symbol; inside a sized function the label
         * has its own part, as in perf */
        uint64_t a = program_nm(dir, "p", "asm_label");
        assert_string_equal(name_at(t, a, &s), "asm_label");
        assert_int_equal(s.size, 1);
        assert_true(s.flags & SYMBOL_LABEL && s.flags & SYMBOL_NO_SIZE);
        assert_string_equal(name_at(t, a + 1, &s), "asm_label2");
        uint64_t z = program_nm(dir, "p", "sized");
        assert_string_equal(name_at(t, z + 1, &s), "sized");
        assert_string_equal(name_at(t, z + 2, &s), "inner");
        symtab_free(t);
    }
    program_rmdir(dir);
}

/* symtab_find against a search through everything. */
static void lookups_equal_brute_force(void **state)
{
    (void)state;
    char *dir = program_mkdir();
    program_write(dir, "p.c", source);
    assert_true(program_build(dir, "p.c", "p", "-O1 -static"));
    struct symtab *t = load(dir, "p", NULL);
    size_t n = symtab_count(t);
    assert_true(n > 500);
    for (size_t i = 1; i < n; i++) {
        struct symbol a, b;
        symtab_get(t, i - 1, &a);
        symtab_get(t, i, &b);
        assert_true(a.vaddr < b.vaddr);
    }
    uint32_t x = 12345;
    struct symbol first, last, s;
    symtab_get(t, 0, &first);
    symtab_get(t, n - 1, &last);
    for (int round = 0; round < 3000; round++) {
        x = x * 1664525u + 1013904223u;
        uint64_t addr = first.vaddr - 8 + x % (last.vaddr - first.vaddr + 4096);
        ssize_t want = -1;
        for (size_t i = 0; i < n; i++) {
            symtab_get(t, i, &s);
            if (addr >= s.vaddr && addr < s.vaddr + s.size)
                want = (ssize_t)i; /* ascending: the innermost is the last */
        }
        assert_int_equal(symtab_find(t, addr), want);
    }
    symtab_free(t);
    program_rmdir(dir);
}

/* Names of stubs equal those that objdump gives. */
static void check_plt(const char *dir)
{
    struct symtab *t = load(dir, "p", NULL);
    char command[512], line[4096], sym[512];
    unsigned long addr;
    size_t n = 0;
    snprintf(command, sizeof command, "cd '%s' && objdump -d p | grep '@plt>:$'", dir);
    FILE *p = popen(command, "r");
    while (fgets(line, sizeof line, p)) {
        struct symbol s;
        assert_int_equal(sscanf(line, "%lx <%511[^>]", &addr, sym), 2);
        assert_string_equal(name_at(t, addr, &s), sym);
        assert_true(s.flags & SYMBOL_PLT);
        assert_int_equal(s.vaddr, addr);
        n++;
    }
    pclose(p);
    assert_true(n >= 2);
    symtab_free(t);
}

static void plt_stubs_equal_objdump(void **state)
{
    (void)state;
    char *dir = program_mkdir();
    program_write(dir, "p.c", source);
    static const char *const flags[] = {
        "-O1", "-O1 -no-pie -fno-pie", "-O1 -Wl,-z,now", "-O1 -fcf-protection -Wl,-z,ibtplt",
        "-O1 -fcf-protection -Wl,-z,ibtplt -Wl,-z,now", "-O1 -Wl,-z,lazy"};
    for (size_t k = 0; k < 6; k++) {
        assert_true(program_build(dir, "p.c", "p", flags[k]));
        check_plt(dir);
    }
    program_rmdir(dir);
}

/* ---- Separate debug files ---- */

static void expect_hidden(const char *dir, const char *debug_dir, bool found, const char *note)
{
    struct symtab *t = load(dir, "p", debug_dir);
    struct sought x = {.name = "hidden_one"};
    symtab_find_name(t, "hidden_one", keep, &x);
    assert_int_equal(x.n, found);
    if (found) {
        assert_int_equal(x.found.vaddr, program_nm(dir, "full", "hidden_one"));
        assert_null(symtab_note(t));
    } else {
        assert_non_null(strstr(symtab_note(t), note));
    }
    symtab_free(t);
}

static void build_stripped(const char *dir, const char *flags)
{
    program_write(dir, "p.c", source);
    assert_true(program_build(dir, "p.c", "full", flags));
    assert_true(program_shell(dir, "objcopy --only-keep-debug full p.debug && cp full p && strip p"));
}

static void field_E3_debug_by_link(void **state)
{
    (void)state;
    char *dir = program_mkdir(), debug_dir[512];
    build_stripped(dir, "-g -O1 -Wl,--build-id=none");
    snprintf(debug_dir, sizeof debug_dir, "%s/dbg", dir);
    expect_hidden(dir, debug_dir, false, "no .gnu_debuglink");
    assert_true(program_shell(dir, "objcopy --add-gnu-debuglink=p.debug p"));
    expect_hidden(dir, debug_dir, true, NULL);
    assert_true(program_shell(dir, "mkdir .debug && mv p.debug .debug/"));
    expect_hidden(dir, debug_dir, true, NULL);
    assert_true(program_shell(dir, "mkdir -p dbg'%s' && mv .debug/p.debug dbg'%s'/", dir, dir));
    expect_hidden(dir, debug_dir, true, NULL);
    /* one byte more and the CRC says no */
    assert_true(program_shell(dir, "echo >>dbg'%s'/p.debug", dir));
    expect_hidden(dir, debug_dir, false, "its CRC is");
    assert_true(program_shell(dir, "rm dbg'%s'/p.debug", dir));
    expect_hidden(dir, debug_dir, false, "/.debug/p.debug: No such file or directory");
    program_rmdir(dir);
}

static void field_E3_debug_by_build_id(void **state)
{
    (void)state;
    char *dir = program_mkdir(), debug_dir[512];
    build_stripped(dir, "-g -O1 -Wl,--build-id=0xabcdef0123456789");
    snprintf(debug_dir, sizeof debug_dir, "%s/dbg", dir);
    expect_hidden(dir, debug_dir, false, "/.build-id/ab/cdef0123456789.debug: No such file");
    assert_true(program_shell(dir, "mkdir -p dbg/.build-id/ab && cp p.debug dbg/.build-id/ab/cdef0123456789.debug"));
    expect_hidden(dir, debug_dir, true, NULL);
    /* another program's debug file under this name is not used */
    assert_true(program_build(dir, "p.c", "other", "-g -O0 -Wl,--build-id=0xabcdef0123456780"));
    assert_true(program_shell(dir, "cp other dbg/.build-id/ab/cdef0123456789.debug"));
    expect_hidden(dir, debug_dir, false, "its build-id is another one");
    program_rmdir(dir);
}

static void field_E3_debug_data(void **state)
{
    (void)state;
    if (!program_have("xz"))
        skip();
    char *dir = program_mkdir(), debug_dir[512];
    build_stripped(dir, "-O1 -Wl,--build-id=none");
    snprintf(debug_dir, sizeof debug_dir, "%s/dbg", dir);
    assert_true(program_shell(dir, "xz -k p.debug && cp p bare && objcopy --add-section .gnu_debugdata=p.debug.xz p"));
    expect_hidden(dir, debug_dir, true, NULL);
    assert_true(program_shell(dir, "head -c 200 p.debug.xz >cut && cp bare p && objcopy --add-section .gnu_debugdata=cut p"));
    expect_hidden(dir, debug_dir, false, ".gnu_debugdata is damaged");
    /* a bomb: 300 MiB of zeros in a few KiB */
    assert_true(program_shell(dir, "head -c 314572800 /dev/zero | xz -0 >bomb && cp bare p && objcopy --add-section .gnu_debugdata=bomb p"));
    expect_hidden(dir, debug_dir, false, "unpacks to more than 256 MiB");
    program_rmdir(dir);
}

/* ---- Demangling ---- */

static void field_E5_manglings(void **state)
{
    (void)state;
    static const struct {
        const char *raw, *full, *no_args, *brief;
    } cases[] = {
        {"_ZN4Http7Handler7requestERNS_4ConnE", "Http::Handler::request(Http::Conn&)",
         "Http::Handler::request", "Http::Handler::request"},
        {"_ZNSt6vectorIiSaIiEE9push_backERKi",
         "std::vector<int, std::allocator<int> >::push_back(int const&)",
         "std::vector<int, std::allocator<int> >::push_back", "std::vector::push_back"},
        {"_ZlsRSoRK3Foo", "operator<<(std::ostream&, Foo const&)", "operator<<", "operator<<"},
        {"_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc",
         "std::basic_ostream<char, std::char_traits<char> >& std::operator<< "
         "<std::char_traits<char> >(std::basic_ostream<char, std::char_traits<char> >&, char const*)",
         "std::operator<< <std::char_traits<char> >", "std::operator<<"},
        {"_ZNK3FoocvbEv", "Foo::operator bool() const", "Foo::operator bool", "Foo::operator bool"},
        {"_ZN3FooclEi", "Foo::operator()(int)", "Foo::operator()", "Foo::operator()"},
        {"_ZN1AptEv", "A::operator->()", "A::operator->", "A::operator->"},
        {"_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo()", "(anonymous namespace)::foo",
         "(anonymous namespace)::foo"},
        {"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const",
         "main::{lambda()#1}::operator()", "main::{lambda()#1}::operator()"},
        {"_ZThn8_N3Foo3barEv", "non-virtual thunk to Foo::bar()", NULL,
         "non-virtual thunk to Foo::bar"},
        {"_Z3fooIiEvT_", "void foo<int>(int)", "foo<int>", "foo"},
        {"_ZN4Http7Handler7requestERNS_4ConnE.cold", "Http::Handler::request(Http::Conn&).cold",
         "Http::Handler::request.cold", "Http::Handler::request.cold"},
        {"_ZN4Http7Handler7requestERNS_4ConnE.part.0@plt", "Http::Handler::request(Http::Conn&).part.0@plt",
         "Http::Handler::request.part.0@plt", "Http::Handler::request.part.0@plt"},
        /* rustc: The legacy scheme; RFC 2603 */
        {"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad",
         "core::fmt::Formatter::pad", "core::fmt::Formatter::pad"},
        {"_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE",
         "<alloc::string::String as core::fmt::Display>::fmt",
         "<alloc::string::String as core::fmt::Display>::fmt",
         "<alloc::string::String as core::fmt::Display>::fmt"},
        {"_ZN4core3ptr13drop_in_place17h0123456789abcdefE.llvm.123", "core::ptr::drop_in_place.llvm.123",
         "core::ptr::drop_in_place.llvm.123", "core::ptr::drop_in_place.llvm.123"},
        {"_RNvCs1234_7mycrate3foo", "mycrate::foo", "mycrate::foo", "mycrate::foo"},
        {"_RINvCs6xxl1lAjzDf_1a3genReNCNvB2_4main0EB2_", "a::gen::<&str, a::main::{closure#0}>",
         "a::gen::<&str, a::main::{closure#0}>", "a::gen"},
        {"_RNvXCs6xxl1lAjzDf_1aINtB2_1SINtNtCslNYArtu3iFV_5alloc3vec3VeclEENtNtCsgEmfK2I1SDS_4core3fmt7Display3fmtB2_",
         "<a::S<alloc::vec::Vec<i32>> as core::fmt::Display>::fmt",
         "<a::S<alloc::vec::Vec<i32>> as core::fmt::Display>::fmt",
         "<a::S as core::fmt::Display>::fmt"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *full = demangle(cases[i].raw, DEMANGLE_FULL);
        char *no_args = demangle(cases[i].raw, DEMANGLE_NO_ARGS);
        char *brief = demangle(cases[i].raw, DEMANGLE_SHORT);
        assert_non_null(full);
        assert_string_equal(full, cases[i].full);
        if (cases[i].no_args)
            assert_string_equal(no_args, cases[i].no_args);
        assert_string_equal(brief, cases[i].brief);
        free(full);
        free(no_args);
        free(brief);
    }
}

static void field_E7_only_mangled_names(void **state)
{
    (void)state;
    static const char *const plain[] = {"f", "i", "main", "_start", "__libc_start_main", "Z1fv", "_Z", "_R",
                                        "_ZNonsense", "_ZN", "", "_", "__", "f\n", "_Z1fv\n", "_ZN1A1fEv junk"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        char *full = demangle(plain[i], DEMANGLE_FULL), *copy = demangle_or_copy(plain[i], DEMANGLE_FULL);
        assert_null(full);
        assert_string_equal(copy, plain[i]);
        free(copy);
    }
    /* as deep as the length allows, and much too long */
    char *deep = malloc(100001);
    static const size_t lengths[] = {4000, DEMANGLE_MAX_IN, 100000};
    for (size_t k = 0; k < 3; k++) {
        memset(deep, 'P', lengths[k]);
        memcpy(deep, "_Z1f", 4);
        deep[lengths[k]] = '\0';
        free(demangle(deep, DEMANGLE_FULL));
        memset(deep, 'I', lengths[k]);
        memcpy(deep, "_Z1f", 4);
        free(demangle(deep, DEMANGLE_SHORT));
        memset(deep, 'N', lengths[k]);
        memcpy(deep, "_R", 2);
        free(demangle(deep, DEMANGLE_SHORT));
    }
    free(deep);
    char hostile[] = "<<<<((((a::<b as operator<";
    demangle_shorten(hostile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symbols_equal_nm),
        cmocka_unit_test(lookups_equal_brute_force),
        cmocka_unit_test(plt_stubs_equal_objdump),
        cmocka_unit_test(field_E3_debug_by_link),
        cmocka_unit_test(field_E3_debug_by_build_id),
        cmocka_unit_test(field_E3_debug_data),
        cmocka_unit_test(field_E5_manglings),
        cmocka_unit_test(field_E7_only_mangled_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
