/* SPDX-License-Identifier: MIT
 * Sets the floating-point environment on which results depend: round to nearest even, subnormals kept, exceptions
 * masked. A host may have set another one, so public functions and pool threads enter this environment, and restore the
 * caller's before they return and around callbacks. The compiler does not move loads and stores across enter and leave,
 * but may move arithmetic on registers, so operands must be loaded and results stored between the two calls. */
#ifndef WHIT_BASE_FPENV_H
#define WHIT_BASE_FPENV_H

#include <stdint.h>

typedef struct whit_fpenv {
    uint64_t state;
} whit_fpenv;

#if defined(__x86_64__)

#define WHIT_FPENV_STATE 0x1F80 /* MXCSR: all exceptions masked, nearest, no FTZ, no DAZ */

static inline uint64_t whit_fpenv_read(void)
{
    uint32_t state;
    __asm__ volatile("stmxcsr %0" : "=m"(state));
    return state;
}
static inline void whit_fpenv_write(uint64_t state)
{
    uint32_t low = (uint32_t)state;
    __asm__ volatile("ldmxcsr %0" : : "m"(low) : "memory");
}

#elif defined(__aarch64__)

#define WHIT_FPENV_STATE 0 /* FPCR: traps off, nearest, no FZ, no default NaN, IEEE half */

static inline uint64_t whit_fpenv_read(void)
{
    uint64_t state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    return state;
}
static inline void whit_fpenv_write(uint64_t state)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(state) : "memory");
}

#elif defined(__riscv)

/* fcsr: round to nearest, flags cleared; RISC-V has no traps and always keeps subnormals */
#define WHIT_FPENV_STATE 0

static inline uint64_t whit_fpenv_read(void)
{
    uint64_t state;
    __asm__ volatile("frcsr %0" : "=r"(state));
    return state;
}
static inline void whit_fpenv_write(uint64_t state)
{
    __asm__ volatile("fscsr %0" : : "r"(state) : "memory");
}

#elif defined(__wasm__)

#define WHIT_FPENV_STATE 0 /* WebAssembly has only the default environment */

static inline uint64_t whit_fpenv_read(void)
{
    return WHIT_FPENV_STATE;
}
static inline void whit_fpenv_write(uint64_t state)
{
    (void)state;
}

#else
#error "whit knows the floating-point control of x86-64, AArch64, RISC-V and WebAssembly only"
#endif

/* Sets the library's floating-point environment and returns the previous one. */
static inline whit_fpenv whit_fpenv_enter(void)
{
    whit_fpenv before = {whit_fpenv_read()};
    whit_fpenv_write(WHIT_FPENV_STATE);
    return before;
}
static inline void whit_fpenv_leave(whit_fpenv before)
{
    whit_fpenv_write(before.state);
}

#endif
