#include "decode/trace/pyramid.h"

#include <stdlib.h>

#include "core/base/alloc.h"
#include "core/base/large.h"

#define LEAF 16
#define FAN 8

struct pyramid_node {
    uint64_t first_ns, last_ns; /* start of the first span, end of the last */
    uint64_t busy_ns;
    uint64_t longest_ns; /* so that comparing two nodes need not touch their spans */
    uint32_t longest;    /* counted from the node's first span */
    fn_id fn;            /* dominant function */
};
_Static_assert(sizeof(struct pyramid_node) == 40, "the memory promised in the header");

struct pyramid_track {
    struct pyramid_node *nodes; /* of all rows, one after the other; in a row the finest level first */
    size_t nnodes;
    size_t *row; /* where each row's nodes begin */
};

struct pyramid {
    const struct trace *trace;
    struct pyramid_track *tracks;
    size_t ntracks, bytes;
};

/* Spans below a node of level l (0 is the finest). Ten levels keep `longest` within 32 bits; a row too
 * long for them has a wide top level, nothing else. */
static size_t spans_below(size_t l)
{
    return (size_t)LEAF << (3 * l);
}

/* Nodes of level l in a row of n spans; 0 where the level does not exist: a level above FAN nodes or
 * fewer would save nothing. */
static size_t level_len(size_t n, size_t l)
{
    if (l >= PYRAMID_LEVELS || n <= (l ? spans_below(l - 1) * FAN : LEAF))
        return 0;
    return n / spans_below(l) + (n % spans_below(l) != 0);
}

static size_t row_nodes(size_t n)
{
    size_t sum = 0;
    for (size_t l = 0; level_len(n, l); l++)
        sum += level_len(n, l);
    return sum;
}

/* ---- Building ---- */

struct share {
    fn_id fn;
    uint64_t time_ns;
};

/* The function with the most time of k ≤ LEAF shares, the first among equals. */
static struct share dominant(const struct share *s, size_t k)
{
    struct share sum[LEAF];
    size_t n = 0, best = 0;
    for (size_t i = 0; i < k; i++) {
        size_t j = 0;
        while (j < n && sum[j].fn != s[i].fn)
            j++;
        if (j == n)
            sum[n++] = (struct share){s[i].fn, 0};
        sum[j].time_ns += s[i].time_ns;
    }
    for (size_t j = 1; j < n; j++)
        if (sum[j].time_ns > sum[best].time_ns)
            best = j;
    return sum[best];
}

static void build_leaves(const struct span *row, size_t n, struct pyramid_node *out,
                         struct share *shares)
{
    struct share s[LEAF];
    for (size_t at = 0; at < n; at += LEAF) {
        size_t k = n - at < LEAF ? n - at : LEAF, longest = 0;
        uint64_t busy = 0;
        for (size_t i = 0; i < k; i++) {
            s[i] = (struct share){row[at + i].fn, row[at + i].end_ns - row[at + i].start_ns};
            busy += s[i].time_ns;
            if (s[i].time_ns > s[longest].time_ns)
                longest = i;
        }
        struct share d = dominant(s, k);
        out[at / LEAF] = (struct pyramid_node){
            row[at].start_ns,  row[at + k - 1].end_ns, busy, s[longest].time_ns,
            (uint32_t)longest, d.fn};
        shares[at / LEAF] = d;
    }
}

/* Level l from the level below it; shares holds that level's dominant functions, and then this one's:
 * the parent's place is never behind its first child's. */
static void build_level(size_t l, const struct pyramid_node *below, size_t nbelow,
                        struct pyramid_node *out, struct share *shares)
{
    for (size_t at = 0; at < nbelow; at += FAN) {
        size_t k = nbelow - at < FAN ? nbelow - at : FAN;
        struct pyramid_node node = below[at];
        for (size_t i = 1; i < k; i++) {
            node.busy_ns += below[at + i].busy_ns;
            if (below[at + i].longest_ns > node.longest_ns) {
                node.longest_ns = below[at + i].longest_ns;
                node.longest = (uint32_t)(i * spans_below(l - 1)) + below[at + i].longest;
            }
        }
        node.last_ns = below[at + k - 1].last_ns;
        struct share d = dominant(shares + at, k);
        node.fn = d.fn;
        shares[at / FAN] = d;
        out[at / FAN] = node;
    }
}

