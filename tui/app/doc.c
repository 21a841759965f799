#include "tui/app/doc.h"

#include <string.h>

#include "tui/app/screens.h"
#include "tui/ui/actions.h"
#include "tui/ui/settings.h"

typedef void text_fn(FILE *out, const char *text);

/* man(7): backslashes, hyphens that must stay hyphens, quotes and dots at the start of a line. */
static void man_text(FILE *out, const char *text)
{
    if (text[0] == '.' || text[0] == '\'')
        fputs("\\&", out);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", out);
        else if (*text == '-')
            fputs("\\-", out);
        else if (*text == '^')
            fputs("\\(ha", out);
        else if (*text == '\'')
            fputs("\\(aq", out);
        else if (*text == '`')
            fputs("\\(ga", out);
        else if (*text == '~')
            fputs("\\(ti", out);
        else
            fputc(*text, out);
    }
}

static void markdown_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("\\`*_{}[]<>#|$", *text))
            fputc('\\', out);
        fputc(*text, out);
    }
}

/* One row a action: keys, command with arguments, help. */
struct table {
    void (*begin)(FILE *out, const char *title);
    void (*row)(FILE *out, const char *keys, const char *command, const char *args,
                const char *help);
};

static void man_begin(FILE *out, const char *title)
{
    fputs(".SS ", out);
    man_text(out, title);
    fputc('\n', out);
}

static void man_row(FILE *out, const char *keys, const char *command, const char *args,
                    const char *help)
{
    fputs(".TP\n.B ", out);
    man_text(out, keys[0] ? keys : command);
    if (!keys[0] && args[0]) {
        fputc(' ', out);
        man_text(out, args);
    }
    fputc('\n', out);
    man_text(out, help);
    if (keys[0] && command[0]) {
        fputs(" (:", out);
        man_text(out, command);
        if (args[0]) {
            fputc(' ', out);
            man_text(out, args);
        }
        fputc(')', out);
    }
    fputc('\n', out);
}

static void markdown_begin(FILE *out, const char *title)
{
    fprintf(out, "\n**%s**\n\n| key | action | command |\n|---|---|---|\n", title);
}

static void markdown_row(FILE *out, const char *keys, const char *command, const char *args,
                         const char *help)
{
    fputs("| ", out);
    markdown_text(out, keys);
    fputs(" | ", out);
    markdown_text(out, help);
    fputs(" | ", out);
    if (command[0]) {
        fputs(":", out);
        markdown_text(out, command);
        fputs(args[0] ? " " : "", out);
        markdown_text(out, args);
    }
    fputs(" |\n", out);
}

static void print_keys(FILE *out, const struct table *t)
{
    struct keymap *km = keymap_new();
    for (size_t ctx = 0; ctx < CTX_COUNT; ctx++) {
        bool done[ACT_COUNT] = {false};
        t->begin(out, context_title((enum context)ctx));
        for (size_t i = 0; i < keymap_count(km); i++) {
            const struct binding *b = keymap_at(km, i);
            const struct action_info *info = action_info(b->act);
            char keys[128];
            if (b->ctx != (enum context)ctx || done[b->act])
                continue;
            done[b->act] = true;
            keymap_keys(km, b->ctx, b->act, keys, sizeof keys);
            t->row(out, keys, info->command, info->args, info->help);
        }
    }
    t->begin(out, "Mouse");
    for (const struct mouse_help *m = mouse_help_table(); m->gesture; m++)
        t->row(out, m->gesture, "", "", m->help);
    keymap_free(km);
}

static void print_filters(FILE *out, const struct table *t)
{
    for (size_t i = 0; i < screens_count; i++) {
        const struct filter_help *f = screens[i]->filter;
        char title[80];
        if (!f)
            continue;
        snprintf(title, sizeof title, "Filter of %s: words that all must hold", screens[i]->title);
        t->begin(out, title);
        for (size_t k = 0; k < sizeof f->lines / sizeof *f->lines && f->lines[k].words; k++)
            t->row(out, f->lines[k].words, "", "", f->lines[k].meaning);
    }
}

