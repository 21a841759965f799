/* tui/ui/editor: what it runs, with which arguments, and what it says of the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/loop.h"
#include "tui/ui/editor.h"

static struct {
    bool done;
    int stops;
    char complaint[128];
} end;

static void on_done(void *arg, const char *complaint)
{
    (void)arg;
    end.done = true;
    snprintf(end.complaint, sizeof end.complaint, "%s", complaint ? complaint : "");
}

static void on_stopped(void *arg)
{
    (void)arg;
    end.stops++;
}

static void run(const char *command)
{
    struct loop *l = loop_new();
    struct editor *e = NULL;
    struct err err = {0};
    end.done = false;
    if (editor_start(&e, l, command, "/tmp/a file.c", 42, on_done, on_stopped, NULL, &err) < 0)
        fail_msg("%s", err.text);
    uint64_t until = loop_now_ns(l) + 10000000000u;
    while (!end.done && loop_now_ns(l) < until)
        loop_run_once(l, 100000000);
    assert_true(end.done);
    loop_free(l);
}

static void runs_editors(void **state)
{
    (void)state;
    char folder[] = "/tmp/mtui-editor-XXXXXX", script[64], out[64], command[160], line[128] = "";
    assert_non_null(mkdtemp(folder));
    snprintf(script, sizeof script, "%s/ed", folder);
    snprintf(out, sizeof out, "%s/out", folder);
    FILE *f = fopen(script, "w");
    fprintf(f, "#!/bin/sh\nfor a; do printf '%%s|' \"$a\"; done >%s\n[ \"$1\" != fail ]\n", out);
    fclose(f);
    chmod(script, 0755);
    snprintf(command, sizeof command, "%s -x", script);
    run(command);
    assert_string_equal(end.complaint, "");
    f = fopen(out, "r");
    assert_non_null(fgets(line, sizeof line, f));
    fclose(f);
    assert_string_equal(line, "-x|+42|/tmp/a file.c|");
    /* From the environment. */
    unlink(out);
    unsetenv("VISUAL");
    setenv("EDITOR", script, 1);
    run("");
    f = fopen(out, "r");
    assert_non_null(f);
    fclose(f);
    snprintf(command, sizeof command, "%s fail", script);
    run(command);
    assert_string_equal(end.complaint, "the editor ended with an error");
    /* One that stops itself is let go on by whoever continues us. */
    f = fopen(script, "w");
    fprintf(f, "#!/bin/sh\nkill -STOP $$\n");
    fclose(f);
    run(script);
    assert_string_equal(end.complaint, "");
    assert_int_equal(end.stops, 1);
    run("/nonexistent/editor");
    assert_string_equal(end.complaint,
                        "the editor could not be run; set EDITOR, or :set editor COMMAND");
    unlink(out);
    unlink(script);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(runs_editors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
