/* SPDX-License-Identifier: MIT
 * Implements whit bench --kernels: runs every matrix kernel by itself on one thread, on a matrix of a real layer that
 * does not fit a core's own cache, and compares it with the read and multiply rates of one thread. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "quant/requantise.h"

/* The rows of the output have the stride that a session uses, an odd number of cache lines. */
enum { ROWS = 6912, COLS = 2560, STRIDE = ROWS + 16, INT8_ROUNDS = 2048, MIN_NS = 3000000 };
static const uint32_t columns[] = {1, 2, 4, 8, 64, 512};
#define N_COLUMN_COUNTS (sizeof columns / sizeof *columns)

/* Lists the measured formats: those of layers and heads, and sign bits with bitmaps of activations. */
static const struct {
    uint8_t codec;
    uint8_t scale; /* whit_scale_kind */
    bool is_bitwise;
    uint8_t scale_type; /* type of the scales if they have one or two bytes, and size of the group of weights for each;
                         * 0: the codec's usual scales */
    uint16_t group;
} formats[] = {
    {WHIT_CODEC_T2, WHIT_SCALE_TENSOR, false},
    {WHIT_CODEC_T5, WHIT_SCALE_TENSOR, false},
    {WHIT_CODEC_T2, WHIT_SCALE_GROUP, false},
    {WHIT_CODEC_T5, WHIT_SCALE_GROUP, false},
    {WHIT_CODEC_B1, WHIT_SCALE_GROUP, false},
    {WHIT_CODEC_Q2, WHIT_SCALE_GROUP, false},
    {WHIT_CODEC_L2, WHIT_SCALE_GROUP, false, WHIT_SCALE_L6, 128},
    {WHIT_CODEC_I4, WHIT_SCALE_GROUP, false},
    {WHIT_CODEC_I8, WHIT_SCALE_ROW, false},
    {WHIT_CODEC_I8S, WHIT_SCALE_ROW, false},
    {WHIT_CODEC_F16, WHIT_SCALE_NONE, false},
    {WHIT_CODEC_B1, WHIT_SCALE_GROUP, true},
    {WHIT_CODEC_Q2, WHIT_SCALE_GROUP, true},
    {WHIT_CODEC_U2, WHIT_SCALE_GROUP, false, WHIT_SCALE_K4, 16},
    {WHIT_CODEC_I3, WHIT_SCALE_GROUP, false, WHIT_SCALE_K8, 16},
    {WHIT_CODEC_X9, WHIT_SCALE_GROUP, false, WHIT_SCALE_ODD4, 16},
    {WHIT_CODEC_F4, WHIT_SCALE_GROUP, false, WHIT_SCALE_E8, 32},
    {WHIT_CODEC_N4, WHIT_SCALE_GROUP, false, WHIT_SCALE_K8, 32},
    {WHIT_CODEC_I8, WHIT_SCALE_GROUP, false, WHIT_SCALE_K8, 16},
    {WHIT_CODEC_I6, WHIT_SCALE_GROUP, false, WHIT_SCALE_K8, 16},
    {WHIT_CODEC_U4, WHIT_SCALE_GROUP, false, WHIT_SCALE_K16, 32},
    {WHIT_CODEC_U5, WHIT_SCALE_GROUP, false, WHIT_SCALE_K16, 32},
};
#define N_FORMATS (sizeof formats / sizeof *formats)

struct setup {
    whit_progress_fn *progress;
    whit_kernels table, probes[WHIT_ISA_COUNT];
    uint8_t *codes, *low, *row_scales, *acts_memory, *probe_memory;
    float *x, *y;
    void *scratch;
    size_t scratch_bytes, codes_bytes, acts_bytes, y_bytes;
};

static whit_tensor_type type_of(size_t i)
{
    uint8_t codec = formats[i].codec;
    whit_tensor_type type = whit_requantise_type(codec, ROWS, COLS);
    type.scale_kind = formats[i].scale;
    type.group = 0;
    if (type.scale_kind == WHIT_SCALE_TENSOR) {
        type.scale_type = WHIT_SCALE_F32;
        type.scale = 0.01f;
        type.act = WHIT_TENSOR_ACT_TOKEN;
    } else if (type.scale_kind == WHIT_SCALE_GROUP) {
        type.scale_type = WHIT_SCALE_F16;
        type.group = codec == WHIT_CODEC_I4 ? 32 : 128;
    }
    if (formats[i].scale_type) {
        type.scale_type = formats[i].scale_type;
        type.group = formats[i].group;
        type.has_offset = whit_scale_has_minima(type.scale_type);
    }
    return type;
}

/* Measures the kernel's median time over the rounds. Each round also measures the rates of reading and of int8
 * multiplication on this thread (the probes), with which the kernel is compared. */
