/* The thread that keeps the log of mappings; what it writes is in core/session/maps_capture.c. */
#include "core/session/maps_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/session/maps_capture.h"
#include "core/base/vec.h"

struct request {
    pid_t pid;
    uint64_t time_ns;
    char reason[16];
};

struct maps_writer {
    int log_fd;
    struct maps_capturer *capturer; /* the thread's own */
    pthread_t thread;
    pthread_mutex_t lock; /* guards all that follows */
    pthread_cond_t wake;  /* work, or the end */
    pthread_cond_t idle;
    VEC(struct request) queue;
    bool busy, closing;
    struct maps_writer_stats stats;
};

static void account(struct maps_writer *w, const struct capture_result *r)
{
    w->stats.captures += r->changed ? 1 : 0;
    w->stats.bytes += r->bytes;
    w->stats.left_out += r->left_out;
    if (r->note[0])
        memcpy(w->stats.note, r->note, sizeof w->stats.note);
}

static void *work(void *arg)
{
    struct maps_writer *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->queue.len == 0 && !w->closing)
            pthread_cond_wait(&w->wake, &w->lock);
        if (w->queue.len == 0)
            break;
        struct request r = w->queue.data[0];
        vec_remove(&w->queue, 0);
        w->busy = true;
        pthread_mutex_unlock(&w->lock);
        struct capture_result result = {0};
        maps_capturer_run(w->capturer, r.pid, r.time_ns, r.reason, &result);
        pthread_mutex_lock(&w->lock);
        account(w, &result);
        w->busy = false;
        if (w->queue.len == 0)
            pthread_cond_broadcast(&w->idle);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Signals belong to the main thread. */
static int start_thread(struct maps_writer *w)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int e = pthread_create(&w->thread, NULL, work, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return e;
}

int maps_writer_new(struct maps_writer **out, const char *dir, const char *proc_root,
                    struct err *err)
{
    static const char magic[] = "mtui-maps 1\n";
    char *maps = xasprintf("%s/maps", dir);
    char *path = xasprintf("%s/log", maps);
    int rc = 0, fd = -1;
    if (mkdir(maps, 0700) < 0 && errno != EEXIST)
        rc = err_errno(err, errno, "cannot make the directory %s", maps);
    if (rc == 0) {
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, magic, sizeof magic - 1) != (ssize_t)sizeof magic - 1)
            rc = err_errno(err, errno, "cannot write %s", path);
    }
    if (rc == 0) {
        pthread_condattr_t attr;
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        struct maps_writer *w = xcalloc(1, sizeof *w);
        w->log_fd = fd;
        w->capturer = maps_capturer_new(maps, proc_root, fd);
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->wake, NULL);
        pthread_cond_init(&w->idle, &attr);
        pthread_condattr_destroy(&attr);
        int e = start_thread(w);
        if (e) {
            rc = err_errno(err, e, "cannot start a thread");
            maps_capturer_free(w->capturer);
            free(w);
        } else {
            *out = w;
        }
    }
    if (rc < 0 && fd >= 0)
        close(fd);
    free(path);
    free(maps);
    return rc;
}

void maps_writer_capture(struct maps_writer *w, pid_t pid, uint64_t time_ns, const char *reason)
{
    pthread_mutex_lock(&w->lock);
    /* One that waits already will see this change too; its time is the earlier of the two. */
    bool waiting = false;
    for (size_t i = 0; i < w->queue.len; i++)
        waiting |= w->queue.data[i].pid == pid;
    if (!waiting) {
        struct request r = {.pid = pid, .time_ns = time_ns};
        snprintf(r.reason, sizeof r.reason, "%s", reason);
        vec_push(&w->queue, r);
        pthread_cond_signal(&w->wake);
    }
    pthread_mutex_unlock(&w->lock);
}

bool maps_writer_flush(struct maps_writer *w, uint64_t timeout_ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + timeout_ns % 1000000000u;
    until.tv_sec += (time_t)(timeout_ns / 1000000000u + ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    pthread_mutex_lock(&w->lock);
    int e = 0;
    while ((w->queue.len || w->busy) && e == 0)
        e = pthread_cond_timedwait(&w->idle, &w->lock, &until);
    bool done = w->queue.len == 0 && !w->busy;
    pthread_mutex_unlock(&w->lock);
    return done;
}

void maps_writer_stats(struct maps_writer *w, struct maps_writer_stats *out)
{
    pthread_mutex_lock(&w->lock);
    *out = w->stats;
    pthread_mutex_unlock(&w->lock);
}

void maps_writer_free(struct maps_writer *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    maps_capturer_free(w->capturer);
    close(w->log_fd);
    pthread_cond_destroy(&w->wake);
    pthread_cond_destroy(&w->idle);
    pthread_mutex_destroy(&w->lock);
    vec_free(&w->queue);
    free(w);
}
