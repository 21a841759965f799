#include "tui/timeline/search.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/alloc.h"
#include "core/base/regex.h"
#include "core/base/vec.h"

#define BLOCK 256
#define UNKNOWN UINT16_MAX

struct search_row {
    size_t thread, depth, n;
    size_t first_block; /* in search.counts */
    uint64_t count;     /* matches, complete when the index is */
};

struct search {
    struct flame_source *src;
    char *text;
    uint8_t *set; /* a bit per function */
    size_t nfunctions, in_set;
    VEC(struct search_row) rows;
    uint16_t *counts; /* of each block: matches in it; UNKNOWN: not looked at yet */
    size_t nblocks, next_row, next_block; /* the next to be looked at: row, and block in it */
    uint64_t spans, seen, count;
    struct selection longest; /* of those looked at */
    uint64_t longest_ns, longest_start_ns;
};

static struct search *new_search(const struct trace *t, struct flame_source *src, const char *text)
{
    struct search *s = xcalloc(1, sizeof *s);
    s->src = src;
    s->text = xstrdup(text);
    s->nfunctions = functions_count(trace_functions(t));
    s->set = xcalloc(s->nfunctions / 8 + 1, 1);
    for (size_t i = 0; i < trace_thread_count(t); i++)
        for (size_t d = 0; d < trace_thread(t, i)->depths; d++) {
            struct search_row row = {.thread = i, .depth = d, .first_block = s->nblocks};
            trace_row(t, i, d, &row.n);
            if (row.n == 0)
                continue;
            s->spans += row.n;
            s->nblocks += (row.n + BLOCK - 1) / BLOCK;
            vec_push(&s->rows, row);
        }
    s->counts = xcalloc(s->nblocks + 1, sizeof *s->counts);
    for (size_t i = 0; i < s->nblocks; i++)
        s->counts[i] = UNKNOWN;
    return s;
}

static void add_function(struct search *s, fn_id fn)
{
    if (fn >= s->nfunctions || search_has(s, fn))
        return;
    s->set[fn / 8] |= (uint8_t)(1u << fn % 8);
    s->in_set++;
}

/* Smart case: a capital in the pattern makes case matter. */
static bool contains(const char *name, const char *pattern, bool with_case)
{
    return with_case ? strstr(name, pattern) != NULL : strcasestr(name, pattern) != NULL;
}

static bool has_capital(const char *s)
{
    for (; *s; s++)
        if (*s >= 'A' && *s <= 'Z')
            return true;
    return false;
}

static void add_by_text(struct search *s, struct function_names *names, const char *pattern)
{
    bool with_case = has_capital(pattern), exact = pattern[0] == '=' && pattern[1];
    const char *name;
    for (fn_id fn = 0; fn < s->nfunctions; fn++)
        for (int i = 0; (name = function_names_form(names, fn, i)); i++)
            if (exact ? strcmp(name, pattern + 1) == 0 : contains(name, pattern, with_case))
                add_function(s, fn);
}

static void add_by_pattern(struct search *s, struct function_names *names, struct regex *re)
{
    const char *name;
    for (fn_id fn = 0; fn < s->nfunctions; fn++)
        for (int i = 0; (name = function_names_form(names, fn, i)); i++)
            if (regex_match(re, name, strlen(name), NULL, NULL))
                add_function(s, fn);
}

int search_by_name(struct search **out, const struct trace *t, struct flame_source *src, struct function_names *names,
                   const char *pattern, struct err *err)
{
    struct search *s = new_search(t, src, pattern);
    add_by_text(s, names, pattern);
    int rc = 0;
    struct regex *re = NULL;
    if (s->in_set == 0 && (rc = regex_compile(pattern, true, &re, err)) == 0) {
        add_by_pattern(s, names, re);
        regex_free(re);
    }
    if (s->in_set == 0) {
        search_free(s);
        if (rc == 0)
            return err_set(err, MTUI_E_NOENT, "no function matches \"%s\"", pattern);
        err_prefix(err, "no function has \"%.200s\" in its name, and it is no pattern", pattern);
        if (err)
            err->code = MTUI_E_NOENT;
        return MTUI_E_NOENT;
    }
    *out = s;
    return 0;
}

struct search *search_by_function(const struct trace *t, struct flame_source *src, fn_id fn, const char *name)
{
    struct search *s = new_search(t, src, name);
    add_function(s, fn);
    return s;
}

void search_free(struct search *s)
{
    if (!s)
        return;
    free(s->text);
    free(s->set);
    vec_free(&s->rows);
    free(s->counts);
    free(s);
}

const char *search_text(const struct search *s)
{
    return s->text;
}

bool search_has(const struct search *s, fn_id fn)
{
    return fn < s->nfunctions && s->set[fn / 8] >> fn % 8 & 1;
}

size_t search_functions(const struct search *s)
{
    return s->in_set;
}

bool search_complete(const struct search *s)
{
    return s->next_row >= s->rows.len;
}

