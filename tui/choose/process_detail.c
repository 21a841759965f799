#include "tui/choose/process_detail.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/symbols/elf_file.h"
#include "core/base/fmt.h"
#include "core/machine/maps.h"
#include "core/machine/proc_stat.h"
#include "core/base/vec.h"
#include "tui/ui/bar.h"

#define LABEL_COLS   9 /* " exe      " and its like */
#define MODULES_MAX  64
#define THREADS_MAX  512
#define THREADS_LINE 4 /* threads named in the one line */

struct process_detail {
    uint64_t start_ticks; /* with pid: whose facts these are */
    pid_t pid;
    char exe[PATH_MAX], build_id[2 * ELF_BUILD_ID_MAX + 1], kind[48];
    VEC(char *) modules;
    struct proc_stat *threads;
    size_t n_threads;
    bool all_threads;
};

struct process_detail *process_detail_new(void)
{
    return xcalloc(1, sizeof(struct process_detail));
}

static void forget(struct process_detail *d)
{
    for (size_t i = 0; i < d->modules.len; i++)
        free(d->modules.data[i]);
    d->modules.len = 0;
    d->exe[0] = d->build_id[0] = d->kind[0] = '\0';
}

void process_detail_free(struct process_detail *d)
{
    if (!d)
        return;
    forget(d);
    vec_free(&d->modules);
    free(d->threads);
    free(d);
}

/* ---- reading ---- */

static void read_program(struct process_detail *d)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/%d/exe", (int)proc_living_thread("/proc", d->pid));
    ssize_t n = readlink(link, d->exe, sizeof d->exe - 1);
    d->exe[n > 0 ? n : 0] = '\0';
    struct elf_file *f;
    int fd = open(link, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || elf_file_open(fd, link, &f, NULL) < 0)
        return;
    size_t len;
    const uint8_t *id = elf_file_build_id(f, &len);
    elf_build_id_hex(id, len, d->build_id);
    snprintf(d->kind, sizeof d->kind, "%s", elf_kind_name(elf_file_kind(f)));
    elf_file_free(f);
}

static bool has_module(const struct process_detail *d, const char *name)
{
    for (size_t i = 0; i < d->modules.len; i++)
        if (strcmp(d->modules.data[i], name) == 0)
            return true;
    return false;
}

static void read_modules(struct process_detail *d)
{
    struct maps *maps;
    if (maps_read(NULL, d->pid, &maps, NULL) < 0)
        return;
    for (size_t i = 0; i < maps_count(maps) && d->modules.len < MODULES_MAX; i++) {
        const struct map *m = maps_at(maps, i);
        const char *slash = strrchr(m->path, '/');
        const char *name = slash ? slash + 1 : m->path;
        if ((m->prot & MAPS_X) && *name && strcmp(m->path, d->exe) != 0 && !has_module(d, name))
            vec_push(&d->modules, xstrdup(name));
    }
    maps_free(maps);
}

void process_detail_read(struct process_detail *d, const struct proc *p, bool threads)
{
    free(d->threads);
    d->threads = NULL;
    d->n_threads = 0;
    d->all_threads = threads;
    if (!p) {
        d->pid = 0;
        forget(d);
        return;
    }
    if (d->pid != p->stat.pid || d->start_ticks != p->stat.start_ticks) {
        forget(d);
        d->pid = p->stat.pid;
        d->start_ticks = p->stat.start_ticks;
        if (!p->stat.kernel_thread) {
            read_program(d);
            read_modules(d);
        }
    }
    ssize_t n = proc_threads("/proc", d->pid, &d->threads, NULL);
    d->n_threads = n > 0 ? (size_t)n : 0;
}

/* ---- drawing ---- */

static const struct style plain = {ROLE_DEFAULT, ROLE_DEFAULT, 0};
static const struct style label = {ROLE_DIM, ROLE_DEFAULT, 0};
static const struct style warn = {ROLE_WARN, ROLE_DEFAULT, 0};

static void draw_label(struct surface *s, int row, int col, const char *text)
{
    surface_text(s, row, col + 1, LABEL_COLS, text, SIZE_MAX, label);
}

