/* SPDX-License-Identifier: MIT
 * Corrections in a pass: what a matrix's parts beside its codes add to the tiles of outputs that it has just made,
 * while they are in cache: the plane's product, then outliers, then the low-rank pair's.
 *
 * The plane's activations, the outliers' and x Aᵀ are made once for a matrix, by each thread for itself: they are
 * small, and no thread waits for another. A worker's memory is
 *
 *   key | plane's activations | gathered f32 | outliers' codes, scales | x Aᵀ | outputs of a few tiles | scratch of the
 *   kernels */
#include "model/exec_step.h"

enum {
    TILES = 4, /* of outputs that go through memory of their own */
    FEW_ROWS = 8,
    PREFETCH_BYTES = 16384, /* of a part, at most: what L2 has room for beside the codes */
};

/* For which operation and rows a worker's memory was made. All zero is nothing yet, since runs count from 1. */
typedef struct made_for {
    uint64_t run;
    const whit_exec_step *step;
    uint32_t begin, n;
} made_for;
_Static_assert(sizeof(made_for) <= WHIT_ALIGN_BYTES, "one line in front");

struct places {
    size_t acts, gathered, codes, code_scales, low, outputs, scratch, end;
    size_t gathered_stride, code_stride, low_stride;
};

static struct places places_of(const whit_exec_choice *choice, uint32_t n_rows)
{
    struct places p = {.acts = WHIT_ALIGN_BYTES};
    const size_t line = WHIT_ALIGN_BYTES;
    p.gathered_stride = whit_round_up(choice->plane.n_cols, 16);
    p.low_stride = whit_round_up(choice->rank, 16);
    p.gathered =
        p.acts + (choice->plane.n_cols ? whit_acts_bytes(&choice->plane_acts, n_rows, choice->plane.n_cols) : 0);
    p.code_stride = choice->has_outliers ? whit_round_up(choice->type.n_cols + 1, 16) : 0;
    p.codes = p.gathered + whit_round_up(n_rows * p.gathered_stride * sizeof(float), line);
    p.code_scales = p.codes + whit_round_up(n_rows * p.code_stride * sizeof(int16_t), line);
    p.low = p.code_scales + (choice->has_outliers ? whit_round_up(n_rows * sizeof(float), line) : 0);
    p.outputs = p.low + whit_round_up(n_rows * p.low_stride * sizeof(float), line);
    p.scratch = p.outputs + (choice->plane.n_cols ? (size_t)n_rows * TILES * WHIT_TILE_ROWS * sizeof(float) : 0);
    p.end = p.scratch;
    return p;
}

static size_t most_scratch(const whit_tensor_type *type, const whit_acts_spec *acts, uint32_t n_rows,
                           const whit_matmul_kernel *const kernels[WHIT_EXEC_BUCKETS])
{
    size_t most = 0;
    for (uint32_t b = 0; b < WHIT_EXEC_BUCKETS && whit_exec_bucket_rows(b) <= n_rows; b++) {
        if (!kernels[b]->scratch_bytes) continue;
        uint32_t rows = b < 8 ? whit_exec_bucket_rows(b) : 2 * whit_exec_bucket_rows(b) - 1;
        size_t bytes = kernels[b]->scratch_bytes(type, acts, rows < n_rows ? rows : n_rows);
        if (bytes > most) most = bytes;
    }
    return whit_round_up(most, WHIT_ALIGN_BYTES);
}

size_t whit_exec_correction_bytes(const whit_exec_choice *choice, uint32_t n_rows)
{
    size_t scratch = 0, low = 0;
    if (!choice->plane.n_cols && !choice->rank && !choice->has_outliers) return 0;
    if (choice->plane.n_cols)
        scratch = most_scratch(&choice->plane, &choice->plane_acts, n_rows, choice->plane_kernels);
    if (choice->rank) {
        whit_tensor_type a = whit_factor_type(choice->rank, choice->type.n_cols);
        low = most_scratch(&a, &choice->acts, n_rows, choice->low_kernels);
    }
    return whit_round_up(places_of(choice, n_rows).end + (scratch > low ? scratch : low), WHIT_ALIGN_BYTES);
}

static whit_acts plane_acts(const whit_exec_step *step, const struct places *p, uint8_t *memory, uint32_t n)
{
    const whit_exec_choice *choice = step->choice;
    if (choice->plane_acts.kind != WHIT_ACTS_F32)
        return whit_acts_place(&choice->plane_acts, n, choice->plane.n_cols, memory + p->acts);
    return whit_acts_of_f32((const float *)(void *)(memory + p->gathered), p->gathered_stride, n, choice->plane.n_cols);
}

static whit_outlier_acts outlier_acts(const struct places *p, uint8_t *memory, uint32_t n)
{
    return (whit_outlier_acts){.n_tokens = n,
                               .stride = p->code_stride,
                               .codes = (int16_t *)(void *)(memory + p->codes),
                               .scales = (float *)(void *)(memory + p->code_scales)};
}

