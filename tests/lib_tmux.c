#include "tests/lib_tmux.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "tests/lib_program.h"
#include "tests/lib_run.h"

#define SOON 60.0 /* s: a deadline, not a delay */

struct tmux {
    const char *dir;
    char *socket; /* one a server: an earlier one may still be leaving its own */
    char *screen, *want;
};

static char *run(struct tmux *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The output of a tmux command. */
static char *run(struct tmux *t, const char *fmt, ...)
{
    int status;
    char *args = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&args, fmt, ap) < 0)
        abort();
    va_end(ap);
    char *command = xasprintf("tmux -u -S '%s' -f '%s/tmux.conf' %s 2>/dev/null", t->socket, t->dir, args);
    char *out = run_output(command, &status);
    free(command);
    free(args);
    return out;
}

struct tmux *tmux_start(const char *dir, int rows, int cols, const char *command)
{
    struct tmux *t = xcalloc(1, sizeof *t);
    t->dir = dir;
    t->socket = xasprintf("%s/tmux.%dx%d", dir, cols, rows);
    program_write(dir, "tmux.conf",
                  "set -g default-terminal tmux-256color\n"
                  "set -g status off\n"
                  "set -s set-clipboard on\n"
                  "set -s escape-time 0\n");
    program_write(dir, "command", command);
    free(run(t, "new-session -d -x %d -y %d 'cd \"%s\" && exec sh ./command'", cols, rows, dir));
    return t;
}

void tmux_free(struct tmux *t)
{
    free(run(t, "kill-server"));
    free(t->screen);
    free(t->socket);
    free(t);
}

void tmux_type(struct tmux *t, const char *text)
{
    char *quoted = NULL;
    size_t len;
    FILE *f = open_memstream(&quoted, &len);
    for (const char *p = text; *p; p++)
        if (*p == '\'')
            fputs("'\\''", f);
        else
            fputc(*p, f);
    fclose(f);
    free(run(t, "send-keys -l -- '%s'", quoted));
    free(quoted);
}

void tmux_press(struct tmux *t, const char *key)
{
    free(run(t, "send-keys %s", key));
}

const char *tmux_screen(struct tmux *t)
{
    free(t->screen);
    t->screen = run(t, "capture-pane -p");
    return t->screen;
}

static bool is_seen(void *arg)
{
    struct tmux *t = arg;
    return strstr(tmux_screen(t), t->want) != NULL;
}

void tmux_see(struct tmux *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&t->want, fmt, ap) < 0)
        abort();
    va_end(ap);
    if (!run_until(is_seen, t, SOON)) {
        fputs(t->screen, stderr); /* longer than print_message takes */
        fail_msg("not on the screen: %s", t->want);
    }
    free(t->want);
    t->want = NULL;
}

char *tmux_clipboard(struct tmux *t)
{
    return run(t, "show-buffer");
}
