#include "tui/analysis/row_filter.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/base/regex.h"
#include "core/base/vec.h"
#include "tui/timeline/ruler.h"

struct condition {
    const struct filter_field *field;
    enum filter_op op;
    uint64_t number;
    char *text; /* FILTER_NAME, FILTER_TEXT */
    struct regex *re;
};

struct row_filter {
    char *text;
    struct function_names *names;
    VEC(struct condition) conditions;
};

void row_filter_free(struct row_filter *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->conditions.len; i++) {
        free(f->conditions.data[i].text);
        regex_free(f->conditions.data[i].re);
    }
    vec_free(&f->conditions);
    free(f->text);
    free(f);
}

const char *row_filter_text(const struct row_filter *f)
{
    return f ? f->text : "";
}

/* ---- Words ---- */

/* The operator at s, or NULL; *end is behind it. */
static const char *find_op(const char *s, enum filter_op *op, const char **end)
{
    static const struct {
        const char *text;
        enum filter_op op;
    } ops[] = {{">=", FILTER_AT_LEAST}, {"<=", FILTER_AT_MOST}, {">", FILTER_MORE},
               {"<", FILTER_LESS},      {"=", FILTER_EQUAL}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strncmp(s, ops[i].text, strlen(ops[i].text)) == 0) {
            *op = ops[i].op;
            *end = s + strlen(ops[i].text);
            return s;
        }
    return NULL;
}

static size_t name_length(const char *s)
{
    size_t n = 0;
    while (isalpha((unsigned char)s[0]) && (isalnum((unsigned char)s[n]) || strchr("_.%", s[n])) && s[n])
        n++;
    return n;
}

bool filter_word_split(const char *word, struct filter_word *out)
{
    size_t n = name_length(word);
    if (n >= sizeof out->name || !find_op(word + n, &out->op, &out->value))
        return false;
    memcpy(out->name, word, n);
    out->name[n] = '\0';
    return n > 0 || *out->value;
}

/* ---- From text to conditions ---- */

struct parser {
    struct row_filter *f;
    const struct filter_field *fields;
    size_t n;
    const struct trace *t;
    char *name; /* words without a NAME, joined; NULL: none yet */
    struct err *err;
};

static const struct filter_field *find_field(const struct parser *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->fields[i].name, name) == 0)
            return &p->fields[i];
    return NULL;
}

static const struct filter_field *name_field(const struct parser *p)
{
    const struct filter_field *f = p->fields;
    while (f->kind != FILTER_NAME)
        f++;
    return f;
}

static int parse_permille(const char *text, uint64_t *out, struct err *err)
{
    const size_t whole = strspn(text, "0123456789");
    const bool tenth = text[whole] == '.' && isdigit((unsigned char)text[whole + 1]);
    const char *end = text + whole + (tenth ? 2 : 0);
    if (whole == 0 || whole > 6 || strcmp(end + (*end == '%'), "") != 0)
        return err_set(err, MTUI_E_INVAL, "'%s' is no percentage: write it as 10 or 2.5", text);
    *out = 0;
    for (size_t i = 0; i < whole; i++)
        *out = *out * 10 + (uint64_t)(text[i] - '0');
    *out = *out * 10 + (tenth ? (uint64_t)(text[whole + 1] - '0') : 0);
    return 0;
}

static int parse_number(const struct parser *p, enum filter_kind kind, const char *text, uint64_t *out)
{
    if (kind == FILTER_PERMILLE)
        return parse_permille(text, out, p->err);
    if (fmt_parse_u64(text, 0, UINT64_MAX, out, NULL) == 0)
        return 0;
    if (kind == FILTER_COUNT)
        return fmt_parse_count(text, out, p->err);
    return ruler_parse(text, p->t && trace_info(p->t)->instructions, out, p->err);
}

static int add_text(struct parser *p, const struct filter_field *field, const char *text)
{
    struct condition c = {.field = field, .op = FILTER_EQUAL};
    if (field->kind == FILTER_NAME && !function_names_occur(p->f->names, text)) {
        int rc = regex_compile(text, true, &c.re, p->err);
        if (rc < 0)
            return rc;
    }
    c.text = xstrdup(text);
    vec_push(&p->f->conditions, c);
    return 0;
}

static int add_condition(struct parser *p, const struct filter_field *field, enum filter_op op, const char *value)
{
    struct condition c = {.field = field, .op = op};
    if (field->kind != FILTER_NAME && field->kind != FILTER_TEXT) {
        int rc = parse_number(p, field->kind, value, &c.number);
        if (rc == 0)
            vec_push(&p->f->conditions, c);
        return rc;
    }
    if (op != FILTER_EQUAL)
        return err_set(p->err, MTUI_E_INVAL, "%s takes = and a part of it", field->name);
    return add_text(p, field, value);
}