static void build_row(const struct span *row, size_t n, struct pyramid_node *nodes,
                      struct share *shares)
{
    if (!level_len(n, 0))
        return;
    build_leaves(row, n, nodes, shares);
    for (size_t l = 1; level_len(n, l); l++) {
        size_t below = level_len(n, l - 1);
        build_level(l, nodes, below, nodes + below, shares);
        nodes += below;
    }
}

static int build_track(struct pyramid *p, size_t thread, const atomic_bool *cancel)
{
    struct pyramid_track *k = &p->tracks[thread];
    size_t depths = trace_thread(p->trace, thread)->depths, n = 0, longest_row = 0;
    k->row = malloc((depths ? depths : 1) * sizeof *k->row);
    if (!k->row)
        return MTUI_E_NOMEM;
    p->bytes += depths * sizeof *k->row;
    for (size_t d = 0; d < depths; d++) {
        trace_row(p->trace, thread, d, &n);
        k->row[d] = k->nnodes;
        k->nnodes += row_nodes(n);
        if (n > longest_row)
            longest_row = n;
    }
    if (k->nnodes == 0)
        return 0;
    size_t nshares = level_len(longest_row, 0);
    struct share *shares = large_alloc(nshares, sizeof *shares);
    k->nodes = large_alloc(k->nnodes, sizeof *k->nodes);
    int rc = shares && k->nodes ? 0 : MTUI_E_NOMEM;
    p->bytes += k->nnodes * sizeof *k->nodes;
    for (size_t d = 0; rc == 0 && d < depths; d++) {
        const struct span *row = trace_row(p->trace, thread, d, &n);
        build_row(row, n, k->nodes + k->row[d], shares);
        if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
            rc = MTUI_E_CANCEL;
    }
    large_free(shares, nshares, sizeof *shares);
    return rc;
}

int pyramid_new(struct pyramid **out, const struct trace *t, const atomic_bool *cancel,
                struct err *err)
{
    struct pyramid *p = xcalloc(1, sizeof *p);
    size_t n = trace_thread_count(t);
    p->trace = t;
    p->tracks = calloc(n ? n : 1, sizeof *p->tracks);
    int rc = p->tracks ? 0 : MTUI_E_NOMEM;
    p->ntracks = rc ? 0 : n;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = build_track(p, i, cancel);
    if (rc) {
        pyramid_free(p);
        return rc == MTUI_E_CANCEL ? err_set(err, rc, "cancelled")
                                   : err_set(err, rc, "not enough memory to index the trace");
    }
    *out = p;
    return 0;
}

void pyramid_free(struct pyramid *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->ntracks; i++) {
        large_free(p->tracks[i].nodes, p->tracks[i].nnodes, sizeof *p->tracks[i].nodes);
        free(p->tracks[i].row);
    }
    free(p->tracks);
    free(p);
}

size_t pyramid_bytes(const struct pyramid *p)
{
    return p->bytes;
}

/* ---- Reading ---- */

/* Everything that pyramid_iter needs of a row; false when there is none. */
static bool find_row(struct pyramid_iter *it, const struct pyramid *p, size_t thread, size_t depth)
{
    *it = (struct pyramid_iter){0};
    it->spans = trace_row(p->trace, thread, depth, &it->n);
    if (!it->n)
        return false;
    const struct pyramid_track *k = &p->tracks[thread];
    size_t offset = k->row[depth];
    for (size_t l = 0, len; (len = level_len(it->n, l)) != 0; l++) {
        it->level[it->levels++] = k->nodes + offset;
        offset += len;
    }
    return true;
}

