#include "tui/ui/stack_line.h"

#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"

#define BETWEEN " > "
#define NAME_MAX_BYTES 512

/* The most columns that one name may have for all to fit; half of them in any case. */
static size_t most_cols(struct function_names *names, const fn_id *calls, size_t n, size_t cols)
{
    size_t wide[STACK_LINE_MAX], most = cols;
    for (size_t i = 0; i < n; i++) {
        const char *name = function_names_get(names, calls[i]);
        wide[i] = utf8_cols(name, strlen(name));
    }
    for (; most > cols / 2; most--) {
        size_t sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += (wide[i] < most ? wide[i] : most) + (i ? strlen(BETWEEN) : 0);
        if (sum <= cols)
            break;
    }
    return most;
}

/* Of n names, the innermost that fit side by side; one in any case. */
static size_t innermost(struct function_names *names, const fn_id *calls, size_t n, size_t most, size_t cols,
                        const struct glyphs *g)
{
    char name[NAME_MAX_BYTES];
    size_t used = 0, i = 0;
    for (; i < n; i++) {
        const size_t len = function_names_fit(names, calls[i], name, sizeof name, (int)most, g);
        used += utf8_cols(name, len) + (i ? strlen(BETWEEN) : 0);
        if (used > cols && i > 0)
            break;
    }
    return i;
}

void stack_line_write(char *out, size_t size, struct function_names *names, const fn_id *calls, size_t n, bool whole,
                      bool bracket, int cols, const struct glyphs *g)
{
    static const char head[] = "stack  ", gone[] = "..." BETWEEN;
    const int frame = (int)(sizeof head + sizeof gone); /* and the brackets */
    const size_t room = cols > frame + 8 ? (size_t)(cols - frame) : 8;
    const size_t most = most_cols(names, calls, n, room), shown = innermost(names, calls, n, most, room, g);
    char name[NAME_MAX_BYTES];
    size_t len = (size_t)snprintf(out, size, "%s%s", head, shown < n || !whole ? gone : "");
    for (size_t i = shown; i-- > 0 && len < size;) {
        function_names_fit(names, calls[i], name, sizeof name, (int)most, g);
        const bool framed = bracket && i == 0 && name[0] != '['; /* not [[off cpu]] */
        len += (size_t)snprintf(out + len, size - len, "%s%s%s%s", framed ? "[" : "", name, framed ? "]" : "",
                                i ? BETWEEN : "");
    }
}
