/* core/symbols/fuzzy, core/symbols/match, core/symbols/rank: alignment against exhaustive search, ranking as people expect it,
 * narrowing and slicing that change nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/symbols/fuzzy.h"
#include "core/symbols/match.h"
#include "core/symbols/rank.h"

static uint32_t state_ = 7;
static uint32_t next_random(void)
{
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return state_;
}

static struct fuzzy_word word(const char *s)
{
    struct fuzzy_word w;
    fuzzy_word_set(&w, s, strlen(s));
    return w;
}

static int best(const char *query, const char *text)
{
    struct fuzzy_word w = word(query);
    return fuzzy_score_best(&w, text, strlen(text), NULL);
}

static void subsequences_and_case(void **state)
{
    (void)state;
    assert_true(best("hrq", "handle_request") >= 0);
    assert_int_equal(best("hqr", "handle_request"), -1);
    assert_true(best("hr", "HandleRequest") >= 0);
    assert_int_equal(best("hR", "handle_request"), -1); /* an upper-case letter makes case matter */
    assert_true(best("HR", "HandleRequest") >= 0);
    assert_int_equal(best("longer than", "short"), -1);
    assert_int_equal(best("", "anything"), 0);
    assert_int_equal(best("x", ""), -1);
}

/* The score of one alignment, by the rules of the header, written down once more and plainly. */
static int score_of(const char *text, const uint32_t *at, size_t n)
{
    int score = 0, first = 0;
    for (size_t k = 0; k < n; k++) {
        int bonus = fuzzy_bonus_at(text, at[k]);
        if (k > 0 && at[k] == at[k - 1] + 1) {
            bonus = bonus > first ? bonus : first;
            bonus = bonus > 4 ? bonus : 4;
        } else {
            first = bonus;
            if (k > 0)
                score -= 3 + (int)(at[k] - at[k - 1] - 2);
        }
        score += 16 + (k == 0 ? 2 * bonus : bonus);
    }
    return score;
}

/* The best over all alignments, by trying each. */
static int exhaustive(const char *query, size_t m, const char *text, size_t n, uint32_t *at, size_t k)
{
    if (k == m) {
        int s = score_of(text, at, m);
        return s < 0 ? 0 : s;
    }
    int top = -1;
    for (size_t i = k ? at[k - 1] + 1 : 0; i < n; i++) {
        char c = text[i];
        if ((c >= 'A' && c <= 'Z' ? c + 32 : c) != query[k])
            continue;
        at[k] = (uint32_t)i;
        int s = exhaustive(query, m, text, n, at, k + 1);
        top = s > top ? s : top;
    }
    return top;
}

static void alignments_are_the_best(void **state)
{
    (void)state;
    static const char letters[] = "abAB_:1";
    for (int round = 0; round < 20000; round++) {
        char text[13], query[5];
        size_t n = 1 + next_random() % 12, m = 1 + next_random() % 4;
        for (size_t i = 0; i < n; i++)
            text[i] = letters[next_random() % 7];
        for (size_t i = 0; i < m; i++)
            query[i] = "ab_1"[next_random() % 4];
        text[n] = query[m] = '\0';
        struct fuzzy_word w = word(query);
        uint32_t at[FUZZY_WORD_MAX], tried[FUZZY_WORD_MAX];
        int s = fuzzy_score_best(&w, text, n, at), fast = fuzzy_score_fast(&w, text, n);
        assert_int_equal(s, exhaustive(query, m, text, n, tried, 0));
        assert_int_equal(s < 0, fast < 0);
        if (s < 0)
            continue;
        assert_true(fast <= s);
        for (size_t k = 0; k < m; k++) {
            char c = text[at[k]];
            assert_int_equal(c >= 'A' && c <= 'Z' ? c + 32 : c, query[k]);
            assert_true(at[k] < n && (k == 0 || at[k] > at[k - 1]));
        }
        int again = score_of(text, at, m);
        assert_int_equal(again < 0 ? 0 : again, s);
    }
}

