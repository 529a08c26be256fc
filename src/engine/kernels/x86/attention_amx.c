/* SPDX-License-Identifier: MIT
 * Computes attention of many queries over the i8 and f16 caches with AMX, as specified in generic/attention.c.
 *
 *   microtile    MR = 16 queries (a tile of A) x NR = 16 positions (scores) or dimensions (values)
 *                for each of 4 tiles of B, in whose rows four dimensions, or four positions, are
 *                adjacent. The i8 cache has that layout; f16 is first converted to integers of two
 *                digits of seven bits, and needs three products
 *   KC           scores: the head; values: the visible part of a group, 256 positions
 *   registers    8 of tiles: 0..3 sums, 4, 5 queries or probabilities (high and low digits), 6, 7 B
 *   L1           scores, probabilities and partials of the 16 queries
 *   L2           keys and values of the group, converted once for all queries of a call
 *
 * compile with: -mamx-tile -mamx-int8 */
#include "kernels/x86/lanes_avx512.inc"

#include "kernels/wide/elementary.inc"
#include "kernels/wide/f16_codes.inc"
#include "kernels/wide/softmax.inc"
#include "kernels/x86/amx_tiles.h"
#include "kernels/x86/softmax_tile.inc"

whit_kv_attend_fn AMX_NAME(whit_kv_attend_i8_amx), AMX_NAME(whit_kv_attend_f16_amx);

/* Number of queries per pass, which fill a tile; smallest number of queries of a call for which AMX is faster. */
#define PASS  TILE_QUERIES
#define LEAST 16
/* The size of a head must be a multiple of CHUNK_DIMS, the width of a tile, and at most MOST_DIMS. */
#define CHUNK_DIMS 64
#define MOST_DIMS  256
#define QUAD_BYTES (4 * BLOCK) /* bytes of four dimensions of a block's keys (i8) */
#define TILE_BYTES (AMX_ROWS * AMX_ROW_BYTES)

typedef int32_t tile_sums[4][AMX_ROWS][16];

/* Factors that merge a pass's new partials into the old ones: old * old_factor + new * new_factor, for each query. */
typedef struct merge_factors {
    _Alignas(64) float old_factor[PASS], new_factor[PASS];
    __mmask16 has_old[PASS], stores[PASS]; /* for each query a mask of lanes, all ones or 0: there is an old partial;
                                            * the merged partial is stored */
} merge_factors;

typedef struct workspace {
    softmax_state s;
    merge_factors merge;
    tile_sums sums[2];
    int8_t queries[2 * PASS * MOST_DIMS]; /* copy of the queries' digits, if the queries do not fill a tile */
    uint8_t *keys[2], *values[2];         /* f16: high and low digits as tiles, in whit_kv_group.converted */
} workspace;

/* ---- f16 to digits -------------------------------------------------------------------------- */

/* Splits four rows of sixteen codes, in the low sixteen bits of lanes, into two 7-bit digits, and stores the quads of
 * high digits and of low digits. */
INLINE void store_digits(const vi rows[4], uint8_t *high, uint8_t *low)
{
    const vi even = vi_set(0x00FF00FF), sevens = vi_set(0x7F7F7F7F);
    enum { PICK = 0xCA }; /* truth table of a ? b : c */
    const vi first = _mm512_mask_blend_epi16(0xAAAAAAAA, rows[0], vi_shift_left(rows[2], 16));
    const vi second = _mm512_mask_blend_epi16(0xAAAAAAAA, rows[1], vi_shift_left(rows[3], 16));
    const vi low_bytes = _mm512_ternarylogic_epi32(even, first, _mm512_slli_epi16(second, 8), PICK);
    const vi high_bytes =
        _mm512_ternarylogic_epi32(even, _mm512_srli_epi16(first, 7), _mm512_slli_epi16(second, 1), PICK);
    vi_store(low, vi_and(low_bytes, sevens));
    vi_store(high, high_bytes);
}

