/* core/symbols/symbol_list: what is listed, while it loads, when it is cancelled, when memory runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/symbols/fuzzy.h"
#include "core/symbols/symbol_list.h"
#include "tests/lib_program.h"

static const char source[] =
    "#include <cstdio>\n#include <unistd.h>\n"
    "struct Foo { Foo(); ~Foo(); int run(int); };\n"
    "Foo::Foo() { puts(\"ready\"); fflush(stdout); }\n"
    "Foo::~Foo() {}\n"
    "int Foo::run(int x) { return x; }\n"
    "extern \"C\" int f(int x) { return x; }\n"
    "extern \"C\" int f_alias(int x) __attribute__((alias(\"f\")));\n"
    "int main() { Foo a; char c; return a.run((int)read(0, &c, 1)); }\n";

static size_t count_named(const struct symbol_list *l, const char *name, struct symbol_item *last)
{
    size_t n = 0;
    for (size_t i = 0; i < symbol_list_count(l); i++) {
        struct symbol_item it;
        symbol_list_get(l, i, &it);
        if (strcmp(it.name, name) == 0) {
            n++;
            if (last)
                *last = it;
        }
    }
    return n;
}

static void tell(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void names_of_a_process(void **state)
{
    (void)state;
    char *dir = program_mkdir();
    program_write(dir, "p.cc", source);
    assert_true(program_build(dir, "p.cc", "p", "-O0"));
    struct program p;
    program_start(&p, dir, "./p");
    struct modules *m;
    assert_int_equal(modules_of_pid(NULL, p.pid, &m, NULL), 0);
    atomic_int told = 0;
    struct symbol_list *l = symbol_list_start(m, 0, tell, &told);
    /* readable while the worker adds: a rank over it never sees half a name */
    struct rank *r = rank_new(symbol_list_chunk, l);
    struct symbol_progress progress;
    do {
        symbol_list_progress(l, &progress);
        assert_int_equal(rank_set(r, MATCH_FUZZY, "read", 0, symbol_list_count(l), NULL), 0);
        assert_true(rank_run(r, UINT64_MAX));
    } while (!progress.done);
    symbol_list_wait(l);
    assert_true(told >= 1);
    symbol_list_progress(l, &progress);
    assert_int_equal(progress.modules_done, modules_count(m));
    assert_int_equal(progress.left_out, 0);
    assert_int_equal(progress.names, symbol_list_count(l));
    assert_true(progress.names > 1000); /* the C library's */

    struct symbol_item it;
    assert_int_equal(count_named(l, "Foo::run", &it), 1);
    assert_string_equal(it.raw, "_ZN3Foo3runEi");
    assert_true(modules_at(m, it.module)->is_main);
    assert_int_equal(it.vaddr, program_nm(dir, "p", "_ZN3Foo3runEi"));
    assert_int_equal(count_named(l, "Foo::Foo", NULL), 1); /* C1 and C2 are one */
    assert_int_equal(count_named(l, "f", NULL), 1);
    assert_int_equal(count_named(l, "f_alias", NULL), 1);
    assert_int_equal(count_named(l, "puts@plt", NULL), 0);
    size_t from, to;
    symbol_list_module_range(l, it.module, &from, &to);
    assert_int_equal(from, 0); /* the program comes first */
    assert_true(to > 5);
    for (size_t i = 0; i < symbol_list_count(l); i++) {
        struct symbol_item x;
        symbol_list_get(l, i, &x);
        assert_int_equal(x.module == it.module, i >= from && i < to);
        const struct rank_chunk *c = symbol_list_chunk(l, i / RANK_CHUNK);
        assert_int_equal(c->masks[i % RANK_CHUNK], fuzzy_mask(x.name, strlen(x.name)));
        assert_null(strstr(x.name, "@"));
    }
    rank_free(r);
    symbol_list_free(l);

    l = symbol_list_start(m, 0, NULL, NULL);
    symbol_list_cancel(l);
    symbol_list_wait(l);
    symbol_list_progress(l, &progress);
    assert_true(progress.done && progress.cancelled);
    symbol_list_free(l);

    /* one chunk of names and no more */
    l = symbol_list_start(m, sizeof(struct rank_chunk) + 1, NULL, NULL);
    symbol_list_wait(l);
    symbol_list_progress(l, &progress);
    assert_true(progress.left_out > 0);
    assert_true(progress.bytes <= sizeof(struct rank_chunk) + 1);
    symbol_list_free(l);
    modules_free(m);
    program_end(&p);
    program_rmdir(dir);
}

/* ---- Two million names ---- */

#define MANY 2000000
#define NAME "request_%07d" /* 15 characters */
#define NAME_BYTES 16

