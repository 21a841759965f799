/* Conditions of a trigger on integer registers: what stands after "if".
 *
 *   arg1 > 4096                    and arg2 != 0 and ret < 0
 *   arg1 … arg6                    integer arguments (System V AMD64 ABI: rdi rsi rdx rcx r8 r9)
 *   ret                            the value returned (rax)
 *   == != < <= > >=                comparison;  &  some of these bits are set
 *   42  -1  0x1000                 the number; a decimal one compares signed, a hexadecimal one
 *                                  unsigned
 *   (int)arg1  (unsigned)arg1      32 bits only, signed or not: the upper half of a register that
 *                                  carries an int is undefined
 *   (long)arg1  (ulong)arg1        64 bits, signed or not, whatever the number looks like */
#ifndef MTUI_CORE_TRIGGER_IF_H
#define MTUI_CORE_TRIGGER_IF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

#define TRIGGER_IF_MAX  8 /* comparisons joined by "and" */
#define TRIGGER_IF_ARGS 6

enum trigger_if_op {
    TRIGGER_IF_EQ,
    TRIGGER_IF_NE,
    TRIGGER_IF_LE,
    TRIGGER_IF_GE,
    TRIGGER_IF_LT,
    TRIGGER_IF_GT,
    TRIGGER_IF_BITS
};

struct trigger_if {
    size_t n; /* 0: no condition */
    struct trigger_if_test {
        uint8_t arg; /* 0: ret; else 1–6 */
        uint8_t op;  /* enum trigger_if_op */
        bool is_signed, is_32;
        uint64_t value;
    } test[TRIGGER_IF_MAX];
};

/* text: what stands after "if". MTUI_E_INVAL with what is wrong and what may stand there. */
int trigger_if_parse(const char *text, struct trigger_if *out, struct err *err);

bool trigger_if_needs_ret(const struct trigger_if *c);

/* ret NULL: not known; a comparison with it does not hold then. */
bool trigger_if_holds(const struct trigger_if *c, const uint64_t arg[TRIGGER_IF_ARGS],
                      const uint64_t *ret);

#endif
