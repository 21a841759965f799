/* Documents made from the tables of the program: the manual page, and the key tables of the README. */
#ifndef MTUI_TUI_DOC_H
#define MTUI_TUI_DOC_H

#include <stdio.h>

/* mtui.1 in man(7) macros. print_options writes SYNOPSIS, COMMANDS and OPTIONS (the command line's own
 * table). */
void doc_print_man(FILE *out, void (*print_options)(FILE *out));

/* Keys and `:` commands as Markdown tables. */
void doc_print_markdown(FILE *out);

/* `mtui --doc man|markdown`, for the Makefile: prints it; the exit status. */
int doc_main(const char *what, void (*print_options)(FILE *out));

#endif
