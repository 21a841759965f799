/* What the kernel refuses, and the sentence that helps: by level, capability, seccomp filter and
 * security module, on machines that are made up and on this one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/doctor/capability.h"
#include "core/trigger/hwbreak.h"
#include "core/machine/perf_event.h"
#include "core/machine/program_rights.h"
#include "core/machine/ptrace_refusal.h"
#include "core/trigger/uprobe.h"
#include "tests/lib_program.h"

/* ---- Made up ---- */

#define PERFMON    (1ull << CAP_PERFMON)
#define ADMIN      (1ull << CAP_SYS_ADMIN)
#define SYS_PTRACE (1ull << CAP_SYS_PTRACE)

static void refusal(long paranoid, unsigned long long caps, int seccomp, int errno_value, int code,
                    const char *says)
{
    char *root = program_mkdir(), text[300];
    struct err err = {0};
    assert_true(program_shell(root, "mkdir -p sys/kernel self"));
    snprintf(text, sizeof text, "%ld\n", paranoid);
    program_write(root, "sys/kernel/perf_event_paranoid", text);
    snprintf(text, sizeof text,
             "Name:\tx\nCapEff:\t%016llx\nCapBnd:\tffffffffffffffff\nSeccomp:\t%d\n", caps,
             seccomp);
    program_write(root, "self/status", text);
    assert_int_equal(perf_event_explain(&err, errno_value, root, "arming f"), code);
    if (!strstr(err.text, says) || strncmp(err.text, "arming f: ", 10) != 0)
        fail_msg("\"%s\" lacks \"%s\"", err.text, says);
    program_rmdir(root);
}

static void field_H4_H5_H6_each_refusal_has_its_sentence(void **state)
{
    (void)state;
    static const long levels[] = {3, 4,
                                  77}; /* Debian's and Ubuntu's own, and one that nobody knows */
    for (size_t i = 0; i < 3; i++) {
        char says[80];
        snprintf(says, sizeof says, "perf_event_paranoid is %ld, which forbids", levels[i]);
        refusal(levels[i], 0, 0, EACCES, MTUI_E_PERM, says);
        refusal(levels[i], 0, 0, EACCES, MTUI_E_PERM, "sysctl kernel.perf_event_paranoid=1");
    }
    refusal(2, 0, 0, EACCES, MTUI_E_PERM, "no CAP_PERFMON in effect (perf_event_paranoid is 2)");
    refusal(2, 0, 2, EPERM, MTUI_E_PERM, "a seccomp filter is in force (containers");
    refusal(4, PERFMON, 2, EPERM, MTUI_E_PERM,
            "although CAP_PERFMON is in effect: a seccomp filter");
    refusal(4, ADMIN, 0, EPERM, MTUI_E_PERM, "other users' processes need CAP_SYS_PTRACE");
    refusal(2, PERFMON | SYS_PTRACE, 0, EACCES, MTUI_E_PERM,
            "some kernels want CAP_SYS_ADMIN for uprobes");
    refusal(2, ADMIN | SYS_PTRACE, 0, EACCES, MTUI_E_PERM, "a security module");
    refusal(2, 0, 0, ENOSYS, MTUI_E_NOTSUP, "seccomp filter hides it");
}

/* A process of `user` with capabilities and a tracer, looked at by one of user 1000 with others. */
static void no_look(unsigned user, unsigned long long its, int tracer, unsigned long long ours, int seccomp, int yama,
                    bool attach, const char *says)
{
    char *root = program_mkdir(), text[300];
    struct err err = {0};
    assert_true(program_shell(root, "mkdir -p sys/kernel/yama self 77"));
    snprintf(text, sizeof text, "%d\n", yama);
    program_write(root, "sys/kernel/yama/ptrace_scope", text);
    snprintf(text, sizeof text, "Uid:\t1000\t1000\t1000\t1000\nCapPrm:\t%016llx\nCapEff:\t%016llx\nSeccomp:\t%d\n", ours,
             ours, seccomp);
    program_write(root, "self/status", text);
    snprintf(text, sizeof text, "TracerPid:\t%d\nUid:\t5\t%u\t5\t5\nCapPrm:\t%016llx\n", tracer, user, its);
    program_write(root, "77/status", text);
    if (geteuid() == 0 && strcmp(says, "not dumpable") != 0)
        assert_true(program_shell(root, "chown %u 77/status", user));
    assert_int_equal(ptrace_refusal_explain(&err, EPERM, root, 77, attach, "open it"), MTUI_E_PERM);
    if (!strstr(err.text, says) || strncmp(err.text, "open it: refused (Operation not permitted): ", 44) != 0)
        fail_msg("\"%s\" lacks \"%s\"", err.text, says);
    program_rmdir(root);
}

