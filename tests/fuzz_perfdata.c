/* Fuzz target: a perf.data file from outside, through everything that reads its records: layouts, header,
 * order, compressed records, address spaces, call chains. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decode/callchain.h"
#include "decode/perf_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    while (perf_file_next(f, &r, NULL) > 0) {
        size_t len = 0;
        if (r.time_ns < last || addrspaces_apply(as, &r, NULL) < 0)
            abort();
        last = r.time_ns;
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
    callchain_free(chain);
    addrspaces_free(as);
    perf_file_close(f);
    return 0;
}
