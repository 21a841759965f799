#include "core/base/large.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

static size_t mapped_bytes(size_t bytes)
{
    return (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
}

void *large_alloc(size_t count, size_t size)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes == 0 || bytes > PTRDIFF_MAX)
        return NULL;
    if (bytes < HUGE_PAGE)
        return malloc(bytes);
    /* Huge pages begin at multiples of their size: one more is mapped, and what sticks out is given back. */
    size_t whole = mapped_bytes(bytes);
    char *p = mmap(NULL, whole + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    size_t before = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
    if (before)
        munmap(p, before);
    munmap(p + before + whole, HUGE_PAGE - before);
    p += before;
    /* Only advice: without huge pages everything works, slower. */
    (void)madvise(p, whole, MADV_HUGEPAGE);
    return p;
}

void large_free(void *p, size_t count, size_t size)
{
    if (!p)
        return;
    size_t bytes = count * size;
    if (bytes < HUGE_PAGE)
        free(p);
    else
        munmap(p, mapped_bytes(bytes));
}

/* ---- Memory that changes hands ---- */

#define BLOCK_LEAST ((size_t)64 << 10)

void large_heir_init(struct large_heir *h, void *to, size_t count, size_t size, size_t streams)
{
    *h = (struct large_heir){.block = HUGE_PAGE};
    size_t bytes = count * size;
    if (bytes < 2 * HUGE_PAGE)
        return;
    /* Until the first part is used up, every stream fills its block with fresh pages: not many compared to all. */
    while (h->block > BLOCK_LEAST && h->block > bytes / 16 / (streams ? streams : 1))
        h->block /= 2;
    h->has = calloc(mapped_bytes(bytes) / h->block, 1);
    if (!h->has)
        return;
    h->base = to;
    /* Fresh ones should be as few as are written to; what moves in stays in huge pages. */
    (void)madvise(to, mapped_bytes(bytes), MADV_NOHUGEPAGE);
}

void large_heir_give(struct large_heir *h, void *p, size_t count, size_t size)
{
    struct large_part part = {p, mapped_bytes(count * size)};
    if (!h->base || count * size < HUGE_PAGE || !vec_try_push(&h->parts, part))
        large_free(p, count, size);
}

static void take_over(struct large_heir *h, size_t i)
{
    if (h->has[i])
        return;
    h->has[i] = 1;
    if (!h->parts.len)
        return;
    struct large_part *part = &h->parts.data[h->parts.len - 1];
    void *moved = mremap(part->at, h->block, h->block, MREMAP_MAYMOVE | MREMAP_FIXED, h->base + i * h->block);
    if (moved == MAP_FAILED) /* too many mappings: fresh pages do as well */
        return;
    part->at += h->block;
    part->bytes -= h->block;
    if (!part->bytes)
        h->parts.len--;
}

size_t large_heir_need(struct large_heir *h, size_t from, size_t to)
{
    if (!h->base)
        return SIZE_MAX;
    size_t last = (to - 1) / h->block;
    for (size_t i = from / h->block; i <= last; i++)
        take_over(h, i);
    return (last + 1) * h->block;
}

void large_heir_end(struct large_heir *h)
{
    for (size_t i = 0; i < h->parts.len; i++)
        munmap(h->parts.data[i].at, h->parts.data[i].bytes);
    vec_free(&h->parts);
    free(h->has);
    *h = (struct large_heir){0};
}
