#include "tui/term/theme.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/conf.h"
#include "tui/term/theme_builtin.h"

struct theme_role {
    struct color fg, bg;
    unsigned attr;
    bool set; /* for fn*: the theme named it */
};

struct theme_roles {
    struct theme_role role[ROLE_COUNT];
    bool light; /* the terminal is taken for a light one, in contrast checks */
};

struct theme {
    enum color_tier tier;
    char name[64];
    struct theme_roles roles, mono;
};

static const char *const role_names[ROLE_FN0] = {
    [ROLE_DEFAULT] = "default", [ROLE_BAR] = "bar",         [ROLE_BAR_ACTIVE] = "bar-active",
    [ROLE_TITLE] = "title",     [ROLE_HEADER] = "header",   [ROLE_DIM] = "dim",
    [ROLE_SELECT] = "select",   [ROLE_MARKED] = "marked",   [ROLE_MATCH] = "match",
    [ROLE_OK] = "ok",           [ROLE_WARN] = "warn",       [ROLE_ERROR] = "error",
    [ROLE_REC] = "rec",         [ROLE_PROMPT] = "prompt",   [ROLE_RULER] = "ruler",
    [ROLE_CURSOR] = "cursor",   [ROLE_RANGE] = "range",     [ROLE_MARK] = "mark",
    [ROLE_KERNEL] = "kernel",   [ROLE_VDSO] = "vdso",       [ROLE_UNKNOWN] = "unknown",
    [ROLE_OFF_CPU] = "off-cpu", [ROLE_GAP] = "gap",         [ROLE_UNTRACED] = "untraced",
    [ROLE_MINIMAP] = "minimap", [ROLE_SOURCE] = "source",
};

static const char *const fn_names[SURFACE_FN_COLORS] = {
    "fn0",  "fn1",  "fn2",  "fn3",  "fn4",  "fn5",  "fn6",  "fn7",  "fn8",  "fn9",  "fn10",
    "fn11", "fn12", "fn13", "fn14", "fn15", "fn16", "fn17", "fn18", "fn19", "fn20", "fn21",
    "fn22", "fn23", "fn24", "fn25", "fn26", "fn27", "fn28", "fn29", "fn30", "fn31"};

static const struct {
    const char *name;
    unsigned attr;
} attr_names[] = {{"bold", CELL_BOLD},       {"dim", CELL_DIM},         {"underline", CELL_UNDERLINE},
                  {"reverse", CELL_REVERSE}, {"standout", CELL_STANDOUT}};

const char *role_name(unsigned role)
{
    return role < ROLE_FN0 ? role_names[role] : role < ROLE_COUNT ? fn_names[role - ROLE_FN0] : "?";
}

unsigned role_find(const char *name)
{
    unsigned role = 0;
    while (role < ROLE_COUNT && strcmp(role_name(role), name) != 0)
        role++;
    return role;
}

static int parse_line(void *arg, const struct conf_words *w, int line, struct err *err)
{
    struct theme_roles *roles = arg;
    (void)line;
    if (!w->assignment)
        return err_set(err, MTUI_E_FORMAT, "a theme has lines such as: select = black cyan bold");
    if (strcmp(w->word[0], "terminal") == 0) {
        bool light = w->n == 2 && strcmp(w->word[1], "light") == 0;
        if (!light && !(w->n == 2 && strcmp(w->word[1], "dark") == 0))
            return err_set(err, MTUI_E_FORMAT, "terminal is dark or light");
        roles->light = light;
        return 0;
    }
    unsigned role = role_find(w->word[0]);
    if (role == ROLE_COUNT)
        return err_set(err, MTUI_E_FORMAT, "no role is called '%s'", w->word[0]);
    if (w->n < 3)
        return err_set(err, MTUI_E_FORMAT, "'%s' needs two colours, for text and background",
                       w->word[0]);
    struct theme_role r = {.set = true};
    if (color_parse(w->word[1], &r.fg, err) < 0 || color_parse(w->word[2], &r.bg, err) < 0)
        return MTUI_E_FORMAT;
    for (size_t i = 3; i < w->n; i++) {
        unsigned attr = 0;
        for (size_t a = 0; a < sizeof attr_names / sizeof *attr_names; a++)
            if (strcmp(attr_names[a].name, w->word[i]) == 0)
                attr = attr_names[a].attr;
        if (!attr)
            return err_set(err, MTUI_E_FORMAT,
                           "'%s' is no attribute: bold, dim, underline, reverse or standout",
                           w->word[i]);
        r.attr |= attr;
    }
    roles->role[role] = r;
    return 0;
}

