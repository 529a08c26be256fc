/* SPDX-License-Identifier: MIT
 * Every tensor is encoded twice: once to find the type that holds it, once into the file. */
#include "model/export_gguf.h"

#include "format/ggml_encode.h"
#include "model/import_gguf.h"
#include "quant/requantise.h"

#include <stdio.h>

/* How one tensor is exported. */
struct target {
    const whit_source_tensor *from;
    char name[96];
    whit_ggml_kind kind;
    bool is_vector, permuted;
    bool split_scale; /* stored with scale 1, and the scale in a separate tensor */
    uint64_t row_bytes;
};

struct export
{
    const whit_source *source;
    const whit_export_options *options;
    const char *architecture;
    struct target *targets;
    uint32_t n;
    int8_t *codes; /* one row, in its own element type */
    float *fields, *values;
    uint8_t *bytes, *encoded;
    size_t max_cols;
    whit_error *error;
};

static const struct kind_name {
    const char *name;
    whit_ggml_kind kind;
} kind_names[] = {
    {"tq1_0", WHIT_GGML_TQ1_0},     {"tq2_0", WHIT_GGML_TQ2_0}, {"q2_0", WHIT_GGML_Q2_0},
    {"q1_0", WHIT_GGML_Q1_0},       {"q8_0", WHIT_GGML_Q8_0},   {"q4_0", WHIT_GGML_Q4_0},
    {"q2_k", WHIT_GGML_Q2_K},       {"q3_k", WHIT_GGML_Q3_K},   {"q4_k", WHIT_GGML_Q4_K},
    {"q5_k", WHIT_GGML_Q5_K},       {"iq2_s", WHIT_GGML_IQ2_S}, {"iq2_xs", WHIT_GGML_IQ2_XS},
    {"iq2_xxs", WHIT_GGML_IQ2_XXS}, {"q6_k", WHIT_GGML_Q6_K},   {"iq4_nl", WHIT_GGML_IQ4_NL},
    {"iq4_xs", WHIT_GGML_IQ4_XS},   {"f16", WHIT_GGML_F16},     {"bf16", WHIT_GGML_BF16},
    {"f32", WHIT_GGML_F32},
};

static bool parse_kind(const char *name, whit_ggml_kind *kind)
{
    for (size_t i = 0; i < sizeof kind_names / sizeof *kind_names; i++)
        if (strcmp(kind_names[i].name, name) == 0) {
            *kind = kind_names[i].kind;
            return true;
        }
    return false;
}

static bool is_float_kind(whit_ggml_kind kind)
{
    return kind == WHIT_GGML_F32 || kind == WHIT_GGML_F16 || kind == WHIT_GGML_BF16;
}

/* Returns the canonical row stored at row `row` of the file: the inverse of whit_source_row. */
static uint32_t our_row(const struct export *e, const struct target *target, uint32_t row)
{
    const whit_config *c = &e->source->config;
    uint32_t in_head = row % c->head_dim;
    if (!target->permuted || in_head >= c->rope_dim) return row;
    return row - in_head + in_head / 2 + (in_head % 2) * (c->rope_dim / 2);
}

/* Encodes row `row` of the file into e->encoded; false if the kind cannot hold it. */
static whit_status encode_row(struct export *e, const struct target *target, uint32_t row, bool *fits)
{
    const whit_tensor_type *type = &target->from->type;
    whit_rows rows = {.elems = e->codes, .fields = e->fields, .fields_u8 = e->bytes};
    WHIT_TRY(target->from->read_row(target->from, our_row(e, target, row), &rows, e->error));
    if (is_float_kind(target->kind)) {
        whit_requantise_values(type, &rows, e->values);
        for (uint32_t k = 0; target->is_vector && target->permuted && k < type->n_cols; k++)
            ((float *)(void *)e->codes)[k] = e->values[our_row(e, target, k)];
        const float *values = target->is_vector && target->permuted ? (const float *)(void *)e->codes : e->values;
        *fits = whit_ggml_encode_floats(target->kind, type->n_cols, values, e->encoded);
        return WHIT_OK;
    }
    whit_ggml_kind own;
    if (whit_ggml_native_kind(type, &own) && own == target->kind) {
        *fits = whit_ggml_encode_native(own, type->n_cols, &rows, e->encoded);
        return WHIT_OK;
    }
    whit_geometry g = whit_codec_geometry(type);
    float one = 1;
    const float *scales;
    if (target->split_scale)
        scales = &one;
    else if (type->scale_kind == WHIT_SCALE_TENSOR)
        scales = &type->scale;
    else
        scales = e->fields;
    *fits = !type->has_offset &&
        whit_ggml_encode_codes(target->kind, type->n_cols, e->codes, scales,
                               type->scale_kind == WHIT_SCALE_GROUP ? g.group_cols : type->n_cols, e->encoded);
    return WHIT_OK;
}

