/* The source of the selection below its details: where its function is defined, and where this call of it
 * was made; instructions where there is no source. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tui/ui/bar.h"
#include "tui/ui/line.h"
#include "tui/term/glyph.h"
#include "tui/ui/name.h"
#include "tui/trace/source_draw.h"
#include "tui/trace/source_edit.h"
#include "tui/term/theme.h"
#include "tui/timeline/timeline.h"

#define AUTO_ROWS 40  /* a body of that many rows has room for it */
#define HALF_COLS 48  /* the least that one of two halves needs */

int tl_source_rows(const struct timeline *tl, int body_rows)
{
    bool shown = tl->source_shown == TL_SOURCE_ON ||
                 (tl->source_shown == TL_SOURCE_AUTO && body_rows >= AUTO_ROWS &&
                  functions_have_files(trace_functions(tl->trace)));
    return !shown ? 0 : body_rows >= AUTO_ROWS ? 11 : body_rows >= 27 ? 7 : 5;
}

void tl_step_details(struct timeline *tl)
{
    bool shown = tl->details && tl_source_rows(tl, tl->at.body) > 0;
    if (shown) {
        tl->details = false;
        return;
    }
    tl->source_shown = tl->details ? TL_SOURCE_ON : TL_SOURCE_OFF;
    tl->details = true;
}

const struct source_answer *tl_source(struct timeline *tl)
{
    const struct functions *fns = trace_functions(tl->trace);
    struct selection sel = tl->sel;
    const struct span *s = selection_span(tl->src, &sel);
    /* What is no code ([syscall], [off cpu]) stands in the function that went there. */
    while (s && functions_get(fns, s->fn)->kind == FN_PSEUDO && selection_caller(tl->src, &sel))
        s = selection_span(tl->src, &sel);
    if (!s)
        return NULL;
    const struct function *callee = functions_get(fns, s->fn), *caller = NULL;
    unsigned flags = s->flags;
    if (selection_caller(tl->src, &sel))
        caller = functions_get(fns, selection_span(tl->src, &sel)->fn);
    return source_find(tl->finder, fns, callee, caller, flags);
}

/* ---- Drawing ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void draw_title(struct timeline *tl, const struct source_text *t, bool call, struct surface *s,
                       struct rect r)
{
    char title[400], right[80] = "", where[200] = "";
    if (t->path)
        snprintf(where, sizeof where, " %.150s:%d", base_name(t->path), t->line);
    else if (t->addrs)
        snprintf(where, sizeof where, " 0x%" PRIx64, t->addrs[t->at]);
    snprintf(title, sizeof title, "%s%s%s%.120s", call ? "called at" : "defined at", where[0] ? where : " ?",
             t->scope ? "  in " : "", t->scope ? t->scope : "");
    if (t->places > 1)
        snprintf(right, sizeof right, "or %u other place%s", t->places - 1, t->places > 2 ? "s" : "");
    else if (t->newer)
        snprintf(right, sizeof right, "newer than the program");
    else if (t->addrs)
        snprintf(right, sizeof right, t->path ? "source not here" : "no line numbers");
    bar_draw_rule(s, r.row, r.col, r.cols, title, right, tl->m->glyphs);
}

static void draw_text(struct timeline *tl, const struct source_text *t, struct surface *s, struct rect r)
{
    /* Of a definition its body, of a call what surrounds it. */
    size_t rows = (size_t)r.rows, above = t->places ? rows / 2 : rows > 5 ? 2 : 1;
    size_t first = t->at > above ? t->at - above : 0;
    if (t->n > rows && first > t->n - rows)
        first = t->n - rows;
    for (size_t i = 0; i < rows && first + i < t->n; i++) {
        char number[24];
        if (t->addrs)
            snprintf(number, sizeof number, "%8" PRIx64, t->addrs[first + i]);
        else
            snprintf(number, sizeof number, "%5d", t->first + (int)(first + i));
        source_draw_line(s, (struct rect){r.row + (int)i, r.col, 1, r.cols}, number, t->addrs ? 8 : 5,
                         t->lines[first + i], first + i == t->at, tl->m->glyphs);
    }
}

static void draw_half(struct timeline *tl, const struct source_text *t, bool call, struct surface *s,
                      struct rect r)
{
    draw_title(tl, t, call, s, r);
    if (t->n == 0 && t->why && r.rows > 1)
        line_wrap(s, (struct rect){r.row + 1, r.col + 1, r.rows - 1, r.cols - 2}, t->why,
                  (struct style){.ink = ROLE_DIM}, tl->m->glyphs);
    else
        draw_text(tl, t, s, (struct rect){r.row + 1, r.col, r.rows - 1, r.cols});
}

void tl_draw_source(struct timeline *tl, struct surface *s, struct rect r)
{
    const struct source_answer *a = tl_source(tl);
    if (!a) {
        bar_draw_rule(s, r.row, r.col, r.cols, "looking for the source...", "", tl->m->glyphs);
        return;
    }
    bool both = r.cols >= 2 * HALF_COLS;
    struct rect left = {r.row, r.col, r.rows, both ? r.cols / 2 - 1 : r.cols};
    draw_half(tl, &a->function, false, s, left);
    if (both)
        draw_half(tl, &a->call, true, s, (struct rect){r.row, r.col + r.cols / 2, r.rows, r.cols - r.cols / 2});
}

/* ---- The editor ---- */

void tl_edit_source(struct timeline *tl, const char *arg)
{
    bool call;
    if (!source_edit_parse(tl->m, arg, &call) || !selection_span(tl->src, &tl->sel))
        return;
    const struct source_answer *a = tl_source(tl);
    if (a)
        source_edit_answer(tl->m, a, call);
    else
        model_say(tl->m, "the source is still being looked up");
}
