/* The stack rules at work on events made by hand, each ten nanoseconds after the one before; the first is at 110. */
#ifndef MTUI_TESTS_LIB_RIG_H
#define MTUI_TESTS_LIB_RIG_H

#include "decode/pt/pt_stack.h"

struct rig {
    struct functions *functions;
    struct trace_builder *b;
    struct pt_stack *stack;
    struct call_sites *sites; /* NULL: events of calls tell where they return to */
    uint64_t now;
};

struct rig rig_new(void);

/* Functions are letters, 4 KiB long; capitals stand for some by name, '?' for none that is known. */
uint64_t rig_at(char fn, unsigned offset);
fn_id rig_id(struct rig *r, char fn);

/* fn 0: none. how: an enum pt_end, or a gap's cause. */
void rig_event(struct rig *r, enum pt_event_kind kind, uint64_t addr, char fn, bool at_start, unsigned how);
void rig_begin(struct rig *r, char fn, unsigned offset);
void rig_end(struct rig *r, char fn, unsigned offset, enum pt_end how);
/* A call that returns to offset of `from` (and is five bytes long), to the beginning of `to`. */
void rig_call(struct rig *r, char from, unsigned offset, char to);
void rig_ret(struct rig *r, char to, unsigned offset);
void rig_jump(struct rig *r, char to, unsigned offset);
void rig_lost(struct rig *r);

enum { RIG_FLAGS = 1, RIG_SITES = 2 };

/* Ends it and gives back everything. What came out, from malloc: "name start-end" of each span, rows divided by "/";
 * with RIG_FLAGS a letter for each flag; with RIG_SITES also "@the lowest nine bits of the address it returns to" where
 * a span tells them. */
char *rig_finish(struct rig *r, unsigned what);

#endif
