/* Search by name, calls of the same function, and the work on their indexes between frames. */
#include <stdarg.h>
#include <stdio.h>

#include "core/base/fmt.h"
#include "core/base/loop.h"
#include "core/base/regex.h"
#include "tui/timeline/timeline.h"

#define JOB_SPANS 400000   /* about a millisecond or two of work */
#define JOB_ROWS 24
#define RANK_ROWS 4096
#define FIND_ROWS 8192     /* two or three milliseconds */
#define QUICK_SPANS 400000 /* done at once */

static void job_run(void *arg);

static bool rank_known(const struct timeline *tl)
{
    return !tl->search || tl->match.of != tl->search || tl->match.rows >= search_rows(tl->search);
}

static void count_rank(struct timeline *tl)
{
    size_t to = tl->match.rows + RANK_ROWS;
    tl->match.rank += search_rank(tl->search, &tl->match.at, tl->match.rows, to);
    tl->match.rows = to;
}

static bool same_selection(const struct selection *a, const struct selection *b)
{
    return a->thread == b->thread && a->depth == b->depth && a->index == b->index;
}

bool tl_match_rank(struct timeline *tl, uint64_t *rank)
{
    if (tl->match.of != tl->search || !same_selection(&tl->match.at, &tl->sel)) {
        tl->match.of = tl->search;
        tl->match.at = tl->sel;
        tl->match.rank = tl->match.rows = 0;
        count_rank(tl);
    }
    if (!rank_known(tl)) {
        tl_job_start(tl);
        if (!rank_known(tl))
            return false;
    }
    *rank = tl->match.rank;
    return true;
}

/* ---- Looking for a match ---- */

/* Goes where it was found, or says that it was not. */
static void found(struct timeline *tl)
{
    struct search_find *f = &tl->job.find;
    struct search *s = f->search;
    if (!f->best.valid && tl->job.from_start) {
        tl->job.from_start = false;
        *f = search_find_first(s, 0, SEARCH_ANY_THREAD);
        return;
    }
    f->search = NULL;
    if (f->best.valid)
        tl_select_call(tl, f->best);
    else
        model_say(tl->m, "%s", tl->job.none);
}

/* Looks at some rows; true: there is nothing (more) to find. */
static bool find_slice(struct timeline *tl, size_t rows)
{
    if (tl->job.find.search && search_find_step(&tl->job.find, rows))
        found(tl);
    return !tl->job.find.search;
}

void tl_find_finish(struct timeline *tl)
{
    while (!find_slice(tl, SIZE_MAX))
        ;
}

/* What is near is found at once, the rest between frames. */
__attribute__((format(printf, 4, 5)))
static void find(struct timeline *tl, struct search_find f, bool from_start, const char *none, ...)
{
    va_list ap;
    va_start(ap, none);
    vsnprintf(tl->job.none, sizeof tl->job.none, none, ap);
    va_end(ap);
    struct search *s = f.search;
    tl->job.find = f;
    tl->job.from_start = from_start;
    if (!s) /* found already, or nowhere to look from */
        found(tl);
    else if (!find_slice(tl, FIND_ROWS))
        tl_job_start(tl);
}

/* One slice; true when there is nothing left to do. */
static bool job_slice(struct timeline *tl)
{
    if (!find_slice(tl, FIND_ROWS))
        return false;
    if (!rank_known(tl)) {
        count_rank(tl);
        return false;
    }
    if (tl->trace && tl->map.cols > 0 && !tl->map.done && tl->pyramid)
        return minimap_step(&tl->map, tl->trace, tl->pyramid, tl->src, JOB_ROWS) &&
               (!tl->calls || search_complete(tl->calls)) &&
               (!tl->search || search_complete(tl->search));
    if (tl->calls && !search_complete(tl->calls))
        search_step(tl->calls, JOB_SPANS);
    else if (tl->search && !search_complete(tl->search))
        search_step(tl->search, JOB_SPANS);
    return (!tl->calls || search_complete(tl->calls)) &&
           (!tl->search || search_complete(tl->search));
}

static void jump_to_longest(struct timeline *tl)
{
    struct selection sel;
    tl->job.jump_to_longest = false;
    if (!tl->calls || !search_longest(tl->calls, &sel))
        return;
    char d[FMT_MAX], n[FMT_MAX];
    tl_select_call(tl, sel);
    const struct span *s = selection_span(tl->src, &sel);
    model_say(tl->m, "%s of %s %s%s: %s", tl->inside ? "widest" : "longest", fmt_count(n, search_count(tl->calls)),
              tl->inside ? "stack" : "call", search_count(tl->calls) == 1 ? "" : "s",
              tl_duration(tl, d, s->end_ns - s->start_ns));
}

static void job_done(struct timeline *tl)
{
    if (tl->job.jump_to_longest && tl->calls && search_complete(tl->calls))
        jump_to_longest(tl);
    model_redraw(tl->m);
}

