#include "tests/lib_record_panel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/alloc.h"
#include "tui/term/glyph.h"

void panel_set_up(struct record_panel *b, const char *fake_modes, int rows, int cols)
{
    memset(b, 0, sizeof *b);
    b->tmp = run_temp_dir();
    char *fake = run_tool("fakeperf"), *busy = run_tool("target_busy");
    setenv("MTUI_PERF", fake, 1);
    setenv("FAKEPERF", fake_modes, 1);
    setenv("XDG_STATE_HOME", b->tmp, 1);
    setenv("TZ", "UTC", 1);
    b->loop = loop_new();
    b->settings = settings_new();
    b->m = model_new(b->loop, b->settings);
    b->m->glyphs = glyphs_of(GLYPHS_ASCII);
    b->caps = xcalloc(1, sizeof *b->caps);
    b->caps->cpus_online = 8;
    snprintf(b->caps->line[CAP_INTEL_PT].reason, 64, "the kernel has no intel_pt PMU");
    b->m->caps = b->caps;
    b->target = run_start((char *[]){busy, NULL});
    b->view = view_record.create(b->m);
    b->s = surface_new(rows, cols);
    surface_set_replacement(b->s, '?', false);
    free(fake);
    free(busy);
}

void panel_tear_down(struct record_panel *b)
{
    view_record.destroy(b->view);
    surface_free(b->s);
    model_free(b->m);
    settings_free(b->settings);
    loop_free(b->loop);
    run_kill(&b->target);
    free(b->caps);
    run_remove_tree(b->tmp);
    free(b->tmp);
}

void panel_draw(struct record_panel *b)
{
    struct rect r = {1, 0, surface_rows(b->s) - 3, surface_cols(b->s)};
    surface_clear(b->s);
    view_record.draw(b->view, b->s, r);
}

static bool shows(void *arg)
{
    struct record_panel *b = arg;
    loop_run_once(b->loop, 10000000);
    panel_draw(b);
    return golden_find(b->s, b->wanted);
}

uint64_t panel_deadline(const struct record_panel *b)
{
    return loop_now_ns(b->loop) + UINT64_C(60000000000);
}

void panel_wait_some(struct record_panel *b, uint64_t end)
{
    if (loop_now_ns(b->loop) >= end) {
        panel_draw(b);
        fail_msg("waited in vain, last said: %s", b->m->say);
    }
    loop_run_once(b->loop, 100000000);
}

void panel_wait_text(struct record_panel *b, const char *text)
{
    b->wanted = text;
    if (run_until(shows, b, PANEL_SOON))
        return;
    char *dump = golden_dump(b->s, "what was shown");
    print_error("%s", dump);
    free(dump);
    fail_msg("\"%s\" does not come", text);
}

bool panel_has_snapshot(void *arg)
{
    struct record_panel *b = arg;
    loop_run_once(b->loop, 10000000);
    return view_record.condition(b->view, "snapshots", "1") == 1;
}

bool panel_row_with(struct record_panel *b, const char *start, const char *text)
{
    bool found = false;
    for (int i = 0; i < surface_rows(b->s); i++) {
        char *row = golden_row(b->s, i);
        found |=
            strlen(row) > 1 && !strncmp(row + 1, start + 1, strlen(start) - 1) && strstr(row, text);
        free(row);
    }
    return found;
}

void panel_choose_target(struct record_panel *b)
{
    model_set_target(b->m, b->target.pid, 0, "target_busy");
}

void panel_act(struct record_panel *b, enum action a)
{
    assert_true(view_record.action(b->view, a, NULL));
}

int panel_row_of(struct record_panel *b, const char *text)
{
    int found = -1;
    for (int i = 0; i < surface_rows(b->s); i++) {
        char *row = golden_row(b->s, i);
        if (strstr(row, text))
            found = i;
        free(row);
    }
    return found;
}
