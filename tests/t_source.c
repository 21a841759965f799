/* Where calls were made, where functions stand, and their instructions: of a small program that prints the
 * return address of each of its calls itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/symbols/disasm_text.h"
#include "decode/trace/trace.h"
#include "tests/lib_golden.h"
#include "tests/lib_program.h"
#include "tui/term/glyph.h"
#include "tui/trace/source_answer.h"
#include "tui/timeline/timeline.h"
#include "tui/analysis/v_calls.h"
#include "tui/analysis/v_compare.h"
#include "tui/analysis/v_event.h"
#include "tui/analysis/v_function.h"
#include "tui/timeline/v_timeline.h"

/* The numbers of its lines are those below: the text begins with line 1. */
static const char program[] =
    "#include <stdio.h>\n"                                                                    /* 1 */
    "extern char __executable_start;\n"                                                       /* 2 */
    "#define NOINLINE __attribute__((noinline, noclone))\n"                                   /* 3 */
    "NOINLINE int leaf(int x)\n"                                                              /* 4 */
    "{ printf(\"%lx\\n\", (unsigned long)((char *)__builtin_return_address(0) - &__executable_start)); return x; }\n"
    "static inline __attribute__((always_inline)) int inlined(int x)\n"                       /* 6 */
    "{\n"                                                                                     /* 7 */
    "    return leaf(x + 1) + 1;\n"                                                           /* 8 */
    "}\n"                                                                                     /* 9 */
    "NOINLINE int caller(int x, int (*f)(int))\n"                                             /* 10 */
    "{\n"                                                                                     /* 11 */
    "    int a = leaf(x);\n"                                                                  /* 12 */
    "    a += inlined(a);\n"                                                                  /* 13 */
    "    a += f(a);\n"                                                                        /* 14 */
    "    return a + 1;\n"                                                                     /* 15 */
    "}\n"                                                                                     /* 16 */
    "int main(void)\n"                                                                        /* 17 */
    "{ return caller(1, leaf) == 0; }\n";                                                     /* 18 */

struct rig {
    char *dir, file[512];
    uint64_t leaf, caller, ret[3];
    struct source_modules *modules;
};

static void rig_open(struct rig *r)
{
    char line[64];
    memset(r, 0, sizeof *r);
    r->dir = program_mkdir();
    program_write(r->dir, "prog.c", program);
    assert_true(program_build(r->dir, "prog.c", "prog", "-O1 -g -fPIE -pie"));
    snprintf(r->file, sizeof r->file, "%s/prog", r->dir);
    r->leaf = program_nm(r->dir, "prog", "leaf");
    r->caller = program_nm(r->dir, "prog", "caller");
    assert_true(r->leaf && r->caller);
    FILE *f = popen(r->file, "r");
    for (int i = 0; i < 3; i++) {
        assert_non_null(fgets(line, sizeof line, f));
        r->ret[i] = strtoull(line, NULL, 16);
    }
    pclose(f);
    r->modules = source_modules_new();
}

static void rig_close(struct rig *r)
{
    source_modules_free(r->modules);
    program_rmdir(r->dir);
}

static struct source_answer ask(struct rig *r, unsigned flags)
{
    struct source_answer a;
    struct source_question q = {{r->file, r->file, r->leaf}, {r->file, r->file, r->caller}, flags};
    source_answer_find(r->modules, &q, &a);
    return a;
}

static void assert_place(const struct source_text *t, int line, const char *text)
{
    assert_non_null(t->path);
    assert_non_null(strstr(t->path, "/prog.c"));
    assert_int_equal(t->line, line);
    assert_null(t->addrs);
    assert_true(t->at < t->n);
    assert_int_equal(t->first + (int)t->at, line);
    assert_string_equal(t->lines[t->at], text);
}

static void call_sites(void **state)
{
    static const int lines[] = {12, 8, 14};
    static const char *const texts[] = {"    int a = leaf(x);", "    return leaf(x + 1) + 1;", "    a += f(a);"};
    struct rig r;
    (void)state;
    rig_open(&r);
    for (int i = 0; i < 3; i++) {
        struct source_answer a = ask(&r, span_site_flags(r.ret[i]));
        assert_int_equal(a.call.places, 1);
        assert_place(&a.call, lines[i], texts[i]);
        assert_place(&a.function, 4, "NOINLINE int leaf(int x)");
        assert_false(a.function.newer);
        if (i == 1)
            assert_string_equal(a.call.scope, "inlined (inlined at prog.c:13)");
        else
            assert_null(a.call.scope);
        source_answer_free(&a);
    }
    rig_close(&r);
}

