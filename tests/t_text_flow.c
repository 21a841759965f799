/* Branch lines of `perf script` as traces: small texts whose spans are worked out by hand, and real ones
 * against the functions that another tool found in them (call counts, total times). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/export/export.h"
#include "decode/open/open.h"
#include "decode/text/text_branch.h"
#include "tests/lib_perf.h"

static struct recording *open_path(const char *path)
{
    static const struct open_options plain = {.stdin_fd = -1};
    struct recording *r = NULL;
    struct err err = {0};
    if (open_recording(&r, path, &plain, &err) < 0)
        fail_msg("%s: %s", path, err.text);
    if (trace_check(r->trace, &err) < 0)
        fail_msg("%s: %s", path, err.text);
    assert_false(trace_info(r->trace)->sampled);
    return r;
}

static struct recording *open_text(const char *text)
{
    char *dir = lib_mkdtemp(), path[300];
    snprintf(path, sizeof path, "%s/text", dir);
    lib_write(path, text, strlen(text));
    struct recording *r = open_path(path);
    lib_rmdir(dir);
    return r;
}

static bool has_note(const struct recording *r, const char *text)
{
    for (size_t i = 0; i < r->nnotes; i++)
        if (strstr(r->notes[i], text))
            return true;
    return false;
}

/* A thread's rows: "name start-end flags, …", divided by "/". */
static char *rows(const struct recording *r, size_t thread)
{
    char *out = NULL;
    size_t len, n;
    FILE *f = open_memstream(&out, &len);
    for (size_t d = 0; d < trace_thread(r->trace, thread)->depths; d++) {
        const struct span *s = trace_row(r->trace, thread, d, &n);
        fprintf(f, "%s", d ? " / " : "");
        for (size_t i = 0; i < n; i++) {
            fprintf(f, "%s%s %" PRIu64 "-%" PRIu64, i ? ", " : "",
                    functions_get(trace_functions(r->trace), s[i].fn)->name, s[i].start_ns, s[i].end_ns);
            for (unsigned k = 0; s[i].flags && k < 4; k++)
                if (s[i].flags >> k & 1)
                    fprintf(f, "%s%c", s[i].flags & ((1u << k) - 1) ? "" : " ", "setg"[k]);
        }
    }
    fclose(f);
    return out;
}

static void expect_rows(const struct recording *r, size_t thread, const char *want)
{
    char *got = rows(r, thread);
    assert_string_equal(got, want);
    free(got);
}

static void expect(const char *text, const char *want)
{
    struct recording *r = open_text(text);
    expect_rows(r, 0, want);
    recording_free(r);
}

/* "time_ns flags  from => to" of thread 1/2. */
#define AT(ns) "p 1/2 [001] 0.000000" ns ": 1 branches:uH:  "
#define NOWHERE " 0 [unknown] ([unknown])"

/* ---- stacks ---- */

static void calls_of_every_length(void **state)
{
    (void)state;
    /* a calls b (5 bytes) and c (2 bytes, through a register), each twice; c calls itself. */
    expect(AT("100") "tr strt" NOWHERE " => 1000 a+0x0 (m)\n" AT("110") "call 1010 a+0x10 (m) => 2000 b+0x0 (m)\n"
           AT("120") "return 2008 b+0x8 (m) => 1015 a+0x15 (m)\n" AT("130") "call 1015 a+0x15 (m) => 3000 c+0x0 (m)\n"
           AT("140") "call 3010 c+0x10 (m) => 3000 c+0x0 (m)\n" AT("150") "return 3020 c+0x20 (m) => 3015 c+0x15 (m)\n"
           AT("160") "return 3020 c+0x20 (m) => 1017 a+0x17 (m)\n" AT("170") "jmp 1020 a+0x20 (m) => 1010 a+0x10 (m)\n"
           AT("180") "call 1010 a+0x10 (m) => 2000 b+0x0 (m)\n" AT("190") "return 2008 b+0x8 (m) => 1015 a+0x15 (m)\n"
           AT("200") "call 1015 a+0x15 (m) => 3000 c+0x0 (m)\n" AT("210") "return 3020 c+0x20 (m) => 1017 a+0x17 (m)\n"
           AT("220") "tr end  async 1019 a+0x19 (m) =>" NOWHERE "\n",
           "a 100-220 e / b 110-120, c 130-160, b 180-190, c 200-210 / c 140-150");
}

