/* A process with code that has no file, a named thread and a /tmp/perf-PID.map. Writes the address
 * of each page of such code as a line; a byte on stdin makes another page; ends with stdin. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *worker(void *arg)
{
    int *fds = arg;
    pthread_setname_np(pthread_self(), "wörker\t1");
    char c = 'x';
    (void)!write(fds[1], &c, 1);
    for (;;)
        pause();
    return NULL;
}

static void make_code(unsigned char fill)
{
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(page, fill, 4096);
    page[0] = (char)0xc3;
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    printf("%lx\n", (unsigned long)page);
    fflush(stdout);
}

int main(void)
{
    int fds[2];
    char c, map[64];
    pthread_t t;
    if (pipe(fds) < 0)
        return 1;
    pthread_create(&t, NULL, worker, fds);
    (void)!read(fds[0], &c, 1);
    snprintf(map, sizeof map, "/tmp/perf-%ld.map", (long)getpid());
    FILE *f = fopen(map, "w");
    if (!f)
        return 1;
    fputs("1000 10 jitted_function\n", f);
    fclose(f);
    unsigned char fill = 0x90;
    do
        make_code(fill++);
    while (read(0, &c, 1) == 1);
    unlink(map);
    return 0;
}
