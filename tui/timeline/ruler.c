#include "tui/timeline/ruler.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint64_t ruler_nice_step(uint64_t min)
{
    for (uint64_t decade = 1;; decade *= 10) {
        if (min <= decade)
            return decade;
        if (decade > UINT64_MAX / 10)
            return decade;
        if (min <= 2 * decade)
            return 2 * decade;
        if (min <= 5 * decade)
            return 5 * decade;
    }
}

char *ruler_time(char *out, int64_t offset, uint64_t step, bool instructions)
{
    if (!instructions)
        return fmt_time(out, offset, step);
    char digits[FMT_MAX];
    uint64_t n = offset < 0 ? (uint64_t)0 - (uint64_t)offset : (uint64_t)offset;
    /* Exact to the step: whole thousands or millions where the step is. */
    bool mega = step >= 1000000 && step % 1000000 == 0, kilo = step >= 1000 && step % 1000 == 0;
    uint64_t unit = mega ? 1000000 : kilo ? 1000 : 1;
    fmt_count(digits, (n + unit / 2) / unit);
    snprintf(out, FMT_MAX, "%s%.30s%s", offset < 0 ? "-" : "", digits, mega   ? " M"
                                                                       : kilo ? " k"
                                                                              : "");
    return out;
}

char *ruler_duration(char *out, uint64_t ns, bool instructions)
{
    if (!instructions)
        return fmt_duration(out, ns);
    char digits[FMT_MAX];
    fmt_count(digits, ns);
    snprintf(out, FMT_MAX, "%.30s insn", digits);
    return out;
}

char *ruler_duration_short(char *out, uint64_t ns, bool instructions)
{
    return instructions ? fmt_count_short(out, ns) : fmt_duration(out, ns);
}

static char *write_mean(char *out, uint64_t sum, uint64_t n, const char *unit, char *(*whole)(char *, uint64_t, bool),
                        bool instructions)
{
    const uint64_t each = n ? sum / n : 0, rest = n ? sum % n : 0;
    const unsigned tenths = n ? (unsigned)((double)rest * 10 / (double)n + 0.5) : 0;
    if (rest == 0 || each * 10 + tenths >= 100)
        return whole(out, each + (rest >= n - rest && rest), instructions);
    snprintf(out, FMT_MAX, "%u.%u%s", (unsigned)each + tenths / 10, tenths % 10, unit);
    return out;
}

char *ruler_mean(char *out, uint64_t sum_ns, uint64_t n, bool instructions)
{
    return write_mean(out, sum_ns, n, instructions ? " insn" : " ns", ruler_duration, instructions);
}

char *ruler_mean_short(char *out, uint64_t sum_ns, uint64_t n, bool instructions)
{
    return write_mean(out, sum_ns, n, instructions ? "" : " ns", ruler_duration_short, instructions);
}

int ruler_parse(const char *text, bool instructions, uint64_t *ns, struct err *err)
{
    return instructions ? fmt_parse_count(text, ns, err) : fmt_parse_duration(text, ns, err);
}

const char *ruler_example(bool instructions)
{
    return instructions ? "1.2k" : "1.25ms";
}

const char *ruler_example_longer(bool instructions)
{
    return instructions ? "1.5k" : "1.5ms";
}

/* Columns that the longest label in view needs, with its tick and a blank. */
static int label_cols(const struct viewport *v, uint64_t step, bool instructions)
{
    char text[FMT_MAX];
    int cols = 0;
    for (int i = 0; i < 2; i++) {
        int64_t offset = (int64_t)(viewport_time_at(v, i ? v->cols : 0) - v->first_ns);
        int len = (int)strlen(ruler_time(text, offset, step, instructions));
        cols = len > cols ? len : cols;
    }
    return cols + 3;
}

uint64_t ruler_step(const struct viewport *v, bool instructions)
{
    uint64_t step = 1;
    for (;;) {
        flame_u128 needed = v->place.col_fp * (unsigned)label_cols(v, step, instructions);
        if (((flame_u128)step << FLAME_FRACTION_BITS) >= needed || step > UINT64_MAX / 20)
            return step;
        step = ruler_nice_step(step + 1);
    }
}

void ruler_draw(struct surface *s, int row, int col, const struct viewport *v, bool instructions,
                const struct glyphs *g)
{
    const struct style style = {.ink = ROLE_RULER, .paper = ROLE_RULER};
    uint64_t step = ruler_step(v, instructions);
    surface_fill(s, (struct rect){row, col, 1, v->cols}, ' ', style);
    int64_t from = (int64_t)(viewport_time_at(v, 0) - v->first_ns);
    int64_t tick = from / (int64_t)step * (int64_t)step - (int64_t)step;
    for (;; tick += (int64_t)step) {
        if (tick < 0 && (uint64_t)-tick > v->first_ns)
            continue; /* before time 0 */
        int at = viewport_col_of(v, v->first_ns + (uint64_t)tick);
        if (at >= v->cols)
            break;
        if (at < 0)
            continue;
        char text[FMT_MAX];
        const int room = v->cols - at - 1;
        surface_put(s, row, col + at, glyph(g, GLYPH_TICK), style);
        if ((int)strlen(ruler_time(text, tick, step, instructions)) <= room) /* part of it is another time */
            surface_text(s, row, col + at + 1, room, text, SIZE_MAX, style);
    }
}
