#include "core/symbols/rank.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/alloc.h"
#include "core/symbols/fuzzy.h"
#include "core/base/vec.h"

#define THREADS 2
#define THREADS_FROM 50000 /* candidates; below, a second thread costs more than it brings */
#define PLAIN_BLOCK 4096   /* candidates between two looks at the clock */
#define REGEX_BLOCK 128
#define FAVOUR 12          /* a little more than a word boundary is worth */
#define EXACT_SCORES 16384 /* so many of the best are scored by their best alignment */

typedef VEC(uint32_t) index_vec;
typedef VEC(uint64_t) key_vec;

/* The best `want` keys of those pushed, unordered, in at most twice the room. */
struct top {
    key_vec keys;
    size_t want;
    uint64_t least; /* no key below it can get in */
};

struct rank {
    rank_chunk_fn *chunk;
    void *arg;
    struct matcher *matcher, *helper; /* helper: the second thread's */
    size_t from, to;
    size_t favoured; /* indices below it */
    index_vec base;   /* what the query before matched, in [from, base_end) */
    bool has_base;    /* else the candidates are the range itself */
    size_t base_next; /* of base, looked at */
    size_t next;      /* of the range, looked at */
    index_vec matches;
    struct top top;
    key_vec ordered; /* of the first places */
    bool order_valid;
};

/* ---- Keys: score, then the shorter, then the earlier ---- */

static uint64_t key_of(int score, size_t len, uint32_t index)
{
    uint64_t s = score > 0xffff ? 0xffff : (uint64_t)score, l = len > 0xffff ? 0xffff : len;
    return s << 48 | (0xffff - l) << 32 | (UINT32_MAX - index);
}

static int favour(const struct rank *r, int score, size_t index)
{
    return index < r->favoured ? score + FAVOUR : score;
}

static uint32_t key_index(uint64_t key)
{
    return UINT32_MAX - (uint32_t)key;
}

static int key_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* Moves the n greatest of keys to the front (quickselect). */
static void select_greatest(uint64_t *keys, size_t len, size_t n)
{
    size_t lo = 0, hi = len;
    while (hi - lo > 1) {
        uint64_t a = keys[lo], b = keys[lo + (hi - lo) / 2], c = keys[hi - 1];
        uint64_t pivot = a > b ? (b > c ? b : a > c ? c : a) : (a > c ? a : b > c ? c : b);
        size_t i = lo, j = hi;
        for (;;) {
            while (keys[i] > pivot)
                i++;
            while (keys[j - 1] < pivot)
                j--;
            if (i + 1 >= j)
                break;
            uint64_t t = keys[i];
            keys[i++] = keys[j - 1];
            keys[--j] = t;
        }
        if (n <= i)
            hi = i;
        else
            lo = i;
        if (lo == n || hi == n)
            return;
    }
}

static void top_prune(struct top *t)
{
    if (t->keys.len <= t->want)
        return;
    select_greatest(t->keys.data, t->keys.len, t->want);
    t->keys.len = t->want;
    t->least = UINT64_MAX;
    for (size_t i = 0; i < t->keys.len; i++)
        if (t->keys.data[i] < t->least)
            t->least = t->keys.data[i];
}

static void top_push(struct top *t, uint64_t key)
{
    if (key < t->least)
        return;
    if (!vec_try_push(&t->keys, key))
        return;
    if (t->keys.len >= 2 * t->want)
        top_prune(t);
}

/* ---- Matching ---- */

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct job {
    struct rank *r;
    struct matcher *matcher;
    atomic_size_t *next; /* place in the work, shared */
    size_t end, block;
    bool from_base;
    uint64_t deadline_ns;
    index_vec matches;
    struct top top;
};

static void look_at(struct job *j, size_t index)
{
    const struct rank_chunk *c = j->r->chunk(j->r->arg, index / RANK_CHUNK);
    size_t k = index % RANK_CHUNK;
    const struct rank_item *it = &c->items[k];
    int s = match_score(j->matcher, it->text, it->len, c->masks[k]);
    if (s < 0)
        return;
    if (vec_try_push(&j->matches, (uint32_t)index))
        top_push(&j->top, key_of(favour(j->r, s, index), it->len, (uint32_t)index));
}

/* Blocks are taken in order until the deadline, so what has been looked at is always a prefix once every
 * thread has finished the block it took. */
static void *job_run(void *arg)
{
    struct job *j = arg;
    for (;;) {
        size_t at = atomic_fetch_add(j->next, j->block);
        if (at >= j->end)
            return NULL;
        size_t end = j->end - at < j->block ? j->end : at + j->block;
        for (size_t i = at; i < end; i++)
            look_at(j, j->from_base ? j->r->base.data[i] : i);
        if (now_ns() >= j->deadline_ns)
            return NULL;
    }
}

static void job_merge(struct rank *r, struct job *j)
{
    for (size_t i = 0; i < j->matches.len; i++)
        if (!vec_try_push(&r->matches, j->matches.data[i]))
            break;
    for (size_t i = 0; i < j->top.keys.len; i++)
        top_push(&r->top, j->top.keys.data[i]);
    vec_free(&j->matches);
    vec_free(&j->top.keys);
}

