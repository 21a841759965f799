#include "tui/app/batch_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/utf8.h"

static void put_string(const char *s)
{
    const size_t len = strlen(s), size = len * 6 + 1;
    char *text = xmalloc(size);
    utf8_json(text, size, s, len);
    printf("\"%s\"", text);
    free(text);
}

static void put_member(const char *name, const char *value)
{
    if (!value)
        return;
    printf(",\"%s\":", name);
    put_string(value);
}

/* 0: not known. */
static void put_known(const char *name, uint64_t value)
{
    if (value)
        printf(",\"%s\":%" PRIu64, name, value);
}

/* As hits.tsv has them, and as conditions take them: many readers of JSON cannot hold 64 bits in a number. */
static void put_register(const char *name, uint64_t value)
{
    printf(",\"%s\":\"0x%" PRIx64 "\"", name, value);
}

static void put_hit(const struct session_snapshot *s)
{
    put_member("trigger", s->trigger);
    put_member("function", s->function);
    put_known("tid", (uint64_t)s->tid);
    put_known("time_ns", s->time_ns);
    put_known("pid", (uint64_t)s->pid);
    put_member("comm", s->comm);
    if (s->has_args) {
        put_register("arg1", s->arg1);
        put_register("arg2", s->arg2);
    }
    if (s->has_ret)
        put_register("ret", s->ret);
    put_known("hit_to_command_ns", s->hit_to_command_ns);
    if (s->has_duration)
        printf(",\"duration_ns\":%" PRIu64, s->duration_ns);
    printf(",\"still_running\":%s", s->still_running ? "true" : "false");
}

void batch_json_snapshot(struct session *session, const struct session_snapshot *s)
{
    struct session_status status;
    session_get_status(session, &status);
    printf("{\"snapshot\":%u", s->number);
    put_member("dir", snapshot_dir_path(session_dir(session)));
    put_member("data", s->data);
    put_hit(s);
    put_known("bytes", s->bytes);
    put_member("remark", s->remark);
    put_known("hit_cost_ns", status.hit_ns);
    if (status.rate.seen.duration_ns && session_get_setup(session)->n_triggers)
        printf(",\"hits_per_s\":%.0f", status.rate.per_second);
    if (s->est_fill_permille >= 0)
        printf(",\"est_fill_percent\":%d.%d", s->est_fill_permille / 10, s->est_fill_permille % 10);
    if (s->window_end)
        printf(",\"window_end\":\"%s\",\"window_instructions\":%" PRIu64 ",\"window_wall_ns\":%" PRIu64,
               s->window_end, s->window_instructions, s->window_wall_ns);
    puts("}");
}

static void put_calls(const struct trigger_calls *calls)
{
    const struct call_histogram *h = &calls->durations;
    printf(",\"calls\":%" PRIu64 ",\"calls_left\":%" PRIu64, calls->begun, calls->left);
    if (h->count)
        printf(",\"p50_below_ns\":%" PRIu64 ",\"p99_below_ns\":%" PRIu64 ",\"max_ns\":%" PRIu64,
               call_histogram_below_ns(h, 500), call_histogram_below_ns(h, 990), h->max_ns);
}

void batch_json_end(struct session *session, size_t snapshots)
{
    struct session_status status;
    session_get_status(session, &status);
    printf("{\"end\":\"%s\"", session_end_name(status.end));
    put_member("sentence", status.sentence);
    if (session_snapshot_count(session))
        put_member("dir", snapshot_dir_path(session_dir(session)));
    printf(",\"snapshots\":%zu", snapshots);
    if (session_get_setup(session)->n_triggers)
        printf(",\"hits\":%" PRIu64, status.hits);
    if (status.watches_calls)
        put_calls(&status.calls);
    puts("}");
}

void batch_json_refused(const struct err *err)
{
    bool missing = err->code == MTUI_E_NOENT || err->code == MTUI_E_GONE;
    printf("{\"end\":\"%s\"", missing ? "not-found" : err->code == MTUI_E_PERM ? "permission" : "refused");
    put_member("sentence", err->text);
    puts(",\"snapshots\":0}");
}
