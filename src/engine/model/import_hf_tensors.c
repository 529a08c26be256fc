/* SPDX-License-Identifier: MIT
 * The weights of a Hugging Face folder: canonical names and the types that hold them exactly.
 * Queries and keys lie as ours do, pairs half a head apart. Tensors that are not known are refused
 * by name: they would change the result. */
#include "model/import_hf.h"

#include <math.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct tensor_name {
    const char *theirs, *ours;
} global_names[] =
    {
        {"embed_tokens.weight", "embed"},
        {"norm.weight", "final_norm"},
},
  layer_names[] =
      {
          {"input_layernorm.weight", "attn_norm"},
          {"self_attn.q_proj.bias", "q_bias"},
          {"self_attn.k_proj.bias", "k_bias"},
          {"self_attn.v_proj.bias", "v_bias"},
          {"self_attn.o_proj.bias", "o_bias"},
          {"self_attn.q_norm.weight", "q_norm"},
          {"self_attn.k_norm.weight", "k_norm"},
          {"self_attn.attn_sub_norm.weight", "attn_sub_norm"},
          {"self_attn.inner_attn_ln.weight", "attn_sub_norm"}, /* 1bitLLM's name */
          {"post_attention_layernorm.weight", "ffn_norm"},
          {"mlp.gate_proj.bias", "gate_bias"},
          {"mlp.up_proj.bias", "up_bias"},
          {"mlp.down_proj.bias", "down_bias"},
          {"mlp.ffn_sub_norm.weight", "ffn_sub_norm"},
          {"mlp.ffn_layernorm.weight", "ffn_sub_norm"},
},
  projections[] = {
      {"self_attn.q_proj.weight", "q"}, {"self_attn.k_proj.weight", "k"}, {"self_attn.v_proj.weight", "v"},
      {"self_attn.o_proj.weight", "o"}, {"mlp.gate_proj.weight", "gate"}, {"mlp.up_proj.weight", "up"},
      {"mlp.down_proj.weight", "down"},
};

enum part { PART_UNKNOWN, PART_PLAIN, PART_PROJECTION, PART_HEAD, PART_IGNORED };

static const char *find_name(const struct tensor_name *names, size_t n, const char *theirs)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i].theirs, theirs) == 0) return names[i].ours;
    return NULL;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* A tensor that only the program knows keeps its name, but for the ends. */
static enum part other_part(const char *name, char ours[WHIT_VALUE_NAME_BYTES])
{
    size_t n = strlen(name) - (ends_with(name, ".weight") ? strlen(".weight") : 0);
    return n && snprintf(ours, WHIT_VALUE_NAME_BYTES, "%.*s", (int)n, name) < WHIT_VALUE_NAME_BYTES ? PART_PLAIN
                                                                                                    : PART_UNKNOWN;
}

