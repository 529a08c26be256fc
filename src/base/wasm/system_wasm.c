/* SPDX-License-Identifier: MIT
 * Implements base/system.h for WebAssembly, which has one thread and one processor. */
#include "base/system.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- threads: there is only the caller, so nobody is waited for or woken ------------------------- */

void whit_word_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    (void)word, (void)expected, (void)timeout_ns;
}

void whit_word_wake(_Atomic uint32_t *word, uint32_t n)
{
    (void)word, (void)n;
}

bool whit_system_interleave(void *memory, size_t size_bytes)
{
    (void)memory, (void)size_bytes;
    return false;
}

void whit_thread_name(const char *name)
{
    (void)name;
}

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

unsigned whit_processor_core(unsigned processor)
{
    return processor;
}

void whit_system_cores(whit_cpu *cpu)
{
    cpu->n_logical = cpu->n_cores = 1;
}

double whit_system_quota(void)
{
    return 0;
}

uint64_t whit_memory_available(void)
{
    return 0; /* the number of free bytes is unknown */
}

/* ---- calls of Linux ----------------------------------------------------------------------------- */

/* Fills at most 256 bytes per call, as getentropy does. */
ssize_t getrandom(void *bytes, size_t size_bytes, unsigned flags)
{
    (void)flags;
    const size_t n = size_bytes < 256 ? size_bytes : 256;
    return getentropy(bytes, n) == 0 ? (ssize_t)n : -1;
}

/* Creates a file without a name in the module's file system, which is in memory. */
int memfd_create(const char *name, unsigned flags)
{
    char path[64];
    (void)flags;
    snprintf(path, sizeof path, "/memory-%.32s", name);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) (void)unlink(path);
    return fd;
}

/* ---- sorting ------------------------------------------------------------------------------------ */

static void swap_items(char *a, char *b, size_t item_bytes)
{
    for (size_t i = 0; i < item_bytes; i++) {
        char byte = a[i];
        a[i] = b[i];
        b[i] = byte;
    }
}

/* Moves item `i` down in a heap of n items until neither of its children is larger. */
static void sink_item(char *items, size_t i, size_t n, size_t item_bytes,
                      int (*compare)(const void *, const void *, void *), void *context)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && compare(items + child * item_bytes, items + (child + 1) * item_bytes, context) < 0)
            child++;
        if (compare(items + i * item_bytes, items + child * item_bytes, context) >= 0) return;
        swap_items(items + i * item_bytes, items + child * item_bytes, item_bytes);
    }
}

/* Heapsort: in place, O(n log n) in the worst case; equal items may change their order. */
void qsort_r(void *items, size_t n, size_t item_bytes, int (*compare)(const void *, const void *, void *),
             void *context)
{
    for (size_t i = n / 2; i-- > 0;) sink_item(items, i, n, item_bytes, compare, context);
    for (size_t end = n; end-- > 1;) {
        swap_items(items, (char *)items + end * item_bytes, item_bytes);
        sink_item(items, 0, end, item_bytes, compare, context);
    }
}

bool whit_system_pipe(int ends[2])
{
    ends[0] = ends[1] = -1;
    errno = ENOSYS;
    return false;
}

/* Emscripten's headers declare this function, but its C library lacks it. No caller depends on its effect. */
int sync_file_range(int fd, off_t offset, off_t n_bytes, unsigned flags)
{
    (void)fd, (void)offset, (void)n_bytes, (void)flags;
    errno = ENOSYS;
    return -1;
}
