/* SPDX-License-Identifier: MIT */
#include "train/params.h"

#include "kernels/corrections.h"
#include "quant/quantise.h"

#include <stdio.h>

void whit_params_begin(whit_params *params, const whit_allocator *allocator)
{
    *params = (whit_params){.allocator = allocator, .loops = whit_loops_find(), .share = 1};
}

static whit_status grow_arrays(whit_params *params, whit_error *error)
{
    if (params->n < params->capacity) return WHIT_OK;
    uint32_t capacity = params->capacity ? 2 * params->capacity : 64;
    whit_param *larger = whit_zalloc_array(params->allocator, capacity, sizeof *larger);
    if (!larger) return whit_fail_memory(error, "the list of parameters", capacity * sizeof *larger);
    if (params->n) memcpy(larger, params->items, params->n * sizeof *larger);
    whit_free(params->allocator, params->items, params->capacity * sizeof *larger);
    params->items = larger;
    params->capacity = capacity;
    return WHIT_OK;
}

whit_status whit_params_add(whit_params *params, const char *name, const whit_tensor_type *type, bool coded,
                            whit_error *error)
{
    if (whit_params_find(params, name) >= 0)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "two parameters are called '%s'", name);
    whit_error inner;
    if (whit_tensor_type_check(type, &inner) != WHIT_OK)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "parameter '%s': %s", name, inner.message);
    if (coded && !whit_quantise_knows(type))
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "parameter '%s': training cannot round to its type: choose another codec", name);
    WHIT_TRY(grow_arrays(params, error));
    whit_param *param = &params->items[params->n];
    *param = (whit_param){.type = *type, .coded = coded, .low_a = -1, .low_b = -1};
    snprintf(param->name, sizeof param->name, "%s", name);
    if (__builtin_mul_overflow((size_t)type->n_rows, (size_t)type->n_cols, &param->n) ||
        __builtin_add_overflow(params->n_latents, param->n, &params->n_latents) || params->n_latents > SIZE_MAX / 64)
        return whit_fail(error, WHIT_ERROR_LIMIT, "the model has more parameters than the address space can hold");
    param->offset = params->n_latents - param->n;
    if (coded) {
        whit_geometry g = whit_codec_geometry(type);
        bool whole = type->scale_kind == WHIT_SCALE_TENSOR;
        param->n_lines = whole ? 1 : type->n_rows;
        param->line_elems = whole ? param->n : type->n_cols;
        param->group_elems = whole ? param->n : g.group_cols;
        param->n_groups = g.n_groups;
        param->n_fields = whit_quantise_fields(type);
        param->n_scales = (size_t)param->n_lines * g.n_groups * param->n_fields;
        params->n_rounded += param->n;
    }
    params->n++;
    return WHIT_OK;
}

/* Also assigns all offsets again, in the order in which the tensors were added; frozen tensors are counted
 * separately. */
void whit_params_freeze(whit_params *params, uint32_t i)
{
    params->items[i].frozen = true;
    params->n_latents = params->n_fixed = 0;
    for (uint32_t k = 0; k < params->n; k++) {
        size_t *n = params->items[k].frozen ? &params->n_fixed : &params->n_latents;
        params->items[k].offset = *n;
        *n += params->items[k].n;
    }
}

static size_t count_floats(const whit_params *params)
{
    size_t n = params->n_latents;
    for (uint32_t i = 0; i < params->n; i++) n += params->items[i].n_scales;
    return n;
}

/* Returns whether gradients of frozen weights are needed, because the scales of a frozen coded tensor are trained. */
static bool trains_fixed_scales(const whit_params *params)
{
    for (uint32_t i = 0; i < params->n; i++)
        if (params->items[i].frozen && params->items[i].coded) return true;
    return false;
}

size_t whit_params_bytes(const whit_params *params, bool gradients)
{
    size_t n_arrays = gradients ? 4 : 1;
    size_t n_scales = gradients && trains_fixed_scales(params) ? 2 : 1;
    return (count_floats(params) * n_arrays + params->n_rounded + params->n_fixed * n_scales) * sizeof(float);
}