/* What a tensor is by its (terminated) name, and its name with us. */
static enum part find_part(const char *name, uint32_t n_layers, char ours[WHIT_VALUE_NAME_BYTES])
{
    if (strcmp(name, "lm_head.weight") == 0) {
        snprintf(ours, WHIT_VALUE_NAME_BYTES, "head");
        return PART_HEAD;
    }
    if (strncmp(name, "model.", 6) == 0) name += 6; /* absent in checkpoints of a bare model */
    /* Some checkpoints store RoPE tables, which follow from the configuration. */
    static const char *const tables[] = {"inv_freq", "cos_cached", "sin_cached"};
    for (size_t i = 0; i < COUNT(tables); i++)
        if (ends_with(name, tables[i])) return PART_IGNORED;
    const char *found = find_name(global_names, COUNT(global_names), name);
    if (found) {
        snprintf(ours, WHIT_VALUE_NAME_BYTES, "%s", found);
        return PART_PLAIN;
    }
    unsigned layer;
    int used = 0;
    char number[16];
    if (sscanf(name, "layers.%5u.%n", &layer, &used) != 1 || !used || layer >= n_layers) return PART_UNKNOWN;
    snprintf(number, sizeof number, "%u", layer); /* one spelling of each number, so one name each */
    if (strncmp(name + 7, number, strlen(number)) != 0 || (size_t)used != 8 + strlen(number)) return PART_UNKNOWN;
    /* The scales of packed weights are read with their weights. */
    if (ends_with(name, ".weight_scale")) {
        char weight[96];
        snprintf(weight, sizeof weight, "%.*s", (int)(strlen(name + used) - strlen("_scale")), name + used);
        return find_name(projections, COUNT(projections), weight) ? PART_IGNORED : PART_UNKNOWN;
    }
    enum part part = PART_PLAIN;
    found = find_name(layer_names, COUNT(layer_names), name + used);
    if (!found) {
        found = find_name(projections, COUNT(projections), name + used);
        part = PART_PROJECTION;
    }
    if (!found) return PART_UNKNOWN;
    snprintf(ours, WHIT_VALUE_NAME_BYTES, "layers.%u.%s", layer, found);
    return part;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static whit_status read_vector(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error)
{
    const struct whit_hf_import *import = tensor->context;
    (void)row;
    (void)error;
    if (import->values)
        memcpy(rows->elems, import->values, import->n_values * sizeof *import->values);
    else
        whit_ggml_row_f32(&import->view, 0, rows->elems);
    return WHIT_OK;
}

static whit_status read_floats(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error)
{
    const struct whit_hf_import *import = tensor->context;
    (void)error;
    size_t row_bytes = (size_t)tensor->type.n_cols * whit_codec_find(tensor->type.codec)->elem_bytes;
    memcpy(rows->elems, import->view.data + row * row_bytes, row_bytes);
    return WHIT_OK;
}

static whit_status read_packed(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error)
{
    const struct whit_hf_import *import = tensor->context;
    if (whit_packed_ternary_row(&import->packed, row, rows->elems)) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_FORMAT,
                     "%s: tensor '%.*s' holds the code 3, which packed ternary weights have not",
                     import->importer->hf->folder, (int)import->file->name_bytes, import->file->name);
}

static whit_status read_codes(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error)
{
    const struct whit_hf_import *import = tensor->context;
    (void)error;
    memcpy(rows->elems, import->codes + (size_t)row * tensor->type.n_cols, tensor->type.n_cols);
    return WHIT_OK;
}

static whit_status read_rounded(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows,
                                whit_error *error)
{
    const struct whit_hf_import *import = tensor->context;
    (void)error;
    whit_round_ternary_row(&import->view, row, import->inverse, rows->elems);
    return WHIT_OK;
}

static void drop_file(const struct whit_hf_importer *importer, const whit_safetensor *file)
{
    whit_map_drop(&importer->hf->weights->files[file->file].map, file->data, file->size_bytes);
}

static void drop(const whit_source_tensor *tensor)
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
    const char *file_name; /* of the tensor, terminated */
    whit_error *error;
};

static whit_status refuse(const struct reading *r, const char *why)
{
    return whit_fail(r->error, WHIT_ERROR_UNSUPPORTED, "%s: tensor '%s': %s", r->source->path, r->file_name, why);
}

/* What the products are multiplied by: the weight's scale, or its inverse (BitLinear divides). */
static whit_status read_scale(const struct reading *r, bool required, double *factor)
{
    char name[160];
    snprintf(name, sizeof name, "%s_scale", r->file_name);
    const whit_safetensor *scale = whit_safetensors_find(r->importer->hf->weights, name);
    double value;
    *factor = 1;
    if (!scale && !required) return WHIT_OK;
    if (!scale) return refuse(r, "its weight_scale is missing");
    bool one = true;
    for (uint32_t i = 0; i < scale->n_dims; i++) one &= scale->dims[i] == 1;
    if (!one) return refuse(r, "several scales for one matrix (weight_scale) are not supported");
    if (!whit_safetensor_f64(scale, 0, &value) || !isfinite(value) || value == 0)
        return whit_fail(r->error, WHIT_ERROR_FORMAT, "%s: tensor '%s' is no scale", r->source->path, name);
    *factor = r->importer->quantisation.multiplies ? value : 1 / value;
    return WHIT_OK;
}

