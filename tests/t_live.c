/* Browsing a recording while it is decoded. Decoders are held where the test wants them: one in the callback
 * that hands over a part, one by a pipe that is not written to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/fmt.h"
#include "core/base/loop.h"
#include "decode/open/open.h"
#include "lib_golden.h"
#include "lib_step.h"
#include "lib_step_programs.h"
#include "tui/cli/cmd_open.h"
#include "tui/term/glyph.h"
#include "tui/ui/model.h"
#include "tui/term/theme.h"
#include "tui/timeline/timeline.h"
#include "tui/analysis/v_event.h"
#include "tui/analysis/v_function.h"
#include "tui/timeline/v_timeline.h"

#define DEADLINE_NS 60000000000u

/* ---- The screens ---- */

#define VIEWS 3
static const struct view_ops *const ops[VIEWS] = {&view_timeline, &view_function, &view_event};

struct rig {
    struct loop *loop;
    struct model *m;
    struct theme *theme;
    void *view[VIEWS];
    struct timeline *tl;
    struct surface *s;
};

static void on_change(void *arg, enum model_change what)
{
    struct rig *r = arg;
    for (int i = 0; i < VIEWS; i++)
        if (r->view[i])
            ops[i]->changed(r->view[i], what);
}

static void rig_open(struct rig *r)
{
    *r = (struct rig){.loop = loop_new()};
    r->m = model_new(r->loop, NULL);
    r->theme = theme_new(COLOR_256);
    r->m->theme = r->theme;
    r->m->glyphs = glyphs_of(GLYPHS_UNICODE);
    r->s = surface_new(30, 100);
    surface_set_replacement(r->s, glyph(r->m->glyphs, GLYPH_REPLACEMENT), true);
    for (int i = 0; i < VIEWS; i++)
        r->view[i] = ops[i]->create(r->m);
    r->tl = r->view[0];
    r->m->on_change = on_change;
    r->m->on_change_arg = r;
}

static void rig_close(struct rig *r)
{
    for (int i = 0; i < VIEWS; i++)
        ops[i]->destroy(r->view[i]);
    model_free(r->m);
    theme_free(r->theme);
    surface_free(r->s);
    loop_free(r->loop);
}

static void draw(struct rig *r, int view)
{
    surface_clear(r->s);
    ops[view]->draw(r->view[view], r->s, (struct rect){1, 0, 27, 100});
}

static bool is_there(struct rig *r, int view, const char *text)
{
    draw(r, view);
    return golden_find(r->s, text);
}

static void act(struct rig *r, int view, enum action a, const char *arg)
{
    assert_true(ops[view]->action(r->view[view], a, arg));
    draw(r, view);
}

/* Runs the loop. */
static void run_while(struct rig *r, bool (*busy)(struct rig *r))
{
    uint64_t end = loop_now_ns(r->loop) + DEADLINE_NS;
    while (busy(r)) {
        if (loop_now_ns(r->loop) > end)
            fail_msg("nothing came in a minute");
        loop_run_once(r->loop, 100000000);
    }
}

static const char *selected(struct rig *r)
{
    const struct span *s = selection_span(r->tl->src, &r->tl->sel);
    return s ? functions_get(trace_functions(r->tl->trace), s->fn)->name : "";
}

/* ---- A decoder of Intel PT that goes on when it is told to ---- */

struct held {
    struct rig *rig;
    char path[400];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool go; /* under lock */
    atomic_bool enough, cancel;
    struct recording *r; /* between the threads: the part, then the result */
    struct err err;
    int rc;
    unsigned parts;
    bool over; /* the result was taken */
};

static void release(void *arg)
{
    recording_free(arg);
}

static void take(void *arg)
{
    struct held *h = arg;
    struct model *m = h->rig->m;
    pthread_mutex_lock(&h->lock);
    struct recording *r = h->r;
    h->r = NULL;
    pthread_cond_signal(&h->changed);
    pthread_mutex_unlock(&h->lock);
    h->parts++;
    m->loading.active = m->loading.part = !h->over;
    if (!r)
        return;
    if (!m->trace)
        model_set_indexed_trace(m, r->trace, r->pyramid, "big", release, r);
    else
        model_grow_trace(m, r->trace, r->pyramid, release, r);
}

static void take_last(void *arg)
{
    ((struct held *)arg)->over = true;
    take(arg);
}

