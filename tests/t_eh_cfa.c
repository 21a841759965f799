/* core/symbols/eh_cfa against readelf, and what core/trigger/trigger_resolve makes of it: which jumps of a function are
 * exits, against what objdump shows of the same code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/symbols/eh_cfa.h"
#include "core/symbols/modules.h"
#include "core/trigger/trigger.h"
#include "core/trigger/trigger_resolve.h"
#include "tests/lib_eh_damage.h"
#include "tests/lib_program.h"
#include "tests/lib_perf.h"

/* interpret dispatches by computed gotos and keeps registers on the stack; table and method end in calls through
 * pointers, one right away and one with a frame to give back. */
static const char source[] =
    "typedef long step_fn(long);\n"
    "struct object { step_fn *first, *second; };\n"
    "__attribute__((noinline)) long interpret(const unsigned char *pc, long x, step_fn *f) {\n"
    "    static const void *const places[] = {&&end, &&add, &&call, &&twice};\n"
    "    goto *places[*pc++];\n"
    "add: x += f(3); goto *places[*pc++];\n"
    "call: x = f(x); goto *places[*pc++];\n"
    "twice: x = f(f(x) + 1); goto *places[*pc++];\n"
    "end: return x; }\n"
    "__attribute__((noinline)) long table(step_fn *const *f, long i) { return f[i](i); }\n"
    "__attribute__((noinline)) long method(const struct object *o, long x) {\n"
    "    long y = o->first(x) + o->first(x + 1); return o->second(y); }\n"
    "static long inc(long x) { return x + 1; }\n"
    "int main(int argc, char **argv) {\n"
    "    static const unsigned char code[] = {1, 2, 3, 0}; (void)argv;\n"
    "    static step_fn *const all[] = {inc, inc}; static const struct object o = {inc, inc};\n"
    "    return (int)(interpret(code, argc, inc) + table(all, argc & 1) + method(&o, argc)) & 1; }\n";

static struct elf_file *open_file(const char *path)
{
    struct elf_file *f;
    struct err err;
    if (elf_file_open_path(path, &f, &err) < 0)
        fail_msg("%s", err.text);
    return f;
}

/* "LOC CFA …" from readelf; what an expression gives is left open. */
static enum eh_stack stack_of(const char *cfa)
{
    return strcmp(cfa, "exp") == 0 ? EH_STACK_UNKNOWN : strcmp(cfa, "rsp+8") == 0 ? EH_STACK_RETURN : EH_STACK_WITHIN;
}

/* Each row holds up to the next, and the last to the end of the function. Returns the number of rows. */
static size_t check_rows(const char *path)
{
    char command[700], line[4096], cfa[64];
    uint64_t start = 0, end = 0, at = 0;
    enum eh_stack before = EH_STACK_UNKNOWN;
    size_t n = 0;
    bool in_rows = false;
    struct elf_file *f = open_file(path);
    snprintf(command, sizeof command, "readelf --debug-dump=frames-interp '%s' 2>/dev/null", path);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    while (fgets(line, sizeof line, p)) {
        const char *pc = strstr(line, " FDE ") ? strstr(line, " pc=") : NULL;
        if (pc) {
            assert_int_equal(sscanf(pc, " pc=%" SCNx64 "..%" SCNx64, &start, &end), 2);
            in_rows = true;
        } else if (in_rows && sscanf(line, "%" SCNx64 " %63s", &at, cfa) == 2) {
            if (at > start)
                assert_int_equal(eh_cfa_stack_at(f, at - 1), before);
            before = stack_of(cfa);
            assert_int_equal(eh_cfa_stack_at(f, at), before);
            n++;
        } else if (in_rows && line[0] == '\n') { /* none: those of its CIE hold */
            if (at >= start && at < end)
                assert_int_equal(eh_cfa_stack_at(f, end - 1), before);
            in_rows = false;
        }
    }
    pclose(p);
    elf_file_free(f);
    return n;
}

static void rows_equal_readelf(void **state)
{
    char path[512];
    (void)state;
    snprintf(path, sizeof path, "%s/mtui", getenv("MTUI_BUILD"));
    assert_true(check_rows(path) > 1000);
    char *libc = lib_run(NULL, NULL, "ldd %s | awk '$1 ~ /^libc.so/ {printf \"%%s\", $3}'", path);
    if (libc[0]) /* statically linked: none */
        assert_true(check_rows(libc) > 1000);
    free(libc);
}

/* How many instructions of the function objdump shows that match a regular expression of awk. */
static size_t count(const char *dir, const char *name, const char *function, const char *regex)
{
    char *n = lib_run(NULL, NULL, "objdump -d --no-show-raw-insn %s/%s | awk -v RS= '/^[0-9a-f]+ <%s>:/' | "
                      "grep -cE '%s'", dir, name, function, regex);
    size_t count = strtoul(n, NULL, 10);
    free(n);
    return count;
}

struct roles {
    size_t entries, returns, jumps;
};

