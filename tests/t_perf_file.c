/* decode/perf/perf_file: recordings that perf makes here and now, record by record against `perf script -D`;
 * recordings of another machine; and files that are cut or damaged. */
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

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "decode/perf/perf_file.h"
#include "tests/lib_perf.h"

typedef VEC(char *) lines;

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void lines_free(lines *l)
{
    for (size_t i = 0; i < l->len; i++)
        free(l->data[i]);
    vec_free(l);
}

/* ---- What perf says ----
 * Lines of `perf script -D` look like
 *   [CPU] TIME OFFSET [SIZE]: PERF_RECORD_KIND …        and after samples
 *   .....  0: ffffffffffffff80                          one line for each address of the chain */

static char *normalize(const char *time, const char *rest)
{
    const char *kind = rest + strlen("PERF_RECORD_");
    char *end;
    if (strncmp(kind, "SAMPLE", 6) == 0) { /* SAMPLE(IP, 0x1): 1/1: 0xIP period: N addr: A */
        unsigned misc;
        int pid, tid;
        unsigned long long ip, period, addr;
        if (sscanf(kind, "SAMPLE(IP, 0x%x): %d/%d: %llx period: %llu addr: %llx", &misc, &pid, &tid,
                   &ip, &period, &addr) != 6)
            return NULL;
        return xasprintf("%s SAMPLE %u %d/%d %llx %llu %llx", time, misc & 7, pid, tid, ip, period,
                         addr);
    }
    if (strncmp(kind, "MMAP", 4) == 0) {
        int pid, tid, at = 0;
        unsigned long long start, len, pgoff;
        char prot[8], junk[200];
        const char *p = strchr(kind, ' ');
        if (sscanf(p, " %d/%d: [%llx(%llx) @ %llx%199[^]]]: %7s %n", &pid, &tid, &start, &len, &pgoff,
                   junk, prot, &at) != 7 &&
            sscanf(p, " %d/%d: [%llx(%llx) @ %llx]: %7s %n", &pid, &tid, &start, &len, &pgoff, prot,
                   &at) != 6)
            return NULL;
        bool exec = prot[2] == 'x' || prot[0] == 'x';
        return xasprintf("%s MMAP %d/%d %llx %llx %llx %c %s", time, pid, tid, start, len, pgoff,
                         exec ? 'x' : '-', p + at);
    }
    if (strncmp(kind, "COMM", 4) == 0) { /* COMM exec: NAME:PID/TID */
        bool exec = strncmp(kind, "COMM exec", 9) == 0;
        return xasprintf("%s COMM %d %s", time, exec, strchr(kind, ':') + 2);
    }
    if (strncmp(kind, "FORK", 4) == 0 || strncmp(kind, "EXIT", 4) == 0)
        return xasprintf("%s %.4s %s", time, kind, kind + 4);
    if (strncmp(kind, "SWITCH", 6) == 0) { /* SWITCH[_CPU_WIDE] OUT preempt next pid/tid: 8/8 */
        bool out = strstr(kind, " OUT") != NULL;
        const char *other = strstr(kind, "pid/tid:");
        int pid = -1, tid = -1;
        if (other && sscanf(other, "pid/tid: %d/%d", &pid, &tid) != 2)
            return NULL;
        return xasprintf("%s SWITCH %d %d %d/%d", time, out, strstr(kind, "preempt") != NULL, pid, tid);
    }
    if (strncmp(kind, "AUX ", 4) == 0) { /* AUX offset: 0 size: 0x… flags: 0x… [] */
        unsigned long long offset = strtoull(strstr(kind, "offset:") + 7, &end, 0);
        unsigned long long size = strtoull(strstr(end, "size:") + 5, &end, 0);
        return xasprintf("%s AUX %llx %llx", time, offset, size);
    }
    if (strncmp(kind, "AUXTRACE ", 9) == 0) { /* AUXTRACE size: 0x… offset: … ref: … idx: tid: cpu: */
        unsigned long long size, offset, ref;
        int idx, tid, cpu;
        if (sscanf(kind, "AUXTRACE size: %lli offset: %lli  ref: %llx idx: %d tid: %d cpu: %d",
                   (long long *)&size, (long long *)&offset, &ref, &idx, &tid, &cpu) != 6)
            return NULL;
        return xasprintf("AUXTRACE %llx %llx %llx %d %d %d", size, offset, ref, idx, tid, cpu);
    }
    return NULL;
}

