/* Files that are cut or written to while they are open: no signal ends the process, in whatever thread, what
 * is left is shown, and a sentence says what happened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/file_guard.h"
#include "decode/open/open.h"
#include "lib_program.h"
#include "lib_run.h"
#include "lib_step.h"
#include "lib_step_programs.h"

/* ---- the guard alone ---- */

struct mapped {
    const uint8_t *bytes;
    size_t size;
    uint64_t sum;
};

static void *sum_up(void *arg)
{
    struct mapped *m = arg;
    for (size_t i = 0; i < m->size; i += 512)
        m->sum += m->bytes[i];
    return NULL;
}

static void in_any_thread(void **state)
{
    const size_t size = 16 * 4096;
    char *bytes = malloc(size);
    int fd = memfd_create("cut", MFD_CLOEXEC);
    (void)state;
    memset(bytes, 1, size);
    assert_int_equal(write(fd, bytes, size), size);
    void *map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_true(map != MAP_FAILED);
    file_guard_install();
    assert_int_equal(ftruncate(fd, 3 * 4096 + 512), 0);
    struct mapped m[3] = {{map, size, 0}, {map, size, 0}, {map, size, 0}};
    pthread_t ids[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, sum_up, &m[i]), 0);
    sum_up(&m[2]);
    for (int i = 0; i < 2; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(m[i].sum, 3 * 8 + 1); /* what is left, and zeros */
    munmap(map, size);
    close(fd);
    free(bytes);
}

/* A SIGBUS that comes from elsewhere ends the process as ever. */
static void other_faults_end(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGBUS, SIG_DFL); /* the test library has a handler */
        file_guard_install();
        raise(SIGBUS);
        raise(SIGBUS);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
}

/* ---- recordings ---- */

struct cutter {
    char data[300], exe[300];
    const char *stage; /* cut when this begins */
    off_t size;        /* to so many bytes; −1: written over */
    bool done;
};

static void cut(void *arg, const struct open_progress *p)
{
    struct cutter *c = arg;
    if (c->done || strcmp(p->stage, c->stage) != 0)
        return;
    c->done = true;
    if (c->size >= 0) {
        assert_int_equal(truncate(c->data, c->size), 0);
        assert_int_equal(truncate(c->exe, 100), 0);
        return;
    }
    int fd = open(c->data, O_WRONLY);
    char junk[4096];
    memset(junk, 0xff, sizeof junk);
    assert_true(fd >= 0);
    off_t end = lseek(fd, 0, SEEK_END);
    for (off_t at = 4096; at < end; at += 4096)
        assert_true(pwrite(fd, junk, (size_t)(end - at < 4096 ? end - at : 4096), at) > 0);
    close(fd);
}

static int record(void **state)
{
    static struct step_rec r;
    step_rec_program(&r, &step_programs[0], 1);
    *state = &r;
    return 0;
}

static int forget(void **state)
{
    step_rec_free(*state);
    return 0;
}

static bool has_note(const struct recording *r, const char *words)
{
    for (size_t i = 0; i < r->nnotes; i++)
        if (strstr(r->notes[i], words))
            return true;
    return false;
}

static void open_and_cut(const struct step_rec *r, const char *stage, unsigned threads, off_t size,
                         const char *words)
{
    struct step_encoding e = step_encodings[0];
    struct cutter c = {.stage = stage, .size = size};
    struct recording *rec;
    struct err err;
    char command[800];
    int status;
    e.repeat = 400; /* more than one piece */
    snprintf(c.data, sizeof c.data, "%s/cut.data", r->dir);
    snprintf(c.exe, sizeof c.exe, "%s/t", r->dir);
    step_rec_encode(r, &e, c.data);
    snprintf(command, sizeof command, "cp %s %s.whole", c.exe, c.exe);
    free(run_output(command, &status));
    struct open_options o = {.threads = threads, .progress = cut, .progress_arg = &c};
    int rc = open_recording(&rec, c.data, &o, &err);
    assert_true(c.done);
    if (rc < 0) {
        fail_msg("%s: %s", stage, err.text);
    } else {
        if (trace_check(rec->trace, &err) < 0)
            fail_msg("%s", err.text);
        assert_true(has_note(rec, words));
        assert_non_null(trace_info(rec->trace)->partial);
        recording_free(rec);
    }
    snprintf(command, sizeof command, "mv %s.whole %s", c.exe, c.exe);
    free(run_output(command, &status));
}

static void while_decoding(void **state)
{
    for (unsigned threads = 1; threads <= 3; threads++) {
        open_and_cut(*state, "decoding", threads, 200000, "was cut while it was read");
        open_and_cut(*state, "decoding", threads, 0, "was cut while it was read");
    }
}

static void while_it_is_read(void **state)
{
    open_and_cut(*state, "reading", 1, 200000, "was cut while it was read");
    open_and_cut(*state, "reading", 1, 5000, "was cut while it was read");
}

static void written_over(void **state)
{
    open_and_cut(*state, "reading", 1, -1, "was written to while it was read");
    open_and_cut(*state, "decoding", 2, -1, "was written to while it was read");
}

int main(void)
{
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(in_any_thread),
        cmocka_unit_test(other_faults_end),
    };
    const struct CMUnitTest recordings[] = {
        cmocka_unit_test(while_decoding),
        cmocka_unit_test(while_it_is_read),
        cmocka_unit_test(written_over),
    };
    int bad = cmocka_run_group_tests(alone, NULL, NULL);
    if (getuid() != 0) {
        print_message("[  SKIPPED ] t_file_cut: recordings need root or CAP_PERFMON\n");
        return bad;
    }
    return bad + cmocka_run_group_tests(recordings, record, forget);
}
