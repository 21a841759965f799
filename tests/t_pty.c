/* The real binary on a pseudo-terminal: it starts, resizes, stops, and always gives the terminal back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "tests/lib_pty.h"

#define SOON 15000 /* ms: a deadline, not a delay */

/* Without slow asan builds this is a matter of milliseconds. */
static char binary[4096];
static char folder[] = "/tmp/mtui-pty-XXXXXX";

static char *path_in(const char *name)
{
    static char path[2][256];
    static int which;
    which = !which;
    snprintf(path[which], sizeof path[which], "%s/%s", folder, name);
    return path[which];
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(path_in(name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static char *read_text(const char *name)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = fopen(path_in(name), "r");
    if (!f)
        return NULL;
    if (getdelim(&text, &size, '\0', f) < 0) {
        free(text);
        text = NULL;
    }
    fclose(f);
    return text;
}

/* Without perf: keys that go astray can record nobody's process. */
static struct pty *start_command(const char *const *env, char *const *argv)
{
    const char *all[16] = {"MTUI_PERF=/nonexistent/perf"};
    for (size_t n = 1; env && *env && n + 1 < sizeof all / sizeof *all; n++)
        all[n] = *env++;
    return pty_start(all, argv, 30, 100);
}

static struct pty *start(const char *const *env, const char *script)
{
    char *plain[] = {binary, NULL};
    char *scripted[] = {binary, (char[]){"--script"}, NULL, NULL};
    if (script) {
        write_file("script", script);
        scripted[2] = path_in("script");
    }
    return start_command(env, script ? scripted : plain);
}

static void wait_for(struct pty *p, const char *text)
{
    if (!pty_wait(p, text, SOON))
        fail_msg("no '%s' in: %s", text, p->text + (p->text_len > 600 ? p->text_len - 600 : 0));
}

/* The last occurrence of a sequence, which must come behind every other thing the program said. */
static size_t last_of(const struct pty *p, const char *bytes)
{
    size_t at = 0, len = strlen(bytes);
    for (size_t i = 0; i + len <= p->raw_len; i++)
        if (memcmp(p->raw + i, bytes, len) == 0)
            at = i + 1;
    return at;
}

static void assert_restored(const struct pty *p)
{
    assert_true(last_of(p, "\033[?1049l") > last_of(p, "\033[?1049h"));
    assert_true(last_of(p, "\033[?1000l") > last_of(p, "\033[?1000h"));
    assert_true(last_of(p, "\033[?1002l") > last_of(p, "\033[?1002h"));
    assert_true(last_of(p, "\033[?1006l") > last_of(p, "\033[?1006h"));
    size_t on = last_of(p, "\033[?25h"), blink = last_of(p, "\033[?12l\033[?25h");
    assert_true((on > blink ? on : blink) > last_of(p, "\033[?25l"));
}

static void leaves_in_order(void **state)
{
    (void)state;
    struct pty *p = start(NULL, NULL);
    wait_for(p, "1 Processes");
    pty_type(p, "Q");
    wait_for(p, "<<EXIT 0 modes=same>>");
    assert_restored(p);
    pty_free(p);
}

static void ends_by_signal(int number, const char *how)
{
    struct pty *p = start(NULL, NULL);
    wait_for(p, "1 Processes");
    assert_int_equal(kill(p->program, number), 0);
    wait_for(p, how);
    assert_restored(p);
    pty_free(p);
}

static void field_F9_signals_restore_the_terminal(void **state)
{
    (void)state;
    ends_by_signal(SIGTERM, "<<EXIT 0 modes=same>>");
    ends_by_signal(SIGINT, "<<EXIT 0 modes=same>>");
    ends_by_signal(SIGHUP, "modes=same>>");
    ends_by_signal(SIGABRT, "<<SIGNAL 6 modes=same>>");
}

static void field_F9_a_crash_restores_the_terminal(void **state)
{
    (void)state;
    /* The sanitizer answers SIGSEGV itself; without it the signal ends the program. */
    const char *env[] = {"ASAN_OPTIONS=handle_segv=0:detect_leaks=0", NULL};
    struct pty *p = start(env, NULL);
    wait_for(p, "1 Processes");
    kill(p->program, SIGSEGV);
    wait_for(p, "<<SIGNAL 11 modes=same>>");
    assert_restored(p);
    pty_free(p);
}

static void field_A16_survives_user_signals(void **state)
{
    (void)state;
    struct pty *p = start(NULL, NULL);
    wait_for(p, "1 Processes");
    kill(p->program, SIGUSR1);
    kill(p->program, SIGUSR2);
    kill(p->program, SIGPIPE);
    pty_type(p, "?");
    wait_for(p, "help: ");
    pty_type(p, "Q");
    wait_for(p, "<<EXIT 0 modes=same>>");
    pty_free(p);
}

static void field_F11_hang_up_ends_it(void **state)
{
    (void)state;
    struct pty *p = start(NULL, NULL);
    wait_for(p, "1 Processes");
    assert_true(pty_hang_up(p, 2000 + SOON / 5));
    pty_free(p);
}

static void field_F10_suspends_and_resumes(void **state)
{
    (void)state;
    struct pty *p = start(NULL, NULL);
    wait_for(p, "1 Processes");
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            pty_type(p, "\x1a");
        else
            kill(p->program, SIGTSTP);
        wait_for(p, "<<STOPPED modes=same>>");
        assert_restored(p);
        /* Meanwhile the terminal has another size. */
        pty_resize(p, i ? 30 : 12, i ? 100 : 50);
        pty_type(p, "\n");
        wait_for(p, i ? "1 Processes" : "60x16 needed: this terminal is 50x12");
        assert_true(last_of(p, "\033[?1049h") > last_of(p, "\033[?1049l"));
        assert_true(last_of(p, "\033[?1000h") > last_of(p, "\033[?1000l"));
    }
    pty_type(p, "Q");
    wait_for(p, "<<EXIT 0 modes=same>>");
    pty_free(p);
}

static double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int lines_in(const char *name)
{
    int lines = 0;
    char *text = read_text(name);
    for (char *c = text; c && *c; c++)
        lines += *c == '\n';
    free(text);
    return lines;
}

static void field_F1_random_resizes(void **state)
{
    (void)state;
    struct pty *p = start(NULL, NULL);
    unsigned seed = 12345;
    wait_for(p, "1 Processes");
    for (int i = 0; i < 500; i++) {
        seed = seed * 1103515245u + 12345u;
        int rows = i == 0 ? 1 : i == 1 ? 200 : 1 + (int)(seed >> 16) % 200;
        seed = seed * 1103515245u + 12345u;
        int cols = i == 0 ? 1 : i == 1 ? 500 : 1 + (int)(seed >> 16) % 500;
        pty_resize(p, rows, cols);
        if (i % 3 == 0)
            pty_type(p, i % 2 ? "j" : "?");
        while (pty_pump(p, i % 5 == 0 ? 20 : 0))
            ;
    }
    pty_resize(p, 30, 100);
    /* Esc leaves the help, also when what follows comes with it. */
    char *line = xasprintf("\033:save-screen %s\r", path_in("screen"));
    double until = seconds() + SOON / 1000;
    while (lines_in("screen") != 30 && seconds() < until) {
        unlink(path_in("screen"));
        pty_type(p, line);
        while (lines_in("screen") == 0 && seconds() < until)
            pty_pump(p, 20);
    }
    pty_type(p, "Q");
    free(line);
    wait_for(p, "<<EXIT 0 modes=same>>");
    assert_int_equal(lines_in("screen"), 30);
    char *screen = read_text("screen");
    assert_memory_equal(screen, " mtui [1 Processes]", 19);
    free(screen);
    pty_free(p);
}

/* F5 and Ctrl-F5, which vt100's entry lacks, and a sequence that is no key: none of their digits types. */
static void unknown_sequences_type_nothing(void **state)
{
    (void)state;
    const char *env[] = {"TERM=vt100", NULL};
    struct pty *p = start(env, NULL);
    wait_for(p, "1 Processes");
    pty_type(p, "\033[15~\033[15;5~\033[2;5;4u");
    char *line = xasprintf(":save-screen %s\r", path_in("screen"));
    pty_type(p, line);
    pty_type(p, "Q");
    free(line);
    wait_for(p, "<<EXIT 0 modes=same>>");
    char *screen = read_text("screen");
    assert_non_null(screen);
    assert_memory_equal(screen, " mtui [1 Processes]", 19);
    free(screen);
    pty_free(p);
}

static void field_F12_esc_acts_at_once(void **state)
{
    (void)state;
    mkdir(path_in("mtui"), 0700);
    write_file("mtui/config", "set refresh 60s\n");
    char *config = xasprintf("XDG_CONFIG_HOME=%s", folder);
    const char *env[] = {config, NULL};
    struct pty *p = start(env, NULL);
    wait_for(p, "1 Processes");
    double best = 1e9;
    /* The machine may be busy: the best of several tries counts. */
    for (int i = 0; i < 10; i++) {
        char text[24];
        snprintf(text, sizeof text, ":xyzzy%d", i);
        pty_type(p, text);
        wait_for(p, text + 6);
        while (pty_pump(p, 30))
            ;
        size_t before = p->raw_len;
        double t = seconds();
        pty_type(p, "\033");
        while (p->raw_len == before && pty_pump(p, 1000))
            ;
        t = seconds() - t;
        best = t < best ? t : best;
    }
    assert_true(best <= 0.1);
    pty_type(p, "Q");
    wait_for(p, "<<EXIT 0");
    pty_free(p);
    free(config);
}

/* The first screen must come up, be readable, and be left, in every environment. unwanted is a sequence
 * that must not be sent; "" means no byte above 127. */
static void run_in(const char *const *env, const char *marker, const char *unwanted)
{
    struct pty *p = start(env, NULL);
    wait_for(p, marker);
    pty_type(p, "?");
    wait_for(p, "help: ");
    pty_type(p, "Q");
    wait_for(p, "<<EXIT 0 modes=same>>");
    if (unwanted && unwanted[0] && last_of(p, unwanted))
        fail_msg("'%s' was sent with %s", unwanted + 1, env[0]);
    for (size_t i = 0; unwanted && !unwanted[0] && i < p->raw_len; i++)
        assert_true((unsigned char)p->raw[i] < 128);
    pty_free(p);
}

static void field_F5_F7_F8_starts_in_every_environment(void **state)
{
    (void)state;
    run_in((const char *[]){"TERM=vt100", NULL}, "1 Processes", "\033[?1000h");
    run_in((const char *[]){"LC_ALL=C", NULL}, "1 Processes", "");
    /* setaf of xterm-256color, for colours below 8 and above. */
    run_in((const char *[]){"NO_COLOR=1", NULL}, "1 Processes", "\033[38;5;");
    run_in((const char *[]){"NO_COLOR=1", NULL}, "1 Processes", "\033[36m");
    run_in((const char *[]){"NO_COLOR=1", NULL}, "1 Processes", "\033[46m");
    run_in((const char *[]){"TERM=tmux-256color", NULL}, "1 Processes", NULL);
    run_in((const char *[]){"TERM=linux", NULL}, "1 Processes", NULL);
    run_in((const char *[]){"TERM=xterm-kitty", NULL}, "xterm-kitty is not known here", NULL);
    run_in((const char *[]){"TERM=", NULL}, "(unset) is not known here", NULL);
}

static void field_F7_no_terminal(void **state)
{
    (void)state;
    struct pty *p = start((const char *[]){"TERM=dumb", NULL}, NULL);
    wait_for(p, "mtui: TERM=dumb cannot show screens");
    wait_for(p, "<<EXIT 1 modes=same>>");
    for (size_t i = 0; i < p->raw_len; i++)
        assert_int_not_equal(p->raw[i], 27);
    pty_free(p);
    /* Standard output a pipe. */
    char *command = xasprintf("%s 2>&1 </dev/null | cat -v", binary);
    FILE *f = popen(command, "r");
    char line[256] = "";
    assert_non_null(fgets(line, sizeof line, f));
    assert_string_equal(line,
                        "mtui: standard output is no terminal; --batch and export work without one\n");
    assert_null(fgets(line, sizeof line, f));
    pclose(f);
    free(command);
}

static void keys_from_the_tty(void **state)
{
    (void)state;
    char *command = xasprintf("exec %s </dev/null", binary);
    char *argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, command, NULL};
    struct pty *p = start_command(NULL, argv);
    wait_for(p, "1 Processes");
    pty_type(p, "Q");
    wait_for(p, "<<EXIT 0 modes=same>>");
    pty_free(p);
    free(command);
}