static int refuse(const struct parser *p, const char *name)
{
    char names[200] = "";
    size_t len = 0;
    for (size_t i = 0; i < p->n; i++)
        if (*p->fields[i].name && len < sizeof names)
            len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", len ? " " : "", p->fields[i].name);
    return err_set(p->err, MTUI_E_INVAL, "%s is none of %s; %s=TEXT takes any text", name, names, name_field(p)->name);
}

static void add_name(struct parser *p, const char *word)
{
    char *joined = p->name ? xasprintf("%s %s", p->name, word) : xstrdup(word);
    free(p->name);
    p->name = joined;
}

static int take_word(struct parser *p, const char *word)
{
    struct filter_word w;
    const struct filter_field *field;
    if (!filter_word_split(word, &w)) {
        add_name(p, word);
        return 0;
    }
    if ((field = find_field(p, w.name)) && (*w.name || !function_names_occur(p->f->names, word)))
        return *w.value ? add_condition(p, field, w.op, w.value)
                        : err_set(p->err, MTUI_E_INVAL, "%s what?", word);
    if (*w.name && *w.value && !function_names_occur(p->f->names, word))
        return refuse(p, w.name);
    add_name(p, word);
    return 0;
}

/* The length of the word at s, without the blanks around an operator behind a name that is known:
 * "calls > 10" is one. */
static size_t read_word(const struct parser *p, const char *s, char *out)
{
    size_t n = strcspn(s, " "), name = name_length(s);
    enum filter_op op;
    const char *at = s + name + strspn(s + name, " "), *end;
    char known[24] = "";
    if (name < sizeof known)
        memcpy(known, s, name);
    if (name < sizeof known && name > 0 && find_field(p, known) && find_op(at, &op, &end)) {
        const char *value = end + strspn(end, " ");
        size_t len = strcspn(value, " ");
        sprintf(out, "%s%.*s%.*s", known, (int)(end - at), at, (int)len, value);
        return (size_t)(value - s) + len;
    }
    memcpy(out, s, n);
    out[n] = '\0';
    return n;
}

static int parse(struct row_filter **out, const char *text, const struct filter_field *fields, size_t n,
                 const struct trace *t, struct function_names *names, struct err *err)
{
    struct parser p = {xcalloc(1, sizeof *p.f), fields, n, t, NULL, err};
    char *word = xmalloc(strlen(text) + 1);
    int rc = 0;
    p.f->text = xstrdup(text);
    p.f->names = names;
    for (const char *s = text + strspn(text, " "); rc == 0 && *s; s += strspn(s, " ")) {
        s += read_word(&p, s, word);
        rc = take_word(&p, word);
    }
    if (rc == 0 && p.name)
        rc = add_text(&p, name_field(&p), p.name);
    free(p.name);
    free(word);
    if (rc < 0) {
        row_filter_free(p.f);
        return MTUI_E_INVAL;
    }
    *out = p.f;
    return 0;
}

int row_filter_set(struct row_filter **f, const char *text, const struct filter_field *fields, size_t n,
                   const struct trace *t, struct function_names *names, struct err *err)
{
    struct row_filter *parsed = NULL;
    int rc = text && *text ? parse(&parsed, text, fields, n, t, names, err) : 0;
    if (rc < 0)
        return rc;
    row_filter_free(*f);
    *f = parsed;
    return 0;
}

/* ---- Of a row ---- */

static bool holds(const struct condition *c, uint64_t v)
{
    switch (c->op) {
    case FILTER_LESS:
        return v < c->number;
    case FILTER_AT_MOST:
        return v <= c->number;
    case FILTER_EQUAL:
        return v == c->number;
    case FILTER_AT_LEAST:
        return v >= c->number;
    case FILTER_MORE:
        return v > c->number;
    }
    return false;
}

static bool has_text(const struct condition *c, const char *text)
{
    return strcasestr(text, c->text) || (c->re && regex_match(c->re, text, strlen(text), NULL, NULL));
}

static bool has_name(const struct condition *c, struct function_names *names, fn_id fn)
{
    const char *form;
    for (int i = 0; fn != FN_NONE && (form = function_names_form(names, fn, i)); i++)
        if (has_text(c, form))
            return true;
    return false;
}

static bool condition_holds(const struct row_filter *f, const struct condition *c, const struct filter_values *values,
                            const void *row)
{
    if (c->field->kind == FILTER_NAME)
        return has_name(c, f->names, values->function(values->arg, row));
    if (c->field->kind == FILTER_TEXT)
        return has_text(c, values->text(values->arg, row, c->field->id));
    return holds(c, values->number(values->arg, row, c->field->id));
}

bool row_filter_passes(const struct row_filter *f, const struct filter_values *values, const void *row)
{
    for (size_t i = 0; f && i < f->conditions.len; i++)
        if (!condition_holds(f, &f->conditions.data[i], values, row))
            return false;
    return true;
}