/* Convert the keys of an f16 block to digits in tiles of 64 dimensions by sixteen positions, and the values to digits
 * in tiles of 64 positions by sixteen dimensions. */
static void digits_of_keys(const whit_kv_arrays *kv, uint32_t head_dim, uint8_t *high, uint8_t *low)
{
    for (uint32_t j = 0; j < BLOCK; j += 16) {
        const vf factor = f16_factors(vf_load(kv->key_scales + j));
        const uint16_t *row = (const uint16_t *)kv->keys + j;
        for (uint32_t d = 0; d < head_dim; d += 4, row += 4 * BLOCK) {
            vi rows[4];
            for (int i = 0; i < 4; i++) rows[i] = f16_codes(row + i * BLOCK, factor);
            size_t tile = j / 16 * (head_dim / CHUNK_DIMS) + d / CHUNK_DIMS;
            size_t at = tile * TILE_BYTES + d % CHUNK_DIMS / 4 * AMX_ROW_BYTES;
            store_digits(rows, high + at, low + at);
        }
    }
}

static void digits_of_values(const whit_kv_arrays *kv, uint32_t head_dim, uint8_t *high, uint8_t *low)
{
    for (uint32_t j = 0; j < BLOCK; j += 4) {
        const uint16_t *row = (const uint16_t *)kv->values + (size_t)j * head_dim;
        vf factors[4];
        for (int i = 0; i < 4; i++) factors[i] = f16_factors(vf_set(kv->value_scales[j + (uint32_t)i]));
        for (uint32_t d = 0; d < head_dim; d += 16) {
            vi rows[4];
            for (uint32_t i = 0; i < 4; i++) rows[i] = f16_codes(row + i * head_dim + d, factors[i]);
            size_t at = d / 16 * TILE_BYTES + j / 4 * AMX_ROW_BYTES;
            store_digits(rows, high + at, low + at);
        }
    }
}

/* Converts the blocks that a query of the call attends to and that group->converted does not contain yet. */
static void digits_of_group(const pass *all, whit_kv_group *group, workspace *own)
{
    const size_t block_bytes = (size_t)BLOCK * all->head_dim;
    for (size_t i = 0; i < 2; i++) {
        own->keys[i] = (uint8_t *)group->converted + i * WHIT_KV_GROUP_BLOCKS * block_bytes;
        own->values[i] = own->keys[i] + 2 * WHIT_KV_GROUP_BLOCKS * block_bytes;
    }
    for (uint32_t b = all->begin / BLOCK; b * BLOCK < all->end; b++) {
        const size_t at = b * block_bytes;
        if (group->valid >> b & 1) continue;
        digits_of_keys(&all->kv[b], all->head_dim, own->keys[0] + at, own->keys[1] + at);
        digits_of_values(&all->kv[b], all->head_dim, own->values[0] + at, own->values[1] + at);
        group->valid |= 1u << b;
    }
}

/* ---- sums ----------------------------------------------------------------------------------- */

INLINE void zero_sums(amx_state *amx, const int n)
{
    (void)amx;
    AMX_ZERO(amx, 0);
    AMX_ZERO(amx, 1);
    AMX_ZERO(amx, 2);
    if (n == 4) AMX_ZERO(amx, 3);
}

INLINE void store_sums(amx_state *amx, const int n, tile_sums sums)
{
    (void)amx;
    AMX_STORE(amx, 0, sums[0], 64);
    AMX_STORE(amx, 1, sums[1], 64);
    AMX_STORE(amx, 2, sums[2], 64);
    if (n == 4) AMX_STORE(amx, 3, sums[3], 64);
}

/* A start_fn multiplies the tiles of job i and stores their sums in `sums`. A finish_fn computes the results of job i
 * from the sums. */
typedef void start_fn(const pass *t, workspace *own, amx_state *amx, uint32_t i, tile_sums sums);
typedef void finish_fn(const pass *t, workspace *own, uint32_t i, const tile_sums sums);

