#include "tui/trace/source_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"

#define TEXT_MAX ((size_t)8 << 20)

static int open_below(const char *root, const char *path)
{
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    char *inside = xasprintf("%s%s", root, path);
    int fd = open(inside, flags);
    if (fd < 0)
        fd = open(path, flags);
    free(inside);
    return fd;
}

char *source_file_read(const char *root, const char *path, size_t *len, time_t *mtime)
{
    struct stat st;
    int fd = open_below(root, path);
    char *text = NULL;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (size_t)st.st_size <= TEXT_MAX)
        text = malloc((size_t)st.st_size + 1);
    ssize_t n = text ? read(fd, text, (size_t)st.st_size) : -1;
    if (fd >= 0)
        close(fd);
    if (n < 0) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    *len = (size_t)n;
    if (mtime)
        *mtime = st.st_mtime;
    return text;
}
