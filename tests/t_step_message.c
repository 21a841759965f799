/* What goes between mtui and the step recorder as text: its lines, its command line, the list of sites. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/step/step_args.h"
#include "core/record/step_message.h"
#include "core/step/step_sites.h"
#include "core/step/step_anchors.h"
#include "core/session/snapshot_dir.h"
#include "core/step/step_orphan.h"
#include "lib_run.h"

static void lines_come_back(void **state)
{
    (void)state;
    char text[STEP_MESSAGE_MAX];
    struct step_message out, hit = {.kind = STEP_MESSAGE_HIT,
                                    .trigger = 3,
                                    .member = 14,
                                    .verdict = TRIGGER_BUSY,
                                    .tid = 1234,
                                    .address = 0x55c029eaf1a3,
                                    .arg1 = UINT64_MAX,
                                    .arg2 = 7,
                                    .clock = 1000000246,
                                    .perf_ns = 6213599760268};
    step_message_format(&hit, text);
    assert_string_equal(text, "[ mtui step: hit 3 14 6 1234 55c029eaf1a3 1000000246 6213599760268 "
                              "ffffffffffffffff 7 ]");
    assert_true(step_message_parse(text, strlen(text), &out));
    assert_memory_equal(&out, &hit, sizeof out);
    struct step_message at = {.kind = STEP_MESSAGE_AT, .clock = 5, .perf_ns = 6};
    step_message_format(&at, text);
    assert_true(step_message_parse(text, strlen(text), &out));
    assert_memory_equal(&out, &at, sizeof out);
    struct step_message window = {
        .kind = STEP_MESSAGE_WINDOW, .tid = 9, .instructions = 100, .wall_ns = 4000000};
    step_message_format(&window, text);
    assert_true(step_message_parse(text, strlen(text), &out));
    assert_memory_equal(&out, &window, sizeof out);
    struct step_message ended = {.kind = STEP_MESSAGE_ENDED,
                                 .tid = 9,
                                 .instructions = 100,
                                 .wall_ns = 4000000,
                                 .end = STEP_END_STARVED,
                                 .cut = true};
    step_message_format(&ended, text);
    assert_string_equal(text, "[ mtui step: ended 9 100 4000000 starved 1 ]");
    assert_true(step_message_parse(text, strlen(text), &out));
    assert_memory_equal(&out, &ended, sizeof out);
    struct step_message dropped = {.kind = STEP_MESSAGE_DROPPED, .threads = 12, .bytes = 65536};
    step_message_format(&dropped, text);
    assert_string_equal(text, "[ mtui step: dropped 12 65536 ]");
    assert_true(step_message_parse(text, strlen(text), &out));
    assert_memory_equal(&out, &dropped, sizeof out);
}

static void other_lines_are_no_message(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        "[ mtui step: ",
        "[ mtui step: hit 1 2 3 4",
        "[ mtui step: at 1 2 ] more",
        "[ mtui step: at 1 ]",
        "[ mtui step: ended 9 100 4000000 tired 0 ]",
        "[ mtui step: hit 0 0 99 1 0 0 0 0 0 ]",
        "[ perf record: Dump /x/perf.data.1 ]",
        "stepped thread 5: 3 instructions in 1 us, ended: returned",
    };
    struct step_message out = {.tid = 77};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_false(step_message_parse(lines[i], strlen(lines[i]), &out));
    assert_int_equal(out.tid, 77);
}

static void sites_come_back(void **state)
{
    (void)state;
    char *dir = run_temp_dir(), path[300];
    snprintf(path, sizeof path, "%s/sites", dir);
    struct step_site in[] = {
        {.path = (char[]){"/lib/a b\tc.so"}, .offset = 0x1234, .trigger = 0, .member = 3, .is_entry = true, .no_uprobe = true},
        {.path = (char[]){"/proc/1/map_files/1-2"}, .offset = 1, .trigger = 7}};
    struct step_site *out = NULL;
    size_t n = 9;
    struct err err;
    assert_int_equal(step_sites_read(path, &out, &n, &err), 0);
    assert_int_equal(n, 0);
    step_sites_free(out, n);
    assert_int_equal(step_sites_write(path, in, 2, &err), 0);
    assert_int_equal(step_sites_read(path, &out, &n, &err), 0);
    assert_int_equal(n, 2);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(out[i].path, in[i].path);
        assert_int_equal(out[i].offset, in[i].offset);
        assert_int_equal(out[i].trigger, in[i].trigger);
        assert_int_equal(out[i].member, in[i].member);
        assert_int_equal(out[i].is_entry, in[i].is_entry);
        assert_int_equal(out[i].no_uprobe, in[i].no_uprobe);
    }
    step_sites_free(out, n);
    run_write_file(path, "0\t0\tentry\tuprobe\t10\t/x\n0\t0\tentry\tsomehow\t10\t/x\n");
    assert_int_equal(step_sites_read(path, &out, &n, &err), MTUI_E_FORMAT);
    assert_non_null(strstr(err.text, "sites:2"));
    run_remove_tree(dir);
    free(dir);
}

static void expect_window(const struct step_anchor_window *w, pid_t tid, uint64_t start, uint64_t end,
                          uint64_t wall_ns, enum step_end why)
{
    assert_int_equal(w->tid, tid);
    assert_int_equal(w->start_clock, start);
    assert_int_equal(w->end_clock, end);
    assert_int_equal(w->wall_ns, wall_ns);
    assert_int_equal(w->why, why);
}

/* Two threads whose windows overlap, one without a beginning, and lines that are none. */
static void windows_come_back(void **state)
{
    (void)state;
    char *dir = run_temp_dir(), *path = xasprintf("%s/anchors.tsv", dir);
    struct step_anchor_window *w = NULL;
    size_t n = 9;
    FILE *f = NULL;
    assert_int_equal(step_anchors_read(path, &w, &n, NULL), 0);
    assert_int_equal(n, 0);
    assert_int_equal(step_anchors_create(&f, path, NULL), 0);
    step_anchors_begin(f, &(struct step_anchor){.clock = 100, .perf_ns = 7, .tid = 1});
    step_anchors_begin(f, &(struct step_anchor){.clock = 150, .tid = 2});
    step_anchors_syscall(f, &(struct step_anchor){.clock = 160, .tid = 2, .wall_ns = 5}, 230);
    step_anchors_end(f, &(struct step_anchor){.clock = 200, .tid = 1, .wall_ns = 9}, STEP_END_RETURNED);
    step_anchors_end(f, &(struct step_anchor){.clock = 300, .tid = 2}, STEP_END_TIME);
    step_anchors_end(f, &(struct step_anchor){.clock = 400, .tid = 1}, STEP_END_EXITED);
    fputs("500\t0\t1\tend:tired\t0\nend\n\n600\t0\t1\tend:exited", f);
    fclose(f);
    char *text = run_read_file(path, NULL);
    assert_non_null(strstr(text, "\n100\t7\t1\tbegin\t0\n150\t0\t2\tbegin\t0\n160\t0\t2\tsyscall:230\t5\n"
                                 "200\t0\t1\tend\t9\n300\t0\t2\tend:time\t0\n"));
    assert_int_equal(step_anchors_read(path, &w, &n, NULL), 0);
    assert_int_equal(n, 3);
    expect_window(&w[0], 1, 100, 200, 9, STEP_END_RETURNED);
    expect_window(&w[1], 2, 150, 300, 0, STEP_END_TIME);
    expect_window(&w[2], 1, 0, 400, 0, STEP_END_EXITED);
    free(w);
    free(text);
    free(path);
    run_remove_tree(dir);
    free(dir);
}

