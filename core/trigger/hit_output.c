#include "core/trigger/hit_output.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/machine/perf_event.h"

#define UPROBE_MULTI   48  /* BPF_TRACE_UPROBE_MULTI of linux/bpf.h since 6.6 */
#define RING_PAGES_MAX 256 /* about 6500 hits: a tenth of a second of a hot trigger */

/* Of union bpf_attr, link_create with its uprobe_multi. */
struct uprobe_multi {
    uint32_t prog_fd, target_fd, attach_type, flags;
    uint64_t path, offsets, ref_ctr_offsets, cookies;
    uint32_t count, multi_flags, pid, pad;
};

struct output_cpu {
    int fd;
    struct perf_ring ring;
};

struct hit_output {
    int map;
    bool no_lost_count; /* Linux < 6.0 */
    size_t n;
    struct output_cpu *cpus;
};

static int bpf(int cmd, union bpf_attr *attr)
{
    return (int)syscall(SYS_bpf, cmd, attr, sizeof *attr);
}

static int refused(struct err *err, int errno_value, const char *what)
{
    int code = errno_value == EPERM || errno_value == EACCES ? MTUI_E_PERM : MTUI_E_NOTSUP;
    return err_set(err, code, "%s: %s (BPF needs CAP_BPF and CAP_PERFMON)", what,
                   strerror(errno_value));
}

/* A CPU that is offline has no ring; a hit there cannot happen. */
static int open_cpu(struct hit_output *o, int cpu, size_t pages, struct err *err)
{
    struct perf_event_attr attr = {
        .size = sizeof attr, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_BPF_OUTPUT};
    perf_event_sample_hits(&attr);
    attr.sample_type |= PERF_SAMPLE_RAW;
    attr.read_format = o->no_lost_count ? 0 : PERF_FORMAT_LOST;
    int fd = perf_event_open(&attr, -1, cpu);
    if (fd < 0 && errno == EINVAL && attr.read_format) {
        o->no_lost_count = true;
        attr.read_format = 0;
        fd = perf_event_open(&attr, -1, cpu);
    }
    if (fd < 0)
        return errno == ENODEV ? 0 : refused(err, errno, "opening a ring for hits");
    struct output_cpu c = {.fd = fd};
    int rc = perf_ring_map(&c.ring, fd, pages, err);
    uint32_t key = (uint32_t)cpu;
    union bpf_attr update;
    memset(&update, 0, sizeof update);
    update.map_fd = (uint32_t)o->map;
    update.key = (uint64_t)(uintptr_t)&key;
    update.value = (uint64_t)(uintptr_t)&fd;
    if (rc == 0 && bpf(BPF_MAP_UPDATE_ELEM, &update) != 0)
        rc = refused(err, errno, "a ring for hits");
    if (rc < 0) {
        perf_ring_unmap(&c.ring);
        (void)close(fd);
        return rc;
    }
    o->cpus[o->n++] = c;
    return 0;
}

int hit_output_new(size_t ring_bytes, struct hit_output **out, struct err *err)
{
    long configured = sysconf(_SC_NPROCESSORS_CONF);
    size_t cpus = configured > 0 ? (size_t)configured : 1;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = RING_PAGES_MAX;
    while (pages > 1 && pages * page * cpus > ring_bytes)
        pages /= 2;

    union bpf_attr create;
    memset(&create, 0, sizeof create);
    create.map_type = BPF_MAP_TYPE_PERF_EVENT_ARRAY;
    create.key_size = create.value_size = 4;
    create.max_entries = (uint32_t)cpus;
    int map = bpf(BPF_MAP_CREATE, &create);
    if (map < 0)
        return refused(err, errno, "BPF");
    struct hit_output *o = xcalloc(1, sizeof *o);
    o->map = map;
    o->cpus = xcalloc(cpus, sizeof *o->cpus);
    int rc = 0;
    for (size_t i = 0; i < cpus && rc == 0; i++)
        rc = open_cpu(o, (int)i, pages, err);
    if (rc < 0) {
        hit_output_free(o);
        return rc;
    }
    *out = o;
    return 0;
}

void hit_output_free(struct hit_output *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->n; i++) {
        perf_ring_unmap(&o->cpus[i].ring);
        (void)close(o->cpus[i].fd);
    }
    (void)close(o->map);
    free(o->cpus);
    free(o);
}

#define INSN(op, dst, src, offset, immediate)                                                      \
    {                                                                                              \
        .code = (op), .dst_reg = (dst), .src_reg = (src), .off = (offset), .imm = (immediate)      \
    }

#define LOAD_64(reg, src, low, high) INSN(BPF_LD | BPF_DW | BPF_IMM, reg, src, 0, low), INSN(0, 0, 0, 0, high)
#define MOVE(to, from)               INSN(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0)
#define CALL(function)               INSN(BPF_JMP | BPF_CALL, 0, 0, 0, function)

