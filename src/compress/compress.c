/* SPDX-License-Identifier: MIT */
#include "compress/compress.h"

#include "base/clock.h"
#include "compress/correct.h"
#include "compress/finished.h"
#include "compress/hessian.h"
#include "compress/solve.h"
#include "compress/weighted.h"
#include "compress/work.h"
#include "linalg/cholesky.h"
#include "model/convert.h"
#include "quant/quantise.h"
#include "quant/requantise.h"

#include <stdio.h>

#define GROUP           128
#define LONGEST         512   /* tokens of a window */
#define DAMPING         0.01f /* of the mean of the Hessian's diagonal */
#define MOST_DAMPING    1.0f
#define SWEEPS          6
#define MOST_OUTLIERS   0.003 /* of a matrix's weights, the pairs that bridge gaps included */
#define LEAST_OUTLIERS  0.0005
#define MOST_PLANE      0.125 /* of a matrix's columns */
#define RANK            16
#define LEAST_OF_A_PAIR 1024  /* rows and columns */
#define OUTLIER_COLS    48000 /* more columns than a row's count of pairs can bridge */

struct compression {
    const whit_source *source;
    const whit_compress_options *options;
    const whit_allocator *allocator;
    whit_error *error;
    whit_pool *pool;
    whit_blas blas;
    whit_stream stream;
    unsigned stages;
    whit_work work;
    whit_finished *finished; /* by the source's numbers; without a name: not there */
    uint64_t began_ns;
    uint32_t layer;
    double plane_share, outlier_share; /* columns over columns, pairs over weights; 0: none */
    uint32_t rank;
};

unsigned whit_compress_stage_named(const char *name)
{
    static const char *const names[] = {"qep", "residual", "order", "descent", "outliers", "plane", "lowrank"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) return 1u << i;
    return 0;
}

/* ---- what becomes of a tensor ------------------------------------------------------------------ */

