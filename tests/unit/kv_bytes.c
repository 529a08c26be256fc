/* SPDX-License-Identifier: MIT
 * What caches take, of the shape of BitNet 2B4T: keys, values, scales, sinks, open blocks and tables, as the arena has
 * them. */
#include "test.h"

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

/* The most sequences of 4,096 tokens in 1 GiB. */
static uint32_t sequences_of(whit_kv_type type)
{
    uint32_t n = 0;
    while (bytes_of(type, n + 1, 4096, USUAL_BATCH) <= 1ull << 30) n++;
    return n;
}

/* What stays between steps; a prompt of 512 tokens at once needs 8 open blocks more in every layer, one of 64 one. */
static void packed_caches_are_small(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        whit_kv_type type;
        double share, share_of_prompts; /* of f16's bytes at 8,192 tokens, at most */
        uint32_t n_times;               /* as many sequences in 1 GiB, at least */
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(packed_caches_are_small)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