/* modules_to_not_convert names modules by their path or its end, or a whole subtree. */
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
        return refuse(r, "is U8, but config.json has no quantization_config that says what that means");
    if (r->file->dims[0] > UINT32_MAX / 4 || r->file->dims[1] > WHIT_MAX_COLS) return refuse(r, "is too large");
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
        return refuse(r, "is I8, but config.json has no quantization_config that says what that means");
    if (r->file->dims[0] > UINT32_MAX || r->file->dims[1] > WHIT_MAX_COLS) return refuse(r, "is too large");
    for (uint64_t i = 0; i < r->file->size_bytes; i++)
        if (import->codes[i] < -1 || import->codes[i] > 1) return refuse(r, "holds I8 weights other than -1, 0 and 1");
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
    if (!whit_safetensor_view(r->file, &import->view)) return refuse(r, "its dtype is not supported here");
    if (import->view.n_rows > UINT32_MAX || import->view.n_cols > WHIT_MAX_COLS) return refuse(r, "is too large");
    for (size_t i = 0; i < COUNT(codecs); i++)
        if (codecs[i].kind == import->view.kind) tensor->type.codec = (uint8_t)codecs[i].codec;
    tensor->type.layout = WHIT_LAYOUT_TILE16;
    tensor->type.n_rows = (uint32_t)import->view.n_rows;
    tensor->type.n_cols = (uint32_t)import->view.n_cols;
    tensor->read_row = read_floats;
    return WHIT_OK;
}

/* Latent weights: t = clamp(round(w / m), -1, 1) and products times m, the mean magnitude
 * (transformers, integrations/bitnet.py, WeightQuant; 1bitLLM's weight_quant). */
static whit_status latent_projection(const struct reading *r, struct whit_hf_import *import, whit_source_tensor *tensor)
{
    const whit_ggml_view *view = &import->view;
    float *row = whit_alloc(r->source->allocator, view->n_cols * sizeof *row);
    if (!row) return whit_fail_memory(r->error, tensor->name, view->n_cols * sizeof *row);
    double mean = whit_float_absmean(view, row);
    whit_free(r->source->allocator, row, view->n_cols * sizeof *row);
    if (isnan(mean)) return refuse(r, "holds weights that are not finite");
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
            return refuse(r, "has a weight_scale, but config.json has no quantization_config that says what it means");
        return WHIT_OK;
    }
    if (is_skipped(r)) return WHIT_OK;
    WHIT_TRY(read_scale(r, false, &factor));
    if (q->online && factor == 1) return latent_projection(r, import, tensor);
    if (!whit_float_is_ternary(&import->view, &scale))
        return refuse(r, "holds latent weights, but config.json does not say that they are quantised online");
    import->inverse = 1 / scale; /* of a matrix of zeros infinite: its rows still round to zeros */
    tensor->type = ternary_type(tensor->type.n_rows, tensor->type.n_cols, scale * factor);
    tensor->read_row = read_rounded;
    return WHIT_OK;
}

static whit_status add_projection(const struct reading *r, struct whit_hf_import *import, whit_source_tensor *tensor)
{
    if (r->file->n_dims != 2 || !r->file->size_bytes) return refuse(r, "is no matrix");
    if (r->file->dtype == WHIT_DTYPE_U8) return packed_projection(r, import, tensor);
    if (r->file->dtype == WHIT_DTYPE_I8) return i8_projection(r, import, tensor);
    return float_projection(r, import, tensor);
}

/* ---- all ------------------------------------------------------------------------------------ */

static whit_status add_plain(const struct reading *r, struct whit_hf_import *import, whit_source_tensor *tensor)
{
    if (r->file->n_dims == 2) return float_matrix(r, import, tensor);
    if (r->file->n_dims != 1) return refuse(r, "is neither a vector nor a matrix");
    if (!whit_safetensor_view(r->file, &import->view)) return refuse(r, "its dtype is not supported here");
    if (import->view.n_cols > WHIT_MAX_COLS) return refuse(r, "is too large");
    tensor->type = (whit_tensor_type){.codec = WHIT_CODEC_F32, .n_rows = 1, .n_cols = (uint32_t)import->view.n_cols};
    tensor->read_row = read_vector;
    return WHIT_OK;
}