static const char *last_word(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

static bool is_layer_matrix(const whit_source_tensor *tensor)
{
    return tensor->type.layout == WHIT_LAYOUT_TILE16 && strncmp(tensor->name, "layers.", 7) == 0;
}

static const char *codec_of(const whit_compress_options *o, const char *name)
{
    const char *codec = o->codec, *last = last_word(name);
    for (size_t i = 0; i < o->n_mixed; i++) {
        size_t n = strcspn(o->mixed[i], "=");
        if (n == strlen(last) && strncmp(o->mixed[i], last, n) == 0 && o->mixed[i][n]) codec = o->mixed[i] + n + 1;
    }
    return codec;
}

static whit_status type_of(const struct compression *c, const whit_source_tensor *tensor, whit_tensor_type *type)
{
    const char *codec = codec_of(c->options, tensor->name);
    uint32_t n_cols = tensor->type.n_cols, group = c->options->group ? c->options->group : GROUP;
    *type = (whit_tensor_type){.layout = WHIT_LAYOUT_TILE16, .n_rows = tensor->type.n_rows, .n_cols = n_cols};
    if (!strcmp(codec, "f16")) {
        type->codec = WHIT_CODEC_F16;
        return WHIT_OK;
    }
    type->act = tensor->type.act;
    type->scale_kind = WHIT_SCALE_GROUP;
    type->scale_type = c->options->u8_scales ? WHIT_SCALE_U8 : WHIT_SCALE_F16;
    type->group = (uint16_t)group;
    if (!strcmp(codec, "t")) {
        type->codec = n_cols >= 128 && group >= 128 ? WHIT_CODEC_T5 : WHIT_CODEC_T2;
    } else if (!strcmp(codec, "q2")) {
        type->codec = WHIT_CODEC_Q2;
    } else if (!strcmp(codec, "b1")) {
        type->codec = WHIT_CODEC_B1;
    } else if (!strcmp(codec, "i8")) {
        *type = whit_requantise_type(WHIT_CODEC_I8, tensor->type.n_rows, n_cols);
        type->act = tensor->type.act;
    } else {
        return whit_fail(c->error, WHIT_ERROR_ARGUMENT, "codec '%s' is none of b1, t, q2, i8, f16", codec);
    }
    whit_error inner;
    if (whit_tensor_type_check(type, &inner) != WHIT_OK)
        return whit_fail(c->error, WHIT_ERROR_ARGUMENT, "tensor '%s': %s", tensor->name, inner.message);
    return WHIT_OK;
}

/* Is it one that the solver knows, rather than plain rounding? */
static bool is_solved(const whit_tensor_type *type)
{
    return !whit_codec_find(type->codec)->is_float && type->codec != WHIT_CODEC_I8;
}

static bool change(void *user, const whit_source_tensor *tensor, whit_convert_change *to)
{
    struct compression *c = user;
    if (!is_layer_matrix(tensor)) return false;
    const whit_finished *finished = &c->finished[tensor - c->source->tensors];
    *to = (whit_convert_change){0};
    if (type_of(c, tensor, &to->type) != WHIT_OK) return false; /* checked before */
    if (finished->name[0]) {
        to->finished = &finished->tensor;
        to->digest = finished->digest;
    }
    return true;
}

static whit_status check(const struct compression *c)
{
    const whit_compress_options *o = c->options;
    bool any = false;
    for (uint32_t i = 0; i < c->source->n_tensors; i++) {
        const whit_source_tensor *tensor = &c->source->tensors[i];
        whit_tensor_type type;
        if (tensor->type.codec == WHIT_CODEC_Q2 || tensor->type.scale_type == WHIT_SCALE_U8)
            return whit_fail(c->error, WHIT_ERROR_UNSUPPORTED,
                             "%s: tensor '%s' is compressed already; start from the original", c->source->path,
                             tensor->name);
        if (!is_layer_matrix(tensor)) continue;
        any = true;
        WHIT_TRY(type_of(c, tensor, &type));
    }
    if (!any) return whit_fail(c->error, WHIT_ERROR_UNSUPPORTED, "%s: has no layers to compress", c->source->path);
    for (size_t k = 0; k < o->n_mixed; k++) {
        size_t n = strcspn(o->mixed[k], "=");
        bool found = false;
        for (uint32_t i = 0; i < c->source->n_tensors && !found; i++) {
            const char *last = last_word(c->source->tensors[i].name);
            found = is_layer_matrix(&c->source->tensors[i]) && n == strlen(last) && strncmp(o->mixed[k], last, n) == 0;
        }
        if (!found || !o->mixed[k][n])
            return whit_fail(c->error, WHIT_ERROR_ARGUMENT, "'%s' is no matrix of the layers and a codec, as in down=t",
                             o->mixed[k]);
    }
    return WHIT_OK;
}

/* Bits per weight that a codec may have, of the layers. */
static double budget_of(const char *codec)
{
    return !strcmp(codec, "b1") ? 1.40 : !strcmp(codec, "t") ? 1.80 : 2.30;
}

/* Columns of a matrix's sign plane: whole lines of 32. Signs only have one. */
static uint32_t plane_columns(const struct compression *c, const whit_tensor_type *type)
{
    return type->codec == WHIT_CODEC_B1 ? (uint32_t)(c->plane_share * type->n_cols) / 32 * 32 : 0;
}

static uint32_t rank_of(const struct compression *c, const whit_tensor_type *type)
{
    bool affords = type->n_rows >= LEAST_OF_A_PAIR && type->n_cols >= LEAST_OF_A_PAIR;
    return affords || c->options->rank ? c->rank : 0;
}

static double plane_bits(const struct compression *c, const whit_tensor_type *type)
{
    uint64_t bytes = 0;
    whit_tensor_type plane = whit_plane_type(type, plane_columns(c, type));
    if (!plane.n_cols) return 0;
    (void)whit_codec_total_bytes(&plane, &bytes);
    return 8.0 * (double)(bytes + 64 + whit_round_up(2 * (uint64_t)plane.n_cols, 64));
}

static double pair_bits(const whit_tensor_type *type, uint32_t rank)
{
    uint64_t a = 0, b = 0;
    whit_tensor_type types[] = {whit_factor_type(rank, type->n_cols), whit_factor_type(type->n_rows, rank)};
    if (!rank) return 0;
    (void)whit_codec_total_bytes(&types[0], &a);
    (void)whit_codec_total_bytes(&types[1], &b);
    return 8.0 * (double)(a + b + 64);
}

/* Bits of the layers with their planes and pairs, without outliers but with what those take for themselves; *solved:
 * weights that may have some. */
static double count_bits(const struct compression *c, double *elems, double *solved, double *heads)
{
    double bits = 0;
    *elems = *solved = *heads = 0;
    for (uint32_t i = 0; i < c->source->n_tensors; i++) {
        const whit_source_tensor *tensor = &c->source->tensors[i];
        whit_tensor_type type;
        uint64_t bytes = 0;
        if (!is_layer_matrix(tensor) || type_of(c, tensor, &type) != WHIT_OK) continue;
        double n = (double)type.n_rows * type.n_cols;
        (void)whit_codec_total_bytes(&type, &bytes);
        *elems += n;
        bits += 8.0 * (double)bytes;
        if (!is_solved(&type)) continue;
        bits += plane_bits(c, &type) + pair_bits(&type, rank_of(c, &type));
        if (type.n_cols > OUTLIER_COLS) continue;
        uint32_t n_tiles = whit_codec_geometry(&type).n_tiles;
        *solved += n;
        *heads += 8.0 * (double)(whit_outliers_head_bytes(n_tiles) + 2ull * WHIT_OUTLIERS_HEAD_UNITS * n_tiles);
    }
    return bits;
}

/* What the budget leaves goes to the sign plane, then to the low-rank pair, then to outliers, the same share of every
 * matrix; what was asked for is not counted against it. */
static void find_corrections(struct compression *c)
{
    const whit_compress_options *o = c->options;
    double elems, solved, heads, budget = budget_of(o->codec);
    for (int k = 8; k > 0 && (c->stages & WHIT_STAGE_PLANE) && !c->plane_share; k--) {
        c->plane_share = MOST_PLANE * k / 8;
        if (count_bits(c, &elems, &solved, &heads) > budget * elems) c->plane_share = 0;
    }
    if (o->plane_percent > 0 && (c->stages & WHIT_STAGE_PLANE)) c->plane_share = (double)o->plane_percent / 100;
    if (c->stages & WHIT_STAGE_LOW_RANK) {
        c->rank = o->rank ? o->rank : RANK;
        if (!o->rank && count_bits(c, &elems, &solved, &heads) > budget * elems) c->rank = 0;
    }
    if (!(c->stages & WHIT_STAGE_OUTLIERS)) return;
    c->outlier_share = (double)o->outlier_percent / 100;
    if (c->outlier_share > 0) return;
    double bits = count_bits(c, &elems, &solved, &heads),
           share = solved > 0 ? (budget * elems - bits - heads) / 16 / solved : 0;
    if (share >= LEAST_OUTLIERS) c->outlier_share = share < MOST_OUTLIERS ? share : MOST_OUTLIERS;
}

/* ---- one stage of a block: the matrices behind one input ---------------------------------------- */

struct stage {
    whit_ref input;
    int32_t params[8];
    whit_ref residuals[8]; /* what each output is added to; 0: nothing */
    uint32_t n;
};

static whit_ref residual_of(const whit_graph *block, whit_ref output)
{
    for (uint32_t i = 0; i < block->n_nodes; i++) {
        const whit_node *node = &block->nodes[i];
        if (node->op != WHIT_OP_ADD) continue;
        if (node->input[0] == output) return node->input[1];
        if (node->input[1] == output) return node->input[0];
    }
    return 0;
}

/* The next stage from node *at on; false behind the last. */
static bool next_stage(const struct compression *c, uint32_t *at, struct stage *stage)
{
    const whit_graph *block = &c->stream.block;
    *stage = (struct stage){0};
    for (; *at < block->n_nodes; ++*at) {
        const whit_node *node = &block->nodes[*at];
        if (node->op != WHIT_OP_LINEAR) continue;
        const whit_source_tensor *tensor = whit_source_find(c->source, c->stream.params[0].items[node->weight].name);
        if (!is_layer_matrix(tensor)) continue;
        if (stage->n && (node->input[0] != stage->input || stage->n == 8)) break;
        stage->input = node->input[0];
        stage->params[stage->n] = node->weight;
        stage->residuals[stage->n++] = residual_of(block, node->output);
    }
    return stage->n > 0;
}

/* ---- the Hessian's factor ------------------------------------------------------------------------ */

struct factor {
    uint32_t n, group;
    float *damped; /* (n, n) */
    float *upper;  /* (n, n) of the inverse, in the walk's order */
    uint32_t *order;
};

static void free_factor(const whit_allocator *a, struct factor *f)
{
    size_t square = (size_t)f->n * f->n;
    whit_free(a, f->damped, square * sizeof(float));
    whit_free(a, f->upper, square * sizeof(float));
    whit_free(a, f->order, f->n * sizeof *f->order);
    *f = (struct factor){0};
}

/* Whole groups by the energy of their inputs, the largest first. */
static void find_order(const float *h, uint32_t n, uint32_t group, uint32_t *order)
{
    uint32_t n_groups = (n + group - 1) / group, at = 0;
    for (uint32_t placed = 0; placed < n_groups; placed++) {
        double most = -1;
        uint32_t best = 0;
        for (uint32_t g = 0; g < n_groups; g++) {
            bool taken = false;
            for (uint32_t i = 0; i < at; i += 1) taken = taken || order[i] / group == g;
            double sum = 0;
            for (uint32_t j = g * group; !taken && j < n && j < (g + 1) * group; j++)
                sum += (double)h[(size_t)j * n + j];
            if (!taken && sum > most) {
                most = sum;
                best = g;
            }
        }
        for (uint32_t j = best * group; j < n && j < (best + 1) * group; j++) order[at++] = j;
    }
}

static double damp(const whit_hessian *hessian, float *damped, float share)
{
    size_t n = hessian->n;
    double mean = 0;
    memcpy(damped, hessian->h, n * n * sizeof *damped);
    for (size_t i = 0; i < n; i++) mean += (double)damped[i * n + i] / (double)n;
    for (size_t i = 0; i < n; i++) damped[i * n + i] += (float)(mean * (double)share);
    return mean;
}

static whit_status make_factor(struct compression *c, const whit_hessian *hessian, uint32_t group, const char *name,
                               struct factor *f)
{
    const whit_allocator *a = c->allocator;
    size_t n = hessian->n, square = n * n, scratch_elems = whit_cholesky_scratch(n);
    *f = (struct factor){.n = hessian->n, .group = group};
    f->damped = whit_zalloc_array(a, square, sizeof(float));
    f->upper = whit_zalloc_array(a, square, sizeof(float));
    f->order = whit_zalloc_array(a, n, sizeof *f->order);
    float *other = whit_zalloc_array(a, square, sizeof(float)),
          *scratch = whit_zalloc_array(a, scratch_elems, sizeof(float));
    whit_status status = WHIT_OK;
    bool done = false;
    if (!f->damped || !f->upper || !f->order || !other || !scratch)
        status = whit_fail_memory(c->error, "a Hessian", square * sizeof(float));
    for (float share = DAMPING; status == WHIT_OK && !done && share <= MOST_DAMPING; share *= 10) {
        double mean = damp(hessian, f->damped, share);
        if (!(mean > 0)) break;
        for (uint32_t j = 0; j < n; j++) f->order[j] = j;
        if (c->stages & WHIT_STAGE_ORDER) find_order(hessian->h, hessian->n, group, f->order);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) f->upper[i * n + j] = f->damped[(size_t)f->order[i] * n + f->order[j]];
        done = whit_cholesky_of_inverse(&c->blas, c->pool, f->upper, other, n, scratch);
    }
    if (status == WHIT_OK && !done)
        status =
            whit_fail(c->error, WHIT_ERROR_NUMERIC,
                      "tensor '%s': the Hessian of its inputs is singular on this calibration text (its inputs are "
                      "all zero, or nearly dependent); give more text of another kind, or use --method rtn",
                      name);
    whit_free(a, other, square * sizeof(float));
    whit_free(a, scratch, scratch_elems * sizeof(float));
    if (status != WHIT_OK) free_factor(a, f);
    return status;
}