static void measure_kernel(const struct setup *s, const whit_tensor *w, const whit_acts *acts,
                           const whit_matmul_kernel *kernel, uint32_t n_rounds, bench_kernel *m)
{
    double times[BENCH_ROUNDS_MAX], read_shares[BENCH_ROUNDS_MAX], int8_shares[BENCH_ROUNDS_MAX];
    const whit_kernels *probes = &s->probes[kernel->isa];
    uint32_t n_tiles = ROWS / WHIT_TILE_ROWS;
    double bytes = 0, macs = (double)ROWS * COLS * m->n_columns;
    volatile uint64_t kept = 0;
    for (int p = 0; p < WHIT_PART_COUNT; p++) bytes += (double)w->part_bytes[p];
    for (uint32_t round = 0; round < n_rounds; round++) {
        uint64_t t0 = whit_now_ns(), t1;
        uint32_t n = 0;
        do {
            whit_matmul_prepare(kernel, acts, s->scratch); /* a session also prepares before every product */
            kernel->run(w, acts, 0, n_tiles, s->y, STRIDE, s->scratch);
            n++;
            t1 = whit_now_ns();
        } while (t1 - t0 < MIN_NS);
        kept += probes->probe_read(w->part[WHIT_PART_CODES], w->part_bytes[WHIT_PART_CODES] & ~(uint64_t)63);
        uint64_t t2 = whit_now_ns();
        kept += probes->probe_int8(s->probe_memory, (const int8_t *)s->probe_memory + WHIT_PROBE_BYTES, INT8_ROUNDS);
        uint64_t t3 = whit_now_ns();
        double seconds = (double)(t1 - t0) * 1e-9 / n;
        double read_rate = (double)w->part_bytes[WHIT_PART_CODES] / ((double)(t2 - t1) * 1e-9);
        double int8_rate = (double)INT8_ROUNDS * WHIT_PROBE_MACS_A_ROUND / ((double)(t3 - t2) * 1e-9);
        times[round] = seconds;
        read_shares[round] = bytes / seconds / read_rate;
        int8_shares[round] = macs / seconds / int8_rate;
    }
    double seconds = bench_median(times, n_rounds);
    m->us = seconds * 1e6;
    m->gbps = bytes / seconds * 1e-9;
    m->gmacs = macs / seconds * 1e-9;
    m->read_share = bench_median(read_shares, n_rounds);
    m->int8_share = bench_median(int8_shares, n_rounds);
}

/* Fills codes and scales of a format at random. */
static void fill_codes(const struct setup *s, const whit_tensor_type *type)
{
    whit_rng rng = {1};
    /* Without this minimum, scales near 2^-127 would make sums subnormal, and processors add subnormal numbers a
     * hundred times as slowly. */
    const uint64_t least = type->scale_type == WHIT_SCALE_E8 ? 0x4040404040404040u : 0;
    for (size_t i = 0; i + 8 <= s->codes_bytes; i += 8) {
        /* this keeps f16 scales and weights small and finite */
        uint64_t word = whit_rng_next(&rng) & 0x3b3b3b3b3b3b3b3bu;
        word &= ~((word & word >> 1 & 0x5555555555555555u) << 1); /* this makes fields of two bits ternary */
        word |= least;
        memcpy(s->codes + i, &word, 8);
    }
}

/* Measures the products of one format for every number of columns; returns false if the measurement was cancelled. */
static bool measure_format(struct setup *s, size_t i, uint32_t n_rounds, bench_kernels *list)
{
    whit_tensor w = {.type = type_of(i)};
    uint8_t *parts[WHIT_PART_COUNT] = {
        [WHIT_PART_CODES] = s->codes, [WHIT_PART_LOW] = s->low, [WHIT_PART_ROW_SCALES] = s->row_scales};
    for (int p = 0; p < WHIT_PART_COUNT; p++) {
        whit_codec_part_bytes(&w.type, (whit_part)p, &w.part_bytes[p]);
        w.part[p] = w.part_bytes[p] ? parts[p] : NULL;
    }
    fill_codes(s, &w.type);
    whit_acts_spec spec = formats[i].is_bitwise ? whit_acts_spec_q2(&w.type) : whit_acts_spec_for(&w.type, WHIT_ACT_I8);
    for (size_t c = 0; c < N_COLUMN_COUNTS; c++) {
        uint32_t n = columns[c];
        const whit_matmul_kernel *kernel = whit_matmul_find(&s->table, &w.type, &spec, n);
        if (!s->progress(NULL, "measuring", (double)(i * N_COLUMN_COUNTS + c) / (double)(N_FORMATS * N_COLUMN_COUNTS)))
            return false;
        if (kernel->isa == WHIT_ISA_GENERIC && s->table.isa != WHIT_ISA_GENERIC && n > 1)
            continue; /* a generic kernel for several columns is slow, and irrelevant if the CPU has a better level */
        whit_acts acts = whit_acts_of_f32(s->x, COLS, n, COLS);
        if (spec.kind != WHIT_ACTS_F32) {
            acts = whit_acts_place(&spec, n, COLS, s->acts_memory);
            s->table.quantise(s->x, COLS, &acts, 0, n);
        }
        if (kernel->scratch_bytes && kernel->scratch_bytes(&w.type, &spec, n) > s->scratch_bytes) continue;
        bench_kernel *m = &list->rows[list->n++];
        *m = (bench_kernel){.n_columns = n};
        const char *scales = "per row";
        if (w.type.scale_kind == WHIT_SCALE_TENSOR)
            scales = "per tensor";
        else if (w.type.group)
            scales = "per group";
        snprintf(m->name, sizeof m->name, "%s %s%s", whit_codec_find(w.type.codec)->name, scales,
                 formats[i].is_bitwise ? ", bitwise" : "");
        snprintf(m->kernel, sizeof m->kernel, "%s", kernel->name);
        snprintf(m->isa, sizeof m->isa, "%s", whit_isa_name(kernel->isa));
        measure_kernel(s, &w, &acts, kernel, n_rounds, m);
    }
    return true;
}

