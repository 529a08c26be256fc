/* SPDX-License-Identifier: MIT
 * The weights of a GGUF file: canonical names, the types that hold them exactly, rows in our order.
 * Tensors that are not known are refused by name: they would change the result. */
#include "model/import_gguf.h"
#include "format/ternary.h"

#include <stdio.h>

static const struct tensor_name {
    const char *gguf, *ours;
    bool rotary; /* rows hold RoPE pairs */
} global_names[] =
    {
        {"token_embd.weight", "embed", false},
        {"output_norm.weight", "final_norm", false},
        {"output.weight", "head", false},
        {"rope_freqs.weight", "rope_factors", false},
},
  layer_names[] = {
      {"attn_norm.weight", "attn_norm", false},
      {"attn_q.weight", "q", true},
      {"attn_k.weight", "k", true},
      {"attn_v.weight", "v", false},
      {"attn_q.bias", "q_bias", true},
      {"attn_k.bias", "k_bias", true},
      {"attn_v.bias", "v_bias", false},
      {"attn_output.bias", "o_bias", false},
      {"ffn_gate.bias", "gate_bias", false},
      {"ffn_up.bias", "up_bias", false},
      {"ffn_down.bias", "down_bias", false},
      {"attn_output.weight", "o", false},
      {"attn_q_norm.weight", "q_norm", false},
      {"attn_k_norm.weight", "k_norm", false},
      {"attn_sub_norm.weight", "attn_sub_norm", false},
      {"ffn_norm.weight", "ffn_norm", false},
      {"ffn_gate.weight", "gate", false},
      {"ffn_up.weight", "up", false},
      {"ffn_down.weight", "down", false},
      {"ffn_sub_norm.weight", "ffn_sub_norm", false},
};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Our name of a tensor. With `any` one that is not known keeps its own, with our beginning and no ".weight". */
static bool canonical_name(const whit_gguf_tensor *tensor, bool any, char out[WHIT_VALUE_NAME_BYTES], bool *rotary)
{
    char name[128];
    if (tensor->name_bytes >= sizeof name) return false;
    memcpy(name, tensor->name, tensor->name_bytes);
    name[tensor->name_bytes] = 0;
    *rotary = false;
    for (size_t i = 0; i < COUNT(global_names); i++)
        if (strcmp(name, global_names[i].gguf) == 0) {
            snprintf(out, WHIT_VALUE_NAME_BYTES, "%s", global_names[i].ours);
            return true;
        }
    unsigned layer;
    int used = 0;
    char *end = name + tensor->name_bytes;
    if (any && tensor->name_bytes > 7 && strcmp(end - 7, ".weight") == 0) end -= 7;
    if (sscanf(name, "blk.%5u.%n", &layer, &used) != 1 || !used)
        return any && snprintf(out, WHIT_VALUE_NAME_BYTES, "%.*s", (int)(end - name), name) < WHIT_VALUE_NAME_BYTES;
    for (size_t i = 0; i < COUNT(layer_names); i++)
        if (strcmp(name + used, layer_names[i].gguf) == 0) {
            snprintf(out, WHIT_VALUE_NAME_BYTES, "layers.%u.%s", layer, layer_names[i].ours);
            *rotary = layer_names[i].rotary;
            return true;
        }
    return any && end > name + used &&
        snprintf(out, WHIT_VALUE_NAME_BYTES, "layers.%u.%.*s", layer, (int)(end - name - used), name + used) <
        WHIT_VALUE_NAME_BYTES;
}

