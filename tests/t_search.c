/* tui/timeline/search, tui/timeline/selection, tui/ui/name, decode/trace/fold_recursion: against plain lists of all spans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "decode/trace/fold_recursion.h"
#include "tests/lib_gentrace.h"
#include "tui/ui/name.h"
#include "tui/timeline/search.h"

struct entry {
    const struct span *span;
    struct selection at;
};

static int by_order(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->span->start_ns != y->span->start_ns)
        return x->span->start_ns < y->span->start_ns ? -1 : 1;
    if (x->at.thread != y->at.thread)
        return x->at.thread < y->at.thread ? -1 : 1;
    if (x->at.depth != y->at.depth)
        return x->at.depth < y->at.depth ? -1 : 1;
    return x->at.index < y->at.index ? -1 : x->at.index > y->at.index;
}

/* Every span that the search has, in order. */
static struct entry *all_matches(const struct trace *t, const struct search *s, size_t *count)
{
    size_t cap = 0, n = 0, k;
    struct entry *e = NULL;
    for (size_t i = 0; i < trace_thread_count(t); i++)
        for (size_t d = 0; d < trace_thread(t, i)->depths; d++) {
            const struct span *row = trace_row(t, i, d, &k);
            for (size_t j = 0; j < k; j++) {
                if (!search_has(s, row[j].fn))
                    continue;
                if (n == cap)
                    e = xrealloc(e, (cap = cap ? 2 * cap : 64) * sizeof *e);
                e[n++] = (struct entry){&row[j], {true, i, d, j}};
            }
        }
    qsort(e, n, sizeof *e, by_order);
    *count = n;
    return e;
}

static void check_walk(struct search *s, const struct entry *e, size_t n)
{
    struct selection at;
    assert_int_equal(search_first(s, 0, SEARCH_ANY_THREAD, &at), n > 0);
    for (size_t i = 0; i < n; i++) {
        assert_memory_equal(&at.index, &e[i].at.index, sizeof at.index);
        assert_int_equal(at.thread, e[i].at.thread);
        assert_int_equal(at.depth, e[i].at.depth);
        struct selection next = at;
        assert_int_equal(search_next(s, &at, 1, SEARCH_ANY_THREAD, &next), i + 1 < n);
        struct selection back;
        if (i + 1 < n) {
            assert_true(search_next(s, &next, -1, SEARCH_ANY_THREAD, &back));
            assert_int_equal(back.index, at.index);
            assert_int_equal(back.depth, at.depth);
            assert_int_equal(back.thread, at.thread);
        }
        at = next;
    }
    if (n > 0)
        assert_false(search_next(s, &e[0].at, -1, SEARCH_ANY_THREAD, &at));
}

static void matches_in_order(void **state)
{
    (void)state;
    uint64_t seed = 4;
    for (unsigned round = 0; round < 6; round++) {
        struct trace *t = gentrace_random(&(struct gentrace){.spans = 30000,
                                                             .threads = 1 + round,
                                                             .depth = 8,
                                                             .functions = round % 2 ? 500 : 40,
                                                             .base_ns = UINT64_C(1) << 50,
                                                             .step_ns = round == 2 ? 1 : 300,
                                                             .seed = 3 + round});
        struct flame_source *src = flame_source_new(t, NULL);
        struct search *s = search_by_function(t, src, 7, "seven");
        size_t n;
        struct entry *e = all_matches(t, s, &n);
        assert_true(n > 10);
        /* Before the index is there, half way, and with it. */
        if (n < 2000)
            check_walk(s, e, n);
        search_step(s, 15000);
        assert_false(search_complete(s));
        check_walk(s, e, n);
        while (!search_step(s, 5000))
            ;
        check_walk(s, e, n);
        assert_int_equal(search_count(s), n);
        assert_int_equal(search_percent(s), 100);
        const struct entry *longest = e;
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(search_rank(s, &e[i].at, 0, search_rows(s)), i + 1);
            if (e[i].span->end_ns - e[i].span->start_ns >
                longest->span->end_ns - longest->span->start_ns)
                longest = &e[i];
        }
        struct selection best;
        assert_true(search_longest(s, &best));
        const struct span *b = selection_span(src, &best);
        assert_int_equal(b->end_ns - b->start_ns, longest->span->end_ns - longest->span->start_ns);
        /* One thread only. */
        size_t thread = gen_random(&seed) % trace_thread_count(t), k = 0;
        struct selection at;
        for (bool ok = search_first(s, 0, thread, &at); ok;
             ok = search_next(s, &at, 1, thread, &at)) {
            while (k < n && e[k].at.thread != thread)
                k++;
            assert_true(k < n && at.index == e[k].at.index && at.depth == e[k].at.depth);
            k++;
        }
        while (k < n && e[k].at.thread != thread)
            k++;
        assert_int_equal(k, n);
        free(e);
        search_free(s);
        flame_source_free(src);
        trace_free(t);
    }
}

