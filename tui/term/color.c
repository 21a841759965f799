#include "tui/term/color.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *const tier_names[COLOR_TIERS] = {"mono", "16", "256", "rgb"};

static const char *const color_names[8] = {"black", "red",     "green", "yellow",
                                           "blue",  "magenta", "cyan",  "white"};

/* xterm's first 16; other terminals differ, so nothing but nearest matches is computed from them. */
static const uint32_t ansi_rgb[16] = {0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd,
                                      0x00cdcd, 0xe5e5e5, 0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00,
                                      0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff};

/* Chosen by search: contrast with black text at least 6.9, pairs at least ΔE76 24.8 apart, no reds. */
static const uint8_t palette_256[16] = {216, 172, 142, 186, 113, 108, 42,  36,
                                        44,  74,  147, 105, 139, 219, 213, 205};

/* Green, yellow, blue, magenta, cyan, bright and normal. All take black text but normal blue. */
static const uint8_t palette_16[10] = {10, 11, 12, 13, 14, 2, 3, 4, 5, 6};

const char *color_tier_name(enum color_tier tier)
{
    return tier_names[tier];
}

int color_tier_parse(const char *name, enum color_tier *tier, struct err *err)
{
    if (strcmp(name, "auto") == 0)
        return 0;
    for (int t = 0; t < COLOR_TIERS; t++) {
        if (strcmp(name, tier_names[t]) == 0) {
            *tier = (enum color_tier)t;
            return 0;
        }
    }
    return err_set(err, MTUI_E_INVAL, "'%s' is no colour tier: auto, mono, 16, 256 or rgb", name);
}

static bool parse_hex(const char *s, uint32_t *rgb)
{
    uint32_t v = 0;
    if (strlen(s) != 6)
        return false;
    for (; *s; s++) {
        if (!isxdigit((unsigned char)*s))
            return false;
        v = v << 4 | (uint32_t)(isdigit((unsigned char)*s) ? *s - '0' : (*s | 32) - 'a' + 10);
    }
    *rgb = v;
    return true;
}

int color_parse(const char *text, struct color *color, struct err *err)
{
    uint32_t v = 0;
    if (strcmp(text, "default") == 0) {
        *color = (struct color){COLOR_KIND_DEFAULT, 0};
        return 0;
    }
    if (text[0] == '#' && parse_hex(text + 1, &v)) {
        *color = (struct color){COLOR_KIND_RGB, v};
        return 0;
    }
    size_t len = strlen(text);
    if (len >= 1 && len <= 3 && strspn(text, "0123456789") == len) {
        v = (uint32_t)strtoul(text, NULL, 10);
        if (v <= 255) {
            *color = (struct color){COLOR_KIND_INDEX, v};
            return 0;
        }
    }
    bool bright = strncmp(text, "bright-", 7) == 0;
    for (uint32_t i = 0; i < 8; i++) {
        if (strcmp(text + (bright ? 7 : 0), color_names[i]) == 0) {
            *color = (struct color){COLOR_KIND_INDEX, i + (bright ? 8 : 0)};
            return 0;
        }
    }
    return err_set(err, MTUI_E_FORMAT,
                   "'%s' is no colour: default, 0-255, #rrggbb, or black red green yellow blue "
                   "magenta cyan white with or without bright-",
                   text);
}

uint32_t color_index_rgb(uint8_t index)
{
    if (index < 16)
        return ansi_rgb[index];
    if (index >= 232) {
        uint32_t grey = 8u + 10u * (index - 232u);
        return grey << 16 | grey << 8 | grey;
    }
    static const uint8_t steps[6] = {0, 95, 135, 175, 215, 255};
    unsigned n = index - 16u;
    return (uint32_t)steps[n / 36] << 16 | (uint32_t)steps[n / 6 % 6] << 8 | steps[n % 6];
}

