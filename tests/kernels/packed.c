/* SPDX-License-Identifier: MIT
 * Compares the packed caches with plain sums in double precision over the content of their blocks, which are decoded
 * here by the layout in kernels/kv_packed.h; and that content with the packed values. */
#include <math.h>
#include <string.h>

#include "kernels/equal.h"

enum { BLOCK = WHIT_KV_BLOCK_TOKENS, GROUP = WHIT_KV_GROUP_TOKENS, MOST_DIMS = 256 };

/* Keys and values of a group as given to a cache, and the blocks made of them. */
typedef struct test_cache {
    whit_kv_type type;
    uint32_t head_dim, n_pairs, n_closed;
    float keys[GROUP][MOST_DIMS], values[GROUP][MOST_DIMS];            /* the values given to the cache */
    double held_keys[GROUP][MOST_DIMS], held_values[GROUP][MOST_DIMS]; /* the values decoded from the blocks */
    float rope[MOST_DIMS * BLOCK];
    uint8_t *blocks[WHIT_KV_GROUP_BLOCKS], *sinks;
    whit_kv_group group;
} test_cache;

static double normal(whit_rng *rng)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) sum += whit_rng_uniform(rng);
    return sum - 6;
}

/* Undoes the rotation of a head's values in double precision, by the whole matrix and not by butterflies. */
static void turn_back(const double *x, uint32_t head_dim, double *out)
{
    for (uint32_t first = 0, n; first < head_dim; first += n) {
        for (n = 64; n > head_dim - first; n /= 2) {
        }
        for (uint32_t i = 0; i < n; i++) {
            double sum = 0;
            for (uint32_t j = 0; j < n; j++) sum += __builtin_popcount(i & j) % 2 ? -x[first + j] : x[first + j];
            out[first + i] = sum * pow(2, -ceil(log2(n) / 2));
        }
    }
}

static int trit_at(const uint32_t *words, size_t word, uint32_t stride, uint32_t bit)
{
    const bool is_active = words[word] >> bit & 1, is_positive = words[word + stride] >> bit & 1;
    assert_true(is_active || !is_positive);
    return !is_active ? 0 : is_positive ? 1 : -1;
}

/* Decodes a block of the bitmap type. */
static void decode_bitmap(test_cache *c, uint32_t b)
{
    const whit_kv_bitmap p = whit_kv_bitmap_arrays(c->head_dim, c->blocks[b]);
    for (uint32_t j = 0; j < BLOCK; j++) {
        double key[MOST_DIMS] = {0}, value[MOST_DIMS] = {0};
        for (uint32_t d = 0; d < c->head_dim; d++) {
            key[d] = (double)p.middles[d] * (double)p.units[1] +
                trit_at(p.keys, d / 32 * 128 + j, 64, d % 32) * (p.key_steps[d] * (double)p.units[0]);
            value[d] = trit_at(p.values, (d / 16 * 2 + j / 32) * 32 + d % 16, 16, j % 32) *
                (p.value_steps[d / 64 * 64 + j] * (double)p.units[2]);
        }
        memcpy(c->held_keys[b * BLOCK + j], key, sizeof key);
        turn_back(value, c->head_dim, c->held_values[b * BLOCK + j]);
    }
}

/* Decodes the closed block b: keys rotated to their positions (RoPE), values with their rotation undone. */
static void decode(test_cache *c, uint32_t b)
{
    if (c->type == WHIT_KV_BITMAP) {
        decode_bitmap(c, b);
        return;
    }
    const whit_kv_packed p = whit_kv_packed_arrays(c->type, c->head_dim, c->blocks[b]);
    const uint32_t bits = c->type == WHIT_KV_K4V2 ? 4 : 2, n_channels = 32 / bits;
    for (uint32_t j = 0; j < BLOCK; j++) {
        double key[MOST_DIMS] = {0}, value[MOST_DIMS] = {0}, *held = c->held_keys[b * BLOCK + j];
        for (uint32_t d = 0; d < c->head_dim; d++) {
            const uint32_t word = p.keys[d / n_channels * 64 + j],
                           code = word >> d % n_channels * bits & ((1u << bits) - 1);
            key[d] = (double)whit_f32_from_f16(p.key_least[d]) + (double)code * p.key_steps[d] * (double)p.units[0];
            value[d] = (2.0 * whit_kv_value_code(p.values, c->head_dim, j, d) - 3) * p.value_steps[d / 64 * 64 + j] *
                (double)p.units[3];
        }
        memcpy(held, key, sizeof key);
        for (uint32_t i = 0; i < c->n_pairs; i++) {
            const double cosine = (double)c->rope[i * BLOCK + j], sine = (double)c->rope[(c->n_pairs + i) * BLOCK + j];
            held[i] = key[i] * cosine - key[i + c->n_pairs] * sine;
            held[i + c->n_pairs] = key[i + c->n_pairs] * cosine + key[i] * sine;
        }
        turn_back(value, c->head_dim, c->held_values[b * BLOCK + j]);
    }
}