static void names_with_everything_in_them(void **state)
{
    (void)state;
    expect(AT("100") "tr strt" NOWHERE " => 1000 f(int => 5 x)+0x2+0x0 (/a b/(x) (deleted))\n"
           AT("110") "call 1010 f(int => 5 x)+0x2+0x10 (/a b/(x) (deleted)) => 2000 operator=> +0x0 (m)\n"
           AT("120") "return 2008 operator=> +0x8 (m) => 1015 f(int => 5 x)+0x2+0x15 (/a b/(x) (deleted))\n",
           "f(int => 5 x)+0x2 100-120 e / operator=>  110-120");
}

static void time_is_spread_over_calls(void **state)
{
    (void)state;
    /* Three calls between 100 and 190, a return that takes none; then a tail call and a call. */
    expect(AT("100") "tr strt" NOWHERE " => 1000 a+0x0 (m)\n" AT("100") "call 1010 a+0x10 (m) => 2000 b+0x0 (m)\n"
           AT("100") "return 2008 b+0x8 (m) => 1015 a+0x15 (m)\n" AT("100") "call 1020 a+0x20 (m) => 3000 c+0x0 (m)\n"
           AT("190") "jmp 3010 c+0x10 (m) => 4000 d+0x0 (m)\n" AT("190") "call 4010 d+0x10 (m) => 2000 b+0x0 (m)\n"
           AT("210") "return 2008 b+0x8 (m) => 4015 d+0x15 (m)\n" AT("220") "return 4020 d+0x20 (m) => 1025 a+0x25 (m)\n",
           "a 100-220 e / b 130-160, c 160-190, d 190-220 t / b 200-210");
}

static void tracing_that_stops(void **state)
{
    (void)state;
    /* A system call; an interruption that goes on where it was; a signal handler and its end. */
    expect(AT("100") "tr strt" NOWHERE " => 1000 a+0x0 (m)\n" AT("110") "tr end  syscall 1010 a+0x10 (m) =>" NOWHERE "\n"
           AT("150") "tr strt" NOWHERE " => 1012 a+0x12 (m)\n" AT("160") "tr end 1020 a+0x20 (m) =>" NOWHERE "\n"
           AT("170") "tr strt" NOWHERE " => 1020 a+0x20 (m)\n" AT("180") "tr end  async 1030 a+0x30 (m) =>" NOWHERE "\n"
           AT("200") "tr strt" NOWHERE " => 5000 handler+0x0 (m)\n"
           AT("210") "return 5008 handler+0x8 (m) => 6000 __restore_rt+0x0 (m)\n"
           AT("220") "tr end  syscall 6007 __restore_rt+0x7 (m) =>" NOWHERE "\n"
           AT("230") "tr strt" NOWHERE " => 1030 a+0x30 (m)\n" AT("240") "jmp 1040 a+0x40 (m) => 1000 a+0x0 (m)\n",
           "a 100-240 e / [syscall] 110-150, [untraced] 160-170, [untraced] 180-200, handler 200-210, "
           "__restore_rt 210-230 / [syscall] 220-230");
}

static void kernel_entries(void **state)
{
    (void)state;
    expect(AT("100") "tr strt" NOWHERE " => 1000 a+0x0 (m)\n"
           AT("110") "hw int 1010 a+0x10 (m) => ffffffff81000000 asm_exc_page_fault+0x0 ([kernel.kallsyms])\n"
           AT("120") "iret ffffffff81000040 asm_exc_page_fault+0x40 ([kernel.kallsyms]) => 1010 a+0x10 (m)\n"
           AT("130") "syscall 1020 a+0x20 (m) => ffffffff81001000 entry_SYSCALL_64+0x0 ([kernel.kallsyms])\n"
           AT("140") "call ffffffff81001040 entry_SYSCALL_64+0x40 ([kernel.kallsyms]) => ffffffff81002000 do_it+0x0 ([kernel.kallsyms])\n"
           AT("150") "return ffffffff81002010 do_it+0x10 ([kernel.kallsyms]) => ffffffff81001045 entry_SYSCALL_64+0x45 ([kernel.kallsyms])\n"
           AT("160") "sysret ffffffff81001050 entry_SYSCALL_64+0x50 ([kernel.kallsyms]) => 1022 a+0x22 (m)\n"
           AT("170") "int 1030 a+0x30 (m) => ffffffff81000000 asm_exc_page_fault+0x0 ([kernel.kallsyms])\n"
           AT("180") "iret ffffffff81000040 asm_exc_page_fault+0x40 ([kernel.kallsyms]) => 1031 a+0x31 (m)\n",
           "a 100-180 e / asm_exc_page_fault 110-120, entry_SYSCALL_64 130-160, asm_exc_page_fault 170-180 / "
           "do_it 140-150");
}

