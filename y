#include <stdio.h>

int main(void)
{
	puts("café 漢�"); /* here */
    return f(1, [2], {3});
}
