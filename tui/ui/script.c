#include "tui/ui/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/conf.h"
#include "core/base/fmt.h"
#include "core/base/vec.h"

#define WAIT_NS 10000000000u /* the time limit when none is given */

struct script_line {
    char *text;
    int number;
};

struct script {
    char *path;
    VEC(struct script_line) lines;
    size_t next;
    uint64_t wait_until_ns; /* 0: not waiting */
};

static int add_line(void *arg, const struct conf_words *w, int number, struct err *err)
{
    struct script *s = arg;
    const char *text = w->tail[0] + (w->tail[0][0] == ':');
    const char *name = w->word[0] + (w->word[0][0] == ':');
    if (action_find(name) == ACT_NONE)
        return err_set(err, MTUI_E_FORMAT, "no command is called '%s'", name);
    vec_push(&s->lines, ((struct script_line){xstrdup(text), number}));
    return 0;
}

int script_open(struct script **out, const char *path, struct err *err)
{
    struct script *s = xcalloc(1, sizeof *s);
    s->path = xstrdup(path);
    int rc = conf_read_file(path, add_line, s, err);
    if (rc < 0) {
        script_free(s);
        return rc;
    }
    *out = s;
    return 0;
}

void script_free(struct script *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->lines.len; i++)
        free(s->lines.data[i].text);
    vec_free(&s->lines);
    free(s->path);
    free(s);
}

/* wait NAME [ARG…] [TIMEOUT]: the last word is a time limit when it reads as a duration. */
static int step_wait(struct script *s, struct ui *ui, const struct conf_words *w, uint64_t now_ns,
                     struct err *err)
{
    uint64_t limit = WAIT_NS;
    size_t n = w->n;
    char arg[CONF_LINE_MAX] = "";
    if (n < 2)
        return err_set(err, MTUI_E_INVAL, "wait takes a condition");
    if (n > 2 && fmt_parse_duration(w->word[n - 1], &limit, NULL) == 0)
        n--;
    for (size_t i = 2, used = 0; i < n; i++)
        used += (size_t)snprintf(arg + used, sizeof arg - used, "%s%s", i > 2 ? " " : "",
                                 w->word[i]);
    int holds = ui_condition(ui, w->word[1], arg);
    if (holds < 0)
        return err_set(err, MTUI_E_INVAL, "no condition is called '%s'", w->word[1]);
    if (holds) {
        s->wait_until_ns = 0;
        return SCRIPT_MORE;
    }
    if (!s->wait_until_ns)
        s->wait_until_ns = now_ns + limit;
    if (now_ns < s->wait_until_ns)
        return SCRIPT_WAITING;
    char text[FMT_MAX];
    return err_set(err, MTUI_E_TIMEOUT, "'%s %s' did not come true within %s (screen %s)", w->word[1],
                   arg, fmt_duration(text, limit), ui_screen(ui));
}

int script_step(struct script *s, struct ui *ui, uint64_t now_ns, struct err *err)
{
    struct conf_words w;
    if (s->next == s->lines.len)
        return SCRIPT_DONE;
    const struct script_line *line = &s->lines.data[s->next];
    int rc = conf_split(line->text, &w, err);
    if (rc == 0 && w.n && strcmp(w.word[0], "wait") == 0)
        rc = step_wait(s, ui, &w, now_ns, err);
    else if (rc == 0)
        rc = ui_command(ui, line->text, err);
    if (rc < 0)
        err_prefix(err, "%s:%d", s->path, line->number);
    else if (rc != SCRIPT_WAITING)
        s->next++;
    return rc;
}
