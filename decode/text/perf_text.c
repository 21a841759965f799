#include "decode/text/perf_text.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/err.h"
#include "core/base/vec.h"
#include "decode/text/perf_text_line.h"

#define MAX_LINE ((size_t)1 << 20)
#define MAX_FRAMES 65536 /* a chain longer than this is cut */

/* A frame whose strings are offsets into `kept`, which moves while it grows. */
struct kept_frame {
    struct perf_text_place place;
    size_t symbol, module;
};

struct perf_text {
    perf_text_fn *fn;
    void *arg;
    struct perf_text_counts counts;
    VEC(char) partial; /* the beginning of a line that goes on in the next bytes */
    bool cut;          /* the rest of this line is thrown away */
    bool known;        /* the last line that was not indented was understood: more may be below it */
    bool offsets, modules; /* some place had one: that is what was printed */
    bool unended;      /* this line has no newline, so it may be cut anywhere */
    bool blanks;       /* call chains end with a blank line */
    /* The sample whose call chain is being read. */
    bool open, provisional; /* provisional: its one frame is the header line's own address */
    struct perf_text_event sample;
    size_t comm, event; /* in kept */
    VEC(char) kept;
    VEC(struct kept_frame) frames;
    VEC(struct perf_text_place) places;
};

struct perf_text *perf_text_new(perf_text_fn *fn, void *arg)
{
    struct perf_text *p = xcalloc(1, sizeof *p);
    p->fn = fn;
    p->arg = arg;
    return p;
}

void perf_text_free(struct perf_text *p)
{
    if (!p)
        return;
    vec_free(&p->partial);
    vec_free(&p->kept);
    vec_free(&p->frames);
    vec_free(&p->places);
    free(p);
}

const struct perf_text_counts *perf_text_counts(const struct perf_text *p)
{
    return &p->counts;
}

/* ---- Samples: a header line and the lines of its chain ---- */

static bool append(struct perf_text *p, const char *s, size_t len)
{
    while (p->kept.cap - p->kept.len < len)
        if (!vec_try_grow_((void **)&p->kept.data, &p->kept.cap, 1))
            return false;
    if (len)
        memcpy(p->kept.data + p->kept.len, s, len);
    p->kept.len += len;
    return true;
}

static int keep_frame(struct perf_text *p, const struct perf_text_place *place)
{
    struct kept_frame f = {.place = *place, .symbol = p->kept.len};
    if (p->frames.len >= MAX_FRAMES)
        return 0;
    if (!append(p, place->symbol.s, place->symbol.len))
        return MTUI_E_NOMEM;
    f.module = p->kept.len;
    if (!append(p, place->module.s, place->module.len) || !vec_try_push(&p->frames, f))
        return MTUI_E_NOMEM;
    return 0;
}

static int open_sample(struct perf_text *p, const struct perf_text_event *ev)
{
    p->sample = *ev;
    p->open = true;
    p->kept.len = p->frames.len = 0;
    p->comm = 0;
    if (!append(p, ev->comm.s, ev->comm.len))
        return MTUI_E_NOMEM;
    p->event = p->kept.len;
    return append(p, ev->event.s, ev->event.len) ? 0 : MTUI_E_NOMEM;
}

static int deliver(struct perf_text *p, const struct perf_text_event *ev)
{
    switch (ev->kind) {
    case PERF_TEXT_SAMPLE:
        p->counts.samples++;
        break;
    case PERF_TEXT_BRANCH:
        p->counts.branches++;
        break;
    case PERF_TEXT_ERROR:
        p->counts.errors++;
        break;
    case PERF_TEXT_PACKET:
    case PERF_TEXT_SWITCH:
    case PERF_TEXT_COMM:
    case PERF_TEXT_FORK:
    case PERF_TEXT_EXIT:
    case PERF_TEXT_LOST:
        p->counts.other_events++;
        break;
    }
    return p->fn(p->arg, ev);
}

