/* The code that the stepped program executes, page by page, so that code which is written or rewritten meanwhile
 * is told from what was there before.
 *
 * A decoder takes code from the mapped file. Where the first instruction executed in a page is another than the
 * file has (or there is no file, or one that may change), and whenever the bytes of an instruction differ from those that the page had
 * when it was looked at last, the whole page is read and kept (step_code_log.h) as the code from then on. Only
 * what is executed is compared, so a page may be written to for long before that is noticed, and pages that
 * never change cost one read of their file. */
#ifndef MTUI_CORE_STEP_PAGES_H
#define MTUI_CORE_STEP_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/step/step_code.h"
#include "core/step/step_code_log.h"
#include "core/step/step_sideband.h"

struct step_pages;

/* All of it stays the caller's; log may be NULL, then changes are noticed and not kept. *clock is the
 * instruction clock. */
struct step_pages *step_pages_new(struct step_code *code, struct step_sideband *sideband,
                                  struct step_code_log *log, const uint64_t *clock);
void step_pages_free(struct step_pages *p);

/* The mappings of code have been read again. */
void step_pages_remapped(struct step_pages *p);

/* The instruction at ip, these n bytes, is executed next. Returns the clock since which the code there is what
 * it is now; 0: for as long as anything of it was executed. A trace that was begun before that has to begin
 * again here, since a decoder looks at code when one begins; the sideband tells it that there is other code. */
uint64_t step_pages_executes(struct step_pages *p, uint64_t ip, const uint8_t *bytes, size_t n);

/* True, once, when pages could not be kept. */
bool step_pages_lost(struct step_pages *p);

#endif
