/* Reads the text that `perf script` prints: call-chain samples, branch lines of Intel PT, decode errors,
 * and the task events of --show-task-events and --show-switch-events.
 *
 * A push parser: feed it bytes as they come, it calls back for each event. Any selection of fields
 * (-F) is taken in which the process or the time can be recognised; lines that fit nothing and flag
 * words that are not known are counted, never fatal. Names may hold spaces, parentheses, " => " and
 * "+0x…": fields are found from their ends inwards. Over a million lines a second.
 *
 * Source of the format: tools/perf/builtin-script.c (perf_sample__fprintf_*), util/event.c and
 * util/intel-pt of Linux 6.1. */
#ifndef MTUI_DECODE_PERF_TEXT_H
#define MTUI_DECODE_PERF_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum perf_text_kind {
    PERF_TEXT_SAMPLE,
    PERF_TEXT_BRANCH,
    PERF_TEXT_PACKET, /* of a hardware trace: power, ptwrite, synchronisation */
    PERF_TEXT_ERROR, /* "instruction trace error …" */
    PERF_TEXT_SWITCH,
    PERF_TEXT_COMM,
    PERF_TEXT_FORK,
    PERF_TEXT_EXIT,
    PERF_TEXT_LOST
};

/* The flag words of a branch line; a line may have several ("tr end  call"). */
enum perf_text_flag {
    PERF_TEXT_CALL = 1 << 0,
    PERF_TEXT_RETURN = 1 << 1,
    PERF_TEXT_JUMP = 1 << 2,        /* jmp */
    PERF_TEXT_CONDITIONAL = 1 << 3, /* jcc */
    PERF_TEXT_SYSCALL = 1 << 4,
    PERF_TEXT_SYSRET = 1 << 5,
    PERF_TEXT_INT = 1 << 6,  /* int */
    PERF_TEXT_HW_INT = 1 << 7,
    PERF_TEXT_IRET = 1 << 8,
    PERF_TEXT_ASYNC = 1 << 9,
    PERF_TEXT_ABORT = 1 << 10, /* tx abrt */
    PERF_TEXT_BEGIN = 1 << 11, /* tr strt */
    PERF_TEXT_END = 1 << 12,   /* tr end */
    PERF_TEXT_VMENTRY = 1 << 13,
    PERF_TEXT_VMEXIT = 1 << 14,
    PERF_TEXT_IN_TX = 1 << 15, /* (x) */
    PERF_TEXT_OTHER = 1 << 16  /* a word that is not known */
};

enum perf_text_packet {
    PERF_TEXT_NO_VALUE,
    PERF_TEXT_MHZ,    /* frequency of the core */
    PERF_TEXT_PTWRITE /* payload */
};

/* Bytes in the text, not terminated. */
struct perf_text_str {
    const char *s;
    size_t len;
};

/* "7f5c0c875c60 _dl_open+0x10 (/usr/lib64/ld-2.28.so)" */
struct perf_text_place {
    uint64_t ip;
    struct perf_text_str symbol; /* without the offset; empty when none was printed */
    struct perf_text_str module; /* without the parentheses; empty when none was printed */
    uint64_t offset;
    bool has_offset;
};

struct perf_text_event {
    enum perf_text_kind kind;
    size_t line;               /* number of its first line, from 1 */
    struct perf_text_str comm; /* empty when not printed */
    pid_t pid, tid;            /* −1 when not printed; pid is tid where only that is printed */
    int cpu;                   /* −1 when not printed */
    bool has_time;
    uint64_t time_ns;
    uint64_t period;           /* 1 when not printed */
    struct perf_text_str event; /* "cycles:u"; empty when not printed */
    union {
        struct {
            const struct perf_text_place *frames; /* innermost first */
            size_t nframes;
        } sample;
        struct {
            unsigned flags; /* enum perf_text_flag; 0: the line had no words */
            struct perf_text_place from, to;
        } branch;
        struct {
            enum perf_text_packet kind;
            uint64_t value;
        } packet;
        struct {
            struct perf_text_str message; /* the line */
            uint64_t ip;
        } error;
        struct {
            bool out, preempted;
        } sw;
        struct {
            struct perf_text_str name;
            bool exec;
        } comm; /* pid and tid of the event are those of the record */
        struct {
            pid_t ppid, ptid;
        } task; /* FORK and EXIT: pid and tid of the event are the child's */
        uint64_t lost;
    } u;
};

/* Strings live until it returns. A value other than 0 stops the parser and comes out of
 * perf_text_feed. */
typedef int perf_text_fn(void *arg, const struct perf_text_event *ev);

struct perf_text_counts {
    uint64_t lines, samples, branches, errors, other_events;
    uint64_t half_branches; /* branch lines that tell only where from (-F without addr): not delivered */
    uint64_t unknown_lines, unknown_words, cut_lines; /* cut: longer than 1 MiB */
    size_t first_unknown_line;                        /* 0: none */
    char first_unknown[80];                           /* its beginning; bytes from outside */
};

struct perf_text;

struct perf_text *perf_text_new(perf_text_fn *fn, void *arg);
void perf_text_free(struct perf_text *p);
/* 0, what the callback returned, or MTUI_E_NOMEM. */
int perf_text_feed(struct perf_text *p, const char *data, size_t len);
/* No more bytes: delivers what is unfinished, except a last line without a newline that breaks off before what
 * all others end with, and a call chain without the blank line that all others have: those are not understood. */
int perf_text_end(struct perf_text *p);
/* No more bytes are wanted, though there may be some: what is unfinished is dropped. */
void perf_text_stop(struct perf_text *p);
const struct perf_text_counts *perf_text_counts(const struct perf_text *p);

/* Whether the first bytes of a file look like text of perf script rather than like anything binary. */
bool perf_text_is(const void *bytes, size_t len);

#endif
