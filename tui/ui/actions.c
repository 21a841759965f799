#include "tui/ui/actions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"

static const struct action_info infos[ACT_COUNT] = {
    [ACT_NONE] = {"", "", ""},
#define ACTION_INFO_(id, command, args, help) [ACT_##id] = {command, args, help},
    ACTIONS(ACTION_INFO_)
#undef ACTION_INFO_
};

static const struct {
    const char *name, *title;
} contexts[CTX_COUNT] = {
    [CTX_GLOBAL] = {"everywhere", "Everywhere"}, [CTX_MOVE] = {"move", "Moving"},
    [CTX_LIST] = {"lists", "Lists"},             [CTX_PROCESSES] = {"processes", "Processes"},
    [CTX_SYMBOLS] = {"symbols", "Symbols"},      [CTX_RECORD] = {"record", "Record"},
    [CTX_TIMELINE] = {"timeline", "Timeline"},   [CTX_FUNCTIONS] = {"functions", "Functions"},
    [CTX_EVENTS] = {"events", "Events"},         [CTX_CALLS] = {"calls", "Calls"},
    [CTX_COMPARE] = {"compare", "Compare"},      [CTX_HELP] = {"help", "Help"},
};

/* The default keys. Within a context each key stands once, and no context takes a key of "everywhere",
 * except Symbols, where typing goes to the query. */
