/* SPDX-License-Identifier: MIT */
#include "compress/budget.h"

#include "compress/divergence.h"
#include "compress/finished.h"
#include "compress/knapsack.h"
#include "compress/matrix.h"
#include "compress/stages.h"
#include "compress/types.h"
#include "kernels/codec.h"
#include "quant/requantise.h"

#include <math.h>
#include <string.h>

#define TEXT_TOKENS   16384
#define HELD_TOKENS   4096
#define HELD_EVERY    8          /* every eighth window of the text is held out */
#define VARIANT_BYTES (1u << 29) /* limit of the memory for the activations of all variants together */
/* Number of sweeps of descent after error feedback. Error feedback alone would be misleading, because its errors are up
 * to six times larger. */
#define SWEEPS 2
#define SPAN   2.2 /* candidates have between budget / SPAN and budget * SPAN bits per weight */
#define SWAPS  5   /* number of exchanges that are measured together */
#define ROUNDS 2
/* Assumed squared error of i8 relative to that of i4, whose steps are sixteen times larger. */
#define I8_SHARE (1.0 / 256)

static const struct candidate {
    const char *name;
    uint8_t codec, scale_type;
    uint16_t group;
    float plane, outliers; /* share of the columns in the second sign plane; share of the weights that are outliers */
} candidates[] = {
    {"b1", WHIT_CODEC_B1, WHIT_SCALE_F16, 128, 0, 0},
    {"b1 plane 12.5 %", WHIT_CODEC_B1, WHIT_SCALE_F16, 128, 0.125f, 0},
    {"t", WHIT_CODEC_T5, WHIT_SCALE_F16, 128, 0, 0},
    {"t outliers 0.3 %", WHIT_CODEC_T5, WHIT_SCALE_F16, 128, 0, 0.003f},
    {"q2", WHIT_CODEC_L2, WHIT_SCALE_L6, 128, 0, 0},
    {"q2 outliers 0.3 %", WHIT_CODEC_L2, WHIT_SCALE_L6, 128, 0, 0.003f},
    {"q2 group 64", WHIT_CODEC_L2, WHIT_SCALE_L6, 64, 0, 0},
    {"q2 group 64 outliers 0.3 %", WHIT_CODEC_L2, WHIT_SCALE_L6, 64, 0, 0.003f},
    {"q2 group 32", WHIT_CODEC_L2, WHIT_SCALE_L6, 32, 0, 0},
    {"q2 group 32 outliers 0.3 %", WHIT_CODEC_L2, WHIT_SCALE_L6, 32, 0, 0.003f},
    {"i3", WHIT_CODEC_I3, WHIT_SCALE_K8, 16, 0, 0},
    {"i4", WHIT_CODEC_I4, WHIT_SCALE_F16, 128, 0, 0},
    {"i4 group 32", WHIT_CODEC_I4, WHIT_SCALE_F16, 32, 0, 0},
    {"i8", WHIT_CODEC_I8, WHIT_SCALE_F16, 0, 0, 0},
};

enum { N_CANDIDATES = sizeof candidates / sizeof *candidates };

struct option {
    const struct candidate *row;
    whit_tensor_type type;
    whit_correction_sizes sizes;
    double bits;  /* size of the whole matrix */
    double error; /* squared error of the outputs, relative to the outputs' squares */
    double loss;  /* estimated increase of the divergence by this option */
    whit_finished finished;
};

struct matrix {
    uint32_t tensor;
    size_t elems;
    uint32_t n;
    struct option options[N_CANDIDATES]; /* in the order of `candidates` */
    uint32_t reference;                  /* index of the option whose divergence is measured */
    double kl;                           /* measured divergence of the reference option */
    uint32_t chosen;
};

struct choosing {
    whit_budget *b;
    whit_error *error;
    struct matrix *matrices;
    uint32_t n;
    int32_t *matrix_of; /* (n_tensors) index into `matrices`; -1 if the tensor's type is not chosen here */
    double elems;
    int32_t *ids[2]; /* [0]: tokens of the windows to fit to; [1]: tokens of the held-out windows */
    size_t n_ids[2], id_capacity;
    /* (n_variants, n) option of each matrix in each variant that is measured. NULL: in variant i only matrix i is
     * rounded, to its reference option. */
    const uint8_t *assigned;
    double done, part; /* share of the choice that is done, and the share that the current piece of work adds */
    double shown;      /* the last share that was told, which never falls */
    bool is_cancelled; /* the progress callback returned false */
};