static void on_part(void *arg, struct recording *r)
{
    struct held *h = arg;
    pthread_mutex_lock(&h->lock);
    h->r = r;
    loop_post(h->rig->loop, take, h);
    while (!h->go || h->r)
        pthread_cond_wait(&h->changed, &h->lock);
    h->go = false;
    pthread_mutex_unlock(&h->lock);
}

static void *decode(void *arg)
{
    struct held *h = arg;
    struct open_options o = {.threads = 2,
                             .pyramid = true,
                             .enough = &h->enough,
                             .cancel = &h->cancel,
                             .part = on_part,
                             .part_arg = h,
                             .part_ns = 1};
    h->rc = open_recording(&h->r, h->path, &o, &h->err);
    if (h->rc < 0)
        h->r = NULL;
    loop_post(h->rig->loop, take_last, h);
    return NULL;
}

static void go_on(struct held *h)
{
    pthread_mutex_lock(&h->lock);
    h->go = true;
    pthread_cond_signal(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

static void stop_here(void *arg)
{
    atomic_store(&((struct held *)arg)->enough, true);
}

static struct held *the_held;

static bool no_part_yet(struct rig *r)
{
    (void)r;
    return the_held->parts == 0;
}

/* The parts after it are waved through. */
static bool not_over(struct rig *r)
{
    (void)r;
    go_on(the_held);
    return !the_held->over;
}

static void held_start(struct held *h, struct rig *rig, const struct step_rec *r)
{
    if (getuid() != 0)
        skip(); /* uprobes need root or CAP_PERFMON */
    struct step_encoding e = step_encodings[0];
    rig_open(rig);
    *h = (struct held){.rig = rig};
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->changed, NULL);
    e.repeat = 2500;
    snprintf(h->path, sizeof h->path, "%s/live.data", r->dir);
    step_rec_encode(r, &e, h->path);
    the_held = h;
    rig->m->loading = (struct model_loading){.active = true, .cancel = stop_here, .cancel_arg = h};
    snprintf(rig->m->loading.what, sizeof rig->m->loading.what, "big");
    assert_int_equal(pthread_create(&h->thread, NULL, decode, h), 0);
    run_while(rig, no_part_yet);
}

static void held_end(struct held *h)
{
    pthread_join(h->thread, NULL);
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->changed);
    rig_close(h->rig);
}

static uint64_t spans_of(const struct trace *t)
{
    uint64_t n = 0;
    for (size_t i = 0; i < trace_thread_count(t); i++)
        n += trace_thread(t, i)->spans;
    return n;
}

/* The rows of spans alone: figures in headers and panes may change. */
static char *picture(struct rig *r)
{
    char *out = NULL;
    size_t len;
    draw(r, 0);
    FILE *f = open_memstream(&out, &len);
    for (int row = 0; row < r->tl->at.rows.rows; row++) {
        const struct tl_line *line = tl_line_at(r->tl, row);
        for (int col = 0; line && line->kind != TL_HEADER && col < 100; col++) {
            const struct cell *c = surface_at(r->s, r->tl->at.rows.row + row, col);
            fprintf(f, "%x.%u.%u.%x ", c->cp, c->ink, c->paper, c->attr);
        }
        fputc('\n', f);
    }
    fclose(f);
    return out;
}

