/* What the files of the Timeline screen share: its state, and who does what. Private to timeline_*.c
 * and v_timeline.c.
 *
 *   v_timeline.c          the view: life, draw, dispatch
 *   timeline_trace.c      a trace comes in: index, colours, the place it opens at
 *   timeline_threads.c    its threads and processes: order, what is collapsed, hidden, pinned
 *   timeline_grow.c       more of it comes in: everything stays where it is
 *   timeline_fold.c       the same with recursion folded, made by a worker
 *   timeline_layout.c     which rows of which threads stand on which lines
 *   timeline_draw.c       ruler, minimap, headers, rows of spans
 *   timeline_cell.c       a flame cell as a cell of the surface
 *   timeline_detail.c     the details pane; timeline_source.c the source in it
 *   timeline_keys.c       actions; timeline_move.c those that select; timeline_mouse.c the mouse
 *   timeline_search.c     search and calls of the same function
 *   timeline_merged.c     the merged flame graph: another timeline, over a trace made of stacks
 *   timeline_merged_draw.c what it shows in place of threads and times */
#ifndef MTUI_TUI_TIMELINE_H
#define MTUI_TUI_TIMELINE_H

#include "core/base/vec.h"
#include "decode/trace/pyramid.h"
#include "decode/trace/trace.h"
#include "tui/timeline/flame.h"
#include "tui/timeline/flame_source.h"
#include "tui/timeline/minimap.h"
#include "tui/ui/model.h"
#include "tui/timeline/search.h"
#include "tui/timeline/selection.h"
#include "tui/trace/source_finder.h"
#include "tui/trace/trace_stats.h"
#include "tui/ui/view.h"
#include "tui/timeline/viewport.h"
#include "tui/ui/worker.h"

struct tl_thread {
    bool collapsed, pinned, hidden;
    size_t process; /* index in `processes` */
    struct flame_gaps hard, soft;
    size_t gaps[GAP_CAUSES]; /* how many of each cause are its own */
    const struct gap *not_decoded; /* the last of them, or NULL */
};

struct tl_process {
    pid_t pid;
    const char *comm; /* of its first thread */
    bool collapsed;
    size_t threads;
    uint64_t spans;
};

/* Threads stand by process; within one by this. */
enum tl_order { TL_BY_TID, TL_BY_NAME, TL_BY_SPANS, TL_BY_BUSY };

enum tl_line_kind {
    TL_PROCESS, /* where there is more than one; thread: its first */
    TL_HEADER,
    TL_ROW,  /* one depth */
    TL_PAIR, /* compact: depths `depth` and `depth + 1` */
    TL_BLANK
};

struct tl_line {
    enum tl_line_kind kind;
    size_t thread, depth;
};

/* The source below the details: where there is room for it (a high screen), or as chosen. */
enum tl_source { TL_SOURCE_AUTO, TL_SOURCE_ON, TL_SOURCE_OFF };

enum tl_color { TL_BY_FUNCTION, TL_BY_MODULE, TL_BY_KERNEL };

/* Where things stood in the last draw, for the mouse. */
struct tl_places {
    struct rect minimap, ruler, rows; /* minimap: the map alone, without its label */
    int visible;                      /* lines for rows, pinned ones included */
    int body;                         /* rows of the whole screen */
};

/* Work on big traces that goes on between frames. */
struct tl_job {
    int timer; /* of the loop; 0: none */
    bool jump_to_longest;
    struct search_find find; /* what is to be selected; search NULL: nothing */
    bool from_start;         /* when nothing comes behind the cursor, from the trace's start on */
    char none[320];          /* to be said when there is none */
};

/* The trace with recursion folded while it is being made. */
struct tl_folding {
    struct worker *worker;      /* NULL: none is being made */
    const struct trace *from;   /* the model's */
    struct trace *made;
    atomic_uint_fast64_t done;  /* of `spans` */
    uint64_t spans;
    struct err err;
    int rc;
};

struct tl_busy {
    uint64_t ns, switches;
};

/* The last answer of tl_busy: it is asked for with every draw. */
struct tl_busy_known {
    const struct pyramid *of;
    size_t thread, depth;
    uint64_t from_ns, to_ns;
    struct tl_busy busy;
};

