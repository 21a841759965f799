/* Functions by how their first instruction moves the stack pointer; each is called once a round, until the input ends:
 * the last of them is the C library's vfork, which pops its return address for the time of the system call. */
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define FUNCTION(name, code) \
    __asm__(".text\n.globl " name "\n.type " name ", @function\n" name ":\n" code "\n.size " name ", .-" name "\n")

FUNCTION("by_pop", "pop %rdx; lea 3(%rdi), %eax; push %rdx; ret");
FUNCTION("by_pop_and_call", "pop %rdx; mov $39, %eax; syscall; lea 3(%rdi), %eax; push %rdx; ret");
FUNCTION("by_push", "push %rbx; lea 3(%rdi), %eax; pop %rbx; ret");
FUNCTION("by_pushf", "pushf; lea 3(%rdi), %eax; popf; ret");
FUNCTION("by_sub", "sub $40, %rsp; lea 3(%rdi), %eax; add $40, %rsp; ret");
FUNCTION("by_add", "add $-128, %rsp; lea 3(%rdi), %eax; sub $-128, %rsp; ret");
FUNCTION("by_lea", "lea -40(%rsp), %rsp; lea 3(%rdi), %eax; lea 40(%rsp), %rsp; ret");
FUNCTION("by_enter", "enter $48, $0; lea 3(%rdi), %eax; leave; ret");
FUNCTION("by_nothing", "lea 3(%rdi), %eax; ret");

int by_pop(int n);
int by_pop_and_call(int n);
int by_push(int n);
int by_pushf(int n);
int by_sub(int n);
int by_add(int n);
int by_lea(int n);
int by_enter(int n);
int by_nothing(int n);

static int (*const all[])(int) = {by_pop, by_pop_and_call, by_push,  by_pushf,  by_sub,
                                  by_add, by_lea,          by_enter, by_nothing};

int main(void)
{
    struct pollfd in = {.fd = 0, .events = POLLIN};
    puts("ready");
    fflush(stdout);
    while (poll(&in, 1, 10) == 0) {
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            if (all[i](4) != 7)
                return 1;
        pid_t child = vfork();
        if (child == 0)
            _exit(0);
        if (child < 0 || waitpid(child, NULL, 0) != child)
            return 1;
    }
    return 0;
}
