#include "tui/trace/source_lookup.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/symbols/dwarf_line.h"
#include "core/base/vec.h"
#include "tui/trace/source_file.h"

#define QUEUE_MAX 128
#define CACHE_MAX 8192 /* places; then it starts anew */

enum question_kind { ASK_PLACE, ASK_LINES, ASK_RESOLVE };

struct question {
    enum question_kind kind;
    size_t module;
    uint64_t vaddr;
    char *text; /* file or spec; NULL */
    int line;
};

struct answer {
    struct question q;
    char *file, *why;                /* place */
    int line;
    char *text, *lines[SOURCE_LINES]; /* lines: they point into text */
    struct module_addrs addrs;       /* resolve */
    int rc;
    struct err err;
};

struct source_lookup {
    struct modules *m;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* covers what follows, down to answered */
    pthread_cond_t wake, idle;
    VEC(struct question) queue; /* the last is the next */
    bool quit, working;
    struct question current; /* while working; its text is not ours */
    VEC(struct answer *) answered;
    /* the loop's thread only */
    VEC(struct answer *) cache;
    void (*done)(void *arg, const char *spec, int rc, const struct module_addrs *a, const struct err *err);
    void *done_arg;
};

/* ---- Looking up (the worker) ---- */

static void find_place(struct source_lookup *s, struct answer *a)
{
    struct err err;
    struct dwarf_lines *d = modules_dwarf(s->m, a->q.module, &err);
    struct source_frame frames[16];
    struct source_pos pos = {NULL, 0};
    size_t n = d ? dwarf_lines_frames(d, a->q.vaddr, frames, 16) : 0;
    if (n > 0 && frames[n - 1].decl.file)
        pos = frames[n - 1].decl;
    else if (d && !dwarf_lines_at(d, a->q.vaddr, &pos))
        pos.file = NULL;
    if (pos.file) {
        a->file = xstrdup(pos.file);
        a->line = pos.line;
    } else {
        a->why = xstrdup(d ? "no line numbers for this function" : err.text);
    }
}

static void find_lines(struct source_lookup *s, struct answer *a)
{
    size_t len;
    a->text = source_file_read(modules_root(s->m), a->q.text, &len, NULL);
    if (!a->text) {
        a->why = xasprintf("%s is not here", a->q.text);
        return;
    }
    int first = a->q.line - SOURCE_LINES / 2, number = 1;
    char *line = a->text, *end = a->text + len;
    while (line < end && number < first + SOURCE_LINES) {
        char *nl = memchr(line, '\n', (size_t)(end - line));
        if (nl)
            *nl = '\0';
        if (number >= first)
            a->lines[number - first] = line;
        number++;
        line = nl ? nl + 1 : end;
    }
}

static struct answer *look_up(struct source_lookup *s, struct question q)
{
    struct answer *a = xcalloc(1, sizeof *a);
    a->q = q;
    if (q.kind == ASK_PLACE)
        find_place(s, a);
    else if (q.kind == ASK_LINES)
        find_lines(s, a);
    else
        a->rc = modules_resolve(s->m, q.text, &a->addrs, &a->err);
    return a;
}