/* Runs jobs [begin, end) as a software pipeline: the tiles of one job are multiplied while the sums of the previous job
 * are processed. */
INLINE void run_jobs(const pass *t, workspace *own, amx_state *amx, uint32_t begin, uint32_t end, start_fn *start,
                     finish_fn *finish)
{
    for (uint32_t i = begin; i <= end; i++) {
        amx_written();
        if (i < end) start(t, own, amx, i, own->sums[i % 2]);
        amx_written();
        if (i > begin) finish(t, own, i - 1, own->sums[(i - 1) % 2]);
    }
}

/* Returns the address of the queries' digits as rows of a tile, *stride bytes apart: `bytes` bytes from offset `at` of
 * each query. */
INLINE const int8_t *query_tile(const pass *t, workspace *own, size_t at, size_t bytes, size_t *stride)
{
    const uint8_t *queries = t->queries + at;
    *stride = t->query_bytes;
    if (t->n == PASS) return (const int8_t *)queries;
    /* Rows after the last query stay undefined, because their results are ignored. */
    *stride = bytes;
    for (uint32_t i = 0; i < t->n; i++) memcpy(own->queries + i * bytes, queries + i * t->query_bytes, bytes);
    amx_written();
    return own->queries;
}

/* Loads the high digits of block b's probabilities into tile register 4, and the low digits into tile register 5. */
INLINE void load_probs(const workspace *own, amx_state *amx, uint32_t b)
{
    (void)amx;
    AMX_LOAD(amx, 4, own->s.high[0] + b * BLOCK, GROUP);
    AMX_LOAD(amx, 5, own->s.low[0] + b * BLOCK, GROUP);
}

/* ---- merging -------------------------------------------------------------------------------- */

INLINE float *outputs_of(const pass *t)
{
    return t->into ? t->into : t->partials;
}

/* Merges sixteen sums of values of query r into `out`, which has the outputs of earlier groups, or stores them if
 * t->into is NULL. */
INLINE void put_values(const pass *t, const workspace *own, uint32_t r, float *out, vi sums)
{
    const vf values = vf_mul(vf_from_ints(sums), vf_set(own->s.unit[r]));
    if (!t->into) {
        vf_store(out, values);
        return;
    }
    const vf old = _mm512_maskz_loadu_ps(own->merge.has_old[r], out);
    _mm512_mask_storeu_ps(
        out, own->merge.stores[r],
        vf_fma(old, vf_set(own->merge.old_factor[r]), vf_mul(values, vf_set(own->merge.new_factor[r]))));
}

/* Stores the maximum and sum of each query with its outputs, and computes the factors with which kv_merge would merge
 * the outputs. For a query without an old partial, old_factor is -0 and new_factor 1: 0 * -0 + 1 * value is the value
 * exactly, even -0. */
INLINE void plan_merge(const pass *t, workspace *own)
{
    const softmax_state *s = &own->s;
    merge_factors *merge = &own->merge;
    float *out = outputs_of(t) + t->head_dim;
    if (!t->into) {
        for (uint32_t r = 0; r < t->n; r++, out += t->partial_elems) out[0] = s->max[r], out[1] = s->sum[r];
        return;
    }
    float max[PASS] = {0}, sum[PASS] = {0};
    for (uint32_t r = 0; r < t->n; r++) {
        max[r] = out[r * t->partial_elems];
        sum[r] = out[r * t->partial_elems + 1];
    }
    const vf sum_a = vf_load(sum), sum_b = vf_load(s->sum), max_b = vf_load(s->max);
    const merged both = merge_partials(vf_load(max), sum_a, max_b, sum_b);
    const __mmask16 has_old = _mm512_cmp_ps_mask(sum_a, vf_zero(), _CMP_NEQ_UQ);
    const __mmask16 stores = _mm512_cmp_ps_mask(sum_b, vf_zero(), _CMP_NEQ_UQ);
    vf_store(merge->old_factor, _mm512_mask_mov_ps(vf_set(-0.0f), has_old, both.factor_a));
    vf_store(merge->new_factor, _mm512_mask_mov_ps(vf_set(1.0f), has_old, both.factor_b));
    vf_store(max, _mm512_mask_mov_ps(max_b, has_old, both.max));
    vf_store(sum, _mm512_mask_mov_ps(sum_b, has_old, both.sum));
    for (uint32_t r = 0; r < t->n; r++, out += t->partial_elems) {
        merge->has_old[r] = has_old >> r & 1 ? 0xFFFF : 0;
        merge->stores[r] = stores >> r & 1 ? 0xFFFF : 0;
        if (merge->stores[r]) out[0] = max[r], out[1] = sum[r];
    }
}

