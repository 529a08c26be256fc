/* SPDX-License-Identifier: MIT */
#include "train/tuning.h"

#include "base/file.h"
#include "base/rng.h"
#include "format/ndf_append.h"
#include "kernels/corrections.h"
#include "model/adapter.h"
#include "model/families.h"
#include "quant/requantise.h"
#include "quant/quantise.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- choice of trained tensors ------------------------------------------------------------------------ */

static const char *last_word(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

static bool is_adapted(const whit_tuning *tuning, const char *name, const whit_tensor_type *type)
{
    if (!tuning->rank || !whit_adapter_may_change(name, type)) return false;
    for (size_t i = 0; i < tuning->n_matrices; i++)
        if (strcmp(tuning->matrices[i], last_word(name)) == 0) return true;
    return tuning->n_matrices == 0;
}

static bool has_scales(const whit_tuning *tuning, const char *name, const whit_tensor_type *type)
{
    return tuning->scales && strncmp(name, "layers.", 7) == 0 && type->layout == WHIT_LAYOUT_TILE16 &&
        type->codec != WHIT_CODEC_I8 && whit_quantise_knows(type);
}

static whit_status check_tuning(const whit_tuning *tuning, const whit_weights *weights, whit_error *error)
{
    if (!tuning->rank && !tuning->norms && !tuning->scales)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "there is nothing to tune: choose a rank above 0 for an adapter, norms or scales");
    if (tuning->rank > WHIT_ADAPTER_MAX_RANK)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "the adapter's rank %u exceeds the maximum, %d", tuning->rank,
                         WHIT_ADAPTER_MAX_RANK);
    bool scales = !tuning->scales;
    for (uint32_t i = 0; i < weights->n_tensors && !scales; i++)
        scales = has_scales(tuning, whit_ndf_tensor_name(weights->file, i), &weights->tensors[i].type);
    if (!scales)
        return whit_fail(
            error, WHIT_ERROR_UNSUPPORTED,
            "%s: its matrices have no scales that can be tuned (those of t2, t5, b1, q2 and l2 can, without offsets "
            "and u8 factors); its norms and an adapter can be",
            whit_ndf_path(weights->file));
    for (size_t k = 0; k < tuning->n_matrices; k++) {
        bool found = false;
        for (uint32_t i = 0; i < weights->n_tensors && !found; i++) {
            const char *name = whit_ndf_tensor_name(weights->file, i);
            found = whit_adapter_may_change(name, &weights->tensors[i].type) &&
                strcmp(tuning->matrices[k], last_word(name)) == 0;
        }
        if (!found)
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "the layers have no matrix '%s' (q k v o gate up down)",
                             tuning->matrices[k]);
    }
    return WHIT_OK;
}

static whit_status add_factor(whit_params *params, const char *of, const char *which, uint32_t n_rows, uint32_t n_cols,
                              int32_t *index, whit_error *error)
{
    char name[WHIT_VALUE_NAME_BYTES];
    whit_tensor_type type = whit_requantise_type(WHIT_CODEC_I8, n_rows, n_cols);
    if (snprintf(name, sizeof name, "%s.%s", of, which) >= (int)sizeof name)
        return whit_fail(error, WHIT_ERROR_LIMIT, "tensor '%s' has too long a name for an adapter, over about 40 bytes",
                         of);
    WHIT_TRY(whit_params_add(params, name, &type, true, error));
    *index = (int32_t)params->n - 1;
    params->items[*index].is_new = true;
    return WHIT_OK;
}

static whit_status add_tensor(whit_trainee *trainee, const whit_tuning *tuning, uint32_t i, whit_error *error)
{
    const whit_weights *weights = &trainee->model->weights;
    whit_params *params = &trainee->params;
    const char *name = whit_ndf_tensor_name(weights->file, i);
    const whit_tensor_type *from = &weights->tensors[i].type;
    whit_tensor_type plain = {.layout = from->layout, .n_rows = from->n_rows, .n_cols = from->n_cols};
    bool scales = has_scales(tuning, name, from), norm = from->layout == WHIT_LAYOUT_PLAIN && ends_with(name, "norm");
    WHIT_TRY(whit_params_add(params, name, scales ? from : &plain, scales, error));
    params->items[params->n - 1].rounds_input = from->act == WHIT_TENSOR_ACT_TOKEN;
    if (!norm || !tuning->norms) whit_params_freeze(params, params->n - 1);
    if (!is_adapted(tuning, name, from)) return WHIT_OK;
    uint32_t matrix = params->n - 1;
    int32_t a = -1, b = -1;
    WHIT_TRY(add_factor(params, name, "a", tuning->rank, from->n_cols, &a, error));
    WHIT_TRY(add_factor(params, name, "b", from->n_rows, tuning->rank, &b, error));
    params->items[matrix].low_a = a;
    params->items[matrix].low_b = b;
    return WHIT_OK;
}