/* Files go where snapshots are looked for, behind those that are there. */
static void orphans_are_kept(void **state)
{
    (void)state;
    char *dir = run_temp_dir(), *output = xasprintf("%s/perf.data", dir), path[300];
    snprintf(path, sizeof path, "%s/snap-3", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s.2", output);
    run_write_file(path, "two");
    snprintf(path, sizeof path, "%s.5", output);
    run_write_file(path, "five");
    step_orphan_keep(output, 5);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/snap-%d/perf.data", dir, 4 + i);
        char *text = run_read_file(path, NULL);
        assert_string_equal(text, i ? "five" : "two");
        free(text);
    }
    run_remove_tree(dir);
    free(output);
    free(dir);
}

/* mtui is killed between a hit and its snapshot: the hit is a row of hits.tsv all the same. */
static void an_orphans_hit_is_kept(void **state)
{
    (void)state;
    for (int with_data = 0; with_data < 2; with_data++) {
        char *parent = run_temp_dir(), *dir = xasprintf("%s/d", parent), *output = xasprintf("%s/perf.data", dir);
        struct snapshot_dir *d = NULL;
        struct snapshot_hit *hits = NULL;
        struct snapshot_hit busy = {.time_ns = 1500, .tid = 78, .trigger = (char[]){"other"}};
        struct snapshot_hit hit = {.time_ns = 1234, .tid = 77, .trigger = (char[]){"a b\tc"}, .address = 0x401000,
                                   .arg1 = 7, .arg2 = 8, .duration_ns = 9,
                                   .function = (char[]){"f(a\tb)"}};
        size_t n = 0, bad = 1;
        assert_int_equal(snapshot_dir_create_at(&d, dir, NULL), 0);
        assert_int_equal(snapshot_dir_open_hit(d, &hit, NULL), 0);
        assert_int_equal(snapshot_dir_add_hit(d, &busy, NULL), 0);
        if (with_data)
            run_write_file(output, "window");
        step_orphan_keep(output, 0);
        step_orphan_keep(output, 0); /* once is enough */
        char *path = xasprintf("%s/hits.tsv", dir), *text = run_read_file(path, NULL);
        char want[300];
        snprintf(want, sizeof want, "time_ns\ttid\ttrigger\taddress\targ1\targ2\tduration_ns\tsnapshot\n"
                 "1500\t78\tother\t0\t0\t0\t0\t0\n"
                 "1234\t77\ta b\\tc\t401000\t7\t8\t9\t%d\tfunction=f(a\\tb)\n", with_data);
        assert_string_equal(text, want);
        assert_int_equal(snapshot_dir_read_hits(d, &hits, &n, &bad, NULL), 0);
        assert_int_equal(n, 2);
        assert_int_equal(bad, 0);
        assert_int_equal(hits[0].snapshot, with_data);
        snapshot_dir_free_hits(hits, n);
        snapshot_dir_close(d);
        free(text);
        free(path);
        run_remove_tree(parent);
        free(output);
        free(dir);
        free(parent);
    }
}

