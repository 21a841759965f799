/* core/machine/proc*: /proc parsed, with names that attack the parser, and real children. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/machine/proc.h"
#include "core/machine/proc_access.h"

/* A stat line by the field order of proc_pid_stat(5): flags, utime, stime, threads, start, rss given. */
#define STAT(pid, comm, state, flags, ut, st, thr, start, rss)                                      \
    pid " (" comm ") " state " 1 1 1 0 -1 " flags " 0 0 0 0 " ut " " st " 0 0 20 0 " thr            \
        " 0 " start " 1000000 " rss                                                                 \
        " 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 0\n"

static void field_F4_F16_stat_lines(void **state)
{
    (void)state;
    struct proc_stat s;
    const char *plain = STAT("42", "cat", "R", "4194304", "7", "5", "3", "9000", "25");
    assert_int_equal(proc_stat_parse(plain, strlen(plain), &s, NULL), 0);
    assert_int_equal(s.pid, 42);
    assert_string_equal(s.comm, "cat");
    assert_int_equal(s.state, 'R');
    assert_int_equal(s.ppid, 1);
    assert_int_equal(s.cpu_ticks, 12);
    assert_int_equal(s.threads, 3);
    assert_int_equal(s.start_ticks, 9000);
    assert_int_equal(s.rss_pages, 25);
    assert_int_equal(s.cpu, 3);
    assert_false(s.kernel_thread);

    const char *evil = STAT("43", "a) R 1 (\n\x1b[2J)", "S", "2097216", "0", "0", "1", "1", "0");
    assert_int_equal(proc_stat_parse(evil, strlen(evil), &s, NULL), 0);
    assert_string_equal(s.comm, "a) R 1 (\n\x1b[2J)");
    assert_int_equal(s.state, 'S');
    assert_true(s.kernel_thread);

    const char *wrong[] = {"", "42", "42 (x", "42 (x)", "42 (x) R", "(x) R 1 1", "-3 (x) R 1 2 3"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(proc_stat_parse(wrong[i], strlen(wrong[i]), &s, NULL), MTUI_E_FORMAT);
    for (size_t n = 0; n < strlen(plain); n++) {
        char cut[400];
        memcpy(cut, plain, n);
        cut[n] = '\0';
        proc_stat_parse(cut, n, &s, NULL); /* must not read beyond: the sanitizer watches */
    }
}

struct tree {
    char root[64];
};

static void put(const struct tree *t, const char *rel, const char *text, size_t len)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", t->root, rel);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fwrite(text, 1, len, f);
    fclose(f);
}

static void add_process(const struct tree *t, const char *pid, const char *stat, const char *cmdline,
                        size_t cmdline_len)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", t->root, pid);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/stat", pid);
    put(t, path, stat, strlen(stat));
    snprintf(path, sizeof path, "%s/status", pid);
    const char *status = "Name:\tx\nUid:\t65534\t65534\t65534\t65534\n";
    put(t, path, status, strlen(status));
    snprintf(path, sizeof path, "%s/cmdline", pid);
    put(t, path, cmdline, cmdline_len);
}

static int unlink_one(const char *path, const struct stat *sb, int flag, struct FTW *ftw)
{
    (void)sb, (void)flag, (void)ftw;
    return remove(path);
}

