/* Where an export goes: a FILE, plain or gzipped. Errors stick: the first one is kept, everything after it
 * is ignored, and export_out_end tells. */
#ifndef MTUI_DECODE_EXPORT_OUT_H
#define MTUI_DECODE_EXPORT_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/err.h"

struct export_out;

struct export_out *export_out_new(FILE *file, bool gzip);
/* Writes what is left (flushing file, which stays open) and frees; the sentence says what went wrong. */
int export_out_end(struct export_out *o, struct err *err);
/* Something has failed: no need to go on. */
bool export_out_failed(const struct export_out *o);
void export_out_no_memory(struct export_out *o);

void export_out_bytes(struct export_out *o, const void *bytes, size_t len);
void export_out_str(struct export_out *o, const char *s);
void export_out_char(struct export_out *o, char c);
void export_out_u64(struct export_out *o, uint64_t v);
void export_out_i64(struct export_out *o, int64_t v);

/* Text from outside as a format wants it: utf8_escape for lines of text, utf8_valid, utf8_json. The pointer lives
 * until the next call; *len gets its length. */
typedef size_t export_text(char *out, size_t size, const char *s, size_t len);
const char *export_out_text(struct export_out *o, export_text *write, const char *s, size_t *len);
void export_out_escaped(struct export_out *o, const char *s);

#endif