static whit_status holds(struct export *e, struct target *target, whit_ggml_kind kind, bool *fits)
{
    target->kind = kind;
    uint64_t bytes;
    *fits = whit_ggml_size(kind, target->from->type.n_cols, 1, &bytes);
    if (!*fits) return WHIT_OK;
    target->row_bytes = bytes;
    for (uint32_t row = 0; *fits && row < target->from->type.n_rows; row++) WHIT_TRY(encode_row(e, target, row, fits));
    if (target->from->drop) target->from->drop(target->from);
    return WHIT_OK;
}

/* The first of the kinds that holds the tensor; of layers in BitNet architectures with its scale apart too. */
static whit_status choose_kind(struct export *e, struct target *target, const whit_ggml_kind *kinds, size_t n)
{
    const whit_tensor_type *type = &target->from->type;
    bool fits = false, splits = strncmp(e->architecture, "bitnet", 6) == 0 && strncmp(target->name, "blk.", 4) == 0;
    for (size_t i = 0; i < n && !fits; i++) {
        target->split_scale = false;
        WHIT_TRY(holds(e, target, kinds[i], &fits));
        if (fits || !splits || type->scale_kind != WHIT_SCALE_TENSOR || is_float_kind(kinds[i])) continue;
        target->split_scale = true;
        WHIT_TRY(holds(e, target, kinds[i], &fits));
    }
    if (fits) return WHIT_OK;
    char tried[64] = "";
    for (size_t i = 0; i < n; i++)
        snprintf(tried + strlen(tried), sizeof tried - strlen(tried), "%s%s", i ? ", " : "",
                 whit_ggml_kind_info(kinds[i])->name);
    return whit_fail(e->error, WHIT_ERROR_UNSUPPORTED,
                     "%s: tensor '%s' (%s, %u x %u) fits none of %s exactly: their blocks need full columns, codes in "
                     "range and float16 scales",
                     e->source->path, target->from->name, whit_codec_find(type->codec)->name, type->n_rows,
                     type->n_cols, tried);
}