static int close_sample(struct perf_text *p)
{
    if (!p->open)
        return 0;
    p->open = false;
    p->places.len = 0;
    const char *kept = p->kept.data ? p->kept.data : "";
    for (size_t i = 0; i < p->frames.len; i++) {
        struct perf_text_place place = p->frames.data[i].place;
        place.symbol.s = kept + p->frames.data[i].symbol;
        place.module.s = kept + p->frames.data[i].module;
        if (!vec_try_push(&p->places, place))
            return MTUI_E_NOMEM;
    }
    p->sample.comm.s = kept + p->comm;
    p->sample.event.s = kept + p->event;
    p->sample.u.sample.frames = p->places.data;
    p->sample.u.sample.nframes = p->places.len;
    return deliver(p, &p->sample);
}

/* ---- Lines ---- */

static void count_unknown(struct perf_text *p, const char *s, const char *end)
{
    if (p->counts.unknown_lines++)
        return;
    size_t n = (size_t)(end - s);
    if (n >= sizeof p->counts.first_unknown)
        n = sizeof p->counts.first_unknown - 1;
    p->counts.first_unknown_line = (size_t)p->counts.lines;
    memcpy(p->counts.first_unknown, s, n);
    p->counts.first_unknown[n] = '\0';
}

static bool has_prefix(const char *s, const char *end, const char *word)
{
    size_t len = strlen(word);
    return (size_t)(end - s) >= len && memcmp(s, word, len) == 0;
}

/* What was printed of places, seen in those that are there. */
static void note_place(struct perf_text *p, const struct perf_text_place *place)
{
    p->offsets |= place->has_offset;
    p->modules |= place->module.len > 0;
}

/* Whether the end of a line that has no newline is that of a place as all others are printed. */
static bool is_whole(const struct perf_text *p, const struct perf_text_place *place)
{
    static const char unknown[] = "[unknown]";
    const size_t n = sizeof unknown - 1;
    if (p->modules || place->module.len)
        return place->module.len > 0;
    return place->has_offset || !p->offsets ||
           (place->symbol.len == n && memcmp(place->symbol.s, unknown, n) == 0);
}

/* Left out: the line breaks off, as when whoever wrote it was killed or the disk was full. A sample it belongs
 * to has lost its outermost functions. */
static int leave_out(struct perf_text *p, const char *s, const char *end)
{
    p->open = false;
    count_unknown(p, s, end);
    return 0;
}

/* A line that begins an event; ev has its stamp. */
static int head_line(struct perf_text *p, struct perf_text_event *ev, const char *line, const char *rest,
                     const char *end)
{
    rest = perf_text_skip_blanks(rest, end);
    if (has_prefix(rest, end, "PERF_RECORD_")) {
        ev->period = 1;
        ev->event = (struct perf_text_str){rest, 0};
        return perf_text_parse_record(rest, end, ev) ? deliver(p, ev) : 0;
    }
    rest = perf_text_parse_event_name(rest, end, ev);
    if (perf_text_parse_branch(rest, end, ev, &p->counts.unknown_words)) {
        if (p->unended && !is_whole(p, &ev->u.branch.to))
            return leave_out(p, line, end);
        note_place(p, &ev->u.branch.from);
        return deliver(p, ev);
    }
    if (perf_text_parse_half_branch(rest, end)) {
        if (p->unended && p->counts.branches)
            return leave_out(p, line, end);
        p->counts.half_branches++;
        return 0;
    }
    if (perf_text_parse_packet(rest, end, ev))
        return deliver(p, ev);
    ev->kind = PERF_TEXT_SAMPLE;
    struct perf_text_place own;
    p->provisional = perf_text_parse_place(rest, end, &own);
    if (p->unended && (p->provisional ? !is_whole(p, &own) : p->counts.samples + p->counts.branches > 0))
        return leave_out(p, line, end);
    if (open_sample(p, ev) < 0)
        return MTUI_E_NOMEM;
    if (p->provisional)
        note_place(p, &own);
    return p->provisional ? keep_frame(p, &own) : 0;
}