static lines perf_lines(const char *text)
{
    lines out = {0};
    char *copy = xstrdup(text), *save = NULL;
    bool in_sample = false;
    for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *rest = strstr(line, "]: PERF_RECORD_");
        unsigned long long address;
        if (rest && line[0] != '.') {
            char *size = strrchr(line, '['); /* the offset and the time stand before it */
            while (size > rest)
                size = memrchr(line, '[', (size_t)(size - line));
            char *words[4] = {0};
            size_t n = 0;
            *size = '\0';
            for (char *s2 = NULL, *w = strtok_r(line, " ", &s2); w && n < 4; w = strtok_r(NULL, " ", &s2))
                words[n++] = w;
            char *made = n < 2 ? normalize("-", rest + 3) : normalize(words[n - 2], rest + 3);
            in_sample = made && strstr(made, "SAMPLE");
            if (made)
                vec_push(&out, made);
        } else if (in_sample && sscanf(line, "..... %*d: %llx", &address) == 1) {
            char *longer = xasprintf("%s;%llx", out.data[out.len - 1], address);
            free(out.data[out.len - 1]);
            out.data[out.len - 1] = longer;
        } else if (strstr(line, "]: event:")) {
            in_sample = false;
        }
    }
    free(copy);
    return out;
}

/* ---- What mtui says, in the same words ---- */

static char *our_line(const struct perf_record *r)
{
    unsigned long long t = r->has_time ? (unsigned long long)r->time_ns : 0;
    switch ((int)r->kind) {
    case PERF_REC_SAMPLE: {
        char *s = xasprintf("%llu SAMPLE %u %d/%d %llx %llu %llx", t, (unsigned)r->cpumode, r->pid,
                            r->tid, (unsigned long long)r->u.sample.ip,
                            (unsigned long long)r->u.sample.period,
                            (unsigned long long)r->u.sample.addr);
        for (size_t i = 0; i < r->u.sample.chain_len; i++) {
            char *longer = xasprintf("%s;%llx", s, (unsigned long long)r->u.sample.chain[i]);
            free(s);
            s = longer;
        }
        return s;
    }
    case PERF_REC_MMAP:
        return xasprintf("%llu MMAP %d/%d %llx %llx %llx %c %s", t, r->u.mmap.pid, r->u.mmap.tid,
                         (unsigned long long)r->u.mmap.start, (unsigned long long)r->u.mmap.len,
                         (unsigned long long)r->u.mmap.pgoff, r->u.mmap.prot & 4 ? 'x' : '-',
                         r->u.mmap.path);
    case PERF_REC_COMM:
        return xasprintf("%llu COMM %d %s:%d/%d", t, r->u.comm.exec, r->u.comm.comm, r->u.comm.pid,
                         r->u.comm.tid);
    case PERF_REC_FORK:
    case PERF_REC_EXIT:
        return xasprintf("%llu %s (%d:%d):(%d:%d)", t, r->kind == PERF_REC_FORK ? "FORK" : "EXIT",
                         r->u.fork.pid, r->u.fork.tid, r->u.fork.ppid, r->u.fork.ptid);
    case PERF_REC_SWITCH:
        return xasprintf("%llu SWITCH %d %d %d/%d", t, r->u.sw.out, r->u.sw.preempted,
                         r->u.sw.other_pid, r->u.sw.other_tid);
    case PERF_REC_AUX:
        return xasprintf("%llu AUX %llx %llx", t, (unsigned long long)r->u.aux.aux_offset,
                         (unsigned long long)r->u.aux.aux_size);
    case PERF_REC_AUXTRACE:
        return xasprintf("AUXTRACE %llx %llx %llx %d %d %d", (unsigned long long)r->u.auxtrace.size,
                         (unsigned long long)r->u.auxtrace.offset,
                         (unsigned long long)r->u.auxtrace.reference, r->u.auxtrace.idx,
                         r->u.auxtrace.tid, r->u.auxtrace.cpu);
    default:
        return NULL;
    }
}

