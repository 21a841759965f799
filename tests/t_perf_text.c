/* decode/text/perf_text, text_log: lines of `perf script` of every kind, and real text read by a naive
 * second reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include "decode/text/perf_text.h"
#include "decode/text/text_log.h"

/* Events as text: what a test compares. */
struct dump {
    char text[8192];
    size_t len;
};

static void put(struct dump *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct dump *d, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(d->text + d->len, sizeof d->text - d->len, fmt, ap);
    va_end(ap);
    assert_true(n >= 0 && d->len + (size_t)n < sizeof d->text);
    d->len += (size_t)n;
}

static void put_place(struct dump *d, const struct perf_text_place *p)
{
    put(d, "<%" PRIx64 "|%.*s|", p->ip, (int)p->symbol.len, p->symbol.s ? p->symbol.s : "");
    if (p->has_offset)
        put(d, "%" PRIx64, p->offset);
    put(d, "|%.*s>", (int)p->module.len, p->module.s ? p->module.s : "");
}

static int on_event(void *arg, const struct perf_text_event *ev)
{
    struct dump *d = arg;
    static const char *const kinds[] = {"sample", "branch", "packet", "error", "switch",
                                        "comm",   "fork",   "exit",  "lost"};
    put(d, "%s '%.*s' %d/%d %d ", kinds[ev->kind], (int)ev->comm.len, ev->comm.s, ev->pid, ev->tid,
        ev->cpu);
    if (ev->has_time)
        put(d, "%" PRIu64, ev->time_ns);
    put(d, " %" PRIu64 " %.*s", ev->period, (int)ev->event.len, ev->event.s);
    switch (ev->kind) {
    case PERF_TEXT_SAMPLE:
        for (size_t i = 0; i < ev->u.sample.nframes; i++)
            put_place(d, &ev->u.sample.frames[i]);
        break;
    case PERF_TEXT_BRANCH:
        put(d, " %x", ev->u.branch.flags);
        put_place(d, &ev->u.branch.from);
        put_place(d, &ev->u.branch.to);
        break;
    case PERF_TEXT_PACKET:
        put(d, " %d %" PRIx64, (int)ev->u.packet.kind, ev->u.packet.value);
        break;
    case PERF_TEXT_ERROR:
        put(d, " %" PRIx64 " %.*s", ev->u.error.ip, (int)ev->u.error.message.len,
            ev->u.error.message.s);
        break;
    case PERF_TEXT_SWITCH:
        put(d, " %s%s", ev->u.sw.out ? "out" : "in", ev->u.sw.preempted ? " preempt" : "");
        break;
    case PERF_TEXT_COMM:
        put(d, " '%.*s'%s", (int)ev->u.comm.name.len, ev->u.comm.name.s,
            ev->u.comm.exec ? " exec" : "");
        break;
    case PERF_TEXT_FORK:
    case PERF_TEXT_EXIT:
        put(d, " of %d/%d", ev->u.task.ppid, ev->u.task.ptid);
        break;
    case PERF_TEXT_LOST:
        put(d, " %" PRIu64, ev->u.lost);
        break;
    }
    put(d, "\n");
    return 0;
}

/* Fed in pieces of `step` bytes: the result must not depend on it. */
static struct perf_text_counts expect(const char *text, const char *want)
{
    struct perf_text_counts counts = {0};
    const size_t steps[] = {1 << 20, 1, 7};
    for (size_t s = 0; s < 3; s++) {
        struct dump d = {.len = 0};
        struct perf_text *p = perf_text_new(on_event, &d);
        d.text[0] = '\0';
        for (size_t at = 0, n = strlen(text); at < n; at += steps[s])
            assert_int_equal(perf_text_feed(p, text + at, n - at < steps[s] ? n - at : steps[s]), 0);
        assert_int_equal(perf_text_end(p), 0);
        assert_string_equal(d.text, want);
        counts = *perf_text_counts(p);
        perf_text_free(p);
    }
    return counts;
}

