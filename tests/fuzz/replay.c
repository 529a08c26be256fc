/* SPDX-License-Identifier: MIT
 * Runs a fuzz target without a fuzzer: with small inputs made here, and with every file of a folder as it is, cut
 * short, and with fixed mutations, so that `make test` replays the corpus with any compiler.
 *
 *     fuzz_NAME FOLDER     without such a folder only the small inputs are run */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"

#define FILE_BYTES_MAX (4u << 20)
#define N_MUTATIONS    300
#define SLOW_NS        5000000000u /* maximum processor time for one input */
#define BUDGET_NS      8000000000u /* maximum processor time for all inputs of a target, which a sanitizer makes slow */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t n_inputs, started_ns;

/* Runs the target on a copy in a block of exactly this size, so that ASan detects reads past the end. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) exit(1);
    memcpy(copy, data, size);
    uint64_t before = whit_thread_cpu_ns();
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    n_inputs++;
    if (whit_thread_cpu_ns() - before > SLOW_NS) {
        fprintf(stderr, "an input of %zu bytes took over 5 s\n", size);
        exit(1);
    }
}

static bool in_budget(void)
{
    return whit_thread_cpu_ns() - started_ns < BUDGET_NS;
}

/* Makes one to four edits: a flipped bit, a random byte, or an integer that is often critical for readers. */
static size_t mutate(uint8_t *data, size_t size, whit_rng *rng)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       0x7F,
                                       0xFF,
                                       0x7FFF,
                                       0xFFFF,
                                       0x7FFFFFFF,
                                       0x80000000,
                                       0xFFFFFFFF,
                                       0x7FFFFFFFFFFFFFFF,
                                       0x8000000000000000,
                                       0xFFFFFFFFFFFFFFFF,
                                       0x1000000000000000};
    if (!size) return 0;
    for (uint64_t n = 1 + whit_rng_below(rng, 4); n; n--) {
        /* half of the edits are in the first kilobyte, which contains headers */
        size_t reach = whit_rng_below(rng, 2) && size > 1024 ? 1024 : size;
        size_t at = whit_rng_below(rng, reach);
        switch (whit_rng_below(rng, 4)) {
        case 0: data[at] ^= (uint8_t)(1u << whit_rng_below(rng, 8)); break;
        case 1: data[at] = (uint8_t)whit_rng_next(rng); break;
        case 2: {
            uint64_t number = numbers[whit_rng_below(rng, sizeof numbers / sizeof *numbers)];
            size_t width = (size_t)1 << whit_rng_below(rng, 4);
            if (width > size - at) width = size - at;
            memcpy(data + at, &number, width);
            break;
        }
        case 3: { /* copy a piece of the file over another */
            size_t from = whit_rng_below(rng, size), length = 1 + whit_rng_below(rng, 16);
            if (length > size - at) length = size - at;
            if (length > size - from) length = size - from;
            memmove(data + at, data + from, length);
            break;
        }
        }
    }
    return size;
}

static void replay(const uint8_t *data, size_t size, uint64_t seed)
{
    run(data, size);
    size_t cut_step = size / 64 ? size / 64 : 1;
    for (size_t cut = 0; cut < size && in_budget(); cut += cut_step) run(data, cut);
    uint8_t *changed = malloc(size ? size : 1);
    if (!changed) exit(1);
    whit_rng rng = {seed};
    for (int i = 0; i < N_MUTATIONS && in_budget(); i++) {
        memcpy(changed, data, size);
        run(changed, mutate(changed, size, &rng));
    }
    free(changed);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int main(int argc, char **argv)
{
    started_ns = whit_thread_cpu_ns();
    uint8_t small[64] = {0};
    for (size_t size = 0; size <= sizeof small; size++) run(small, size);
    struct dirent **entries = NULL;
    int n = argc > 1 ? scandir(argv[1], &entries, NULL, by_name) : -1;
    uint8_t *data = malloc(FILE_BYTES_MAX);
    if (!data) return 1;
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", argv[1], entries[i]->d_name);
        FILE *file = entries[i]->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (file) {
            size_t size = fread(data, 1, FILE_BYTES_MAX, file);
            fclose(file);
            replay(data, size, (uint64_t)i);
        }
        free(entries[i]);
    }
    free(entries);
    free(data);
    printf("%llu inputs\n", (unsigned long long)n_inputs);
    return 0;
}