static void what_ran_already(void **state)
{
    (void)state;
    /* No begin: in the middle of f, which its caller g, and main, surround. Then g falls into h. */
    expect(AT("100") "jcc 1010 f+0x10 (m) => 1030 f+0x30 (m)\n" AT("110") "return 1040 f+0x40 (m) => 2010 g+0x10 (m)\n"
           AT("120") "call 2020 g+0x20 (m) => 1000 f+0x0 (m)\n" AT("130") "return 1040 f+0x40 (m) => 2025 h+0x0 (m)\n"
           AT("140") "return 2040 h+0x1b (m) => 3010 main+0x10 (m)\n",
           "main 100-140 se / g 100-130 s, h 130-140 t / f 100-110 s, f 120-130");
}

static void parts_out_of_the_way(void **state)
{
    (void)state;
    struct perf_text_str s = {"f(int) [clone .cold]", 20};
    assert_true(text_branch_whole(&s) && s.len == 6);
    s = (struct perf_text_str){"g.part.0.cold.12", 16};
    assert_true(text_branch_whole(&s) && s.len == 8);
    s = (struct perf_text_str){"h.colder", 8};
    assert_false(text_branch_whole(&s));
    s = (struct perf_text_str){".cold", 5};
    assert_false(text_branch_whole(&s));
    /* To its cold part and back: one call of b. */
    expect(AT("100") "tr strt" NOWHERE " => 1000 a+0x0 (m)\n" AT("110") "call 1010 a+0x10 (m) => 2000 b+0x0 (m)\n"
           AT("120") "jmp 2008 b+0x8 (m) => 900 b.cold+0x0 (m)\n" AT("130") "jmp 910 b.cold+0x10 (m) => 2010 b+0x10 (m)\n"
           AT("140") "return 2018 b+0x18 (m) => 1015 a+0x15 (m)\n",
           "a 100-140 e / b 110-140");
}

/* Two processes with other programs at the same addresses: other lengths of calls, other names. */
static void processes_do_not_mix(void **state)
{
    (void)state;
    struct recording *r = open_text(
        "p 1/1 [000] 1.000000100: tr strt" NOWHERE " => 1000 a+0x0 (m)\n"
        "q 5/5 [001] 1.000000100: tr strt" NOWHERE " => 1000 x+0x0 (n)\n"
        "p 1/1 [000] 1.000000110: call 1010 a+0x10 (m) => 2000 b+0x0 (m)\n"
        "q 5/5 [001] 1.000000110: call 1010 x+0x10 (n) => 2000 y+0x0 (n)\n"
        "p 1/1 [002] 1.000000120: return 2010 b+0x10 (m) => 1015 a+0x15 (m)\n"
        "q 5/5 [001] 1.000000120: return 2010 y+0x10 (n) => 1012 x+0x12 (n)\n");
    expect_rows(r, 0, "a 1000000100-1000000120 e / b 1000000110-1000000120");
    expect_rows(r, 1, "x 1000000100-1000000120 e / y 1000000110-1000000120");
    assert_string_equal(trace_thread(r->trace, 0)->comm, "p");
    size_t n;
    const struct mark *m = trace_marks(r->trace, &n);
    assert_int_equal(n, 1);
    assert_string_equal(m->detail, "from CPU 0 to CPU 2");
    assert_int_equal(m->tid, 1);
    recording_free(r);
}

/* ---- losses ---- */

#define ERROR_AT(ns, who, code) " instruction trace error type 1 time 0.000000" ns " cpu " who " ip 0x1010 code " code "\n"

