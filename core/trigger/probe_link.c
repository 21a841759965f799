/* Links: one descriptor for many sites. */
#include "core/trigger/probe_arm.h"

#include <stdlib.h>

bool probe_is_link(const struct probe_machine *m, int fd)
{
    for (size_t i = 0; i < m->links.len; i++)
        if (m->links.data[i].fd == fd)
            return true;
    return false;
}

bool probe_link_put(struct probe_machine *m, int fd)
{
    for (size_t i = 0; i < m->links.len; i++) {
        struct probe_link *l = &m->links.data[i];
        if (l->fd != fd)
            continue;
        if (--l->users > 0)
            return false;
        vec_remove(&m->links, i);
        return true;
    }
    return true;
}

/* The sites of one trigger in one file come and go together: they share a link. When one goes alone nevertheless, its
 * breakpoint stays, unheard, until the others go. */
static void link_group(struct probe_machine *m, struct probe_process *p, size_t from)
{
    struct probe_armed *first = &p->sites.data[from];
    VEC(uint64_t) offsets = {0}, numbers = {0};
    for (size_t i = from; i < p->sites.len; i++) {
        const struct probe_armed *a = &p->sites.data[i];
        if (a->fd < 0 && a->file == first->file && a->site.trigger == first->site.trigger) {
            vec_push(&offsets, a->site.offset);
            vec_push(&numbers, a->number);
        }
    }
    int fd = hit_output_link(m->output, first->site.path, p->pid, offsets.data, numbers.data, numbers.len, NULL);
    struct probe_link link = {.fd = fd, .users = numbers.len};
    if (fd >= 0)
        vec_push(&m->links, link);
    for (size_t i = from, k = 0; fd >= 0 && k < numbers.len; i++)
        if (p->sites.data[i].number == numbers.data[k]) {
            p->sites.data[i].fd = fd;
            k++;
        }
    vec_free(&offsets);
    vec_free(&numbers);
}

void probe_link_sites(struct probe_machine *m, struct probe_process *p)
{
    if (m->no_links)
        return;
    for (size_t i = 0; i < p->sites.len; i++)
        if (p->sites.data[i].fd < 0 && p->sites.data[i].file >= 0)
            link_group(m, p, i);
}
