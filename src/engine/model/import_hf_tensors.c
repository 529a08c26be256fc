/* SPDX-License-Identifier: MIT
 * Reads the weights of a Hugging Face folder: gives them canonical names and types that store them exactly. The RoPE
 * pairs of queries and keys are half a head apart, as in our format. Unknown tensors are refused by name, because they
 * would change the result. */
#include "model/import_hf.h"

#include "kernels/kernels.h"
#include "kernels/math.h"

#include <math.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Names of tensors that all families share. */
static const whit_import_name global_names[] = {
    {"embed_tokens.weight", "embed"},
    {"norm.weight", "final_norm"},
    {NULL},
};
static const whit_import_name layer_names[] = {
    {"input_layernorm.weight", "attn_norm"},
    {"self_attn.q_proj.weight", "q", .is_projection = true},
    {"self_attn.k_proj.weight", "k", .is_projection = true},
    {"self_attn.v_proj.weight", "v", .is_projection = true},
    {"self_attn.o_proj.weight", "o", .is_projection = true},
    {"self_attn.q_proj.bias", "q_bias"},
    {"self_attn.k_proj.bias", "k_bias"},
    {"self_attn.v_proj.bias", "v_bias"},
    {"self_attn.o_proj.bias", "o_bias"},
    {"self_attn.q_norm.weight", "q_norm"},
    {"self_attn.k_norm.weight", "k_norm"},
    {"self_attn.attn_sub_norm.weight", "attn_sub_norm"},
    {"self_attn.inner_attn_ln.weight", "attn_sub_norm"}, /* name in 1bitLLM's checkpoints */
    {"post_attention_layernorm.weight", "ffn_norm"},
    {"mlp.gate_proj.weight", "gate", .is_projection = true},
    {"mlp.up_proj.weight", "up", .is_projection = true},
    {"mlp.down_proj.weight", "down", .is_projection = true},
    {"mlp.gate_proj.bias", "gate_bias"},
    {"mlp.up_proj.bias", "up_bias"},
    {"mlp.down_proj.bias", "down_bias"},
    {"mlp.ffn_sub_norm.weight", "ffn_sub_norm"},
    {"mlp.ffn_layernorm.weight", "ffn_sub_norm"},
    {"self_attn.q_proj.norm.weight", "q_in_norm", .keeps_value = true},
    {"self_attn.k_proj.norm.weight", "k_in_norm", .keeps_value = true},
    {"self_attn.v_proj.norm.weight", "v_in_norm", .keeps_value = true},
    {"self_attn.o_proj.norm.weight", "o_in_norm", .keeps_value = true},
    {"mlp.gate_proj.norm.weight", "gate_in_norm", .keeps_value = true},
    {"mlp.up_proj.norm.weight", "up_in_norm", .keeps_value = true},
    {"mlp.down_proj.norm.weight", "down_in_norm", .keeps_value = true},
    {NULL},
};

enum part { PART_UNKNOWN, PART_PLAIN, PART_PROJECTION, PART_HEAD, PART_IGNORED };

/* Holds what a tensor of the file is in our format. */
struct found {
    const whit_import_name *row; /* first table row that names the tensor; NULL: no table names it, `ours` is its
                                  * name */
    uint32_t layer;              /* layer of the tensor; UINT32_MAX outside the layers */
    uint32_t expert;             /* number of the expert, if the row is WHIT_IMPORT_ONE_EXPERT */
    char ours[WHIT_VALUE_NAME_BYTES];
};

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool begins_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

/* Names a tensor that no table knows and only the family program may use: the name is kept without ".weight". */
static enum part other_part(const char *name, char ours[WHIT_VALUE_NAME_BYTES])
{
    size_t n = strlen(name) - (ends_with(name, ".weight") ? strlen(".weight") : 0);
    return n && snprintf(ours, WHIT_VALUE_NAME_BYTES, "%.*s", (int)n, name) < WHIT_VALUE_NAME_BYTES ? PART_PLAIN
                                                                                                    : PART_UNKNOWN;
}

/* Returns a name without its prefix: "model." (absent in checkpoints without a head), the prefix of an encoder, or the
 * prefix of the language model in a model with several kinds of input. */
static const char *bare_name(const whit_hf_class *class, const char *name)
{
    static const char *const nested[] = {"model.language_model.", "language_model.model.", "language_model."};
    for (size_t i = 0; class->is_nested && i < COUNT(nested); i++)
        if (begins_with(name, nested[i])) return name + strlen(nested[i]);
    const char *prefix = class->prefix ? class->prefix : "model.";
    return begins_with(name, prefix) ? name + strlen(prefix) : name;
}

/* Returns whether the prefix of a tensor's name shows that it belongs to another kind of input than text, or to a block
 * that is not read. */
static bool is_of_other_input(const whit_hf_class *class, const char *name)
{
    static const char *const begins[] = {
        "visual.", "vision_tower.", "multi_modal_projector.", "mtp.", "audio_tower.", "embed_vision.", "embed_audio."};
    if (!class->is_nested) return false;
    if (begins_with(name, "model.")) name += strlen("model.");
    for (size_t i = 0; i < COUNT(begins); i++)
        if (begins_with(name, begins[i])) return true;
    return false;
}

static enum part name_part(const whit_import_name *row)
{
    if (!row->ours) return PART_IGNORED;
    return row->is_projection ? PART_PROJECTION : PART_PLAIN;
}

/* Finds what a tensor of the block that predicts one more token is. The block becomes the layer after the last one. In
 * the class's table, names of the block's tensors outside its layer include the block's prefix. */
