#include "tests/lib_flame.h"

#include <string.h>

#include "tests/lib_gentrace.h"

const uint64_t picture_bases[PICTURE_BASES] = {0, 123456789, UINT64_C(1) << 62, (UINT64_C(1) << 63) - 100000};

void picture_render(struct picture *p, struct flame_window w, const struct flame_row *row)
{
    memset(p, 0, sizeof *p);
    p->window = w;
    flame_axis_init(&p->axis, w);
    flame_render_row(&p->axis, row, p->cells);
}

void picture_free(struct picture *p)
{
    flame_axis_free(&p->axis);
}

size_t picture_random_row(struct span *out, size_t n, uint64_t base_ns, uint64_t unit_ns, uint64_t *seed)
{
    uint64_t at = base_ns;
    for (size_t i = 0; i < n; i++) {
        uint64_t r = gen_random(seed), length = (r & 15) == 0 ? r % (40 * unit_ns + 1)
                                                              : (r >> 8) % (unit_ns + 1);
        if (r >> 62)
            at += (r >> 20) % (unit_ns + 1);
        out[i] = (struct span){.start_ns = at,
                               .end_ns = at + length,
                               .fn = (fn_id)(r >> 32) % 5,
                               .flags = (r >> 40) % 97 == 0 ? SPAN_OFF_CPU : 0};
        at += length;
    }
    return n;
}
