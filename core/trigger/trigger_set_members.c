/* The functions that a trigger stands for, each with a number, so that a hit says which it was. */
#include "core/trigger/trigger_set_priv.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"

/* Of a site's label, "libc.so.6!malloc", the function. */
static const char *function_of(const char *label)
{
    const char *mark = strchr(label, '!');
    return mark && mark[1] ? mark + 1 : label;
}

static bool is_several(const struct trigger *t, const struct trigger_places *places)
{
    return t->kind == TRIGGER_REGEX || (t->kind == TRIGGER_SYMBOL && places->functions > 1);
}

static uint32_t number_of(struct trigger_set *s, uint32_t trigger, const char *name)
{
    char *key = xasprintf("%u %s", (unsigned)trigger, name ? name : "");
    uint32_t number = intern_add(s->member_keys, key, strlen(key));
    free(key);
    if (number == s->members.len)
        vec_push(&s->members, ((struct trigger_member){trigger, name ? xstrdup(name) : NULL}));
    return number;
}

void trigger_set_number_members(struct trigger_set *s, struct process *p)
{
    for (uint32_t i = 0; i < p->armed.len; i++) {
        struct trigger_places *places = &p->armed.data[i].places;
        bool several = is_several(&s->entries.data[i].trigger, places);
        for (size_t k = 0; k < places->sites.len; k++) {
            struct probe_site *site = &places->sites.data[k], *before = k ? site - 1 : NULL;
            if (before && (!several || strcmp(before->label, site->label) == 0))
                site->member = before->member; /* one more return of it */
            else
                site->member = number_of(s, i, several ? function_of(site->label) : NULL);
        }
    }
}

void trigger_set_free_members(struct trigger_set *s)
{
    for (size_t i = 0; i < s->members.len; i++)
        free(s->members.data[i].function);
    vec_free(&s->members);
    intern_free(s->member_keys);
}

size_t trigger_set_members(const struct trigger_set *s)
{
    return s->members.len;
}

const struct trigger_member *trigger_set_member(const struct trigger_set *s, size_t i)
{
    return &s->members.data[i];
}