static bool has_key(const struct keymap *km, enum action act)
{
    for (size_t i = 0; i < keymap_count(km); i++)
        if (keymap_at(km, i)->act == act)
            return true;
    return false;
}

static void print_commands(FILE *out, const struct table *t)
{
    struct keymap *km = keymap_new();
    t->begin(out, "Commands without a key");
    for (size_t i = ACT_NONE + 1; i < ACT_COUNT; i++) {
        const struct action_info *info = action_info((enum action)i);
        if (!has_key(km, (enum action)i))
            t->row(out, "", info->command, info->args, info->help);
    }
    keymap_free(km);
}

static void man_settings(FILE *out)
{
    fputs(".SH SETTINGS\nChanged with\n.B :set NAME VALUE\nwhile mtui runs, and by the same line (without "
          "the colon) in the configuration file, which also takes\n.BR bind ,\n.B unbind\nand\n"
          ".B theme\ncommands and comments that begin with #.\n",
          out);
    for (size_t i = 0; i < SET_COUNT; i++) {
        const struct setting_info *s = setting_info((enum setting)i);
        fputs(".TP\n.B ", out);
        man_text(out, s->name);
        fputc('\n', out);
        man_text(out, s->help);
        if (s->limits[0]) {
            fputs(s->type == SETTING_CHOICE ? ": one of " : ": from and to ", out);
            man_text(out, s->limits);
        }
        if (s->preset[0]) {
            fputs("; preset ", out);
            man_text(out, s->preset);
        }
        fputc('\n', out);
    }
}

