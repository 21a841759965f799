/* A program whose unwind tables are damaged at random, in every way that comes up. */
#ifndef MTUI_TESTS_LIB_EH_DAMAGE_H
#define MTUI_TESTS_LIB_EH_DAMAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/symbols/elf_file.h"

#define EH_DAMAGE_ROUNDS 4000

/* Damages .eh_frame, with header also .eh_frame_hdr, in one to seven bytes, again and again (EH_DAMAGE_ROUNDS), and hands
 * each file to look, which fails the test or returns how much it has found. Returns the sum. */
size_t eh_damage(const char *path, bool header, size_t (*look)(const struct elf_file *f, void *arg), void *arg);

#endif
