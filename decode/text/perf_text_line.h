/* The parts of a line of `perf script`: between perf_text.c, which joins lines into events, and
 * perf_text_line.c. Everything works on [s, end) and reads nothing beyond. */
#ifndef MTUI_DECODE_PERF_TEXT_LINE_H
#define MTUI_DECODE_PERF_TEXT_LINE_H

#include "decode/text/perf_text.h"

/* "comm pid/tid [cpu] time: " at the start of a line; *rest is where it goes on. */
bool perf_text_parse_stamp(const char *s, const char *end, struct perf_text_event *ev,
                           const char **rest);

/* "period event: "; both optional. */
const char *perf_text_parse_event_name(const char *s, const char *end, struct perf_text_event *ev);

/* "ip symbol+0xoffset (module)…", from s (blanks skipped) to the end of the text. */
bool perf_text_parse_place(const char *s, const char *end, struct perf_text_place *out);

/* "flag words  place => place". Unknown words are added to *unknown_words. */
bool perf_text_parse_branch(const char *s, const char *end, struct perf_text_event *ev,
                            uint64_t *unknown_words);

/* "flag words  place" without the other side, as -F without addr prints it. */
bool perf_text_parse_half_branch(const char *s, const char *end);

/* What perf prints of packets that are no branches, by the name of the event: "cbr:  cbr: 10 freq: 1000 MHz
 * (100%) place", "ptwrite:  IP: 0 payload: 0x12 place", "psb: …". */
bool perf_text_parse_packet(const char *s, const char *end, struct perf_text_event *ev);

/* "PERF_RECORD_SWITCH OUT preempt" and its like; false: of no use here, or not one of them. */
bool perf_text_parse_record(const char *s, const char *end, struct perf_text_event *ev);

/* "instruction trace error type 1 time 47170.086912826 cpu -1 pid 1 tid 1 ip 0x7f… code 7: …" */
bool perf_text_parse_error(const char *s, const char *end, struct perf_text_event *ev);

static inline const char *perf_text_skip_blanks(const char *s, const char *end)
{
    while (s < end && (*s == ' ' || *s == '\t'))
        s++;
    return s;
}

#endif
