/* The snapshot directory: names, numbers, what is refused, session.ini and hits.tsv there and back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/session/snapshot_dir.h"
#include "tests/lib_run.h"

static char *tmp;

static int set_up(void **state)
{
    (void)state;
    setenv("TZ", "UTC", 1);
    tzset();
    tmp = run_temp_dir();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    run_remove_tree(tmp);
    free(tmp);
    return 0;
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static void put_file(const char *dir, const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", dir, name);
    run_write_file(path, text);
    free(path);
}

static void put_snapshot(const char *dir, const char *snap, size_t bytes)
{
    char *path = xasprintf("%s/%s", dir, snap), *text = xcalloc(1, bytes + 1);
    assert_int_equal(mkdir(path, 0700), 0);
    memset(text, 'x', bytes);
    put_file(path, "perf.data", text);
    free(text);
    free(path);
}

static void test_root(void **state)
{
    (void)state;
    char *root;
    struct err err = {0};
    assert_int_equal(snapshot_dir_root(&root, "/s", "/h", &err), 0);
    assert_string_equal(root, "/s/mtui");
    free(root);
    assert_int_equal(snapshot_dir_root(&root, "relative", "/h", &err), 0);
    assert_string_equal(root, "/h/.local/state/mtui");
    free(root);
    assert_int_equal(snapshot_dir_root(&root, NULL, "", &err), MTUI_E_INVAL);
    assert_non_null(strstr(err.text, "-o DIR"));
}

static void test_comm(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"demo-server", "demo-server"},
        {"kworker/3:1 (x)", "kworker31x"},
        {"..", "process"},
        {"\x1b[2Jevil\n", "2Jevil"},
        {"日本", "process"},
        {".hidden", "hidden"},
        {"a.out", "a.out"},
        {"", "process"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[65];
        snapshot_dir_comm(out, cases[i][0]);
        assert_string_equal(out, cases[i][1]);
    }
    char longest[200], out[65];
    memset(longest, 'a', sizeof longest);
    longest[199] = '\0';
    snapshot_dir_comm(out, longest);
    assert_int_equal(strlen(out), 64);
}

/* 2026-11-29 14:11:10 UTC is 1795961470 (date -u -d @1795961470). */
static void test_names_are_never_reused(void **state)
{
    (void)state;
    struct err err = {0};
    struct snapshot_dir *a, *b, *c;
    char *root = xasprintf("%s/state/deep/mtui", tmp);
    assert_int_equal(snapshot_dir_create(&a, root, "my prog", 4711, 1795961470, &err), 0);
    assert_int_equal(snapshot_dir_create(&b, root, "my prog", 4711, 1795961470, &err), 0);
    assert_int_equal(snapshot_dir_create(&c, root, "my prog", 4711, 1795961470, &err), 0);
    const char *base = strrchr(snapshot_dir_path(a), '/') + 1;
    assert_string_equal(base, "myprog-4711-20261129-141110");
    assert_string_equal(strrchr(snapshot_dir_path(b), '/') + 1, "myprog-4711-20261129-141110-2");
    assert_string_equal(strrchr(snapshot_dir_path(c), '/') + 1, "myprog-4711-20261129-141110-3");
    assert_int_equal(mode_of(snapshot_dir_path(a)), 0700);
    assert_int_equal(mode_of(root), 0700);
    snapshot_dir_close(a);
    snapshot_dir_close(b);
    snapshot_dir_close(c);
    free(root);
}

static void test_named_later(void **state)
{
    (void)state;
    struct err err = {0};
    struct snapshot_dir *d;
    char *root = xasprintf("%s/r", tmp), *taken = xasprintf("%s/x-7-20261129-141110", root);
    mkdir(root, 0700);
    mkdir(taken, 0700);
    assert_int_equal(snapshot_dir_create_unnamed(&d, root, &err), 0);
    assert_int_equal(mode_of(snapshot_dir_path(d)), 0700);
    put_file(snapshot_dir_path(d), "output", "hello");
    assert_int_equal(snapshot_dir_name(d, root, "x", 7, 1795961470, &err), 0);
    assert_string_equal(strrchr(snapshot_dir_path(d), '/') + 1, "x-7-20261129-141110-2");
    char *output = xasprintf("%s/output", snapshot_dir_path(d));
    assert_int_equal(access(output, F_OK), 0);
    snapshot_dir_close(d);
    free(output);
    free(taken);
    free(root);
}