static whit_status choose_type(struct export *e, struct target *target)
{
    static const whit_ggml_kind ternary[] = {WHIT_GGML_TQ2_0, WHIT_GGML_TQ1_0, WHIT_GGML_Q2_0,
                                             WHIT_GGML_Q8_0,  WHIT_GGML_F16,   WHIT_GGML_F32};
    static const whit_ggml_kind signs[] = {WHIT_GGML_Q1_0, WHIT_GGML_Q8_0, WHIT_GGML_F16, WHIT_GGML_F32};
    static const whit_ggml_kind floats[] = {WHIT_GGML_F16, WHIT_GGML_F32};
    static const whit_ggml_kind codes[] = {WHIT_GGML_Q4_0, WHIT_GGML_Q8_0, WHIT_GGML_F16, WHIT_GGML_F32};
    const whit_tensor_type *type = &target->from->type;
    whit_ggml_kind asked;
    if (type->codec == WHIT_CODEC_Q2 || type->scale_type == WHIT_SCALE_U8)
        return whit_fail(
            e->error, WHIT_ERROR_UNSUPPORTED,
            "%s: tensor '%s': GGUF has no type for %s with these scales; name a type to round it to, as q2_k",
            e->source->path, target->from->name, whit_codec_find(type->codec)->name);
    if (target->is_vector) return choose_kind(e, target, &(whit_ggml_kind){WHIT_GGML_F32}, 1);
    whit_ggml_kind own[3] = {WHIT_GGML_F32, WHIT_GGML_F16, WHIT_GGML_F32};
    if (!e->options->coded && whit_ggml_native_kind(type, &own[0])) return choose_kind(e, target, own, 3);
    if (type->scale_type > WHIT_SCALE_U8) return choose_kind(e, target, floats, 2);
    if (whit_codec_find(type->codec)->is_float) {
        if (type->codec == WHIT_CODEC_F32)
            asked = WHIT_GGML_F32;
        else if (type->codec == WHIT_CODEC_F16)
            asked = WHIT_GGML_F16;
        else
            asked = WHIT_GGML_BF16;
        if (e->options->floats) parse_kind(e->options->floats, &asked);
        return choose_kind(e, target, &asked, 1);
    }
    if (e->options->coded && parse_kind(e->options->coded, &asked)) {
        const whit_ggml_kind kinds[] = {asked, WHIT_GGML_Q8_0, WHIT_GGML_F16, WHIT_GGML_F32};
        bool is_layer = strncmp(target->name, "blk.", 4) == 0; /* embedding and head may have another type */
        return choose_kind(e, target, kinds, is_layer ? 1 : sizeof kinds / sizeof *kinds);
    }
    /* Other programs infer int8 activations per token from the architecture alone. */
    if (type->act == WHIT_TENSOR_ACT_FIXED)
        return whit_fail(
            e->error, WHIT_ERROR_UNSUPPORTED,
            "%s: tensor '%s' has fixed scales of its inputs and outputs, which GGUF files cannot say; name "
            "a type to export the weights alone",
            e->source->path, target->from->name);
    if (type->act == WHIT_TENSOR_ACT_TOKEN && strncmp(e->architecture, "bitnet", 6) != 0)
        return whit_fail(
            e->error, WHIT_ERROR_UNSUPPORTED,
            "%s: tensor '%s' is W1.58A8, which a GGUF file of architecture %s cannot say in a type that is "
            "written here; name a type to export the weights alone",
            e->source->path, target->from->name, e->architecture);
    if (type->codec == WHIT_CODEC_T2 || type->codec == WHIT_CODEC_T5)
        return choose_kind(e, target, ternary, sizeof ternary / sizeof *ternary);
    if (type->codec == WHIT_CODEC_B1) return choose_kind(e, target, signs, sizeof signs / sizeof *signs);
    return choose_kind(e, target, codes, sizeof codes / sizeof *codes);
}

/* ---- the head of the file ------------------------------------------------------------------- */

static const char *architecture_of(const whit_config *c)
{
    if (strcmp(c->family, "bitnet") == 0) return c->gate == WHIT_GATE_RELU2 ? "bitnet-b1.58" : "bitnet";
    return c->family;
}

static void put_u32(whit_gguf_writer *writer, const struct export *e, const char *suffix, uint32_t value)
{
    char name[128];
    snprintf(name, sizeof name, "%s.%s", e->architecture, suffix);
    whit_gguf_put_u32(writer, name, value);
}

static void put_f32(whit_gguf_writer *writer, const struct export *e, const char *suffix, double value)
{
    char name[128];
    snprintf(name, sizeof name, "%s.%s", e->architecture, suffix);
    whit_gguf_put_f32(writer, name, (float)value);
}

static void put_config(whit_gguf_writer *writer, const struct export *e)
{
    const whit_config *c = &e->source->config;
    const char *path = e->options->name ? e->options->name : e->source->path;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    whit_gguf_put_string(writer, "general.architecture", e->architecture, strlen(e->architecture));
    whit_gguf_put_string(writer, "general.name", name, strlen(name));
    put_u32(writer, e, "vocab_size", c->n_vocab);
    put_u32(writer, e, "context_length", c->n_ctx);
    put_u32(writer, e, "embedding_length", c->n_embd);
    put_u32(writer, e, "block_count", c->n_layers);
    put_u32(writer, e, "feed_forward_length", c->n_ff);
    put_u32(writer, e, "attention.head_count", c->n_heads);
    put_u32(writer, e, "attention.head_count_kv", c->n_kv_heads);
    put_u32(writer, e, "attention.key_length", c->head_dim);
    put_u32(writer, e, "attention.value_length", c->head_dim);
    put_u32(writer, e, "rope.dimension_count", c->rope_dim);
    if (c->window) put_u32(writer, e, "attention.sliding_window", c->window);
    put_f32(writer, e, "attention.layer_norm_rms_epsilon", c->norm_eps);
    put_f32(writer, e, "rope.freq_base", c->rope_theta);
}

