#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/doctor/capability_probe.h"
#include "core/base/fmt.h"
#include "core/base/utf8.h"
#include "decode/open/open.h"
#include "decode/trace/stats.h"
#include "tui/app/cmd.h"
#include "tui/app/cmd_screen.h"
#include "tui/app/demo_program.h"

#define TABLE_ROWS 24

/* The most exact recorder that works here. */
static enum plan_recorder choose_recorder(void)
{
    struct capabilities *caps = xcalloc(1, sizeof *caps);
    enum plan_recorder recorder = PLAN_SAMPLE;
    pmu_read_intel_pt("/sys", &caps->intel_pt);
    capability_try_step(caps);
    capability_try_uprobe(caps);
    if (caps->intel_pt.present)
        recorder = PLAN_PT;
    else if (caps->line[CAP_STEP].present && caps->uprobe_works)
        recorder = PLAN_STEP;
    free(caps);
    return recorder;
}

/* The setup that traces this program's own demo: from its first instruction to its end, or, stepped, the
 * first slow request. */
static int demo_setup(struct cli *c, struct err *err)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return err_errno(err, errno, "cannot find the program file of mtui");
    self[n] = '\0';
    if (c->setup.auto_recorder)
        c->setup.recorder = choose_recorder();
    c->setup.auto_recorder = false;
    bool step = c->setup.recorder == PLAN_STEP;
    c->setup.argv = xcalloc(4, sizeof *c->setup.argv);
    c->setup.argv[0] = xstrdup(self);
    c->setup.argv[1] = xstrdup("demo-program");
    c->setup.argv[2] = step ? xstrdup(DEMO_STEP_WORD) : NULL;
    c->setup.auto_mode = false;
    c->setup.mode = step ? PLAN_TRIGGER : PLAN_WHOLE;
    if (step) {
        session_setup_add_trigger(&c->setup, DEMO_SLOW_REQUEST);
        c->setup.when.max_snapshots = 1;
    }
    return 0;
}

static char *amount(char *out, uint64_t n, bool instructions)
{
    return instructions ? fmt_count(out, n) : fmt_duration(out, n);
}

static void print_row(const struct functions *fns, const struct function_stats *f,
                      bool instructions)
{
    char total[FMT_MAX], self[FMT_MAX], max[FMT_MAX], calls[FMT_MAX], name[256];
    const struct function *fn = functions_get(fns, f->fn);
    utf8_escape(name, sizeof name, fn->name, strlen(fn->name));
    printf("%10s %10s %10s %10s  %s\n", fmt_count(calls, f->calls),
           amount(total, f->total_ns, instructions), amount(self, f->self_ns, instructions),
           amount(max, f->max_ns, instructions), name);
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
    size_t threads = trace_thread_count(r->trace);
    uint64_t length = info->last_ns - info->first_ns;
    printf("%s%s of mtui's demo program, %zu thread%s, recorded with \"%s\"%s\n\n",
           amount(span, length, info->instructions),
           info->instructions ? " instructions" : "", threads, threads == 1 ? "" : "s",
           info->recorder,
           info->sampled        ? " (calls are estimates from samples)"
           : info->instructions ? " (every call; times are instructions)"
                                : " (every call)");
    printf("%10s %10s %10s %10s  %s\n", "CALLS", "TOTAL", "SELF", "MAX", "FUNCTION");
    for (size_t i = 0; i < n && i < TABLE_ROWS; i++)
        print_row(trace_functions(r->trace), &f[i], info->instructions);
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
    int status = cmd_batch(m, &c->setup, BATCH_DIRECTORY, &dir);
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