static void call_chain_samples(void **state)
{
    (void)state;
    struct perf_text_counts c = expect(
        "# comment\n"
        "825432/825432 339457.445933440:       1 cycles:u: \n"
        "\t    7f5c0c875c60 _dl_open+0x0 (/usr/lib64/ld-2.28.so)\n"
        "\t          4008de main+0x87 (/usr/local/home/demo)\n"
        "\n"
        "my prog 17/18 [003] 12.000001:     250000 cpu-clock:pppH: \n"
        "\tffffffffaf001100 [unknown] ([unknown])\n"
        "\t    7f5c0c3fe1a2 std::map<int, (anonymous namespace)::X>::find(int const&) const+0x2f "
        "(/opt/a b/lib (deleted))\n"
        "\t          401000 inl (inlined)\n"
        "\t          401000 (/bin/x)\n"
        "\t          401002\n"
        "\n"
        "x  9 [000]  5.5:  10 page-faults:          401136 work+0x6 (/bin/x)\n"
        "y  9 [000]  5.6:  10 sched:sched_switch: prev_comm=y prev_pid=9 ==> next_comm=z\n"
        "\t          401002 a+0x0 (/bin/x)\n\n",
        "sample '' 825432/825432 -1 339457445933440 1 cycles:u"
        "<7f5c0c875c60|_dl_open|0|/usr/lib64/ld-2.28.so><4008de|main|87|/usr/local/home/demo>\n"
        "sample 'my prog' 17/18 3 12000001000 250000 cpu-clock:pppH"
        "<ffffffffaf001100|[unknown]||[unknown]>"
        "<7f5c0c3fe1a2|std::map<int, (anonymous namespace)::X>::find(int const&) const|2f|"
        "/opt/a b/lib (deleted)><401000|inl||inlined><401000|||/bin/x><401002|||>\n"
        "sample 'x' 9/9 0 5500000000 10 page-faults<401136|work|6|/bin/x>\n"
        "sample 'y' 9/9 0 5600000000 10 sched:sched_switch<401002|a|0|/bin/x>\n");
    assert_int_equal(c.samples, 4);
    assert_int_equal(c.unknown_lines, 0);
    assert_int_equal(c.lines, 16);
}

static void branch_lines(void **state)
{
    (void)state;
    struct perf_text_counts c = expect(
        "1/2 5.000000001:  1 branches:uH:   tr strt                  0 [unknown] ([unknown]) =>     "
        "7ffff7ddc140 _start+0x0 (/lib/ld.so)\n"
        "1/2 5.000000002:  1 branches:uH:   call        7143 f+0x3 (/lib/ld.so) => 7850 g+0x0 (/b)\n"
        "1/2 5.3:  1 branches:uH:   tr end  syscall     7143 f+0x3 (/l) =>    0 [unknown] ([unknown])\n"
        "1/2 5.4:   jcc   7143 f+0x3 => 7150 f+0x10\n"
        "1/2 5.5:  1 branches:uH:  tr strt jmp  0 [unknown] (a) => 10 b (a)\n"
        "1/2 5.6:  1 branches:uH:  frobnicate call (x)  1 a (m) => 2 b (m)\n"
        "1/2 5.7:  1 branches:uH:  hw int  1 a (m) => ffffffff81000000 b ([kernel.kallsyms])\n"
        "1/2 5.8:  1 branches:uH:  return  1 op=>(x => 12 y)+0x1 (m) => 2 z::operator=> +0x2 (n)\n"
        "1/2 5.9:  1 branches:uH:          1 a+0x0+0x5 (m) => 2 b (m)\n"
        "1/2 6.0:  1 branches:uH:  iret  1 a (/tmp/x (deleted)) => 2 b (m) ilen: 3\n"
        "1/2 6.1:  tx abrt 1 a (m) => 2 b (m)\n",
        "branch '' 1/2 -1 5000000001 1 branches:uH 800<0|[unknown]||[unknown]>"
        "<7ffff7ddc140|_start|0|/lib/ld.so>\n"
        "branch '' 1/2 -1 5000000002 1 branches:uH 1<7143|f|3|/lib/ld.so><7850|g|0|/b>\n"
        "branch '' 1/2 -1 5300000000 1 branches:uH 1010<7143|f|3|/l><0|[unknown]||[unknown]>\n"
        "branch '' 1/2 -1 5400000000 1  8<7143|f|3|><7150|f|10|>\n"
        "branch '' 1/2 -1 5500000000 1 branches:uH 804<0|[unknown]||a><10|b||a>\n"
        "branch '' 1/2 -1 5600000000 1 branches:uH 18001<1|a||m><2|b||m>\n"
        "branch '' 1/2 -1 5700000000 1 branches:uH 80<1|a||m><ffffffff81000000|b||[kernel.kallsyms]>\n"
        "branch '' 1/2 -1 5800000000 1 branches:uH 2<1|op=>(x => 12 y)|1|m><2|z::operator=> |2|n>\n"
        "branch '' 1/2 -1 5900000000 1 branches:uH 0<1|a+0x0|5|m><2|b||m>\n"
        "branch '' 1/2 -1 6000000000 1 branches:uH 100<1|a||/tmp/x (deleted)><2|b||m>\n"
        "branch '' 1/2 -1 6100000000 1  400<1|a||m><2|b||m>\n");
    assert_int_equal(c.branches, 11);
    assert_int_equal(c.unknown_words, 1);
}

