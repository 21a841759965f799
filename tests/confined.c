/* `confined NUMBER ERRNO PROGRAM...` runs a program in which system call NUMBER is refused with ERRNO by a seccomp
 * filter, as container runtimes do. `confined calls` calls leaf() seven times, `confined crash` writes to address 0
 * in it. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int *volatile where;

__attribute__((noinline)) int leaf(int n)
{
    if (where)
        return *where + n;
    return n * 3;
}

static int calls(void)
{
    volatile int sum = 0;
    for (int i = 0; i < 7; i++)
        sum += leaf(i);
    return sum == 63 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "crash")) {
        where = (int *)16;
        return calls();
    }
    if (argc == 2 && !strcmp(argv[1], "calls"))
        return calls();
    if (argc < 4)
        return 2;
    unsigned number = (unsigned)atoi(argv[1]), code = (unsigned)atoi(argv[2]);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("seccomp");
        return 77;
    }
    execvp(argv[3], argv + 3);
    perror(argv[3]);
    return 127;
}
