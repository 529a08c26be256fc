/* SPDX-License-Identifier: MIT
 * Detects the instructions that the processor has and the operating system permits. Detection has no state; it takes
 * some microseconds, and a session does it once when it is opened. */
#ifndef WHIT_BASE_CPU_H
#define WHIT_BASE_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Instruction set levels, weak to strong within each family (x86, Arm, WebAssembly, RISC-V). A level includes the
 * earlier levels of its family. */
typedef enum whit_isa {
    WHIT_ISA_GENERIC = 0,
    WHIT_ISA_AVX2,   /* AVX2, FMA, F16C */
    WHIT_ISA_AVX512, /* AVX-512 F, BW, VL, DQ, VBMI, VNNI */
    WHIT_ISA_AMX,    /* AMX-INT8, and the system lets this process use tile registers */
    WHIT_ISA_NEON,   /* base instructions of AArch64 */
    WHIT_ISA_DOTPROD,
    WHIT_ISA_I8MM,
    WHIT_ISA_SIMD128, /* vector instructions of WebAssembly */
    WHIT_ISA_RVV,     /* RISC-V's vector extension, version 1.0, with vectors of at least 128 bits */
    WHIT_ISA_COUNT
} whit_isa;

/* Features that a processor may have in addition to its level. */
#define WHIT_CPU_AVX_VNNI        (1u << 0) /* VPDPBUSD for AVX2 vectors */
#define WHIT_CPU_AVX512_POPCOUNT (1u << 1) /* VPOPCNTDQ */
#define WHIT_CPU_AVX512_BF16     (1u << 2)
#define WHIT_CPU_AMX_BF16        (1u << 3) /* set only together with WHIT_CPU_AVX512_BF16 */

#define WHIT_CPU_MAX_CORES 1024

typedef struct whit_cpu {
    whit_isa isa;                          /* the highest level that may run here */
    uint32_t features;                     /* WHIT_CPU_ bits */
    char model[64];                        /* name for display; "unknown" if it is not found */
    uint32_t n_logical;                    /* number of logical processors that this process may use */
    uint32_t n_cores;                      /* number of physical cores that these processors belong to (macOS: only fast
                                            * ones) */
    uint32_t n_threads;                    /* number of threads to use: n_cores, at most the CPU quota rounded down;
                                            * at least 1 */
    uint16_t core_cpu[WHIT_CPU_MAX_CORES]; /* one logical processor of each of the n_cores cores */
} whit_cpu;

void whit_cpu_detect(whit_cpu *cpu);
/* Detects only `isa` and `features`, without reading files; `model` becomes "unknown", and the other members 0. */
void whit_cpu_detect_isa(whit_cpu *cpu);
/* Evicts the bytes from all caches, so that the next read comes from memory. The result is false if programs cannot do
 * this on the architecture. */
bool whit_cpu_flush(const void *data, size_t size_bytes);
/* Returns the CPU quota of this process in processors: the smallest quota of its control groups (version 1 or 2) and
 * their parents; 0 without a quota. `list` is a file like /proc/self/cgroup, `mount` the folder where the groups are
 * mounted. */
double whit_cpu_quota(const char *list, const char *mount);
/* Like whit_cpu_quota, returns the smallest memory limit in bytes; 0 without a limit. */
uint64_t whit_memory_limit(const char *list, const char *mount);
/* Returns the number of bytes of memory that this process could still use: the memory that the kernel reports as
 * available; on Linux at most the limit of its control groups. 0 if unknown. */
uint64_t whit_memory_available(void);

const char *whit_isa_name(whit_isa isa); /* e.g. "avx512" */
/* Lowers *isa, the machine's level, to the level that `cap` names (a value of the environment variable WHIT_CPU) if the
 * machine allows that level. NULL, "" and a level that the machine does not allow change nothing. The result is false
 * if `cap` is not the name of a level. */
bool whit_isa_cap(const char *cap, whit_isa *isa);
/* Returns whether code of level `needed` may run on a machine whose strongest level is `available`. */
bool whit_isa_allows(whit_isa available, whit_isa needed);

#endif
