/* SPDX-License-Identifier: MIT
 * Uses corrections of any bytes (kernels/corrections.h): if whit_tensor_check accepts them, values, products and
 * rows are computed, and no byte outside the parts may be read. An input is a series of: rows, columns (u16), a byte
 * `how`, and the bytes of the parts. Bits 0 to 2 of `how` say which parts exist, bit 3 that they have the right
 * length, bit 4 that activations are int8. */
#include "kernels/kernels.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *data;
    size_t size, at;
};

static uint8_t next(struct input *in)
{
    return in->data[in->at++ % in->size];
}

static uint8_t *part_of(struct input *in, whit_tensor *w, whit_part part, uint64_t bytes)
{
    uint8_t *memory = whit_alloc(NULL, bytes);
    if (!memory) abort();
    for (uint64_t i = 0; i < bytes; i++) memory[i] = next(in);
    w->part[part] = memory;
    w->part_bytes[part] = bytes;
    return memory;
}

static uint64_t bytes_of(const whit_tensor_type *type)
{
    uint64_t bytes = 0;
    return whit_codec_total_bytes(type, &bytes) ? bytes : 0;
}

static void make_parts(struct input *in, uint8_t how, whit_tensor *w)
{
    bool exact = how & 8;
    uint32_t n_tiles = (w->type.n_rows + 15) / 16, n = 1 + next(in) % w->type.n_cols, rank = 1 + next(in) % 40;
    if (how & 1) {
        uint64_t bytes = whit_outliers_head_bytes(n_tiles) + 2 * (uint64_t)(9 * n_tiles + next(in));
        uint32_t units = (uint32_t)((bytes - whit_outliers_head_bytes(n_tiles)) / 2);
        uint8_t *part = part_of(in, w, WHIT_PART_OUTLIERS, bytes);
        if (exact) memcpy(part + 4 * n_tiles, &units, sizeof units);
        for (uint32_t tile = 0; exact && tile < n_tiles; tile++) { /* most tiles get a valid offset */
            uint32_t begin = units / n_tiles * tile;
            if (next(in) < 200) memcpy(part + 4 * tile, &begin, sizeof begin);
            uint8_t *counts = part + whit_outliers_head_bytes(n_tiles) + 2 * (uint64_t)begin + 2;
            for (int r = 0; r < 16 && next(in) < 240; r++) counts[r] %= 3; /* most counts are made small enough */
        }
    }
    if (how & 2) {
        whit_tensor_type plane = whit_plane_type(&w->type, n);
        uint8_t *part =
            part_of(in, w, WHIT_PART_PLANE, 64 + whit_round_up(2 * n, 64) + bytes_of(&plane) + (exact ? 0 : next(in)));
        if (exact) memcpy(part, &n, sizeof n);
        for (uint32_t j = 0; j < n; j++) /* most columns are made valid */
            if (next(in) < 250) part[64 + 2 * j + 1] %= (uint8_t)(w->type.n_cols / 256 + 1);
    }
    if (how & 4) {
        whit_tensor_type a = whit_factor_type(rank, w->type.n_cols), b = whit_factor_type(w->type.n_rows, rank);
        uint8_t *part = part_of(in, w, WHIT_PART_FACTOR_A, 64 + bytes_of(&a) + (exact ? 0 : next(in)));
        if (exact) memcpy(part, &rank, sizeof rank);
        part_of(in, w, WHIT_PART_FACTOR_B, bytes_of(&b));
    }
}

enum { TOKENS = 3 };

