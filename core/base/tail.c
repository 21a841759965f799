#include "core/base/tail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/utf8.h"

#define LINE_BYTES 400

struct line {
    char text[LINE_BYTES + 16]; /* room for the count */
    size_t len;                 /* of the text without the count */
    unsigned repeats;
};

struct tail {
    struct line *lines; /* a ring: the oldest at first */
    size_t max, count, first;
};

struct tail *tail_new(size_t max_lines)
{
    struct tail *t = xcalloc(1, sizeof *t);
    t->max = max_lines;
    t->lines = xcalloc(max_lines, sizeof *t->lines);
    return t;
}

void tail_free(struct tail *t)
{
    if (!t)
        return;
    free(t->lines);
    free(t);
}

static struct line *at(const struct tail *t, size_t i)
{
    return &t->lines[(t->first + i) % t->max];
}

bool tail_add(struct tail *t, const char *line, size_t len)
{
    while (len && (line[len - 1] == '\r' || line[len - 1] == ' '))
        len--;
    if (!len)
        return false;
    char text[LINE_BYTES];
    size_t n = utf8_escape(text, sizeof text, line, len);
    struct line *last = t->count ? at(t, t->count - 1) : NULL;
    if (last && last->len == n && !memcmp(last->text, text, n)) {
        last->repeats++;
        snprintf(last->text + n, sizeof last->text - n, " x%u", last->repeats);
        return false;
    }
    if (t->count == t->max)
        t->first = (t->first + 1) % t->max;
    else
        t->count++;
    last = at(t, t->count - 1);
    memcpy(last->text, text, n + 1);
    last->len = n;
    last->repeats = 1;
    return true;
}

size_t tail_count(const struct tail *t)
{
    return t->count;
}

const char *tail_line(const struct tail *t, size_t i)
{
    return at(t, i)->text;
}
