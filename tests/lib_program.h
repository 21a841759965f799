/* Small programs that a test compiles, runs and looks at. Every failure fails the running test. */
#ifndef MTUI_TESTS_LIB_PROGRAM_H
#define MTUI_TESTS_LIB_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* A new directory of its own; program_rmdir removes it with all it holds and frees the string. */
char *program_mkdir(void);
void program_rmdir(char *dir);

/* Runs a shell command in dir, output dropped; true when it succeeded. */
bool program_shell(const char *dir, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void program_write(const char *dir, const char *name, const char *text);
bool program_have(const char *tool);

/* Compiles dir/SOURCE into dir/NAME with cc (c++ for .cc) and these flags; false when that failed. */
bool program_build(const char *dir, const char *source, const char *name, const char *flags);

/* What nm prints for a symbol of the file (of its dynamic symbols when it is stripped); 0 when it has none. */
uint64_t program_nm(const char *dir, const char *name, const char *symbol);

/* A running child whose stdout is read and whose stdin, when closed, ends it. */
struct program {
    pid_t pid;
    int in;
    FILE *out;
};

/* command runs in dir by exec of a shell; it must print a line "ready" last. Lines "NAME 0xADDR"
 * before that are kept for program_addr. */
void program_start(struct program *p, const char *dir, const char *command);
void program_end(struct program *p);
uint64_t program_addr(const char *name); /* of the last program started; 0 unknown */

#endif