static void job_run(void *arg)
{
    struct timeline *tl = arg;
    tl->job.timer = 0;
    bool done = job_slice(tl);
    job_done(tl);
    if (!done)
        tl_job_start(tl);
}

void tl_job_start(struct timeline *tl)
{
    if (tl->m->loop) {
        /* A millisecond off for input and drawing between two slices. */
        if (tl->job.timer == 0)
            tl->job.timer = loop_add_timer(tl->m->loop, loop_now_ns(tl->m->loop) + 1000000, job_run, tl);
        return;
    }
    while (!job_slice(tl))
        ;
    job_done(tl);
}

void tl_job_stop(struct timeline *tl)
{
    if (tl->job.timer)
        loop_remove(tl->m->loop, tl->job.timer);
    tl->job = (struct tl_job){0};
}

/* ---- By name ---- */

void tl_search_clear(struct timeline *tl)
{
    if (tl->job.find.search == tl->search)
        tl->job.find.search = NULL;
    search_free(tl->search);
    tl->search = NULL;
    tl->match.of = NULL;
}

static void use_search(struct timeline *tl, struct search *s, fn_id fn)
{
    tl_search_clear(tl);
    tl->search = s;
    tl->search_fn = fn;
    search_step(s, QUICK_SPANS);
    if (!search_complete(s))
        tl_job_start(tl);
}

static struct search *by_function(struct timeline *tl, fn_id fn)
{
    return search_by_function(tl->trace, tl->src, fn, function_names_get(tl->m->names, fn));
}

void tl_search(struct timeline *tl, const char *pattern)
{
    struct err err;
    struct search *s;
    if (!pattern || !*pattern) {
        tl_search_clear(tl);
        return;
    }
    if (search_by_name(&s, tl->trace, tl->src, tl->m->names, pattern, &err)) {
        tl_search_clear(tl);
        model_error(tl->m, "%s", err.text);
        return;
    }
    use_search(tl, s, FN_NONE);
    const struct span *here = selection_span(tl->src, &tl->sel);
    if (here && search_has(s, here->fn))
        return;
    /* Something like "[" is in a name that has no calls, and was perhaps meant as the start of a pattern. */
    struct regex *re = NULL;
    bool no_pattern = regex_compile(pattern, true, &re, &err) == MTUI_E_INVAL;
    regex_free(re);
    find(tl, search_find_first(s, tl->cursor_ns, SEARCH_ANY_THREAD), true, "%.80s has no calls in %s%s%.150s",
         search_text(s), tl->inside ? "what is merged here" : "this trace", no_pattern ? ", and is no pattern: " : "", no_pattern ? err.text : "");
}

void tl_search_function(struct timeline *tl)
{
    const struct span *s = selection_span(tl->src, &tl->sel);
    if (s)
        use_search(tl, by_function(tl, s->fn), s->fn);
}

void tl_search_again(struct timeline *tl, fn_id fn, const char *text)
{
    struct search *s;
    if (fn != FN_NONE)
        use_search(tl, by_function(tl, fn), fn);
    else if (search_by_name(&s, tl->trace, tl->src, tl->m->names, text, NULL) == 0)
        use_search(tl, s, FN_NONE);
}

void tl_search_step(struct timeline *tl, int delta)
{
    if (!tl->search) {
        model_say(tl->m, "nothing to search for: / asks, # takes this function");
        return;
    }
    find(tl, search_find_next(tl->search, &tl->sel, delta, SEARCH_ANY_THREAD), false, "no %s match of /%s/",
         delta > 0 ? "further" : "earlier", search_text(tl->search));
}

/* ---- Calls of the selected span's function ---- */

static struct search *calls_of_selection(struct timeline *tl)
{
    const struct span *s = selection_span(tl->src, &tl->sel);
    if (!s)
        return NULL;
    if (!tl->calls || tl->calls_fn != s->fn) {
        tl->job.find.search = NULL;
        search_free(tl->calls);
        tl->calls = by_function(tl, s->fn);
        tl->calls_fn = s->fn;
    }
    return tl->calls;
}

void tl_call_step(struct timeline *tl, int delta, bool any_thread)
{
    struct search *calls = calls_of_selection(tl);
    if (!calls)
        return;
    find(tl, search_find_next(calls, &tl->sel, delta, any_thread ? SEARCH_ANY_THREAD : tl->sel.thread), false,
         "no %s %s of %s%s", delta > 0 ? "further" : "earlier", tl->inside ? "stack" : "call", search_text(calls),
         any_thread || tl->inside ? "" : " in this thread");
}

void tl_longest_call(struct timeline *tl)
{
    struct search *calls = calls_of_selection(tl);
    if (!calls)
        return;
    tl->job.jump_to_longest = true;
    if (search_step(calls, QUICK_SPANS)) {
        jump_to_longest(tl);
        return;
    }
    model_say(tl->m, "looking through the trace for %s of %s...", tl->inside ? "stacks" : "calls",
              search_text(calls));
    tl_job_start(tl);
}
