#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "core/loop.h"
#include "tui/app.h"
#include "tui/doc.h"
#include "tui/theme.h"

static void print_options(FILE *out)
{
    fputs(".SH SYNOPSIS\n.B mtui\n[\\-\\-script FILE] [\\-\\-theme NAME] [\\-\\-glyphs TIER] "
          "[\\-\\-color TIER] [\\-\\-check\\-theme FILE]\n",
          out);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--doc") == 0)
        return doc_main(argv[2], print_options);
    static const struct option names[] = {
        {"script", required_argument, NULL, 's'}, {"theme", required_argument, NULL, 't'},
        {"glyphs", required_argument, NULL, 'g'}, {"color", required_argument, NULL, 'c'},
        {"check-theme", required_argument, NULL, 'k'}, {"version", no_argument, NULL, 'v'},
        {0}};
    struct tui_options options = {.script = NULL};
    struct err err = {0};
    setlocale(LC_ALL, "");
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (c) {
        case 's':
            options.script = optarg;
            break;
        case 't':
            options.theme = optarg;
            break;
        case 'g':
            options.glyphs = optarg;
            break;
        case 'c':
            options.color = optarg;
            break;
        case 'k': {
            int bad = theme_check(optarg, stdout, &err);
            if (bad < 0)
                fprintf(stderr, "mtui: %s\n", err.text);
            return bad != 0;
        }
        case 'v':
            puts("mtui " MTUI_VERSION);
            return 0;
        default:
            return 2;
        }
    }
    options.loop = loop_new();
    int status = tui_main(&options);
    loop_free(options.loop);
    return status;
}
