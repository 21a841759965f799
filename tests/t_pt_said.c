/* What is said about an imperfect recording: the same whatever is made of it and for any number of threads; and the
 * end of a file that is cut is a gap of as many bytes as its header announces and nobody has read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decode/open/open.h"
#include "lib_packets.h"
#include "lib_program.h"
#include "lib_run.h"
#include "lib_step.h"
#include "lib_step_programs.h"

#define RECORD_AUXTRACE 71 /* its data, of the size in its first eight bytes, follows it */

struct scene {
    struct step_rec rec;
    char symfs[300], path[300];
    char *data;
    size_t len;
};

static int record(void **state)
{
    static struct scene s;
    struct step_encoding e = step_encodings[0];
    step_rec_program(&s.rec, &step_program_tiny, 1);
    snprintf(s.symfs, sizeof s.symfs, "%s/root", s.rec.dir);
    snprintf(s.path, sizeof s.path, "%s/said.data", s.rec.dir);
    assert_true(program_shell(s.rec.dir, "mkdir -p root%s && cp t root%s/", s.rec.dir, s.rec.dir));
    e.repeat = 1000;
    e.packets.psb_period = 256;
    e.chunk = 65536;
    step_rec_encode(&s.rec, &e, s.path);
    s.data = run_read_file(s.path, &s.len);
    *state = &s;
    return 0;
}

static int forget(void **state)
{
    struct scene *s = *state;
    free(s->data);
    step_rec_free(&s->rec);
    return 0;
}

static void put(const struct scene *s, const char *bytes, size_t len)
{
    FILE *f = fopen(s->path, "w");
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    fclose(f);
}

static void no_branch(void *arg, const struct open_branch *b)
{
    uint64_t *last = arg;
    assert_true(b->time_ns >= *last);
    *last = b->time_ns;
}

enum form { SPANS, STATISTICS, BRANCHES, FORMS };

static struct recording *open_as(const struct scene *s, enum form form, unsigned threads)
{
    uint64_t last = 0;
    struct open_options o = {.threads = threads, .symfs = s->symfs, .statistics = form == STATISTICS};
    struct recording *r = NULL;
    struct err err = {0};
    if (form == BRANCHES) {
        o.branch = no_branch;
        o.branch_arg = &last;
    }
    if (open_recording(&r, s->path, &o, &err) < 0)
        fail_msg("%s", err.text);
    return r;
}

/* The count in front of the sentence about raised times is left out: lists of branches have more times. */
static const char *same_in_all(const char *note)
{
    const char *raised = strstr(note, " went backwards");
    return raised ? raised : note;
}

static void same_notes(const struct recording *a, const struct recording *b, bool counts)
{
    assert_int_equal(a->nnotes, b->nnotes);
    for (size_t i = 0; i < a->nnotes; i++)
        assert_string_equal(counts ? a->notes[i] : same_in_all(a->notes[i]),
                            counts ? b->notes[i] : same_in_all(b->notes[i]));
}

/* ---- a file that is cut ---- */

/* Of the records of a file cut at `cut`: where reading must end, by walking over them. */
static uint64_t end_of_reading(const struct scene *s, uint64_t from, uint64_t cut)
{
    uint64_t at = from;
    for (;;) {
        struct perf_event_header h;
        uint64_t more = 0;
        if (cut - at < sizeof h)
            return at;
        memcpy(&h, s->data + at, sizeof h);
        if (h.size > cut - at)
            return at;
        if (h.type == RECORD_AUXTRACE)
            memcpy(&more, s->data + at + sizeof h, sizeof more);
        if (more > cut - at - h.size)
            return cut; /* what is there of the data counts */
        at += h.size + more;
    }
}

static void check_cut(const struct scene *s, size_t cut)
{
    uint64_t from, size;
    char range[80];
    size_t n;
    memcpy(&from, s->data + 40, sizeof from); /* header: magic, size, attr size, attrs, data (offset, size) */
    memcpy(&size, s->data + 48, sizeof size);
    uint64_t end = end_of_reading(s, from, cut), missing = from + size - end;
    put(s, s->data, cut);
    struct recording *r = open_as(s, SPANS, 1);
    const struct trace_info *info = trace_info(r->trace);
    const struct gap *g = trace_gaps(r->trace, &n), *last = NULL;
    uint64_t lost = 0;
    snprintf(range, sizeof range, "(%llu bytes from byte %llu of the file on)", (unsigned long long)missing,
             (unsigned long long)end);
    for (size_t i = 0; i < n; i++) {
        lost += g[i].bytes;
        if (strstr(g[i].detail, range))
            last = &g[i];
    }
    if (!last)
        fail_msg("cut at %zu: no gap with \"%s\"", cut, range);
    assert_int_equal(last->cause, GAP_LOST);
    assert_int_equal(last->tid, 0);
    assert_int_equal(last->bytes, missing);
    assert_int_equal(last->end_ns, info->last_ns);
    assert_int_equal(info->decoded_bytes + lost + info->repeated_bytes, info->trace_bytes);
    assert_non_null(info->partial);
    for (enum form form = STATISTICS; form < FORMS; form++) {
        struct recording *other = open_as(s, form, 2);
        same_notes(r, other, false);
        recording_free(other);
    }
    recording_free(r);
}