/* Makes a random cache: all values have one scale; keys have a mean and a spread per channel, before RoPE. */
static test_cache *make_cache(const whit_kernels *k, whit_kv_type type, uint32_t head_dim, uint32_t n_pairs,
                              uint32_t n_closed, bool has_sinks, whit_rng *rng)
{
    test_cache *c = calloc(1, sizeof *c);
    double frequencies[MOST_DIMS], mean[MOST_DIMS], spread[MOST_DIMS];
    *c = (test_cache){.type = type, .head_dim = head_dim, .n_pairs = n_pairs, .n_closed = n_closed};
    whit_rope_frequencies(10000, n_pairs, NULL, frequencies);
    whit_kv_offset_table(frequencies, n_pairs, c->rope);
    for (uint32_t d = 0; d < head_dim; d++) mean[d] = 2 * normal(rng), spread[d] = 0.2 + fabs(normal(rng));
    for (uint32_t p = 0; p < GROUP; p++) {
        float key[MOST_DIMS] = {0};
        for (uint32_t d = 0; d < head_dim; d++) {
            key[d] = (float)(mean[d] + spread[d] * normal(rng));
            c->values[p][d] = (float)normal(rng);
        }
        memcpy(c->keys[p], key, sizeof key);
        for (uint32_t i = 0; i < n_pairs; i++) {
            const double angle = p * frequencies[i];
            c->keys[p][i] = (float)(key[i] * cos(angle) - key[i + n_pairs] * sin(angle));
            c->keys[p][i + n_pairs] = (float)(key[i + n_pairs] * cos(angle) + key[i] * sin(angle));
        }
        for (uint32_t d = 0; d < head_dim; d++) {
            c->held_keys[p][d] = (double)c->keys[p][d];
            c->held_values[p][d] = (double)c->values[p][d];
        }
    }
    const whit_kv_packing how = {.rope = c->rope, .rope_pairs = n_pairs};
    c->group = (whit_kv_group){.closed = (1u << n_closed) - 1, .rope = c->rope, .rope_pairs = n_pairs};
    for (uint32_t b = 0; b < WHIT_KV_GROUP_BLOCKS; b++) {
        c->blocks[b] = guarded_alloc(whit_kv_block_bytes(WHIT_KV_F16, head_dim), 0);
        whit_kv_append(k, type)(c->blocks[b], 0, BLOCK, head_dim, c->keys[b * BLOCK], c->values[b * BLOCK], MOST_DIMS);
        if (b < n_closed) {
            uint8_t *open = c->blocks[b];
            const bool keeps = b == 0 && has_sinks;
            c->blocks[b] = guarded_alloc(whit_kv_block_bytes(type, head_dim), 0);
            if (keeps) c->group.sinks = c->sinks = guarded_alloc(whit_kv_block_bytes(type, head_dim), 0);
            whit_kv_pack(k, type)(open, head_dim, &how, c->blocks[b], keeps ? c->sinks : NULL);
            guarded_check(c->blocks[b], whit_kv_block_bytes(type, head_dim));
            guarded_free(open, 0);
            double sinks[2][WHIT_KV_SINKS][MOST_DIMS];
            memcpy(sinks[0], c->held_keys, sizeof sinks[0]);
            memcpy(sinks[1], c->held_values, sizeof sinks[1]);
            decode(c, b);
            if (keeps) {
                memcpy(c->held_keys, sinks[0], sizeof sinks[0]);
                memcpy(c->held_values, sinks[1], sizeof sinks[1]);
            }
        }
        c->group.blocks[b] = c->blocks[b];
    }
    return c;
}

static void free_cache(test_cache *c)
{
    for (uint32_t b = 0; b < WHIT_KV_GROUP_BLOCKS; b++) guarded_free(c->blocks[b], 0);
    if (c->sinks) guarded_free(c->sinks, 0);
    free(c);
}

/* Compares the attention of one query to positions [begin, end) of the group with a computation in double precision. */
static void attend(const whit_kernels *k, test_cache *c, uint32_t begin, uint32_t end, whit_rng *rng)
{
    float q[MOST_DIMS], out[MOST_DIMS], partial[MOST_DIMS + 32];
    const float scale = 1 / sqrtf((float)c->head_dim);
    uint8_t *query = guarded_alloc(whit_kv_query_bytes(c->type, c->head_dim), 0);
    for (uint32_t d = 0; d < c->head_dim; d++) q[d] = (float)(normal(rng) / 2);
    whit_kv_query(k, c->type)(q, MOST_DIMS, 1, c->head_dim, query);
    const whit_kv_span span = {(uint16_t)begin, (uint16_t)end};
    whit_kv_attend(k, c->type)(&c->group, NULL, query, &span, 1, c->head_dim, scale, partial, NULL);
    whit_kv_finish(k, c->type)(partial, c->head_dim, out);
    double scores[GROUP], most = -1e300, sum = 0;
    for (uint32_t p = begin; p < end; p++) {
        scores[p] = 0;
        for (uint32_t d = 0; d < c->head_dim; d++) scores[p] += (double)q[d] * c->held_keys[p][d];
        scores[p] *= (double)scale;
        most = fmax(most, scores[p]);
    }
    for (uint32_t p = begin; p < end; p++) sum += scores[p] = exp(scores[p] - most);
    for (uint32_t d = 0; d < c->head_dim; d++) {
        double expected = 0;
        for (uint32_t p = begin; p < end; p++) expected += scores[p] / sum * c->held_values[p][d];
        if (!(fabs((double)out[d] - expected) < 6e-3))
            fail_msg("type %d, %u dims, %u pairs, %u closed, [%u, %u): dimension %u is %g, sums give %g", (int)c->type,
                     c->head_dim, c->n_pairs, c->n_closed, begin, end, d, (double)out[d], expected);
    }
    guarded_free(query, 0);
}

