#include "lib_branches.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "lib_run.h"

static void add(struct branches *list, struct branch b)
{
    vec_push(list, b);
}

void branches_free(struct branches *b)
{
    free(b->data);
    *b = (struct branches){0};
}

/* ---- mtui ---- */

struct branches branches_of_mtui(const char *data, const char *options)
{
    struct branches all = {0};
    char line[512], *command = xasprintf("%s/mtui export -f branches %s '%s'", getenv("MTUI_BUILD"), options, data);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    assert_non_null(fgets(line, sizeof line, p));
    assert_string_equal(line, "time_ns\ttid\tcpu\tkind\tfrom\tto\n");
    while (fgets(line, sizeof line, p)) {
        struct branch b;
        int end = 0;
        if (sscanf(line, "%" SCNu64 "\t%d\t%*d\t%15s\t%" SCNx64 "\t%" SCNx64 "%n", &b.time_ns, &b.tid, b.kind,
                   &b.from, &b.to, &end) != 5 ||
            strcmp(line + end, "\n") != 0)
            fail_msg("mtui has printed \"%s\"", line);
        add(&all, b);
    }
    assert_int_equal(pclose(p), 0);
    free(command);
    return all;
}

/* ---- perf ---- */

/* Flag words of perf 6.1 (tools/perf/util/event.h) and their kinds in the export. */
static const struct {
    const char *flags, *kind;
} words[] = {
    {"call", "call"},
    {"return", "return"},
    {"jmp", "jump"},
    {"jcc", "cond"},
    {"syscall", "syscall"},
    {"sysret", "sysret"},
    {"hw int", "interrupt"},
    {"int", "interrupt"},
    {"iret", "iret"},
    {"tx abrt", "abort"},
    {"tr strt", "begin"},
    {"tr strt jmp", "begin"},
    {"tr end call", "end:call"},
    {"tr end return", "end:return"},
    {"tr end syscall", "end:syscall"},
    {"tr end async", "end:async"},
    {"tr end iret", "end:iret"},
    {"tr end sysret", "end:sysret"},
    {"tr end int", "end:interrupt"},
};

static void set_kind(struct branch *b, const char *flags)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].flags, flags) == 0) {
            snprintf(b->kind, sizeof b->kind, "%s", words[i].kind);
            return;
        }
    fail_msg("perf has printed \"%s\"", flags);
}

/* "  instruction trace error type 1 time 1.000000123 cpu -1 pid 1 tid 1 ip 0x12 code 5: ..." */
static struct branch parse_error(const char *line)
{
    struct branch b = {.kind = "error"};
    const char *tid = strstr(line, " tid "), *ip = strstr(line, " ip ");
    assert_true(tid && ip);
    b.tid = (pid_t)strtol(tid + 5, NULL, 10);
    b.from = strtoull(ip + 4, NULL, 16);
    return b;
}

/* " TID SECONDS.NANOSECONDS:  FLAG WORDS  FROM => TO" */
static struct branch parse_line(char *line)
{
    struct branch b = {0};
    uint64_t s = 0, ns = 0;
    int at = 0;
    char *arrow = strstr(line, " => ");
    if (!arrow || sscanf(line, "%d %" SCNu64 ".%9" SCNu64 ":%n", &b.tid, &s, &ns, &at) != 3)
        fail_msg("perf has printed \"%s\"", line);
    b.time_ns = s * 1000000000 + ns;
    b.to = strtoull(arrow + 4, NULL, 16);
    *arrow = '\0';
    char *from = strrchr(line, ' ');
    b.from = strtoull(from, NULL, 16);
    *from = '\0';
    char flags[32] = "";
    for (char *word = strtok(line + at, " "); word && strlen(flags) + strlen(word) + 2 < sizeof flags;
         word = strtok(NULL, " ")) {
        strcat(flags, *flags ? " " : "");
        strcat(flags, word);
    }
    set_kind(&b, flags);
    return b;
}

struct branches branches_of_perf(const char *data)
{
    struct branches all = {0};
    char line[1024],
        *command = xasprintf("perf script -i '%s' --itrace=be --ns -F tid,time,flags,ip,addr 2>/dev/null", data);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    while (fgets(line, sizeof line, p) && strchr(line, '\n'))
        add(&all, strstr(line, "instruction trace error") ? parse_error(line) : parse_line(line));
    int status = pclose(p);
    if (status != 0)
        fail_msg("%s: %s", command, WIFEXITED(status) && WEXITSTATUS(status) > 128 ? "it crashed" : "it failed");
    free(command);
    return all;
}

/* ---- the truth ---- */

struct branches branches_of_truth(const struct step_rec *r, pid_t tid)
{
    struct branches all = {0};
    for (size_t i = 0; i < r->n_branches; i++) {
        const struct step_branch *s = &r->branches[i];
        struct branch b = {.time_ns = s->clock, .from = s->from, .to = s->to, .tid = tid};
        if (s->tid != tid)
            continue;
        bool trap = strcmp(s->kind, "trap") == 0, end = step_branch_ends(s);
        snprintf(b.kind, sizeof b.kind, "%s%s", end ? "end:" : "", trap ? "interrupt" : s->kind);
        if (end)
            b.to = 0;
        add(&all, b);
    }
    return all;
}

