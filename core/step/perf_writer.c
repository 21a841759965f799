#include "core/step/perf_writer.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "core/record/perf_message.h"

/* The type number that stands for the intel_pt PMU: any dynamic number; it must be the same in the
 * attr and in AUXTRACE_INFO. */
#define PT_TYPE 8

#define PT_CONFIG_PT         (1u << 0)
#define PT_CONFIG_CYC        (1u << 1)
#define PT_CONFIG_MTC        (1u << 9)
#define PT_CONFIG_TSC        (1u << 10)
#define PT_CONFIG_NORETCOMP  (1u << 11)
#define PT_CONFIG_BRANCH     (1u << 13)
#define PT_CONFIG_MTC_PERIOD 14

#define RECORD_AUXTRACE_INFO 70
#define RECORD_AUXTRACE      71
#define AUXTRACE_INTEL_PT    1
#define RECORD_BUILD_ID      67

/* Bits of the features. */
#define HEADER_BUILD_ID 2  /* what `perf buildid-list` shows of a recording with trace data */
#define HEADER_AUXTRACE 18 /* without it perf finds no trace */

#define MISC_BUILD_ID_SIZE (1u << 15) /* the byte behind the build-id is its length */
#define BUILD_ID_BYTES     20
#define NAME_MAX_BYTES     4000
#define END_ROOM           4096 /* for the head of a buffer, and what follows the last one at its shortest */

#define PT_EVENT_ID    1001
#define DUMMY_EVENT_ID 1002