static whit_status put_templates(whit_gguf_writer *writer, const struct export *e)
{
    whit_buf bytes = {.allocator = e->source->allocator};
    whit_table table;
    whit_status status = whit_table_build(&e->source->templates, &bytes, e->error);
    if (status == WHIT_OK) status = whit_table_open(bytes.data, bytes.size_bytes, e->source->path, &table, e->error);
    for (uint32_t i = 0; status == WHIT_OK && i < whit_table_count(&table); i++) {
        whit_value text;
        char key[128] = "tokenizer.chat_template";
        const char *name = whit_table_at(&table, i, &text);
        if (strcmp(name, "default") != 0) snprintf(key, sizeof key, "tokenizer.chat_template.%s", name);
        whit_gguf_put_string(writer, key, text.string, text.count);
    }
    whit_buf_free(&bytes);
    return status;
}

static whit_status put_tokenizer(whit_gguf_writer *writer, const struct export *e)
{
    const whit_buf *image = &e->source->tokenizer;
    whit_tokenizer_view view;
    if (!image->size_bytes || e->options->no_tokenizer) {
        whit_gguf_put_string(writer, "tokenizer.ggml.model", "no_vocab", 8);
        return WHIT_OK;
    }
    WHIT_TRY(whit_tokenizer_check(image->data, image->size_bytes, &view, e->error));
    return whit_export_gguf_tokenizer(&view, e->source->path, writer, e->source->allocator, e->error);
}

/* "blk.0.attn_q.weight" to "blk.0.attn_q.scale" */
static void scale_name(const char *name, char out[96])
{
    snprintf(out, 96, "%.*s.scale", (int)(strlen(name) - strlen(".weight")), name);
}

static void put_tensors(whit_gguf_writer *writer, const struct export *e)
{
    for (uint32_t i = 0; i < e->n; i++) {
        const struct target *t = &e->targets[i];
        const whit_tensor_type *type = &t->from->type;
        uint64_t dims[2] = {type->n_cols, type->n_rows};
        whit_gguf_put_tensor(writer, t->name, whit_ggml_kind_info(t->kind)->id, t->is_vector ? 1 : 2, dims,
                             t->row_bytes * type->n_rows);
        if (!t->split_scale) continue;
        char name[96];
        scale_name(t->name, name);
        whit_gguf_put_tensor(writer, name, whit_ggml_kind_info(WHIT_GGML_F32)->id, 1, &(uint64_t){1}, 4);
    }
}

/* ---- the whole ------------------------------------------------------------------------------ */

static whit_status write_data(whit_gguf_writer *writer, struct export *e)
{
    for (uint32_t i = 0; i < e->n; i++) {
        const struct target *t = &e->targets[i];
        bool fits;
        for (uint32_t row = 0; row < t->from->type.n_rows; row++) {
            WHIT_TRY(encode_row(e, t, row, &fits));
            WHIT_TRY(whit_gguf_write_data(writer, e->encoded, t->row_bytes, e->error));
        }
        if (t->split_scale) WHIT_TRY(whit_gguf_write_data(writer, &t->from->type.scale, 4, e->error));
        if (t->from->drop) t->from->drop(t->from);
        if (e->options->progress && !e->options->progress(e->options->user, "exporting", (double)(i + 1) / e->n))
            return whit_fail(e->error, WHIT_ERROR_CANCELLED, "%s: export cancelled", e->source->path);
    }
    return WHIT_OK;
}

