/* The whole job on a terminal, with the real perf: attach, a hit, a snapshot by trigger and by key,
 * the timeline; and perf, target and mtui killed in the middle of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "tests/lib_pty.h"
#include "tests/lib_run.h"

#define SOON 100000 /* ms: a deadline, not a delay; machines under test stand still for seconds */

struct bench {
    char *tmp, *state_env;
    struct run_child target;
    struct pty *p;
};

static bool can_record(void)
{
    int status;
    free(run_output("perf record -q -e cpu-clock -o /dev/null true 2>/dev/null", &status));
    return status == 0 && geteuid() == 0 &&
           access("/sys/bus/event_source/devices/uprobe/type", R_OK) == 0;
}

static char *path_in(const struct bench *b, const char *name)
{
    return xasprintf("%s/%s", b->tmp, name);
}

/* mtui attached to a fresh target, with a trigger that fires once; script: a : command a line, in
 * which %s is the directory for screens. */
static void start(struct bench *b, const char *script)
{
    char line[64];
    const char *build = getenv("MTUI_BUILD");
    char *tool = run_tool("batch_target");
    char *mtui = xasprintf("%s/mtui", build ? build : "build/release");
    b->tmp = run_temp_dir();
    b->state_env = xasprintf("XDG_STATE_HOME=%s", b->tmp);
    b->target = run_start((char *[]){tool, NULL});
    assert_non_null(fgets(line, sizeof line, b->target.out)); /* "serving" */
    char *pid = xasprintf("%ld", (long)b->target.pid), *path = path_in(b, "script");
    char *text = xcalloc(1, strlen(script) + 8 * strlen(b->tmp) + 1);
    for (const char *p = script; *p; p++) {
        if (p[0] == '%' && p[1] == 's')
            strcat(text, b->tmp), p++;
        else
            strncat(text, p, 1);
    }
    run_write_file(path, text);
    const char *env[] = {b->state_env, "TZ=UTC", NULL};
    char *argv[] = {mtui,
                    (char[]){"attach"},
                    (char[]){"-p"},
                    pid,
                    (char[]){"-t"},
                    (char[]){"handle_request"},
                    (char[]){"--hold-off"},
                    (char[]){"1h"},
                    (char[]){"--script"},
                    path,
                    NULL};
    b->p = pty_start(env, argv, 30, 100);
    free(text);
    free(path);
    free(pid);
    free(mtui);
    free(tool);
}

static void wait_for(struct bench *b, const char *text)
{
    if (!pty_wait(b->p, text, SOON))
        fail_msg("no '%s' (program %d, shell %d) in: %s", text, kill(b->p->program, 0),
                 kill(b->p->shell, 0),
                 b->p->text + (b->p->text_len > 3000 ? b->p->text_len - 3000 : 0));
}

static bool is_alive(pid_t pid)
{
    return kill(pid, 0) == 0 && waitpid(pid, NULL, WNOHANG) == 0;
}

/* Perf processes that record the target. */
static bool no_perf(void *arg)
{
    struct bench *b = arg;
    char *command = xasprintf("pgrep -f 'record .*-p %ld$' || true", (long)b->target.pid);
    char *out = run_output(command, NULL);
    bool none = !*out;
    free(out);
    free(command);
    return none;
}

static void kill_perf(struct bench *b)
{
    char *command = xasprintf("pkill -9 -f 'record .*-p %ld$'", (long)b->target.pid);
    int status;
    free(run_output(command, &status));
    assert_int_equal(status, 0);
    free(command);
}

static void tear_down(struct bench *b, bool target_lives)
{
    pty_free(b->p);
    assert_true(run_until(no_perf, b, SOON / 1000));
    if (target_lives) {
        assert_true(is_alive(b->target.pid));
        run_kill(&b->target);
    } else {
        close(b->target.in);
        fclose(b->target.out);
    }
    run_remove_tree(b->tmp);
    free(b->tmp);
    free(b->state_env);
}

