#include "decode/trace/trace.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/large.h"
#include "decode/trace/trace_priv.h"

const char *gap_cause_name(enum gap_cause cause)
{
    static const char *const names[GAP_CAUSES] = {
        [GAP_LOST] = "lost",           [GAP_OVERFLOW] = "overflow",   [GAP_ERROR] = "error",
        [GAP_NO_IMAGE] = "no-image",   [GAP_UNTRACED] = "untraced",   [GAP_NO_SAMPLE] = "no-sample",
        [GAP_OFF_CPU] = "off-cpu",     [GAP_NOT_DECODED] = "not-decoded",
    };
    return (size_t)cause < GAP_CAUSES ? names[cause] : "unknown";
}

const char *mark_kind_name(enum mark_kind kind)
{
    static const char *const names[] = {
        [MARK_TRIGGER] = "trigger",     [MARK_HIT] = "hit",             [MARK_FREQUENCY] = "frequency", [MARK_PTWRITE] = "ptwrite",
        [MARK_MIGRATION] = "migration", [MARK_SNAPSHOT] = "snapshot",   [MARK_NOTE] = "note",
    };
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

static void free_texts(struct text_chunk *c)
{
    while (c) {
        struct text_chunk *next = c->next;
        free(c);
        c = next;
    }
}

void trace_free(struct trace *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->ntracks; i++) {
        struct track *k = &t->tracks[i];
        large_free(k->spans, (size_t)k->info.spans, sizeof *k->spans);
        free(k->row_first);
        free(k->nested);
        free(k->comm);
    }
    free(t->tracks);
    free(t->by_tid);
    free(t->gaps);
    free(t->marks);
    free_texts(t->texts);
    functions_free(t->functions);
    free(t);
}

const struct trace_info *trace_info(const struct trace *t)
{
    return &t->info;
}

const struct functions *trace_functions(const struct trace *t)
{
    return t->functions;
}

size_t trace_thread_count(const struct trace *t)
{
    return t->ntracks;
}

const struct trace_thread *trace_thread(const struct trace *t, size_t i)
{
    return &t->tracks[i].info;
}

ssize_t trace_find_thread(const struct trace *t, pid_t tid)
{
    size_t lo = 0, hi = t->ntracks;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (t->by_tid[mid].tid < tid)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < t->ntracks && t->by_tid[lo].tid == tid ? (ssize_t)t->by_tid[lo].thread : -1;
}

const struct span *trace_row(const struct trace *t, size_t thread, size_t depth, size_t *n)
{
    *n = 0;
    if (thread >= t->ntracks || depth >= t->tracks[thread].info.depths)
        return NULL;
    const struct track *k = &t->tracks[thread];
    *n = k->row_first[depth + 1] - k->row_first[depth];
    return k->spans + k->row_first[depth];
}

const uint64_t *trace_row_nested(const struct trace *t, size_t thread, size_t depth, size_t *first)
{
    *first = 0;
    if (thread >= t->ntracks || depth >= t->tracks[thread].info.depths)
        return NULL;
    *first = t->tracks[thread].row_first[depth];
    return t->tracks[thread].nested;
}

const struct span *trace_row_at(const struct trace *t, size_t thread, size_t depth,
                                uint64_t time_ns)
{
    size_t n = 0;
    const struct span *row = trace_row(t, thread, depth, &n);
    size_t lo = 0, hi = n; /* the first span that starts after time_ns */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (row[mid].start_ns <= time_ns)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? &row[lo - 1] : NULL;
}

const struct gap *trace_gaps(const struct trace *t, size_t *n)
{
    *n = t->ngaps;
    return t->gaps;
}

size_t trace_gap_count(const struct trace *t, pid_t tid, uint64_t from_ns, uint64_t to_ns)
{
    size_t n, count = 0;
    const struct gap *g = trace_gaps(t, &n);
    for (size_t i = 0; i < n && g[i].start_ns < to_ns; i++)
        count += (!tid || !g[i].tid || g[i].tid == tid) && gap_touches(&g[i], from_ns, to_ns);
    return count;
}

const struct mark *trace_marks(const struct trace *t, size_t *n)
{
    *n = t->nmarks;
    return t->marks;
}

const char *trace_note_at(const struct trace *t, pid_t tid, uint64_t time_ns)
{
    size_t lo = 0, hi = t->nmarks;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (t->marks[mid].time_ns < time_ns)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < t->nmarks && t->marks[lo].time_ns == time_ns; lo++)
        if (t->marks[lo].tid == tid && t->marks[lo].kind == MARK_NOTE)
            return t->marks[lo].detail;
    return NULL;
}

/* ---- trace_check ---- */

static int broken(struct err *err, const struct track *k, size_t depth, size_t i, const char *what)
{
    const struct span *s = &k->spans[k->row_first[depth] + i];
    return err_set(err, MTUI_E_FORMAT,
                   "tid %d, depth %zu, span %zu (%llu to %llu ns): %s", (int)k->info.tid, depth, i,
                   (unsigned long long)s->start_ns, (unsigned long long)s->end_ns, what);
}

/* The row's spans against themselves and against the row above. The parent is the last span of that
 * row which starts at or before the child: both rows are sorted, so one pass finds all. */
