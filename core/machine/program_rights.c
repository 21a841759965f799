#include "core/machine/program_rights.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

bool program_rights_gained(const char *path, uid_t uid, gid_t gid, char *what, size_t size)
{
    struct stat st;
    struct statvfs fs;
    if (stat(path, &st) != 0 || (statvfs(path, &fs) == 0 && fs.f_flag & ST_NOSUID))
        return false;
    if (st.st_mode & S_ISUID && st.st_uid != uid)
        (void)snprintf(what, size, "is setuid (user %u)", (unsigned)st.st_uid);
    else if (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && st.st_gid != gid)
        (void)snprintf(what, size, "is setgid (group %u)", (unsigned)st.st_gid);
    else if (uid != 0 && getxattr(path, "security.capability", NULL, 0) > 0)
        (void)snprintf(what, size, "has file capabilities");
    else
        return false;
    return true;
}
