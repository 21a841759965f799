#include "tests/lib_eh_damage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "tests/lib_perf.h"

struct range {
    size_t from, size;
};

static struct range section(const char *path, const char *name, size_t len)
{
    struct range r = {0};
    char *text = lib_run(NULL, NULL, "readelf -SW %s | sed 's/^ *\\[ *[0-9]*\\] *//' | awk '$1 == \"%s\" {print $4, $5}'",
                         path, name);
    assert_int_equal(sscanf(text, "%zx %zx", &r.from, &r.size), 2);
    free(text);
    assert_true(r.size > 0 && r.from + r.size <= len);
    return r;
}

size_t eh_damage(const char *path, bool header, size_t (*look)(const struct elf_file *f, void *arg), void *arg)
{
    size_t len, found = 0;
    char *image = lib_read(path, &len);
    struct range in[2] = {section(path, ".eh_frame", len), {0}};
    uint64_t random = 88172645463325252u;
    if (header)
        in[1] = section(path, ".eh_frame_hdr", len);
    for (int round = 0; round < EH_DAMAGE_ROUNDS; round++) {
        char *copy = xmalloc(len);
        struct elf_file *f;
        memcpy(copy, image, len);
        for (int k = 0; k <= round % 7; k++) {
            random ^= random << 13; /* xorshift */
            random ^= random >> 7;
            random ^= random << 17;
            const struct range *r = &in[header ? random & 1 : 0];
            copy[r->from + random / 2 % r->size] =
                (char)(random >> 32 & 3 ? random >> 40 : random >> 35 & 1 ? 0xff : 0);
        }
        assert_int_equal(elf_file_open_memory(copy, len, "damaged", &f, NULL), 0);
        found += look(f, arg);
        elf_file_free(f);
    }
    free(image);
    return found;
}
