/* Every key of a list, the mouse, and the orders of all columns, in one table over all lists: Functions, Calls,
 * Compare, Events, Processes. Driven by keys, read from the screen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/loop.h"
#include "core/base/vec.h"
#include "tests/lib_column.h"
#include "tests/lib_gentrace.h"
#include "tests/lib_golden.h"
#include "tests/lib_run.h"
#include "tests/lib_screens.h"
#include "tui/choose/v_process.h"
#include "tui/term/glyph.h"
#include "tui/ui/model.h"
#include "tui/ui/settings.h"
#include "tui/ui/ui.h"

#define ROWS 48
#define COLS 200
#define FUNCTIONS 50 /* g00 … g49, each called by each f */
#define CALLS 60 /* of f */
#define PROCESSES 50

static char *proc_root; /* of the present test: a made-up /proc */

static void *create_processes(struct model *m)
{
    return process_view_new(m, proc_root);
}

struct rig {
    struct screens x;
    struct loop *loop;
    struct settings *settings;
    struct view_ops processes;
};

/* ---- What is in the lists ---- */

/* main calls f again and again, f calls every g; lengths differ by call and function. */
static char *trace_text(void)
{
    char *text = NULL;
    size_t size;
    unsigned now = 1000;
    FILE *f = open_memstream(&text, &size);
    fprintf(f, "thread 100 worker\n+ %u main\n", now);
    for (unsigned i = 0; i < CALLS; i++) {
        fprintf(f, "+ %u f\n", now += 5 + i % 7);
        for (unsigned k = 0; k < FUNCTIONS; k++) {
            fprintf(f, "+ %u g%02u\n", now += 1, k);
            fprintf(f, "- %u\n", now += 3 + (k * 7 + i * 13 + k * i) % 97);
        }
        fprintf(f, "- %u\n", now += 1 + i);
    }
    fprintf(f, "- %u\n", now + 10);
    fclose(f);
    return text;
}

static void put(const char *dir, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    run_write_file(path, text);
}

static void put_stat(const char *dir, unsigned id, const char *name, unsigned ticks)
{
    char text[400];
    snprintf(text, sizeof text,
             "%u (%s) S 1 1 1 0 -1 0 0 0 0 0 %u 0 0 0 20 0 2 0 10000 1000 %u 1 1 1 0 0 0 0 0 "
             "0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
             id, name, ticks, 100 + ticks % 31);
    put(dir, "stat", text);
}

/* Processes 1000 … 1049. */
static void make_processes(void)
{
    proc_root = run_temp_dir();
    put(proc_root, "uptime", "200.00 1.00\n");
    for (unsigned i = 0; i < PROCESSES; i++) {
        char dir[200], name[40];
        snprintf(dir, sizeof dir, "%s/%u", proc_root, 1000 + i);
        mkdir(dir, 0700);
        snprintf(name, sizeof name, "prog%02u", i * 17 % PROCESSES);
        put_stat(dir, 1000 + i, name, i * 37 % 101);
        put(dir, "status", "Name:\tx\nUid:\t0\t0\t0\t0\n");
        put(dir, "cmdline", name);
    }
}

static uint64_t no_clock(void *arg)
{
    (void)arg;
    return 5000000000u;
}

/* Without a loop the work on a trace is done at once; Processes wants one. */
static void rig_open(struct rig *r, bool processes)
{
    char *text = trace_text();
    make_processes();
    *r = (struct rig){.settings = settings_new(),
                      .loop = processes ? loop_new_with_clock(no_clock, NULL) : NULL,
                      .processes = view_process};
    r->processes.create = create_processes;
    screens_open(&r->x, &(struct screens_setup){.t = processes ? NULL : gentrace_parse(text),
                                                .loop = r->loop,
                                                .settings = r->settings,
                                                .more = processes ? &r->processes : NULL,
                                                .glyphs = GLYPHS_ASCII,
                                                .rows = ROWS,
                                                .cols = COLS});
    free(text);
}

static void rig_close(struct rig *r)
{
    screens_close(&r->x);
    settings_free(r->settings);
    loop_free(r->loop);
    run_remove_tree(proc_root);
    free(proc_root);
}

/* ---- Doing and seeing ---- */

/* The row of the titles, or −1. */
static int header_row(struct screens *r, const char *title)
{
    for (int row = 1; row < ROWS; row++) {
        char *line = golden_row(r->s, row);
        bool here = strstr(line, title) && !strstr(line, "sort:");
        free(line);
        if (here)
            return row;
    }
    return -1;
}