static void assert_screen(struct bench *b, const char *name, const char *const *texts)
{
    char *path = path_in(b, name), *screen = run_read_file(path, NULL);
    assert_non_null(screen);
    for (; *texts; texts++)
        if (!strstr(screen, *texts))
            fail_msg("no '%s' on\n%s", *texts, screen);
    free(screen);
    free(path);
}

static void field_A16_B3_whole_job_without_the_picker(void **state)
{
    (void)state;
    struct bench b;
    if (!can_record())
        skip();
    start(&b, "wait armed 100s\n"
              "wait hits 1 100s\n"
              "wait snapshots 1 100s\n"
              "snapshot\n"
              "wait snapshots 2 100s\n"
              "wait decoded 2 100s\n"
              "save-screen %s/recording\n"
              "start-stop\n"
              "wait ended 100s\n"
              "save-screen %s/ended\n"
              "key 4\n"
              "wait text \"Enter on one opens it\" 100s\n"
              "key 3\n"
              "first\n"
              "enter\n"
              "wait screen timeline 100s\n"
              "wait text handle_request 100s\n"
              "save-screen %s/timeline\n"
              "quit\n");
    wait_for(&b, "<<EXIT 0 modes=same>>");
    assert_screen(&b, "recording",
                  (const char *const[]){"[ENABLED]", "perf pid", "Heartbeat", "handle_request",
                                        "[hits ", "from the last hit to the command", " key ",
                                        "done ", "REC", NULL});
    assert_screen(&b, "ended", (const char *const[]){"[ENDED]", "stopped, as asked for", NULL});
    assert_screen(&b, "timeline",
                  (const char *const[]){"SAMPLED", "snap 1", "handle_request", NULL});
    tear_down(&b, true);
}

/* A script says with a file that it has come to a point. */
static bool has_mark(void *arg)
{
    struct bench *b = arg;
    char *path = path_in(b, "mark");
    bool yes = access(path, F_OK) == 0;
    free(path);
    pty_pump(b->p, 5);
    return yes;
}

static void wait_mark(struct bench *b)
{
    if (!run_until(has_mark, b, SOON / 1000))
        fail_msg("the script stopped: %s",
                 b->p->text + (b->p->text_len > 300 ? b->p->text_len - 300 : 0));
}

static void field_A8_perf_killed(void **state)
{
    (void)state;
    struct bench b;
    if (!can_record())
        skip();
    start(&b, "wait snapshots 1 100s\n"
              "save-screen %s/mark\n"
              "wait ended 100s\n"
              "save-screen %s/ended\n"
              "wait decoded 1 100s\n"
              "quit\n");
    wait_mark(&b);
    kill_perf(&b);
    wait_for(&b, "<<EXIT 0 modes=same>>");
    assert_screen(&b, "ended",
                  (const char *const[]){"[FAILED]", "perf was killed by signal 9", NULL});
    tear_down(&b, true);
}

static void field_A6_target_killed(void **state)
{
    (void)state;
    struct bench b;
    if (!can_record())
        skip();
    start(&b, "wait snapshots 1 100s\n"
              "save-screen %s/mark\n"
              "wait ended 100s\n"
              "save-screen %s/ended\n"
              "wait decoded 1 100s\n"
              "first\n"
              "enter\n"
              "wait screen timeline 100s\n"
              "wait text handle_request 100s\n"
              "save-screen %s/timeline\n"
              "quit\n");
    wait_mark(&b);
    kill(b.target.pid, SIGKILL);
    waitpid(b.target.pid, NULL, 0);
    wait_for(&b, "<<EXIT 0 modes=same>>");
    assert_screen(&b, "ended", (const char *const[]){"the traced program", NULL});
    assert_screen(&b, "timeline", (const char *const[]){"snap 1", "handle_request", NULL});
    tear_down(&b, false);
}

static void test_mtui_killed(void **state)
{
    (void)state;
    struct bench b;
    if (!can_record())
        skip();
    start(&b, "wait snapshots 1 100s\n"
              "save-screen %s/mark\n");
    wait_mark(&b);
    kill(b.p->program, SIGKILL);
    wait_for(&b, "<<SIGNAL 9");
    assert_true(run_until(no_perf, &b, SOON / 1000));
    tear_down(&b, true);
}

