#include "core/machine/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/machine/proc_access.h"
#include "core/base/utf8.h"
#include "core/base/vec.h"

#define COMMAND_MAX    4096
#define SLOW_REFRESHES 8 /* owner and command line change rarely: reread once in so many rounds */

struct row {
    struct proc p;
    char *command;
    uint64_t seen_ns; /* time of the CPU reading below */
    uint64_t cpu_ticks;
    unsigned rounds;
    bool kept; /* still there in this refresh */
    struct proc_exe exe;
};

struct user_name {
    uid_t uid;
    char *name;
};

struct proc_table {
    char *root;
    bool live; /* root is the real /proc: access checks mean something */
    long ticks_per_s;
    uint64_t page_bytes;
    VEC(struct row *) rows, old;
    VEC(struct user_name) users;
};

static const char *const syms_names[] = {"?", "none", "dynsym", "symtab", "debug", "kernel"};
static const char *const trace_names[] = {"ok", "no-perm", "kernel", "zombie", "32-bit", "self",
                                         "seccomp", "other ns"};

const char *proc_syms_name(enum proc_syms syms)
{
    return syms_names[syms];
}

const char *proc_trace_name(enum proc_trace trace)
{
    return trace_names[trace];
}

struct proc_table *proc_table_new(const char *root)
{
    struct proc_table *t = xcalloc(1, sizeof *t);
    t->root = xstrdup(root);
    t->live = strcmp(root, "/proc") == 0;
    t->ticks_per_s = sysconf(_SC_CLK_TCK);
    t->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    return t;
}

static void row_free(struct row *r)
{
    free(r->command);
    free(r);
}

void proc_table_free(struct proc_table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->rows.len; i++)
        row_free(t->rows.data[i]);
    for (size_t i = 0; i < t->users.len; i++)
        free(t->users.data[i].name);
    vec_free(&t->rows);
    vec_free(&t->old);
    vec_free(&t->users);
    free(t->root);
    free(t);
}

static const char *user_name(struct proc_table *t, uid_t uid)
{
    for (size_t i = 0; i < t->users.len; i++)
        if (t->users.data[i].uid == uid)
            return t->users.data[i].name;
    struct passwd pw, *found = NULL;
    char buf[4096];
    getpwuid_r(uid, &pw, buf, sizeof buf, &found);
    struct user_name u = {uid, found ? xstrdup(pw.pw_name) : xasprintf("%u", (unsigned)uid)};
    vec_push(&t->users, u);
    return u.name;
}

static int by_pid(const void *a, const void *b)
{
    const struct row *x = *(struct row *const *)a, *y = *(struct row *const *)b;
    return (x->p.stat.pid > y->p.stat.pid) - (x->p.stat.pid < y->p.stat.pid);
}

static struct row *find_row(struct row *const *rows, size_t len, pid_t pid)
{
    size_t lo = 0, hi = len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (rows[mid]->p.stat.pid < pid)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < len && rows[lo]->p.stat.pid == pid ? rows[lo] : NULL;
}

/* Owner and command line, and what never changes for a process; read at first sight and now and
 * then, since a process may exec or rename itself. */
static void read_slow_facts(struct proc_table *t, struct row *r)
{
    char uids[64];
    pid_t pid = r->p.stat.pid;
    if (proc_status_value(t->root, pid, "Uid", uids, sizeof uids))
        r->p.uid = (uid_t)strtoul(uids, NULL, 10);
    r->p.user = user_name(t, r->p.uid);
    free(r->command);
    r->command = proc_command(t->root, pid, r->p.stat.comm, COMMAND_MAX);
    r->p.command = r->command;
    proc_exe_look(t->root, &r->p.stat, &r->exe);
    r->p.syms = r->exe.syms;
    r->p.trace = proc_access_check(t->live, &r->p.stat, &r->exe);
}

static void remember_cpu(struct row *r)
{
    struct proc *p = &r->p;
    if (p->history_len == PROC_HISTORY) {
        memmove(p->history, p->history + 1, (PROC_HISTORY - 1) * sizeof *p->history);
        p->history_len--;
    }
    p->history[p->history_len++] =
        (uint16_t)(p->cpu_permille > UINT16_MAX ? UINT16_MAX : p->cpu_permille);
}

static void update_cpu(const struct proc_table *t, struct row *r, uint64_t now_ns, bool first)
{
    uint64_t ticks = r->p.stat.cpu_ticks;
    double used_s, over_s;
    if (first) {
        used_s = (double)ticks / (double)t->ticks_per_s;
        over_s = (double)r->p.age_s;
    } else {
        uint64_t delta = ticks > r->cpu_ticks ? ticks - r->cpu_ticks : 0;
        used_s = (double)delta / (double)t->ticks_per_s;
        over_s = (double)(now_ns - r->seen_ns) / 1e9;
    }
    r->p.cpu_permille = over_s > 0 ? (unsigned)(used_s / over_s * 1000 + 0.5) : 0;
    r->cpu_ticks = ticks;
    r->seen_ns = now_ns;
    remember_cpu(r);
}

