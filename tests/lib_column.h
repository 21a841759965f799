/* Columns of a list as they stand on a screen of the ASCII tier: from the row of titles and a row below it. */
#ifndef MTUI_TESTS_LIB_COLUMN_H
#define MTUI_TESTS_LIB_COLUMN_H

#include <stdbool.h>
#include <stddef.h>

/* Where a title stands, as a whole (SELF is neither SELF% nor MED.SELF nor SELF DIFF), or NULL. */
const char *column_title(const char *header, const char *title);
/* The arrow of the sort column stands beside it. */
bool column_is_sorted(const char *header, const char *title);

/* The cell below a title: between the titles beside it; those of numbers end where theirs does. */
void column_cell(const char *header, const char *row, const char *title, char *out, size_t size);

/* Compares two cells as qsort's function does: numbers with their units ("1,204", "-2.50 us", "97K"), those of
 * a DIFF column by their amount; else as text. */
int column_order(const char *title, const char *a, const char *b);

#endif