unsigned search_percent(const struct search *s)
{
    return s->spans ? (unsigned)(s->seen * 100 / s->spans) : 100;
}

static const struct span *spans_of(struct search *s, const struct search_row *row)
{
    return flame_source_row(s->src, row->thread, row->depth).spans;
}

static void note_longest(struct search *s, const struct search_row *row, const struct span *span, size_t index)
{
    uint64_t length = span->end_ns - span->start_ns;
    if (s->longest.valid && (length < s->longest_ns ||
                             (length == s->longest_ns && span->start_ns >= s->longest_start_ns)))
        return;
    s->longest = (struct selection){true, row->thread, row->depth, index};
    s->longest_ns = length;
    s->longest_start_ns = span->start_ns;
}

bool search_step(struct search *s, size_t max_spans)
{
    for (size_t done = 0; done < max_spans && s->next_row < s->rows.len;) {
        struct search_row *row = &s->rows.data[s->next_row];
        const struct span *spans = spans_of(s, row);
        size_t from = s->next_block * BLOCK, to = from + BLOCK < row->n ? from + BLOCK : row->n;
        uint16_t count = 0;
        for (size_t k = from; k < to; k++) {
            if (!search_has(s, spans[k].fn))
                continue;
            count++;
            note_longest(s, row, &spans[k], k);
        }
        s->counts[row->first_block + s->next_block] = count;
        row->count += count;
        s->count += count;
        s->seen += to - from;
        done += to - from;
        s->next_block++;
        if (to == row->n) {
            s->next_row++;
            s->next_block = 0;
        }
    }
    return search_complete(s);
}

/* The first match of row[from, to), or to. Blocks known to hold none are passed over. */
static size_t scan_forward(struct search *s, const struct search_row *row, const struct span *spans,
                           size_t from, size_t to)
{
    while (from < to) {
        size_t end = (from / BLOCK + 1) * BLOCK;
        end = end < to ? end : to;
        if (s->counts[row->first_block + from / BLOCK] != 0)
            for (; from < end; from++)
                if (search_has(s, spans[from].fn))
                    return from;
        from = end;
    }
    return to;
}

/* Behind the last match of row[from, to), or from. */
static size_t scan_back(struct search *s, const struct search_row *row, const struct span *spans,
                        size_t from, size_t to)
{
    while (to > from) {
        size_t begin = (to - 1) / BLOCK * BLOCK;
        begin = begin > from ? begin : from;
        if (s->counts[row->first_block + (to - 1) / BLOCK] != 0)
            for (; to > begin; to--)
                if (search_has(s, spans[to - 1].fn))
                    return to;
        to = begin;
    }
    return from;
}

/* A place in the order: just before the spans of (time, thread, depth). */
struct place {
    uint64_t time_ns;
    size_t thread, depth;
};

