/* Decoding in pieces: the same result for any number of threads, from buffers of threads and of CPUs; every
 * byte accounted for; cancelled when asked to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decode/export/export.h"
#include "decode/open/open.h"
#include "lib_run.h"
#include "lib_step.h"
#include "lib_step_programs.h"
#include "lib_statistics.h"

static int record_signals(void **state)
{
    static struct step_rec r;
    for (const struct step_program *p = step_programs; p->name; p++)
        if (strcmp(p->name, "signals") == 0)
            step_rec_program(&r, p, 1);
    *state = &r;
    return 0;
}

static int forget(void **state)
{
    step_rec_free(*state);
    return 0;
}

static char *export(const char *path, unsigned threads, enum export_format format, pid_t tid)
{
    struct open_options o = {.threads = threads};
    struct export_options e = {.format = format, .tid = tid, .workers = 1};
    struct recording *r;
    struct err err;
    char *out = NULL;
    size_t len;
    if (open_recording(&r, path, &o, &err) < 0)
        fail_msg("%s", err.text);
    if (trace_check(r->trace, &err) < 0)
        fail_msg("%s", err.text);
    statistics_check(path, &o, r->trace);
    FILE *f = open_memstream(&out, &len);
    assert_int_equal(export_write(f, r->trace, NULL, &e, &err), 0);
    fclose(f);
    recording_free(r);
    return out;
}

static void any_number_of_threads(void **state)
{
    const struct step_rec *r = *state;
    char path[300];
    static const enum export_format formats[] = {EXPORT_SPANS, EXPORT_GAPS, EXPORT_FUNCTIONS, EXPORT_MARKS};
    for (const struct step_encoding *e = step_encodings; e->name; e++) {
        struct step_encoding big = *e;
        big.repeat = e->per_cpu ? 1 : 2500; /* more than a piece */
        snprintf(path, sizeof path, "%s/threads.data", r->dir);
        step_rec_encode(r, &big, path);
        for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
            char *one = export(path, 1, formats[f], 0);
            for (unsigned threads = 2; threads <= 7; threads += 5) {
                char *many = export(path, threads, formats[f], 0);
                if (strcmp(one, many) != 0)
                    fail_msg("%s: export %zu is another on %u threads", e->name, f, threads);
                free(many);
            }
            free(one);
        }
    }
}

/* Of a table of spans: depth, flags, function; times depend on where packets came, and so does whether the
 * kernel took any. */
static char *shapes(char *spans)
{
    char *out = NULL, name[256], flags[16];
    size_t len;
    unsigned depth;
    FILE *f = open_memstream(&out, &len);
    for (char *line = strchr(spans, '\n'); line && line[1]; line = strchr(line + 1, '\n'))
        if (sscanf(line + 1, "%*d %u %*u %*u %15s %255[^\t]", &depth, flags, name) == 3 && name[0] != '[')
            fprintf(f, "%u %s %s\n", depth, flags, name);
    fclose(f);
    free(spans);
    return out;
}

/* Moving between CPUs changes nothing about what a thread did. */
static void of_cpus_as_of_threads(void **state)
{
    const struct step_rec *r = *state;
    char path[300];
    struct step_encoding e = step_encodings[0];
    snprintf(path, sizeof path, "%s/cpus.data", r->dir);
    step_rec_encode(r, &e, path);
    char *want = shapes(export(path, 1, EXPORT_SPANS, r->branches[0].tid));
    e.per_cpu = true;
    step_rec_encode(r, &e, path);
    char *got = shapes(export(path, 1, EXPORT_SPANS, r->branches[0].tid));
    assert_string_equal(got, want);
    free(got);
    char *marks = export(path, 1, EXPORT_MARKS, r->branches[0].tid);
    assert_non_null(strstr(marks, "migration\tfrom CPU 0 to CPU 1"));
    free(marks);
    /* The other thread has the same calls later. */
    char *other = shapes(export(path, 1, EXPORT_SPANS, r->branches[0].tid + 1));
    assert_string_equal(other, want);
    free(other);
    free(want);
}

static void field_C15_who_ran_must_be_known(void **state)
{
    const struct step_rec *r = *state;
    char path[300];
    size_t len;
    struct step_encoding e = step_encodings[0];
    struct open_options o = {.threads = 1};
    struct recording *rec;
    struct err err;
    e.per_cpu = true;
    snprintf(path, sizeof path, "%s/blind.data", r->dir);
    step_rec_encode(r, &e, path);
    char *bytes = run_read_file(path, &len);
    for (size_t i = 0; i + 8 <= len; i += 4) { /* the SWITCH records become of a kind that nobody knows */
        struct { uint32_t type; uint16_t misc, size; } h;
        memcpy(&h, bytes + i, sizeof h);
        if (h.type == 14 && h.size == 8 + 32 && (h.misc == 0 || h.misc == 1 << 13)) {
            h.type = 60;
            memcpy(bytes + i, &h, sizeof h);
        }
    }
    FILE *f = fopen(path, "w");
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    fclose(f);
    free(bytes);
    assert_true(open_recording(&rec, path, &o, &err) < 0);
    assert_non_null(strstr(err.text, "--switch-events"));
}

static void cancels(void **state)
{
    const struct step_rec *r = *state;
    char path[300];
    struct step_encoding e = step_encodings[0];
    atomic_bool cancel = true;
    struct recording *rec;
    struct err err;
    snprintf(path, sizeof path, "%s/cancel.data", r->dir);
    step_rec_encode(r, &e, path);
    for (unsigned threads = 1; threads < 4; threads++) {
        struct open_options o = {.threads = threads, .cancel = &cancel};
        assert_int_equal(open_recording(&rec, path, &o, &err), MTUI_E_CANCEL);
    }
}

int main(void)
{
    if (getuid() != 0) {
        print_message("[  SKIPPED ] t_pt_threads: uprobes need root or CAP_PERFMON\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads),
        cmocka_unit_test(of_cpus_as_of_threads),
        cmocka_unit_test(field_C15_who_ran_must_be_known),
        cmocka_unit_test(cancels),
    };
    return cmocka_run_group_tests(tests, record_signals, forget);
}
