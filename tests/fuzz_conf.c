/* core/base/conf, tui/term/theme, tui/ui/settings: any bytes as a theme, a config file, a command line. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/conf.h"
#include "tui/ui/settings.h"
#include "tui/term/theme.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct target {
    struct settings *settings;
    struct keymap *km;
};

/* Words that were read must come back the same after quoting. */
static int take(void *arg, const struct conf_words *w, int line, struct err *err)
{
    struct target *t = arg;
    (void)line;
    for (size_t i = 0; i < w->n; i++) {
        char quoted[5 * CONF_LINE_MAX];
        struct conf_words again;
        conf_quote(quoted, sizeof quoted, w->word[i]);
        if (strlen(quoted) < CONF_LINE_MAX &&
            (conf_split(quoted, &again, NULL) != 0 || again.n != 1 ||
             strcmp(again.word[0], w->word[i]) != 0))
            abort();
    }
    settings_command(t->settings, t->km, w, err);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err;
    struct theme *theme = theme_new(COLOR_256);
    struct target t = {settings_new(), keymap_new()};
    theme_parse(theme, "fuzz", (const char *)data, size, &err);
    for (unsigned role = 0; role < ROLE_COUNT; role++) {
        struct cell c = {.cp = 'x', .ink = (uint16_t)role, .paper = ROLE_FN0};
        theme_look(theme, &c);
    }
    conf_read_text("fuzz", (const char *)data, size, take, &t, &err);
    keymap_free(t.km);
    settings_free(t.settings);
    theme_free(theme);
    return 0;
}