/* ---- comparing ---- */

void branches_keep(struct branches *b, pid_t tid)
{
    size_t n = 0;
    for (size_t i = 0; i < b->len; i++)
        if (b->data[i].tid == tid)
            b->data[n++] = b->data[i];
    b->len = n;
}

void branches_drop_blank_errors(struct branches *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->len; i++)
        if (b->data[i].time_ns || b->data[i].from || strcmp(b->data[i].kind, "error") != 0)
            b->data[n++] = b->data[i];
    b->len = n;
}

static bool same(const struct branch *a, const struct branch *b)
{
    return a->tid == b->tid && a->from == b->from && a->to == b->to && strcmp(a->kind, b->kind) == 0;
}

static const char *text(const struct branches *list, size_t i, char out[96])
{
    const struct branch *b = &list->data[i];
    if (i >= list->len)
        return "nothing";
    snprintf(out, 96, "%" PRIu64 " %d %s %" PRIx64 " %" PRIx64, b->time_ns, (int)b->tid, b->kind, b->from, b->to);
    return out;
}

void branches_equal(const char *what, const struct branches *a, const struct branches *b)
{
    char one[96], other[96];
    size_t i = 0;
    while (i < a->len && i < b->len && same(&a->data[i], &b->data[i]))
        i++;
    if (i < a->len || i < b->len)
        fail_msg("%s: line %zu: \"%s\" and not \"%s\"", what, i + 1, text(a, i, one), text(b, i, other));
}

static bool is_flow(const struct branch *b)
{
    return strncmp(b->kind, "end:", 4) != 0 && strcmp(b->kind, "begin") != 0 && strcmp(b->kind, "error") != 0;
}

static bool has_packet(const struct branch *b)
{
    return strcmp(b->kind, "cond") == 0 || strcmp(b->kind, "return") == 0;
}

/* The last that may share the packet of i; at the end the packet comes when recording stops. */
static size_t last_of_packet(const struct branches *b, size_t i, unsigned bits)
{
    for (unsigned n = 0; i < b->len; i++)
        if (has_packet(&b->data[i]) && ++n == bits)
            return i;
    return b->len - 1;
}

static bool in_time(const struct branch *b, const struct branches *truth, size_t i, unsigned bits)
{
    return !has_packet(b) || (b->time_ns >= truth->data[i].time_ns &&
                              b->time_ns <= truth->data[last_of_packet(truth, i, bits)].time_ns);
}

void branches_left_of(const char *what, const struct branches *a, const struct branches *truth, unsigned bits)
{
    char one[96];
    size_t k = 0;
    for (size_t i = 0; i < a->len; i++) {
        if (!is_flow(&a->data[i]))
            continue;
        while (k < truth->len && !(same(&a->data[i], &truth->data[k]) && in_time(&a->data[i], truth, k, bits)))
            k++;
        if (k++ >= truth->len)
            fail_msg("%s: line %zu: \"%s\" has not happened, or not then", what, i + 1, text(a, i, one));
    }
}

size_t branches_same_times(const char *what, const struct branches *a, const struct branches *b, uint64_t most_ns)
{
    char one[96], other[96];
    uint64_t estimated = 0;
    size_t n = 0;
    assert_int_equal(a->len, b->len);
    for (size_t i = 0; i < a->len; i++) {
        uint64_t x = a->data[i].time_ns, y = b->data[i].time_ns;
        if (i && x < a->data[i - 1].time_ns)
            fail_msg("%s: line %zu: \"%s\" is before \"%s\"", what, i + 1, text(a, i, one), text(a, i - 1, other));
        if (strcmp(b->data[i].kind, "begin") == 0)
            estimated = y;
        if (!has_packet(&a->data[i]) || y == estimated)
            continue;
        if ((x > y ? x - y : y - x) > most_ns)
            fail_msg("%s: line %zu: \"%s\" is more than %" PRIu64 " ns from \"%s\"", what, i + 1,
                     text(a, i, one), most_ns, text(b, i, other));
        n++;
    }
    return n;
}

size_t branches_true_times(const char *what, const struct branches *a, const struct branches *truth, unsigned bits)
{
    char one[96], other[96];
    size_t n = 0;
    assert_int_equal(a->len, truth->len);
    for (size_t i = 0; i < a->len; i++) {
        if (!in_time(&a->data[i], truth, i, bits))
            fail_msg("%s: line %zu: \"%s\" and not \"%s\", up to %zu lines later", what, i + 1, text(a, i, one),
                     text(truth, i, other), last_of_packet(truth, i, bits) - i);
        n += has_packet(&a->data[i]);
    }
    return n;
}
