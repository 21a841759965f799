#include "core/record/control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"

struct control {
    struct loop *loop;
    struct control_events events;
    int ctl_fd, ack_fd;
    int ack_watch, deadline_timer;
    bool outstanding, overdue, gone;
    enum control_command command;
    uint64_t sent_ns, deadline_ns;
    size_t matched; /* bytes of "ack\n" seen so far */
    struct control_stats stats;
};

const char *control_command_name(enum control_command c)
{
    static const char *const names[CONTROL_COMMANDS] = {"ping", "enable", "disable", "snapshot",
                                                        "stop"};
    return names[c];
}

static void stop_waiting(struct control *c)
{
    c->outstanding = c->overdue = false;
    loop_remove(c->loop, c->deadline_timer);
    c->deadline_timer = 0;
}

static void take_ack(struct control *c)
{
    if (!c->outstanding)
        return; /* late, of a command that was given up */
    uint64_t took = loop_now_ns(c->loop) - c->sent_ns;
    bool late = c->overdue;
    struct control_stats *s = &c->stats;
    s->min_ns = !s->count || took < s->min_ns ? took : s->min_ns;
    s->max_ns = took > s->max_ns ? took : s->max_ns;
    s->last_ns = took;
    s->sum_ns += took;
    s->count++;
    s->late += late;
    stop_waiting(c);
    if (c->events.ack)
        c->events.ack(c->events.arg, c->command, took, late);
}

/* "ack\n", anywhere in the stream, in any number of reads; NUL bytes and anything else between two
 * acks do not matter. */
static void take_bytes(struct control *c, const char *bytes, size_t len)
{
    static const char ack[] = "ack\n";
    for (size_t i = 0; i < len; i++) {
        c->matched = bytes[i] == ack[c->matched] ? c->matched + 1 : bytes[i] == ack[0];
        if (c->matched == sizeof ack - 1) {
            c->matched = 0;
            take_ack(c);
        }
    }
}

static void declare_gone(struct control *c)
{
    if (c->gone)
        return;
    c->gone = true;
    loop_remove(c->loop, c->ack_watch);
    c->ack_watch = 0;
    if (c->outstanding)
        c->stats.lost++;
    stop_waiting(c);
    if (c->events.gone)
        c->events.gone(c->events.arg);
}

static void ack_readable(void *arg, int fd, short revents)
{
    struct control *c = arg;
    char buf[256];
    (void)revents;
    ssize_t n = read(fd, buf, sizeof buf);
    if (n > 0)
        take_bytes(c, buf, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        declare_gone(c);
}

static void prepare_fd(int fd)
{
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0)
        fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

struct control *control_new(struct loop *loop, int ctl_fd, int ack_fd,
                            const struct control_events *events)
{
    struct control *c = xcalloc(1, sizeof *c);
    c->loop = loop;
    c->events = *events;
    c->ctl_fd = ctl_fd;
    c->ack_fd = ack_fd;
    prepare_fd(ctl_fd);
    prepare_fd(ack_fd);
    c->ack_watch = loop_add_fd(loop, ack_fd, POLLIN, ack_readable, c);
    return c;
}

void control_free(struct control *c)
{
    if (!c)
        return;
    loop_remove(c->loop, c->ack_watch);
    loop_remove(c->loop, c->deadline_timer);
    close(c->ctl_fd);
    close(c->ack_fd);
    free(c);
}

static void deadline_passed(void *arg)
{
    struct control *c = arg;
    c->deadline_timer = 0;
    c->overdue = true;
    if (c->events.overdue)
        c->events.overdue(c->events.arg, c->command, c->deadline_ns);
}

int control_send(struct control *c, enum control_command command, uint64_t deadline_ns,
                 struct err *err)
{
    const char *name = control_command_name(command);
    if (c->outstanding)
        return err_set(err, MTUI_E_BUSY, "`%s` must wait: `%s` is not answered yet", name,
                       control_command_name(c->command));
    if (c->gone)
        return err_set(err, MTUI_E_GONE, "`%s` not sent: the recorder has closed its control pipe", name);
    char line[16];
    size_t len = (size_t)snprintf(line, sizeof line, "%s\n", name);
    uint64_t now = loop_now_ns(c->loop);
    /* One write: perf drops a command that comes in two pieces. The pipe is never full, since one
     * command at most is in it. */
    ssize_t n = write(c->ctl_fd, line, len);
    if (n != (ssize_t)len) {
        if (n < 0 && errno != EPIPE)
            return err_errno(err, errno, "`%s` not sent", name);
        return err_set(err, MTUI_E_GONE, "`%s` not sent: the recorder has ended", name);
    }
    c->outstanding = true;
    c->command = command;
    c->sent_ns = now;
    c->deadline_ns = deadline_ns;
    if (deadline_ns)
        c->deadline_timer = loop_add_timer(c->loop, now + deadline_ns, deadline_passed, c);
    return 0;
}

void control_abandon(struct control *c)
{
    if (!c->outstanding)
        return;
    c->stats.lost++;
    stop_waiting(c);
}

bool control_outstanding(const struct control *c, enum control_command *command, uint64_t *sent_ns)
{
    if (!c->outstanding)
        return false;
    if (command)
        *command = c->command;
    if (sent_ns)
        *sent_ns = c->sent_ns;
    return true;
}

const struct control_stats *control_get_stats(const struct control *c)
{
    return &c->stats;
}