/* The first span that ends after time_ns or does not start before it. */
static size_t first_after(const struct span *row, size_t n, uint64_t time_ns)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (row[mid].end_ns > time_ns || row[mid].start_ns >= time_ns)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* The first span that starts at or after time_ns. */
static size_t first_from(const struct span *row, size_t n, uint64_t time_ns)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (row[mid].start_ns >= time_ns)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

void pyramid_iter_init(struct pyramid_iter *it, const struct pyramid *p, size_t thread, size_t depth,
                       uint64_t from_ns, uint64_t to_ns, uint64_t resolution_ns)
{
    if (!find_row(it, p, thread, depth))
        return;
    it->at = first_after(it->spans, it->n, from_ns);
    it->to_ns = to_ns;
    it->resolution_ns = resolution_ns;
}

/* Whether the node of level l − 1 that begins at span `at` exists and is too narrow to be seen. */
static bool narrow(const struct pyramid_iter *it, size_t l, size_t at)
{
    if (l > it->levels || at & (spans_below(l - 1) - 1))
        return false;
    const struct pyramid_node *node = &it->level[l - 1][at / spans_below(l - 1)];
    return node->last_ns - node->first_ns < it->resolution_ns;
}

struct unit {
    struct pyramid_item item;
    uint64_t longest_ns;
};

static struct unit span_unit(const struct span *row, size_t i)
{
    const struct span *s = &row[i];
    uint64_t ns = s->end_ns - s->start_ns;
    return (struct unit){{s->start_ns, s->end_ns, ns, i, 1, i, s->fn, s->flags}, ns};
}

static struct unit node_unit(const struct pyramid_node *node, size_t first, size_t count)
{
    return (struct unit){{node->first_ns, node->last_ns, node->busy_ns, first, count,
                          first + node->longest, node->fn, 0},
                         node->longest_ns};
}

/* The largest thing that begins at the present span and is not worth looking into: a node below the
 * resolution, else the span itself. What was found last is most likely found again, so the search
 * starts at its level and touches little memory. */
static struct unit unit_at(struct pyramid_iter *it)
{
    size_t l = it->hint;
    while (l && !narrow(it, l, it->at))
        l--;
    while (narrow(it, l + 1, it->at))
        l++;
    it->hint = l;
    size_t count = l ? spans_below(l - 1) : 1;
    if (count > it->n - it->at)
        count = it->n - it->at;
    if (count == 1)
        return span_unit(it->spans, it->at);
    return node_unit(&it->level[l - 1][it->at / spans_below(l - 1)], it->at, count);
}

/* The function with the most time so far, by weighted majority vote (R. S. Boyer, J S. Moore, MJRTY,
 * 1981): right whenever one function has more than half, and one comparison a part. */
static void vote(struct share *best, fn_id fn, uint64_t time_ns)
{
    if (fn == best->fn)
        best->time_ns += time_ns;
    else if (time_ns > best->time_ns)
        *best = (struct share){fn, time_ns - best->time_ns};
    else
        best->time_ns -= time_ns;
}

/* Adds spans one by one up to the end of the leaf that holds the present one; false: one did not fit. */
static bool merge_spans(struct pyramid_iter *it, struct unit *all, struct share *best)
{
    const struct span *row = it->spans;
    size_t at = it->at, end = (at | (LEAF - 1)) + 1;
    bool fits = true;
    if (end > it->n)
        end = it->n;
    for (; at < end; at++) {
        const struct span *s = &row[at];
        uint64_t ns = s->end_ns - s->start_ns;
        fits = s->start_ns < it->to_ns && s->end_ns - all->item.start_ns < it->resolution_ns;
        if (!fits)
            break;
        if (ns > all->longest_ns) {
            all->longest_ns = ns;
            all->item.longest = at;
        }
        all->item.end_ns = s->end_ns;
        all->item.busy_ns += ns;
        vote(best, s->fn, ns);
    }
    all->item.count += at - it->at;
    it->at = at;
    return fits;
}