static void test_given_directory(void **state)
{
    (void)state;
    struct err err = {0};
    struct snapshot_dir *d;
    char *fresh = xasprintf("%s/fresh/er", tmp);
    assert_int_equal(snapshot_dir_create_at(&d, fresh, &err), 0);
    assert_int_equal(mode_of(fresh), 0700);
    snapshot_dir_close(d);
    assert_int_equal(snapshot_dir_create_at(&d, fresh, &err), 0); /* still empty */
    snapshot_dir_close(d);

    char *broken = xasprintf("%s/two\nlines", tmp);
    assert_int_equal(snapshot_dir_create_at(&d, broken, &err), MTUI_E_INVAL);
    assert_non_null(strstr(err.text, "line break"));
    assert_int_equal(access(broken, F_OK), -1);
    free(broken);

    static const char *const taken[] = {"session.ini", "hits.tsv", "perf.data", "snap-1",
                                        "snap-end"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        char *dir = xasprintf("%s/taken%zu", tmp, i);
        mkdir(dir, 0755);
        put_file(dir, taken[i], "");
        assert_int_equal(snapshot_dir_create_at(&d, dir, &err), MTUI_E_STATE);
        assert_non_null(strstr(err.text, dir));
        free(dir);
    }
    /* A directory with something else in it stays as it is, mode included. */
    char *other = xasprintf("%s/other", tmp);
    mkdir(other, 0755);
    put_file(other, "notes.txt", "keep");
    assert_int_equal(snapshot_dir_create_at(&d, other, &err), 0);
    assert_int_equal(mode_of(other), 0755);
    assert_false(snapshot_dir_discard_empty(d));
    assert_int_equal(access(other, F_OK), 0);
    snapshot_dir_close(d);
    char *file = xasprintf("%s/notes.txt/x", other);
    assert_true(snapshot_dir_create_at(&d, file, &err) < 0);
    assert_int_equal(snapshot_dir_create_at(&d, "", &err), MTUI_E_INVAL);
    free(file);
    free(other);
    free(fresh);
}

static void field_A14_room_and_permission_are_checked_first(void **state)
{
    (void)state;
    struct err err = {0};
    struct snapshot_dir *d;
    char *path = xasprintf("%s/d", tmp);
    uint64_t room = 0;
    assert_int_equal(snapshot_dir_create_at(&d, path, &err), 0);
    assert_int_equal(snapshot_dir_check(d, 4096, &room, &err), 0);
    assert_true(room > 4096);
    assert_int_equal(snapshot_dir_check(d, UINT64_MAX, NULL, &err), MTUI_E_LIMIT);
    assert_non_null(strstr(err.text, path));
    rmdir(path);
    assert_true(snapshot_dir_check(d, 0, NULL, &err) < 0);
    snapshot_dir_close(d);
    free(path);
}

