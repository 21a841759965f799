#include "tests/lib_victim.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/alloc.h"

#define DEADLINE_NS ((uint64_t)20000000000)

char *victim_path(const char *name)
{
    const char *build = getenv("MTUI_BUILD");
    return xasprintf("%s/tests/%s", build ? build : "build/release", name);
}

struct victim victim_start(const char *name)
{
    char *path = victim_path(name);
    struct victim v = victim_start_path(path);
    free(path);
    return v;
}

struct victim victim_start_path(const char *path)
{
    struct victim v = {0};
    int in[2], out[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    v.pid = fork();
    if (v.pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execl(path, path, (char *)NULL);
        _exit(127);
    }
    assert_true(v.pid > 0);
    close(in[0]);
    close(out[1]);
    v.in = in[1];
    v.out = out[0];
    struct loop *loop = loop_new();
    victim_wait(&v, loop);
    loop_free(loop);
    return v;
}

void victim_send(struct victim *v, const char *command)
{
    size_t n = strlen(command);
    assert_int_equal(write(v->in, command, n), (ssize_t)n);
    assert_int_equal(write(v->in, "\n", 1), 1);
}

struct seen {
    bool ready;
};

static void on_line(void *arg, int fd, short revents)
{
    (void)fd;
    (void)revents;
    ((struct seen *)arg)->ready = true;
}

long victim_wait(struct victim *v, struct loop *loop)
{
    uint64_t deadline = loop_now_ns(loop) + DEADLINE_NS;
    size_t len = 0;
    struct seen seen = {false};
    int id = loop_add_fd(loop, v->out, POLLIN, on_line, &seen);
    for (;;) {
        seen.ready = false;
        while (!seen.ready && loop_now_ns(loop) < deadline)
            loop_run_once(loop, 100000000);
        char c = 0;
        if (!seen.ready || read(v->out, &c, 1) != 1)
            fail_msg("no answer from the traced program");
        if (c == '\n')
            break;
        if (len < sizeof v->line - 1)
            v->line[len++] = c;
    }
    loop_remove(loop, id);
    v->line[len] = '\0';
    long n = -1;
    if (sscanf(v->line, "ready 0x%" SCNx64, &v->traced) == 1)
        return 0;
    if (sscanf(v->line, "done %ld", &n) != 1)
        fail_msg("the traced program said: %s", v->line);
    return n;
}

long victim_do(struct victim *v, struct loop *loop, const char *command)
{
    victim_send(v, command);
    return victim_wait(v, loop);
}

void victim_kill(struct victim *v)
{
    close(v->in);
    close(v->out);
    kill(v->pid, SIGKILL);
    waitpid(v->pid, NULL, 0);
}

bool loop_until_true(struct loop *loop, bool (*fn)(void *arg), void *arg)
{
    uint64_t deadline = loop_now_ns(loop) + DEADLINE_NS;
    while (!fn(arg)) {
        if (loop_now_ns(loop) > deadline)
            return false;
        loop_run_once(loop, 10000000);
    }
    return true;
}

struct at_least {
    const uint64_t *value;
    uint64_t wanted;
};

static bool reached(void *arg)
{
    const struct at_least *a = arg;
    return *a->value >= a->wanted;
}

bool loop_until(struct loop *loop, const uint64_t *value, uint64_t wanted)
{
    struct at_least a = {value, wanted};
    return loop_until_true(loop, reached, &a);
}

uint64_t victim_offset(pid_t pid, uint64_t addr)
{
    char path[64], line[4352];
    uint64_t start, end, pgoff, found = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &pgoff) == 3 &&
            addr >= start && addr < end)
            found = addr - start + pgoff;
    fclose(f);
    assert_true(found != 0);
    return found;
}

int victim_byte(pid_t pid, uint64_t addr)
{
    char path[64];
    unsigned char byte = 0;
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : pread(fd, &byte, 1, (off_t)addr);
    if (fd >= 0)
        close(fd);
    return n == 1 ? byte : -1;
}

char *command_output(const char *command)
{
    FILE *f = popen(command, "r");
    size_t len = 0, cap = 65536;
    char *text = malloc(cap);
    assert_non_null(f);
    assert_non_null(text);
    for (size_t n; (n = fread(text + len, 1, cap - len - 1, f)) > 0;) {
        len += n;
        if (len + 1 == cap) {
            cap *= 2;
            text = realloc(text, cap);
            assert_non_null(text);
        }
    }
    text[len] = '\0';
    pclose(f);
    return text;
}
