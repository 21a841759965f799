/* The attrs (one per recorded event) and the header's features. A feature that does not parse costs
 * only itself. */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/alloc.h"
#include "decode/perf/perf_format.h"
#include "decode/perf/perf_priv.h"

#define MAX_EVENTS 65536 /* an event has at least one file descriptor at record time */

/* ---- Events ---- */

static void fill_info(struct perf_event *ev, const struct perf_event_attr *a)
{
    ev->info = (struct perf_event_info){
        .type = a->type,
        .config = a->config,
        .config1 = a->config1,
        .config2 = a->config2,
        .sample_type = a->sample_type,
        .read_format = a->read_format,
        .sample_period_or_freq = a->sample_period,
        .branch_sample_type = a->branch_sample_type,
        .sample_regs_user = a->sample_regs_user,
        .sample_stack_user = a->sample_type & PERF_SAMPLE_STACK_USER ? a->sample_stack_user : 0,
        .freq = a->freq,
        .context_switch = a->context_switch,
        .sample_id_all = a->sample_id_all,
        .write_backward = a->write_backward,
    };
    ev->regs_intr = (unsigned)__builtin_popcountll(a->sample_regs_intr);
    ev->use_clockid = a->use_clockid;
    ev->clockid = a->clockid;
}

bool perf_header_add_attr(struct perf_file *f, const uint8_t *attr, size_t len, const uint8_t *ids,
                          size_t ids_len)
{
    if (len < PERF_ATTR_SIZE_VER0 || f->events.len >= MAX_EVENTS)
        return false;
    struct perf_event_attr a = {0};
    memcpy(&a, attr, len < sizeof a ? len : sizeof a); /* what a newer perf adds is not known here */
    if (a.size >= PERF_ATTR_SIZE_VER0 && a.size < len && a.size < sizeof a)
        memset((uint8_t *)&a + a.size, 0, sizeof a - a.size);
    struct perf_event ev = {0};
    fill_info(&ev, &a);
    for (size_t i = 0; i + 8 <= ids_len; i += 8) {
        uint64_t id;
        memcpy(&id, ids + i, sizeof id);
        if (!hash64_set(&f->ids, id, (uint32_t)f->events.len))
            return false;
    }
    vec_push(&f->events, ev);
    return true;
}

int perf_header_read_attrs(struct perf_file *f, const uint8_t *attrs, uint64_t size,
                           uint64_t attr_size, struct err *err)
{
    const struct perf_segment *seg = &f->segments.data[0];
    uint64_t section = sizeof(struct perf_format_section);
    if (attr_size < PERF_ATTR_SIZE_VER0 + section || attr_size > 65536)
        return err_set(err, MTUI_E_FORMAT, "its events are described in %llu bytes each, which no "
                       "perf writes", (unsigned long long)attr_size);
    for (uint64_t at = 0; size - at >= attr_size; at += attr_size) {
        const uint8_t *p = attrs + at;
        struct perf_format_section ids;
        memcpy(&ids, p + attr_size - section, sizeof ids);
        if (ids.offset > seg->size || ids.size > seg->size - ids.offset) {
            perf_file_set_partial(f, "the ids of event %zu lie outside the file", f->events.len);
            ids = (struct perf_format_section){0};
        }
        if (!perf_header_add_attr(f, p, (size_t)(attr_size - section), seg->data + ids.offset,
                                  (size_t)ids.size))
            return err_set(err, MTUI_E_FORMAT, "event %zu of its header cannot be read",
                           f->events.len);
    }
    return 0;
}

/* EVENT_UPDATE: for events of the pipe layout. */
void perf_header_update_event(struct perf_file *f, struct perf_cursor c)
{
    uint64_t type = perf_cursor_u64(&c);
    uint32_t ev = hash64_get(&f->ids, perf_cursor_u64(&c));
    if (type != PERF_FMT_EVENT_UPDATE_NAME || ev == HASH64_NONE)
        return;
    const char *name = perf_cursor_string(&c);
    if (!c.bad)
        f->events.data[ev].info.name = perf_file_keep(f, name, strlen(name));
}