/* Looks at [*place, end) of the base or of the range. */
static void run_part(struct rank *r, size_t *place, size_t end, bool from_base, uint64_t deadline_ns)
{
    atomic_size_t next = *place;
    struct job jobs[THREADS];
    pthread_t thread;
    bool second = end - *place >= THREADS_FROM && r->helper;
    for (int i = 0; i < THREADS; i++)
        jobs[i] = (struct job){.r = r,
                               .matcher = i ? r->helper : r->matcher,
                               .next = &next,
                               .end = end,
                               .block = match_mode_of(r->matcher) == MATCH_REGEX ? REGEX_BLOCK
                                                                                 : PLAIN_BLOCK,
                               .from_base = from_base,
                               .deadline_ns = deadline_ns,
                               .top = {.want = r->top.want, .least = r->top.least}};
    second = second && pthread_create(&thread, NULL, job_run, &jobs[1]) == 0;
    job_run(&jobs[0]);
    if (second)
        pthread_join(thread, NULL);
    job_merge(r, &jobs[0]);
    job_merge(r, &jobs[1]);
    size_t reached = atomic_load(&next);
    *place = reached < end ? reached : end;
}

bool rank_run(struct rank *r, uint64_t deadline_ns)
{
    if (rank_done(r))
        return true;
    r->order_valid = false;
    if (match_is_empty(r->matcher)) {
        r->next = r->to;
        return true;
    }
    bool worked = r->has_base && r->base_next < r->base.len;
    if (worked)
        run_part(r, &r->base_next, r->base.len, true, deadline_ns);
    bool whole = !r->has_base || r->base_next == r->base.len;
    if (whole && r->next < r->to && (!worked || now_ns() < deadline_ns)) /* never without progress */
        run_part(r, &r->next, r->to, false, deadline_ns);
    return rank_done(r);
}

bool rank_done(const struct rank *r)
{
    return r->next >= r->to && (!r->has_base || r->base_next == r->base.len);
}

/* ---- The query ---- */

struct rank *rank_new(rank_chunk_fn *chunk, void *arg)
{
    struct rank *r = xcalloc(1, sizeof *r);
    r->chunk = chunk;
    r->arg = arg;
    r->top.want = RANK_FIRST;
    match_new(MATCH_FUZZY, "", &r->matcher, NULL);
    return r;
}

void rank_free(struct rank *r)
{
    if (!r)
        return;
    match_free(r->matcher);
    match_free(r->helper);
    vec_free(&r->base);
    vec_free(&r->matches);
    vec_free(&r->top.keys);
    vec_free(&r->ordered);
    free(r);
}

/* Uses the matches of the query before when the new one can only match fewer and everything up to
 * `next` had been looked at. */
static void take_base(struct rank *r, bool narrows, size_t from, size_t to)
{
    bool whole = !r->has_base || r->base_next == r->base.len;
    if (narrows && whole && from == r->from && r->next <= to && !match_is_empty(r->matcher)) {
        index_vec old = r->base;
        r->base = r->matches;
        r->matches = old;
        r->has_base = true;
    } else {
        r->has_base = false;
        r->next = from;
    }
    r->base_next = 0;
    r->matches.len = 0;
}

int rank_set(struct rank *r, enum match_mode mode, const char *query, size_t from, size_t to,
             struct err *err)
{
    struct matcher *m;
    int rc = match_new(mode, query, &m, err);
    if (rc < 0)
        return rc;
    take_base(r, match_narrows(r->matcher, m), from, to);
    match_free(r->matcher);
    match_free(r->helper);
    r->matcher = m;
    r->helper = match_clone(m);
    r->from = from;
    r->to = to;
    r->top = (struct top){.keys = r->top.keys, .want = RANK_FIRST};
    r->top.keys.len = 0;
    r->order_valid = false;
    return 0;
}

void rank_favour(struct rank *r, size_t below)
{
    r->favoured = below;
}

void rank_grow(struct rank *r, size_t to)
{
    if (to > r->to)
        r->to = to;
}

size_t rank_count(const struct rank *r)
{
    return match_is_empty(r->matcher) ? r->next - r->from : r->matches.len;
}

size_t rank_looked_at(const struct rank *r)
{
    return r->next - r->from;
}

struct matcher *rank_matcher(struct rank *r)
{
    return r->matcher;
}

/* ---- Order ---- */

/* The fast score chose them; the best alignment orders them. */
static void order(struct rank *r)
{
    top_prune(&r->top);
    r->ordered.len = 0;
    for (size_t i = 0; i < r->top.keys.len; i++) {
        uint64_t key = r->top.keys.data[i];
        uint32_t index = key_index(key);
        if (r->top.want <= EXACT_SCORES && match_mode_of(r->matcher) == MATCH_FUZZY) {
            const struct rank_item *it =
                &r->chunk(r->arg, index / RANK_CHUNK)->items[index % RANK_CHUNK];
            int s = match_score_best(r->matcher, it->text, it->len);
            key = key_of(favour(r, s, index), it->len, index);
        }
        vec_push(&r->ordered, key);
    }
    qsort(r->ordered.data, r->ordered.len, sizeof *r->ordered.data, key_order);
    r->order_valid = true;
}

/* Collects more of the best from the matches at hand. */
static void widen(struct rank *r, size_t place)
{
    while (r->top.want <= place)
        r->top.want *= 4;
    r->top.keys.len = 0;
    r->top.least = 0;
    for (size_t i = 0; i < r->matches.len; i++) {
        uint32_t index = r->matches.data[i];
        const struct rank_chunk *c = r->chunk(r->arg, index / RANK_CHUNK);
        const struct rank_item *it = &c->items[index % RANK_CHUNK];
        int s = match_score(r->matcher, it->text, it->len, c->masks[index % RANK_CHUNK]);
        top_push(&r->top, key_of(favour(r, s, index), it->len, index));
    }
    r->order_valid = false;
}

size_t rank_at(struct rank *r, size_t place)
{
    if (match_is_empty(r->matcher))
        return r->from + place;
    if (place >= r->top.want)
        widen(r, place);
    if (!r->order_valid)
        order(r);
    return place < r->ordered.len ? key_index(r->ordered.data[place]) : r->from;
}