/* The row of the pointer, or −1. */
static int pointer_row(struct screens *r, int head)
{
    for (int row = head + 1; row < ROWS - 2; row++)
        if (surface_at(r->s, row, 0)->cp == glyph(r->m->glyphs, GLYPH_POINTER))
            return row;
    return -1;
}

/* ---- The lists ---- */

struct list_case {
    const char *name, *open; /* commands, ';' between */
    const char *title;       /* one of the header */
    size_t rows;             /* 0: many */
    const char *filter;      /* as typed */
    const char *kept;        /* in every row then */
    size_t kept_rows;
    const char *find;        /* found in more than one row; NULL: / filters here */
    const char *sorts;       /* titles, ',' between; "" cannot be sorted */
    const char *file;        /* what x takes before the path */
    const char *leads_to;    /* Enter: the screen, or NULL */
};

static const struct list_case cases[] = {
    {"functions", "functions", "CALLS", FUNCTIONS + 2, "g1", "g1", 10, "g2",
     "CALLS,TOTAL,SELF,SELF%,MIN,AVG,P50,P99,MAX,FUNCTION", "functions ", "timeline"},
    {"calls", "functions;filter f;calls", "DURATION", CALLS, ">=3us", "us", 0, "us", "DURATION,START,TID", "",
     "timeline"},
    {"compare", "functions;filter f;compare", "SELF DIFF", FUNCTIONS + 1, "g1", "g1", 10, "g2",
     "SELF DIFF,SELF,MED.SELF,CALL DIFF,CALLS,MED.CALL,TOTAL DIFF,TOTAL,MED.TOTAL,FUNCTION", "", "timeline"},
    {"events", "events", "DELTA", 0, "kind=call g07", "g07", CALLS, NULL, "", "spans ", "timeline"},
    {"processes", "processes", "COMMAND", PROCESSES, "prog1", "prog1", 10, "prog2", "PID,CPU%,RSS,COMMAND", "", NULL},
};

struct screen {
    struct screens *r;
    const struct list_case *c;
    int head;               /* row of the titles */
    VEC(char *) seq;        /* the rows from the first to the last, as selected */
};

static char *selected(struct screen *sc)
{
    int row = pointer_row(sc->r, sc->head);
    assert_true(row > 0);
    return golden_row(sc->r->s, row);
}

static void forget(struct screen *sc)
{
    for (size_t i = 0; i < sc->seq.len; i++)
        free(sc->seq.data[i]);
    sc->seq.len = 0;
}

/* Walks from the first row down: at the last one nothing moves any more. */
static void read_all(struct screen *sc, size_t most)
{
    forget(sc);
    screens_press(sc->r, "Home");
    for (size_t i = 0; i < most; i++) {
        char *now = selected(sc);
        if (sc->seq.len && strcmp(now, sc->seq.data[sc->seq.len - 1]) == 0) {
            free(now);
            break;
        }
        vec_push(&sc->seq, now);
        screens_press(sc->r, "Down");
    }
}

static void assert_at(struct screen *sc, size_t i, const char *after)
{
    char *now = selected(sc);
    if (i >= sc->seq.len || strcmp(now, sc->seq.data[i]) != 0)
        fail_msg("%s, %s: at '%s', not at row %zu '%s'", sc->c->name, after, now, i,
                 i < sc->seq.len ? sc->seq.data[i] : "(none)");
    free(now);
}

static size_t where(struct screen *sc)
{
    char *now = selected(sc);
    size_t i = 0;
    while (i < sc->seq.len && strcmp(sc->seq.data[i], now) != 0)
        i++;
    free(now);
    assert_true(i < sc->seq.len);
    return i;
}

/* ---- What every list does ---- */

static void moves(struct screen *sc)
{
    struct screens *r = sc->r;
    read_all(sc, 400);
    if (sc->c->rows)
        assert_int_equal(sc->seq.len, sc->c->rows);
    const size_t last = sc->seq.len - 1;
    assert_true(last > 40);
    screens_press(r, "Home");
    assert_at(sc, 0, "Home");
    screens_press(r, "Up");
    assert_at(sc, 0, "Up at the first");
    screens_press(r, "j");
    assert_at(sc, 1, "j");
    screens_press(r, "Down");
    assert_at(sc, 2, "Down");
    screens_press(r, "k");
    assert_at(sc, 1, "k");
    screens_press(r, "g");
    assert_at(sc, 0, "g");
    screens_press(r, "PgDn");
    const size_t page = where(sc);
    assert_in_range(page, 8, ROWS);
    screens_press(r, "PgDn");
    assert_at(sc, 2 * page < last ? 2 * page : last, "PgDn PgDn");
    screens_press(r, "PgUp PgUp");
    assert_at(sc, 0, "PgUp PgUp");
    screens_press(r, "^D");
    assert_in_range(where(sc), page / 2, page / 2 + 1);
    screens_press(r, "^U");
    assert_at(sc, 0, "^U");
    if (sc->c->rows) { /* the last of very many is not read here */
        screens_press(r, "End");
        assert_at(sc, last, "End");
        screens_press(r, "Down");
        assert_at(sc, last, "Down at the last");
        screens_press(r, "G");
        assert_at(sc, last, "G");
        screens_press(r, "PgUp");
        assert_at(sc, last - page, "PgUp from the last");
    }
    screens_press(r, "Home Right Right Left Left");
    assert_at(sc, 0, "there and back sideways");
}

