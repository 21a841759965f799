/* The one reader for settings, themes, scripts and session.ini: lines of words.
 *
 * A line is split at blanks. "double" quotes take \" \\ \n \t \xHH inside, 'single' quotes take
 * everything as it is; outside of quotes a backslash takes the next character as it is. Quoted parts
 * join what they touch. A comment starts with # at the start of a line, or with # between blanks (or
 * a blank and the end), so that #ff8000 and '#' are words. A second word that is a bare `=` makes the
 * line an assignment: `key = value…`. Bytes above 127 are text. */
#ifndef MTUI_CORE_CONF_H
#define MTUI_CORE_CONF_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"

#define CONF_WORDS_MAX 64       /* words in a line */
#define CONF_LINE_MAX 4096      /* bytes in a line */
#define CONF_FILE_MAX (1 << 20) /* bytes in a file */

/* The words of one line; the strings stand inside the struct (do not copy it). For an assignment
 * word[0] is the key, word[1] on are the values, and the `=` is left out. */
struct conf_words {
    size_t n;
    bool assignment;
    const char *word[CONF_WORDS_MAX];
    const char *tail[CONF_WORDS_MAX]; /* in the line given: from word i to the end, unsplit */
    char text[CONF_LINE_MAX + CONF_WORDS_MAX];
};

/* Splits a line (no newline in it); n = 0 for a blank line or a comment. MTUI_E_FORMAT with a sentence
 * (open quote, too many words, NUL byte, too long); words is undefined then. */
int conf_split(const char *line, struct conf_words *words, struct err *err);

/* Called for each line that has words; line counts from 1. A negative result stops the reading; the
 * sentence gets "name:line: " put before it. */
typedef int conf_line_fn(void *arg, const struct conf_words *words, int line, struct err *err);

/* Reads len bytes of text; name is for the error sentences ("themes/light.theme:3: …"). */
int conf_read_text(const char *name, const char *text, size_t len, conf_line_fn *fn, void *arg,
                   struct err *err);

/* The same for a file; MTUI_E_NOENT when it does not exist. */
int conf_read_file(const char *path, conf_line_fn *fn, void *arg, struct err *err);

/* The same, over all lines: a bad one is told to mistake (MTUI_E_* and the sentence, without the name and the
 * line) and the reading goes on. Negative only when the file cannot be read. */
typedef void conf_mistake_fn(void *arg, int line, int code, const struct err *err);
int conf_read_all(const char *path, conf_line_fn *fn, conf_mistake_fn *mistake, void *arg, struct err *err);

/* Writes a word so that conf_split gives it back, with quotes only where needed; cut (still a valid
 * word) when out is too small. Returns out. For writing session.ini. */
char *conf_quote(char *out, size_t size, const char *word);

#endif
