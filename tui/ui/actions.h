/* The one table of actions: what mtui can be told to do, by key, by `:` command and by script.
 *
 * The dispatcher, the `:` commands, the key bar, the help screen and the manual page are all made
 * from it. An action without a default key is a command only. To add an action: one line in ACTIONS,
 * one in the key table of actions.c if it has a key, one in the bar table if the key bar shows it. */
#ifndef MTUI_TUI_ACTIONS_H
#define MTUI_TUI_ACTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/term/keys.h"

/* Where a key means something. A view names its contexts, most specific first; CTX_GLOBAL is behind
 * all of them. */
enum context {
    CTX_GLOBAL, /* "everywhere" */
    CTX_MOVE,   /* moving in a list */
    CTX_LIST,   /* acting on the rows of a list */
    CTX_PROCESSES,
    CTX_SYMBOLS,
    CTX_RECORD,
    CTX_TIMELINE,
    CTX_FUNCTIONS,
    CTX_EVENTS,
    CTX_CALLS,
    CTX_COMPARE,
    CTX_HELP,
    CTX_COUNT
};

/* X(id, `:` command, arguments as shown, help).
 * An action whose arguments are "a-z" and which is bound to a key takes the next key as its letter. */
#define ACTIONS(X)                                                                                 \
    /* everywhere */                                                                               \
    X(SCREEN_PROCESSES, "processes", "", "go to Processes")                                        \
    X(SCREEN_SYMBOLS, "symbols", "", "go to Symbols")                                              \
    X(SCREEN_RECORD, "record", "", "go to Record")                                                 \
    X(SCREEN_TIMELINE, "timeline", "", "go to Timeline")                                           \
    X(SCREEN_FUNCTIONS, "functions", "", "go to Functions")                                        \
    X(SCREEN_EVENTS, "events", "", "go to Events")                                                 \
    X(PANE_NEXT, "pane-next", "", "next pane")                                                     \
    X(PANE_PREV, "pane-prev", "", "previous pane")                                                 \
    X(SEARCH, "search", "[PATTERN]", "search")                                                     \
    X(SEARCH_NEXT, "search-next", "", "next match")                                                \
    X(SEARCH_PREV, "search-prev", "", "previous match")                                            \
    X(FILTER, "filter", "[PATTERN]", "filter rows (empty: all)")                               \
    X(COMMAND, "command", "", "command line")                                                      \
    X(HELP, "help", "", "this help")                                                               \
    X(BACK, "back", "", "back, close")                                   \
    X(QUIT, "quit", "", "quit")                                              \
    X(CANCEL, "cancel", "", "cancel, clear")                                                       \
    X(INTERRUPT, "interrupt", "", "stop the running operation")                                    \
    X(REDRAW, "redraw", "", "redraw the screen")                                                   \
    X(SUSPEND, "suspend", "", "suspend (recording goes on)")                                   \
    X(RELOAD, "reload", "", "reload")                                                              \
    X(SNAPSHOT, "snapshot", "", "snapshot now")                                                    \
    X(SOURCE, "source", "[call]", "source in $EDITOR")                                             \
    X(SORT, "sort", "[COLUMN]", "sort by a column")                                                \
    /* commands for every screen */                                                                \
    X(SET, "set", "NAME [VALUE]", "change or show a setting")                                      \
    X(THEME, "theme", "NAME", "change the theme")                                                  \
    X(BIND, "bind", "CONTEXT KEY COMMAND...", "bind a key")                                        \
    X(UNBIND, "unbind", "CONTEXT KEY", "take a binding away")                                      \
    X(BINDINGS, "bindings", "", "list the key bindings")                                           \
    X(OPEN_RECORDING, "open", "PATH", "open a recording")                                          \
    X(TARGET, "target", "PID", "choose the process to trace")                                      \
    X(TRIGGER, "trigger", "SPEC", "add a trigger")                                                 \
    X(UNTRIGGER, "untrigger", "SPEC", "remove a trigger")                                          \
    X(KEY, "key", "KEY...", "act as if keys were pressed")                                         \
    X(TYPE, "type", "TEXT", "act as if text were typed")                                           \
    X(WAIT, "wait", "CONDITION [TIMEOUT]", "wait (in scripts)")                                    \
    X(SAVE_SCREEN, "save-screen", "FILE", "write the screen to a file")                            \
    /* lists */                                                                                    \
    X(UP, "up", "", "row up")                                                                      \
    X(DOWN, "down", "", "row down")                                                                \
    X(LEFT, "left", "", "scroll left")                                                             \
    X(RIGHT, "right", "", "scroll right")                                                          \
    X(PAGE_UP, "page-up", "", "page up")                                                           \
    X(PAGE_DOWN, "page-down", "", "page down")                                                     \
    X(HALF_UP, "half-up", "", "half a page up")                                                    \
    X(HALF_DOWN, "half-down", "", "half a page down")                                              \
    X(FIRST, "first", "", "first row")                                                             \
    X(LAST, "last", "", "last row")                                                                \
    X(OPEN, "enter", "", "open")                                                                   \
    X(MARK, "mark", "", "mark the row")                                                            \
    X(SORT_PREV, "sort-prev", "", "sort by the column before")                                \
    X(SORT_NEXT, "sort-next", "", "sort by the next column")                               \
    X(SORT_INVERT, "sort-invert", "", "invert the order")                                          \
    X(OPTIONS, "options", "", "columns and options")                                               \
    X(FOLLOW, "follow", "", "follow on/off")                                                       \
    X(COPY, "copy", "", "copy to the clipboard")                                                   \
    X(EXPORT, "export", "[FORMAT [FILE]]", "export")                                               \
    /* processes */                                                                                \
    X(THREADS, "threads", "", "threads on/off")                                                    \
    X(USER, "user", "[NAME]", "one user's processes, all")                                     \
    X(KERNEL_THREADS, "kernel-threads", "", "kernel threads on/off")                               \
    X(PAUSE, "pause", "", "pause refreshing")                                                      \
    X(TO_RECORD, "to-record", "", "take this process to Record")                                   \
    /* symbols */                                                                                  \
    X(TOGGLE, "toggle", "", "choose or drop as a trigger")                                         \
    X(MATCH_MODE, "match-mode", "", "fuzzy, regex, exact")                                         \
    X(MODULE, "module", "[NAME]", "next module, or one by name")                                   \
    X(ENTRY_RETURN, "entry-return", "", "fire at entry or at return")                              \
    X(TRIGGER_LIST, "trigger-list", "", "list of chosen triggers")                                 \
    X(KILL_LINE, "kill-line", "", "clear the query")                                               \
    X(KILL_WORD, "kill-word", "", "delete the last word")                                          \
    X(ARM, "arm", "", "arm what is chosen")                                                        \
    /* record */                                                                                   \
    X(START_STOP, "start-stop", "", "start or stop recording")                                     \
    X(ENABLE, "enable", "", "enable or disable tracing")                                           \
    X(PING, "ping", "", "ping perf")                                                               \
    X(DISARM, "disarm", "", "disarm triggers, arm them again")                                     \
    X(MODE, "mode", "[trigger|ring|whole]", "recording mode")                                      \
    X(BUFFER, "buffer", "[SIZE]", "size of the ring")                                              \
    X(TRIGGERS, "triggers", "", "edit the triggers")                                               \
    X(LOG, "log", "", "full log")                                                                  \
    X(DELETE_SNAPSHOT, "delete-snapshot", "", "delete the snapshot (asks)")                        \
    /* timeline */                                                                                 \
    X(SPAN_PREV, "span-prev", "", "previous span on this depth")                                   \
    X(SPAN_NEXT, "span-next", "", "next span on this depth")                                       \
    X(CALLER, "caller", "", "caller")                                                              \
    X(CALLEE, "callee", "", "callee under the cursor")                                             \
    X(LONGEST_CHILD, "longest-child", "", "longest child")                                         \
    X(LONGEST_CALL, "longest-call", "", "longest call of this function")                           \
    X(CALL_PREV, "call-prev", "", "its previous call, this thread")                   \
    X(CALL_NEXT, "call-next", "", "its next call, this thread")                       \
    X(CALL_PREV_ANY, "call-prev-any", "", "its previous call, any thread")                             \
    X(CALL_NEXT_ANY, "call-next-any", "", "its next call, any thread")                                 \
    X(ZOOM_IN, "zoom-in", "", "zoom in at the cursor")                                             \
    X(ZOOM_OUT, "zoom-out", "", "zoom out")                                                        \
    X(PAN_LEFT, "pan-left", "", "pan a quarter screen left")                                       \
    X(PAN_RIGHT, "pan-right", "", "pan a quarter screen right")                                    \
    X(PAN_LEFT_PAGE, "pan-left-page", "", "pan a screen left")                                     \
    X(PAN_RIGHT_PAGE, "pan-right-page", "", "pan a screen right")                                  \
    X(ZOOM_FIT, "zoom-fit", "", "fit the selected span")                                           \
    X(ZOOM_RANGE, "zoom-range", "", "fit the range A-B")                                           \
    X(ZOOM_ALL, "zoom-all", "", "whole trace")                                                     \
    X(VIEW_BACK, "view-back", "", "previous viewport")                                             \
    X(VIEW_FORWARD, "view-forward", "", "next viewport")                                           \
    X(TRACE_START, "trace-start", "", "start of the trace")                                        \
    X(TRACE_END, "trace-end", "", "end of the trace")                                              \
    X(SHALLOWEST, "shallowest", "", "shallowest row")                                              \
    X(DEEPEST, "deepest", "", "deepest row")                                                       \
    X(RANGE, "range", "[FROM TO]", "start or end the range")                                       \
    X(MARK_SET, "mark-set", "a-z", "set a mark")                                                   \
    X(MARK_GOTO, "mark-goto", "a-z", "go to a mark")                                               \
    X(THREAD_NEXT, "thread-next", "", "next thread")                                               \
    X(THREAD_PREV, "thread-prev", "", "previous thread")                                           \
    X(PIN, "pin", "", "pin the thread")                                                            \
    X(HIDE, "hide", "", "hide the thread")                                                         \
    X(UNHIDE, "unhide", "", "show all threads again")                                              \
    X(COLLAPSE, "collapse", "[process|all]", "collapse or open the thread")                        \
    X(COMPACT, "compact", "", "compact rows")                                                      \
    X(RECURSION, "recursion", "", "collapse recursion")                                            \
    X(COLOR_BY, "color-by", "[function|module|kernel]", "colour by function, module, ...")      \
    X(GAP_NEXT, "gap-next", "", "next gap or decode error")                                        \
    X(GAP_PREV, "gap-prev", "", "previous gap or decode error")                                    \
    X(SEARCH_FUNCTION, "search-function", "", "search this function")                              \
    X(DETAILS, "details", "", "details: with source, off")                                         \
    X(MERGED, "merged", "[all|TID]", "merged flame graph, and back")                               \
    X(GOTO, "goto", "TIME", "go to a time")                                                        \
    /* analysis: about the call or function that is chosen */                                      \
    X(COMPARE, "compare", "", "compare with the median call")                                      \
    X(CALLS, "calls", "", "its calls, the longest first")                                          \
    /* functions */                                                                                \
    X(CALLERS, "callers", "", "callers and callees on/off")

