/* A reader over bytes from outside: every read is bounds-checked, and the first that does not fit makes
 * all that follow give zero and `bad` true, so a whole struct is read first and judged once. */
#ifndef MTUI_DECODE_PERF_CURSOR_H
#define MTUI_DECODE_PERF_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct perf_cursor {
    const uint8_t *p, *end;
    bool bad;
};

static inline struct perf_cursor perf_cursor_make(const uint8_t *p, size_t len)
{
    return (struct perf_cursor){p, p + len, false};
}

static inline size_t perf_cursor_left(const struct perf_cursor *c)
{
    return (size_t)(c->end - c->p);
}

/* len bytes, or NULL. */
static inline const uint8_t *perf_cursor_bytes(struct perf_cursor *c, uint64_t len)
{
    if (len > perf_cursor_left(c)) {
        c->bad = true;
        c->p = c->end;
        return NULL;
    }
    const uint8_t *at = c->p;
    c->p += len;
    return at;
}

static inline uint64_t perf_cursor_u64(struct perf_cursor *c)
{
    uint64_t v = 0;
    const uint8_t *at = perf_cursor_bytes(c, sizeof v);
    if (at)
        memcpy(&v, at, sizeof v);
    return v;
}

static inline uint32_t perf_cursor_u32(struct perf_cursor *c)
{
    uint32_t v = 0;
    const uint8_t *at = perf_cursor_bytes(c, sizeof v);
    if (at)
        memcpy(&v, at, sizeof v);
    return v;
}

static inline uint16_t perf_cursor_u16(struct perf_cursor *c)
{
    uint16_t v = 0;
    const uint8_t *at = perf_cursor_bytes(c, sizeof v);
    if (at)
        memcpy(&v, at, sizeof v);
    return v;
}

static inline int32_t perf_cursor_s32(struct perf_cursor *c)
{
    return (int32_t)perf_cursor_u32(c);
}

/* count numbers of 8 bytes in place; NULL and bad when they do not fit or do not lie at a multiple of
 * 8, where the kernel puts all of them. */
static inline const uint64_t *perf_cursor_u64s(struct perf_cursor *c, uint64_t count)
{
    if (count > perf_cursor_left(c) / 8 || (uintptr_t)c->p % 8 != 0) {
        c->bad = true;
        c->p = c->end;
        return NULL;
    }
    return (const uint64_t *)(const void *)perf_cursor_bytes(c, count * 8);
}

/* A string that ends inside what is left; "" and bad when none does. */
static inline const char *perf_cursor_string(struct perf_cursor *c)
{
    const uint8_t *nul = perf_cursor_left(c) ? memchr(c->p, 0, perf_cursor_left(c)) : NULL;
    if (!nul) {
        c->bad = true;
        c->p = c->end;
        return "";
    }
    const char *s = (const char *)c->p;
    c->p = nul + 1;
    return s;
}

#endif
