#include "decode/trace/nesting.h"

#include <stdlib.h>

#include "core/base/err.h"

int nesting_init(struct nesting *n, size_t nfn, size_t depths)
{
    *n = (struct nesting){.nfn = nfn};
    n->active = calloc(nfn + 1, sizeof *n->active);
    n->open = malloc((depths + 1) * sizeof *n->open);
    if (n->active && n->open)
        return 0;
    nesting_free(n);
    return MTUI_E_NOMEM;
}

void nesting_free(struct nesting *n)
{
    free(n->active);
    free(n->open);
    *n = (struct nesting){0};
}
