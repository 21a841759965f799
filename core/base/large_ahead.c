#include "core/base/large_ahead.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/large.h"

#define PAGE 4096u /* the smallest there is */

struct large_ahead {
    size_t count, size;
    pthread_t thread;
    bool tried, started; /* the thread, by the first to take */
    bool stop;
    void *block; /* the one that is ready */
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

struct large_ahead *large_ahead_new(size_t count, size_t size)
{
    struct large_ahead *a = xcalloc(1, sizeof *a);
    a->count = count;
    a->size = size;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    return a;
}

/* A block with all its pages. */
static void *make_ready(const struct large_ahead *a)
{
    void *block = large_alloc(a->count, a->size);
    volatile char *p = block;
    for (size_t i = 0; block && i < a->count * a->size; i += PAGE)
        p[i] = 0;
    return block;
}

static void *work(void *arg)
{
    struct large_ahead *a = arg;
    pthread_mutex_lock(&a->lock);
    while (!a->stop) {
        if (a->block) {
            pthread_cond_wait(&a->changed, &a->lock);
            continue;
        }
        pthread_mutex_unlock(&a->lock);
        void *block = make_ready(a);
        pthread_mutex_lock(&a->lock);
        a->block = block;
        if (!block) /* those who want one will see for themselves */
            break;
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* What is not ready yet is not waited for: the caller does the same work itself. */
void *large_ahead_take(struct large_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    if (!a->tried) {
        a->tried = true;
        a->started = pthread_create(&a->thread, NULL, work, a) == 0;
    }
    void *block = a->block;
    a->block = NULL;
    if (block)
        pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
    return block ? block : large_alloc(a->count, a->size);
}

void large_ahead_free(struct large_ahead *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
    if (a->started)
        pthread_join(a->thread, NULL);
    large_free(a->block, a->count, a->size);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    free(a);
}