static const struct {
    enum context ctx;
    enum action act;
    const char *keys; /* names joined by blanks */
} default_keys[] = {
    {CTX_GLOBAL, ACT_SCREEN_PROCESSES, "1"},
    {CTX_GLOBAL, ACT_SCREEN_SYMBOLS, "2"},
    {CTX_GLOBAL, ACT_SCREEN_RECORD, "3"},
    {CTX_GLOBAL, ACT_SCREEN_TIMELINE, "4"},
    {CTX_GLOBAL, ACT_SCREEN_FUNCTIONS, "5"},
    {CTX_GLOBAL, ACT_SCREEN_EVENTS, "6"},
    {CTX_GLOBAL, ACT_PANE_NEXT, "Tab"},
    {CTX_GLOBAL, ACT_PANE_PREV, "S-Tab"},
    {CTX_GLOBAL, ACT_SEARCH, "/ F3"},
    {CTX_GLOBAL, ACT_SEARCH_NEXT, "n"},
    {CTX_GLOBAL, ACT_SEARCH_PREV, "N"},
    {CTX_GLOBAL, ACT_FILTER, "\\ F4"},
    {CTX_GLOBAL, ACT_COMMAND, ":"},
    {CTX_GLOBAL, ACT_HELP, "? F1"},
    {CTX_GLOBAL, ACT_BACK, "q"},
    {CTX_GLOBAL, ACT_QUIT, "Q F10"},
    {CTX_GLOBAL, ACT_CANCEL, "Esc"},
    {CTX_GLOBAL, ACT_INTERRUPT, "^C"},
    {CTX_GLOBAL, ACT_REDRAW, "^L"},
    {CTX_GLOBAL, ACT_SUSPEND, "^Z"},
    {CTX_GLOBAL, ACT_RELOAD, "R"},
    {CTX_GLOBAL, ACT_SNAPSHOT, "S"},
    {CTX_GLOBAL, ACT_SOURCE, "O"},
    {CTX_GLOBAL, ACT_SORT, "F6"},

    {CTX_MOVE, ACT_UP, "Up k"},
    {CTX_MOVE, ACT_DOWN, "Down j"},
    {CTX_MOVE, ACT_LEFT, "Left"},
    {CTX_MOVE, ACT_RIGHT, "Right"},
    {CTX_MOVE, ACT_PAGE_UP, "PgUp"},
    {CTX_MOVE, ACT_PAGE_DOWN, "PgDn"},
    {CTX_MOVE, ACT_HALF_UP, "^U"},
    {CTX_MOVE, ACT_HALF_DOWN, "^D"},
    {CTX_MOVE, ACT_FIRST, "g Home"},
    {CTX_MOVE, ACT_LAST, "G End"},

    {CTX_LIST, ACT_OPEN, "Enter"},
    {CTX_LIST, ACT_MARK, "Space"},
    {CTX_LIST, ACT_SORT_PREV, "<"},
    {CTX_LIST, ACT_SORT_NEXT, ">"},
    {CTX_LIST, ACT_SORT_INVERT, "I"},
    {CTX_LIST, ACT_OPTIONS, "o"},
    {CTX_LIST, ACT_FOLLOW, "f"},
    {CTX_LIST, ACT_COPY, "y"},
    {CTX_LIST, ACT_EXPORT, "x"},

    {CTX_PROCESSES, ACT_THREADS, "t"},
    {CTX_PROCESSES, ACT_USER, "u"},
    {CTX_PROCESSES, ACT_KERNEL_THREADS, "K"},
    {CTX_PROCESSES, ACT_PAUSE, "Z"},
    {CTX_PROCESSES, ACT_TO_RECORD, "r"},

    {CTX_SYMBOLS, ACT_DOWN, "^N Down"},
    {CTX_SYMBOLS, ACT_UP, "^P Up"},
    {CTX_SYMBOLS, ACT_PAGE_UP, "PgUp"},
    {CTX_SYMBOLS, ACT_PAGE_DOWN, "PgDn"},
    {CTX_SYMBOLS, ACT_TOGGLE, "Tab"},
    {CTX_SYMBOLS, ACT_MATCH_MODE, "^R"},
    {CTX_SYMBOLS, ACT_MODULE, "^O"},
    {CTX_SYMBOLS, ACT_ENTRY_RETURN, "^E"},
    {CTX_SYMBOLS, ACT_TRIGGER_LIST, "^T"},
    {CTX_SYMBOLS, ACT_KILL_LINE, "^U"},
    {CTX_SYMBOLS, ACT_KILL_WORD, "^W"},
    {CTX_SYMBOLS, ACT_ARM, "Enter"},
    {CTX_SYMBOLS, ACT_BACK, "Esc"},
    {CTX_SYMBOLS, ACT_SCREEN_PROCESSES, "Alt-1"},
    {CTX_SYMBOLS, ACT_SCREEN_SYMBOLS, "Alt-2"},
    {CTX_SYMBOLS, ACT_SCREEN_RECORD, "Alt-3"},
    {CTX_SYMBOLS, ACT_SCREEN_TIMELINE, "Alt-4"},
    {CTX_SYMBOLS, ACT_SCREEN_FUNCTIONS, "Alt-5"},
    {CTX_SYMBOLS, ACT_SCREEN_EVENTS, "Alt-6"},

    {CTX_RECORD, ACT_START_STOP, "Space"},
    {CTX_RECORD, ACT_ENABLE, "e"},
    {CTX_RECORD, ACT_PING, "P"},
    {CTX_RECORD, ACT_DISARM, "d"},
    {CTX_RECORD, ACT_MODE, "m"},
    {CTX_RECORD, ACT_BUFFER, "b"},
    {CTX_RECORD, ACT_TRIGGERS, "t"},
    {CTX_RECORD, ACT_LOG, "l"},
    {CTX_RECORD, ACT_DELETE_SNAPSHOT, "D"},
    {CTX_RECORD, ACT_OPEN, "Enter"},
    {CTX_RECORD, ACT_OPTIONS, "o"},
    {CTX_RECORD, ACT_COPY, "y"},
    {CTX_RECORD, ACT_EXPORT, "x"},

    {CTX_TIMELINE, ACT_SPAN_PREV, "Left h ,"},
    {CTX_TIMELINE, ACT_SPAN_NEXT, "Right l ."},
    {CTX_TIMELINE, ACT_CALLER, "Up k"},
    {CTX_TIMELINE, ACT_CALLEE, "Down j"},
    {CTX_TIMELINE, ACT_LONGEST_CHILD, "b"},
    {CTX_TIMELINE, ACT_LONGEST_CALL, "B"},
    {CTX_TIMELINE, ACT_CALL_PREV, "["},
    {CTX_TIMELINE, ACT_CALL_NEXT, "]"},
    {CTX_TIMELINE, ACT_CALL_PREV_ANY, "{"},
    {CTX_TIMELINE, ACT_CALL_NEXT_ANY, "}"},
    {CTX_TIMELINE, ACT_ZOOM_IN, "+ = w"},
    {CTX_TIMELINE, ACT_ZOOM_OUT, "- s"},
    {CTX_TIMELINE, ACT_PAN_LEFT, "a"},
    {CTX_TIMELINE, ACT_PAN_RIGHT, "d"},
    {CTX_TIMELINE, ACT_PAN_LEFT_PAGE, "A"},
    {CTX_TIMELINE, ACT_PAN_RIGHT_PAGE, "D"},
    {CTX_TIMELINE, ACT_ZOOM_FIT, "Enter f"},
    {CTX_TIMELINE, ACT_ZOOM_RANGE, "z"},
    {CTX_TIMELINE, ACT_ZOOM_ALL, "0"},
    {CTX_TIMELINE, ACT_VIEW_BACK, "Bksp"},
    {CTX_TIMELINE, ACT_VIEW_FORWARD, "Del"},
    {CTX_TIMELINE, ACT_TRACE_START, "^ Home"},
    {CTX_TIMELINE, ACT_TRACE_END, "$ End"},
    {CTX_TIMELINE, ACT_SHALLOWEST, "g"},
    {CTX_TIMELINE, ACT_DEEPEST, "G"},
    {CTX_TIMELINE, ACT_PAGE_UP, "PgUp"},
    {CTX_TIMELINE, ACT_PAGE_DOWN, "PgDn"},
    {CTX_TIMELINE, ACT_RANGE, "v"},
    {CTX_TIMELINE, ACT_MARK_SET, "m"},
    {CTX_TIMELINE, ACT_MARK_GOTO, "'"},
    {CTX_TIMELINE, ACT_THREAD_NEXT, "t"},
    {CTX_TIMELINE, ACT_THREAD_PREV, "T"},
    {CTX_TIMELINE, ACT_PIN, "p"},
    {CTX_TIMELINE, ACT_COLLAPSE, "Space"},
    {CTX_TIMELINE, ACT_COMPACT, "c"},
    {CTX_TIMELINE, ACT_RECURSION, "r"},
    {CTX_TIMELINE, ACT_COLOR_BY, "C"},
    {CTX_TIMELINE, ACT_MERGED, "F"},
    {CTX_TIMELINE, ACT_COMPARE, "M"},
    {CTX_TIMELINE, ACT_CALLS, "L"},
    {CTX_TIMELINE, ACT_GAP_NEXT, "e"},
    {CTX_TIMELINE, ACT_GAP_PREV, "E"},
    {CTX_TIMELINE, ACT_SEARCH_FUNCTION, "#"},
    {CTX_TIMELINE, ACT_DETAILS, "i"},
    {CTX_TIMELINE, ACT_OPTIONS, "o"},
    {CTX_TIMELINE, ACT_COPY, "y"},
    {CTX_TIMELINE, ACT_EXPORT, "x"},

    {CTX_FUNCTIONS, ACT_CALL_PREV, "["},
    {CTX_FUNCTIONS, ACT_CALL_NEXT, "]"},
    {CTX_FUNCTIONS, ACT_CALLERS, "c"},
    {CTX_FUNCTIONS, ACT_COMPARE, "M"},
    {CTX_FUNCTIONS, ACT_CALLS, "L"},

    {CTX_EVENTS, ACT_CALL_PREV, "["},
    {CTX_EVENTS, ACT_CALL_NEXT, "]"},
    {CTX_EVENTS, ACT_GAP_NEXT, "e"},
    {CTX_EVENTS, ACT_GAP_PREV, "E"},
    {CTX_EVENTS, ACT_COMPARE, "M"},
    {CTX_EVENTS, ACT_CALLS, "L"},

    {CTX_CALLS, ACT_COMPARE, "M"},

    {CTX_COMPARE, ACT_CALLS, "L"},

    {CTX_HELP, ACT_OPEN, "Enter Space"},
};