/* Each pair: the first must rank before the second for the query. */
static void ranking_as_expected(void **state)
{
    (void)state;
    static const struct {
        const char *query, *better, *worse;
    } pairs[] = {
        {"handreq", "handle_request", "hash_and_request"},
        {"hr", "handle_request", "chr_open"},
        {"hr", "HandleRequest", "charred"},
        {"request", "handle_request", "x_re_que_st"},
        {"foo", "foo", "xfoo"},
        {"foo", "Http::foo", "Http::xfoo"},
        {"oo", "a_oo", "f_o_o"},
        {"vec", "std::vector", "service_call"},
        {"fmt", "core::fmt::pad", "format"},
        {"mal", "malloc", "normalize"},
        {"open", "open", "fopencookie"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        int a = best(pairs[i].query, pairs[i].better), b = best(pairs[i].query, pairs[i].worse);
        if (a <= b)
            fail_msg("%s: %s (%d) before %s (%d)", pairs[i].query, pairs[i].better, a, pairs[i].worse, b);
    }
}

static size_t ranges(enum match_mode mode, const char *query, const char *text, struct match_range *out)
{
    struct matcher *m;
    assert_int_equal(match_new(mode, query, &m, NULL), 0);
    size_t n = match_ranges(m, text, strlen(text), out, 8);
    match_free(m);
    return n;
}

static int score(enum match_mode mode, const char *query, const char *text)
{
    struct matcher *m;
    assert_int_equal(match_new(mode, query, &m, NULL), 0);
    int s = match_score(m, text, strlen(text), fuzzy_mask(text, strlen(text)));
    match_free(m);
    return s;
}

static void modes(void **state)
{
    (void)state;
    struct match_range r[8];
    assert_int_equal(ranges(MATCH_FUZZY, "handreq", "hash_and_handle_request", r), 2);
    assert_int_equal(r[0].from, 9);
    assert_int_equal(r[0].to, 13);
    assert_int_equal(r[1].from, 16);
    assert_int_equal(r[1].to, 19);
    assert_int_equal(ranges(MATCH_EXACT, "req", "a_xreq_request", r), 1);
    assert_int_equal(r[0].from, 7);
    assert_int_equal(ranges(MATCH_REGEX, "r.q", "handle_Request", r), 1);
    assert_int_equal(r[0].from, 7);
    assert_int_equal(ranges(MATCH_REGEX, "R.q", "handle_request", r), 0);
    assert_int_equal(ranges(MATCH_REGEX, "x*", "handle", r), 0); /* an empty match shows nothing */
    assert_int_equal(score(MATCH_EXACT, "hndl", "handle"), -1);
    assert_true(score(MATCH_EXACT, "request handle", "handle_request") >= 0);
    assert_true(score(MATCH_FUZZY, "request handle", "handle_request") >= 0);
    assert_int_equal(score(MATCH_FUZZY, "request xyz", "handle_request"), -1);
    assert_true(score(MATCH_REGEX, "^Http::.*\\(", "Http::f(int)") >= 0);
    assert_true(score(MATCH_FUZZY, "  ", "anything") >= 0);
    assert_true(score(MATCH_FUZZY, "\xe6\x97\xa5", "x\xe6\x97\xa5y") >= 0);
    assert_int_equal(score(MATCH_REGEX, "(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"), -1);
    struct err err;
    struct matcher *m;
    assert_int_equal(match_new(MATCH_REGEX, "a(", &m, &err), MTUI_E_INVAL);
    assert_non_null(strstr(err.text, "at character 2"));
}

/* ---- rank ---- */

#define N 20000
struct list {
    struct rank_chunk *chunks[N / RANK_CHUNK + 1];
};

static const struct rank_chunk *chunk(void *arg, size_t i)
{
    return ((struct list *)arg)->chunks[i];
}

static const struct rank_item *item(const struct list *l, size_t i)
{
    return &l->chunks[i / RANK_CHUNK]->items[i % RANK_CHUNK];
}

static struct list *list_new(void)
{
    static const char *const parts[] = {"hand", "req", "_", "::", "a", "Con", "9", "x", "le", "uest"};
    struct list *l = calloc(1, sizeof *l);
    for (size_t i = 0; i < N; i++) {
        if (i % RANK_CHUNK == 0)
            l->chunks[i / RANK_CHUNK] = calloc(1, sizeof **l->chunks);
        char *name = calloc(1, 64);
        for (size_t k = 0, n = 1 + next_random() % 8; k < n; k++)
            strcat(name, parts[next_random() % 10]);
        l->chunks[i / RANK_CHUNK]->items[i % RANK_CHUNK] =
            (struct rank_item){name, (uint32_t)strlen(name), 0};
        l->chunks[i / RANK_CHUNK]->masks[i % RANK_CHUNK] = fuzzy_mask(name, strlen(name));
    }
    return l;
}

static void list_free(struct list *l)
{
    for (size_t i = 0; i < N; i++)
        free((char *)(uintptr_t)item(l, i)->text);
    for (size_t i = 0; i <= (N - 1) / RANK_CHUNK; i++)
        free(l->chunks[i]);
    free(l);
}

static size_t count_by_hand(const struct list *l, const char *query, size_t from, size_t to)
{
    struct fuzzy_word w = word(query);
    size_t n = 0;
    for (size_t i = from; i < to; i++)
        n += fuzzy_score_fast(&w, item(l, i)->text, item(l, i)->len) >= 0;
    return n;
}

static void typing_narrows_to_the_same(void **state)
{
    (void)state;
    struct list *l = list_new();
    static const char *const typed[] = {"h", "hr", "hre", "hreq", "hre", "hreC", "", "x9", "q"};
    struct rank *grown = rank_new(chunk, l);
    for (size_t k = 0; k < sizeof typed / sizeof *typed; k++) {
        struct rank *fresh = rank_new(chunk, l);
        assert_int_equal(rank_set(fresh, MATCH_FUZZY, typed[k], 0, N, NULL), 0);
        assert_true(rank_run(fresh, UINT64_MAX));
        assert_int_equal(rank_set(grown, MATCH_FUZZY, typed[k], 0, N, NULL), 0);
        while (!rank_run(grown, 1)) /* long past: one block at a time */
            ;
        assert_int_equal(rank_count(grown), rank_count(fresh));
        assert_int_equal(rank_count(fresh), count_by_hand(l, typed[k], 0, N));
        for (size_t i = 0; i < rank_count(fresh) && i < 300; i++)
            assert_int_equal(rank_at(grown, i), rank_at(fresh, i));
        rank_free(fresh);
    }
    rank_free(grown);
    list_free(l);
}

static void order_is_best_first_and_whole(void **state)
{
    (void)state;
    struct list *l = list_new();
    struct rank *r = rank_new(chunk, l);
    assert_int_equal(rank_set(r, MATCH_FUZZY, "ha", 100, 9000, NULL), 0);
    assert_true(rank_run(r, UINT64_MAX));
    size_t n = rank_count(r);
    assert_int_equal(n, count_by_hand(l, "ha", 100, 9000));
    assert_true(n > 1000);
    rank_at(r, n - 1); /* orders everything */
    bool *seen = calloc(N, 1);
    int before = INT32_MAX;
    for (size_t i = 0; i < n; i++) {
        size_t k = rank_at(r, i);
        assert_true(k >= 100 && k < 9000 && !seen[k]);
        seen[k] = true;
        int s = best("ha", item(l, k)->text);
        assert_true(s >= 0 && s <= before);
        before = s;
    }
    free(seen);
    rank_free(r);
    list_free(l);
}

static void field_E12_the_list_grows_while_typing(void **state)
{
    (void)state;
    struct list *l = list_new();
    struct rank *r = rank_new(chunk, l);
    size_t have = 0;
    char typed[8] = "";
    static const char query[] = "hareq";
    for (size_t k = 0; k < sizeof query - 1; k++) {
        typed[k] = query[k];
        have += 3000;
        assert_int_equal(rank_set(r, MATCH_FUZZY, typed, 0, have, NULL), 0);
        if (k != 2) /* one key comes before the work for the one before is done */
            rank_run(r, UINT64_MAX);
        have += 500;
        rank_grow(r, have);
        rank_run(r, k == 3 ? 1 : UINT64_MAX);
    }
    while (!rank_run(r, UINT64_MAX))
        ;
    assert_int_equal(rank_count(r), count_by_hand(l, query, 0, have));
    assert_int_equal(rank_looked_at(r), have);
    /* a pattern that does not compile leaves the query as it was */
    struct err err;
    assert_int_equal(rank_set(r, MATCH_REGEX, "(", 0, have, &err), MTUI_E_INVAL);
    assert_int_equal(rank_count(r), count_by_hand(l, query, 0, have));
    rank_free(r);
    list_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subsequences_and_case),
        cmocka_unit_test(alignments_are_the_best),
        cmocka_unit_test(ranking_as_expected),
        cmocka_unit_test(modes),
        cmocka_unit_test(typing_narrows_to_the_same),
        cmocka_unit_test(order_is_best_first_and_whole),
        cmocka_unit_test(field_E12_the_list_grows_while_typing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
