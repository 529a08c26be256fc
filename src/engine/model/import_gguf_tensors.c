/* SPDX-License-Identifier: MIT
 * Reads the weights of a GGUF file: gives them canonical names, types that store them exactly, and the canonical order
 * of rows. Unknown tensors are refused by name, because they would change the result. */
#include "model/import_gguf.h"
#include "format/ggml_encode.h"
#include "format/ternary.h"
#include "kernels/kernels.h"

#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const whit_import_name global_names[] = {
    {"token_embd.weight", "embed"},
    {"output_norm.weight", "final_norm"},
    {"output.weight", "head"},
    {"rope_freqs.weight", "rope_factors"},
    {"rope_factors_long.weight", "rope_factors_long"},
    {"rope_factors_short.weight", "rope_factors_short"},
    {"cls.output.weight", "score"},
    {NULL},
};
static const whit_import_name layer_names[] = {
    {"attn_norm.weight", "attn_norm"},
    {"attn_q.weight", "q", .is_projection = true, .is_rotary = true},
    {"attn_k.weight", "k", .is_projection = true, .is_rotary = true},
    {"attn_v.weight", "v", .is_projection = true},
    {"attn_q.bias", "q_bias", .is_rotary = true},
    {"attn_k.bias", "k_bias", .is_rotary = true},
    {"attn_v.bias", "v_bias"},
    {"attn_output.bias", "o_bias"},
    {"ffn_gate.bias", "gate_bias"},
    {"ffn_up.bias", "up_bias"},
    {"ffn_down.bias", "down_bias"},
    {"attn_output.weight", "o", .is_projection = true},
    {"attn_q_norm.weight", "q_norm"},
    {"attn_k_norm.weight", "k_norm"},
    {"attn_sub_norm.weight", "attn_sub_norm"},
    {"ffn_norm.weight", "ffn_norm"},
    {"ffn_gate.weight", "gate", .is_projection = true},
    {"ffn_up.weight", "up", .is_projection = true},
    {"ffn_down.weight", "down", .is_projection = true},
    {"ffn_sub_norm.weight", "ffn_sub_norm"},
    {"attn_q_norm_in.weight", "q_in_norm"},
    {"attn_k_norm_in.weight", "k_in_norm"},
    {"attn_v_norm_in.weight", "v_in_norm"},
    {"attn_output_norm_in.weight", "o_in_norm"},
    {"ffn_gate_norm_in.weight", "gate_in_norm"},
    {"ffn_up_norm_in.weight", "up_in_norm"},
    {"ffn_down_norm_in.weight", "down_in_norm"},
    {NULL},
};

/* Holds what a tensor of the file is in our format. */
struct found {
    const whit_import_name *row; /* first table row that names the tensor; NULL: no table names it, only the family
                                  * program does */
    uint32_t layer;              /* layer of the tensor; UINT32_MAX outside the layers */
    char ours[WHIT_VALUE_NAME_BYTES];
};

static void canonical_name(const whit_import_name *row, uint32_t layer, char ours[WHIT_VALUE_NAME_BYTES])
{
    if (layer == UINT32_MAX)
        snprintf(ours, WHIT_VALUE_NAME_BYTES, "%s", row->ours);
    else
        snprintf(ours, WHIT_VALUE_NAME_BYTES, "layers.%u.%s", layer, row->ours);
}

/* Finds what a tensor is by its name; returns false if it is unknown. If `any`, an unknown tensor keeps its name, but
 * "blk." becomes "layers." and ".weight" is removed. */