/* ---- targets -------------------------------------------------------------------------------------- */

static void multiply(struct compression *c, bool transpose_b, const float *a, size_t m, size_t k, const float *b,
                     size_t n, float *to, bool add)
{
    whit_product product = whit_product_packed(false, transpose_b, a, b, m, n, k, to);
    product.beta = add;
    whit_blas_share(&c->blas, c->pool, &product);
}

/* target = w + (w shift + lost) h^-1, with scratch (2 m n). */
static void correct_target(struct compression *c, const struct factor *f, const whit_hessian *hessian, bool lost,
                           const float *w, size_t m, float *target, float *scratch)
{
    size_t n = f->n, elems = m * n;
    float *moved = scratch, *other = scratch + elems;
    if (lost)
        memcpy(moved, hessian->lost, elems * sizeof *moved);
    else
        memset(moved, 0, elems * sizeof *moved);
    multiply(c, false, w, m, n, hessian->shift, n, moved, true);
    for (size_t row = 0; row < m; row++)
        for (size_t j = 0; j < n; j++) target[row * n + j] = moved[row * n + f->order[j]];
    multiply(c, true, target, m, n, f->upper, n, other, false);
    multiply(c, false, other, m, n, f->upper, n, moved, false);
    memcpy(target, w, elems * sizeof *target);
    for (size_t row = 0; row < m; row++)
        for (size_t j = 0; j < n; j++) target[row * n + f->order[j]] += moved[row * n + j];
}

