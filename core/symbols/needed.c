#include "core/symbols/needed.h"

#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/machine/child.h"
#include "core/symbols/elf_file.h"
#include "core/base/loop.h"
#include "core/base/vec.h"

#define PATIENCE_NS 2000000000u

/* PT_INTERP, from malloc; NULL when there is none. */
static char *interpreter_of(const struct elf_file *f)
{
    Elf *elf = elf_file_handle(f);
    size_t n = 0;
    char *file = NULL, *path = NULL;
    size_t size = 0;
    if (elf_getphdrnum(elf, &n) != 0 || !(file = elf_rawfile(elf, &size)))
        return NULL;
    for (size_t i = 0; i < n && !path; i++) {
        GElf_Phdr ph;
        if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_INTERP && ph.p_filesz > 1 &&
            ph.p_filesz <= 4096 && ph.p_offset <= size && ph.p_filesz <= size - ph.p_offset)
            path = xstrndup(file + ph.p_offset, (size_t)ph.p_filesz);
    }
    return path;
}

struct listing {
    VEC(char *) paths;
    bool ended;
};

/* "\tlibc.so.6 => /lib/libc.so.6 (0x7f…)" or "\t/lib64/ld-linux-x86-64.so.2 (0x7f…)". */
static void on_line(void *arg, const char *line, size_t len)
{
    struct listing *l = arg;
    char *text = xstrndup(line, len);
    char *arrow = strstr(text, " => /");
    char *path = arrow ? arrow + 4 : text + strspn(text, " \t");
    char *end = NULL;
    for (char *p = strstr(path, " (0x"); p; p = strstr(p + 1, " (0x"))
        end = p;
    if (*path == '/' && end) {
        *end = '\0';
        vec_push(&l->paths, xstrdup(path));
    }
    free(text);
}

static void on_ended(void *arg, const struct child_end *end)
{
    (void)end;
    ((struct listing *)arg)->ended = true;
}

static int ask_loader(char *loader, const char *program, struct listing *l, struct err *err)
{
    char *path = realpath(program, NULL); /* the loader takes a bare name for a library */
    if (!path)
        return err_set(err, MTUI_E_NOENT, "there is no file %s", program);
    char list[] = "--list";
    char *argv[] = {loader, list, path, NULL};
    struct child_spec spec = {.argv = argv};
    struct child_events events = {.line = on_line, .ended = on_ended, .arg = l};
    struct loop *loop = loop_new();
    struct child *child = NULL;
    int rc = child_spawn(loop, &spec, &events, &child, err);
    uint64_t deadline = loop_now_ns(loop) + PATIENCE_NS;
    while (rc == 0 && !l->ended && loop_now_ns(loop) < deadline)
        loop_run_once(loop, 100000000);
    if (rc == 0 && !l->ended)
        rc = err_set(err, MTUI_E_TIMEOUT, "%s does not list the libraries of %s", loader, program);
    if (child)
        child_free(child);
    loop_free(loop);
    free(path);
    return rc;
}

int needed_files(const char *program, struct needed *out, struct err *err)
{
    struct elf_file *f = NULL;
    struct listing l = {0};
    int rc = elf_file_open_path(program, &f, err);
    if (rc < 0)
        return rc;
    char *loader = interpreter_of(f);
    elf_file_free(f);
    if (loader)
        rc = ask_loader(loader, program, &l, err);
    free(loader);
    struct needed n = {l.paths.data, l.paths.len};
    if (rc < 0)
        needed_free(&n);
    else
        *out = n;
    return rc;
}

void needed_free(struct needed *n)
{
    for (size_t i = 0; i < n->n; i++)
        free(n->paths[i]);
    free(n->paths);
    *n = (struct needed){0};
}