static bool find_tensor(const whit_gguf_architecture *architecture, const whit_gguf_tensor *tensor, bool any,
                        struct found *found)
{
    char name[128];
    *found = (struct found){.layer = UINT32_MAX};
    if (tensor->name_bytes >= sizeof name || memchr(tensor->name, 0, tensor->name_bytes)) return false;
    memcpy(name, tensor->name, tensor->name_bytes);
    name[tensor->name_bytes] = 0;
    const char *rest = whit_import_layer(name, "blk", WHIT_MAX_LAYERS, &found->layer);
    const char *known = rest ? rest : name;
    found->row = whit_import_find_name(architecture->names, rest ? layer_names : global_names, known);
    if (found->row) {
        if (found->row->ours) canonical_name(found->row, found->layer, found->ours);
        return true;
    }
    char *end = name + tensor->name_bytes;
    if (any && tensor->name_bytes > 7 && strcmp(end - 7, ".weight") == 0) *(end -= 7) = 0;
    if (!any || (rest ? end <= rest : end == name)) return false;
    if (!rest) return snprintf(found->ours, sizeof found->ours, "%s", name) < WHIT_VALUE_NAME_BYTES;
    return snprintf(found->ours, sizeof found->ours, "layers.%u.%s", found->layer, rest) < WHIT_VALUE_NAME_BYTES;
}

static const whit_import_name *find_ours(const whit_import_name *row, const char *ours)
{
    for (; row && row->theirs; row++)
        if (row->ours && strcmp(row->ours, ours) == 0) return row;
    return NULL;
}

const whit_import_name *whit_gguf_find_row(const whit_gguf_architecture *architecture, const char *ours,
                                           uint32_t *layer)
{
    *layer = UINT32_MAX;
    const char *rest = whit_import_layer(ours, "layers", WHIT_MAX_LAYERS, layer), *name = rest ? rest : ours;
    const whit_import_name *row = architecture ? find_ours(architecture->names, name) : NULL;
    if (row) return row;
    return find_ours(rest ? layer_names : global_names, name);
}

const whit_import_name *whit_gguf_first_row(const whit_gguf_architecture *architecture, const whit_import_name *row)
{
    const whit_import_name *first = whit_import_find_name(architecture->names, NULL, row->theirs);
    return first ? first : row;
}

void whit_gguf_row_name(const whit_import_name *row, uint32_t layer, char out[96])
{
    if (layer == UINT32_MAX)
        snprintf(out, 96, "%s", row->theirs);
    else
        snprintf(out, 96, "blk.%u.%s", layer, row->theirs);
}

bool whit_gguf_tensor_name(const char *ours, char out[96], bool *rotary)
{
    uint32_t layer;
    const whit_import_name *row = whit_gguf_find_row(NULL, ours, &layer);
    *rotary = row && row->is_rotary;
    if (row) whit_gguf_row_name(row, layer, out);
    return row != NULL;
}

/* ---- reading rows --------------------------------------------------------------------------- */

static whit_status read_vector(const whit_source_tensor *tensor, uint32_t row, const whit_rows *rows, whit_error *error)
{
    (void)row;
    const struct whit_gguf_import *import = tensor->context;
    float *out = rows->elems;
    uint32_t n = tensor->type.n_cols;
    if (import->form == WHIT_IMPORT_TAPS) {
        whit_import_read_taps(tensor, &import->view, out);
        return WHIT_OK;
    }
    if (import->values) {
        memcpy(out, import->values, n * sizeof *out);
        return WHIT_OK;
    }
    if (!import->view.data) {
        for (uint32_t i = 0; i < n; i++) out[i] = import->constant;
        return WHIT_OK;
    }
    whit_ggml_row_f32(&import->view, 0, out);
    if (!tensor->unpermute_head_dim && !tensor->order_dim) return WHIT_OK;
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
    whit_ggml_row_twin(&import->view, &import->twin, whit_source_row(tensor, row), rows);
    return WHIT_OK;
}

static void drop_pages(const whit_source_tensor *tensor)
{
    const struct whit_gguf_import *import = tensor->context;
    const whit_gguf_tensor *file = import->file;
    whit_map_drop(&import->importer->gguf->files[file->file].map, file->data, file->size_bytes);
}

/* ---- types of matrices ---------------------------------------------------------------------- */

static bool is_projection(const char *name)
{
    return strncmp(name, "layers.", 7) == 0;
}

/* Sets the type of a matrix, and whether it reads W1.58A8 activations (docs/dev/format.md, "Activations"). Only ternary
 * matrices of layers do: those stored as I2_S in every architecture, all in BitNet architectures. */