/* The products of wanted outputs and inputs over held-out tokens: w (h + shift) + lost. */
static void find_held_target(struct compression *c, const whit_hessian *held, bool lost, const float *w, size_t m,
                             float *target)
{
    size_t n = held->n;
    if (lost)
        memcpy(target, held->lost, m * n * sizeof *target);
    else
        memset(target, 0, m * n * sizeof *target);
    multiply(c, false, w, m, n, held->h, n, target, true);
    if (held->shift) multiply(c, false, w, m, n, held->shift, n, target, true);
}

/* ---- a matrix ------------------------------------------------------------------------------------- */

static whit_finished *finished_of(const struct compression *c, int32_t param)
{
    return &c->finished[whit_source_find(c->source, c->stream.params[0].items[param].name) - c->source->tensors];
}

static whit_correction_sizes correction_sizes(const struct compression *c, const whit_tensor_type *type)
{
    double n = (double)type->n_rows * type->n_cols;
    return (whit_correction_sizes){.n_columns = plane_columns(c, type),
                                   .n_pairs = type->n_cols > OUTLIER_COLS ? 0 : (size_t)(c->outlier_share * n),
                                   .rank = rank_of(c, type)};
}

/* What the file says, in the order of its operations. */
static void read_values(const whit_tensor *tensor, float *values)
{
    for (int32_t row = 0; row < (int32_t)tensor->type.n_rows; row++)
        whit_codec_get_rows(tensor, &row, 1, values + (size_t)row * tensor->type.n_cols, tensor->type.n_cols);
}