static void *stay(void *arg)
{
    (void)arg;
    for (;;)
        pause();
    return NULL;
}

/* In a child of a process whose first thread ends at go, and another does not: what it finds goes to fd. */
static void look_around(pid_t parent, int go, int fd)
{
    sigset_t set;
    struct timespec soon = {20, 0};
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    char found[4];
    found[0] = step_orphan_are_we(parent, -1) ? 'y' : 'n';
    found[1] = write(go, "g", 1) == 1 && sigtimedwait(&set, NULL, &soon) == SIGTERM ? 'y' : 'n';
    found[2] = getppid() == parent ? 'y' : 'n';
    found[3] = step_orphan_are_we(parent, -1) ? 'y' : 'n';
    _exit(write(fd, found, 4) == 4 ? 0 : 1);
}

/* As when mtui is killed: its first thread ends before the others, and PR_SET_PDEATHSIG comes then. */
static void the_first_thread_ends(void **state)
{
    (void)state;
    int fds[2];
    char found[5] = "", c;
    assert_int_equal(pipe(fds), 0);
    pid_t parent = fork();
    if (parent == 0) {
        int go[2];
        pthread_t other;
        pid_t self = getpid();
        if (pipe(go) != 0)
            _exit(1);
        if (fork() == 0)
            look_around(self, go[1], fds[1]);
        close(fds[1]);
        pthread_create(&other, NULL, stay, NULL);
        if (read(go[0], &c, 1) == 1)
            pthread_exit(NULL);
        _exit(1);
    }
    close(fds[1]);
    size_t n = 0;
    for (ssize_t got; n < 4 && (got = read(fds[0], found + n, 4 - n)) > 0;)
        n += (size_t)got;
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    close(fds[0]);
    assert_string_equal(found, "nyyy");
}

/* Whoever holds the other end of the pipe is gone. */
static void the_pipe_ends(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    assert_false(step_orphan_are_we(getppid(), fds[0]));
    close(fds[1]);
    assert_true(step_orphan_are_we(getppid(), fds[0]));
    close(fds[0]);
    assert_true(step_orphan_are_we(getpid(), -1));
}