/* ---- Features ---- */

/* u32 length, then that many bytes with a NUL inside; "" when it does not parse. */
static const char *read_string(struct perf_cursor *c)
{
    uint32_t len = perf_cursor_u32(c);
    const uint8_t *at = perf_cursor_bytes(c, len);
    struct perf_cursor s = perf_cursor_make(at ? at : c->p, at ? len : 0);
    const char *string = perf_cursor_string(&s);
    c->bad |= s.bad;
    return string;
}

static void keep_string(struct perf_file *f, const char **where, struct perf_cursor c)
{
    const char *s = read_string(&c);
    if (!c.bad && *s)
        *where = perf_file_keep(f, s, strlen(s));
}

/* u32 count, strings: joined by spaces. */
static void read_cmdline(struct perf_file *f, struct perf_cursor c)
{
    size_t cap = perf_cursor_left(&c) + 1, len = 0;
    char *line = malloc(cap); /* strings carry 5 bytes more here than in the line */
    uint32_t n = perf_cursor_u32(&c);
    if (!line)
        return;
    line[0] = '\0';
    for (uint32_t i = 0; i < n; i++) {
        const char *s = read_string(&c);
        if (c.bad)
            break;
        len += (size_t)snprintf(line + len, cap - len, "%s%s", i ? " " : "", s);
    }
    if (len)
        f->info.cmdline = perf_file_keep(f, line, len);
    free(line);
}

/* u32 events, u32 attr size; for each: attr, u32 ids, name, u64 id[]. In the order of the attrs; the
 * ids also tell those of a pipe whose attr record had none. */
static void read_event_desc(struct perf_file *f, struct perf_cursor c)
{
    uint32_t n = perf_cursor_u32(&c), attr_size = perf_cursor_u32(&c);
    for (uint32_t i = 0; i < n; i++) {
        perf_cursor_bytes(&c, attr_size);
        uint32_t nids = perf_cursor_u32(&c);
        const char *name = read_string(&c);
        uint32_t ev = i;
        for (uint32_t k = 0; k < nids && !c.bad; k++) {
            uint32_t by_id = hash64_get(&f->ids, perf_cursor_u64(&c));
            if (by_id != HASH64_NONE)
                ev = by_id;
        }
        if (c.bad)
            return;
        if (ev < f->events.len && *name)
            f->events.data[ev].info.name = perf_file_keep(f, name, strlen(name));
    }
}

static void read_pmu_mappings(struct perf_file *f, struct perf_cursor c)
{
    uint32_t n = perf_cursor_u32(&c);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t type = perf_cursor_u32(&c);
        const char *name = read_string(&c);
        if (c.bad)
            return;
        perf_file_keep(f, name, strlen(name));
        hash64_set(&f->pmu_names, type, (uint32_t)f->strings.len - 1);
    }
}

/* A list of records without a type: they are indexed and read as BUILD_ID records. */
static void read_build_ids(struct perf_file *f, const uint8_t *p, size_t len)
{
    f->build_ids = (struct perf_range){p, p + len};
    for (size_t at = 0; len - at >= sizeof(struct perf_event_header);) {
        struct perf_event_header h;
        struct perf_record rec;
        bool carries_time;
        memcpy(&h, p + at, sizeof h);
        if (h.size < sizeof h || h.size > len - at)
            return;
        if (!perf_record_parse(f, p + at, &rec, &carries_time) ||
            perf_file_index_add(f, 0, p + at) < 0)
            f->info.skipped_records++;
        at += h.size;
    }
}

