#include "core/step/step_pages.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/hash64.h"
#include "core/base/vec.h"

/* The file behind a page; inode 0: none that a decoder could rely on. */
struct origin {
    uint64_t inode, offset;
    uint32_t dev_major, dev_minor;
};

struct page {
    uint64_t start;
    uint64_t since;    /* clock; 0: as long as it was executed */
    uint64_t mappings; /* as of which origin holds */
    struct origin origin;
    bool executed; /* something of it, by bytes that were known */
    bool known;    /* bytes are those of the code */
    bool kept;     /* a version of it is in the log: from then on all are */
    uint8_t bytes[STEP_CODE_PAGE];
};

struct step_pages {
    struct step_code *code;
    struct step_sideband *sideband;
    struct step_code_log *log;
    const uint64_t *clock;
    VEC(struct page *) pages;
    struct hash64 by_start;
    struct page *last;       /* looked at; NULL: none */
    uint64_t mappings;       /* how often they were read */
    uint64_t remapped_clock; /* when they were read last */
    bool lost, lost_told;
};

struct step_pages *step_pages_new(struct step_code *code, struct step_sideband *sideband,
                                  struct step_code_log *log, const uint64_t *clock)
{
    struct step_pages *p = xcalloc(1, sizeof *p);
    p->code = code;
    p->sideband = sideband;
    p->log = log;
    p->clock = clock;
    return p;
}

void step_pages_free(struct step_pages *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->pages.len; i++)
        free(p->pages.data[i]);
    vec_free(&p->pages);
    hash64_free(&p->by_start);
    free(p);
}

void step_pages_remapped(struct step_pages *p)
{
    p->mappings++;
    p->remapped_clock = *p->clock;
}

bool step_pages_lost(struct step_pages *p)
{
    bool first = p->lost && !p->lost_told;
    p->lost_told |= first;
    return first;
}

/* ---- where a page comes from ---- */

/* Another thread, at full speed, may have mapped it. */
static const struct map *find_map(struct step_pages *p, uint64_t start)
{
    const struct map *m = maps_find(step_code_maps(p->code), start);
    if (m || step_code_refresh(p->code, NULL) < 0)
        return m;
    step_sideband_maps(p->sideband, step_code_maps(p->code), *p->clock);
    step_pages_remapped(p);
    return maps_find(step_code_maps(p->code), start);
}

static bool same_origin(const struct origin *a, const struct origin *b)
{
    return a->inode == b->inode && a->offset == b->offset && a->dev_major == b->dev_major &&
           a->dev_minor == b->dev_minor;
}

/* A decoder that reads the file finds what was mapped. Files that are shared memory, or are removed, are where
 * programs put code of their own making (memfd_create(2)). */
static bool is_steady(const struct map *m)
{
    return map_has_file(m) && !m->deleted && !(m->prot & (MAPS_W | MAPS_SHARED));
}

/* Brings a page up to date with the mappings: another file there means other code. */
static void look(struct step_pages *p, struct page *page)
{
    const struct map *m = find_map(p, page->start);
    struct origin now = {0};
    if (m && is_steady(m))
        now = (struct origin){m->inode, m->offset + (page->start - m->start), m->dev_major, m->dev_minor};
    page->mappings = p->mappings;
    if (page->kept || (page->executed && same_origin(&now, &page->origin)))
        return; /* the bytes tell */
    page->origin = now;
    page->known = now.inode && step_code_read_file(p->code, m, page->start, page->bytes, STEP_CODE_PAGE);
    page->since = page->executed ? p->remapped_clock : 0;
}

/* NULL: no memory for it. */
static struct page *page_at(struct step_pages *p, uint64_t start)
{
    if (p->last && p->last->start == start && p->last->mappings == p->mappings)
        return p->last;
    uint32_t i = hash64_get(&p->by_start, start);
    struct page *page = i == HASH64_NONE ? calloc(1, sizeof *page) : p->pages.data[i];
    if (i == HASH64_NONE) {
        if (!page || !hash64_set(&p->by_start, start, (uint32_t)p->pages.len) ||
            !vec_try_push(&p->pages, page)) {
            free(page);
            p->lost = true;
            return NULL;
        }
        page->start = start;
    }
    if (i == HASH64_NONE || page->mappings != p->mappings)
        look(p, page);
    p->last = page;
    return page;
}

/* ---- what it holds ---- */

/* From now on it holds what is in memory. When nothing of it was executed before, that is what it always was. */
static void take_version(struct step_pages *p, struct page *page)
{
    size_t n = step_code_read(p->code, page->start, page->bytes, STEP_CODE_PAGE);
    memset(page->bytes + n, 0, STEP_CODE_PAGE - n);
    page->known = true;
    page->since = page->executed ? *p->clock : 0;
}

static void keep(struct step_pages *p, struct page *page)
{
    page->kept = true;
    if (p->log && !step_code_log_put(p->log, page->since, page->start, page->bytes))
        p->lost = true;
    if (page->since)
        step_sideband_code(p->sideband, maps_find(step_code_maps(p->code), page->start), page->start,
                           STEP_CODE_PAGE, *p->clock);
}

static uint64_t executes(struct step_pages *p, uint64_t ip, const uint8_t *bytes, size_t n)
{
    size_t at = (size_t)(ip % STEP_CODE_PAGE);
    struct page *page = page_at(p, ip - at);
    if (!page)
        return 0;
    if (!page->known || memcmp(page->bytes + at, bytes, n) != 0) {
        take_version(p, page);
        memcpy(page->bytes + at, bytes, n); /* it may just have changed once more */
        keep(p, page);
    }
    page->executed = true;
    return page->since;
}

uint64_t step_pages_executes(struct step_pages *p, uint64_t ip, const uint8_t *bytes, size_t n)
{
    size_t left = STEP_CODE_PAGE - (size_t)(ip % STEP_CODE_PAGE), first = n < left ? n : left;
    uint64_t since = executes(p, ip, bytes, first), rest = 0;
    if (first < n)
        rest = executes(p, ip + first, bytes + first, n - first);
    return since > rest ? since : rest;
}
