/* Burns CPU with a call stack worth looking at: main > work > outer > inner. */
__attribute__((noinline)) static unsigned long inner(unsigned long n)
{
    volatile unsigned long sum = 0;
    for (unsigned long i = 0; i < n; i++)
        sum += i;
    return sum;
}

__attribute__((noinline)) static unsigned long outer(unsigned long n)
{
    return inner(n) + 1;
}

__attribute__((noinline)) static unsigned long work(void)
{
    return outer(20000) + 1;
}

int main(void)
{
    unsigned long total = 0;
    for (;;)
        total += work();
    return (int)total;
}
