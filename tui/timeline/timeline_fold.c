/* The trace with direct recursion folded: a worker makes it, and it takes the trace's place when it is
 * there. */
#include "decode/trace/fold_recursion.h"
#include "tui/timeline/timeline.h"

bool tl_is_folding(const struct timeline *tl)
{
    return tl->folding.worker != NULL;
}

unsigned tl_fold_percent(struct timeline *tl)
{
    uint64_t done = atomic_load_explicit(&tl->folding.done, memory_order_relaxed), all = tl->folding.spans;
    return all == 0 || done >= all ? 99 : (unsigned)(done * 99 / all);
}

static void run(void *arg, const atomic_bool *cancel)
{
    struct tl_folding *f = &((struct timeline *)arg)->folding;
    const struct fold_options options = {.cancel = cancel, .done = &f->done};
    f->rc = fold_recursion(f->from, &options, &f->made, &f->err);
}

void tl_fold_stop(struct timeline *tl)
{
    worker_stop(tl->folding.worker);
    tl->folding.worker = NULL;
    trace_free(tl->folding.made);
    tl->folding.made = NULL;
}

/* As the trace is. */
static void show_all(struct timeline *tl)
{
    tl->fold = false;
    if (tl->folded)
        tl_show_trace(tl, NULL);
}

static void finished(void *arg)
{
    struct timeline *tl = arg;
    struct trace *made = tl->folding.made;
    tl->folding.made = NULL;
    tl_fold_stop(tl);
    if (tl->folding.rc < 0) {
        model_error(tl->m, "%s", tl->folding.err.text);
        show_all(tl);
        return;
    }
    bool again = tl->folded; /* more of it: nothing moves */
    tl_show_trace(tl, made);
    if (again)
        return;
    tl_scroll_to_selection(tl);
    model_say(tl->m, "direct recursion shows as one call");
}

void tl_fold_start(struct timeline *tl)
{
    struct tl_folding *f = &tl->folding;
    tl_fold_stop(tl);
    if (!tl->fold || !tl->sel.valid) /* nothing is called: nothing to fold */
        return;
    f->from = tl->m->trace;
    f->spans = 0;
    for (size_t i = 0; i < trace_thread_count(f->from); i++)
        f->spans += trace_thread(f->from, i)->spans;
    atomic_store(&f->done, 0);
    f->worker = worker_start(tl->m->loop, run, finished, tl);
}

void tl_set_fold(struct timeline *tl, bool fold)
{
    if (!tl->trace || fold == tl->fold)
        return;
    tl->touched = true;
    tl->fold = fold;
    if (fold) {
        tl_fold_start(tl);
        return;
    }
    tl_fold_stop(tl);
    show_all(tl);
    tl_scroll_to_selection(tl);
    model_say(tl->m, "every level of recursion shows");
}

bool tl_fold_cancel(struct timeline *tl)
{
    if (!tl_is_folding(tl))
        return false;
    tl_set_fold(tl, false);
    return true;
}