static int check_row(const struct trace *t, const struct track *k, size_t depth, struct err *err)
{
    const struct span *row = k->spans + k->row_first[depth];
    size_t n = k->row_first[depth + 1] - k->row_first[depth];
    const struct span *up = depth ? k->spans + k->row_first[depth - 1] : NULL;
    size_t nup = depth ? k->row_first[depth] - k->row_first[depth - 1] : 0, p = 0;
    size_t nfn = functions_count(t->functions);
    if (n == 0)
        return err_set(err, MTUI_E_FORMAT, "tid %d: row %zu is empty", (int)k->info.tid, depth);
    for (size_t i = 0; i < n; i++) {
        const struct span *s = &row[i];
        if (s->depth != depth)
            return broken(err, k, depth, i, "stands in the wrong row");
        if (s->start_ns > s->end_ns)
            return broken(err, k, depth, i, "ends before it starts");
        if (s->fn >= nfn)
            return broken(err, k, depth, i, "names no function of the table");
        if (s->start_ns < k->info.first_ns || s->end_ns > k->info.last_ns)
            return broken(err, k, depth, i, "lies outside its thread's time");
        if (i && row[i - 1].end_ns > s->start_ns)
            return broken(err, k, depth, i, "overlaps the span before it");
        if (!depth)
            continue;
        while (p + 1 < nup && up[p + 1].start_ns <= s->start_ns)
            p++;
        if (up[p].start_ns > s->start_ns || up[p].end_ns < s->end_ns)
            return broken(err, k, depth, i, "lies outside every span of the row above");
    }
    return 0;
}

static int check_track(const struct trace *t, size_t thread, struct err *err)
{
    const struct track *k = &t->tracks[thread];
    if (thread) {
        const struct trace_thread *before = &t->tracks[thread - 1].info;
        if (before->pid > k->info.pid ||
            (before->pid == k->info.pid && before->tid >= k->info.tid))
            return err_set(err, MTUI_E_FORMAT, "threads out of order at tid %d", (int)k->info.tid);
    }
    if (k->info.first_ns > k->info.last_ns || k->info.first_ns < t->info.first_ns ||
        k->info.last_ns > t->info.last_ns)
        return err_set(err, MTUI_E_FORMAT, "tid %d: its time lies outside the trace's",
                       (int)k->info.tid);
    if ((k->info.depths ? k->row_first[k->info.depths] : 0) != k->info.spans)
        return err_set(err, MTUI_E_FORMAT, "tid %d: rows and span count differ",
                       (int)k->info.tid);
    for (size_t d = 0; d < k->info.depths; d++) {
        int rc = check_row(t, k, d, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int check_gaps_and_marks(const struct trace *t, struct err *err)
{
    for (size_t i = 0; i < t->ngaps; i++) {
        const struct gap *g = &t->gaps[i], *b = i ? g - 1 : g;
        if (g->start_ns > g->end_ns || g->start_ns < t->info.first_ns ||
            g->end_ns > t->info.last_ns)
            return err_set(err, MTUI_E_FORMAT, "gap %zu has a wrong time range", i);
        if (b->start_ns > g->start_ns || (b->start_ns == g->start_ns && b->tid > g->tid))
            return err_set(err, MTUI_E_FORMAT, "gap %zu is out of order", i);
    }
    for (size_t i = 0; i < t->nmarks; i++) {
        const struct mark *m = &t->marks[i], *b = i ? m - 1 : m;
        if (m->time_ns < t->info.first_ns || m->time_ns > t->info.last_ns)
            return err_set(err, MTUI_E_FORMAT, "mark %zu lies outside the trace's time", i);
        if (b->time_ns > m->time_ns || (b->time_ns == m->time_ns && b->tid > m->tid))
            return err_set(err, MTUI_E_FORMAT, "mark %zu is out of order", i);
    }
    return 0;
}

#define CPU_MARKS 100000 /* looked at in either direction */

int trace_cpu_at(const struct trace *t, size_t thread, uint64_t time_ns)
{
    const struct trace_thread *th = trace_thread(t, thread);
    int from, to;
    size_t lo = 0, hi = t->nmarks;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (t->marks[mid].time_ns <= time_ns)
            lo = mid + 1;
        else
            hi = mid;
    }
    size_t i = lo;
    for (size_t k = 0; i > 0 && k < CPU_MARKS; k++)
        if (t->marks[--i].tid == th->tid && t->marks[i].kind == MARK_MIGRATION &&
            sscanf(t->marks[i].detail, MIGRATION_DETAIL, &from, &to) == 2)
            return to;
    if (i > 0)
        return -1;
    for (size_t k = 0; lo < t->nmarks && k < CPU_MARKS; k++, lo++)
        if (t->marks[lo].tid == th->tid && t->marks[lo].kind == MARK_MIGRATION &&
            sscanf(t->marks[lo].detail, MIGRATION_DETAIL, &from, &to) == 2)
            return from;
    return lo < t->nmarks ? -1 : th->last_cpu;
}

int trace_check(const struct trace *t, struct err *err)
{
    if (t->info.first_ns > t->info.last_ns)
        return err_set(err, MTUI_E_FORMAT, "the trace ends before it starts");
    for (size_t i = 0; i < t->ntracks; i++) {
        int rc = check_track(t, i, err);
        if (rc)
            return rc;
    }
    return check_gaps_and_marks(t, err);
}