static int take_line(struct perf_text *p, const char *s, const char *end)
{
    struct perf_text_event ev = {.line = (size_t)++p->counts.lines};
    struct perf_text_place place;
    const char *rest = NULL;
    int rc = 0;
    if (end > s && end[-1] == '\r')
        end--;
    if (perf_text_skip_blanks(s, end) == end) {
        if (p->unended && p->open)
            return leave_out(p, s, end);
        p->blanks |= p->open && !p->provisional && p->frames.len;
        return close_sample(p);
    }
    if (*s == '#')
        return 0;
    bool indented = *s == ' ' || *s == '\t';
    if (p->open && indented && perf_text_parse_place(s, end, &place)) {
        if (p->unended && !is_whole(p, &place))
            return leave_out(p, s, end);
        note_place(p, &place);
        if (p->provisional)
            p->frames.len = 0;
        p->provisional = false;
        return keep_frame(p, &place);
    }
    if (indented && perf_text_parse_error(s, end, &ev)) {
        rc = close_sample(p);
        return rc ? rc : deliver(p, &ev);
    }
    if (perf_text_parse_stamp(s, end, &ev, &rest)) {
        p->known = true;
        rc = close_sample(p);
        return rc ? rc : head_line(p, &ev, s, rest, end);
    }
    if (!indented && perf_text_parse_error(s, end, &ev)) {
        rc = close_sample(p);
        return rc ? rc : deliver(p, &ev);
    }
    if (indented && p->unended && p->open)
        return leave_out(p, s, end);
    if (indented && p->known) /* source lines and the like */
        return 0;
    p->known = false;
    count_unknown(p, s, end);
    return 0;
}

/* More of a line whose end has not come yet. */
static int keep_partial(struct perf_text *p, const char *s, size_t len)
{
    if (p->cut)
        return 0;
    size_t room = MAX_LINE - p->partial.len;
    if (len > room) {
        len = room;
        p->cut = true;
        p->counts.cut_lines++;
    }
    while (p->partial.cap - p->partial.len < len)
        if (!vec_try_grow_((void **)&p->partial.data, &p->partial.cap, 1))
            return MTUI_E_NOMEM;
    if (len)
        memcpy(p->partial.data + p->partial.len, s, len);
    p->partial.len += len;
    return 0;
}

int perf_text_feed(struct perf_text *p, const char *data, size_t len)
{
    const char *end = data + len;
    while (data < end) {
        const char *nl = memchr(data, '\n', (size_t)(end - data));
        const char *stop = nl ? nl : end;
        int rc = 0;
        if (!nl || p->partial.len || p->cut || (size_t)(stop - data) > MAX_LINE) {
            rc = keep_partial(p, data, (size_t)(stop - data));
            if (rc == 0 && nl) {
                rc = take_line(p, p->partial.data, p->partial.data + p->partial.len);
                p->partial.len = 0;
                p->cut = false;
            }
        } else {
            rc = take_line(p, data, stop);
        }
        if (rc)
            return rc;
        data = nl ? nl + 1 : end;
    }
    return 0;
}

int perf_text_end(struct perf_text *p)
{
    int rc = 0;
    p->unended = true;
    if (p->partial.len)
        rc = take_line(p, p->partial.data, p->partial.data + p->partial.len);
    p->partial.len = 0;
    p->cut = false;
    if (p->open && !p->provisional && p->blanks) { /* as by head: its outermost functions may be missing */
        static const char what[] = "(the call chain breaks off)";
        leave_out(p, what, what + sizeof what - 1);
    }
    return rc ? rc : close_sample(p);
}

void perf_text_stop(struct perf_text *p)
{
    p->partial.len = 0;
    p->open = p->cut = false;
}

bool perf_text_is(const void *bytes, size_t len)
{
    const unsigned char *b = bytes;
    if (len > 4096)
        len = 4096;
    for (size_t i = 0; i < len; i++)
        if (b[i] == 0)
            return false;
    return len > 0;
}