static void errors_are_gaps(void **state)
{
    (void)state;
    size_t n;
    struct recording *r = open_text(
        ERROR_AT("090", "-1 pid 1 tid 2", "8: Lost trace data")
        AT("100") "tr strt" NOWHERE " => 1000 a+0x0 (m)\n" AT("110") "call 1010 a+0x10 (m) => 2000 b+0x0 (m)\n"
        ERROR_AT("120", "-1 pid 1 tid 2", "7: Overflow packet")
        AT("150") "tr strt" NOWHERE " => 2008 b+0x8 (m)\n" AT("160") "return 2010 b+0x10 (m) => 1015 a+0x15 (m)\n"
        ERROR_AT("170", "1 pid -1 tid -1", "5: Failed to get instruction")
        ERROR_AT("180", "1 pid -1 tid -1", "6: Trace doesn't match instruction")
        ERROR_AT("185", "7 pid -1 tid -1", "7: Overflow packet"));
    expect_rows(r, 0, "a 100-120 g, a 150-170 sg / b 110-120 g, b 150-160 s");
    const struct gap *g = trace_gaps(r->trace, &n);
    const struct {
        uint64_t start, end;
        enum gap_cause cause;
        const char *detail;
    } want[] = {{90, 100, GAP_LOST, "Lost trace data, at 1010"},
                {120, 150, GAP_OVERFLOW, "Overflow packet, at 1010"},
                {170, 180, GAP_NO_IMAGE, "Failed to get instruction, at 1010"},
                {180, 180, GAP_ERROR, "Trace doesn't match instruction, at 1010"}};
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(g[i].start_ns, want[i].start);
        assert_int_equal(g[i].end_ns, want[i].end);
        assert_int_equal(g[i].cause, want[i].cause);
        assert_int_equal(g[i].tid, 2);
        assert_string_equal(g[i].detail, want[i].detail);
    }
    assert_true(has_note(r, "5 decode errors in it: each is a gap"));
    recording_free(r);
}

/* ---- less than everything printed ---- */

static void packets_become_marks(void **state)
{
    (void)state;
    size_t n;
    struct recording *r = open_text(
        AT("100") "tr strt" NOWHERE " => 1000 a+0x0 (m)\n"
        "p 1/2 [001] 0.000000110:  cbr:  cbr: 10 freq: 1000 MHz ( 50%) 0 [unknown] ([unknown])\n"
        "p 1/2 [001] 0.000000120:  psb:  psb offs: 0x40 0 [unknown] ([unknown])\n"
        "p 1/2 [001] 0.000000130:  cbr:  cbr: 20 freq: 2000 MHz (100%) 0 [unknown] ([unknown])\n"
        "p 1/2 [001] 0.000000140:  ptwrite:  IP: 0 payload: 0xdeadbeef 1010 a+0x10 (m)\n"
        AT("150") "jcc 1010 a+0x10 (m) => 1020 a+0x20 (m)\n");
    const struct mark *m = trace_marks(r->trace, &n);
    assert_int_equal(n, 2);
    assert_true(m[0].kind == MARK_FREQUENCY && m[0].time_ns == 130);
    assert_string_equal(m[0].detail, "2000 MHz");
    assert_true(m[1].kind == MARK_PTWRITE && m[1].time_ns == 140 && m[1].tid == 2);
    assert_string_equal(m[1].detail, "0xdeadbeef");
    expect_rows(r, 0, "a 100-150 e");
    recording_free(r);
}

static void without_flag_words(void **state)
{
    (void)state;
    struct recording *r = open_text(
        "p 2 0.000000100: 1 branches:u:" NOWHERE " => 1000 a+0x0 (m)\n"
        "p 2 0.000000110: 1 branches:u: 1010 a+0x10 (m) => 2000 b+0x0 (m)\n"
        "p 2 0.000000120: 1 branches:u: 2004 b+0x4 (m) => 2008 b+0x8 (m)\n"
        "p 2 0.000000130: 1 branches:u: 2010 b+0x10 (m) => 1015 a+0x15 (m)\n"
        "p 2 0.000000140: 1 branches:u: 1020 a+0x20 (m) =>" NOWHERE "\n");
    expect_rows(r, 0, "a 100-140 e / b 110-130");
    assert_true(has_note(r, "5 branches have no flag words"));
    recording_free(r);
}

