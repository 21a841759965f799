/* What must not grow out of hand: processes, time and memory with the size of a recording. Times
 * are of the CPU, the best of several, so that a busy machine does not count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/symbols/dwarf_line.h"
#include "core/symbols/elf_file.h"
#include "decode/open/open.h"
#include "decode/text/perf_text.h"
#include "tests/lib_gentrace.h"
#include "tests/lib_perf.h"
#include "tests/lib_perfwriter.h"
#include "tui/term/glyph.h"
#include "tui/ui/model.h"
#include "tui/timeline/timeline.h"
#include "tui/timeline/v_timeline.h"

#if defined(__SANITIZE_ADDRESS__)
#define SLOWER 20 /* what the sanitizers cost at most */
#else
#define SLOWER 1
#endif

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- Processes ---- */

/* From now on a new process or program ends us by SIGSYS; threads do not. */
static int forbid_processes(void)
{
#define KILL_AT(nr)                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),                                                 \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        KILL_AT(SYS_execve),
        KILL_AT(SYS_execveat),
        KILL_AT(SYS_fork),
        KILL_AT(SYS_vfork),
        /* Its flags lie in memory: the C library takes clone instead. */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Names of all samples, and the source lines of a whole program. */
static int read_all(const char *data, const char *program)
{
    struct recording *r = NULL;
    struct elf_file *f = NULL;
    struct dwarf_lines *lines = NULL;
    struct err err = {0};
    size_t known = 0, named = 0;
    if (open_recording(&r, data, &(struct open_options){.stdin_fd = -1}, &err) < 0)
        return 3;
    for (size_t i = 0; i < functions_count(trace_functions(r->trace)); i++)
        named += strcmp(functions_get(trace_functions(r->trace), (fn_id)i)->name, "spin") == 0;
    recording_free(r);
    if (elf_file_open_path(program, &f, &err) < 0 || dwarf_lines_open(f, NULL, &lines, &err) < 0)
        return 4;
    for (uint64_t vaddr = 0x1000; vaddr < 0x4000; vaddr++) {
        struct source_pos pos;
        known += dwarf_lines_at(lines, vaddr, &pos);
    }
    dwarf_lines_free(lines);
    elf_file_free(f);
    return named > 0 && known > 100 ? 0 : 5;
}

static void field_G1_no_process_for_names_and_lines(void **state)
{
    (void)state;
    if (!lib_perf_works())
        skip();
    char *dir = lib_mkdtemp(), path[300];
    int status = 1;
    snprintf(path, sizeof path, "%s/perf.data", dir);
    free(lib_run(&status, NULL, "%s record -q -o %s -e cpu-clock:u -F 2000 -g -- %s 20 2>&1",
                 lib_perf(), path, lib_tool("forker")));
    assert_int_equal(status, 0);
    pid_t child = fork();
    if (child == 0)
        _exit(forbid_processes() != 0 ? 2 : read_all(path, lib_tool("forker")));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status)); /* by SIGSYS: it started one */
    assert_int_equal(WEXITSTATUS(status), 0);
    lib_rmdir(dir);
}

/* ---- Text ---- */

static int count_branch(void *arg, const struct perf_text_event *ev)
{
    *(size_t *)arg += ev->kind == PERF_TEXT_BRANCH;
    return 0;
}

static void field_G2_a_million_branch_lines_a_second(void **state)
{
    (void)state;
    enum { LINES = 100000 };
    char *text = malloc(LINES * 250u), *p = text;
    for (unsigned i = 0; i < LINES; i++)
        p += sprintf(
            p,
            "demo 30549/30549 [001] %u.938460812:   1    branches:uH:   %-15s     7ffff7ddc%03x "
            "std::map<int, foo>::find(int const&)+0x%x (/usr/lib64/ld-2.17.so) =>     7ffff7ddc850 "
            "_dl_start+0x0 (/usr/lib64/ld-2.17.so)\n",
            174427 + i, i % 3 ? "jcc" : "tr end  call", i % 4096, i % 64);
    double best = 0;
    for (int i = 0; i < 10 && best < 1e6; i++) {
        size_t n = 0;
        double from = cpu_s();
        struct perf_text *t = perf_text_new(count_branch, &n);
        assert_int_equal(perf_text_feed(t, text, (size_t)(p - text)), 0);
        assert_int_equal(perf_text_end(t), 0);
        perf_text_free(t);
        assert_int_equal(n, LINES);
        double rate = LINES / (cpu_s() - from) * SLOWER;
        best = rate > best ? rate : best;
    }
    print_message("%.2f M branch lines a second\n", best / 1e6);
    assert_true(best >= 1e6);
    free(text);
}