static struct roles roles_of(const char *dir, const char *name, const char *spec)
{
    char path[512];
    struct modules *m;
    struct err err = {0};
    struct trigger t;
    struct trigger_places places = {0};
    struct roles r = {0};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(modules_of_file(path, &m, &err), 0);
    assert_int_equal(trigger_parse(&t, spec, NULL, &err), 0);
    if (trigger_resolve(m, &t, 0, &places, &err) < 0)
        fail_msg("%s: %s", spec, err.text);
    for (size_t i = 0; i < places.sites.len; i++) {
        enum probe_role role = places.sites.data[i].role;
        r.entries += role == PROBE_ENTRY;
        r.returns += role == PROBE_RETURN;
        r.jumps += role == PROBE_JUMP;
    }
    trigger_places_free(&places);
    trigger_fini(&t);
    modules_free(m);
    return r;
}

#define JUMP "\tjmp +(\\*|[0-9a-f]+ <__x86_indirect_thunk)"

static void build(const char *dir, const char *name, const char *flags)
{
    program_write(dir, "exits.c", source);
    assert_true(program_build(dir, "exits.c", name, flags));
}

/* Only its return instructions leave an interpreter; a tail call through a pointer leaves its function. */
static void computed_gotos_are_no_exits(void **state)
{
    static const char *const flags[] = {"-O2 -fPIE -pie", "-O2 -fno-pie -no-pie", "-O2 -fPIE -pie -fno-omit-frame-pointer",
                                        "-O2 -fPIE -pie -fcf-protection=full"};
    char *dir = program_mkdir();
    (void)state;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        build(dir, "exits", flags[i]);
        size_t returns = count(dir, "exits", "interpret", "\tret");
        assert_true(returns > 0 && count(dir, "exits", "interpret", JUMP) > 0);
        struct roles r = roles_of(dir, "exits", "interpret@return");
        assert_int_equal(r.entries, 1);
        assert_int_equal(r.returns, returns);
        assert_int_equal(r.jumps, 0);
        assert_int_equal(count(dir, "exits", "method", JUMP), 1);
        assert_int_equal(count(dir, "exits", "method", "\tret"), 0);
        assert_int_equal(roles_of(dir, "exits", "method@return").jumps, 1);
        if (strstr(flags[i], "-fPIE")) {
            assert_int_equal(count(dir, "exits", "table", JUMP), 1);
            assert_int_equal(roles_of(dir, "exits", "table@return").jumps + roles_of(dir, "exits", "table@return").returns, 1);
        }
    }
    program_rmdir(dir);
}

/* A jump to a thunk that jumps through a register stands for either. */
static void retpolines(void **state)
{
    char *dir = program_mkdir();
    (void)state;
    program_write(dir, "exits.c", source);
    if (!program_build(dir, "exits.c", "exits", "-O2 -fPIE -pie -fcf-protection=none -mindirect-branch=thunk")) {
        program_rmdir(dir);
        skip();
    }
    assert_true(count(dir, "exits", "interpret", JUMP) > 0);
    struct roles r = roles_of(dir, "exits", "interpret@return");
    assert_int_equal(r.returns, count(dir, "exits", "interpret", "\tret"));
    assert_int_equal(r.jumps, 0);
    r = roles_of(dir, "exits", "method@return");
    assert_int_equal(r.returns + r.jumps, 1);
    r = roles_of(dir, "exits", "table@return");
    assert_int_equal(r.returns + r.jumps, 1);
    program_rmdir(dir);
}

/* Nothing tells then but the instruction itself. */
static void without_unwind_entries(void **state)
{
    char *dir = program_mkdir();
    (void)state;
    build(dir, "exits", "-O2 -fPIE -pie -fno-asynchronous-unwind-tables -fno-unwind-tables");
    assert_int_equal(roles_of(dir, "exits", "method@return").jumps, 1);
    if (count(dir, "exits", "interpret", "\tjmp +\\*.*,8\\)") == count(dir, "exits", "interpret", JUMP))
        assert_int_equal(roles_of(dir, "exits", "interpret@return").jumps, 0);
    program_rmdir(dir);
}

static size_t look(const struct elf_file *f, void *arg)
{
    const uint64_t *function = arg;
    size_t known = 0;
    for (uint64_t at = 0; at < 64; at++)
        known += eh_cfa_stack_at(f, *function + at) != EH_STACK_UNKNOWN;
    return known;
}

/* Something is answered, and nothing breaks. */
static void damaged_entries(void **state)
{
    char *dir = program_mkdir(), path[512];
    (void)state;
    build(dir, "exits", "-O2 -fPIE -pie");
    snprintf(path, sizeof path, "%s/exits", dir);
    uint64_t function = program_nm(dir, "exits", "interpret");
    assert_true(eh_damage(path, true, look, &function) > EH_DAMAGE_ROUNDS);
    program_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_equal_readelf), cmocka_unit_test(computed_gotos_are_no_exits),
        cmocka_unit_test(retpolines),         cmocka_unit_test(without_unwind_entries),
        cmocka_unit_test(damaged_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
