/* Filters of tables of functions and calls: words that must all hold.
 *
 *   NAME OP NUMBER   OP one of > >= < <= =: "calls>1000" "self%>=10" "max < 2ms"
 *   NAME=TEXT        "module=libc": a part of it
 *   other words      part of the name, or a PCRE2 pattern where no function of the trace has them in its name
 *
 * A word that has the form of the first two and names nothing is refused, unless some function has it in its name
 * ("vector<int>"): nobody shall take an empty table for an answer. */
#ifndef MTUI_TUI_ROW_FILTER_H
#define MTUI_TUI_ROW_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decode/trace/trace.h"
#include "tui/ui/function_names.h"

enum filter_kind {
    FILTER_NAME,     /* of a function: what words without a NAME look in; one of a table's fields is that */
    FILTER_TEXT,
    FILTER_COUNT,    /* "1200", "1.2k" */
    FILTER_DURATION, /* nanoseconds, or as typed: "1.5ms"; of instructions "12.4k" */
    FILTER_PERMILLE  /* typed in percent: "10", "2.5%" */
};

struct filter_field {
    const char *name; /* "": stands alone, ">=1us" */
    int id;           /* the caller's */
    enum filter_kind kind;
};

/* What a row has in a field. */
struct filter_values {
    uint64_t (*number)(const void *arg, const void *row, int id);
    const char *(*text)(const void *arg, const void *row, int id); /* FILTER_TEXT */
    fn_id (*function)(const void *arg, const void *row);           /* FILTER_NAME: whose name it is; FN_NONE: of none */
    const void *arg;
};

struct row_filter;

/* Replaces *f; NULL or "": by none (NULL). fields and names must outlive it. MTUI_E_INVAL with a sentence: *f
 * stays. */
int row_filter_set(struct row_filter **f, const char *text, const struct filter_field *fields, size_t n,
                   const struct trace *t, struct function_names *names, struct err *err);
void row_filter_free(struct row_filter *f);

/* As typed; "" for NULL. */
const char *row_filter_text(const struct row_filter *f);
/* NULL lets everything pass. */
bool row_filter_passes(const struct row_filter *f, const struct filter_values *values, const void *row);

/* ---- For filters of another kind ---- */

enum filter_op { FILTER_LESS, FILTER_AT_MOST, FILTER_EQUAL, FILTER_AT_LEAST, FILTER_MORE };

struct filter_word {
    char name[24];
    enum filter_op op;
    const char *value; /* to the end of the word */
};

/* Whether a word, which ends at a NUL, has the form NAME OP VALUE. NAME or VALUE may be missing. */
bool filter_word_split(const char *word, struct filter_word *out);

#endif
