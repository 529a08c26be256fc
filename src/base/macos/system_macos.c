/* SPDX-License-Identifier: MIT
 * Implements base/system.h for macOS on Apple silicon. */
#include "base/system.h"

#include <fcntl.h>
#include <mach/mach.h>
#include <sys/sysctl.h>
#include <time.h>
#include <unistd.h>

/* ---- threads -------------------------------------------------------------------------------- */

/* macOS before 14.4 has no futex. Instead, waited-on words share a few condition variables, chosen by the word's
 * address. A waiter checks its word under a lock, and a waker takes the same lock after the word was changed, so that
 * no wake-up is lost. */
enum { N_CONDITIONS = 16 };
typedef struct condition {
    pthread_mutex_t lock;
    pthread_cond_t changed;
} condition;
#define ONE                                                                                                            \
    {                                                                                                                  \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER                                                            \
    }
#define FOUR ONE, ONE, ONE, ONE
static condition conditions[N_CONDITIONS] = {FOUR, FOUR, FOUR, FOUR};

static condition *condition_of(const _Atomic uint32_t *word)
{
    return &conditions[(uintptr_t)word / 64 % N_CONDITIONS];
}

void whit_word_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    condition *shared = condition_of(word);
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000), .tv_nsec = (long)(timeout_ns % 1000000000)};
    pthread_mutex_lock(&shared->lock);
    if (atomic_load(word) != expected)
        ;
    else if (timeout_ns == WHIT_NO_TIMEOUT)
        pthread_cond_wait(&shared->changed, &shared->lock);
    else
        pthread_cond_timedwait_relative_np(&shared->changed, &shared->lock, &timeout);
    pthread_mutex_unlock(&shared->lock);
}

void whit_word_wake(_Atomic uint32_t *word, uint32_t n)
{
    condition *shared = condition_of(word);
    (void)n; /* all waiters are woken, because waiters of other words may share the condition variable */
    pthread_mutex_lock(&shared->lock);
    pthread_cond_broadcast(&shared->changed);
    pthread_mutex_unlock(&shared->lock);
}

bool whit_system_interleave(void *memory, size_t size_bytes)
{
    (void)memory, (void)size_bytes;
    return false;
}

void whit_thread_name(const char *name)
{
    pthread_setname_np(name);
}

/* macOS cannot bind threads to processors. */
unsigned whit_thread_processor(void)
{
    return 0;
}

void whit_thread_pin(pthread_t thread, unsigned processor)
{
    (void)thread, (void)processor;
}

void whit_thread_move(unsigned processor)
{
    (void)processor;
}

/* ---- the machine ---------------------------------------------------------------------------- */

/* Reads the number called `name` with sysctl; 0 if it is unknown. */
static uint32_t read_number(const char *name)
{
    uint32_t number = 0;
    size_t size_bytes = sizeof number;
    return sysctlbyname(name, &number, &size_bytes, NULL, 0) == 0 ? number : 0;
}

unsigned whit_processor_core(unsigned processor)
{
    return processor;
}

void whit_system_cores(whit_cpu *cpu)
{
    const uint32_t fast = read_number("hw.perflevel0.physicalcpu"), all = read_number("hw.physicalcpu");
    cpu->n_logical = read_number("hw.logicalcpu");
    if (!cpu->n_logical) cpu->n_logical = 1;
    /* Only the fast cores count: threads on slow cores would keep the others waiting. */
    cpu->n_cores = fast ? fast : all;
    if (!cpu->n_cores || cpu->n_cores > cpu->n_logical) cpu->n_cores = cpu->n_logical;
    if (cpu->n_cores > WHIT_CPU_MAX_CORES) cpu->n_cores = WHIT_CPU_MAX_CORES;
    for (uint32_t i = 0; i < cpu->n_cores; i++) cpu->core_cpu[i] = (uint16_t)i;
}

double whit_system_quota(void)
{
    return 0;
}

uint64_t whit_memory_available(void)
{
    vm_statistics64_data_t pages;
    mach_msg_type_number_t n = HOST_VM_INFO64_COUNT;
    const long page = sysconf(_SC_PAGESIZE);
    if (page <= 0 || host_statistics64(mach_host_self(), HOST_VM_INFO64, (host_info64_t)&pages, &n) != KERN_SUCCESS)
        return 0;
    return ((uint64_t)pages.free_count + pages.inactive_count) * (uint64_t)page;
}

bool whit_system_has_dotprod(void)
{
    return read_number("hw.optional.arm.FEAT_DotProd") != 0;
}

bool whit_system_has_i8mm(void)
{
    return read_number("hw.optional.arm.FEAT_I8MM") != 0;
}

bool whit_system_pipe(int ends[2])
{
    if (pipe(ends)) return false;
    for (int i = 0; i < 2; i++) {
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
    }
    return true;
}