static enum part find_draft_part(const whit_hf_class *class, const char *name, const whit_config *config,
                                 struct found *found)
{
    const char *rest = name + strlen(class->draft_prefix);
    char pattern[96];
    uint32_t block = 0;
    if (!config->n_draft_layers) return PART_IGNORED;
    const char *in_layer = whit_import_layer(rest, "layers", WHIT_MAX_LAYERS, &block);
    if (block) return PART_IGNORED; /* later blocks are not used */
    found->layer = config->n_layers;
    if (in_layer) name = in_layer;
    if (whit_import_expert(name, pattern, &found->expert)) name = pattern;
    found->row = whit_import_find_name(class->names, layer_names, name);
    return found->row ? name_part(found->row) : PART_UNKNOWN;
}

/* Finds what a tensor is by its zero-terminated name. */
static enum part find_part(const whit_hf_class *class, const char *file_name, const whit_config *config,
                           struct found *found)
{
    const uint32_t n_layers = config->n_layers;
    const char *name = bare_name(class, file_name);
    *found = (struct found){.layer = UINT32_MAX};
    if (strcmp(file_name, "lm_head.weight") == 0 || strcmp(name, "lm_head.weight") == 0) {
        snprintf(found->ours, sizeof found->ours, "head");
        return PART_HEAD;
    }
    /* RoPE tables are ignored: some checkpoints store them, but they follow from the configuration. */
    static const char *const tables[] = {"inv_freq", "cos_cached", "sin_cached"};
    for (size_t i = 0; i < COUNT(tables); i++)
        if (ends_with(name, tables[i])) return PART_IGNORED;
    if (class->draft_prefix && begins_with(file_name, class->draft_prefix))
        return find_draft_part(class, file_name, config, found);
    if (is_of_other_input(class, file_name)) return PART_IGNORED;
    const char *rest = whit_import_layer(name, class->layers ? class->layers : "layers", n_layers, &found->layer);
    if (!rest) {
        found->row = whit_import_find_name(class->names, global_names, name);
        if (found->row && found->row->ours) snprintf(found->ours, sizeof found->ours, "%s", found->row->ours);
        return found->row ? name_part(found->row) : PART_UNKNOWN;
    }
    /* Scales of packed weights are ignored here, because they are read with their weights. */
    if (ends_with(name, ".weight_scale")) {
        char weight[96];
        snprintf(weight, sizeof weight, "%.*s", (int)(strlen(rest) - strlen("_scale")), rest);
        const whit_import_name *row = whit_import_find_name(class->names, layer_names, weight);
        return row && row->is_projection ? PART_IGNORED : PART_UNKNOWN;
    }
    char pattern[96];
    if (whit_import_expert(rest, pattern, &found->expert)) rest = pattern;
    found->row = whit_import_find_name(class->names, layer_names, rest);
    return found->row ? name_part(found->row) : PART_UNKNOWN;
}

/* Writes the canonical name of the tensor that a table row names. */
static void canonical_name(const whit_import_name *row, uint32_t layer, char ours[WHIT_VALUE_NAME_BYTES])
{
    if (layer == UINT32_MAX)
        snprintf(ours, WHIT_VALUE_NAME_BYTES, "%s", row->ours);
    else
        snprintf(ours, WHIT_VALUE_NAME_BYTES, "layers.%u.%s", layer, row->ours);
}

/* ---- reading rows --------------------------------------------------------------------------- */

static whit_status read_vector(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error)
{
    const struct whit_hf_import *import = tensor->context;
    float *values = rows->elems;
    const uint32_t n = tensor->type.n_cols;
    (void)row;
    if (import->form == WHIT_IMPORT_TAPS) {
        whit_import_read_taps(tensor, &import->view, values);
        return WHIT_OK;
    }
    if (import->values)
        memcpy(values, import->values, import->n_values * sizeof *import->values);
    else
        whit_ggml_row_f32(&import->view, 0, values);
    if (tensor->order_dim) {
        float *copy = whit_alloc(NULL, n * sizeof *copy);
        if (!copy) return whit_fail_memory(error, tensor->name, n * sizeof *copy);
        memcpy(copy, values, n * sizeof *copy);
        for (uint32_t i = 0; i < n; i++) values[i] = copy[whit_source_row(tensor, i)];
        whit_free(NULL, copy, n * sizeof *copy);
    }
    for (uint32_t i = 0; tensor->adds_one && i < n; i++) values[i] += 1;
    for (uint32_t i = 0; import->form == WHIT_IMPORT_NEG_EXP && i < n; i++)
        values[i] = (float)-whit_exp_f64((double)values[i]);
    return WHIT_OK;
}

static whit_status read_floats(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error)
{
    const struct whit_hf_import *import = tensor->context;
    (void)error;
    const size_t elem_bytes = whit_codec_find(tensor->type.codec)->elem_bytes,
                 row_bytes = (size_t)import->view.n_cols * elem_bytes;
    const uint8_t *from = import->view.data + whit_source_row(tensor, row) * row_bytes;
    for (uint32_t i = 0; tensor->column_step && i < tensor->type.n_cols; i++)
        memcpy((uint8_t *)rows->elems + i * elem_bytes,
               from + ((size_t)i * tensor->column_step + tensor->column_begin) * elem_bytes, elem_bytes);
    if (tensor->column_step) return WHIT_OK;
    if (!tensor->orders_columns) {
        memcpy(rows->elems, from, row_bytes);
        return WHIT_OK;
    }
    for (uint32_t i = 0; i < tensor->type.n_cols; i += tensor->order_dim)
        memcpy((uint8_t *)rows->elems + i * elem_bytes, from + whit_source_head_order(tensor, i) * elem_bytes,
               tensor->order_dim * elem_bytes);
    return WHIT_OK;
}

