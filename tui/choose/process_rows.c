#include "tui/choose/process_rows.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/base/vec.h"

const struct list_column process_columns[PROCESS_COLUMNS] = {
    [PROCESS_PID] = {.title = "PID", .cols = 7, .priority = 0, .right = true, .rising = true},
    [PROCESS_USER] = {.title = "USER", .cols = 9, .priority = 4, .rising = true},
    [PROCESS_STATE] = {.title = "S", .cols = 1, .priority = 5, .rising = true},
    [PROCESS_CPU] = {.title = "CPU%", .cols = 5, .priority = 1, .right = true},
    [PROCESS_RSS] = {.title = "RSS", .cols = 5, .priority = 6, .right = true},
    [PROCESS_THREADS] = {.title = "THR", .cols = 4, .priority = 3, .right = true},
    [PROCESS_AGE] = {.title = "AGE", .cols = 8, .priority = 7, .right = true},
    [PROCESS_SYMS] = {.title = "SYMS", .cols = 6, .priority = 8},
    [PROCESS_TRACE] = {.title = "TRACE", .cols = 7, .priority = 2, .rising = true},
    [PROCESS_COMMAND] = {.title = "COMMAND", .cols = 16, .priority = 0, .stretch = true, .rising = true},
};

struct process_rows {
    const struct proc_table *table;
    char *filter, *user;
    bool kernel;
    VEC(const struct proc *) shown;
};

struct process_rows *process_rows_new(const struct proc_table *table)
{
    struct process_rows *r = xcalloc(1, sizeof *r);
    r->table = table;
    r->filter = xstrdup("");
    r->user = xstrdup("");
    return r;
}

void process_rows_free(struct process_rows *r)
{
    if (!r)
        return;
    free(r->filter);
    free(r->user);
    vec_free(&r->shown);
    free(r);
}

static void replace(char **held, const char *text)
{
    char *fresh = xstrdup(text ? text : "");
    free(*held);
    *held = fresh;
}

void process_rows_filter(struct process_rows *r, const char *words)
{
    replace(&r->filter, words);
}

const char *process_rows_get_filter(const struct process_rows *r)
{
    return r->filter;
}

void process_rows_user(struct process_rows *r, const char *user)
{
    replace(&r->user, user);
}

const char *process_rows_get_user(const struct process_rows *r)
{
    return r->user;
}

void process_rows_kernel(struct process_rows *r, bool shown)
{
    r->kernel = shown;
}

bool process_rows_get_kernel(const struct process_rows *r)
{
    return r->kernel;
}

/* ---- which ---- */

static bool has_capital(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (isupper((unsigned char)s[i]))
            return true;
    return false;
}

static bool word_in(const char *text, const char *word)
{
    return (has_capital(word, strlen(word)) ? strstr(text, word) : strcasestr(text, word)) != NULL;
}

static bool matches(const struct process_rows *r, const struct proc *p)
{
    if (p->stat.kernel_thread && !r->kernel)
        return false;
    if (*r->user && strcmp(r->user, p->user) != 0)
        return false;
    char pid[16], word[128];
    snprintf(pid, sizeof pid, "%d", (int)p->stat.pid);
    for (const char *at = r->filter; *at;) {
        size_t len = strcspn(at, " ");
        if (len && len < sizeof word) {
            memcpy(word, at, len);
            word[len] = '\0';
            if (!word_in(p->command, word) && !word_in(p->stat.comm, word) &&
                !word_in(p->user, word) && strcmp(pid, word) != 0)
                return false;
        }
        at += len + strspn(at + len, " ");
    }
    return true;
}

/* ---- in which order ---- */

