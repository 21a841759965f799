/* Rows of spans as cells, for tests of the renderer. */
#ifndef MTUI_TESTS_LIB_FLAME_H
#define MTUI_TESTS_LIB_FLAME_H

#include <stddef.h>
#include <stdint.h>

#include "tui/timeline/flame.h"

#define PICTURE_COLS 256 /* at most */

struct picture {
    struct flame_window window;
    struct flame_axis axis;
    struct flame_cell cells[PICTURE_COLS];
};

void picture_render(struct picture *p, struct flame_window w, const struct flame_row *row);
void picture_free(struct picture *p);

/* Random disjoint spans, zero-length ones among them, a third of them touching their neighbour; returns n. */
size_t picture_random_row(struct span *out, size_t n, uint64_t base_ns, uint64_t unit_ns, uint64_t *seed);

/* Where traces may begin, up to the end of what a time can be. */
#define PICTURE_BASES 4
extern const uint64_t picture_bases[PICTURE_BASES];

#endif
