/* A trigger in hundreds of children: what is said of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/machine/target.h"
#include "tests/lib_program.h"
#include "tests/lib_trigger.h"

static void what_is_told(void **state)
{
    (void)state;
    static const uint64_t told[] = {1, 10, 100, 1000, 1000000}, not[] = {0, 2, 9, 11, 20, 101, 110, 5000, 1000001};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        assert_true(fmt_is_told(told[i]));
    for (size_t i = 0; i < sizeof not / sizeof *not; i++)
        assert_false(fmt_is_told(not[i]));
}

static void on_target(void *arg, enum target_state state)
{
    if (state == TARGET_ENDED)
        ++*(uint64_t *)arg;
}

static size_t count_text(const char *text, const char *word)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, word)); at++)
        n++;
    return n;
}

struct many {
    struct seen seen;
    uint64_t ended;
};

static bool ten_are_found(void *arg)
{
    struct many *m = arg;
    return strstr(m->seen.message, "(10 times in children by now)") != NULL;
}

/* Of twelve children that replace themselves, two sentences are said, not twelve. */
static void many_children(void **state)
{
    (void)state;
    char *path = victim_path("victim"), *dir = program_mkdir(), *fifo = xasprintf("%s/fifo", dir);
    char sh[] = "sh", c[] = "-c";
    char *text = xasprintf("i=0; while [ $((i += 1)) -le 12 ]; do '%s' <'%s' & done; wait", path, fifo);
    char *argv[] = {sh, c, text, NULL};
    struct target_callbacks events = {.changed = on_target};
    struct target_run_options run = {.argv = argv, .stdio = TARGET_PTY};
    struct target *target = NULL;
    struct err err = {0};
    struct many m = {.seen.loop = loop_new()};
    assert_int_equal(mkfifo(fifo, 0600), 0);
    int end = open(fifo, O_RDWR | O_CLOEXEC);
    assert_true(end >= 0);
    assert_int_equal(target_run(m.seen.loop, &run, &events, &m.ended, &target, &err), 0);
    struct trigger_set_options options = {
        .may_pend = true, .executable = target_executable(target), .probe = {.children = true}};
    seen_open(&m.seen, &options, "traced", NULL);
    assert_int_equal(trigger_set_arm(m.seen.set, target_pid(target), &err), 0);
    assert_int_equal(target_go(target, &err), 0);
    assert_true(loop_until_true(m.seen.loop, ten_are_found, &m));
    close(end); /* they all see the end of their input */
    assert_true(loop_until(m.seen.loop, &m.ended, 1));
    seen_settle(&m.seen);
    assert_int_equal(count_text(m.seen.message, "trigger traced found"), 2);
    assert_in_range(count_text(m.seen.message, "runs another program now"), 0, 2);
    target_free(target, TARGET_END);
    seen_close(&m.seen);
    unlink(fifo);
    free(fifo);
    program_rmdir(dir);
    free(text);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told),
        cmocka_unit_test(many_children),
    };
    return cmocka_run_group_tests(tests, seen_need_uprobes, NULL);
}