/* Without the bits only the two direct calls can be told, and that there are two. */
static void unknown_site(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r);
    struct source_answer a = ask(&r, 0);
    assert_int_equal(a.call.places, 2);
    assert_place(&a.call, 12, "    int a = leaf(x);");
    source_answer_free(&a);
    /* Bits that belong to no call there. */
    a = ask(&r, span_site_flags(r.ret[0] + 1));
    assert_int_equal(a.call.n, 0);
    assert_null(a.call.path);
    assert_non_null(strstr(a.call.why, "no call"));
    source_answer_free(&a);
    struct source_question outermost = {{r.file, r.file, r.leaf}, {0}, 0};
    source_answer_find(r.modules, &outermost, &a);
    assert_non_null(strstr(a.call.why, "outermost"));
    source_answer_free(&a);
    rig_close(&r);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

/* The source gone: instructions, with the line still known. Stripped of DWARF: without. */
static void instructions(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r);
    assert_true(program_shell(r.dir, "rm prog.c"));
    struct source_answer a = ask(&r, span_site_flags(r.ret[0]));
    assert_int_equal(a.call.line, 12);
    assert_non_null(strstr(a.call.why, "is not here"));
    assert_non_null(a.call.addrs);
    assert_int_equal(a.call.addrs[a.call.at + 1], r.ret[0]);
    assert_int_equal(strncmp(a.call.lines[a.call.at], "call", 4), 0);
    assert_true(ends_with(a.call.lines[a.call.at], "<leaf>"));
    assert_int_equal(a.function.addrs[a.function.at], r.leaf);
    assert_int_equal(a.function.at, 0);
    source_answer_free(&a);
    source_modules_free(r.modules);
    r.modules = source_modules_new();
    assert_true(program_shell(r.dir, "strip -g prog"));
    a = ask(&r, span_site_flags(r.ret[2]));
    assert_null(a.call.path);
    assert_int_equal(a.call.addrs[a.call.at + 1], r.ret[2]);
    assert_non_null(strstr(a.call.lines[a.call.at], "call *%r"));
    assert_non_null(a.call.why);
    source_answer_free(&a);
    rig_close(&r);
}

static void another_source(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r);
    program_write(r.dir, "prog.c", "int x;\n");
    assert_true(program_shell(r.dir, "touch -d '+1 hour' prog.c"));
    struct source_answer a = ask(&r, span_site_flags(r.ret[0]));
    assert_non_null(strstr(a.call.why, "fewer than 12 lines"));
    assert_non_null(a.call.addrs); /* instructions instead */
    assert_true(a.call.newer);
    source_answer_free(&a);
    rig_close(&r);
}

static void nothing_at_hand(void **state)
{
    (void)state;
    char vdso[] = "[vdso]", gone[] = "/no/such/file";
    struct source_modules *m = source_modules_new();
    struct source_answer a;
    struct source_question q = {{NULL, vdso, 0x100}, {NULL, gone, 0x200}, span_site_flags(0x205)};
    source_answer_find(m, &q, &a);
    assert_string_equal(a.function.why, "this code has no file");
    assert_string_equal(a.call.why, "no file of /no/such/file was used");
    source_answer_free(&a);
    q = (struct source_question){{gone, gone, 0x100}, {gone, gone, 0x200}, 0};
    source_answer_find(m, &q, &a);
    assert_non_null(a.function.why);
    assert_int_equal(a.function.n, 0);
    assert_non_null(a.call.why);
    source_answer_free(&a);
    /* A stripped program: its file is there, and no name. */
    q = (struct source_question){{gone, gone, 0}, {NULL, NULL, 0}, 0};
    source_answer_find(m, &q, &a);
    assert_string_equal(a.function.why,
                        "no symbol of /no/such/file names this code: where the function begins is not known");
    source_answer_free(&a);
    source_modules_free(m);
}

/* Bytes assembled by hand: push %rbp; mov %rsp,%rbp; call 0x1010; (06: no instruction in 64 bits); call *%rax;
 * jz 0x1000; ret */
static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xe8, 0x07, 0x00, 0x00, 0x00, 0x06,
                               0xff, 0xd0, 0x74, 0xf2, 0xc3};