static void *work(void *arg)
{
    struct source_lookup *s = arg;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->quit && s->queue.len == 0) {
            pthread_cond_broadcast(&s->idle);
            pthread_cond_wait(&s->wake, &s->lock);
        }
        if (s->quit)
            break;
        struct question q = s->queue.data[--s->queue.len];
        s->working = true;
        s->current = q;
        pthread_mutex_unlock(&s->lock);
        struct answer *a = look_up(s, q);
        pthread_mutex_lock(&s->lock);
        s->working = false;
        vec_push(&s->answered, a);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- Asking (the loop's thread) ---- */

struct source_lookup *source_lookup_new(struct modules *m)
{
    struct source_lookup *s = xcalloc(1, sizeof *s);
    s->m = m;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    pthread_cond_init(&s->idle, NULL);
    s->has_thread = pthread_create(&s->thread, NULL, work, s) == 0;
    return s;
}

static void answer_free(struct answer *a)
{
    free(a->q.text);
    free(a->file);
    free(a->why);
    free(a->text);
    module_addrs_free(&a->addrs);
    free(a);
}

static void cache_clear(struct source_lookup *s)
{
    for (size_t i = 0; i < s->cache.len; i++)
        answer_free(s->cache.data[i]);
    s->cache.len = 0;
}

void source_lookup_free(struct source_lookup *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
    if (s->has_thread)
        pthread_join(s->thread, NULL);
    for (size_t i = 0; i < s->queue.len; i++)
        free(s->queue.data[i].text);
    for (size_t i = 0; i < s->answered.len; i++)
        answer_free(s->answered.data[i]);
    cache_clear(s);
    vec_free(&s->queue);
    vec_free(&s->answered);
    vec_free(&s->cache);
    pthread_cond_destroy(&s->wake);
    pthread_cond_destroy(&s->idle);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static bool same_question(const struct question *a, const struct question *b)
{
    return a->kind == b->kind && a->module == b->module && a->vaddr == b->vaddr && a->line == b->line &&
           (a->text == b->text || (a->text && b->text && strcmp(a->text, b->text) == 0));
}

/* Puts the question last, so that what is looked at now comes first; the oldest ones give way. */
static void enqueue(struct source_lookup *s, const struct question *q)
{
    pthread_mutex_lock(&s->lock);
    if (s->working && same_question(&s->current, q)) {
        pthread_mutex_unlock(&s->lock);
        return;
    }
    for (size_t i = 0; i < s->queue.len; i++) {
        const struct question *old = &s->queue.data[i];
        if (same_question(old, q) || (q->kind == ASK_RESOLVE && old->kind == ASK_RESOLVE)) {
            free(s->queue.data[i].text);
            vec_remove(&s->queue, i);
            break;
        }
    }
    if (s->queue.len >= QUEUE_MAX) {
        free(s->queue.data[0].text);
        vec_remove(&s->queue, 0);
    }
    struct question copy = *q;
    copy.text = q->text ? xstrdup(q->text) : NULL;
    vec_push(&s->queue, copy);
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

static const struct answer *ask(struct source_lookup *s, const struct question *q)
{
    for (size_t i = s->cache.len; i-- > 0;)
        if (same_question(&s->cache.data[i]->q, q))
            return s->cache.data[i];
    enqueue(s, q);
    return NULL;
}

struct source_place source_lookup_place(struct source_lookup *s, size_t module, uint64_t vaddr)
{
    struct question q = {.kind = ASK_PLACE, .module = module, .vaddr = vaddr};
    const struct answer *a = ask(s, &q);
    if (!a)
        return (struct source_place){.waiting = true};
    return (struct source_place){.file = a->file, .line = a->line, .why = a->why};
}

struct source_lines source_lookup_lines(struct source_lookup *s, const char *file, int line)
{
    char *name = xstrdup(file);
    struct question q = {.kind = ASK_LINES, .text = name, .line = line};
    const struct answer *a = ask(s, &q);
    free(name);
    struct source_lines out = {.waiting = !a, .first = line - SOURCE_LINES / 2, .why = a ? a->why : NULL};
    for (int i = 0; a && i < SOURCE_LINES; i++)
        out.line[i] = a->lines[i];
    return out;
}

void source_lookup_resolve(struct source_lookup *s, const char *spec,
                           void (*done)(void *arg, const char *spec, int rc, const struct module_addrs *a,
                                        const struct err *err),
                           void *arg)
{
    char *text = xstrdup(spec);
    struct question q = {.kind = ASK_RESOLVE, .text = text};
    s->done = done;
    s->done_arg = arg;
    enqueue(s, &q);
    free(text);
}

bool source_lookup_poll(struct source_lookup *s)
{
    VEC(struct answer *) got = {0};
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->answered.len; i++)
        vec_push(&got, s->answered.data[i]);
    s->answered.len = 0;
    pthread_mutex_unlock(&s->lock);
    if (s->cache.len > CACHE_MAX)
        cache_clear(s);
    for (size_t i = 0; i < got.len; i++) {
        struct answer *a = got.data[i];
        if (a->q.kind != ASK_RESOLVE) {
            vec_push(&s->cache, a);
            continue;
        }
        if (s->done)
            s->done(s->done_arg, a->q.text, a->rc, &a->addrs, &a->err);
        answer_free(a);
    }
    bool any = got.len > 0;
    vec_free(&got);
    return any;
}

bool source_lookup_busy(struct source_lookup *s)
{
    pthread_mutex_lock(&s->lock);
    bool busy = s->has_thread && (s->queue.len > 0 || s->working || s->answered.len > 0);
    pthread_mutex_unlock(&s->lock);
    return busy;
}

void source_lookup_wait(struct source_lookup *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->has_thread && (s->queue.len > 0 || s->working))
        pthread_cond_wait(&s->idle, &s->lock);
    pthread_mutex_unlock(&s->lock);
}
