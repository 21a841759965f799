/* Fuchsia trace format, https://fuchsia.dev/fuchsia-src/reference/tracing/trace-format: little-endian
 * words of 64 bits; a record begins with a header of type (bits 0–3) and size in words (bits 4–15).
 * Strings are UTF-8. Strings and threads are named by table entries, which a later record may define anew: with more of
 * them than places, places are reused. */
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/utf8.h"
#include "decode/export/export_priv.h"

#define MAGIC 0x0016547846040010u
#define STRINGS 32767 /* places 1 … 32767 */
#define THREADS 255   /* places 1 … 255 */
#define MAX_TEXT 32000

enum record { RECORD_INIT = 1, RECORD_STRING = 2, RECORD_THREAD = 3, RECORD_EVENT = 4, RECORD_OBJECT = 7 };
enum event { EVENT_INSTANT = 0, EVENT_COMPLETE = 4 };
enum arg { ARG_U64 = 4, ARG_STRING = 6, ARG_OBJECT = 8 };
enum object { OBJECT_PROCESS = 1, OBJECT_THREAD = 2 };

struct fxt {
    const struct export_job *j;
    char **strings; /* what each place holds now */
    size_t nstrings;
    uint32_t *slots; /* hash of a text → place; 0 free */
    size_t thread_at[THREADS + 1]; /* thread index + 1 */
};

#define SLOTS 65536

static void word(const struct fxt *x, uint64_t v)
{
    unsigned char b[8];
    for (unsigned i = 0; i < 8; i++)
        b[i] = (unsigned char)(v >> 8 * i);
    export_out_bytes(x->j->out, b, sizeof b);
}

static uint64_t header(enum record type, size_t words)
{
    return (uint64_t)type | (uint64_t)words << 4;
}

static uint32_t hash(const char *s)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 16777619u;
    return h;
}

static uint32_t *find_slot(const struct fxt *x, const char *text)
{
    uint32_t i = hash(text) % SLOTS;
    while (x->slots[i] && strcmp(x->strings[x->slots[i]], text) != 0)
        i = (i + 1) % SLOTS;
    return &x->slots[i];
}

/* All places are taken: begin again with an empty table. */
static void forget_strings(struct fxt *x)
{
    for (size_t i = 1; i <= x->nstrings; i++)
        free(x->strings[i]);
    x->nstrings = 0;
    memset(x->slots, 0, SLOTS * sizeof *x->slots);
}

/* The place of a text, defined by a record when it has none. 0 is the empty string. */
static uint64_t string_ref(struct fxt *x, const char *raw)
{
    size_t len = 0;
    const char *text = export_out_text(x->j->out, utf8_valid, raw, &len);
    if (len == 0)
        return 0;
    if (len > MAX_TEXT)
        for (len = MAX_TEXT; (text[len] & 0xc0) == 0x80;) /* not inside of a character */
            len--;
    char *copy = xstrndup(text, len);
    uint32_t *slot = find_slot(x, copy);
    if (*slot) {
        uint32_t place = *slot;
        free(copy);
        return place;
    }
    if (x->nstrings == STRINGS) {
        forget_strings(x);
        slot = find_slot(x, copy);
    }
    *slot = (uint32_t)++x->nstrings;
    x->strings[x->nstrings] = copy;
    len = strlen(copy);
    size_t words = (len + 7) / 8;
    static const char zeros[8];
    word(x, header(RECORD_STRING, 1 + words) | (uint64_t)x->nstrings << 16 | (uint64_t)len << 32);
    export_out_bytes(x->j->out, copy, len);
    export_out_bytes(x->j->out, zeros, words * 8 - len);
    return x->nstrings;
}

/* Strings first, since a reference must stand after its definition; when the table was emptied between
 * them, all are asked for again. */
static void refs(struct fxt *x, const char *const *texts, uint64_t *out, size_t n)
{
    size_t before;
    do {
        before = x->nstrings;
        for (size_t i = 0; i < n; i++)
            out[i] = string_ref(x, texts[i]);
    } while (x->nstrings < before);
}

static uint64_t koid(pid_t id)
{
    return (uint64_t)(uint32_t)id;
}

static void thread_record(const struct fxt *x, uint64_t place, pid_t pid, pid_t tid)
{
    word(x, header(RECORD_THREAD, 3) | place << 16);
    word(x, koid(pid));
    word(x, koid(tid));
}

static uint64_t thread_ref(struct fxt *x, size_t thread)
{
    size_t place = 1 + thread % (THREADS - 1); /* the last one is for what has no track */
    if (x->thread_at[place] != thread + 1) {
        const struct trace_thread *t = trace_thread(x->j->trace, thread);
        thread_record(x, place, t->pid, t->tid);
        x->thread_at[place] = thread + 1;
    }
    return place;
}

