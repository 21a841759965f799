/* The code of a recording's processes over time, for exact decoding.
 *
 * Built while the records are read in the order of time (pt_image_note after each change of an address
 * space); then any number of workers look into it, each through a view of its own. Bytes come from
 * mtui's dumps of code without a file, else from the file that symbolize.h chose for the mapping, so a
 * file with another build-id gives none. */
#ifndef MTUI_DECODE_PT_IMAGE_H
#define MTUI_DECODE_PT_IMAGE_H

#include <stdbool.h>

#include "core/maps_log.h"
#include "decode/addrspace.h"
#include "decode/pt_code.h"
#include "decode/symbolize.h"

struct pt_image;

/* log may be NULL. All must outlive the image; symbols and functions are used under its lock from now
 * on. */
struct pt_image *pt_image_new(const struct addrspaces *as, struct symbolizer *symbols,
                              struct functions *functions, const struct maps_log *log);
void pt_image_free(struct pt_image *img);

/* Remembers the present mappings of pid as valid from time_ns on, if they changed. MTUI_E_NOMEM. */
int pt_image_note(struct pt_image *img, pid_t pid, uint64_t time_ns);

/* True when the image knows of executable mappings of pid. */
bool pt_image_knows(const struct pt_image *img, pid_t pid);

/* What is mapped at ip at a time: path of the file, "" for memory without one, NULL for nothing. */
const char *pt_image_where(const struct pt_image *img, pid_t pid, uint64_t time_ns, uint64_t ip);

/* ---- One worker's view ---- */

struct pt_view;

struct pt_view *pt_view_new(struct pt_image *img);
void pt_view_free(struct pt_view *v);
/* Moves it to a process and time; true when the code there is other than before. */
bool pt_view_at(struct pt_view *v, pid_t pid, uint64_t time_ns);
/* For pt_nodes_new; valid as long as v. */
struct pt_code pt_view_code(struct pt_view *v);

#endif
