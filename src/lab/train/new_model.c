/* SPDX-License-Identifier: MIT */
#include "train/new_model.h"

#include "base/rng.h"
#include "model/families.h"
#include "train/trainee.h"

#include <math.h>
#include <stdio.h>

/* ---- tensors -------------------------------------------------------------------------------- */

struct maker {
    whit_params *params;
    whit_error *error;
    whit_status status;
};

static void add(struct maker *maker, int layer, const char *name, uint32_t n_rows, uint32_t n_cols, whit_layout layout)
{
    char full[WHIT_VALUE_NAME_BYTES];
    whit_tensor_type type = {.codec = WHIT_CODEC_F32, .layout = layout, .n_rows = n_rows, .n_cols = n_cols};
    if (layer >= 0)
        snprintf(full, sizeof full, "layers.%d.%s", layer, name);
    else
        snprintf(full, sizeof full, "%s", name);
    if (maker->status == WHIT_OK) maker->status = whit_params_add(maker->params, full, &type, false, maker->error);
}

static void add_matrix(struct maker *maker, int layer, const char *name, uint32_t n_rows, uint32_t n_cols)
{
    add(maker, layer, name, n_rows, n_cols, WHIT_LAYOUT_TILE16);
}

static void add_vector(struct maker *maker, int layer, const char *name, uint32_t n, bool wanted)
{
    if (wanted) add(maker, layer, name, 1, n, WHIT_LAYOUT_PLAIN);
}

/* The tensors that families.c asks for. */
static void add_layer(struct maker *maker, const whit_config *c, int layer)
{
    uint32_t q_width = c->n_heads * c->head_dim, kv_width = c->n_kv_heads * c->head_dim;
    add_vector(maker, layer, "attn_norm", c->n_embd, true);
    add_matrix(maker, layer, "q", q_width, c->n_embd);
    add_matrix(maker, layer, "k", kv_width, c->n_embd);
    add_matrix(maker, layer, "v", kv_width, c->n_embd);
    add_vector(maker, layer, "q_bias", q_width, c->attn_bias);
    add_vector(maker, layer, "k_bias", kv_width, c->attn_bias);
    add_vector(maker, layer, "v_bias", kv_width, c->attn_bias);
    add_vector(maker, layer, "q_norm", c->head_dim, c->qk_norm);
    add_vector(maker, layer, "k_norm", c->head_dim, c->qk_norm);
    add_vector(maker, layer, "attn_sub_norm", q_width, c->sub_norm);
    add_matrix(maker, layer, "o", c->n_embd, q_width);
    add_vector(maker, layer, "o_bias", c->n_embd, c->out_bias);
    add_vector(maker, layer, "ffn_norm", c->n_embd, true);
    add_matrix(maker, layer, "gate", c->n_ff, c->n_embd);
    add_matrix(maker, layer, "up", c->n_ff, c->n_embd);
    add_vector(maker, layer, "gate_bias", c->n_ff, c->ffn_bias);
    add_vector(maker, layer, "up_bias", c->n_ff, c->ffn_bias);
    add_vector(maker, layer, "ffn_sub_norm", c->n_ff, c->sub_norm);
    add_matrix(maker, layer, "down", c->n_embd, c->n_ff);
    add_vector(maker, layer, "down_bias", c->n_embd, c->ffn_bias);
}

static whit_status add_tensors(whit_params *params, const whit_config *c, whit_error *error)
{
    struct maker maker = {params, error, WHIT_OK};
    add_matrix(&maker, -1, "embed", c->n_vocab, c->n_embd);
    for (uint32_t layer = 0; layer < c->n_layers; layer++) add_layer(&maker, c, (int)layer);
    add_vector(&maker, -1, "final_norm", c->n_embd, true);
    if (!c->tied_head) add_matrix(&maker, -1, "head", c->n_vocab, c->n_embd);
    return maker.status;
}

/* ---- numbers -------------------------------------------------------------------------------- */

/* Variance 1, mean 0: the sum of twelve uniform numbers (Irwin, Hall), which needs no function that
 * machines might round differently. */
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

static void fill(whit_params *params, const whit_config *c, uint64_t seed)
{
    whit_rng rng = {seed};
    for (uint32_t i = 0; i < params->n; i++) {
        const whit_param *param = &params->items[i];
        float *weight = whit_param_latent(params, param);
        bool matrix = param->type.layout == WHIT_LAYOUT_TILE16;
        double deviation = matrix ? sqrt(2.0 / (5.0 * param->type.n_cols)) : 0;
        if (ends_with(param->name, ".o") || ends_with(param->name, ".down")) deviation /= sqrt(2.0 * c->n_layers);
        float constant = ends_with(param->name, "norm") ? 1 : 0;
        for (size_t k = 0; k < param->n; k++) weight[k] = matrix ? (float)deviation * normal(&rng) : constant;
    }
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
    whit_graph_begin(&trainee.graph, allocator, whit_params_resolver(&trainee.params), error);
    whit_status status = add_tensors(&trainee.params, &trainee.config, error);
    if (status == WHIT_OK) status = whit_params_allocate(&trainee.params, false, error);
    if (status == WHIT_OK) status = whit_family_build(&trainee.config, &trainee.graph);
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
