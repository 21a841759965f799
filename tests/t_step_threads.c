/* Threads that are born and end while a process is stepped: none is in the way, and what the ring has no room for is
 * told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "core/record/step_message.h"
#include "lib_stepper.h"

/* How many threads end until the recorder tells of what it dropped; asks for that after `least` of them. */
static uint64_t count_ended(struct stepper *s, uint64_t least, struct step_message *dropped)
{
    uint64_t ended = 0;
    do {
        const char *line = stepper_wait(s, "[ mtui step: ");
        assert_true(step_message_parse(line, strlen(line), dropped));
        if (dropped->kind == STEP_MESSAGE_ENDED && dropped->end == STEP_END_EXITED && ++ended == least)
            stepper_command(s, "snapshot");
    } while (dropped->kind != STEP_MESSAGE_DROPPED);
    return ended;
}

/* A ring as small as can be holds the one that ended last. */
static void dropped_threads_are_told(void **state)
{
    struct stepper s;
    struct step_message m;
    (void)state;
    stepper_start_gated(&s, "threads");
    struct step_recorder_options o = {.tracer = {.ring_bytes = 1}};
    stepper_record(&s, &o, true);
    stepper_command(&s, "enable");
    stepper_go(&s);
    for (uint64_t least = 5; least > 2; least--) { /* what a file has is told once */
        uint64_t ended = count_ended(&s, least, &m);
        assert_true(ended >= least);
        assert_int_equal(m.threads, ended - 1);
        assert_true(m.bytes >= m.threads * 16); /* a PSB each */
        stepper_wait(&s, "[ perf record: Dump ");
    }
    stepper_command(&s, "stop");
    stepper_stop(&s);
    stepper_runs_free(&s, NULL);
    stepper_end(&s);
}

/* Those born of a thread that is seized already are traced before they are found. */
static void threads_are_born_meanwhile(void **state)
{
    struct stepper s;
    (void)state;
    stepper_start(&s, "threads");
    struct step_recorder_options o = {.tracer = {.ring_bytes = 1}};
    for (int i = 0; i < 100; i++) {
        stepper_record(&s, &o, true);
        stepper_command(&s, "ping");
        stepper_command(&s, "stop");
        stepper_stop(&s);
    }
    stepper_runs_free(&s, NULL);
    stepper_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropped_threads_are_told),
        cmocka_unit_test(threads_are_born_meanwhile),
    };
    if (getuid() != 0) {
        print_message("[  SKIPPED ] all of t_step_threads: ptrace of a process that is no child needs root\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