/* Text behind a label, within the rect. */
static int draw_value(struct surface *s, struct rect r, int row, int col, const char *text,
                      struct style style)
{
    int left = r.col + r.cols - col;
    return col + (left > 0 ? surface_text(s, row, col, left, text, SIZE_MAX, style) : 0);
}

static void draw_program(const struct process_detail *d, const struct proc *p, struct surface *s,
                         struct rect r, int row)
{
    char text[256];
    draw_label(s, row, r.col, "exe");
    int col = draw_value(s, r, row, r.col + LABEL_COLS + 1, d->exe[0] ? d->exe : "-", plain);
    if (d->build_id[0]) {
        snprintf(text, sizeof text, "   build-id %.4s...%s", d->build_id,
                 d->build_id + strlen(d->build_id) - 2);
        col = draw_value(s, r, row, col, text, plain);
    }
    snprintf(text, sizeof text, "   %s   symbols: %s", d->kind, proc_syms_name(p->syms));
    draw_value(s, r, row, col, text, plain);
}

static void draw_modules(const struct process_detail *d, struct surface *s, struct rect r, int row)
{
    draw_label(s, row, r.col, "modules");
    int col = r.col + LABEL_COLS + 1, end = r.col + r.cols - 10;
    size_t i = 0;
    for (; i < d->modules.len && col < end; i++)
        col = 2 + surface_text(s, row, col, end - col, d->modules.data[i], SIZE_MAX, plain) + col;
    if (i < d->modules.len) {
        char more[32];
        snprintf(more, sizeof more, "+%zu more", d->modules.len - i);
        draw_value(s, r, row, col, more, label);
    }
    if (!d->modules.len)
        draw_value(s, r, row, col, "-", plain);
}

static void thread_text(const struct process_detail *d, size_t i, char *out, size_t size)
{
    const struct proc_stat *t = &d->threads[i];
    snprintf(out, size, "%d %s %c", (int)t->pid, t->comm, t->state);
}

static void draw_thread_line(const struct process_detail *d, struct surface *s, struct rect r,
                             int row)
{
    char text[PROC_COMM_MAX + 32];
    draw_label(s, row, r.col, "threads");
    int col = r.col + LABEL_COLS + 1;
    size_t n = d->n_threads < THREADS_LINE ? d->n_threads : THREADS_LINE;
    for (size_t i = 0; i < n; i++) {
        thread_text(d, i, text, sizeof text);
        col = 3 + draw_value(s, r, row, col, text, plain);
    }
    if (d->n_threads > n) {
        snprintf(text, sizeof text, "+%zu", d->n_threads - n);
        draw_value(s, r, row, col, text, label);
    }
}

/* All threads, in as many columns as fit. */
static void draw_thread_table(const struct process_detail *d, struct surface *s, struct rect r,
                              int row)
{
    const int cols = 26;
    int per_row = r.cols / cols > 0 ? r.cols / cols : 1;
    for (size_t i = 0; i < d->n_threads; i++) {
        int at = row + (int)(i / (size_t)per_row);
        if (at >= r.row + r.rows)
            return;
        char text[PROC_COMM_MAX + 32];
        thread_text(d, i, text, sizeof text);
        surface_text(s, at, r.col + 1 + (int)(i % (size_t)per_row) * cols, cols - 2, text, SIZE_MAX,
                     plain);
    }
}

static void draw_cpu(const struct proc *p, struct surface *s, struct rect r, int row,
                     const struct glyphs *g)
{
    draw_label(s, row, r.col, "cpu");
    int col = r.col + LABEL_COLS + 1;
    unsigned top = 1000; /* a full row is one CPU, or the most that was seen */
    for (unsigned i = 0; i < p->history_len; i++)
        top = p->history[i] > top ? p->history[i] : top;
    col = draw_value(s, r, row, col, "last refreshes  ", label);
    for (unsigned i = 0; i < p->history_len && col < r.col + r.cols; i++) {
        unsigned eighths = p->history[i] * 8u / top;
        uint32_t cp = eighths ? glyph(g, (enum glyph)(GLYPH_BAR1 + eighths - 1)) : glyph(g, GLYPH_BAR1);
        surface_put(s, row, col++, cp, (struct style){ROLE_MINIMAP, ROLE_DEFAULT, 0});
    }
    char text[48];
    snprintf(text, sizeof text, "   now %u.%u%%", p->cpu_permille / 10, p->cpu_permille % 10);
    draw_value(s, r, row, col, text, plain);
}