static void tree_remove(const struct tree *t)
{
    nftw(t->root, unlink_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void tree_make(struct tree *t)
{
    strcpy(t->root, "/tmp/mtui-proc-XXXXXX");
    assert_non_null(mkdtemp(t->root));
    put(t, "uptime", "200.00 100.00\n", 14);
}

static void field_F16_a_pid_used_again_is_a_new_row(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    long hz = sysconf(_SC_CLK_TCK);
    assert_int_equal(hz, 100); /* the ticks below assume it */
    add_process(&t, "300", STAT("300", "b", "R", "0", "1000", "0", "2", "10000", "16"), "b\0-x\0y z\0",
                9);
    add_process(&t, "20", STAT("20", "kworker/0:1", "I", "2097152", "0", "0", "1", "5", "0"), "", 0);
    struct proc_table *p = proc_table_new(t.root);
    struct err err;
    assert_int_equal(proc_table_refresh(p, 1000000000u, &err), 0);
    assert_int_equal(proc_table_count(p), 2);
    const struct proc *k = proc_table_at(p, 0), *b = proc_table_at(p, 1);
    assert_int_equal(k->stat.pid, 20);
    assert_int_equal(k->trace, PROC_TRACE_KERNEL);
    assert_string_equal(proc_syms_name(k->syms), "kernel");
    assert_string_equal(k->command, "[kworker/0:1]");
    assert_string_equal(b->command, "b -x y z");
    assert_int_equal(b->uid, 65534);
    assert_int_equal(b->age_s, 100); /* up 200 s, started at 100 s */
    assert_int_equal(b->cpu_permille, 100); /* 10 s used in its 100 s of life */
    assert_int_equal(b->rss_bytes, 16 * sysconf(_SC_PAGESIZE));

    /* half a second of CPU in the next second */
    add_process(&t, "300", STAT("300", "b", "R", "0", "1050", "0", "2", "10000", "16"), "b\0", 2);
    assert_int_equal(proc_table_refresh(p, 2000000000u, &err), 0);
    b = proc_table_find(p, 300);
    assert_int_equal(b->cpu_permille, 500);
    assert_int_equal(b->history_len, 2);

    /* the pid is used again: another process, whose counters start anew */
    add_process(&t, "300", STAT("300", "c", "R", "0", "10", "0", "1", "19900", "16"), "c\0", 2);
    assert_int_equal(proc_table_refresh(p, 3000000000u, &err), 0);
    b = proc_table_find(p, 300);
    assert_string_equal(b->command, "c");
    assert_int_equal(b->history_len, 1);
    assert_int_equal(b->cpu_permille, 100); /* 0.1 s in 1 s of life */

    char path[128];
    snprintf(path, sizeof path, "%s/300/stat", t.root);
    remove(path); /* it vanishes in the middle of a scan */
    assert_int_equal(proc_table_refresh(p, 4000000000u, &err), 0);
    assert_null(proc_table_find(p, 300));
    assert_int_equal(proc_table_count(p), 1);
    proc_table_free(p);
    tree_remove(&t);
}

static void waiting_is_summed_over_threads(void **state)
{
    (void)state;
    struct tree t;
    tree_make(&t);
    char path[128];
    const char *const dirs[] = {"300", "300/task", "300/task/300", "300/task/301", "300/task/302"};
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        snprintf(path, sizeof path, "%s/%s", t.root, dirs[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    assert_int_equal(proc_wait_ns(t.root, 300), 0); /* a kernel that does not tell */
    put(&t, "300/task/300/schedstat", "5000 70000000000 12\n", 20);
    put(&t, "300/task/302/schedstat", "1 23 4\n", 7);
    assert_true(proc_wait_ns(t.root, 300) == 70000000023u);
    assert_int_equal(proc_wait_ns(t.root, 301), 0);
    tree_remove(&t);
}

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void a_real_child(void **state)
{
    (void)state;
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, ") \n\x1b[31m");
        close(ready[0]);
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    char c;
    assert_int_equal(read(ready[0], &c, 1), 1);
    struct proc_table *p = proc_table_new("/proc");
    assert_int_equal(proc_table_refresh(p, now_ns(), NULL), 0);
    const struct proc *me = proc_table_find(p, getpid()), *kid = proc_table_find(p, child);
    assert_non_null(me);
    assert_non_null(kid);
    assert_int_equal(me->trace, PROC_TRACE_SELF);
    assert_int_equal(kid->stat.ppid, getpid());
    assert_int_equal(kid->uid, getuid());
    assert_string_equal(kid->stat.comm, ") \n\x1b[31m");
    assert_int_equal(kid->syms, PROC_SYMS_DEBUG); /* this very test program */
    struct proc_stat *threads;
    assert_int_equal(proc_threads("/proc", child, &threads, NULL), 1);
    assert_int_equal(threads[0].pid, child);
    free(threads);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    struct err err;
    assert_int_equal(proc_threads("/proc", child, &threads, &err), MTUI_E_GONE);
    assert_int_equal(proc_table_refresh(p, now_ns(), NULL), 0);
    assert_null(proc_table_find(p, child));
    proc_table_free(p);
    close(ready[0]);
    close(ready[1]);
}

/* Processes are born and gone while the table is read again and again: no error, no row of the dead, and
 * memory does not grow with those that have been. */
static void field_F16_a_storm_of_short_processes(void **state)
{
    (void)state;
    enum { STORM = 4000 };
    pid_t storm = fork();
    if (storm == 0) {
        for (int i = 0; i < STORM; i++) {
            pid_t p = vfork();
            if (p == 0)
                _exit(0);
            waitpid(p, NULL, 0);
        }
        _exit(0);
    }
    struct proc_table *p = proc_table_new("/proc");
    struct err err = {0};
    int status = 0, scans = 0;
    size_t most = 0;
    do {
        if (proc_table_refresh(p, now_ns(), &err) < 0)
            fail_msg("%s", err.text);
        size_t n = proc_table_count(p);
        most = n > most ? n : most;
        for (size_t i = 1; i < n; i++)
            assert_true(proc_table_at(p, i - 1)->stat.pid < proc_table_at(p, i)->stat.pid);
        scans++;
    } while (waitpid(storm, &status, WNOHANG) == 0);
    assert_int_equal(status, 0);
    assert_int_equal(proc_table_refresh(p, now_ns(), &err), 0);
    assert_null(proc_table_find(p, storm));
    print_message("%d processes, %d scans, at most %zu rows\n", STORM, scans, most);
    assert_true(most < STORM / 2);
    proc_table_free(p);
}

static void field_F17_a_process_of_another_user(void **state)
{
    (void)state;
    if (getuid() != 0) {
        print_message("[  SKIPPED ] a_process_of_another_user: needs root to become nobody\n");
        skip();
    }
    /* nobody looks at a process of root's */
    pid_t target = fork();
    if (target == 0)
        for (;;)
            pause();
    pid_t looker = fork();
    if (looker == 0) {
        if (setgid(65534) || setuid(65534))
            _exit(9);
        struct proc_table *p = proc_table_new("/proc");
        proc_table_refresh(p, now_ns(), NULL);
        const struct proc *k = proc_table_find(p, target);
        char why[160] = "";
        if (k)
            proc_trace_reason(k, why, sizeof why);
        int ok = k && k->trace == PROC_TRACE_NO_PERM && strstr(why, "CAP_PERFMON");
        proc_table_free(p);
        _exit(ok ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(looker, &status, 0), looker);
    kill(target, SIGKILL);
    waitpid(target, NULL, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_F4_F16_stat_lines),
        cmocka_unit_test(field_F16_a_pid_used_again_is_a_new_row),
        cmocka_unit_test(waiting_is_summed_over_threads),
        cmocka_unit_test(a_real_child),
        cmocka_unit_test(field_F16_a_storm_of_short_processes),
        cmocka_unit_test(field_F17_a_process_of_another_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