static void field_F14_names_and_patterns(void **state)
{
    (void)state;
    struct trace *t = gentrace_parse("thread 10 a\n"
                                     "+ 100 alpha\n + 110 Alphabet\n - 120\n + 130 operator()\n - 140\n"
                                     "+ 150 beta::alpha\n - 160\n + 170 f1\n - 180\n + 190 f22\n - 195\n- 200\n");
    struct flame_source *src = flame_source_new(t, NULL);
    struct function_names *names = function_names_new();
    function_names_set(names, trace_functions(t), NAMES_SHORT);
    const struct {
        const char *pattern;
        size_t functions;
    } cases[] = {{"alpha", 3}, {"Alpha", 1}, {"=alpha", 1}, {"operator()", 1},
                 {"^f\\d+$", 2}, {"beta::", 1}, {"ALPHA", 0}, {"f(", 0}, {"", 6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct search *s = NULL;
        struct err err = {0};
        int rc = search_by_name(&s, t, src, names, cases[i].pattern, &err);
        assert_int_equal(rc, cases[i].functions ? 0 : MTUI_E_NOENT);
        if (rc == 0)
            assert_int_equal(search_functions(s), cases[i].functions);
        else
            assert_non_null(strstr(err.text, cases[i].pattern));
        if (strcmp(cases[i].pattern, "f(") == 0)
            assert_non_null(strstr(err.text, "at character 2: missing closing parenthesis"));
        search_free(s);
    }
    function_names_free(names);
    flame_source_free(src);
    trace_free(t);
}

static void selection_walks(void **state)
{
    (void)state;
    struct trace *t = gentrace_random(&(struct gentrace){
        .spans = 20000, .threads = 3, .depth = 9, .functions = 50, .base_ns = 7, .step_ns = 60, .seed = 9});
    struct pyramid *p;
    assert_int_equal(pyramid_new(&p, t, NULL, NULL), 0);
    struct flame_source *src = flame_source_new(t, p);
    for (size_t i = 0; i < trace_thread_count(t); i++)
        for (size_t d = 0; d < trace_thread(t, i)->depths; d++) {
            size_t n, below = 0;
            const struct span *row = trace_row(t, i, d, &n), *kids = NULL;
            kids = trace_row(t, i, d + 1, &below);
            for (size_t k = 0; k < n; k += 7) {
                const struct span *s = &row[k];
                struct selection sel = {true, i, d, k};
                if (s->end_ns == s->start_ns)
                    continue;
                uint64_t sum = 0;
                size_t longest = SIZE_MAX;
                for (size_t j = 0; j < below; j++) {
                    if (kids[j].start_ns < s->start_ns || kids[j].end_ns > s->end_ns ||
                        kids[j].start_ns == kids[j].end_ns)
                        continue;
                    sum += kids[j].end_ns - kids[j].start_ns;
                    if (longest == SIZE_MAX || kids[j].end_ns - kids[j].start_ns >
                                                   kids[longest].end_ns - kids[longest].start_ns)
                        longest = j;
                }
                assert_int_equal(selection_child_time(src, p, &sel), sum);
                assert_int_equal(selection_child_time(src, NULL, &sel), sum);
                if (longest == SIZE_MAX)
                    continue;
                assert_true(selection_longest_child(src, &sel));
                assert_int_equal(sel.depth, d + 1);
                assert_int_equal(sel.index, longest);
                assert_true(selection_caller(src, &sel));
                assert_int_equal(sel.index, k);
                uint64_t middle = kids[longest].start_ns;
                assert_true(selection_callee(src, &sel, middle));
                assert_int_equal(selection_span(src, &sel)->start_ns, middle);
            }
            struct selection first = {true, i, d, 0}, last = {true, i, d, n - 1};
            assert_false(selection_sibling(src, &first, -1));
            assert_false(selection_sibling(src, &last, 1));
        }
    struct selection none = {0};
    assert_null(selection_span(src, &none));
    assert_false(selection_at(src, 0, 99, 5, &none));
    flame_source_free(src);
    pyramid_free(p);
    trace_free(t);
}

static void folding(void **state)
{
    (void)state;
    struct trace *t = gentrace_parse("thread 10 a\n"
                                     "+ 100 main\n + 110 fib\n + 120 fib\n + 130 leaf\n - 140\n + 150 fib\n"
                                     "+ 160 leaf\n - 170\n - 180\n - 190\n + 195 leaf\n - 197\n - 200\n"
                                     "+ 210 odd\n + 220 even\n + 230 odd\n - 240\n - 250\n - 260\n - 300\n"
                                     "gap 270 280 lost\n");
    struct trace *f = NULL;
    struct err err;
    assert_int_equal(fold_recursion(t, NULL, &f, &err), 0);
    assert_int_equal(trace_check(f, &err), 0);
    const struct {
        size_t depth;
        uint64_t start, end;
        const char *name;
    } want[] = {{0, 100, 300, "main"}, {1, 110, 200, "fib"},  {1, 210, 260, "odd"}, {2, 130, 140, "leaf"},
                {2, 160, 170, "leaf"}, {2, 195, 197, "leaf"}, {2, 220, 250, "even"}, {3, 230, 240, "odd"}};
    size_t seen[5] = {0}, n;
    assert_int_equal(trace_thread(f, 0)->spans, 8);
    for (size_t i = 0; i < 8; i++) {
        const struct span *row = trace_row(f, 0, want[i].depth, &n), *s = &row[seen[want[i].depth]++];
        assert_true(seen[want[i].depth] <= n);
        assert_int_equal(s->start_ns, want[i].start);
        assert_int_equal(s->end_ns, want[i].end);
        assert_string_equal(functions_get(trace_functions(f), s->fn)->name, want[i].name);
    }
    assert_non_null(trace_gaps(f, &n));
    assert_int_equal(n, 1);
    trace_free(f);
    trace_free(t);
    /* A random trace without direct recursion comes out as it went in. */
    t = gentrace_random(&(struct gentrace){
        .spans = 5000, .threads = 2, .depth = 6, .functions = 31, .base_ns = 1, .step_ns = 9, .seed = 2});
    assert_int_equal(fold_recursion(t, NULL, &f, &err), 0);
    assert_int_equal(trace_check(f, &err), 0);
    for (size_t i = 0; i < 2; i++) {
        uint64_t recursive = 0;
        for (size_t d = 1; d < trace_thread(t, i)->depths; d++) {
            const struct span *row = trace_row(t, i, d, &n);
            for (size_t k = 0; k < n; k++)
                recursive += trace_row_at(t, i, d - 1, row[k].start_ns)->fn == row[k].fn;
        }
        assert_true(trace_thread(f, i)->spans <= trace_thread(t, i)->spans);
        if (recursive == 0)
            assert_int_equal(trace_thread(f, i)->spans, trace_thread(t, i)->spans);
    }
    trace_free(f);
    trace_free(t);
}

static void short_names(void **state)
{
    (void)state;
    const struct {
        const char *whole, *no_templates, *parameters, *bare;
    } cases[] = {
        {"main", "main", "main", "main"},
        {"f(int, char*)", "f(int, char*)", "f(int, char*)", "f"},
        {"std::map<int, Foo<T> >::find(Map<int> const&) const", "std::map::find(Map<int> const&) const",
         "find(Map<int> const&) const", "find"},
        {"operator<<(std::ostream&, Foo const&)", "operator<<(std::ostream&, Foo const&)",
         "operator<<(std::ostream&, Foo const&)", "operator<<"},
        {"ns::Foo::operator()(int) const", "ns::Foo::operator()(int) const", "operator()(int) const", "operator()"},
        {"bool operator< <int>(A<int>, A<int>)", "bool operator< (A<int>, A<int>)", "bool operator< (A<int>, A<int>)",
         "bool operator< "},
        {"(anonymous namespace)::run(int)", "(anonymous namespace)::run(int)", "run(int)", "run"},
        {"a::b(int)::{lambda(char)#1}::operator()(char) const", "a::b::{lambda(char)#1}::operator()(char) const",
         "operator()(char) const", "operator()"},
        {"a::f(void (*)(b::c))", "a::f(void (*)(b::c))", "f(void (*)(b::c))", "f"},
        {"a::f(int) lib/b.so", "a::f(int) lib/b.so", "f(int) lib/b.so", "f"},
        {"a::f lib/b.so", "a::f lib/b.so", "f lib/b.so", "f lib/b.so"},
        {"<alloc::vec::Vec<T> as core::ops::Drop>::drop", "<alloc::vec::Vec<T> as core::ops::Drop>::drop", "drop",
         "drop"},
        {"core::ptr::read::<u8>", "core::ptr::read", "read", "read"},
        {"weird<unclosed(", "weird<unclosed(", "weird<unclosed(", "weird<unclosed("},
        {"x::", "x::", "x::", "x::"},
        {"", "", "", ""},
    };
    static const unsigned parts[] = {NAME_WHOLE, NAME_SCOPES | NAME_PARAMETERS, NAME_PARAMETERS, 0};
    char out[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *want[] = {cases[i].whole, cases[i].no_templates, cases[i].parameters, cases[i].bare};
        for (size_t k = 0; k < 4; k++) {
            name_write(out, sizeof out, cases[i].whole, parts[k]);
            assert_string_equal(out, want[k]);
        }
    }
    name_write(out, sizeof out, "a<b>::c<d>(e<f>)", NAME_SCOPES | NAME_TEMPLATES);
    assert_string_equal(out, "a<b>::c<d>");
    assert_int_equal(name_write(out, 5, "abcdefgh", NAME_WHOLE), 4);
    assert_string_equal(out, "abcd");
}

static void names_in_a_room(void **state)
{
    (void)state;
    static const char handle[] = "app::Pool<int>::handle(std::string const&, long)";
    const struct {
        const char *name;
        bool overload;
        size_t cols;
        const char *want;
    } cases[] = {
        {handle, true, 48, handle},
        {handle, true, 47, "app::Pool::handle(std::string const&, long)"},
        {handle, true, 43, "app::Pool::handle(std::string const&, long)"},
        {handle, true, 42, "handle(std::string const&, long)"},
        {handle, true, 32, "handle(std::string const&, long)"},
        {handle, true, 31, "handle(std::string const&, lon…"},
        {handle, true, 9, "handle(s…"},
        {handle, true, 8, "handle"},
        {handle, true, 6, "handle"},
        {handle, true, 5, "hand…"},
        {handle, true, 3, "ha…"},
        {handle, true, 2, "ha"},
        {handle, true, 0, ""},
        {handle, false, 48, handle},
        {handle, false, 47, "app::Pool<int>::handle"},
        {handle, false, 22, "app::Pool<int>::handle"},
        {handle, false, 21, "app::Pool::handle"},
        {handle, false, 16, "handle"},
        {handle, false, 5, "hand…"},
        {"helper a/libplug.so", false, 19, "helper a/libplug.so"},
        {"helper a/libplug.so", false, 12, "helper a/li…"},
    };
    char out[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t len = name_fit(out, sizeof out, cases[i].name, cases[i].overload, cases[i].cols, 0x2026);
        assert_string_equal(out, cases[i].want);
        assert_int_equal(len, strlen(cases[i].want));
    }
    name_fit(out, sizeof out, handle, true, 10, '~');
    assert_string_equal(out, "handle(st~");
    name_cut(out, sizeof out, "abcd", 4, 0x2026);
    assert_string_equal(out, "abcd");
    name_cut(out, sizeof out, "abcde", 4, 0x2026);
    assert_string_equal(out, "abc…");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_in_order), cmocka_unit_test(field_F14_names_and_patterns),
        cmocka_unit_test(selection_walks),  cmocka_unit_test(folding),
        cmocka_unit_test(short_names),      cmocka_unit_test(names_in_a_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
