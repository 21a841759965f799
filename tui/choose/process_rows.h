/* The rows of the process list: which processes are shown, in which order, and what their cells say. */
#ifndef MTUI_TUI_PROCESS_ROWS_H
#define MTUI_TUI_PROCESS_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/machine/proc.h"
#include "tui/ui/list.h"

enum process_column {
    PROCESS_PID,
    PROCESS_USER,
    PROCESS_STATE,
    PROCESS_CPU,
    PROCESS_RSS,
    PROCESS_THREADS,
    PROCESS_AGE,
    PROCESS_SYMS,
    PROCESS_TRACE,
    PROCESS_COMMAND,
    PROCESS_COLUMNS
};
extern const struct list_column process_columns[PROCESS_COLUMNS];

struct process_rows;

/* table must outlive the rows. */
struct process_rows *process_rows_new(const struct proc_table *table);
void process_rows_free(struct process_rows *r);

/* What is shown: words that must all occur in pid, user or command ("" or NULL: everything; capital
 * letters make case count), one user's ("" or NULL: all), kernel threads or not. */
void process_rows_filter(struct process_rows *r, const char *words);
const char *process_rows_get_filter(const struct process_rows *r);
void process_rows_user(struct process_rows *r, const char *user);
const char *process_rows_get_user(const struct process_rows *r);
void process_rows_kernel(struct process_rows *r, bool shown);
bool process_rows_get_kernel(const struct process_rows *r);

/* Reads the table anew: filters and sorts. */
void process_rows_update(struct process_rows *r, size_t sort_column, bool inverted);

size_t process_rows_count(const struct process_rows *r);
const struct proc *process_rows_at(const struct process_rows *r, size_t row);
/* A number for a process that no other has, not 0. */
uint64_t process_identity(const struct proc *p);

/* For list_new: arg is the struct process_rows. */
struct list_rows process_rows_callbacks(void);

#endif
