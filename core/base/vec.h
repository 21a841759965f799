/* A typed growable array: VEC(int) v = {0}; vec_push(&v, 3); v.data[i]; vec_free(&v).
 *
 * For small things (it grows by xrealloc). Arrays sized by input use vec_try_push, which returns
 * false when memory is short. Elements may move at each push: keep indices, not pointers. */
#ifndef MTUI_CORE_VEC_H
#define MTUI_CORE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define VEC(type)                                                                                  \
    struct {                                                                                       \
        type *data;                                                                                \
        size_t len, cap;                                                                           \
    }

#define vec_push(v, value)                                                                         \
    do {                                                                                           \
        if ((v)->len == (v)->cap)                                                                  \
            (v)->data = vec_grow_((v)->data, &(v)->cap, sizeof *(v)->data);                        \
        (v)->data[(v)->len++] = (value);                                                           \
    } while (0)

/* An expression: false and v unchanged when there is no memory. */
#define vec_try_push(v, value)                                                                     \
    (((v)->len < (v)->cap || vec_try_grow_((void **)&(v)->data, &(v)->cap, sizeof *(v)->data))     \
         ? ((v)->data[(v)->len++] = (value), true)                                                 \
         : false)

/* Appends n elements; false, with nothing changed, when memory is short. */
#define vec_try_append(v, values, n)                                                               \
    (vec_try_reserve_((void **)&(v)->data, &(v)->cap, (v)->len, (n), sizeof *(v)->data)            \
         ? ((n) ? (void)memcpy((v)->data + (v)->len, (values), (n) * sizeof *(v)->data) : (void)0, \
            (v)->len += (n), true)                                                                 \
         : false)

#define vec_remove(v, i)                                                                           \
    do {                                                                                           \
        size_t vec_i_ = (i);                                                                       \
        memmove((v)->data + vec_i_, (v)->data + vec_i_ + 1,                                        \
                ((v)->len - vec_i_ - 1) * sizeof *(v)->data);                                      \
        (v)->len--;                                                                                \
    } while (0)

#define vec_free(v)                                                                                \
    do {                                                                                           \
        free((v)->data);                                                                           \
        (v)->data = NULL;                                                                          \
        (v)->len = (v)->cap = 0;                                                                   \
    } while (0)

void *vec_grow_(void *data, size_t *cap, size_t elem);
bool vec_try_grow_(void **data, size_t *cap, size_t elem);
bool vec_try_reserve_(void **data, size_t *cap, size_t len, size_t n, size_t elem);

#endif
