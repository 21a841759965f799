#include "tests/lib_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/alloc.h"

#define WAIT_MS 20000

static struct {
    char name[64];
    uint64_t addr;
} printed[32];
static size_t n_printed;

char *program_mkdir(void)
{
    char path[] = "/tmp/mtui-test-XXXXXX";
    assert_non_null(mkdtemp(path));
    return xstrdup(path);
}

void program_rmdir(char *dir)
{
    assert_true(program_shell("/", "rm -rf '%s'", dir));
    free(dir);
}

bool program_shell(const char *dir, const char *fmt, ...)
{
    char command[4096], full[8192];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    snprintf(full, sizeof full, "cd '%s' && { %s; } >/dev/null 2>&1 </dev/null", dir, command);
    return system(full) == 0;
}

void program_write(const char *dir, const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

bool program_have(const char *tool)
{
    return program_shell("/", "command -v '%s'", tool);
}

bool program_build(const char *dir, const char *source, const char *name, const char *flags)
{
    bool cxx = strstr(source, ".cc") != NULL;
    return program_shell(dir, "%s -o '%s' '%s' %s", cxx ? "c++" : "cc", name, source, flags);
}

uint64_t program_nm(const char *dir, const char *name, const char *symbol)
{
    char command[4096], line[4096], found[4000];
    uint64_t addr = 0, a;
    char type;
    snprintf(command, sizeof command, "cd '%s' && { nm '%s'; nm -D '%s'; } 2>/dev/null", dir, name, name);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "%lx %c %3999s", &a, &type, found) == 3 && strcmp(found, symbol) == 0)
            addr = a;
    pclose(f);
    return addr;
}

void program_start(struct program *p, const char *dir, const char *command)
{
    int in[2], out[2];
    char full[8192];
    snprintf(full, sizeof full, "cd '%s' && exec %s", dir, command);
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    p->pid = fork();
    assert_true(p->pid >= 0);
    if (p->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        for (int fd = 3; fd < 64; fd++)
            close(fd);
        execl("/bin/sh", "sh", "-c", full, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    p->in = in[1];
    p->out = fdopen(out[0], "r");
    setvbuf(p->out, NULL, _IONBF, 0);
    char line[256];
    n_printed = 0;
    for (;;) {
        struct pollfd fd = {.fd = out[0], .events = POLLIN};
        assert_int_equal(poll(&fd, 1, WAIT_MS), 1);
        assert_non_null(fgets(line, sizeof line, p->out));
        if (strcmp(line, "ready\n") == 0)
            return;
        if (n_printed < sizeof printed / sizeof *printed &&
            sscanf(line, "%63s %lx", printed[n_printed].name, &printed[n_printed].addr) == 2)
            n_printed++;
    }
}

void program_end(struct program *p)
{
    close(p->in);
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    fclose(p->out);
}

uint64_t program_addr(const char *name)
{
    for (size_t i = 0; i < n_printed; i++)
        if (strcmp(printed[i].name, name) == 0)
            return printed[i].addr;
    return 0;
}
