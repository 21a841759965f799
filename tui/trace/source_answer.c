#include "tui/trace/source_answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/alloc.h"
#include "core/symbols/debug_file.h"
#include "core/symbols/demangle.h"
#include "core/symbols/disasm_text.h"
#include "core/symbols/dwarf_line.h"
#include "core/symbols/elf_file.h"
#include "core/symbols/symtab.h"
#include "core/base/vec.h"
#include "decode/trace/trace.h"
#include "tui/trace/source_file.h"

#define MODULES_MAX   4  /* modules kept open */
#define BEFORE      20 /* lines kept before the one that is meant */
#define LINES_MAX   61
#define CODE_MAX    ((size_t)1 << 20) /* bytes of one function that are looked at */
#define FRAMES_MAX  16

/* One file, and what was asked of it so far. */
struct opened {
    char *file;
    struct elf_file *elf; /* NULL: cannot be opened */
    struct dwarf_lines *lines;
    struct symtab *symbols;
    time_t built;
    char *no_lines; /* a sentence */
};

struct source_modules {
    VEC(struct opened) list; /* the last one was used last */
};

/* ---- Modules ---- */

struct source_modules *source_modules_new(void)
{
    return xcalloc(1, sizeof(struct source_modules));
}

static void close_module(struct opened *o)
{
    dwarf_lines_free(o->lines);
    symtab_free(o->symbols);
    elf_file_free(o->elf);
    free(o->file);
    free(o->no_lines);
}

void source_modules_free(struct source_modules *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->list.len; i++)
        close_module(&m->list.data[i]);
    vec_free(&m->list);
    free(m);
}

static struct opened open_module(const struct source_function *f)
{
    struct opened o = {.file = xstrdup(f->file)};
    struct debug_search search = {.root = "", .path = f->module};
    struct err err;
    struct stat st;
    if (elf_file_open_path(f->file, &o.elf, &err)) {
        o.elf = NULL;
        o.no_lines = xstrdup(err.text);
        return o;
    }
    o.built = stat(f->file, &st) == 0 ? st.st_mtime : 0;
    if (dwarf_lines_open(o.elf, &search, &o.lines, &err)) {
        o.lines = NULL;
        o.no_lines = xstrdup(err.text);
    }
    if (symtab_load(o.elf, &search, &o.symbols, NULL))
        o.symbols = NULL;
    return o;
}

static struct opened *module_of(struct source_modules *m, const struct source_function *f)
{
    size_t i = 0;
    while (i < m->list.len && strcmp(m->list.data[i].file, f->file) != 0)
        i++;
    struct opened o;
    if (i < m->list.len) {
        o = m->list.data[i];
        vec_remove(&m->list, i);
    } else {
        o = open_module(f);
    }
    if (m->list.len == MODULES_MAX) {
        close_module(&m->list.data[0]);
        vec_remove(&m->list, 0);
    }
    vec_push(&m->list, o);
    return &m->list.data[m->list.len - 1];
}

/* ---- Source lines ---- */

static void add_line(struct source_text *t, const char *line, size_t len)
{
    char *copy = xmalloc(len + 1);
    memcpy(copy, line, len);
    copy[len] = '\0';
    t->lines[t->n++] = copy;
}

static void read_lines(struct source_text *t, time_t built)
{
    size_t len;
    time_t changed;
    char *text = source_file_read("", t->path, &len, &changed);
    if (!text) {
        t->why = xasprintf("%s is not here", t->path);
        return;
    }
    t->newer = built && changed > built;
    t->first = t->line > BEFORE ? t->line - BEFORE : 1;
    t->lines = xcalloc(LINES_MAX, sizeof *t->lines);
    int number = 1;
    for (char *line = text, *end = text + len; line < end && t->n < LINES_MAX; number++) {
        char *nl = memchr(line, '\n', (size_t)(end - line));
        if (number >= t->first)
            add_line(t, line, (size_t)((nl ? nl : end) - line));
        line = nl ? nl + 1 : end;
    }
    t->at = (size_t)(t->line - t->first);
    if (t->at >= t->n) {
        for (size_t i = 0; i < t->n; i++)
            free(t->lines[i]);
        free(t->lines);
        t->lines = NULL;
        t->n = t->at = 0;
        t->why = xasprintf("%s has fewer than %d lines: it is not the file that was compiled", t->path, t->line);
    }
    free(text);
}