static whit_status matrix_type(const whit_gguf_architecture *architecture, struct whit_gguf_import *import,
                               whit_source_tensor *tensor, whit_error *error)
{
    WHIT_TRY(whit_ggml_find_twin(&import->view, tensor->name, &import->twin, error));
    /* Many equal scales can become a single one. But activations are quantised in groups of the weight's size, at most
     * 128 (kernels/acts.h), so weights with groups smaller than 128 keep their groups. */
    if (architecture->bitnet || import->twin.type.group == 0 || import->twin.type.group >= 128)
        whit_ggml_narrow_twin(&import->twin);
    whit_ggml_kind own;
    tensor->type = import->twin.type;
    tensor->is_recoded = whit_ggml_native_kind(&tensor->type, &own) && own != import->view.kind;
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
        import->inverse = 1 / scale; /* infinite for a matrix of zeros; its elements are still rounded to 0 */
    }
    tensor->type.layout = WHIT_LAYOUT_TILE16;
    bool ternary = tensor->type.codec == WHIT_CODEC_T2 || tensor->type.codec == WHIT_CODEC_T5;
    if (projection && ternary && (architecture->bitnet || import->view.kind == WHIT_GGML_I2_S))
        tensor->type.act = WHIT_TENSOR_ACT_TOKEN;
    return WHIT_OK;
}

static whit_status add_tensor(whit_source *source, struct whit_gguf_importer *importer,
                              const whit_gguf_architecture *architecture, const whit_gguf_tensor *file,
                              const char *name, const whit_import_name *row, const struct found *found,
                              whit_error *error)
{
    const whit_layer_kind kind_of_layer = whit_config_kind(&source->config, found->layer);
    const bool rotary = found->row && found->row->is_rotary;
    if (importer->n_tensors == importer->capacity)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the file has more tensors than its header says: it is damaged",
                         source->path);
    if (file->n_dims > 2 && !(file->n_dims == 3 && row && whit_import_has_experts(row->rows)))
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: tensor '%s' has %u dimensions, but 1 and 2 are supported, and 3 for experts",
                         source->path, name, file->n_dims);
    whit_source_tensor *tensor = whit_source_add(source, name, error);
    if (!tensor) return error ? error->status : WHIT_ERROR_FORMAT;
    struct whit_gguf_import *import = &importer->tensors[importer->n_tensors++];
    *import = (struct whit_gguf_import){.view = whit_gguf_view(file), .importer = importer, .file = file};
    tensor->context = import;
    tensor->drop = drop_pages;
    if (rotary && architecture->permuted) {
        tensor->unpermute_head_dim = kind_of_layer.head_dim;
        tensor->unpermute_rope_dim = whit_config_rope(&source->config, kind_of_layer.rope).dims;
    }
    if (row && row->form == WHIT_IMPORT_TAPS) {
        whit_ggml_kind kind = import->view.kind;
        if (file->n_dims != 2 || (kind != WHIT_GGML_F32 && kind != WHIT_GGML_F16 && kind != WHIT_GGML_BF16) ||
            import->view.n_cols > WHIT_CONV_TAPS_MAX || import->view.n_rows > WHIT_MAX_COLS / WHIT_CONV_TAPS_MAX)
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                             "%s: tensor '%s' is not a convolution by channel of at most %d taps, of floats",
                             source->path, name, WHIT_CONV_TAPS_MAX);
        import->form = row->form;
        tensor->type = (whit_tensor_type){
            .codec = WHIT_CODEC_F32, .n_rows = 1, .n_cols = (uint32_t)(import->view.n_rows * import->view.n_cols)};
        tensor->read_row = read_vector;
    } else if (file->n_dims < 2 && !(row && row->rows == WHIT_IMPORT_ROW)) {
        whit_ggml_kind kind = import->view.kind;
        if (kind != WHIT_GGML_F32 && kind != WHIT_GGML_F16 && kind != WHIT_GGML_BF16)
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: vector '%s' is of type %s, but must be of floats",
                             source->path, name, whit_ggml_kind_info(kind)->name);
        if (import->view.n_cols > WHIT_MAX_COLS)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: vector '%s' has more than %u elements, the limit",
                             source->path, name, WHIT_MAX_COLS);
        tensor->type =
            (whit_tensor_type){.codec = WHIT_CODEC_F32, .n_rows = 1, .n_cols = (uint32_t)import->view.n_cols};
        tensor->read_row = read_vector;
    } else {
        WHIT_TRY(matrix_type(architecture, import, tensor, error));
    }
    /* The permutation assumes whole heads, so a number of rows that is not a multiple of the head size is refused
     * here. */
    uint32_t n = file->n_dims < 2 ? tensor->type.n_cols : tensor->type.n_rows;
    if (tensor->unpermute_head_dim && n % tensor->unpermute_head_dim)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: tensor '%s' has %u rows, which is not a multiple of the head size %u", source->path, name,
                         n, tensor->unpermute_head_dim);
    if (row && importer->rotation.groups_heads) {
        WHIT_TRY(whit_import_order_heads(source, tensor, row->order, error));
        /* The heads are tiled in the file and grouped in the model: this is the inverse reordering, with the number of
         * value heads per key head in place of the number of key heads. */
        if (tensor->order_dim) tensor->order_key_heads = tensor->order_heads / tensor->order_key_heads;
    }
    drop_pages(tensor);
    return WHIT_OK;
}

