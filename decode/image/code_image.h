/* The code of a recording's processes over time, for exact decoding.
 *
 * Built while the records are read in the order of time (code_image_note after each change of an address
 * space); then any number of workers look into it, each through a view of its own. Bytes come from what
 * stepping saw executed, else from mtui's dumps of code without a file, else from the file that symbolize.h
 * chose for the mapping, so a file with another build-id gives none. */
#ifndef MTUI_DECODE_CODE_IMAGE_H
#define MTUI_DECODE_CODE_IMAGE_H

#include <stdbool.h>

#include "core/session/maps_log.h"
#include "decode/image/addrspace.h"
#include "decode/image/pt_code.h"
#include "decode/image/symbolize.h"

struct code_image;

/* log may be NULL. All must outlive the image; symbols and functions are used under its lock from now
 * on. */
struct code_image *code_image_new(const struct addrspaces *as, struct symbolizer *symbols,
                              struct functions *functions, const struct maps_log *log);
void code_image_free(struct code_image *img);

/* Remembers the present mappings of pid as valid from time_ns on, if they changed. MTUI_E_NOMEM. */
int code_image_note(struct code_image *img, pid_t pid, uint64_t time_ns);

/* True when the image knows of executable mappings of pid. */
bool code_image_knows(const struct code_image *img, pid_t pid);

/* What is mapped at ip at a time: path of the file, "" for memory without one, NULL for nothing. *why (may
 * be NULL) gets a sentence why no file is used for it, NULL when one is or there is none. */
const char *code_image_where(struct code_image *img, pid_t pid, uint64_t time_ns, uint64_t ip,
                             const char **why);

/* ---- One worker's view ---- */

struct code_view;

struct code_view *code_view_new(struct code_image *img);
void code_view_free(struct code_view *v);
/* Moves it to a process and time; true when the code there is other than before. */
bool code_view_at(struct code_view *v, pid_t pid, uint64_t time_ns);
/* The i-th mapping there, by address, with the file that its bytes come from (fd −1: none is at hand);
 * false behind the last. The descriptor stays the image's. */
struct code_section {
    uint64_t start, len, offset; /* offset: in the file */
    int fd;
};
bool code_view_section(struct code_view *v, size_t i, struct code_section *out);
/* Where the program goes on when an exception passes through the call at `call` (any byte of the instruction):
 * core/symbols/lsda.h. False: in none of this function's code, or nothing is known. */
bool code_view_landing_pad(struct code_view *v, uint64_t call, uint64_t *pad);
/* For pt_nodes_new; valid as long as v. */
struct pt_code code_view_code(struct code_view *v);

#endif
