#include "tui/ui/settings.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/base/vec.h"
#include "tui/term/theme.h"

static const struct setting_info infos[SET_COUNT] = {
#define SETTING_INFO_(id, name, type, preset, limits, help)                                        \
    [SET_##id] = {name, SETTING_##type, preset, limits, help},
    SETTINGS(SETTING_INFO_)
#undef SETTING_INFO_
};

struct settings {
    struct {
        char *text;
        uint64_t number; /* bool: 0 or 1 */
    } value[SET_COUNT];
    VEC(struct settings_mistake) mistakes;
};

const struct setting_info *setting_info(enum setting which)
{
    return &infos[which];
}

enum setting setting_find(const char *name)
{
    size_t i = 0;
    while (i < SET_COUNT && strcmp(infos[i].name, name) != 0)
        i++;
    return (enum setting)i;
}

struct settings *settings_new(void)
{
    struct settings *s = xcalloc(1, sizeof *s);
    for (size_t i = 0; i < SET_COUNT; i++)
        settings_set(s, (enum setting)i, infos[i].preset, NULL);
    return s;
}

void settings_free(struct settings *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < SET_COUNT; i++)
        free(s->value[i].text);
    for (size_t i = 0; i < s->mistakes.len; i++)
        free(s->mistakes.data[i].text);
    vec_free(&s->mistakes);
    free(s);
}

const char *settings_text(const struct settings *s, enum setting which)
{
    return s->value[which].text;
}

bool settings_bool(const struct settings *s, enum setting which)
{
    return s->value[which].number != 0;
}

uint64_t settings_number(const struct settings *s, enum setting which)
{
    return s->value[which].number;
}

