#include "decode/image/sym_jit.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "decode/image/sym_file.h"

struct entry {
    uint64_t start, end;
    size_t name, name_len; /* in text */
    size_t line;
};

/* Disjoint, ascending: which entry the code from `start` on belongs to. */
struct piece {
    uint64_t start;
    size_t entry; /* NO_ENTRY: none */
};
#define NO_ENTRY SIZE_MAX

struct sym_jit {
    char *text;
    VEC(struct entry) entries; /* by start */
    VEC(struct piece) pieces;
};

/* ---- Parsing ---- */

static bool parse_hex(const char **p, const char *end, uint64_t *value)
{
    const char *s = *p;
    uint64_t v = 0;
    if (end - s > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
        s += 2;
    const char *first = s;
    for (; s < end; s++) {
        unsigned digit;
        if (*s >= '0' && *s <= '9')
            digit = (unsigned)(*s - '0');
        else if ((*s | 32) >= 'a' && (*s | 32) <= 'f')
            digit = (unsigned)((*s | 32) - 'a' + 10);
        else
            break;
        if (v >> 60)
            return false;
        v = v << 4 | digit;
    }
    if (s == first)
        return false;
    while (s < end && *s == ' ')
        s++;
    *p = s;
    *value = v;
    return true;
}

static bool parse_line(const struct sym_jit *j, const char *line, const char *end, struct entry *e)
{
    uint64_t size;
    if (end > line && end[-1] == '\r')
        end--;
    if (!parse_hex(&line, end, &e->start) || !parse_hex(&line, end, &size) || size == 0 || line == end)
        return false;
    e->end = size > UINT64_MAX - e->start ? UINT64_MAX : e->start + size;
    e->name = (size_t)(line - j->text);
    e->name_len = (size_t)(end - line);
    return true;
}

static int by_start(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* ---- Overlaps: a sweep over the addresses with the entries open there in a heap, latest line on top ---- */

struct heap {
    size_t *data; /* indices of entries */
    size_t len, cap;
};

static bool heap_push(const struct sym_jit *j, struct heap *h, size_t entry)
{
    if (!vec_try_push(h, entry))
        return false;
    for (size_t i = h->len - 1; i > 0;) {
        size_t up = (i - 1) / 2;
        if (j->entries.data[h->data[up]].line > j->entries.data[h->data[i]].line)
            break;
        size_t t = h->data[up];
        h->data[up] = h->data[i];
        h->data[i] = t;
        i = up;
    }
    return true;
}

static void heap_pop(const struct sym_jit *j, struct heap *h)
{
    h->data[0] = h->data[--h->len];
    for (size_t i = 0;;) {
        size_t child = 2 * i + 1;
        if (child >= h->len)
            break;
        if (child + 1 < h->len &&
            j->entries.data[h->data[child + 1]].line > j->entries.data[h->data[child]].line)
            child++;
        if (j->entries.data[h->data[i]].line > j->entries.data[h->data[child]].line)
            break;
        size_t t = h->data[child];
        h->data[child] = h->data[i];
        h->data[i] = t;
        i = child;
    }
}

static bool add_piece(struct sym_jit *j, uint64_t start, size_t entry)
{
    struct piece piece = {start, entry};
    if (j->pieces.len && j->pieces.data[j->pieces.len - 1].start == start) {
        j->pieces.data[j->pieces.len - 1].entry = entry;
        return true;
    }
    return vec_try_push(&j->pieces, piece);
}

/* Closes what ends at or before limit: from each end on, the latest of those still open is in force. */
static bool close_until(struct sym_jit *j, struct heap *h, uint64_t limit)
{
    while (h->len && j->entries.data[h->data[0]].end <= limit) {
        uint64_t end = j->entries.data[h->data[0]].end;
        while (h->len && j->entries.data[h->data[0]].end <= end)
            heap_pop(j, h);
        if (!add_piece(j, end, h->len ? h->data[0] : NO_ENTRY))
            return false;
    }
    return true;
}

static bool resolve_overlaps(struct sym_jit *j)
{
    struct heap h = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < j->entries.len; i++) {
        uint64_t start = j->entries.data[i].start;
        ok = close_until(j, &h, start) && heap_push(j, &h, i) && add_piece(j, start, h.data[0]);
    }
    ok = ok && close_until(j, &h, UINT64_MAX);
    vec_free(&h);
    return ok;
}

/* ---- The map ---- */

/* text is taken over. */
static int build(struct sym_jit **out, char *text, size_t len, struct err *err)
{
    struct sym_jit *j = xcalloc(1, sizeof *j);
    bool ok = true;
    size_t number = 0;
    j->text = text;
    for (const char *line = text, *end = text + len; ok && line < end;) {
        const char *nl = memchr(line, '\n', (size_t)(end - line));
        const char *stop = nl ? nl : end;
        struct entry e = {.line = number++};
        if (parse_line(j, line, stop, &e))
            ok = vec_try_push(&j->entries, e);
        line = nl ? nl + 1 : end;
    }
    if (ok && j->entries.len) {
        qsort(j->entries.data, j->entries.len, sizeof *j->entries.data, by_start);
        ok = resolve_overlaps(j);
    }
    if (!ok) {
        sym_jit_free(j);
        return err_set(err, MTUI_E_NOMEM, "not enough memory for %zu names of compiled code", number);
    }
    *out = j;
    return 0;
}

int sym_jit_load(struct sym_jit **out, const char *path, bool any_owner, struct err *err)
{
    char *text;
    size_t len;
    int e = sym_file_read(path, SYM_JIT_MAX_FILE, !any_owner, &text, &len, err);
    return e < 0 ? e : build(out, text, len, err);
}

int sym_jit_parse(struct sym_jit **out, const char *text, size_t len, struct err *err)
{
    char *copy = malloc(len + 1);
    if (!copy)
        return err_set(err, MTUI_E_NOMEM, "not enough memory for a perf map of %zu bytes", len);
    memcpy(copy, text, len);
    return build(out, copy, len, err);
}

void sym_jit_free(struct sym_jit *j)
{
    if (!j)
        return;
    vec_free(&j->entries);
    vec_free(&j->pieces);
    free(j->text);
    free(j);
}

const char *sym_jit_find(const struct sym_jit *j, uint64_t address, size_t *len, uint64_t *start)
{
    size_t lo = 0, hi = j->pieces.len; /* the last piece that starts at or before address */
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (j->pieces.data[mid].start <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == 0 || j->pieces.data[lo - 1].entry == NO_ENTRY)
        return NULL;
    const struct entry *e = &j->entries.data[j->pieces.data[lo - 1].entry];
    *len = e->name_len;
    *start = e->start;
    return j->text + e->name;
}