static lines our_lines(struct perf_file *f)
{
    lines out = {0};
    struct perf_record rec;
    uint64_t last = 0;
    while (perf_file_next(f, &rec, NULL) > 0) {
        assert_true(rec.time_ns >= last);
        last = rec.time_ns;
        char *line = our_line(&rec);
        if (line)
            vec_push(&out, line);
    }
    return out;
}

static size_t count_kind(const lines *l, const char *word)
{
    size_t n = 0;
    for (size_t i = 0; i < l->len; i++)
        n += strstr(l->data[i], word) != NULL;
    return n;
}

static void assert_same(lines *perf, lines *ours)
{
    assert_true(perf->len > 0);
    qsort(perf->data, perf->len, sizeof *perf->data, by_text);
    qsort(ours->data, ours->len, sizeof *ours->data, by_text);
    for (size_t i = 0; i < perf->len && i < ours->len; i++)
        assert_string_equal(ours->data[i], perf->data[i]);
    assert_int_equal(ours->len, perf->len);
}

/* Both lists freed. */
static void compare_with_perf(const char *path, size_t min_samples)
{
    struct err err;
    struct perf_file *f = NULL;
    int status;
    char *text = lib_run(&status, NULL, "%s script -D --no-itrace -i %s 2>/dev/null", lib_perf(), path);
    assert_int_equal(perf_file_open(&f, path, &err), 0);
    assert_null(perf_file_partial(f));
    assert_int_equal(perf_file_info(f)->skipped_records, 0);
    lines perf = perf_lines(text), ours = our_lines(f);
    assert_same(&perf, &ours);
    assert_true(count_kind(&ours, " SAMPLE ") >= min_samples);
    lines_free(&perf);
    lines_free(&ours);
    perf_file_close(f);
    free(text);
}

/* ---- Recordings made now ---- */

static char *dir;
static bool perf_works;

static int setup(void **state)
{
    (void)state;
    dir = lib_mkdtemp();
    perf_works = lib_perf_works();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    lib_rmdir(dir);
    return 0;
}

static char *record(const char *options)
{
    static int n;
    int status;
    char *path = xasprintf("%s/%d.data", dir, n++);
    free(lib_run(&status, NULL, "%s record -q -N -e cpu-clock -F 5000 -o %s %s -- %s 5 2>/dev/null",
                 lib_perf(), path, options, lib_tool("forker")));
    if (status != 0) {
        free(path);
        return NULL;
    }
    return path;
}

static void recorded(const char *options)
{
    if (!perf_works)
        skip();
    char *path = record(options);
    assert_non_null(path);
    compare_with_perf(path, 100);
    free(path);
}

#define RECORDED(name, options)                                                                    \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        recorded(options);                                                                         \
    }

RECORDED(plain, "")
RECORDED(call_graph, "-g")
RECORDED(compressed, "-g -z")
RECORDED(compressed_hard, "-g -z22 -m 16")
RECORDED(overwrite, "-g --overwrite")
RECORDED(with_data, "-d -W --phys-data")
RECORDED(with_switches, "-g --switch-events")
RECORDED(dwarf, "--call-graph dwarf,4096")
RECORDED(several_events, "-e task-clock -e page-faults -e '{cs,faults}:S'")
RECORDED(per_writer, "--threads")
RECORDED(per_writer_compressed, "--threads -z -g")
RECORDED(all_cpus_registers, "-a --intr-regs=ax,ip --user-regs=ax,ip -g")
RECORDED(other_clock, "-k monotonic")