static void errors_and_task_events(void **state)
{
    (void)state;
    expect(" instruction trace error type 1 time 47170.086912826 cpu -1 pid 293415 tid 293416 ip "
           "0x7ffff7327730 code 7: Overflow packet\n"
           "a b   7/8  [001] 1.5: PERF_RECORD_SWITCH OUT        \n"
           "a b   7/8  [001] 1.6: PERF_RECORD_SWITCH IN         \n"
           "a 7/8 [001] 1.7: PERF_RECORD_SWITCH_CPU_WIDE OUT preempt  next pid/tid:     0/0    \n"
           "a 7/8 [001] 1.8: PERF_RECORD_COMM exec: my (:) prog:7/8\n"
           "a 7/8 [001] 1.9: PERF_RECORD_COMM: thr:7/9\n"
           "a 7/8 [001] 2.0: PERF_RECORD_FORK(7:10):(7:8)\n"
           "a 7/8 [001] 2.1: PERF_RECORD_EXIT(7:10):(7:10)\n"
           "a 7/8 [001] 2.2: PERF_RECORD_LOST lost 44\n"
           "a 7/8 [001] 2.3: PERF_RECORD_MMAP2 7/8: [0x400000(0x1000) @ 0 08:01 1 2]: r-xp /bin/x\n",
           "error '' 293415/293416 -1 47170086912826 1  7ffff7327730 instruction trace error type 1 "
           "time 47170.086912826 cpu -1 pid 293415 tid 293416 ip 0x7ffff7327730 code 7: Overflow "
           "packet\n"
           "switch 'a b' 7/8 1 1500000000 1  out\n"
           "switch 'a b' 7/8 1 1600000000 1  in\n"
           "switch 'a' 7/8 1 1700000000 1  out preempt\n"
           "comm 'a' 7/8 1 1800000000 1  'my (:) prog' exec\n"
           "comm 'a' 7/9 1 1900000000 1  'thr'\n"
           "fork 'a' 7/10 1 2000000000 1  of 7/8\n"
           "exit 'a' 7/10 1 2100000000 1  of 7/10\n"
           "lost 'a' 7/8 1 2200000000 1  44\n");
}