static bool merge_unit(struct pyramid_iter *it, struct unit *all, struct share *best)
{
    struct unit more = unit_at(it);
    if (more.item.start_ns >= it->to_ns ||
        more.item.end_ns - all->item.start_ns >= it->resolution_ns)
        return false;
    if (more.longest_ns > all->longest_ns) {
        all->longest_ns = more.longest_ns;
        all->item.longest = more.item.longest;
    }
    all->item.end_ns = more.item.end_ns;
    all->item.busy_ns += more.item.busy_ns;
    all->item.count += more.item.count;
    it->at += more.item.count;
    vote(best, more.item.fn, more.item.busy_ns);
    return true;
}

bool pyramid_iter_next(struct pyramid_iter *it, struct pyramid_item *item)
{
    if (it->at >= it->n)
        return false;
    struct unit all = unit_at(it);
    if (all.item.start_ns >= it->to_ns)
        return false;
    struct share best = {all.item.fn, all.item.busy_ns};
    size_t first_count = all.item.count;
    it->at += first_count;
    while (it->at < it->n && all.item.end_ns - all.item.start_ns < it->resolution_ns)
        if (!(narrow(it, 1, it->at) ? merge_unit : merge_spans)(it, &all, &best))
            break;
    *item = all.item;
    if (item->count > first_count) {
        item->fn = best.fn;
        item->flags = 0;
    }
    return true;
}

/* Adds the spans from … to − 1, by the largest nodes that lie inside. */
static void add_spans(struct pyramid_sum *sum, const struct pyramid_iter *row, size_t from,
                      size_t to)
{
    size_t l = 0;
    uint64_t longest_ns = 0;
    while (from < to) {
        while (l < row->levels && !(from & (spans_below(l) - 1)) && to - from >= spans_below(l))
            l++;
        while (l && (from & (spans_below(l - 1) - 1) || to - from < spans_below(l - 1)))
            l--;
        struct unit u =
            l ? node_unit(&row->level[l - 1][from / spans_below(l - 1)], from, spans_below(l - 1))
              : span_unit(row->spans, from);
        sum->busy_ns += u.item.busy_ns;
        if (u.longest_ns > longest_ns) {
            longest_ns = u.longest_ns;
            sum->longest = u.item.longest;
        }
        from += u.item.count;
    }
}

struct pyramid_sum pyramid_range(const struct pyramid *p, size_t thread, size_t depth,
                                 uint64_t from_ns, uint64_t to_ns)
{
    struct pyramid_sum sum = {0};
    struct pyramid_iter row;
    if (from_ns > to_ns || !find_row(&row, p, thread, depth))
        return sum;
    size_t from = first_after(row.spans, row.n, from_ns), to = first_from(row.spans, row.n, to_ns);
    if (from >= to)
        return sum;
    sum.count = to - from;
    sum.longest = from;
    add_spans(&sum, &row, from, to);
    if (row.spans[from].start_ns < from_ns)
        sum.busy_ns -= from_ns - row.spans[from].start_ns;
    if (row.spans[to - 1].end_ns > to_ns)
        sum.busy_ns -= row.spans[to - 1].end_ns - to_ns;
    return sum;
}

/* ---- By place in the row ---- */

void pyramid_row(struct pyramid_iter *row, const struct pyramid *p, size_t thread, size_t depth)
{
    find_row(row, p, thread, depth);
}

