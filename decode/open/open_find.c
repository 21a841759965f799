#include "decode/open/open_find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "decode/open/open.h"

void open_found_free(struct open_found *f)
{
    for (size_t i = 0; i < f->ninputs; i++)
        free(f->inputs[i]);
    free(f->inputs);
    free(f->snapshots);
    if (f->dir)
        snapshot_dir_close(f->dir);
    *f = (struct open_found){0};
}

static void add_snapshot(struct open_found *f, const struct snapshot_entry *e)
{
    f->inputs = xrealloc(f->inputs, (f->ninputs + 1) * sizeof *f->inputs);
    f->inputs[f->ninputs++] = xstrdup(e->data);
    f->snapshots = xrealloc(f->snapshots, (f->nsnapshots + 1) * sizeof *f->snapshots);
    f->snapshots[f->nsnapshots++] = e->number;
}

static size_t last_of(const struct snapshot_entry *list, size_t n)
{
    for (size_t i = n; i-- > 0;)
        if (list[i].number)
            return i;
    return n - 1;
}

/* What was written before mtui was killed: the newest of it, or all. */
static int add_leftovers(struct open_found *f, unsigned snapshot, struct err *err)
{
    char **paths = NULL;
    size_t n = 0;
    int rc = snapshot_dir_leftovers(f->dir, &paths, &n, err);
    if (rc < 0)
        return rc;
    size_t first = snapshot == OPEN_ALL || n == 0 ? 0 : n - 1;
    f->inputs = xcalloc(n - first + 1, sizeof *f->inputs);
    for (size_t i = 0; i < n; i++) {
        if (i >= first)
            f->inputs[f->ninputs++] = paths[i];
        else
            free(paths[i]);
    }
    free(paths);
    f->leftover = n > 0;
    return n ? 0 : err_set(err, MTUI_E_NOENT, "%s holds no snapshot", snapshot_dir_path(f->dir));
}

static int choose(struct open_found *f, unsigned snapshot, struct err *err)
{
    struct snapshot_entry *list = NULL;
    size_t n = 0;
    int rc = snapshot_dir_list(f->dir, &list, &n, err);
    if (rc < 0)
        return rc;
    const char *path = snapshot_dir_path(f->dir);
    if (n == 0 && (snapshot == OPEN_LAST || snapshot == OPEN_ALL))
        rc = add_leftovers(f, snapshot, err);
    else if (n == 0)
        rc = err_set(err, MTUI_E_NOENT, "%s holds no snapshot", path);
    for (size_t i = 0; i < n; i++)
        if (snapshot == OPEN_ALL || (snapshot == OPEN_LAST && i == last_of(list, n)) ||
            (snapshot == OPEN_END && list[i].number == 0) ||
            (snapshot != OPEN_LAST && list[i].number == snapshot))
            add_snapshot(f, &list[i]);
    if (n && !f->ninputs && snapshot == OPEN_END)
        rc = err_set(err, MTUI_E_NOENT, "%s holds no snap-end", path);
    else if (n && !f->ninputs)
        rc = err_set(err, MTUI_E_NOENT, "%s holds no snapshot %u: the last one is %u", path, snapshot,
                     list[last_of(list, n)].number);
    snapshot_dir_free_list(list, n);
    return rc;
}

/* "…/snap-12" or something inside of it: the number, and the directory that holds it. */
static bool inside_snapshot(const char *real, char **dir, unsigned *number)
{
    char *path = xstrdup(real);
    for (int up = 0; up < 3; up++) { /* snap-N, its perf.data, "data" inside of that */
        char *slash = strrchr(path, '/');
        unsigned n = 0;
        int end = 0;
        if (!slash || slash == path)
            break;
        bool fits = sscanf(slash + 1, "snap-%9u%n", &n, &end) == 1 && n && slash[1 + end] == '\0';
        if (strcmp(slash + 1, "snap-end") == 0) {
            n = OPEN_END;
            fits = true;
        }
        *slash = '\0';
        if (fits && snapshot_dir_is(path)) {
            *dir = path;
            *number = n;
            return true;
        }
    }
    free(path);
    return false;
}

/* "…/perf.data.1" in the directory of a recording, which it names. */
static bool is_leftover(const char *real, char **dir)
{
    const char *slash = strrchr(real, '/');
    if (!slash || strncmp(slash + 1, "perf.data", 9) != 0)
        return false;
    char *path = xasprintf("%.*s", (int)(slash - real), real);
    if (snapshot_dir_is(path)) {
        *dir = path;
        return true;
    }
    free(path);
    return false;
}

/* A directory that is neither a recording nor what perf record --kcore or --threads writes. */
static int check_directory(const char *path, struct err *err)
{
    char *data = xasprintf("%s/data", path);
    bool there = access(data, F_OK) == 0 || snapshot_dir_is(path);
    free(data);
    return there ? 0
                 : err_set(err, MTUI_E_NOENT,
                           "there is no recording in the directory %s: name the directory of one (mtui keeps "
                           "them below ~/.local/state/mtui) or a perf.data file",
                           path);
}

int open_check_path(const char *path, struct err *err)
{
    struct stat st;
    char *dir = NULL;
    unsigned number;
    if (strcmp(path, "-") == 0)
        return 0;
    if (access(path, R_OK) < 0 || stat(path, &st) < 0)
        return err_errno(err, errno, "cannot open %s", path);
    char *real = S_ISDIR(st.st_mode) ? realpath(path, NULL) : NULL;
    int rc = real && !inside_snapshot(real, &dir, &number) ? check_directory(real, err) : 0;
    free(dir);
    free(real);
    return rc;
}

int open_find(struct open_found *out, const char *path, unsigned snapshot, struct err *err)
{
    struct open_found f = {0};
    int rc = 0;
    char *real = strcmp(path, "-") ? realpath(path, NULL) : NULL, *dir = NULL;
    if (real && snapshot_dir_is(real)) {
        rc = snapshot_dir_open(&f.dir, real, err);
        if (rc == 0)
            rc = choose(&f, snapshot, err);
    } else if (real && inside_snapshot(real, &dir, &snapshot)) {
        rc = snapshot_dir_open(&f.dir, dir, err);
        if (rc == 0)
            rc = choose(&f, snapshot, err);
    } else {
        f.inputs = xmalloc(sizeof *f.inputs);
        f.inputs[f.ninputs++] = xstrdup(path);
        f.leftover = real && is_leftover(real, &dir);
        if (f.leftover)
            rc = snapshot_dir_open(&f.dir, dir, err);
    }
    free(real);
    free(dir);
    if (rc < 0)
        open_found_free(&f);
    else
        *out = f;
    return rc;
}
