#include "core/symbols/eh_pointer.h"

#include <dwarf.h>

size_t eh_pointer_size(int encoding, bool is_64)
{
    switch (encoding & 0x0f) {
    case DW_EH_PE_absptr:
        return is_64 ? 8 : 4;
    case DW_EH_PE_udata2:
    case DW_EH_PE_sdata2:
        return 2;
    case DW_EH_PE_udata4:
    case DW_EH_PE_sdata4:
        return 4;
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8:
        return 8;
    default:
        return 0;
    }
}

uint64_t eh_read_number(const uint8_t *at, size_t size, bool is_signed)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)at[i] << 8 * i;
    if (is_signed && size < 8 && value >> (8 * size - 1))
        value |= UINT64_MAX << 8 * size;
    return value;
}

bool eh_read_uleb(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; *at < end && shift < 63; shift += 7) {
        uint8_t byte = *(*at)++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

bool eh_read_pointer(const uint8_t **at, const uint8_t *end, int encoding, bool is_64, uint64_t vaddr, uint64_t *out)
{
    int relative = encoding & 0x70;
    uint64_t value;
    if ((encoding & DW_EH_PE_indirect) || (relative != 0 && relative != DW_EH_PE_pcrel))
        return false;
    if ((encoding & 0x0f) == DW_EH_PE_uleb128) {
        if (!eh_read_uleb(at, end, &value))
            return false;
    } else {
        size_t size = eh_pointer_size(encoding, is_64);
        if (size == 0 || (size_t)(end - *at) < size)
            return false;
        value = eh_read_number(*at, size, encoding & DW_EH_PE_signed);
        *at += size;
    }
    if (value && relative == DW_EH_PE_pcrel)
        value += vaddr;
    *out = is_64 ? value : value & UINT32_MAX;
    return true;
}
