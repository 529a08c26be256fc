/* SPDX-License-Identifier: MIT */
#include "compress/hessian.h"

#include "train/tree.h"

#include <math.h>
#include <string.h>

static bool make_hessian(const whit_allocator *a, whit_hessian *hessian, uint32_t n, uint32_t n_out, bool moved)
{
    *hessian = (whit_hessian){.n = n, .n_out = n_out};
    hessian->h = whit_zalloc_array(a, (size_t)n * n, sizeof(float));
    if (moved) hessian->shift = whit_zalloc_array(a, (size_t)n * n, sizeof(float));
    if (n_out) hessian->lost = whit_zalloc_array(a, (size_t)n_out * n, sizeof(float));
    return hessian->h && (!moved || hessian->shift) && (!n_out || hessian->lost);
}

static void release(const whit_allocator *a, whit_hessian *hessian)
{
    whit_free(a, hessian->h, (size_t)hessian->n * hessian->n * sizeof(float));
    whit_free(a, hessian->shift, (size_t)hessian->n * hessian->n * sizeof(float));
    whit_free(a, hessian->lost, (size_t)hessian->n_out * hessian->n * sizeof(float));
    *hessian = (whit_hessian){0};
}

void whit_hessian_drop_shift(whit_hessian *hessian, const whit_allocator *a)
{
    whit_free(a, hessian->shift, (size_t)hessian->n * hessian->n * sizeof(float));
    whit_free(a, hessian->lost, (size_t)hessian->n_out * hessian->n * sizeof(float));
    hessian->shift = hessian->lost = NULL;
}

void whit_hessian_free(whit_hessian_pair *pair)
{
    release(pair->allocator, &pair->text);
    release(pair->allocator, &pair->held);
}

struct weigh_job {
    const whit_loops *loops;
    float *x, *other;
    const float *weights; /* (n_rows) weight of each row */
    size_t width;
    bool subtract; /* `x` is not needed any more, so it stays unchanged */
};

/* Replaces `other`, if it is not NULL, by other - x. Then multiplies the rows of `other`, and without `subtract` those
 * of x, by the square roots of their weights, if there are weights. */
static void weigh_rows(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct weigh_job *job = context;
    for (uint32_t r = begin; r < end; r++) {
        float *x = job->x + r * job->width, *other = job->other ? job->other + r * job->width : NULL;
        if (other) {
            for (size_t k = 0; k < job->width; k++) other[k] -= x[k];
        }
        if (!job->weights) continue;
        float root = sqrtf(job->weights[r]);
        if (!job->subtract) job->loops->scale(x, x, root, job->width);
        if (other) job->loops->scale(other, other, root, job->width);
    }
}

static void add_product(const whit_blas *blas, whit_pool *pool, const float *a, size_t n_a, const float *b, size_t n_b,
                        size_t n_rows, float *c)
{
    whit_blas_share(blas, pool,
                    &(whit_product){.transpose_a = true,
                                    .m = n_a,
                                    .n = n_b,
                                    .k = n_rows,
                                    .a = a,
                                    .lda = n_a,
                                    .b = b,
                                    .ldb = n_b,
                                    .beta = 1,
                                    .c = c,
                                    .ldc = n_b});
}

/* Returns whichever of two values is computed later. The block's input is computed first. */
static whit_ref later(const whit_graph *block, whit_ref a, whit_ref b)
{
    for (uint32_t i = block->n_nodes; i-- > 0;)
        if (block->nodes[i].output == a || block->nodes[i].output == b) return block->nodes[i].output;
    return a;
}

static bool are_finite(const float *values, size_t n)
{
    for (size_t i = 0; values && i < n; i++)
        if (!isfinite(values[i])) return false;
    return true;
}

static whit_status check_finite(const whit_stream *s, const whit_hessian *hessian, whit_ref value, whit_ref residual,
                                whit_error *error)
{
    size_t n = hessian->n;
    whit_ref bad = 0;
    if (!are_finite(hessian->lost, hessian->n_out * n)) bad = residual;
    if (!are_finite(hessian->h, n * n) || !are_finite(hessian->shift, n * n)) bad = value;
    if (!bad) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_NUMERIC,
                     "the model's value '%s' is NaN or infinite on the calibration text: its weights are damaged",
                     s->graph.values[bad - 1].name);
}

