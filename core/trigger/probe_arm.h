/* The events of a process's sites. Internal to core/trigger/probe.c, as is the rest of probe_process.h:
 * probe_process_set_sites is in here too. */
#ifndef MTUI_CORE_PROBE_ARM_H
#define MTUI_CORE_PROBE_ARM_H

#include "core/trigger/probe_process.h"

/* Closes the event of a site of p; a uprobe's goes to m->closing. */
void probe_event_close(struct probe_machine *m, const struct probe_process *p, int fd);
/* Opens the event of a site in one thread, reporting into the thread's ring. */
int probe_thread_arm(const struct probe_machine *m, enum probe_mechanism mechanism,
                     struct probe_thread *t, const struct probe_armed *a, struct err *err);
/* A site of p, with its event. */
void probe_armed_free(struct probe_machine *m, const struct probe_process *p, struct probe_armed *a);
/* Sites that have no event yet share links, where that works; the others are left as they are. */
void probe_link_sites(struct probe_machine *m, struct probe_process *p);
bool probe_is_link(const struct probe_machine *m, int fd);
/* Whether a descriptor that one site less uses is to be closed. */
bool probe_link_put(struct probe_machine *m, int fd);
/* Gives the events of PROBE_COVER_PROCESS to another thread (any, or one that has lived for a while, if there is one);
 * one that ends meanwhile is not the last to be tried. */
int probe_move_carrier(struct probe_machine *m, struct probe_process *p, bool any, struct err *err);
/* Closes the events of carriers that have ended. */
void probe_close_former(struct probe_machine *m, struct probe_process *p);

#endif
