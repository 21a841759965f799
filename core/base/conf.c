#include "core/base/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The escape behind a backslash inside "": puts its byte into *out and returns the bytes read. */
static size_t unescape(const char *s, char *out)
{
    switch (s[0]) {
    case 'n':
        *out = '\n';
        return 1;
    case 't':
        *out = '\t';
        return 1;
    case 'r':
        *out = '\r';
        return 1;
    case 'x':
        if (hex_digit(s[1]) >= 0 && hex_digit(s[2]) >= 0 && (s[1] != '0' || s[2] != '0')) {
            *out = (char)(hex_digit(s[1]) * 16 + hex_digit(s[2]));
            return 3;
        }
        *out = 'x';
        return 1;
    default:
        *out = s[0];
        return 1;
    }
}

/* Reads one word from *s into *to; false when a quote stays open. */
static bool read_word(const char **s, char **to)
{
    const char *p = *s;
    char *out = *to;
    while (*p && !is_blank(*p)) {
        if (*p == '\'' || *p == '"') {
            char quote = *p++;
            while (*p && *p != quote) {
                if (quote == '"' && *p == '\\' && p[1]) {
                    p++;
                    p += unescape(p, out++);
                } else {
                    *out++ = *p++;
                }
            }
            if (!*p)
                return false;
            p++;
        } else {
            if (*p == '\\' && p[1])
                p++;
            *out++ = *p++;
        }
    }
    *out++ = '\0';
    *s = p;
    *to = out;
    return true;
}

int conf_split(const char *line, struct conf_words *words, struct err *err)
{
    const char *s = line;
    char *to = words->text;
    words->n = 0;
    words->assignment = false;
    if (strlen(line) >= CONF_LINE_MAX)
        return err_set(err, MTUI_E_FORMAT, "the line is longer than %d bytes", CONF_LINE_MAX - 1);
    for (;;) {
        while (is_blank(*s))
            s++;
        if (!*s)
            return 0;
        if (*s == '#' && (words->n == 0 || !s[1] || is_blank(s[1])))
            return 0;
        if (words->n == 1 && !words->assignment && *s == '=' && (!s[1] || is_blank(s[1]))) {
            words->assignment = true;
            s++;
            continue;
        }
        if (words->n == CONF_WORDS_MAX)
            return err_set(err, MTUI_E_FORMAT, "more than %d words in a line", CONF_WORDS_MAX);
        words->tail[words->n] = s;
        words->word[words->n++] = to;
        if (!read_word(&s, &to))
            return err_set(err, MTUI_E_FORMAT, "a quote is not closed");
    }
}

static int read_line(const char *text, size_t len, int number, conf_line_fn *fn, void *arg, struct err *err)
{
    char line[CONF_LINE_MAX + 1];
    struct conf_words words;
    int rc;
    if (len >= CONF_LINE_MAX)
        rc = err_set(err, MTUI_E_FORMAT, "the line is longer than %d bytes", CONF_LINE_MAX - 1);
    else if (memchr(text, '\0', len))
        rc = err_set(err, MTUI_E_FORMAT, "a NUL byte in the text");
    else {
        memcpy(line, text, len);
        line[len] = '\0';
        rc = conf_split(line, &words, err);
        if (rc == 0 && words.n > 0)
            rc = fn(arg, &words, number, err);
    }
    return rc < 0 ? rc : 0;
}

/* mistake NULL: the first bad line ends it. */
static int read_lines(const char *name, const char *text, size_t len, conf_line_fn *fn, conf_mistake_fn *mistake,
                      void *arg, struct err *err)
{
    int number = 1;
    for (size_t at = 0; at < len; number++) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - (text + at)) : len - at;
        struct err own = {0};
        int rc = read_line(text + at, n, number, fn, arg, mistake ? &own : err);
        if (rc < 0 && !mistake) {
            err_prefix(err, "%s:%d", name, number);
            return rc;
        }
        if (rc < 0)
            mistake(arg, number, rc, &own);
        at += n + 1;
    }
    return 0;
}

int conf_read_text(const char *name, const char *text, size_t len, conf_line_fn *fn, void *arg,
                   struct err *err)
{
    return read_lines(name, text, len, fn, NULL, arg, err);
}

/* Reads at most limit bytes of fd; *out is malloced. */
static int slurp(int fd, const char *path, size_t limit, char **out, size_t *len, struct err *err)
{
    char *text = malloc(limit + 1);
    if (!text)
        return err_set(err, MTUI_E_NOMEM, "no memory to read %s", path);
    size_t used = 0;
    while (used <= limit) {
        ssize_t n = read(fd, text + used, limit + 1 - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int code = err_errno(err, errno, "cannot read %s", path);
            free(text);
            return code;
        }
        if (n == 0)
            break;
        used += (size_t)n;
    }
    if (used > limit) {
        free(text);
        return err_set(err, MTUI_E_LIMIT, "%s is larger than %zu bytes", path, limit);
    }
    *out = text;
    *len = used;
    return 0;
}

static int read_file(const char *path, conf_line_fn *fn, conf_mistake_fn *mistake, void *arg, struct err *err)
{
    /* O_NONBLOCK: a fifo in the place of the file must not hang us. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_errno(err, errno, "cannot open %s", path);
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(fd);
        return err_set(err, MTUI_E_FORMAT, "%s is a directory", path);
    }
    char *text = NULL;
    size_t len = 0;
    int rc = slurp(fd, path, CONF_FILE_MAX, &text, &len, err);
    close(fd);
    if (rc < 0)
        return rc;
    rc = read_lines(path, text, len, fn, mistake, arg, err);
    free(text);
    return rc;
}

int conf_read_file(const char *path, conf_line_fn *fn, void *arg, struct err *err)
{
    return read_file(path, fn, NULL, arg, err);
}

int conf_read_all(const char *path, conf_line_fn *fn, conf_mistake_fn *mistake, void *arg, struct err *err)
{
    return read_file(path, fn, mistake, arg, err);
}

static bool needs_quotes(const char *word)
{
    if (!word[0] || word[0] == '#' || strcmp(word, "=") == 0)
        return true;
    for (const char *p = word; *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c <= ' ' || c == 127 || c == '"' || c == '\'' || c == '\\')
            return true;
    }
    return false;
}

char *conf_quote(char *out, size_t size, const char *word)
{
    if (!needs_quotes(word)) {
        snprintf(out, size, "%s", word);
        return out;
    }
    size_t used = 0;
    if (size < 3) {
        if (size)
            out[0] = '\0';
        return out;
    }
    out[used++] = '"';
    for (const char *p = word; *p; p++) {
        unsigned char c = (unsigned char)*p;
        char unit[5];
        if (c == '"' || c == '\\')
            snprintf(unit, sizeof unit, "\\%c", c);
        else if (c == '\n' || c == '\t' || c == '\r')
            snprintf(unit, sizeof unit, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
        else if (c < ' ' || c == 127)
            snprintf(unit, sizeof unit, "\\x%02x", c);
        else
            snprintf(unit, sizeof unit, "%c", c);
        if (used + strlen(unit) + 2 > size)
            break;
        memcpy(out + used, unit, strlen(unit));
        used += strlen(unit);
    }
    out[used++] = '"';
    out[used] = '\0';
    return out;
}