static void listing(void **state)
{
    (void)state;
    struct disasm_piece p = {.vaddr = 0x1000, .code = code, .size = sizeof code};
    struct disasm_line line[8];
    size_t at;
    assert_int_equal(disasm_lines(&p, 0x1000, 4, 8, line, &at), 7);
    static const uint64_t addr[] = {0x1000, 0x1001, 0x1004, 0x1009, 0x100a, 0x100c, 0x100e};
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(line[i].vaddr, addr[i]);
    assert_int_equal(at, 0);
    assert_string_equal(line[0].text, "push %rbp");
    assert_string_equal(line[1].text, "mov %rsp, %rbp");
    assert_int_equal(line[2].target, 0x1010);
    assert_string_equal(line[3].text, "(bad)");
    assert_string_equal(line[4].text, "call *%rax");
    assert_int_equal(line[4].target, 0);
    assert_int_equal(line[5].target, 0x1000);
    assert_string_equal(line[5].text, "jz 0x1000");
    assert_string_equal(line[6].text, "ret");
    /* In the middle of an instruction: the one that holds it, and what fits around it. */
    assert_int_equal(disasm_lines(&p, 0x1006, 1, 3, line, &at), 3);
    assert_int_equal(at, 1);
    assert_int_equal(line[0].vaddr, 0x1001);
    assert_int_equal(line[1].vaddr, 0x1004);
    assert_int_equal(disasm_lines(&p, 0x100e, 5, 2, line, &at), 2);
    assert_int_equal(at, 1);
    assert_int_equal(disasm_lines(&p, 0x100f, 1, 8, line, &at), 0);
    assert_int_equal(disasm_lines(&p, 0xfff, 1, 8, line, &at), 0);
    struct disasm_calls calls;
    disasm_find_calls(&p, &calls);
    assert_int_equal(calls.list.len, 2);
    assert_int_equal(calls.list.data[0].vaddr, 0x1004);
    assert_int_equal(calls.list.data[0].ret, 0x1009);
    assert_int_equal(calls.list.data[0].target, 0x1010);
    assert_int_equal(calls.list.data[1].ret, 0x100c);
    assert_int_equal(calls.list.data[1].target, 0);
    disasm_calls_free(&calls);
}

/* ---- On the screen ---- */

/* The two functions of the program, as a trace of one call at the place that is asked for. */
static struct trace *one_call(const struct rig *r, unsigned flags)
{
    struct functions *fns = functions_new();
    functions_set_file(fns, r->file, r->file);
    fn_id caller = functions_intern(fns, r->file, "caller", "caller", r->caller, FN_USER);
    fn_id leaf = functions_intern(fns, r->file, "leaf", "leaf", r->leaf, FN_USER);
    struct trace_builder *b = trace_builder_new(fns);
    size_t thread = trace_builder_thread(b, 42, 42);
    struct trace *t;
    assert_int_equal(trace_builder_enter(b, thread, 1000, caller, 0), 0);
    assert_int_equal(trace_builder_enter(b, thread, 2000, leaf, flags), 0);
    trace_builder_leave(b, thread, 3000, 0);
    trace_builder_leave(b, thread, 9000, 0);
    assert_int_equal(trace_builder_finish(b, &t, NULL), 0);
    trace_builder_free(b);
    return t;
}

static void draw(struct timeline *tl, struct surface *s)
{
    surface_clear(s);
    view_timeline.draw(tl, s, (struct rect){1, 0, surface_rows(s) - 3, surface_cols(s)});
}

/* The editor is asked for at a line of the program. */
static void assert_edits(struct model *m, const struct view_ops *ops, void *view, const char *arg, int line)
{
    m->want.edit_line = 0;
    assert_true(ops->action(view, ACT_SOURCE, arg));
    assert_true(m->want.edit_path && ends_with(m->want.edit_path, "/prog.c"));
    assert_int_equal(m->want.edit_line, line);
}

static void *shown(struct model *m, const struct view_ops *ops, struct surface *s)
{
    void *view = ops->create(m);
    ops->changed(view, MODEL_TRACE);
    if (ops->show)
        ops->show(view);
    ops->draw(view, s, (struct rect){1, 0, surface_rows(s) - 3, surface_cols(s)});
    return view;
}

/* Stacks lead to the source, and calls with folded recursion do. */
static void from_the_merged(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r);
    struct trace *t = one_call(&r, span_site_flags(r.ret[2]));
    struct model *m = model_new(NULL, NULL);
    m->glyphs = glyphs_of(GLYPHS_ASCII);
    struct surface *s = surface_new(30, 100);
    model_set_trace(m, t, "snap 1", NULL, NULL);
    void *tl = shown(m, &view_timeline, s);
    view_timeline.action(tl, ACT_CALLEE, NULL);
    for (int merged = 0; merged < 2; merged++) {
        view_timeline.action(tl, merged ? ACT_MERGED : ACT_RECURSION, NULL);
        view_timeline.action(tl, ACT_CALLEE, NULL);
        view_timeline.action(tl, ACT_DETAILS, NULL);
        draw(tl, s);
        assert_true(golden_find(s, "defined at prog.c:4"));
        assert_edits(m, &view_timeline, tl, NULL, 4);
    }
    view_timeline.destroy(tl);
    surface_free(s);
    model_free(m);
    trace_free(t);
    rig_close(&r);
}

