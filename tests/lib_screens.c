#include "tests/lib_screens.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/lib_golden.h"
#include "tui/analysis/v_calls.h"
#include "tui/analysis/v_compare.h"
#include "tui/analysis/v_event.h"
#include "tui/analysis/v_function.h"
#include "tui/timeline/v_timeline.h"

void screens_open(struct screens *x, const struct screens_setup *setup)
{
    *x = (struct screens){.views = {&view_timeline, &view_function, &view_event, &view_calls, &view_compare,
                                    setup->more},
                          .m = model_new(setup->loop, setup->settings),
                          .km = keymap_new(),
                          .theme = theme_new(COLOR_256),
                          .s = surface_new(setup->rows, setup->cols),
                          .t = setup->t};
    x->m->theme = x->theme;
    x->m->glyphs = glyphs_of(setup->glyphs);
    x->ui = ui_new(x->m, x->km, x->views, sizeof x->views / sizeof *x->views - !setup->more, setup->hooks, NULL);
    if (x->t)
        model_set_trace(x->m, x->t, "snap 1", NULL, NULL);
    ui_draw(x->ui, x->s);
}

void screens_close(struct screens *x)
{
    ui_free(x->ui);
    model_free(x->m);
    keymap_free(x->km);
    theme_free(x->theme);
    surface_free(x->s);
    trace_free(x->t);
}

void screens_press(struct screens *x, const char *keys)
{
    char copy[200], *save = NULL;
    snprintf(copy, sizeof copy, "%s", keys);
    for (char *k = strtok_r(copy, " ", &save); k; k = strtok_r(NULL, " ", &save)) {
        struct key key;
        assert_int_equal(key_parse(k, &key, NULL), 0);
        ui_key(x->ui, key);
    }
    ui_draw(x->ui, x->s);
}

void screens_type(struct screens *x, const char *opener, const char *text)
{
    screens_press(x, opener);
    screens_press(x, "^U");
    for (const char *p = text; *p; p++)
        ui_key(x->ui, (struct key){(uint32_t)*p, 0});
    screens_press(x, "Enter");
}

void screens_command(struct screens *x, const char *line)
{
    struct err err = {0};
    x->m->say[0] = '\0';
    if (ui_command(x->ui, line, &err) < 0)
        fail_msg("%s: %s", line, err.text);
    ui_draw(x->ui, x->s);
}

bool screens_see(const struct screens *x, const char *text)
{
    return golden_find(x->s, text);
}
