/* SPDX-License-Identifier: MIT
 * Computes corrections in a pass: adds the products of a matrix's second plane, outliers and low-rank pair, in this
 * order, to the tiles of outputs that have just been computed, while they are in cache.
 *
 * Each thread computes the plane's activations, the outliers' activations and x Aᵀ once per matrix for itself: they are
 * small, and no thread waits for another. Matrices that read the same activations share the activations of outliers.
 * The layout of a worker's memory is:
 *
 *   made_for | outliers' codes, scales | plane's activations | gathered f32 | x Aᵀ | outputs of a few tiles | kernels'
 *   scratch */
#include "model/exec_step.h"

enum {
    TILES = 4, /* number of output tiles of the plane that are computed at a time */
    FEW_ROWS = 8,
    PREFETCH_BYTES = 8192, /* maximum bytes prefetched per part, because kernels prefetch the rest themselves */
};

/* Identifies the contents of a worker's memory: the step and the rows that it was computed for, and the activations and
 * rows of the outliers' codes. All zero means that nothing is computed, because runs are counted from 1. */
typedef struct made_for {
    uint64_t run, codes_run;
    const whit_exec_step *step;
    const uint8_t *input;
    uint32_t begin, n, codes_begin, codes_n;
} made_for;
_Static_assert(sizeof(made_for) <= WHIT_ALIGN_BYTES, "one line in front");

struct places {
    size_t acts, gathered, codes, code_scales, low, outputs, scratch, end;
    size_t gathered_stride, code_stride, low_stride;
};

/* Lays out a worker's memory. The outliers' codes come first, so that their offset is the same for all matrices that
 * read the same activations and can share the codes. */
static struct places places_of(const whit_exec_choice *choice, uint32_t n_rows)
{
    struct places p = {.codes = WHIT_ALIGN_BYTES};
    const size_t line = WHIT_ALIGN_BYTES;
    p.gathered_stride = whit_round_up(choice->plane.n_cols, 16);
    p.low_stride = whit_round_up(choice->rank, 16);
    p.code_stride = choice->has_outliers ? whit_round_up(choice->type.n_cols + 1, 16) : 0;
    p.code_scales = p.codes + whit_round_up(n_rows * p.code_stride * sizeof(int16_t), line);
    p.acts = p.code_scales + (choice->has_outliers ? whit_round_up(n_rows * sizeof(float), line) : 0);
    p.gathered =
        p.acts + (choice->plane.n_cols ? whit_acts_bytes(&choice->plane_acts, n_rows, choice->plane.n_cols) : 0);
    p.low = p.gathered + whit_round_up(n_rows * p.gathered_stride * sizeof(float), line);
    p.outputs = p.low + whit_round_up(n_rows * p.low_stride * sizeof(float), line);
    p.scratch = p.outputs + (choice->plane.n_cols ? (size_t)n_rows * TILES * WHIT_TILE_ROWS * sizeof(float) : 0);
    p.end = p.scratch;
    return p;
}

static made_for *made_in(const whit_exec *exec, uint32_t worker)
{
    return (made_for *)(void *)(exec->corrections + worker * exec->correction_bytes);
}

static bool is_made(const made_for *made, const whit_exec_step *step, const whit_exec *exec, whit_exec_rows rows)
{
    return made->run == exec->n_runs && made->step == step && made->begin == rows.begin && made->n == rows.n;
}

static bool has_codes(const made_for *made, const whit_exec_step *step, const whit_exec *exec, whit_exec_rows rows)
{
    return made->codes_run == exec->n_runs && made->input == step->input[0] && made->codes_begin == rows.begin &&
        made->codes_n == rows.n;
}