static void pipe_layout(void **state)
{
    (void)state;
    if (!perf_works)
        skip();
    int status;
    char *path = xasprintf("%s/pipe.data", dir);
    free(lib_run(&status, NULL, "%s record -q -N -g -e cpu-clock -F 5000 -o - -- %s 5 2>/dev/null >%s",
                 lib_perf(), lib_tool("forker"), path));
    struct perf_file *f = NULL, *g = NULL;
    char *text = lib_run(&status, NULL, "%s script -D -i - <%s 2>/dev/null", lib_perf(), path);
    assert_int_equal(perf_file_open(&f, path, NULL), 0);
    assert_true(perf_file_info(f)->pipe_layout);
    assert_string_equal(perf_file_event(f, 0)->name, "cpu-clock");
    assert_non_null(perf_file_info(f)->perf_version);
    lines perf = perf_lines(text), ours = our_lines(f);
    assert_same(&perf, &ours);
    assert_true(count_kind(&ours, " SAMPLE ") > 100);

    /* through a real pipe */
    char *command = xasprintf("cat %s", path);
    FILE *p = popen(command, "r");
    assert_int_equal(perf_file_open_fd(&g, fileno(p), "stdin", NULL), 0);
    lines piped = our_lines(g);
    qsort(piped.data, piped.len, sizeof *piped.data, by_text);
    assert_int_equal(piped.len, ours.len);
    for (size_t i = 0; i < ours.len; i++)
        assert_string_equal(piped.data[i], ours.data[i]);
    pclose(p);
    lines_free(&piped);
    lines_free(&perf);
    lines_free(&ours);
    perf_file_close(g);
    perf_file_close(f);
    free(command);
    free(text);
    free(path);
}

static void overwrite_switched(void **state)
{
    (void)state;
    if (!perf_works)
        skip();
    char *path = record("-g --overwrite --switch-output=signal");
    assert_non_null(path);
    char *first = lib_run(NULL, NULL, "ls %s.2* | head -n 1 | tr -d '\\n'", path);
    compare_with_perf(first, 100);
    free(first);
    free(path);
}

/* `# key : value` of `perf report --header-only`. */
static char *header_value(const char *text, const char *key)
{
    char *needle = xasprintf("# %s : ", key), *at = strstr(text, needle);
    assert_non_null(at);
    at += strlen(needle);
    char *value = xstrndup(at, strcspn(at, "\n"));
    for (size_t n = strlen(value); n && value[n - 1] == ' '; n--)
        value[n - 1] = '\0';
    free(needle);
    return value;
}

static void header(void **state)
{
    (void)state;
    if (!perf_works)
        skip();
    char *path = record("-e cpu-clock/period=100000/ -e page-faults");
    assert_non_null(path);
    struct perf_file *f = NULL;
    char *text = lib_run(NULL, NULL, "%s report --header-only -i %s 2>/dev/null", lib_perf(), path);
    assert_int_equal(perf_file_open(&f, path, NULL), 0);
    const struct perf_file_info *info = perf_file_info(f);
    const struct {
        const char *key, *ours;
    } facts[] = {{"hostname", info->hostname}, {"os release", info->os_release},
                 {"perf version", info->perf_version}, {"arch", info->arch},
                 {"cmdline", info->cmdline}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        char *value = header_value(text, facts[i].key);
        /* perf prints its own absolute path for argv[0] */
        const char *ours = facts[i].ours;
        assert_non_null(ours);
        assert_string_equal(ours, value);
        free(value);
    }
    assert_int_equal(perf_file_event_count(f), 3);
    assert_string_equal(perf_file_event(f, 0)->name, "cpu-clock");
    assert_true(perf_file_event(f, 0)->freq);
    assert_int_equal(perf_file_event(f, 0)->sample_period_or_freq, 5000);
    assert_int_equal(perf_file_event(f, 1)->sample_period_or_freq, 100000);
    assert_string_equal(perf_file_event(f, 2)->name, "page-faults");
    assert_int_equal(perf_file_event(f, 2)->type, PERF_TYPE_SOFTWARE);
    assert_int_equal(perf_file_event(f, 2)->config, PERF_COUNT_SW_PAGE_FAULTS);
    assert_false(info->has_auxtrace);

    /* build-ids of the header against perf buildid-list */
    char *list = lib_run(NULL, NULL, "%s buildid-list -i %s 2>/dev/null", lib_perf(), path);
    struct perf_record rec;
    size_t found = 0, listed = 0;
    while (perf_file_next(f, &rec, NULL) > 0 && rec.time_ns == 0) {
        if (rec.kind != PERF_REC_BUILD_ID)
            continue;
        char hex[64] = "";
        for (size_t i = 0; i < rec.u.build_id.build_id_len; i++)
            snprintf(hex + 2 * i, 3, "%02x", rec.u.build_id.build_id[i]);
        char *line = xasprintf("%s %s\n", hex, rec.u.build_id.path);
        assert_non_null(strstr(list, line));
        free(line);
        found++;
    }
    for (const char *c = list; *c; c++)
        listed += *c == '\n';
    assert_true(found > 1);
    assert_int_equal(found, listed);
    free(list);
    free(text);
    free(path);
    perf_file_close(f);
}

