/* A perf that does what it is told to do wrong. It takes perf's command line, speaks its control
 * protocol, answers its signals and writes files that perf's own tools open.
 *
 *   FAKEPERF_VERSION  what --version prints (default "perf version 6.1.0")
 *   FAKEPERF_LOG      a file that gets a line for each command and signal received
 *   FAKEPERF          comma-separated:
 *     ack-late=MS       every answer comes that late        late-start=MS  a start without handlers
 *     snap-late=MS      the answer to `snapshot` does       no-nul         "ack\n" without NUL
 *     split-ack         the answer in two writes            no-ack         no answer to anything
 *     no-ack-stop       no answer to `stop`, and no stop    stop-eof       `stop` answered by EOF
 *     die-on-snapshot   exits on reading `snapshot`         no-file        takes snapshots, writes
 * none flood             1 MB to stderr, then exit 1         enospc         says so at the
 * snapshot, exit 255 hang-dump         a snapshot never ends               slow-dump=MS   it takes
 * that long loud              prints without end                  refuse         "Permission error
 * mapping pages"
 *
 * It leaves at once, whatever it does: SIGHUP with status 0, SIGUSR1 with 3, SIGALRM with 3 and a word.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t usr2, done, term_signal;

static void on_usr2(int sig)
{
    (void)sig;
    usr2 = 1;
}

static void on_term(int sig)
{
    done = 1;
    term_signal = sig;
}

static void on_leave(int sig)
{
    static const char word[] = "the fake perf is tired\n";
    if (sig == SIGALRM && write(2, word, sizeof word - 1) < 0)
        _exit(96);
    _exit(sig == SIGHUP ? 0 : 3);
}

static const char *modes, *output, *base;
static int ctl_fd = -1, ack_fd = -1, data_fd = -1;
static int snapshot_mode, at_exit, switch_output, overwrite, directory;
static uint64_t data_bytes;
static unsigned dumps;

static int mode(const char *name, int *value)
{
    size_t len = strlen(name);
    for (const char *at = modes; at && *at;) {
        if (!strncmp(at, name, len) && (at[len] == ',' || at[len] == '=' || !at[len])) {
            if (value)
                *value = at[len] == '=' ? atoi(at + len + 1) : 0;
            return 1;
        }
        at = strchr(at, ',');
        at += at != NULL;
    }
    return 0;
}

/* Or until it is to finish. */
static void wait_ms(int ms)
{
    struct timespec ts = {ms / 1000, (long)(ms % 1000) * 1000000};
    while (!done && nanosleep(&ts, &ts) < 0 && errno == EINTR)
        ;
}

static void log_line(const char *what)
{
    const char *path = getenv("FAKEPERF_LOG");
    if (!path)
        return;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dprintf(fd, "%s\n", what);
    close(fd);
}

static void put(const void *data, size_t len)
{
    if (write(data_fd, data, len) != (ssize_t)len)
        _exit(99);
}

/* ---- files ---- */

#define ID          77u
#define DATA_OFFSET (104 + 8 + 144)

/* The header, one attr and its id: as perf writes it at the start, data size 0. */
static void put_header(uint64_t data_size)
{
    unsigned char head[DATA_OFFSET] = "PERFILE2";
    uint64_t u64;
#define AT(offset, value) (u64 = (value), memcpy(head + (offset), &u64, 8))
    AT(8, 104);
    AT(16, 144);         /* attr_size: attr and its ids section */
    AT(24, 112);         /* attrs at */
    AT(32, 144);         /* bytes of them */
    AT(40, DATA_OFFSET); /* data */
    AT(48, data_size);
    AT(104, ID);                      /* ids */
    AT(112, 1 | (uint64_t)128 << 32); /* attr: software, size 128 */
    if (snapshot_mode)
        AT(112, 8 | (uint64_t)128 << 32);         /* the type that an intel_pt PMU would have */
    AT(120, 0);                                   /* cpu-clock */
    AT(128, 1);                                   /* sample_period */
    AT(136, 1u << 16 | 1 << 0 | 1 << 1 | 1 << 2); /* IDENTIFIER, IP, TID, TIME */
    AT(152, 1ull << 18);                          /* sample_id_all */
    AT(240, 104);                                 /* its ids */
    AT(248, 8);
    lseek(data_fd, 0, SEEK_SET);
    put(head, sizeof head);
}

