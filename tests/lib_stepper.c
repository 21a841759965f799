#include "lib_stepper.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/symbols/elf_file.h"
#include "core/machine/proc_stat.h"
#include "core/step/step_sites.h"

#define SOON 20.0

static char *output(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static char *output(const char *fmt, ...)
{
    char command[4096];
    int status;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    return run_output(command, &status);
}

uint64_t stepper_vaddr(const char *function)
{
    char *exe = run_tool("step_victim");
    char *text = output("nm %s | awk '$3 == \"%s\" {print $1}'", exe, function);
    uint64_t addr = strtoull(text, NULL, 16);
    free(text);
    free(exe);
    assert_true(addr != 0);
    return addr;
}

static void start(struct stepper *s, const char *scenario, const char *gate)
{
    char line[64] = "", *exe = run_tool("step_victim");
    memset(s, 0, sizeof *s);
    s->ctl = s->ack = s->say = -1;
    s->dir = run_temp_dir();
    s->data = xasprintf("%s/perf.data", s->dir);
    s->truth = xasprintf("%s/truth", s->dir);
    s->sites = xasprintf("%s/sites", s->dir);
    s->anchors = xasprintf("%s/anchors", s->dir);
    s->target = run_start((char *[]){exe, (char *)(uintptr_t)scenario,
                                        (char *)(uintptr_t)gate, NULL});
    assert_non_null(fgets(line, sizeof line, s->target.out));
    assert_string_equal(line, "ready\n");
    free(exe);
}

void stepper_start(struct stepper *s, const char *scenario)
{
    start(s, scenario, NULL);
}

void stepper_start_gated(struct stepper *s, const char *scenario)
{
    start(s, scenario, "gate");
}

void stepper_go(struct stepper *s)
{
    assert_int_equal(write(s->target.in, "g", 1), 1);
}

void stepper_sites(struct stepper *s, const char *const *places, size_t n)
{
    char *exe = run_tool("step_victim");
    struct elf_file *f;
    struct step_site sites[4];
    assert_in_range(n, 1, sizeof sites / sizeof *sites);
    assert_int_equal(elf_file_open_path(exe, &f, NULL), 0);
    for (size_t i = 0; i < n; i++) {
        bool inside = places[i][0] == '+';
        sites[i] = (struct step_site){.path = exe, .trigger = (uint32_t)i, .is_entry = !inside};
        assert_true(elf_file_vaddr_to_offset(f, stepper_vaddr(places[i] + inside), &sites[i].offset));
    }
    elf_file_free(f);
    assert_int_equal(step_sites_write(s->sites, sites, n, NULL), 0);
    free(exe);
}

void stepper_site(struct stepper *s, const char *function)
{
    stepper_sites(s, &function, 1);
}

uint64_t stepper_address(const struct stepper *s, const char *function)
{
    char *text = output("awk '/step_victim/ {print $1; exit}' /proc/%d/maps", (int)s->target.pid);
    uint64_t base = strtoull(text, NULL, 16); /* the first segment of a PIE has address 0 */
    uint64_t addr = base + stepper_vaddr(function);
    free(text);
    return addr;
}

static void fill_in(struct stepper *s, struct step_recorder_options *o)
{
    o->tracer.pid = s->target.pid;
    o->tracer.encoding = pt_encode_options_default();
    o->tracer.truth = fopen(s->truth, "w");
    o->output = s->data;
    o->anchors = s->anchors;
    if (o->tracer.at_sites)
        o->sites = s->sites;
}

void stepper_record(struct stepper *s, const struct step_recorder_options *options, bool control)
{
    int say[2], ctl[2] = {-1, -1}, ack[2] = {-1, -1};
    struct step_recorder_options o = *options;
    assert_int_equal(pipe(say), 0);
    if (control)
        assert_true(pipe(ctl) == 0 && pipe(ack) == 0);
    unlink(s->anchors);
    fflush(NULL);
    s->pid = fork();
    if (s->pid == 0) {
        struct err err = {0};
        close(say[0]);
        close(s->target.in); /* or the victim would never see its end */
        if (control) {
            close(ctl[1]);
            close(ack[0]);
        }
        o.ctl_fd = ctl[0];
        o.ack_fd = ack[1];
        o.say_fd = say[1];
        fill_in(s, &o);
        int rc = step_recorder_run(&o, &err);
        fclose(o.tracer.truth);
        if (rc < 0)
            fprintf(stderr, "%s\n", err.text);
        _exit(rc < 0);
    }
    close(say[1]);
    s->say = say[0];
    s->len = 0;
    if (control) {
        close(ctl[0]);
        close(ack[1]);
        s->ctl = ctl[1];
        s->ack = ack[0];
    }
}

static char found[1024];

const char *stepper_wait(struct stepper *s, const char *words)
{
    for (;;) {
        char *end = memchr(s->text, '\n', s->len);
        if (end) {
            size_t n = (size_t)(end - s->text);
            snprintf(found, sizeof found, "%.*s", (int)n, s->text);
            s->len -= n + 1;
            memmove(s->text, end + 1, s->len);
            if (strstr(found, words))
                return found;
            continue;
        }
        struct pollfd p = {s->say, POLLIN, 0};
        if (poll(&p, 1, (int)(SOON * 1000)) <= 0)
            fail_msg("the recorder has not said \"%s\"; last: %s", words, found);
        ssize_t n = read(s->say, s->text + s->len, sizeof s->text - s->len);
        if (n <= 0)
            fail_msg("the recorder has ended without saying \"%s\"; last: %s", words, found);
        s->len += (size_t)n;
    }
}

void stepper_command(struct stepper *s, const char *command)
{
    char line[64], got[8];
    int n = snprintf(line, sizeof line, "%s\n", command);
    struct pollfd p = {s->ack, POLLIN, 0};
    assert_int_equal(write(s->ctl, line, (size_t)n), n);
    assert_int_equal(poll(&p, 1, (int)(SOON * 1000)), 1);
    assert_int_equal(read(s->ack, got, sizeof got), 5);
    assert_memory_equal(got, "ack\n", 5);
}

static void close_pipes(struct stepper *s)
{
    if (s->say >= 0)
        close(s->say);
    if (s->ctl >= 0)
        close(s->ctl);
    if (s->ack >= 0)
        close(s->ack);
    s->say = s->ctl = s->ack = -1;
}

void stepper_stop(struct stepper *s)
{
    int status = -1;
    kill(s->pid, SIGTERM);
    assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    s->pid = 0;
    close_pipes(s);
}

/* How often it has gone to sleep by itself: each round of the victim does. */
static uint64_t rounds_slept(pid_t pid)
{
    char value[32];
    return proc_status_value("/proc", pid, "voluntary_ctxt_switches", value, sizeof value)
               ? strtoull(value, NULL, 10)
               : 0;
}

struct watch {
    pid_t pid;
    uint64_t until;
};

static bool slept_on(void *arg)
{
    struct watch *w = arg;
    return rounds_slept(w->pid) >= w->until;
}

void stepper_runs_free(struct stepper *s, const char *function)
{
    char value[32];
    struct watch w = {s->target.pid, rounds_slept(s->target.pid) + 5};
    assert_true(proc_status_value("/proc", s->target.pid, "TracerPid", value, sizeof value));
    assert_string_equal(value, "0");
    assert_true(run_until(slept_on, &w, SOON));
    if (function) {
        char path[64];
        unsigned char byte = 0xcc;
        snprintf(path, sizeof path, "/proc/%d/mem", (int)s->target.pid);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        assert_int_equal(fseek(f, (long)stepper_address(s, function), SEEK_SET), 0);
        assert_int_equal(fread(&byte, 1, 1, f), 1);
        fclose(f);
        assert_int_not_equal(byte, 0xcc);
    }
}

long stepper_end(struct stepper *s)
{
    long rounds = -1, errors = -1;
    char line[128] = "";
    if (s->pid) {
        kill(s->pid, SIGTERM);
        waitpid(s->pid, NULL, 0);
    }
    close_pipes(s);
    if (s->target.in >= 0)
        close(s->target.in);
    s->target.in = -1;
    char *got = fgets(line, sizeof line, s->target.out);
    int status = run_finish(&s->target);
    if (!got || sscanf(line, "rounds %ld errors %ld", &rounds, &errors) != 2 || status != 0)
        fail_msg("the victim said \"%s\" and ended with status 0x%x", line, (unsigned)status);
    assert_int_equal(errors, 0);
    run_remove_tree(s->dir);
    free(s->dir);
    free(s->data);
    free(s->truth);
    free(s->sites);
    free(s->anchors);
    return rounds;
}

static size_t lines(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += *s == '\n';
    return n;
}

/* The first line that differs: the whole texts would be cut where it gets interesting. */
static void assert_same_lines(const char *perf, const char *truth)
{
    size_t at = 0, line = 0;
    for (size_t i = 0; perf[i] && perf[i] == truth[i]; i++) {
        if (perf[i] == '\n') {
            at = i + 1;
            line++;
        }
    }
    if (strcmp(perf, truth) != 0)
        fail_msg("branch %zu of %zu: perf lists %zu, there '%.*s'; stepping saw '%.*s'", line, lines(truth),
                 lines(perf), (int)strcspn(perf + at, "\n"), perf + at, (int)strcspn(truth + at, "\n"),
                 truth + at);
}

size_t stepper_compare(const struct stepper *s, const char *data)
{
    char *errors = output("{ perf script -i %s --itrace=e; perf script -i %s --itrace=be >/dev/null; } "
                          "2>&1 | head -3",
                          data, data);
    assert_string_equal(errors, "");
    free(errors);
    char *theirs = output("perf script -i %s --itrace=b -F tid,flags,ip,addr 2>/dev/null | "
                          "grep -v 'tr strt\\|tr end' | sed 's/=>//' | "
                          "awk '{print $1, $(NF-1), $NF}' | sort -s -n -k1,1",
                          data);
    char *truth = output("awk '$3 !~ /begin|syscall|async|trap/ {print $2, $4, $5}' %s | "
                         "sort -s -n -k1,1",
                         s->truth);
    assert_same_lines(theirs, truth);
    size_t n = lines(truth);
    free(theirs);
    free(truth);
    return n;
}
