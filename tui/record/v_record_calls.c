/* How long watched calls took: a histogram by powers of two for each trigger that sees returns, with the
 * threshold in it, and what the watching costs. */
#include <stdio.h>
#include <string.h>

#include "core/base/fmt.h"
#include "tui/record/v_record_priv.h"
#include "tui/ui/bar.h"

#define TRIGGERS_MAX 2 /* shown; those that come first */
#define ROWS_EACH    2
#define BARS         8

static const struct trigger_set *watching(const struct record *r)
{
    const struct session_setup *setup = r->session ? session_get_setup(r->session) : NULL;
    const struct trigger_set *t = setup ? session_triggers(r->session) : NULL;
    return t && setup->n_triggers && r->status.recorder != PLAN_STEP ? t : NULL;
}

static size_t count_watched(const struct trigger_set *t)
{
    size_t n = 0;
    for (uint32_t i = 0; t && i < trigger_set_count(t); i++)
        n += trigger_needs_return(trigger_set_get(t, i));
    return n;
}

int v_record_calls_rows(const struct record *r)
{
    size_t n = count_watched(watching(r));
    if (n == 0)
        return 0;
    return 1 + ROWS_EACH * (int)(n < TRIGGERS_MAX ? n : TRIGGERS_MAX);
}

static char *edge(char out[FMT_MAX], size_t bucket)
{
    return fmt_duration(out, (uint64_t)1 << (bucket < 63 ? bucket : 63));
}

static void draw_numbers(struct surface *s, struct rect at, int row, const struct trigger *t,
                         const struct trigger_calls *calls)
{
    const struct call_histogram *h = &calls->durations;
    char n[FMT_MAX], left[80] = "", spread[128];
    if (calls->left)
        (void)snprintf(left, sizeof left, ", %s left (exception, longjmp)", fmt_count(n, calls->left));
    if (h->count == 0)
        v_record_field(s, at, row, "Durations", (struct style){.ink = ROLE_DIM},
                       "%.200s: no call has returned yet%s", t->text, left);
    else
        v_record_field(s, at, row, "Durations", (struct style){0}, "%.200s: %s call%s%s, %s", t->text,
                       fmt_count(n, h->count), h->count == 1 ? "" : "s", left,
                       call_histogram_text(h, spread, sizeof spread));
}

/* Bars grow with the logarithm of the count: one slow call in a million must be seen. */
static int level(uint64_t count, uint64_t most)
{
    int bits = 64 - __builtin_clzll(count), of = 64 - __builtin_clzll(most);
    return of <= 1 ? BARS : 1 + (bits - 1) * (BARS - 1) / (of - 1);
}

struct range {
    size_t first, last, threshold; /* buckets; threshold SIZE_MAX: none */
};

static struct range shown(const struct call_histogram *h, uint64_t slower_than_ns)
{
    struct range r = {call_histogram_bucket(h->min_ns), call_histogram_bucket(h->max_ns), SIZE_MAX};
    if (slower_than_ns) {
        r.threshold = call_histogram_bucket(slower_than_ns);
        r.first = r.threshold < r.first ? r.threshold : r.first;
        r.last = r.threshold > r.last ? r.threshold : r.last;
    }
    return r;
}

static int put_text(struct surface *s, int row, int col, int end, const char *text,
                    struct style style)
{
    if (col < end)
        surface_text(s, row, col, end - col, text, SIZE_MAX, style);
    return col + (int)strlen(text);
}

static void put_glyph(const struct record *r, struct surface *s, int row, int col, int end,
                      enum glyph what, struct style style)
{
    if (col < end)
        surface_put(s, row, col, glyph(r->m->glyphs, what), style);
}

/* "64 ns ▁▃█▅▂ ▁│▁ 512 ms   │ 300 ms: 1 slower" */
static void draw_bars(const struct record *r, struct surface *s, struct rect at, int row,
                      const struct trigger_set *set, uint32_t i, const struct call_histogram *h)
{
    const struct trigger *t = trigger_set_get(set, i);
    const struct trigger_counts *c = trigger_set_counts(set, i);
    const struct style plain = {0}, dim = {.ink = ROLE_DIM}, warn = {.ink = ROLE_WARN};
    struct range show = shown(h, t->when.slower_than_ns);
    char text[FMT_MAX], d[FMT_MAX], n[FMT_MAX], legend[128];
    int y = at.row + row, col = at.col + 13, end = at.col + at.cols;
    uint64_t most = 1;
    for (size_t b = show.first; b <= show.last; b++)
        most = h->bucket[b] > most ? h->bucket[b] : most;
    col = put_text(s, y, col, end, edge(text, show.first), dim) + 1;
    for (size_t b = show.first; b <= show.last; b++) {
        bool slow = show.threshold != SIZE_MAX && b >= show.threshold;
        if (b == show.threshold)
            put_glyph(r, s, y, col++, end, GLYPH_RULE_V, warn);
        if (h->bucket[b])
            put_glyph(r, s, y, col, end,
                      (enum glyph)(GLYPH_BAR1 + level(h->bucket[b], most) - 1),
                      slow ? warn : plain);
        col++;
    }
    col = put_text(s, y, col + 1, end, edge(text, show.last + 1), dim) + 3;
    if (!t->when.slower_than_ns)
        return;
    put_glyph(r, s, y, col, end, GLYPH_RULE_V, warn);
    (void)snprintf(legend, sizeof legend, "slower than %s: %s", fmt_duration(d, t->when.slower_than_ns),
                   fmt_count(n, c->hits));
    (void)put_text(s, y, col + 2, end, legend, c->hits ? warn : dim);
}

/* What it costs, two hits a call: "watching costs 2 x 3.20 us a call, 1.3 % of the time". */
static void cost(const struct record *r, char *out, size_t size)
{
    const struct call_rate_result *rate = &r->status.rate;
    char hit[FMT_MAX];
    int n = 0;
    if (!r->status.hit_ns) {
        (void)snprintf(out, size, "cost of watching: not measured");
        return;
    }
    n = snprintf(out, size, "watching costs 2 x %s a call", fmt_duration(hit, r->status.hit_ns));
    if (rate->seen.duration_ns && n > 0 && (size_t)n < size)
        (void)snprintf(out + n, size - (size_t)n, ", %u.%u %% of the time", rate->permille / 10,
                       rate->permille % 10);
}

void v_record_draw_calls(struct record *r, struct surface *s, struct rect at)
{
    const struct trigger_set *t = watching(r);
    char text[160], title[64];
    size_t watched = count_watched(t), drawn = 0;
    if (watched == 0)
        return;
    cost(r, text, sizeof text);
    if (watched > TRIGGERS_MAX)
        (void)snprintf(title, sizeof title, "Calls (%d of %zu triggers)", TRIGGERS_MAX, watched);
    else
        (void)snprintf(title, sizeof title, "Calls");
    bar_draw_rule(s, at.row, at.col, at.cols, title, text, r->m->glyphs);
    for (uint32_t i = 0; i < trigger_set_count(t) && drawn < TRIGGERS_MAX; i++) {
        if (!trigger_needs_return(trigger_set_get(t, i)))
            continue;
        int row = 1 + ROWS_EACH * (int)drawn++;
        struct trigger_calls calls = {0};
        trigger_set_add_calls(t, i, &calls);
        draw_numbers(s, at, row, trigger_set_get(t, i), &calls);
        if (calls.durations.count && row + 1 < at.rows)
            draw_bars(r, s, at, row + 1, t, i, &calls.durations);
    }
}