#define SAMPLE_TYPE                                                                                \
    (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

struct file_section {
    uint64_t offset, size;
};

struct file_header {
    char magic[8];
    uint64_t size, attr_size;
    struct file_section attrs, data, event_types;
    uint64_t features[4];
};

struct file_attr {
    struct perf_event_attr attr; /* PERF_ATTR_SIZE_VER7 bytes of it are on file */
    struct file_section ids;
};

/* The attr as perf 6.1 writes it; the header of the machine that builds may know more fields. */
#define ATTR_BYTES 128

/* Ends every sideband record (sample_id_all), in the order of perf_event_open(2). */
struct sample_id {
    uint32_t pid, tid;
    uint64_t time;
    uint32_t cpu, reserved;
    uint64_t identifier;
};

/* A record of the header's list of build-ids; behind it the path, padded to a multiple of NAME_ALIGN. */
struct build_id_record {
    struct perf_event_header h;
    int32_t pid; /* −1: this machine's */
    uint8_t bytes[BUILD_ID_BYTES], size, reserved[3];
};
#define NAME_ALIGN 64

/* A file that was mapped, for the header. */
struct listed_file {
    uint8_t build_id[BUILD_ID_BYTES];
    size_t build_id_len;
    char *path;
};

struct perf_writer {
    FILE *file;
    char *path;
    int failed_errno; /* the first failure */
    int short_errno;  /* why a buffer was cut */
    bool per_cpu, whole, newest;
    uint64_t data_offset, bytes;
    uint64_t kept; /* up to here it is on the disk, and ends with packets; 0: it has none */
    struct pt_encode_options encoding;
    VEC(struct listed_file) files;
};

static void put(struct perf_writer *w, const void *bytes, size_t len)
{
    if (w->failed_errno || !len)
        return;
    if (fwrite(bytes, 1, len, w->file) != len)
        w->failed_errno = errno ? errno : EIO;
    else
        w->bytes += len;
}

static void put_padded(struct perf_writer *w, const void *bytes, size_t len, size_t padded)
{
    static const char zeros[8];
    put(w, bytes, len);
    while (len < padded) {
        size_t n = padded - len < sizeof zeros ? padded - len : sizeof zeros;
        put(w, zeros, n);
        len += n;
    }
}

static size_t padded8(size_t len)
{
    return (len + 7) & ~(size_t)7;
}

/* ---- header ---- */

static uint64_t pt_config(const struct pt_encode_options *o)
{
    uint64_t c = PT_CONFIG_PT | PT_CONFIG_BRANCH;
    c |= o->tsc ? PT_CONFIG_TSC : 0;
    c |= o->cyc ? PT_CONFIG_CYC : 0;
    c |= o->mtc ? PT_CONFIG_MTC | (uint64_t)o->mtc_period << PT_CONFIG_MTC_PERIOD : 0;
    c |= o->ret_compression ? 0 : PT_CONFIG_NORETCOMP;
    return c;
}

static void put_attr(struct perf_writer *w, uint32_t type, uint64_t config, uint64_t ids_offset)
{
    struct perf_event_attr a;
    memset(&a, 0, sizeof a);
    a.type = type;
    a.size = ATTR_BYTES;
    a.config = config;
    a.sample_period = 1;
    a.sample_type = SAMPLE_TYPE;
    a.read_format = PERF_FORMAT_ID;
    a.disabled = 1;
    a.inherit = 1;
    a.exclude_kernel = 1;
    a.exclude_hv = 1;
    a.sample_id_all = 1;
    if (type == PERF_TYPE_SOFTWARE) {
        a.mmap = a.mmap2 = a.comm = a.comm_exec = a.task = 1;
        a.context_switch = w->per_cpu; /* goes with have_sched_switch = 2 below */
    }
    struct file_section ids = {ids_offset, sizeof(uint64_t)};
    put(w, &a, ATTR_BYTES);
    put(w, &ids, sizeof ids);
}

static void put_header(struct perf_writer *w, uint64_t data_size)
{
    const uint64_t attrs = sizeof(struct file_header), attr_size = ATTR_BYTES + 16;
    struct file_header h = {.size = sizeof h, .attr_size = attr_size};
    memcpy(h.magic, "PERFILE2", 8);
    h.attrs = (struct file_section){attrs, 2 * attr_size};
    h.data = (struct file_section){attrs + 2 * attr_size + 2 * sizeof(uint64_t), data_size};
    h.features[0] = 1u << HEADER_AUXTRACE | (w->files.len ? 1u << HEADER_BUILD_ID : 0);
    w->data_offset = h.data.offset;
    put(w, &h, sizeof h);
    uint64_t ids = attrs + 2 * attr_size, pt = PT_EVENT_ID, dummy = DUMMY_EVENT_ID;
    put_attr(w, PT_TYPE, pt_config(&w->encoding), ids);
    put_attr(w, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, ids + sizeof(uint64_t));
    put(w, &pt, sizeof pt);
    put(w, &dummy, sizeof dummy);
}

static void put_auxtrace_info(struct perf_writer *w)
{
    const struct pt_encode_options *o = &w->encoding;
    /* In the order of intel_pt_info_fill(). Time: one TSC tick is one nanosecond. */
    const uint64_t priv[] = {PT_TYPE,
                             0,                                /* time_shift */
                             1,                                /* time_mult */
                             0,                                /* time_zero */
                             1,                                /* cap_user_time_zero */
                             PT_CONFIG_TSC,
                             PT_CONFIG_NORETCOMP,
                             w->per_cpu ? 2 : 0,               /* have_sched_switch */
                             !w->whole,                        /* snapshot_mode */
                             w->per_cpu,                       /* per_cpu_mmaps */
                             o->mtc ? PT_CONFIG_MTC : 0,
                             0xfu << PT_CONFIG_MTC_PERIOD,     /* mtc_freq_bits */
                             PT_ENCODE_CTC_N,
                             PT_ENCODE_CTC_D,
                             o->cyc ? PT_CONFIG_CYC : 0,
                             PT_ENCODE_CBR,                    /* max_nonturbo_ratio */
                             0};                               /* filter_str_len */
    struct {
        struct perf_event_header h;
        uint32_t type, reserved;
    } r = {.h = {.type = RECORD_AUXTRACE_INFO, .size = sizeof r + sizeof priv},
           .type = AUXTRACE_INTEL_PT};
    put(w, &r, sizeof r);
    put(w, priv, sizeof priv);
}

int perf_writer_open(struct perf_writer **out, const char *path,
                     const struct perf_writer_options *options, struct err *err)
{
    FILE *f = fopen(path, "wbxe");
    if (!f) {
        const char *sentence = perf_message_of_write_error(errno);
        return sentence ? err_set(err, MTUI_E_IO, "%s (%s could not be created)", sentence, path)
                        : err_errno(err, errno, "cannot create %s", path);
    }
    struct perf_writer *w = xcalloc(1, sizeof *w);
    w->file = f;
    w->path = xstrdup(path);
    w->per_cpu = options->per_cpu;
    w->whole = options->whole;
    w->newest = options->newest;
    w->encoding = options->encoding;
    put_header(w, 0);
    put_auxtrace_info(w);
    *out = w;
    return 0;
}

/* ---- sideband ---- */

static void put_record(struct perf_writer *w, uint32_t type, uint16_t misc, const void *body,
                       size_t body_len, const char *name, const struct perf_writer_id *id)
{
    size_t name_len = name ? strnlen(name, NAME_MAX_BYTES) : 0, name_padded = name ? padded8(name_len + 1) : 0;
    struct sample_id sid = {.pid = (uint32_t)id->pid,
                            .tid = (uint32_t)id->tid,
                            .time = id->time_ns,
                            .cpu = (uint32_t)id->cpu,
                            .identifier = DUMMY_EVENT_ID};
    struct perf_event_header h = {.type = type, .misc = misc};
    h.size = (uint16_t)(sizeof h + body_len + name_padded + sizeof sid);
    put(w, &h, sizeof h);
    put(w, body, body_len);
    if (name)
        put_padded(w, name, name_len, name_padded);
    put(w, &sid, sizeof sid);
}

void perf_writer_comm(struct perf_writer *w, struct perf_writer_id id, const char *comm, bool exec)
{
    uint32_t body[] = {(uint32_t)id.pid, (uint32_t)id.tid};
    put_record(w, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0, body, sizeof body, comm,
               &id);
}

static void put_task(struct perf_writer *w, uint32_t type, const struct perf_writer_id *id,
                     pid_t ppid, pid_t ptid)
{
    struct {
        uint32_t pid, ppid, tid, ptid;
        uint64_t time;
    } body = {(uint32_t)id->pid, (uint32_t)ppid, (uint32_t)id->tid, (uint32_t)ptid, id->time_ns};
    put_record(w, type, 0, &body, sizeof body, NULL, id);
}

void perf_writer_fork(struct perf_writer *w, struct perf_writer_id id, pid_t ppid, pid_t ptid)
{
    put_task(w, PERF_RECORD_FORK, &id, ppid, ptid);
}

void perf_writer_exit(struct perf_writer *w, struct perf_writer_id id)
{
    put_task(w, PERF_RECORD_EXIT, &id, id.pid, id.tid);
}

void perf_writer_itrace_start(struct perf_writer *w, struct perf_writer_id id)
{
    uint32_t body[] = {(uint32_t)id.pid, (uint32_t)id.tid};
    put_record(w, PERF_RECORD_ITRACE_START, 0, body, sizeof body, NULL, &id);
}

void perf_writer_switch(struct perf_writer *w, struct perf_writer_id id, bool out)
{
    put_record(w, PERF_RECORD_SWITCH, out ? PERF_RECORD_MISC_SWITCH_OUT : 0, NULL, 0, NULL, &id);
}

void perf_writer_aux(struct perf_writer *w, struct perf_writer_id id, uint64_t offset, uint64_t len)
{
    uint64_t body[] = {offset, len, 0}; /* flags: nothing is missing */
    put_record(w, PERF_RECORD_AUX, 0, body, sizeof body, NULL, &id);
}

static void list_file(struct perf_writer *w, const struct perf_writer_mapping *m)
{
    struct listed_file f = {.build_id_len = m->build_id_len};
    for (size_t i = 0; i < w->files.len; i++)
        if (w->files.data[i].build_id_len == m->build_id_len && strcmp(w->files.data[i].path, m->path) == 0 &&
            memcmp(w->files.data[i].build_id, m->build_id, m->build_id_len) == 0)
            return;
    memcpy(f.build_id, m->build_id, m->build_id_len);
    f.path = xstrndup(m->path, NAME_MAX_BYTES);
    vec_push(&w->files, f);
}

void perf_writer_mmap(struct perf_writer *w, struct perf_writer_id id,
                      const struct perf_writer_mapping *m)
{
    struct {
        uint32_t pid, tid;
        uint64_t start, len, pgoff;
        union {
            struct {
                uint32_t major, minor;
                uint64_t ino, ino_generation;
            } inode;
            struct {
                uint8_t size, reserved[3], bytes[BUILD_ID_BYTES];
            } build_id;
        } file;
        uint32_t prot, flags;
    } body = {.pid = (uint32_t)id.pid,
              .tid = (uint32_t)id.tid,
              .start = m->start,
              .len = m->len,
              .pgoff = m->pgoff,
              .prot = m->prot,
              .flags = m->flags};
    uint16_t misc = PERF_RECORD_MISC_USER;
    if (m->build_id && m->build_id_len && m->build_id_len <= sizeof body.file.build_id.bytes) {
        misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
        body.file.build_id.size = (uint8_t)m->build_id_len;
        memcpy(body.file.build_id.bytes, m->build_id, m->build_id_len);
        list_file(w, m);
    } else {
        body.file.inode.major = m->major;
        body.file.inode.minor = m->minor;
        body.file.inode.ino = m->ino;
    }
    put_record(w, PERF_RECORD_MMAP2, misc, &body, sizeof body, m->path, &id);
}

/* A synchronisation point: sixteen bytes that stand nowhere else. */
static const uint8_t *find_psb(const uint8_t *data, size_t len)
{
    static const uint8_t psb[16] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};
    return memmem(data, len, psb, sizeof psb);
}