/* ---- sums over batches ------------------------------------------------------------------------- */

/* The sums for one input: what they are computed from, and the trees that add them over several ranks. */
struct sums {
    whit_hessian_pair *pair;
    whit_stream *stream;
    const whit_blas *blas;
    whit_ref value, residual, until;
    const float *row_weights;
    bool is_held_out;   /* some batches are held out */
    whit_tree trees[2]; /* with ranks: trees for the sums of the text's batches and of the held-out batches */
};

static size_t count_values(const whit_hessian *h)
{
    return (size_t)h->n * h->n * (h->shift ? 2 : 1) + (size_t)h->n_out * h->n;
}

/* Returns a Hessian that has the shape of `shape` and whose sums are in `values`, the memory of a tree's node. */
static whit_hessian hessian_in(float *values, const whit_hessian *shape)
{
    const size_t square = (size_t)shape->n * shape->n;
    whit_hessian h = {.n = shape->n, .n_out = shape->n_out, .h = values};
    values += square;
    if (shape->shift) {
        h.shift = values;
        values += square;
    }
    if (shape->lost) h.lost = values;
    return h;
}

/* Runs a batch and adds its products to the Hessian `to`. */
static void add_batch_products(const struct sums *sums, uint32_t batch, const whit_hessian *to)
{
    whit_stream *s = sums->stream;
    const whit_blas *blas = sums->blas;
    const uint32_t n = to->n, n_out = to->n_out;
    const float *weights = sums->row_weights ? sums->row_weights + (size_t)batch * s->n_rows : NULL;
    whit_stream_run(s, batch, sums->until);
    float *x = whit_tape_value(&s->tape[1], sums->value), *original = whit_tape_value(&s->tape[0], sums->value);
    struct weigh_job job = {
        .loops = blas->loops, .x = x, .other = to->shift ? original : NULL, .weights = weights, .width = n};
    whit_pool_run(s->pool, weigh_rows, &job, s->n_rows, 16);
    add_product(blas, s->pool, x, n, x, n, s->n_rows, to->h);
    if (to->shift) add_product(blas, s->pool, original, n, x, n, s->n_rows, to->shift);
    if (!n_out) return;
    job = (struct weigh_job){.loops = blas->loops,
                             .x = whit_tape_value(&s->tape[1], sums->residual),
                             .other = whit_tape_value(&s->tape[0], sums->residual),
                             .weights = weights,
                             .width = n_out,
                             .subtract = true};
    if (sums->residual != sums->value) /* weigh_rows above has not computed them already */
        whit_pool_run(s->pool, weigh_rows, &job, s->n_rows, 16);
    add_product(blas, s->pool, job.other, n_out, x, n, s->n_rows, to->lost);
}

/* Adds the sums of all batches in their order. Used if there is only one process. */
static void sum_here(const struct sums *sums)
{
    const uint32_t n_batches = sums->stream->n_batches;
    for (uint32_t batch = 0; batch < n_batches; batch++) {
        if (!whit_within_tell(&sums->stream->within, (double)batch / n_batches)) return;
        const bool is_held = sums->is_held_out && whit_stream_is_held(sums->stream, batch);
        add_batch_products(sums, batch, is_held ? &sums->pair->held : &sums->pair->text);
    }
}

/* Returns a zeroed node for the sums of a batch, which whit_tree_add adds afterwards; NULL if memory is exhausted. */
static whit_tree_node *node_of_batch(whit_tree *tree, const whit_stream *s, uint32_t batch, bool is_held_out)
{
    whit_tree_node *node = whit_tree_next(tree);
    if (!node) return NULL;
    memset(node->values, 0, tree->n_values * sizeof(float));
    memset(node->losses, 0, sizeof node->losses);
    node->first = whit_stream_place(s, batch, is_held_out);
    node->n = 1;
    return node;
}

/* Computes the sums of each of this rank's batches, adds them in a tree (train/tree.h), and then adds the sums of all
 * ranks. */