/* Computes the softmax of a pass as digits of probabilities, and prepares merging. */
INLINE void softmax_pass(const pass *t, const whit_kv_type kv, workspace *own)
{
    softmax_tile(t, kv, &own->s);
    plan_merge(t, own);
}

/* ---- i8 ------------------------------------------------------------------------------------- */

/* Starts job i: the scores of block i. */
INLINE void start_scores_i8(const pass *t, workspace *own, amx_state *amx, uint32_t i, tile_sums sums)
{
    size_t stride;
    const int8_t *a = query_tile(t, own, 0, t->head_dim, &stride);
    const uint8_t *b = t->kv[i].keys;
    zero_sums(amx, 4);
    for (uint32_t d = 0; d < t->head_dim; d += CHUNK_DIMS, b += CHUNK_DIMS * BLOCK) {
        AMX_LOAD(amx, 4, a + d, stride);
        AMX_LOAD(amx, 6, b, QUAD_BYTES);
        AMX_LOAD(amx, 7, b + 64, QUAD_BYTES);
        AMX_MULTIPLY(amx, 0, 4, 6);
        AMX_MULTIPLY(amx, 1, 4, 7);
        AMX_LOAD(amx, 6, b + 128, QUAD_BYTES);
        AMX_LOAD(amx, 7, b + 192, QUAD_BYTES);
        AMX_MULTIPLY(amx, 2, 4, 6);
        AMX_MULTIPLY(amx, 3, 4, 7);
    }
    store_sums(amx, 4, sums);
}

INLINE void finish_scores_i8(const pass *t, workspace *own, uint32_t i, const tile_sums sums)
{
    const uint8_t *scale = t->queries + whit_kv_query_scale_offset(WHIT_KV_I8, t->head_dim);
    for (uint32_t r = 0; r < t->n; r++, scale += t->query_bytes) {
        const vf factor = vf_set(whit_load_f32(scale) * t->scale);
        /* keys are stored as code + 128, so 128 times the sum of the query's codes is subtracted */
        const vi bias = vi_set(128 * (int32_t)whit_load_u32(scale + 4));
        for (uint32_t v = 0; v < BLOCK / 16; v++)
            vf_store(&own->s.scores[r][i * BLOCK + 16 * v],
                     vf_mul(vf_from_ints(vi_sub(vi_load(sums[v][r]), bias)),
                            vf_mul(factor, vf_load(t->kv[i].key_scales + 16 * v))));
    }
}

/* Starts job i: the weighted sums of values in dimensions [32 i, 32 i + 32). */
INLINE void start_values_i8(const pass *t, workspace *own, amx_state *amx, uint32_t i, tile_sums sums)
{
    const size_t row_bytes = 4 * (size_t)t->head_dim;
    zero_sums(amx, 4);
    for (uint32_t b = t->begin / BLOCK; b * BLOCK < t->end; b++) {
        const uint8_t *values = (const uint8_t *)t->kv[b].values + (size_t)i * 128;
        load_probs(own, amx, b);
        AMX_LOAD(amx, 6, values, row_bytes);
        AMX_LOAD(amx, 7, values + 64, row_bytes);
        AMX_MULTIPLY(amx, 0, 4, 6);
        AMX_MULTIPLY(amx, 1, 4, 7);
        AMX_MULTIPLY(amx, 2, 5, 6);
        AMX_MULTIPLY(amx, 3, 5, 7);
    }
    store_sums(amx, 4, sums);
}

