/* SPDX-License-Identifier: MIT */
#include "base/cpu.h"
#include "base/system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const isa_names[WHIT_ISA_COUNT] = {"generic", "avx2", "avx512",  "amx", "neon",
                                                      "dotprod", "i8mm", "simd128", "rvv"};

const char *whit_isa_name(whit_isa isa)
{
    return isa < WHIT_ISA_COUNT ? isa_names[isa] : "unknown";
}

/* Returns the number of the level's family (0: generic code, 1: x86, 2: Arm, 3: WebAssembly, 4: RISC-V); each level of
 * a family includes the lower levels of that family. */
static int isa_family(whit_isa isa)
{
    if (isa >= WHIT_ISA_RVV) return 4;
    if (isa >= WHIT_ISA_SIMD128) return 3;
    return isa >= WHIT_ISA_NEON ? 2 : isa >= WHIT_ISA_AVX2;
}

bool whit_isa_allows(whit_isa available, whit_isa needed)
{
    return needed == WHIT_ISA_GENERIC || (isa_family(needed) == isa_family(available) && needed <= available);
}

bool whit_isa_cap(const char *cap, whit_isa *isa)
{
    if (!cap || !*cap) return true;
    for (int i = 0; i < WHIT_ISA_COUNT; i++)
        if (!strcmp(cap, isa_names[i])) {
            if (whit_isa_allows(*isa, (whit_isa)i)) *isa = (whit_isa)i;
            return true;
        }
    return false;
}

#if defined(__x86_64__)

#include <cpuid.h>

static uint64_t extended_control(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static void detect_isa(whit_cpu *cpu)
{
    unsigned a, b, c, d, c1, b7, c7, d7, a71 = 0;
    if (!__get_cpuid(1, &a, &b, &c1, &d)) return;
    bool has_xsave = c1 >> 27 & 1; /* OSXSAVE: the operating system has enabled XGETBV */
    if (!has_xsave || !__get_cpuid_count(7, 0, &a, &b7, &c7, &d7)) return;
    if (a >= 1) __get_cpuid_count(7, 1, &a71, &b, &c, &d);

    uint64_t state = extended_control();
    bool ymm = (state & 0x6) == 0x6, zmm = (state & 0xE6) == 0xE6;
    bool tiles = (state & 0x60000) == 0x60000;
    const unsigned fma_f16c_avx = 1u << 12 | 1u << 29 | 1u << 28;
    if (!ymm || (c1 & fma_f16c_avx) != fma_f16c_avx || !(b7 >> 5 & 1)) return;
    cpu->isa = WHIT_ISA_AVX2;
    if (a71 >> 4 & 1) cpu->features |= WHIT_CPU_AVX_VNNI;

    const unsigned f_dq_bw_vl = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
    const unsigned vbmi_vnni = 1u << 1 | 1u << 11;
    if (!zmm || (b7 & f_dq_bw_vl) != f_dq_bw_vl || (c7 & vbmi_vnni) != vbmi_vnni) return;
    cpu->isa = WHIT_ISA_AVX512;
    if (c7 >> 14 & 1) cpu->features |= WHIT_CPU_AVX512_POPCOUNT;
    if (a71 >> 5 & 1) cpu->features |= WHIT_CPU_AVX512_BF16;

    const unsigned tile_int8 = 1u << 24 | 1u << 25;
    if (tiles && (d7 & tile_int8) == tile_int8 && whit_system_tiles()) cpu->isa = WHIT_ISA_AMX;
    bool bf16 = d7 >> 22 & 1 && cpu->features & WHIT_CPU_AVX512_BF16;
    if (cpu->isa == WHIT_ISA_AMX && bf16) cpu->features |= WHIT_CPU_AMX_BF16;
}

static void detect_model(whit_cpu *cpu)
{
    unsigned brand[12] = {0};
    for (unsigned i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002 + i, &brand[4 * i], &brand[4 * i + 1], &brand[4 * i + 2], &brand[4 * i + 3]))
            return;
    char text[sizeof brand + 1] = {0};
    memcpy(text, brand, sizeof brand);
    const char *start = text + strspn(text, " ");
    if (*start) snprintf(cpu->model, sizeof cpu->model, "%s", start);
}

#elif defined(__aarch64__)

static void detect_isa(whit_cpu *cpu)
{
    cpu->isa = WHIT_ISA_NEON;
    if (!whit_system_has_dotprod()) return;
    cpu->isa = whit_system_has_i8mm() ? WHIT_ISA_I8MM : WHIT_ISA_DOTPROD;
}

static void detect_model(whit_cpu *cpu)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file) return;
    char line[256];
    unsigned implementer = 0, part = 0;
    for (int n = 0; n < 64 && fgets(line, sizeof line, file); n++) {
        sscanf(line, "CPU implementer : %x", &implementer);
        if (sscanf(line, "CPU part : %x", &part) == 1) break;
    }
    fclose(file);
    if (part) snprintf(cpu->model, sizeof cpu->model, "ARM implementer 0x%02x part 0x%03x", implementer, part);
}

#elif defined(__riscv)

static void detect_isa(whit_cpu *cpu)
{
#ifdef WHIT_HAVE_RVV /* defined if the compiler supports RISC-V's vectors */
    if (whit_system_has_vectors()) cpu->isa = WHIT_ISA_RVV;
#else
    (void)cpu;
#endif
}