/* Matrices of i8 and floats: rounded as the file will have them; the conversion does it again. */
static whit_status round_plainly(struct compression *c, int32_t param, const whit_tensor_type *type)
{
    float *values = whit_stream_values(&c->stream, WHIT_STREAM_COMPRESSED, param), fields[1];
    size_t n = type->n_cols;
    void *elems = whit_zalloc_array(c->allocator, n, sizeof(float));
    if (!elems) return whit_fail_memory(c->error, "a row", n * sizeof(float));
    whit_rows row = {.elems = elems, .fields = fields};
    for (size_t r = 0; r < type->n_rows; r++) {
        whit_requantise_row(type, values + r * n, &row);
        whit_requantise_values(type, &row, values + r * n);
    }
    whit_free(c->allocator, elems, n * sizeof(float));
    return WHIT_OK;
}

static whit_status solve_matrix(struct compression *c, const struct stage *stage, uint32_t i,
                                const whit_hessian_pair *hessians, const struct factor *factor,
                                const whit_tensor_type *type)
{
    const whit_allocator *a = c->allocator;
    int32_t param = stage->params[i];
    whit_geometry g = whit_codec_geometry(type);
    size_t m = type->n_rows, n = type->n_cols, elems = m * n, n_fields = m * g.n_groups * g.n_fields;
    const float *w = whit_stream_values(&c->stream, WHIT_STREAM_ORIGINAL, param);
    bool moved = c->stages & WHIT_STAGE_QEP, lost = hessians->text.n_out && stage->residuals[i],
         held = hessians->held.h && (c->stages & WHIT_STAGE_DESCENT);
    float *target = whit_zalloc_array(a, elems, sizeof(float)),
          *scratch = whit_zalloc_array(a, 2 * elems, sizeof(float));
    float *held_target = held ? whit_zalloc_array(a, elems, sizeof(float)) : NULL;
    float *fields = whit_zalloc_array(a, n_fields, sizeof(float));
    uint8_t *fields_u8 = whit_zalloc_array(a, n_fields, 1);
    int8_t *codes = whit_zalloc_array(a, elems, 1);
    whit_finished *finished = finished_of(c, param);
    whit_corrected corrected = {0};
    for (int p = 0; p < WHIT_PART_COUNT; p++) corrected.parts[p].allocator = a;
    whit_status status = WHIT_OK;
    if (!target || !scratch || !fields || !fields_u8 || !codes || (held && !held_target))
        status = whit_fail_memory(c->error, "a matrix", elems * sizeof(float));
    if (status == WHIT_OK) {
        if (moved)
            correct_target(c, factor, &hessians->text, lost, w, m, target, scratch);
        else
            memcpy(target, w, elems * sizeof *target);
        if (held) find_held_target(c, &hessians->held, lost, w, m, held_target);
        whit_solve solve = {.type = type,
                            .target = target,
                            .h = factor->damped,
                            .u = factor->upper,
                            .held_h = held ? hessians->held.h : NULL,
                            .held_target = held_target,
                            .order = factor->order,
                            .n_sweeps = c->stages & WHIT_STAGE_DESCENT ? SWEEPS : 0,
                            .codes = codes,
                            .fields = fields,
                            .fields_u8 = fields_u8,
                            .values = whit_stream_values(&c->stream, WHIT_STREAM_COMPRESSED, param)};
        status = whit_solve_run(&solve, &c->blas, c->pool, a, c->error);
        whit_correction_sizes sizes = correction_sizes(c, type);
        if (status == WHIT_OK) status = whit_correct(&solve, &sizes, &c->blas, c->pool, a, &corrected, c->error);
        if (status == WHIT_OK)
            status = whit_finished_make(finished, c->stream.params[0].items[param].name, type,
                                        &(whit_rows){.elems = codes, .fields = fields, .fields_u8 = fields_u8},
                                        corrected.parts, a, c->error);
        if (status == WHIT_OK && whit_is_corrected(&finished->tensor)) read_values(&finished->tensor, solve.values);
        if (status == WHIT_OK && c->options->report)
            c->options->report(c->options->user,
                               &(whit_compress_report){.name = c->stream.params[0].items[param].name,
                                                       .type = type,
                                                       .layer = c->layer,
                                                       .n_layers = c->source->config.n_layers,
                                                       .error_gptq = solve.error_gptq,
                                                       .error = solve.error,
                                                       .sweeps = solve.sweeps,
                                                       .n_outliers = corrected.n_outliers,
                                                       .bytes = whit_codec_tensor_bytes(&finished->tensor),
                                                       .elapsed_ns = whit_now_ns() - c->began_ns});
    }
    whit_free(a, target, elems * sizeof(float));
    whit_free(a, scratch, 2 * elems * sizeof(float));
    whit_free(a, held_target, elems * sizeof(float));
    whit_free(a, fields, n_fields * sizeof(float));
    whit_free(a, fields_u8, n_fields);
    whit_free(a, codes, elems);
    for (int p = 0; p < WHIT_PART_COUNT; p++) whit_buf_free(&corrected.parts[p]);
    return status;
}