static void builtin(struct theme_roles *roles, const char *text)
{
    *roles = (struct theme_roles){0};
    struct err err = {0};
    if (conf_read_text("built-in theme", text, strlen(text), parse_line, roles, &err) < 0) {
        fprintf(stderr, "mtui: %s\n", err.text); /* a broken build; a test loads both */
        abort();
    }
}

struct theme *theme_new(enum color_tier tier)
{
    struct theme *t = xcalloc(1, sizeof *t);
    t->tier = tier;
    snprintf(t->name, sizeof t->name, "default");
    builtin(&t->roles, theme_builtin_default);
    builtin(&t->mono, theme_builtin_mono);
    return t;
}

void theme_free(struct theme *t)
{
    free(t);
}

static void adopt(struct theme *t, const char *name, const struct theme_roles *roles)
{
    if (!t)
        return;
    t->roles = *roles;
    snprintf(t->name, sizeof t->name, "%s", name);
}

static int parse_roles(struct theme_roles *roles, const char *name, const char *text, size_t len,
                       struct err *err)
{
    builtin(roles, theme_builtin_default);
    return conf_read_text(name, text, len, parse_line, roles, err);
}

int theme_parse(struct theme *t, const char *name, const char *text, size_t len, struct err *err)
{
    struct theme_roles roles;
    int rc = parse_roles(&roles, name, text, len, err);
    if (rc == 0)
        adopt(t, name, &roles);
    return rc;
}