static whit_status sum_on_ranks(struct sums *sums, whit_error *error)
{
    whit_stream *s = sums->stream;
    uint32_t batch, end = whit_stream_own_batches(s, &batch);
    for (; batch < end; batch++) {
        const bool is_held = sums->is_held_out && whit_stream_is_held(s, batch);
        whit_tree *tree = &sums->trees[is_held];
        const whit_hessian *shape = is_held ? &sums->pair->held : &sums->pair->text;
        whit_tree_node *node = node_of_batch(tree, s, batch, sums->is_held_out);
        if (!node)
            return whit_fail_memory(error, "the statistics of a matrix's inputs", tree->n_values * sizeof(float));
        const whit_hessian part = hessian_in(node->values, shape);
        add_batch_products(sums, batch, &part);
        whit_tree_add(tree);
    }
    for (int held = 0; held <= sums->is_held_out; held++) {
        const whit_hessian *to = held ? &sums->pair->held : &sums->pair->text;
        const size_t square = (size_t)to->n * to->n * sizeof(float);
        WHIT_TRY(whit_tree_reduce(&sums->trees[held], s->ranks, error));
        const whit_hessian sum = hessian_in(sums->trees[held].nodes[0].values, to);
        memcpy(to->h, sum.h, square);
        if (to->shift) memcpy(to->shift, sum.shift, square);
        if (to->lost) memcpy(to->lost, sum.lost, (size_t)to->n_out * to->n * sizeof(float));
    }
    return WHIT_OK;
}

whit_status whit_hessian_gather(whit_hessian_pair *pair, whit_stream *s, const whit_blas *blas, whit_ref value,
                                bool moved, whit_ref residual, uint32_t n_out, const float *row_weights,
                                whit_error *error)
{
    const uint32_t n = s->graph.values[value - 1].width;
    struct sums sums = {.pair = pair,
                        .stream = s,
                        .blas = blas,
                        .value = value,
                        .residual = residual,
                        .until = later(&s->block, value, residual), /* some models compute `residual` after `value` */
                        .row_weights = row_weights,
                        .is_held_out = whit_stream_is_held(s, 7)};
    *pair = (whit_hessian_pair){.allocator = s->allocator};
    WHIT_TRY(whit_stream_wake(s, error));
    if (!residual) n_out = 0;
    if (!make_hessian(s->allocator, &pair->text, n, n_out, moved) ||
        (sums.is_held_out && !make_hessian(s->allocator, &pair->held, n, n_out, moved)))
        return whit_fail_memory(error, "the statistics of a matrix's inputs", (size_t)n * n * sizeof(float));
    whit_status status = WHIT_OK;
    if (s->ranks) {
        for (int i = 0; i < 2; i++)
            whit_tree_open(&sums.trees[i], blas->loops, s->pool, s->allocator, count_values(&pair->text));
        status = sum_on_ranks(&sums, error);
        for (int i = 0; i < 2; i++) whit_tree_close(&sums.trees[i]);
    } else {
        sum_here(&sums);
    }
    if (status == WHIT_OK) status = check_finite(s, &pair->text, value, residual, error);
    if (status == WHIT_OK) status = check_finite(s, &pair->held, value, residual, error);
    return status;
}

/* ---- experts -------------------------------------------------------------------------------------- */

#define SHRINK_SHARE 0.125 /* weight of the mean over all pairs, in tokens per column of the matrix */
#define COUNT_LOW    4096  /* a count of pairs is stored as two floats in base 4096, which are exact up to 2^24 */

/* State of whit_hessian_gather_experts, apart from its results. */
struct gathering {
    whit_hessian_experts *experts;
    whit_stream *stream;
    const whit_blas *blas;
    whit_ref value, until;
    bool moved;
    uint32_t n;
    whit_hessian_pair all;  /* h over the pairs of all experts */
    uint64_t n_all[2];      /* numbers of these pairs: in the text to fit to, and in the held-out text */
    float *weights, *other; /* squared weights of a batch's pairs; rows (pairs, n) of the original model */
    float *losses;          /* (pairs, n_out) residual loss of each pair; NULL if not needed */
};