/* ^Z goes to the editor as well; the recording goes on behind it, and the screen comes back afterwards. */
static void field_F10_suspended_in_an_editor_while_recording(void **state)
{
    (void)state;
    struct bench b;
    if (!can_record())
        skip();
    for (int alone = 0; alone < 2; alone++) {
        start(&b, "wait snapshots 1 100s\n"
                  "wait decoded 1 100s\n"
                  "first\n"
                  "enter\n"
                  "wait screen timeline 100s\n"
                  "search handle_request\n"
                  "wait text handle_request 100s\n"
                  "save-screen %s/mark\n");
        wait_mark(&b);
        char *ed = path_in(&b, "ed"), *command = xasprintf(":set editor \"sh %s\"\r", ed);
        run_write_file(ed, alone ? "echo EDITING\nkill -STOP $$\nread line\necho GOT-$line\n"
                                 : "echo EDITING\nread line\necho GOT-$line\n");
        pty_type(b.p, command);
        bool edits = false;
        for (int i = 0; i < 10 && !edits; i++) { /* the line is not known at once */
            pty_type(b.p, "O");
            edits = pty_wait(b.p, "EDITING", 5000);
        }
        if (!edits)
            fail_msg("no editor: %s", b.p->text + (b.p->text_len > 600 ? b.p->text_len - 600 : 0));
        if (!alone)
            pty_type(b.p, "\x1a");
        wait_for(&b, "<<STOPPED modes=same>>");
        assert_false(no_perf(&b));
        pty_type(b.p, "\n");
        pty_type(b.p, "hello\r");
        wait_for(&b, "GOT-hello");
        pty_type(b.p, "3");
        wait_for(&b, "[ENABLED]"); /* it still records */
        kill(b.p->program, SIGTERM);
        wait_for(&b, "modes=same>>");
        free(command);
        free(ed);
        tear_down(&b, true);
    }
}

/* The terminal goes away in the middle of a recording: it is finished and kept. */
static void field_F11_hang_up_while_recording(void **state)
{
    (void)state;
    struct bench b;
    if (!can_record())
        skip();
    start(&b, "wait snapshots 1 100s\n"
              "save-screen %s/mark\n");
    wait_mark(&b);
    assert_true(pty_hang_up(b.p, 2000 + SOON / 10));
    assert_true(run_until(no_perf, &b, SOON / 1000));
    char *command = xasprintf("ls %s/mtui/*/snap-1/perf.data %s/mtui/*/snap-end/perf.data", b.tmp, b.tmp);
    int status;
    free(run_output(command, &status));
    assert_int_equal(status, 0);
    free(command);
    tear_down(&b, true);
}

/* Leaving while it records asks, and finishes first. */
static void test_quit_while_recording(void **state)
{
    (void)state;
    struct bench b;
    if (!can_record())
        skip();
    start(&b, "wait snapshots 1 100s\n"
              "quit\n"
              "wait text \"Finish it and quit?\" 100s\n"
              "key y\n"
              "wait text nothing-of-the-kind 100s\n");
    wait_for(&b, "<<EXIT 0 modes=same>>");
    char *command =
        xasprintf("ls %s/mtui/*/snap-1/perf.data %s/mtui/*/snap-end/perf.data", b.tmp, b.tmp);
    int status;
    free(run_output(command, &status));
    assert_int_equal(status, 0);
    free(command);
    tear_down(&b, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_A16_B3_whole_job_without_the_picker),
        cmocka_unit_test(field_A8_perf_killed),
        cmocka_unit_test(field_A6_target_killed),
        cmocka_unit_test(field_F10_suspended_in_an_editor_while_recording),
        cmocka_unit_test(field_F11_hang_up_while_recording),
        cmocka_unit_test(test_mtui_killed),
        cmocka_unit_test(test_quit_while_recording),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
