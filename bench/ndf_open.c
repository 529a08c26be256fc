/* SPDX-License-Identifier: MIT
 * Measures what opening a container costs: time and touched pages for a 1 GB model with 400 tensors and a 4 MB
 * tokenizer in the page cache; one metadata look-up; the speed of verifying and writing.
 *
 *     bench_ndf_open [FOLDER [MEGABYTES]]     FOLDER (default /tmp) holds the file meanwhile */
#include "base/clock.h"
#include "format/ndf_verify.h"
#include "format/ndf_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { N_TENSORS = 400, N_KEYS = 60, TOKENIZER_BYTES = 4 << 20, PIECE_BYTES = 1 << 20 };

static whit_status write_model(const char *path, uint64_t tensor_bytes, whit_error *error)
{
    whit_ndf_writer *writer;
    uint8_t *bytes = malloc(TOKENIZER_BYTES), digest[WHIT_HASH_BYTES] = {0};
    uint32_t number[N_TENSORS];
    char name[64];
    if (!bytes) return whit_fail_memory(error, "a buffer", TOKENIZER_BYTES);
    for (size_t i = 0; i < TOKENIZER_BYTES; i++) bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    whit_status status = whit_ndf_writer_open(path, NULL, NULL, &writer, error);
    if (status != WHIT_OK) goto cleanup;
    whit_ndf_writer_set_tokenizer(writer, bytes, TOKENIZER_BYTES);
    for (int i = 0; i < N_KEYS; i++) {
        snprintf(name, sizeof name, "general.some.long.key.%d", i);
        whit_table_set_string(whit_ndf_writer_meta(writer), name, "a value of some length");
        whit_table_set_u64(whit_ndf_writer_config(writer), name, (uint64_t)i);
    }
    for (uint32_t i = 0; status == WHIT_OK && i < N_TENSORS; i++) {
        whit_tensor_type type = {.codec = WHIT_CODEC_I8,
                                 .layout = WHIT_LAYOUT_TILE16,
                                 .scale_kind = WHIT_SCALE_ROW,
                                 .n_rows = 1024,
                                 .n_cols = 1024};
        uint64_t part_bytes[WHIT_PART_COUNT] = {tensor_bytes, 4096};
        snprintf(name, sizeof name, "layers.%u.attention.weight_%u", i / 10, i % 10);
        status = whit_ndf_writer_declare(writer, name, &type, part_bytes, &number[i], error);
        whit_ndf_writer_set_digest(writer, i, digest);
    }
    if (status == WHIT_OK) status = whit_ndf_writer_begin(writer, error);
    for (uint32_t i = 0; status == WHIT_OK && i < N_TENSORS; i++) {
        for (uint64_t done = 0; status == WHIT_OK && done < tensor_bytes;) {
            uint64_t n = tensor_bytes - done < PIECE_BYTES ? tensor_bytes - done : PIECE_BYTES;
            status = whit_ndf_writer_add(writer, number[i], WHIT_PART_CODES, bytes, n, error);
            done += n;
        }
        if (status == WHIT_OK)
            status = whit_ndf_writer_add(writer, number[i], WHIT_PART_ROW_SCALES, bytes, 4096, error);
    }
    if (status == WHIT_OK) status = whit_ndf_writer_commit(writer, NULL, error);
    whit_ndf_writer_close(writer);
cleanup:
    free(bytes);
    return status;
}

/* Returns how many kilobytes of the file's mapping are resident. The kernel also maps neighbours of a touched page. */
static long resident_kb(const char *path)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[4096];
    long kb = -1;
    bool inside = false;
    while (maps && kb < 0 && fgets(line, sizeof line, maps)) {
        if (strstr(line, path)) inside = true;
        if (inside) (void)sscanf(line, "Rss: %ld kB", &kb);
    }
    if (maps) fclose(maps);
    return kb;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static whit_status measure_open(const char *path, whit_error *error)
{
    enum { N = 301 };
    static uint64_t ns[N];
    for (int i = 0; i < N; i++) {
        whit_ndf *ndf;
        struct rusage before, after;
        getrusage(RUSAGE_SELF, &before);
        uint64_t start = whit_now_ns();
        WHIT_TRY(whit_ndf_open(path, NULL, &ndf, error));
        ns[i] = whit_now_ns() - start;
        getrusage(RUSAGE_SELF, &after);
        if (i == N - 1)
            printf("open: %ld page faults, %ld kB of the file mapped in\n", after.ru_minflt - before.ru_minflt,
                   resident_kb(path));
        whit_ndf_close(ndf);
    }
    qsort(ns, N, sizeof *ns, by_size);
    printf("open: fastest %.1f us, median %.1f us, slowest %.1f us (limit 1,000)\n", (double)ns[0] / 1e3,
           (double)ns[N / 2] / 1e3, (double)ns[N - 1] / 1e3);
    return WHIT_OK;
}

static whit_status measure_lookups(const char *path, whit_error *error)
{
    enum { ROUNDS = 20000 };
    whit_ndf *ndf;
    char keys[N_KEYS][64];
    WHIT_TRY(whit_ndf_open(path, NULL, &ndf, error));
    for (int i = 0; i < N_KEYS; i++) snprintf(keys[i], sizeof keys[i], "general.some.long.key.%d", i);
    uint64_t found = 0, best = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        whit_value value;
        uint64_t start = whit_now_ns();
        for (int i = 0; i < N_KEYS; i++) found += whit_table_get(whit_ndf_meta(ndf), keys[i], &value);
        uint64_t spent = whit_now_ns() - start;
        if (spent < best) best = spent;
    }
    printf("metadata: %.1f ns a field (limit 60), %" PRIu64 " found\n", (double)best / N_KEYS, found);
    for (uint32_t n_threads = 1; n_threads <= 2; n_threads++) {
        whit_ndf_verify_result result;
        uint64_t start = whit_now_ns();
        whit_status status = whit_ndf_verify(ndf, n_threads, NULL, NULL, &result, error);
        if (status != WHIT_OK) {
            whit_ndf_close(ndf);
            return status;
        }
        printf("verify, %u threads: %.2f GB/s\n", n_threads, (double)result.n_bytes / (double)(whit_now_ns() - start));
    }
    whit_ndf_close(ndf);
    return WHIT_OK;
}

int main(int argc, char **argv)
{
    char path[4096];
    uint64_t megabytes = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
    snprintf(path, sizeof path, "%s/whit-bench-%d.ndf", argc > 1 ? argv[1] : "/tmp", (int)getpid());
    whit_error error = {0};
    uint64_t start = whit_now_ns();
    whit_status status = write_model(path, megabytes * 1000000 / N_TENSORS, &error);
    if (status == WHIT_OK)
        printf("write: %.2f GB/s, flushed\n", (double)megabytes * 1e6 / (double)(whit_now_ns() - start));
    if (status == WHIT_OK) status = measure_open(path, &error);
    if (status == WHIT_OK) status = measure_lookups(path, &error);
    if (status != WHIT_OK) fprintf(stderr, "%s\n", error.message);
    unlink(path);
    return status != WHIT_OK;
}