/* Every selection of fields in which something can be recognised, and what cannot be. */
static void field_C10_odd_lines_never_stop_the_reader(void **state)
{
    (void)state;
    struct perf_text_counts c = expect(
        "12.5:  cycles:  401000 f (m)\n"    /* -F time,event,ip,sym,dso */
        "prog 77 cycles: \n\t 401000 f (m)\n\n" /* -F comm,tid,event,… */
        "1 2 3 [000] 9/9 5.5: 1 ev: \n"      /* a command called "1 2 3 [000]" */
        "total nonsense\n"
        "99999999999999999999/1 5.5: x: \n"
        "18446744073709551615.0: x: \n"
        "1/1 5.1234567890: x: \n"
        "\r\n"
        "1/1 7.5: 3 e: \r\n\t 12345678901234567 too long (m)\n\t 1 f (m)\r\n\n",
        "sample '' -1/-1 -1 12500000000 1 cycles<401000|f||m>\n"
        "sample 'prog' 77/77 -1  1 cycles<401000|f||m>\n"
        "sample '1 2 3 [000]' 9/9 -1 5500000000 1 ev\n"
        "sample '' 1/1 -1 7500000000 3 e<1|f||m>\n");
    assert_int_equal(c.unknown_lines, 4);
    assert_int_equal(c.first_unknown_line, 6);
    assert_string_equal(c.first_unknown, "total nonsense");
}

static int stop_at_second(void *arg, const struct perf_text_event *ev)
{
    (void)ev;
    return ++*(int *)arg == 2 ? -77 : 0;
}

static void limits(void **state)
{
    (void)state;
    /* The callback ends the reading. */
    int seen = 0;
    struct perf_text *p = perf_text_new(stop_at_second, &seen);
    const char *three = "1 1.0: e: 1 f\n1 2.0: e: 1 f\n1 3.0: e: 1 f\n1 4.0: e: 1 f\n";
    assert_int_equal(perf_text_feed(p, three, strlen(three)), -77);
    assert_int_equal(seen, 2);
    perf_text_free(p);
    /* A line of 3 MiB is cut, the next one is whole; hostile runs take no quadratic time. */
    struct dump d = {.len = 0};
    p = perf_text_new(on_event, &d);
    const char *fill[] = {"1 ", "x => 1 (", "[", "1/1 ", "aaaaaaa:", "=> "};
    for (size_t f = 0; f < 6; f++) {
        size_t unit = strlen(fill[f]), n = 3u << 20;
        char *line = malloc(n + 1);
        for (size_t i = 0; i < n; i++)
            line[i] = fill[f][i % unit];
        line[n] = '\n';
        clock_t start = clock();
        assert_int_equal(perf_text_feed(p, line, n + 1), 0);
        assert_true(clock() - start < 5 * CLOCKS_PER_SEC);
        free(line);
    }
    const char *after = "1/1 7.5: 3 e: \n\t 1 f (m)\n";
    d.len = 0;
    assert_int_equal(perf_text_feed(p, after, strlen(after)), 0);
    assert_int_equal(perf_text_end(p), 0);
    assert_non_null(strstr(d.text, "sample '' 1/1 -1 7500000000 3 e<1|f||m>\n"));
    assert_int_equal(perf_text_counts(p)->cut_lines, 6);
    perf_text_free(p);
    assert_true(perf_text_is("abc 1", 5));
    assert_false(perf_text_is("PERFILE2\0\0", 10));
    assert_false(perf_text_is("", 0));
}

/* ---- Real text ---- */

static char *read_gz(const char *name, size_t *len)
{
    char path[256];
    snprintf(path, sizeof path, "../shared/data/perf-script/%s", name);
    gzFile f = gzopen(path, "rb");
    if (!f)
        return NULL;
    size_t cap = 8u << 20, n = 0;
    char *text = malloc(cap + 1);
    for (int got; (got = gzread(f, text + n, (unsigned)(cap - n))) > 0;)
        n += (size_t)got;
    gzclose(f);
    text[n] = '\0';
    *len = n;
    return text;
}

static size_t count_lines_with(const char *text, const char *word)
{
    size_t n = 0;
    for (const char *line = text; *line;) {
        const char *nl = strchr(line, '\n');
        const char *at = strstr(line, word);
        if (at && (!nl || at < nl))
            n++;
        if (!nl)
            break;
        line = nl + 1;
    }
    return n;
}