static void test_list_and_delete(void **state)
{
    (void)state;
    struct err err = {0};
    struct snapshot_dir *d;
    struct snapshot_entry *list;
    size_t n;
    put_snapshot(tmp, "snap-2", 10);
    put_snapshot(tmp, "snap-10", 20);
    put_snapshot(tmp, "snap-end", 30);
    put_snapshot(tmp, "snap-1", 40);
    put_snapshot(tmp, "snap-03", 1); /* no name of ours */
    char *empty = xasprintf("%s/snap-4", tmp);
    mkdir(empty, 0700);
    char *kcore = xasprintf("%s/snap-5", tmp);
    mkdir(kcore, 0700);
    char *inner = xasprintf("%s/perf.data", kcore);
    mkdir(inner, 0700);
    put_file(inner, "data", "123456789");
    char *outside = xasprintf("%s/precious", tmp);
    run_write_file(outside, "precious");
    char *link_path = xasprintf("%s/snap-2/link", tmp);
    assert_int_equal(symlink(outside, link_path), 0);

    assert_true(snapshot_dir_is(tmp));
    char *inside = xasprintf("%s/snap-1", tmp); /* has a perf.data, but is no recording */
    assert_false(snapshot_dir_is(inside));
    free(inside);
    assert_int_equal(snapshot_dir_open(&d, tmp, &err), 0);
    assert_int_equal(snapshot_dir_list(d, &list, &n, &err), 0);
    static const unsigned order[] = {1, 2, 5, 10, 0}, bytes[] = {40, 10, 9, 20, 30};
    assert_int_equal(n, 5);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(list[i].number, order[i]);
        assert_int_equal(list[i].bytes, bytes[i]);
        assert_int_equal(access(list[i].data, F_OK), 0);
    }
    snapshot_dir_free_list(list, n);

    assert_int_equal(snapshot_dir_delete(d, 2, &err), 0);
    assert_int_equal(snapshot_dir_delete(d, 5, &err), 0);
    assert_int_equal(snapshot_dir_delete(d, 0, &err), 0);
    assert_int_equal(snapshot_dir_delete(d, 99, &err), MTUI_E_NOENT);
    assert_int_equal(access(outside, F_OK), 0);
    assert_int_equal(snapshot_dir_list(d, &list, &n, &err), 0);
    assert_int_equal(n, 2);
    snapshot_dir_free_list(list, n);
    snapshot_dir_close(d);
    free(link_path);
    free(outside);
    free(inner);
    free(kcore);
    free(empty);
}

static void test_discard(void **state)
{
    (void)state;
    struct err err = {0};
    struct snapshot_dir *d;
    char *path = xasprintf("%s/made", tmp);
    assert_int_equal(snapshot_dir_create_at(&d, path, &err), 0);
    put_file(path, "session.ini", "");
    assert_true(snapshot_dir_discard_empty(d));
    assert_int_equal(access(path, F_OK), -1);
    snapshot_dir_close(d);
    assert_int_equal(snapshot_dir_create_at(&d, path, &err), 0);
    put_snapshot(path, "snap-1", 1);
    assert_false(snapshot_dir_discard_empty(d));
    snapshot_dir_close(d);
    assert_int_equal(snapshot_dir_open(&d, "/nonexistent", &err), MTUI_E_NOENT);
    assert_false(snapshot_dir_is("/"));
    free(path);
}