/* leaf() begins in line 4; this call of it, through the pointer, is in line 14. */
static void from_the_lists(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r);
    struct trace *t = one_call(&r, span_site_flags(r.ret[2]));
    struct model *m = model_new(NULL, NULL);
    m->glyphs = glyphs_of(GLYPHS_ASCII);
    struct surface *s = surface_new(30, 100);
    model_set_trace(m, t, "snap 1", NULL, NULL);
    void *v = shown(m, &view_event, s);
    view_event.action(v, ACT_FIRST, NULL);
    view_event.action(v, ACT_DOWN, NULL);
    assert_edits(m, &view_event, v, NULL, 4);
    assert_edits(m, &view_event, v, "call", 14);
    assert_true(view_event.action(v, ACT_SOURCE, "else"));
    assert_true(m->say_severity == SAY_ERROR);
    view_event.destroy(v);
    v = shown(m, &view_function, s);
    view_function.action(v, ACT_FILTER, "leaf");
    assert_edits(m, &view_function, v, NULL, 4);
    assert_edits(m, &view_function, v, "call", 14);
    view_function.action(v, ACT_FILTER, "no such name");
    assert_true(view_function.action(v, ACT_SOURCE, NULL));
    assert_string_equal(m->say, "no function is chosen");
    view_function.destroy(v);
    const struct span *leaf = trace_row(t, 0, 1, &(size_t){0});
    for (int compare = 0; compare < 2; compare++) {
        const struct view_ops *ops = compare ? &view_compare : &view_calls;
        model_name_subject(m, (struct model_subject){.valid = true, .call = true, .fn = leaf->fn, .depth = 1});
        v = shown(m, ops, s);
        assert_true(ops->action(v, compare ? ACT_COMPARE : ACT_CALLS, NULL));
        ops->draw(v, s, (struct rect){1, 0, 27, 100});
        assert_edits(m, ops, v, NULL, 4);
        if (!compare) /* its rows are functions */
            assert_edits(m, ops, v, "call", 14);
        ops->destroy(v);
    }
    surface_free(s);
    model_free(m);
    trace_free(t);
    rig_close(&r);
}

static void on_the_screen(void **state)
{
    struct rig r;
    (void)state;
    rig_open(&r);
    struct trace *t = one_call(&r, span_site_flags(r.ret[2]));
    struct model *m = model_new(NULL, NULL);
    m->glyphs = glyphs_of(GLYPHS_ASCII);
    struct surface *s = surface_new(30, 100);
    struct timeline *tl = view_timeline.create(m);
    model_set_trace(m, t, "snap 1", NULL, NULL);
    view_timeline.changed(tl, MODEL_TRACE);
    view_timeline.action(tl, ACT_CALLEE, NULL);
    draw(tl, s);
    assert_true(golden_find(s, "prog.c:4   depth 1"));
    assert_false(golden_find(s, "defined at"));
    view_timeline.action(tl, ACT_DETAILS, NULL);
    draw(tl, s);
    assert_true(golden_find(s, "defined at prog.c:4"));
    assert_true(golden_find(s, "called at prog.c:14"));
    assert_true(golden_find(s, ">    14      a += f(a);"));
    view_timeline.action(tl, ACT_SOURCE, NULL);
    assert_true(m->want.edit_path && ends_with(m->want.edit_path, "/prog.c"));
    assert_int_equal(m->want.edit_line, 4);
    view_timeline.action(tl, ACT_SOURCE, "call");
    assert_int_equal(m->want.edit_line, 14);
    /* Off, and back without source. */
    view_timeline.action(tl, ACT_DETAILS, NULL);
    draw(tl, s);
    assert_false(golden_find(s, "prog.c"));
    view_timeline.action(tl, ACT_DETAILS, NULL);
    draw(tl, s);
    assert_true(golden_find(s, "prog.c:4   depth 1"));
    assert_false(golden_find(s, "defined at"));
    view_timeline.destroy(tl);
    surface_free(s);
    /* A high screen shows it by itself. */
    s = surface_new(60, 80);
    tl = view_timeline.create(m);
    view_timeline.action(tl, ACT_CALLEE, NULL);
    draw(tl, s);
    assert_true(golden_find(s, "defined at prog.c:4"));
    view_timeline.destroy(tl);
    surface_free(s);
    model_free(m);
    trace_free(t);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_sites),     cmocka_unit_test(unknown_site),
        cmocka_unit_test(instructions),   cmocka_unit_test(another_source),
        cmocka_unit_test(nothing_at_hand), cmocka_unit_test(listing),
        cmocka_unit_test(from_the_lists), cmocka_unit_test(from_the_merged),
        cmocka_unit_test(on_the_screen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