static void man_tail(FILE *out)
{
    fputs(".SH SCRIPTS\n.B \\-\\-script FILE\nruns the commands of a file, one a line, as if they were "
          "typed at the colon.\n.B key\npresses keys,\n.B type\ntypes text,\n.B wait CONDITION "
          "[TIMEOUT]\nwaits until\n.BR \"text TEXT\" ,\n.BR \"screen NAME\" ,\n.B recording\nor a "
          "condition of a screen holds,\n.B save\\-screen FILE\nwrites what the screen shows. A command "
          "that fails, or a wait that runs out, ends mtui with status 1 and the line on standard "
          "error.\n"
          ".SH JSON\nWith\n.BR \\-\\-batch \" \" \\-\\-json ,\neach snapshot is one line with these members, to which more may be "
          "added; what is not known is left out.\nTimes are nanoseconds;\n.I time_ns\nis on the clock of the recording.\n"
          ".TP\n.BR snapshot ,\\  dir ,\\  data ,\\  bytes\nIts number, the directory of the recording, the perf.data and its "
          "size.\n"
          ".TP\n.BR trigger ,\\  tid ,\\  time_ns\nWhat made it (a trigger, \\(dqkey\\(dq, \\(dqend\\(dq), and thread "
          "and time of the hit.\n"
          ".TP\n.BR pid ,\\  comm\nThe process and its name.\n"
          ".TP\n.BR arg1 ,\\  arg2 ,\\  ret\nThe first two argument registers at the function's entry, and what it "
          "returned, in hexadecimal (\\(dq0x1f\\(dq).\n"
          ".TP\n.B remark\nWhat is wrong with it: it is truncated, say.\n"
          ".TP\n.B function\nThe one that was hit, of a trigger that stands for several.\n"
          ".TP\n.BR duration_ns ,\\  still_running\nOf the call that was slower than asked for; so far, when it had not "
          "returned.\n"
          ".TP\n.B est_fill_percent\nHow full the ring was when the trigger fired, an estimate.\n"
          ".TP\n.BR hit_to_command_ns ,\\  hit_cost_ns ,\\  hits_per_s\nFrom the hit to the command to perf; what a hit "
          "costs the program, as measured; how often the triggers are hit.\n"
          ".TP\n.BR window_end ,\\  window_instructions ,\\  window_wall_ns\nRecorder step: why the window ended, and "
          "what it held.\n"
          ".PP\nWith \\-\\-json\\-end a last line says how it ended. It has no member\n.IR snapshot .\n"
          ".TP\n.B end\n\\(dqduration\\(dq, \\(dqsnapshots\\(dq (as many as asked for), \\(dqstopped\\(dq (by a signal), "
          "\\(dqtarget\\-exited\\(dq, \\(dqtarget\\-killed\\(dq (of a program that mtui started), "
          "\\(dqprogram\\-replaced\\(dq (by one without the triggers), \\(dqnot\\-started\\(dq, \\(dqtoo\\-hot\\(dq (see "
          "\\-\\-force), \\(dqsnapshot\\-failed\\(dq, \\(dqdisk\\-full\\(dq, \\(dqrecorder\\-failed\\(dq; of a recording that "
          "never began \\(dqpermission\\(dq, \\(dqnot\\-found\\(dq (a function, a process, perf) or \\(dqrefused\\(dq.\n"
          ".TP\n.BR sentence ,\\  dir\nThe same in words; where something was kept.\n"
          ".TP\n.BR snapshots ,\\  hits\nHow many lines came before, and how often the triggers were hit.\n"
          ".TP\n.BR calls ,\\  calls_left ,\\  p50_below_ns ,\\  p99_below_ns ,\\  max_ns\nOf triggers that watch returns: "
          "the calls that began, those left without a return (exception, longjmp); half of the others and 99 % of them were "
          "shorter than this (powers of two), the longest took that.\n"
          ".SH ENVIRONMENT\n"
          ".TP\n.B TERM\nThe terminal; an unknown one is taken for xterm\\-256color.\n"
          ".TP\n.B NO_COLOR\nWhen set and not empty: no colours.\n"
          ".TP\n.B VISUAL, EDITOR\nThe editor for sources.\n"
          ".TP\n.B MTUI_PERF\nThe perf program; preset perf.\n"
          ".TP\n.B XDG_CONFIG_HOME, XDG_STATE_HOME\nWhere configuration and recordings are kept; preset "
          "\\(ti/.config and \\(ti/.local/state.\n"
          ".SH FILES\n"
          ".TP\n.I \\(ti/.config/mtui/config\nSettings and key bindings.\n"
          ".TP\n.I \\(ti/.config/mtui/themes/NAME.theme\nThemes of your own.\n"
          ".TP\n.I \\(ti/.local/state/mtui\nRecordings.\n"
          ".SH EXIT STATUS\n0 success (batch: a snapshot was written), 1 failure (one line on standard error says what), 2 wrong usage.\n"
          ".SH SEE ALSO\n.BR perf (1),\n.BR perf\\-record (1),\n.BR perf\\-intel\\-pt (1)\n",
          out);
}

void doc_print_man(FILE *out, void (*print_options)(FILE *out))
{
    static const struct table table = {man_begin, man_row};
    fputs(".TH MTUI 1 \"\" \"mtui " MTUI_VERSION "\" \"User Commands\"\n"
          ".SH NAME\nmtui \\- every function call of a running process, on a timeline in the "
          "terminal\n",
          out);
    print_options(out);
    fputs(".SH KEYS\nEvery key is the short form of a command, given behind it; any of them can be "
          "typed at the colon, and bound to other keys.\n",
          out);
    print_keys(out, &table);
    print_commands(out, &table);
    print_filters(out, &table);
    man_settings(out);
    man_tail(out);
}

void doc_print_markdown(FILE *out)
{
    static const struct table table = {markdown_begin, markdown_row};
    print_keys(out, &table);
    print_commands(out, &table);
}

int doc_main(const char *what, void (*print_options)(FILE *out))
{
    if (strcmp(what, "man") == 0)
        doc_print_man(stdout, print_options);
    else if (strcmp(what, "markdown") == 0)
        doc_print_markdown(stdout);
    else
        return 2;
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
