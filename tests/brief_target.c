/* A program that ends right behind its only call of brief(). */
#include <unistd.h>

static volatile unsigned long sum;

__attribute__((noinline)) unsigned long brief(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++)
        sum += i;
    return sum;
}

int main(void)
{
    brief(4);
    _exit(0);
}