/* Of packets of which `room` bytes fit: up to the last synchronisation point, or from the first one on after which all
 * fits. Returns the number of bytes, 0: none. */
static size_t part_that_fits(const struct perf_writer *w, const uint8_t **data, size_t len, size_t room)
{
    const uint8_t *end = *data + room, *last = NULL;
    if (room >= len)
        return 0;
    if (w->newest) {
        const uint8_t *psb = find_psb(*data + len - room, room);
        size_t n = psb ? (size_t)(*data + len - psb) : 0;
        *data = psb ? psb : *data;
        return n;
    }
    for (const uint8_t *psb = *data; (psb = find_psb(psb, (size_t)(end - psb))) != NULL; psb++)
        last = psb;
    return last ? (size_t)(last - *data) : 0;
}

/* How many bytes of the disk the file had got from `start` on, when it was full. The file ends there again. */
static size_t give_back(struct perf_writer *w, uint64_t start)
{
    struct stat st;
    bool known = fstat(fileno(w->file), &st) == 0;
    (void)fclose(w->file); /* what waits in its buffer does not fit */
    w->file = truncate(w->path, (off_t)start) == 0 ? fopen(w->path, "rb+e") : NULL;
    if (!w->file || fseeko(w->file, 0, SEEK_END) != 0)
        return 0;
    return known && (uint64_t)st.st_size > start ? (size_t)((uint64_t)st.st_size - start) : 0;
}