static void the_end_of_a_cut_file_is_a_gap(void **state)
{
    const struct scene *s = *state;
    size_t first = (size_t)((const char *)memmem(s->data, s->len, "\x02\x82\x02\x82", 4) - s->data);
    check_cut(s, first / 2);  /* among the records in front */
    check_cut(s, first - 20); /* inside the head of the first record with trace data */
    check_cut(s, first + 8);  /* inside a synchronisation point */
    check_cut(s, s->len / 2);
    check_cut(s, s->len / 2 + 1);
    check_cut(s, s->len - 1000);
}

static void a_whole_file_has_no_gap(void **state)
{
    const struct scene *s = *state;
    size_t n;
    put(s, s->data, s->len);
    struct recording *r = open_as(s, SPANS, 1);
    (void)trace_gaps(r->trace, &n);
    assert_int_equal(n, 0);
    assert_null(trace_info(r->trace)->partial);
    recording_free(r);
}

/* ---- any number of threads ---- */

static void same_gaps(const struct recording *a, const struct recording *b)
{
    size_t n, m;
    const struct gap *x = trace_gaps(a->trace, &n), *y = trace_gaps(b->trace, &m);
    assert_int_equal(n, m);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(x[i].start_ns, y[i].start_ns);
        assert_int_equal(x[i].end_ns, y[i].end_ns);
        assert_string_equal(x[i].detail, y[i].detail);
    }
}

static bool says(const struct recording *r, const char *what)
{
    for (size_t i = 0; i < r->nnotes; i++)
        if (strstr(r->notes[i], what))
            return true;
    return false;
}

/* Damage that leads times astray: bytes of the data all over it. */
static void the_same_for_any_threads_and_form(void **state)
{
    const struct scene *s = *state;
    char *copy = malloc(s->len);
    unsigned backwards = 0, missing = 0;
    uint32_t seed = 99;
    for (unsigned round = 0; round < 12; round++) {
        memcpy(copy, s->data, s->len);
        for (unsigned k = 0; k < 200; k++) {
            seed = seed * 1664525u + 1013904223u;
            size_t at = 4096 + seed % (s->len - 8192);
            seed = seed * 1664525u + 1013904223u;
            copy[at] = (char)(seed >> 24);
        }
        put(s, copy, s->len);
        struct recording *first = open_as(s, SPANS, 1);
        backwards += says(first, "went backwards");
        missing += says(first, "is not at hand");
        for (enum form form = 0; form < FORMS; form++) {
            struct recording *one = open_as(s, form, 1);
            same_notes(first, one, form != BRANCHES);
            for (unsigned threads = 2; threads <= 7; threads += 5) {
                struct recording *many = open_as(s, form, threads);
                same_notes(one, many, true);
                if (form == SPANS)
                    same_gaps(one, many);
                recording_free(many);
            }
            recording_free(one);
        }
        recording_free(first);
    }
    free(copy);
    print_message("of 12 damaged recordings, %u with times that go backwards, %u with code that is not there\n",
                  backwards, missing);
    assert_true(backwards > 0);
    assert_true(missing > 0);
}

/* ---- code that is not at hand ---- */

struct listing {
    const struct step_rec *rec;
    uint64_t start, end; /* of the program's code */
    size_t next, found;  /* in the truth; branches that agree */
};

static bool is_kind(const struct step_branch *t, unsigned kind)
{
    static const char *const names[] = {[PT_BRANCH_CALL] = "call", [PT_BRANCH_RETURN] = "return",
                                        [PT_BRANCH_JUMP] = "jump", [PT_BRANCH_COND] = "cond"};
    return strcmp(t->kind, names[kind]) == 0;
}

static bool is_of_program(const struct listing *l, const struct step_branch *t)
{
    bool inside = t->from >= l->start && t->from < l->end;
    return inside && (is_kind(t, PT_BRANCH_CALL) || is_kind(t, PT_BRANCH_RETURN) || is_kind(t, PT_BRANCH_JUMP) ||
                      is_kind(t, PT_BRANCH_COND));
}

static void agrees(void *arg, const struct open_branch *b)
{
    struct listing *l = arg;
    const struct step_rec *r = l->rec;
    if (b->branch.kind > PT_BRANCH_COND || b->branch.from < l->start || b->branch.from >= l->end)
        return;
    while (l->next < r->n_branches && !is_of_program(l, &r->branches[l->next]))
        l->next++;
    assert_true(l->next < r->n_branches);
    const struct step_branch *t = &r->branches[l->next++];
    if (b->branch.from != t->from || b->branch.to != t->to || !is_kind(t, b->branch.kind))
        fail_msg("%llx to %llx, in truth %s %llx to %llx", (unsigned long long)b->branch.from,
                 (unsigned long long)b->branch.to, t->kind, (unsigned long long)t->from, (unsigned long long)t->to);
    l->found++;
}

