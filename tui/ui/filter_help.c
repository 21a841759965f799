#include "tui/ui/filter_help.h"

#include <ctype.h>
#include <string.h>

/* The length of the unit of time at s, and what it is in instructions; 0: there is none. */
static size_t unit_of_time(const char *s, char *count)
{
    static const struct {
        char time[3], count;
    } units[] = {{"us", 'k'}, {"ms", 'M'}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strncmp(s, units[i].time, 2) == 0 && !isalnum((unsigned char)s[2])) {
            *count = units[i].count;
            return 2;
        }
    return 0;
}

char *filter_help_text(char *out, size_t size, const char *text, bool instructions)
{
    size_t len = 0;
    for (const char *s = text; *s && len + 1 < size; len++) {
        size_t n = instructions && s > text && isdigit((unsigned char)s[-1]) ? unit_of_time(s, &out[len]) : 0;
        if (n == 0)
            out[len] = *s;
        s += n ? n : 1;
    }
    if (size)
        out[len] = '\0';
    return out;
}