/* ---- Recordings of another machine ---- */

static char *shared_data(const char *name)
{
    char *path = xasprintf("../shared/data/perf-data/%s", name);
    if (access(path, R_OK) < 0) {
        free(path);
        return NULL;
    }
    return path;
}

static void skylake(void **state)
{
    (void)state;
    char *path = shared_data("skylake-user-kernel.perf.data");
    if (!path)
        skip();
    compare_with_perf(path, 1);
    struct perf_file *f = NULL;
    struct perf_record rec;
    assert_int_equal(perf_file_open(&f, path, NULL), 0);
    const struct perf_file_info *info = perf_file_info(f);
    assert_string_equal(info->os_release, "4.14.18");
    assert_string_equal(info->cmdline, "/usr/bin/perf record -e cycles -e intel_pt// -o "
                                       "/tmp/perf.data.intel_pt-4.14 -- echo Hello, World!");
    assert_true(info->has_auxtrace);
    assert_int_equal(perf_file_event_count(f), 4);
    assert_true(perf_file_event(f, 0)->is_intel_pt);
    assert_int_equal(perf_file_event(f, 0)->type, 6);
    assert_int_equal(perf_file_event(f, 0)->config, 0x300e601);
    assert_string_equal(perf_file_event(f, 0)->name, "intel_pt//");
    assert_false(perf_file_event(f, 1)->is_intel_pt);
    assert_true(perf_file_event(f, 2)->context_switch);
    uint64_t aux_bytes = 0;
    while (perf_file_next(f, &rec, NULL) > 0) {
        size_t len = 0;
        if (rec.kind == PERF_REC_AUXTRACE) {
            assert_non_null(perf_file_aux_data(f, &rec, &len));
            assert_int_equal(len, rec.u.auxtrace.size);
            aux_bytes += len;
        } else if (rec.kind == PERF_REC_AUXTRACE_INFO) {
            assert_int_equal(rec.u.auxtrace_info.type, 1);
            assert_int_equal(rec.u.auxtrace_info.priv[0], 6);
        }
    }
    assert_true(aux_bytes > 100000);
    perf_file_close(f);
    free(path);
}

/* perf 6.1 stops at the first trace data of this pipe, so its answer is only a part of the whole. The
 * trace data of each buffer must be as long as the AUX records of its CPU say. */
