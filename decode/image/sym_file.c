#include "decode/image/sym_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int check(int fd, const char *path, bool own_only, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_errno(err, errno, "%s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, MTUI_E_INVAL, "%s is not a regular file", path);
    if (own_only && st.st_uid != 0 && st.st_uid != geteuid())
        return err_set(err, MTUI_E_PERM,
                       "%s belongs to user %u, neither you nor root: not believed", path, st.st_uid);
    return 0;
}

static int read_all(int fd, const char *path, size_t max, char **out, size_t *len, struct err *err)
{
    size_t cap = 65536, n = 0;
    char *bytes = malloc(cap);
    while (bytes) {
        ssize_t got = read(fd, bytes + n, cap - n - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int saved = errno;
            free(bytes);
            return err_errno(err, saved, "cannot read %s", path);
        }
        n += (size_t)got;
        if (n > max) {
            free(bytes);
            return err_set(err, MTUI_E_LIMIT, "%s is larger than %zu bytes", path, max);
        }
        if (got == 0) {
            bytes[n] = '\0';
            *out = bytes;
            *len = n;
            return 0;
        }
        if (cap - n < 2) {
            char *more = realloc(bytes, cap * 2);
            if (!more)
                break;
            bytes = more;
            cap *= 2;
        }
    }
    free(bytes);
    return err_set(err, MTUI_E_NOMEM, "not enough memory to read %s", path);
}

int sym_file_read(const char *path, size_t max, bool own_only, char **out, size_t *len,
                  struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return err_errno(err, errno, "%s", path);
    int e = check(fd, path, own_only, err);
    if (e == 0)
        e = read_all(fd, path, max, out, len, err);
    close(fd);
    return e;
}