static void nothing_jumps(void **state)
{
    static struct rig r;
    static struct held h;
    held_start(&h, &r, *state);
    /* What is not decoded is said to be so. */
    char line[200];
    model_loading_text(r.m, line, sizeof line);
    assert_string_equal(line, "decoding big, ^C keeps what is there");
    r.m->loading.percent = 40;
    r.m->loading.spans = 2;
    model_loading_text(r.m, line, sizeof line);
    assert_string_equal(line, "decoding big: 40 %, 2 spans, ^C keeps them");
    assert_true(is_there(&r, 0, "1 not-decoded"));
    assert_int_equal(view_timeline.condition(r.tl, "part", ""), 1);
    assert_int_equal(view_timeline.condition(r.tl, "trace", ""), 0);
    uint64_t before = spans_of(r.tl->trace);

    /* Search, select, zoom, mark; the other screens work as well. */
    act(&r, 0, ACT_SEARCH, "work");
    assert_string_equal(selected(&r), "work");
    act(&r, 0, ACT_SEARCH_NEXT, NULL);
    act(&r, 0, ACT_ZOOM_FIT, NULL);
    act(&r, 0, ACT_ZOOM_OUT, NULL);
    act(&r, 0, ACT_MARK_SET, "a");
    act(&r, 0, ACT_PIN, NULL);
    view_function.show(r.view[1]);
    draw(&r, 2);
    act(&r, 2, ACT_PAGE_DOWN, NULL);
    const uint64_t cursor_ns = r.m->cursor_ns;
    act(&r, 0, ACT_EXPORT, "spans /dev/null");
    assert_non_null(strstr(r.m->say, "decoding goes on"));
    const struct selection again = r.tl->sel;
    const struct span chosen = *selection_span(r.tl->src, &again);
    const struct viewport_place place = r.tl->view.place;
    char *old = picture(&r);

    run_while(&r, not_over);
    assert_int_equal(h.rc, 0);
    assert_true(spans_of(r.tl->trace) > before);
    char *new = picture(&r);
    assert_string_equal(new, old);
    free(old);
    free(new);
    const struct span *s = selection_span(r.tl->src, &r.tl->sel);
    assert_int_equal(r.tl->sel.depth, again.depth);
    assert_int_equal(s->start_ns, chosen.start_ns);
    assert_int_equal(s->fn, chosen.fn);
    assert_true(r.tl->view.place.start_fp == place.start_fp && r.tl->view.place.col_fp == place.col_fp);
    assert_int_equal(r.m->cursor_ns, cursor_ns);
    assert_true(r.tl->threads[0].pinned);
    assert_int_equal(r.tl->marks_set, 1);
    assert_non_null(r.tl->search);
    assert_string_equal(search_text(r.tl->search), "work");
    assert_false(is_there(&r, 0, "not-decoded"));
    assert_int_equal(view_timeline.condition(r.tl, "trace", ""), 1);
    held_end(&h);
}

/* What was decoded when somebody stops it stays, and the rest is said to be missing. */
static void stopped(void **state)
{
    static struct rig r;
    static struct held h;
    held_start(&h, &r, *state);
    act(&r, 0, ACT_CANCEL, NULL); /* nothing else to clear: Esc */
    assert_true(r.m->loading.stopping);
    run_while(&r, not_over);
    assert_int_equal(h.rc, 0);
    assert_true(spans_of(r.tl->trace) > 0);
    assert_true(is_there(&r, 0, "1 not-decoded"));
    assert_int_equal(view_timeline.condition(r.tl, "trace", ""), 1);
    char line[200] = "";
    view_timeline.state(r.tl, line, sizeof line);
    assert_non_null(strstr(line, "PARTIAL"));
    size_t n;
    const struct gap *g = trace_gaps(r.tl->trace, &n);
    assert_string_equal(g[n - 1].detail, "not decoded: cancelled");
    act(&r, 0, ACT_TRACE_END, NULL); /* the hatch over what is missing */
    char *last = picture(&r);
    char hatch[32];
    snprintf(hatch, sizeof hatch, "%x.", glyph(r.m->glyphs, GLYPH_HATCH));
    assert_non_null(strstr(last, hatch));
    free(last);
    held_end(&h);
}

/* Leaving: nobody waits for the decoder, and what was shown is freed while it winds up. */
static void left(void **state)
{
    static struct rig r;
    static struct held h;
    held_start(&h, &r, *state);
    atomic_store(&h.cancel, true);
    go_on(&h);
    run_while(&r, not_over);
    assert_int_equal(h.rc, MTUI_E_CANCEL);
    held_end(&h);
}

/* ---- The whole way, from a pipe ---- */

struct writer {
    char path[200];
    int fd;
    atomic_bool done;
};

static void write_samples(struct writer *w, size_t from, size_t to)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    for (size_t i = from; i < to; i++)
        fprintf(f,
                "prog  100/100  %zu.%06zu:    1000000 cpu-clock: \n"
                "\t    555500100 %s+0x10 (/bin/prog)\n\t    555000010 main+0x10 (/bin/prog)\n\n",
                1000 + i / 1000, i % 1000 * 1000, i / 100 % 2 ? "a_function" : "b_function");
    fclose(f);
    for (size_t done = 0; done < len;) {
        ssize_t n = write(w->fd, text + done, len - done);
        assert_true(n > 0);
        done += (size_t)n;
    }
    free(text);
}

/* In a thread: a pipe holds less than the reader wants to see before it decides what it is. */
static void *write_some(void *arg)
{
    write_samples(arg, 0, 3000);
    atomic_store(&((struct writer *)arg)->done, true);
    return NULL;
}

