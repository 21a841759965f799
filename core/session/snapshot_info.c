/* session.ini: one `key = value` a line, in the grammar of core/base/conf.h. Keys may repeat (trigger,
 * pid); values too long for a line are cut. */
#include "core/session/snapshot_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/conf.h"
#include "core/base/fmt.h"

enum kind { TEXT, NUMBER, YES_NO };

static const struct {
    const char *key;
    enum kind kind;
    size_t offset;
} keys[] = {
#define KEY(name, kind, member)                                                                    \
    {                                                                                              \
        name, kind, offsetof(struct session_info, member)                                          \
    }
    KEY("recorder", TEXT, recorder),
    KEY("mode", TEXT, mode),
    KEY("clock", TEXT, clock),
    KEY("command", TEXT, command_line),
    KEY("recorder-command", TEXT, perf_command),
    KEY("mtui-version", TEXT, mtui_version),
    KEY("perf-version", TEXT, perf_version),
    KEY("kernel", TEXT, kernel),
    KEY("comm", TEXT, comm),
    KEY("target-command", TEXT, target_command),
    KEY("started", YES_NO, started),
    KEY("slower-than-ns", NUMBER, slower_than_ns),
    KEY("ring-bytes", NUMBER, ring_bytes),
    KEY("frequency-hz", NUMBER, frequency_hz),
    KEY("user-code-only", YES_NO, user_only),
    KEY("start-unix-ns", NUMBER, start_unix_ns),
    KEY("start-ns", NUMBER, start_ns),
#undef KEY
};
#define KEYS (sizeof keys / sizeof *keys)

static void write_line(FILE *f, const char *key, const char *value)
{
    char word[CONF_LINE_MAX - 64]; /* room for the key */
    fprintf(f, "%s = %s\n", key, conf_quote(word, sizeof word, value));
}

static void write_keys(FILE *f, const struct session_info *info)
{
    fputs("# A recording of mtui. Times in nanoseconds.\n", f);
    for (size_t i = 0; i < KEYS; i++) {
        const char *at = (const char *)info + keys[i].offset;
        char number[32];
        if (keys[i].kind == TEXT) {
            const char *text = *(char *const *)(const void *)at;
            if (text)
                write_line(f, keys[i].key, text);
        } else if (keys[i].kind == YES_NO) {
            write_line(f, keys[i].key, *(const bool *)(const void *)at ? "yes" : "no");
        } else {
            snprintf(number, sizeof number, "%" PRIu64, *(const uint64_t *)(const void *)at);
            write_line(f, keys[i].key, number);
        }
    }
    for (size_t i = 0; i < info->npids; i++)
        fprintf(f, "pid = %ld\n", (long)info->pids[i]);
    for (size_t i = 0; i < info->ntriggers; i++)
        write_line(f, "trigger", info->triggers[i]);
}

int snapshot_dir_write_info(struct snapshot_dir *d, const struct session_info *info,
                            struct err *err)
{
    char *path = xasprintf("%s/session.ini", snapshot_dir_path(d));
    char *fresh = xasprintf("%s.new", path);
    int rc = 0;
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!f) {
        rc = err_errno(err, errno, "cannot write %s", fresh);
        if (fd >= 0)
            close(fd);
    } else {
        write_keys(f, info);
        bool bad = ferror(f) != 0;
        if (fclose(f) != 0 || bad || rename(fresh, path) < 0)
            rc = err_errno(err, errno, "cannot write %s", path);
    }
    if (rc < 0)
        unlink(fresh);
    free(fresh);
    free(path);
    return rc;
}

static void add_pid(struct session_info *info, const char *text)
{
    uint64_t v;
    if (fmt_parse_u64(text, 1, INT32_MAX, &v, NULL) < 0)
        return;
    info->pids = xrealloc(info->pids, (info->npids + 1) * sizeof *info->pids);
    info->pids[info->npids++] = (pid_t)v;
}

static void add_trigger(struct session_info *info, const char *text)
{
    info->triggers = xrealloc(info->triggers, (info->ntriggers + 1) * sizeof *info->triggers);
    info->triggers[info->ntriggers++] = xstrdup(text);
}

static int read_key(void *arg, const struct conf_words *words, int line, struct err *err)
{
    struct session_info *info = arg;
    (void)line;
    if (!words->assignment || words->n < 1)
        return err_set(err, MTUI_E_FORMAT, "a line that is no `key = value`");
    const char *value = words->n > 1 ? words->word[1] : "";
    if (!strcmp(words->word[0], "pid"))
        add_pid(info, value);
    if (!strcmp(words->word[0], "trigger"))
        add_trigger(info, value);
    for (size_t i = 0; i < KEYS; i++) {
        char *at = (char *)info + keys[i].offset;
        if (strcmp(keys[i].key, words->word[0]) != 0)
            continue;
        if (keys[i].kind == TEXT) {
            char **text = (char **)(void *)at;
            free(*text);
            *text = xstrdup(value);
        } else if (keys[i].kind == YES_NO) {
            *(bool *)(void *)at = !strcmp(value, "yes");
        } else if (fmt_parse_u64(value, 0, UINT64_MAX, (uint64_t *)(void *)at, err) < 0) {
            return err_prefix(err, "%s", keys[i].key);
        }
    }
    return 0;
}

int snapshot_dir_read_info(const struct snapshot_dir *d, struct session_info *info, struct err *err)
{
    char *path = xasprintf("%s/session.ini", snapshot_dir_path(d));
    struct session_info read = {0};
    int rc = conf_read_file(path, read_key, &read, err);
    free(path);
    if (rc < 0)
        session_info_free(&read);
    else
        *info = read;
    return rc < 0 ? rc : 0;
}

void session_info_free(struct session_info *info)
{
    for (size_t i = 0; i < KEYS; i++)
        if (keys[i].kind == TEXT)
            free(*(char **)(void *)((char *)info + keys[i].offset));
    for (size_t i = 0; i < info->ntriggers; i++)
        free(info->triggers[i]);
    free(info->triggers);
    free(info->pids);
    memset(info, 0, sizeof *info);
}
