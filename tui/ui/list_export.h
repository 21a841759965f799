/* `x` on a screen that is a list: writes its table to a file, which must not be there yet. */
#ifndef MTUI_TUI_LIST_EXPORT_H
#define MTUI_TUI_LIST_EXPORT_H

#include <stddef.h>

#include "tui/ui/list.h"
#include "tui/ui/model.h"

/* Says what came of it; what: "calls". */
void list_export(struct model *m, const struct list *l, const char *path, size_t rows, const char *what);

#endif
