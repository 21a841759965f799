#include "core/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"

static void store(struct err *e, int code, const char *raw)
{
    e->code = code;
    utf8_readable(e->text, sizeof e->text, raw, strlen(raw));
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
    if (!e)
        return code;
    char raw[sizeof e->text];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    store(e, code, raw);
    return code;
}

static int code_of_errno(int errno_value)
{
    switch (errno_value) {
    case EPERM:
    case EACCES:
        return MTUI_E_PERM;
    case ENOENT:
        return MTUI_E_NOENT;
    case ESRCH:
        return MTUI_E_GONE;
    case ENOMEM:
        return MTUI_E_NOMEM;
    default:
        return MTUI_E_IO;
    }
}

int err_errno(struct err *e, int errno_value, const char *fmt, ...)
{
    int code = code_of_errno(errno_value);
    if (!e)
        return code;
    char what[sizeof e->text], raw[sizeof e->text + 128];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    snprintf(raw, sizeof raw, "%s: %s", what, strerror(errno_value));
    store(e, code, raw);
    return code;
}

int err_prefix(struct err *e, const char *fmt, ...)
{
    if (!e)
        return MTUI_E_INVAL;
    char what[sizeof e->text], raw[2 * sizeof e->text + 4];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    snprintf(raw, sizeof raw, "%s: %s", what, e->text);
    store(e, e->code, raw);
    return e->code;
}
