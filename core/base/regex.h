/* PCRE2 patterns over names: compiled once, just in time where the machine allows, bounded in work. */
#ifndef MTUI_CORE_REGEX_H
#define MTUI_CORE_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"

struct regex;

/* smart_case: case matters only when the pattern has an upper-case letter. MTUI_E_INVAL with PCRE2's
 * own message and the position. A regex belongs to one thread at a time. */
int regex_compile(const char *pattern, bool smart_case, struct regex **out, struct err *err);
void regex_free(struct regex *r);

/* True when the pattern matches somewhere in text; *from and *to (NULL allowed) get the first match, in
 * bytes. A match that would take too many steps counts as none, and regex_gave_up tells. */
bool regex_match(struct regex *r, const char *text, size_t len, size_t *from, size_t *to);
bool regex_gave_up(const struct regex *r);

#endif
