#include "core/record/perf_message.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool perf_message_is_dump(const char *line, size_t len, const char *base, char *suffix, size_t size)
{
    static const char head[] = "[ perf record: Dump ", foot[] = " ]";
    size_t head_len = sizeof head - 1, foot_len = sizeof foot - 1, base_len = strlen(base);
    if (len < head_len + base_len + foot_len || memcmp(line, head, head_len) ||
        memcmp(line + len - foot_len, foot, foot_len) || memcmp(line + head_len, base, base_len))
        return false;
    const char *rest = line + head_len + base_len;
    size_t rest_len = len - head_len - base_len - foot_len;
    if (rest_len + 1 > size || memchr(rest, '/', rest_len) || memchr(rest, '\0', rest_len))
        return false;
    memcpy(suffix, rest, rest_len);
    suffix[rest_len] = '\0';
    return true;
}

/* Text that perf prints (tools/perf, versions 4.x to 6.x) and what it means. In order: the first
 * match wins, so the special stand before the general. */
static const struct {
    const char *has;
    const char *sentence;
    bool loss;
} complaints[] = {
    {"No space left on device", "the disk is full: free some space or record elsewhere with -o DIR",
     true},
    {"Disk quota exceeded",
     "the disk quota is used up: free some space or record elsewhere with -o DIR", true},
    {"Read-only file system", "the directory of the recording cannot be written: use -o DIR", true},
    {"File too large", "the recording has reached the limit on the size of files (ulimit -f)",
     true},
    {"Permission error mapping pages",
     "the kernel refused the ring buffer, it needs more locked memory than is allowed: take a "
     "smaller one (-s) or raise kernel.perf_event_mlock_kb",
     false},
    {"failed to mmap with 12", "not enough memory for the ring buffer: take a smaller one (-s)",
     false},
    {"failed to mmap", "the kernel refused to map the ring buffer: take a smaller one (-s)", false},
    {"Invalid argument for -m", "perf does not accept this ring size: take another one (-s)",
     false},
    {"create thread/CPU maps", "the process to record does not exist (any more)", false},
    {"No AUX area tracing to snapshot", "Intel PT cannot be recorded on this machine", false},
    {"Cannot find PMU `intel_pt'", "this machine has no Intel PT", false},
    {"AUX area tracing snapshot failed", "perf could not read the AUX buffer", false},
    {"event syntax error", "this machine or this perf does not know the event asked for", false},
    {"Too many events are opened", "too many events for the allowed open files: raise ulimit -n",
     false},
    {"Too many open files", "too many open files: raise ulimit -n", false},
    {"kcore is not readable", "--kernel needs to read /proc/kcore: run as root", false},
    {"unknown option", "this perf is too old for an option that is needed", false},
    {"unknown switch", "this perf is too old for an option that is needed", false},
    {"monitoring and observability operations is limited",
     "the kernel does not allow this user to record: lower kernel.perf_event_paranoid, or give "
     "perf "
     "CAP_PERFMON, or run as root",
     false},
    {"You may not have permission",
     "the kernel does not allow this user to record this process: "
     "lower kernel.perf_event_paranoid or run as root",
     false},
    {"No permission to enable",
     "the kernel does not allow this user to use the event: lower "
     "kernel.perf_event_paranoid or run as root",
     false},
    {"Operation not permitted",
     "the kernel does not permit recording this process (another user's, "
     "or forbidden by a container or security module)",
     false},
    {"Permission denied", "perf was denied something it needs: see its last lines", false},
    {"sampling/overflow-interrupts", "the hardware counter cannot interrupt here: record cpu-clock",
     false},
    {"The PMU counters are busy", "the hardware counters are in use by someone else", false},
    {"Device or resource busy", "the event is in use by someone else", false},
    {"event is not supported", "this machine does not support the event asked for", false},
    {"Cannot allocate memory", "not enough memory: take a smaller ring (-s)", false},
    {"Function not implemented", "this kernel (or its container) has no perf_event_open", false},
    {"pollfd index mismatch", "perf lost its control pipe", false},
    {"failed to write perf data", "perf could not write the recording", true},
    {"failed to open", "perf could not open a file it needs: see its last lines", false},
};

int perf_message_find(const char *line)
{
    for (size_t i = 0; i < sizeof complaints / sizeof *complaints; i++)
        if (strstr(line, complaints[i].has))
            return (int)i;
    return -1;
}

const char *perf_message_sentence(int complaint)
{
    return complaints[complaint].sentence;
}

const char *perf_message_of_write_error(int errno_value)
{
    /* Not by strerror, whose words depend on the language. */
    const char *words = errno_value == ENOSPC   ? "No space left on device"
                        : errno_value == EDQUOT ? "Disk quota exceeded"
                        : errno_value == EROFS  ? "Read-only file system"
                        : errno_value == EFBIG  ? "File too large"
                                                : "";
    int complaint = perf_message_find(words);
    return complaint >= 0 ? complaints[complaint].sentence : NULL;
}

bool perf_message_is_loss(int complaint)
{
    return complaint >= 0 && complaints[complaint].loss;
}

bool perf_message_is_full(int complaint)
{
    return complaint >= 0 && (complaint == perf_message_find("No space left on device") ||
                              complaint == perf_message_find("Disk quota exceeded"));
}

void perf_message_end(const char *who, const struct child_end *end, char *out, size_t size)
{
    if (!end->known)
        snprintf(out, size, "%s has ended (its exit status is not known)", who);
    else if (end->signaled)
        snprintf(out, size, "%s was killed by signal %d (%s)", who, end->code,
                 strsignal(end->code));
    else
        snprintf(out, size, "%s exited with status %d", who, end->code);
}