/* Adds our tensors for a tensor of the file: one tensor, or each of the matrices that are fused in it. */
static whit_status add_parts(whit_source *source, struct whit_gguf_importer *importer,
                             const whit_gguf_architecture *architecture, const whit_gguf_tensor *file,
                             const struct found *found, whit_error *error)
{
    const size_t number = (size_t)(file - importer->gguf->tensors);
    if (!found->row) return add_tensor(source, importer, architecture, file, found->ours, NULL, found, error);
    for (const whit_import_name *row = found->row; row; row = whit_import_next_name(row)) {
        char name[WHIT_VALUE_NAME_BYTES];
        if (whit_import_is_unused(&source->config, found->layer, row->ours)) continue;
        canonical_name(row, found->layer, name);
        WHIT_TRY(add_tensor(source, importer, architecture, file, name, row, found, error));
        WHIT_TRY(whit_import_split(source, &source->tensors[source->n_tensors - 1], found->layer, row->rows, error));
        WHIT_TRY(whit_import_gguf_rotate(source, importer, number, &source->tensors[source->n_tensors - 1], error));
    }
    return WHIT_OK;
}

/* Returns whether a tensor is the scale of a matrix, and sets *matrix to that matrix. Older BitNet files and NVFP4
 * files store the scale of matrix "blk.0.attn_q.weight", by which products are multiplied, in "blk.0.attn_q.scale".
 * `end` is ".scale" or ".input_scale". */
static bool is_scale(const whit_gguf_architecture *architecture, const whit_gguf_tensor *tensor, const char *end,
                     struct found *matrix)
{
    char name[128];
    size_t n = tensor->name_bytes, m = strlen(end);
    if (n <= m || n + 8 > sizeof name || memcmp(tensor->name + n - m, end, m) != 0) return false;
    /* A tensor that has a name of its own in the tables is not a scale. */
    if (find_tensor(architecture, tensor, false, matrix)) return false;
    snprintf(name, sizeof name, "%.*s.weight", (int)(n - m), tensor->name);
    whit_gguf_tensor weight = {.name = name, .name_bytes = strlen(name)};
    return find_tensor(architecture, &weight, false, matrix) && is_projection(matrix->ours);
}

static whit_status fold_scale(whit_source *source, const whit_gguf_tensor *file, const char *name, whit_error *error)
{
    whit_source_tensor *tensor = (whit_source_tensor *)whit_source_find(source, name);
    whit_ggml_view view = whit_gguf_view(file);
    float scale = 0;
    if (!tensor || view.n_cols != 1 || view.n_rows != 1 || view.kind != WHIT_GGML_F32)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: tensor '%.*s' is a scale, but no matrix of the model has it",
                         source->path, (int)(file->name_bytes < 80 ? file->name_bytes : 80), file->name);
    whit_ggml_row_f32(&view, 0, &scale);
    if (scale == 1) return WHIT_OK;
    bool factor = tensor->type.scale_kind == WHIT_SCALE_TENSOR || tensor->type.scale_type == WHIT_SCALE_E4;
    if (!factor)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: tensor '%.*s' is a second scale of a matrix, and only one is supported", source->path,
                         (int)(file->name_bytes < 80 ? file->name_bytes : 80), file->name);
    tensor->type.scale *= scale;
    return WHIT_OK;
}

