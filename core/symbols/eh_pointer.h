/* Numbers and addresses as exception tables have them (Linux Standard Base, Core, 10.5 "DWARF Extensions":
 * DW_EH_PE_*; DWARF 5, 7.6 for LEB128). Little-endian, as x86 is. Nothing behind `end` is read. */
#ifndef MTUI_CORE_EH_POINTER_H
#define MTUI_CORE_EH_POINTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a number in that encoding (DW_EH_PE_*), or 0 where the length is not fixed. */
size_t eh_pointer_size(int encoding, bool is_64);

/* size <= 8 bytes at `at`. */
uint64_t eh_read_number(const uint8_t *at, size_t size, bool is_signed);

/* False: it does not end before `end`, or is too large. *at is behind it, or anywhere before end. */
bool eh_read_uleb(const uint8_t **at, const uint8_t *end, uint64_t *out);

/* An address in that encoding, of which the first byte lies at vaddr; 0 stands for none, in every encoding. False:
 * it does not end before `end`, or is encoded relative to what is not known here, or as the place of an address. */
bool eh_read_pointer(const uint8_t **at, const uint8_t *end, int encoding, bool is_64, uint64_t vaddr, uint64_t *out);

#endif