/* Fills A with uniform numbers. B has only zeros already, so the adapter changes nothing at first (Hu et al. 2021,
 * section 4.1). */
static void fill_factors(whit_params *params, uint64_t seed)
{
    whit_rng rng = {seed};
    for (uint32_t i = 0; i < params->n; i++) {
        if (params->items[i].low_a < 0) continue;
        const whit_param *a = &params->items[params->items[i].low_a];
        float *latent = whit_param_latent(params, a), reach = 1 / sqrtf((float)a->type.n_cols);
        for (size_t k = 0; k < a->n; k++) latent[k] = (float)(2 * whit_rng_uniform(&rng) - 1) * reach;
    }
}

/* Adds the squared differences between a row's rounded values and the file's weights to *lost, and the squares of the
 * file's weights to *all. exact (n_cols) is scratch memory. */
static void compare_row(const whit_params *params, const whit_param *param, uint32_t row, float *exact, double *lost,
                        double *all)
{
    const uint32_t n = param->type.n_cols;
    const float *value = param->value + (size_t)row * n;
    memcpy(exact, whit_param_latent(params, param) + (size_t)row * n, n * sizeof *exact);
    if (whit_is_corrected(&param->corrected)) whit_corrections_add_row(&param->corrected, row, exact);
    for (uint32_t k = 0; k < n; k++) {
        double difference = (double)value[k] - (double)exact[k];
        *lost += difference * difference;
        *all += (double)exact[k] * (double)exact[k];
    }
}

/* Refuses matrices whose levels training cannot represent: a t2 file may use a level that training does not support. */
static whit_status check_scales(whit_params *params, const char *path, const whit_watcher *watcher, whit_error *error)
{
    if (!whit_params_fit(params, NULL, watcher))
        return whit_fail(error, WHIT_ERROR_CANCELLED, "%s: fitting its scales was cancelled", path);
    whit_params_round(params, NULL);
    for (uint32_t i = 0; i < params->n; i++) {
        const whit_param *param = &params->items[i];
        double lost = 0, all = 0;
        if (!param->frozen || !param->coded) continue;
        float *row = whit_zalloc_array(params->allocator, param->type.n_cols, sizeof *row);
        if (!row) return whit_fail_memory(error, "a row of a matrix", param->type.n_cols * sizeof *row);
        for (uint32_t r = 0; r < param->type.n_rows; r++) compare_row(params, param, r, row, &lost, &all);
        whit_free(params->allocator, row, param->type.n_cols * sizeof *row);
        if (lost > 1e-6 * all)
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: matrix '%s' has a type whose scales cannot be tuned",
                             path, param->name);
    }
    return WHIT_OK;
}

whit_status whit_tuning_open(whit_trainee *trainee, const whit_model *model, const whit_tuning *tuning,
                             const whit_watcher *watcher, const whit_allocator *allocator, whit_error *error)
{
    WHIT_TRY(check_tuning(tuning, &model->weights, error));
    *trainee = (whit_trainee){.model = model, .config = model->config, .allocator = allocator};
    whit_params_begin(&trainee->params, allocator);
    whit_graph_begin(&trainee->graph, allocator, whit_params_resolver(&trainee->params), error);
    whit_status status = WHIT_OK;
    for (uint32_t i = 0; status == WHIT_OK && i < model->weights.n_tensors; i++)
        status = add_tensor(trainee, tuning, i, error);
    if (status == WHIT_OK) status = whit_params_allocate(&trainee->params, true, error);
    if (status == WHIT_OK) status = whit_params_load(&trainee->params, model->file, watcher, error);
    if (status == WHIT_OK) fill_factors(&trainee->params, tuning->seed);
    if (status == WHIT_OK && tuning->scales) status = check_scales(&trainee->params, model->path, watcher, error);
    if (status == WHIT_OK) status = whit_family_build(&trainee->config, &trainee->graph);
    if (status != WHIT_OK) whit_trainee_close(trainee);
    return status;
}

