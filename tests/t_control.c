/* core/record/control: the exchange over the control descriptors, with perf's side played here, on a clock
 * of our own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/record/control.h"

struct bench {
    struct loop *loop;
    struct control *control;
    uint64_t now;
    int perf_ctl, perf_ack; /* perf's ends */
    int acks, overdue, gone;
    enum control_command last;
    uint64_t took;
    bool late;
    bool send_on_ack; /* from inside the callback */
};

static uint64_t fake_clock(void *arg)
{
    return ((struct bench *)arg)->now;
}

static void on_ack(void *arg, enum control_command c, uint64_t took_ns, bool late)
{
    struct bench *b = arg;
    b->acks++;
    b->last = c;
    b->took = took_ns;
    b->late = late;
    if (b->send_on_ack) {
        b->send_on_ack = false;
        assert_int_equal(control_send(b->control, CONTROL_STOP, 0, NULL), 0);
    }
}

static void on_overdue(void *arg, enum control_command c, uint64_t deadline_ns)
{
    struct bench *b = arg;
    (void)deadline_ns;
    b->overdue++;
    b->last = c;
}

static void on_gone(void *arg)
{
    ((struct bench *)arg)->gone++;
}

static int setup(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    int ctl[2], ack[2];
    /* A pipe in packet mode: a read gives what one write has put there, never more. */
    if (!b || pipe2(ctl, O_CLOEXEC | O_DIRECT) || pipe2(ack, O_CLOEXEC))
        return -1;
    b->now = 1000;
    b->loop = loop_new_with_clock(fake_clock, b);
    b->perf_ctl = ctl[0];
    b->perf_ack = ack[1];
    struct control_events ev = {.ack = on_ack, .overdue = on_overdue, .gone = on_gone, .arg = b};
    b->control = control_new(b->loop, ctl[1], ack[0], &ev);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;
    control_free(b->control);
    loop_free(b->loop);
    if (b->perf_ctl >= 0)
        close(b->perf_ctl);
    if (b->perf_ack >= 0)
        close(b->perf_ack);
    free(b);
    return 0;
}

static void perf_says(struct bench *b, const char *bytes, size_t len)
{
    assert_int_equal(write(b->perf_ack, bytes, len), len);
    loop_run_once(b->loop, 0);
}

static void assert_perf_reads(struct bench *b, const char *text)
{
    char got[64] = "";
    ssize_t n = read(b->perf_ctl, got, sizeof got - 1);
    assert_int_equal(n, strlen(text));
    assert_string_equal(got, text);
}

/* Each word arrives whole, newline and nothing else, in one piece. */
static void words(void **state)
{
    struct bench *b = *state;
    static const char *const text[] = {"ping\n", "enable\n", "disable\n", "snapshot\n", "stop\n"};
    for (int c = 0; c < CONTROL_COMMANDS; c++) {
        assert_int_equal(control_send(b->control, (enum control_command)c, 0, NULL), 0);
        assert_perf_reads(b, text[c]);
        perf_says(b, "ack\n", 5);
        assert_int_equal(b->acks, c + 1);
        assert_int_equal(b->last, c);
    }
}

static void ack_forms(void **state)
{
    struct bench *b = *state;
    control_send(b->control, CONTROL_PING, 0, NULL);
    perf_says(b, "ack\n", 4); /* without NUL */
    assert_int_equal(b->acks, 1);
    control_send(b->control, CONTROL_PING, 0, NULL);
    perf_says(b, "a", 1); /* in pieces */
    perf_says(b, "ck", 2);
    assert_int_equal(b->acks, 1);
    perf_says(b, "\n", 1);
    assert_int_equal(b->acks, 2);
    perf_says(b, "\0", 1); /* the NUL of the one before, late */
    control_send(b->control, CONTROL_PING, 0, NULL);
    perf_says(b, "\0ack\n\0", 6);
    assert_int_equal(b->acks, 3);
    control_send(b->control, CONTROL_PING, 0, NULL);
    perf_says(b, "junk aack\n", 10); /* noise in front, an `a` too many */
    assert_int_equal(b->acks, 4);
    perf_says(b, "ack\n", 5); /* nobody asked */
    assert_int_equal(b->acks, 4);
}

static void one_at_a_time(void **state)
{
    struct bench *b = *state;
    struct err err;
    enum control_command c;
    uint64_t sent;
    assert_false(control_outstanding(b->control, &c, &sent));
    assert_int_equal(control_send(b->control, CONTROL_SNAPSHOT, 0, NULL), 0);
    assert_true(control_outstanding(b->control, &c, &sent));
    assert_int_equal(c, CONTROL_SNAPSHOT);
    assert_int_equal(sent, 1000);
    assert_int_equal(control_send(b->control, CONTROL_PING, 0, &err), MTUI_E_BUSY);
    assert_non_null(strstr(err.text, "`snapshot`"));
    assert_perf_reads(b, "snapshot\n"); /* and nothing of the ping */
    b->send_on_ack = true;
    perf_says(b, "ack\n", 5);
    assert_perf_reads(b, "stop\n");
}

