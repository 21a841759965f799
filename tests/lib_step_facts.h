/* What a recorded window really holds, by its truth: so that a program that was meant to throw, jump or
 * switch stacks is known to have done it where it was looked at. */
#ifndef MTUI_TESTS_LIB_STEP_FACTS_H
#define MTUI_TESTS_LIB_STEP_FACTS_H

#include "lib_step.h"
#include "lib_step_symbols.h"

/* Fails the test unless each fact of the list, separated by "; ", holds:
 *   enters NAME      a branch from elsewhere goes to the beginning of the function
 *   calls NAME       a direct call does; "indirect NAME": an indirect call does
 *   tail NAME        a jump does
 *   callback NAME    a call from another file does
 *   recursion NAME   a call from inside of it does
 *   handler NAME     the program was interrupted and went on there
 *   code PATH        code of a file (or [vdso]) whose path ends so has run
 *   plt              a call went to another file through a stub
 *   stacks N         so many stacks were in use
 *   syscalls N       at least so many system calls
 *   moved PATH       code of that file has run at two addresses
 *   address          code of two files has run at one address
 *   stripped         the program has no names of its own */
void step_facts_check(const struct step_rec *r, const struct step_symbols *s, const char *program,
                      const char *facts);

#endif
