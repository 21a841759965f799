#include "core/step/step_anchors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/vec.h"

int step_anchors_create(FILE **out, const char *path, struct err *err)
{
    FILE *f = fopen(path, "wxe");
    if (!f)
        return err_errno(err, errno, "cannot write %s", path);
    fputs("clock\tperf_ns\ttid\twhat\twall_ns\n", f);
    *out = f;
    return 0;
}

static void put(FILE *f, const struct step_anchor *a, const char *what)
{
    if (f)
        fprintf(f, "%" PRIu64 "\t%" PRIu64 "\t%d\t%s\t%" PRIu64 "\n", a->clock, a->perf_ns,
                (int)a->tid, what, a->wall_ns);
}

void step_anchors_begin(FILE *f, const struct step_anchor *a)
{
    put(f, a, "begin");
    if (f)
        fflush(f);
}

void step_anchors_syscall(FILE *f, const struct step_anchor *a, uint64_t number)
{
    char what[32];
    snprintf(what, sizeof what, "syscall:%" PRIu64, number);
    put(f, a, what);
}

void step_anchors_end(FILE *f, const struct step_anchor *a, enum step_end why)
{
    char what[32];
    snprintf(what, sizeof what, "end:%s", step_end_name(why));
    put(f, a, why == STEP_END_RETURNED ? "end" : what);
    if (f)
        fflush(f);
}

/* ---- Reading ---- */

struct windows {
    VEC(struct step_anchor_window) ended, open; /* open: one a thread */
};

static uint64_t take_start(struct windows *w, pid_t tid)
{
    for (size_t i = 0; i < w->open.len; i++) {
        if (w->open.data[i].tid == tid) {
            uint64_t start = w->open.data[i].start_clock;
            vec_remove(&w->open, i);
            return start;
        }
    }
    return 0;
}

static bool find_why(const char *what, enum step_end *out)
{
    *out = STEP_END_RETURNED;
    return strcmp(what, "end") == 0 || (strncmp(what, "end:", 4) == 0 && step_end_find(what + 4, out));
}

static void take_line(struct windows *w, const char *line)
{
    struct step_anchor_window one = {0};
    uint64_t clock;
    char what[32];
    if (sscanf(line, "%" SCNu64 "\t%*u\t%d\t%31s\t%" SCNu64, &clock, &one.tid, what, &one.wall_ns) != 4)
        return;
    if (strcmp(what, "begin") == 0) {
        take_start(w, one.tid);
        one.start_clock = clock;
        vec_push(&w->open, one);
    } else if (find_why(what, &one.why)) {
        one.start_clock = take_start(w, one.tid);
        one.end_clock = clock;
        vec_push(&w->ended, one);
    }
}

int step_anchors_read(const char *path, struct step_anchor_window **out, size_t *n, struct err *err)
{
    struct windows w = {0};
    char *line = NULL;
    size_t size = 0;
    FILE *f = fopen(path, "re");
    if (!f && errno != ENOENT)
        return err_errno(err, errno, "cannot read %s", path);
    while (f && getline(&line, &size, f) > 0)
        take_line(&w, line);
    if (f)
        fclose(f);
    free(line);
    vec_free(&w.open);
    *out = w.ended.data;
    *n = w.ended.len;
    return 0;
}