static whit_status read_packed(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error)
{
    const struct whit_hf_import *import = tensor->context;
    if (whit_packed_ternary_row(&import->packed, whit_source_row(tensor, row), rows->elems)) return WHIT_OK;
    return whit_fail(
        error, WHIT_ERROR_FORMAT,
        "%s: tensor '%.*s' contains the code 3, which packed ternary weights cannot have: the file is damaged",
        import->importer->hf->folder, (int)import->file->name_bytes, import->file->name);
}

static whit_status read_codes(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error)
{
    const struct whit_hf_import *import = tensor->context;
    (void)error;
    memcpy(rows->elems, import->codes + (size_t)whit_source_row(tensor, row) * tensor->type.n_cols,
           tensor->type.n_cols);
    return WHIT_OK;
}

static whit_status read_words(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error)
{
    const struct whit_hf_import *import = tensor->context;
    (void)error;
    whit_hf_packed_row(&import->matrix, whit_source_row(tensor, row), rows);
    return WHIT_OK;
}

static whit_status read_rounded(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows,
                                whit_error *error)
{
    const struct whit_hf_import *import = tensor->context;
    (void)error;
    whit_round_ternary_row(&import->view, whit_source_row(tensor, row), import->inverse, rows->elems);
    return WHIT_OK;
}

/* Reads a row of two-bit codes, and its scale, which is element `row` of import->view. */
static whit_status read_ternary_rows(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows,
                                     whit_error *error)
{
    const struct whit_hf_import *import = tensor->context;
    const uint32_t from = whit_source_row(tensor, row);
    const uint8_t *bytes = (const uint8_t *)import->codes + (uint64_t)from * (tensor->type.n_cols / 4);
    const size_t elem_bytes = import->view.kind == WHIT_GGML_F32 ? 4 : 2;
    whit_ggml_view scale = import->view;
    int8_t *codes = rows->elems;
    (void)error;
    for (uint32_t i = 0; i < tensor->type.n_cols; i++) codes[i] = (int8_t)((bytes[i / 4] >> 2 * (i % 4) & 3) - 1);
    scale.data += from * elem_bytes;
    scale.n_cols = 1;
    whit_ggml_row_f32(&scale, 0, rows->fields);
    return WHIT_OK;
}

static void drop_file(const struct whit_hf_importer *importer, const whit_safetensor *file)
{
    whit_map_drop(&importer->hf->weights->files[file->file].map, file->data, file->size_bytes);
}

static void drop_pages(const whit_source_tensor *tensor)
{
    const struct whit_hf_import *import = tensor->context;
    drop_file(import->importer, import->file);
}

/* ---- projections ---------------------------------------------------------------------------- */

static whit_tensor_type ternary_type(uint64_t n_rows, uint64_t n_cols, double scale)
{
    return (whit_tensor_type){.codec = WHIT_CODEC_T5,
                              .layout = WHIT_LAYOUT_TILE16,
                              .scale_kind = WHIT_SCALE_TENSOR,
                              .act = WHIT_TENSOR_ACT_TOKEN,
                              .n_rows = (uint32_t)n_rows,
                              .n_cols = (uint32_t)n_cols,
                              .scale = (float)scale};
}

struct reading {
    whit_source *source;
    struct whit_hf_importer *importer;
    const whit_safetensor *file;
    const char *file_name; /* zero-terminated name of the tensor; codes of packed matrices have the name "M.weight" */
    whit_error *error;
};

static whit_status refuse_tensor(const struct reading *r, const char *why)
{
    return whit_fail(r->error, WHIT_ERROR_UNSUPPORTED, "%s: tensor '%s': %s", r->source->path, r->file_name, why);
}

/* Sets *factor to the number by which products are multiplied: weight_scale, or its inverse if weight_scale divides
 * (BitLinear); 1 if it is absent and not required. */
static whit_status read_scale(const struct reading *r, bool required, double *factor)
{
    char name[160];
    snprintf(name, sizeof name, "%s_scale", r->file_name);
    const whit_safetensor *scale = whit_safetensors_find(r->importer->hf->weights, name);
    double value;
    *factor = 1;
    if (!scale && !required) return WHIT_OK;
    if (!scale) return refuse_tensor(r, "its weight_scale is missing: the folder is incomplete");
    bool one = true;
    for (uint32_t i = 0; i < scale->n_dims; i++) one &= scale->dims[i] == 1;
    if (!one) return refuse_tensor(r, "has several scales for one matrix (weight_scale), which is not supported");
    if (!whit_safetensor_f64(scale, 0, &value) || !isfinite(value) || value == 0)
        return whit_fail(r->error, WHIT_ERROR_FORMAT, "%s: tensor '%s' is not a scale", r->source->path, name);
    *factor = r->importer->quantisation.multiplies ? value : 1 / value;
    return WHIT_OK;
}

/* Returns whether modules_to_not_convert names the tensor's module: by its path, by the end of its path, or by a module
 * that contains it. */
static bool is_skipped(const struct reading *r)
{
    const whit_json *json = &r->importer->hf->config.json;
    uint32_t list = r->importer->quantisation.skipped;
    size_t n = strlen(r->file_name) - strlen(".weight");
    if (whit_json_type_of(json, list) != WHIT_JSON_ARRAY) return false;
    for (uint32_t at = whit_json_first(json, list); at != WHIT_JSON_NONE; at = whit_json_next(json, list, at)) {
        size_t m;
        const char *module = whit_json_string(json, at, &m);
        if (!module || m == 0 || m > n) continue;
        for (size_t begin = 0; begin + m <= n; begin++) {
            bool from = begin == 0 || r->file_name[begin - 1] == '.';
            bool to = begin + m == n || r->file_name[begin + m] == '.';
            if (from && to && memcmp(r->file_name + begin, module, m) == 0) return true;
        }
    }
    return false;
}