/* ---- writing ------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const whit_adapter_floats *)a)->name, ((const whit_adapter_floats *)b)->name);
}

/* Builds the image of an adapter file for the model with this identity. It contains the codes that training used. */
static whit_status build_adapter(const whit_trainee *trainee, const uint8_t *identity, const char *command,
                                 whit_buf *image, whit_error *error)
{
    const whit_params *params = &trainee->params;
    whit_adapter_floats *pairs = whit_zalloc_array(trainee->allocator, params->n, sizeof *pairs);
    if (!pairs) return whit_fail_memory(error, "the adapter", params->n * sizeof *pairs);
    uint32_t n = 0;
    for (uint32_t i = 0; i < params->n; i++) {
        const whit_param *matrix = &params->items[i];
        if (matrix->low_a < 0) continue;
        const whit_param *a = &params->items[matrix->low_a], *b = &params->items[matrix->low_b];
        pairs[n++] = (whit_adapter_floats){.name = matrix->name,
                                           .n_rows = matrix->type.n_rows,
                                           .n_cols = matrix->type.n_cols,
                                           .rank = a->type.n_rows,
                                           .a = a->value,
                                           .b = b->value};
    }
    qsort(pairs, n, sizeof *pairs, by_name);
    whit_table_builder meta = {.allocator = trainee->allocator};
    whit_table_set_string(&meta, "general.name", WHIT_TUNED_NAME);
    whit_table_set_string(&meta, "whit.version", whit_version());
    if (command) whit_table_set_string(&meta, "whit.command", command);
    whit_status status = whit_adapter_build(identity, &meta, pairs, n, image, error);
    whit_table_builder_free(&meta);
    whit_free(trainee->allocator, pairs, params->n * sizeof *pairs);
    return status;
}

static whit_status append_adapter(const whit_trainee *trainee, const char *command, const char *path, whit_error *error)
{
    whit_ndf *file;
    whit_buf image = {.allocator = trainee->allocator};
    WHIT_TRY(whit_ndf_open(path, trainee->allocator, &file, error));
    whit_status status = build_adapter(trainee, whit_ndf_identity(file), command, &image, error);
    whit_ndf_close(file);
    if (status == WHIT_OK)
        status = whit_ndf_append(path, WHIT_NDF_ADAPTER, WHIT_TUNED_NAME, image.data, image.size_bytes,
                                 trainee->allocator, error);
    whit_buf_free(&image);
    return status;
}

/* Writes a model and its adapter, or neither: if the disk becomes full after the model, the old file remains. */
static whit_status write_both(const whit_trainee *trainee, const char *command, const char *path, whit_error *error)
{
    char resolved[PATH_MAX], beside[PATH_MAX];
    WHIT_TRY(whit_writer_beside(path, resolved, beside, error));
    whit_status status = whit_trainee_write(trainee, command, beside, error);
    if (status == WHIT_OK) status = append_adapter(trainee, command, beside, error);
    if (status == WHIT_OK) status = whit_writer_put_in_place(beside, resolved, error);
    if (status != WHIT_OK) unlink(beside);
    return status;
}

whit_status whit_tuning_write(const whit_trainee *trainee, const whit_tuning *tuning, const char *command,
                              const char *path, whit_error *error)
{
    if (tuning->norms || tuning->scales)
        return (tuning->rank ? write_both : whit_trainee_write)(trainee, command, path, error);
    whit_buf image = {.allocator = trainee->allocator};
    whit_status status = build_adapter(trainee, whit_model_identity(trainee->model), command, &image, error);
    if (status == WHIT_OK)
        status = whit_ndf_write_loose(path, WHIT_NDF_ADAPTER, WHIT_TUNED_NAME, image.data, image.size_bytes,
                                      trainee->allocator, error);
    whit_buf_free(&image);
    return status;
}