/* The last of nodes lo to hi − 1 that begins before time_ns; lo when none does. */
static size_t last_before(const struct pyramid_node *node, size_t lo, size_t hi, uint64_t time_ns)
{
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (node[mid].first_ns < time_ns)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Where the last node that begins before time_ns is likely to be: as far behind node lo as the nodes of the
 * smallest ancestor that reaches there are spread over its time. */
static size_t likely_node(const struct pyramid_iter *row, size_t lo, uint64_t time_ns)
{
    const size_t n = level_len(row->n, 0);
    size_t l = 0;
    while (l + 1 < row->levels && row->level[l][lo >> (3 * l)].last_ns < time_ns)
        l++;
    const struct pyramid_node *around = &row->level[l][lo >> (3 * l)];
    double per_ns = (double)((size_t)1 << (3 * l)) / (double)(around->last_ns - around->first_ns + 1);
    double ahead = (double)(time_ns - row->level[0][lo].first_ns) * per_ns;
    return ahead < (double)(n - 1 - lo) ? lo + (size_t)ahead : n - 1;
}

/* The last node of the finest level that begins before time_ns, given that node lo does. Near ones are found
 * in growing steps from lo, far ones in such steps from the likely place, up or down: calls are spread evenly
 * enough for that to touch fewer lines of memory than a way down the tree. */
static size_t seek_node(const struct pyramid_iter *row, size_t lo, uint64_t time_ns)
{
    const struct pyramid_node *node = row->level[0];
    const size_t n = level_len(row->n, 0);
    size_t step = 1, end = n;
    while (step <= 2 && lo + step < n && node[lo + step].first_ns < time_ns) {
        lo += step;
        step *= 2;
    }
    if (step <= 2)
        return last_before(node, lo, lo + step < n ? lo + step : n, time_ns);
    size_t at = likely_node(row, lo, time_ns);
    if (at > lo && node[at].first_ns >= time_ns) {
        end = at;
        for (step = 1; end - lo > step && node[end - step].first_ns >= time_ns; step *= 2)
            end -= step;
        if (end - lo > step)
            lo = end - step;
    } else {
        lo = at > lo ? at : lo;
        for (step = 1; lo + step < n && node[lo + step].first_ns < time_ns; step *= 2)
            lo += step;
        end = lo + step < n ? lo + step : n;
    }
    return last_before(node, lo, end, time_ns);
}

size_t pyramid_seek(const struct pyramid_iter *row, size_t from, uint64_t time_ns)
{
    if (from >= row->n || row->spans[from].start_ns >= time_ns)
        return from < row->n ? from : row->n;
    size_t end = row->n;
    if (row->levels) {
        size_t block = seek_node(row, from / LEAF, time_ns);
        if (block * LEAF > from)
            from = block * LEAF;
        if ((block + 1) * LEAF < end)
            end = (block + 1) * LEAF;
    }
    return from + first_from(row->spans + from, end - from, time_ns);
}

/* Whole nodes only are cheap, so a stretch that is a little wider comes first: if its longest span lies inside,
 * it is the one. */
size_t pyramid_longest(const struct pyramid_iter *row, size_t from, size_t to)
{
    struct pyramid_sum sum = {.longest = from};
    size_t l = row->levels;
    while (l > 0 && spans_below(l - 1) > (to - from) / 8)
        l--;
    if (l > 0) {
        size_t below = spans_below(l - 1), first = from & ~(below - 1), end = (to + below - 1) & ~(below - 1);
        add_spans(&sum, row, first, end < row->n ? end : row->n);
        if (sum.longest >= from && sum.longest < to)
            return sum.longest;
        sum.longest = from;
    }
    add_spans(&sum, row, from, to);
    return sum.longest;
}

uint8_t pyramid_starts(const struct pyramid_iter *row, size_t from, size_t to, const uint64_t edge[9])
{
    /* The level with enough nodes to find a start in each stretch, and no more than that. */
    size_t l = 0;
    while (l + 1 < row->levels && (to - from) / spans_below(l + 1) >= 32)
        l++;
    uint8_t found = 0;
    if (l >= row->levels)
        return 0;
    size_t below = spans_below(l), k = (from + below - 1) / below;
    for (unsigned e = 0; k * below < to && e < 8 && found != 0xff; k++) {
        uint64_t start = row->level[l][k].first_ns;
        while (e < 8 && edge[e + 1] <= start)
            e++;
        if (e < 8 && start >= edge[e])
            found |= (uint8_t)(1u << e);
    }
    return found;
}
