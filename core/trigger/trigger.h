/* A trigger: what the user wrote (a specification and its conditions), not yet tied to a process.
 *
 *   SYMBOL            a function, demangled or raw: do_work, ns::Server::handle, malloc
 *   module:SYMBOL     the same in one file only: libc.so.6:malloc, bin/srv:main
 *   FILE+0xADDR       a function of a stripped file, by the name that it has in a timeline: gzip+0x3500
 *   SYMBOL@return     each return of the function (with module: too)
 *   FILE:LINE         the code of a source line: server.c:120
 *   0xADDR            an address in the running process; module:0xADDR: one as nm prints it
 *   /REGEX/           every function whose name matches (PCRE2); module:/REGEX/, /REGEX/@return
 *
 * A colon that is part of "::" never separates; digits alone after the last colon make FILE:LINE. After
 * each of these " if CONDITION" may stand (trigger_if.h): "handle_request if arg1 > 4096 and ret != 0".
 */
#ifndef MTUI_CORE_TRIGGER_H
#define MTUI_CORE_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/trigger/trigger_if.h"

enum trigger_kind { TRIGGER_SYMBOL, TRIGGER_LINE, TRIGGER_ADDRESS, TRIGGER_REGEX };

/* When a hit becomes a snapshot. All zero: every hit does. */
struct trigger_conditions {
    uint64_t hits;           /* fire at the Nth hit and at each N after it; 0 and 1: every hit */
    uint64_t hold_off_ns;    /* after firing, hits within this time are only counted */
    uint64_t not_before_ns;  /* hits within this time after arming are only counted */
    bool not_before_full;    /* hits are only counted until the ring is full, as far as that is known */
    uint64_t max_snapshots;  /* 0: without limit */
    uint64_t slower_than_ns; /* > 0: watch entry and return; only calls longer than this count */
};

struct trigger {
    enum trigger_kind kind;
    bool at_return;
    char *text;   /* as written */
    char *module; /* basename or path; NULL: any */
    char *name;   /* symbol, file of FILE:LINE, or the regex without slashes; NULL for an address */
    uint32_t line; /* TRIGGER_LINE */
    uint64_t addr; /* TRIGGER_ADDRESS */
    struct trigger_if condition;
    struct trigger_conditions when;
};

/* Parses spec; `when` is copied (NULL: not known yet, and what depends on it is not checked). MTUI_E_INVAL with the reason: empty, no name
 * before @return, a regex that PCRE2 refuses (with the offset), an address that is no number, line
 * 0, slower-than on a line or an address (which have no return), a condition that does not parse or
 * asks for ret where nothing returns. */
int trigger_parse(struct trigger *t, const char *spec, const struct trigger_conditions *when,
                  struct err *err);
/* Of words that were split at blanks, the first spec with its condition ("f" "if" "arg1" ">" "3" "g": all
 * but the last), from malloc; *taken gets their number. n > 0. */
char *trigger_join(const char *const *word, size_t n, size_t *taken);
void trigger_fini(struct trigger *t);

/* True when hits of entry and return are both needed: @return (for the duration) or slower-than. */
bool trigger_needs_return(const struct trigger *t);

#endif
