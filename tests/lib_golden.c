#include "tests/lib_golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/utf8.h"
#include "tui/term/theme.h"

static char *style_words(struct style st, char out[128])
{
    static const struct {
        unsigned bit;
        const char *name;
    } attrs[] = {{CELL_BOLD, "bold"},         {CELL_DIM, "dim"},
                 {CELL_UNDERLINE, "underline"}, {CELL_REVERSE, "reverse"},
                 {CELL_STANDOUT, "standout"},   {CELL_AGGREGATE, "aggregate"}};
    int n = snprintf(out, 128, "%s on %s", role_name(st.ink), role_name(st.paper));
    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++)
        if (st.attr & attrs[i].bit)
            n += snprintf(out + n, 128 - (size_t)n, " %s", attrs[i].name);
    return out;
}

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/,:;+-*=~^"
                              "%&@!?<>()[]{}";

struct legend {
    struct style styles[sizeof letters - 1];
    size_t n;
};

static char style_letter(struct legend *legend, const struct cell *c)
{
    if (!c->ink && !c->paper && !c->attr)
        return '.';
    for (size_t i = 0; i < legend->n; i++) {
        struct style *s = &legend->styles[i];
        if (s->ink == c->ink && s->paper == c->paper && s->attr == c->attr)
            return letters[i];
    }
    if (legend->n == sizeof letters - 1)
        return '$'; /* more styles than letters: they share this one */
    legend->styles[legend->n] = (struct style){c->ink, c->paper, c->attr};
    return letters[legend->n++];
}

static void put_cp(FILE *f, uint32_t cp)
{
    char b[4];
    fwrite(b, 1, utf8_encode(cp, b), f);
}

static void dump_row(FILE *f, const struct surface *s, int row, struct legend *legend)
{
    int cols = surface_cols(s);
    int styled = 0;
    fprintf(f, "T %02d |", row);
    for (int col = 0; col < cols; col++) {
        const struct cell *c = surface_at(s, row, col);
        styled |= c->ink || c->paper || c->attr;
        if (c->cp)
            put_cp(f, c->cp);
        if (c->mark)
            put_cp(f, c->mark);
    }
    fputs("|\n", f);
    if (!styled)
        return;
    fprintf(f, "S %02d |", row);
    for (int col = 0; col < cols; col++)
        fputc(style_letter(legend, surface_at(s, row, col)), f);
    fputs("|\n", f);
}

char *golden_dump(const struct surface *s, const char *header)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    struct legend legend = {.n = 0};
    fprintf(f, "# %s\n", header);
    for (int row = 0; row < surface_rows(s); row++)
        dump_row(f, s, row, &legend);
    for (size_t i = 0; i < legend.n; i++) {
        char words[128];
        fprintf(f, "# S %c  %s\n", letters[i], style_words(legend.styles[i], words));
    }
    fclose(f);
    return text;
}

static char *read_golden(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f)
        return NULL;
    char *text = NULL;
    size_t size = 0;
    ssize_t n = getdelim(&text, &size, '\0', f);
    fclose(f);
    if (n < 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* Prints lines that differ, expected under actual so that columns can be compared. */
static void print_difference(const char *want, const char *got)
{
    int shown = 0;
    while ((*want || *got) && shown < 40) {
        size_t w = strcspn(want, "\n"), g = strcspn(got, "\n");
        if (w != g || memcmp(want, got, w) != 0) {
            print_message("  want %.*s\n  got  %.*s\n", (int)w, want, (int)g, got);
            shown++;
        }
        want += w + (want[w] == '\n');
        got += g + (got[g] == '\n');
    }
}

void golden_check_text(const char *text, const char *name)
{
    char path[256];
    const char *mode = getenv("MTUI_GOLDEN");
    snprintf(path, sizeof path, "tests/golden/%s.txt", name);
    char *want = read_golden(path);
    if (want && strcmp(want, text) == 0) {
        free(want);
        return;
    }
    print_message("%s:\n", path);
    print_difference(want ? want : "", text);
    free(want);
    if (mode && strcmp(mode, "update") == 0) {
        mkdir("tests/golden", 0777);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
        fail_msg("%s was rewritten; review the change and run the tests again", path);
    }
    fail_msg("%s differs (MTUI_GOLDEN=update rewrites it)", path);
}

void golden_check(const struct surface *s, const char *name, const char *header)
{
    char *text = golden_dump(s, header);
    golden_check_text(text, name);
    free(text);
}

char *golden_row(const struct surface *s, int row)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    for (int col = 0; col < surface_cols(s); col++) {
        const struct cell *c = surface_at(s, row, col);
        if (c && c->cp)
            put_cp(f, c->cp);
        if (c && c->mark)
            put_cp(f, c->mark);
    }
    fclose(f);
    while (size && text[size - 1] == ' ')
        text[--size] = '\0';
    return text;
}

int golden_find(const struct surface *s, const char *text)
{
    for (int row = 0; row < surface_rows(s); row++) {
        char *line = golden_row(s, row);
        int found = strstr(line, text) != NULL;
        free(line);
        if (found)
            return 1;
    }
    return 0;
}
