#include "tests/lib_gentrace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/symbols/demangle.h"

uint64_t gen_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(2685821657736338717);
}

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "gentrace: %s: %s\n", what, detail);
    exit(2);
}

static struct functions *random_functions(unsigned n)
{
    static const char *const stems[] = {
        "handle_request", "parse_headers", "render_template", "eval_block",     "str_append",
        "vec_push",       "malloc",        "trie_get",        "write_reply",    "aes_gcm_seal",
        "scan_line",      "epoll_wait",    "std::vector<int, std::allocator<int> >::push_back",
        "Http::Handler::request",          "memcpy",          "lookup<Key>",
    };
    static const char *const modules[] = {"/usr/bin/demo-server", "/usr/lib/libdemo.so.2",
                                          "/usr/lib/libother.so.6"};
    struct functions *f = functions_new();
    const unsigned nstems = sizeof stems / sizeof *stems;
    for (unsigned i = 0; i < n; i++) {
        char name[128];
        if (i < nstems)
            snprintf(name, sizeof name, "%s", stems[i]);
        else
            snprintf(name, sizeof name, "%s_%c%c%u", stems[i % nstems], 'a' + (char)(i / 7 % 26),
                     'a' + (char)(i / 3 % 26), i / nstems);
        functions_intern(f, modules[i % 3], name, name, 0x1000 + 16 * i, FN_USER);
    }
    return f;
}

static void random_thread(struct trace_builder *b, const struct gentrace *g, size_t thread,
                          uint64_t spans, uint64_t *seed)
{
    uint64_t now = g->base_ns;
    for (uint64_t made = 0; made < spans;) {
        uint64_t r = gen_random(seed);
        size_t depth = trace_builder_depth(b, thread);
        /* Mostly short steps, now and then a long one. */
        now += (r & 7) == 0 ? (r >> 8) % (8 * g->step_ns + 1) : (r >> 8) % (g->step_ns + 1);
        bool call = depth == 0 || (depth < g->depth && (r >> 40) % (g->depth + 1) >= depth / 2 + 1);
        if (call) {
            fn_id above = depth ? trace_builder_open_fn(b, thread, depth - 1) : 0;
            fn_id fn = (fn_id)((above * 7 + (r >> 50) % 6 + 1) % g->functions);
            if (trace_builder_enter(b, thread, now, fn, 0))
                die("trace_builder_enter", "failed");
            made++;
        } else {
            trace_builder_leave(b, thread, now, 0);
        }
    }
    while (trace_builder_depth(b, thread))
        trace_builder_leave(b, thread, now += 1 + gen_random(seed) % g->step_ns, 0);
}

static void random_notes(struct trace_builder *b, const struct gentrace *g, uint64_t *seed)
{
    uint64_t length = g->spans / g->threads * g->step_ns + 1000;
    for (unsigned i = 0; i < g->gaps; i++) {
        uint64_t from = g->base_ns + gen_random(seed) % length;
        struct gap gap = {.tid = (pid_t)(1000 + gen_random(seed) % g->threads),
                          .start_ns = from,
                          .end_ns = from + gen_random(seed) % (length / 50 + 1),
                          .cause = (enum gap_cause)(gen_random(seed) % GAP_CAUSES),
                          .detail = "made up"};
        trace_builder_gap(b, &gap);
    }
    for (unsigned i = 0; i < g->marks; i++) {
        struct mark mark = {.time_ns = g->base_ns + gen_random(seed) % length,
                            .tid = (pid_t)(1000 + gen_random(seed) % g->threads),
                            .kind = MARK_TRIGGER,
                            .detail = "made up"};
        trace_builder_mark(b, &mark);
    }
}

struct trace_builder *gentrace_builder(size_t functions)
{
    struct functions *f = functions_new();
    for (size_t i = 0; i < functions; i++) {
        char name[32];
        snprintf(name, sizeof name, "f%zu", i);
        functions_intern(f, "m", name, name, 0, FN_USER);
    }
    return trace_builder_new(f);
}

struct trace *gentrace_finish(struct trace_builder *b)
{
    struct trace *t = NULL;
    struct err err = {0};
    if (trace_builder_finish(b, &t, &err) || trace_check(t, &err) < 0)
        die("a trace is not well-formed", err.text);
    trace_builder_free(b);
    return t;
}