/* These are the shares of the choice after the candidates' errors and after the divergence of each matrix. */
#define SHARE_ROUNDED  0.7
#define SHARE_MEASURED 0.85

static double budget_of(const struct choosing *c)
{
    return c->b->bits * c->elems;
}

/* ---- candidates for a matrix --------------------------------------------------------------------- */

/* Returns whether a matrix can have the candidate's type. If so, sets the option's type, the sizes of its corrections,
 * and its bits. */
static bool make_type(const whit_source_tensor *tensor, const struct candidate *row, struct option *option)
{
    const uint32_t n_cols = tensor->type.n_cols, n_rows = tensor->type.n_rows;
    const size_t n = (size_t)n_rows * n_cols;
    *option = (struct option){.row = row,
                              .type = {.codec = row->codec,
                                       .layout = WHIT_LAYOUT_TILE16,
                                       .scale_kind = WHIT_SCALE_GROUP,
                                       .scale_type = row->scale_type,
                                       .group = row->group,
                                       .n_rows = n_rows,
                                       .n_cols = n_cols}};
    if (row->codec == WHIT_CODEC_I8) option->type = whit_requantise_type(WHIT_CODEC_I8, n_rows, n_cols);
    if (row->codec == WHIT_CODEC_T5 && n_cols < 128) option->type.codec = WHIT_CODEC_T2;
    option->type.act = tensor->type.act;
    if (whit_scale_in_superblocks(row->scale_type) && n_cols % WHIT_SUPER_COLS) return false;
    option->sizes.n_columns = (uint32_t)(row->plane * (float)n_cols) / 32 * 32;
    option->sizes.n_outliers = (size_t)(row->outliers * (float)n);
    if (row->plane > 0 && !option->sizes.n_columns) return false;
    if (row->outliers > 0 && (!option->sizes.n_outliers || n_cols > WHIT_MAX_COLS)) return false;
    option->bits = whit_compress_matrix_bits(&option->type, &option->sizes);
    return whit_tensor_type_check(&option->type, NULL) == WHIT_OK;
}

static bool is_near(const struct choosing *c, double bits)
{
    return bits * SPAN > c->b->bits && bits < c->b->bits * SPAN;
}

static whit_status add_matrices(struct choosing *c)
{
    const whit_source *source = c->b->source;
    c->matrices = whit_zalloc_array(c->b->allocator, source->n_tensors, sizeof *c->matrices);
    c->matrix_of = whit_zalloc_array(c->b->allocator, source->n_tensors, sizeof *c->matrix_of);
    if (!c->matrices || !c->matrix_of)
        return whit_fail_memory(c->error, "choosing the codecs", source->n_tensors * sizeof *c->matrices);
    double least = 0;
    for (uint32_t i = 0; i < source->n_tensors; i++) {
        const whit_source_tensor *tensor = &source->tensors[i];
        c->matrix_of[i] = -1;
        if (!whit_compress_is_layer_matrix(tensor)) continue;
        struct matrix *m = &c->matrices[c->n];
        *m = (struct matrix){.tensor = i, .elems = (size_t)tensor->type.n_rows * tensor->type.n_cols};
        for (uint32_t k = 0; k < N_CANDIDATES; k++)
            if (make_type(tensor, &candidates[k], &m->options[m->n]) &&
                is_near(c, m->options[m->n].bits / (double)m->elems))
                m->n++;
        if (!m->n)
            return whit_fail(c->error, WHIT_ERROR_UNSUPPORTED,
                             "tensor '%s': no codec supports its %u columns: leave out --bits, and choose a codec",
                             tensor->name, tensor->type.n_cols);
        double smallest = m->options[0].bits;
        for (uint32_t k = 0; k < m->n; k++) smallest = fmin(smallest, m->options[k].bits);
        /* The reference is the first l2 option, or option 0 if no option is l2. */
        while (m->reference < m->n && m->options[m->reference].row->codec != WHIT_CODEC_L2) m->reference++;
        if (m->reference == m->n) m->reference = 0;
        least += smallest;
        c->elems += (double)m->elems;
        c->matrix_of[i] = (int32_t)c->n++;
    }
    if (least <= budget_of(c)) return WHIT_OK;
    return whit_fail(c->error, WHIT_ERROR_ARGUMENT,
                     "%s: --bits %.3f is too few: signs alone take %.3f bits a weight of these matrices", source->path,
                     c->b->bits, least / c->elems);
}

/* ---- windows of the text -------------------------------------------------------------------------- */