static void pipe_start(struct writer *w, struct rig *r, struct cmd_opening **o, pthread_t *thread)
{
    struct cli c = {.command = CLI_OPEN, .path = w->path};
    struct err err;
    atomic_init(&w->done, false);
    snprintf(w->path, sizeof w->path, "/tmp/t_live.%d", (int)getpid());
    unlink(w->path);
    assert_int_equal(mkfifo(w->path, 0600), 0);
    w->fd = open(w->path, O_RDWR | O_CLOEXEC);
    assert_true(w->fd >= 0);
    rig_open(r);
    assert_int_equal(pthread_create(thread, NULL, write_some, w), 0);
    assert_int_equal(cmd_open_begin(&c, r->m, o, &err), 0);
}

static bool no_trace_yet(struct rig *r)
{
    return !r->m->trace;
}

static bool no_spans_yet(struct rig *r)
{
    return r->m->loading.spans < 2 || r->m->loading.read_bytes == 0;
}

static bool still_loading(struct rig *r)
{
    return r->m->loading.active;
}

static void samples_from_a_pipe(void **state)
{
    (void)state;
    struct rig r;
    struct writer w;
    struct cmd_opening *o;
    pthread_t thread;
    pipe_start(&w, &r, &o, &thread);
    run_while(&r, no_trace_yet);
    pthread_join(thread, NULL);
    assert_true(model_is_growing(r.m));
    run_while(&r, no_spans_yet);
    char line[200], want[200], n[FMT_MAX], k[FMT_MAX];
    model_loading_text(r.m, line, sizeof line);
    snprintf(want, sizeof want, "decoding t_live.%d: %s read, %s spans, ^C keeps them", (int)getpid(),
             fmt_size(n, r.m->loading.read_bytes), fmt_count(k, r.m->loading.spans));
    assert_string_equal(line, want);
    assert_true(r.m->loading.read_bytes >= 65536); /* what a pipe is looked at before it is known what comes */
    act(&r, 0, ACT_SEARCH, "a_function");
    assert_string_equal(selected(&r), "a_function");
    act(&r, 0, ACT_SEARCH, "b_function");
    assert_string_equal(selected(&r), "b_function");
    assert_true(model_stop_loading(r.m));
    run_while(&r, still_loading);
    assert_false(model_is_growing(r.m));
    assert_string_equal(selected(&r), "b_function");
    assert_string_equal(r.m->say, "reading was stopped: what came after it is not shown");
    assert_true(is_there(&r, 0, "\xe2\x95\xb1")); /* the hatch at the end */
    act(&r, 0, ACT_GAP_NEXT, NULL);
    assert_non_null(strstr(r.m->say, "not-decoded"));
    cmd_open_end(o);
    close(w.fd);
    unlink(w.path);
    rig_close(&r);
}

static void quit_while_a_pipe_is_silent(void **state)
{
    (void)state;
    for (int before = 0; before < 2; before++) { /* before anything is there to see, and after */
        struct rig r;
        struct writer w;
        struct cmd_opening *o;
        pthread_t thread;
        pipe_start(&w, &r, &o, &thread);
        if (!before)
            run_while(&r, no_trace_yet);
        cmd_open_end(o);
        char rest[65536]; /* the writer may be waiting for a reader */
        int fd = open(w.path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        struct pollfd p = {.fd = fd, .events = POLLIN};
        while (!atomic_load(&w.done))
            if (poll(&p, 1, 10) > 0)
                assert_true(read(fd, rest, sizeof rest) >= 0);
        close(fd);
        pthread_join(thread, NULL);
        close(w.fd);
        unlink(w.path);
        rig_close(&r);
    }
}

static int record(void **state)
{
    static struct step_rec r;
    setlocale(LC_ALL, "C.UTF-8");
    if (getuid() == 0)
        for (const struct step_program *p = step_programs; p->name; p++)
            if (strcmp(p->name, "signals") == 0)
                step_rec_program(&r, p, 1);
    *state = &r;
    return 0;
}

static int forget(void **state)
{
    if (getuid() == 0)
        step_rec_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_jumps),       cmocka_unit_test(stopped),
        cmocka_unit_test(left),                cmocka_unit_test(samples_from_a_pipe),
        cmocka_unit_test(quit_while_a_pipe_is_silent),
    };
    return cmocka_run_group_tests(tests, record, forget);
}
