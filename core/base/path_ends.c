#include "core/base/path_ends.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"

struct path {
    const char *text;
    size_t number;
};

/* From the last character to the first; a slash comes first, so that those that share whole components are neighbours. */
static int by_end(const void *a, const void *b)
{
    const char *x = ((const struct path *)a)->text, *y = ((const struct path *)b)->text;
    size_t i = strlen(x), j = strlen(y);
    while (i > 0 && j > 0 && x[i - 1] == y[j - 1])
        i--, j--;
    if (i == 0 || j == 0)
        return (i > 0) - (j > 0);
    const int cx = x[i - 1] == '/' ? 0 : (unsigned char)x[i - 1], cy = y[j - 1] == '/' ? 0 : (unsigned char)y[j - 1];
    return cx - cy;
}

bool path_ends_in(const char *path, const char *components)
{
    size_t all = strlen(path), n = strlen(components);
    return all >= n && strcmp(path + all - n, components) == 0 && (all == n || path[all - n - 1] == '/');
}

/* The end of a path with one component more. */
static const char *longer_end(const char *path, const char *end)
{
    if (end - path < 2)
        return path;
    for (end--; end > path && end[-1] != '/'; end--)
        ;
    return end;
}

/* The end of a path that neither neighbour (NULL: none) has. */
static const char *own_end(const char *path, const char *before, const char *after)
{
    const char *slash = strrchr(path, '/'), *end = slash && slash[1] ? slash + 1 : path;
    while (end > path && ((before && path_ends_in(before, end)) || (after && path_ends_in(after, end))))
        end = longer_end(path, end);
    return end;
}

void path_ends(const char *const *paths, size_t n, const char **ends)
{
    struct path *sorted = xcalloc(n + 1, sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        sorted[i] = (struct path){paths[i], i};
    qsort(sorted, n, sizeof *sorted, by_end);
    const char *before = NULL;
    for (size_t i = 0, to; i < n; i = to) {
        for (to = i + 1; to < n && strcmp(sorted[to].text, sorted[i].text) == 0; to++)
            ;
        const char *end = own_end(sorted[i].text, before, to < n ? sorted[to].text : NULL);
        for (size_t k = i; k < to; k++)
            ends[sorted[k].number] = sorted[k].text + (end - sorted[i].text);
        before = sorted[i].text;
    }
    free(sorted);
}