enum action {
    ACT_NONE,
#define ACTION_ID_(id, command, args, help) ACT_##id,
    ACTIONS(ACTION_ID_)
#undef ACTION_ID_
        ACT_COUNT
};

struct action_info {
    const char *command; /* the name in `:` commands; unique */
    const char *args;    /* "" or what may follow it */
    const char *help;    /* a few words, lower case */
};

/* What is known of an action; never NULL for ACT_NONE < act < ACT_COUNT. */
const struct action_info *action_info(enum action act);

/* The action with that command name, or ACT_NONE. */
enum action action_find(const char *command);

/* True when a key bound to it without an argument reads one more letter (marks). */
bool action_takes_letter(enum action act);

/* "everywhere" "move" "lists" "processes" … the word in `bind`; and "Everywhere" … the heading. */
const char *context_name(enum context ctx);
const char *context_title(enum context ctx);
/* CTX_COUNT when no context has that name ("global" is "everywhere" too). */
enum context context_find(const char *name);

/* ---- Keys ---- */

/* One key in one context. args is "" or the words that go with the command ("set threads on" is
 * ACT_SET with args "threads on"); it lives as long as the keymap. */
struct binding {
    enum context ctx;
    struct key key;
    enum action act;
    const char *args;
};

struct keymap;

struct keymap *keymap_new(void); /* the default keys */
void keymap_free(struct keymap *km);

