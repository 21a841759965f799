#include "core/base/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

#include "core/base/alloc.h"

#define MATCH_STEPS 200000u

struct regex {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
    bool gave_up;
};

/* Escapes such as \S or \W are no upper-case letters of the pattern's text. */
static bool has_upper(const char *pattern)
{
    for (const char *p = pattern; *p; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (*p >= 'A' && *p <= 'Z')
            return true;
    }
    return false;
}

int regex_compile(const char *pattern, bool smart_case, struct regex **out, struct err *err)
{
    int code;
    PCRE2_SIZE at;
    uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
    if (smart_case && !has_upper(pattern))
        options |= PCRE2_CASELESS;
    pcre2_code *c = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &code, &at,
                                  NULL);
    if (!c) {
        unsigned char text[200];
        pcre2_get_error_message(code, text, sizeof text);
        return err_set(err, MTUI_E_INVAL, "regular expression, at character %zu: %s", (size_t)at,
                       (char *)text);
    }
    pcre2_jit_compile(c, PCRE2_JIT_COMPLETE);
    struct regex *r = xcalloc(1, sizeof *r);
    r->code = c;
    r->data = pcre2_match_data_create_from_pattern(c, NULL);
    r->context = pcre2_match_context_create(NULL);
    if (!r->data || !r->context) {
        regex_free(r);
        return err_set(err, MTUI_E_NOMEM, "no memory for the regular expression");
    }
    pcre2_set_match_limit(r->context, MATCH_STEPS);
    *out = r;
    return 0;
}

void regex_free(struct regex *r)
{
    if (!r)
        return;
    pcre2_match_context_free(r->context);
    pcre2_match_data_free(r->data);
    pcre2_code_free(r->code);
    free(r);
}

bool regex_match(struct regex *r, const char *text, size_t len, size_t *from, size_t *to)
{
    int rc = pcre2_match(r->code, (PCRE2_SPTR)text, len, 0, 0, r->data, r->context);
    if (rc < 0) {
        r->gave_up |= rc != PCRE2_ERROR_NOMATCH;
        return false;
    }
    const PCRE2_SIZE *ovector = pcre2_get_ovector_pointer(r->data);
    /* \K can put the start behind the end. */
    size_t a = ovector[0] < len ? ovector[0] : len, b = ovector[1] < len ? ovector[1] : len;
    if (from)
        *from = a;
    if (to)
        *to = b > a ? b : a;
    return true;
}

bool regex_gave_up(const struct regex *r)
{
    return r->gave_up;
}