static whit_status packed_projection(const struct reading *r, struct whit_hf_import *import, whit_source_tensor *tensor)
{
    double factor;
    if (!r->importer->quantisation.bitnet)
        return refuse_tensor(
            r,
            "is U8, but config.json has no quantization_config that says how to read it: get the original config.json");
    if (r->file->dims[0] > UINT32_MAX / 4 || r->file->dims[1] > WHIT_MAX_COLS)
        return refuse_tensor(r, "has more rows or columns than the limits, 2^32 and 65536");
    import->packed = (whit_packed_ternary){r->file->data, 4 * r->file->dims[0], r->file->dims[1]};
    WHIT_TRY(read_scale(r, true, &factor));
    tensor->type = ternary_type(import->packed.n_rows, import->packed.n_cols, factor);
    tensor->read_row = read_packed;
    return WHIT_OK;
}

static whit_status i8_projection(const struct reading *r, struct whit_hf_import *import, whit_source_tensor *tensor)
{
    double factor;
    import->codes = (const int8_t *)r->file->data;
    if (!r->importer->quantisation.bitnet)
        return refuse_tensor(
            r,
            "is I8, but config.json has no quantization_config that says how to read it: get the original config.json");
    if (r->file->dims[0] > UINT32_MAX || r->file->dims[1] > WHIT_MAX_COLS)
        return refuse_tensor(r, "has more rows or columns than the limits, 2^32 and 65536");
    for (uint64_t i = 0; i < r->file->size_bytes; i++)
        if (import->codes[i] < -1 || import->codes[i] > 1)
            return refuse_tensor(r, "contains I8 weights other than -1, 0 and 1: the file is damaged");
    WHIT_TRY(read_scale(r, true, &factor));
    tensor->type = ternary_type(r->file->dims[0], r->file->dims[1], factor);
    tensor->read_row = read_codes;
    return WHIT_OK;
}

static whit_status float_matrix(const struct reading *r, struct whit_hf_import *import, whit_source_tensor *tensor)
{
    static const struct {
        whit_ggml_kind kind;
        whit_codec codec;
    } codecs[] = {{WHIT_GGML_F32, WHIT_CODEC_F32}, {WHIT_GGML_F16, WHIT_CODEC_F16}, {WHIT_GGML_BF16, WHIT_CODEC_BF16}};
    if (!whit_safetensor_view(r->file, &import->view))
        return refuse_tensor(r, "its dtype is not supported: F32, F16 and BF16 are");
    if (import->view.n_rows > UINT32_MAX || import->view.n_cols > WHIT_MAX_COLS)
        return refuse_tensor(r, "has more rows or columns than the limits, 2^32 and 65536");
    for (size_t i = 0; i < COUNT(codecs); i++)
        if (codecs[i].kind == import->view.kind) tensor->type.codec = (uint8_t)codecs[i].codec;
    tensor->type.layout = WHIT_LAYOUT_TILE16;
    tensor->type.n_rows = (uint32_t)import->view.n_rows;
    tensor->type.n_cols = (uint32_t)import->view.n_cols;
    tensor->read_row = read_floats;
    return WHIT_OK;
}

/* Prepares latent weights w: codes are clamp(round(w / m), -1, 1), and products are multiplied by m, the mean
 * magnitude, at least 1e-5 (transformers, integrations/bitnet.py, WeightQuant; 1bitLLM's weight_quant). */
static whit_status latent_projection(const struct reading *r, struct whit_hf_import *import, whit_source_tensor *tensor)
{
    const whit_ggml_view *view = &import->view;
    float *row = whit_alloc(r->source->allocator, view->n_cols * sizeof *row);
    if (!row) return whit_fail_memory(r->error, tensor->name, view->n_cols * sizeof *row);
    double mean = whit_float_absmean(view, row);
    whit_free(r->source->allocator, row, view->n_cols * sizeof *row);
    if (isnan(mean)) return refuse_tensor(r, "contains weights that are NaN or infinite: the file is damaged");
    float inverse = 1.0f / fmaxf((float)mean, 1e-5f);
    import->inverse = inverse;
    tensor->type = ternary_type(view->n_rows, view->n_cols, 1.0f / inverse);
    tensor->read_row = read_rounded;
    return WHIT_OK;
}

static whit_status float_projection(const struct reading *r, struct whit_hf_import *import, whit_source_tensor *tensor)
{
    const whit_hf_quantisation *q = &r->importer->quantisation;
    float scale;
    double factor;
    WHIT_TRY(float_matrix(r, import, tensor));
    if (!q->bitnet && !q->online && !r->importer->class->bitnet) {
        char name[160];
        snprintf(name, sizeof name, "%s_scale", r->file_name);
        if (whit_safetensors_find(r->importer->hf->weights, name))
            return refuse_tensor(r,
                                 "has a weight_scale, but config.json has no quantization_config that says how to use "
                                 "it: get the original config.json");
        return WHIT_OK;
    }
    if (is_skipped(r)) return WHIT_OK;
    WHIT_TRY(read_scale(r, false, &factor));
    if (q->online && factor == 1) return latent_projection(r, import, tensor);
    if (!whit_float_is_ternary(&import->view, &scale))
        return refuse_tensor(r, "contains latent weights, but config.json does not say that they are quantised online");
    import->inverse = 1 / scale; /* infinite for a matrix of zeros; its elements are still rounded to 0 */
    tensor->type = ternary_type(tensor->type.n_rows, tensor->type.n_cols, scale * factor);
    tensor->read_row = read_rounded;
    return WHIT_OK;
}

