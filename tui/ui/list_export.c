#include "tui/ui/list_export.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void list_export(struct model *m, const struct list *l, const char *path, size_t rows, const char *what)
{
    FILE *f = fopen(path, "wxe");
    if (!f) {
        model_error(m, "%s: %s", path, strerror(errno));
        return;
    }
    list_write_table(l, f);
    bool bad = ferror(f) != 0;
    if (fclose(f) != 0 || bad)
        model_error(m, "%s: could not be written", path);
    else
        model_say(m, "%zu %s written to %s", rows, what, path);
}
