/* What the files of a trace tell about one call: where its function is defined, where in the caller the
 * call was made, and the text there: source lines, or instructions where there is no source.
 *
 * A span keeps nine bits of the address that it returns to (decode/trace/trace.h). The calls in the code of the
 * caller's function that end in these bits are looked at, those that name the callee first: nearly always
 * that is exactly one. Without the bits (sampled and inferred calls) every direct call of the callee may be
 * it, and the answer says how many there are.
 *
 * Blocks (files are read, DWARF is searched): for a worker. One source_modules belongs to one thread at a
 * time; answers are on their own. */
#ifndef MTUI_TUI_SOURCE_ANSWER_H
#define MTUI_TUI_SOURCE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct source_function {
    char *file;   /* of its code; NULL: not at hand */
    char *module; /* its path where it ran: separate debug files lie beside that */
    uint64_t addr; /* 0: not known */
};

struct source_question {
    struct source_function callee, caller; /* caller.module NULL: there is none */
    unsigned flags;                        /* of the span */
};

struct source_text {
    char *path;  /* NULL: no line is known */
    int line;
    char *scope; /* inlined functions that hold the place, innermost first: "get_len < parse (inlined at
                    http.c:233)"; NULL: none */
    char **lines; /* bytes from outside */
    size_t n, at; /* at: the one that is meant; n 0: there is no text */
    int first;    /* source: number of lines[0] */
    uint64_t *addrs; /* instructions: their addresses; NULL: these are source lines */
    unsigned places; /* of a call: at how many places it may have been made; 1: here */
    bool newer;      /* the source file was changed after the program was built */
    char *why;       /* why there is no line or no text: a sentence; NULL */
};

struct source_answer {
    struct source_text function, call;
};

struct source_modules;

struct source_modules *source_modules_new(void);
void source_modules_free(struct source_modules *m);

void source_answer_find(struct source_modules *m, const struct source_question *q,
                        struct source_answer *out);
void source_answer_free(struct source_answer *a);

#endif
