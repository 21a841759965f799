/* Text from outside, measured and made harmless.
 *
 * Widths are terminal columns, by wcwidth(3) in the current locale where that knows the character,
 * else 1. No function here lets a control byte (C0, DEL, C1) through. Invalid bytes decode as
 * UTF8_INVALID, one byte at a time, one column each. */
#ifndef MTUI_CORE_UTF8_H
#define MTUI_CORE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_INVALID 0xfffdu

/* Decodes the character at s (len ≥ 1 bytes there); returns the bytes consumed (≥ 1). */
size_t utf8_decode(const char *s, size_t len, uint32_t *cp);

/* Encodes cp into out (no terminator); returns 1–4. Surrogates and values past 0x10ffff become
 * UTF8_INVALID. */
size_t utf8_encode(uint32_t cp, char out[4]);

/* Columns of one code point: 0 combining, 1, or 2; control characters count 1, since they are drawn
 * as one replacement cell. */
int utf8_cp_cols(uint32_t cp);

/* Columns of a string of len bytes. */
size_t utf8_cols(const char *s, size_t len);

/* The longest prefix of s, in bytes, that fits into max_cols columns, never cutting inside a
 * character nor between a character and its combining marks; *cols gets its width (NULL allowed). */
size_t utf8_cut(const char *s, size_t len, size_t max_cols, size_t *cols);

/* Writes s into out (size bytes, always terminated) for a line of text or of a TSV file: tab,
 * newline, carriage return, backslash become \t \n \r \\; other control bytes, C1 characters,
 * bidirectional overrides and invalid bytes become \xHH. Cut at a whole unit when out is too small.
 * Returns the bytes written without the terminator. */
size_t utf8_escape(char *out, size_t size, const char *s, size_t len);

/* The same for a sentence that people read: a backslash stays one, so that text which went through here, or
 * through utf8_escape, comes out as it is. Cannot be undone. */
size_t utf8_readable(char *out, size_t size, const char *s, size_t len);

/* Writes s into out (size bytes, always terminated) as valid UTF-8 that is the same text: each invalid byte becomes
 * UTF8_INVALID. len * 3 + 1 bytes hold all of it; else it is cut at a whole character. Returns the bytes written. */
size_t utf8_valid(char *out, size_t size, const char *s, size_t len);

/* The inside of a JSON string (RFC 8259, section 7) whose value is that text: quotes, backslashes and what must not
 * reach a terminal stand as escapes. len * 6 + 1 bytes hold all of it. */
size_t utf8_json(char *out, size_t size, const char *s, size_t len);

/* Undoes utf8_escape in place and returns the new length; a backslash that begins no escape of
 * utf8_escape's stays. */
size_t utf8_unescape(char *s);

/* True for code points that must not reach a terminal: C0, DEL, C1, line and paragraph separators,
 * bidirectional controls. */
int utf8_is_unsafe(uint32_t cp);

#endif