/* True when word is one of the blank-separated words. */
static bool is_choice(const char *words, const char *word)
{
    size_t len = strlen(word);
    for (const char *p = words; len && *p;) {
        size_t n = strcspn(p, " ");
        if (n == len && memcmp(p, word, n) == 0)
            return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

static int parse_bool(const char *name, const char *value, uint64_t *number, struct err *err)
{
    if (strcmp(value, "on") == 0 || strcmp(value, "off") == 0) {
        *number = value[1] == 'n';
        return 0;
    }
    return err_set(err, MTUI_E_INVAL, "%s is on or off, not '%s'", name, value);
}

static int parse_duration(const struct setting_info *info, const char *value, uint64_t *number,
                          struct err *err)
{
    char low[32], high[32];
    uint64_t ns = 0, least = 0, most = 0;
    if (fmt_parse_duration(value, &ns, err) < 0)
        return MTUI_E_INVAL;
    if (sscanf(info->limits, "%31s %31s", low, high) == 2 &&
        fmt_parse_duration(low, &least, NULL) == 0 && fmt_parse_duration(high, &most, NULL) == 0 &&
        (ns < least || ns > most))
        return err_set(err, MTUI_E_INVAL, "%s is from %s to %s", info->name, low, high);
    *number = ns;
    return 0;
}

static int parse_value(const struct setting_info *info, const char *value, uint64_t *number,
                       struct err *err)
{
    unsigned long least = 0, most = 0;
    switch (info->type) {
    case SETTING_BOOL:
        return parse_bool(info->name, value, number, err);
    case SETTING_INT:
        sscanf(info->limits, "%lu %lu", &least, &most);
        return fmt_parse_u64(value, least, most, number, err);
    case SETTING_DURATION:
        return parse_duration(info, value, number, err);
    case SETTING_CHOICE:
        if (!is_choice(info->limits, value))
            return err_set(err, MTUI_E_INVAL, "%s is one of %s, not '%s'", info->name,
                           info->limits, value);
        return 0;
    case SETTING_TEXT:
    default:
        return 0;
    }
}

int settings_set(struct settings *s, enum setting which, const char *value, struct err *err)
{
    const struct setting_info *info = &infos[which];
    uint64_t number = 0;
    if (info->type == SETTING_BOOL && (!value || !value[0]))
        value = s->value[which].number ? "off" : "on";
    if (!value)
        return err_set(err, MTUI_E_INVAL, "%s needs a value", info->name);
    int rc = parse_value(info, value, &number, err);
    if (rc < 0)
        return rc;
    char *copy = xstrdup(value); /* value may be the text that is freed next */
    free(s->value[which].text);
    s->value[which].text = copy;
    s->value[which].number = number;
    return 0;
}

static int command_set(struct settings *s, const struct conf_words *w, struct err *err)
{
    if (w->n < 2)
        return err_set(err, MTUI_E_INVAL, "set takes a name and a value");
    enum setting which = setting_find(w->word[1]);
    if (which == SET_COUNT)
        return err_set(err, MTUI_E_INVAL, "no setting is called '%s'; :set lists them",
                       w->word[1]);
    if (w->n > 3)
        return err_set(err, MTUI_E_INVAL, "set takes a name and a value");
    if (w->n == 2 && infos[which].type != SETTING_BOOL)
        return err_set(err, MTUI_E_INVAL, "%s is %s", infos[which].name, s->value[which].text);
    return settings_set(s, which, w->n == 3 ? w->word[2] : NULL, err);
}

static int parse_place(const struct conf_words *w, enum context *ctx, struct key *key,
                       struct err *err)
{
    *ctx = context_find(w->word[1]);
    if (*ctx != CTX_COUNT)
        return key_parse(w->word[2], key, err);
    char all[200] = "";
    for (size_t i = 0, n = 0; i < CTX_COUNT; i++)
        n += (size_t)snprintf(all + n, sizeof all - n, " %s", context_name((enum context)i));
    return err_set(err, MTUI_E_INVAL, "no context is called '%s':%s", w->word[1], all);
}

static int command_bind(struct keymap *km, const struct conf_words *w, struct err *err)
{
    enum context ctx;
    struct key key;
    if (w->n < 4)
        return err_set(err, MTUI_E_INVAL, "bind takes a context, a key and a command");
    int rc = parse_place(w, &ctx, &key, err);
    if (rc < 0)
        return rc;
    enum action act = action_find(w->word[3]);
    if (act == ACT_NONE)
        return err_set(err, MTUI_E_INVAL, "no command is called '%s'; ? lists them", w->word[3]);
    keymap_bind(km, ctx, key, act, w->n > 4 ? w->tail[4] : NULL);
    return 0;
}

static int command_unbind(struct keymap *km, const struct conf_words *w, struct err *err)
{
    enum context ctx;
    struct key key;
    if (w->n != 3)
        return err_set(err, MTUI_E_INVAL, "unbind takes a context and a key");
    int rc = parse_place(w, &ctx, &key, err);
    if (rc == 0 && !keymap_unbind(km, ctx, key))
        rc = err_set(err, MTUI_E_INVAL, "%s is not bound in %s", w->word[2], w->word[1]);
    return rc;
}

int settings_command(struct settings *s, struct keymap *km, const struct conf_words *w,
                     struct err *err)
{
    switch ((int)action_find(w->word[0])) {
    case ACT_SET:
        return command_set(s, w, err);
    case ACT_THEME:
        if (w->n != 2)
            return err_set(err, MTUI_E_INVAL, "theme takes a name; it is %s now",
                           s->value[SET_THEME].text);
        return settings_set(s, SET_THEME, w->word[1], err);
    case ACT_BIND:
        return command_bind(km, w, err);
    case ACT_UNBIND:
        return command_unbind(km, w, err);
    default:
        return 1;
    }
}

struct config_target {
    struct settings *s;
    struct keymap *km;
};

/* A theme is read when the screen is there: one that cannot be read is found here, while its line is known. */
static int check_theme(const char *name, struct err *err)
{
    struct theme *theme = theme_new(COLOR_256);
    int rc = theme_load(theme, name, err);
    theme_free(theme);
    return rc;
}

static int config_line(void *arg, const struct conf_words *w, int line, struct err *err)
{
    struct config_target *t = arg;
    enum action act = action_find(w->word[0]);
    enum setting which = act == ACT_SET && w->n > 1 ? setting_find(w->word[1]) : SET_COUNT;
    int rc = 0;
    (void)line;
    if (which != SET_COUNT && w->n == 2 && infos[which].type != SETTING_BOOL)
        return err_set(err, MTUI_E_INVAL, "set %s needs a value, as '%s'", w->word[1],
                       t->s->value[which].text);
    if (act == ACT_THEME && w->n == 2)
        rc = check_theme(w->word[1], err);
    else if (which == SET_THEME && w->n == 3)
        rc = check_theme(w->word[2], err);
    if (rc == 0)
        rc = settings_command(t->s, t->km, w, err);
    if (rc == 1)
        return err_set(err, MTUI_E_INVAL, "'%s' has no place here: set, bind, unbind or theme",
                       w->word[0]);
    return rc;
}

static void keep_mistake(void *arg, int line, int code, const struct err *err)
{
    struct config_target *t = arg;
    (void)code;
    vec_push(&t->s->mistakes, ((struct settings_mistake){line, xstrdup(err->text)}));
}

int settings_read_config(struct settings *s, struct keymap *km, const char *path, struct err *err)
{
    struct config_target t = {s, km};
    int rc = conf_read_all(path, config_line, keep_mistake, &t, err);
    if (rc < 0)
        return rc == MTUI_E_NOENT || (rc == MTUI_E_PERM && access(path, F_OK) < 0) ? 0 : rc;
    return s->mistakes.len < INT_MAX ? (int)s->mistakes.len : INT_MAX;
}

size_t settings_mistake_count(const struct settings *s)
{
    return s->mistakes.len;
}

const struct settings_mistake *settings_mistake(const struct settings *s, size_t i)
{
    return &s->mistakes.data[i];
}

char *settings_config_path(char *out, size_t size)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (config && config[0] == '/')
        snprintf(out, size, "%s/mtui/config", config);
    else
        snprintf(out, size, "%s/.config/mtui/config", home ? home : "");
    return out;
}