INLINE void finish_values_i8(const pass *t, workspace *own, uint32_t i, const tile_sums sums)
{
    float *out = outputs_of(t) + i * 32;
    for (uint32_t r = 0; r < t->n; r++, out += t->partial_elems) {
        const vi bias = vi_set(128 * own->s.total[r]); /* values are stored as code + 128, so 128 times the sum of
                                                        * the probabilities' integers is subtracted */
        for (uint32_t v = 0; v < 2; v++) {
            vi sum = vi_add(vi_shift_left(vi_load(sums[v][r]), 7), vi_load(sums[2 + v][r]));
            put_values(t, own, r, out + 16 * v, vi_sub(sum, bias));
        }
    }
}

/* ---- f16 ------------------------------------------------------------------------------------ */

/* Multiplies the two digits of A (tiles 4 high, 5 low) by the two of B (6 high, 7 low): tile 0 sums high * high, tile 1
 * both mixed products, tile 2 low * low. */
INLINE void multiply_digits(amx_state *amx)
{
    (void)amx;
    AMX_MULTIPLY_SIGNED(amx, 1, 4, 7);
    AMX_MULTIPLY_SIGNED(amx, 0, 4, 6);
    AMX_MULTIPLY_SIGNED(amx, 2, 5, 7);
    AMX_MULTIPLY_SIGNED(amx, 1, 5, 6);
}

INLINE vi sum_of_digits(const tile_sums sums, uint32_t r)
{
    vi upper = vi_add(vi_shift_left(vi_load(sums[0][r]), 7), vi_load(sums[1][r]));
    return vi_add(vi_shift_left(upper, 7), vi_load(sums[2][r]));
}

/* Starts job i: the scores of positions [16 i, 16 i + 16). */
INLINE void start_scores_f16(const pass *t, workspace *own, amx_state *amx, uint32_t i, tile_sums sums)
{
    const size_t digit_bytes = t->head_dim;
    size_t stride, at = (size_t)i * (t->head_dim / CHUNK_DIMS) * TILE_BYTES;
    const int8_t *a = query_tile(t, own, 2 * digit_bytes, 2 * digit_bytes, &stride);
    zero_sums(amx, 3);
    for (uint32_t d = 0; d < t->head_dim; d += CHUNK_DIMS, at += TILE_BYTES) {
        AMX_LOAD(amx, 4, a + d, stride);
        AMX_LOAD(amx, 6, own->keys[0] + at, AMX_ROW_BYTES);
        AMX_LOAD(amx, 7, own->keys[1] + at, AMX_ROW_BYTES);
        AMX_LOAD(amx, 5, a + digit_bytes + d, stride);
        multiply_digits(amx);
    }
    store_sums(amx, 3, sums);
}

INLINE void finish_scores_f16(const pass *t, workspace *own, uint32_t i, const tile_sums sums)
{
    const uint8_t *scale = t->queries + whit_kv_query_scale_offset(WHIT_KV_F16, t->head_dim);
    const vf key_scales = vf_load(t->kv[16 * i / BLOCK].key_scales + 16 * i % BLOCK);
    for (uint32_t r = 0; r < t->n; r++, scale += t->query_bytes)
        vf_store(
            &own->s.scores[r][16 * i],
            vf_mul(vf_from_ints(sum_of_digits(sums, r)), vf_mul(vf_set(whit_load_f32(scale) * t->scale), key_scales)));
}

