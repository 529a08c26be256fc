/* SPDX-License-Identifier: MIT */
#include "train/new_model.h"

#include "base/rng.h"
#include "kernels/math.h"
#include "model/families.h"
#include "train/trainee.h"

#include <math.h>
#include <stdio.h>

/* ---- tensors -------------------------------------------------------------------------------- */

/* Adds a tensor that the family's program requests. Returns its index; -1 on an error. */
static int32_t add_tensor(void *context, const char *name, uint32_t n_rows, uint32_t n_cols, whit_layout layout,
                          whit_error *error)
{
    whit_params *params = context;
    whit_tensor_type type = {.codec = WHIT_CODEC_F32, .layout = layout, .n_rows = n_rows, .n_cols = n_cols};
    if (whit_params_add(params, name, &type, false, error) != WHIT_OK) return -1;
    return (int32_t)params->n - 1;
}

/* ---- numbers -------------------------------------------------------------------------------- */

/* Draws a number with mean 0 and variance 1: the sum of twelve uniform numbers minus 6 (Irwin, Hall). This needs no
 * function that machines might round differently. */
static float normal(whit_rng *rng)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += whit_rng_uniform(rng);
    return (float)sum;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* The kinds of initial values, and the endings of the tensors' names that choose them. */
enum start { START_RESIDUAL, START_ONE, START_ZERO, START_TAPS, START_DECAY, START_STEP };
static const struct {
    const char *end;
    enum start start;
} starts[] = {
    {".o", START_RESIDUAL},
    {".down", START_RESIDUAL},
    {".delta_o", START_RESIDUAL},
    {".conv_o", START_RESIDUAL},
    {".expert_down", START_RESIDUAL},
    {".shared_down", START_RESIDUAL},
    {"norm", START_ONE},
    {"_scales", START_ONE},
    {"_bias", START_ZERO},
    {".router_choice", START_ZERO},
    {".conv", START_TAPS},
    {".delta_a", START_DECAY},
    {".delta_dt", START_STEP},
};

/* Fills a tensor with its initial values. If no row of `starts` applies, a matrix gets normal numbers and a vector
 * zeros. */
static void fill_tensor(const whit_param *param, float *weight, const whit_config *c, whit_rng *rng)
{
    const bool matrix = param->type.layout == WHIT_LAYOUT_TILE16;
    double deviation = matrix ? sqrt(2.0 / (5.0 * param->type.n_cols)) : 0, constant = 0;
    size_t row = 0;
    while (row < sizeof starts / sizeof *starts && !ends_with(param->name, starts[row].end)) row++;
    const int start = row < sizeof starts / sizeof *starts ? (int)starts[row].start : -1;
    if (start == START_RESIDUAL) deviation /= sqrt(2.0 * c->n_layers);
    if (start == START_ONE) constant = 1;
    if (start == START_ZERO) deviation = 0;
    if (start == START_TAPS) deviation = sqrt(1.0 / c->conv_taps);
    for (size_t k = 0; k < param->n; k++) {
        weight[k] = deviation > 0 ? (float)deviation * normal(rng) : (float)constant;
        if (start == START_DECAY) weight[k] = (float)-(1 + 15 * whit_rng_uniform(rng));
        if (start == START_STEP) /* softplus turns these values into steps from 0.001 to 0.1 with equal ratios */
            weight[k] =
                (float)whit_log_f64(whit_exp_f64(0.001 * whit_pow_f64(100, ((double)k + 0.5) / (double)param->n)) - 1);
    }
}

static void fill(whit_params *params, const whit_config *c, uint64_t seed)
{
    whit_rng rng = {seed};
    for (uint32_t i = 0; i < params->n; i++)
        fill_tensor(&params->items[i], whit_param_latent(params, &params->items[i]), c, &rng);
}

/* ---- the model ------------------------------------------------------------------------------ */

static whit_status write_model(const whit_new_model *new_model, const whit_trainee *trainee, whit_ndf_writer *writer,
                               whit_error *error)
{
    whit_config_save(new_model->config, whit_ndf_writer_config(writer));
    if (new_model->name) whit_table_set_string(whit_ndf_writer_meta(writer), "general.name", new_model->name);
    if (new_model->chat_template)
        whit_table_set_string(whit_ndf_writer_templates(writer), "default", new_model->chat_template);
    if (new_model->tokenizer) whit_ndf_writer_set_tokenizer(writer, new_model->tokenizer, new_model->tokenizer_bytes);
    WHIT_TRY(whit_trainee_add_tensors(trainee, writer, error));
    return whit_ndf_writer_commit(writer, NULL, error);
}

void whit_new_model_like(whit_new_model *new_model, const whit_model *model)
{
    new_model->tokenizer = whit_ndf_tokenizer(model->file, &new_model->tokenizer_bytes);
    new_model->chat_template = whit_table_get_string(whit_ndf_templates(model->file), "default");
}

whit_status whit_new_model_open(const whit_new_model *new_model, const whit_allocator *allocator, whit_model **model,
                                whit_error *error)
{
    *model = NULL;
    WHIT_TRY(whit_config_check(new_model->config, "the new model", error));
    whit_trainee trainee = {.config = *new_model->config, .allocator = allocator};
    whit_ndf_writer *writer = NULL;
    whit_params_begin(&trainee.params, allocator);
    whit_resolver resolver = whit_params_resolver(&trainee.params);
    resolver.add = add_tensor;
    whit_graph_begin(&trainee.graph, allocator, resolver, error);
    /* The embedding is added first, because its width is the width of the residual stream. */
    whit_status status = add_tensor(&trainee.params, "embed", trainee.config.n_vocab, trainee.config.n_embd,
                                    WHIT_LAYOUT_TILE16, error) < 0
        ? WHIT_ERROR_LIMIT
        : WHIT_OK;
    if (status == WHIT_OK) status = whit_family_build(&trainee.config, &trainee.graph);
    if (status == WHIT_OK) status = whit_params_allocate(&trainee.params, false, error);
    if (status == WHIT_OK) {
        fill(&trainee.params, &trainee.config, new_model->seed);
        status = whit_ndf_writer_open(NULL, NULL, allocator, &writer, error);
    }
    if (status == WHIT_OK) status = write_model(new_model, &trainee, writer, error);
    whit_trainee_close(&trainee);
    if (status == WHIT_OK) return whit_model_open_written(writer, "the new model", allocator, model, error);
    whit_ndf_writer_close(writer);
    return status;
}