struct branch_sums {
    size_t by_flag[17], both_ends;
    uint64_t first_ns, last_ns;
};

static int sum_branches(void *arg, const struct perf_text_event *ev)
{
    struct branch_sums *s = arg;
    if (ev->kind != PERF_TEXT_BRANCH)
        return 0;
    for (unsigned i = 0; i < 17; i++)
        s->by_flag[i] += ev->u.branch.flags >> i & 1;
    s->both_ends += ev->u.branch.from.symbol.len > 0 && ev->u.branch.to.module.len > 0;
    s->last_ns = ev->time_ns;
    if (!s->first_ns)
        s->first_ns = ev->time_ns;
    return 0;
}

static void real_branch_text(void **state)
{
    (void)state;
    size_t len = 0;
    char *text = read_gz("hello_world_userspace.txt.gz", &len);
    if (!text)
        skip();
    struct branch_sums s = {0};
    struct perf_text *p = perf_text_new(sum_branches, &s);
    assert_int_equal(perf_text_feed(p, text, len), 0);
    assert_int_equal(perf_text_end(p), 0);
    const struct perf_text_counts *c = perf_text_counts(p);
    assert_int_equal(c->branches, count_lines_with(text, "branches:uH:"));
    assert_int_equal(c->unknown_lines + c->unknown_words + c->cut_lines, 0);
    assert_int_equal(s.both_ends, c->branches);
    assert_int_equal(s.by_flag[0], count_lines_with(text, ":   call  ") +
                                       count_lines_with(text, ":   tr end  call"));
    assert_int_equal(s.by_flag[1], count_lines_with(text, ":   return  ") +
                                       count_lines_with(text, ":   tr end  return"));
    assert_int_equal(s.by_flag[3], count_lines_with(text, ":   jcc  "));
    assert_int_equal(s.by_flag[11], count_lines_with(text, ":   tr strt"));
    assert_int_equal(s.by_flag[12], count_lines_with(text, ":   tr end"));
    assert_int_equal(s.first_ns, UINT64_C(174427938460376));
    perf_text_free(p);
    free(text);
}

/* The same samples by sscanf and strchr, line by line. */
static void real_sampled_text(void **state)
{
    (void)state;
    size_t len = 0, samples = 0, frames = 0;
    char *text = read_gz("c_demo_sampling.txt.gz", &len);
    if (!text)
        skip();
    struct functions *f = functions_new();
    struct sample_log *log = sample_log_new();
    struct text_log *t = text_log_new(f, log);
    struct perf_text *p = perf_text_new(text_log_event, t);
    assert_int_equal(perf_text_feed(p, text, len), 0);
    assert_int_equal(perf_text_end(p), 0);
    assert_int_equal(perf_text_counts(p)->unknown_lines, 0);
    const struct sample_event *e = sample_log_events(log);
    stack_id at = STACK_EMPTY;
    for (char *line = text; line && *line;) {
        char *nl = strchr(line, '\n');
        if (nl)
            *nl = '\0';
        unsigned long sec, ns, ip;
        char symbol[256], module[256];
        if (sscanf(line, "825432/825432 %lu.%lu:", &sec, &ns) == 2) {
            assert_int_equal(at, STACK_EMPTY); /* the stack before had no further frames */
            assert_true(samples < sample_log_count(log));
            assert_int_equal(e[samples].time_ns, sec * 1000000000 + ns);
            at = e[samples++].stack;
        } else if (sscanf(line, " %lx %255s (%255[^)])", &ip, symbol, module) == 3) {
            char *plus = strstr(symbol, "+0x");
            if (plus)
                *plus = '\0';
            assert_int_not_equal(at, STACK_EMPTY);
            struct stack_node node = stack_tree_node(sample_log_stacks(log), at);
            const struct function *fn = functions_get(f, node.fn);
            assert_string_equal(fn->name, symbol);
            if (strcmp(module, "[unknown]") == 0 && ip >> 63)
                assert_string_equal(fn->module, "[kernel]");
            else
                assert_string_equal(fn->module, module);
            at = node.caller;
            frames++;
        }
        line = nl ? nl + 1 : NULL;
    }
    assert_int_equal(samples, sample_log_count(log));
    assert_true(samples > 400 && frames > 4000);
    struct trace_builder *b = trace_builder_new(f);
    struct sample_log_account acc;
    struct trace *tr = NULL;
    assert_int_equal(sample_log_build(log, b, f, &acc, NULL), 0);
    assert_int_equal(trace_builder_finish(b, &tr, NULL), 0);
    trace_builder_free(b);
    assert_int_equal(trace_check(tr, NULL), 0);
    assert_int_equal(acc.samples, samples);
    assert_int_equal(trace_thread(tr, 0)->samples, samples);
    trace_free(tr);
    perf_text_free(p);
    text_log_free(t);
    sample_log_free(log);
    free(text);
}

