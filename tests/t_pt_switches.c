/* Buffers of CPUs: who ran is told by SWITCH records or by samples of sched:sched_switch; and recordings that
 * come through a pipe. What comes out is the same for all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/export/export.h"
#include "decode/open/open.h"
#include "decode/perf/tracepoint.h"
#include "lib_rewrite.h"
#include "lib_run.h"
#include "lib_step.h"
#include "lib_step_programs.h"
#include "lib_statistics.h"

struct bench {
    struct step_rec rec;
    char cpus[300], pipe[300];
};

static int record(void **state)
{
    static struct bench b;
    struct step_encoding e = step_encodings[0];
    for (const struct step_program *p = step_programs; p->name; p++)
        if (strcmp(p->name, "signals") == 0)
            step_rec_program(&b.rec, p, 1);
    e.per_cpu = true;
    snprintf(b.cpus, sizeof b.cpus, "%s/cpus.data", b.rec.dir);
    snprintf(b.pipe, sizeof b.pipe, "%s/pipe.data", b.rec.dir);
    step_rec_encode(&b.rec, &e, b.cpus);
    *state = &b;
    return 0;
}

static int forget(void **state)
{
    step_rec_free(&((struct bench *)*state)->rec);
    return 0;
}

static char *spans(const char *path, int stdin_fd, char **notes)
{
    struct open_options o = {.threads = 1, .stdin_fd = stdin_fd};
    struct export_options e = {.format = EXPORT_SPANS, .workers = 1};
    struct recording *r;
    struct err err;
    char *out = NULL;
    size_t len;
    if (open_recording(&r, path, &o, &err) < 0)
        fail_msg("%s", err.text);
    if (strcmp(path, "-") != 0)
        statistics_check(path, &o, r->trace);
    FILE *f = open_memstream(&out, &len);
    assert_int_equal(export_write(f, r->trace, NULL, &e, &err), 0);
    fclose(f);
    if (notes) {
        FILE *n = open_memstream(notes, &len);
        for (size_t i = 0; i < r->nnotes; i++)
            fprintf(n, "%s\n", r->notes[i]);
        fclose(n);
    }
    recording_free(r);
    return out;
}

/* ---- sched_switch ---- */

struct sample_id { /* of the recorder's sideband */
    uint32_t pid, tid;
    uint64_t time;
    uint32_t cpu, reserved;
    uint64_t identifier;
};

/* A SWITCH record becomes a sample: of the thread that comes, or of the idle one. arg: where next_pid is. */
static bool as_sample(struct rewrite *r, const uint8_t *rec, size_t len, const uint8_t *data, size_t data_len)
{
    struct perf_event_header h;
    struct sample_id id;
    (void)data;
    (void)data_len;
    memcpy(&h, rec, sizeof h);
    if (h.type != PERF_RECORD_SWITCH)
        return true;
    assert_int_equal(len, sizeof h + sizeof id);
    memcpy(&id, rec + sizeof h, sizeof id);
    bool out = h.misc & PERF_RECORD_MISC_SWITCH_OUT;
    /* The kernel switches some time after tracing has ended for it. */
    rewrite_put_sched_switch(r, id.cpu, id.time + out, out ? 0 : id.tid, *(const size_t *)r->arg);
    return false;
}

static const char usual[] =
    "name: sched_switch\nID: 316\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
    "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
    "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
    "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
    "\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
    "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"
    "\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\nprint fmt: \"...\"\n";
static const char other[] =
    "name: sched_switch\nID: 316\nformat:\n"
    "\tfield:pid_t my_next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"
    "\tfield:pid_t next_pid;\toffset:12;\tsize:4;\tsigned:1;\n";

static void by_samples(void **state)
{
    const struct bench *b = *state;
    char *want = spans(b->cpus, -1, NULL), *notes;
    static const struct {
        const char *format;
        size_t offset;
    } cases[] = {{NULL, 56}, {usual, 56}, {other, 12}};
    assert_non_null(strstr(want, "handler"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t offset = cases[i].offset;
        struct rewrite r = {
            .record = as_sample, .arg = &offset, .tracepoint = true, .format = cases[i].format};
        rewrite_pipe(&r, b->cpus, b->pipe);
        char *got = spans(b->pipe, -1, &notes);
        assert_string_equal(got, want);
        assert_null(strstr(notes, "also holds samples"));
        free(got);
        free(notes);
    }
    free(want);
}

static void descriptions(void **state)
{
    struct tracepoint_field f;
    uint64_t id;
    (void)state;
    /* Damaged ones are not found, and nothing else happens: the whole of one stands in the file above. */
    for (size_t len = 0; len < 64; len++) {
        uint8_t bytes[64] = "\027\010\104tracing0.6";
        assert_false(tracepoint_find(bytes, len, "sched", "sched_switch", &id));
        memset(bytes + 14, 0xff, sizeof bytes - 14);
        assert_false(tracepoint_find_field(bytes, len, "sched", "sched_switch", "next_pid", &f));
    }
}

/* ---- pipes ---- */

/* The same records in the layout of a pipe: as a file, and through standard input. */
static void through_a_pipe(void **state)
{
    const struct bench *b = *state;
    struct rewrite r = {0};
    char *want = spans(b->cpus, -1, NULL);
    rewrite_pipe(&r, b->cpus, b->pipe);
    char *got = spans(b->pipe, -1, NULL);
    assert_string_equal(got, want);
    free(got);
    char command[400];
    snprintf(command, sizeof command, "cat %s", b->pipe);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    got = spans("-", fileno(p), NULL);
    assert_int_equal(pclose(p), 0);
    assert_string_equal(got, want);
    free(got);
    free(want);
}

int main(void)
{
    if (getuid() != 0) {
        print_message("[  SKIPPED ] t_pt_switches: uprobes need root or CAP_PERFMON\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_samples),
        cmocka_unit_test(descriptions),
        cmocka_unit_test(through_a_pipe),
    };
    return cmocka_run_group_tests(tests, record, forget);
}
