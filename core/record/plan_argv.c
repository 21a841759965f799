#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/record/plan.h"
#include "core/base/utf8.h"
#include "core/base/vec.h"

void plan_argv_add(struct plan_argv *argv, const char *arg)
{
    if (argv->len + 1 >= argv->cap) {
        argv->cap = argv->cap ? argv->cap * 2 : 32;
        argv->data = xrealloc(argv->data, argv->cap * sizeof *argv->data);
    }
    argv->data[argv->len++] = xstrdup(arg);
    argv->data[argv->len] = NULL;
}

void plan_argv_free(struct plan_argv *argv)
{
    for (size_t i = 0; i < argv->len; i++)
        free(argv->data[i]);
    free(argv->data);
    *argv = (struct plan_argv){0};
}

struct text {
    VEC(char) v;
};

static void put(struct text *t, const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        vec_push(&t->v, s[i]);
}

static bool is_plain(const char *s)
{
    if (!*s)
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("_-+=:,./@%", *s))
            return false;
    return true;
}

static bool is_safe(const char *s, size_t len)
{
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        i += utf8_decode(s + i, len - i, &cp);
        if (cp == UTF8_INVALID || utf8_is_unsafe(cp))
            return false;
    }
    return true;
}

/* '...' with each ' as '\''. */
static void put_quoted(struct text *t, const char *s)
{
    put(t, "'", 1);
    for (; *s; s++)
        *s == '\'' ? put(t, "'\\''", 4) : put(t, s, 1);
    put(t, "'", 1);
}

/* $'...' with every byte that is not plain ASCII as \xHH; the quotes are closed after each escape
 * that a hexadecimal digit follows, since a shell may read more than two. */
static void put_escaped(struct text *t, const char *s)
{
    put(t, "$'", 2);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        char hex[8];
        if (c >= 0x20 && c < 0x7f && c != '\'' && c != '\\') {
            put(t, s, 1);
            continue;
        }
        put(t, hex, (size_t)snprintf(hex, sizeof hex, "\\x%02x", c));
        if (isxdigit((unsigned char)s[1]))
            put(t, "'$'", 3);
    }
    put(t, "'", 1);
}

char *plan_format_command(const struct plan_argv *argv)
{
    struct text t = {0};
    for (size_t i = 0; i < argv->len; i++) {
        const char *arg = argv->data[i];
        if (i)
            put(&t, " ", 1);
        if (is_plain(arg))
            put(&t, arg, strlen(arg));
        else if (is_safe(arg, strlen(arg)))
            put_quoted(&t, arg);
        else
            put_escaped(&t, arg);
    }
    put(&t, "", 1);
    return t.v.data;
}