/* The key bar, most important first: for each action its first key. */
static const struct {
    enum context ctx;
    const char *label;
    enum action acts[4];
} bar_items[] = {
    {CTX_PROCESSES, "symbols", {ACT_OPEN}},
    {CTX_PROCESSES, "mark", {ACT_MARK}},
    {CTX_PROCESSES, "search", {ACT_SEARCH}},
    {CTX_PROCESSES, "filter", {ACT_FILTER}},
    {CTX_PROCESSES, "sort col", {ACT_SORT_PREV, ACT_SORT_NEXT}},
    {CTX_PROCESSES, "invert", {ACT_SORT_INVERT}},
    {CTX_PROCESSES, "threads", {ACT_THREADS}},
    {CTX_PROCESSES, "record", {ACT_TO_RECORD}},
    {CTX_SYMBOLS, "move", {ACT_DOWN, ACT_UP}},
    {CTX_SYMBOLS, "toggle", {ACT_TOGGLE}},
    {CTX_SYMBOLS, "regex", {ACT_MATCH_MODE}},
    {CTX_SYMBOLS, "module", {ACT_MODULE}},
    {CTX_SYMBOLS, "entry/return", {ACT_ENTRY_RETURN}},
    {CTX_SYMBOLS, "arm", {ACT_ARM}},
    {CTX_SYMBOLS, "back", {ACT_BACK}},
    {CTX_RECORD, "start/stop", {ACT_START_STOP}},
    {CTX_RECORD, "snapshot now", {ACT_SNAPSHOT}},
    {CTX_RECORD, "enable/disable", {ACT_ENABLE}},
    {CTX_RECORD, "disarm", {ACT_DISARM}},
    {CTX_RECORD, "buffer", {ACT_BUFFER}},
    {CTX_RECORD, "mode", {ACT_MODE}},
    {CTX_RECORD, "open", {ACT_OPEN}},
    {CTX_TIMELINE, "select", {ACT_SPAN_PREV, ACT_SPAN_NEXT, ACT_CALLER, ACT_CALLEE}},
    {CTX_TIMELINE, "zoom", {ACT_ZOOM_IN, ACT_ZOOM_OUT}},
    {CTX_TIMELINE, "pan", {ACT_PAN_LEFT, ACT_PAN_RIGHT}},
    {CTX_TIMELINE, "fit", {ACT_ZOOM_FIT}},
    {CTX_TIMELINE, "all", {ACT_ZOOM_ALL}},
    {CTX_TIMELINE, "back", {ACT_VIEW_BACK}},
    {CTX_TIMELINE, "range", {ACT_RANGE}},
    {CTX_TIMELINE, "mark", {ACT_MARK_SET}},
    {CTX_TIMELINE, "find", {ACT_SEARCH}},
    {CTX_TIMELINE, "merged", {ACT_MERGED}},
    {CTX_TIMELINE, "compare", {ACT_COMPARE}},
    {CTX_TIMELINE, "calls", {ACT_CALLS}},
    {CTX_FUNCTIONS, "longest in timeline", {ACT_OPEN}},
    {CTX_FUNCTIONS, "all calls", {ACT_CALLS}},
    {CTX_FUNCTIONS, "next call", {ACT_CALL_PREV, ACT_CALL_NEXT}},
    {CTX_FUNCTIONS, "sort", {ACT_SORT_PREV, ACT_SORT_NEXT}},
    {CTX_FUNCTIONS, "invert", {ACT_SORT_INVERT}},
    {CTX_FUNCTIONS, "filter", {ACT_FILTER}},
    {CTX_FUNCTIONS, "callers", {ACT_CALLERS}},
    {CTX_FUNCTIONS, "export", {ACT_EXPORT}},
    {CTX_EVENTS, "timeline here", {ACT_OPEN}},
    {CTX_EVENTS, "follow", {ACT_FOLLOW}},
    {CTX_EVENTS, "same func", {ACT_CALL_PREV, ACT_CALL_NEXT}},
    {CTX_EVENTS, "gap", {ACT_GAP_NEXT, ACT_GAP_PREV}},
    {CTX_EVENTS, "filter", {ACT_FILTER}},
    {CTX_EVENTS, "goto time", {ACT_COMMAND}},
    {CTX_EVENTS, "copy", {ACT_COPY}},
    {CTX_EVENTS, "export", {ACT_EXPORT}},
    {CTX_CALLS, "timeline here", {ACT_OPEN}},
    {CTX_CALLS, "compare with median", {ACT_COMPARE}},
    {CTX_CALLS, "sort", {ACT_SORT_PREV, ACT_SORT_NEXT}},
    {CTX_CALLS, "invert", {ACT_SORT_INVERT}},
    {CTX_CALLS, "filter", {ACT_FILTER}},
    {CTX_CALLS, "find", {ACT_SEARCH}},
    {CTX_CALLS, "export", {ACT_EXPORT}},
    {CTX_COMPARE, "go there", {ACT_OPEN}},
    {CTX_COMPARE, "this/median", {ACT_PANE_NEXT}},
    {CTX_COMPARE, "sort", {ACT_SORT_PREV, ACT_SORT_NEXT}},
    {CTX_COMPARE, "invert", {ACT_SORT_INVERT}},
    {CTX_COMPARE, "filter", {ACT_FILTER}},
    {CTX_COMPARE, "all calls", {ACT_CALLS}},
    {CTX_COMPARE, "export", {ACT_EXPORT}},
    {CTX_HELP, "find", {ACT_SEARCH}},
    {CTX_HELP, "fold section", {ACT_OPEN}},
    {CTX_HELP, "pane", {ACT_PANE_NEXT}},
    {CTX_HELP, "close", {ACT_BACK}},
    {CTX_GLOBAL, "help", {ACT_HELP}},
};