/* Returns the number of columns that a matrix with this canonical name has in a model with configuration c. */
static uint64_t columns_of(const whit_config *c, const char *name)
{
    uint32_t layer = 0;
    const char *rest = whit_import_layer(name, "layers", c->n_layers, &layer);
    const whit_layer_kind kind = whit_config_kind(c, layer);
    if (!rest) return strcmp(name, "side_embed") == 0 ? (uint64_t)c->n_layers * c->side_width : c->n_embd;
    if (strcmp(rest, "o") == 0) return (uint64_t)kind.n_heads * kind.head_dim;
    if (strcmp(rest, "down") == 0) return kind.n_ff;
    if (strcmp(rest, "side_proj") == 0) return c->side_width;
    return c->n_embd;
}

/* Returns the number of bits per code of a packed matrix: the file has only the bytes of a row, and the configuration
 * the number of columns; 0 if they do not fit. */
static uint32_t gemma_bits(const struct reading *r, const char *name)
{
    uint64_t n_cols = columns_of(&r->source->config, name), bytes = r->file->n_dims == 2 ? r->file->dims[1] : 0;
    return n_cols && bytes <= n_cols ? (uint32_t)(8 * bytes / n_cols) : 0;
}

/* Sets *bits to the number of bits of a module's MLX codes: the module's own number, or else the default. */
static whit_status mlx_bits(const struct reading *r, const char *module, uint32_t *bits)
{
    const whit_hf_quantisation *q = &r->importer->quantisation;
    const whit_json *json = &r->importer->text.json;
    *bits = q->mlx_bits;
    uint32_t own = q->form == WHIT_HF_MLX ? whit_json_get(json, q->mlx_node, module) : WHIT_JSON_NONE;
    double value;
    if (own == WHIT_JSON_NONE || whit_json_get(json, own, "bits") == WHIT_JSON_NONE) return WHIT_OK;
    if (!whit_json_f64(json, whit_json_get(json, own, "bits"), &value) || !(value >= 2 && value <= 8))
        return refuse_tensor(r, "its bits in config.json must be a number from 2 to 8");
    *bits = (uint32_t)value;
    return WHIT_OK;
}

/* Writes the name of a tensor's module, file_name without ".weight". */
static void module_of(const struct reading *r, char module[160])
{
    snprintf(module, 160, "%.*s", (int)(strlen(r->file_name) - strlen(".weight")), r->file_name);
}

/* Prepares a matrix of packed integers or of eight-bit floats; file_name must end in ".weight". */
static whit_status packed_matrix(const struct reading *r, struct whit_hf_import *import, whit_source_tensor *tensor)
{
    const whit_hf_quantisation *q = &r->importer->quantisation;
    char module[160];
    uint32_t bits;
    module_of(r, module);
    WHIT_TRY(mlx_bits(r, module, &bits));
    if (q->form == WHIT_HF_GEMMA) bits = gemma_bits(r, tensor->name);
    WHIT_TRY(whit_hf_packed_open(r->importer->hf->weights, q->form, module, bits, &import->matrix, r->error));
    tensor->type = import->matrix.type;
    if (tensor->type.act == WHIT_TENSOR_ACT_FIXED && !q->is_fixed)
        return refuse_tensor(
            r, "has fixed scales of activations, but config.json says that activations are not quantised");
    tensor->read_row = read_words;
    if (!import->matrix.exact && !r->importer->told_rounding) {
        r->importer->told_rounding = true;
        if (!whit_buf_printf(&r->source->notes, "'%s' and others are stored as %s, which rounds their values\n",
                             r->file_name, whit_codec_find(tensor->type.codec)->name))
            return whit_fail_memory(r->error, "the notes on the file", r->source->notes.size_bytes);
    }
    return WHIT_OK;
}

/* Returns the scales of the rows of a ternary matrix, the tensor "M.row_alpha" for a matrix "M.weight" in MLX's 2-bit
 * form; NULL if absent. */
static const whit_safetensor *row_scales(const struct reading *r)
{
    char name[160];
    if (r->file->dtype != WHIT_DTYPE_U32 || !ends_with(r->file_name, ".weight")) return NULL;
    snprintf(name, sizeof name, "%.*s.row_alpha", (int)(strlen(r->file_name) - strlen(".weight")), r->file_name);
    return whit_safetensors_find(r->importer->hf->weights, name);
}

/* Prepares a ternary matrix with one scale per row: each 32-bit word has sixteen codes, from the low bits up; value =
 * scale * (code - 1). */
static whit_status ternary_rows(const struct reading *r, struct whit_hf_import *import, whit_source_tensor *tensor)
{
    enum { WORD_CODES = 16 };
    const whit_safetensor *scales = row_scales(r);
    if (r->file->n_dims != 2 || r->file->dims[1] > WHIT_MAX_COLS / WORD_CODES || r->file->dims[0] > INT32_MAX ||
        !r->file->size_bytes)
        return refuse_tensor(r, "is not a matrix of 2-bit codes: the folder is damaged");
    if (!whit_safetensor_view(scales, &import->view) || import->view.n_rows * import->view.n_cols != r->file->dims[0])
        return refuse_tensor(r, "its row_alpha does not have a number for each row: the folder is damaged");
    import->view.n_cols *= import->view.n_rows; /* the scales become one row, whatever their dimensions */
    import->view.n_rows = 1;
    import->codes = (const int8_t *)r->file->data;
    tensor->type = (whit_tensor_type){.codec = WHIT_CODEC_T2,
                                      .layout = WHIT_LAYOUT_TILE16,
                                      .scale_kind = WHIT_SCALE_ROW,
                                      .n_rows = (uint32_t)r->file->dims[0],
                                      .n_cols = (uint32_t)r->file->dims[1] * WORD_CODES};
    tensor->read_row = read_ternary_rows;
    return WHIT_OK;
}

static bool is_packed(const struct reading *r)
{
    return whit_hf_is_packed(r->importer->quantisation.form, r->file) && ends_with(r->file_name, ".weight");
}