static void scripts(void **state)
{
    (void)state;
    char *script = xasprintf("wait screen processes\nkey ?\nwait screen help\nwait text Everywhere 5s\n"
                             "save-screen %s\nquit\n",
                             path_in("saved"));
    struct pty *p = start(NULL, script);
    wait_for(p, "<<EXIT 0 modes=same>>");
    assert_restored(p);
    pty_free(p);
    free(script);
    char *saved = read_text("saved");
    assert_non_null(saved);
    assert_non_null(strstr(saved, "help: Processes"));
    free(saved);
    p = start(NULL, "wait screen processes\nwait text no-such-text 100ms\nquit\n");
    wait_for(p, "script:2: 'text no-such-text' did not come true within 100 ms");
    wait_for(p, "<<EXIT 1 modes=same>>");
    assert_restored(p);
    pty_free(p);
    p = start(NULL, "fly\n");
    wait_for(p, "script:1: no command is called 'fly'");
    wait_for(p, "<<EXIT 1 modes=same>>");
    pty_free(p);
}

/* Names from outside that mean to do harm: no byte of theirs is obeyed. */
static void field_F4_hostile_environment(void **state)
{
    (void)state;
    mkdir(path_in("mtui"), 0700);
    write_file("mtui/config", "set nonsense \033[2J\n");
    char *config = xasprintf("XDG_CONFIG_HOME=%s", folder);
    struct pty *p = start((const char *[]){config, NULL}, NULL);
    wait_for(p, "no setting is called 'nonsense'");
    pty_type(p, "Q");
    wait_for(p, "modes=same>>");
    pty_free(p);
    free(config);
}

static int set_up(void **state)
{
    (void)state;
    const char *build = getenv("MTUI_BUILD");
    if (!build || !realpath(build, binary))
        return -1;
    strncat(binary, "/mtui", sizeof binary - strlen(binary) - 1);
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    const char *files[] = {"script", "saved", "screen", "mtui/config"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        unlink(path_in(files[i]));
    rmdir(path_in("mtui"));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_in_order),
        cmocka_unit_test(field_F9_signals_restore_the_terminal),
        cmocka_unit_test(field_F9_a_crash_restores_the_terminal),
        cmocka_unit_test(field_A16_survives_user_signals),
        cmocka_unit_test(field_F11_hang_up_ends_it),
        cmocka_unit_test(field_F10_suspends_and_resumes),
        cmocka_unit_test(field_F1_random_resizes),
        cmocka_unit_test(field_F12_esc_acts_at_once),
        cmocka_unit_test(unknown_sequences_type_nothing),
        cmocka_unit_test(field_F5_F7_F8_starts_in_every_environment),
        cmocka_unit_test(field_F7_no_terminal),
        cmocka_unit_test(keys_from_the_tty),
        cmocka_unit_test(scripts),
        cmocka_unit_test(field_F4_hostile_environment),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