static double read_uptime(const struct proc_table *t)
{
    char *path = xasprintf("%s/uptime", t->root);
    char *text = proc_read_file(path, 256, NULL);
    double up = text ? strtod(text, NULL) : 0;
    free(text);
    free(path);
    return up;
}

static void scan_pid(struct proc_table *t, pid_t pid, uint64_t now_ns, double uptime_s)
{
    struct proc_stat st;
    if (proc_stat_read(t->root, pid, 0, &st, NULL) < 0)
        return; /* gone between the listing and now */
    struct row *r = find_row(t->old.data, t->old.len, pid);
    bool first = !r || r->p.stat.start_ticks != st.start_ticks;
    if (first)
        r = xcalloc(1, sizeof *r);
    r->p.stat = st;
    double started_s = (double)st.start_ticks / (double)t->ticks_per_s;
    r->p.age_s = uptime_s > started_s ? (uint64_t)(uptime_s - started_s) : 0;
    r->p.rss_bytes = st.rss_pages * t->page_bytes;
    if (r->rounds++ % SLOW_REFRESHES == 0)
        read_slow_facts(t, r);
    update_cpu(t, r, now_ns, first);
    r->kept = true;
    vec_push(&t->rows, r);
}

int proc_table_refresh(struct proc_table *t, uint64_t now_ns, struct err *err)
{
    DIR *d = opendir(t->root);
    if (!d)
        return err_errno(err, errno, "cannot list processes in %s", t->root);
    double uptime_s = read_uptime(t);
    t->old.len = 0;
    for (size_t i = 0; i < t->rows.len; i++) {
        t->rows.data[i]->kept = false;
        vec_push(&t->old, t->rows.data[i]);
    }
    t->rows.len = 0;
    for (struct dirent *e; (e = readdir(d));)
        if (isdigit((unsigned char)e->d_name[0]))
            scan_pid(t, (pid_t)strtol(e->d_name, NULL, 10), now_ns, uptime_s);
    closedir(d);
    for (size_t i = 0; i < t->old.len; i++)
        if (!t->old.data[i]->kept)
            row_free(t->old.data[i]);
    qsort(t->rows.data, t->rows.len, sizeof *t->rows.data, by_pid);
    return 0;
}

size_t proc_table_count(const struct proc_table *t)
{
    return t->rows.len;
}

const struct proc *proc_table_at(const struct proc_table *t, size_t i)
{
    return &t->rows.data[i]->p;
}

const struct proc *proc_table_find(const struct proc_table *t, pid_t pid)
{
    const struct row *r = find_row(t->rows.data, t->rows.len, pid);
    return r ? &r->p : NULL;
}

static int by_tid(const void *a, const void *b)
{
    const struct proc_stat *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

ssize_t proc_threads(const char *root, pid_t pid, struct proc_stat **out, struct err *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%d/task", root, (int)pid);
    DIR *d = opendir(path);
    if (!d)
        return errno == ENOENT ? err_set(err, MTUI_E_GONE, "process %d has ended", (int)pid)
                               : err_errno(err, errno, "cannot list %s", path);
    VEC(struct proc_stat) threads = {0};
    for (struct dirent *e; (e = readdir(d));) {
        struct proc_stat st;
        if (isdigit((unsigned char)e->d_name[0]) &&
            proc_stat_read(root, pid, (pid_t)strtol(e->d_name, NULL, 10), &st, NULL) == 0)
            vec_push(&threads, st);
    }
    closedir(d);
    if (!threads.len) {
        vec_free(&threads);
        return err_set(err, MTUI_E_GONE, "process %d has ended", (int)pid);
    }
    qsort(threads.data, threads.len, sizeof *threads.data, by_tid);
    *out = threads.data;
    return (ssize_t)threads.len;
}

void proc_trace_reason(const struct proc *p, char *out, size_t size)
{
    static const char *const sentences[] = {
        [PROC_TRACE_OK] = "",
        [PROC_TRACE_NO_PERM] = ("the kernel refuses to trace it for this user: run mtui as root or "
                                "with CAP_PERFMON and CAP_SYS_PTRACE"),
        [PROC_TRACE_KERNEL] = "a kernel thread has no user code to trace",
        [PROC_TRACE_ZOMBIE] = "it has ended and waits for its parent",
        [PROC_TRACE_32BIT] = "it is a 32-bit program; mtui traces 64-bit ones",
        [PROC_TRACE_SELF] = "this is mtui itself",
        [PROC_TRACE_SECCOMP] = ("a seccomp filter refuses perf events to mtui, to root too (containers: allow "
                                "perf_event_open); only run -r step without triggers works without them"),
        [PROC_TRACE_FOREIGN] = ("/proc belongs to another pid namespace than mtui, so its numbers mean other "
                                "processes here: mount a proc of this one (unshare --mount-proc), or run mtui "
                                "outside"),
    };
    snprintf(out, size, "%s", sentences[p->trace]);
}
