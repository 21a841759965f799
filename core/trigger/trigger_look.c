#include "core/trigger/trigger_look.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/alloc.h"

struct wanted {
    const struct trigger *trigger;
    struct trigger_found found;
};

struct trigger_look {
    pid_t pid;
    struct modules *modules;
    VEC(struct wanted) wanted;
    int rc;
    bool why;
    trigger_look_fn *done;
    void *arg;
    struct loop *loop;
    pthread_t thread;
    bool running;   /* the thread has not been joined, and its post has not come */
    bool abandoned; /* freed while its post was on its way */
    atomic_bool cancel;
};

struct trigger_look *trigger_look_new(pid_t pid, struct modules *modules)
{
    struct trigger_look *k = xcalloc(1, sizeof *k);
    k->pid = pid;
    k->modules = modules;
    atomic_init(&k->cancel, false);
    return k;
}

void trigger_look_add(struct trigger_look *k, const struct trigger *t, uint32_t number)
{
    struct wanted w = {.trigger = t, .found = {.number = number, .rc = MTUI_E_NOENT}};
    vec_push(&k->wanted, w);
}

void trigger_look_ask_why(struct trigger_look *k)
{
    k->why = true;
}

static void look(struct trigger_look *k)
{
    k->rc = k->modules ? modules_refresh(k->modules, NULL) : modules_of_pid(NULL, k->pid, &k->modules, NULL);
    for (size_t i = 0; k->rc >= 0 && i < k->wanted.len && !atomic_load(&k->cancel); i++) {
        struct wanted *w = &k->wanted.data[i];
        w->found.rc = trigger_resolve(k->modules, w->trigger, w->found.number, &w->found.places,
                                      k->why ? &w->found.err : NULL);
    }
}

static void release(struct trigger_look *k)
{
    for (size_t i = 0; i < k->wanted.len; i++)
        trigger_places_free(&k->wanted.data[i].found.places);
    vec_free(&k->wanted);
    modules_free(k->modules);
    free(k);
}

static void on_posted(void *arg)
{
    struct trigger_look *k = arg;
    if (!k->abandoned) {
        pthread_join(k->thread, NULL);
        k->running = false;
        k->done(k->arg, k);
    } else {
        release(k);
    }
}

static void *run(void *arg)
{
    struct trigger_look *k = arg;
    look(k);
    loop_post(k->loop, on_posted, k);
    return NULL;
}

void trigger_look_start(struct trigger_look *k, struct loop *loop, trigger_look_fn *done, void *arg)
{
    k->loop = loop;
    k->done = done;
    k->arg = arg;
    k->running = true;
    if (pthread_create(&k->thread, NULL, run, k) == 0)
        return;
    k->running = false;
    look(k);
    done(arg, k);
}

int trigger_look_rc(const struct trigger_look *k)
{
    return k->rc;
}

struct modules *trigger_look_take_modules(struct trigger_look *k)
{
    struct modules *m = k->modules;
    k->modules = NULL;
    return m;
}

size_t trigger_look_count(const struct trigger_look *k)
{
    return k->wanted.len;
}

struct trigger_found *trigger_look_at(struct trigger_look *k, size_t i)
{
    return &k->wanted.data[i].found;
}

void trigger_look_free(struct trigger_look *k)
{
    if (!k)
        return;
    if (!k->running) {
        release(k);
        return;
    }
    atomic_store(&k->cancel, true);
    pthread_join(k->thread, NULL);
    if (loop_unpost(k->loop, on_posted, k))
        release(k);
    else
        k->abandoned = true; /* on_posted has its turn in this very round, and releases it */
}
