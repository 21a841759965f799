/* Numbers with units, both ways, in the few forms that screens, options and messages share. */
#ifndef MTUI_CORE_FMT_H
#define MTUI_CORE_FMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* Long enough for every fmt_* below. */
#define FMT_MAX 48

/* "12 ns" "1.20 us" "54.5 us" "9.12 ms" "3.40 s" "125 s": three significant digits below 1000 s.
 * Every fmt_* returns out, which must hold FMT_MAX bytes. */
char *fmt_duration(char *out, uint64_t ns);

/* A point on an axis, with the decimals that step_ns (the distance of two ticks) needs:
 * fmt_time(o, 1237960, 1000) is "1.238 ms". */
char *fmt_time(char *out, int64_t ns, uint64_t step_ns);

/* "0" "812K" "16.0M" "4.1G": binary units, for memory and files. */
char *fmt_size(char *out, uint64_t bytes);

/* "1,204,331" */
char *fmt_count(char *out, uint64_t n);

/* With what is counted, of up to 20 bytes: "1 decode error" "1,204 decode errors". */
char *fmt_counted(char *out, uint64_t n, const char *one, const char *many);

/* "980" "12.4k" "3.1M": for counts where space is short. */
char *fmt_count_short(char *out, uint64_t n);

/* What happens again and again is worth a sentence when it does for the first, the 10th, the 100th time … */
bool fmt_is_told(uint64_t nth);

/* What part is of whole in thousandths, rounded to the nearest, but 1000 only when it is all of it; 0 of nothing. */
unsigned fmt_permille(uint64_t part, uint64_t whole);
/* The same as "42.9": percent, without a sign. */
char *fmt_percent(char *out, uint64_t part, uint64_t whole);

/* "00:04:10" below a day, "11d04h" from there. */
char *fmt_age(char *out, uint64_t seconds);

/* "2ms" "1.5s" "300us" "40ns" "2m" "1h"; a bare number is refused ("say ns, us, ms, s, m or h").
 * The whole string must parse. */
int fmt_parse_duration(const char *s, uint64_t *ns, struct err *err);

/* "4096" "64K" "16M" "1G" (binary; "16MiB", "16MB" too). */
int fmt_parse_size(const char *s, uint64_t *bytes, struct err *err);

/* A count as fmt_count_short writes it: "1200" "12.4k" "3M" "1G". */
int fmt_parse_count(const char *s, uint64_t *n, struct err *err);

/* Decimal, whole string, within [min, max]. */
int fmt_parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *value, struct err *err);

#endif