static whit_status run_stage(struct compression *c, const struct stage *stage)
{
    whit_hessian_pair hessians = {0};
    struct factor factor = {0};
    const whit_params *params = &c->stream.params[0];
    bool residual = (c->stages & WHIT_STAGE_RESIDUAL) && (c->stages & WHIT_STAGE_QEP) && stage->n == 1;
    whit_status status = whit_hessian_gather(&hessians, &c->stream, &c->blas, stage->input, c->stages & WHIT_STAGE_QEP,
                                             residual ? stage->residuals[0] : 0,
                                             params->items[stage->params[0]].type.n_rows, NULL, c->error);
    for (uint32_t i = 0; status == WHIT_OK && i < stage->n; i++) {
        const char *name = params->items[stage->params[i]].name;
        whit_tensor_type type;
        status = type_of(c, whit_source_find(c->source, name), &type);
        if (status != WHIT_OK) break;
        if (!is_solved(&type)) {
            status = round_plainly(c, stage->params[i], &type);
            continue;
        }
        if (factor.group != type.group) {
            free_factor(c->allocator, &factor);
            status = make_factor(c, &hessians.text, type.group, name, &factor);
        }
        if (status == WHIT_OK) status = solve_matrix(c, stage, i, &hessians, &factor, &type);
    }
    free_factor(c->allocator, &factor);
    whit_hessian_free(&hessians);
    return status;
}

static whit_status progress(const struct compression *c, double share)
{
    const whit_compress_options *o = c->options;
    if (!o->progress || o->progress(o->user, "compressing", share)) return WHIT_OK;
    return whit_fail(c->error, WHIT_ERROR_CANCELLED, "%s: compression cancelled", c->source->path);
}

/* The stage of a layer that a run before this one finished: its values as the file will give them. */
static whit_status restore_stage(struct compression *c, const struct stage *stage)
{
    whit_status status = WHIT_OK;
    for (uint32_t i = 0; status == WHIT_OK && i < stage->n; i++) {
        int32_t param = stage->params[i];
        const whit_finished *finished = finished_of(c, param);
        whit_tensor_type type;
        status = type_of(c, whit_source_find(c->source, c->stream.params[0].items[param].name), &type);
        if (status == WHIT_OK && !is_solved(&type)) status = round_plainly(c, param, &type);
        float *values = whit_stream_values(&c->stream, WHIT_STREAM_COMPRESSED, param);
        for (int32_t row = 0; status == WHIT_OK && finished->name[0] && row < (int32_t)type.n_rows; row++)
            whit_codec_get_rows(&finished->tensor, &row, 1, values + (size_t)row * type.n_cols, type.n_cols);
    }
    return status;
}

/* Was the layer at hand finished by the run before? Then all its matrices are there: a record is a layer. */
static bool is_finished(const struct compression *c)
{
    struct stage stage;
    for (uint32_t at = 0; next_stage(c, &at, &stage);)
        for (uint32_t i = 0; i < stage.n; i++)
            if (finished_of(c, stage.params[i])->name[0]) return true;
    return false;
}

static whit_status save_layer(struct compression *c)
{
    whit_finished *finished[64];
    uint32_t n = 0, at = 0;
    struct stage stage;
    while (next_stage(c, &at, &stage))
        for (uint32_t i = 0; i < stage.n && n < 64; i++)
            if (finished_of(c, stage.params[i])->name[0]) finished[n++] = finished_of(c, stage.params[i]);
    return n ? whit_work_add(&c->work, finished, n, c->error) : WHIT_OK;
}

static whit_status run_layers(struct compression *c)
{
    uint32_t n_layers = c->source->config.n_layers;
    whit_status status = WHIT_OK;
    for (c->layer = 0; status == WHIT_OK && c->layer < n_layers; c->layer++) {
        struct stage stage;
        uint32_t at = 0, done = 0;
        status = whit_stream_load(&c->stream, c->layer, c->error);
        bool restored = status == WHIT_OK && is_finished(c);
        while (status == WHIT_OK && next_stage(c, &at, &stage)) {
            status = (restored ? restore_stage : run_stage)(c, &stage);
            if (status == WHIT_OK) status = progress(c, ((double)c->layer + ++done / 5.0) / n_layers);
        }
        if (status == WHIT_OK && !restored) status = save_layer(c);
        if (status == WHIT_OK && c->layer + 1 < n_layers) whit_stream_advance(&c->stream);
    }
    return status;
}