static void field_H6_a_process_that_may_not_be_traced(void **state)
{
    (void)state;
    no_look(1000, 0, 42, SYS_PTRACE, 0, 0, true, "process 42 traces it already");
    no_look(1000, 0, 42, 0, 0, 0, false, "a security module"); /* a tracer does not forbid to look */
    no_look(1000, 0, 0, SYS_PTRACE, 0, 3, true, "ptrace_scope is 3, which forbids it to everyone");
    no_look(1000, 0, 0, SYS_PTRACE, 2, 0, true, "seccomp filter is in force here");
    no_look(33, 0, 0, 0, 0, 1, true, "it belongs to user 33; run as root");
    no_look(1000, 0, 0, 0, 0, 1, true, "ptrace_scope is 1; run as root, or sysctl");
    no_look(1000, ADMIN, 0, 0, 0, 1, false, "it has capabilities that mtui lacks (0x200000 in CapPrm");
    no_look(0, ADMIN | SYS_PTRACE, 0, SYS_PTRACE, 0, 0, false, "although CAP_SYS_PTRACE is in effect: it has capabilities");
    no_look(0, SYS_PTRACE, 0, SYS_PTRACE, 0, 0, false, "although CAP_SYS_PTRACE is in effect: a user namespace");
    if (geteuid() == 0) /* the files of such a process are root's */
        no_look(1000, 0, 0, 0, 0, 0, false, "not dumpable");
}

static void field_H6_a_program_that_gains_rights(void **state)
{
    (void)state;
    char *dir = program_mkdir(), what[80] = "", *path = xasprintf("%s/su", dir), want[80];
    program_write(dir, "su", "x");
    uid_t owner = geteuid();
    gid_t group = getegid();
    assert_int_equal(chmod(path, 0755), 0);
    assert_false(program_rights_gained(path, owner + 1, group + 1, what, sizeof what));
    assert_int_equal(chmod(path, 04755), 0);
    assert_false(program_rights_gained(path, owner, group, what, sizeof what)); /* has them already */
    if (program_rights_gained(path, owner + 1, group, what, sizeof what)) { /* else mounted without */
        snprintf(want, sizeof want, "is setuid (user %u)", (unsigned)owner);
        assert_string_equal(what, want);
        assert_int_equal(chmod(path, 02755), 0);
        assert_true(program_rights_gained(path, owner + 1, group + 1, what, sizeof what));
        snprintf(want, sizeof want, "is setgid (group %u)", (unsigned)group);
        assert_string_equal(what, want);
        assert_int_equal(chmod(path, 02745), 0); /* not executable by the group: mandatory locking */
        assert_false(program_rights_gained(path, owner + 1, group + 1, what, sizeof what));
    }
    free(path);
    program_rmdir(dir);
}

static void field_B10_breakpoints_in_use_are_told(void **state)
{
    (void)state;
    refusal(2, PERFMON, 0, ENOSPC, MTUI_E_LIMIT,
            "all hardware breakpoint slots of the thread are in use");
}

/* ---- This machine ---- */

/* Runs it in a child; its exit status. */
static int in_child(int (*body)(void))
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(body());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Leaves only these capabilities in effect, whoever we are. */
static int keep_only(uint64_t caps)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = (uint32_t)caps, .permitted = (uint32_t)caps},
        {.effective = (uint32_t)(caps >> 32), .permitted = (uint32_t)(caps >> 32)}};
    return (int)syscall(SYS_capset, &head, data);
}

static int root_without_capabilities(void)
{
    struct err err = {0};
    if (keep_only(0) != 0)
        return 2;
    return uprobe_self_test(&err) == MTUI_E_PERM && strstr(err.text, "CAP_PERFMON") ? 0 : 1;
}

