#include "tui/cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "tui/cli/cli_options.h"

/* ---- Nearest names ---- */

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Levenshtein's distance; words longer than the row are far from everything. */
static size_t distance(const char *a, const char *b)
{
    size_t row[64], n = strlen(b);
    if (n + 1 > sizeof row / sizeof *row || strlen(a) >= sizeof row / sizeof *row)
        return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t above = row[j];
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[n];
}

const char *cli_nearest(const char *word, const char *const *list, size_t n)
{
    const char *best = NULL;
    size_t best_distance = strlen(word) / 3 + 2;
    for (size_t i = 0; i < n; i++) {
        size_t d = list[i] ? distance(word, list[i]) : SIZE_MAX;
        bool begins = list[i] && strlen(word) >= 3 && !strncmp(word, list[i], strlen(word));
        if (begins)
            d = 1;
        if (d < best_distance) {
            best_distance = d;
            best = list[i];
        }
    }
    return best;
}

/* ---- Commands and options ---- */

static int find_command(struct cli *c, const char *word, struct err *err)
{
    const char *names[CLI_COMMANDS] = {0};
    for (size_t i = 1; i < CLI_COMMANDS; i++) {
        if (!strcmp(word, cli_commands[i].name)) {
            c->command = (enum cli_command)i;
            return 0;
        }
        names[i] = cli_commands[i].hidden ? NULL : cli_commands[i].name;
    }
    if (access(word, F_OK) == 0)
        return err_set(err, MTUI_E_INVAL, "\"%s\" is no command; to browse that file: mtui open %s",
                       word, word);
    const char *near = cli_nearest(word, names, CLI_COMMANDS);
    return err_set(err, MTUI_E_INVAL, "\"%s\" is no command%s%s%s", word,
                   near ? "; did you mean mtui " : "; mtui --help lists them", near ? near : "",
                   near ? "?" : "");
}

static bool allowed(const struct cli_option *o, const struct cli *c)
{
    return (o->commands & (1u << c->command)) != 0;
}

static const char *command_name(const struct cli *c)
{
    return c->command == CLI_HOME ? "mtui" : cli_commands[c->command].name;
}