size_t keymap_count(const struct keymap *km);
const struct binding *keymap_at(const struct keymap *km, size_t i);

/* Binds key in ctx, in place of what it meant there. Moves bindings: pointers to them go stale. */
void keymap_bind(struct keymap *km, enum context ctx, struct key key, enum action act,
                 const char *args);
/* False when the key had no meaning there. */
bool keymap_unbind(struct keymap *km, enum context ctx, struct key key);

/* The meaning of key for a view with these contexts (n of them, most specific first; CTX_GLOBAL is
 * looked at last), or NULL. With typing, keys that are text mean nothing. */
const struct binding *keymap_find(const struct keymap *km, const enum context *contexts, size_t n,
                                  bool typing, struct key key);

/* The names of the keys of act in ctx, joined by a blank ("Up k"); returns out, "" when it has none. */
char *keymap_keys(const struct keymap *km, enum context ctx, enum action act, char *out,
                  size_t size);

/* ---- The key bar ---- */

/* An entry of the key bar: "Enter symbols", "+ - zoom". act is what a click on it does. */
struct bar_entry {
    char keys[48];
    const char *label;
    enum action act;
};

/* The i-th entry of the key bar of a view with these contexts, in order of importance; false behind
 * the last. Entries whose keys are all unbound are left out. */
bool keymap_bar(const struct keymap *km, const enum context *contexts, size_t n, size_t i,
                struct bar_entry *entry);

/* ---- The mouse, which has no bindings but a place in the help ---- */

struct mouse_help {
    const char *gesture, *help;
};
/* Ends with a NULL gesture. */
const struct mouse_help *mouse_help_table(void);

#endif