/* Everything that the finished matrices depend on; of the weights, the first row of each tensor. */
static whit_status find_settings(const struct compression *c, uint8_t settings[WHIT_HASH_BYTES])
{
    const whit_compress_options *o = c->options;
    const uint64_t counts[] = {o->method,
                               c->stages,
                               o->group,
                               o->n_ids,
                               o->n_tokens,
                               o->max_tokens,
                               (uint64_t)o->bos,
                               c->source->config.n_layers,
                               o->n_mixed,
                               c->blas.library != NULL,
                               o->u8_scales,
                               (uint64_t)(o->outlier_percent * 1e6f),
                               (uint64_t)(o->plane_percent * 1e6f),
                               o->rank};
    const char *loops = c->blas.loops == &whit_loops_generic ? "generic" : "vectors";
    whit_hash hash;
    whit_hash_begin(&hash, "whit.compress");
    whit_hash_add(&hash, counts, sizeof counts);
    whit_hash_add(&hash, loops, strlen(loops));
    whit_hash_add(&hash, o->codec, strlen(o->codec) + 1);
    whit_hash_add(&hash, o->embedding ? o->embedding : "", o->embedding ? strlen(o->embedding) + 1 : 1);
    for (size_t i = 0; i < o->n_mixed; i++) whit_hash_add(&hash, o->mixed[i], strlen(o->mixed[i]) + 1);
    whit_hash_add(&hash, o->ids, o->n_ids * sizeof *o->ids);
    for (uint32_t i = 0; i < c->source->n_tensors; i++) {
        const whit_source_tensor *tensor = &c->source->tensors[i];
        float *row = whit_zalloc_array(c->allocator, tensor->type.n_cols, sizeof *row);
        if (!row) return whit_fail_memory(c->error, "a row", tensor->type.n_cols * sizeof *row);
        whit_status status = whit_stream_read_row(tensor, 0, row, c->allocator, c->error);
        whit_hash_add(&hash, tensor->name, sizeof tensor->name);
        whit_hash_add(&hash, &tensor->type, sizeof tensor->type);
        whit_hash_add(&hash, row, tensor->type.n_cols * sizeof *row);
        whit_free(c->allocator, row, tensor->type.n_cols * sizeof *row);
        WHIT_TRY(status);
    }
    whit_hash_end(&hash, settings);
    return WHIT_OK;
}

static whit_status take_finished(void *user, whit_finished *finished, whit_error *error)
{
    struct compression *c = user;
    const whit_source_tensor *tensor = whit_source_find(c->source, finished->name);
    whit_tensor_type type;
    whit_status status = WHIT_OK;
    if (!tensor || c->finished[tensor - c->source->tensors].name[0])
        status =
            whit_fail(error, WHIT_ERROR_FORMAT, "the work file has a matrix '%s' that is not wanted", finished->name);
    if (status == WHIT_OK) status = type_of(c, tensor, &type);
    if (status == WHIT_OK && memcmp(&type, &finished->tensor.type, sizeof type) != 0)
        status = whit_fail(error, WHIT_ERROR_FORMAT, "the work file has another type of '%s'", finished->name);
    if (status == WHIT_OK)
        c->finished[tensor - c->source->tensors] = *finished;
    else
        whit_finished_free(finished, c->allocator);
    return status;
}

static whit_status open_work(struct compression *c, const char *path)
{
    uint8_t settings[WHIT_HASH_BYTES];
    whit_buf name = {.allocator = c->allocator};
    WHIT_TRY(find_settings(c, settings));
    if (c->options->work)
        whit_buf_append_str(&name, c->options->work);
    else
        whit_buf_printf(&name, "%s.work", path);
    if (!whit_buf_append(&name, "", 1)) return whit_fail_memory(c->error, "a file name", strlen(path));
    whit_status status = whit_work_open(&c->work, (const char *)name.data, settings, c->options->resume, take_finished,
                                        c, c->allocator, c->error);
    whit_buf_free(&name);
    return status;
}

/* ---- the whole -------------------------------------------------------------------------------------- */

static bool all_finished(const struct compression *c)
{
    for (uint32_t i = 0; i < c->source->n_tensors; i++) {
        whit_tensor_type type;
        if (!is_layer_matrix(&c->source->tensors[i]) || type_of(c, &c->source->tensors[i], &type) != WHIT_OK) continue;
        if (is_solved(&type) && !c->finished[i].name[0]) return false;
    }
    return true;
}

static whit_status solve_all(struct compression *c, const whit_convert_options *convert, const char *path)
{
    const whit_compress_options *o = c->options;
    const whit_source_tensor *embed = whit_source_find(c->source, "embed");
    uint8_t codec;
    whit_tensor_type embed_type;
    if (!embed || !whit_codec_parse(convert->embd, &codec))
        return whit_fail(c->error, WHIT_ERROR_UNSUPPORTED, "%s: has no embedding", c->source->path);
    embed_type = whit_requantise_type(codec, embed->type.n_rows, embed->type.n_cols);
    uint32_t n_ctx = c->source->config.n_ctx, n_tokens = o->n_tokens ? o->n_tokens : n_ctx < LONGEST ? n_ctx : LONGEST;
    if (n_tokens > n_ctx)
        return whit_fail(c->error, WHIT_ERROR_ARGUMENT,
                         "windows of %u tokens are longer than the model's context of %u", n_tokens, n_ctx);
    WHIT_TRY(whit_blas_open(&c->blas, WHIT_PRECISION_F32, whit_loops_find(), 0, 0, whit_pool_size(c->pool),
                            c->allocator, c->error));
    whit_status status = open_work(c, path);
    if (status == WHIT_OK && !all_finished(c)) {
        status = whit_stream_open(&c->stream, c->source, o->ids, o->n_ids, n_tokens, o->max_tokens, o->bos, &embed_type,
                                  c->pool, c->allocator, c->error);
        if (status == WHIT_OK) status = run_layers(c);
    }
    whit_stream_close(&c->stream);
    whit_blas_close(&c->blas);
    return status;
}