struct timeline {
    struct model *m;
    const struct trace *trace; /* what is shown: the model's, or `folded`; NULL: none */
    struct trace *folded;      /* direct recursion folded; ours; of an earlier part while more is folded */
    struct tl_folding folding;
    const struct pyramid *pyramid; /* the model's or `made`; NULL until the index is there */
    struct flame_source *src;
    struct worker *indexer;
    struct trace_export *export;
    struct pyramid *made;      /* by the indexer; ours */
    struct trace_stats *stats; /* of the whole trace, for the details */
    struct source_finder *finder;
    uint16_t *roles; /* per function: its role, or UINT16_MAX when not asked for yet */
    unsigned palette;

    struct viewport view;
    struct minimap map;
    struct selection sel;
    bool sel_alone; /* one call is meant, also where it shares its column with others */
    uint64_t cursor_ns;

    struct tl_thread *threads;
    size_t nthreads;
    struct tl_process *processes;
    size_t nprocesses;
    size_t *shown;  /* every thread, in the order in which they stand: pinned ones first */
    enum tl_order order;
    VEC(size_t) triggers; /* marks that are triggers */
    VEC(struct tl_line) lines;
    size_t pinned; /* lines at the head of `lines` that belong to pinned threads */
    size_t pin_top, top; /* first line shown of the pinned ones, of the others */

    bool compact, details, ranging;
    bool fold; /* asked for; shown once it is made */
    enum tl_color color;
    enum tl_source source_shown;
    uint64_t range_from_ns; /* ranging: the end that stays */
    uint64_t marks[26];
    uint32_t marks_set; /* bit i: mark 'a' + i */
    int last_mark;      /* −1: none */

    bool touched; /* somebody has moved in this trace: it must not move by itself */
    struct search *search;  /* by pattern, or of search_fn */
    fn_id search_fn;        /* FN_NONE: by pattern */
    struct {
        const struct search *of;
        struct selection at;
        uint64_t rank;
        size_t rows; /* looked at so far */
    } match; /* search_rank of the selection, found bit by bit: it looks at every row */
    struct search *calls;   /* of one function, for [ ] { } B */
    fn_id calls_fn;
    struct tl_job job;
    struct tl_busy_known busy;

    struct tl_merged *merged;       /* the merged flame graph made from it, or NULL */
    const struct tl_merged *inside; /* set in the timeline that shows one */

    struct tl_places at;
    int last_visible; /* of the draw before, to follow resizes */
    struct mouse pressed; /* where the button went down */
    bool dragging;
};

/* ---- timeline_trace.c ---- */

/* Takes the model's trace (or none): all that belongs to the old one goes. */
void tl_set_trace(struct timeline *tl);
void tl_free_trace(struct timeline *tl);
/* In and out again, but for what the user has set up: the model's trace, or its folded one (then the
 * timeline's), with threads, colours and index. */
void tl_take_trace(struct timeline *tl, struct trace *folded);
void tl_drop_trace(struct timeline *tl);
/* To the last trigger's call, if there is one; false: nothing has changed. */
bool tl_open_at_call(struct timeline *tl);

/* ---- timeline_grow.c ---- */

/* The model's trace is more of the one that is shown. */
void tl_grow_trace(struct timeline *tl);
/* Shows the model's trace, or its folded one (then the timeline's), in place of what is shown of it:
 * threads, selection, lines and search stay where they are. */
void tl_show_trace(struct timeline *tl, struct trace *folded);
uint16_t tl_role(struct timeline *tl, fn_id fn);
void tl_forget_roles(struct timeline *tl);
bool tl_instructions(const struct timeline *tl);
/* Durations and offsets in the trace's unit; out holds FMT_MAX bytes. */
char *tl_duration(const struct timeline *tl, char *out, uint64_t ns);
/* A time since the trace's start, as exact as the present zoom needs. */
char *tl_time(const struct timeline *tl, char *out, uint64_t t_ns);
/* The same to the nanosecond, or the instruction. */
char *tl_time_exact(const struct timeline *tl, char *out, uint64_t t_ns);