/* Starts job i: the weighted sums of values in dimensions [16 i, 16 i + 16). */
INLINE void start_values_f16(const pass *t, workspace *own, amx_state *amx, uint32_t i, tile_sums sums)
{
    zero_sums(amx, 3);
    for (uint32_t b = t->begin / BLOCK; b * BLOCK < t->end; b++) {
        const size_t at = (size_t)b * BLOCK * t->head_dim + (size_t)i * TILE_BYTES;
        load_probs(own, amx, b);
        AMX_LOAD(amx, 6, own->values[0] + at, AMX_ROW_BYTES);
        AMX_LOAD(amx, 7, own->values[1] + at, AMX_ROW_BYTES);
        multiply_digits(amx);
    }
    store_sums(amx, 3, sums);
}

INLINE void finish_values_f16(const pass *t, workspace *own, uint32_t i, const tile_sums sums)
{
    float *out = outputs_of(t) + i * 16;
    for (uint32_t r = 0; r < t->n; r++, out += t->partial_elems) put_values(t, own, r, out, sum_of_digits(sums, r));
}

/* ---- attention over a group ----------------------------------------------------------------- */

static bool takes(uint32_t n, uint32_t head_dim)
{
    return n >= LEAST && head_dim % CHUNK_DIMS == 0 && head_dim <= MOST_DIMS;
}

INLINE void attend(const whit_kv_type kv, whit_kv_group *group, const uint8_t *queries, const whit_kv_span *spans,
                   uint32_t n, uint32_t head_dim, float scale, float *partials, float *into)
{
    workspace own;
    amx_state amx;
    const amx_config config = amx_whole_tiles();
    pass all = pass_of_call(kv, group, NULL, queries, spans, n, head_dim, scale, partials, into);
    find_positions(&all);
    for (uint32_t b = all.begin / BLOCK; b * BLOCK < all.end; b++)
        memcpy(own.s.value_scales + b * BLOCK, all.kv[b].value_scales, BLOCK * sizeof(float));
    if (kv == WHIT_KV_F16) digits_of_group(&all, group, &own);
    amx_begin(&amx, &config);
    for (uint32_t q = 0; q < n; q += PASS) {
        pass t = slice_of_pass(&all, q, PASS);
        if (!see_positions(&t)) continue;
        if (kv == WHIT_KV_I8) {
            run_jobs(&t, &own, &amx, t.begin / BLOCK, (t.end + BLOCK - 1) / BLOCK, start_scores_i8, finish_scores_i8);
            softmax_pass(&t, kv, &own);
            run_jobs(&t, &own, &amx, 0, head_dim / 32, start_values_i8, finish_values_i8);
        } else {
            run_jobs(&t, &own, &amx, t.begin / 16, (t.end + 15) / 16, start_scores_f16, finish_scores_f16);
            softmax_pass(&t, kv, &own);
            run_jobs(&t, &own, &amx, 0, head_dim / 16, start_values_f16, finish_values_f16);
        }
    }
    amx_end(&amx);
}

void AMX_NAME(whit_kv_attend_i8_amx)(whit_kv_group *group, const whit_kv_group *next, const uint8_t *queries,
                                     const whit_kv_span *spans, uint32_t n, uint32_t head_dim, float scale,
                                     float *partials, float *into)
{
    if (takes(n, head_dim))
        attend(WHIT_KV_I8, group, queries, spans, n, head_dim, scale, partials, into);
    else
        whit_kv_attend_i8_avx512(group, next, queries, spans, n, head_dim, scale, partials, into);
}

void AMX_NAME(whit_kv_attend_f16_amx)(whit_kv_group *group, const whit_kv_group *next, const uint8_t *queries,
                                      const whit_kv_span *spans, uint32_t n, uint32_t head_dim, float scale,
                                      float *partials, float *into)
{
    if (takes(n, head_dim) && group->converted)
        attend(WHIT_KV_F16, group, queries, spans, n, head_dim, scale, partials, into);
    else
        whit_kv_attend_f16_avx512(group, next, queries, spans, n, head_dim, scale, partials, into);
}