static bool same_data(const whit_gguf_tensor *a, const whit_gguf_tensor *b)
{
    return a->kind == b->kind && a->dims[0] == b->dims[0] && a->dims[1] == b->dims[1] &&
        a->size_bytes == b->size_bytes && memcmp(a->data, b->data, a->size_bytes) == 0;
}

/* Returns whether the file says that its last blocks predict further tokens (multi-token prediction). */
static bool predicts(const whit_gguf *gguf, const whit_gguf_architecture *architecture)
{
    char name[128];
    snprintf(name, sizeof name, "%s.nextn_predict_layers", architecture->name);
    return whit_gguf_find(gguf, name) != NULL;
}

whit_status whit_import_gguf_tensors(whit_source *source, struct whit_gguf_importer *importer,
                                     const whit_gguf_architecture *architecture, whit_error *error)
{
    const whit_gguf *gguf = importer->gguf;
    /* A fused tensor becomes at most three tensors; one more tensor is for RoPE factors, and WHIT_GGUF_SIGN_WIDTHS_MAX
     * are for signs. */
    importer->capacity = 3 * gguf->n_tensors + 1 + WHIT_GGUF_SIGN_WIDTHS_MAX;
    importer->tensors = whit_zalloc_array(source->allocator, importer->capacity, sizeof *importer->tensors);
    if (!importer->tensors)
        return whit_fail_memory(error, "reading the model", importer->capacity * sizeof *importer->tensors);
    const whit_gguf_tensor *embed = whit_gguf_find_tensor(gguf, "token_embd.weight");
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        const whit_gguf_tensor *file = &gguf->tensors[i];
        struct found found;
        /* A scale is applied below, after its matrix has been added. */
        if (is_scale(architecture, file, ".scale", &found)) continue;
        /* input scales belong to activations, and are ignored */
        if (is_scale(architecture, file, ".input_scale", &found)) continue;
        if (!find_tensor(architecture, file, source->config.program, &found))
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                             "%s: tensor '%.*s' is not known in architecture '%s', so the result would be wrong",
                             source->path, (int)(file->name_bytes < 80 ? file->name_bytes : 80), file->name,
                             architecture->name);
        if (found.row && !found.row->ours) continue;
        /* Blocks after the last layer predict further tokens; the first of them is imported if there is a draft
         * layer. */
        const uint32_t n_used = source->config.n_layers + source->config.n_draft_layers;
        if (found.layer != UINT32_MAX && found.layer >= n_used && predicts(gguf, architecture)) continue;
        if (strcmp(found.ours, "head") == 0 && same_data(file, embed) && !importer->rotation.is_rotated) {
            source->config.tied_head = true; /* some files store a second copy of the embedding as the head */
            continue;
        }
        WHIT_TRY(add_parts(source, importer, architecture, file, &found, error));
    }
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        struct found found;
        if (!is_scale(architecture, &gguf->tensors[i], ".scale", &found)) continue;
        for (const whit_import_name *row = found.row; row; row = whit_import_next_name(row)) {
            canonical_name(row, found.layer, found.ours);
            WHIT_TRY(fold_scale(source, &gguf->tensors[i], found.ours, error));
        }
    }
    return whit_import_gguf_signs(source, importer, error);
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

whit_status whit_import_gguf_vector(whit_source *source, struct whit_gguf_importer *importer, const char *name,
                                    const float *values, uint32_t n, whit_error *error)
{
    WHIT_TRY(whit_import_gguf_constant(source, importer, name, n, 0, error));
    importer->tensors[importer->n_tensors - 1].values = values;
    return WHIT_OK;
}