static void put_auxtrace(struct perf_writer *w, struct perf_writer_id id, uint32_t idx, uint64_t offset,
                         const uint8_t *data, size_t len)
{
    struct {
        struct perf_event_header h;
        uint64_t size, offset, reference;
        uint32_t idx, tid, cpu, reserved;
    } r = {.h = {.type = RECORD_AUXTRACE, .size = sizeof r},
           .size = padded8(len), /* padding bytes are PT PAD packets */
           .offset = offset,
           .reference = id.time_ns ? id.time_ns : 1, /* with 0 perf decodes nothing */
           .idx = idx,
           .tid = w->per_cpu ? UINT32_MAX : (uint32_t)id.tid,
           .cpu = w->per_cpu ? (uint32_t)id.cpu : UINT32_MAX};
    put(w, &r, sizeof r);
    put_padded(w, data, len, padded8(len));
    if (!w->failed_errno && fflush(w->file) != 0)
        w->failed_errno = errno;
    if (!w->failed_errno)
        w->kept = w->bytes;
}

void perf_writer_auxtrace(struct perf_writer *w, struct perf_writer_id id, uint32_t idx,
                          uint64_t offset, const uint8_t *data, size_t len)
{
    uint64_t start = w->bytes;
    const uint8_t *part = data;
    if (w->failed_errno)
        return;
    put_auxtrace(w, id, idx, offset, data, len);
    if (!w->failed_errno)
        return;
    size_t room = give_back(w, start), n = room > END_ROOM ? part_that_fits(w, &part, len, room - END_ROOM) : 0;
    if (!n)
        return;
    w->short_errno = w->failed_errno;
    w->failed_errno = 0;
    w->bytes = start;
    put_auxtrace(w, id, idx, offset + (uint64_t)(part - data), part, n);
}

