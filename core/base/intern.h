/* Byte strings from outside, each kept once and named by a small number. Pointers stay valid until
 * intern_free. A NUL stands after every string. */
#ifndef MTUI_DECODE_INTERN_H
#define MTUI_DECODE_INTERN_H

#include <stddef.h>
#include <stdint.h>

struct intern;

struct intern *intern_new(void);
void intern_free(struct intern *in);

/* The number of these bytes, new ones being added (0, 1, 2 … in order). */
uint32_t intern_add(struct intern *in, const void *bytes, size_t len);
const char *intern_get(const struct intern *in, uint32_t id);
size_t intern_count(const struct intern *in);

#endif
