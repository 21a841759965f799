/* How long one keystroke in the symbol picker takes on a million names: match, order the first page and
 * draw it; next to `fzf --filter` on the same list, when fzf is there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/symbols/fuzzy.h"
#include "core/symbols/rank.h"
#include "tui/term/surface.h"

#define NAMES 1000000u

static const char *const words[] = {
    "handle", "request", "http", "conn", "parse", "header", "buffer", "alloc", "free", "read", "write",
    "socket", "thread", "queue", "lock", "unlock", "list", "insert", "remove", "find", "hash", "table",
    "string", "vector", "map", "iterator", "begin", "end", "stream", "file", "open", "close", "error",
    "message", "json", "value", "node", "tree", "cache", "index", "page", "block", "event", "loop",
    "timer", "signal", "process", "module", "symbol", "trace", "span", "render", "layout", "window"};
#define WORDS (sizeof words / sizeof *words)

static uint32_t state = 1;
static uint32_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

struct names {
    struct rank_chunk **chunks;
    size_t n;
};

/* snake_case, camelCase and Namespace::Class::method, one third each. */
static void make_name(char *out, size_t size)
{
    unsigned style = next_random() % 3, parts = 2 + next_random() % 4;
    size_t len = 0;
    for (unsigned i = 0; i < parts; i++) {
        const char *w = words[next_random() % WORDS];
        const char *sep = i == 0 || style == 1 ? "" : style == 0 ? "_" : "::";
        size_t at = len + strlen(sep);
        len += (size_t)snprintf(out + len, size - len, "%s%s", sep, w);
        if (style != 0 && (style == 2 || i > 0))
            out[at] = (char)(out[at] - 32);
    }
    snprintf(out + len, size - len, "%u", next_random() % 1000);
}

static const struct rank_chunk *chunk_of(void *arg, size_t i)
{
    return ((struct names *)arg)->chunks[i];
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void draw(struct surface *s, struct rank *r, struct names *names)
{
    struct style plain = {ROLE_DEFAULT, ROLE_DEFAULT, 0}, match = {ROLE_MATCH, ROLE_DEFAULT, 0};
    surface_clear(s);
    for (size_t i = 0; i < 40 && i < rank_count(r); i++) {
        size_t index = rank_at(r, i);
        const struct rank_item *it = &names->chunks[index / RANK_CHUNK]->items[index % RANK_CHUNK];
        struct match_range ranges[32];
        size_t n = match_ranges(rank_matcher(r), it->text, it->len, ranges, 32);
        surface_text(s, (int)i, 2, 100, it->text, it->len, plain);
        for (size_t k = 0; k < n; k++)
            surface_restyle(s, (struct rect){(int)i, 2 + (int)ranges[k].from, 1,
                                             (int)(ranges[k].to - ranges[k].from)}, match);
    }
}

static void type_query(struct rank *r, struct names *names, struct surface *s, enum match_mode mode,
                       const char *query)
{
    char so_far[64] = "";
    double worst = 0;
    rank_set(r, mode, "", 0, names->n, NULL);
    rank_run(r, UINT64_MAX);
    printf("%-6s", match_mode_name(mode));
    for (size_t i = 0; query[i]; i++) {
        so_far[i] = query[i];
        so_far[i + 1] = '\0';
        double t = now_ms();
        if (rank_set(r, mode, so_far, 0, names->n, NULL) < 0)
            continue;
        rank_run(r, UINT64_MAX);
        draw(s, r, names);
        t = now_ms() - t;
        worst = t > worst ? t : worst;
        printf(" %c %.1f", query[i], t);
    }
    printf("  ms; %zu matches; slowest key %.1f ms\n", rank_count(r), worst);
}

static void time_fzf(struct names *names, const char *query)
{
    if (system("command -v fzf >/dev/null 2>&1") != 0) {
        printf("fzf is not installed: no comparison\n");
        return;
    }
    char path[] = "/tmp/mtui-bench-XXXXXX", command[256];
    int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f)
        return;
    for (size_t i = 0; i < names->n; i++)
        fprintf(f, "%s\n", names->chunks[i / RANK_CHUNK]->items[i % RANK_CHUNK].text);
    fclose(f);
    for (size_t len = 1; len <= strlen(query); len += 3) {
        snprintf(command, sizeof command, "fzf --filter '%.*s' <%s >/dev/null", (int)len, query, path);
        double t = now_ms();
        if (system(command) != 0)
            break;
        printf("fzf    --filter %.*s: %.0f ms, reading the list included\n", (int)len, query, now_ms() - t);
    }
    snprintf(command, sizeof command, "fzf --filter zzzzqqqq <%s >/dev/null", path);
    double t = now_ms();
    int status = system(command);
    printf("fzf    --filter with no match: %.0f ms (its reading alone, status %d)\n", now_ms() - t, status);
    unlink(path);
}

int main(void)
{
    struct names names = {.n = NAMES};
    names.chunks = calloc(NAMES / RANK_CHUNK + 1, sizeof *names.chunks);
    char name[256];
    for (size_t i = 0; i < NAMES; i++) {
        if (i % RANK_CHUNK == 0)
            names.chunks[i / RANK_CHUNK] = malloc(sizeof **names.chunks);
        struct rank_chunk *c = names.chunks[i / RANK_CHUNK];
        make_name(name, sizeof name);
        size_t len = strlen(name);
        c->items[i % RANK_CHUNK] = (struct rank_item){strdup(name), (uint32_t)len, 0};
        c->masks[i % RANK_CHUNK] = fuzzy_mask(name, len);
    }
    printf("%u names, milliseconds a key (match, order, draw 40 rows):\n", NAMES);
    struct rank *r = rank_new(chunk_of, &names);
    struct surface *s = surface_new(50, 120);
    type_query(r, &names, s, MATCH_FUZZY, "handreq");
    type_query(r, &names, s, MATCH_FUZZY, "esrt");
    type_query(r, &names, s, MATCH_FUZZY, "vectorIterator");
    type_query(r, &names, s, MATCH_EXACT, "request_");
    type_query(r, &names, s, MATCH_REGEX, "^handle.*req");
    time_fzf(&names, "handreq");
    surface_free(s);
    rank_free(r);
    for (size_t i = 0; i < NAMES; i++)
        free((char *)(uintptr_t)names.chunks[i / RANK_CHUNK]->items[i % RANK_CHUNK].text);
    for (size_t i = 0; i <= (NAMES - 1) / RANK_CHUNK; i++)
        free(names.chunks[i]);
    free(names.chunks);
    return 0;
}