/* Divides the text into windows, of which one in eight is held out. If there are fewer than eight windows, all of them
 * are used for both purposes. */
static whit_status cut_text(struct choosing *c)
{
    const whit_budget *b = c->b;
    const size_t window = b->n_tokens, n_windows = b->n_ids / window;
    c->id_capacity = n_windows * window + 1;
    for (int held = 0; held < 2; held++) {
        c->ids[held] = whit_zalloc_array(b->allocator, c->id_capacity, sizeof **c->ids);
        if (!c->ids[held]) return whit_fail_memory(c->error, "the text", c->id_capacity * sizeof **c->ids);
        for (size_t w = 0; w < n_windows; w++) {
            if (n_windows >= HELD_EVERY && (w % HELD_EVERY == HELD_EVERY - 1) != held) continue;
            memcpy(c->ids[held] + c->n_ids[held], b->ids + w * window, window * sizeof **c->ids);
            c->n_ids[held] += window;
        }
    }
    return WHIT_OK;
}

/* Tells a share of the current piece of work. */
static bool tell_piece(void *user, double share)
{
    struct choosing *c = user;
    const whit_budget *b = c->b;
    const double now = c->done + share * c->part;
    if (now > c->shown) c->shown = now;
    c->is_cancelled = c->is_cancelled || (b->progress && !b->progress(b->user, "choosing codecs", c->shown));
    return !c->is_cancelled;
}

/* Ends the current piece of work: the choice is done up to `done`, and the next piece adds `part`. */
static whit_status end_piece(struct choosing *c, double done, double part)
{
    c->done = done;
    c->part = part;
    if (tell_piece(c, 0)) return WHIT_OK;
    return whit_fail(c->error, WHIT_ERROR_CANCELLED, "%s: compression cancelled", c->b->source->path);
}

static whit_status open_stream(struct choosing *c, int held, size_t max_tokens, whit_stream *stream)
{
    const whit_budget *b = c->b;
    if (max_tokens < b->n_tokens) max_tokens = b->n_tokens;
    WHIT_TRY(whit_stream_open(stream, b->source, c->ids[held], c->n_ids[held], b->n_tokens, max_tokens, b->bos,
                              b->embed, b->folder, b->pool, b->allocator, c->error));
    stream->multiply_adds = b->multiply_adds;
    stream->within = (whit_within){tell_piece, c};
    return WHIT_OK;
}

/* ---- errors of the candidates ---------------------------------------------------------------------- */

static whit_status round_option(struct choosing *c, struct option *option, const char *name, const float *w,
                                float *values, whit_hessian_pair *hessians, const whit_factor *factor)
{
    const whit_budget *b = c->b;
    whit_matrix_solve m = {.type = &option->type,
                           .w = w,
                           .values = values,
                           .hessians = hessians,
                           .factor = factor,
                           .n_sweeps = SWEEPS,
                           .within = {tell_piece, c},
                           .sizes = option->sizes};
    whit_status status = whit_matrix_run(&m, b->blas, b->pool, b->allocator, c->error);
    if (status == WHIT_OK)
        status = whit_finished_make(&option->finished, name, &option->type,
                                    &(whit_rows){.elems = m.codes, .fields = m.fields, .fields_u8 = m.fields_u8},
                                    m.corrected.parts, b->allocator, c->error);
    if (status == WHIT_OK) whit_finished_spool(&option->finished, b->folder, b->allocator);
    option->error = m.error;
    whit_matrix_free(&m, b->allocator);
    return status == WHIT_OK ? end_piece(c, c->done + c->part, c->part) : status;
}

static whit_status round_matrix(struct choosing *c, const whit_stream *s, int32_t param, whit_hessian_pair *hessians,
                                const whit_factor *factor)
{
    const whit_source_tensor *tensor = whit_source_find(s->source, s->params[0].items[param].name);
    struct matrix *m = &c->matrices[c->matrix_of[tensor - s->source->tensors]];
    float *values = whit_alloc(c->b->allocator, m->elems * sizeof *values);
    whit_status status = values ? WHIT_OK : whit_fail_memory(c->error, tensor->name, m->elems * sizeof *values);
    double i4 = 0;
    for (uint32_t k = 0; status == WHIT_OK && k < m->n; k++) {
        struct option *option = &m->options[k];
        if (option->type.codec == WHIT_CODEC_I8) {
            option->error = i4 * I8_SHARE;
            continue;
        }
        status = round_option(c, option, tensor->name, whit_stream_values(s, WHIT_STREAM_ORIGINAL, param), values,
                              hessians, factor);
        if (option->type.codec == WHIT_CODEC_I4 && !i4) i4 = option->error;
    }
    whit_free(c->b->allocator, values, m->elems * sizeof *values);
    return status;
}

