#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fmt.h"
#include "core/utf8.h"
#include "decode/open.h"
#include "decode/stats.h"
#include "tui/cmd.h"
#include "tui/cmd_screen.h"

#define TABLE_ROWS 24

/* The setup that traces this program's own demo from its first instruction to its end. */
static int demo_setup(struct cli *c, struct err *err)
{
    static const char *const words[] = {NULL, "demo-program", NULL};
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return err_errno(err, errno, "cannot find the program file of mtui");
    self[n] = '\0';
    c->setup.argv = xcalloc(sizeof words / sizeof *words, sizeof *c->setup.argv);
    c->setup.argv[0] = xstrdup(self);
    c->setup.argv[1] = xstrdup(words[1]);
    c->setup.auto_mode = false;
    c->setup.mode = PLAN_WHOLE;
    return 0;
}

static void print_row(const struct functions *fns, const struct function_stats *f)
{
    char total[FMT_MAX], self[FMT_MAX], max[FMT_MAX], calls[FMT_MAX], name[256];
    const struct function *fn = functions_get(fns, f->fn);
    utf8_escape(name, sizeof name, fn->name, strlen(fn->name));
    printf("%10s %10s %10s %10s  %s\n", fmt_count(calls, f->calls),
           fmt_duration(total, f->total_ns), fmt_duration(self, f->self_ns),
           fmt_duration(max, f->max_ns), name);
}

static int print_functions(const struct recording *r, struct err *err)
{
    struct stats_options options = {.thread = -1};
    struct stats *stats;
    int rc = stats_new(&stats, r->trace, &options, err);
    if (rc < 0)
        return rc;
    size_t n;
    const struct function_stats *f = stats_functions(stats, &n);
    const struct trace_info *info = trace_info(r->trace);
    char span[FMT_MAX];
    printf("%s of mtui's demo program, %zu threads, recorded with \"%s\"%s\n\n",
           fmt_duration(span, info->last_ns - info->first_ns), trace_thread_count(r->trace),
           info->recorder, info->sampled ? " (calls are estimates from samples)" : "");
    printf("%10s %10s %10s %10s  %s\n", "CALLS", "TOTAL", "SELF", "MAX", "FUNCTION");
    for (size_t i = 0; i < n && i < TABLE_ROWS; i++)
        print_row(trace_functions(r->trace), &f[i]);
    stats_free(stats);
    return 0;
}

static int demo_batch(struct cli *c)
{
    struct cmd_machine *m = xcalloc(1, sizeof *m);
    struct err err;
    char *dir = NULL;
    struct recording *r;
    struct open_options open = {.snapshot = OPEN_LAST, .stdin_fd = -1};
    cmd_probe_machine(m, false);
    c->setup.inherit_stdio = true;
    int status = cmd_batch(m, &c->setup, false, &dir);
    free(m);
    if (!dir)
        return status;
    int rc = open_recording(&r, dir, &open, &err);
    if (rc == 0) {
        rc = print_functions(r, &err);
        recording_free(r);
    }
    printf("\nThe snapshot is in %s\nBrowse it with: mtui open %s\n", dir, dir);
    free(dir);
    return rc < 0 ? cmd_fail(&err) : status;
}

int cmd_demo(struct cli *c)
{
    struct err err;
    if (demo_setup(c, &err) < 0)
        return cmd_fail(&err);
    return c->batch || !cmd_has_terminal() ? demo_batch(c) : cmd_screen(c);
}
