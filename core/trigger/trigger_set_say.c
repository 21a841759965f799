/* What a set of triggers tells about them, in sentences. */
#include "core/trigger/trigger_set_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"

void trigger_set_say(struct trigger_set *s, char *sentence)
{
    if (s->callbacks.message)
        s->callbacks.message(s->arg, sentence);
    free(sentence);
}

void trigger_set_say_of(struct trigger_set *s, const struct process *p, uint64_t *of_children, char *sentence)
{
    char n[FMT_MAX];
    uint64_t nth = p->child ? ++*of_children : 1;
    if (!fmt_is_told(nth))
        free(sentence);
    else if (nth == 1)
        trigger_set_say(s, sentence);
    else {
        trigger_set_say(s, xasprintf("%s (%s times in children by now)", sentence, fmt_count(n, nth)));
        free(sentence);
    }
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

void trigger_set_say_lacking(struct trigger_set *s, size_t trigger)
{
    const struct process *first = NULL;
    char more[48] = "";
    size_t n = 0;
    for (size_t k = 0; k < s->processes.len; k++)
        if (process_pends(s->processes.data[k], trigger) && n++ == 0)
            first = s->processes.data[k];
    if (!first)
        return;
    if (n > 1)
        (void)snprintf(more, sizeof more, " and %zu more", n - 1);
    trigger_set_say(s, xasprintf("trigger %s: process %d%s ha%s no such place; it is armed in the others",
                                 s->entries.data[trigger].trigger.text, (int)first->pid, more, n > 1 ? "ve" : "s"));
}

/* ---- At the end ---- */

/* Probes sit in the file where it was expected, also while that is not known to be mapped. */
static bool is_watched(const struct process *p, size_t trigger)
{
    const struct armed *a = &p->armed.data[trigger];
    return a->places.sites.len > 0 && !a->former;
}

void trigger_set_note_unfound(struct trigger_set *s, const struct process *p)
{
    for (size_t i = 0; i < s->entries.len; i++) {
        s->entries.data[i].watched |= is_watched(p, i);
        s->entries.data[i].unseen |= p->unseen;
    }
}

char *trigger_set_why_not_found(const struct trigger_set *s, uint32_t i)
{
    const struct entry *e = &s->entries.data[i];
    bool watched = e->watched, unseen = e->unseen;
    for (size_t k = 0; k < s->processes.len; k++) {
        watched |= is_watched(s->processes.data[k], i);
        unseen |= s->processes.data[k]->unseen;
    }
    if (e->status != TRIGGER_PENDING || watched || e->policy.counts.hits)
        return NULL;
    const char *colon = strstr(e->where, ": ");
    return xasprintf("%s%s", colon ? colon + 2 : e->where,
                     unseen ? "; the program ended before all that it had mapped could be looked at" : "");
}