static whit_status add_tensor(whit_source *source, struct whit_hf_importer *importer, const whit_safetensor *file,
                              const char *file_name, const char *name, bool projection, whit_error *error)
{
    whit_source_tensor *tensor = whit_source_add(source, name, error);
    if (!tensor) return error ? error->status : WHIT_ERROR_FORMAT;
    struct whit_hf_import *import = &importer->imports[importer->n_imports++];
    struct reading r = {source, importer, file, file_name, error};
    *import = (struct whit_hf_import){.importer = importer, .file = file};
    tensor->context = import;
    tensor->drop = drop;
    WHIT_TRY(projection ? add_projection(&r, import, tensor) : add_plain(&r, import, tensor));
    drop_file(importer, file);
    return WHIT_OK;
}

static bool same_data(const struct whit_hf_importer *importer, const whit_safetensor *a, const whit_safetensor *b)
{
    bool same = a->dtype == b->dtype && a->size_bytes == b->size_bytes && a->n_dims == b->n_dims &&
        memcmp(a->dims, b->dims, a->n_dims * sizeof *a->dims) == 0 && memcmp(a->data, b->data, a->size_bytes) == 0;
    drop_file(importer, a);
    drop_file(importer, b);
    return same;
}

/* Embedding and head: one matrix or two, whichever of them is stored. */
static whit_status add_embedding_and_head(whit_source *source, struct whit_hf_importer *importer,
                                          const whit_safetensor *embed, const whit_safetensor *head, whit_error *error)
{
    const char *path = source->path, *embed_name = "model.embed_tokens.weight", *head_name = "lm_head.weight";
    bool tied = importer->tied;
    if (!embed && !(head && tied))
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: tensor '%s' is missing", path, embed_name);
    if (!head && !tied)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: tensor '%s' is missing, and config.json does not tie it to the embedding "
                         "(tie_word_embeddings)",
                         path, head_name);
    if (embed && head) {
        bool same = same_data(importer, embed, head);
        if (tied && !same)
            return whit_fail(
                error, WHIT_ERROR_FORMAT,
                "%s: config.json says that '%s' is the embedding (tie_word_embeddings), but the two differ", path,
                head_name);
        tied = same;
    }
    source->config.tied_head = tied;
    const whit_safetensor *first = embed ? embed : head;
    WHIT_TRY(add_tensor(source, importer, first, embed ? embed_name : head_name, "embed", false, error));
    return tied ? WHIT_OK : add_tensor(source, importer, head, head_name, "head", false, error);
}

whit_status whit_import_hf_tensors(whit_source *source, struct whit_hf_importer *importer, whit_error *error)
{
    const whit_safetensors *weights = importer->hf->weights;
    const whit_safetensor *embed = NULL, *head = NULL;
    importer->capacity = weights->n_tensors + 1; /* one more for RoPE factors */
    importer->imports = whit_zalloc_array(source->allocator, importer->capacity, sizeof *importer->imports);
    if (!importer->imports)
        return whit_fail_memory(error, "the importer", importer->capacity * sizeof *importer->imports);
    for (size_t i = 0; i < weights->n_tensors; i++) {
        const whit_safetensor *file = &weights->tensors[i];
        char file_name[128], name[WHIT_VALUE_NAME_BYTES] = "";
        bool fits = file->name_bytes < sizeof file_name && !memchr(file->name, 0, file->name_bytes);
        snprintf(file_name, sizeof file_name, "%.*s", (int)(file->name_bytes < 127 ? file->name_bytes : 127),
                 file->name);
        enum part part = fits ? find_part(file_name, source->config.n_layers, name) : PART_UNKNOWN;
        if (part == PART_UNKNOWN && fits && source->config.program)
            part = other_part(file_name + (strncmp(file_name, "model.", 6) == 0 ? 6 : 0), name);
        if (part == PART_UNKNOWN && !file->size_bytes) continue; /* there is nothing in it to be used */
        if (part == PART_UNKNOWN)
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: tensor '%s' is not known in a %s of %u layers",
                             source->path, file_name, importer->class->name, source->config.n_layers);
        if (part == PART_IGNORED) continue;
        if (part == PART_HEAD)
            head = file;
        else if (strcmp(name, "embed") == 0 && !embed)
            embed = file;
        else
            WHIT_TRY(add_tensor(source, importer, file, file_name, name, part == PART_PROJECTION, error));
    }
    return add_embedding_and_head(source, importer, embed, head, error);
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