static const struct mouse_help mouse_table[] = {
    {"click", "select; tabs, key bar, column headers act"},
    {"double-click", "open; fit the span"},
    {"wheel", "scroll rows, depth"},
    {"S-wheel", "pan"},
    {"^-wheel", "zoom at the pointer; so does the wheel on the ruler"},
    {"drag on the ruler", "select a range"},
    {"drag in rows", "pan"},
    {"click on the minimap", "go there"},
    {NULL, NULL},
};

#define COUNT(a) (sizeof(a) / sizeof *(a))

const struct action_info *action_info(enum action act)
{
    return &infos[act];
}

enum action action_find(const char *command)
{
    for (size_t i = ACT_NONE + 1; i < ACT_COUNT; i++)
        if (strcmp(infos[i].command, command) == 0)
            return (enum action)i;
    return ACT_NONE;
}

bool action_takes_letter(enum action act)
{
    return strcmp(infos[act].args, "a-z") == 0;
}

const char *context_name(enum context ctx)
{
    return contexts[ctx].name;
}

const char *context_title(enum context ctx)
{
    return contexts[ctx].title;
}

enum context context_find(const char *name)
{
    if (strcmp(name, "global") == 0)
        return CTX_GLOBAL;
    for (size_t i = 0; i < CTX_COUNT; i++)
        if (strcmp(contexts[i].name, name) == 0)
            return (enum context)i;
    return CTX_COUNT;
}