static bool open_gathering(struct gathering *g)
{
    const whit_allocator *a = g->stream->allocator;
    whit_hessian_experts *x = g->experts;
    const bool held = whit_stream_is_held(g->stream, 7);
    const size_t n_rows = whit_tape_rows(&g->stream->tape[1], g->value);
    bool ok = make_hessian(a, &g->all.text, g->n, 0, false) && (!held || make_hessian(a, &g->all.held, g->n, 0, false));
    g->all.allocator = x->allocator = a;
    x->of = whit_zalloc_array(a, x->n, sizeof *x->of);
    x->n_pairs = whit_zalloc_array(a, x->n, sizeof *x->n_pairs);
    g->weights = whit_zalloc_array(a, n_rows, sizeof *g->weights);
    if (g->moved) g->other = whit_zalloc_array(a, n_rows * g->n, sizeof *g->other);
    if (x->n_out) g->losses = whit_zalloc_array(a, n_rows * x->n_out, sizeof *g->losses);
    ok = ok && x->of && x->n_pairs && g->weights && (!g->moved || g->other) && (!x->n_out || g->losses);
    for (uint32_t i = 0; ok && i < x->n; i++) {
        x->of[i].allocator = a;
        ok = make_hessian(a, &x->of[i].text, g->n, x->n_out, g->moved) &&
            (!held || make_hessian(a, &x->of[i].held, g->n, x->n_out, g->moved));
    }
    return ok;
}

static void close_gathering(struct gathering *g)
{
    const whit_allocator *a = g->stream->allocator;
    const size_t n_rows = whit_tape_rows(&g->stream->tape[1], g->value);
    whit_free(a, g->weights, n_rows * sizeof *g->weights);
    whit_free(a, g->other, n_rows * g->n * sizeof *g->other);
    whit_free(a, g->losses, n_rows * g->experts->n_out * sizeof *g->losses);
    whit_hessian_free(&g->all);
}

/* Returns the original model's row for a token and an expert; -1 if the original does not route the token to it. */
static int64_t find_pair(const whit_tape_pairs *p, uint32_t token, uint32_t expert)
{
    for (uint32_t i = 0; i < p->n_used; i++) {
        const uint32_t row = p->row_of[(size_t)token * p->n_used + i];
        if (row >= p->first[expert] && row < p->first[expert + 1]) return row;
    }
    return -1;
}

/* Sets the weights and the original's rows for the pairs of the current batch. A pair that the original lacks gets its
 * own row, so that x' - x is 0. */
static void match_pairs(const struct gathering *g)
{
    const whit_tape_pairs *pairs = &g->stream->tape[1].pairs, *originals = &g->stream->tape[0].pairs;
    const float *x = whit_tape_value(&g->stream->tape[1], g->value),
                *original = whit_tape_value(&g->stream->tape[0], g->value);
    for (uint32_t e = 0; e < pairs->n_experts; e++)
        for (size_t row = pairs->first[e]; row < pairs->first[e + 1]; row++) {
            const int64_t same = find_pair(originals, pairs->token_of[row], e);
            g->weights[row] = pairs->weight_of[row] * pairs->weight_of[row];
            if (g->moved)
                memcpy(g->other + row * g->n, same < 0 ? x + row * g->n : original + (size_t)same * g->n,
                       g->n * sizeof *x);
        }
}

/* Divides each token's residual loss among the token's pairs, in proportion to their squared weights. If the experts'
 * inputs have equal lengths, this changes the experts least. */
static void divide_losses(const struct gathering *g)
{
    const whit_tape_pairs *pairs = &g->stream->tape[1].pairs;
    const size_t n_out = g->experts->n_out;
    const float *x = whit_tape_value(&g->stream->tape[1], g->experts->residual),
                *original = whit_tape_value(&g->stream->tape[0], g->experts->residual);
    for (size_t t = 0; n_out && t < g->stream->n_rows; t++) {
        const uint32_t *rows = pairs->row_of + t * pairs->n_used;
        float sum = 0;
        for (uint32_t i = 0; i < pairs->n_used; i++) sum += g->weights[rows[i]];
        for (uint32_t i = 0; i < pairs->n_used; i++) {
            const float share = sum > 0 ? g->weights[rows[i]] / sum : 0;
            float *to = g->losses + rows[i] * n_out;
            for (size_t k = 0; k < n_out; k++) to[k] = share * (original[t * n_out + k] - x[t * n_out + k]);
        }
    }
}

