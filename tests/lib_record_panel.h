/* The Record screen under test, with a fake perf and a process to record: keys go in, what is drawn comes out. */
#ifndef MTUI_TESTS_LIB_RECORD_PANEL_H
#define MTUI_TESTS_LIB_RECORD_PANEL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/doctor/capability.h"
#include "core/session/session.h"
#include "tests/lib_golden.h"
#include "tests/lib_run.h"
#include "tui/record/v_record.h"
#include "tui/ui/model.h"
#include "tui/ui/settings.h"

#define PANEL_SOON 100.0

struct record_panel {
    struct loop *loop;
    struct settings *settings;
    struct model *m;
    void *view;
    struct surface *s;
    struct capabilities *caps;
    struct run_child target;
    char *tmp;
    const char *wanted;
};

/* fake_modes: of tests/fakeperf.c. */
void panel_set_up(struct record_panel *b, const char *fake_modes, int rows, int cols);
void panel_tear_down(struct record_panel *b);

void panel_choose_target(struct record_panel *b);
/* A key, which the screen takes. */
void panel_act(struct record_panel *b, enum action a);
void panel_draw(struct record_panel *b);

/* Runs the loop, draws and looks until the text is there; fails the test after PANEL_SOON seconds. */
void panel_wait_text(struct record_panel *b, const char *text);
/* For conditions of one's own: a round of the loop, and the failure at the end of the time. */
uint64_t panel_deadline(const struct record_panel *b);
void panel_wait_some(struct record_panel *b, uint64_t end);
/* For run_until: a round of the loop, and whether there is one. */
bool panel_has_snapshot(void *panel);

/* One row that begins with the one text (behind the pointer) and has the other. */
bool panel_row_with(struct record_panel *b, const char *start, const char *text);
/* The lowest row that has the text, or −1. */
int panel_row_of(struct record_panel *b, const char *text);

#endif