struct keymap {
    VEC(struct binding) bindings; /* args are ours unless empty */
};

struct keymap *keymap_new(void)
{
    struct keymap *km = xcalloc(1, sizeof *km);
    for (size_t i = 0; i < COUNT(default_keys); i++) {
        char names[64];
        snprintf(names, sizeof names, "%s", default_keys[i].keys);
        char *rest = names;
        for (char *name; (name = strsep(&rest, " "));) {
            struct key key;
            if (key_parse(name, &key, NULL) == 0)
                keymap_bind(km, default_keys[i].ctx, key, default_keys[i].act, "");
        }
    }
    return km;
}

static void free_args(const struct binding *b)
{
    if (b->args[0]) {
        char *owned;
        memcpy(&owned, &b->args, sizeof owned);
        free(owned);
    }
}

void keymap_free(struct keymap *km)
{
    if (!km)
        return;
    for (size_t i = 0; i < km->bindings.len; i++)
        free_args(&km->bindings.data[i]);
    vec_free(&km->bindings);
    free(km);
}

size_t keymap_count(const struct keymap *km)
{
    return km->bindings.len;
}

const struct binding *keymap_at(const struct keymap *km, size_t i)
{
    return &km->bindings.data[i];
}

static struct binding *find_in(const struct keymap *km, enum context ctx, struct key key)
{
    for (size_t i = 0; i < km->bindings.len; i++) {
        struct binding *b = &km->bindings.data[i];
        if (b->ctx == ctx && key_equal(b->key, key))
            return b;
    }
    return NULL;
}