/* Refuses weights that are not quantised but have fixed scales of activations. */
static whit_status check_floats(const struct reading *r)
{
    float scales[2] = {0};
    char module[160];
    if (!ends_with(r->file_name, ".weight")) return WHIT_OK;
    module_of(r, module);
    WHIT_TRY(whit_hf_fixed_scales(r->importer->hf->weights, r->importer->quantisation.form, module, scales, r->error));
    if (scales[0] != 0 || scales[1] != 0)
        return refuse_tensor(
            r, "has fixed scales of activations, but its weights are not quantised: the folder is damaged");
    return WHIT_OK;
}

static whit_status add_projection(const struct reading *r, struct whit_hf_import *import, whit_source_tensor *tensor)
{
    if (row_scales(r)) return ternary_rows(r, import, tensor);
    if (is_packed(r)) return packed_matrix(r, import, tensor);
    WHIT_TRY(check_floats(r));
    if (r->file->n_dims != 2 || !r->file->size_bytes) return refuse_tensor(r, "is not a matrix: the folder is damaged");
    if (r->file->dtype == WHIT_DTYPE_U8) return packed_projection(r, import, tensor);
    if (r->file->dtype == WHIT_DTYPE_I8) return i8_projection(r, import, tensor);
    return float_projection(r, import, tensor);
}

/* ---- all tensors ---------------------------------------------------------------------------- */

/* Prepares the weights of a convolution, (channels, 1, taps) or (channels, taps). */
static whit_status add_taps(const struct reading *r, struct whit_hf_import *import, whit_source_tensor *tensor)
{
    whit_safetensor file = *r->file;
    if (file.n_dims == 3 && file.dims[1] == 1) {
        file.dims[1] = file.dims[2];
        file.n_dims = 2;
    }
    if (file.n_dims != 2 || !file.size_bytes || file.dims[1] > WHIT_CONV_TAPS_MAX ||
        file.dims[0] > WHIT_MAX_COLS / WHIT_CONV_TAPS_MAX)
        return refuse_tensor(r, "is not a convolution by channel of at most 8 taps");
    if (!whit_safetensor_view(&file, &import->view))
        return refuse_tensor(r, "its dtype is not supported: F32, F16 and BF16 are");
    import->form = WHIT_IMPORT_TAPS;
    tensor->type =
        (whit_tensor_type){.codec = WHIT_CODEC_F32, .n_rows = 1, .n_cols = (uint32_t)(file.dims[0] * file.dims[1])};
    tensor->read_row = read_vector;
    return WHIT_OK;
}

static whit_status add_plain(const struct reading *r, struct whit_hf_import *import, whit_source_tensor *tensor)
{
    if (is_packed(r)) return packed_matrix(r, import, tensor);
    WHIT_TRY(check_floats(r));
    if (r->file->n_dims == 2) return float_matrix(r, import, tensor);
    if (r->file->n_dims != 1)
        return refuse_tensor(r, "has more than 2 dimensions, but only vectors and matrices are supported here");
    if (!whit_safetensor_view(r->file, &import->view))
        return refuse_tensor(r, "its dtype is not supported: F32, F16 and BF16 are");
    if (import->view.n_cols > WHIT_MAX_COLS)
        return refuse_tensor(r, "has more rows or columns than the limits, 2^32 and 65536");
    tensor->type = (whit_tensor_type){.codec = WHIT_CODEC_F32, .n_rows = 1, .n_cols = (uint32_t)import->view.n_cols};
    tensor->read_row = read_vector;
    return WHIT_OK;
}

/* Views the matrices of all experts as one matrix: (experts, rows, columns) becomes (experts * rows, columns). */
static void flatten(const whit_import_name *row, struct whit_hf_import *import, struct reading *r)
{
    if (!row || r->file->n_dims != 3 || (!whit_import_has_experts(row->rows) && row->rows != WHIT_IMPORT_ROW)) return;
    import->flat = *r->file;
    import->flat.n_dims = 2;
    /* No overflow is possible, because the product of all dimensions fits the file's size. */
    import->flat.dims[0] *= import->flat.dims[1];
    import->flat.dims[1] = import->flat.dims[2];
    r->file = &import->flat;
}

static whit_status read_tensor(whit_source *source, struct whit_hf_importer *importer, const whit_safetensor *file,
                               const char *file_name, const whit_import_name *row, whit_source_tensor *tensor,
                               whit_error *error)
{
    if (importer->n_imports == importer->capacity)
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "%s: the files have more tensors than their headers say: they are damaged", source->path);
    struct whit_hf_import *import = &importer->imports[importer->n_imports++];
    struct reading r = {source, importer, file, file_name, error};
    *import = (struct whit_hf_import){.importer = importer, .file = file};
    tensor->context = import;
    tensor->drop = drop_pages;
    flatten(row, import, &r);
    if (row && row->form == WHIT_IMPORT_TAPS) {
        WHIT_TRY(add_taps(&r, import, tensor));
    } else if (row && (row->form == WHIT_IMPORT_MXFP4 || row->form == WHIT_IMPORT_TRANSPOSED)) {
        const bool is_mxfp4 = row->form == WHIT_IMPORT_MXFP4;
        if (!is_mxfp4) WHIT_TRY(float_matrix(&r, import, tensor));
        const char *why =
            is_mxfp4 ? whit_hf_mxfp4_experts(file_name, import, tensor) : whit_hf_transpose_experts(import, tensor);
        if (why) return refuse_tensor(&r, why);
    } else {
        WHIT_TRY(row && row->is_projection ? add_projection(&r, import, tensor) : add_plain(&r, import, tensor));
        if (row) import->form = row->form;
    }
    if (row && row->order == WHIT_IMPORT_COLUMNS && tensor->type.codec > WHIT_CODEC_BF16 &&
        source->config.delta_heads != source->config.delta_key_heads)
        return refuse_tensor(&r, "is quantised, and its columns would have to be reordered: use the GGUF file");
    if (row) WHIT_TRY(whit_import_order_heads(source, tensor, row->order, error));
    drop_file(importer, file);
    return WHIT_OK;
}