static void only_calls(void **state)
{
    (void)state;
    struct recording *r = open_text(
        AT("100") "call 1010 a+0x10 (m) => 2000 b+0x0 (m)\n" AT("110") "call 2010 b+0x10 (m) => 3000 c+0x0 (m)\n"
        AT("120") "call 2020 b+0x20 (m) => 3000 c+0x0 (m)\n" AT("130") "call 1020 a+0x20 (m) => 4000 d+0x0 (m)\n");
    expect_rows(r, 0, "a 100-130 se / b 100-130, d 130-130 e / c 110-120, c 120-130");
    assert_true(has_note(r, "only calls were printed"));
    recording_free(r);
}

static void without_times_and_offsets(void **state)
{
    (void)state;
    struct recording *r = open_text("p 1/2 branches:u: tr strt" NOWHERE " => 1000 a\n"
                                    "p 1/2 branches:u: call 1010 a => 2000 b\n"
                                    "p 1/2 branches:u: return 2010 b => 1015 a\n");
    expect_rows(r, 0, "a 1-3 se / b 2-3");
    assert_true(has_note(r, "3 lines have no time"));
    assert_true(has_note(r, "the names have no offsets"));
    recording_free(r);
}

static void words_that_are_not_known(void **state)
{
    (void)state;
    struct recording *r = open_text(AT("100") "call/miss,not_taken/ 1010 a+0x10 (m) => 2000 b+0x0 (m)\n"
                                    AT("110") "fancy return 2010 b+0x10 (m) => 1015 a+0x15 (m)\n"
                                    "this is nothing\n  nor this\n"
                                    AT("120") "jmp 1020 a+0x20 (m) => 1030 a+0x30 (m)\n  file.c:12\n");
    expect_rows(r, 0, "a 100-120 se / b 100-110");
    assert_true(has_note(r, "1 flag word is not known"));
    assert_true(has_note(r, "partial: 2 lines were not understood, the first is line 3: this is nothing"));
    recording_free(r);
}

/* The functions of all spans, each with a blank behind it. */
static char *functions_seen(const struct recording *r)
{
    char *out = NULL;
    size_t len, n;
    FILE *f = open_memstream(&out, &len);
    for (size_t i = 0; i < trace_thread_count(r->trace); i++)
        for (size_t d = 0; d < trace_thread(r->trace, i)->depths; d++) {
            const struct span *s = trace_row(r->trace, i, d, &n);
            for (size_t k = 0; k < n; k++)
                fprintf(f, "%s ", functions_get(trace_functions(r->trace), s[k].fn)->name);
        }
    fclose(f);
    return out;
}

/* Wherever writing ended, in the middle of a line too: what is there is true. */
static void cut_anywhere(void **state)
{
    (void)state;
    static const char text[] = AT("100") "call  1010 alpha+0x10 (/lib/m) => 2000 beta+0x0 (/lib/m)\n"
                               AT("110") "return  2010 beta+0x10 (/lib/m) => 1015 alpha+0x15 (/lib/m)\n"
                               AT("120") "call  1020 alpha+0x20 (/lib/m) => 3000 gamma+0x12 (/lib/m)\n";
    size_t last = (size_t)(strrchr(text, 'p') - text);
    while (strncmp(text + last, "p 1/2", 5) != 0)
        last--;
    for (size_t len = last + 1; len < sizeof text - 1; len++) {
        char *part = strndup(text, len);
        struct recording *r = open_text(part);
        /* gamma is there with the bracket that ends its line, which is the last but for the newline. */
        bool whole = len == sizeof text - 2;
        char *got = rows(r, 0);
        if (strcmp(got, whole ? "alpha 100-120 se / beta 100-110, gamma 120-120 e" : "alpha 100-110 se / beta 100-110") != 0)
            fail_msg("%s\ngives %s", part, got);
        assert_false(has_note(r, "no offsets"));
        assert_int_equal(has_note(r, "partial: 1 line was not understood, the first is line 3: p 1"), !whole && len > last + 2);
        free(got);
        free(part);
        recording_free(r);
    }
}