/* ---- Sizes ---- */

/* The records of a file stand behind its first five gigabytes. */
static void field_G3_offsets_beyond_32_bits(void **state)
{
    (void)state;
    const uint64_t far = UINT64_C(5) << 30;
    char *dir = lib_mkdtemp(), path[300];
    struct perf_writer w = pw_file(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME);
    pw_comm(&w, 7, 7, "far", 0, 1000);
    for (unsigned i = 0; i < 100; i++)
        pw_sample_ip(&w, 7, 0x401000, 2000 + i * 1000);
    pw_finish(&w);
    memcpy(w.data + w.data_size_at - 8, &far, 8); /* where the data begins stands before its size */
    snprintf(path, sizeof path, "%s/perf.data", dir);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, w.data, w.data_start, 0), w.data_start);
    ssize_t rest = (ssize_t)(w.len - w.data_start);
    assert_int_equal(pwrite(fd, w.data + w.data_start, (size_t)rest, (off_t)far), rest);
    close(fd);
    struct recording *r = NULL;
    struct err err = {0};
    if (open_recording(&r, path, &(struct open_options){.stdin_fd = -1}, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(sample_log_count(r->samples), 100);
    assert_int_equal(trace_info(r->trace)->last_ns, 101000);
    assert_string_equal(trace_thread(r->trace, 0)->comm, "far");
    recording_free(r);
    pw_free(&w);
    lib_rmdir(dir);
}

static void field_G4_keys_with_a_thousand_threads(void **state)
{
    (void)state;
    static const enum action keys[] = {ACT_DOWN,     ACT_ZOOM_IN,   ACT_PAN_RIGHT, ACT_THREAD_NEXT,
                                       ACT_ZOOM_IN,  ACT_PAGE_DOWN, ACT_COLLAPSE,  ACT_CALLEE,
                                       ACT_ZOOM_OUT, ACT_ZOOM_ALL};
    struct model *m = model_new(NULL, NULL);
    m->glyphs = glyphs_of(GLYPHS_UNICODE);
    struct surface *s = surface_new(60, 200);
    struct timeline *tl = view_timeline.create(m);
    struct trace *t = gentrace_random(&(struct gentrace){.spans = 1000000,
                                                         .threads = 1000,
                                                         .depth = 30,
                                                         .functions = 500,
                                                         .gaps = 1000,
                                                         .marks = 100,
                                                         .base_ns = 1000,
                                                         .step_ns = 300,
                                                         .seed = 9});
    model_set_trace(m, t, "snap 1", NULL, NULL);
    view_timeline.changed(tl, MODEL_TRACE);
    double worst = 0;
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        double best = 1e9;
        for (int i = 0; i < 5; i++) {
            double from = cpu_s();
            view_timeline.action(tl, keys[k], NULL);
            surface_clear(s);
            view_timeline.draw(tl, s, (struct rect){1, 0, 57, 200});
            double took = (cpu_s() - from) / SLOWER;
            best = took < best ? took : best;
        }
        worst = best > worst ? best : worst;
    }
    print_message("a key and its frame: at most %.1f ms\n", worst * 1e3);
    assert_true(worst < 0.05);
    view_timeline.destroy(tl);
    model_free(m);
    surface_free(s);
    trace_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_G1_no_process_for_names_and_lines),
        cmocka_unit_test(field_G2_a_million_branch_lines_a_second),
        cmocka_unit_test(field_G3_offsets_beyond_32_bits),
        cmocka_unit_test(field_G4_keys_with_a_thousand_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
