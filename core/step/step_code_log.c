#include "core/step/step_code_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/alloc.h"

struct step_code_log {
    pid_t pid;
    int log, code;
    uint64_t end; /* of the file of pages */
};

int step_code_log_open(struct step_code_log **out, const char *dir, pid_t pid, struct err *err)
{
    char *log = xasprintf("%s/log", dir), *code = xasprintf("%s/code-step", dir);
    struct step_code_log l = {.pid = pid, .code = -1};
    int rc = 0;
    l.log = open(log, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (l.log < 0)
        rc = err_errno(err, errno, "cannot write %s", log);
    else if ((l.code = open(code, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) < 0)
        rc = err_errno(err, errno, "cannot write %s", code);
    off_t end = rc == 0 ? lseek(l.code, 0, SEEK_END) : 0;
    if (rc == 0 && end < 0)
        rc = err_errno(err, errno, "cannot write %s", code);
    free(log);
    free(code);
    struct step_code_log *kept = xmalloc(sizeof *kept);
    l.end = (uint64_t)end;
    *kept = l;
    if (rc < 0)
        step_code_log_close(kept);
    else
        *out = kept;
    return rc;
}

void step_code_log_close(struct step_code_log *l)
{
    if (!l)
        return;
    if (l->log >= 0)
        close(l->log);
    if (l->code >= 0)
        close(l->code);
    free(l);
}

static bool tell(struct step_code_log *l, uint64_t clock, uint64_t start, const char *offset)
{
    char line[128];
    int n = snprintf(line, sizeof line, "C\t%" PRIu64 "\t%ld\t%" PRIx64 "\t%s\n", clock, (long)l->pid, start,
                     offset);
    return write(l->log, line, (size_t)n) == n;
}

bool step_code_log_put(struct step_code_log *l, uint64_t clock, uint64_t start,
                       const uint8_t bytes[STEP_CODE_PAGE])
{
    char offset[32];
    if (l->end + STEP_CODE_PAGE > STEP_CODE_LOG_MOST ||
        pwrite(l->code, bytes, STEP_CODE_PAGE, (off_t)l->end) != (ssize_t)STEP_CODE_PAGE) {
        tell(l, clock, start, "-");
        return false;
    }
    snprintf(offset, sizeof offset, "%" PRIu64, l->end);
    if (!tell(l, clock, start, offset))
        return false;
    l->end += STEP_CODE_PAGE;
    return true;
}