/* Call chains: none that lost its outermost functions. */
static void chains_cut_anywhere(void **state)
{
    (void)state;
    static const struct open_options plain = {.stdin_fd = -1};
    static const char text[] = "p 1/2 1.000000: 1 cpu-clock: \n\t401000 inner+0x10 (/bin/m)\n\t402000 outer+0x20 (/bin/m)\n\n"
                               "p 1/2 1.001000: 1 cpu-clock: \n\t401000 inner+0x10 (/bin/m)\n\t402000 outer+0x20 (/bin/m)\n\n";
    char *dir = lib_mkdtemp(), path[300];
    snprintf(path, sizeof path, "%s/text", dir);
    for (size_t len = sizeof text / 2; len < sizeof text; len++) {
        struct recording *r = NULL;
        lib_write(path, text, len);
        assert_int_equal(open_recording(&r, path, &plain, NULL), 0);
        char *got = functions_seen(r);
        if (strcmp(got, "outer inner ") != 0)
            fail_msg("%.*s\ngives %s", (int)len, text, got);
        assert_int_equal(sample_log_count(r->samples), len == sizeof text - 1 ? 2 : 1);
        free(got);
        recording_free(r);
    }
    lib_rmdir(dir);
}

static void one_side_only(void **state)
{
    (void)state;
    static const struct open_options plain = {.stdin_fd = -1};
    static const char text[] = "p 1/2 5.0: branches:u: call 1010 work\np 1/2 5.1: branches:u: tr strt 0 [unknown]\n";
    char *dir = lib_mkdtemp(), path[300];
    struct recording *r = NULL;
    struct err err = {0};
    snprintf(path, sizeof path, "%s/text", dir);
    lib_write(path, text, sizeof text - 1);
    assert_int_equal(open_recording(&r, path, &plain, &err), MTUI_E_NOTSUP);
    assert_non_null(strstr(err.text, "perf script -F +addr"));
    lib_rmdir(dir);
}

/* ---- another tool's answer ---- */

struct total {
    uint64_t calls, ns;
};

/* All spans of a name; recursion does not occur in these texts. */
static struct total total_of(const struct recording *r, const char *name)
{
    struct total t = {0, 0};
    size_t n;
    for (size_t i = 0; i < trace_thread_count(r->trace); i++)
        for (size_t d = 0; d < trace_thread(r->trace, i)->depths; d++) {
            const struct span *s = trace_row(r->trace, i, d, &n);
            for (size_t k = 0; k < n; k++)
                if (strcmp(functions_get(trace_functions(r->trace), s[k].fn)->name, name) == 0) {
                    t.calls++;
                    t.ns += s[k].end_ns - s[k].start_ns;
                }
        }
    return t;
}

static struct recording *open_shared(const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "../shared/data/perf-script/%s.txt.gz", name);
    if (access(path, R_OK) != 0) {
        print_message("%s is not there\n", path);
        skip();
    }
    return open_path(path);
}