bool whit_gguf_tensor_name(const char *ours, char out[96], bool *rotary)
{
    unsigned layer;
    int used = 0;
    *rotary = false;
    for (size_t i = 0; i < COUNT(global_names); i++)
        if (strcmp(ours, global_names[i].ours) == 0) return snprintf(out, 96, "%s", global_names[i].gguf) > 0;
    if (sscanf(ours, "layers.%5u.%n", &layer, &used) != 1 || !used) return false;
    for (size_t i = 0; i < COUNT(layer_names); i++) {
        if (strcmp(ours + used, layer_names[i].ours) != 0) continue;
        *rotary = layer_names[i].rotary;
        return snprintf(out, 96, "blk.%u.%s", layer, layer_names[i].gguf) > 0;
    }
    return false;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static whit_status read_vector(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error)
{
    (void)row;
    const struct whit_gguf_import *import = tensor->context;
    float *out = rows->elems;
    uint32_t n = tensor->type.n_cols;
    if (!import->view.data) {
        for (uint32_t i = 0; i < n; i++) out[i] = import->constant;
        return WHIT_OK;
    }
    whit_ggml_row_f32(&import->view, 0, out);
    if (!tensor->unpermute_head_dim) return WHIT_OK;
    float *copy = whit_alloc(NULL, n * sizeof *copy);
    if (!copy) return whit_fail_memory(error, tensor->name, n * sizeof *copy);
    memcpy(copy, out, n * sizeof *copy);
    for (uint32_t i = 0; i < n; i++) out[i] = copy[whit_source_row(tensor, i)];
    whit_free(NULL, copy, n * sizeof *copy);
    return WHIT_OK;
}

static whit_status read_ternary_floats(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows,
                                       whit_error *error)
{
    const struct whit_gguf_import *import = tensor->context;
    (void)error;
    whit_round_ternary_row(&import->view, whit_source_row(tensor, row), import->inverse, rows->elems);
    return WHIT_OK;
}

static whit_status read_floats(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error)
{
    (void)error;
    const struct whit_gguf_import *import = tensor->context;
    size_t row_bytes = (size_t)tensor->type.n_cols * whit_codec_find(tensor->type.codec)->elem_bytes;
    memcpy(rows->elems, import->view.data + whit_source_row(tensor, row) * row_bytes, row_bytes);
    return WHIT_OK;
}

static whit_status read_codes(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error)
{
    (void)error;
    const struct whit_gguf_import *import = tensor->context;
    whit_ggml_row_twin(&import->view, &import->twin, whit_source_row(tensor, row), rows->elems, rows->fields);
    if (import->factor != 1 && tensor->type.scale_kind == WHIT_SCALE_GROUP)
        for (uint32_t i = 0; i < whit_codec_geometry(&tensor->type).n_groups; i++) rows->fields[i] *= import->factor;
    return WHIT_OK;
}

static void drop(const whit_source_tensor *tensor)
{
    const struct whit_gguf_import *import = tensor->context;
    const whit_gguf_tensor *file = import->file;
    whit_map_drop(&import->importer->gguf->files[file->file].map, file->data, file->size_bytes);
}

/* ---- types ---------------------------------------------------------------------------------- */

static bool is_projection(const char *name)
{
    return strncmp(name, "layers.", 7) == 0;
}

/* The type of a matrix and whether its activations are W1.58A8 (docs/format.md, "Activations"):
 * I2_S says so in every architecture; in BitNet ones so do TQ types and ternary floats. */
static whit_status matrix_type(const whit_gguf_architecture *architecture, struct whit_gguf_import *import,
                               whit_source_tensor *tensor, whit_error *error)
{
    WHIT_TRY(whit_ggml_find_twin(&import->view, tensor->name, &import->twin, error));
    /* One scale for all says the same as many equal ones, but activations are quantised in groups of
     * the weight's (kernels/acts.h): groups below the largest of those stay. */
    if (architecture->bitnet || import->twin.type.group == 0 || import->twin.type.group >= 128)
        whit_ggml_narrow_twin(&import->twin);
    tensor->type = import->twin.type;
    tensor->read_row = import->twin.type.codec <= WHIT_CODEC_BF16 ? read_floats : read_codes;
    bool projection = is_projection(tensor->name);
    float scale;
    if (architecture->bitnet && projection && tensor->type.codec <= WHIT_CODEC_BF16 &&
        whit_float_is_ternary(&import->view, &scale)) {
        tensor->type = (whit_tensor_type){.codec = WHIT_CODEC_T5,
                                          .scale_kind = WHIT_SCALE_TENSOR,
                                          .n_rows = tensor->type.n_rows,
                                          .n_cols = tensor->type.n_cols,
                                          .scale = scale};
        tensor->read_row = read_ternary_floats;
        import->inverse = 1 / scale; /* of a matrix of zeros infinite: its rows still round to zeros */
    }
    tensor->type.layout = WHIT_LAYOUT_TILE16;
    bool ternary = tensor->type.codec == WHIT_CODEC_T2 || tensor->type.codec == WHIT_CODEC_T5;
    if (projection && ternary && (architecture->bitnet || import->view.kind == WHIT_GGML_I2_S))
        tensor->type.act = WHIT_TENSOR_ACT_TOKEN;
    return WHIT_OK;
}

static whit_status add_tensor(whit_source *source, struct whit_gguf_importer *importer,
                              const whit_gguf_architecture *architecture, const whit_gguf_tensor *file,
                              const char *name, bool rotary, whit_error *error)
{
    const whit_config *c = &source->config;
    if (file->n_dims > 2)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: tensor '%s' has %u dimensions", source->path, name,
                         file->n_dims);
    whit_source_tensor *tensor = whit_source_add(source, name, error);
    if (!tensor) return error ? error->status : WHIT_ERROR_FORMAT;
    struct whit_gguf_import *import = &importer->tensors[importer->n_tensors++];
    *import = (struct whit_gguf_import){.view = whit_gguf_view(file), .factor = 1, .importer = importer, .file = file};
    tensor->context = import;
    tensor->drop = drop;
    if (rotary && architecture->permuted) {
        tensor->unpermute_head_dim = c->head_dim;
        tensor->unpermute_rope_dim = c->rope_dim;
    }
    if (file->n_dims < 2) {
        whit_ggml_kind kind = import->view.kind;
        if (kind != WHIT_GGML_F32 && kind != WHIT_GGML_F16 && kind != WHIT_GGML_BF16)
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: vector '%s' is of type %s, not of floats",
                             source->path, name, whit_ggml_kind_info(kind)->name);
        if (import->view.n_cols > WHIT_MAX_COLS)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: vector '%s' has over %u elements", source->path, name,
                             WHIT_MAX_COLS);
        tensor->type =
            (whit_tensor_type){.codec = WHIT_CODEC_F32, .n_rows = 1, .n_cols = (uint32_t)import->view.n_cols};
        tensor->read_row = read_vector;
    } else {
        WHIT_TRY(matrix_type(architecture, import, tensor, error));
    }
    /* The permutation walks whole heads: a wrong row count must be refused before it is used. */
    uint32_t n = file->n_dims < 2 ? tensor->type.n_cols : tensor->type.n_rows;
    if (tensor->unpermute_head_dim && n % tensor->unpermute_head_dim)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: tensor '%s' has %u rows, no multiple of the head size %u",
                         source->path, name, n, tensor->unpermute_head_dim);
    drop(tensor);
    return WHIT_OK;
}