static size_t square_of(const struct gathering *g)
{
    return (size_t)g->n * g->n;
}

/* Returns the number of floats of one expert's sums (h, shift, lost). */
static size_t expert_values(const struct gathering *g)
{
    return square_of(g) * (g->moved ? 2 : 1) + (size_t)g->experts->n_out * g->n;
}

/* Returns the number of floats of the sums in a tree's node: h over all pairs, and the sums of each expert. With ranks,
 * the counts of pairs follow them as two floats each: of all experts together, and of each expert. */
static size_t count_sums(const struct gathering *g)
{
    return square_of(g) + g->experts->n * expert_values(g);
}

static float *node_counts(const struct gathering *g, float *node)
{
    return node + count_sums(g);
}

/* Returns sum i: 0 is over all pairs, i > 0 over the pairs of expert i - 1. It is in the memory of a tree's node, or,
 * if `node` is NULL, in the results of this process. */
static whit_hessian sum_of(const struct gathering *g, float *node, bool held, uint32_t i)
{
    if (!node) {
        const whit_hessian_pair *pair = i ? &g->experts->of[i - 1] : &g->all;
        return held ? pair->held : pair->text;
    }
    if (!i) return (whit_hessian){.n = g->n, .h = node};
    const whit_hessian *shape = held ? &g->experts->of[i - 1].held : &g->experts->of[i - 1].text;
    return hessian_in(node + square_of(g) + (i - 1) * expert_values(g), shape);
}

static void add_count(struct gathering *g, bool held, uint32_t i, uint64_t n)
{
    if (!i)
        g->n_all[held] += n;
    else if (!held)
        g->experts->n_pairs[i - 1] += n;
}

/* Runs a batch and adds its products to the sums in `node` (NULL: this process's results). */
static void add_batch(struct gathering *g, uint32_t batch, float *node)
{
    whit_stream *s = g->stream;
    const whit_tape_pairs *pairs = &s->tape[1].pairs;
    const bool held = g->all.held.h && whit_stream_is_held(s, batch);
    whit_stream_run(s, batch, g->until);
    match_pairs(g);
    divide_losses(g);
    float *x = whit_tape_value(&s->tape[1], g->value);
    struct weigh_job job = {.loops = g->blas->loops, .x = x, .other = g->other, .weights = g->weights, .width = g->n};
    whit_pool_run(s->pool, weigh_rows, &job, pairs->first[pairs->n_experts], 16);
    for (uint32_t i = 0; i < g->experts->n + 1; i++) {
        const uint32_t expert = g->experts->first + i - 1;
        const uint32_t first = i ? pairs->first[expert] : 0;
        const uint32_t n = pairs->first[i ? expert + 1 : pairs->n_experts] - first;
        const size_t at = (size_t)first * g->n;
        const whit_hessian to = sum_of(g, node, held, i);
        if (!n) continue;
        add_product(g->blas, s->pool, x + at, g->n, x + at, g->n, n, to.h);
        if (to.shift) add_product(g->blas, s->pool, g->other + at, g->n, x + at, g->n, n, to.shift);
        if (to.lost)
            add_product(g->blas, s->pool, g->losses + (size_t)first * to.n_out, to.n_out, x + at, g->n, n, to.lost);
        if (node) {
            node_counts(g, node)[2 * i] = (float)(n % COUNT_LOW);
            node_counts(g, node)[2 * i + 1] = (float)(n / COUNT_LOW);
        } else {
            add_count(g, held, i, n);
        }
    }
}

/* Copies the sums of all ranks from a tree's node to the results. */
static void take_sums(struct gathering *g, bool held, float *node)
{
    for (uint32_t i = 0; i < g->experts->n + 1; i++) {
        const whit_hessian from = sum_of(g, node, held, i), to = sum_of(g, NULL, held, i);
        const float *count = node_counts(g, node) + 2 * (size_t)i;
        memcpy(to.h, from.h, square_of(g) * sizeof *to.h);
        if (to.shift) memcpy(to.shift, from.shift, square_of(g) * sizeof *to.shift);
        if (to.lost) memcpy(to.lost, from.lost, (size_t)to.n_out * g->n * sizeof *to.lost);
        add_count(g, held, i, (uint64_t)count[1] * COUNT_LOW + (uint64_t)count[0]);
    }
}

