/* The state of screen Symbols, shared by its files: v_symbol.c (life, query, actions), symbol_choose.c
 * (triggers) and symbol_draw.c. */
#ifndef MTUI_TUI_SYMBOL_VIEW_H
#define MTUI_TUI_SYMBOL_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/symbols/match.h"
#include "tui/ui/actions.h"
#include "tui/ui/list.h"
#include "tui/ui/prompt.h"
#include "tui/term/surface.h"
#include "tui/choose/symbol_rows.h"

struct model;

struct symbol_view {
    struct model *m;
    char *proc_root;
    struct symbol_rows *rows;
    struct list *list;
    struct prompt *query;
    enum match_mode mode;
    struct err trouble;  /* of the process; code 0: none */
    struct err refused;  /* of the query; code 0: none */
    pid_t loaded_pid;
    uint64_t loaded_start;
    bool in_triggers;    /* arrows, Tab and ^E are about the trigger list */
    size_t trigger;      /* the row there */
    int timer;
    bool arm_when_resolved;
};

/* Matches for at most budget_ns and takes answers over; goes on by timer while more is to come. */
void symbol_work(struct symbol_view *v, uint64_t budget_ns);

/* False when no row is selected. */
bool symbol_selected(struct symbol_view *v, struct symbol_item *item);

/* ---- symbol_choose.c ---- */

/* Tab on a row: chosen at entry, or no longer. Without a row the query itself is resolved. */
void symbol_toggle(struct symbol_view *v);
/* ^E: at return instead of at entry and back, for the row or the listed trigger. */
void symbol_entry_or_return(struct symbol_view *v);
/* Enter: to Record with what is chosen, or with the selected row when nothing is. */
void symbol_arm(struct symbol_view *v);
/* An action while the trigger list has the keys; false when it is none of its. */
bool symbol_trigger_action(struct symbol_view *v, enum action act);

/* ---- symbol_draw.c ---- */

void symbol_draw(struct symbol_view *v, struct surface *s, struct rect r);

#endif
