#include <stdio.h>

int main(void)
{
    puts("mtui " MTUI_VERSION);
    return 0;
}