static int unknown_long(const struct cli *c, const char *name, struct err *err)
{
    const char *names[64] = {0};
    size_t n = 0;
    for (size_t i = 0; i < cli_option_count && n < 64; i++) {
        if (allowed(&cli_options[i], c))
            names[n++] = cli_options[i].name;
        else if (!strcmp(cli_options[i].name, name))
            return err_set(err, MTUI_E_INVAL, "--%s is no option of %s", name, command_name(c));
    }
    const char *near = cli_nearest(name, names, n);
    return err_set(err, MTUI_E_INVAL, "--%s is no option%s%s%s", name,
                   near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
}

static const struct cli_option *find_long(const struct cli *c, const char *name, size_t len)
{
    for (size_t i = 0; i < cli_option_count; i++)
        if (allowed(&cli_options[i], c) && strlen(cli_options[i].name) == len &&
            !strncmp(cli_options[i].name, name, len))
            return &cli_options[i];
    return NULL;
}

/* Reads one option at argv[*i], with its value. */
static int read_option(struct cli *c, int argc, char **argv, int *i, struct err *err)
{
    const char *word = argv[*i], *value = NULL;
    const struct cli_option *o = NULL;
    char name[40];
    if (word[1] == '-') {
        const char *eq = strchr(word, '=');
        size_t len = eq ? (size_t)(eq - word) - 2 : strlen(word) - 2;
        snprintf(name, sizeof name, "%.*s", len < 39 ? (int)len : 39, word + 2);
        o = find_long(c, word + 2, len);
        value = eq ? eq + 1 : NULL;
        if (!o)
            return unknown_long(c, name, err);
    } else {
        for (size_t k = 0; k < cli_option_count; k++)
            if (cli_options[k].letter == word[1] && allowed(&cli_options[k], c))
                o = &cli_options[k];
        value = word[2] ? word + 2 : NULL;
        if (!o)
            return err_set(err, MTUI_E_INVAL, "-%c is no option of %s", word[1], command_name(c));
    }
    if (!o->arg && value)
        return err_set(err, MTUI_E_INVAL, "--%s takes no value", o->name);
    if (o->arg && !value) {
        if (*i + 1 >= argc)
            return err_set(err, MTUI_E_INVAL, "--%s needs a value: %s", o->name, o->arg);
        value = argv[++*i];
    }
    return o->apply(c, value, err);
}

static int take_operand(struct cli *c, char *word, struct err *err)
{
    if (c->command == CLI_HOME)
        return find_command(c, word, err);
    bool takes_one = c->command == CLI_OPEN || c->command == CLI_EXPORT ||
                     c->command == CLI_DEMO_PROGRAM;
    if (takes_one && !c->path) {
        c->path = word;
        return 0;
    }
    if (c->command == CLI_ATTACH)
        return err_set(err, MTUI_E_INVAL, "\"%s\": processes are named by -p PID[,PID...]", word);
    return err_set(err, MTUI_E_INVAL, "\"%s\" is one operand too many for %s", word,
                   command_name(c));
}

static void take_program(struct cli *c, int n, char **words)
{
    c->setup.argv = xcalloc((size_t)n + 1, sizeof *c->setup.argv);
    for (int i = 0; i < n; i++)
        c->setup.argv[i] = xstrdup(words[i]);
}

/* ---- What must come together ---- */

static int check_recording(const struct cli *c, struct err *err)
{
    const struct session_setup *s = &c->setup;
    if (c->command == CLI_RUN && !s->argv)
        return err_set(err, MTUI_E_INVAL,
                       "run needs a program: mtui run [OPTIONS] -- CMD [ARG...]");
    if (c->command == CLI_ATTACH && !s->n_pids)
        return err_set(err, MTUI_E_INVAL, "attach needs a process: -p PID[,PID...]");
    if (c->json && !c->batch)
        return err_set(err, MTUI_E_INVAL, "--json goes with --batch");
    if (c->json_end && !c->json)
        return err_set(err, MTUI_E_INVAL, "--json-end goes with --batch --json");
    if (s->when.slower_than_ns && !s->n_triggers)
        return err_set(err, MTUI_E_INVAL, "--slower-than needs a function to watch: -t SYMBOL");
    if (s->n_triggers && !s->auto_mode && s->mode != PLAN_TRIGGER)
        return err_set(err, MTUI_E_INVAL, "a trigger (-t) goes with --mode trigger, not with %s",
                       plan_mode_name(s->mode));
    if (c->command == CLI_RUN && s->n_tids)
        return err_set(err, MTUI_E_INVAL, "--tid names threads that exist: it goes with attach");
    return 0;
}

static int check(const struct cli *c, struct err *err)
{
    if (c->command == CLI_RUN || c->command == CLI_ATTACH)
        return check_recording(c, err);
    if ((c->command == CLI_OPEN || c->command == CLI_EXPORT) && !c->path)
        return err_set(err, MTUI_E_INVAL, "%s needs a recording: FILE, DIR or -", command_name(c));
    if (c->command == CLI_EXPORT && !c->format)
        return err_set(err, MTUI_E_INVAL,
                       "export needs a format: -f branches, spans, functions, gaps, marks, json, "
                       "fxt or folded");
    return 0;
}

int cli_parse(struct cli *c, int argc, char **argv, struct err *err)
{
    memset(c, 0, sizeof *c);
    c->setup.auto_recorder = true;
    c->setup.auto_mode = true;
    int rc = 0;
    bool options = true;
    for (int i = 1; i < argc && rc == 0; i++) {
        if (options && !strcmp(argv[i], "--")) {
            options = false;
            if (c->command == CLI_RUN && i + 1 < argc) {
                take_program(c, argc - i - 1, argv + i + 1);
                break;
            }
        } else if (options && argv[i][0] == '-' && argv[i][1]) {
            rc = read_option(c, argc, argv, &i, err);
        } else if (c->command == CLI_RUN) {
            take_program(c, argc - i, argv + i);
            break;
        } else {
            rc = take_operand(c, argv[i], err);
        }
    }
    if (rc == 0 && !c->help && !c->version && !c->check_theme)
        rc = check(c, err);
    return rc;
}

void cli_free(struct cli *c)
{
    session_setup_free(&c->setup);
    memset(c, 0, sizeof *c);
}

/* ---- Help ---- */

static void print_wrapped(FILE *out, const char *text, size_t indent, size_t width)
{
    size_t col = indent;
    while (*text) {
        size_t word = strcspn(text, " ");
        if (col > indent && col + 1 + word > width) {
            fprintf(out, "\n%*s", (int)indent, "");
            col = indent;
        } else if (col > indent) {
            fputc(' ', out);
            col++;
        }
        fprintf(out, "%.*s", (int)word, text);
        col += word;
        text += word;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

static void print_option(FILE *out, const struct cli_option *o)
{
    char left[96], letter[8] = "    ";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(left, sizeof left, "  %s--%s%s%s", letter, o->name, o->arg ? " " : "",
             o->arg ? o->arg : "");
    fprintf(out, "%-36s ", left);
    if (strlen(left) > 36)
        fprintf(out, "\n%37s", "");
    print_wrapped(out, o->help, 37, 96);
}

static void print_group(FILE *out, const char *title, unsigned of, unsigned not_of, unsigned shown)
{
    bool any = false;
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_options[i];
        bool here = (o->commands & of) && !(o->commands & not_of) && (o->commands & shown);
        if (!here)
            continue;
        if (!any)
            fprintf(out, "\n%s\n", title);
        any = true;
        print_option(out, o);
    }
}

void cli_print_help(FILE *out, enum cli_command command)
{
    unsigned all = (1u << CLI_COMMANDS) - 1, home = 1u << CLI_HOME;
    unsigned record = 1u << CLI_RUN | 1u << CLI_ATTACH;
    unsigned read = 1u << CLI_OPEN | 1u << CLI_EXPORT;
    if (command != CLI_HOME) {
        const struct cli_command_info *info = &cli_commands[command];
        fprintf(out, "Usage: mtui %s [OPTIONS] %s\n\n", info->name, info->operands);
        fprintf(out, "%c%s.\n", info->help[0] - 'a' + 'A', info->help + 1);
        print_group(out, "Options:", all, home, 1u << command);
        print_group(out, "Everywhere:", home, 0, all);
        return;
    }
    fputs("mtui shows every function call that a running process made, on a timeline.\n\nUsage:\n",
          out);
    for (size_t i = 0; i < CLI_COMMANDS; i++) {
        const struct cli_command_info *info = &cli_commands[i];
        char left[80];
        if (info->hidden)
            continue;
        snprintf(left, sizeof left, "  mtui %s%s%s", info->name ? info->name : "",
                 info->name ? " [OPTIONS] " : "", info->operands);
        fprintf(out, "%-44s %s\n", left, info->help);
    }
    print_group(out, "Recording (run and attach):", record, home, all);
    print_group(out, "Reading (open and export):", read, home | record, all);
    print_group(out, "Everywhere:", home, 0, all);
    fputs("\nExit status: 0 success (batch: a snapshot was written), 1 failure, 2 wrong usage.\n",
          out);
}

/* man(7): a hyphen is written \- so that it can be copied from the page. */
static void print_man_text(FILE *out, const char *s)
{
    for (; *s; s++) {
        if (*s == '-')
            fputs("\\-", out);
        else if (*s == '\\')
            fputs("\\e", out);
        else
            fputc(*s, out);
    }
}

void cli_print_man(FILE *out)
{
    fputs(".SH SYNOPSIS\n", out);
    for (size_t i = 0; i < CLI_COMMANDS; i++) {
        const struct cli_command_info *info = &cli_commands[i];
        if (info->hidden)
            continue;
        fprintf(out, "%s.B mtui%s%s\n", i ? ".br\n" : "", info->name ? " " : "",
                info->name ? info->name : "");
        if (info->name) {
            fputs("[OPTIONS] ", out);
            print_man_text(out, info->operands);
            fputc('\n', out);
        }
    }
    fputs(".SH COMMANDS\n", out);
    for (size_t i = 1; i < CLI_COMMANDS; i++)
        if (!cli_commands[i].hidden) {
            fprintf(out, ".TP\n.B %s\n", cli_commands[i].name);
            print_man_text(out, cli_commands[i].help);
            fputs(".\n", out);
        }
    fputs(".SH OPTIONS\n", out);
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_options[i];
        fputs(".TP\n.B ", out);
        if (o->letter)
            fprintf(out, "\\-%c, ", o->letter);
        fputs("\\-\\-", out);
        print_man_text(out, o->name);
        if (o->arg) {
            fputc(' ', out);
            print_man_text(out, o->arg);
        }
        fputc('\n', out);
        print_man_text(out, o->help);
        fputs("\n", out);
    }
}