static void put_record(uint32_t type, const void *body, size_t len)
{
    struct {
        uint32_t type;
        uint16_t misc, size;
    } h = {type, 0, (uint16_t)(8 + len)};
    put(&h, sizeof h);
    put(body, len);
    data_bytes += 8 + len;
}

static void put_comm(const char *name)
{
    struct {
        uint32_t pid, tid;
        char comm[16];
        uint32_t id_pid, id_tid;
        uint64_t time, id;
    } c = {1, 1, "", 1, 1, 1000 + dumps, ID};
    snprintf(c.comm, sizeof c.comm, "%s", name);
    put_record(3, &c, sizeof c);
}

static void open_data(void)
{
    data_fd = open(base, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (data_fd < 0) {
        fprintf(stderr, "failed to open %s: %s\n", base, strerror(errno));
        exit(255);
    }
    data_bytes = 0;
}

static void begin_file(void)
{
    open_data();
    put_header(0);
    put_comm("target");
    if (snapshot_mode) {
        struct {
            uint32_t type, reserved;
            uint64_t priv[17];
        } info = {1, 0, {8, 0, 1, 0, 1, 10, 11, 2, 1, 1, 9, 14, 2, 1, 1, 0, 0}};
        put_record(70, &info, sizeof info);
    }
}

static void finish_file(void)
{
    uint64_t end = (uint64_t)lseek(data_fd, 0, SEEK_END);
    put_header(end - DATA_OFFSET);
    close(data_fd);
    data_fd = -1;
}

/* Two buffers, the second one padded; their bytes carry the number of the snapshot. */
static void put_aux(void)
{
    static unsigned char buffer[4096];
    for (uint32_t i = 0; i < 2; i++) {
        memset(buffer, 0, sizeof buffer);
        buffer[0] = (unsigned char)(dumps + 1);
        struct {
            uint32_t type;
            uint16_t misc, header_size;
            uint64_t size, offset, reference;
            uint32_t idx, tid, cpu, reserved;
        } a = {71, 0, 48, sizeof buffer, dumps * sizeof buffer, 1 + dumps, i, ~0u, i, 0};
        put(&a, sizeof a);
        put(buffer, sizeof buffer);
        data_bytes += sizeof a + sizeof buffer;
    }
    put_comm("sideband");
    dumps++;
}

static void dump(int last)
{
    char to[4096];
    snprintf(to, sizeof to, "%s.2026112900%06u", base, dumps + 1);
    finish_file();
    if (rename(base, to) < 0)
        _exit(98);
    dumps++;
    fprintf(stderr, "[ perf record: dump data: Woken up 0 times ]\n");
    fprintf(stderr, "[ perf record: Dump %s.2026112900%06u ]\n", base, dumps);
    if (!last)
        begin_file();
}

static void take_snapshot(void)
{
    int ms;
    if (mode("enospc", NULL)) {
        for (int i = 0; i < 14; i++)
            fprintf(stderr, "failed to write perf data, error: No space left on device\n");
        exit(255);
    }
    if (mode("hang-dump", NULL))
        for (;;)
            pause();
    if (mode("slow-dump", &ms))
        wait_ms(ms);
    if (mode("no-file", NULL))
        return;
    if (snapshot_mode && !at_exit)
        put_aux();
    if (switch_output)
        dump(0);
}

/* ---- protocol ---- */

static void answer(int ms)
{
    if (mode("no-ack", NULL))
        return;
    if (ms || mode("ack-late", &ms))
        wait_ms(ms);
    if (mode("split-ack", NULL)) {
        if (write(ack_fd, "ac", 2) != 2)
            _exit(97);
        wait_ms(20);
        if (write(ack_fd, "k\n", 3) != 3)
            _exit(97);
        return;
    }
    size_t len = mode("no-nul", NULL) ? 4 : 5;
    if (write(ack_fd, "ack\n", len) != (ssize_t)len)
        _exit(97);
}

/* Like perf: a byte at a time up to the newline; what comes in two pieces is two commands. */
static void take_command(void)
{
    char word[64] = "";
    size_t len = 0;
    while (len + 1 < sizeof word && read(ctl_fd, word + len, 1) == 1 && word[len] != '\n')
        len++;
    word[len] = '\0';
    if (!len) {
        fprintf(stderr, "pollfd index mismatch\n");
        exit(234);
    }
    log_line(word);
    int ms = 0;
    if (!strcmp(word, "snapshot")) {
        if (mode("die-on-snapshot", NULL))
            exit(1);
        mode("snap-late", &ms);
        answer(ms);
        if (snapshot_mode)
            take_snapshot();
    } else if (!strcmp(word, "stop")) {
        if (mode("no-ack-stop", NULL))
            return;
        if (!mode("stop-eof", NULL))
            answer(0);
        done = 1;
    } else if (!strcmp(word, "ping") || !strcmp(word, "enable") || !strcmp(word, "disable")) {
        answer(0);
    }
}

static void main_loop(pid_t target)
{
    int pidfd = target ? (int)syscall(SYS_pidfd_open, target, 0) : -1;
    if (target && pidfd < 0) {
        fprintf(stderr, "Couldn't create thread/CPU maps: No such process\n");
        exit(244);
    }
    while (!done) {
        struct pollfd fds[] = {{.fd = ctl_fd, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
        if (usr2) {
            usr2 = 0;
            log_line("SIGUSR2");
            take_snapshot();
        }
        if (mode("loud", NULL))
            for (int i = 0; i < 2000; i++)
                fprintf(stderr, "line %d of the noise\n", i);
        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[0].revents)
            take_command();
        if (fds[1].revents)
            done = 1;
    }
    if (ctl_fd >= 0) {
        close(ctl_fd);
        close(ack_fd);
    }
    if (at_exit && !mode("no-file", NULL))
        put_aux();
    if (switch_output)
        dump(1);
    else
        finish_file();
    fprintf(stderr, "[ perf record: Captured and wrote 0.001 MB %s ]\n", base);
}

static pid_t parse(int argc, char **argv)
{
    pid_t target = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-o") && i + 1 < argc)
            output = argv[++i];
        else if ((!strcmp(argv[i], "-p") || !strcmp(argv[i], "-t")) && i + 1 < argc)
            target = atoi(argv[++i]);
        else if (sscanf(argv[i], "--control=fd:%d,%d", &ctl_fd, &ack_fd) == 2)
            continue;
        else if (!strcmp(argv[i], "--snapshot"))
            snapshot_mode = 1;
        else if (!strcmp(argv[i], "--snapshot=e"))
            snapshot_mode = at_exit = 1;
        else if (!strcmp(argv[i], "--switch-output=signal"))
            switch_output = 1;
        else if (!strcmp(argv[i], "--overwrite"))
            overwrite = 1;
        else if (!strcmp(argv[i], "--kcore"))
            directory = 1;
    }
    return target;
}

int main(int argc, char **argv)
{
    int ms;
    modes = getenv("FAKEPERF");
    if (argc > 1 && !strcmp(argv[1], "--version")) {
        const char *version = getenv("FAKEPERF_VERSION");
        if (mode("hang-version", NULL))
            pause();
        puts(version ? version : "perf version 6.1.0");
        return 0;
    }
    static const int leaving[] = {SIGHUP, SIGUSR1, SIGALRM};
    for (int i = 0; i < 3; i++)
        sigaction(leaving[i], &(struct sigaction){.sa_handler = on_leave}, NULL);
    pid_t target = parse(argc, argv);
    if (mode("late-start", &ms))
        wait_ms(ms);
    if (mode("flood", NULL)) {
        for (int i = 0; i < 16384; i++)
            fprintf(stderr, "%063d\n", i);
        return 1;
    }
    if (mode("refuse", NULL)) {
        fprintf(stderr,
                "Permission error mapping pages.\nConsider increasing "
                "/proc/sys/kernel/perf_event_mlock_kb,\nor try again with a smaller value of "
                "-m/--mmap_pages.\n(current value: 16384,0)\n");
        return 255;
    }
    if (!output)
        return 129;
    base = output;
    if (directory) {
        char *inner = malloc(strlen(output) + 16);
        if (mkdirat(AT_FDCWD, output, 0700) < 0)
            return 255;
        sprintf(inner, "%s/kcore_dir", output);
        mkdirat(AT_FDCWD, inner, 0700);
        sprintf(inner, "%s/data", output);
        base = inner;
    }
    struct sigaction usr2_action = {.sa_handler = on_usr2}, term = {.sa_handler = on_term};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGTERM, &term, NULL);
    sigaction(SIGINT, &term, NULL);
    sigaction(SIGUSR2, snapshot_mode || switch_output ? &usr2_action : &ignore, NULL);
    begin_file();
    main_loop(target);
    if (term_signal) {
        signal(term_signal, SIG_DFL);
        raise(term_signal);
    }
    return 0;
}
