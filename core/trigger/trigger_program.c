#include "core/trigger/trigger_program.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/symbols/modules.h"
#include "core/symbols/needed.h"

struct program_file {
    const char *path;
    struct modules *modules; /* NULL: not read yet, or cannot be */
};

struct trigger_program {
    char *executable;
    struct needed needed;
    struct program_file *files; /* the program's first */
    size_t n;
};

struct trigger_program *trigger_program_open(const char *executable)
{
    struct trigger_program *p = xcalloc(1, sizeof *p);
    p->executable = xstrdup(executable);
    (void)needed_files(executable, &p->needed, NULL); /* without: its libraries are looked at when they are mapped */
    p->n = 1 + p->needed.n;
    p->files = xcalloc(p->n, sizeof *p->files);
    for (size_t i = 0; i < p->n; i++)
        p->files[i].path = i ? p->needed.paths[i - 1] : p->executable;
    return p;
}

void trigger_program_free(struct trigger_program *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++)
        modules_free(p->files[i].modules);
    free(p->files);
    needed_free(&p->needed);
    free(p->executable);
    free(p);
}

/* Its file's modules; NULL: it cannot be read. */
static struct modules *modules_at_file(struct program_file *f)
{
    if (!f->modules && modules_of_file(f->path, &f->modules, NULL) < 0)
        return NULL;
    return f->modules;
}

/* An address without a file means something only where the program is always loaded at the same place (ET_EXEC). */
static int resolve_address(struct trigger_program *p, const struct trigger *t, uint32_t number,
                           struct trigger_places *out, struct err *err)
{
    struct modules *m = modules_at_file(&p->files[0]);
    const struct module *program = m ? modules_at(m, 0) : NULL;
    if (!program || (program->kind != ELF_KIND_EXEC && program->kind != ELF_KIND_STATIC))
        return err_set(err, MTUI_E_INVAL,
                       "trigger %s: the program does not run yet and may be loaded anywhere; use PROGRAM:%s for an "
                       "address as linked",
                       t->text, t->text);
    return trigger_resolve(m, t, number, out, err);
}

int trigger_program_resolve(struct trigger_program *p, const struct trigger *t, uint32_t number,
                            struct trigger_places *out, struct err *err)
{
    struct err first = {0};
    if (t->kind == TRIGGER_ADDRESS && !t->module)
        return resolve_address(p, t, number, out, err);
    for (size_t i = 0; i < p->n; i++) {
        struct program_file *f = &p->files[i];
        struct err why = {0};
        if (!modules_at_file(f))
            continue;
        int rc = trigger_resolve(f->modules, t, number, out, &why);
        if (rc == 0)
            return 0;
        bool meant = t->module && modules_named(f->modules, t->module);
        if (first.code == 0 || (first.code == MTUI_E_NOENT && (meant || rc != MTUI_E_NOENT)))
            first = why;
    }
    return err_set(err, first.code ? first.code : MTUI_E_NOENT, "%s",
                   first.code ? first.text : "the program's file cannot be read");
}