/* ---- timeline_fold.c ---- */

/* Asks for the trace with direct recursion folded, or as it is; the selection stays on its time. Until the
 * folded one is made, what is there goes on being shown. */
void tl_set_fold(struct timeline *tl, bool fold);
/* Makes the folded one of the model's trace, from the start, if it is asked for. */
void tl_fold_start(struct timeline *tl);
/* Ends the making; the wish stays. */
void tl_fold_stop(struct timeline *tl);
/* The user stops it: false when nothing is being made. */
bool tl_fold_cancel(struct timeline *tl);
bool tl_is_folding(const struct timeline *tl);
unsigned tl_fold_percent(struct timeline *tl);

/* ---- timeline_threads.c ---- */

/* Threads and processes of the trace, with their gaps; and none. */
void tl_set_threads(struct timeline *tl);
void tl_free_threads(struct timeline *tl);
/* Puts `shown` in order. */
void tl_order_threads(struct timeline *tl);
/* Opens what hides or folds the thread away; true when anything did. */
bool tl_open_thread(struct timeline *tl, size_t thread);
/* ACT_HIDE, ACT_UNHIDE, ACT_PIN, ACT_COLLAPSE, ACT_FILTER, ACT_SORT. */
bool tl_thread_action(struct timeline *tl, enum action act, const char *arg);

/* ---- timeline_layout.c ---- */

void tl_layout(struct timeline *tl);
/* The line at a place below the ruler, or NULL; row 0 is the first. */
const struct tl_line *tl_line_at(struct timeline *tl, int row);
/* Moves `top` so that the selection's line (its header when collapsed) is seen. */
void tl_scroll_to_selection(struct timeline *tl);
void tl_scroll(struct timeline *tl, int lines);
/* The line that stands first, of the pinned ones or the others, and putting it there again: the same row of
 * the same thread, or the nearest above it. False: there is none. */
bool tl_first_line(struct timeline *tl, bool pinned, struct tl_line *line);
void tl_put_first(struct timeline *tl, bool pinned, const struct tl_line *line);
/* The thread n steps on from the selected one among those not hidden, or SIZE_MAX. */
size_t tl_thread_step(const struct timeline *tl, int delta);

/* ---- timeline_cell.c ---- */

/* Draws rendered cells as one row, with the model's glyphs and the tier of its theme. */
void tl_put_cells(struct timeline *tl, struct surface *s, int row, int col,
                  const struct flame_axis *ax, const struct flame_cell *cells, size_t thread,
                  size_t depth);

/* ---- timeline_draw.c ---- */

void tl_draw_rows(struct timeline *tl, struct surface *s, struct rect r);
void tl_draw_head(struct timeline *tl, struct surface *s, struct rect r);
int tl_head_rows(struct rect r);

/* ---- timeline_detail.c ---- */

int tl_detail_rows(const struct timeline *tl, struct rect r);
void tl_draw_detail(struct timeline *tl, struct surface *s, struct rect r);
/* Ends marking: the range lies between two times, in either order; of the same time there is none, which is said. */
void tl_set_range(struct timeline *tl, uint64_t a, uint64_t b);
/* The range that is open, if one is, ends at the cursor; false: it has no length yet, which is said. */
bool tl_end_range(struct timeline *tl);
/* The range, or what has been marked of it since v was pressed; false: there is none. */
bool tl_range(const struct timeline *tl, uint64_t *from, uint64_t *to);
/* Spans of the selected thread in it. */
uint64_t tl_range_spans(struct timeline *tl, uint64_t from, uint64_t to);
/* The way from the last mark to the cursor; false: there is no mark. */
bool tl_mark_text(const struct timeline *tl, char *out, size_t size);

/* ---- timeline_busy.c ---- */

/* Of a thread in [from, to): the time in calls of this depth that was neither off the CPU nor in a gap, and
 * how often it was off the CPU. All 0 without an index. */
struct tl_busy tl_busy(struct timeline *tl, size_t thread, size_t depth, uint64_t from, uint64_t to);
/* Whether any thread was seen to be off the CPU: switches were recorded. */
bool tl_knows_switches(struct timeline *tl);

