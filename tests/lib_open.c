#include "tests/lib_open.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib_perf.h"

struct recording *open_or_fail(const char *path, const struct open_options *o)
{
    struct recording *r = NULL;
    struct err err = {0};
    if (open_recording(&r, path, o, &err) < 0)
        fail_msg("%s: %s", path, err.text);
    if (trace_check(r->trace, &err) < 0)
        fail_msg("%s: %s", path, err.text);
    return r;
}

bool open_has_note(const struct recording *r, const char *text)
{
    for (size_t i = 0; i < r->nnotes; i++)
        if (strstr(r->notes[i], text))
            return true;
    return false;
}

char *open_record_forker(char *data, size_t size)
{
    int status = 1;
    if (!lib_perf_works())
        return NULL;
    char *dir = lib_mkdtemp();
    snprintf(data, size, "%s/perf.data", dir);
    free(lib_run(&status, NULL, "%s record -q -o %s -e cpu-clock:u -F 2000 -g --switch-events -- %s 20 2>&1",
                 lib_perf(), data, lib_tool("forker")));
    assert_int_equal(status, 0);
    return dir;
}

void open_stack_of(const struct recording *r, const struct sample_event *e, char *out, size_t size)
{
    const struct stack_tree *tree = sample_log_stacks(r->samples);
    size_t len = 0;
    out[0] = '\0';
    for (stack_id id = e->stack; id != STACK_EMPTY; id = stack_tree_node(tree, id).caller) {
        const struct function *f = functions_get(trace_functions(r->trace), stack_tree_node(tree, id).fn);
        len += (size_t)snprintf(out + len, size - len, "%s;", f->name);
        assert_true(len < size);
    }
}