bool theme_folder(size_t i, char *out, size_t size)
{
    static const char *const near_binary[] = {"themes", "../themes", "../../themes",
                                              "../share/mtui/themes"};
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (i == 0) {
        if (config && config[0] == '/')
            snprintf(out, size, "%s/mtui/themes", config);
        else
            snprintf(out, size, "%s/.config/mtui/themes", home ? home : "");
        return true;
    }
    if (i <= sizeof near_binary / sizeof *near_binary) {
        char exe[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
        exe[n > 0 ? n : 0] = '\0';
        char *slash = strrchr(exe, '/');
        if (slash)
            *slash = '\0';
        int len = snprintf(out, size, "%s/%s", exe, near_binary[i - 1]);
        if (len < 0 || (size_t)len >= size)
            out[0] = '\0';
        return true;
    }
    snprintf(out, size, "%s/themes", MTUI_DATADIR);
    return i == 1 + sizeof near_binary / sizeof *near_binary;
}

static int load_roles(struct theme_roles *roles, const char *name, struct err *err)
{
    builtin(roles, theme_builtin_default);
    size_t len = strlen(name);
    if (strchr(name, '/') || (len > 6 && strcmp(name + len - 6, ".theme") == 0))
        return conf_read_file(name, parse_line, roles, err);
    char folder[PATH_MAX], path[PATH_MAX + 80];
    for (size_t i = 0; theme_folder(i, folder, sizeof folder); i++) {
        snprintf(path, sizeof path, "%s/%.64s.theme", folder, name);
        int rc = conf_read_file(path, parse_line, roles, err);
        /* A folder that is closed to us (another's home) has no theme for us. */
        if (rc != MTUI_E_NOENT && rc != MTUI_E_PERM)
            return rc;
    }
    if (strcmp(name, "default") == 0)
        return 0;
    if (strcmp(name, "mono") == 0) {
        builtin(roles, theme_builtin_mono);
        return 0;
    }
    theme_folder(0, folder, sizeof folder);
    return err_set(err, MTUI_E_NOENT, "no theme '%s': not one of mtui's own, nor a NAME.theme in %s",
                   name, folder);
}

int theme_load(struct theme *t, const char *name, struct err *err)
{
    struct theme_roles roles;
    int rc = load_roles(&roles, name, err);
    if (rc == 0)
        adopt(t, name, &roles);
    return rc;
}

const char *theme_name(const struct theme *t)
{
    return t->name;
}

enum color_tier theme_tier(const struct theme *t)
{
    return t->tier;
}

void theme_set_tier(struct theme *t, enum color_tier tier)
{
    t->tier = tier;
}

unsigned theme_palette_size(const struct theme *t)
{
    return color_palette_size(t ? t->tier : COLOR_256);
}

static bool is_fill(unsigned role)
{
    return (role >= ROLE_KERNEL && role <= ROLE_UNTRACED) || role >= ROLE_FN0;
}

/* The look of a role by itself, on the tier. */
static struct theme_role role_on_tier(const struct theme_roles *roles, enum color_tier tier,
                                      unsigned role)
{
    struct theme_role r = roles->role[role];
    if (role >= ROLE_FN0 && !r.set) {
        r.fg = color_palette_text(tier, role - ROLE_FN0);
        r.bg = color_palette_fill(tier, role - ROLE_FN0);
    }
    r.fg = color_on_tier(r.fg, tier);
    r.bg = color_on_tier(r.bg, tier);
    return r;
}

/* Without colours spans of functions alternate between two kinds of reverse. */
static struct theme_role mono_role(const struct theme *t, unsigned role)
{
    struct theme_role r = t->mono.role[role];
    if (role >= ROLE_FN0)
        r.attr = CELL_REVERSE | ((role - ROLE_FN0) % 2 ? CELL_DIM : 0u);
    return r;
}

static struct look mono_look(const struct theme *t, const struct cell *c)
{
    unsigned attr = c->attr;
    if (is_fill(c->paper))
        attr |= mono_role(t, c->paper).attr;
    else {
        attr |= mono_role(t, c->paper).attr;
        if (!is_fill(c->ink))
            attr |= mono_role(t, c->ink).attr;
    }
    return (struct look){.attr = attr & ~(unsigned)CELL_AGGREGATE};
}

struct look theme_look(const struct theme *t, const struct cell *c)
{
    if (c->ink >= ROLE_COUNT || c->paper >= ROLE_COUNT)
        return (struct look){.attr = 0};
    if (t->tier == COLOR_MONO)
        return mono_look(t, c);
    struct theme_role ink = role_on_tier(&t->roles, t->tier, c->ink);
    struct theme_role paper = role_on_tier(&t->roles, t->tier, c->paper);
    struct look look = {.bg = paper.bg, .attr = c->attr & ~(unsigned)CELL_AGGREGATE};
    bool fragment = is_fill(c->ink) && c->ink != c->paper;
    look.fg = fragment ? ink.bg : ink.fg;
    look.attr |= paper.attr;
    if (!fragment)
        look.attr |= ink.attr;
    return look;
}

static uint32_t shown_rgb(struct color c, bool text, bool light)
{
    if (c.kind == COLOR_KIND_RGB)
        return c.value;
    if (c.kind == COLOR_KIND_INDEX)
        return color_index_rgb((uint8_t)c.value);
    return text == light ? 0x000000 : light ? 0xffffff : 0xe5e5e5;
}

static double role_contrast(const struct theme_roles *roles, enum color_tier tier, unsigned role)
{
    struct theme_role r = role_on_tier(roles, tier, role);
    struct color paper = r.bg;
    return color_contrast(shown_rgb(r.fg, true, roles->light), shown_rgb(paper, false, roles->light));
}

int theme_check(const char *name, FILE *out, struct err *err)
{
    struct theme_roles roles;
    int rc = load_roles(&roles, name, err);
    if (rc < 0)
        return rc;
    int bad = 0;
    fprintf(out, "%-12s %8s %8s  on a %s terminal\n", "role", "256", "16",
            roles.light ? "light" : "dark");
    for (unsigned role = 0; role < ROLE_COUNT; role++) {
        if (role >= ROLE_FN0 + color_palette_size(COLOR_256) && !roles.role[role].set)
            continue;
        double full = role_contrast(&roles, COLOR_256, role);
        double few = role_contrast(&roles, COLOR_16, role);
        double worst = full < few ? full : few;
        bad += worst < 3;
        fprintf(out, "%-12s %7.1f%s %7.1f%s%s\n", role_name(role), full, ":1", few, ":1",
                worst < 3 ? "  too low" : worst < 4.5 ? "  low" : "");
    }
    return bad;
}