/* A shared object of that many functions, 16 bytes each, and nothing in them: ELF as elf(5) has it. */
static void write_many(const char *path)
{
    static const char names[] = "\0.symtab\0.strtab\0.shstrtab\0.text";
    const uint64_t code = 4096, code_bytes = MANY * 16ull, symbols = code + code_bytes,
                   strings = symbols + (MANY + 1) * sizeof(Elf64_Sym), string_bytes = 1 + (uint64_t)MANY * NAME_BYTES,
                   section_names = strings + string_bytes, sections = (section_names + sizeof names + 7) / 8 * 8;
    Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, .e_type = ET_DYN,
                       .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_phoff = sizeof head, .e_shoff = sections,
                       .e_ehsize = sizeof head, .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1,
                       .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 5, .e_shstrndx = 3};
    Elf64_Phdr load = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = symbols, .p_memsz = symbols,
                       .p_align = 4096};
    Elf64_Shdr section[5] = {
        {0},
        {.sh_name = 1, .sh_type = SHT_SYMTAB, .sh_offset = symbols, .sh_size = strings - symbols, .sh_link = 2,
         .sh_info = 1, .sh_addralign = 8, .sh_entsize = sizeof(Elf64_Sym)},
        {.sh_name = 9, .sh_type = SHT_STRTAB, .sh_offset = strings, .sh_size = string_bytes, .sh_addralign = 1},
        {.sh_name = 17, .sh_type = SHT_STRTAB, .sh_offset = section_names, .sh_size = sizeof names, .sh_addralign = 1},
        {.sh_name = 27, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = code,
         .sh_offset = code, .sh_size = code_bytes, .sh_addralign = 16}};
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fwrite(&head, sizeof head, 1, f);
    fwrite(&load, sizeof load, 1, f);
    fseek(f, (long)symbols, SEEK_SET);
    fwrite(&(Elf64_Sym){0}, sizeof(Elf64_Sym), 1, f);
    for (int i = 0; i < MANY; i++)
        fwrite(&(Elf64_Sym){.st_name = (Elf64_Word)(1 + i * NAME_BYTES), .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                            .st_shndx = 4, .st_value = code + (uint64_t)i * 16, .st_size = 16},
               sizeof(Elf64_Sym), 1, f);
    fputc(0, f);
    for (int i = 0; i < MANY; i++) {
        fprintf(f, NAME, i);
        fputc(0, f);
    }
    fwrite(names, sizeof names, 1, f);
    fseek(f, (long)sections, SEEK_SET);
    fwrite(section, sizeof section, 1, f);
    assert_int_equal(fclose(f), 0);
}

/* The worker tells that names have come, and waits until a key was answered. */
struct turns {
    sem_t came, answered;
};

static void take_turn(void *arg)
{
    struct turns *t = arg;
    sem_post(&t->came);
    sem_wait(&t->answered);
}

static size_t count_with(const struct symbol_list *l, size_t n, const char *part)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        struct symbol_item it;
        symbol_list_get(l, i, &it);
        found += strstr(it.name, part) != NULL;
    }
    return found;
}

/* A key typed while two million names load is answered from those that are there, after one slice of work, which is
 * bounded whatever is still to be looked at; the list costs what its header says. */
static void field_E12_two_million_names_answer_keys_while_they_load(void **state)
{
    (void)state;
    static const char query[] = "request_01";
    char *dir = program_mkdir(), path[400], typed[sizeof query] = "";
    snprintf(path, sizeof path, "%s/many.so", dir);
    write_many(path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *code = mmap(NULL, 4096 + MANY * 16ul, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(code, MAP_FAILED);
    close(fd);
    struct modules *m;
    assert_int_equal(modules_of_pid(NULL, getpid(), &m, NULL), 0);
    struct turns turns;
    sem_init(&turns.came, 0, 0);
    sem_init(&turns.answered, 0, 0);
    struct symbol_list *l = symbol_list_start(m, 0, take_turn, &turns);
    struct rank *r = rank_new(symbol_list_chunk, l);
    struct symbol_progress p;
    size_t answered = 0, before = 0;
    for (;;) {
        while (sem_wait(&turns.came) < 0)
            ;
        symbol_list_progress(l, &p);
        size_t have = symbol_list_count(l);
        assert_true(have >= before);
        if (!p.done && have > before && answered < sizeof query - 1) {
            typed[answered] = query[answered];
            size_t slices = 1, work = answered ? rank_count(r) : have; /* a longer query looks at what matched */
            assert_int_equal(rank_set(r, MATCH_EXACT, typed, 0, have, NULL), 0);
            while (!rank_run(r, 1)) /* the time is over: the least that it does */
                slices++;
            assert_true(slices * RANK_CHUNK * 2 >= work); /* by two threads */
            assert_int_equal(rank_looked_at(r), have);
            assert_int_equal(rank_count(r), count_with(l, have, typed));
            answered++;
        }
        before = have;
        sem_post(&turns.answered);
        if (p.done)
            break;
    }
    symbol_list_wait(l);
    print_message("    %zu keys while loading; %.1f bytes a name\n", answered, (double)p.bytes / (double)p.names);
    assert_true(answered >= 3);
    assert_true(p.names >= MANY && p.names == symbol_list_count(l));
    assert_true(p.bytes <= p.names * 32); /* 24, and copies of mangled names, of which there are few */
    assert_int_equal(rank_set(r, MATCH_EXACT, "request_0123", 0, p.names, NULL), 0);
    assert_true(rank_run(r, UINT64_MAX));
    assert_int_equal(rank_count(r), 1000); /* 0123000 to 0123999 */
    rank_free(r);
    symbol_list_free(l);
    modules_free(m);
    sem_destroy(&turns.came);
    sem_destroy(&turns.answered);
    munmap(code, 4096 + MANY * 16ul);
    program_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_E12_two_million_names_answer_keys_while_they_load),
        cmocka_unit_test(names_of_a_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