/* ---- Instructions ---- */

/* The function's code from malloc; size 0: not at hand. */
static struct disasm_piece read_code(const struct opened *o, uint64_t addr)
{
    struct symbol sym;
    struct disasm_piece p = {.vaddr = addr};
    ssize_t i = o->symbols ? symtab_find(o->symbols, addr) : -1;
    if (i < 0 || !o->elf)
        return p;
    symtab_get(o->symbols, (size_t)i, &sym);
    size_t size = sym.size < CODE_MAX ? (size_t)sym.size : CODE_MAX;
    uint8_t *code = malloc(size ? size : 1);
    p.vaddr = sym.vaddr;
    p.size = code ? elf_file_read(o->elf, sym.vaddr, code, size) : 0;
    p.code = code;
    return p;
}

static void free_code(struct disasm_piece *p)
{
    free((void *)(uintptr_t)p->code);
}

/* The instruction, with the name of where it goes, when that is another function, instead of the address. */
static char *name_target(const struct opened *o, const struct disasm_piece *p, const struct disasm_line *line)
{
    struct symbol sym;
    bool inside = line->target - p->vaddr < p->size;
    ssize_t i = line->target && !inside && o->symbols ? symtab_find(o->symbols, line->target) : -1;
    if (i < 0)
        return xstrdup(line->text);
    symtab_get(o->symbols, (size_t)i, &sym);
    char *demangled = demangle(sym.name, DEMANGLE_NO_ARGS), *out;
    const char *name = demangled ? demangled : sym.name;
    int mnemonic = (int)strcspn(line->text, " ");
    uint64_t offset = line->target - sym.vaddr;
    if (offset)
        out = xasprintf("%.*s <%.200s+0x%" PRIx64 ">", mnemonic, line->text, name, offset);
    else
        out = xasprintf("%.*s <%.200s>", mnemonic, line->text, name);
    free(demangled);
    return out;
}

static void list_code(struct source_text *t, const struct opened *o, const struct disasm_piece *p,
                      uint64_t vaddr)
{
    struct disasm_line *list = xcalloc(LINES_MAX, sizeof *list);
    size_t n = p->size ? disasm_lines(p, vaddr, BEFORE, LINES_MAX, list, &t->at) : 0;
    if (n) {
        t->lines = xcalloc(n, sizeof *t->lines);
        t->addrs = xcalloc(n, sizeof *t->addrs);
    }
    for (size_t i = 0; i < n; i++) {
        t->lines[i] = name_target(o, p, &list[i]);
        t->addrs[i] = list[i].vaddr;
    }
    t->n = n;
    free(list);
}

/* ---- Places ---- */

static bool is_at_hand(const struct source_function *f, struct source_text *t)
{
    if (f->file && f->addr)
        return true;
    t->why = f->file && f->module             ? xasprintf("no symbol of %s names this code: where the function "
                                                          "begins is not known",
                                                          f->module)
             : f->module && f->module[0] == '/' ? xasprintf("no file of %s was used", f->module)
                                                : xstrdup("this code has no file");
    return false;
}

static void show_place(struct source_text *t, const struct opened *o, const struct disasm_piece *code,
                       uint64_t vaddr)
{
    if (t->path)
        read_lines(t, o->built);
    else
        t->why = xstrdup(o->no_lines ? o->no_lines : "no line numbers for this code");
    if (t->n == 0)
        list_code(t, o, code, vaddr);
}

static void find_function(struct source_modules *m, const struct source_question *q, struct source_text *t)
{
    struct source_frame frames[FRAMES_MAX];
    struct source_pos pos = {0};
    if (!is_at_hand(&q->callee, t))
        return;
    struct opened *o = module_of(m, &q->callee);
    /* The outermost frame at a function's first instruction is the function itself. */
    size_t n = o->lines ? dwarf_lines_frames(o->lines, q->callee.addr, frames, FRAMES_MAX) : 0;
    if (n > 0 && frames[n - 1].decl.line > 0)
        pos = frames[n - 1].decl;
    else if (o->lines && !dwarf_lines_at(o->lines, q->callee.addr, &pos))
        pos.file = NULL;
    if (pos.file) {
        t->path = xstrdup(pos.file);
        t->line = pos.line;
    }
    struct disasm_piece code = read_code(o, q->callee.addr);
    show_place(t, o, &code, q->callee.addr);
    free_code(&code);
}