static void test_hits(void **state)
{
    (void)state;
    struct err err = {0};
    struct snapshot_dir *d;
    struct snapshot_hit *hits;
    size_t n, bad;
    char name[] = "ns::f(int)\t\n\x1b\\x", key[] = "key", function[] = "g<\t>";
    assert_int_equal(snapshot_dir_create_at(&d, tmp, &err), 0);
    assert_int_equal(snapshot_dir_read_hits(d, &hits, &n, &bad, &err), 0);
    assert_int_equal(n, 0);
    struct snapshot_hit late = {.time_ns = 2000,
                                .tid = 12,
                                .trigger = name,
                                .address = 0xffffffffff60,
                                .arg1 = UINT64_MAX,
                                .arg2 = 1,
                                .duration_ns = 77,
                                .snapshot = 3,
                                .still_running = true,
                                .function = function};
    struct snapshot_hit early = {.time_ns = 1000, .trigger = key};
    assert_int_equal(snapshot_dir_add_hit(d, &late, &err), 0);
    assert_int_equal(snapshot_dir_add_hit(d, &early, &err), 0);

    char *path = xasprintf("%s/hits.tsv", tmp);
    char *text = run_read_file(path, NULL);
    assert_string_equal(
        text, "time_ns\ttid\ttrigger\taddress\targ1\targ2\tduration_ns\tsnapshot\n"
              "2000\t12\tns::f(int)\\t\\n\\x1b\\\\x\tffffffffff60\tffffffffffffffff\t1\t77\t3\trunning\tfunction=g<\\t>\n"
              "1000\t0\tkey\t0\t0\t0\t0\t0\n");
    free(text);

    /* At the end of a recording: by time, nothing else changed, and the same again when it is done again. */
    for (int again = 0; again < 2; again++) {
        assert_int_equal(snapshot_dir_sort_hits(d, &err), 0);
        text = run_read_file(path, NULL);
        assert_string_equal(
            text, "time_ns\ttid\ttrigger\taddress\targ1\targ2\tduration_ns\tsnapshot\n"
                  "1000\t0\tkey\t0\t0\t0\t0\t0\n"
                  "2000\t12\tns::f(int)\\t\\n\\x1b\\\\x\tffffffffff60\tffffffffffffffff\t1\t77\t3\trunning\tfunction=g<\\t>\n");
        free(text);
    }
    struct snapshot_hit between = {.time_ns = 1500, .tid = 7, .trigger = key};
    assert_int_equal(snapshot_dir_add_hit(d, &between, &err), 0); /* the new file is added to like the old one */
    assert_int_equal(snapshot_dir_read_hits(d, &hits, &n, &bad, &err), 0);
    assert_int_equal(n, 3);
    assert_int_equal(hits[1].time_ns, 1500);
    snapshot_dir_free_hits(hits, n);

    FILE *f = fopen(path, "a"); /* damage: a short line, a bad number, a line that was cut */
    fputs("5\t6\n1\t0\tx\t0\t0\t0\t0\t0\tsomething=else\n-1\t0\tx\t0\t0\t0\t0\t0\n1\t0\tx\t0\t0\t0\t0\t0", f);
    fclose(f);
    assert_int_equal(snapshot_dir_read_hits(d, &hits, &n, &bad, &err), 0);
    assert_int_equal(n, 3);
    assert_int_equal(bad, 4);
    assert_int_equal(hits[0].time_ns, 1000);
    assert_string_equal(hits[0].trigger, "key");
    assert_string_equal(hits[2].trigger, name);
    assert_true(hits[2].address == 0xffffffffff60 && hits[2].arg1 == UINT64_MAX);
    assert_int_equal(hits[2].tid, 12);
    assert_int_equal(hits[2].duration_ns, 77);
    assert_int_equal(hits[2].snapshot, 3);
    assert_true(hits[2].still_running && !hits[0].still_running);
    assert_string_equal(hits[2].function, "g<\t>");
    assert_null(hits[0].function);
    snapshot_dir_free_hits(hits, n);

    /* What cannot be read is not thrown away, nor a file that cannot be replaced. */
    char *damaged = run_read_file(path, NULL), *new = xasprintf("%s.new", path);
    assert_int_equal(snapshot_dir_sort_hits(d, &err), 0);
    text = run_read_file(path, NULL);
    assert_string_equal(text, damaged);
    free(text);
    f = fopen(path, "w");
    fputs("2\t0\tx\t0\t0\t0\t0\t0\n1\t0\tx\t0\t0\t0\t0\t0\n", f);
    fclose(f);
    assert_int_equal(mkdir(new, 0700), 0);
    assert_true(snapshot_dir_sort_hits(d, &err) < 0);
    assert_non_null(strstr(err.text, new));
    assert_int_equal(rmdir(new), 0);
    text = run_read_file(path, NULL);
    assert_string_equal(text, "2\t0\tx\t0\t0\t0\t0\t0\n1\t0\tx\t0\t0\t0\t0\t0\n");
    free(text);
    free(damaged);
    free(new);
    snapshot_dir_close(d);
    free(path);
}