struct order {
    size_t column;
    bool inverted;
};

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* Numbers that are asked for because they are high sort downwards by default. */
static int compare_column(const struct proc *x, const struct proc *y, size_t column)
{
    switch ((enum process_column)column) {
    case PROCESS_USER:
        return strcmp(x->user, y->user);
    case PROCESS_STATE:
        return COMPARE(x->stat.state, y->stat.state);
    case PROCESS_CPU:
        return COMPARE(y->cpu_permille, x->cpu_permille);
    case PROCESS_RSS:
        return COMPARE(y->rss_bytes, x->rss_bytes);
    case PROCESS_THREADS:
        return COMPARE(y->stat.threads, x->stat.threads);
    case PROCESS_AGE:
        return COMPARE(y->age_s, x->age_s);
    case PROCESS_SYMS:
        return COMPARE(y->syms, x->syms);
    case PROCESS_TRACE:
        return COMPARE(x->trace, y->trace);
    case PROCESS_COMMAND:
        return strcmp(x->command, y->command);
    case PROCESS_PID:
    case PROCESS_COLUMNS:
    default:
        return 0;
    }
}

static int compare(const void *a, const void *b, void *arg)
{
    const struct proc *x = *(const struct proc *const *)a, *y = *(const struct proc *const *)b;
    const struct order *o = arg;
    int by_pid = COMPARE(x->stat.pid, y->stat.pid);
    int c = compare_column(x, y, o->column);
    if (!c)
        return o->column == PROCESS_PID && o->inverted ? -by_pid : by_pid;
    return o->inverted ? -c : c;
}

void process_rows_update(struct process_rows *r, size_t sort_column, bool inverted)
{
    r->shown.len = 0;
    for (size_t i = 0; i < proc_table_count(r->table); i++) {
        const struct proc *p = proc_table_at(r->table, i);
        if (matches(r, p))
            vec_push(&r->shown, p);
    }
    struct order o = {sort_column, inverted};
    if (r->shown.len)
        qsort_r(r->shown.data, r->shown.len, sizeof *r->shown.data, compare, &o);
}

size_t process_rows_count(const struct process_rows *r)
{
    return r->shown.len;
}

const struct proc *process_rows_at(const struct process_rows *r, size_t row)
{
    return r->shown.data[row];
}

uint64_t process_identity(const struct proc *p)
{
    return ((uint64_t)p->stat.pid << 40 ^ p->stat.start_ticks) | 1;
}

/* ---- cells ---- */

static size_t row_count(void *arg)
{
    return process_rows_count(arg);
}

static uint64_t row_identity(void *arg, size_t row)
{
    return process_identity(process_rows_at(arg, row));
}

static void cell_style(const struct proc *p, size_t column, struct style *style)
{
    if (column == PROCESS_TRACE && p->trace != PROC_TRACE_OK)
        style->ink = ROLE_WARN;
    else if (column == PROCESS_STATE && p->stat.state == 'R')
        style->ink = ROLE_OK;
    else if (p->stat.kernel_thread)
        style->ink = ROLE_DIM;
}

static void row_cell(void *arg, size_t row, size_t column, struct list_cell *cell)
{
    const struct proc *p = process_rows_at(arg, row);
    char number[FMT_MAX];
    const char *text = number;
    switch ((enum process_column)column) {
    case PROCESS_PID:
        snprintf(number, sizeof number, "%d", (int)p->stat.pid);
        break;
    case PROCESS_USER:
        text = p->user;
        break;
    case PROCESS_STATE:
        snprintf(number, sizeof number, "%c", p->stat.state);
        break;
    case PROCESS_CPU:
        snprintf(number, sizeof number, "%u.%u", p->cpu_permille / 10, p->cpu_permille % 10);
        break;
    case PROCESS_RSS:
        fmt_size(number, p->rss_bytes);
        break;
    case PROCESS_THREADS:
        snprintf(number, sizeof number, "%u", p->stat.threads);
        break;
    case PROCESS_AGE:
        fmt_age(number, p->age_s);
        break;
    case PROCESS_SYMS:
        text = proc_syms_name(p->syms);
        break;
    case PROCESS_TRACE:
        text = proc_trace_name(p->trace);
        break;
    case PROCESS_COMMAND:
        text = p->command;
        break;
    case PROCESS_COLUMNS:
    default:
        text = "";
        break;
    }
    snprintf(cell->text, sizeof cell->text, "%s", text);
    cell_style(p, column, &cell->style);
}

struct list_rows process_rows_callbacks(void)
{
    return (struct list_rows){.count = row_count, .identity = row_identity, .cell = row_cell};
}
