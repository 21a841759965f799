/* What a set of triggers tells about them, in sentences. */
#include "core/trigger/trigger_set_priv.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"

void trigger_set_say(struct trigger_set *s, char *sentence)
{
    if (s->callbacks.message)
        s->callbacks.message(s->arg, sentence);
    free(sentence);
}

void trigger_set_tell_late(struct trigger_set *s)
{
    struct probe_stats stats;
    if (s->held || s->late_told || s->options.handed_over || !s->probe || s->entries.len == 0)
        return;
    probe_stats(s->probe, &stats);
    bool threads = stats.mechanism != PROBE_AUTO && !stats.covers_births, children = s->options.probe.children;
    if (!threads && !children)
        return;
    s->late_told = true;
    trigger_set_say(s, xasprintf("%s are watched a moment after they start: first calls may be missed",
                                 !threads    ? "children"
                                 : !children ? "new threads"
                                             : "children and new threads"));
}

void trigger_set_say_not_there(struct trigger_set *s, const struct entry *e, const struct err *why)
{
    const char *near = strstr(why->text, "; near: ");
    const char *slash = s->executable ? strrchr(s->executable, '/') : NULL;
    const char *program = slash ? slash + 1 : s->executable ? s->executable : "the program";
    if (e->trigger.kind == TRIGGER_SYMBOL && !e->trigger.module && why->code == MTUI_E_NOENT)
        trigger_set_say(s, xasprintf("%s: no function of that name in %s or its libraries so far%s; waiting for one "
                                     "that is loaded later (^C ends)",
                                     e->trigger.text, program, near ? near : ""));
    else
        trigger_set_say(s, xasprintf("%s: %s; waiting for what is loaded later (^C ends)", e->trigger.text, why->text));
}

/* Where a trigger was found before its program was replaced; or NULL. */
static const char *file_of(const struct trigger_set *s, size_t trigger)
{
    const char *file = NULL;
    for (size_t k = 0; k < s->processes.len && !file; k++)
        file = s->processes.data[k]->armed.data[trigger].places.file;
    return file;
}

void trigger_set_say_gone(struct trigger_set *s, size_t trigger)
{
    const char *file = file_of(s, trigger);
    trigger_set_say(s, xasprintf("trigger %s is disarmed: the program was replaced (exec) by one that does not have "
                                 "it%s%s",
                                 s->entries.data[trigger].trigger.text, file ? ", which was in " : "",
                                 file ? file : ""));
}