/* What the parts read, made of x in a worker's memory where it is not there yet. */
static void make(const whit_exec_step *step, const whit_exec *exec, const whit_acts *x, const struct places *p,
                 uint8_t *memory)
{
    whit_plane plane;
    whit_low_rank_pair pair;
    if (step->choice->has_outliers) {
        whit_outlier_acts acts = outlier_acts(p, memory, x->n_tokens);
        exec->kernels->outlier_codes(x, &acts);
    }
    if (whit_low_rank_of(step->tensor, &pair)) {
        const whit_matmul_kernel *kernel = whit_exec_bucket(step->choice->low_kernels, x->n_tokens);
        whit_matmul_prepare(kernel, x, memory + p->scratch);
        kernel->run(&pair.a, x, 0, (pair.rank + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS,
                    (float *)(void *)(memory + p->low), p->low_stride, memory + p->scratch);
    }
    if (whit_plane_of(step->tensor, &plane)) {
        float *gathered = (float *)(void *)(memory + p->gathered);
        whit_acts acts = plane_acts(step, p, memory, x->n_tokens);
        whit_plane_gather(&plane, x, gathered, p->gathered_stride);
        if (acts.spec.kind != WHIT_ACTS_F32)
            exec->kernels->quantise(gathered, p->gathered_stride, &acts, 0, x->n_tokens);
        whit_matmul_prepare(whit_exec_bucket(step->choice->plane_kernels, x->n_tokens), &acts, memory + p->scratch);
    }
}

/* y += the plane's product, for tiles [begin, end). */
static void add_plane(const whit_exec_step *step, const whit_exec *exec, const whit_plane *plane,
                      const struct places *p, uint8_t *memory, uint32_t n, uint32_t begin, uint32_t end, float *y)
{
    const whit_matmul_kernel *kernel = whit_exec_bucket(step->choice->plane_kernels, n);
    whit_acts acts = plane_acts(step, p, memory, n);
    if (kernel->run_added) {
        kernel->run_added(&plane->signs, &acts, begin, end, y, step->output_stride, memory + p->scratch);
        return;
    }
    float *outputs = (float *)(void *)(memory + p->outputs);
    const uint64_t tile_bytes = whit_codec_geometry(&plane->signs.type).tile_bytes;
    for (uint32_t tile = begin, n_tiles; tile < end; tile += n_tiles) {
        n_tiles = end - tile < TILES ? end - tile : TILES;
        whit_tensor signs = plane->signs; /* from that tile on */
        uint32_t row = tile * WHIT_TILE_ROWS, left = signs.type.n_rows - row;
        signs.part[WHIT_PART_CODES] += tile * tile_bytes;
        signs.part[WHIT_PART_ROW_SCALES] += (size_t)row * sizeof(uint16_t);
        signs.type.n_rows = left < n_tiles * WHIT_TILE_ROWS ? left : n_tiles * WHIT_TILE_ROWS;
        kernel->run(&signs, &acts, 0, n_tiles, outputs, TILES * WHIT_TILE_ROWS, memory + p->scratch);
        for (uint32_t t = 0; t < n; t++)
            exec->kernels->add(y + t * step->output_stride + row, outputs + (size_t)t * TILES * WHIT_TILE_ROWS,
                               signs.type.n_rows);
    }
}

static void prefetch(const uint8_t *data, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes && at < PREFETCH_BYTES; at += WHIT_LINE_BYTES) __builtin_prefetch(data + at, 0, 2);
}

/* What a tensor's tiles take of codes: where they begin and how many bytes. */
static void prefetch_tiles(const whit_tensor *w, uint32_t begin, uint32_t end)
{
    const uint64_t tile_bytes = whit_codec_geometry(&w->type).tile_bytes;
    prefetch(w->part[WHIT_PART_CODES] + begin * tile_bytes, (end - begin) * tile_bytes);
}

static void prefetch_outliers(const whit_tensor *w, uint32_t begin, uint32_t end)
{
    whit_outlier_tile first, last;
    if (whit_outliers_of_tile(w, begin, &first) && whit_outliers_of_tile(w, end - 1, &last) &&
        last.counts >= first.counts)
        prefetch(first.counts, (uint64_t)((const uint8_t *)last.values + last.n - first.counts));
}

void whit_exec_prefetch_corrections(const whit_exec_step *step, uint32_t n_rows, uint32_t begin, uint32_t end)
{
    const whit_tensor *w = step->tensor;
    whit_plane plane;
    whit_low_rank_pair pair;
    if (n_rows > FEW_ROWS) return;
    if (whit_plane_of(w, &plane)) prefetch_tiles(&plane.signs, begin, end);
    if (w->part_bytes[WHIT_PART_OUTLIERS]) prefetch_outliers(w, begin, end);
    if (whit_low_rank_of(w, &pair)) prefetch_tiles(&pair.b, begin, end);
}

void whit_exec_correct(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, whit_exec_rows rows,
                       const whit_acts *x, uint32_t begin, uint32_t end, float *y)
{
    const whit_exec_choice *choice = step->choice;
    struct places p;
    whit_plane plane;
    whit_low_rank_pair pair;
    uint8_t *memory = exec->corrections + worker * exec->correction_bytes;
    made_for *made = (made_for *)(void *)memory;
    p = places_of(choice, x->n_tokens);
    if (made->run != exec->n_runs || made->step != step || made->begin != rows.begin || made->n != rows.n) {
        make(step, exec, x, &p, memory);
        *made = (made_for){exec->n_runs, step, rows.begin, rows.n};
    }
    if (whit_plane_of(step->tensor, &plane)) add_plane(step, exec, &plane, &p, memory, x->n_tokens, begin, end, y);
    if (choice->has_outliers) {
        whit_outlier_acts acts = outlier_acts(&p, memory, x->n_tokens);
        exec->kernels->outliers(step->tensor, &acts, begin, end, y, step->output_stride);
    }
    if (whit_low_rank_of(step->tensor, &pair))
        exec->kernels->low_rank(&pair.b, (const float *)(void *)(memory + p.low), p.low_stride, x->n_tokens, begin, end,
                                y, step->output_stride);
}