static void multiply(const whit_kernels *kernels, const whit_tensor *w, const whit_tensor *matrix, const whit_acts *x)
{
    const whit_matmul_kernel *kernel = whit_matmul_find(kernels, &matrix->type, &x->spec, x->n_tokens);
    size_t bytes = kernel->scratch_bytes ? kernel->scratch_bytes(&matrix->type, &x->spec, x->n_tokens) : 64;
    uint32_t n_rows = matrix->type.n_rows;
    float *y = calloc((size_t)x->n_tokens * n_rows, sizeof *y);
    void *scratch = whit_alloc(NULL, bytes);
    if (!y || !scratch) abort();
    kernel->run(matrix, x, 0, (n_rows + 15) / 16, y, n_rows, scratch);
    if (w == matrix && w->part_bytes[WHIT_PART_OUTLIERS]) {
        float scales[TOKENS];
        size_t stride = whit_round_up(w->type.n_cols + 1, 16);
        whit_outlier_acts codes = {x->n_tokens, stride, calloc(TOKENS * stride, sizeof(int16_t)), scales};
        if (!codes.codes) abort();
        kernels->outlier_codes(x, &codes);
        kernels->outliers(w, &codes, 0, (n_rows + 15) / 16, y, n_rows);
        free(codes.codes);
    }
    whit_free(NULL, scratch, bytes);
    free(y);
}

static void use(const whit_tensor *w, bool is_i8)
{
    whit_cpu cpu;
    whit_kernels kernels;
    whit_plane plane;
    whit_low_rank_pair pair;
    whit_cpu_detect(&cpu);
    if (whit_kernels_select(&cpu, "generic", &kernels, NULL) != WHIT_OK) abort();
    uint32_t n = w->type.n_cols;
    float *x = calloc((size_t)TOKENS * n, sizeof *x), *row = calloc(n, sizeof *row);
    if (!x || !row) abort();
    for (uint32_t i = 0; i < TOKENS * n; i++) x[i] = (float)((int)(i % 13) - 6);
    whit_acts_spec spec = whit_acts_spec_for(&w->type, is_i8 ? WHIT_ACT_I8 : WHIT_ACT_F32);
    size_t acts_bytes = whit_acts_bytes(&spec, TOKENS, n) + 64;
    void *memory = whit_alloc(NULL, acts_bytes);
    if (!memory) abort();
    whit_acts acts = is_i8 ? whit_acts_place(&spec, TOKENS, n, memory) : whit_acts_of_f32(x, n, TOKENS, n);
    kernels.quantise(x, n, &acts, 0, TOKENS);
    multiply(&kernels, w, w, &acts);
    if (whit_low_rank_of(w, &pair)) multiply(&kernels, w, &pair.a, &acts);
    if (whit_plane_of(w, &plane)) {
        float *gathered = calloc((size_t)TOKENS * plane.n, sizeof *gathered);
        if (!gathered) abort();
        whit_plane_gather(&plane, &acts, gathered, plane.n);
        whit_acts at = whit_acts_of_f32(gathered, plane.n, TOKENS, plane.n);
        multiply(&kernels, w, &plane.signs, &at);
        free(gathered);
    }
    for (int32_t r = 0; r < (int32_t)w->type.n_rows; r++) whit_codec_get_rows(w, &r, 1, row, 0);
    whit_free(NULL, memory, acts_bytes);
    free(x), free(row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 8) return 0;
    struct input in = {data, size, 0};
    uint32_t n_rows = 1 + next(&in) % 40, low = next(&in), n_cols = 1 + (low | (uint32_t)next(&in) << 8) % 1200;
    uint8_t how = next(&in);
    whit_tensor w = {.type = {.codec = WHIT_CODEC_B1,
                              .layout = WHIT_LAYOUT_TILE16,
                              .scale_kind = WHIT_SCALE_GROUP,
                              .scale_type = WHIT_SCALE_F16,
                              .group = 128,
                              .n_rows = n_rows,
                              .n_cols = n_cols}};
    part_of(&in, &w, WHIT_PART_CODES, bytes_of(&w.type));
    make_parts(&in, how, &w);
    if (whit_tensor_check(&w, NULL) == WHIT_OK) use(&w, how & 16);
    for (int p = 0; p < WHIT_PART_COUNT; p++) whit_free(NULL, (void *)(uintptr_t)w.part[p], w.part_bytes[p]);
    return 0;
}
