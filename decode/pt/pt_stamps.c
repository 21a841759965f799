#include "decode/pt/pt_stamps.h"

#include <stdlib.h>

#include "core/base/err.h"
#include "core/base/vec.h"
#include "decode/pt/pt_packet.h"

void pt_stamps_free(struct pt_stamps *s)
{
    vec_free(s);
    s->wrong = 0;
}

/* The TSC packet of the PSB+ at psb; NULL: it has none. */
static const uint8_t *tsc_of(const uint8_t *psb, const uint8_t *end, struct packet *p)
{
    int n;
    for (const uint8_t *at = psb; (n = pt_packet_read(at, end, p)) > 0; at += n) {
        if (p->kind == PT_TSC)
            return at;
        if (!pt_packet_is_status(p->kind) || (p->kind == PT_PSB && at != psb))
            return NULL;
    }
    return NULL;
}

/* Those of the synchronisation points; *tail gets the offset behind the last one. */
static bool take_points(struct pt_stamps *s, const uint8_t *data, size_t len, size_t *tail)
{
    const uint8_t *end = data + len, *psb = data;
    *tail = len;
    for (; (psb = pt_packet_find_psb(psb, end)) != NULL; psb += PT_PSB_BYTES) {
        struct packet p;
        const uint8_t *at = tsc_of(psb, end, &p);
        if (!at)
            continue;
        struct pt_stamp t = {(size_t)(psb - data), (size_t)(at - data), p.value, false};
        if (!vec_try_push(s, t))
            return false;
        *tail = t.at + p.len;
    }
    return true;
}

static bool take_tail(struct pt_stamps *s, const uint8_t *data, size_t tail, size_t len)
{
    struct packet p;
    int n;
    for (size_t at = tail; (n = pt_packet_read(data + at, data + len, &p)) > 0; at += (size_t)n) {
        struct pt_stamp t = {PT_STAMP_NO_PSB, at, p.value, false};
        if (p.kind == PT_TSC && !vec_try_push(s, t))
            return false;
    }
    return true;
}

static bool is_outside(const struct pt_stamp *t, const struct pt_stamp_limits *limits)
{
    uint64_t ns = pt_time_ns(limits->clock, t->tsc);
    return ns < limits->from_ns || ns > limits->to_ns;
}

static void mark_outside(struct pt_stamps *s, const struct pt_stamp_limits *limits)
{
    size_t outside = 0;
    for (size_t i = 0; i < s->len; i++)
        outside += is_outside(&s->data[i], limits);
    if (outside > s->len / 2)
        return;
    for (size_t i = 0; i < s->len; i++)
        s->data[i].wrong = is_outside(&s->data[i], limits);
    s->wrong = outside;
}

/* Those that are not wrong already. */
static bool in_order(const struct pt_stamps *s)
{
    uint64_t before = 0;
    for (size_t i = 0; i < s->len; i++) {
        if (s->data[i].wrong)
            continue;
        if (s->data[i].tsc < before)
            return false;
        before = s->data[i].tsc;
    }
    return true;
}

/* Of a stamp, while the longest subsequence is looked for. */
struct link {
    size_t before; /* of the subsequences one shorter in front of it, the last element of the one that ends lowest */
    size_t equal;  /* the one before with a subsequence as long, which is higher */
};

/* Sets how long the longest subsequence of those not wrong is; returns its end, the lowest of several. ends[k]: of
 * those of length k + 1, the last element of the one that ends lowest. */
static size_t find_longest(const struct pt_stamps *s, struct link *links, size_t *ends, size_t *length)
{
    size_t longest = 0;
    for (size_t i = 0; i < s->len; i++) {
        size_t lo = 0, hi = longest;
        if (s->data[i].wrong)
            continue;
        while (lo < hi) { /* the first that ends later than this one */
            size_t mid = lo + (hi - lo) / 2;
            if (s->data[ends[mid]].tsc <= s->data[i].tsc)
                lo = mid + 1;
            else
                hi = mid;
        }
        links[i] = (struct link){lo ? ends[lo - 1] : SIZE_MAX, lo < longest ? ends[lo] : SIZE_MAX};
        ends[lo] = i;
        longest += lo == longest;
    }
    *length = longest;
    return ends[longest - 1];
}

/* What is not in the longest subsequence in order is wrong (patience sorting: Fredman, "On computing the length of
 * longest increasing subsequences", 1975). Of equally long ones, the one with the shorter steps: a second timestamp
 * that leaps back is not one behind a first that leaps ahead. */
static bool mark_wrong(struct pt_stamps *s)
{
    struct link *links = malloc(s->len * sizeof *links);
    size_t *ends = malloc(s->len * sizeof *ends), length = 0;
    bool ok = links && ends;
    size_t end = ok ? find_longest(s, links, ends, &length) : SIZE_MAX;
    for (size_t i = 0; i < s->len; i++)
        s->data[i].wrong = true;
    for (size_t i = end; i != SIZE_MAX;) {
        size_t next = links[i].before;
        s->data[i].wrong = false;
        while (next != SIZE_MAX && links[next].equal != SIZE_MAX && s->data[links[next].equal].tsc <= s->data[i].tsc)
            next = links[next].equal;
        i = next;
    }
    s->wrong = s->len - length;
    free(links);
    free(ends);
    return ok;
}

int pt_stamps_find(struct pt_stamps *s, const uint8_t *data, size_t len, const struct pt_stamp_limits *limits)
{
    size_t tail;
    if (!take_points(s, data, len, &tail) || !take_tail(s, data, tail, len))
        return MTUI_E_NOMEM;
    if (limits)
        mark_outside(s, limits);
    return in_order(s) || mark_wrong(s) ? 0 : MTUI_E_NOMEM;
}

size_t pt_stamps_from(const struct pt_stamps *s, size_t at)
{
    size_t lo = 0, hi = s->len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->data[mid].at < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const struct pt_stamp *pt_stamps_of_psb(const struct pt_stamps *s, size_t psb)
{
    size_t i = pt_stamps_from(s, psb);
    return i < s->len && s->data[i].psb == psb ? &s->data[i] : NULL;
}