static void test_session_info(void **state)
{
    (void)state;
    struct err err = {0};
    struct snapshot_dir *d;
    pid_t pids[] = {4711, 4712};
    char *triggers[] = {(char[]){"handle_request"}, (char[]){"/a b\"c'#/@return"}};
    struct session_info in = {.recorder = (char[]){"sample"},
                              .mode = (char[]){"trigger"},
                              .command_line = (char[]){"mtui attach -p 4711 -t 'a b'"},
                              .comm = (char[]){"we\xffird \x1b\n= #name"},
                              .kernel = (char[]){""},
                              .started = true,
                              .pids = pids,
                              .npids = 2,
                              .triggers = triggers,
                              .ntriggers = 2,
                              .ring_bytes = 1 << 20,
                              .start_unix_ns = UINT64_MAX};
    assert_int_equal(snapshot_dir_create_at(&d, tmp, &err), 0);
    struct session_info out = {0};
    assert_int_equal(snapshot_dir_read_info(d, &out, &err), MTUI_E_NOENT);
    assert_int_equal(snapshot_dir_write_info(d, &in, &err), 0);
    assert_int_equal(snapshot_dir_write_info(d, &in, &err), 0); /* again, in place */
    char *path = xasprintf("%s/session.ini", tmp);
    assert_int_equal(mode_of(path), 0600);
    FILE *f = fopen(path, "a");
    fputs("key-of-a-later-version = 7\n", f);
    fclose(f);
    assert_int_equal(snapshot_dir_read_info(d, &out, &err), 0);
    assert_string_equal(out.recorder, "sample");
    assert_string_equal(out.mode, "trigger");
    assert_string_equal(out.command_line, in.command_line);
    assert_string_equal(out.comm, in.comm);
    assert_string_equal(out.kernel, "");
    assert_null(out.perf_version);
    assert_true(out.started);
    assert_int_equal(out.npids, 2);
    assert_int_equal(out.pids[1], 4712);
    assert_int_equal(out.ntriggers, 2);
    assert_string_equal(out.triggers[1], triggers[1]);
    assert_int_equal(out.ring_bytes, 1 << 20);
    assert_true(out.start_unix_ns == UINT64_MAX);
    session_info_free(&out);
    run_write_file(path, "start-ns = many\n");
    assert_int_equal(snapshot_dir_read_info(d, &out, &err), MTUI_E_INVAL);
    assert_non_null(strstr(err.text, "session.ini:1"));
    snapshot_dir_close(d);
    free(path);
}

/* A call that is a hit while it runs, and its return: a row each while the recording goes on, then one. */
static void test_hit_that_returned(void **state)
{
    (void)state;
    static const char head[] = "time_ns\ttid\ttrigger\taddress\targ1\targ2\tduration_ns\tsnapshot\n";
    struct err err = {0};
    struct snapshot_dir *d;
    struct snapshot_hit *hits;
    size_t n, bad;
    char job[] = "job", other[] = "other";
    char *dir = xasprintf("%s/returned", tmp), *path = xasprintf("%s/hits.tsv", dir);
    const struct snapshot_hit rows[] = {
        {.time_ns = 11700, .tid = 7, .trigger = job, .address = 0x40, .duration_ns = 11500},
        {.time_ns = 10200, .tid = 7, .trigger = job, .address = 0x30, .duration_ns = 10000, .snapshot = 1, .still_running = true},
        /* not its return: of another thread, another trigger, another call */
        {.time_ns = 11700, .tid = 8, .trigger = job, .address = 0x40, .duration_ns = 11500},
        {.time_ns = 11701, .tid = 7, .trigger = other, .address = 0x40, .duration_ns = 11501},
        {.time_ns = 11800, .tid = 7, .trigger = job, .address = 0x40, .duration_ns = 11500},
    };
    assert_int_equal(snapshot_dir_create_at(&d, dir, &err), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(snapshot_dir_add_hit(d, &rows[i], &err), 0);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(snapshot_dir_read_hits(d, &hits, &n, &bad, &err), 0);
        assert_true(n == 4 && bad == 0);
        assert_true(hits[0].still_running && hits[0].duration_ns == 10000 && hits[0].took_ns == 11500);
        assert_int_equal(hits[0].address, 0x30);
        for (size_t i = 1; i < n; i++)
            assert_true(!hits[i].still_running && hits[i].took_ns == 0);
        snapshot_dir_free_hits(hits, n);
        assert_int_equal(snapshot_dir_sort_hits(d, &err), 0);
        char *text = run_read_file(path, NULL), *rest = text + strlen(head);
        assert_memory_equal(text, head, strlen(head));
        assert_string_equal(rest, "10200\t7\tjob\t30\t0\t0\t10000\t1\trunning\ttook=11500\n"
                                  "11700\t8\tjob\t40\t0\t0\t11500\t0\n"
                                  "11701\t7\tother\t40\t0\t0\t11501\t0\n"
                                  "11800\t7\tjob\t40\t0\t0\t11500\t0\n");
        free(text);
    }
    snapshot_dir_close(d);
    free(path);
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_root),
        cmocka_unit_test(test_comm),
        cmocka_unit_test_setup_teardown(test_names_are_never_reused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_named_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_given_directory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(field_A14_room_and_permission_are_checked_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_list_and_delete, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_discard, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hit_that_returned, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_session_info, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