static whit_status round_stage(struct choosing *c, whit_stream *s, const whit_layer_stage *stage)
{
    const whit_budget *b = c->b;
    const whit_param *first = &s->params[0].items[stage->params[0]];
    const uint32_t group = first->type.n_cols % WHIT_SUPER_COLS ? 128 : WHIT_SUPER_COLS;
    whit_hessian_pair hessians = {0};
    whit_factor factor = {0};
    if (stage->n_experts)
        return whit_fail(c->error, WHIT_ERROR_UNSUPPORTED,
                         "tensor '%s': --bits does not choose for experts yet; use --codec and --mixed", first->name);
    whit_status status = whit_hessian_gather(&hessians, s, b->blas, stage->input, false, 0, 0, NULL, c->error);
    whit_stream_rest(s);
    if (status == WHIT_OK) status = end_piece(c, c->done, c->part);
    if (status == WHIT_OK)
        status = whit_factor_make(&hessians.text, group, true, first->name, b->blas, b->pool, b->allocator,
                                  &(whit_within){tell_piece, c}, &factor, c->error);
    for (uint32_t i = 0; status == WHIT_OK && i < stage->n; i++)
        status = round_matrix(c, s, stage->params[i], &hessians, &factor);
    whit_factor_free(&factor);
    whit_hessian_free(&hessians);
    return status;
}

static whit_status round_candidates(struct choosing *c)
{
    whit_stream s = {0};
    const uint32_t n_layers = c->b->source->config.n_layers;
    uint32_t n_options = 0;
    for (uint32_t i = 0; i < c->n; i++) n_options += c->matrices[i].n;
    c->part = SHARE_ROUNDED / (n_options ? n_options : 1);
    whit_status status = open_stream(c, 0, TEXT_TOKENS, &s);
    s.is_single = true;
    for (uint32_t layer = 0; status == WHIT_OK && layer < n_layers; layer++) {
        whit_layer_stage stage;
        status = whit_stream_load(&s, layer, c->error);
        for (uint32_t at = 0; status == WHIT_OK && whit_layer_next_stage(&s, &at, &stage);)
            status = round_stage(c, &s, &stage);
        if (status == WHIT_OK) status = whit_stream_wake(&s, c->error);
        if (status == WHIT_OK) whit_stream_advance(&s, WHIT_STREAM_COMPRESSED);
    }
    whit_stream_close(&s);
    return status;
}

/* ---- divergences ----------------------------------------------------------------------------------- */

static const whit_tensor *choose_tensor(void *user, uint32_t variant, uint32_t tensor)
{
    const struct choosing *c = user;
    const int32_t i = c->matrix_of[tensor];
    if (i < 0 || (!c->assigned && (uint32_t)i != variant)) return NULL;
    const struct matrix *m = &c->matrices[i];
    const struct option *option = &m->options[c->assigned ? c->assigned[(size_t)variant * c->n + i] : m->reference];
    /* An option of i8 is not packed: its error counts as zero here. */
    return option->finished.name[0] ? &option->finished.tensor : NULL;
}

static whit_status measure(struct choosing *c, const uint8_t *assigned, uint32_t n, double *kl)
{
    const size_t token_bytes = (size_t)n * c->b->source->config.n_embd * sizeof(float);
    const size_t affords = VARIANT_BYTES / token_bytes;
    whit_stream s = {0};
    c->assigned = assigned;
    WHIT_TRY(open_stream(c, 1, affords < HELD_TOKENS ? affords : HELD_TOKENS, &s));
    whit_status status = whit_divergence_measure(&s, n, choose_tensor, c, kl, c->error);
    if (status == WHIT_OK) status = end_piece(c, c->done + c->part, c->part);
    whit_stream_close(&s);
    return status;
}

/* Measures the divergence that rounding each matrix to its reference option causes, and estimates that of its other
 * options in proportion to their errors. */
static whit_status estimate_losses(struct choosing *c)
{
    double *kl = whit_zalloc_array(c->b->allocator, c->n, sizeof *kl);
    if (!kl) return whit_fail_memory(c->error, "choosing the codecs", c->n * sizeof *kl);
    whit_status status = measure(c, NULL, c->n, kl);
    for (uint32_t i = 0; status == WHIT_OK && i < c->n; i++) {
        struct matrix *m = &c->matrices[i];
        const double error = m->options[m->reference].error;
        m->kl = kl[i];
        for (uint32_t k = 0; k < m->n; k++) m->options[k].loss = error > 0 ? kl[i] * m->options[k].error / error : 0;
    }
    whit_free(c->b->allocator, kl, c->n * sizeof *kl);
    return status;
}

