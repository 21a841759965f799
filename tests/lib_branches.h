/* Lists of branches of one recording from four sides: `mtui export -f branches`, `perf script --itrace=be`,
 * libipt, and the truth of stepping. Every failure fails the test. */
#ifndef MTUI_TESTS_LIB_BRANCHES_H
#define MTUI_TESTS_LIB_BRANCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib_step.h"

struct branch {
    uint64_t time_ns, from, to;
    pid_t tid;
    char kind[16]; /* as in mtui's export */
};

struct branches {
    struct branch *data;
    size_t len, cap;
};

/* What `mtui export -f branches OPTIONS` prints. */
struct branches branches_of_mtui(const char *data, const char *options);
/* What perf prints, its flag words in mtui's. An unknown word is a failure. */
struct branches branches_of_perf(const char *data);
/* Of a thread of the truth. */
struct branches branches_of_truth(const struct step_rec *r, pid_t tid);
void branches_free(struct branches *b);

/* Only those of one thread, in place. */
void branches_keep(struct branches *b, pid_t tid);
/* Without errors that have neither a place nor a time, in place. */
void branches_drop_blank_errors(struct branches *b);

/* Same threads, kinds, addresses, order; the sentence says what is compared. */
void branches_equal(const char *what, const struct branches *a, const struct branches *b);
/* Begins, ends and errors apart, a is what is left of the truth when pieces are taken out; at its times, as
 * in branches_true_times. */
void branches_left_of(const char *what, const struct branches *a, const struct branches *truth, unsigned bits);
/* a's times are in order, and those of branches that have a packet of their own (conditional ones and
 * returns) differ by no more. perf estimates where tracing begins, and shows no other time until it is over:
 * what b has at the time of its last begin is not compared. Returns how many were. */
size_t branches_same_times(const char *what, const struct branches *a, const struct branches *b, uint64_t most_ns);
/* The same against the truth where a packet with the time stands behind so many bits at the latest: not
 * earlier than the branch itself, not later than the last that can share its packet. */
size_t branches_true_times(const char *what, const struct branches *a, const struct branches *truth, unsigned bits);

#endif
