/* Screen Processes over a made-up /proc: what it shows, filters, sorts, chooses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ftw.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/loop.h"
#include "lib_golden.h"
#include "tui/term/glyph.h"
#include "tui/ui/model.h"
#include "tui/ui/settings.h"
#include "tui/choose/v_process.h"

struct fixture {
    char root[64];
    struct loop *loop;
    struct settings *settings;
    struct model *m;
    struct surface *s;
    void *view;
};

static void put(const char *dir, const char *name, const char *text, size_t len)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fwrite(text, 1, len, f);
    fclose(f);
}

static void add(struct fixture *f, int pid, const char *comm, char state, unsigned flags,
                unsigned ticks, unsigned threads, unsigned pages, const char *cmdline)
{
    char dir[128], text[512];
    snprintf(dir, sizeof dir, "%s/%d", f->root, pid);
    mkdir(dir, 0700);
    int n = snprintf(text, sizeof text,
                     "%d (%s) %c 1 1 1 0 -1 %u 0 0 0 0 %u 0 0 0 20 0 %u 0 10000 1000 %u 1 1 1 0 0 0 0 0 "
                     "0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
                     pid, comm, state, flags, ticks, threads, pages);
    put(dir, "stat", text, (size_t)n);
    const char *status = "Name:\tx\nUid:\t4000001\t0\t0\t0\n";
    put(dir, "status", status, strlen(status));
    put(dir, "cmdline", cmdline, cmdline ? strlen(cmdline) : 0);
}

static uint64_t no_clock(void *arg)
{
    (void)arg;
    return 5000000000u;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    strcpy(f->root, "/tmp/mtui-pv-XXXXXX");
    assert_non_null(mkdtemp(f->root));
    put(f->root, "uptime", "200.00 1.00\n", 12);
    add(f, 4711, "demo-server", 'R', 0, 9870, 12, 54272, "/usr/local/bin/demo-server --port 80");
    add(f, 902, "dbserver", 'S', 0, 310, 9, 10496, "/usr/sbin/dbserver -D /var/lib/db");
    add(f, 903, "x)\n\x1b[2J", 'S', 0, 40, 1, 10, "evil \x1b]0;t\x07 name");
    add(f, 77, "kworker/3:1", 'I', 0x00200000, 0, 1, 0, "");
    f->loop = loop_new_with_clock(no_clock, NULL);
    f->settings = settings_new();
    f->m = model_new(f->loop, f->settings);
    f->m->glyphs = glyphs_of(GLYPHS_ASCII);
    f->s = surface_new(16, 100);
    surface_set_replacement(f->s, '?', false);
    f->view = process_view_new(f->m, f->root);
    view_process.show(f->view);
    *state = f;
    return 0;
}

static int remove_one(const char *path, const struct stat *sb, int flag, struct FTW *ftw)
{
    (void)sb, (void)flag, (void)ftw;
    return remove(path);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    view_process.destroy(f->view);
    model_free(f->m);
    settings_free(f->settings);
    loop_free(f->loop);
    surface_free(f->s);
    nftw(f->root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(f);
    return 0;
}

static void draw(struct fixture *f)
{
    surface_clear(f->s);
    view_process.draw(f->view, f->s, (struct rect){0, 0, surface_rows(f->s), surface_cols(f->s)});
}

static void shows_what_runs(void **state)
{
    struct fixture *f = *state;
    draw(f);
    golden_check(f->s, "processes_list", "processes 100x16 tier=ascii fixture of 4, sorted by CPU");
    surface_resize(f->s, 10, 60);
    surface_set_replacement(f->s, '?', false);
    draw(f);
    golden_check(f->s, "processes_narrow", "processes 60x10 tier=ascii: columns dropped by priority");
}

static void field_F4_no_control_byte_gets_through(void **state)
{
    struct fixture *f = *state;
    draw(f);
    for (int row = 0; row < surface_rows(f->s); row++)
        for (int col = 0; col < surface_cols(f->s); col++) {
            uint32_t cp = surface_at(f->s, row, col)->cp;
            assert_true(cp >= 0x20 && cp < 0x7f);
        }
}

static void filters(void **state)
{
    struct fixture *f = *state;
    assert_true(view_process.action(f->view, ACT_FILTER, "SERVER"));
    draw(f);
    assert_true(golden_find(f->s, "no process matches")); /* capitals make case count */
    view_process.action(f->view, ACT_FILTER, "server 902");
    draw(f);
    assert_true(golden_find(f->s, "1 of 4"));
    assert_true(golden_find(f->s, "dbserver"));
    assert_false(golden_find(f->s, "demo-server"));
    view_process.action(f->view, ACT_CANCEL, NULL);
    draw(f);
    assert_true(golden_find(f->s, "demo-server"));
    assert_false(golden_find(f->s, "kworker"));
    view_process.action(f->view, ACT_KERNEL_THREADS, NULL);
    draw(f);
    assert_true(golden_find(f->s, "kworker"));
}

static void chooses_a_target(void **state)
{
    struct fixture *f = *state;
    draw(f);
    view_process.action(f->view, ACT_OPEN, NULL);
    assert_int_equal(f->m->target.pid, 4711); /* the top of the list by CPU */
    assert_int_equal(f->m->target.start_time, 10000);
    assert_string_equal(f->m->target.comm, "demo-server");
    assert_string_equal(f->m->want.screen, "symbols");
}

static void select_by(struct fixture *f, const char *filter)
{
    view_process.action(f->view, ACT_FILTER, filter);
    draw(f);
}

