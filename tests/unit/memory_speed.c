/* SPDX-License-Identifier: MIT
 * Compares the speed of a memory's search with reading the same bytes: memory_speed [RECORDS [SHARE]]. The hits must
 * be those of a full scan. With SHARE, the median speed of seven rounds must reach that share of the reading speed. */
#include "base/clock.h"
#include "base/rng.h"
#include "base/threads.h"
#include "kernels/kernels.h"
#include "kernels/quat/quat.h"
#include "memory/hyper.h"
#include "memory/store.h"
#include "test.h"
#include "test_folder.h"

enum { WORDS = WHIT_MEMORY_WORDS, FRAME = 62500, BLOCK = 250, ROUNDS = 7, HITS = 10 };
static uint32_t n_records = 20000;
static double wanted_share;
static whit_quat_kernels quat;
static whit_kernels kernels;

static void make(const char *path)
{
    whit_memory_batch batch = {0};
    whit_error error;
    uint64_t vector[WORDS];
    for (uint32_t i = 0; i < n_records; i++) {
        whit_hyper_random(i + 1, vector, WORDS);
        assert_ok(whit_memory_batch_add(&batch, vector, "", 0, &error), error);
        if ((i + 1) % FRAME == 0) assert_ok(whit_memory_batch_commit(&batch, path, &error), error);
    }
    assert_ok(whit_memory_batch_commit(&batch, path, &error), error);
    whit_memory_batch_free(&batch);
}

struct reading {
    const whit_memory *memory;
    uint64_t sums[64];
};

static void read_blocks(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    struct reading *r = context;
    for (uint32_t i = begin; i < end; i++) { /* a block is within one frame */
        const char *text;
        size_t n;
        const uint64_t *vector;
        whit_memory_at(r->memory, (uint64_t)i * BLOCK, &text, &n, &vector);
        r->sums[worker % 64] += kernels.probe_read(vector, (size_t)BLOCK * WORDS * 8);
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check_scan(const whit_memory *memory, const uint64_t *query, const whit_memory_hit *hits)
{
    uint32_t n_nearer[HITS] = {0};
    for (uint32_t i = 0; i < n_records; i++) {
        const char *text;
        size_t n;
        const uint64_t *vector;
        whit_memory_at(memory, i, &text, &n, &vector);
        uint32_t distance = (uint32_t)quat.distance(vector, query, WORDS);
        for (int h = 0; h < HITS; h++)
            n_nearer[h] += distance < hits[h].distance || (distance == hits[h].distance && i < hits[h].record);
    }
    for (uint32_t h = 0; h < HITS; h++) assert_int_equal(n_nearer[h], h);
}

static void search_reads_as_fast_as_memory(void **state)
{
    (void)state;
    const char *path = in_folder("large.mem");
    whit_memory *memory;
    whit_pool *pool;
    whit_error error;
    double reads[ROUNDS], searches[ROUNDS];
    make(path);
    assert_ok(whit_memory_open(path, NULL, &memory, &error), error);
    assert_ok(whit_pool_open(0, NULL, &pool, &error), error);
    struct reading reading = {.memory = memory};
    for (int round = -1; round < ROUNDS; round++) { /* round -1 warms up and is not measured */
        uint64_t query[WORDS], t0 = whit_now_ns();
        uint32_t n_hits;
        whit_memory_hit hits[HITS];
        whit_pool_run(pool, read_blocks, &reading, n_records / BLOCK, 0);
        whit_hyper_random(0xABCD + (uint64_t)round, query, WORDS);
        uint64_t t1 = whit_now_ns();
        assert_ok(whit_memory_search(memory, &quat, pool, query, HITS, hits, &n_hits, &error), error);
        uint64_t t2 = whit_now_ns();
        assert_int_equal(n_hits, HITS);
        if (round < 0) {
            check_scan(memory, query, hits);
            continue;
        }
        reads[round] = (double)(t1 - t0);
        searches[round] = (double)(t2 - t1);
    }
    qsort(reads, ROUNDS, sizeof *reads, by_value);
    qsort(searches, ROUNDS, sizeof *searches, by_value);
    double bytes = (double)n_records * WORDS * 8, share = reads[ROUNDS / 2] / searches[ROUNDS / 2];
    print_message("%u vectors, %u threads: search %.1f ms (%.1f GB/s), reading %.1f ms (%.1f GB/s): %.0f %%\n",
                  n_records, whit_pool_size(pool), searches[ROUNDS / 2] * 1e-6, bytes / searches[ROUNDS / 2],
                  reads[ROUNDS / 2] * 1e-6, bytes / reads[ROUNDS / 2], 100 * share);
    assert_true(share >= wanted_share);
    whit_pool_close(pool);
    whit_memory_close(memory);
}

int main(int argc, char **argv)
{
    whit_cpu cpu;
    whit_cpu_detect(&cpu);
    if (argc > 1) n_records = (uint32_t)strtoul(argv[1], NULL, 10) / BLOCK * BLOCK;
    if (argc > 2) wanted_share = strtod(argv[2], NULL);
    if (whit_quat_select(&cpu, getenv("WHIT_CPU"), &quat, NULL) != WHIT_OK ||
        whit_kernels_select(&cpu, getenv("WHIT_CPU"), &kernels, NULL) != WHIT_OK)
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(search_reads_as_fast_as_memory)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
