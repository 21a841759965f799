/* Calls of chosen functions, found in order of time across all threads.
 *
 * A search is a set of functions and an index over the trace: for every 256 spans of a row how many
 * belong to the set and which of them is longest. The index is built in steps while the search is
 * already in use; next and previous skip what is known to hold nothing and look at the rest. Once it is
 * complete, how many there are and which is the k-th costs nothing either.
 *
 * Order: start time, then thread, then depth. */
#ifndef MTUI_TUI_SEARCH_H
#define MTUI_TUI_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "tui/timeline/selection.h"
#include "tui/ui/function_names.h"

struct search;

#define SEARCH_ANY_THREAD SIZE_MAX

/* Functions that contain pattern in a form of their name (case matters only when it has a capital); when none
 * does and pattern is a PCRE2 pattern, those that it matches; "=NAME" means exactly NAME. MTUI_E_NOENT
 * when no function matches, with PCRE2's sentence if it is no pattern either. t and src must outlive
 * the search; names are those of t's functions. */
int search_by_name(struct search **out, const struct trace *t, struct flame_source *src, struct function_names *names,
                   const char *pattern, struct err *err);
struct search *search_by_function(const struct trace *t, struct flame_source *src, fn_id fn, const char *name);
void search_free(struct search *s);

/* The text shown between slashes: the pattern, or the name. */
const char *search_text(const struct search *s);
bool search_has(const struct search *s, fn_id fn);
size_t search_functions(const struct search *s); /* in the set */

/* Looks at about max_spans more spans; true when the index is complete. */
bool search_step(struct search *s, size_t max_spans);
bool search_complete(const struct search *s);
/* Share of the spans looked at, 0–100. */
unsigned search_percent(const struct search *s);

/* The first match behind (delta 1) or before (−1) the span `from`, in one thread or any. False when
 * there is none; *out is left alone. */
bool search_next(struct search *s, const struct selection *from, int delta, size_t thread,
                 struct selection *out);
/* The first match that starts at or after t. */
bool search_first(struct search *s, uint64_t t_ns, size_t thread, struct selection *out);

/* The same in parts, for traces of thousands of rows: to be stepped until it is done; then best is the match,
 * not valid when there is none. A plain value that must not outlive the search. */
struct search_find {
    struct search *search;
    bool done;
    struct selection best;
    /* private */
    int delta;
    size_t only; /* thread, or SEARCH_ANY_THREAD */
    uint64_t time_ns;
    size_t thread, depth, skip_to;    /* the place it began at */
    uint64_t from_ns, to_ns;          /* the present stretch, cut short by the best match */
    uint64_t edge_ns, reach_ns;
    size_t row;                       /* the next to be looked at */
    bool more;                        /* there are spans beyond the stretch */
};

struct search_find search_find_next(struct search *s, const struct selection *from, int delta, size_t thread);
struct search_find search_find_first(struct search *s, uint64_t t_ns, size_t thread);
/* Looks at so many rows; true when done. */
bool search_find_step(struct search_find *f, size_t max_rows);

/* Once complete: the longest match (first in order among equals), how many there are, and how many come
 * up to and including the span `at` in the rows [from, to) of search_rows: to be asked for in parts where
 * there are thousands. */
bool search_longest(struct search *s, struct selection *out);
uint64_t search_count(const struct search *s);
size_t search_rows(const struct search *s);
uint64_t search_rank(struct search *s, const struct selection *at, size_t from, size_t to);

#endif