static whit_status add_tensor(whit_source *source, struct whit_hf_importer *importer, const whit_safetensor *file,
                              const char *file_name, const char *name, const whit_import_name *row, whit_error *error)
{
    whit_source_tensor *tensor = whit_source_add(source, name, error);
    if (!tensor) return error ? error->status : WHIT_ERROR_FORMAT;
    return read_tensor(source, importer, file, file_name, row, tensor, error);
}

/* Adds the matrix of one expert as a part of the stacked matrix of all experts. */
static whit_status add_expert(whit_source *source, struct whit_hf_importer *importer, const whit_safetensor *file,
                              const char *file_name, const char *name, const struct found *found, whit_error *error)
{
    whit_source_tensor *part = whit_source_add_part(source, name, found->expert, source->config.n_experts, error);
    if (!part) return error ? error->status : WHIT_ERROR_FORMAT;
    return read_tensor(source, importer, file, file_name, found->row, part, error);
}

/* Adds our tensors for a tensor of the file: one tensor, or each of the matrices that are fused in it. */
static whit_status add_parts(whit_source *source, struct whit_hf_importer *importer, const whit_safetensor *file,
                             const char *file_name, const struct found *found, whit_error *error)
{
    for (const whit_import_name *row = found->row; row; row = whit_import_next_name(row)) {
        char name[WHIT_VALUE_NAME_BYTES];
        if (whit_import_is_unused(&source->config, found->layer, row->ours)) continue;
        canonical_name(row, found->layer, name);
        if (row->rows == WHIT_IMPORT_ONE_EXPERT)
            return add_expert(source, importer, file, file_name, name, found, error);
        WHIT_TRY(add_tensor(source, importer, file, file_name, name, row, error));
        whit_source_tensor *tensor = &source->tensors[source->n_tensors - 1];
        tensor->adds_one = importer->class->norms_add_one && !row->keeps_value && ends_with(name, "norm");
        WHIT_TRY(whit_import_split(source, tensor, found->layer, row->rows, error));
    }
    return WHIT_OK;
}

/* Holds the tensor of the embedding or of the head; `file` is NULL if the folder does not contain it. file_name: name
 * of the tensor, as in struct reading. */
struct ending {
    const whit_safetensor *file;
    char file_name[128];
};

/* Sets *same to whether embedding and head are equal, including the scales of packed matrices. */
static whit_status same_data(whit_source *source, struct whit_hf_importer *importer, const struct ending *embed,
                             const struct ending *head, bool *same, whit_error *error)
{
    const struct ending *both[2] = {embed, head};
    const whit_hf_form form = importer->quantisation.form;
    struct whit_hf_import imports[2] = {0};
    const whit_safetensor *a = embed->file, *b = head->file;
    *same = whit_hf_is_packed(form, a) == whit_hf_is_packed(form, b);
    for (int i = 0; *same && whit_hf_is_packed(form, a) && i < 2; i++) {
        struct reading r = {source, importer, both[i]->file, both[i]->file_name, error};
        whit_source_tensor tensor = {.name = "embed"};
        WHIT_TRY(packed_matrix(&r, &imports[i], &tensor));
    }
    if (*same && whit_hf_is_packed(form, a)) {
        *same = whit_hf_packed_equal(&imports[0].matrix, &imports[1].matrix);
        return WHIT_OK;
    }
    *same = *same && a->dtype == b->dtype && a->size_bytes == b->size_bytes && a->n_dims == b->n_dims &&
        memcmp(a->dims, b->dims, a->n_dims * sizeof *a->dims) == 0 && memcmp(a->data, b->data, a->size_bytes) == 0;
    drop_file(importer, a);
    drop_file(importer, b);
    return WHIT_OK;
}

/* Adds embedding and head as one matrix if they are tied or equal, else as two. */
static whit_status add_embedding_and_head(whit_source *source, struct whit_hf_importer *importer,
                                          const struct ending *embed, const struct ending *head, whit_error *error)
{
    const char *path = source->path, *embed_name = "model.embed_tokens.weight", *head_name = "lm_head.weight";
    bool tied = importer->tied;
    if (!embed->file && !(head->file && tied))
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: tensor '%s' is missing", path, embed_name);
    if (!head->file && !tied)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: tensor '%s' is missing, and config.json does not tie it to the embedding "
                         "(tie_word_embeddings)",
                         path, head_name);
    if (embed->file && head->file) {
        bool same;
        WHIT_TRY(same_data(source, importer, embed, head, &same, error));
        if (tied && !same)
            return whit_fail(
                error, WHIT_ERROR_FORMAT,
                "%s: config.json says that '%s' is the embedding (tie_word_embeddings), but the two differ", path,
                head_name);
        tied = same;
    }
    source->config.tied_head = tied;
    const struct ending *first = embed->file ? embed : head;
    WHIT_TRY(add_tensor(source, importer, first->file, first->file_name, "embed", NULL, error));
    return tied ? WHIT_OK : add_tensor(source, importer, head->file, head->file_name, "head", NULL, error);
}

/* Detects BitNet's embedding models: each of their projections has a norm of its input, and their float weights are
 * latent. */
