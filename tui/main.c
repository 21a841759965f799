#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "core/loop.h"
#include "tui/app.h"
#include "tui/theme.h"

int main(int argc, char **argv)
{
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
