/* The panes below the process list: the selected process, and what can be recorded on this machine. */
#ifndef MTUI_TUI_PROCESS_DETAIL_H
#define MTUI_TUI_PROCESS_DETAIL_H

#include "core/doctor/capability.h"
#include "core/machine/proc.h"
#include "tui/term/glyph.h"
#include "tui/term/surface.h"

struct process_detail;

struct process_detail *process_detail_new(void);
void process_detail_free(struct process_detail *d);

/* Reads program file, modules and threads of p (NULL: nothing is selected); what does not change is
 * read once. threads: all of them are to be listed. */
void process_detail_read(struct process_detail *d, const struct proc *p, bool threads);

/* Rows that process_detail_draw would like. */
int process_detail_rows(const struct process_detail *d);
void process_detail_draw(const struct process_detail *d, const struct proc *p, struct surface *s,
                         struct rect r, const struct glyphs *g);

/* "Tracing on this machine"; caps NULL: not known yet. */
#define CAPABILITY_PANE_ROWS 4
void capability_pane_draw(const struct capabilities *caps, struct surface *s, struct rect r,
                          const struct glyphs *g);
/* "PT ok  paranoid 1", for the right end of the tab row. */
void capability_summary(const struct capabilities *caps, char *out, size_t size);

#endif
