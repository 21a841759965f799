/* Programs that give whoever starts them rights of their own: set-user-ID, set-group-ID, file capabilities
 * (execve(2), capabilities(7)). Recording them is another matter: the kernel takes perf's events away at such a
 * start, and one under ptrace by a user without CAP_SYS_PTRACE does not get the rights. */
#ifndef MTUI_CORE_PROGRAM_RIGHTS_H
#define MTUI_CORE_PROGRAM_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Whether user and group would gain any by starting path; says which: "is setuid (user 0)", "is setgid (group 42)",
 * "has file capabilities". */
bool program_rights_gained(const char *path, uid_t uid, gid_t gid, char *what, size_t size);

#endif