/* perf_event_output(ctx, map, BPF_F_CURRENT_CPU, &number, 8); return 0; where the number is the one given, or, for a
 * link, that of the place. */
static int load_program(int map, bool linked, uint64_t number)
{
    int low = (int)(uint32_t)number, high = (int)(uint32_t)(number >> 32);
    struct bpf_insn given[] = {LOAD_64(BPF_REG_0, 0, low, high)};
    struct bpf_insn cookie[] = {CALL(BPF_FUNC_get_attach_cookie), MOVE(BPF_REG_0, BPF_REG_0)};
    struct bpf_insn code[] = {
        MOVE(BPF_REG_6, BPF_REG_1),
        INSN(0, 0, 0, 0, 0),
        INSN(0, 0, 0, 0, 0),
        INSN(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, BPF_REG_0, -8, 0),
        MOVE(BPF_REG_1, BPF_REG_6),
        LOAD_64(BPF_REG_2, BPF_PSEUDO_MAP_FD, map, 0),
        INSN(BPF_ALU | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, -1), /* 32 bits, zero-extended */
        MOVE(BPF_REG_4, BPF_REG_10),
        INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_4, 0, 0, -8),
        INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_5, 0, 0, 8),
        CALL(BPF_FUNC_perf_event_output),
        INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0),
        INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
    };
    memcpy(code + 1, linked ? cookie : given, sizeof given);
    union bpf_attr load;
    memset(&load, 0, sizeof load);
    load.prog_type = BPF_PROG_TYPE_KPROBE;
    load.expected_attach_type = linked ? UPROBE_MULTI : 0;
    load.insns = (uint64_t)(uintptr_t)code;
    load.insn_cnt = sizeof code / sizeof code[0];
    load.license = (uint64_t)(uintptr_t) "GPL"; /* perf_event_output is for GPL programs only */
    return bpf(BPF_PROG_LOAD, &load);
}

static bool has_links(void)
{
    struct utsname u;
    unsigned major = 0, minor = 0;
    return uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
           (major > 6 || (major == 6 && minor >= 12));
}

int hit_output_link(struct hit_output *o, const char *path, pid_t pid, const uint64_t *offsets,
                    const uint64_t *numbers, size_t n, struct err *err)
{
    if (!has_links())
        return err_set(err, MTUI_E_NOTSUP, "this kernel is older than 6.12");
    int prog = load_program(o->map, true, 0);
    if (prog < 0)
        return refused(err, errno, "loading the program that reports hits");
    struct uprobe_multi link = {.prog_fd = (uint32_t)prog,
                                .attach_type = UPROBE_MULTI,
                                .path = (uint64_t)(uintptr_t)path,
                                .offsets = (uint64_t)(uintptr_t)offsets,
                                .cookies = (uint64_t)(uintptr_t)numbers,
                                .count = (uint32_t)n,
                                .pid = (uint32_t)pid};
    union bpf_attr create;
    memset(&create, 0, sizeof create);
    memcpy(&create, &link, sizeof link);
    int fd = bpf(BPF_LINK_CREATE, &create);
    int errno_value = errno;
    (void)close(prog); /* the link holds it */
    return fd >= 0 ? fd : refused(err, errno_value, "linking the program that reports hits");
}

int hit_output_bind(struct hit_output *o, int event_fd, uint64_t number, struct err *err)
{
    int prog = load_program(o->map, false, number);
    if (prog < 0)
        return refused(err, errno, "loading the program that reports hits");
    int rc = ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, prog);
    int errno_value = errno;
    (void)close(prog); /* the event holds it */
    return rc == 0 ? 0 : refused(err, errno_value, "attaching the program that reports hits");
}

size_t hit_output_count(const struct hit_output *o)
{
    return o->n;
}

struct perf_ring *hit_output_ring(struct hit_output *o, size_t i)
{
    return &o->cpus[i].ring;
}

int hit_output_fd(const struct hit_output *o, size_t i)
{
    return o->cpus[i].fd;
}

bool hit_output_lost(const struct hit_output *o, uint64_t *lost)
{
    uint64_t sum = 0, v[2]; /* value, lost */
    if (o->no_lost_count)
        return false;
    for (size_t i = 0; i < o->n; i++)
        if (read(o->cpus[i].fd, v, sizeof v) == sizeof v)
            sum += v[1];
    *lost = sum;
    return true;
}

size_t hit_output_bytes(const struct hit_output *o)
{
    size_t bytes = 0;
    for (size_t i = 0; i < o->n; i++)
        bytes += o->cpus[i].ring.size;
    return bytes;
}
