/* One process under probes: its threads, their rings, and the sites armed in it. Internal to
 * core/trigger/probe.c; see core/trigger/probe.h for what the whole does. */
#ifndef MTUI_CORE_PROBE_PROCESS_H
#define MTUI_CORE_PROBE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/trigger/hit_output.h"
#include "core/trigger/perf_ring.h"
#include "core/trigger/probe.h"
#include "core/base/vec.h"

/* How a site's event reaches threads. */
enum probe_cover {
    PROBE_COVER_PROCESS, /* one link for many sites, or one event a site; a BPF program reports for every thread */
    PROBE_COVER_THREADS  /* one event a site and thread */
};

/* A probed file, held open: /proc/PID/exe and the like stop leading to it when the first thread
 * ends. */
struct probe_file {
    dev_t dev;
    ino_t ino;
    int fd; /* O_PATH */
    unsigned users;
};

/* The descriptor of several sites. */
struct probe_link {
    int fd;
    size_t users;
};

/* Descriptors. Then each further one is closed at once, at the risk of calls missed when carriers end together. */
#define PROBE_FORMER_MAX 1024

/* What all processes share. */
struct probe_machine {
    int epoll;
    uint32_t uprobe_type;
    struct hit_output *output; /* NULL: no BPF here */
    bool hwbreak_known;
    unsigned hwbreak_slots; /* 0: none that fires */
    enum probe_mechanism wanted;
    size_t ring_bytes;
    uint64_t next_number;
    bool no_links;
    VEC(struct probe_link) links;
    VEC(int) closing; /* uprobe events and links, for slow_close */
    VEC(struct probe_file) files;
};

struct probe_armed {
    uint64_t number;        /* unique, ascending within sites */
    struct probe_site site; /* strings are its own */
    int fd;                 /* PROBE_COVER_PROCESS: of an event or a link; else −1 */
    int hold;               /* of an event in the carrier that keeps a link's breakpoint in its place; else −1 */
    int file;               /* the descriptor of site.path; −errno: it cannot be opened */
};

struct probe_thread_event {
    int fd;
    uint64_t id;
    uint64_t number;
};

struct probe_thread {
    pid_t tid;
    bool ended;
    bool replaced; /* ended by another thread's exec */
    bool is_old;   /* it was there when threads were last looked for */
    uint64_t ended_ns; /* perf's clock; 0: not known */
    int fd;        /* the dummy that owns the ring */
    struct perf_ring ring;
    VEC(struct probe_thread_event) events; /* ascending by id */
};

struct probe_process {
    pid_t pid;
    bool ended;
    enum probe_mechanism mechanism; /* of the sites */
    enum probe_cover cover;
    bool leader_ended;   /* its first thread was seen to end */
    bool exec_suspected; /* and a new one has its number: another thread exec'ed, which its own
                          * record will tell, unless it was not watched */
    pid_t carrier;       /* the thread that PROBE_COVER_PROCESS events are opened for */
    uint64_t carrier_ended_ns; /* perf's clock, of the one before; 0: not known */
    bool uncarried;      /* hits are not seen: an event that was to hold breakpoints has taken them out */
    bool was_uncarried;  /* hits were not seen, or may not have been, until another carrier was there */
    bool uncarried_told;
    VEC(int) former;     /* PROBE_COVER_PROCESS: events of carriers that have ended, PROBE_FORMER_MAX at most, open until
                          * nothing is armed any more or another program runs */
    VEC(struct probe_armed) sites;
    VEC(struct probe_thread *) threads; /* ascending by tid */
};

/* Watches every thread. Errors as probe_watch. */
int probe_process_new(struct probe_machine *m, pid_t pid, struct probe_process **out,
                      struct err *err);
/* Everything is closed; uprobe events go to m->closing. */
void probe_process_free(struct probe_machine *m, struct probe_process *p);

/* Takes in threads that are not known yet and arms them; *born gets their number. A thread that
 * ends meanwhile is no error; err tells the first that could not be armed. */
int probe_process_scan(struct probe_machine *m, struct probe_process *p, size_t *born,
                       struct err *err);

/* As probe_breakpoints, probe_can_break. */
unsigned probe_machine_breakpoints(struct probe_machine *m);
int probe_machine_can_break(struct probe_machine *m, const struct probe_site *refused, size_t n, struct err *err);

/* As probe_set_sites. */
int probe_process_set_sites(struct probe_machine *m, struct probe_process *p,
                            const struct probe_site *sites, size_t n, struct err *err);

/* Drops threads marked as ended. When the carrier is no longer there, another one takes over at once, unless nothing is
 * missed without one. */
int probe_process_sweep(struct probe_machine *m, struct probe_process *p, struct err *err);
/* Then another one takes over here, if one has lived for a while: not at once, since others may be ending together with
 * it. */
int probe_process_carry(struct probe_machine *m, struct probe_process *p, struct err *err);

/* The thread whose ring this is has exec'ed: it is the leader now, all others have ended. */
void probe_process_exec(struct probe_machine *m, struct probe_process *p, struct probe_thread *t,
                        pid_t tid);

/* NULL: not known. */
struct probe_thread *probe_process_thread(const struct probe_process *p, pid_t tid);

const struct probe_armed *probe_process_site(const struct probe_process *p, uint64_t number);
/* The site of a thread's event id, or NULL. */
const struct probe_armed *probe_thread_site(const struct probe_process *p,
                                            const struct probe_thread *t, uint64_t id);

/* Descriptors held. */
size_t probe_process_descriptors(const struct probe_process *p);
/* Of these, uprobe events. */
size_t probe_process_slow_events(const struct probe_machine *m, const struct probe_process *p);

#endif