static void mouse(struct screen *sc)
{
    struct screens *r = sc->r;
    screens_press(r, "Home");
    struct mouse m = {.kind = MOUSE_WHEEL_DOWN, .row = sc->head + 3, .col = 20};
    ui_mouse(r->ui, &m);
    ui_draw(r->ui, r->s);
    assert_at(sc, 3, "wheel down");
    m.kind = MOUSE_WHEEL_UP;
    ui_mouse(r->ui, &m);
    ui_draw(r->ui, r->s);
    assert_at(sc, 0, "wheel up");
    m = (struct mouse){.kind = MOUSE_DOWN, .button = 1, .row = sc->head + 1 + 5, .col = 20};
    ui_mouse(r->ui, &m);
    ui_draw(r->ui, r->s);
    assert_at(sc, 5, "a click on the sixth");
    m.row = ROWS - 3; /* below the list, or its last row: never outside of it */
    ui_mouse(r->ui, &m);
    ui_draw(r->ui, r->s);
    where(sc);
    screens_press(r, "Home");
    if (sc->c->leads_to) {
        m = (struct mouse){.kind = MOUSE_DOUBLE, .button = 1, .row = sc->head + 1 + 2, .col = 20};
        ui_mouse(r->ui, &m);
        ui_draw(r->ui, r->s);
        assert_string_equal(ui_screen(r->ui), sc->c->leads_to);
        screens_press(r, "q");
        assert_string_equal(ui_screen(r->ui), sc->c->name);
        assert_at(sc, 2, "a double click and back");
        screens_press(r, "Enter");
        assert_string_equal(ui_screen(r->ui), sc->c->leads_to);
        screens_press(r, "q");
        assert_at(sc, 2, "Enter and back");
    }
    screens_press(r, "Home");
}

static void filters(struct screen *sc)
{
    struct screens *r = sc->r;
    screens_type(r, "\\", sc->c->filter);
    struct screen part = {r, sc->c, sc->head, {0}};
    read_all(&part, 400);
    assert_true(part.seq.len > 0);
    if (sc->c->kept_rows)
        assert_int_equal(part.seq.len, sc->c->kept_rows);
    else
        assert_true(part.seq.len < sc->seq.len);
    for (size_t i = 0; i < part.seq.len; i++)
        if (!strstr(part.seq.data[i], sc->c->kept))
            fail_msg("%s: no '%s' in '%s'", sc->c->name, sc->c->kept, part.seq.data[i]);
    forget(&part);
    vec_free(&part.seq);
    screens_press(r, "Esc"); /* all again */
    screens_press(r, "Home");
    assert_at(sc, 0, "Esc");
    screens_press(r, "Esc");
    assert_at(sc, 0, "Esc again");
}

static void searches(struct screen *sc)
{
    struct screens *r = sc->r;
    size_t first = SIZE_MAX, second = SIZE_MAX, n = 0;
    if (!sc->c->find) { /* what is searched is what is left */
        screens_type(r, "/", sc->c->filter);
        struct screen part = {r, sc->c, sc->head, {0}};
        read_all(&part, 400);
        screens_press(r, "Home n n N");
        assert_at(&part, 1, "n n N");
        forget(&part);
        vec_free(&part.seq);
        screens_press(r, "Esc Home n");
        assert_at(sc, 0, "n without a search");
        assert_string_equal(r->m->say, "no search: / leaves the events that you name, n goes to the next of them");
        return;
    }
    for (size_t i = 0; i < sc->seq.len; i++)
        if (strstr(sc->seq.data[i], sc->c->find)) {
            second = n == 1 ? i : second;
            first = n == 0 ? i : first;
            n++;
        }
    assert_true(n > 1);
    screens_type(r, "/", sc->c->find);
    assert_at(sc, first, "/");
    screens_press(r, "n");
    assert_at(sc, second, "n");
    screens_press(r, "N");
    assert_at(sc, first, "N");
    screens_type(r, "/", "no such text");
    assert_at(sc, first, "/ without a match");
    screens_press(r, "Esc Home");
}

