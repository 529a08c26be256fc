/* SPDX-License-Identifier: MIT
 * Examines and renews the memory pages in which a model's files are cached. Weights in huge pages are read a third
 * faster than in small pages. The page size depends on how a file came into the cache: by large writes, by reads
 * through a mapping that asked for huge pages, or in another way. Unless the pages are renewed, two models of one call
 * may be measured against different limits. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "bench/bench.h"

enum { HUGE_BYTES = 2 << 20, STRETCHES = 16 };
/* Sufficient share of mapped bytes in huge pages: a file's ends, and heads that are read before the rest, stay in small
 * pages. */
#define ENOUGH 0.9

typedef struct spans {
    /* all: bytes of mappings that ask for huge pages; huge: how many of these bytes are in huge pages */
    uint64_t all, huge;
} spans;

/* Counts the bytes of this process's mappings inside [begin, end) that ask for huge pages, and how many of these bytes
 * are in huge pages; both are 0 if the system does not report them. */
static spans count_spans(uintptr_t begin, uintptr_t end)
{
    spans sum = {0}, area = {0};
    char line[4096];
    FILE *file = fopen("/proc/self/smaps", "re");
    while (file && fgets(line, sizeof line, file)) {
        uint64_t first, last, kilobytes;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &first, &last) == 2) {
            area = (spans){first >= begin && last <= end ? last - first : 0, 0};
        } else if (sscanf(line, "FilePmdMapped: %" SCNu64, &kilobytes) == 1 ||
                   sscanf(line, "ShmemPmdMapped: %" SCNu64, &kilobytes) == 1) {
            area.huge += kilobytes << 10;
        } else if (!strncmp(line, "VmFlags:", 8) && area.all && strstr(line, " hg")) {
            sum.all += area.all;
            sum.huge += area.huge;
        }
    }
    if (file) fclose(file);
    return sum;
}

double bench_huge_share(const whit_model *model)
{
    spans sum = {0};
    const void *address;
    const char *path;
    size_t size_bytes;
    for (uint32_t i = 0; whit_ndf_mapping(model->file, i, &address, &size_bytes, &path); i++) {
        uintptr_t begin = (uintptr_t)address;
        spans one = count_spans(begin, whit_round_up(begin + size_bytes, (size_t)sysconf(_SC_PAGESIZE)));
        sum.all += one.all;
        sum.huge += one.huge;
    }
    return sum.all ? (double)sum.huge / (double)sum.all : 0;
}

/* Reads one byte in each HUGE_BYTES, which is enough, because the system maps a huge page as a whole. */
static void touch(const uint8_t *begin, size_t size_bytes)
{
    static volatile uint8_t kept;
    for (size_t at = 0; at < size_bytes; at += HUGE_BYTES) kept = begin[at];
    (void)kept;
}

/* Drops a file from the system's cache and reads it again through a mapping that asks for huge pages. Works piece by
 * piece, and ends early when less than half of a piece gets huge pages. Pages that another process has mapped stay
 * cached. */
static void read_again(int fd, const uint8_t *begin, size_t size_bytes)
{
    const size_t stretch = whit_round_up(size_bytes / STRETCHES + 1, HUGE_BYTES);
    for (size_t at = 0, n; at < size_bytes; at += n) {
        n = size_bytes - at < stretch ? size_bytes - at : stretch;
        uintptr_t first = (uintptr_t)begin, end = whit_round_up(first + size_bytes, (size_t)sysconf(_SC_PAGESIZE));
        madvise((void *)(first + at), n, MADV_DONTNEED);
        uint64_t before = count_spans(first, end).huge;
        posix_fadvise(fd, (off_t)at, (off_t)n, POSIX_FADV_DONTNEED);
        touch(begin + at, n);
        if (n == stretch && count_spans(first, end).huge - before < n / 2) return;
    }
}

void bench_renew_pages(const char *model_path)
{
    whit_model *model;
    whit_error ignored; /* the next time the model is opened, the error is reported */
    const void *address;
    const char *path;
    size_t size_bytes;
    if (whit_model_open(model_path, NULL, &model, &ignored) != WHIT_OK) return;
    for (uint32_t i = 0; whit_ndf_mapping(model->file, i, &address, &size_bytes, &path); i++) {
        whit_map_expect(address, size_bytes, true);
        touch(address, size_bytes);
    }
    bool renew = bench_huge_share(model) < ENOUGH;
    for (uint32_t i = 0; renew && whit_ndf_mapping(model->file, i, &address, &size_bytes, &path); i++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) read_again(fd, address, size_bytes);
        if (fd >= 0) close(fd);
    }
    whit_model_close(model);
}