struct trace *gentrace_random(const struct gentrace *g)
{
    struct trace_builder *b = trace_builder_new(random_functions(g->functions));
    struct trace_info info = {.recorder = "step", .instructions = false};
    trace_builder_set_info(b, &info);
    uint64_t seed = g->seed;
    for (unsigned i = 0; i < g->threads; i++) {
        size_t thread = trace_builder_thread(b, 1000, (pid_t)(1000 + i));
        char comm[32];
        snprintf(comm, sizeof comm, "worker-%u", i);
        trace_builder_comm(b, thread, comm);
        random_thread(b, g, thread, g->spans / g->threads, &seed);
    }
    random_notes(b, g, &seed);
    return gentrace_finish(b);
}

static unsigned parse_flags(const char *letters)
{
    unsigned flags = 0;
    for (; *letters; letters++)
        switch (*letters) {
        case 's': flags |= SPAN_INFERRED_START; break;
        case 't': flags |= SPAN_TAIL_CALL; break;
        case 'p': flags |= SPAN_SAMPLED; break;
        case 'o': flags |= SPAN_OFF_CPU; break;
        case 'g': flags |= SPAN_GAP_END; break;
        default: die("unknown flag", letters);
        }
    return flags;
}

static int find_word(const char *word, const char *(*name)(int), int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(word, name(i)) == 0)
            return i;
    die("unknown word", word);
    return 0;
}

static const char *cause_word(int i)
{
    return gap_cause_name((enum gap_cause)i);
}

static const char *kind_word(int i)
{
    return mark_kind_name((enum mark_kind)i);
}

struct parse {
    struct trace_builder *b;
    struct functions *f;
    struct trace_info info;
    size_t thread;
    pid_t tid;
};

static void parse_line(struct parse *p, const char *line)
{
    char word[256], module[128], extra[128];
    unsigned long long from, to;
    int tid, used = 0;
    if (sscanf(line, "thread %d %255[^\n]", &tid, word) == 2) {
        p->tid = (pid_t)tid;
        p->thread = trace_builder_thread(p->b, (pid_t)(tid / 1000 * 1000), (pid_t)tid);
        trace_builder_comm(p->b, p->thread, word);
    } else if (sscanf(line, "sampled %llu", &from) == 1) {
        p->info.sampled = true;
        p->info.period_ns = from;
        p->info.recorder = "sample";
    } else if (strcmp(line, "instructions") == 0) {
        p->info.instructions = true;
        p->info.recorder = "step";
    } else if (strncmp(line, "+ ", 2) == 0) {
        module[0] = extra[0] = '\0';
        if (sscanf(line, "+ %llu %255s %127s %127s", &from, word, module, extra) < 2)
            die("bad line", line);
        enum fn_kind kind = word[0] == '['                       ? FN_PSEUDO
                            : strcmp(module, "[kernel]") == 0    ? FN_KERNEL
                                                                 : FN_USER;
        char *name = demangle_or_copy(word, DEMANGLE_NO_ARGS);
        fn_id fn = functions_intern(p->f, module[0] ? module : "/usr/bin/demo-server", word, name, 0, kind);
        free(name);
        if (trace_builder_enter(p->b, p->thread, from, fn, parse_flags(extra)))
            die("trace_builder_enter", line);
    } else if (sscanf(line, "- %llu %127s", &from, extra) >= 1) {
        trace_builder_leave(p->b, p->thread, from, strchr(line, 'g') ? SPAN_GAP_END : 0);
    } else if (sscanf(line, "gap %llu %llu %255s %n", &from, &to, word, &used) >= 3 ||
               sscanf(line, "gap* %llu %llu %255s %n", &from, &to, word, &used) >= 3) {
        struct gap gap = {.tid = line[3] == '*' ? 0 : p->tid,
                          .start_ns = from,
                          .end_ns = to,
                          .bytes = 4096,
                          .cause = (enum gap_cause)find_word(word, cause_word, GAP_CAUSES),
                          .detail = line[used] ? line + used : "the ring wrapped"};
        trace_builder_gap(p->b, &gap);
    } else if (sscanf(line, "mark %llu %255s %n", &from, word, &used) >= 2) {
        struct mark mark = {.time_ns = from,
                            .tid = p->tid,
                            .kind = (enum mark_kind)find_word(word, kind_word, MARK_NOTE + 1),
                            .detail = line + used};
        trace_builder_mark(p->b, &mark);
    } else {
        die("bad line", line);
    }
}

struct trace *gentrace_parse(const char *text)
{
    struct parse p = {.f = functions_new(), .info = {.recorder = "pt"}};
    p.b = trace_builder_new(p.f);
    char *copy = xstrdup(text), *save = NULL;
    for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        line += strspn(line, " ");
        if (*line && *line != '#')
            parse_line(&p, line);
    }
    free(copy);
    trace_builder_set_info(p.b, &p.info);
    return gentrace_finish(p.b);
}