/* What shares the selection's cell: false when the selection has a cell of its own. */
struct tl_aggregate {
    uint64_t from_ns, to_ns;
    uint64_t calls, waits, busy_ns; /* waits: times off the CPU */
    size_t longest; /* call, in the selection's row; where there are only waits, of these */
};
bool tl_aggregate(struct timeline *tl, struct tl_aggregate *a);

/* ---- timeline_source.c ---- */

/* What is known of the selection's source; NULL: nothing yet. */
const struct source_answer *tl_source(struct timeline *tl);
/* Rows that the source takes below the details on a body of that many. */
int tl_source_rows(const struct timeline *tl, int body_rows);
void tl_draw_source(struct timeline *tl, struct surface *s, struct rect r);
/* The next of: details, with source, nothing. */
void tl_step_details(struct timeline *tl);
/* Opens the editor where the function is defined ("", NULL), or called ("call"). */
void tl_edit_source(struct timeline *tl, const char *arg);

/* The selected span's callers from the outside in, itself last: "stack  main > f > [g]". */
void tl_stack_text(struct timeline *tl, char *out, size_t size, int cols);

/* ---- timeline_merged.c ---- */

/* True while the merged flame graph stands in the timeline's place, or is being made. */
bool tl_merged_shown(const struct timeline *tl);
void tl_merged_draw(struct timeline *tl, struct surface *s, struct rect r);
/* What means something else while it is shown, and the key that brings it; the rest goes to its own
 * timeline. */
bool tl_merged_action(struct timeline *tl, enum action act, const char *arg);
bool tl_merged_mouse(struct timeline *tl, const struct mouse *mouse, struct rect r);
void tl_merged_changed(struct timeline *tl, enum model_change what);
void tl_merged_status(struct timeline *tl, char *out, size_t size);
void tl_merged_state(struct timeline *tl, char *out, size_t size);
/* 1: it is there and shown; of NAME: the function selected in it. */
int tl_merged_condition(struct timeline *tl, const char *name);
void tl_merged_free(struct timeline *tl);

/* ---- timeline_merged_draw.c: of the timeline inside ---- */

void tl_merged_header(const struct timeline *tl, char *out, size_t size, int cols);
void tl_merged_detail(struct timeline *tl, struct surface *s, struct rect r);

/* ---- timeline_keys.c, timeline_move.c, timeline_mouse.c, timeline_search.c ---- */

bool tl_action(struct timeline *tl, enum action act, const char *arg);
/* Selects, puts the cursor on it, tells the other screens, keeps it on screen. */
void tl_select(struct timeline *tl, struct selection sel);
/* The same of a call that was asked for by itself, by name or on another screen: it does not stand for its column. */
void tl_select_call(struct timeline *tl, struct selection sel);
/* Selects what is at a time in the selected thread; moves the window there. */
void tl_goto(struct timeline *tl, uint64_t t_ns);
void tl_set_cursor(struct timeline *tl, uint64_t t_ns);
bool tl_move(struct timeline *tl, enum action act);
bool tl_mouse(struct timeline *tl, const struct mouse *mouse);

/* Names the selected call as what an analysis is about, in the terms of the model's trace. */
void tl_name_subject(struct timeline *tl);

void tl_search(struct timeline *tl, const char *pattern);
void tl_search_step(struct timeline *tl, int delta);
void tl_search_function(struct timeline *tl);
void tl_call_step(struct timeline *tl, int delta, bool any_thread);
void tl_longest_call(struct timeline *tl);
void tl_search_clear(struct timeline *tl);
/* Ends a look for the next match or call with what it finds, before anything else is done. */
void tl_find_finish(struct timeline *tl);
/* The how-manieth match the selection is; false while that is still being counted. */
bool tl_match_rank(struct timeline *tl, uint64_t *rank);
/* The same search in another trace object; text is its pattern when fn is FN_NONE. */
void tl_search_again(struct timeline *tl, fn_id fn, const char *text);
/* Starts or goes on with work between frames; without a loop it is done at once. */
void tl_job_start(struct timeline *tl);
void tl_job_stop(struct timeline *tl);

#endif
