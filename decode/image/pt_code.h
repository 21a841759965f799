/* What a decoder asks about code: its bytes, and which function they belong to. Answers are for the
 * present address space of the traced thread; a change of it is announced by pt_nodes_forget. */
#ifndef MTUI_DECODE_PT_CODE_H
#define MTUI_DECODE_PT_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "decode/trace/functions.h"

struct pt_code {
    /* Copies up to n bytes of code at ip; returns how many (0: not at hand). */
    size_t (*read)(void *arg, uint64_t ip, uint8_t *out, size_t n);
    /* The function that ip lies in (parts such as f.cold count as f), never FN_NONE; *offset is how far
     * into it, UINT64_MAX when its beginning is not known. */
    fn_id (*function)(void *arg, uint64_t ip, uint64_t *offset);
    void *arg;
};

#endif
