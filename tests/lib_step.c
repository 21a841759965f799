#include "lib_step.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/symbols/elf_file.h"
#include "core/step/step_recorder.h"
#include "core/step/step_sites.h"
#include "core/base/vec.h"
#include "lib_program.h"
#include "lib_step_maps.h"

#define SOON_MS 20000
#define TRIES   20

/* A recorder at work in a process of its own. */
struct recorder {
    pid_t pid;
    int ctl, ack;
    FILE *says;
};

bool step_branch_enters_kernel(const struct step_branch *b)
{
    return strcmp(b->kind, "syscall") == 0 || strcmp(b->kind, "trap") == 0;
}

bool step_branch_ends(const struct step_branch *b)
{
    return step_branch_enters_kernel(b) || strcmp(b->kind, "async") == 0;
}

static int run_recorder(const struct step_rec *r, const struct step_site *site, int ctl, int ack, int say)
{
    char sites[300];
    struct err err = {0};
    snprintf(sites, sizeof sites, "%s/sites", r->dir);
    if (step_sites_write(sites, site, 1, NULL) < 0)
        return 2;
    struct step_recorder_options o = {.sites = sites, .output = r->data, .one_file = true,
                                      .ctl_fd = ctl, .ack_fd = ack, .say_fd = say};
    o.tracer.pid = r->pid;
    o.tracer.at_sites = true;
    o.tracer.budget = STEP_BUDGET;
    o.tracer.encoding = pt_encode_options_default();
    o.tracer.truth = fopen(r->truth, "w");
    int rc = step_recorder_run(&o, &err);
    fclose(o.tracer.truth);
    if (rc < 0)
        fprintf(stderr, "%s\n", err.text);
    return rc < 0;
}

/* Returns once the site is armed. */
static struct recorder start_recorder(const struct step_rec *r, const struct step_site *site)
{
    int say[2], ctl[2], ack[2];
    struct recorder rec;
    char got[8];
    assert_true(pipe(say) == 0 && pipe(ctl) == 0 && pipe(ack) == 0);
    fflush(NULL);
    rec.pid = fork();
    if (rec.pid == 0) {
        close(ctl[1]);
        _exit(run_recorder(r, site, ctl[0], ack[1], say[1]));
    }
    close(say[1]);
    close(ctl[0]);
    close(ack[1]);
    rec.ctl = ctl[1];
    rec.ack = ack[0];
    rec.says = fdopen(say[0], "r");
    assert_int_equal(write(rec.ctl, "enable\n", 7), 7);
    struct pollfd answer = {rec.ack, POLLIN, 0};
    assert_int_equal(poll(&answer, 1, SOON_MS), 1);
    assert_true(read(rec.ack, got, sizeof got) > 0);
    return rec;
}

static void stop_recorder(struct recorder *rec)
{
    int status;
    kill(rec->pid, SIGTERM);
    assert_int_equal(waitpid(rec->pid, &status, 0), rec->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    fclose(rec->says);
    close(rec->ctl);
    close(rec->ack);
}

void step_rec_read_truth(struct step_rec *r)
{
    VEC(struct step_branch) all = {0};
    char line[256];
    FILE *f = fopen(r->truth, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        struct step_branch b;
        assert_int_equal(sscanf(line, "%" SCNu64 "\t%d\t%11s\t%" SCNx64 "\t%" SCNx64 "\t%" SCNx64, &b.clock,
                                &b.tid, b.kind, &b.from, &b.to, &b.sp),
                         6);
        vec_push(&all, b);
    }
    fclose(f);
    r->branches = all.data;
    r->n_branches = all.len;
}

static unsigned count_windows(const struct step_rec *r)
{
    unsigned n = 0;
    for (size_t i = 0; i < r->n_branches; i++)
        n += strcmp(r->branches[i].kind, "begin") == 0 && r->branches[i].to == r->branches[0].to;
    return n;
}

static uint64_t site_offset(const char *path, const char *function)
{
    struct elf_file *f;
    uint64_t offset = 0, vaddr;
    assert_int_equal(elf_file_open_path(path, &f, NULL), 0);
    vaddr = function ? program_nm("/", path, function) : elf_file_entry(f);
    if (!vaddr || !elf_file_vaddr_to_offset(f, vaddr, &offset))
        fail_msg("%s has no %s", path, function ? function : "entry");
    elf_file_free(f);
    return offset;
}

static void build(const struct step_rec *r, const struct step_program *p)
{
    const char *name = p->source_name ? p->source_name : "t.c";
    if (p->source)
        program_write(r->dir, name, p->source);
    if (p->source && !strstr(name, ".py"))
        assert_true(program_build(r->dir, name, "t", p->flags));
    if (p->prepare)
        assert_true(program_shell(r->dir, "%s", p->prepare));
}

/* How many windows there are: the recorder may have begun one more before it was told to stop. */
static unsigned record(struct step_rec *r, const struct step_program *p, const struct step_site *site,
                       unsigned windows)
{
    struct program running;
    char line[512];
    program_start(&running, r->dir, p->command ? p->command : "./t");
    r->pid = running.pid;
    struct recorder rec = start_recorder(r, site);
    if (!p->function) /* it waits to become the file's program */
        assert_int_equal(write(running.in, "\n", 1), 1);
    for (unsigned n = 0; n < windows && fgets(line, sizeof line, rec.says);)
        n += strstr(line, "ended: ") != NULL;
    stop_recorder(&rec);
    step_rec_read_truth(r);
    step_maps_read(r);
    close(running.in);
    running.in = -1;
    program_end(&running);
    return count_windows(r);
}

static void forget(struct step_rec *r)
{
    step_maps_free(r);
    free(r->branches);
    r->branches = NULL;
}

void step_rec_program(struct step_rec *r, const struct step_program *p, unsigned windows)
{
    memset(r, 0, sizeof *r);
    r->dir = program_mkdir();
    build(r, p);
    snprintf(r->exe, sizeof r->exe, p->file ? "%s" : "%s/t", p->file ? p->file : r->dir);
    snprintf(r->data, sizeof r->data, "%s/perf.data", r->dir);
    snprintf(r->truth, sizeof r->truth, "%s/truth", r->dir);
    struct step_site site = {.path = r->exe, .is_entry = p->function != NULL};
    site.offset = site_offset(r->exe, p->function);
    unsigned n;
    for (int tries = 0; (n = record(r, p, &site, windows)) > windows && tries < TRIES; tries++) {
        forget(r);
        unlink(r->data);
    }
    assert_int_equal(n, windows);
}

void step_rec_make(struct step_rec *r, const char *source, bool cxx, const char *flags,
                   const char *function, unsigned windows)
{
    struct step_program p = {.source = source, .flags = flags, .function = function};
    p.source_name = cxx ? "t.cc" : NULL;
    step_rec_program(r, &p, windows);
}

void step_rec_free(struct step_rec *r)
{
    forget(r);
    program_rmdir(r->dir);
    memset(r, 0, sizeof *r);
}
