#include "tui/app/demo_program.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/alloc.h"

#define WORKERS    3
#define TABLE_SIZE 4096
#define SLOW_EVERY 16 /* one request in so many takes the slow path */
#define TREE_DEPTH 5

/* Every function below is a frame of its own on the timeline. */
#define FRAME __attribute__((noinline))
/* Keeps a call in last place from becoming a jump. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

struct node {
    struct node *left, *right;
    uint32_t key;
};

struct server {
    unsigned requests, scale;
    uint32_t table[TABLE_SIZE];
    struct node *routes;
    pthread_mutex_t lock; /* guards served */
    uint64_t served;
};

struct worker {
    struct server *server;
    unsigned number;
    uint64_t sum;
};

static FRAME uint32_t mix(uint32_t x, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        x = x * 1664525u + 1013904223u;
    __asm__ volatile("" : "+r"(x)); /* work without a use is work all the same */
    return x;
}

static FRAME void nap(unsigned microseconds)
{
    struct timespec t = {0, (long)microseconds * 1000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
    KEEP_FRAME();
}

/* ---- Warming up ---- */

static FRAME void fill_table(struct server *s)
{
    for (unsigned i = 0; i < TABLE_SIZE; i++)
        s->table[i] = mix(i, s->scale);
    KEEP_FRAME();
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static FRAME void sort_table(struct server *s)
{
    qsort(s->table, TABLE_SIZE, sizeof *s->table, by_value);
    KEEP_FRAME();
}

static FRAME struct node *build_routes(unsigned depth, uint32_t key, unsigned scale)
{
    struct node *n = xmalloc(sizeof *n);
    n->key = mix(key, scale);
    n->left = depth ? build_routes(depth - 1, n->key + 1, scale) : NULL;
    n->right = depth ? build_routes(depth - 1, n->key + 2, scale) : NULL;
    return n;
}

static FRAME void free_routes(struct node *n)
{
    if (!n)
        return;
    free_routes(n->left);
    free_routes(n->right);
    free(n);
}

static FRAME void warm_up(struct server *s)
{
    fill_table(s);
    sort_table(s);
    s->routes = build_routes(2 * TREE_DEPTH, 1, s->scale);
    KEEP_FRAME();
}

/* ---- Serving ---- */

static FRAME uint32_t parse_line(uint32_t x, unsigned scale)
{
    x = mix(x, 60 * scale);
    KEEP_FRAME();
    return x;
}

static FRAME uint32_t parse_headers(uint32_t x, unsigned scale)
{
    for (unsigned i = 0; i < 4; i++)
        x = parse_line(x + i, scale);
    KEEP_FRAME();
    return x;
}

static FRAME uint32_t find_route(const struct node *n, uint32_t x, unsigned scale)
{
    const struct node *next = x & 1 ? n->left : n->right;
    uint32_t y = mix(n->key, 30 * scale);
    if (next)
        y ^= find_route(next, x >> 1, scale);
    KEEP_FRAME();
    return y;
}

static FRAME uint32_t append_text(uint32_t x, unsigned scale)
{
    x = mix(x, 40 * scale);
    KEEP_FRAME();
    return x;
}

static FRAME uint32_t render_block(uint32_t x, unsigned depth, unsigned scale)
{
    x = append_text(x, scale);
    if (depth) {
        x = render_block(x, depth - 1, scale);
        x = render_block(x, depth - 1, scale);
    }
    KEEP_FRAME();
    return x;
}

static FRAME uint32_t render_page(uint32_t x, unsigned scale)
{
    x = render_block(x, TREE_DEPTH - 1, scale);
    KEEP_FRAME();
    return x;
}

static FRAME uint32_t rebuild_cache(struct server *s, uint32_t x)
{
    for (unsigned i = 0; i < 6; i++)
        x = render_page(x, s->scale);
    KEEP_FRAME();
    return x;
}

static FRAME void write_reply(struct server *s, uint32_t x)
{
    mix(x, 100 * s->scale);
    pthread_mutex_lock(&s->lock);
    s->served++;
    mix(x, 20 * s->scale);
    pthread_mutex_unlock(&s->lock);
    KEEP_FRAME();
}

static FRAME uint32_t handle_request(struct server *s, unsigned number)
{
    uint32_t x = parse_headers(s->table[number % TABLE_SIZE], s->scale);
    x ^= find_route(s->routes, x, s->scale);
    x = render_page(x, s->scale);
    write_reply(s, x);
    KEEP_FRAME();
    return x;
}

static FRAME uint32_t handle_slow_request(struct server *s, unsigned number)
{
    uint32_t x = parse_headers(s->table[number % TABLE_SIZE], s->scale);
    x ^= find_route(s->routes, x, s->scale);
    x = rebuild_cache(s, x);
    x = render_page(x, s->scale);
    write_reply(s, x);
    KEEP_FRAME();
    return x;
}

static FRAME void wait_for_request(unsigned microseconds)
{
    nap(microseconds);
    KEEP_FRAME();
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    char name[16];
    snprintf(name, sizeof name, "worker-%u", w->number);
    pthread_setname_np(pthread_self(), name);
    for (unsigned i = 0; i < w->server->requests; i++) {
        wait_for_request(500 * (w->number + 1));
        unsigned number = i * WORKERS + w->number;
        if (number % SLOW_EVERY == SLOW_EVERY - 1)
            w->sum += handle_slow_request(w->server, number);
        else
            w->sum += handle_request(w->server, number);
    }
    return NULL;
}

static FRAME uint64_t serve(struct server *s)
{
    struct worker workers[WORKERS];
    pthread_t threads[WORKERS];
    uint64_t sum = 0;
    unsigned started = 0;
    for (; started < WORKERS; started++) {
        workers[started] = (struct worker){s, started, 0};
        if (pthread_create(&threads[started], NULL, worker_main, &workers[started]) != 0)
            break;
    }
    for (unsigned i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        sum += workers[i].sum;
    }
    return sum;
}

/* ---- The end ---- */

static FRAME uint64_t checksum(const uint32_t *values, unsigned n, unsigned scale)
{
    uint64_t sum = values[0];
    if (n > 64)
        sum = checksum(values, n / 2, scale) + checksum(values + n / 2, n - n / 2, scale);
    else
        mix(values[0], 60 * scale);
    KEEP_FRAME();
    return sum;
}

static FRAME void write_report(const struct server *s, uint64_t sum)
{
    sum += checksum(s->table, TABLE_SIZE, s->scale);
    printf("served %llu requests, checksum %llx\n", (unsigned long long)s->served,
           (unsigned long long)sum);
}

int demo_program(unsigned requests, unsigned scale)
{
    struct server *s = xcalloc(1, sizeof *s);
    s->requests = requests;
    s->scale = scale;
    pthread_mutex_init(&s->lock, NULL);
    warm_up(s);
    write_report(s, serve(s));
    free_routes(s->routes);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return 0;
}