/* A program without its libraries: wherever the flow comes back to it, its branches are told, all of them, by both
 * decoders; every return tells its address here. */
static void what_lies_between_missing_code_is_decoded(void **state)
{
    struct step_rec rec;
    struct step_encoding e = step_encodings[0];
    (void)state;
    step_rec_program(&rec, &step_programs[0], 1); /* calls: it enters qsort, which calls it back */
    char symfs[300], path[300];
    snprintf(symfs, sizeof symfs, "%s/root", rec.dir);
    snprintf(path, sizeof path, "%s/missing.data", rec.dir);
    assert_true(program_shell(rec.dir, "mkdir -p root%s && cp t root%s/", rec.dir, rec.dir));
    e.packets.ret_compression = false;
    step_rec_encode(&rec, &e, path);
    const struct step_code_map *map = NULL;
    for (size_t i = 0; i < rec.n_maps && !map; i++)
        if (strcmp(rec.maps[i].path, rec.exe) == 0)
            map = &rec.maps[i];
    assert_non_null(map);
    for (int libipt = 0; libipt < 2; libipt++) {
        struct listing l = {.rec = &rec, .start = map->start, .end = map->start + map->len};
        struct open_options o = {
            .threads = 1, .symfs = symfs, .libipt = libipt, .branch = agrees, .branch_arg = &l};
        struct recording *r;
        struct err err = {0};
        if (open_recording(&r, path, &o, &err) < 0)
            fail_msg("%s", err.text);
        while (l.next < rec.n_branches)
            assert_false(is_of_program(&l, &rec.branches[l.next++]));
        assert_true(says(r, "libc.so.6 is not at hand"));
        print_message("%zu branches of the program\n", l.found);
        assert_true(l.found > 100);
        recording_free(r);
        o.branch = NULL;
        assert_int_equal(open_recording(&r, path, &o, &err), 0);
        size_t n;
        uint64_t lost = 0;
        const struct gap *g = trace_gaps(r->trace, &n);
        for (size_t i = 0; i < n; i++)
            lost += g[i].bytes;
        assert_int_equal(trace_info(r->trace)->decoded_bytes + lost, trace_info(r->trace)->trace_bytes);
        recording_free(r);
    }
    step_rec_free(&rec);
}

/* How many places of a file could not be followed, as a note has it. */
static unsigned places_of(const struct recording *r, const char *file)
{
    for (size_t i = 0; i < r->nnotes; i++) {
        const char *in = strstr(r->notes[i], ", in ");
        unsigned thousands, rest;
        if (!strstr(r->notes[i], file) || !in || !strstr(r->notes[i], "is not at hand"))
            continue;
        return sscanf(in, ", in %u,%u", &thousands, &rest) == 2 ? thousands * 1000 + rest : thousands;
    }
    return 0;
}

/* A recording of another machine, none of whose files is here: nearly every TIP and TIP.PGE packet leads into a
 * missing file. So many of them lead into each one, by the addresses in perf's dump (perf script -D). */
static void missing_files_are_named_by_both_decoders(void **state)
{
    static const struct {
        const char *file;
        unsigned packets;
    } files[] = {{"the kernel", 5343}, {"/lib64/ld-2.23.so", 6271}, {"/lib64/libc-2.23.so", 341},
                 {"/lib64/libpthread-2.23.so", 28}, {"/usr/bin/coreutils", 31}};
    const char *path = "../shared/data/perf-data/skylake-user-kernel.perf.data";
    (void)state;
    if (access(path, R_OK) != 0)
        skip();
    for (int libipt = 0; libipt < 2; libipt++) {
        struct open_options o = {.threads = 1, .libipt = libipt};
        struct recording *r;
        assert_int_equal(open_recording(&r, path, &o, NULL), 0);
        for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
            unsigned places = places_of(r, files[i].file), slack = 3 + files[i].packets / 40;
            assert_in_range(places, files[i].packets - slack, files[i].packets + slack);
        }
        assert_false(says(r, "nothing is known to be mapped"));
        recording_free(r);
    }
}

int main(void)
{
    if (getuid() != 0) {
        print_message("[  SKIPPED ] t_pt_said: recordings need root or CAP_PERFMON\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_of_a_cut_file_is_a_gap),
        cmocka_unit_test(a_whole_file_has_no_gap),
        cmocka_unit_test(the_same_for_any_threads_and_form),
        cmocka_unit_test(what_lies_between_missing_code_is_decoded),
        cmocka_unit_test(missing_files_are_named_by_both_decoders),
    };
    return cmocka_run_group_tests(tests, record, forget);
}
