/* Triggers looked for in a running process, in a thread of its own: whoever takes keys must not wait until the
 * symbols of a big program are read. */
#ifndef MTUI_CORE_TRIGGER_LOOK_H
#define MTUI_CORE_TRIGGER_LOOK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/loop.h"
#include "core/base/vec.h"
#include "core/symbols/modules.h"
#include "core/trigger/trigger.h"
#include "core/trigger/trigger_resolve.h"

struct trigger_look;

/* What came of one trigger: places, or an error code that says why there are none. */
struct trigger_found {
    uint32_t number;
    int rc;
    struct trigger_places places;
    struct err err; /* when reasons were asked for */
};

typedef void trigger_look_fn(void *arg, struct trigger_look *look);

/* modules: of the process, brought up to date and handed back; NULL: they are read. Triggers are added before it
 * starts; each must live until trigger_look_free. */
struct trigger_look *trigger_look_new(pid_t pid, struct modules *modules);
void trigger_look_add(struct trigger_look *k, const struct trigger *t, uint32_t number);
/* Also why a trigger is not there, the nearest names included, which takes longer. */
void trigger_look_ask_why(struct trigger_look *k);
/* done is called once, from the loop, and frees it; at once when no thread can be made. */
void trigger_look_start(struct trigger_look *k, struct loop *loop, trigger_look_fn *done, void *arg);

/* In done, and then. rc < 0: the process cannot be read (it has ended). */
int trigger_look_rc(const struct trigger_look *k);
struct modules *trigger_look_take_modules(struct trigger_look *k);
size_t trigger_look_count(const struct trigger_look *k);
/* Its places may be taken: set them to zero. */
struct trigger_found *trigger_look_at(struct trigger_look *k, size_t i);

/* done is not called any more. It is waited for (one trigger at most), not by whoever it is posted to. */
void trigger_look_free(struct trigger_look *k);

#endif
