#include "tui/app/app.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/loop.h"
#include "tui/ui/editor.h"
#include "tui/term/glyph.h"
#include "tui/app/screens.h"
#include "tui/ui/script.h"
#include "tui/ui/settings.h"
#include "tui/term/signals.h"
#include "tui/term/term.h"
#include "tui/term/theme.h"
#include "tui/ui/ui.h"

#define FRAME_NS 16666667u   /* at most 60 drawings a second */
#define TICK_NS 1000000000u
#define SCRIPT_NS 10000000u  /* how often a script looks whether its condition holds */

struct app {
    const struct tui_options *options;
    struct loop *loop;
    struct settings *settings;
    struct keymap *km;
    struct theme *theme;
    struct model *m;
    struct ui *ui;
    struct terminal *term;
    struct surface *surface;
    struct script *script;
    struct editor *editor; /* while it has the terminal */

    int tty_id, signals_id, frame_timer, tick_timer, script_timer;
    uint64_t drawn_ns;
    bool hung_up, quit;
    int status;
    struct err err; /* what ended us, for stderr */
};

/* ---- Settings that the program applies ---- */

/* NO_COLOR (https://no-color.org): any value that is not empty. */
static int choose_tier(const struct app *a, enum color_tier *tier, struct err *err)
{
    const char *no_color = getenv("NO_COLOR");
    *tier = term_tier(a->term);
    if (no_color && no_color[0])
        *tier = COLOR_MONO;
    int rc = color_tier_parse(settings_text(a->settings, SET_COLOR), tier, err);
    if (rc == 0 && *tier > term_tier(a->term)) {
        if (*tier == COLOR_RGB && a->ui)
            model_warn(a->m, "rgb takes effect when mtui starts, with a terminfo entry that has it");
        *tier = term_tier(a->term);
    }
    return rc;
}

static int apply_settings(void *arg, struct err *err)
{
    struct app *a = arg;
    enum color_tier tier;
    enum glyph_tier glyphs;
    const char *name = settings_text(a->settings, SET_THEME);
    int rc = choose_tier(a, &tier, err);
    if (rc == 0)
        rc = glyph_tier_parse(settings_text(a->settings, SET_GLYPHS), getenv("TERM"), &glyphs, err);
    if (rc == 0)
        rc = theme_load(a->theme, name, err);
    if (rc < 0)
        return rc;
    theme_set_tier(a->theme, tier);
    a->m->theme = a->theme;
    a->m->glyphs = glyphs_of(glyphs);
    term_set_mouse(a->term, settings_bool(a->settings, SET_MOUSE));
    term_set_escdelay(a->term, (int)settings_number(a->settings, SET_ESCDELAY));
    term_invalidate(a->term);
    return 0;
}

/* The command line stands above the config file; commands given later stand above both. */
static int take_options(struct app *a, struct err *err)
{
    const struct tui_options *o = a->options;
    int rc = 0;
    if (o->theme)
        rc = settings_set(a->settings, SET_THEME, o->theme, err);
    if (rc == 0 && o->glyphs)
        rc = settings_set(a->settings, SET_GLYPHS, o->glyphs, err);
    if (rc == 0 && o->color)
        rc = settings_set(a->settings, SET_COLOR, o->color, err);
    return rc;
}

/* ---- Hooks of the ui ---- */

static void redraw(void *arg)
{
    struct app *a = arg;
    term_resize(a->term);
    term_invalidate(a->term);
    a->m->dirty = true;
}

static void suspend(void *arg)
{
    struct app *a = arg;
    if (!a->editor)
        term_leave(a->term);
    if (a->m->recording && !a->editor)
        printf("mtui: suspended; the recording goes on\n");
    fflush(stdout);
    signals_stop_self();
    if (!a->editor)
        term_enter(a->term);
    a->m->dirty = true;
}

static void editor_done(void *arg, const char *complaint)
{
    struct app *a = arg;
    a->editor = NULL;
    term_enter(a->term);
    loop_set_events(a->loop, a->tty_id, POLLIN);
    if (complaint)
        model_warn(a->m, "%s", complaint);
    a->m->dirty = true;
}