static void detect_model(whit_cpu *cpu)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file) return;
    char line[256];
    for (int n = 0; n < 64 && fgets(line, sizeof line, file); n++)
        if (sscanf(line, "uarch : %63[^\n]", cpu->model) == 1) break; /* e.g. "uarch : sifive,u74-mc" */
    fclose(file);
}

#elif defined(__wasm__)

static void detect_isa(whit_cpu *cpu)
{
    cpu->isa = WHIT_ISA_SIMD128; /* no test is needed: an engine without these instructions refuses to load the
                                  * module */
}

static void detect_model(whit_cpu *cpu)
{
    snprintf(cpu->model, sizeof cpu->model, "WebAssembly");
}

#endif

/* ---- limits of control groups --------------------------------------------------------------------------------- */

static bool read_numbers(const char *path, double *first, double *second)
{
    FILE *file = fopen(path, "re");
    if (!file) return false;
    int n = fscanf(file, "%lf %lf", first, second);
    fclose(file);
    return n == (second ? 2 : 1);
}

/* Returns the CPU quota of the control group at `folder` in processors, 0 without a quota. Version 2 of control groups
 * has "QUOTA PERIOD" or "max PERIOD" in one file, version 1 has two files with one number each. */
static double quota_of(const char *folder)
{
    char path[1200];
    double quota = 0, period = 0;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (!read_numbers(path, &quota, &period)) {
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
        if (!read_numbers(path, &quota, NULL)) return 0;
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        if (!read_numbers(path, &period, NULL)) return 0;
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

/* Returns the memory limit of the control group at `folder` in bytes, 0 without a limit. */
static double memory_of(const char *folder)
{
    char path[1200];
    double limit = 0;
    snprintf(path, sizeof path, "%s/memory.max", folder);
    if (read_numbers(path, &limit, NULL)) return limit;
    snprintf(path, sizeof path, "%s/memory.limit_in_bytes", folder);
    return read_numbers(path, &limit, NULL) && limit > 0 ? limit : 0;
}

/* Returns whether `word` is an item of the comma-separated `list`. */
static bool names(const char *list, const char *word)
{
    for (size_t n; *list; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        if (n == strlen(word) && memcmp(list, word, n) == 0) return true;
    }
    return false;
}

/* Returns the smallest value other than 0 that limit_of returns for the control groups of `controller` in `list` and
 * their parents; 0 without a limit. */
static double least_limit(const char *list, const char *mount, const char *controller, double limit_of(const char *))
{
    double least = 0;
    char line[600];
    FILE *file = fopen(list, "re");
    if (!file) return 0;
    /* Each line is "HIERARCHY:CONTROLLERS:/PATH"; in version 2 CONTROLLERS is empty. */
    for (int n = 0; n < 64 && fgets(line, sizeof line, file); n++) {
        char folder[1100];
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(++controllers, ':') : NULL;
        if (!group) continue;
        *group++ = 0;
        bool second = *controllers == 0;
        if (!second && !names(controllers, controller)) continue;
        const char *divider = second ? "" : "/";
        size_t root = (size_t)snprintf(folder, sizeof folder, "%s%s%s", mount, divider, second ? "" : controllers);
        snprintf(folder + root, sizeof folder - root, "%s", group);
        for (;;) {
            double limit = limit_of(folder);
            if (limit > 0 && (least == 0 || limit < least)) least = limit;
            char *slash = strrchr(folder + root, '/');
            if (!slash) break;
            *slash = 0;
        }
    }
    fclose(file);
    return least;
}

double whit_cpu_quota(const char *list, const char *mount)
{
    return least_limit(list, mount, "cpu", quota_of);
}

uint64_t whit_memory_limit(const char *list, const char *mount)
{
    const double limit = least_limit(list, mount, "memory", memory_of);
    return limit < 0x1p62 ? (uint64_t)limit : 0; /* version 1 writes a number near 2^63 for no limit */
}

void whit_cpu_detect_isa(whit_cpu *cpu)
{
    memset(cpu, 0, sizeof *cpu);
    snprintf(cpu->model, sizeof cpu->model, "unknown");
    detect_isa(cpu);
}

void whit_cpu_detect(whit_cpu *cpu)
{
    whit_cpu_detect_isa(cpu);
    detect_model(cpu);
    whit_system_cores(cpu);
    /* With more threads than the quota, the kernel would stop some in the middle of their work, and the other threads
     * would wait for them. */
    double quota = whit_system_quota();
    cpu->n_threads = cpu->n_cores ? cpu->n_cores : 1;
    if (quota > 0 && quota < cpu->n_threads) cpu->n_threads = quota < 1 ? 1 : (uint32_t)quota;
}

bool whit_cpu_flush(const void *data, size_t size_bytes)
{
    enum { LINE_BYTES = 64 };
    const char *begin = data;
#if defined(__x86_64__) || defined(__i386__)
    for (size_t i = 0; i < size_bytes; i += LINE_BYTES) __builtin_ia32_clflush(begin + i);
    __builtin_ia32_mfence();
    return true;
#elif defined(__aarch64__)
    for (size_t i = 0; i < size_bytes; i += LINE_BYTES) __asm__ volatile("dc civac, %0" ::"r"(begin + i) : "memory");
    __asm__ volatile("dsb ish" ::: "memory");
    return true;
#else
    (void)begin, (void)size_bytes;
    return false;
#endif
}