/* The index in a row of the first span that does not come before the place. */
static size_t index_at(struct search *s, const struct search_row *row, struct place p)
{
    struct flame_row r = flame_source_row(s->src, row->thread, row->depth);
    bool after = row->thread > p.thread || (row->thread == p.thread && row->depth >= p.depth);
    size_t k = r.seek(&r, 0, p.time_ns);
    while (!after && k < r.n && r.spans[k].start_ns == p.time_ns)
        k++;
    return k;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Rows of other threads than the one asked for, and, once everything was counted, those without a match. */
static bool is_left_out(const struct search *s, const struct search_row *row, size_t thread)
{
    return (thread != SEARCH_ANY_THREAD && row->thread != thread) ||
           (row->count == 0 && search_complete(s));
}

/* One row's part in the present stretch of time [f->from_ns, f->to_ns): a match that comes before the best one
 * so far takes its place. */
static void look_forward(struct search_find *f, const struct search_row *row)
{
    struct search *s = f->search;
    struct flame_row r = flame_source_row(s->src, row->thread, row->depth);
    size_t k = f->from_ns == f->time_ns ? index_at(s, row, (struct place){f->time_ns, f->thread, f->depth})
                                        : r.seek(&r, 0, f->from_ns);
    if (row->thread == f->thread && row->depth == f->depth && k < f->skip_to)
        k = f->skip_to;
    size_t end = f->to_ns == UINT64_MAX ? r.n : r.seek(&r, k, f->to_ns);
    f->more |= end < r.n;
    k = scan_forward(s, row, r.spans, k, end);
    if (k < end && (!f->best.valid || r.spans[k].start_ns < f->to_ns)) {
        f->to_ns = r.spans[k].start_ns;
        f->best = (struct selection){true, row->thread, row->depth, k};
    }
}

/* Among equal times the last in order wins. */
static void look_back(struct search_find *f, const struct search_row *row)
{
    struct search *s = f->search;
    struct flame_row r = flame_source_row(s->src, row->thread, row->depth);
    size_t end = f->to_ns == f->time_ns ? index_at(s, row, (struct place){f->time_ns, f->thread, f->depth})
                                        : r.seek(&r, 0, f->to_ns);
    size_t begin = r.seek(&r, 0, f->from_ns);
    if (begin > end)
        begin = end;
    f->more |= begin > 0;
    size_t k = scan_back(s, row, r.spans, begin, end);
    if (k > begin) {
        f->from_ns = r.spans[k - 1].start_ns;
        f->best = (struct selection){true, row->thread, row->depth, k - 1};
    }
}

/* The next stretch of time, on from the one before. What is found near costs little, whatever the size of the
 * trace: stretches begin short and grow. */
static void next_stretch(struct search_find *f)
{
    f->row = 0;
    f->more = false;
    if (f->delta > 0) {
        f->from_ns = f->edge_ns;
        f->to_ns = f->edge_ns = later(f->edge_ns, f->reach_ns);
    } else {
        f->to_ns = f->edge_ns;
        f->from_ns = f->edge_ns = f->edge_ns > f->reach_ns ? f->edge_ns - f->reach_ns : 0;
    }
    f->reach_ns *= 4;
}

/* From the place before the spans of (time, thread, depth) on; skip_to: of that row. */
static struct search_find find_from(struct search *s, struct place p, size_t skip_to, int delta, size_t only)
{
    struct search_find f = {.search = s,
                            .delta = delta,
                            .only = only,
                            .time_ns = p.time_ns,
                            .thread = p.thread,
                            .depth = p.depth,
                            .skip_to = skip_to,
                            .edge_ns = p.time_ns,
                            .reach_ns = 4096};
    next_stretch(&f);
    return f;
}

bool search_find_step(struct search_find *f, size_t max_rows)
{
    struct search *s = f->search;
    for (; !f->done && max_rows > 0; max_rows--) {
        if (f->row == s->rows.len) {
            f->done = f->best.valid || !f->more;
            if (!f->done)
                next_stretch(f);
            continue;
        }
        const struct search_row *row = &s->rows.data[f->row++];
        if (is_left_out(s, row, f->only))
            continue;
        if (f->delta > 0)
            look_forward(f, row);
        else
            look_back(f, row);
    }
    return f->done;
}

/* Empty spans of one row that start together follow each other at once. */
static bool same_instant(struct search *s, const struct selection *from, int delta,
                         struct selection *out)
{
    struct flame_row r = flame_source_row(s->src, from->thread, from->depth);
    for (size_t k = from->index; delta < 0 ? k > 0 : k + 1 < r.n;) {
        k = delta < 0 ? k - 1 : k + 1;
        if (r.spans[k].start_ns != r.spans[from->index].start_ns)
            return false;
        if (search_has(s, r.spans[k].fn)) {
            *out = (struct selection){true, from->thread, from->depth, k};
            return true;
        }
    }
    return false;
}

struct search_find search_find_first(struct search *s, uint64_t t_ns, size_t thread)
{
    return find_from(s, (struct place){t_ns, 0, 0}, 0, 1, thread);
}

struct search_find search_find_next(struct search *s, const struct selection *from, int delta, size_t thread)
{
    const struct span *span = selection_span(s->src, from);
    struct search_find f = {.done = true};
    if (!span || same_instant(s, from, delta, &f.best))
        return f;
    struct place p = {span->start_ns, from->thread, from->depth};
    return find_from(s, p, from->index + 1, delta, thread);
}

static bool find_all(struct search_find f, struct selection *out)
{
    search_find_step(&f, SIZE_MAX);
    if (f.best.valid)
        *out = f.best;
    return f.best.valid;
}

bool search_first(struct search *s, uint64_t t_ns, size_t thread, struct selection *out)
{
    return find_all(search_find_first(s, t_ns, thread), out);
}

bool search_next(struct search *s, const struct selection *from, int delta, size_t thread,
                 struct selection *out)
{
    return find_all(search_find_next(s, from, delta, thread), out);
}

bool search_longest(struct search *s, struct selection *out)
{
    if (!search_complete(s) || !s->longest.valid)
        return false;
    *out = s->longest;
    return true;
}

uint64_t search_count(const struct search *s)
{
    return s->count;
}

size_t search_rows(const struct search *s)
{
    return s->rows.len;
}

uint64_t search_rank(struct search *s, const struct selection *at, size_t from, size_t to)
{
    const struct span *span = selection_span(s->src, at);
    if (!span)
        return 0;
    struct place p = {span->start_ns, at->thread, at->depth};
    uint64_t rank = 0;
    for (size_t i = from; i < to && i < s->rows.len; i++) {
        const struct search_row *row = &s->rows.data[i];
        if (row->count == 0)
            continue;
        size_t end = row->thread == at->thread && row->depth == at->depth ? at->index + 1
                                                                          : index_at(s, row, p);
        for (size_t b = 0; b < end / BLOCK; b++)
            rank += s->counts[row->first_block + b];
        const struct span *spans = spans_of(s, row);
        for (size_t k = end / BLOCK * BLOCK; k < end; k++)
            rank += search_has(s, spans[k].fn);
    }
    return rank;
}
