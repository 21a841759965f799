/* Errors: a negative code to act on and one sentence to show.
 *
 * Every function that can fail returns 0 (or a non-negative result) or a negative MTUI_E*; the
 * sentence goes into a `struct err` that the caller supplies (NULL is accepted: no sentence wanted).
 * The sentence says what failed, where, and what to do; it has no trailing newline and no control
 * bytes from outside (err_set escapes them). Out-parameters stay untouched on failure. Nothing below
 * tui/ prints. */
#ifndef MTUI_CORE_ERR_H
#define MTUI_CORE_ERR_H

enum mtui_err {
    MTUI_E_INVAL = -1,   /* an argument or an option that makes no sense */
    MTUI_E_NOENT = -2,   /* the thing named does not exist */
    MTUI_E_IO = -3,      /* read, write, open failed */
    MTUI_E_PERM = -4,    /* the kernel refused; the sentence says what would allow it */
    MTUI_E_FORMAT = -5,  /* bytes from outside that do not parse */
    MTUI_E_NOTSUP = -6,  /* not possible here (hardware, kernel, perf version) */
    MTUI_E_LIMIT = -7,   /* a limit of ours or of the kernel's was reached */
    MTUI_E_TIMEOUT = -8, /* no answer in time */
    MTUI_E_GONE = -9,    /* the process or child has ended */
    MTUI_E_STATE = -10,  /* not now: the state does not allow the request */
    MTUI_E_CANCEL = -11, /* the user gave up */
    MTUI_E_NOMEM = -12,  /* an allocation sized by input failed */
    MTUI_E_BUSY = -13,   /* already outstanding */
    MTUI_E_PIPE = -14    /* whoever read what we write has gone */
};

struct err {
    int code;
    char text[512];
};

/* Stores code and sentence; returns code, so that `return err_set(e, ...)` reads well. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The same with ": <strerror(errno_value)>" appended; EPERM/EACCES become MTUI_E_PERM, ENOENT
 * MTUI_E_NOENT, ESRCH MTUI_E_GONE, ENOMEM MTUI_E_NOMEM, the rest MTUI_E_IO. */
int err_errno(struct err *e, int errno_value, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the sentence already there; returns its code. */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