/* ---- the choice ------------------------------------------------------------------------------------- */

static whit_status fill_knapsack(struct choosing *c)
{
    const whit_allocator *a = c->b->allocator;
    const size_t n_items = (size_t)c->n * N_CANDIDATES;
    double *costs = whit_zalloc_array(a, n_items, sizeof *costs),
           *losses = whit_zalloc_array(a, n_items, sizeof *costs);
    uint8_t *counts = whit_zalloc_array(a, c->n, 1), *chosen = whit_zalloc_array(a, c->n, 1);
    whit_status status = WHIT_OK;
    if (!costs || !losses || !counts || !chosen)
        status = whit_fail_memory(c->error, "choosing the codecs", n_items * sizeof *costs);
    for (uint32_t i = 0; status == WHIT_OK && i < c->n; i++) {
        counts[i] = (uint8_t)c->matrices[i].n;
        for (uint32_t k = 0; k < c->matrices[i].n; k++) {
            costs[i * N_CANDIDATES + k] = c->matrices[i].options[k].bits;
            losses[i * N_CANDIDATES + k] = c->matrices[i].options[k].loss;
        }
    }
    if (status == WHIT_OK)
        status = whit_knapsack_solve(
            &(whit_knapsack){.n = c->n, .stride = N_CANDIDATES, .counts = counts, .costs = costs, .losses = losses},
            budget_of(c), chosen, a, c->error);
    for (uint32_t i = 0; status == WHIT_OK && i < c->n; i++) c->matrices[i].chosen = chosen[i];
    whit_free(a, costs, n_items * sizeof *costs);
    whit_free(a, losses, n_items * sizeof *costs);
    whit_free(a, counts, c->n);
    whit_free(a, chosen, c->n);
    return status;
}

/* An exchange of bits: matrix `up` gets an option with more bits, matrix `down` one with fewer. */
struct swap {
    uint32_t up, down;
    uint8_t up_option, down_option;
    double price; /* estimated increase of the divergence per bit that `up` gains */
};

static double chosen_bits(const struct choosing *c)
{
    double bits = 0;
    for (uint32_t i = 0; i < c->n; i++) bits += c->matrices[i].options[c->matrices[i].chosen].bits;
    return bits;
}

static bool was_tried(const struct swap *tried, uint32_t n_tried, uint32_t up, uint32_t down)
{
    for (uint32_t i = 0; i < n_tried; i++)
        if ((tried[i].up == up && tried[i].down == down) || (tried[i].up == down && tried[i].down == up)) return true;
    return false;
}

/* Finds the exchange with the lowest price among the untried exchanges that fit into the budget, where `room` is the
 * number of unused bits. Returns false if no exchange is left. */
static bool find_swap(const struct choosing *c, double room, const struct swap *tried, uint32_t n_tried,
                      struct swap *best)
{
    bool found = false;
    for (uint32_t up = 0; up < c->n; up++)
        for (uint32_t down = 0; down < c->n; down++) {
            if (up == down || was_tried(tried, n_tried, up, down)) continue;
            const struct matrix *x = &c->matrices[up], *y = &c->matrices[down];
            const struct option *x0 = &x->options[x->chosen], *y0 = &y->options[y->chosen];
            for (uint32_t i = 0; i < x->n; i++)
                for (uint32_t j = 0; x->options[i].bits > x0->bits && j < y->n; j++) {
                    const double more = x->options[i].bits - x0->bits, less = y0->bits - y->options[j].bits;
                    if (less <= 0 || more - less > room) continue;
                    const double price = (x->options[i].loss - x0->loss + y->options[j].loss - y0->loss) / more;
                    if (found && price >= best->price) continue;
                    found = true;
                    *best = (struct swap){up, down, (uint8_t)i, (uint8_t)j, price};
                }
        }
    return found;
}

/* Measures some exchanges with all matrices rounded, and carries out the best one if it lowers the divergence. *now is
 * the divergence of the resulting choice. */
