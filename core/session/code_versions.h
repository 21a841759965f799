/* Pages of code over time, as stepping saw them executed: which bytes of a file a page had when. */
#ifndef MTUI_CORE_CODE_VERSIONS_H
#define MTUI_CORE_CODE_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CODE_VERSION_PAGE 4096u      /* bytes */
#define CODE_VERSION_LOST UINT64_MAX /* as an offset: the bytes could not be kept */

struct code_version {
    pid_t pid;
    uint64_t start;   /* of the page */
    uint64_t time_ns; /* from then on, until the next of this page */
    uint64_t offset;  /* of its bytes in the file, or CODE_VERSION_LOST */
    size_t order;     /* as added; of two of one time the later holds */
};

/* Zero-initialise; code_versions_free frees. */
struct code_versions {
    struct code_version *data;
    size_t len, cap;
};

/* False when memory is short, or start is not that of a page. */
bool code_versions_add(struct code_versions *v, struct code_version version);
/* To be called once all are added, before anything is asked. */
void code_versions_sort(struct code_versions *v);
void code_versions_free(struct code_versions *v);

/* The version of the page of address that holds at a time; NULL before the first. */
const struct code_version *code_versions_find(const struct code_versions *v, pid_t pid, uint64_t time_ns,
                                              uint64_t address);
/* Whether any page of [start, end) has one then. */
bool code_versions_within(const struct code_versions *v, pid_t pid, uint64_t time_ns, uint64_t start,
                          uint64_t end);

#endif
