#include "core/trigger/trigger.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/regex.h"

#define AT_RETURN "@return"

static bool ends_with(const char *s, size_t len, const char *suffix)
{
    size_t n = strlen(suffix);
    return len >= n && memcmp(s + len - n, suffix, n) == 0;
}

static bool is_regex(const char *s)
{
    size_t len = strlen(s);
    return len > 2 && s[0] == '/' && s[len - 1] == '/';
}

/* The colon of "module:rest": alone, not part of "::". NULL: none. */
static const char *module_colon(const char *s)
{
    for (const char *c = strchr(s, ':'); c; c = strchr(c + 1, ':')) {
        if (c[1] != ':')
            return c;
        c++;
    }
    return NULL;
}

/* The colon of FILE:LINE. */
static const char *line_colon(const char *s)
{
    const char *c = strrchr(s, ':');
    if (!c || c == s || c[-1] == ':' || !c[1] || strspn(c + 1, "0123456789") != strlen(c + 1))
        return NULL;
    return c;
}

static bool is_address(const char *s)
{
    return s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
}

static int parse_address(struct trigger *t, const char *s, struct err *err)
{
    char *end = NULL;
    errno = 0;
    t->kind = TRIGGER_ADDRESS;
    t->addr = strtoull(s, &end, 16);
    if (errno != 0 || end == s + 2 || *end)
        return err_set(err, MTUI_E_INVAL, "trigger %s: not a hexadecimal address", t->text);
    return 0;
}

static int parse_line(struct trigger *t, const char *s, const char *colon, struct err *err)
{
    errno = 0;
    unsigned long line = strtoul(colon + 1, NULL, 10);
    if (errno != 0 || line == 0 || line > INT32_MAX)
        return err_set(err, MTUI_E_INVAL, "trigger %s: there is no line %s", t->text, colon + 1);
    t->kind = TRIGGER_LINE;
    t->line = (uint32_t)line;
    t->name = xstrndup(s, (size_t)(colon - s));
    return 0;
}

static int parse_regex(struct trigger *t, const char *s, struct err *err)
{
    struct regex *r = NULL;
    t->kind = TRIGGER_REGEX;
    t->name = xstrndup(s + 1, strlen(s) - 2);
    int rc = regex_compile(t->name, false, &r, err);
    if (rc < 0)
        return err_prefix(err, "trigger %s", t->text);
    regex_free(r);
    return 0;
}

static int parse_name(struct trigger *t, const char *s, struct err *err)
{
    const char *colon = is_regex(s) ? NULL : module_colon(s);
    if (colon == s)
        return err_set(err, MTUI_E_INVAL, "trigger %s: no module before the colon", t->text);
    if (colon) {
        t->module = xstrndup(s, (size_t)(colon - s));
        s = colon + 1;
    }
    if (!*s)
        return err_set(err, MTUI_E_INVAL, "trigger %s: no function is named", t->text);
    if (is_regex(s))
        return parse_regex(t, s, err);
    if (is_address(s))
        return parse_address(t, s, err);
    t->kind = TRIGGER_SYMBOL;
    t->name = xstrdup(s);
    return 0;
}

/* Where " if " begins. In a regex the words may stand too: it ends at its last slash. NULL: nowhere. */
static const char *find_if(const char *spec)
{
    const char *slash = strrchr(spec, '/');
    return strstr(slash ? slash : spec, " if ");
}

static int parse_if(struct trigger *t, const char *text, bool known, struct err *err)
{
    int rc = trigger_if_parse(text, &t->condition, err);
    if (rc < 0)
        return err_prefix(err, "trigger %s", t->text);
    if (known && trigger_if_needs_ret(&t->condition) && !trigger_needs_return(t))
        return err_set(err, MTUI_E_INVAL,
                       "trigger %s: what a function returns is known at its return: write NAME%s if "
                       "ret ...",
                       t->text, AT_RETURN);
    return 0;
}

static int parse(struct trigger *t, const char *spec, bool known, struct err *err)
{
    const char *condition = find_if(spec);
    size_t len = condition ? (size_t)(condition - spec) : strlen(spec);
    while (len > 0 && spec[len - 1] == ' ')
        len--;
    t->at_return = ends_with(spec, len, AT_RETURN);
    char *s = xstrndup(spec, len - (t->at_return ? strlen(AT_RETURN) : 0));
    const char *colon = is_regex(s) ? NULL : line_colon(s);
    int rc;
    if (!*s)
        rc = err_set(err, MTUI_E_INVAL, "a trigger needs a function, FILE:LINE, 0xADDR or /regex/");
    else if (colon)
        rc = parse_line(t, s, colon, err);
    else
        rc = parse_name(t, s, err);
    free(s);
    bool function = t->kind == TRIGGER_SYMBOL || t->kind == TRIGGER_REGEX;
    if (rc == 0 && !function && trigger_needs_return(t))
        rc = err_set(err, MTUI_E_INVAL, "trigger %s: only a function returns; %s needs one", spec,
                     t->at_return ? AT_RETURN : "slower-than");
    if (rc == 0 && condition)
        rc = parse_if(t, condition + strlen(" if "), known, err);
    return rc;
}

int trigger_parse(struct trigger *t, const char *spec, const struct trigger_conditions *when,
                  struct err *err)
{
    struct trigger parsed = {.text = xstrdup(spec)};
    if (when)
        parsed.when = *when;
    int rc = parse(&parsed, spec, when != NULL, err);
    if (rc < 0)
        trigger_fini(&parsed);
    else
        *t = parsed;
    return rc;
}

static char *append(char *text, const char *word)
{
    char *more = xasprintf("%s %s", text, word);
    free(text);
    return more;
}

char *trigger_join(const char *const *word, size_t n, size_t *taken)
{
    char *spec = xstrdup(word[0]);
    size_t i = 1;
    bool more = n > 2 && !strcmp(word[1], "if");
    while (more) {
        size_t start = strlen(spec) + strlen(" if ");
        bool whole = false;
        spec = append(spec, word[i++]); /* "if" or "and" */
        while (i < n && !whole) {
            struct trigger_if c;
            spec = append(spec, word[i++]);
            whole = strlen(spec) > start && trigger_if_parse(spec + start, &c, NULL) == 0;
        }
        more = whole && i + 1 < n && !strcmp(word[i], "and");
    }
    *taken = i;
    return spec;
}

void trigger_fini(struct trigger *t)
{
    free(t->text);
    free(t->module);
    free(t->name);
    *t = (struct trigger){0};
}

bool trigger_needs_return(const struct trigger *t)
{
    return t->at_return || t->when.slower_than_ns > 0;
}