static whit_status sum_experts_on_ranks(struct gathering *g, whit_tree trees[2], whit_error *error)
{
    whit_stream *s = g->stream;
    const bool is_held_out = g->all.held.h != NULL;
    const size_t n_values = count_sums(g) + 2 * ((size_t)g->experts->n + 1);
    for (int i = 0; i < 2; i++) whit_tree_open(&trees[i], g->blas->loops, s->pool, s->allocator, n_values);
    uint32_t batch, end = whit_stream_own_batches(s, &batch);
    for (; batch < end; batch++) {
        whit_tree *tree = &trees[is_held_out && whit_stream_is_held(s, batch)];
        whit_tree_node *node = node_of_batch(tree, s, batch, is_held_out);
        if (!node) return whit_fail_memory(error, "the statistics of experts' inputs", n_values * sizeof(float));
        add_batch(g, batch, node->values);
        whit_tree_add(tree);
    }
    for (int held = 0; held <= is_held_out; held++) {
        WHIT_TRY(whit_tree_reduce(&trees[held], s->ranks, error));
        take_sums(g, held, trees[held].nodes[0].values);
    }
    return WHIT_OK;
}

/* Adds the mean over all pairs to an expert's h, with the weight of n_cols / 8 pairs. */
static void shrink(const struct gathering *g, whit_hessian *hessian, const whit_hessian *all, uint64_t n_all)
{
    const size_t square = (size_t)g->n * g->n;
    const float factor = (float)(SHRINK_SHARE * g->n / (double)n_all);
    g->blas->loops->add_scaled(hessian->h, all->h, factor, square);
}

whit_status whit_hessian_gather_experts(whit_hessian_experts *experts, whit_stream *s, const whit_blas *blas,
                                        whit_ref value, bool moved, whit_error *error)
{
    struct gathering g = {.experts = experts,
                          .stream = s,
                          .blas = blas,
                          .value = value,
                          .until = later(&s->block, value, experts->residual),
                          .moved = moved,
                          .n = s->graph.values[value - 1].width};
    experts->n_out = experts->residual ? s->graph.values[experts->residual - 1].width : 0;
    WHIT_TRY(whit_stream_wake(s, error));
    whit_status status = WHIT_OK;
    if (!open_gathering(&g))
        status = whit_fail_memory(error, "the statistics of experts' inputs", (size_t)g.n * g.n * sizeof(float));
    if (status == WHIT_OK && s->ranks) {
        whit_tree trees[2] = {{0}, {0}};
        status = sum_experts_on_ranks(&g, trees, error);
        for (int i = 0; i < 2; i++) whit_tree_close(&trees[i]);
    } else {
        for (uint32_t batch = 0; status == WHIT_OK && batch < s->n_batches; batch++) {
            /* The result may be ignored: if the caller ends the work, the experts' solver is told so too and does not
             * use the sums. */
            (void)whit_within_tell(&s->within, (double)batch / s->n_batches);
            add_batch(&g, batch, NULL);
        }
    }
    experts->n_all = g.n_all[0];
    for (uint32_t i = 0; status == WHIT_OK && i < experts->n; i++) {
        shrink(&g, &experts->of[i].text, &g.all.text, g.n_all[0]);
        if (g.all.held.h) shrink(&g, &experts->of[i].held, &g.all.held, g.n_all[1]);
        status = check_finite(s, &experts->of[i].text, value, experts->residual, error);
        if (status == WHIT_OK) status = check_finite(s, &experts->of[i].held, value, experts->residual, error);
    }
    close_gathering(&g);
    return status;
}

void whit_hessian_free_experts(whit_hessian_experts *x)
{
    for (uint32_t i = 0; x->of && i < x->n; i++) whit_hessian_free(&x->of[i]);
    whit_free(x->allocator, x->of, x->n * sizeof *x->of);
    whit_free(x->allocator, x->n_pairs, x->n * sizeof *x->n_pairs);
    *x = (whit_hessian_experts){0};
}