static uint64_t tid_ref(struct fxt *x, pid_t tid)
{
    ssize_t i = tid > 0 ? trace_find_thread(x->j->trace, tid) : -1;
    if (i >= 0)
        return thread_ref(x, (size_t)i);
    size_t n = trace_thread_count(x->j->trace);
    thread_record(x, THREADS, n ? trace_thread(x->j->trace, 0)->pid : 0, tid);
    return THREADS;
}

static void names(struct fxt *x)
{
    for (size_t i = 0; i < trace_thread_count(x->j->trace); i++) {
        const struct trace_thread *t = trace_thread(x->j->trace, i);
        if (x->j->thread >= 0 && (size_t)x->j->thread != i)
            continue;
        const char *texts[] = {"process", t->comm};
        uint64_t ref[2];
        refs(x, texts, ref, 2);
        if (t->pid == t->tid) {
            word(x, header(RECORD_OBJECT, 2) | (uint64_t)OBJECT_PROCESS << 16 | ref[1] << 24);
            word(x, koid(t->pid));
        }
        word(x, header(RECORD_OBJECT, 4) | (uint64_t)OBJECT_THREAD << 16 | ref[1] << 24 |
                    UINT64_C(1) << 40);
        word(x, koid(t->tid));
        word(x, (uint64_t)ARG_OBJECT | 2u << 4 | ref[0] << 16);
        word(x, koid(t->pid));
    }
}

static uint64_t event_header(enum event type, size_t words, size_t nargs, uint64_t thread,
                             uint64_t category, uint64_t name)
{
    return header(RECORD_EVENT, words) | (uint64_t)type << 16 | (uint64_t)nargs << 20 |
           thread << 24 | category << 32 | name << 48;
}

static void put_span(struct fxt *x, const struct span *s, size_t thread)
{
    const struct function *f = functions_get(trace_functions(x->j->trace), s->fn);
    const char *texts[] = {s->flags & SPAN_OFF_CPU ? "off-cpu" : f->module, f->name};
    uint64_t ref[2];
    refs(x, texts, ref, 2);
    uint64_t t = thread_ref(x, thread);
    word(x, event_header(EVENT_COMPLETE, 3, 0, t, ref[0], ref[1]));
    word(x, s->start_ns);
    word(x, s->end_ns);
}

static void put_mark(struct fxt *x, const struct mark *m)
{
    const char *texts[] = {"mark", mark_kind_name(m->kind), "detail", m->detail};
    uint64_t ref[4];
    refs(x, texts, ref, 4);
    uint64_t t = tid_ref(x, m->tid);
    word(x, event_header(EVENT_INSTANT, 3, 1, t, ref[0], ref[1]));
    word(x, m->time_ns);
    word(x, (uint64_t)ARG_STRING | 1u << 4 | ref[2] << 16 | ref[3] << 32);
}

static void put_gap(struct fxt *x, const struct gap *g)
{
    const char *texts[] = {"gap", gap_cause_name(g->cause), "detail", g->detail, "dur_ns"};
    uint64_t ref[5];
    refs(x, texts, ref, 5);
    uint64_t t = tid_ref(x, g->tid);
    word(x, event_header(EVENT_INSTANT, 5, 2, t, ref[0], ref[1]));
    word(x, g->start_ns);
    word(x, (uint64_t)ARG_STRING | 1u << 4 | ref[2] << 16 | ref[3] << 32);
    word(x, (uint64_t)ARG_U64 | 2u << 4 | ref[4] << 16);
    word(x, g->end_ns - g->start_ns);
}

static void write_all(struct fxt *x, struct export_merge *m)
{
    const struct span *s = NULL;
    size_t thread = 0, n = 0;
    word(x, MAGIC);
    word(x, header(RECORD_INIT, 2));
    word(x, 1000000000); /* ticks a second */
    names(x);
    const struct gap *g = trace_gaps(x->j->trace, &n);
    for (size_t i = 0; i < n; i++)
        if (export_has_gap(x->j, &g[i]))
            put_gap(x, &g[i]);
    const struct mark *k = trace_marks(x->j->trace, &n);
    for (size_t i = 0; i < n; i++)
        if (export_has_mark(x->j, &k[i]))
            put_mark(x, &k[i]);
    while (!export_out_failed(x->j->out) && (s = export_merge_next(m, &thread)) != NULL)
        put_span(x, s, thread);
}

int export_fxt(const struct export_job *j, struct err *err)
{
    struct export_merge *m = NULL;
    if (export_merge_new(&m, j) < 0)
        return err_set(err, MTUI_E_NOMEM, "not enough memory to sort the spans");
    struct fxt *x = xcalloc(1, sizeof *x);
    x->j = j;
    x->strings = xcalloc(STRINGS + 1, sizeof *x->strings);
    x->slots = xcalloc(SLOTS, sizeof *x->slots);
    write_all(x, m);
    forget_strings(x);
    free(x->strings);
    free(x->slots);
    free(x);
    export_merge_free(m);
    return 0;
}
