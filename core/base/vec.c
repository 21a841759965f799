#include "core/base/vec.h"

#include <stdint.h>
#include <stdlib.h>

#include "core/base/alloc.h"

void *vec_grow_(void *data, size_t *cap, size_t elem)
{
    size_t bigger = *cap ? *cap * 2 : 8;
    data = xrealloc(data, bigger * elem);
    *cap = bigger;
    return data;
}

bool vec_try_grow_(void **data, size_t *cap, size_t elem)
{
    size_t bigger = *cap ? *cap * 2 : 64;
    if (bigger > SIZE_MAX / elem)
        return false;
    void *moved = realloc(*data, bigger * elem);
    if (!moved)
        return false;
    *data = moved;
    *cap = bigger;
    return true;
}

bool vec_try_reserve_(void **data, size_t *cap, size_t len, size_t n, size_t elem)
{
    while (*cap - len < n)
        if (!vec_try_grow_(data, cap, elem))
            return false;
    return true;
}