whit_status whit_params_allocate(whit_params *params, bool gradients, whit_error *error)
{
    const whit_allocator *a = params->allocator;
    size_t scales = params->n_latents, rounded = 0;
    params->n_floats = count_floats(params);
    params->run = whit_zalloc_array(a, params->n_floats + 1, sizeof(float));
    params->fixed = whit_zalloc_array(a, params->n_fixed + 1, sizeof(float));
    params->rounded = whit_zalloc_array(a, params->n_rounded + 1, sizeof(float));
    bool ok = params->run && params->fixed && params->rounded;
    if (gradients && ok && trains_fixed_scales(params)) {
        params->fixed_gradient = whit_zalloc_array(a, params->n_fixed, sizeof(float));
        ok = params->fixed_gradient != NULL;
    }
    if (gradients && ok) {
        params->gradient = whit_zalloc_array(a, params->n_floats, sizeof(float));
        params->moment1 = whit_zalloc_array(a, params->n_floats, sizeof(float));
        params->moment2 = whit_zalloc_array(a, params->n_floats, sizeof(float));
        ok = params->gradient && params->moment1 && params->moment2;
    }
    if (!ok) return whit_fail_memory(error, "the parameters", whit_params_bytes(params, gradients));
    for (uint32_t i = 0; i < params->n; i++) {
        whit_param *param = &params->items[i];
        param->scales = scales;
        param->value = param->coded ? params->rounded + rounded : whit_param_latent(params, param);
        scales += param->n_scales;
        rounded += param->coded ? param->n : 0;
    }
    return WHIT_OK;
}

void whit_params_free(whit_params *params)
{
    const whit_allocator *a = params->allocator;
    whit_free(a, params->run, (params->n_floats + 1) * sizeof(float));
    whit_free(a, params->fixed, (params->n_fixed + 1) * sizeof(float));
    whit_free(a, params->fixed_gradient, params->n_fixed * sizeof(float));
    whit_free(a, params->gradient, params->n_floats * sizeof(float));
    whit_free(a, params->moment1, params->n_floats * sizeof(float));
    whit_free(a, params->moment2, params->n_floats * sizeof(float));
    whit_free(a, params->rounded, (params->n_rounded + 1) * sizeof(float));
    whit_free(a, params->items, params->capacity * sizeof *params->items);
    *params = (whit_params){0};
}

int32_t whit_params_find(const whit_params *params, const char *name)
{
    for (uint32_t i = 0; i < params->n; i++)
        if (strcmp(params->items[i].name, name) == 0) return (int32_t)i;
    return -1;
}

static int32_t find_tensor(void *context, const char *name)
{
    return whit_params_find(context, name);
}

static const whit_tensor_type *type_of(void *context, int32_t index)
{
    return &((const whit_params *)context)->items[index].type;
}

whit_resolver whit_params_resolver(whit_params *params)
{
    return (whit_resolver){params, find_tensor, type_of};
}

static bool tell_share(const whit_watcher *watcher, const char *what, size_t n_done, size_t n_all)
{
    return !watcher || !watcher->progress || watcher->progress(watcher->user, what, (double)n_done / (double)n_all);
}

whit_status whit_params_load(whit_params *params, const whit_ndf *file, const whit_watcher *watcher, whit_error *error)
{
    const size_t n_all = params->n_floats + params->n_fixed;
    size_t n_read = 0;
    for (uint32_t i = 0; i < params->n; i++) {
        whit_param *param = &params->items[i];
        if (param->is_new) continue;
        int64_t found = whit_ndf_find(file, param->name);
        whit_tensor tensor = {0};
        if (found >= 0) whit_ndf_tensor(file, (uint32_t)found, &tensor);
        if (found < 0 || tensor.type.n_rows != param->type.n_rows || tensor.type.n_cols != param->type.n_cols)
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "%s: the model has no tensor '%s' of %u x %u, which training needs", whit_ndf_path(file),
                             param->name, param->type.n_rows, param->type.n_cols);
        float *latent = whit_param_latent(params, param);
        if (param->coded && whit_is_corrected(&tensor) && !memcmp(&tensor.type, &param->type, sizeof tensor.type)) {
            param->corrected = tensor;
            tensor = whit_without_corrections(&tensor);
        }
        for (int32_t row = 0; row < (int32_t)param->type.n_rows; row++)
            whit_codec_get_rows(&tensor, &row, 1, latent + (size_t)row * param->type.n_cols, param->type.n_cols);
        n_read += param->n;
        if (!tell_share(watcher, "reading the weights", n_read, n_all))
            return whit_fail(error, WHIT_ERROR_CANCELLED, "%s: reading was cancelled", whit_ndf_path(file));
    }
    return WHIT_OK;
}

/* ---- rounding ------------------------------------------------------------------------------- */

enum rounding { FIT, ROUND, SCALE_GRADIENTS };

struct rounding_job {
    whit_params *params;
    const whit_param *param;
    enum rounding what;
};