void keymap_bind(struct keymap *km, enum context ctx, struct key key, enum action act,
                 const char *args)
{
    struct binding b = {ctx, key, act, args && args[0] ? xstrdup(args) : ""};
    struct binding *old = find_in(km, ctx, key);
    if (old) {
        free_args(old);
        *old = b;
    } else {
        vec_push(&km->bindings, b);
    }
}

bool keymap_unbind(struct keymap *km, enum context ctx, struct key key)
{
    struct binding *old = find_in(km, ctx, key);
    if (!old)
        return false;
    free_args(old);
    vec_remove(&km->bindings, (size_t)(old - km->bindings.data));
    return true;
}

const struct binding *keymap_find(const struct keymap *km, const enum context *ctxs, size_t n,
                                  bool typing, struct key key)
{
    if (typing && key_is_text(key))
        return NULL;
    for (size_t i = 0; i < n; i++) {
        const struct binding *b = find_in(km, ctxs[i], key);
        if (b)
            return b;
    }
    return find_in(km, CTX_GLOBAL, key);
}

char *keymap_keys(const struct keymap *km, enum context ctx, enum action act, char *out,
                  size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < km->bindings.len; i++) {
        const struct binding *b = &km->bindings.data[i];
        char name[KEY_NAME_MAX];
        if (b->ctx != ctx || b->act != act || b->args[0])
            continue;
        key_format(b->key, name);
        if (used + strlen(name) + 2 > size)
            break;
        used += (size_t)snprintf(out + used, size - used, "%s%s", used ? " " : "", name);
    }
    return out;
}

/* The first binding of act reachable in these contexts, or NULL: bars are short of room. */
static const struct binding *first_key(const struct keymap *km, const enum context *ctxs, size_t n,
                                       enum action act)
{
    for (size_t c = 0; c <= n; c++) {
        enum context ctx = c < n ? ctxs[c] : CTX_GLOBAL;
        for (size_t i = 0; i < km->bindings.len; i++) {
            const struct binding *b = &km->bindings.data[i];
            if (b->ctx == ctx && b->act == act && !b->args[0])
                return b;
        }
    }
    return NULL;
}

static bool is_arrow(struct key k)
{
    return k.mods == 0 && k.code >= K_UP && k.code <= K_RIGHT;
}

static bool fill_entry(const struct keymap *km, const enum context *ctxs, size_t n, size_t item,
                       struct bar_entry *e)
{
    size_t used = 0, shown = 0, arrows = 0;
    *e = (struct bar_entry){.label = bar_items[item].label, .act = bar_items[item].acts[0]};
    for (size_t a = 0; a < COUNT(bar_items[item].acts) && bar_items[item].acts[a]; a++) {
        const struct binding *b = first_key(km, ctxs, n, bar_items[item].acts[a]);
        char name[KEY_NAME_MAX];
        if (!b || used + KEY_NAME_MAX > sizeof e->keys)
            continue;
        arrows += is_arrow(b->key);
        used += (size_t)snprintf(e->keys + used, sizeof e->keys - used, "%s%s", shown++ ? " " : "",
                                 key_format(b->key, name));
    }
    if (arrows == 4)
        snprintf(e->keys, sizeof e->keys, "arrows");
    return shown > 0;
}

bool keymap_bar(const struct keymap *km, const enum context *ctxs, size_t n, size_t i,
                struct bar_entry *entry)
{
    for (size_t c = 0; c <= n; c++) {
        enum context ctx = c < n ? ctxs[c] : CTX_GLOBAL;
        for (size_t item = 0; item < COUNT(bar_items); item++)
            if (bar_items[item].ctx == ctx && fill_entry(km, ctxs, n, item, entry) && i-- == 0)
                return true;
    }
    return false;
}

const struct mouse_help *mouse_help_table(void)
{
    return mouse_table;
}
