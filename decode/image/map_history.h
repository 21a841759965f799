/* What was mapped in every process at any time of a recording: the changes of decode/image/addrspace.h, kept.
 *
 * A mapping lives from the record that made it to the one that took it away; only changes are kept, so the
 * memory is bounded by the number of records. Written by one thread while records are read; afterwards any
 * number of threads may ask. */
#ifndef MTUI_DECODE_MAP_HISTORY_H
#define MTUI_DECODE_MAP_HISTORY_H

#include "decode/image/addrspace.h"

struct map_history;

struct map_history *map_history_new(void);
void map_history_free(struct map_history *h);

/* The mappings of pid are these from time_ns on (times do not go back; generation as from
 * addrspaces_generation, the same one costs nothing). MTUI_E_NOMEM. */
int map_history_note(struct map_history *h, pid_t pid, uint64_t time_ns, uint64_t generation,
                     const struct addrspace_map *maps, size_t n);

bool map_history_knows(const struct map_history *h, pid_t pid);

/* Which of a process's states holds at a time: a number that differs when the mappings may differ, 0 when
 * nothing is known of it. Before the first state that one holds: what perf found mapped at its start may be
 * stamped later than the first packets. */
uint64_t map_history_state(const struct map_history *h, pid_t pid, uint64_t time_ns);

/* A table of the mappings at a time, by address, disjoint; used again for the next. Zero-initialise. */
struct map_state {
    const struct addrspace_map **data;
    size_t len, cap;
};
/* MTUI_E_NOMEM: then it is empty. */
int map_history_at(const struct map_history *h, pid_t pid, uint64_t time_ns, struct map_state *out);
void map_state_free(struct map_state *s);
const struct addrspace_map *map_state_find(const struct map_state *s, uint64_t ip);

/* The first mapping after a time that holds ip, or NULL: code seems to run before it is mapped where the
 * times of a trace are coarse. */
const struct addrspace_map *map_history_next(const struct map_history *h, pid_t pid, uint64_t time_ns,
                                             uint64_t ip);

#endif
