/* Golden screens: a surface against tests/golden/NAME.txt.
 *
 *   # HEADER
 *   T 05 |  handle_request   render_template |     the text of a row, trailing blanks kept
 *   S 05 |..aaaaaaaaaaaaaa.../bbbbbbbb,,,,,,, |     its styles, left out when all are default
 *   # S a  fn3 on default                           what each style letter means, in order of use
 *
 * A wide character fills two columns of T by itself. Unless MTUI_GOLDEN=update, a difference fails the
 * test and prints expected and actual rows; with it the file is rewritten, what changed is printed,
 * and the test fails all the same, so that no automatic run can bless a screen. */
#ifndef MTUI_TESTS_LIB_GOLDEN_H
#define MTUI_TESTS_LIB_GOLDEN_H

#include "tui/term/surface.h"

/* The dump itself, malloc'ed; header is one line with every input that matters. */
char *golden_dump(const struct surface *s, const char *header);

/* Compares a surface with tests/golden/NAME.txt and fails the running cmocka test when they differ.
 * Tests run in the top folder of the tree. */
void golden_check(const struct surface *s, const char *name, const char *header);

/* The same for any text. */
void golden_check_text(const char *text, const char *name);

/* One row of the surface as text (UTF-8, no trailing blanks), malloc'ed. */
char *golden_row(const struct surface *s, int row);

/* True when the text stands somewhere on the surface. */
int golden_find(const struct surface *s, const char *text);

#endif