int process_detail_rows(const struct process_detail *d)
{
    return d->all_threads ? 5 + (int)(d->n_threads > THREADS_MAX ? THREADS_MAX : d->n_threads) / 3 : 5;
}

void process_detail_draw(const struct process_detail *d, const struct proc *p, struct surface *s,
                         struct rect r, const struct glyphs *g)
{
    if (r.rows < 1)
        return;
    if (!p) {
        bar_draw_rule(s, r.row, r.col, r.cols, "no process selected", "", g);
        return;
    }
    char title[PROC_COMM_MAX + 32], right[32], reason[200];
    snprintf(title, sizeof title, "%d %s", (int)p->stat.pid, p->stat.comm);
    snprintf(right, sizeof right, "%u thread%s", p->stat.threads, p->stat.threads == 1 ? "" : "s");
    bar_draw_rule(s, r.row, r.col, r.cols, title, right, g);
    proc_trace_reason(p, reason, sizeof reason);
    int row = r.row + 1, end = r.row + r.rows;
    if (reason[0] && row < end) {
        draw_label(s, row, r.col, "trace");
        draw_value(s, r, row++, r.col + LABEL_COLS + 1, reason, warn);
    }
    if (row < end && !p->stat.kernel_thread)
        draw_program(d, p, s, r, row++);
    if (d->all_threads) {
        draw_thread_table(d, s, r, row);
        return;
    }
    if (row < end && !p->stat.kernel_thread)
        draw_modules(d, s, r, row++);
    if (row < end)
        draw_thread_line(d, s, r, row++);
    if (row < end)
        draw_cpu(p, s, r, row, g);
}

/* ---- capabilities ---- */

static void draw_capability(const struct capabilities *caps, struct surface *s, struct rect r,
                            int row, const enum capability_id *ids, size_t n)
{
    int col = r.col + 1;
    for (size_t i = 0; i < n; i++) {
        const struct capability *c = &caps->line[ids[i]];
        int left = r.col + r.cols - col;
        if (left <= 0)
            return;
        col += surface_text(s, row, col, left, c->name, SIZE_MAX, label) + 1;
        const char *value = c->value;
        col = draw_value(s, r, row, col, value, c->present ? plain : warn) + 3;
    }
}

void capability_pane_draw(const struct capabilities *caps, struct surface *s, struct rect r,
                          const struct glyphs *g)
{
    static const enum capability_id first[] = {CAP_INTEL_PT, CAP_CYCLES, CAP_HWBREAK};
    static const enum capability_id second[] = {CAP_PERF, CAP_CONTROL};
    static const enum capability_id third[] = {CAP_UPROBE, CAP_OTHERS, CAP_MLOCK};
    if (r.rows < 1)
        return;
    bar_draw_rule(s, r.row, r.col, r.cols, "Tracing on this machine", "mtui doctor explains", g);
    if (!caps) {
        if (r.rows > 1)
            surface_text(s, r.row + 1, r.col + 1, r.cols - 1, "looking ...", SIZE_MAX, label);
        return;
    }
    if (r.rows > 1)
        draw_capability(caps, s, r, r.row + 1, first, 3);
    if (r.rows > 2)
        draw_capability(caps, s, r, r.row + 2, second, 2);
    if (r.rows > 3)
        draw_capability(caps, s, r, r.row + 3, third, 3);
}

void capability_summary(const struct capabilities *caps, char *out, size_t size)
{
    if (!caps)
        snprintf(out, size, "looking ...");
    else if (!caps->line[CAP_PERF].present)
        snprintf(out, size, "no perf");
    else
        snprintf(out, size, "%s  paranoid %d", caps->intel_pt.present ? "PT ok" : "no PT: sampled",
                 caps->paranoid);
}
