/* The hits of triggers and the ends of windows as marks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/fmt.h"
#include "core/step/step_anchors.h"
#include "decode/open/open_marks.h"

#define SLACK_NS 1000000000u /* a hit this far outside of the samples still belongs to them */

static bool chosen(unsigned snapshot, const unsigned *snapshots, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (snapshot && snapshots[i] == snapshot)
            return true;
    return false;
}

/* A call that waits makes no samples: one that is still running may have been waiting since the last. */
static bool is_near(const struct snapshot_hit *h, uint64_t first_ns, uint64_t last_ns)
{
    uint64_t from = first_ns > SLACK_NS ? first_ns - SLACK_NS : 0;
    uint64_t to = last_ns < UINT64_MAX - SLACK_NS ? last_ns + SLACK_NS : UINT64_MAX;
    uint64_t waited = h->still_running && h->duration_ns < h->time_ns ? h->duration_ns : 0;
    return h->time_ns >= from && h->time_ns - waited <= to;
}

static bool by_hand(const struct snapshot_hit *h)
{
    return strcmp(h->trigger, "key") == 0 || strcmp(h->trigger, "end") == 0;
}

static void put_mark(struct trace_builder *b, const struct snapshot_hit *h)
{
    char detail[640], took[FMT_MAX] = "";
    size_t len = strlen(snapshot_hit_text(detail, 500, h->trigger, h->function));
    if (h->duration_ns)
        snprintf(detail + len, sizeof detail - len, h->still_running ? ", still running, %s so far" : ", took %s",
                     fmt_duration(took, h->duration_ns));
    len = strlen(detail);
    if (h->took_ns)
        snprintf(detail + len, sizeof detail - len, ", took %s in the end", fmt_duration(took, h->took_ns));
    len = strlen(detail);
    if (!by_hand(h) && (h->arg1 || h->arg2))
        snprintf(detail + len, sizeof detail - len, ", arguments 0x%llx 0x%llx",
                 (unsigned long long)h->arg1, (unsigned long long)h->arg2);
    len = strlen(detail);
    if (!h->snapshot)
        snprintf(detail + len, sizeof detail - len, ", counted only");
    enum mark_kind kind = by_hand(h) ? MARK_SNAPSHOT : h->snapshot ? MARK_TRIGGER : MARK_HIT;
    struct mark m = {h->time_ns, h->tid, kind, detail};
    trace_builder_mark(b, &m);
}

void open_marks(struct open_context *c, const struct snapshot_dir *dir, const unsigned *snapshots,
                size_t nsnapshots, uint64_t first_ns, uint64_t last_ns, struct trace_builder *b)
{
    struct snapshot_hit *hits = NULL;
    size_t n = 0, bad = 0, far = 0;
    char text[FMT_MAX];
    struct err err = {0};
    if (snapshot_dir_read_hits(dir, &hits, &n, &bad, &err) < 0) {
        open_note(c, "the trigger hits could not be read: %s", err.text);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        bool ours = chosen(hits[i].snapshot, snapshots, nsnapshots);
        bool near = is_near(&hits[i], first_ns, last_ns);
        bool inside = hits[i].time_ns >= first_ns && hits[i].time_ns <= last_ns;
        /* Of single-stepping: a thread has no hits while it is stepped, and the clock stands still while
         * none is, so that hits of other calls have the time at which this one begins or ends. */
        bool others = inside && !c->instructions;
        if (hits[i].time_ns && (others || (ours && near)))
            put_mark(b, &hits[i]);
        else
            far += ours && hits[i].time_ns;
    }
    if (far)
        open_note(c, "%s outside of the time that was recorded",
                  fmt_counted(text, far, "trigger hit lies", "trigger hits lie"));
    if (bad)
        open_note(c, "%s in hits.tsv", fmt_counted(text, bad, "damaged line", "damaged lines"));
    snapshot_dir_free_hits(hits, n);
}

void open_window_marks(struct open_context *c, const struct snapshot_dir *dir, uint64_t first_ns,
                       uint64_t last_ns, struct trace_builder *b)
{
    struct step_anchor_window *windows = NULL;
    size_t n = 0;
    char detail[200], took[FMT_MAX];
    struct err err = {0};
    char *path = xasprintf("%s/" STEP_ANCHORS_FILE, snapshot_dir_path(dir));
    if (step_anchors_read(path, &windows, &n, &err) < 0)
        open_note(c, "why windows ended is not known: %s", err.text);
    for (size_t i = 0; i < n; i++) {
        const struct step_anchor_window *w = &windows[i];
        /* The clock stands still between two windows: one begins where another has ended. */
        if (w->end_clock <= first_ns || w->end_clock > last_ns || w->start_clock >= last_ns)
            continue;
        snprintf(detail, sizeof detail, "window over: %s, after %s", step_end_text(w->why),
                 fmt_duration(took, w->wall_ns));
        struct mark m = {w->end_clock, w->tid, MARK_NOTE, detail};
        trace_builder_mark(b, &m);
    }
    free(windows);
    free(path);
}
