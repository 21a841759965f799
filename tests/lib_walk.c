#include "tests/lib_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/alloc.h"

#define ARGS_MAX 24

const char *const walk_options[] = {"-t", "handle_request", "--hold-off", "1h", NULL};

bool walk_can_record(void)
{
    return run_perf_records() && geteuid() == 0 &&
           access("/sys/bus/event_source/devices/uprobe/type", R_OK) == 0;
}

char *walk_path(const struct walk *b, const char *name)
{
    return xasprintf("%s/%s", b->tmp, name);
}

/* The script with the directory in it. */
static void write_script(const struct walk *b, const char *script, const char *path)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    for (const char *p = script; *p; p++)
        if (p[0] == '%' && p[1] == 's')
            fputs(b->tmp, f), p++;
        else
            fputc(*p, f);
    fclose(f);
    run_write_file(path, text);
    free(text);
}

void walk_start(struct walk *b, const char *const *options, int rows, int cols, const char *script)
{
    char line[64];
    const char *build = getenv("MTUI_BUILD");
    char *tool = run_tool("batch_target");
    char *mtui = xasprintf("%s/mtui", build ? build : "build/release");
    b->tmp = run_temp_dir();
    b->state_env = xasprintf("XDG_STATE_HOME=%s", b->tmp);
    b->target = run_start((char *[]){tool, NULL});
    assert_non_null(fgets(line, sizeof line, b->target.out)); /* "serving" */
    char *pid = xasprintf("%ld", (long)b->target.pid), *path = walk_path(b, "script");
    write_script(b, script, path);
    const char *env[] = {b->state_env, "TZ=UTC", NULL};
    char *argv[ARGS_MAX + 8] = {mtui, (char[]){"attach"}, (char[]){"-p"}, pid, (char[]){"--script"}, path};
    for (size_t n = 6; *options && n < ARGS_MAX + 7; n++)
        argv[n] = (char *)(uintptr_t)*options++;
    b->p = pty_start(env, argv, rows, cols);
    free(path);
    free(pid);
    free(mtui);
    free(tool);
}

void walk_wait_for(struct walk *b, const char *text)
{
    if (!pty_wait(b->p, text, WALK_SOON))
        fail_msg("no '%s' (program %d, shell %d) in: %s", text, kill(b->p->program, 0),
                 kill(b->p->shell, 0),
                 b->p->text + (b->p->text_len > 3000 ? b->p->text_len - 3000 : 0));
}

bool walk_is_alive(pid_t pid)
{
    return kill(pid, 0) == 0 && waitpid(pid, NULL, WNOHANG) == 0;
}

bool walk_no_perf(void *arg)
{
    struct walk *b = arg;
    char *command = xasprintf("pgrep -f '(record .*-p|step-recorder --pid) %ld( |$)' || true",
                              (long)b->target.pid);
    char *out = run_output(command, NULL);
    bool none = !*out;
    free(out);
    free(command);
    return none;
}

void walk_tear_down(struct walk *b, bool target_lives)
{
    pty_free(b->p);
    assert_true(run_until(walk_no_perf, b, WALK_SOON / 1000));
    if (target_lives) {
        assert_true(walk_is_alive(b->target.pid));
        run_kill(&b->target);
    } else {
        close(b->target.in);
        fclose(b->target.out);
    }
    run_remove_tree(b->tmp);
    free(b->tmp);
    free(b->state_env);
}

void walk_assert_screen(struct walk *b, const char *name, const char *const *texts)
{
    char *path = walk_path(b, name), *screen = run_read_file(path, NULL);
    assert_non_null(screen);
    for (; *texts; texts++)
        if (!strstr(screen, *texts))
            fail_msg("no '%s' on\n%s", *texts, screen);
    free(screen);
    free(path);
}

static bool has_mark(void *arg)
{
    struct walk *b = arg;
    char *path = walk_path(b, "mark");
    bool yes = access(path, F_OK) == 0;
    free(path);
    pty_pump(b->p, 5);
    return yes;
}

void walk_wait_mark(struct walk *b)
{
    if (!run_until(has_mark, b, WALK_SOON / 1000))
        fail_msg("the script stopped: %s",
                 b->p->text + (b->p->text_len > 300 ? b->p->text_len - 300 : 0));
}
