/* SPDX-License-Identifier: MIT */
#include "compress/solve.h"

#include "base/rng.h"
#include "compress/codebook.h"
#include "compress/levels.h"
#include "compress/permute.h"
#include "kernels/codec.h"
#include "kernels/math.h"

#include <math.h>

#define BLOCK 128 /* number of columns whose errors are propagated together, at least a whole group */

/* Constants of annealing: the number of descent sweeps before it, the first and last temperature, and the number of
 * sweeps between refits of the scales. */
#define ANNEAL_DESCENTS 2
#define ANNEAL_FIRST    4.0f
#define ANNEAL_LAST     0.05f
#define ANNEAL_REFIT    4
/* A code is drawn from the nearest level and this number of levels on either side. Types with at most four levels draw
 * from all levels. */
#define DRAW_BESIDE 3
#define DRAW_REACH  12.0f /* the noise in the table is between -9.1 and 2.2 */
#define NOISE_BITS  12
#define NOISE_STEPS (1u << NOISE_BITS)
#define DRAW_SEED   0xD1342543DE82EF95u /* odd, so that consecutive draws get very different seeds */

/* State of one solve. Columns are in the order of processing (the walk), and groups are numbered in this order. */
struct walk {
    whit_solve *s;
    const whit_blas *blas;
    const whit_allocator *allocator;
    uint32_t m, n, n_groups, n_fields, widest; /* widest: largest number of columns of a group */
    uint32_t rows;                             /* rows per work item */
    const float *h, *u, *held_h;
    uint32_t *begin;  /* (n_groups + 1) first column of each group */
    uint32_t *number; /* (n_groups) index of each group in the original order */
    float *w;         /* (m, n) target, in the order of processing */
    float *values;    /* (m, n) */
    uint8_t *levels;  /* (m, n) index of each element's level */
    float *fields;    /* (m, n_groups, 2) scales */
    uint32_t shared;  /* number of groups that share factors; 0: there are no factors */
    uint32_t n_shares;
    float *factors; /* (m, n_shares, 2); NULL if there are no factors */
    float *r;       /* (m, n) (values - w) H; NULL without H */
    float *scratch; /* scratch_elems floats for each worker */
    size_t scratch_elems;
    double *row_errors; /* (m, 3) error, reference value (that of the target), and held-out error of each row */
    float *noise;       /* (NOISE_STEPS) quantiles of negated Gumbel noise, log(-log(u)) */
    float *heat;        /* (m) unit of temperature of each row */
    float temperature;  /* temperature of the current sweep in units of `heat`; 0: descent */
    bool keeps_scales;  /* the current sweep does not change scales */
    uint64_t sweep;     /* number of the current annealing sweep */
    /* Numbers of work items: done so far, and in all sweeps together; whether within.tell has returned false. */
    _Atomic uint32_t n_done;
    uint32_t n_all;
    bool is_ended;
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Returns the number of rows of a work item. It depends only on the matrix's shape, never on the number of threads.
 * Each item's product packs all of H. */
static uint32_t item_rows(uint32_t m)
{
    if (m >= 4096) return 256;
    return m >= 2048 ? 128 : 64;
}

static uint32_t n_items(const struct walk *k)
{
    return (k->m + k->rows - 1) / k->rows;
}

/* Counts a work item of a sweep. On the calling thread (worker 0) the progress is reported too. */
static void count_item(struct walk *k, uint32_t worker)
{
    const whit_solve *s = k->s;
    const double share = (double)++k->n_done / (double)k->n_all;
    if (!worker && !whit_within_tell(&s->within, s->begin + share * (s->end - s->begin))) k->is_ended = true;
}

/* Runs a sweep over all rows, unless the work has been ended. */
static void sweep_rows(struct walk *k, whit_pool *pool, whit_pool_fn *fn)
{
    if (!k->is_ended) whit_pool_run(pool, fn, k, n_items(k), 1);
}

/* ---- GPTQ ------------------------------------------------------------------------------------- */

static float *factors_of(const struct walk *k, uint32_t row, uint32_t group)
{
    return k->factors ? k->factors + ((size_t)row * k->n_shares + k->number[group] / k->shared) * 2 : NULL;
}

static void fit_group(const struct walk *k, uint32_t row, const float *w, uint32_t group, const float *importance,
                      float stored[2])
{
    uint32_t at = k->begin[group];
    whit_levels_fit(k->s->type, w + at, importance + at, k->begin[group + 1] - at, factors_of(k, row, group), stored);
}

/* Computes the factors of a row's scales, from the scales that its groups would have if they were fitted before the
 * walk. Groups that share factors are consecutive in the walk. */
static void fit_factors(struct walk *k, uint32_t row, const float *w, const float *importance)
{
    float *stored = k->fields + (size_t)row * k->n_groups * 2;
    for (uint32_t group = 0; group < k->n_groups; group++) {
        uint32_t at = k->begin[group];
        whit_levels_fit(k->s->type, w + at, importance + at, k->begin[group + 1] - at, NULL, stored + 2 * group);
    }
    for (uint32_t first = 0, last; first < k->n_groups; first = last) {
        uint32_t share = k->number[first] / k->shared;
        for (last = first; last < k->n_groups && k->number[last] / k->shared == share;) last++;
        whit_levels_factors(k->s->type, stored + 2 * first, last - first, factors_of(k, row, first));
    }
}

static bool has_codebook(const struct walk *k)
{
    return whit_codec_find(k->s->type->codec)->grid != NULL;
}

/* Rounds the columns of groups [first, last) in one row, and compensates their errors in the later columns of these
 * groups. `errors` (n, by column) stores the errors for compensation in the columns after these groups. */
static void walk_groups(const struct walk *k, uint32_t row, float *w, uint32_t first, uint32_t last,
                        const float *importance, float *errors)
{
    const whit_loops *loops = k->blas->loops;
    const whit_codec codec = (whit_codec)k->s->type->codec;
    const bool by_eights = has_codebook(k);
    uint32_t end = k->begin[last];
    for (uint32_t group = first; group < last; group++) {
        float *stored = k->fields + ((size_t)row * k->n_groups + group) * 2;
        fit_group(k, row, w, group, importance, stored);
        whit_levels levels = whit_levels_at(k->s->type, stored);
        for (uint32_t j = k->begin[group]; j < k->begin[group + 1]; j++) {
            size_t at = (size_t)row * k->n + j;
            if (!by_eights) {
                k->levels[at] = (uint8_t)whit_levels_nearest(&levels, w[j]);
            } else if ((j - k->begin[group]) % WHIT_CODEBOOK_COLS == 0) {
                whit_codebook_round(codec, &levels, w + j, importance + j, stored[0], k->levels + at);
            }
            uint32_t level = k->levels[at];
            k->values[at] = levels.value[level];
            if (!k->u) continue;
            const float *u = k->u + (size_t)j * k->n;
            float e = (w[j] - levels.value[level]) / u[j];
            errors[j] = -e;
            loops->add_scaled(w + j + 1, u + j + 1, -e, end - j - 1);
        }
    }
}

static void gptq_rows(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    struct walk *k = context;
    float *importance = k->scratch + worker * k->scratch_elems, *w = importance + k->n,
          *errors = w + (size_t)k->rows * k->n;
    for (uint32_t j = 0; j < k->n; j++) {
        float u = k->u ? k->u[(size_t)j * k->n + j] : 1;
        if (k->u)
            importance[j] = 1 / (u * u);
        else if (k->h)
            importance[j] = k->h[(size_t)j * k->n + j];
        else
            importance[j] = 1;
    }
    for (uint32_t item = begin; item < end; item++) {
        uint32_t row = item * k->rows, n_rows = (uint32_t)smaller(k->rows, k->m - row);
        memcpy(w, k->w + (size_t)row * k->n, (size_t)n_rows * k->n * sizeof *w);
        for (uint32_t r = 0; k->factors && r < n_rows; r++) fit_factors(k, row + r, w + (size_t)r * k->n, importance);
        for (uint32_t first = 0, last; first < k->n_groups; first = last) {
            for (last = first + 1; last < k->n_groups && k->begin[last + 1] - k->begin[first] <= BLOCK;) last++;
            for (uint32_t r = 0; r < n_rows; r++)
                walk_groups(k, row + r, w + (size_t)r * k->n, first, last, importance, errors + (size_t)r * k->n);
            uint32_t from = k->begin[first], to = k->begin[last];
            if (!k->u || to == k->n) continue;
            whit_blas_multiply(k->blas, worker,
                               &(whit_product){.m = n_rows,
                                               .n = k->n - to,
                                               .k = to - from,
                                               .a = errors + from,
                                               .lda = k->n,
                                               .b = k->u + (size_t)from * k->n + to,
                                               .ldb = k->n,
                                               .beta = 1,
                                               .c = w + to,
                                               .ldc = k->n});
        }
        count_item(k, worker);
    }
}

/* ---- descent ---------------------------------------------------------------------------------- */

static void multiply_rows(const struct walk *k, uint32_t worker, const float *rows, uint32_t n_rows, const float *h,
                          float *out)
{
    whit_blas_multiply(
        k->blas, worker,
        &(whit_product){
            .m = n_rows, .n = k->n, .k = k->n, .a = rows, .lda = k->n, .b = h, .ldb = k->n, .c = out, .ldc = k->n});
}

/* Adds delta H to columns [begin, end) of r (n_rows, n). delta (n_rows, columns of the group, n floats apart) has the
 * changes of the group's values, and only the group's rows of H are used. */
static void push_on(const struct walk *k, uint32_t worker, const float *delta, uint32_t n_rows, uint32_t group,
                    uint32_t begin, uint32_t end, float *r)
{
    uint32_t from = k->begin[group];
    if (begin == end) return;
    whit_blas_multiply(k->blas, worker,
                       &(whit_product){.m = n_rows,
                                       .n = end - begin,
                                       .k = k->begin[group + 1] - from,
                                       .a = delta,
                                       .lda = k->n,
                                       .b = k->h + (size_t)from * k->n + begin,
                                       .ldb = k->n,
                                       .beta = 1,
                                       .c = r + begin,
                                       .ldc = k->n});
}

/* Returns by how much the error changes if eight values from column j on get these codes: d^T H d + 2 r d, where d is
 * the change of the values. */
static double entry_gain(const struct walk *k, uint32_t j, const float *values, const float *r, const int8_t *codes,
                         float scale, float *d)
{
    double sum = 0;
    for (uint32_t i = 0; i < WHIT_CODEBOOK_COLS; i++) d[i] = (float)codes[i] * scale - values[i];
    for (uint32_t i = 0; i < WHIT_CODEBOOK_COLS; i++) {
        const float *h = k->h + (size_t)(j + i) * k->n + j;
        double product = 2 * (double)r[i];
        for (uint32_t c = 0; c < WHIT_CODEBOOK_COLS; c++) product += (double)h[c] * (double)d[c];
        sum += product * (double)d[i];
    }
    return sum;
}

/* Does for codebook types what move_codes does for others. Eight codes change together to the best of some entries,
 * which are preselected without the products of different columns. */
static bool move_entries(const struct walk *k, uint32_t row, uint32_t group, float *r, float *delta)
{
    const whit_loops *loops = k->blas->loops;
    const float *stored = k->fields + ((size_t)row * k->n_groups + group) * 2;
    const whit_levels levels = whit_levels_at(k->s->type, stored);
    uint32_t from = k->begin[group], to = k->begin[group + 1];
    bool moved = false;
    memset(delta, 0, (to - from) * sizeof *delta);
    for (uint32_t j = from; j < to; j += WHIT_CODEBOOK_COLS) {
        int8_t codes[WHIT_CODEBOOK_CHOICES][WHIT_CODEBOOK_COLS];
        float w[WHIT_CODEBOOK_COLS], weights[WHIT_CODEBOOK_COLS], d[WHIT_CODEBOOK_COLS];
        float *values = k->values + (size_t)row * k->n + j;
        for (uint32_t i = 0; i < WHIT_CODEBOOK_COLS; i++) {
            weights[i] = k->h[(size_t)(j + i) * k->n + j + i];
            w[i] = values[i] - r[j + i] / weights[i];
        }
        whit_codebook_nearest((whit_codec)k->s->type->codec, w, weights, stored[0], WHIT_CODEBOOK_CHOICES, codes);
        double best = 0;
        uint32_t chosen = WHIT_CODEBOOK_CHOICES;
        for (uint32_t c = 0; c < WHIT_CODEBOOK_CHOICES; c++) {
            double gain = entry_gain(k, j, values, r + j, codes[c], stored[0], d);
            if (gain < best) best = gain, chosen = c;
        }
        if (chosen == WHIT_CODEBOOK_CHOICES) continue;
        whit_codebook_numbers(&levels, codes[chosen], k->levels + (size_t)row * k->n + j);
        for (uint32_t i = 0; i < WHIT_CODEBOOK_COLS; i++) {
            delta[j - from + i] = (float)codes[chosen][i] * stored[0] - values[i];
            values[i] = (float)codes[chosen][i] * stored[0];
            if (delta[j - from + i] != 0)
                loops->add_scaled(r + from, k->h + (size_t)(j + i) * k->n + from, delta[j - from + i], to - from);
        }
        moved = true;
    }
    return moved;
}

/* Draws a level with probability proportional to exp(-h (w - level)^2 / temperature) by Gumbel's trick: the level whose
 * energy minus temperature times Gumbel noise is smallest. A level whose energy exceeds that of the nearest level by
 * more than DRAW_REACH temperatures is skipped, because the noise in the table never reaches this. */
static uint32_t draw_level(const whit_levels *levels, const float *noise, float w, float h, float temperature,
                           uint64_t seed)
{
    const uint32_t nearest = whit_levels_nearest(levels, w);
    if (!(temperature > 0)) return nearest;
    const bool few = levels->n <= 4; /* the levels of q2 and l2 are not sorted */
    const uint32_t begin = few || nearest < DRAW_BESIDE ? 0 : nearest - DRAW_BESIDE;
    const uint32_t end = few || nearest + DRAW_BESIDE >= levels->n ? levels->n : nearest + DRAW_BESIDE + 1;
    const float off = w - levels->value[nearest], highest = h * off * off + DRAW_REACH * temperature;
    uint32_t near[2 * DRAW_BESIDE + 1], n = 0, best = nearest;
    float energy[2 * DRAW_BESIDE + 1], least = INFINITY;
    for (uint32_t i = begin; i < end; i++) {
        energy[n] = h * (w - levels->value[i]) * (w - levels->value[i]);
        near[n] = i;
        n += energy[n] <= highest;
    }
    if (n < 2) return nearest;
    whit_rng rng = {seed};
    uint64_t bits = whit_rng_next(&rng);
    for (uint32_t i = 0; i < n; i++, bits >>= NOISE_BITS) {
        if (i == 64 / NOISE_BITS) bits = whit_rng_next(&rng);
        const float score = energy[i] + temperature * noise[bits & (NOISE_STEPS - 1)];
        if (score < least) {
            least = score;
            best = near[i];
        }
    }
    return best;
}

/* Changes every code of a row's group to its best level, or to a level drawn at the current temperature. r = (values -
 * w) H is updated only in the group's own columns; delta receives the change of each value. Returns whether any code
 * changed. */
static bool move_codes(const struct walk *k, uint32_t row, uint32_t group, float *r, float *delta)
{
    const whit_loops *loops = k->blas->loops;
    whit_levels levels = whit_levels_at(k->s->type, k->fields + ((size_t)row * k->n_groups + group) * 2);
    uint32_t from = k->begin[group], to = k->begin[group + 1];
    const float temperature = k->temperature * k->heat[row];
    const uint64_t elems = (uint64_t)k->m * k->n;
    bool moved = false;
    for (uint32_t j = from; j < to; j++) {
        const float *h = k->h + (size_t)j * k->n;
        size_t at = (size_t)row * k->n + j;
        uint32_t level = draw_level(&levels, k->noise, k->values[at] - r[j] / h[j], h[j], temperature,
                                    (k->sweep * elems + at) * DRAW_SEED);
        delta[j - from] = 0;
        if (level == k->levels[at]) continue;
        delta[j - from] = levels.value[level] - k->values[at];
        k->levels[at] = (uint8_t)level;
        k->values[at] = levels.value[level];
        loops->add_scaled(r + from, h + from, delta[j - from], to - from);
        moved = true;
    }
    return moved;
}

/* Coefficients of a group's scales a and b (first, second), and their products with H within the group; each (n_rows,
 * columns of the group). */
struct parts {
    float *first, *second, *first_h, *second_h;
};

static void find_parts(const struct walk *k, uint32_t worker, uint32_t row, uint32_t n_rows, uint32_t group,
                       const struct parts *p)
{
    const whit_tensor_type *type = k->s->type;
    uint32_t from = k->begin[group], n = k->begin[group + 1] - from;
    for (uint32_t i = 0; i < n_rows; i++) {
        const uint8_t *level = k->levels + (size_t)(row + i) * k->n + from;
        whit_levels levels = whit_levels_at(type, k->fields + ((size_t)(row + i) * k->n_groups + group) * 2);
        for (uint32_t j = 0; j < n; j++) {
            p->first[(size_t)i * n + j] = levels.first[level[j]];
            p->second[(size_t)i * n + j] = levels.second[level[j]];
        }
    }
    whit_product product = {.m = n_rows,
                            .n = n,
                            .k = n,
                            .a = p->first,
                            .lda = n,
                            .b = k->h + (size_t)from * k->n + from,
                            .ldb = k->n,
                            .c = p->first_h,
                            .ldc = n};
    whit_blas_multiply(k->blas, worker, &product);
    product.a = p->second, product.c = p->second_h;
    if (whit_levels_have_second(type)) whit_blas_multiply(k->blas, worker, &product);
}

/* Refits the scales of row i of the parts by least squares under H, with all other groups fixed. delta receives the
 * change of each value. Returns whether the scales changed. */
static bool refit_scales(const struct walk *k, uint32_t row, uint32_t group, const struct parts *p, uint32_t i,
                         const float *r, float *delta)
{
    const whit_loops *loops = k->blas->loops;
    const whit_tensor_type *type = k->s->type;
    bool both = whit_levels_have_second(type);
    uint32_t from = k->begin[group], n = k->begin[group + 1] - from;
    const float *first = p->first + (size_t)i * n, *second = p->second + (size_t)i * n;
    float *stored = k->fields + ((size_t)row * k->n_groups + group) * 2;
    double ff = (double)loops->dot(first, p->first_h + (size_t)i * n, n), fs = 0, ss = 0,
           fr = (double)loops->dot(first, r + from, n), sr = 0;
    if (both) {
        fs = (double)loops->dot(second, p->first_h + (size_t)i * n, n);
        ss = (double)loops->dot(second, p->second_h + (size_t)i * n, n);
        sr = (double)loops->dot(second, r + from, n);
    }
    double determinant = ff * ss - fs * fs;
    float scales[2] = {stored[0], stored[1]}, after[2];
    memset(delta, 0, n * sizeof *delta);
    if (both && determinant > 1e-6 * ff * ss) {
        scales[0] -= (float)((ss * fr - fs * sr) / determinant);
        scales[1] -= (float)((ff * sr - fs * fr) / determinant);
    } else if (!both && ff > 0) {
        scales[0] -= (float)(fr / ff);
    }
    if (!whit_levels_allow(type, scales)) return false;
    whit_levels_store(type, scales, factors_of(k, row, group), after);
    if (after[0] == stored[0] && after[1] == stored[1]) return false;
    stored[0] = after[0], stored[1] = after[1];
    whit_levels levels = whit_levels_at(type, stored);
    const uint8_t *level = k->levels + (size_t)row * k->n + from;
    float *values = k->values + (size_t)row * k->n + from;
    for (uint32_t j = 0; j < n; j++) {
        delta[j] = levels.value[level[j]] - values[j];
        values[j] = levels.value[level[j]];
    }
    return true;
}

/* Computes the errors of n_rows rows from their residuals r. */
static void sum_errors(const struct walk *k, uint32_t row, uint32_t n_rows, float *d)
{
    for (uint32_t i = 0; i < n_rows; i++) {
        size_t at = (size_t)(row + i) * k->n;
        for (uint32_t j = 0; j < k->n; j++) d[j] = k->values[at + j] - k->w[at + j];
        k->row_errors[3 * (row + i)] = (double)k->blas->loops->dot(d, k->r + at, k->n);
    }
}

/* Runs a sweep of descent or annealing, group by group, for several rows at once, so that one matrix product updates
 * their other columns. */
static void descend_rows(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    struct walk *k = context;
    float *d = k->scratch + worker * k->scratch_elems, *more = d + (size_t)k->rows * k->n;
    const size_t part = (size_t)k->rows * k->widest;
    const bool by_eights = has_codebook(k);
    const struct parts parts = {more, more + part, more + 2 * part, more + 3 * part};
    for (uint32_t item = begin; item < end; item++) {
        uint32_t row = item * k->rows, n_rows = (uint32_t)smaller(k->rows, k->m - row);
        float *r = k->r + (size_t)row * k->n;
        for (uint32_t group = 0; group < k->n_groups; group++) {
            bool any = false;
            for (uint32_t i = 0; i < n_rows; i++)
                any |= by_eights ? move_entries(k, row + i, group, r + (size_t)i * k->n, d + (size_t)i * k->n)
                                 : move_codes(k, row + i, group, r + (size_t)i * k->n, d + (size_t)i * k->n);
            if (!any) continue;
            push_on(k, worker, d, n_rows, group, 0, k->begin[group], r);
            push_on(k, worker, d, n_rows, group, k->begin[group + 1], k->n, r);
        }
        for (uint32_t group = 0; group < k->n_groups && !k->keeps_scales; group++) {
            bool any = false;
            find_parts(k, worker, row, n_rows, group, &parts);
            for (uint32_t i = 0; i < n_rows; i++)
                any |= refit_scales(k, row + i, group, &parts, i, r + (size_t)i * k->n, d + (size_t)i * k->n);
            if (any) push_on(k, worker, d, n_rows, group, 0, k->n, r);
        }
        sum_errors(k, row, n_rows, d);
        count_item(k, worker);
    }
}

/* ---- errors ----------------------------------------------------------------------------------- */

/* Computes the residuals, the errors, and the reference values of the errors before descent. Descent then updates
 * residuals and errors. */
static void measure_rows(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct walk *k = context;
    float *d = k->scratch + worker * k->scratch_elems;
    for (uint32_t item = begin; item < end; item++) {
        uint32_t row = item * k->rows, n_rows = (uint32_t)smaller(k->rows, k->m - row);
        size_t at = (size_t)row * k->n, n = (size_t)n_rows * k->n;
        float *r = k->r + at;
        multiply_rows(k, worker, k->w + at, n_rows, k->h, r);
        for (uint32_t i = 0; i < n_rows; i++)
            k->row_errors[3 * (row + i) + 1] =
                (double)k->blas->loops->dot(k->w + at + (size_t)i * k->n, r + (size_t)i * k->n, k->n);
        for (size_t i = 0; i < n; i++) d[i] = k->values[at + i] - k->w[at + i];
        multiply_rows(k, worker, d, n_rows, k->h, r);
        sum_errors(k, row, n_rows, d);
    }
}

static void measure_held(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct walk *k = context;
    float *r = k->scratch + worker * k->scratch_elems;
    for (uint32_t item = begin; item < end; item++) {
        uint32_t row = item * k->rows, n_rows = (uint32_t)smaller(k->rows, k->m - row);
        multiply_rows(k, worker, k->values + (size_t)row * k->n, n_rows, k->held_h, r);
        for (uint32_t i = 0; i < n_rows; i++) {
            const float *held = k->s->held_target + (size_t)(row + i) * k->n, *q = k->values + (size_t)(row + i) * k->n;
            double sum = (double)k->blas->loops->dot(q, r + (size_t)i * k->n, k->n);
            for (uint32_t j = 0; j < k->n; j++)
                sum -= 2 * (double)q[j] * (double)held[k->s->order ? k->s->order[j] : j];
            k->row_errors[3 * (row + i) + 2] = sum;
        }
    }
}

/* Sums the errors of all rows. Returns the current error divided by the reference value; *held is the sum of the
 * held-out errors, which is not divided. */
static double measure_walk(struct walk *k, whit_pool *pool, double *held)
{
    double sums[3] = {0};
    if (k->held_h) whit_pool_run(pool, measure_held, k, n_items(k), 1);
    for (uint32_t row = 0; row < k->m; row++)
        for (int i = 0; i < 3; i++) sums[i] += k->row_errors[3 * row + i];
    *held = sums[2];
    return sums[1] > 0 ? sums[0] / sums[1] : 0;
}

/* ---- the whole matrix ------------------------------------------------------------------------- */

static void find_groups(struct walk *k)
{
    whit_geometry g = whit_codec_geometry(k->s->type);
    uint32_t at = 0;
    for (uint32_t i = 0; i < k->n_groups; i++) {
        uint32_t number = (k->s->order ? k->s->order[at] : at) / g.group_cols;
        uint32_t rest = k->n - number * g.group_cols;
        k->begin[i] = at;
        k->number[i] = number;
        at += rest < g.group_cols ? rest : g.group_cols;
    }
    k->begin[k->n_groups] = k->n;
}

static void take_result(const struct walk *k)
{
    const whit_solve *s = k->s;
    whit_geometry g = whit_codec_geometry(s->type);
    uint32_t group_bytes = g.row_bytes / k->n_groups;
    for (uint32_t row = 0; row < k->m; row++) {
        for (uint32_t share = 0; share < k->n_shares; share++)
            for (uint32_t f = 0; f < k->n_fields; f++)
                s->fields[(size_t)row * g.row_fields + share * k->n_fields + f] =
                    k->factors[((size_t)row * k->n_shares + share) * 2 + f];
        for (uint32_t group = 0; group < k->n_groups; group++) {
            const float *stored = k->fields + ((size_t)row * k->n_groups + group) * 2;
            whit_levels levels = whit_levels_at(s->type, stored);
            if (group_bytes)
                whit_levels_write(s->type, stored, factors_of(k, row, group),
                                  s->fields_u8 + (size_t)row * g.row_bytes + k->number[group] * group_bytes);
            for (uint32_t f = 0; !group_bytes && f < k->n_fields; f++)
                s->fields[(size_t)row * g.row_fields + k->number[group] * k->n_fields + f] = stored[f];
            for (uint32_t j = k->begin[group]; j < k->begin[group + 1]; j++) {
                size_t to = (size_t)row * k->n + (s->order ? s->order[j] : j), from = (size_t)row * k->n + j;
                s->codes[to] = levels.code[k->levels[from]];
                s->values[to] = k->values[from];
            }
        }
    }
}

/* Loads the codes and scales that an earlier call has found; the reverse of take_result. */
static void load_state(const struct walk *k)
{
    const whit_solve *s = k->s;
    whit_geometry g = whit_codec_geometry(s->type);
    uint32_t group_bytes = g.row_bytes / k->n_groups;
    for (uint32_t row = 0; row < k->m; row++) {
        for (uint32_t share = 0; share < k->n_shares; share++)
            for (uint32_t f = 0; f < k->n_fields; f++)
                k->factors[((size_t)row * k->n_shares + share) * 2 + f] =
                    s->fields[(size_t)row * g.row_fields + share * k->n_fields + f];
        for (uint32_t group = 0; group < k->n_groups; group++) {
            float *stored = k->fields + ((size_t)row * k->n_groups + group) * 2;
            if (group_bytes)
                whit_levels_read(s->type, s->fields_u8 + (size_t)row * g.row_bytes + k->number[group] * group_bytes,
                                 factors_of(k, row, group), stored);
            for (uint32_t f = 0; !group_bytes && f < k->n_fields; f++)
                stored[f] = s->fields[(size_t)row * g.row_fields + k->number[group] * k->n_fields + f];
            whit_levels levels = whit_levels_at(s->type, stored);
            for (uint32_t j = k->begin[group]; j < k->begin[group + 1]; j++) {
                size_t from = (size_t)row * k->n + (s->order ? s->order[j] : j), to = (size_t)row * k->n + j;
                uint32_t level = 0;
                while (level + 1 < levels.n && levels.code[level] != s->codes[from]) level++;
                k->levels[to] = (uint8_t)level;
                k->values[to] = levels.value[level];
            }
        }
    }
}

struct kept {
    float *values, *fields;
    uint8_t *levels;
};

/* Copies `state` to `kept`; with `back` the other way. */
static void copy_bytes(void *state, void *kept, size_t n_bytes, bool back)
{
    if (back)
        memcpy(state, kept, n_bytes);
    else
        memcpy(kept, state, n_bytes);
}

static void copy_state(const struct walk *k, float *values, float *fields, uint8_t *levels, bool back)
{
    size_t n = (size_t)k->m * k->n, n_fields = (size_t)k->m * k->n_groups * 2;
    copy_bytes(k->values, values, n * sizeof *values, back);
    copy_bytes(k->fields, fields, n_fields * sizeof *fields, back);
    copy_bytes(k->levels, levels, n, back);
}

/* Draws codes at a falling temperature (simulated annealing by Gibbs sampling, Geman, Geman 1984), after a few sweeps
 * of descent. The unit of temperature is the average error of a weight of the row after these sweeps. Scales, which
 * depend little on single codes, are refitted only in every ANNEAL_REFIT-th sweep. */
static void anneal(struct walk *k, whit_pool *pool)
{
    const uint32_t n = k->s->n_anneal;
    for (uint32_t i = 0; i < NOISE_STEPS; i++)
        k->noise[i] = (float)whit_log_f64(-whit_log_f64(((double)i + 0.5) / NOISE_STEPS));
    for (uint32_t i = 0; i < ANNEAL_DESCENTS; i++) sweep_rows(k, pool, descend_rows);
    for (uint32_t row = 0; row < k->m; row++)
        k->heat[row] = (float)fmax(k->row_errors[3 * (size_t)row], 0) / (float)k->n;
    for (k->sweep = 0; k->sweep < n; k->sweep++) {
        k->temperature = ANNEAL_FIRST * powf(ANNEAL_LAST / ANNEAL_FIRST, (float)k->sweep / (float)n);
        k->keeps_scales = k->sweep % ANNEAL_REFIT != 0;
        sweep_rows(k, pool, descend_rows);
    }
    k->temperature = 0;
    k->keeps_scales = false;
}

static bool is_annealed(const struct walk *k)
{
    const whit_solve *s = k->s;
    return s->n_anneal && s->n_sweeps && !s->goes_on && !has_codebook(k);
}

/* Anneals, if the options want it, and then runs at most n_sweeps sweeps, until the error stops falling (on held-out
 * tokens, if there are any). The best state is kept. */
static void descend(struct walk *k, whit_pool *pool, struct kept *kept, double held)
{
    whit_solve *s = k->s;
    double best = k->held_h ? held : s->error;
    if (is_annealed(k)) {
        copy_state(k, kept->values, kept->fields, kept->levels, false);
        anneal(k, pool);
        double error = measure_walk(k, pool, &held), now = k->held_h ? held : error;
        if (now < best) {
            best = now;
            s->error = error;
            s->sweeps = ANNEAL_DESCENTS + s->n_anneal;
        } else {
            copy_state(k, kept->values, kept->fields, kept->levels, true);
            whit_pool_run(pool, measure_rows, k, n_items(k), 1);
        }
    }
    for (uint32_t sweep = 0; sweep < s->n_sweeps && !k->is_ended; sweep++) {
        copy_state(k, kept->values, kept->fields, kept->levels, false);
        sweep_rows(k, pool, descend_rows);
        double error = measure_walk(k, pool, &held), now = k->held_h ? held : error;
        if (!(now < best)) {
            copy_state(k, kept->values, kept->fields, kept->levels, true);
            break;
        }
        best = now;
        s->error = error;
        s->sweeps++;
    }
}

whit_status whit_solve_run(whit_solve *s, const whit_blas *blas, whit_pool *pool, const whit_allocator *a,
                           whit_error *error)
{
    const whit_tensor_type *type = s->type;
    whit_geometry g = whit_codec_geometry(type);
    struct walk k = {.s = s,
                     .blas = blas,
                     .allocator = a,
                     .m = type->n_rows,
                     .n = type->n_cols,
                     .n_groups = g.n_groups,
                     .n_fields = g.n_fields,
                     .h = s->h,
                     .u = s->u,
                     .held_h = s->held_h};
    struct kept kept = {0};
    size_t n = (size_t)k.m * k.n, n_fields = (size_t)k.m * k.n_groups * 2;
    bool ordered = s->order && s->h;
    k.shared = whit_levels_shared_groups(type);
    k.n_shares = k.shared ? (k.n_groups + k.shared - 1) / k.shared : 0;
    size_t n_factors = 2 * (size_t)k.m * k.n_shares;
    k.widest = (uint32_t)smaller(g.group_cols, k.n);
    k.rows = item_rows(k.m);
    k.scratch_elems = (size_t)k.n * (2 * k.rows + 1) + 4 * (size_t)k.rows * k.widest;
    k.begin = whit_zalloc_array(a, 2 * (size_t)k.n_groups + 1, sizeof *k.begin);
    k.w = whit_zalloc_array(a, n, sizeof(float));
    k.values = whit_zalloc_array(a, n, sizeof(float));
    k.levels = whit_zalloc_array(a, n, 1);
    k.fields = whit_zalloc_array(a, n_fields, sizeof(float));
    if (k.shared) k.factors = whit_zalloc_array(a, n_factors, sizeof(float));
    k.scratch = whit_zalloc_array(a, k.scratch_elems * whit_pool_size(pool), sizeof(float));
    if (k.h) k.r = whit_zalloc_array(a, n, sizeof(float));
    k.row_errors = whit_zalloc_array(a, 3 * (size_t)k.m, sizeof(double));
    k.heat = whit_zalloc_array(a, k.m, sizeof(float));
    k.noise = whit_zalloc_array(a, NOISE_STEPS, sizeof(float));
    if (s->n_sweeps) {
        kept.values = whit_zalloc_array(a, n, sizeof(float));
        kept.fields = whit_zalloc_array(a, n_fields, sizeof(float));
        kept.levels = whit_zalloc_array(a, n, 1);
    }
    whit_status status = WHIT_OK;
    if (!k.begin || !k.w || !k.values || !k.levels || !k.fields || !k.scratch || !k.row_errors || !k.heat || !k.noise ||
        (k.h && !k.r) || (k.shared && !k.factors) || (s->n_sweeps && (!kept.values || !kept.fields || !kept.levels)))
        status = whit_fail_memory(error, "a matrix", n * sizeof(float));
    if (status == WHIT_OK) {
        k.number = k.begin + k.n_groups + 1;
        find_groups(&k);
        k.n_all = n_items(&k) * (1 + s->n_sweeps + (is_annealed(&k) ? ANNEAL_DESCENTS + s->n_anneal : 0));
        if (ordered) whit_permute_square(s->h, k.n, s->order, k.scratch);
        if (ordered && s->held_h) whit_permute_square(s->held_h, k.n, s->order, k.scratch);
        for (size_t row = 0; row < k.m; row++)
            for (size_t j = 0; j < k.n; j++) k.w[row * k.n + j] = s->target[row * k.n + (s->order ? s->order[j] : j)];
        if (s->goes_on)
            load_state(&k);
        else
            sweep_rows(&k, pool, gptq_rows);
        double held = 0;
        s->sweeps = 0;
        if (k.h) whit_pool_run(pool, measure_rows, &k, n_items(&k), 1);
        s->error = s->error_gptq = k.h ? measure_walk(&k, pool, &held) : 0;
        if (k.h) descend(&k, pool, &kept, held);
        take_result(&k);
        if (ordered) whit_permute_back(s->h, k.n, s->order, k.scratch);
        if (ordered && s->held_h) whit_permute_back(s->held_h, k.n, s->order, k.scratch);
    }
    whit_free(a, k.begin, (2 * (size_t)k.n_groups + 1) * sizeof *k.begin);
    whit_free(a, k.w, n * sizeof(float));
    whit_free(a, k.values, n * sizeof(float));
    whit_free(a, k.levels, n);
    whit_free(a, k.fields, n_fields * sizeof(float));
    whit_free(a, k.factors, n_factors * sizeof(float));
    whit_free(a, k.scratch, k.scratch_elems * whit_pool_size(pool) * sizeof(float));
    whit_free(a, k.r, n * sizeof(float));
    whit_free(a, k.heat, k.m * sizeof(float));
    whit_free(a, k.noise, NOISE_STEPS * sizeof(float));
    whit_free(a, k.row_errors, 3 * (size_t)k.m * sizeof(double));
    whit_free(a, kept.values, n * sizeof(float));
    whit_free(a, kept.fields, n_fields * sizeof(float));
    whit_free(a, kept.levels, n);
    return status;
}