static void skylake_piped(void **state)
{
    (void)state;
    char *path = shared_data("skylake-user-kernel.piped.perf.data");
    if (!path)
        skip();
    struct perf_file *f = NULL;
    struct perf_record rec;
    char *text = lib_run(NULL, NULL, "%s script -D --no-itrace -i - <%s 2>/dev/null", lib_perf(), path);
    assert_int_equal(perf_file_open(&f, path, NULL), 0);
    assert_null(perf_file_partial(f));
    lines perf = perf_lines(text), ours = our_lines(f);
    qsort(ours.data, ours.len, sizeof *ours.data, by_text);
    assert_true(perf.len > 100);
    for (size_t i = 0; i < perf.len; i++)
        assert_non_null(bsearch(&perf.data[i], ours.data, ours.len, sizeof *ours.data, by_text));
    assert_true(perf_file_info(f)->has_auxtrace);
    assert_true(perf_file_event(f, 0)->is_intel_pt);
    assert_string_equal(perf_file_info(f)->os_release, "4.14.18");

    uint64_t announced[4] = {0}, there[4] = {0};
    perf_file_rewind(f);
    while (perf_file_next(f, &rec, NULL) > 0) {
        size_t len = 0;
        if (rec.kind == PERF_REC_AUX && rec.cpu >= 0 && rec.cpu < 4)
            announced[rec.cpu] += rec.u.aux.aux_size;
        if (rec.kind == PERF_REC_AUXTRACE && rec.u.auxtrace.cpu >= 0 && rec.u.auxtrace.cpu < 4) {
            assert_non_null(perf_file_aux_data(f, &rec, &len));
            there[rec.u.auxtrace.cpu] += len;
        }
    }
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(there[i], (announced[i] + 7) / 8 * 8);
    assert_true(there[0] + there[1] + there[2] + there[3] > 100000);
    lines_free(&perf);
    lines_free(&ours);
    perf_file_close(f);
    free(text);
    free(path);
}

/* ---- What is no recording ---- */

static void refused(void **state)
{
    (void)state;
    struct err err;
    struct perf_file *f = NULL;
    char *path = xasprintf("%s/odd", dir);
    const struct {
        const char *bytes;
        size_t len;
        int code;
        const char *says;
    } cases[] = {
        {"", 0, MTUI_E_FORMAT, "not a perf.data file"},
        {"hello, world", 12, MTUI_E_FORMAT, "not a perf.data file"},
        {"PERFILE2", 8, MTUI_E_FORMAT, "ends inside its header"},
        {"2ELIFREP\0\0\0\0\0\0\0\x10", 16, MTUI_E_NOTSUP, "other byte order"},
        {"PERFFILE\0\0\0\0\0\0\0\0", 16, MTUI_E_NOTSUP, "older than"},
        {"PERFILE2\x08\0\0\0\0\0\0\0", 16, MTUI_E_FORMAT, "header of 8 bytes"},
        {"PERFILE2\x68\0\0\0\0\0\0\0", 16, MTUI_E_FORMAT, "ends inside its header"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lib_write(path, cases[i].bytes, cases[i].len);
        assert_int_equal(perf_file_open(&f, path, &err), cases[i].code);
        assert_non_null(strstr(err.text, cases[i].says));
        assert_null(f);
    }
    assert_int_equal(perf_file_open(&f, "/dev/null", &err), MTUI_E_INVAL);
    assert_int_equal(perf_file_open(&f, "/nonexistent/x", &err), MTUI_E_NOENT);
    assert_int_equal(perf_file_open(&f, dir, &err), MTUI_E_NOENT);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),
        cmocka_unit_test(call_graph),
        cmocka_unit_test(compressed),
        cmocka_unit_test(compressed_hard),
        cmocka_unit_test(overwrite),
        cmocka_unit_test(overwrite_switched),
        cmocka_unit_test(with_data),
        cmocka_unit_test(with_switches),
        cmocka_unit_test(dwarf),
        cmocka_unit_test(several_events),
        cmocka_unit_test(per_writer),
        cmocka_unit_test(per_writer_compressed),
        cmocka_unit_test(all_cpus_registers),
        cmocka_unit_test(other_clock),
        cmocka_unit_test(pipe_layout),
        cmocka_unit_test(header),
        cmocka_unit_test(skylake),
        cmocka_unit_test(skylake_piped),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