static int nobody_with_the_capability(void)
{
    struct err err = {0};
    if (prctl(PR_SET_KEEPCAPS, 1) || setgid(65534) || setuid(65534) ||
        keep_only(PERFMON | ADMIN) != 0)
        return 2;
    if (getuid() == 0 || uprobe_self_test(&err) != 0)
        return 1;
    /* CAP_PERFMON alone does on some kernels; where not, it is said. */
    if (keep_only(PERFMON) != 0)
        return 2;
    return uprobe_self_test(&err) == 0 || strstr(err.text, "want CAP_SYS_ADMIN for uprobes") ? 0
                                                                                             : 3;
}

/* Not the user decides: root without capabilities may not, nobody with them may. */
static void field_H4_capabilities_decide_not_the_user(void **state)
{
    (void)state;
    struct err err;
    if (geteuid() != 0 || uprobe_self_test(&err) != 0)
        skip();
    assert_int_equal(in_child(root_without_capabilities), 0);
    assert_int_equal(in_child(nobody_with_the_capability), 0);
}

/* perf_event_open answers that errno from now on. */
static int filter_perf(int errno_value)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)errno_value),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int under_a_filter(void)
{
    struct err err = {0};
    struct capability_paths paths = {"/proc", "/sys", "/nonexistent/perf"};
    static struct capabilities caps;
    if (filter_perf(EPERM) != 0)
        return 2;
    if (uprobe_self_test(&err) != MTUI_E_PERM || !strstr(err.text, "seccomp filter is in force"))
        return 1;
    /* The doctor's lines say it as well. */
    capability_probe(&paths, &caps);
    return !caps.line[CAP_UPROBE].present && strstr(caps.line[CAP_UPROBE].reason, "seccomp") ? 0
                                                                                             : 3;
}

static int under_a_filter_that_hides_it(void)
{
    struct err err = {0};
    if (filter_perf(ENOSYS) != 0)
        return 2;
    return uprobe_self_test(&err) == MTUI_E_NOTSUP && strstr(err.text, "seccomp") ? 0 : 1;
}

static void field_H5_seccomp_is_named(void **state)
{
    (void)state;
    assert_int_equal(in_child(under_a_filter), 0);
    assert_int_equal(in_child(under_a_filter_that_hides_it), 0);
}

/* One in our own process tells whether hardware breakpoints do anything here. */
static void field_B10_breakpoints_are_tried_on_ourselves(void **state)
{
    (void)state;
    struct err err = {0};
    unsigned slots = 0;
    int rc = hwbreak_self_test(&slots, &err);
    struct capability_paths paths = {"/proc", "/sys", "/nonexistent/perf"};
    struct capabilities *caps = calloc(1, sizeof *caps);
    capability_probe(&paths, caps);
    assert_int_equal(caps->hwbreak_fires, rc == 0);
    if (rc == 0)
        assert_in_range(slots, 1, 16);
    else
        assert_non_null(strstr(caps->line[CAP_HWBREAK].reason, err.text));
    free(caps);
}

static volatile sig_atomic_t ticks;

static void tick(int sig)
{
    (void)sig;
    ticks++;
}

/* A timer whose signal breaks off system calls, as the step recorder has one, changes nothing. */
static void breakpoints_are_tried_between_signals(void **state)
{
    (void)state;
    struct err err = {0};
    int rc = hwbreak_self_test(NULL, &err), other = rc;
    struct sigaction act = {.sa_handler = tick}, before;
    struct itimerval fast = {{0, 200}, {0, 200}}, none = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &act, &before);
    setitimer(ITIMER_REAL, &fast, NULL);
    for (int i = 0; i < 200 && other == rc; i++)
        other = hwbreak_self_test(NULL, &err);
    setitimer(ITIMER_REAL, &none, NULL);
    sigaction(SIGALRM, &before, NULL);
    if (other != rc)
        fail_msg("%d, then %d: %s", rc, other, err.text);
    assert_true(ticks > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_H4_H5_H6_each_refusal_has_its_sentence),
        cmocka_unit_test(field_H6_a_process_that_may_not_be_traced),
        cmocka_unit_test(field_H6_a_program_that_gains_rights),
        cmocka_unit_test(field_B10_breakpoints_in_use_are_told),
        cmocka_unit_test(field_H4_capabilities_decide_not_the_user),
        cmocka_unit_test(field_H5_seccomp_is_named),
        cmocka_unit_test(field_B10_breakpoints_are_tried_on_ourselves),
        cmocka_unit_test(breakpoints_are_tried_between_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
