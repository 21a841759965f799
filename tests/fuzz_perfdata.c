/* Fuzz target: a perf.data file from outside, through everything that reads its records: layouts, header,
 * order, compressed records, address spaces, call chains; trace data put together, cut into pieces and walked
 * (without any code). */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decode/image/callchain.h"
#include "decode/image/map_history.h"
#include "decode/perf/perf_file.h"
#include "decode/pt/pt_pieces.h"
#include "decode/pt/pt_switches.h"
#include "decode/pt/pt_walk.h"
#include "decode/perf/tracepoint.h"
#include "lib_seeds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static volatile uint64_t sink;

static void touch(const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        sink += ((const uint8_t *)bytes)[i];
}

static void look_at_sample(struct callchain *chain, const struct perf_record *r)
{
    const struct callframe *frames;
    size_t n = callchain_frames(chain, r, &frames);
    touch(frames, n * sizeof *frames);
    touch(r->u.sample.raw, r->u.sample.raw_len);
    touch(r->u.sample.branches, r->u.sample.nbranches * sizeof *r->u.sample.branches);
    touch(r->u.sample.regs, r->u.sample.nregs * sizeof *r->u.sample.regs);
    touch(r->u.sample.stack, r->u.sample.stack_len);
}

static void look_at_text(const struct perf_record *r)
{
    const char *text = r->kind == PERF_REC_MMAP              ? r->u.mmap.path
                       : r->kind == PERF_REC_COMM            ? r->u.comm.comm
                       : r->kind == PERF_REC_KSYMBOL         ? r->u.ksymbol.name
                       : r->kind == PERF_REC_BUILD_ID        ? r->u.build_id.path
                       : r->kind == PERF_REC_AUXTRACE_ERROR ? r->u.auxtrace_error.msg
                                                             : "";
    touch(text, strlen(text));
}

static void look_at_info(const struct perf_file *f)
{
    const struct perf_file_info *info = perf_file_info(f);
    const char *texts[] = {info->hostname, info->os_release, info->arch, info->perf_version,
                           info->cmdline, perf_file_partial(f)};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i])
            touch(texts[i], strlen(texts[i]));
    for (size_t i = 0; i < perf_file_event_count(f); i++)
        touch(perf_file_event(f, i)->name, strlen(perf_file_event(f, i)->name));
}

static void note_maps(struct map_history *h, const struct addrspaces *as, const struct perf_record *r)
{
    struct map_state maps = {0};
    size_t n;
    if (r->pid < 0)
        return;
    const struct addrspace_map *now = addrspaces_maps(as, r->pid, &n);
    if (map_history_note(h, r->pid, r->time_ns, addrspaces_generation(as, r->pid), now, n) < 0 ||
        map_history_at(h, r->pid, r->time_ns, &maps) < 0 || maps.len != n)
        abort();
    for (size_t i = 0; i < n; i++)
        if (maps.data[i]->start != now[i].start || maps.data[i]->end != now[i].end ||
            map_state_find(&maps, now[i].start) != maps.data[i])
            abort();
    map_state_free(&maps);
}

static size_t no_code(void *arg, uint64_t ip, uint8_t *out, size_t n)
{
    (void)arg, (void)ip, (void)out, (void)n;
    return 0;
}

static fn_id one_function(void *arg, uint64_t ip, uint64_t *offset)
{
    (void)arg;
    *offset = ip;
    return 0;
}

static void count_lost(void *arg, const struct pt_loss *loss)
{
    *(uint64_t *)arg += loss->bytes;
}

/* Every byte of every stream is walked or lost, and the streams are all that is not there twice. */
static void look_at_trace(struct pt_streams *streams, const struct pt_switches *switches)
{
    struct pt_clock clock = {0};
    struct pt_pieces pieces = {0};
    uint64_t done = 0, lost = 0, twice, all;
    struct pt_code code = {no_code, one_function, NULL};
    struct pt_walk_sinks sinks = {.loss = count_lost, .arg = &lost};
    if (pt_streams_finish(streams, NULL) < 0)
        abort();
    pt_streams_clock(streams, &clock);
    if (pt_pieces_cut(&pieces, streams, &clock, 64, pt_streams_per_cpu(streams)) < 0)
        abort();
    struct pt_nodes *nodes = pt_nodes_new(&code);
    struct pt_walk *w = pt_walk_new(nodes, &clock, &sinks);
    for (size_t i = 0; i < pieces.len; i++) {
        const struct pt_piece *p = &pieces.data[i];
        sink += (uint64_t)pt_switches_at(switches, p->stream->cpu, p->time_ns);
        pt_walk_stamps(w, &p->stream->stamps);
        pt_walk_run(w, p->stream->data, p->from, p->stop, p->stream->len, p->inner);
        done += pt_walk_bytes(w);
    }
    all = pt_streams_bytes(streams, &twice);
    if (done + lost + twice != all)
        abort();
    pt_walk_free(w);
    pt_nodes_free(nodes);
    pt_pieces_free(&pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct perf_file *f;
    struct perf_record r;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    int e = perf_file_open_fd(&f, fd, "fuzz", NULL);
    close(fd);
    if (e < 0)
        return 0;
    struct addrspaces *as = addrspaces_new(NULL);
    struct callchain *chain = callchain_new(f, as, NULL);
    uint64_t last = 0;
    look_at_info(f);
    struct map_history *history = map_history_new();
    struct pt_streams *streams = pt_streams_new();
    struct pt_switches *switches = pt_switches_new(f);
    bool is_pt = true;
    while (perf_file_next(f, &r, NULL) > 0) {
        size_t len = 0;
        if (r.time_ns < last || addrspaces_apply(as, &r, NULL) < 0 || pt_switches_apply(switches, &r) < 0)
            abort();
        last = r.time_ns;
        is_pt &= pt_streams_add(streams, f, &r, NULL) == 0;
        note_maps(history, as, &r);
        look_at_text(&r);
        if (r.kind == PERF_REC_SAMPLE) {
            look_at_sample(chain, &r);
            sink += addrspaces_find(as, r.pid, r.u.sample.ip, r.cpumode) != NULL;
        }
        const uint8_t *aux = perf_file_aux_data(f, &r, &len);
        if (aux)
            touch(aux, len);
        if (r.kind == PERF_REC_TEXT_POKE) {
            touch(r.u.text_poke.old_bytes, r.u.text_poke.old_len);
            touch(r.u.text_poke.new_bytes, r.u.text_poke.new_len);
        }
    }
    if (is_pt)
        look_at_trace(streams, switches);
    pt_switches_free(switches);
    pt_streams_free(streams);
    map_history_free(history);
    callchain_free(chain);
    addrspaces_free(as);
    perf_file_close(f);
    return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    seeds_write(seeds_perfdata);
    return 0;
}
