#include "core/trigger/trigger_prepare.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/trigger/trigger.h"
#include "core/trigger/trigger_program.h"

struct prepared_process {
    pid_t pid;
    struct modules *modules; /* NULL: taken */
    struct trigger_places *places;
    bool incomplete; /* it lacks a trigger, which another may have */
};

/* A trigger in the program that is to be started. */
struct prepared_look {
    bool known; /* and not taken */
    int rc;
    struct err err;
    struct trigger_places places;
};

struct trigger_prepared {
    size_t n_triggers, n;
    struct prepared_process *process;
    char *executable; /* NULL: none is to be started */
    struct prepared_look *look;
};

void trigger_prepared_free(struct trigger_prepared *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++) {
        for (size_t k = 0; k < p->n_triggers; k++)
            trigger_places_free(&p->process[i].places[k]);
        free(p->process[i].places);
        modules_free(p->process[i].modules);
    }
    for (size_t i = 0; p->look && i < p->n_triggers; i++)
        trigger_places_free(&p->look[i].places);
    free(p->look);
    free(p->executable);
    free(p->process);
    free(p);
}

static int prepare_one(struct modules *m, const char *spec, size_t number,
                       const struct trigger_conditions *when, struct trigger_places *places,
                       struct err *err)
{
    struct trigger t;
    int rc = trigger_parse(&t, spec, when, err);
    if (rc < 0)
        return rc;
    rc = trigger_resolve(m, &t, (uint32_t)number, places, err);
    trigger_fini(&t);
    return rc;
}

int trigger_prepare(const pid_t *pids, size_t n_pids, char *const *specs, size_t n,
                    const struct trigger_conditions *when, const atomic_bool *cancel,
                    struct trigger_prepared **out, struct err *err)
{
    struct trigger_prepared *p = xcalloc(1, sizeof *p);
    int rc = 0;
    p->n_triggers = n;
    p->process = xcalloc(n_pids ? n_pids : 1, sizeof *p->process);
    for (; rc == 0 && p->n < n_pids; p->n++) {
        struct prepared_process *one = &p->process[p->n];
        one->pid = pids[p->n];
        one->places = xcalloc(n ? n : 1, sizeof *one->places);
        rc = modules_of_pid(NULL, one->pid, &one->modules, err);
        for (size_t i = 0; rc == 0 && i < n; i++) {
            rc = prepare_one(one->modules, specs[i], i, when, &one->places[i], err);
            if (n_pids > 1 && (rc == MTUI_E_NOENT || rc == MTUI_E_NOTSUP)) {
                one->incomplete = true;
                rc = 0;
            }
            if (rc == 0 && cancel && atomic_load(cancel))
                rc = err_set(err, MTUI_E_CANCEL, "given up");
        }
    }
    if (rc < 0)
        trigger_prepared_free(p);
    else
        *out = p;
    return rc;
}

static int look_for(struct trigger_program *program, const char *spec, size_t number,
                    const struct trigger_conditions *when, struct prepared_look *look, struct err *err)
{
    struct trigger t;
    int rc = trigger_parse(&t, spec, when, err);
    if (rc < 0)
        return rc;
    look->rc = trigger_program_resolve(program, &t, (uint32_t)number, &look->places, &look->err);
    look->known = true;
    trigger_fini(&t);
    return 0;
}

int trigger_prepare_program(const char *executable, char *const *specs, size_t n,
                            const struct trigger_conditions *when, const atomic_bool *cancel,
                            struct trigger_prepared **out, struct err *err)
{
    struct trigger_prepared *p = xcalloc(1, sizeof *p);
    struct trigger_program *program = trigger_program_open(executable);
    int rc = 0;
    p->n_triggers = n;
    p->executable = xstrdup(executable);
    p->look = xcalloc(n ? n : 1, sizeof *p->look);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = look_for(program, specs[i], i, when, &p->look[i], err);
        if (rc == 0 && cancel && atomic_load(cancel))
            rc = err_set(err, MTUI_E_CANCEL, "given up");
    }
    trigger_program_free(program);
    if (rc < 0)
        trigger_prepared_free(p);
    else
        *out = p;
    return rc;
}

bool trigger_prepared_take_program(struct trigger_prepared *p, const char *executable, size_t i, size_t n,
                                   struct trigger_places *places, int *rc, struct err *err)
{
    if (!p || !p->executable || strcmp(p->executable, executable) != 0 || p->n_triggers != n || !p->look[i].known)
        return false;
    struct prepared_look *look = &p->look[i];
    look->known = false;
    *rc = look->rc;
    *places = look->places;
    look->places = (struct trigger_places){0};
    if (look->rc < 0 && err)
        *err = look->err;
    return true;
}

bool trigger_prepared_take(struct trigger_prepared *p, pid_t pid, struct modules **modules,
                           struct trigger_places *places, size_t n)
{
    for (size_t i = 0; i < p->n; i++) {
        struct prepared_process *one = &p->process[i];
        if (one->pid != pid || !one->modules || p->n_triggers != n)
            continue;
        *modules = one->modules;
        one->modules = NULL;
        for (size_t k = 0; k < n; k++) {
            places[k] = one->places[k];
            one->places[k] = (struct trigger_places){0};
        }
        return !one->incomplete;
    }
    return false;
}
