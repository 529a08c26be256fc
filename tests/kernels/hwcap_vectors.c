/* SPDX-License-Identifier: MIT
 * Replaces getauxval for an emulated RISC-V processor that has vector instructions and does not report them (qemu
 * 7.2). rvv.sh loads it before the C library (LD_PRELOAD). */
#include <dlfcn.h>
#include <string.h>
#include <sys/auxv.h>

unsigned long getauxval(unsigned long type)
{
    static unsigned long (*of_the_library)(unsigned long);
    if (!of_the_library) {
        void *found = dlsym(RTLD_NEXT, "getauxval");
        memcpy(&of_the_library, &found, sizeof found);
    }
    return of_the_library(type) | (type == AT_HWCAP ? 1ul << ('V' - 'A') : 0);
}