static void editor_stopped(void *arg)
{
    (void)arg;
    signals_stop_self();
}

static void edit(void *arg, const char *path, int line)
{
    struct app *a = arg;
    struct err err = {0};
    if (a->editor)
        return;
    loop_set_events(a->loop, a->tty_id, 0);
    term_leave(a->term);
    if (editor_start(&a->editor, a->loop, settings_text(a->settings, SET_EDITOR), path, line,
                     editor_done, editor_stopped, a, &err) < 0)
        editor_done(a, err.text);
}

static bool copy(void *arg, const char *text)
{
    struct app *a = arg;
    return term_copy(a->term, text);
}

static const struct ui_hooks hooks = {.suspend = suspend, .redraw = redraw, .edit = edit,
                                      .copy = copy, .settings = apply_settings};

/* ---- Events ---- */

static void tty_ready(void *arg, int fd, short revents)
{
    struct app *a = arg;
    struct term_event e;
    int waiting = 0;
    bool readable = revents & POLLIN;
    if (readable && (ioctl(fd, FIONREAD, &waiting) < 0 || waiting == 0))
        a->hung_up = true; /* readable without a byte: the end of it */
    while (!a->editor && term_read(a->term, loop_now_ns(a->loop), &e)) {
        if (e.is_mouse)
            ui_mouse(a->ui, &e.mouse);
        else
            ui_key(a->ui, e.key);
        if (a->m->want.quit)
            return;
    }
    if (revents & (POLLHUP | POLLERR | POLLNVAL))
        a->hung_up = true;
}

static void signal_came(void *arg, int fd, short revents)
{
    struct app *a = arg;
    (void)fd;
    (void)revents;
    unsigned came = signals_take();
    if (came & SIGNALS_HANGUP)
        a->hung_up = true;
    if (came & SIGNALS_QUIT || (came & SIGNALS_INTERRUPT && !a->editor))
        a->quit = true;
    if (came & SIGNALS_SUSPEND)
        suspend(a);
    else if (came & SIGNALS_RESUME && !a->editor) {
        /* Someone stopped us behind our back: the terminal may be in any state. */
        term_leave(a->term);
        term_enter(a->term);
    }
    if (came & (SIGNALS_RESIZE | SIGNALS_RESUME) && !a->editor)
        term_resize(a->term);
    a->m->dirty = true;
}

static void tick(void *arg)
{
    struct app *a = arg;
    a->tick_timer = loop_add_timer(a->loop, loop_now_ns(a->loop) + TICK_NS, tick, a);
    ui_tick(a->ui);
}

static void frame_due(void *arg)
{
    ((struct app *)arg)->frame_timer = 0;
}

static void draw(struct app *a)
{
    uint64_t now = loop_now_ns(a->loop);
    if (!a->m->dirty || a->editor || a->frame_timer)
        return;
    if (now - a->drawn_ns < FRAME_NS) {
        a->frame_timer = loop_add_timer(a->loop, a->drawn_ns + FRAME_NS, frame_due, a);
        return;
    }
    int rows, cols;
    term_size(a->term, &rows, &cols);
    if (rows != surface_rows(a->surface) || cols != surface_cols(a->surface))
        surface_resize(a->surface, rows, cols);
    ui_draw(a->ui, a->surface);
    term_show(a->term, a->surface, a->theme);
    a->drawn_ns = now;
}

static void script_due(void *arg)
{
    ((struct app *)arg)->script_timer = 0;
}

static void run_script(struct app *a)
{
    int rc = SCRIPT_MORE;
    while (a->script && !a->script_timer && !a->m->want.quit && rc == SCRIPT_MORE) {
        rc = script_step(a->script, a->ui, loop_now_ns(a->loop), &a->err);
        if (rc < 0) {
            a->status = 1;
            a->quit = true;
        } else if (rc == SCRIPT_WAITING) {
            a->script_timer =
                loop_add_timer(a->loop, loop_now_ns(a->loop) + SCRIPT_NS, script_due, a);
        }
        if (rc != SCRIPT_MORE && rc != SCRIPT_WAITING) {
            script_free(a->script);
            a->script = NULL;
        }
    }
}

