/* The pane Counts: the hits of each trigger, and of each function of one that stands for several, the busiest
 * first; and the same in short for the plan. */
#include "tui/record/v_record_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fmt.h"
#include "core/base/utf8.h"
#include "tui/ui/bar.h"

static const struct list_column columns[] = {
    {.title = "HITS", .cols = 9, .priority = 0, .right = true, .fixed = true},
    {.title = "FUNCTION", .cols = 20, .priority = 0, .stretch = true, .fixed = true},
    {.title = "TRIGGER", .cols = 30, .priority = 1, .fixed = true},
};

bool v_record_has_counts(const struct record *r)
{
    return r->session && session_member_count(r->session) > 1;
}

static const char *name_of(const struct session_member *m)
{
    return m->function ? m->function : m->trigger;
}

static int by_hits(const void *a, const void *b)
{
    const struct record_rank *x = a, *y = b;
    if (x->hits != y->hits)
        return x->hits > y->hits ? -1 : 1;
    return (x->member > y->member) - (x->member < y->member);
}

void v_record_rank(struct record *r)
{
    r->ranked.len = 0;
    for (size_t i = 0; r->session && i < session_member_count(r->session); i++)
        vec_push(&r->ranked, ((struct record_rank){session_member_at(r->session, i)->hits, i}));
    if (r->ranked.len)
        qsort(r->ranked.data, r->ranked.len, sizeof *r->ranked.data, by_hits);
}

static const struct session_member *ranked_at(const struct record *r, size_t i)
{
    return session_member_at(r->session, r->ranked.data[i].member);
}

/* ---- In short ---- */

bool v_record_counts_text(const struct record *r, int cols, char *out, size_t size)
{
    char one[300], more[48], n[FMT_MAX];
    size_t len = 0, of = r->ranked.len, room = cols > 0 ? (size_t)cols : 0;
    uint64_t left = 0;
    for (size_t i = 0; i < of; i++)
        left += ranked_at(r, i)->hits;
    for (size_t i = 0; i < of; i++) {
        const struct session_member *m = ranked_at(r, i);
        int tail = snprintf(more, sizeof more, ", %zu more [%s]", of - i, fmt_count_short(n, left));
        (void)snprintf(one, sizeof one, "%s%.200s [%s]", i ? ", " : "", name_of(m), fmt_count_short(n, m->hits));
        size_t wanted = utf8_cols(out, len) + utf8_cols(one, strlen(one)) + (i + 1 < of ? (size_t)tail : 0);
        if (wanted > room || len + strlen(one) + sizeof more > size) {
            (void)snprintf(out + len, size - len, "%s", i ? more : more + 2);
            return i > 0;
        }
        len += (size_t)snprintf(out + len, size - len, "%s", one);
        left -= m->hits;
    }
    return true;
}

/* ---- The pane ---- */

static size_t count(void *arg)
{
    const struct record *r = arg;
    return r->ranked.len;
}

static uint64_t identity(void *arg, size_t row)
{
    const struct record *r = arg;
    return r->ranked.data[row].member + 1;
}

static void cell(void *arg, size_t row, size_t column, struct list_cell *cell)
{
    const struct session_member *m = ranked_at(arg, row);
    char n[FMT_MAX];
    if (column == 0)
        snprintf(cell->text, sizeof cell->text, "%s", fmt_count(n, m->hits));
    else if (column == 1)
        snprintf(cell->text, sizeof cell->text, "%s", name_of(m));
    else if (m->function)
        snprintf(cell->text, sizeof cell->text, "%s", m->trigger);
    if (m->hits == 0)
        cell->style.ink = ROLE_DIM;
}

const struct session_snapshot *v_record_counts_snapshot(const struct record *r)
{
    size_t row = list_selected(r->counts);
    const struct session_member *m = row < r->ranked.len ? ranked_at(r, row) : NULL;
    for (size_t i = m ? session_snapshot_count(r->session) : 0; i-- > 0;) {
        const struct session_snapshot *snap = session_snapshot_at(r->session, i);
        if (snap->data && strcmp(snap->trigger, m->trigger) == 0 && snap->function == m->function)
            return snap;
    }
    return NULL;
}

struct list *v_record_new_counts(struct record *r)
{
    static const struct list_rows rows = {.count = count, .identity = identity, .cell = cell};
    return list_new(columns, sizeof columns / sizeof *columns, &rows, r);
}

void v_record_draw_counts(struct record *r, struct surface *s, struct rect at)
{
    char right[96], hit[FMT_MAX], of[FMT_MAX];
    size_t n = 0;
    while (n < r->ranked.len && r->ranked.data[n].hits)
        n++;
    snprintf(right, sizeof right, "%s of %s hit", fmt_count(hit, n), fmt_count(of, r->ranked.len));
    v_record_pane_title(r, s, at, RECORD_COUNTS, "Counts", right);
    list_draw(r->counts, s, (struct rect){at.row + 1, at.col, at.rows - 1, at.cols}, r->m->glyphs);
}
