/* SPDX-License-Identifier: MIT
 * Measures what opening a model costs while its file is in the page cache: the time, the pages of the file that are
 * mapped in, and one metadata look-up.
 *
 *     bench_model_open FILE.ndf */
#include "base/clock.h"
#include "whit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { N_OPENS = 301, N_LOOKUPS = 100000 };

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Returns how many kilobytes of the mapping at `address` are resident in this process. This includes neighbouring pages
 * that the kernel mapped along with a touched page. */
static long resident_kb(const void *address)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[4096];
    long kb = -1;
    bool inside = false;
    while (maps && kb < 0 && fgets(line, sizeof line, maps)) {
        unsigned long begin, end;
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) inside = begin == (unsigned long)(uintptr_t)address;
        if (inside) (void)sscanf(line, "Rss: %ld kB", &kb);
    }
    if (maps) fclose(maps);
    return kb;
}

int main(int argc, char **argv)
{
    static uint64_t ns[N_OPENS];
    whit_error error;
    whit_model *model = NULL;
    const void *address;
    const char *path;
    size_t size_bytes;
    if (argc != 2) {
        fprintf(stderr, "usage: bench_model_open FILE.ndf\n");
        return 2;
    }
    for (int i = 0; i < N_OPENS; i++) {
        whit_model_close(model);
        uint64_t start = whit_now_ns();
        if (whit_model_open(argv[1], NULL, &model, &error) != WHIT_OK) {
            fprintf(stderr, "%s\n", error.message);
            return 1;
        }
        ns[i] = whit_now_ns() - start;
    }
    whit_model_mapping(model, 0, &address, &size_bytes, &path);
    long kb = resident_kb(address);
    qsort(ns, N_OPENS, sizeof *ns, by_size);
    printf("%.2f GB: open fastest %.0f us, median %.0f us, slowest %.0f us (limit 1,000)\n", (double)size_bytes / 1e9,
           (double)ns[0] / 1e3, (double)ns[N_OPENS / 2] / 1e3, (double)ns[N_OPENS - 1] / 1e3);
    printf("mapped in: %ld kB of the file (limit 2,000)\n", kb);
    size_t found = 0;
    uint64_t start = whit_now_ns();
    for (int i = 0; i < N_LOOKUPS; i++) found += whit_model_metadata(model, "whit.version") != NULL;
    printf("metadata: %.1f ns a field (limit 60), %zu found\n", (double)(whit_now_ns() - start) / N_LOOKUPS, found);
    whit_model_close(model);
    return 0;
}
