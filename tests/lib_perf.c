#include "tests/lib_perf.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/alloc.h"

char *lib_mkdtemp(void)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = xasprintf("%s/mtui-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        abort();
    return dir;
}

void lib_rmdir(char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        char *path = xasprintf("%s/%s", dir, e->d_name);
        if (unlink(path) < 0)
            lib_rmdir(path);
        else
            free(path);
    }
    if (d)
        closedir(d);
    rmdir(dir);
    free(dir);
}

char *lib_run(int *status, size_t *len, const char *fmt, ...)
{
    va_list ap;
    char *command = NULL;
    va_start(ap, fmt);
    if (vasprintf(&command, fmt, ap) < 0)
        abort();
    va_end(ap);
    FILE *p = popen(command, "r");
    if (!p)
        abort();
    size_t n = 0, cap = 65536;
    char *out = xmalloc(cap);
    for (size_t got; (got = fread(out + n, 1, cap - n - 1, p)) > 0;) {
        n += got;
        if (cap - n < 2)
            out = xrealloc(out, cap *= 2);
    }
    out[n] = '\0';
    int st = pclose(p);
    if (status)
        *status = WIFEXITED(st) ? WEXITSTATUS(st) : -1;
    if (len)
        *len = n;
    free(command);
    return out;
}

char *lib_read(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st) < 0)
        abort();
    char *bytes = xmalloc((size_t)st.st_size + 1);
    *len = fread(bytes, 1, (size_t)st.st_size, f);
    bytes[*len] = '\0';
    fclose(f);
    return bytes;
}

void lib_write(const char *path, const void *bytes, size_t len)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, len, f) != len || fclose(f) != 0)
        abort();
}

const char *lib_perf(void)
{
    const char *perf = getenv("MTUI_PERF");
    return perf && *perf ? perf : "perf";
}

bool lib_perf_works(void)
{
    int status;
    char *dir = lib_mkdtemp();
    free(lib_run(&status, NULL, "%s record -q -N -e cpu-clock -o %s/p true 2>/dev/null", lib_perf(), dir));
    lib_rmdir(dir);
    return status == 0;
}

const char *lib_tool(const char *name)
{
    static char path[4096];
    const char *build = getenv("MTUI_BUILD");
    snprintf(path, sizeof path, "%s/tests/%s", build && *build ? build : "build/release", name);
    return path;
}
