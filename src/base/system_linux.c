/* SPDX-License-Identifier: MIT */
#include "base/system.h"
#include "base/mem.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- threads -------------------------------------------------------------------------------- */

void whit_word_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000), .tv_nsec = (long)(timeout_ns % 1000000000)};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout_ns == WHIT_NO_TIMEOUT ? NULL : &timeout, NULL, 0);
}

void whit_word_wake(_Atomic uint32_t *word, uint32_t n)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

void whit_thread_name(const char *name)
{
    pthread_setname_np(pthread_self(), name);
}

unsigned whit_thread_processor(void)
{
    int processor = sched_getcpu();
    return processor < 0 ? 0 : (unsigned)processor;
}

void whit_thread_pin(pthread_t thread, unsigned processor)
{
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CPU_SET(processor, &mask);
    pthread_setaffinity_np(thread, sizeof mask, &mask);
}

void whit_thread_move(unsigned processor)
{
    cpu_set_t mask;
    if (pthread_getaffinity_np(pthread_self(), sizeof mask, &mask) != 0 || !CPU_ISSET(processor, &mask)) return;
    whit_thread_pin(pthread_self(), processor);
    pthread_setaffinity_np(pthread_self(), sizeof mask, &mask);
}

/* ---- memory --------------------------------------------------------------------------------- */

bool whit_system_interleave(void *memory, size_t size_bytes)
{
    enum { NODES = 1024, WORD_BITS = 8 * sizeof(unsigned long) };
    /* MPOL_INTERLEAVE and MPOL_F_MEMS_ALLOWED of the kernel's linux/mempolicy.h */
    enum { INTERLEAVE = 3, MEMS_ALLOWED = 4 };
    unsigned long nodes[NODES / WORD_BITS] = {0};
    uint32_t n_nodes = 0;
    const long page = sysconf(_SC_PAGESIZE);
    if (page <= 0 || syscall(SYS_get_mempolicy, NULL, nodes, (unsigned long)NODES, NULL, MEMS_ALLOWED) != 0)
        return false;
    for (size_t i = 0; i < NODES / WORD_BITS; i++) n_nodes += (uint32_t)__builtin_popcountl(nodes[i]);
    const uintptr_t mask = (uintptr_t)page - 1, begin = ((uintptr_t)memory + mask) & ~mask,
                    end = ((uintptr_t)memory + size_bytes) & ~mask;
    if (n_nodes < 2 || begin >= end) return false;
    return syscall(SYS_mbind, begin, end - begin, INTERLEAVE, nodes, (unsigned long)NODES, 0) == 0;
}

/* ---- the machine ---------------------------------------------------------------------------- */

unsigned whit_processor_core(unsigned processor)
{
    char path[96], text[64];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", processor);
    FILE *file = fopen(path, "re");
    if (!file) return processor;
    unsigned first = processor;
    if (fgets(text, sizeof text, file)) first = (unsigned)strtoul(text, NULL, 10);
    fclose(file);
    return first < CPU_SETSIZE ? first : processor;
}

void whit_system_cores(whit_cpu *cpu)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        cpu->n_logical = cpu->n_cores = 1;
        return;
    }
    cpu_set_t seen;
    CPU_ZERO(&seen);
    for (unsigned i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &allowed)) continue;
        cpu->n_logical++;
        unsigned first = whit_processor_core(i);
        if (CPU_ISSET(first, &seen)) continue;
        CPU_SET(first, &seen);
        if (cpu->n_cores < WHIT_CPU_MAX_CORES) cpu->core_cpu[cpu->n_cores++] = (uint16_t)i;
    }
}

double whit_system_quota(void)
{
    return whit_cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");
}

/* Returns the first number other than 0 that follows `key` at the beginning of a line of the file; 0 without such a
 * line. */
static uint64_t read_number(const char *path, const char *key)
{
    char line[256];
    uint64_t number = 0;
    FILE *file = fopen(path, "re");
    while (file && !number && fgets(line, sizeof line, file))
        if (!strncmp(line, key, strlen(key))) number = strtoull(line + strlen(key), NULL, 10);
    if (file) fclose(file);
    return number;
}

uint64_t whit_memory_available(void)
{
    const uint64_t available = read_number("/proc/meminfo", "MemAvailable:") << 10;
    const uint64_t limit = whit_memory_limit("/proc/self/cgroup", "/sys/fs/cgroup");
    return limit && limit < available ? limit : available;
}

#if defined(__x86_64__)

bool whit_system_tiles(void)
{
    /* Linux lets a process use the tile registers only after the process has asked for it. */
    enum { ARCH_REQ_XCOMP_PERM_ = 0x1023, XFEATURE_XTILEDATA_ = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM_, XFEATURE_XTILEDATA_) == 0;
}

#elif defined(__aarch64__)

#include <sys/auxv.h>

/* The bit numbers are from the kernel's interface (arch/arm64 uapi): ASIMDDP is bit 20 of HWCAP, I8MM bit 13 of
 * HWCAP2. */
bool whit_system_has_dotprod(void)
{
    return getauxval(AT_HWCAP) >> 20 & 1;
}

bool whit_system_has_i8mm(void)
{
    return getauxval(AT_HWCAP2) >> 13 & 1;
}

#elif defined(__riscv)

#include <sys/auxv.h>

/* Executes vsetvli, because some kernels set HWCAP's bit also for vectors of version 0.7.1. That version encodes vtype
 * differently and refuses a tail-agnostic and mask-agnostic type: vtype's highest bit becomes 1. */
bool whit_system_has_vectors(void)
{
    if (!(getauxval(AT_HWCAP) >> ('V' - 'A') & 1)) return false;
    uint64_t length, type, bytes;
    __asm__ volatile(".option push\n\t"
                     ".option arch, +v\n\t"
                     "vsetvli %0, zero, e8, m1, ta, ma\n\t"
                     "csrr %1, vtype\n\t"
                     "csrr %2, vlenb\n\t"
                     ".option pop"
                     : "=r"(length), "=r"(type), "=r"(bytes));
    enum { VLENB_MIN = 16 };
    return !(type >> 63) && length == bytes && bytes >= VLENB_MIN;
}

#endif

bool whit_system_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0;
}
