/* Names in spans: see tui/timeline/flame.h. */
#include <string.h>

#include "core/base/utf8.h"
#include "tui/timeline/flame.h"

static void put_text(struct flame_cell *c, uint32_t cp)
{
    c->shape = FLAME_TEXT;
    c->cp = cp;
}

/* Writes text into cells [0, cols), which it fits into. */
static void put_name(const struct flame_label_style *style, struct flame_cell *cells, int cols, const char *text)
{
    const size_t len = strlen(text);
    int col = 0;
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        i += utf8_decode(text + i, len - i, &cp);
        int w = utf8_cp_cols(cp);
        if (w == 0 && !utf8_is_unsafe(cp)) {
            if (col > 0 && style->unicode && cells[col - 1].cp && !cells[col - 1].mark)
                cells[col - 1].mark = cp;
            continue;
        }
        if (w > cols - col)
            break;
        bool show = !utf8_is_unsafe(cp) && cp != UTF8_INVALID && (style->unicode || cp < 0x7f);
        if (!show)
            w = 1;
        put_text(&cells[col++], show ? cp : style->replacement);
        if (w == 2)
            put_text(&cells[col++], 0);
    }
}

static void label_span(const struct flame_label_style *style, flame_name_fn *name, const void *arg,
                       struct flame_cell *cells, int cols)
{
    bool left = cells[0].flags & FLAME_CUT_LEFT, right = cells[0].flags & FLAME_CUT_RIGHT;
    /* The hairline between two calls of one function keeps its cell. */
    int from = left || style->brackets ? 1 : cells[0].flags & FLAME_JOINED ? 1 : 0;
    int to = right || style->brackets ? cols - 1 : cols;
    if (style->brackets) {
        put_text(&cells[0], left ? style->left : style->open);
        put_text(&cells[cols - 1], right ? style->right : style->close);
        for (int c = 1; c < cols - 1; c++)
            put_text(&cells[c], style->fill);
    } else {
        if (left)
            put_text(&cells[0], style->left);
        if (right)
            put_text(&cells[cols - 1], style->right);
    }
    if (to <= from)
        return;
    char text[512];
    name(arg, cells[0].ink->fn, text, sizeof text, to - from);
    put_name(style, cells + from, to - from, text);
}

void flame_render_labels(const struct flame_axis *ax, const struct flame_label_style *style,
                         flame_name_fn *name, const void *arg, struct flame_cell *cells)
{
    for (int from = 0, to; from < ax->cols; from = to) {
        const struct flame_cell *c = &cells[from];
        to = from + 1;
        bool whole = c->shape == FLAME_FULL || (c->shape == FLAME_OFF && c->count == 1 &&
                                                c->owned == 0xff);
        if (!whole)
            continue;
        while (to < ax->cols && cells[to].shape == c->shape && cells[to].ink == c->ink &&
               cells[to].count == 1 && cells[to].owned == 0xff)
            to++;
        if ((from == 0 && c->ink->start_ns < ax->edges[0]) || (c->ink->flags & SPAN_INFERRED_START))
            cells[from].flags |= FLAME_CUT_LEFT;
        if ((to == ax->cols && c->ink->end_ns > ax->edges[8 * ax->cols]) ||
            (c->ink->flags & SPAN_INFERRED_END))
            cells[from].flags |= FLAME_CUT_RIGHT;
        if (to - from >= 3 || (style->brackets && to - from == 2))
            label_span(style, name, arg, cells + from, to - from);
        else if (style->brackets)
            put_text(&cells[from], style->lone);
    }
}