/* ---- the end ---- */

uint64_t perf_writer_bytes(const struct perf_writer *w)
{
    return w->bytes;
}

static size_t build_id_record_bytes(const struct listed_file *f)
{
    size_t name = strlen(f->path) + 1;
    return sizeof(struct build_id_record) + (name + NAME_ALIGN - 1) / NAME_ALIGN * NAME_ALIGN;
}

static void put_build_ids(struct perf_writer *w)
{
    for (size_t i = 0; i < w->files.len; i++) {
        const struct listed_file *f = &w->files.data[i];
        struct build_id_record r = {
            .h = {.type = RECORD_BUILD_ID, .misc = PERF_RECORD_MISC_USER | MISC_BUILD_ID_SIZE},
            .pid = -1,
            .size = (uint8_t)f->build_id_len};
        r.h.size = (uint16_t)build_id_record_bytes(f);
        memcpy(r.bytes, f->build_id, f->build_id_len);
        put(w, &r, sizeof r);
        put_padded(w, f->path, strlen(f->path), r.h.size - sizeof r);
    }
}

/* Behind the data: a section header for each feature, by bit, then their contents. AUXTRACE's is a count of
 * index entries. */
static void put_features(struct perf_writer *w)
{
    struct file_section build_ids = {.size = 0}, auxtrace = {.size = sizeof(uint64_t)};
    const uint64_t index_entries = 0, at = w->bytes;
    for (size_t i = 0; i < w->files.len; i++)
        build_ids.size += build_id_record_bytes(&w->files.data[i]);
    build_ids.offset = at + (w->files.len ? 2 : 1) * sizeof build_ids;
    auxtrace.offset = build_ids.offset + build_ids.size;
    if (w->files.len)
        put(w, &build_ids, sizeof build_ids);
    put(w, &auxtrace, sizeof auxtrace);
    put_build_ids(w);
    put(w, &index_entries, sizeof index_entries);
}

/* What follows the data, and the header that says where it ends. */
static void complete(struct perf_writer *w)
{
    uint64_t data_size = w->bytes - w->data_offset;
    put_features(w);
    if (!w->failed_errno && fseeko(w->file, 0, SEEK_SET) != 0)
        w->failed_errno = errno;
    put_header(w, data_size);
    if (w->file && fclose(w->file) != 0 && !w->failed_errno)
        w->failed_errno = errno;
    w->file = NULL;
}

static void forget_files(struct perf_writer *w)
{
    for (size_t i = 0; i < w->files.len; i++)
        free(w->files.data[i].path);
    w->files.len = 0;
}

/* Without what did not fit there is room for the end of a file, at its shortest: the records of the
 * mappings have the build-ids too. */
static bool cut(struct perf_writer *w)
{
    forget_files(w);
    w->failed_errno = 0;
    w->bytes = w->kept;
    if (!w->kept || truncate(w->path, (off_t)w->kept) != 0)
        return false;
    w->file = fopen(w->path, "rb+e");
    if (!w->file)
        return false;
    if (fseeko(w->file, 0, SEEK_END) != 0)
        w->failed_errno = errno;
    complete(w);
    return !w->failed_errno;
}

int perf_writer_close(struct perf_writer *w, struct err *err)
{
    int rc = 0;
    complete(w);
    if (w->failed_errno || w->short_errno) {
        int why = w->short_errno ? w->short_errno : w->failed_errno;
        const char *sentence = perf_message_of_write_error(why);
        sentence = sentence ? sentence : strerror(why);
        bool kept = !w->failed_errno || cut(w);
        rc = err_set(err, MTUI_E_IO, "%s (%s could not be written whole%s)", sentence, w->path,
                     kept ? "; what fits of it is kept" : "");
        if (!kept)
            unlink(w->path);
    }
    forget_files(w);
    vec_free(&w->files);
    free(w->path);
    free(w);
    return rc;
}