static bool open_setup(struct setup *s)
{
    uint32_t most = columns[N_COLUMN_COUNTS - 1];
    whit_rng rng = {2};
    s->codes_bytes = (size_t)ROWS * COLS * 2 + (1 << 20);
    whit_acts_spec spec = {.kind = WHIT_ACTS_I8, .group = 32, .step = 16};
    s->acts_bytes = whit_acts_bytes(&spec, most, COLS);
    s->scratch_bytes = (size_t)64 << 20;
    s->codes = whit_zalloc(NULL, s->codes_bytes);
    s->low = whit_zalloc(NULL, s->codes_bytes);
    s->row_scales = whit_zalloc(NULL, (size_t)ROWS * 16);
    s->acts_memory = whit_zalloc(NULL, s->acts_bytes);
    s->probe_memory = whit_zalloc(NULL, 2 * WHIT_PROBE_BYTES);
    s->x = whit_zalloc_array(NULL, (size_t)most * COLS, sizeof *s->x);
    s->y_bytes = (size_t)most * STRIDE * sizeof *s->y;
    s->y = whit_zalloc(NULL, s->y_bytes);
    s->scratch = whit_zalloc(NULL, s->scratch_bytes);
    if (!s->codes || !s->low || !s->row_scales || !s->acts_memory || !s->probe_memory || !s->x || !s->y || !s->scratch)
        return false;
    whit_map_expect(s->codes, s->codes_bytes, true);
    whit_map_expect(s->acts_memory, s->acts_bytes, true);
    whit_map_expect(s->y, s->y_bytes, true);
    for (size_t i = 0; i < (size_t)most * COLS; i++) s->x[i] = (float)(whit_rng_uniform(&rng) * 2 - 1);
    return true;
}

static void close_setup(struct setup *s)
{
    whit_free(NULL, s->codes, s->codes_bytes);
    whit_free(NULL, s->low, s->codes_bytes);
    whit_free(NULL, s->row_scales, (size_t)ROWS * 16);
    whit_free(NULL, s->acts_memory, s->acts_bytes);
    whit_free(NULL, s->probe_memory, 2 * WHIT_PROBE_BYTES);
    whit_free(NULL, s->x, (size_t)columns[N_COLUMN_COUNTS - 1] * COLS * sizeof *s->x);
    whit_free(NULL, s->y, s->y_bytes);
    whit_free(NULL, s->scratch, s->scratch_bytes);
}

whit_status bench_measure_kernels(const char *cap, uint32_t n_rounds, whit_progress_fn *progress, bench_kernels *list,
                                  whit_error *error)
{
    struct setup s = {.progress = progress};
    whit_cpu cpu;
    *list = (bench_kernels){0};
    whit_cpu_detect(&cpu);
    WHIT_TRY(whit_kernels_select(&cpu, cap, &s.table, error));
    for (int isa = 0; isa < WHIT_ISA_COUNT; isa++)
        WHIT_TRY(whit_kernels_select(&cpu, whit_isa_name((whit_isa)isa), &s.probes[isa], error));
    list->rows = calloc(N_FORMATS * N_COLUMN_COUNTS, sizeof *list->rows);
    whit_status status = WHIT_OK;
    if (!list->rows || !open_setup(&s)) status = whit_fail_memory(error, "the measured kernels", 0);
    for (size_t i = 0; status == WHIT_OK && i < N_FORMATS; i++)
        if (!measure_format(&s, i, n_rounds, list)) status = whit_fail(error, WHIT_ERROR_CANCELLED, "interrupted");
    close_setup(&s);
    return status;
}

void bench_kernels_free(bench_kernels *list)
{
    free(list->rows);
    *list = (bench_kernels){0};
}