static whit_status find_targets(struct export *e)
{
    const whit_source *source = e->source;
    bool llama = strcmp(e->architecture, "llama") == 0;
    for (uint32_t i = 0; i < source->n_tensors; i++) {
        struct target *t = &e->targets[e->n];
        *t = (struct target){.from = &source->tensors[i]};
        bool rotary;
        if (!whit_gguf_tensor_name(t->from->name, t->name, &rotary))
            return whit_fail(e->error, WHIT_ERROR_UNSUPPORTED, "%s: tensor '%s' has no name in GGUF", source->path,
                             t->from->name);
        t->permuted = rotary && llama;
        t->is_vector = t->from->type.layout == WHIT_LAYOUT_PLAIN;
        WHIT_TRY(choose_type(e, t));
        e->n++;
    }
    return WHIT_OK;
}

static whit_status check_options(const whit_export_options *options, whit_error *error)
{
    whit_ggml_kind kind;
    if (options->coded && !parse_kind(options->coded, &kind))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "type '%s' is none of tq1_0 tq2_0 q2_0 q1_0 q8_0 q4_0 q2_k q3_k q4_k q5_k q6_k iq2_xxs iq2_xs "
                         "iq2_s iq4_nl iq4_xs f16 bf16 f32",
                         options->coded);
    if (options->floats && (!parse_kind(options->floats, &kind) || !is_float_kind(kind)))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "'%s' is not a float type: f16, bf16 or f32", options->floats);
    return WHIT_OK;
}

whit_status whit_export_gguf(const whit_source *source, const whit_export_options *options, const char *path,
                             whit_error *error)
{
    WHIT_TRY(check_options(options, error));
    if (whit_config_is_extended(&source->config))
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: only models of the families llama, qwen2, qwen3 and bitnet can be exported to GGUF yet",
                         source->path);
    if (source->config.program)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: GGUF has no place for the program that states what this model computes", source->path);
    if (strcmp(source->config.family, "bitnet") != 0 && source->config.gate != WHIT_GATE_SILU)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: its gates are not SiLU, which is what a GGUF file of architecture %s means", source->path,
                         source->config.family);
    const whit_allocator *a = source->allocator;
    struct export e = {
        .source = source, .options = options, .architecture = architecture_of(&source->config), .error = error};
    for (uint32_t i = 0; i < source->n_tensors; i++)
        if (source->tensors[i].type.n_cols > e.max_cols) e.max_cols = source->tensors[i].type.n_cols;
    size_t n_tensors = source->n_tensors, row_bytes = (e.max_cols + 256) * 4; /* no row of any type is longer */
    e.targets = whit_zalloc_array(a, n_tensors, sizeof *e.targets);
    e.codes = whit_zalloc(a, row_bytes);
    e.fields = whit_zalloc(a, row_bytes);
    e.bytes = whit_zalloc(a, row_bytes);
    e.values = whit_zalloc(a, row_bytes);
    e.encoded = whit_zalloc(a, row_bytes);
    whit_gguf_writer writer;
    whit_writer file = {0};
    whit_gguf_writer_init(&writer, WHIT_GGUF_ALIGNMENT_BYTES, a);
    whit_status status = e.targets && e.codes && e.fields && e.bytes && e.values && e.encoded
        ? WHIT_OK
        : whit_fail_memory(error, "the export", row_bytes);
    if (status == WHIT_OK) status = find_targets(&e);
    if (status == WHIT_OK) {
        put_config(&writer, &e);
        status = put_tokenizer(&writer, &e);
    }
    if (status == WHIT_OK) status = put_templates(&writer, &e);
    if (status == WHIT_OK) {
        put_tensors(&writer, &e);
        status = whit_writer_open(path, a, &file, error);
    }
    if (status == WHIT_OK) status = whit_gguf_write_head(&writer, &file, error);
    if (status == WHIT_OK) status = write_data(&writer, &e);
    if (status == WHIT_OK) status = whit_gguf_write_end(&writer, error);
    if (status == WHIT_OK) status = whit_writer_commit(&file, error);
    whit_writer_discard(&file);
    whit_gguf_writer_close(&writer);
    whit_free(a, e.targets, n_tensors * sizeof *e.targets);
    whit_free(a, e.codes, row_bytes);
    whit_free(a, e.fields, row_bytes);
    whit_free(a, e.bytes, row_bytes);
    whit_free(a, e.values, row_bytes);
    whit_free(a, e.encoded, row_bytes);
    return status;
}