static void a_plan_becomes_options(void **state)
{
    (void)state;
    const pid_t pid = 4242, tids[] = {4243, 4244};
    struct trigger_conditions when = {.hits = 3, .hold_off_ns = 5, .max_snapshots = 2};
    struct record_plan plan = {.recorder = PLAN_STEP,
                               .mode = PLAN_TRIGGER,
                               .pids = &pid,
                               .n_pids = 1,
                               .tids = tids,
                               .n_tids = 2,
                               .ring_bytes = 1 << 20,
                               .output_dir = "/d"};
    struct step_args_extra extra = {.program = "mtui", .at_sites = true, .when = &when};
    struct plan_argv argv = {0};
    struct step_args a;
    struct err err;
    assert_int_equal(step_args_build(&plan, &extra, &argv, &err), 0);
    assert_string_equal(argv.data[1], STEP_ARGS_COMMAND);
    assert_int_equal(step_args_parse((int)argv.len - 1, argv.data + 1, &a, &err), 0);
    const struct step_recorder_options *o = &a.options;
    assert_int_equal(o->tracer.pid, 4242);
    assert_int_equal(o->tracer.n_tids, 2);
    assert_int_equal(o->tracer.tids[1], 4244);
    assert_true(o->tracer.at_sites);
    assert_false(o->tracer.from_exec);
    assert_int_equal(o->tracer.budget, STEP_DEFAULT_BUDGET);
    assert_int_equal(o->tracer.ring_bytes, 1 << 20);
    assert_string_equal(o->sites, "/d/sites");
    assert_string_equal(o->output, "/d/perf.data");
    assert_int_equal(o->when.hits, 3);
    assert_int_equal(o->when.hold_off_ns, 5);
    assert_int_equal(o->when.max_snapshots, 2);
    assert_false(o->one_file);
    step_args_free(&a);
    plan_argv_free(&argv);

    plan.mode = PLAN_WHOLE;
    extra = (struct step_args_extra){.program = "mtui", .from_exec = true, .when = &when};
    assert_int_equal(step_args_build(&plan, &extra, &argv, &err), 0);
    assert_int_equal(step_args_parse((int)argv.len - 1, argv.data + 1, &a, &err), 0);
    assert_true(a.options.one_file);
    assert_true(a.options.tracer.from_exec);
    assert_int_equal(a.options.tracer.ring_bytes, 0);
    assert_int_equal(a.options.tracer.budget, 0);
    step_args_free(&a);
    plan_argv_free(&argv);
}

static void what_it_cannot_do_is_refused(void **state)
{
    (void)state;
    const pid_t pids[] = {1, 2};
    struct trigger_conditions when = {0};
    struct record_plan plan = {
        .recorder = PLAN_STEP, .pids = pids, .n_pids = 2, .output_dir = "/d"};
    struct step_args_extra extra = {.program = "mtui", .when = &when};
    struct plan_argv argv = {0};
    struct step_args a;
    struct err err;
    assert_int_equal(step_args_build(&plan, &extra, &argv, &err), MTUI_E_NOTSUP);
    plan.n_pids = 1;
    plan.kernel = true;
    assert_int_equal(step_args_build(&plan, &extra, &argv, &err), MTUI_E_NOTSUP);
    plan.kernel = false;
    plan.children = true;
    assert_int_equal(step_args_build(&plan, &extra, &argv, &err), MTUI_E_NOTSUP);
    assert_int_equal(argv.len, 0);
    char *bad[] = {(char[]){"x"}, (char[]){"--pid"}, (char[]){"none"}};
    assert_int_equal(step_args_parse(3, bad, &a, &err), MTUI_E_INVAL);
    step_args_free(&a);
    assert_int_equal(step_args_parse(1, bad, &a, &err), MTUI_E_INVAL);
    step_args_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_back),      cmocka_unit_test(other_lines_are_no_message),
        cmocka_unit_test(sites_come_back),      cmocka_unit_test(windows_come_back), cmocka_unit_test(orphans_are_kept),
        cmocka_unit_test(an_orphans_hit_is_kept),
        cmocka_unit_test(the_first_thread_ends), cmocka_unit_test(the_pipe_ends),
      cmocka_unit_test(a_plan_becomes_options),
        cmocka_unit_test(what_it_cannot_do_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
