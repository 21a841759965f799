/* One ELF file (elf(5)), read through libelf: headers, build-id, segments, code bytes.
 *
 * Files are hostile: every offset is checked; a damaged file gives an error or less information,
 * never a crash. Nothing is memory-mapped, so a file that shrinks meanwhile gives short reads, no
 * SIGBUS. Addresses: `vaddr` is an address as linked (st_value, p_vaddr); a running program has it at
 * vaddr + bias (core/symbols/modules.h). One elf_file belongs to one thread at a time. */
#ifndef MTUI_CORE_ELF_FILE_H
#define MTUI_CORE_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

#define ELF_BUILD_ID_MAX 64

enum elf_kind {
    ELF_KIND_EXEC,       /* dynamically linked program at a fixed address */
    ELF_KIND_STATIC,     /* static program at a fixed address */
    ELF_KIND_PIE,        /* position-independent program */
    ELF_KIND_STATIC_PIE, /* the same without an interpreter */
    ELF_KIND_SHARED,     /* shared object (and [vdso]) */
    ELF_KIND_DEBUG,      /* separate debug file: its code sections have no bytes */
    ELF_KIND_OTHER       /* relocatable, core */
};

struct elf_segment { /* a PT_LOAD */
    uint64_t vaddr, memsz;
    uint64_t offset, filesz;
    unsigned flags; /* PF_R, PF_W, PF_X */
};

struct elf_file;

/* Takes fd over (closed on failure too); name is for messages only. MTUI_E_FORMAT when it is not an
 * ELF file of a kind known. */
int elf_file_open(int fd, const char *name, struct elf_file **out, struct err *err);
int elf_file_open_path(const char *path, struct elf_file **out, struct err *err);
/* Takes image over (from malloc; freed on failure too): [vdso], unpacked .gnu_debugdata. */
int elf_file_open_memory(void *image, size_t size, const char *name, struct elf_file **out,
                         struct err *err);
/* A second, independent handle on the same file (for another thread, or one that outlives f). */
int elf_file_dup(const struct elf_file *f, struct elf_file **out, struct err *err);
void elf_file_free(struct elf_file *f);

const char *elf_file_name(const struct elf_file *f);
int elf_file_fd(const struct elf_file *f); /* −1 for an image in memory; stays ours */
int elf_file_bits(const struct elf_file *f); /* 64 or 32 */
unsigned elf_file_machine(const struct elf_file *f); /* EM_X86_64, … */
enum elf_kind elf_file_kind(const struct elf_file *f);
/* "program (PIE)", "static program", … */
const char *elf_kind_name(enum elf_kind kind);
uint64_t elf_file_entry(const struct elf_file *f); /* e_entry, a vaddr */

/* The NT_GNU_BUILD_ID note, by program headers, else by sections. *len is 0 when there is none. */
const uint8_t *elf_file_build_id(const struct elf_file *f, size_t *len);
/* That of the file behind fd, which stays the caller's; returns its length, 0: none, or it is no ELF file. */
size_t elf_build_id_of(int fd, const char *name, uint8_t id[ELF_BUILD_ID_MAX]);
/* Where the bytes of the build-id stand in the file; false when there is none. */
bool elf_file_build_id_offset(const struct elf_file *f, uint64_t *offset);
/* Lower-case hex; out holds 2 * ELF_BUILD_ID_MAX + 1 bytes; "" when there is none. */
void elf_build_id_hex(const uint8_t *id, size_t len, char *out);

/* PT_LOAD segments, executable ones first, then by vaddr; numbers that do not fit the file are cut. */
const struct elf_segment *elf_file_segments(const struct elf_file *f, size_t *n);

/* By program header, executable segments first; false when no segment's file bytes hold it. */
bool elf_file_vaddr_to_offset(const struct elf_file *f, uint64_t vaddr, uint64_t *offset);
bool elf_file_offset_to_vaddr(const struct elf_file *f, uint64_t offset, uint64_t *vaddr);
/* True when vaddr lies in an executable segment. */
bool elf_file_is_code(const struct elf_file *f, uint64_t vaddr);

/* Bytes of the file at vaddr, as far as the segment's file bytes reach; returns the number read
 * (0: none there). */
size_t elf_file_read(const struct elf_file *f, uint64_t vaddr, void *buf, size_t len);

/* Bytes at a file offset; returns the number read. */
size_t elf_file_read_at(const struct elf_file *f, uint64_t offset, void *buf, size_t len);

/* For core/symbols/symtab, core/symbols/debug_file, core/symbols/dwarf_line: the libelf handle (stays ours), and a section's
 * raw bytes by name, decompressed never, at most max bytes, from malloc (*size gets the length);
 * MTUI_E_NOENT when there is no such section. */
struct Elf;
struct Elf *elf_file_handle(const struct elf_file *f);
int elf_file_read_section(const struct elf_file *f, const char *section, size_t max, void **out,
                          size_t *size, struct err *err);

#endif
