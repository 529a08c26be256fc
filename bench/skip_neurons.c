/* SPDX-License-Identifier: MIT
 * Answers the question below which share of living neurons, those whose ReLU^2 gate is not 0, it would pay to skip the
 * dead ones. A neuron-major layout has one contiguous piece of bytes per neuron and matrix, and only the pieces of
 * living neurons would be read. This program reads 420 MB of such pieces by a list of their numbers, without computing
 * with them, and prints the time, which is the best that skipping could reach. It also prints the time of the tiled
 * layout, which is read whole and multiplied.
 *   bench_skip_neurons [BYTES-OF-A-PIECE]      640 by default: 2,560 weights of t2 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/fpenv.h"
#include "base/rng.h"
#include "base/threads.h"
#include "kernels/kernels.h"

enum { COLS = 2560, ROWS = 655360, ROUNDS = 5, PIECES_AHEAD = 16 };
#define TOTAL_BYTES ((size_t)ROWS * COLS / 4)

typedef struct reading {
    const uint8_t *memory;
    size_t piece_bytes;
    const uint32_t *alive; /* numbers of the pieces that are read, ascending */
    uint32_t n_alive;
    whit_probe_read_fn *read;
    uint64_t sums[WHIT_POOL_THREADS_MAX];
} reading;

static void ask_for(const uint8_t *piece, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(piece + i, 0, 2);
}

static void read_pieces(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    reading *r = context;
    uint64_t sum = 0;
    for (uint32_t i = begin; i < end; i++) {
        if (i + PIECES_AHEAD < r->n_alive)
            ask_for(r->memory + r->alive[i + PIECES_AHEAD] * r->piece_bytes, r->piece_bytes);
        sum += r->read(r->memory + r->alive[i] * r->piece_bytes, r->piece_bytes);
    }
    r->sums[worker] += sum;
}

typedef struct product {
    whit_tensor tensor;
    whit_acts acts;
    const whit_matmul_kernel *kernel;
    float *y;
} product;

static void multiply_tiles(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    product *p = context;
    (void)worker;
    p->kernel->run(&p->tensor, &p->acts, begin, end, p->y, ROWS, NULL);
}

static double best_ms(whit_pool *pool, whit_pool_fn *fn, void *context, uint32_t n)
{
    uint64_t best_ns = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t from_ns = whit_now_ns();
        whit_pool_run(pool, fn, context, n, 0);
        uint64_t ns = whit_now_ns() - from_ns;
        if (ns < best_ns) best_ns = ns;
    }
    return (double)best_ns * 1e-6;
}

int main(int argc, char **argv)
{
    static reading r;
    r.piece_bytes = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : COLS / 4;
    whit_cpu cpu;
    whit_kernels kernels;
    whit_pool *pool;
    whit_error error;
    whit_cpu_detect(&cpu);
    if (r.piece_bytes < 64 || r.piece_bytes % 64 ||
        whit_kernels_select(&cpu, getenv("WHIT_CPU"), &kernels, &error) != WHIT_OK ||
        whit_pool_open(0, NULL, &pool, &error) != WHIT_OK)
        return 1;
    uint32_t n_pieces = (uint32_t)(TOTAL_BYTES / r.piece_bytes), *alive = malloc(n_pieces * sizeof *alive);
    uint8_t *memory = whit_alloc(NULL, TOTAL_BYTES + 65536), *acts = whit_alloc(NULL, 4 * COLS);
    float *y = calloc(ROWS, sizeof *y);
    if (!alive || !memory || !acts || !y) return 1;
    whit_map_expect(memory, TOTAL_BYTES, true);
    whit_rng rng = {1};
    for (size_t i = 0; i + 8 <= TOTAL_BYTES; i += 8) memcpy(memory + i, &(uint64_t){whit_rng_next(&rng)}, 8);

    product p = {.tensor = {.type = {.codec = WHIT_CODEC_T2,
                                     .layout = WHIT_LAYOUT_TILE16,
                                     .scale_kind = WHIT_SCALE_TENSOR,
                                     .act = WHIT_TENSOR_ACT_TOKEN,
                                     .n_rows = ROWS,
                                     .n_cols = COLS,
                                     .scale = 1}},
                 .y = y};
    whit_acts_spec spec = whit_acts_spec_for(&p.tensor.type, WHIT_ACT_I8);
    p.acts = whit_acts_place(&spec, 1, COLS, acts);
    r.read = kernels.probe_read;
    whit_fpenv_enter();
    kernels.quantise(y, COLS, &p.acts, 0, 1);
    p.tensor.part[WHIT_PART_CODES] = memory;
    p.tensor.part_bytes[WHIT_PART_CODES] = TOTAL_BYTES;
    p.kernel = whit_matmul_find(&kernels, &p.tensor.type, &spec, 1);
    double tiles_ms = best_ms(pool, multiply_tiles, &p, ROWS / WHIT_TILE_ROWS);
    printf("%s, %u threads; tiles, read whole: %.2f ms, %.1f GB/s\n", whit_isa_name(kernels.isa), whit_pool_size(pool),
           tiles_ms, (double)TOTAL_BYTES / tiles_ms * 1e-6);
    for (int percent = 100; percent > 0; percent -= 10) {
        r.memory = memory, r.alive = alive, r.n_alive = 0;
        for (uint32_t i = 0; i < n_pieces; i++)
            if (whit_rng_uniform(&rng) * 100 < percent) alive[r.n_alive++] = i;
        double ms = best_ms(pool, read_pieces, &r, r.n_alive);
        printf("pieces of %zu bytes, %3d %% alive: %6.2f ms, %4.1f GB/s, %3.0f %% of the tiles' time\n", r.piece_bytes,
               percent, ms, (double)r.n_alive * (double)r.piece_bytes / ms * 1e-6, 100 * ms / tiles_ms);
    }
    whit_pool_close(pool);
    return 0;
}
