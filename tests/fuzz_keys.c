/* tui/term/keys, tui/term/term_input, tui/ui/prompt, tui/term/surface: any bytes as names of keys, mouse reports, key
 * sequences, text. */
#include <locale.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/utf8.h"
#include "tui/term/keys.h"
#include "tui/ui/prompt.h"
#include "tui/term/surface.h"
#include "tui/term/term_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_names(const char *name)
{
    struct key k, again;
    char out[KEY_NAME_MAX];
    key_of_capability(name, &k);
    if (key_parse(name, &k, NULL) != 0)
        return;
    if (key_parse(key_format(k, out), &again, NULL) != 0 || !key_equal(k, again))
        abort();
}

static void fuzz_mouse(const uint8_t *data, size_t size)
{
    struct mouse_report r;
    struct mouse m;
    mouse_report_start(&r, size && data[0] & 1);
    for (size_t i = 0; i < size && r.active; i++)
        if (mouse_report_add(&r, data[i], &m) == 1 &&
            (m.row < 0 || m.col < 0 || m.button < 0 || m.button > 3))
            abort();
}

static void fuzz_sequence(const uint8_t *data, size_t size)
{
    struct key_sequence q;
    struct key k = {0};
    key_sequence_start(&q, size && data[0] & 1 ? '[' : 'O');
    for (size_t i = 1; i < size && q.active; i++)
        if (key_sequence_add(&q, data[i], &k) == SEQUENCE_KEY &&
            (k.code < K_UP || k.code >= K_CODE_END || k.mods > (K_SHIFT | K_ALT | K_CTRL)))
            abort();
}

/* Every cell that comes out is harmless, whatever was drawn and typed. */
static void fuzz_text(const char *text, size_t size)
{
    struct surface *s = surface_new(3, 17);
    struct prompt *p = prompt_new();
    surface_text(s, 0, (int)(size % 23) - 5, 13, text, size, (struct style){0});
    for (size_t at = 0; at < size;) {
        struct key k = {0};
        at += utf8_decode(text + at, size - at, &k.code);
        k.mods = (uint32_t)(at % 5 == 0 ? K_CTRL : 0);
        prompt_key(p, key_normal(k));
    }
    prompt_draw(p, s, 1, 0, 17, ":", (struct style){0}, glyphs_of(GLYPHS_ASCII));
    for (int row = 0; row < 3; row++)
        for (int col = 0; col < 17; col++) {
            const struct cell *c = surface_at(s, row, col);
            if (c->cp && utf8_is_unsafe(c->cp))
                abort();
            if (c->cp == 0 && (col == 0 || utf8_cp_cols(surface_at(s, row, col - 1)->cp) != 2))
                abort();
        }
    prompt_free(p);
    surface_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    setlocale(LC_ALL, "C.UTF-8");
    char *text = xmalloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    fuzz_names(text);
    fuzz_mouse(data, size);
    fuzz_sequence(data, size);
    fuzz_text(text, size);
    free(text);
    return 0;
}
