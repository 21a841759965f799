#include "tui/trace/source_finder.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "decode/trace/trace.h"
#include "tui/ui/worker.h"

#define ANSWERS_MAX 256 /* then the oldest go */

struct known {
    struct source_question q;
    struct source_answer answer;
};

struct source_finder {
    struct loop *loop;
    void (*ready)(void *arg);
    void *arg;
    struct worker *worker;
    bool busy;
    VEC(struct known) answers;
    /* The worker's. */
    struct known asked;
    struct source_modules *modules;
};

struct source_finder *source_finder_new(struct loop *loop, void (*ready)(void *arg), void *arg)
{
    struct source_finder *f = xcalloc(1, sizeof *f);
    *f = (struct source_finder){.loop = loop, .ready = ready, .arg = arg};
    return f;
}

static void known_free(struct known *k)
{
    free(k->q.callee.file);
    free(k->q.callee.module);
    free(k->q.caller.file);
    free(k->q.caller.module);
    source_answer_free(&k->answer);
    *k = (struct known){0};
}

void source_finder_clear(struct source_finder *f)
{
    worker_stop(f->worker);
    f->worker = NULL;
    f->busy = false;
    for (size_t i = 0; i < f->answers.len; i++)
        known_free(&f->answers.data[i]);
    f->answers.len = 0;
    known_free(&f->asked);
    source_modules_free(f->modules);
    f->modules = NULL;
}

void source_finder_free(struct source_finder *f)
{
    if (!f)
        return;
    source_finder_clear(f);
    vec_free(&f->answers);
    free(f);
}

static void run(void *arg, const atomic_bool *cancel)
{
    struct source_finder *f = arg;
    (void)cancel; /* one look-up; what it costs is opening the files */
    if (!f->modules)
        f->modules = source_modules_new();
    source_answer_find(f->modules, &f->asked.q, &f->asked.answer);
}

static void done(void *arg)
{
    struct source_finder *f = arg;
    worker_stop(f->worker);
    f->worker = NULL;
    f->busy = false;
    if (f->answers.len == ANSWERS_MAX) {
        known_free(&f->answers.data[0]);
        vec_remove(&f->answers, 0);
    }
    vec_push(&f->answers, f->asked);
    f->asked = (struct known){0};
    f->ready(f->arg);
}

static bool same_function(const struct source_function *a, const struct function *b)
{
    if (!b || !a->module)
        return !b && !a->module;
    return a->addr == b->addr && strcmp(a->module, b->module) == 0;
}

static const struct source_answer *look(const struct source_finder *f, const struct function *callee,
                                        const struct function *caller, unsigned flags)
{
    for (size_t i = f->answers.len; i-- > 0;) {
        const struct source_question *q = &f->answers.data[i].q;
        if (q->flags == flags && same_function(&q->callee, callee) && same_function(&q->caller, caller))
            return &f->answers.data[i].answer;
    }
    return NULL;
}

static struct source_function copy(const struct functions *fns, const struct function *f)
{
    const char *file = functions_file(fns, f->module);
    return (struct source_function){file ? xstrdup(file) : NULL, xstrdup(f->module), f->addr};
}

const struct source_answer *source_find(struct source_finder *f, const struct functions *fns,
                                        const struct function *callee, const struct function *caller,
                                        unsigned flags)
{
    /* Of the flags only the call site matters. */
    flags &= SPAN_HAS_SITE | (SPAN_SITE_MASK << SPAN_SITE_SHIFT);
    const struct source_answer *a = look(f, callee, caller, flags);
    if (a || f->busy)
        return a;
    f->asked.q = (struct source_question){.callee = copy(fns, callee), .flags = flags};
    if (caller)
        f->asked.q.caller = copy(fns, caller);
    f->busy = true;
    f->worker = worker_start(f->loop, run, done, f);
    return look(f, callee, caller, flags);
}
