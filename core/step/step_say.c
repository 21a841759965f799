#include "core/step/step_say.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"

#define KEPT_MAX      (1u << 20) /* bytes that wait */
#define LAST_TRIES    20
#define LAST_TRY_MS   50

struct step_say {
    int fd;
    bool gone;
    VEC(char) waiting;
};

struct step_say *step_say_new(int fd)
{
    struct stat sb;
    struct step_say *s = xcalloc(1, sizeof *s);
    s->fd = fd;
    /* Only a pipe: of a terminal or a file the flag would be shared with others. */
    if (fstat(fd, &sb) == 0 && S_ISFIFO(sb.st_mode))
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    return s;
}

bool step_say_flush(struct step_say *s)
{
    size_t done = 0;
    while (done < s->waiting.len && !s->gone) {
        ssize_t n = write(s->fd, s->waiting.data + done, s->waiting.len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            s->gone = true; /* nobody listens any more: the control pipe's end ends us */
        else
            done += (size_t)n;
    }
    if (s->gone)
        done = s->waiting.len;
    if (done)
        memmove(s->waiting.data, s->waiting.data + done, s->waiting.len - done);
    s->waiting.len -= done;
    return s->waiting.len == 0;
}

bool step_say_line(struct step_say *s, bool important, const char *fmt, ...)
{
    char line[4400];
    if (!important && s->waiting.len > KEPT_MAX && !step_say_flush(s))
        return false;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    for (const char *c = line; *c; c++)
        vec_push(&s->waiting, *c == '\n' ? '?' : *c);
    vec_push(&s->waiting, '\n');
    step_say_flush(s);
    return true;
}

void step_say_free(struct step_say *s)
{
    struct pollfd p = {.fd = s->fd, .events = POLLOUT};
    for (int i = 0; i < LAST_TRIES && !step_say_flush(s); i++)
        poll(&p, 1, LAST_TRY_MS);
    vec_free(&s->waiting);
    free(s);
}
