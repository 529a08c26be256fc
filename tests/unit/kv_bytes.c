/* SPDX-License-Identifier: MIT
 * Tests the size of KV caches for the shape of BitNet 2B4T: keys, values, scales, sinks, open blocks and tables, as
 * in the arena. */
#include "test.h"

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#endif

#include "kv/cache.h"

enum { N_LAYERS = 30, USUAL_BATCH = 512 };

static uint64_t bytes_of(whit_kv_type type, uint32_t n_sequences, uint32_t n_ctx_tokens, uint32_t n_batch_tokens)
{
    whit_kv kv;
    uint64_t bytes;
    whit_kv_layer layers[N_LAYERS];
    for (uint32_t i = 0; i < N_LAYERS; i++)
        layers[i] = (whit_kv_layer){.n_heads = 20, .n_kv_heads = 5, .head_dim = 128, .rope_pairs = 64};
    const whit_kv_shape shape = {.type = type,
                                 .layers = layers,
                                 .n_layers = N_LAYERS,
                                 .n_sequences = n_sequences,
                                 .n_ctx_tokens = n_ctx_tokens,
                                 .n_batch_tokens = n_batch_tokens,
                                 .n_window_blocks = 1};
    assert_true(whit_kv_measure(&shape, &kv, &bytes));
    return bytes;
}

/* Returns how many sequences of 4,096 tokens fit in 1 GiB. */
static uint32_t sequences_of(whit_kv_type type)
{
    uint32_t n = 0;
    while (bytes_of(type, n + 1, 4096, USUAL_BATCH) <= 1ull << 30) n++;
    return n;
}

/* Limits of the cache's size. A prompt in passes of 512 tokens needs 8 more open blocks in every layer than single
 * tokens do, one in passes of 64 tokens needs 1 more. */
static void packed_caches_are_small(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        whit_kv_type type;
        double share, share_of_prompts; /* maximum share of f16's bytes at 8,192 tokens */
        uint32_t n_times;               /* least multiple of f16's sequences in 1 GiB */
    } types[] = {{"k4v2", WHIT_KV_K4V2, 0.23, 0.289, 4},
                 {"k2v2", WHIT_KV_K2V2, 0.165, 0.228, 5},
                 {"bitmap", WHIT_KV_BITMAP, 0.165, 0.228, 5}};
    const uint32_t n_f16 = sequences_of(WHIT_KV_F16);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        double shares[3];
        for (int k = 0; k < 3; k++) {
            const uint32_t n_batch = k == 2 ? 64 : k ? USUAL_BATCH : 1;
            shares[k] =
                (double)bytes_of(types[i].type, 1, 8192, n_batch) / (double)bytes_of(WHIT_KV_F16, 1, 8192, n_batch);
        }
        const uint32_t n = sequences_of(types[i].type);
        print_message("%s: %.4f of f16's bytes at 8,192 tokens, with prompts in passes of 512 %.4f, of 64 %.4f; in "
                      "1 GiB %u sequences of 4,096, f16 %u\n",
                      types[i].name, shares[0], shares[1], shares[2], n, n_f16);
        assert_true(shares[0] <= types[i].share && shares[1] <= types[i].share_of_prompts);
        assert_true(n >= types[i].n_times * n_f16);
    }
}

#ifdef __linux__
static size_t count_resident(uint8_t *begin, size_t size_bytes)
{
    static unsigned char pages[1 << 16];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), n = size_bytes / page;
    size_t n_resident = 0;
    assert_true(n <= sizeof pages && mincore(begin, n * page, pages) == 0);
    for (size_t i = 0; i < n; i++) n_resident += pages[i] & 1;
    return n_resident * page;
}

/* A group of blocks gets its memory in small parts while the last blocks of the groups before it are filled, and no
 * earlier; bytes that are there are not changed. */
static void groups_get_memory_ahead(void **state)
{
    (void)state;
    whit_kv_pool pool;
    uint64_t bytes;
    assert_true(whit_kv_pool_size(&pool, 30, 5, whit_kv_block_bytes(WHIT_KV_F16, 128), 10, &bytes));
    uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    madvise(memory, bytes, MADV_NOHUGEPAGE); /* huge pages are resident as a whole */
    if (madvise(memory, (size_t)sysconf(_SC_PAGESIZE), MADV_POPULATE_WRITE)) skip(); /* a kernel before Linux 5.14 */
    whit_kv_pool_init(&pool, memory);
    const size_t group = WHIT_KV_GROUP_BLOCKS * pool.block_bytes, last = 2 * pool.block_bytes;
    for (uint32_t i = 0; i < WHIT_KV_GROUP_BLOCKS; i++) {
        assert_int_equal(whit_kv_pool_take(&pool), i);
        memset(memory, WHIT_KV_GROUP_BLOCKS, group);
        if (i + 1 < WHIT_KV_GROUP_BLOCKS) whit_kv_pool_populate(&pool, 1);
        assert_int_equal(count_resident(memory + group, group), 0);
    }
    whit_kv_pool_populate(&pool, 1);
    for (size_t n = WHIT_KV_POPULATE_BYTES; n < group; n += WHIT_KV_POPULATE_BYTES) {
        assert_in_range(count_resident(memory + group, group), n, n + 4096);
        whit_kv_pool_populate(&pool, 1);
    }
    assert_int_equal(count_resident(memory + group, group), group);
    whit_kv_pool_populate(&pool, WHIT_KV_GROUP_BLOCKS);
    assert_int_equal(count_resident(memory + 2 * group, last), 0);
    whit_kv_pool_populate(&pool, WHIT_KV_GROUP_BLOCKS + 1);
    assert_in_range(count_resident(memory + 2 * group, last), WHIT_KV_POPULATE_BYTES, WHIT_KV_POPULATE_BYTES + 4096);
    for (uint32_t i = 0; i < 100; i++) whit_kv_pool_populate(&pool, UINT32_MAX);
    assert_int_equal(pool.populated_bytes, 10 * pool.block_bytes);
    for (size_t i = 0; i < group; i++) assert_int_equal(memory[i], WHIT_KV_GROUP_BLOCKS);
    for (size_t i = group; i < 10 * pool.block_bytes; i += 4096) assert_int_equal(memory[i], 0);
    munmap(memory, bytes);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_caches_are_small),
#ifdef __linux__
        cmocka_unit_test(groups_get_memory_ahead),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