/* ours may have a span of no length more, or slack ns: the differences are explained where it is called. */
static size_t compare_functions(const struct recording *r, const char *name, uint64_t slack_ns)
{
    char path[300], line[300], function[200];
    size_t lines = 0;
    uint64_t calls = 0;
    snprintf(path, sizeof path, "../shared/data/perf-script/%s.functions.tsv", name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    for (; fgets(line, sizeof line, f); lines++) {
        struct total want, got;
        if (sscanf(line, "%" SCNu64 "\t%" SCNu64 "\t%199[^\n]", &want.calls, &want.ns, function) != 3)
            fail_msg("%s: %s", path, line);
        got = total_of(r, function);
        if (strcmp(function, "[syscall]") == 0)
            got.calls++; /* the last one, which ends the program: it has no length, and mtui no span for it */
        calls += want.calls;
        uint64_t apart = got.ns > want.ns ? got.ns - want.ns : want.ns - got.ns;
        if (got.calls != want.calls || apart > slack_ns)
            fail_msg("%s: %s: %" PRIu64 " calls, %" PRIu64 " ns, and not %" PRIu64 ", %" PRIu64, name, function,
                     got.calls, got.ns, want.calls, want.ns);
    }
    fclose(f);
    /* Nothing else in it. In page_fault, the text begins in a function that no other line tells of. */
    uint64_t more = strcmp(name, "page_fault") == 0 ? 1 : 0, less = total_of(r, "[syscall]").calls ? 1 : 0;
    assert_int_equal(trace_thread(r->trace, 0)->spans, calls + more - less);
    return lines;
}

static void functions_as_another_tool_found_them(void **state)
{
    (void)state;
    struct recording *r = open_shared("hello_world_userspace");
    assert_int_equal(compare_functions(r, "hello_world_userspace", 0), 126);
    recording_free(r);
    /* The other tool moves what comes right behind an error by a nanosecond. */
    r = open_shared("page_fault");
    assert_int_equal(compare_functions(r, "page_fault", 1), 51);
    size_t n;
    const struct gap *g = trace_gaps(r->trace, &n);
    assert_int_equal(n, 1);
    assert_true(g->cause == GAP_OVERFLOW && g->start_ns == 2472089651285037 && g->end_ns == 2472089651285037);
    recording_free(r);
}

/* Folded stacks of exact recordings weigh self time: all of them together are all that is inside of frames,
 * which is the length of the outermost ones. */
static void folded_stacks_are_the_time(void **state)
{
    (void)state;
    struct recording *r = open_text(
        AT("100") "tr strt" NOWHERE " => 1000 a+0x0 (m)\n" AT("110") "call 1010 a+0x10 (m) => 2000 b+0x0 (m)\n"
        AT("140") "return 2008 b+0x8 (m) => 1015 a+0x15 (m)\n" AT("150") "jmp 1020 a+0x20 (m) => 1030 a+0x30 (m)\n"
        "q 7/7 [002] 0.000000160: 1 cycles:u:\n\t1000 x+0x0 (m)\n\n");
    struct export_options o = {.format = EXPORT_FOLDED};
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    assert_int_equal(export_write(f, r->trace, r->samples, &o, NULL), 0);
    fclose(f);
    assert_string_equal(text, "a 20\na;b 30\n");
    free(text);
    assert_true(has_note(r, "also holds 1 sample, which is not shown"));
    recording_free(r);
}

static void a_decode_error_in_real_text(void **state)
{
    (void)state;
    struct recording *r = open_shared("memmove_decode_error");
    size_t n;
    const struct gap *g = trace_gaps(r->trace, &n);
    assert_int_equal(n, 1);
    assert_int_equal(g->cause, GAP_OVERFLOW);
    assert_int_equal(g->start_ns, 47170086912826);
    assert_int_equal(g->end_ns, 47170086912872);
    assert_int_equal(g->tid, 293415);
    assert_string_equal(g->detail, "Overflow packet, at 7ffff7327730");
    struct total t = total_of(r, "itch_bbo::book::Book::add_order");
    assert_int_equal(t.calls, 2); /* before and behind the gap */
    assert_int_equal(t.ns, 826 - 805 + 946 - 872);
    t = total_of(r, "__memmove_avx_unaligned_erms");
    assert_int_equal(t.calls, 3); /* a whole one, one that the gap ends, one that was running behind it */
    assert_int_equal(t.ns, 825 - 824 + 946 - 872);
    recording_free(r);
}

static void sampled_text_is_sampled(void **state)
{
    (void)state;
    static const char path[] = "../shared/data/perf-script/c_demo_sampling.txt.gz";
    static const struct open_options plain = {.stdin_fd = -1};
    struct recording *r = NULL;
    if (access(path, R_OK) != 0)
        skip();
    assert_int_equal(open_recording(&r, path, &plain, NULL), 0);
    assert_true(trace_info(r->trace)->sampled);
    recording_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_every_length),
        cmocka_unit_test(names_with_everything_in_them),
        cmocka_unit_test(time_is_spread_over_calls),
        cmocka_unit_test(tracing_that_stops),
        cmocka_unit_test(kernel_entries),
        cmocka_unit_test(what_ran_already),
        cmocka_unit_test(parts_out_of_the_way),
        cmocka_unit_test(processes_do_not_mix),
        cmocka_unit_test(errors_are_gaps),
        cmocka_unit_test(packets_become_marks),
        cmocka_unit_test(without_flag_words),
        cmocka_unit_test(only_calls),
        cmocka_unit_test(without_times_and_offsets),
        cmocka_unit_test(words_that_are_not_known),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(chains_cut_anywhere),
        cmocka_unit_test(one_side_only),
        cmocka_unit_test(functions_as_another_tool_found_them),
        cmocka_unit_test(folded_stacks_are_the_time),
        cmocka_unit_test(a_decode_error_in_real_text),
        cmocka_unit_test(sampled_text_is_sampled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