/* ---- Orders ---- */

/* 1: ascending, −1: descending, 0: all are equal; anything else fails. */
static int direction(struct screen *sc, const char *header, const char *title)
{
    int way = 0;
    char before[512] = "", cell[512];
    for (size_t i = 0; i < sc->seq.len; i++) {
        column_cell(header, sc->seq.data[i], title, cell, sizeof cell);
        int order = i ? column_order(title, cell, before) : 0;
        if (order && way && (order > 0) != (way > 0))
            fail_msg("%s by %s: '%s' behind '%s'", sc->c->name, title, cell, before);
        way = order ? (order > 0 ? 1 : -1) : way;
        strcpy(before, cell);
    }
    return way;
}

static void sorts(struct screen *sc)
{
    struct screens *r = sc->r;
    char titles[200], *save = NULL;
    snprintf(titles, sizeof titles, "%s", sc->c->sorts);
    for (char *title = strtok_r(titles, ",", &save); title; title = strtok_r(NULL, ",", &save)) {
        char *header = golden_row(r->s, sc->head);
        for (int i = 0; i < 24 && !column_is_sorted(header, title); i++) {
            screens_press(r, i < 12 ? ">" : "<");
            free(header);
            header = golden_row(r->s, sc->head);
        }
        if (!column_is_sorted(header, title))
            fail_msg("%s: > does not come to %s: %s", sc->c->name, title, header);
        read_all(sc, 400);
        int way = direction(sc, header, title);
        screens_press(r, "I");
        free(header);
        header = golden_row(r->s, sc->head);
        read_all(sc, 400);
        int other = direction(sc, header, title);
        if (way + other != 0)
            fail_msg("%s by %s: I leaves the order %d", sc->c->name, title, way);
        /* A click on the title is one more inversion. */
        struct mouse m = {.kind = MOUSE_DOWN, .button = 1, .row = sc->head, .col = 0};
        m.col = (int)(column_title(header, title) - header);
        ui_mouse(r->ui, &m);
        ui_draw(r->ui, r->s);
        read_all(sc, 400);
        assert_int_equal(direction(sc, header, title), way);
        free(header);
    }
}

/* ---- Out of it ---- */

static void copies(struct screen *sc)
{
    struct screens *r = sc->r;
    screens_press(r, "Home Down y"); /* nobody has a clipboard here: what would be in it is said */
    char *row = selected(sc), *say = strstr(r->m->say, "no clipboard for: ");
    assert_non_null(say);
    say += strlen("no clipboard for: ");
    if (strcmp(sc->c->name, "calls") == 0)
        assert_string_equal(say, "f");
    else if (!strstr(row, say))
        fail_msg("%s: '%s' copied from '%s'", sc->c->name, say, row);
    free(row);
}

static void exports(struct screen *sc)
{
    char path[300], line[400];
    snprintf(path, sizeof path, "%s/out-%s", proc_root, sc->c->name);
    snprintf(line, sizeof line, "%s%s", sc->c->file, path);
    screens_type(sc->r, "x", line);
    char *text = run_read_file(path, NULL);
    if (!text)
        fail_msg("%s: x wrote nothing: %s", sc->c->name, sc->r->m->say);
    size_t lines = 0;
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    if (sc->c->rows)
        assert_int_equal(lines, sc->c->rows + 1);
    else
        assert_int_equal(lines, 1 + 1 + CALLS * (1 + FUNCTIONS)); /* titles, main, each f and its g's */
    free(text);
    screens_type(sc->r, "x", line); /* never over a file that is there */
    assert_int_equal(sc->r->m->say_severity, SAY_ERROR);
}

static void every_list(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig r;
        struct screen sc = {&r.x, &cases[i], 0, {0}};
        char commands[100], *save = NULL;
        rig_open(&r, !cases[i].leads_to);
        snprintf(commands, sizeof commands, "%s", cases[i].open);
        for (char *c = strtok_r(commands, ";", &save); c; c = strtok_r(NULL, ";", &save)) {
            screens_command(&r.x, c);
            if (strncmp(c, "filter", 6) == 0)
                screens_press(&r.x, "Home");
        }
        sc.head = header_row(&r.x, cases[i].title);
        assert_true(sc.head > 0);
        print_message("%s\n", cases[i].name);
        moves(&sc);
        mouse(&sc);
        filters(&sc);
        searches(&sc);
        copies(&sc);
        exports(&sc);
        sorts(&sc);
        forget(&sc);
        vec_free(&sc.seq);
        rig_close(&r);
    }
}

int main(void)
{
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
