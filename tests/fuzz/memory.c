/* SPDX-License-Identifier: MIT
 * Uses any bytes as the data of a memory's frame in an otherwise valid file: it is opened, every record is read, and
 * it is searched. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "format/ndf_append.h"
#include "memory/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];
    whit_memory *memory;
    whit_error error;
    whit_cpu cpu;
    whit_quat_kernels kernels;
    if (!path[0]) snprintf(path, sizeof path, "/tmp/whit-fuzz-memory-%d", (int)getpid());
    if (!size) return 0;
    whit_cpu_detect(&cpu);
    if (whit_quat_select(&cpu, NULL, &kernels, &error) != WHIT_OK ||
        whit_ndf_write_loose(path, WHIT_NDF_MEMORY, "memory", data, size, NULL, &error) != WHIT_OK)
        return 0;
    whit_status status = whit_memory_open(path, NULL, &memory, &error);
    unlink(path);
    if (status != WHIT_OK) return 0;
    whit_memory_stats stats;
    whit_memory_stats_of(memory, &stats);
    uint64_t query[WHIT_MEMORY_WORDS] = {0};
    volatile uint64_t sum = 0;
    for (uint64_t i = 0; i < stats.n_records; i++) {
        const char *text;
        size_t n;
        const uint64_t *vector;
        whit_memory_at(memory, i, &text, &n, &vector);
        for (size_t k = 0; k < n; k++) sum += (uint8_t)text[k];
        sum += vector[WHIT_MEMORY_WORDS - 1];
    }
    whit_memory_hit hits[4];
    uint32_t n_hits;
    (void)whit_memory_search(memory, &kernels, NULL, query, 4, hits, &n_hits, &error);
    whit_memory_close(memory);
    return 0;
}