static void attention_reads_what_blocks_hold(void **state)
{
    (void)state;
    whit_rng rng = {test_seed()};
    whit_kernels generic, machine;
    both_levels(&generic, &machine);
    static const uint32_t dims[] = {8, 16, 32, 48, 64, 80, 96, 128, 256};
    for (int type = WHIT_KV_K4V2; type <= WHIT_KV_BITMAP; type++)
        for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
            for (uint32_t n_closed = 0; n_closed <= WHIT_KV_GROUP_BLOCKS; n_closed++) {
                const uint32_t n_pairs = type == WHIT_KV_BITMAP || n_closed % 3 == 0 ? 0
                    : n_closed == 2                                                  ? dims[i] / 4
                                                                                     : dims[i] / 2;
                test_cache *c = make_cache(n_closed % 2 ? &machine : &generic, (whit_kv_type)type, dims[i], n_pairs,
                                           n_closed, n_closed != 4, &rng);
                attend(&machine, c, 0, GROUP, &rng);
                attend(&generic, c, 0, 130, &rng);
                attend(&machine, c, 2, 3, &rng);
                attend(&machine, c, 77, 200, &rng);
                free_cache(c);
            }
}

/* A key's error must be at most half a step, plus rounding. The projection of a decoded value on the original must have
 * the original's length, and the squared error must be below 0.15 of the energy; two bits of a normal distribution give
 * an eighth. */
static void packing_is_near(void **state)
{
    (void)state;
    whit_rng rng = {test_seed()};
    whit_kernels generic, machine;
    both_levels(&generic, &machine);
    for (int type = WHIT_KV_K4V2; type <= WHIT_KV_K2V2; type++) {
        enum { DIM = 128 };
        test_cache *c = make_cache(&machine, (whit_kv_type)type, DIM, 0, WHIT_KV_GROUP_BLOCKS, false, &rng);
        double error = 0, energy = 0, along = 0;
        for (uint32_t p = 0; p < GROUP; p++) {
            const whit_kv_packed packed = whit_kv_packed_arrays(c->type, DIM, c->blocks[p / BLOCK]);
            for (uint32_t d = 0; d < DIM; d++) {
                const double step = packed.key_steps[d] * (double)packed.units[WHIT_KV_UNIT_KEY_STEP],
                             key = (double)c->keys[p][d], value = (double)c->values[p][d];
                if (fabs(c->held_keys[p][d] - key) > 0.51 * step + fabs(key) * 2e-3)
                    fail_msg("type %d: key %u of position %u is off by %g, a step is %g", type, d, p,
                             c->held_keys[p][d] - key, step);
                energy += value * value;
                along += value * c->held_values[p][d];
                error += (c->held_values[p][d] - value) * (c->held_values[p][d] - value);
            }
        }
        if (fabs(along / energy - 1) > 0.004) fail_msg("type %d: <x, x^> is %g of <x, x>", type, along / energy);
        if (error / energy > 0.15) fail_msg("type %d: values lose %g of their energy", type, error / energy);
        free_cache(c);
    }
}

static void bytes_of_blocks(void **state)
{
    (void)state;
    const double f16 = (double)whit_kv_block_bytes(WHIT_KV_F16, 128);
    assert_true((double)whit_kv_block_bytes(WHIT_KV_K4V2, 128) / f16 < 0.2021);
    assert_true((double)whit_kv_block_bytes(WHIT_KV_K2V2, 128) / f16 < 0.1405);
    assert_true((double)whit_kv_block_bytes(WHIT_KV_BITMAP, 128) / f16 < 0.1405);
    for (int type = WHIT_KV_K4V2; type <= WHIT_KV_BITMAP; type++)
        for (uint32_t head_dim = 1; head_dim <= WHIT_KV_MAX_HEAD_DIM; head_dim++) {
            const whit_kv_sinks sinks = whit_kv_sinks_arrays(head_dim, NULL);
            const size_t bytes = whit_kv_block_bytes((whit_kv_type)type, head_dim);
            assert_true((uintptr_t)(sinks.values + WHIT_KV_SINKS * head_dim) <= bytes);
            assert_true(bytes % 64 == 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(attention_reads_what_blocks_hold),
                                       cmocka_unit_test(packing_is_near), cmocka_unit_test(bytes_of_blocks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