static void marks_outlive_the_filter_and_are_taken_together(void **state)
{
    struct fixture *f = *state;
    char text[200];
    select_by(f, "902");
    view_process.action(f->view, ACT_MARK, NULL);
    select_by(f, "4711");
    view_process.action(f->view, ACT_MARK, NULL);
    view_process.action(f->view, ACT_RELOAD, NULL);
    view_process.status(f->view, text, sizeof text);
    assert_non_null(strstr(text, "2 processes marked"));
    view_process.action(f->view, ACT_TO_RECORD, NULL);
    assert_string_equal(f->m->want.screen, "record");
    assert_int_equal(f->m->target.pid, 4711); /* selected and marked: the first */
    assert_int_equal(f->m->more_targets.len, 1);
    assert_int_equal(f->m->more_targets.data[0].pid, 902);
    assert_string_equal(f->m->more_targets.data[0].comm, "dbserver");

    view_process.action(f->view, ACT_MARK, NULL); /* takes 4711's mark away */
    view_process.action(f->view, ACT_TO_RECORD, NULL);
    assert_int_equal(f->m->target.pid, 902); /* only it is marked, although another is selected */
    assert_int_equal(f->m->more_targets.len, 0);
}

static void field_F16_marks_of_the_dead_are_forgotten(void **state)
{
    struct fixture *f = *state;
    char dir[160], text[200];
    select_by(f, "902");
    view_process.action(f->view, ACT_MARK, NULL);
    static const char *const files[] = {"/stat", "/status", "/cmdline", ""};
    for (size_t i = 0; i < 4; i++) {
        snprintf(dir, sizeof dir, "%s/902%s", f->root, files[i]);
        assert_int_equal(remove(dir), 0);
    }
    view_process.action(f->view, ACT_RELOAD, NULL);
    view_process.status(f->view, text, sizeof text);
    assert_null(strstr(text, "marked"));
}

static void columns_are_chosen(void **state)
{
    struct fixture *f = *state;
    view_process.action(f->view, ACT_OPTIONS, NULL);
    assert_string_equal(f->m->want.prompt_initial, "PID USER S CPU% RSS THR AGE SYMS TRACE COMMAND");
    f->m->want.line(f->m->want.line_arg, "pid rss command");
    draw(f);
    assert_true(golden_find(f->s, "PID"));
    assert_true(golden_find(f->s, "demo-server"));
    assert_false(golden_find(f->s, "TRACE"));
    view_process.action(f->view, ACT_OPTIONS, "pid colour");
    assert_int_equal(f->m->say_severity, SAY_ERROR);
    draw(f);
    assert_true(golden_find(f->s, "RSS"));
}

static void exports_the_rows_shown(void **state)
{
    struct fixture *f = *state;
    char path[160], line[400];
    snprintf(path, sizeof path, "%s/out.tsv", f->root);
    view_process.action(f->view, ACT_OPTIONS, "PID COMMAND");
    select_by(f, "evil");
    view_process.action(f->view, ACT_EXPORT, path);
    assert_int_equal(f->m->say_severity, SAY_INFO);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "PID\tCOMMAND\n");
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "903\tevil \\x1b]0;t\\x07 name\n");
    assert_null(fgets(line, sizeof line, file));
    fclose(file);
    view_process.action(f->view, ACT_EXPORT, path); /* not over a file that is there */
    assert_int_equal(f->m->say_severity, SAY_ERROR);
}

/* With follow off the selection keeps its row when the order changes. */
static void selection_follows_its_process(void **state)
{
    struct fixture *f = *state;
    draw(f);
    view_process.action(f->view, ACT_SORT, "PID"); /* 902, 903, 4711: 4711 was the first by CPU */
    view_process.action(f->view, ACT_OPEN, NULL);
    assert_int_equal(f->m->target.pid, 4711);
    view_process.action(f->view, ACT_SORT, "CPU%");
    view_process.action(f->view, ACT_FOLLOW, NULL);
    view_process.action(f->view, ACT_SORT, "PID");
    view_process.action(f->view, ACT_OPEN, NULL);
    assert_int_equal(f->m->target.pid, 902);
}

static void field_F17_refuses_what_cannot_be_traced(void **state)
{
    struct fixture *f = *state;
    view_process.action(f->view, ACT_KERNEL_THREADS, NULL);
    view_process.action(f->view, ACT_FILTER, "kworker");
    draw(f);
    view_process.action(f->view, ACT_OPEN, NULL);
    assert_int_equal(f->m->target.pid, 0);
    assert_null(f->m->want.screen);
    assert_non_null(strstr(f->m->say, "kernel thread"));
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shows_what_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(field_F4_no_control_byte_gets_through, setup, teardown),
        cmocka_unit_test_setup_teardown(filters, setup, teardown),
        cmocka_unit_test_setup_teardown(chooses_a_target, setup, teardown),
        cmocka_unit_test_setup_teardown(marks_outlive_the_filter_and_are_taken_together, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(field_F16_marks_of_the_dead_are_forgotten, setup, teardown),
        cmocka_unit_test_setup_teardown(columns_are_chosen, setup, teardown),
        cmocka_unit_test_setup_teardown(exports_the_rows_shown, setup, teardown),
        cmocka_unit_test_setup_teardown(selection_follows_its_process, setup, teardown),
        cmocka_unit_test_setup_teardown(field_F17_refuses_what_cannot_be_traced, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