/* Older BitNet files and NVFP4 ones hold the scale of matrix "blk.0.attn_q.weight" in "blk.0.attn_q.scale": the
 * products are multiplied by it. `end` is ".scale" or ".input_scale". False where the tensor is not such a scale. */
static bool scaled_name(const whit_gguf_tensor *tensor, const char *end, char out[WHIT_VALUE_NAME_BYTES])
{
    char name[128];
    bool rotary;
    size_t n = tensor->name_bytes, m = strlen(end);
    if (n <= m || n + 8 > sizeof name || memcmp(tensor->name + n - m, end, m) != 0) return false;
    snprintf(name, sizeof name, "%.*s.weight", (int)(n - m), tensor->name);
    whit_gguf_tensor weight = {.name = name, .name_bytes = strlen(name)};
    return canonical_name(&weight, false, out, &rotary) && is_projection(out);
}

static whit_status fold_scale(whit_source *source, const whit_gguf_tensor *file, const char *name, whit_error *error)
{
    whit_source_tensor *tensor = (whit_source_tensor *)whit_source_find(source, name);
    whit_ggml_view view = whit_gguf_view(file);
    float scale = 0;
    if (!tensor || view.n_cols != 1 || view.n_rows != 1 || view.kind != WHIT_GGML_F32)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: tensor '%.*s' is no scale of a matrix", source->path,
                         (int)(file->name_bytes < 80 ? file->name_bytes : 80), file->name);
    whit_ggml_row_f32(&view, 0, &scale);
    if (scale == 1) return WHIT_OK;
    struct whit_gguf_import *import = (struct whit_gguf_import *)tensor->context;
    if (import->view.kind == WHIT_GGML_NVFP4 && tensor->type.scale_kind == WHIT_SCALE_GROUP) {
        import->factor = scale;
        return WHIT_OK;
    }
    if (tensor->type.scale_kind != WHIT_SCALE_TENSOR)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: tensor '%.*s' scales a matrix that has more than one scale", source->path,
                         (int)(file->name_bytes < 80 ? file->name_bytes : 80), file->name);
    tensor->type.scale *= scale;
    return WHIT_OK;
}

