#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/cpus.h"
#include "core/base/utf8.h"
#include "decode/export/export.h"
#include "decode/export/export_branches.h"
#include "decode/open/open.h"
#include "tui/app/cmd.h"
#include "tui/cli/cmd_open.h"
#include "tui/app/cmd_signals.h"

/* What could not be read or named: said, but no failure. */
static void say_notes(const struct recording *r)
{
    char clean[1024];
    for (size_t i = 0; i < r->nnotes; i++) {
        utf8_escape(clean, sizeof clean, r->notes[i], strlen(r->notes[i]));
        fprintf(stderr, "mtui: note: %s\n", clean);
    }
}

/* `| head` has what it wants: the end is that of any other program in a pipe, without a word. */
static int failed(const struct err *err)
{
    if (err->code != MTUI_E_PIPE)
        return cmd_fail(err);
    cmd_end_by_pipe();
    return 1;
}

int cmd_export(struct cli *c)
{
    struct err err;
    struct recording *r;
    struct open_options open = {
        .snapshot = cmd_open_snapshot(c),
        .symfs = c->symfs,
        .threads = c->threads,
        .libipt = c->decoder == CLI_DECODER_LIBIPT,
        .stdin_fd = STDIN_FILENO,
    };
    struct export_options options = {.tid = c->tid, .workers = c->threads ? c->threads : cpus_online()};
    const char *out = c->output ? c->output : "-";
    bool branches = strcmp(c->format, "branches") == 0; /* listed while decoding, not out of a trace */
    int rc;
    cmd_catch_pipe();
    if ((!branches && export_parse_format(c->format, &options.format, &err) < 0) ||
        (c->range && export_parse_range(c->range, &options, &err) < 0)) {
        cmd_fail(&err);
        return 2;
    }
    if (export_check_output(out, c->path, &err) < 0)
        return cmd_fail(&err);
    open.statistics = !branches && options.format == EXPORT_FUNCTIONS && !c->tid && !c->range;
    rc = branches ? export_branches(&r, c->path, &open, out, &options, &err)
                  : open_recording(&r, c->path, &open, &err);
    if (rc < 0)
        return failed(&err);
    say_notes(r);
    options.statistics = r->statistics;
    if (!branches)
        rc = export_to_path(out, r->trace, r->samples, &options, &err);
    recording_free(r);
    return rc < 0 ? failed(&err) : 0;
}
