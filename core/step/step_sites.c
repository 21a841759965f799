#include "core/step/step_sites.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"

int step_sites_write(const char *path, const struct step_site *sites, size_t n, struct err *err)
{
    char *fresh = xasprintf("%s.new", path);
    FILE *f = fopen(fresh, "we");
    int rc = 0;
    for (size_t i = 0; f && rc == 0 && i < n; i++) {
        const struct step_site *s = &sites[i];
        if (strchr(s->path, '\n'))
            rc = err_set(err, MTUI_E_NOTSUP, "the path of %s holds a newline", s->path);
        else
            fprintf(f, "%" PRIu32 "\t%" PRIu32 "\t%s\t%s\t%" PRIx64 "\t%s\n", s->trigger, s->member,
                    s->is_entry ? "entry" : "point", s->no_uprobe ? "break" : "uprobe", s->offset, s->path);
    }
    if (!f || fclose(f) != 0 || (rc == 0 && rename(fresh, path) != 0))
        rc = err_errno(err, errno, "cannot write %s", path);
    free(fresh);
    return rc;
}

static bool parse_line(char *line, struct step_site *out)
{
    struct step_site s = {0};
    char kind[8], means[8];
    int at = -1;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%" SCNu32 "\t%" SCNu32 "\t%7s\t%7s\t%" SCNx64 "%n", &s.trigger, &s.member, kind, means, &s.offset,
               &at) != 5 ||
        line[at] != '\t' || !line[at + 1])
        return false;
    s.is_entry = strcmp(kind, "entry") == 0;
    s.no_uprobe = strcmp(means, "break") == 0;
    s.path = xstrdup(line + at + 1);
    *out = s;
    return (s.is_entry || strcmp(kind, "point") == 0) && (s.no_uprobe || strcmp(means, "uprobe") == 0);
}

int step_sites_read(const char *path, struct step_site **out, size_t *n, struct err *err)
{
    VEC(struct step_site) list = {0};
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t cap = 0, number = 0;
    int rc = 0;
    if (!f && errno != ENOENT)
        return err_errno(err, errno, "cannot read %s", path);
    while (f && rc == 0 && getline(&line, &cap, f) > 0) {
        struct step_site s = {0};
        number++;
        if (parse_line(line, &s)) {
            vec_push(&list, s);
        } else {
            free(s.path);
            rc = err_set(err, MTUI_E_FORMAT, "%s:%zu is no site", path, number);
        }
    }
    free(line);
    if (f)
        fclose(f);
    if (rc < 0) {
        step_sites_free(list.data, list.len);
        return rc;
    }
    *out = list.data;
    *n = list.len;
    return 0;
}

void step_sites_free(struct step_site *sites, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(sites[i].path);
    free(sites);
}