static double linear(uint32_t channel)
{
    double c = channel / 255.0;
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

static void linear_rgb(uint32_t rgb, double out[3])
{
    out[0] = linear(rgb >> 16 & 0xff);
    out[1] = linear(rgb >> 8 & 0xff);
    out[2] = linear(rgb & 0xff);
}

double color_contrast(uint32_t a, uint32_t b)
{
    double ca[3], cb[3];
    linear_rgb(a, ca);
    linear_rgb(b, cb);
    double la = 0.2126 * ca[0] + 0.7152 * ca[1] + 0.0722 * ca[2];
    double lb = 0.2126 * cb[0] + 0.7152 * cb[1] + 0.0722 * cb[2];
    return la > lb ? (la + 0.05) / (lb + 0.05) : (lb + 0.05) / (la + 0.05);
}

static double lab_f(double t)
{
    return t > 216.0 / 24389 ? cbrt(t) : (24389.0 / 27 * t + 16) / 116;
}

static void lab_of(uint32_t rgb, double lab[3])
{
    double c[3];
    linear_rgb(rgb, c);
    double x = (0.4124564 * c[0] + 0.3575761 * c[1] + 0.1804375 * c[2]) / 0.95047;
    double y = 0.2126729 * c[0] + 0.7151522 * c[1] + 0.0721750 * c[2];
    double z = (0.0193339 * c[0] + 0.1191920 * c[1] + 0.9503041 * c[2]) / 1.08883;
    lab[0] = 116 * lab_f(y) - 16;
    lab[1] = 500 * (lab_f(x) - lab_f(y));
    lab[2] = 200 * (lab_f(y) - lab_f(z));
}

double color_distance(uint32_t a, uint32_t b)
{
    double la[3], lb[3];
    lab_of(a, la);
    lab_of(b, lb);
    return sqrt((la[0] - lb[0]) * (la[0] - lb[0]) + (la[1] - lb[1]) * (la[1] - lb[1]) +
                (la[2] - lb[2]) * (la[2] - lb[2]));
}

static uint32_t nearest(uint32_t rgb, unsigned first, unsigned end)
{
    unsigned best = first;
    double least = 1e9;
    for (unsigned i = first; i < end; i++) {
        double d = color_distance(rgb, color_index_rgb((uint8_t)i));
        if (d < least) {
            least = d;
            best = i;
        }
    }
    return best;
}

struct color color_on_tier(struct color c, enum color_tier tier)
{
    if (c.kind == COLOR_KIND_DEFAULT || tier == COLOR_MONO)
        return (struct color){COLOR_KIND_DEFAULT, 0};
    if (c.kind == COLOR_KIND_INDEX && c.value < 16)
        return c;
    if (tier == COLOR_RGB)
        return c.kind == COLOR_KIND_RGB
                   ? c
                   : (struct color){COLOR_KIND_RGB, color_index_rgb((uint8_t)c.value)};
    if (c.kind == COLOR_KIND_INDEX && tier == COLOR_256)
        return c;
    uint32_t rgb = c.kind == COLOR_KIND_RGB ? c.value : color_index_rgb((uint8_t)c.value);
    c.kind = COLOR_KIND_INDEX;
    c.value = tier == COLOR_256 ? nearest(rgb, 16, 256) : nearest(rgb, 0, 16);
    return c;
}

unsigned color_palette_size(enum color_tier tier)
{
    static const unsigned sizes[COLOR_TIERS] = {2, 10, 16, 32};
    return sizes[tier];
}

/* The upper half of the rgb palette: the same hues, a step towards black (text stays black: contrast
 * at least 4.5). */
static uint32_t darker(uint32_t rgb)
{
    uint32_t out = 0;
    for (int shift = 0; shift <= 16; shift += 8)
        out |= ((rgb >> shift & 0xff) * 83 / 100) << shift;
    return out;
}

struct color color_palette_fill(enum color_tier tier, unsigned n)
{
    n %= color_palette_size(tier);
    switch (tier) {
    case COLOR_16:
        return (struct color){COLOR_KIND_INDEX, palette_16[n]};
    case COLOR_256:
        return (struct color){COLOR_KIND_INDEX, palette_256[n]};
    case COLOR_RGB: {
        uint32_t rgb = color_index_rgb(palette_256[n % 16]);
        return (struct color){COLOR_KIND_RGB, n < 16 ? rgb : darker(rgb)};
    }
    case COLOR_MONO:
    case COLOR_TIERS:
    default:
        return (struct color){COLOR_KIND_DEFAULT, 0};
    }
}

struct color color_palette_text(enum color_tier tier, unsigned n)
{
    n %= color_palette_size(tier);
    if (tier == COLOR_MONO)
        return (struct color){COLOR_KIND_DEFAULT, 0};
    if (tier == COLOR_RGB)
        return (struct color){COLOR_KIND_RGB, 0};
    if (tier == COLOR_256)
        return (struct color){COLOR_KIND_INDEX, 16}; /* the cube's black: 0 may be any dark colour */
    return (struct color){COLOR_KIND_INDEX, palette_16[n] == 4 ? 15 : 0};
}

/* ".cold", ".part.0", ".123": what compilers append to copies of a function. Any other dot belongs to
 * the name (Go's main.handle). */
static bool is_clone_suffix(const char *s)
{
    static const char *const words[] = {"cold", "part", "constprop", "isra",
                                        "lto_priv", "llvm", "localalias"};
    if (s[0] != '.')
        return false;
    if (isdigit((unsigned char)s[1]))
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t len = strlen(words[i]);
        if (strncmp(s + 1, words[i], len) == 0 && (!s[1 + len] || s[1 + len] == '.'))
            return true;
    }
    return false;
}

/* Where the part of a demangled name ends that colours it: before the arguments and clone suffixes.
 * Template arguments stay in (vector<int> and vector<char> may differ); "operator()" keeps its
 * parentheses, and "(anonymous namespace)::f" does not start with its arguments. */
static size_t stem_length(const char *name)
{
    int angle = 0;
    for (size_t i = 0; name[i]; i++) {
        bool op = i >= 8 && memcmp(name + i - 8, "operator", 8) == 0;
        if (op && (name[i] == '<' || name[i] == '>')) {
            while (name[i + 1] == '<' || name[i + 1] == '>')
                i++;
        } else if (name[i] == '<') {
            angle++;
        } else if (name[i] == '>' && angle > 0) {
            angle--;
        } else if (name[i] == '(' && angle == 0) {
            if (op && name[i + 1] == ')') {
                i++;
                continue;
            }
            if (strncmp(name + i, "(anonymous namespace)", 21) != 0)
                return i;
            i += 20;
        } else if (angle == 0 && i > 0 &&
                   (strncmp(name + i, " [clone", 7) == 0 || is_clone_suffix(name + i))) {
            return i;
        }
    }
    return strlen(name);
}

static uint32_t fnv1a(const char *s, size_t len, bool digits)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++) {
        if (!digits && isdigit((unsigned char)s[i]))
            continue;
        h = (h ^ (unsigned char)s[i]) * 16777619u;
    }
    return h;
}

unsigned color_of_function(const char *name, unsigned size)
{
    return fnv1a(name, stem_length(name), false) % size;
}

unsigned color_of_module(const char *path, unsigned size)
{
    const char *base = strrchr(path, '/');
    base = base && base[1] ? base + 1 : path;
    return fnv1a(base, strlen(base), true) % size;
}
