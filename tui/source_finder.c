#include "tui/source_finder.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/dwarf_line.h"
#include "core/vec.h"
#include "tui/worker.h"

#define FRAMES_MAX 16

struct answer {
    char *module;
    uint64_t addr;
    struct source_place place;
};

struct source_finder {
    struct loop *loop;
    void (*ready)(void *arg);
    void *arg;
    struct worker *worker;
    bool busy;
    VEC(struct answer) answers;
    /* The worker's: the question, and the module it opened last. */
    struct answer asked;
    char *open_module;
    struct dwarf_lines *lines;
};

struct source_finder *source_finder_new(struct loop *loop, void (*ready)(void *arg), void *arg)
{
    struct source_finder *f = xcalloc(1, sizeof *f);
    *f = (struct source_finder){.loop = loop, .ready = ready, .arg = arg};
    return f;
}

static void answer_free(struct answer *a)
{
    free(a->module);
    free((char *)(uintptr_t)a->place.file);
    *a = (struct answer){0};
}

void source_finder_clear(struct source_finder *f)
{
    worker_stop(f->worker);
    f->worker = NULL;
    f->busy = false;
    for (size_t i = 0; i < f->answers.len; i++)
        answer_free(&f->answers.data[i]);
    f->answers.len = 0;
    answer_free(&f->asked);
    dwarf_lines_free(f->lines);
    free(f->open_module);
    f->lines = NULL;
    f->open_module = NULL;
}

void source_finder_free(struct source_finder *f)
{
    if (!f)
        return;
    source_finder_clear(f);
    vec_free(&f->answers);
    free(f);
}

static void open_lines(struct source_finder *f, const char *module)
{
    struct elf_file *elf;
    if (f->open_module && strcmp(f->open_module, module) == 0)
        return;
    dwarf_lines_free(f->lines);
    free(f->open_module);
    f->lines = NULL;
    f->open_module = xstrdup(module);
    if (elf_file_open_path(module, &elf, NULL))
        return;
    struct debug_search search = {.root = "", .path = module};
    if (dwarf_lines_open(elf, &search, &f->lines, NULL))
        f->lines = NULL;
    elf_file_free(elf);
}

static void run(void *arg, const atomic_bool *cancel)
{
    struct source_finder *f = arg;
    struct source_frame frames[FRAMES_MAX];
    struct source_pos pos = {0};
    (void)cancel; /* one look-up; what it costs is opening the file */
    open_lines(f, f->asked.module);
    if (!f->lines)
        return;
    /* The outermost frame at a function's first instruction is the function itself. */
    size_t n = dwarf_lines_frames(f->lines, f->asked.addr, frames, FRAMES_MAX);
    if (n > 0 && frames[n - 1].decl.line > 0)
        pos = frames[n - 1].decl;
    else if (!dwarf_lines_at(f->lines, f->asked.addr, &pos))
        return;
    if (pos.file)
        f->asked.place = (struct source_place){xstrdup(pos.file), pos.line};
}

static void done(void *arg)
{
    struct source_finder *f = arg;
    worker_stop(f->worker);
    f->worker = NULL;
    f->busy = false;
    vec_push(&f->answers, f->asked);
    f->asked = (struct answer){0};
    f->ready(f->arg);
}

static const struct source_place *known(const struct source_finder *f, const struct function *fn)
{
    for (size_t i = f->answers.len; i-- > 0;)
        if (f->answers.data[i].addr == fn->addr && strcmp(f->answers.data[i].module, fn->module) == 0)
            return &f->answers.data[i].place;
    return NULL;
}

const struct source_place *source_find(struct source_finder *f, const struct function *fn)
{
    static const struct source_place nowhere = {0};
    if (fn->addr == 0 || fn->module[0] != '/')
        return &nowhere;
    const struct source_place *place = known(f, fn);
    if (place || f->busy)
        return place;
    f->asked = (struct answer){.module = xstrdup(fn->module), .addr = fn->addr};
    f->busy = true;
    f->worker = worker_start(f->loop, run, done, f);
    return known(f, fn);
}