/* How well a call instruction fits; 0: not at all. */
static int fit_of(const struct source_question *q, const struct disasm_call *c)
{
    bool same_file = q->callee.file && strcmp(q->callee.file, q->caller.file) == 0;
    bool names_it = same_file && c->target == q->callee.addr;
    if (!(q->flags & SPAN_HAS_SITE))
        return names_it ? 1 : 0;
    if (((q->flags >> SPAN_SITE_SHIFT) & SPAN_SITE_MASK) != (c->ret & SPAN_SITE_MASK))
        return 0;
    /* A tail call ended what was called here; a stub leads on to another file. */
    return names_it ? 3 : c->target == 0 ? 2 : 1;
}

/* The call; t->places 0: none fits. */
static struct disasm_call find_call(const struct source_question *q, const struct disasm_piece *code,
                                    struct source_text *t)
{
    struct disasm_calls calls;
    struct disasm_call best = {0};
    int best_fit = 0;
    disasm_find_calls(code, &calls);
    for (size_t i = 0; i < calls.list.len; i++) {
        int fit = fit_of(q, &calls.list.data[i]);
        if (fit > best_fit) {
            best = calls.list.data[i];
            best_fit = fit;
            t->places = 0;
        }
        t->places += fit == best_fit && fit > 0;
    }
    disasm_calls_free(&calls);
    return best;
}

/* Names of the inlined functions around an address, and the line there. */
static void find_line(struct source_text *t, const struct opened *o, uint64_t vaddr)
{
    struct source_frame frames[FRAMES_MAX];
    struct source_pos pos;
    if (!o->lines || !dwarf_lines_at(o->lines, vaddr, &pos))
        return;
    t->path = xstrdup(pos.file);
    t->line = pos.line;
    size_t n = dwarf_lines_frames(o->lines, vaddr, frames, FRAMES_MAX), i = 0;
    for (; i < n && frames[i].inlined; i++) {
        const char *raw = frames[i].name ? frames[i].name : "?";
        char *name = demangle(raw, DEMANGLE_NO_ARGS), *before = t->scope;
        t->scope = xasprintf("%s%s%.120s", before ? before : "", before ? " < " : "", name ? name : raw);
        free(before);
        free(name);
    }
    if (i > 0 && frames[i - 1].call.line > 0) {
        char *names = t->scope;
        const char *slash = strrchr(frames[i - 1].call.file, '/');
        t->scope = xasprintf("%s (inlined at %s:%d)", names, slash ? slash + 1 : frames[i - 1].call.file,
                             frames[i - 1].call.line);
        free(names);
    }
}

static void find_call_site(struct source_modules *m, const struct source_question *q, struct source_text *t)
{
    if (!q->caller.module) {
        t->why = xstrdup("the outermost call: nothing is known of its caller");
        return;
    }
    if (!is_at_hand(&q->caller, t))
        return;
    struct opened *o = module_of(m, &q->caller);
    struct disasm_piece code = read_code(o, q->caller.addr);
    struct disasm_call call = find_call(q, &code, t);
    if (t->places > 0) {
        find_line(t, o, call.vaddr);
        show_place(t, o, &code, call.vaddr);
    } else {
        t->why = xstrdup(code.size == 0 ? "the caller's code is not at hand"
                         : q->flags & SPAN_HAS_SITE
                             ? "no call in the caller's code leads here: a signal, or code that was changed"
                             : "called through a pointer: which call it was is not recorded");
    }
    free_code(&code);
}

void source_answer_find(struct source_modules *m, const struct source_question *q,
                        struct source_answer *out)
{
    *out = (struct source_answer){0};
    find_call_site(m, q, &out->call);
    find_function(m, q, &out->function);
}

static void text_free(struct source_text *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->lines[i]);
    free(t->lines);
    free(t->addrs);
    free(t->path);
    free(t->scope);
    free(t->why);
}

void source_answer_free(struct source_answer *a)
{
    text_free(&a->function);
    text_free(&a->call);
    *a = (struct source_answer){0};
}