static void statistics(void **state)
{
    struct bench *b = *state;
    static const uint64_t took[] = {300, 100, 200};
    for (size_t i = 0; i < 3; i++) {
        control_send(b->control, CONTROL_PING, 0, NULL);
        b->now += took[i];
        perf_says(b, "ack\n", 5);
        assert_int_equal(b->took, took[i]);
    }
    const struct control_stats *s = control_get_stats(b->control);
    assert_int_equal(s->count, 3);
    assert_int_equal(s->last_ns, 200);
    assert_int_equal(s->min_ns, 100);
    assert_int_equal(s->max_ns, 300);
    assert_int_equal(s->sum_ns, 600);
    assert_int_equal(s->late + s->lost, 0);
}

static void late_and_lost(void **state)
{
    struct bench *b = *state;
    control_send(b->control, CONTROL_SNAPSHOT, 1000, NULL);
    b->now += 999;
    loop_run_once(b->loop, 0);
    assert_int_equal(b->overdue, 0);
    b->now += 1;
    loop_run_once(b->loop, 0);
    loop_run_once(b->loop, 0);
    assert_int_equal(b->overdue, 1);
    assert_true(control_outstanding(b->control, NULL, NULL));
    b->now += 60000000000u; /* a minute later it comes all the same */
    perf_says(b, "ack\n", 5);
    assert_int_equal(b->acks, 1);
    assert_true(b->late);
    assert_int_equal(b->took, 60000001000u);
    assert_int_equal(control_get_stats(b->control)->late, 1);

    control_send(b->control, CONTROL_PING, 1000, NULL);
    control_abandon(b->control);
    assert_int_equal(control_get_stats(b->control)->lost, 1);
    assert_false(control_outstanding(b->control, NULL, NULL));
    b->now += 5000;
    perf_says(b, "ack\n", 5);
    assert_int_equal(b->acks, 1);
    assert_int_equal(b->overdue, 1); /* its deadline went with it */
}

static void eof_means_gone(void **state)
{
    struct bench *b = *state;
    control_send(b->control, CONTROL_STOP, 0, NULL);
    close(b->perf_ack);
    b->perf_ack = -1;
    loop_run_once(b->loop, 0);
    loop_run_once(b->loop, 0);
    assert_int_equal(b->gone, 1);
    assert_int_equal(b->acks, 0);
    assert_int_equal(control_get_stats(b->control)->lost, 1);
    assert_int_equal(control_send(b->control, CONTROL_PING, 0, NULL), MTUI_E_GONE);
}

/* The answer may still be in the pipe when the other side closes. */
static void ack_then_eof(void **state)
{
    struct bench *b = *state;
    control_send(b->control, CONTROL_STOP, 0, NULL);
    assert_int_equal(write(b->perf_ack, "ack\n", 5), 5);
    close(b->perf_ack);
    b->perf_ack = -1;
    loop_run_once(b->loop, 0);
    loop_run_once(b->loop, 0);
    assert_int_equal(b->acks, 1);
    assert_int_equal(b->gone, 1);
    assert_int_equal(control_get_stats(b->control)->lost, 0);
}

static void epipe_means_gone(void **state)
{
    struct bench *b = *state;
    struct err err;
    close(b->perf_ctl);
    b->perf_ctl = -1;
    assert_int_equal(control_send(b->control, CONTROL_SNAPSHOT, 0, &err), MTUI_E_GONE);
    assert_false(control_outstanding(b->control, NULL, NULL));
}

static void descriptors(void **state)
{
    (void)state;
    int ctl[2], ack[2];
    assert_int_equal(pipe(ctl) + pipe(ack), 0);
    struct loop *loop = loop_new();
    struct control_events none = {0};
    struct control *c = control_new(loop, ctl[1], ack[0], &none);
    int ours[] = {ctl[1], ack[0]};
    for (size_t i = 0; i < 2; i++) {
        assert_true(fcntl(ours[i], F_GETFD) & FD_CLOEXEC);
        assert_true(fcntl(ours[i], F_GETFL) & O_NONBLOCK);
    }
    control_free(c);
    assert_int_equal(fcntl(ctl[1], F_GETFD), -1);
    assert_int_equal(fcntl(ack[0], F_GETFD), -1);
    close(ctl[0]);
    close(ack[1]);
    loop_free(loop);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(words),        T(ack_forms),        T(one_at_a_time),
        T(statistics),   T(late_and_lost),    T(eof_means_gone),
        T(ack_then_eof), T(epipe_means_gone), cmocka_unit_test(descriptors),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
