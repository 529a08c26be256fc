/* SPDX-License-Identifier: MIT
 * What this processor can do, the operating system's consent included. Detection has no state;
 * it costs some microseconds and belongs to opening a session. */
#ifndef WHIT_BASE_CPU_H
#define WHIT_BASE_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Levels, weak to strong within each family. A level includes the ones before it in its family. */
typedef enum whit_isa {
    WHIT_ISA_GENERIC = 0,
    WHIT_ISA_AVX2,   /* with FMA and F16C */
    WHIT_ISA_AVX512, /* F, BW, VL, DQ, VBMI, VNNI */
    WHIT_ISA_AMX,    /* AMX-INT8, tile state granted */
    WHIT_ISA_NEON,   /* AArch64's base */
    WHIT_ISA_DOTPROD,
    WHIT_ISA_I8MM,
    WHIT_ISA_SIMD128, /* WebAssembly's vectors */
    WHIT_ISA_RVV,     /* RISC-V's vectors, version 1.0, of at least 128 bits */
    WHIT_ISA_COUNT
} whit_isa;

/* These are features in addition to the levels. */
#define WHIT_CPU_AVX_VNNI        (1u << 0) /* VPDPBUSD at the AVX2 level */
#define WHIT_CPU_AVX512_POPCOUNT (1u << 1) /* VPOPCNTDQ */
#define WHIT_CPU_AVX512_BF16     (1u << 2)
#define WHIT_CPU_AMX_BF16        (1u << 3) /* together with WHIT_CPU_AVX512_BF16 */

#define WHIT_CPU_MAX_CORES 1024

typedef struct whit_cpu {
    whit_isa isa;                          /* the highest level that may run here */
    uint32_t features;                     /* WHIT_CPU_ bits */
    char model[64];                        /* name for display; "unknown" if it is not found */
    uint32_t n_logical;                    /* processors this process may use */
    uint32_t n_cores;                      /* number of physical cores of these processors */
    uint32_t n_threads;                    /* how many threads to use: n_cores, or what a quota leaves; at least 1 */
    uint16_t core_cpu[WHIT_CPU_MAX_CORES]; /* one logical processor of each of these cores */
} whit_cpu;

void whit_cpu_detect(whit_cpu *cpu);
/* Detects only `isa` and `features`, for which no file is read. */
void whit_cpu_detect_isa(whit_cpu *cpu);
/* Evicts these bytes from all caches, so that the next read comes from memory. The result is false if this architecture
 * gives programs no means to do so. */
bool whit_cpu_flush(const void *data, size_t size_bytes);
/* Returns how many processors' worth of time control groups leave this process: the smallest quota of its groups and
 * their parents, version 1 or 2; 0 without a quota. `list` is a file like /proc/self/cgroup, `mount` the folder where
 * the groups are mounted. */
double whit_cpu_quota(const char *list, const char *mount);
/* Returns the bytes of memory that this process could still use: what the kernel calls available, at most the limit of
 * its control group. 0 if unknown. */
uint64_t whit_memory_available(void);

const char *whit_isa_name(whit_isa isa); /* "avx512" */
/* Lowers *isa, the machine's level, to the strongest level that it and a cap as in WHIT_CPU both allow. NULL, "" and a
 * level of the other family set no limit; false for a name that is not a level. */
bool whit_isa_cap(const char *cap, whit_isa *isa);
/* Returns whether code of level `needed` may run where `available` is the strongest level. */
bool whit_isa_allows(whit_isa available, whit_isa needed);

#endif