void perf_header_read_feature(struct perf_file *f, uint64_t feature, const uint8_t *p, size_t len)
{
    struct perf_cursor c = perf_cursor_make(p, len);
    switch (feature) {
    case PERF_FEAT_TRACING_DATA:
        f->tracing_data = (struct perf_range){p, p + len};
        break;
    case PERF_FEAT_HOSTNAME:
        keep_string(f, &f->info.hostname, c);
        break;
    case PERF_FEAT_OSRELEASE:
        keep_string(f, &f->info.os_release, c);
        break;
    case PERF_FEAT_VERSION:
        keep_string(f, &f->info.perf_version, c);
        break;
    case PERF_FEAT_ARCH:
        keep_string(f, &f->info.arch, c);
        break;
    case PERF_FEAT_CMDLINE:
        read_cmdline(f, c);
        break;
    case PERF_FEAT_EVENT_DESC:
        read_event_desc(f, c);
        break;
    case PERF_FEAT_PMU_MAPPINGS:
        read_pmu_mappings(f, c);
        break;
    case PERF_FEAT_AUXTRACE:
        f->info.has_auxtrace = true;
        break;
    case PERF_FEAT_CLOCK_DATA:
        perf_cursor_u32(&c); /* version */
        f->info.clock_id = perf_cursor_u32(&c);
        f->info.has_clock_id = !c.bad;
        break;
    default:
        break;
    }
}

void perf_header_read_features(struct perf_file *f, uint64_t table, const uint64_t features[4])
{
    const struct perf_segment *seg = &f->segments.data[0];
    struct perf_cursor c = perf_cursor_make(seg->data + table, (size_t)(seg->size - table));
    for (unsigned i = 0; i < PERF_FEAT_COUNT; i++) {
        if (!(features[i / 64] >> i % 64 & 1))
            continue;
        struct perf_format_section s;
        s.offset = perf_cursor_u64(&c);
        s.size = perf_cursor_u64(&c);
        if (c.bad) {
            perf_file_set_partial(f, "the file ends inside its list of features");
            return;
        }
        if (s.offset > seg->size || s.size > seg->size - s.offset) {
            perf_file_set_partial(f, "feature %u of the header lies outside the file", i);
            continue;
        }
        if (i == PERF_FEAT_BUILD_ID)
            read_build_ids(f, seg->data + s.offset, (size_t)s.size);
        else
            perf_header_read_feature(f, i, seg->data + s.offset, (size_t)s.size);
    }
}

/* ---- Names for events without EVENT_DESC ---- */

static const char *const hardware_names[] = {
    "cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses",
    "bus-cycles", "stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles"};
static const char *const software_names[] = {
    "cpu-clock", "task-clock", "page-faults", "context-switches", "cpu-migrations", "minor-faults",
    "major-faults", "alignment-faults", "emulation-faults", "dummy", "bpf-output",
    "cgroup-switches"};

static const char *compose_name(struct perf_file *f, const struct perf_event_info *info)
{
    const size_t nhw = sizeof hardware_names / sizeof *hardware_names;
    const size_t nsw = sizeof software_names / sizeof *software_names;
    if (info->type == PERF_TYPE_HARDWARE && info->config < nhw)
        return hardware_names[info->config];
    if (info->type == PERF_TYPE_SOFTWARE && info->config < nsw)
        return software_names[info->config];
    uint32_t pmu = hash64_get(&f->pmu_names, info->type);
    char *name = pmu == HASH64_NONE
                     ? xasprintf("type %u config 0x%llx", info->type, (unsigned long long)info->config)
                     : xasprintf("%s/config=0x%llx/", f->strings.data[pmu],
                                 (unsigned long long)info->config);
    vec_push(&f->strings, name);
    return name;
}

static bool is_intel_pt(const struct perf_file *f, const struct perf_event_info *info)
{
    uint32_t pmu = hash64_get(&f->pmu_names, info->type);
    if (pmu != HASH64_NONE)
        return strcmp(f->strings.data[pmu], "intel_pt") == 0;
    return f->pt_type ? info->type == f->pt_type : strncmp(info->name, "intel_pt", 8) == 0;
}

void perf_header_finish(struct perf_file *f)
{
    for (size_t i = 0; i < f->events.len; i++) {
        struct perf_event *ev = &f->events.data[i];
        if (!ev->info.name)
            ev->info.name = compose_name(f, &ev->info);
        ev->info.is_intel_pt = is_intel_pt(f, &ev->info);
        if (ev->use_clockid && !f->info.has_clock_id) {
            f->info.has_clock_id = true;
            f->info.clock_id = (uint32_t)ev->clockid;
        }
    }
}
