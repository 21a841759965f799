#include "decode/large.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

void *large_alloc(size_t count, size_t size)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes == 0 || bytes > PTRDIFF_MAX)
        return NULL;
    if (bytes < HUGE_PAGE)
        return malloc(bytes);
    /* Huge pages begin at multiples of their size: one more is mapped, and what sticks out is given back. */
    size_t whole = (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
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
        munmap(p, (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
}