static void run(struct app *a)
{
    while (!a->quit && !a->hung_up && !a->m->want.quit) {
        ui_take_requests(a->ui);
        run_script(a);
        draw(a);
        if (a->quit || a->m->want.quit)
            break;
        loop_run_once(a->loop, -1);
    }
}

/* ---- Start and end ---- */

static int open_terminal(struct app *a)
{
    char notice[200] = "";
    struct term_options o = {
        .name = getenv("TERM"),
        .in_fd = -1,
        .out_fd = -1,
        .want_rgb = strcmp(settings_text(a->settings, SET_COLOR), "rgb") == 0,
        .mouse = settings_bool(a->settings, SET_MOUSE),
        .escdelay_ms = (int)settings_number(a->settings, SET_ESCDELAY),
        .need_tty = true,
    };
    int rc = term_open(&a->term, &o, notice, sizeof notice, &a->err);
    if (rc == 0 && notice[0])
        model_warn(a->m, "%s", notice);
    return rc;
}

/* A mistake in the file costs its line, not the session: one is said whole, of more where they stand. */
static void read_config(struct app *a)
{
    char path[4096];
    settings_config_path(path, sizeof path);
    int n = settings_read_config(a->settings, a->km, path, &a->err);
    if (n < 0)
        model_error_first(a->m, "%s", a->err.text);
    else if (n == 1)
        model_error_first(a->m, "%s:%d: %s", path, settings_mistake(a->settings, 0)->line,
                          settings_mistake(a->settings, 0)->text);
    else if (n > 1)
        model_error_first(a->m, "%d wrong lines, listed by :set, in %s", n, path);
}

static int start(struct app *a)
{
    a->settings = settings_new();
    a->km = keymap_new();
    a->theme = theme_new(COLOR_256);
    a->m = model_new(a->loop, a->settings);
    a->surface = surface_new(0, 0);
    read_config(a);
    int rc = take_options(a, &a->err);
    if (rc == 0 && a->options->script)
        rc = script_open(&a->script, a->options->script, &a->err);
    if (rc < 0)
        return rc;
    int signals = signals_open();
    if (signals < 0)
        return err_set(&a->err, MTUI_E_LIMIT, "no file descriptor is left");
    rc = open_terminal(a);
    if (rc == 0)
        rc = apply_settings(a, &a->err);
    if (rc < 0)
        return rc;
    if (a->options->screen)
        model_go(a->m, a->options->screen);
    a->ui = ui_new(a->m, a->km, screens, screens_count, &hooks, a);
    a->tty_id = loop_add_fd(a->loop, term_fd(a->term), POLLIN, tty_ready, a);
    a->signals_id = loop_add_fd(a->loop, signals, POLLIN, signal_came, a);
    a->tick_timer = loop_add_timer(a->loop, loop_now_ns(a->loop) + TICK_NS, tick, a);
    return a->options->start ? a->options->start(a->options->arg, a->m, &a->err) : 0;
}

static void finish(struct app *a)
{
    /* The terminal first: what is still to be done may take a moment, and may want to speak. The loop may
     * run on meanwhile, but not for us. */
    loop_remove(a->loop, a->tty_id);
    loop_remove(a->loop, a->signals_id);
    loop_remove(a->loop, a->tick_timer);
    loop_remove(a->loop, a->frame_timer);
    loop_remove(a->loop, a->script_timer);
    editor_free(a->editor);
    term_close(a->term);
    if (a->ui && a->options->stop)
        a->options->stop(a->options->arg, a->m);
    ui_free(a->ui);
    signals_close();
    script_free(a->script);
    surface_free(a->surface);
    model_free(a->m);
    theme_free(a->theme);
    keymap_free(a->km);
    settings_free(a->settings);
}

int tui_main(const struct tui_options *options)
{
    struct app a = {.options = options, .loop = options->loop};
    int rc = start(&a);
    if (rc < 0)
        a.status = 1;
    else
        run(&a);
    finish(&a);
    if (a.status)
        fprintf(stderr, "mtui: %s\n", a.err.text);
    return a.status;
}