static void round_group(const struct rounding_job *job, size_t at, size_t n, float *fields, float *dfields)
{
    const whit_params *params = job->params;
    const whit_tensor_type *type = &job->param->type;
    const float *w = whit_param_latent(params, job->param) + at;
    float stored[2];
    if (job->what == FIT) {
        whit_quantise_fit(params->loops, type, w, n, fields);
    } else if (job->what == ROUND) {
        if (!params->learn_scales || type->codec == WHIT_CODEC_I8)
            whit_quantise_refit(params->loops, type, w, n, fields);
        whit_quantise_stored(type, fields, stored);
        whit_quantise_values(params->loops, type, w, n, stored, params->share, job->param->value + at);
    } else {
        /* `value` contains only params->share of the rounding, so the gradients are multiplied by it */
        float rounded[2] = {0};
        whit_quantise_stored(type, fields, stored);
        whit_quantise_scale_gradient(params->loops, type, w, n, stored, whit_param_gradient(params, job->param) + at,
                                     rounded);
        for (uint32_t f = 0; f < job->param->n_fields; f++) dfields[f] += params->share * rounded[f];
    }
}

static void round_lines(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct rounding_job *job = context;
    const whit_params *params = job->params;
    const whit_param *param = job->param;
    for (uint32_t line = begin; line < end; line++)
        for (uint32_t group = 0; group < param->n_groups; group++) {
            size_t at = group * param->group_elems, rest = param->line_elems - at;
            size_t scale = param->scales + ((size_t)line * param->n_groups + group) * param->n_fields;
            float *gradient = params->gradient ? params->gradient + scale : NULL;
            round_group(job, line * param->line_elems + at, rest < param->group_elems ? rest : param->group_elems,
                        params->run + scale, gradient);
        }
    if (job->what != ROUND || !whit_is_corrected(&param->corrected)) return;
    uint32_t line_rows = param->type.n_rows / param->n_lines;
    for (uint32_t row = begin * line_rows; row < end * line_rows; row++)
        whit_corrections_add_row(&param->corrected, row, param->value + (size_t)row * param->type.n_cols);
}

static bool takes_part(const whit_param *param, enum rounding what)
{
    /* The scales of i8 are not trained: a scale is the largest magnitude of its row, divided by 127. */
    return param->coded && !(what == SCALE_GRADIENTS && param->type.codec == WHIT_CODEC_I8);
}

/* Fits or rounds the tensors that have a single line, or computes the gradients of their scales. One thread computes
 * all sums of such a tensor, so that results do not depend on the number of threads. */
static void round_tensors(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    const struct rounding_job *all = context;
    for (uint32_t i = begin; i < end; i++) {
        struct rounding_job job = {all->params, &all->params->items[i], all->what};
        if (takes_part(job.param, job.what) && job.param->n_lines == 1) round_lines(&job, worker, 0, 1);
    }
}

/* Fits or rounds all coded tensors, or computes the gradients of their scales. Returns false if the watcher
 * cancelled. */
static bool each_coded(whit_params *params, whit_pool *pool, enum rounding what, const whit_watcher *watcher)
{
    struct rounding_job job = {.params = params, .what = what};
    size_t n_done = 0;
    whit_pool_run(pool, round_tensors, &job, params->n, 1);
    for (uint32_t i = 0; i < params->n; i++) {
        job.param = &params->items[i];
        if (takes_part(job.param, what) && job.param->n_lines > 1)
            whit_pool_run(pool, round_lines, &job, job.param->n_lines, 16);
        n_done += job.param->n;
        if (!tell_share(watcher, "fitting scales", n_done, params->n_floats + params->n_fixed)) return false;
    }
    return true;
}

bool whit_params_fit(whit_params *params, whit_pool *pool, const whit_watcher *watcher)
{
    return each_coded(params, pool, FIT, watcher);
}

void whit_params_round(whit_params *params, whit_pool *pool)
{
    each_coded(params, pool, ROUND, NULL);
}

enum { ZERO_PIECE = 1 << 16 };

struct zero_job {
    float *values;
    size_t n;
};

static void zero_pieces(void *context, uint32_t worker, uint32_t begin, uint32_t end)
{
    (void)worker;
    const struct zero_job *job = context;
    const size_t first = (size_t)begin * ZERO_PIECE, last = (size_t)end * ZERO_PIECE;
    memset(job->values + first, 0, ((last < job->n ? last : job->n) - first) * sizeof *job->values);
}

static void zero_values(float *values, size_t n, whit_pool *pool)
{
    struct zero_job job = {values, n};
    if (values && n) whit_pool_run(pool, zero_pieces, &job, (uint32_t)((n + ZERO_PIECE - 1) / ZERO_PIECE), 1);
}

void whit_params_zero_gradients(whit_params *params, const bool *is_left, whit_pool *pool)
{
    for (uint32_t i = 0; i < params->n; i++)
        if (!is_left[i]) zero_values(whit_param_gradient(params, &params->items[i]), params->items[i].n, pool);
    zero_values(params->gradient + params->n_latents, params->n_floats - params->n_latents, pool);
}

void whit_params_scale_gradients(whit_params *params, whit_pool *pool)
{
    if (params->learn_scales) each_coded(params, pool, SCALE_GRADIENTS, NULL);
}