static size_t most_scratch(const whit_tensor_type *type, const whit_acts_spec *acts, uint32_t n_rows,
                           const whit_matmul_kernel *const kernels[WHIT_EXEC_BUCKETS])
{
    size_t most = 0;
    for (uint32_t b = 0; b < WHIT_EXEC_BUCKETS && whit_exec_bucket_rows(b) <= n_rows; b++) {
        if (!kernels[b]->scratch_bytes) continue;
        size_t bytes = kernels[b]->scratch_bytes(type, acts, whit_exec_bucket_most(b, n_rows));
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

/* Computes the inputs of a matrix's corrections from x into a worker's memory; reuses outliers' codes that belong to
 * the same activations. */
static void make_corrections(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, whit_exec_rows rows,
                             const whit_acts *x, const struct places *p)
{
    made_for *made = made_in(exec, worker);
    const whit_exec_parts *parts = step->parts;
    uint8_t *memory = (uint8_t *)made;
    if (!step->choice->has_outliers) {
        made->codes_run = 0; /* the inputs computed below overwrite the codes, so they are no longer valid */
    } else if (!has_codes(made, step, exec, rows)) {
        whit_outlier_acts acts = outlier_acts(p, memory, x->n_tokens);
        exec->kernels->outlier_codes(x, &acts);
        made->codes_run = exec->n_runs;
        made->input = step->input[0];
        made->codes_begin = rows.begin;
        made->codes_n = rows.n;
    }
    if (step->choice->rank) {
        const whit_matmul_kernel *kernel = whit_exec_bucket(step->choice->low_kernels, x->n_tokens);
        whit_matmul_prepare(kernel, x, memory + p->scratch);
        kernel->run(&parts->pair.a, x, 0, (parts->pair.rank + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS,
                    (float *)(void *)(memory + p->low), p->low_stride, memory + p->scratch);
    }
    if (step->choice->plane.n_cols) {
        float *gathered = (float *)(void *)(memory + p->gathered);
        whit_acts acts = plane_acts(step, p, memory, x->n_tokens);
        whit_plane_gather(&parts->plane, x, gathered, p->gathered_stride);
        if (acts.spec.kind != WHIT_ACTS_F32)
            exec->kernels->quantise(gathered, p->gathered_stride, &acts, 0, x->n_tokens);
        whit_matmul_prepare(whit_exec_bucket(step->choice->plane_kernels, x->n_tokens), &acts, memory + p->scratch);
    }
    made->run = exec->n_runs;
    made->step = step;
    made->begin = rows.begin;
    made->n = rows.n;
}

/* Adds the product of the second plane to tiles [begin, end) of y. */
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
        whit_tensor signs = plane->signs; /* tiles [tile, tile + n_tiles) of the plane */
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

/* Prefetches the codes of tiles [begin, end) of a tensor. */
static void prefetch_tiles(const whit_tensor *w, uint64_t tile_bytes, uint32_t begin, uint32_t end)
{
    prefetch(w->part[WHIT_PART_CODES] + begin * tile_bytes, (end - begin) * tile_bytes);
}

static void prefetch_outliers(const whit_tensor *w, uint32_t begin, uint32_t end)
{
    whit_outlier_tile first, last;
    if (whit_outliers_of_tile(w, begin, &first) && whit_outliers_of_tile(w, end - 1, &last) &&
        last.counts >= first.counts)
        prefetch(first.counts, (uint64_t)((const uint8_t *)last.values + last.n - first.counts));
}

void whit_exec_prefetch_corrections(const whit_exec_step *step, const whit_exec *exec, uint32_t worker,
                                    whit_exec_rows rows, uint32_t begin, uint32_t end)
{
    const whit_exec_parts *parts = step->parts;
    if (rows.n > FEW_ROWS) return;
    if (step->choice->plane.n_cols) {
        if (!is_made(made_in(exec, worker), step, exec, rows))
            prefetch(parts->plane.columns, parts->plane.n * sizeof(uint16_t));
        prefetch_tiles(&parts->plane.signs, parts->plane_tile_bytes, begin, end);
    }
    if (step->choice->has_outliers) prefetch_outliers(step->tensor, begin, end);
    if (step->choice->rank) prefetch_tiles(&parts->pair.b, parts->pair_tile_bytes, begin, end);
}

void whit_exec_correct(const whit_exec_step *step, const whit_exec *exec, uint32_t worker, whit_exec_rows rows,
                       const whit_acts *x, uint32_t begin, uint32_t end, float *y)
{
    const whit_exec_choice *choice = step->choice;
    const struct places p = places_of(choice, x->n_tokens);
    uint8_t *memory = (uint8_t *)made_in(exec, worker);
    if (!is_made(made_in(exec, worker), step, exec, rows)) make_corrections(step, exec, worker, rows, x, &p);
    if (choice->plane.n_cols) add_plane(step, exec, &step->parts->plane, &p, memory, x->n_tokens, begin, end, y);
    if (choice->has_outliers) {
        whit_outlier_acts acts = outlier_acts(&p, memory, x->n_tokens);
        exec->kernels->outliers(step->tensor, &acts, begin, end, y, step->output_stride);
    }
    if (choice->rank)
        exec->kernels->low_rank(&step->parts->pair.b, (const float *)(void *)(memory + p.low), p.low_stride,
                                x->n_tokens, begin, end, y, step->output_stride);
}

void whit_exec_find_parts(const whit_tensor *w, whit_exec_parts *parts)
{
    *parts = (whit_exec_parts){0};
    if (whit_plane_of(w, &parts->plane))
        parts->plane_tile_bytes = whit_codec_geometry(&parts->plane.signs.type).tile_bytes;
    if (whit_low_rank_of(w, &parts->pair)) parts->pair_tile_bytes = whit_codec_geometry(&parts->pair.b.type).tile_bytes;
}
