/* What Intel PT data did not tell, and the sentences about it: the same whatever is made of the rest. */
#ifndef MTUI_DECODE_OPEN_LOSSES_H
#define MTUI_DECODE_OPEN_LOSSES_H

#include "core/base/vec.h"
#include "decode/open/open_priv.h"
#include "decode/pt/pt_event.h"
#include "decode/pt/pt_pieces.h"

struct open_missing; /* code that was not at hand, by mapping */

struct open_losses {
    struct open_context *c;
    struct pt_source *source;
    VEC(struct open_missing *) missing;
    uint64_t bytes, count;
};

/* A loss of a piece is added; what there is to say about it, for the caller to free. */
char *open_losses_add(struct open_losses *l, const struct pt_piece *piece, const struct pt_loss *loss);

/* When all were added, and what the kernel says that it could not store: notes, most important first. */
void open_losses_note(struct open_losses *l);
void open_losses_free(struct open_losses *l);

#endif
