/* SPDX-License-Identifier: MIT
 * Measures which layout of ternary codes is faster to multiply by on this machine, with a matrix as wide as a layer's.
 * The result depends on a core's share of the memory bandwidth relative to its decoding speed. */
#include "model/fastest_ternary.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/fpenv.h"
#include "base/threads.h"
#include "kernels/kernels.h"

enum { ROWS = 327680, COLS = 2560, ROUNDS = 4 }; /* t2 codes of this shape are 210 MB */

typedef struct trial {
    whit_tensor tensor;
    whit_acts acts;
    const whit_matmul_kernel *kernel;
    float *y; /* (ROWS) outputs */
    uint8_t *scratch;
    size_t scratch_bytes; /* scratch bytes per thread */
} trial;

static void run_tiles(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const trial *t = context;
    t->kernel->run(&t->tensor, &t->acts, begin, end, t->y, ROWS, t->scratch + worker * t->scratch_bytes);
}

/* Returns the speed in weights per second: the best of several rounds, because other load can only slow a round
 * down. */
static double speed_of(const trial *t, whit_pool *pool)
{
    uint64_t best_ns = UINT64_MAX;
    for (int round = 0; round <= ROUNDS; round++) { /* round 0 warms up and is not counted */
        uint64_t from_ns = whit_now_ns();
        whit_pool_run(pool, run_tiles, (void *)(uintptr_t)t, ROWS / WHIT_TILE_ROWS, 0);
        uint64_t ns = whit_now_ns() - from_ns;
        if (round && ns < best_ns) best_ns = ns;
    }
    return (double)ROWS * COLS / ((double)best_ns * 1e-9);
}

static double measure_codec(uint8_t codec, const whit_kernels *kernels, whit_pool *pool,
                            const whit_allocator *allocator, uint8_t *codes, uint8_t *memory, float *y)
{
    trial t = {.tensor.type = {.codec = codec,
                               .layout = WHIT_LAYOUT_TILE16,
                               .scale_kind = WHIT_SCALE_TENSOR,
                               .act = WHIT_TENSOR_ACT_TOKEN,
                               .n_rows = ROWS,
                               .n_cols = COLS,
                               .scale = 1},
               .y = y};
    whit_acts_spec spec = whit_acts_spec_for(&t.tensor.type, WHIT_ACT_I8);
    t.acts = whit_acts_place(&spec, 1, COLS, memory);
    kernels->quantise(y, COLS, &t.acts, 0, 1);
    t.tensor.part[WHIT_PART_CODES] = codes;
    whit_codec_part_bytes(&t.tensor.type, WHIT_PART_CODES, &t.tensor.part_bytes[WHIT_PART_CODES]);
    t.kernel = whit_matmul_find(kernels, &t.tensor.type, &spec, 1);
    if (t.kernel->scratch_bytes)
        t.scratch_bytes = whit_round_up(t.kernel->scratch_bytes(&t.tensor.type, &spec, 1), WHIT_ALIGN_BYTES);
    t.scratch = whit_alloc(allocator, t.scratch_bytes * whit_pool_size(pool) + 1);
    for (uint32_t i = 0; t.scratch && i < whit_pool_size(pool); i++)
        whit_matmul_prepare(t.kernel, &t.acts, t.scratch + i * t.scratch_bytes);
    double speed = t.scratch ? speed_of(&t, pool) : 0;
    whit_free(allocator, t.scratch, t.scratch_bytes * whit_pool_size(pool) + 1);
    return speed;
}

whit_status whit_ternary_measure(const char *cpu_cap, const whit_allocator *allocator, whit_ternary_speeds *speeds,
                                 whit_error *error)
{
    whit_cpu cpu;
    whit_kernels kernels;
    whit_pool *pool = NULL;
    whit_cpu_detect(&cpu);
    WHIT_TRY(whit_kernels_select(&cpu, cpu_cap, &kernels, error));
    WHIT_TRY(whit_pool_open(0, allocator, &pool, error));
    size_t codes_bytes = (size_t)ROWS * COLS / 4, acts_bytes = 2 * COLS + 4096, y_bytes = ROWS * sizeof(float);
    uint8_t *codes = whit_alloc(allocator, codes_bytes), *acts = whit_alloc(allocator, acts_bytes);
    float *y = whit_zalloc(allocator, y_bytes);
    whit_status status = WHIT_OK;
    if (codes && acts && y) {
        whit_map_expect(codes, codes_bytes, true); /* requests huge pages, as for a model's weights */
        memset(codes, 121, codes_bytes);           /* the time does not depend on the codes */
        whit_fpenv caller = whit_fpenv_enter();
        speeds->t2 = measure_codec(WHIT_CODEC_T2, &kernels, pool, allocator, codes, acts, y);
        speeds->t5 = measure_codec(WHIT_CODEC_T5, &kernels, pool, allocator, codes, acts, y);
        whit_fpenv_leave(caller);
    } else {
        status = whit_fail_memory(error, "measuring ternary codecs", codes_bytes);
    }
    whit_free(allocator, y, y_bytes);
    whit_free(allocator, acts, acts_bytes);
    whit_free(allocator, codes, codes_bytes);
    whit_pool_close(pool);
    return status;
}

const char *whit_ternary_faster(const whit_ternary_speeds *speeds)
{
    return speeds->t2 > speeds->t5 ? "t2" : "t5";
}