static whit_status try_swaps(struct choosing *c, struct swap *tried, uint32_t *n_tried, uint32_t *n_kept, double *now)
{
    const whit_allocator *a = c->b->allocator;
    const double room = budget_of(c) - chosen_bits(c);
    const size_t bytes = (size_t)(SWAPS + 1) * c->n;
    uint32_t first = *n_tried, n = 0;
    double kl[SWAPS + 1];
    while (n < SWAPS && find_swap(c, room, tried, *n_tried, &tried[*n_tried])) n++, ++*n_tried;
    uint8_t *assigned = whit_zalloc_array(a, bytes, 1);
    if (!assigned) return whit_fail_memory(c->error, "choosing the codecs", bytes);
    for (uint32_t v = 0; v <= n; v++) {
        uint8_t *options = assigned + (size_t)v * c->n;
        for (uint32_t i = 0; i < c->n; i++) options[i] = (uint8_t)c->matrices[i].chosen;
        if (v == n) break; /* the last variant has no exchange */
        options[tried[first + v].up] = tried[first + v].up_option;
        options[tried[first + v].down] = tried[first + v].down_option;
    }
    whit_status status = measure(c, assigned, n + 1, kl);
    whit_free(a, assigned, bytes);
    WHIT_TRY(status);
    uint32_t best = n;
    for (uint32_t v = 0; v < n; v++)
        if (kl[v] < kl[best]) best = v;
    *now = kl[best];
    if (best == n) return WHIT_OK;
    c->matrices[tried[first + best].up].chosen = tried[first + best].up_option;
    c->matrices[tried[first + best].down].chosen = tried[first + best].down_option;
    ++*n_kept;
    return WHIT_OK;
}

/* ---- the report ------------------------------------------------------------------------------------- */

static whit_status write_text(struct choosing *c, uint32_t n_tried, uint32_t n_kept, double kl)
{
    whit_buf *text = &c->b->text;
    double sum = 0;
    for (uint32_t i = 0; i < c->n; i++) sum += c->matrices[i].options[c->matrices[i].chosen].loss;
    whit_buf_printf(text,
                    "%.3f of %.3f bits a weight; estimated divergence %.5f, measured %.5f without corrected targets; "
                    "%u of %u exchanges kept\n",
                    chosen_bits(c) / c->elems, c->b->bits, sum, kl, n_kept, n_tried);
    for (uint32_t i = 0; i < c->n; i++) {
        const struct matrix *m = &c->matrices[i];
        const struct option *o = &m->options[m->chosen];
        whit_buf_printf(text, "%s: %s, %.3f bits, costs %.2e (%.2e at %s)\n", c->b->source->tensors[m->tensor].name,
                        o->row->name, o->bits / (double)m->elems, o->loss, m->kl, m->options[m->reference].row->name);
        c->b->choices[m->tensor] = (whit_budget_choice){o->row->name, o->type, o->sizes};
    }
    return text->failed ? whit_fail_memory(c->error, "choosing the codecs", 1 << 16) : WHIT_OK;
}

static whit_status choose_all(struct choosing *c)
{
    struct swap tried[ROUNDS * SWAPS];
    uint32_t n_tried = 0, n_kept = 0;
    double kl = 0;
    WHIT_TRY(add_matrices(c));
    WHIT_TRY(cut_text(c));
    WHIT_TRY(round_candidates(c));
    WHIT_TRY(end_piece(c, SHARE_ROUNDED, SHARE_MEASURED - SHARE_ROUNDED));
    WHIT_TRY(estimate_losses(c));
    WHIT_TRY(end_piece(c, SHARE_MEASURED, (1 - SHARE_MEASURED) / ROUNDS));
    WHIT_TRY(fill_knapsack(c));
    for (uint32_t round = 0; round < ROUNDS; round++) WHIT_TRY(try_swaps(c, tried, &n_tried, &n_kept, &kl));
    WHIT_TRY(end_piece(c, 1, 0));
    return write_text(c, n_tried, n_kept, kl);
}

whit_status whit_budget_choose(whit_budget *b, whit_error *error)
{
    const whit_allocator *a = b->allocator;
    struct choosing c = {.b = b, .error = error};
    whit_status status = choose_all(&c);
    for (uint32_t i = 0; i < c.n; i++)
        for (uint32_t k = 0; k < c.matrices[i].n; k++) whit_finished_free(&c.matrices[i].options[k].finished, a);
    whit_free(a, c.matrices, b->source->n_tensors * sizeof *c.matrices);
    whit_free(a, c.matrix_of, b->source->n_tensors * sizeof *c.matrix_of);
    for (int held = 0; held < 2; held++) whit_free(a, c.ids[held], c.id_capacity * sizeof **c.ids);
    return status;
}