static bool same_data(const whit_gguf_tensor *a, const whit_gguf_tensor *b)
{
    return a->kind == b->kind && a->dims[0] == b->dims[0] && a->dims[1] == b->dims[1] &&
        a->size_bytes == b->size_bytes && memcmp(a->data, b->data, a->size_bytes) == 0;
}

whit_status whit_import_gguf_tensors(whit_source *source, struct whit_gguf_importer *importer,
                                     const whit_gguf_architecture *architecture, whit_error *error)
{
    const whit_gguf *gguf = importer->gguf;
    importer->capacity = gguf->n_tensors + 1; /* one more for RoPE factors */
    importer->tensors = whit_zalloc_array(source->allocator, importer->capacity, sizeof *importer->tensors);
    if (!importer->tensors)
        return whit_fail_memory(error, "the importer", importer->capacity * sizeof *importer->tensors);
    const whit_gguf_tensor *embed = whit_gguf_find_tensor(gguf, "token_embd.weight");
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        const whit_gguf_tensor *file = &gguf->tensors[i];
        char name[WHIT_VALUE_NAME_BYTES];
        bool rotary;
        if (scaled_name(file, ".scale", name)) continue;       /* below, when its matrix is there */
        if (scaled_name(file, ".input_scale", name)) continue; /* for activations in four bits, which are not taken */
        if (!canonical_name(file, source->config.program, name, &rotary))
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: tensor '%.*s' is not known in architecture '%s'",
                             source->path, (int)(file->name_bytes < 80 ? file->name_bytes : 80), file->name,
                             architecture->name);
        if (strcmp(name, "head") == 0 && same_data(file, embed)) {
            source->config.tied_head = true; /* some files hold the tied matrix twice */
            continue;
        }
        if (strcmp(name, "rope_factors") == 0) source->config.rope_factors = true;
        WHIT_TRY(add_tensor(source, importer, architecture, file, name, rotary, error));
    }
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        char name[WHIT_VALUE_NAME_BYTES];
        if (scaled_name(&gguf->tensors[i], ".scale", name))
            WHIT_TRY(fold_scale(source, &gguf->tensors[i], name, error));
    }
    return WHIT_OK;
}

whit_status whit_import_gguf_constant(whit_source *source, struct whit_gguf_importer *importer, const char *name,
                                      uint32_t n, float value, whit_error *error)
{
    whit_source_tensor *tensor = whit_source_add(source, name, error);
    if (!tensor) return error ? error->status : WHIT_ERROR_FORMAT;
    struct whit_gguf_import *import = &importer->tensors[importer->n_tensors++];
    import->constant = value;
    tensor->type = (whit_tensor_type){.codec = WHIT_CODEC_F32, .n_rows = 1, .n_cols = n};
    tensor->read_row = read_vector;
    tensor->context = import;
    return WHIT_OK;
}