static void field_C11_any_event_name(void **state)
{
    (void)state;
    const char *text = "p 1/2 1.0: 5 cpu-clock: \n"
                       "\tffffffff81000010 do_sys+0x10 ([kernel.kallsyms])\n"
                       "\tffffffffc0000010 nf_hook+0x1 ([nf_tables])\n"
                       "\tffffffff81000011 [unknown] ([unknown])\n"
                       "\t7ffd00000010 __vdso_gettimeofday+0x1 ([vdso])\n"
                       "\t401030 puts@plt+0x0 (/bin/a)\n"
                       "\t401031 small (inlined)\n"
                       "\t401032 [unknown] (/bin/a)\n"
                       "\t401033 [unknown] ([unknown])\n";
    const struct {
        const char *name, *module;
        enum fn_kind kind;
    } want[] = {
        {"do_sys", "[kernel]", FN_KERNEL},        {"nf_hook", "[nf_tables]", FN_KERNEL},
        {"[unknown]", "[kernel]", FN_UNKNOWN},    {"__vdso_gettimeofday", "[vdso]", FN_VDSO},
        {"puts@plt", "/bin/a", FN_PLT},           {"small", "/bin/a", FN_USER},
        {"[unknown]", "/bin/a", FN_UNKNOWN},      {"[unknown]", "[unknown]", FN_UNKNOWN},
    };
    struct functions *f = functions_new();
    struct sample_log *log = sample_log_new();
    struct text_log *t = text_log_new(f, log);
    struct perf_text *p = perf_text_new(text_log_event, t);
    assert_int_equal(perf_text_feed(p, text, strlen(text)), 0);
    assert_int_equal(perf_text_end(p), 0);
    assert_int_equal(sample_log_count(log), 1);
    assert_int_equal(sample_log_events(log)[0].period, 5);
    assert_true(sample_log_source(log, 0)->clock);
    stack_id id = sample_log_events(log)[0].stack;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct stack_node node = stack_tree_node(sample_log_stacks(log), id);
        const struct function *fn = functions_get(f, node.fn);
        assert_string_equal(fn->name, want[i].name);
        assert_string_equal(fn->module, want[i].module);
        assert_int_equal(fn->kind, want[i].kind);
        id = node.caller;
    }
    assert_int_equal(id, STACK_EMPTY);
    assert_true(event_name_is_clock("cycles:ppp"));
    assert_true(event_name_is_clock("cpu-clock"));
    assert_false(event_name_is_clock("cycles_total"));
    assert_false(event_name_is_clock("page-faults"));
    perf_text_free(p);
    text_log_free(t);
    sample_log_free(log);
    functions_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_chain_samples),
        cmocka_unit_test(branch_lines),
        cmocka_unit_test(errors_and_task_events),
        cmocka_unit_test(field_C10_odd_lines_never_stop_the_reader),
        cmocka_unit_test(limits),
        cmocka_unit_test(real_branch_text),
        cmocka_unit_test(real_sampled_text),
        cmocka_unit_test(field_C11_any_event_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
