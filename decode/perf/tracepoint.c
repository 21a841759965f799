#include "decode/perf/tracepoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/perf/perf_cursor.h"

struct text { /* of a description; not terminated */
    const char *at;
    size_t len;
};

/* u64 size, bytes. */
static struct text read_file(struct perf_cursor *c)
{
    uint64_t size = perf_cursor_u64(c);
    const uint8_t *at = perf_cursor_bytes(c, size);
    return (struct text){(const char *)at, at ? (size_t)size : 0};
}

/* The rest of the line that begins with the words, where "words" may be indented; false: there is none. */
static bool find_line(struct text t, const char *words, struct text *rest)
{
    size_t n = strlen(words);
    for (const char *line = t.at, *end = t.at + t.len; line < end;) {
        const char *eol = memchr(line, '\n', (size_t)(end - line));
        eol = eol ? eol : end;
        while (line < eol && (*line == '\t' || *line == ' '))
            line++;
        if ((size_t)(eol - line) >= n && memcmp(line, words, n) == 0) {
            *rest = (struct text){line + n, (size_t)(eol - line) - n};
            return true;
        }
        line = eol + 1;
    }
    return false;
}

static bool read_number(struct text t, uint64_t *out)
{
    char digits[24];
    size_t n = 0;
    while (t.len && *t.at == ' ')
        t.at++, t.len--;
    while (n < t.len && n < sizeof digits - 1 && t.at[n] >= '0' && t.at[n] <= '9') {
        digits[n] = t.at[n];
        n++;
    }
    digits[n] = '\0';
    *out = strtoull(digits, NULL, 10);
    return n > 0;
}

static bool is_called(struct text description, const char *name)
{
    struct text rest;
    size_t n = strlen(name);
    return find_line(description, "name: ", &rest) && rest.len == n && memcmp(rest.at, name, n) == 0;
}

/* The description of system:name; len 0: there is none. */
static struct text find(const uint8_t *data, size_t len, const char *system, const char *name)
{
    static const uint8_t magic[] = {23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g'};
    struct perf_cursor c = perf_cursor_make(data, len);
    const uint8_t *head = perf_cursor_bytes(&c, sizeof magic);
    if (!head || memcmp(head, magic, sizeof magic) != 0)
        return (struct text){0};
    perf_cursor_string(&c);   /* version */
    perf_cursor_bytes(&c, 2); /* byte order, size of a long */
    perf_cursor_u32(&c);      /* size of a page */
    for (int i = 0; i < 2; i++) { /* header_page, header_event */
        perf_cursor_string(&c);
        read_file(&c);
    }
    for (uint32_t n = perf_cursor_u32(&c); n > 0 && !c.bad; n--) /* of ftrace */
        read_file(&c);
    for (uint32_t systems = perf_cursor_u32(&c); systems > 0 && !c.bad; systems--) {
        bool ours = strcmp(perf_cursor_string(&c), system) == 0;
        for (uint32_t n = perf_cursor_u32(&c); n > 0 && !c.bad; n--) {
            struct text t = read_file(&c);
            if (ours && t.len && is_called(t, name))
                return t;
        }
    }
    return (struct text){0};
}

bool tracepoint_find(const uint8_t *data, size_t len, const char *system, const char *name, uint64_t *id)
{
    struct text rest, t = find(data, len, system, name);
    return t.len && find_line(t, "ID:", &rest) && read_number(rest, id);
}

static struct text part(struct text t, char until)
{
    const char *end = t.len ? memchr(t.at, until, t.len) : NULL;
    return (struct text){t.at, end ? (size_t)(end - t.at) : 0};
}

/* "pid_t next_pid" or "char next_comm[16]" declares the name. */
static bool declares(struct text declaration, const char *field)
{
    size_t n = strlen(field), len = declaration.len;
    struct text array = part(declaration, '[');
    if (array.len)
        len = array.len;
    return len > n && memcmp(declaration.at + len - n, field, n) == 0 &&
           (declaration.at[len - n - 1] == ' ' || declaration.at[len - n - 1] == '*');
}

static bool value_of(struct text line, const char *key, uint64_t *out)
{
    const char *at = memmem(line.at, line.len, key, strlen(key));
    if (!at)
        return false;
    at += strlen(key);
    return read_number((struct text){at, line.len - (size_t)(at - line.at)}, out);
}

bool tracepoint_find_field(const uint8_t *data, size_t len, const char *system, const char *name,
                           const char *field, struct tracepoint_field *out)
{
    struct text line, t = find(data, len, system, name);
    uint64_t offset, size;
    while (t.len && find_line(t, "field:", &line)) {
        if (declares(part(line, ';'), field) && value_of(line, "offset:", &offset) &&
            value_of(line, "size:", &size) && offset <= UINT16_MAX && size <= UINT16_MAX) {
            *out = (struct tracepoint_field){(uint32_t)offset, (uint32_t)size};
            return true;
        }
        t.len -= (size_t)(line.at + line.len - t.at);
        t.at = line.at + line.len;
    }
    return false;
}
