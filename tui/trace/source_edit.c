#include "tui/trace/source_edit.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "tui/ui/worker.h"

struct source_edit {
    struct model *m;
    struct worker *worker;
    bool busy, call;
    struct source_question question;
    struct source_answer answer;
};

struct source_edit *source_edit_new(struct model *m)
{
    struct source_edit *e = xcalloc(1, sizeof *e);
    e->m = m;
    return e;
}

static void function_free(struct source_function *f)
{
    free(f->file);
    free(f->module);
}

static void stop(struct source_edit *e)
{
    worker_stop(e->worker);
    e->worker = NULL;
    e->busy = false;
    function_free(&e->question.callee);
    function_free(&e->question.caller);
    e->question = (struct source_question){0};
    source_answer_free(&e->answer);
}

void source_edit_free(struct source_edit *e)
{
    if (!e)
        return;
    stop(e);
    free(e);
}

bool source_edit_parse(struct model *m, const char *arg, bool *call)
{
    *call = arg && strcmp(arg, "call") == 0;
    if (!arg || !*arg || *call)
        return true;
    model_error(m, "source takes nothing, or call: where the function is called");
    return false;
}

static bool has_source(const struct source_text *t)
{
    return t->path && t->n && !t->addrs;
}

void source_edit_answer(struct model *m, const struct source_answer *a, bool call)
{
    const struct source_text *t = call ? &a->call : &a->function;
    if (!call && !has_source(t) && has_source(&a->call)) {
        t = &a->call;
        model_say(m, "its own source is not here: this is where it is called");
    }
    if (has_source(t))
        model_edit_source(m, t->path, t->line);
    else
        model_say(m, "no source: %s", t->why ? t->why : "no line is known");
}

static void run(void *arg, const atomic_bool *cancel)
{
    struct source_edit *e = arg;
    (void)cancel; /* one look-up; what it costs is opening the files */
    struct source_modules *modules = source_modules_new();
    source_answer_find(modules, &e->question, &e->answer);
    source_modules_free(modules);
}

static void done(void *arg)
{
    struct source_edit *e = arg;
    model_say(e->m, "%s", ""); /* no longer looking */
    source_edit_answer(e->m, &e->answer, e->call);
    stop(e);
    model_redraw(e->m);
}

static struct source_function copy(const struct functions *fns, fn_id fn)
{
    const struct function *f = functions_get(fns, fn);
    const char *file = functions_file(fns, f->module);
    return (struct source_function){file ? xstrdup(file) : NULL, xstrdup(f->module), f->addr};
}

/* What is no code ([syscall], [off cpu]) stands in the function that went there. */
static struct source_question ask(const struct trace *t, const struct model_subject *s)
{
    const struct functions *fns = trace_functions(t);
    struct source_question q = {0};
    if (!s->call) {
        q.callee = copy(fns, s->fn);
        return q;
    }
    size_t n = 0, depth = s->depth;
    const struct span *span = &trace_row(t, s->thread, depth, &n)[s->index];
    while (functions_get(fns, span->fn)->kind == FN_PSEUDO && depth > 0)
        span = trace_row_at(t, s->thread, --depth, span->start_ns);
    q.callee = copy(fns, span->fn);
    q.flags = span->flags;
    if (depth > 0)
        q.caller = copy(fns, trace_row_at(t, s->thread, depth - 1, span->start_ns)->fn);
    return q;
}

void source_edit_subject(struct source_edit *e, const struct trace *t, struct model_subject subject,
                         const char *arg)
{
    bool call;
    if (!source_edit_parse(e->m, arg, &call))
        return;
    if (e->busy || !subject.valid) {
        model_say(e->m, e->busy ? "the source is still being looked up" : "no function is chosen");
        return;
    }
    e->question = ask(t, &subject);
    e->call = call;
    e->busy = true;
    model_say(e->m, "looking for the source...");
    struct worker *w = worker_start(e->m->loop, run, done, e);
    if (e->busy) /* else it is done already */
        e->worker = w;
}