static void find_input_norms(struct whit_hf_importer *importer, whit_config *config)
{
    static const char *const names[] = {"layers.0.self_attn.q_proj.norm.weight",
                                        "model.layers.0.self_attn.q_proj.norm.weight"};
    for (size_t i = 0; i < COUNT(names); i++)
        config->input_norms |= whit_safetensors_find(importer->hf->weights, names[i]) != NULL;
    if (!config->input_norms) return;
    importer->quantisation.online = true;
    whit_config_name_family(config);
}

/* Sets n_draft_layers to 1 if the folder contains a block that predicts one more token and that uses the model's own
 * embedding. */
static void find_draft_block(const struct whit_hf_importer *importer, whit_config *config)
{
    const char *prefix = importer->class->draft_prefix;
    char name[96];
    if (!prefix || config->program) return;
    snprintf(name, sizeof name, "%sembed_tokens.weight", prefix);
    if (whit_safetensors_find(importer->hf->weights, name)) return;
    snprintf(name, sizeof name, "%sfc.weight", prefix);
    config->n_draft_layers = whit_safetensors_find(importer->hf->weights, name) != NULL;
}

/* Adds the matrices of the Dense modules that modules.json lists, which are stored in separate files. */
static whit_status add_dense(whit_source *source, struct whit_hf_importer *importer, whit_error *error)
{
    for (uint32_t i = 0; i < importer->modules.n_dense; i++) {
        static const char file_name[] = "linear.weight";
        const whit_safetensor *file = whit_safetensors_find(importer->modules.dense[i], file_name);
        if (!file || file->n_dims != 2)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: matrix '%s' is missing: the folder is incomplete",
                             importer->modules.dense_config[i].path, file_name);
        whit_source_tensor *tensor = whit_source_add(source, i ? "dense_2" : "dense_1", error);
        if (!tensor) return error ? error->status : WHIT_ERROR_FORMAT;
        struct whit_hf_import *import = &importer->imports[importer->n_imports++];
        *import = (struct whit_hf_import){.importer = importer, .file = file};
        tensor->context = import;
        const struct reading r = {source, importer, file, file_name, error};
        WHIT_TRY(float_matrix(&r, import, tensor));
    }
    return WHIT_OK;
}

whit_status whit_import_hf_tensors(whit_source *source, struct whit_hf_importer *importer, whit_error *error)
{
    const whit_safetensors *weights = importer->hf->weights;
    struct ending embed = {0}, head = {0};
    /* A fused tensor becomes at most three tensors; further ones are divisors and dense layers. */
    importer->capacity = 3 * weights->n_tensors + COUNT(importer->divisors) + WHIT_HF_DENSE_MAX;
    find_input_norms(importer, &source->config);
    find_draft_block(importer, &source->config);
    importer->imports = whit_zalloc_array(source->allocator, importer->capacity, sizeof *importer->imports);
    if (!importer->imports)
        return whit_fail_memory(error, "reading the model", importer->capacity * sizeof *importer->imports);
    for (size_t i = 0; i < weights->n_tensors; i++) {
        const whit_safetensor *file = &weights->tensors[i];
        char file_name[128];
        struct found found = {0};
        bool fits = file->name_bytes < sizeof file_name && !memchr(file->name, 0, file->name_bytes);
        snprintf(file_name, sizeof file_name, "%.*s", (int)(file->name_bytes < 127 ? file->name_bytes : 127),
                 file->name);
        size_t module_bytes;
        whit_hf_role role =
            fits ? whit_hf_packed_role(importer->quantisation.form, file_name, &module_bytes) : WHIT_HF_OTHER;
        if (role == WHIT_HF_BESIDE) continue; /* scales and the like are read together with their matrix */
        if (role == WHIT_HF_CODES && module_bytes + strlen(".weight") < sizeof file_name)
            /* the functions below expect this name, whatever the packed form calls the codes */
            memcpy(file_name + module_bytes, ".weight", sizeof ".weight");
        enum part part = fits ? find_part(importer->class, file_name, &source->config, &found) : PART_UNKNOWN;
        if (part == PART_UNKNOWN && fits && source->config.program)
            part = other_part(file_name + (begins_with(file_name, "model.") ? 6 : 0), found.ours);
        if (part == PART_UNKNOWN && !file->size_bytes) continue; /* an unknown tensor without data is ignored */
        if (part == PART_UNKNOWN)
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: tensor '%s' is not known in a %s of %u layers",
                             source->path, file_name, importer->class->name, source->config.n_layers);
        if (part == PART_IGNORED) continue;
        if (part == PART_HEAD || (strcmp(found.ours, "embed") == 0 && !embed.file)) {
            struct ending *ending = part == PART_HEAD ? &head : &embed;
            ending->file = file;
            snprintf(ending->file_name, sizeof ending->file_name, "%s", file_name);
        } else if (found.row)
            WHIT_TRY(add_parts(source, importer, file, file_name, &found, error));
        else
            WHIT_TRY(add_tensor(source, importer, file, file_name, found.ours, NULL, error));
    }
    WHIT_TRY(add_dense(source, importer, error));
    WHIT_TRY(whit_source_join_parts(source, error));
    return add_embedding_and_head(source, importer, &embed, &head, error);
}

whit_status whit_import_hf_vector(whit_source *source, struct whit_hf_importer *importer, const char *name,
                                  float *values, uint32_t n, whit_error *error)
{
    struct whit_hf_import *import = &importer->imports[importer->n_imports++];
    import->values = values; /* freed with the importer */
    import->n_values = n;
    whit_source_tensor *tensor = whit_source_add(source, name, error);
    if (!tensor) return error ? error->status : WHIT_ERROR_FORMAT;
    tensor->type = (whit_tensor_type){.codec = WHIT_CODEC_F32, .n_rows = 1, .n_cols = n};
    tensor->read_row = read_vector;
    tensor->context = import;
    return WHIT_OK;
}