/* Every matrix by itself, under the diagonal that an importance matrix gives, or none. */
static whit_status round_all(struct compression *c)
{
    const whit_compress_options *o = c->options;
    if (o->imatrix) WHIT_TRY(whit_weighted_check(o->imatrix, c->source, c->error));
    for (uint32_t i = 0; i < c->source->n_tensors; i++) {
        const whit_source_tensor *tensor = &c->source->tensors[i];
        whit_tensor_type type;
        double share = 0;
        unsigned layer = 0;
        if (!is_layer_matrix(tensor)) continue;
        WHIT_TRY(type_of(c, tensor, &type));
        if (!is_solved(&type)) continue;
        float *means = whit_zalloc_array(c->allocator, type.n_cols, sizeof *means);
        whit_status status = means ? WHIT_OK : whit_fail_memory(c->error, tensor->name, type.n_cols * sizeof *means);
        if (status == WHIT_OK && o->imatrix) status = whit_weighted_means(o->imatrix, tensor, means, c->error);
        if (status == WHIT_OK)
            status = whit_weighted_round(&c->finished[i], c->source, tensor, &type, o->imatrix ? means : NULL, c->pool,
                                         &share, c->error);
        whit_free(c->allocator, means, type.n_cols * sizeof *means);
        if (status == WHIT_OK) status = progress(c, (double)(i + 1) / c->source->n_tensors);
        WHIT_TRY(status);
        (void)sscanf(tensor->name, "layers.%9u.", &layer);
        if (o->report)
            o->report(o->user,
                      &(whit_compress_report){.name = tensor->name,
                                              .type = &type,
                                              .layer = layer,
                                              .n_layers = c->source->config.n_layers,
                                              .error_gptq = share,
                                              .error = share,
                                              .elapsed_ns = whit_now_ns() - c->began_ns});
    }
    return WHIT_OK;
}

static whit_status write_file(struct compression *c, const whit_convert_options *convert, const char *path)
{
    whit_ndf_writer *writer = NULL;
    whit_status status = whit_ndf_writer_open(path, NULL, c->allocator, &writer, c->error);
    if (status == WHIT_OK) status = whit_convert(c->source, convert, writer, c->error);
    whit_ndf_writer_close(writer);
    return status;
}

whit_status whit_compress(const whit_source *source, const whit_compress_options *options, const char *path,
                          const whit_allocator *allocator, whit_error *error)
{
    struct compression c = {.source = source,
                            .options = options,
                            .allocator = allocator,
                            .error = error,
                            .work.fd = -1,
                            .began_ns = whit_now_ns()};
    const char *embedding = options->embedding ? options->embedding : "i8";
    whit_convert_options convert = {.embd = embedding,
                                    .head = embedding,
                                    .command = options->command,
                                    .n_threads = options->n_threads,
                                    .change = change,
                                    .user = &c};
    if (options->method == WHIT_COMPRESS_FULL) c.stages = ~options->without;
    WHIT_TRY(whit_convert_options_check(&convert, error));
    WHIT_TRY(check(&c));
    find_corrections(&c);
    c.finished = whit_zalloc_array(allocator, source->n_tensors, sizeof *c.finished);
    if (!c.finished) return whit_fail_memory(error, "the compression", source->n_tensors * sizeof *c.finished);
    whit_status status = WHIT_OK;
    bool alone = options->method == WHIT_COMPRESS_RTN || options->imatrix; /* each matrix by itself */
    if (!alone || options->imatrix || options->u8_scales) {
        status = whit_pool_open(options->n_threads, allocator, &c.pool, error);
        if (status == WHIT_OK) status = alone ? round_all(&c) : solve_all(&c, &convert, path);
        whit_pool_close(c.pool);
    } /* else the conversion rounds row by row, and holds nothing */
    if (status == WHIT_OK) status = write_file(&c, &convert, path);
    whit_work_close(&c.work, status == WHIT_OK && !options->keep_work);
    for (uint32_t i = 0; i < source->n_tensors; i++) whit_finished_free(&c.finished[i], allocator);
    whit_free(allocator, c.finished, source->n_tensors * sizeof *c.finished);
    return status;
}
