#include "core/record/step_message.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define START "[ mtui step: "

static const struct {
    const char *name, *text;
} ends[STEP_ENDS] = {
    [STEP_END_RETURNED] = {"returned", "the call returned"},
    [STEP_END_LEFT] = {"left", "the call was left by a jump (longjmp, an exception, a signal handler's end)"},
    [STEP_END_BUDGET] = {"budget", "its budget of instructions was spent (--budget)"},
    [STEP_END_TIME] = {"time", "its time was spent (a minute)"},
    [STEP_END_STARVED] = {"starved", "signals came faster than the stepped program gets on"},
    [STEP_END_EXITED] = {"exited", "the thread ended"},
    [STEP_END_KILLED] = {"killed", "a signal ended the process"},
    [STEP_END_STOPPED] = {"stopped", "it was asked to end"},
    [STEP_END_REPLACED] = {"replaced", "the program was replaced by another (exec)"},
    [STEP_END_FAILED] = {"failed", "its packets or its truth could not be kept (memory or disk is short)"},
    [STEP_END_TRAP] = {"trap", "the program blocks a SIGTRAP that it got, or ignores SIGTRAP: stepping on would change that"},
    [STEP_END_ABANDONED] = {"abandoned", "mtui was gone (killed)"},
};

const char *step_end_name(enum step_end end)
{
    return ends[end].name;
}

const char *step_end_text(enum step_end end)
{
    return ends[end].text;
}

bool step_end_find(const char *name, enum step_end *out)
{
    for (size_t i = 0; i < STEP_ENDS; i++) {
        if (strcmp(name, ends[i].name) == 0) {
            *out = (enum step_end)i;
            return true;
        }
    }
    return false;
}

void step_message_format(const struct step_message *m, char *out)
{
    switch (m->kind) {
    case STEP_MESSAGE_HIT:
        snprintf(out, STEP_MESSAGE_MAX,
                 START "hit %" PRIu32 " %" PRIu32 " %d %d %" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIx64
                       " %" PRIx64 " ]",
                 m->trigger, m->member, (int)m->verdict, (int)m->tid, m->address, m->clock, m->perf_ns,
                 m->arg1, m->arg2);
        break;
    case STEP_MESSAGE_AT:
        snprintf(out, STEP_MESSAGE_MAX, START "at %" PRIu64 " %" PRIu64 " ]", m->clock, m->perf_ns);
        break;
    case STEP_MESSAGE_WINDOW:
        snprintf(out, STEP_MESSAGE_MAX, START "window %d %" PRIu64 " %" PRIu64 " ]", (int)m->tid,
                 m->instructions, m->wall_ns);
        break;
    case STEP_MESSAGE_ENDED:
        snprintf(out, STEP_MESSAGE_MAX, START "ended %d %" PRIu64 " %" PRIu64 " %s %d ]", (int)m->tid,
                 m->instructions, m->wall_ns, step_end_name(m->end), m->cut);
        break;
    case STEP_MESSAGE_DROPPED:
        snprintf(out, STEP_MESSAGE_MAX, START "dropped %" PRIu64 " %" PRIu64 " ]", m->threads, m->bytes);
        break;
    }
}

bool step_message_parse(const char *line, size_t len, struct step_message *out)
{
    char text[STEP_MESSAGE_MAX];
    struct step_message m = {0};
    int verdict = 0, tid = 0, end = -1, cut = 0;
    char name[16];
    if (len < strlen(START) || len >= sizeof text || memcmp(line, START, strlen(START)) != 0)
        return false;
    memcpy(text, line, len);
    text[len] = '\0';
    const char *s = text + strlen(START);
    if (sscanf(s,
               "hit %" SCNu32 " %" SCNu32 " %d %d %" SCNx64 " %" SCNu64 " %" SCNu64 " %" SCNx64 " %" SCNx64
               " ]%n",
               &m.trigger, &m.member, &verdict, &tid, &m.address, &m.clock, &m.perf_ns, &m.arg1, &m.arg2,
               &end) == 9)
        m.kind = STEP_MESSAGE_HIT;
    else if (sscanf(s, "at %" SCNu64 " %" SCNu64 " ]%n", &m.clock, &m.perf_ns, &end) == 2)
        m.kind = STEP_MESSAGE_AT;
    else if (sscanf(s, "window %d %" SCNu64 " %" SCNu64 " ]%n", &tid, &m.instructions, &m.wall_ns,
                    &end) == 3)
        m.kind = STEP_MESSAGE_WINDOW;
    else if (sscanf(s, "ended %d %" SCNu64 " %" SCNu64 " %15s %d ]%n", &tid, &m.instructions,
                    &m.wall_ns, name, &cut, &end) == 5 &&
             step_end_find(name, &m.end))
        m.kind = STEP_MESSAGE_ENDED;
    else if (sscanf(s, "dropped %" SCNu64 " %" SCNu64 " ]%n", &m.threads, &m.bytes, &end) == 2)
        m.kind = STEP_MESSAGE_DROPPED;
    else
        return false;
    if (end < 0 || s[end] || verdict < TRIGGER_FIRE || verdict > TRIGGER_BUSY)
        return false;
    m.tid = tid;
    m.cut = cut != 0;
    m.verdict = (enum trigger_verdict)verdict;
    *out = m;
    return true;
}
