/* SPDX-License-Identifier: MIT
 * Writes a source as a GGUF file. Every tensor is encoded twice: once to find the type that stores it exactly, and once
 * into the file. */
#include "model/export_gguf.h"

#include "format/ggml_encode.h"
#include "model/import_gguf.h"
#include "quant/requantise.h"

#include <stdio.h>
#include <strings.h>

#define PARTS_MAX 3

/* Describes one of our matrices that is a part of a tensor in the file. */
struct part {
    const whit_source_tensor *from;
    /* (n_sections) rows of the file's tensor that contain this matrix, in order; n_sections 0: all rows */
    whit_source_section sections[WHIT_SOURCE_SECTIONS_MAX];
    uint32_t n_sections;
};

/* Describes one tensor of the file and where its data comes from. */
struct target {
    const whit_source_tensor *from; /* our tensor that is the first part */
    struct part parts[PARTS_MAX];
    uint32_t n_parts, n_rows; /* n_rows: number of rows in the file's tensor */
    /* convolution: number of taps, which the file orders by channel and our format by tap; 0: not a convolution */
    uint32_t n_taps;
    /* number of stacked matrices of experts, which are a separate dimension in the file; 0: not stacked */
    uint32_t n_experts;
    bool is_float; /* stored as F32, because other programs read no other type for this tensor */
    char name[96];
    whit_ggml_kind kind;
    bool is_vector, permuted;
    bool split_scale; /* stored with scale 1; the tensor's scale is stored in a separate tensor */
    uint64_t row_bytes;
};

struct export
{
    const whit_source *source;
    const whit_export_options *options;
    const char *architecture;
    const whit_gguf_architecture *table;
    struct target *targets;
    uint32_t n;
    int8_t *codes; /* buffer for one row: codes, or floats of the type's size */
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
        if (strcasecmp(kind_names[i].name, name) == 0) { /* the case is ignored, because other programs write Q2_K in
                                                          * capitals */
            *kind = kind_names[i].kind;
            return true;
        }
    return false;
}

const char *whit_export_closest(uint8_t codec)
{
    switch (codec) {
    case WHIT_CODEC_T2:
    case WHIT_CODEC_T5:
    case WHIT_CODEC_B1: return "q2_0";
    case WHIT_CODEC_Q2:
    case WHIT_CODEC_L2: return "q2_k";
    default: return NULL;
    }
}

static bool is_float_kind(whit_ggml_kind kind)
{
    return kind == WHIT_GGML_F32 || kind == WHIT_GGML_F16 || kind == WHIT_GGML_BF16;
}

/* Returns our row that is stored as row `row` of the file, as far as the order of RoPE pairs determines it (the inverse
 * of this part of whit_source_row). */
static uint32_t our_row(const struct export *e, const struct target *target, uint32_t row)
{
    const whit_config *c = &e->source->config;
    uint32_t in_head = row % c->head_dim;
    if (!target->permuted || in_head >= c->rope_dim) return row;
    return row - in_head + in_head / 2 + (in_head % 2) * (c->rope_dim / 2);
}

/* Returns the part that contains row `row` of the file's tensor; sets *found to the index of that row in the part. */
static const struct part *find_part(const struct target *target, uint32_t row, uint32_t *found)
{
    *found = row;
    for (uint32_t i = 0; i < target->n_parts; i++) {
        const struct part *part = &target->parts[i];
        uint32_t before = 0;
        if (!part->n_sections) return part;
        for (uint32_t k = 0; k < part->n_sections; before += part->sections[k++].n) {
            const whit_source_section *s = &part->sections[k];
            const uint32_t at = row - s->begin, ours = s->run ? at / s->stride * s->run + at % s->stride : at;
            if (row < s->begin || ours >= s->n || (s->run && at % s->stride >= s->run)) continue;
            *found = before + ours;
            return part;
        }
    }
    return &target->parts[0];
}

/* Reorders the weights of a convolution: `values` are ordered by tap, `out` by channel. */
static void order_by_channel(const float *values, uint32_t n, uint32_t n_taps, float *out)
{
    const uint32_t n_channels = n / n_taps;
    for (uint32_t c = 0; c < n_channels; c++)
        for (uint32_t j = 0; j < n_taps; j++) out[c * n_taps + j] = values[j * n_channels + c];
}

/* Encodes row `row` of the file into e->encoded; sets *fits to false if the kind cannot represent it. */
static whit_status encode_row(struct export *e, const struct target *target, uint32_t row, bool *fits)
{
    uint32_t in_part;
    const struct part *part = find_part(target, our_row(e, target, row), &in_part);
    const whit_tensor_type *type = &part->from->type;
    whit_rows rows = {.elems = e->codes, .fields = e->fields, .fields_u8 = e->bytes};
    WHIT_TRY(part->from->read_row(part->from, in_part, &rows, e->error));
    if (is_float_kind(target->kind)) {
        whit_requantise_values(type, &rows, e->values);
        for (uint32_t k = 0; target->is_vector && target->permuted && k < type->n_cols; k++)
            ((float *)(void *)e->codes)[k] = e->values[our_row(e, target, k)];
        if (target->n_taps) order_by_channel(e->values, type->n_cols, target->n_taps, (float *)(void *)e->codes);
        const bool is_ordered = target->n_taps || (target->is_vector && target->permuted);
        const float *values = is_ordered ? (const float *)(void *)e->codes : e->values;
        *fits = whit_ggml_encode_floats(target->kind, type->n_cols, values, e->encoded);
        return WHIT_OK;
    }
    whit_ggml_kind own;
    if (whit_ggml_native_kind(type, &own) && own == target->kind) {
        *fits = whit_ggml_encode_native(own, type->n_cols, &rows, e->encoded);
        return WHIT_OK;
    }
    *fits = false;
    /* The encoder expects group scales; the fields of types beyond WHIT_SCALE_U8 are not group scales. */
    if (type->scale_type > WHIT_SCALE_U8) return WHIT_OK;
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

static void drop_parts(const struct target *target)
{
    for (uint32_t i = 0; i < target->n_parts; i++)
        if (target->parts[i].from->drop) target->parts[i].from->drop(target->parts[i].from);
}

static whit_status holds(struct export *e, struct target *target, whit_ggml_kind kind, bool *fits)
{
    target->kind = kind;
    uint64_t bytes;
    *fits = whit_ggml_size(kind, target->from->type.n_cols, 1, &bytes);
    if (!*fits) return WHIT_OK;
    target->row_bytes = bytes;
    for (uint32_t row = 0; *fits && row < target->n_rows; row++) WHIT_TRY(encode_row(e, target, row, fits));
    drop_parts(target);
    return WHIT_OK;
}

/* Chooses the first of the kinds that can store the tensor exactly. Layers of BitNet architectures may store the scale
 * in a separate tensor. */
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
    /* embedding and head may have other types than the layers */
    const bool is_layer = strncmp(target->name, "blk.", 4) == 0;
    const bool is_unnamed_l2 =
        type->codec == WHIT_CODEC_L2 && !e->options->coded; /* F32 could store these codes exactly, but in ten times the
                                                             * size */
    const char *closest = whit_export_closest(type->codec);
    if (type->codec == WHIT_CODEC_Q2 || is_unnamed_l2 || type->scale_type == WHIT_SCALE_U8)
        return whit_fail(
            e->error, WHIT_ERROR_UNSUPPORTED,
            "%s: tensor '%s': GGUF has no type for %s with these scales; name a type to round it to, as %s",
            e->source->path, target->from->name, whit_codec_find(type->codec)->name, closest ? closest : "q8_0");
    if (target->is_vector || target->is_float) return choose_kind(e, target, &(whit_ggml_kind){WHIT_GGML_F32}, 1);
    whit_ggml_kind own[3] = {WHIT_GGML_F32, WHIT_GGML_F16, WHIT_GGML_F32};
    if (!e->options->coded && whit_ggml_native_kind(type, &own[0])) return choose_kind(e, target, own, 3);
    if (type->scale_type > WHIT_SCALE_U8 && e->options->coded && is_layer && parse_kind(e->options->coded, &asked))
        return choose_kind(e, target, &asked, 1);
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
        return choose_kind(e, target, kinds, is_layer ? 1 : sizeof kinds / sizeof *kinds);
    }
    /* Other programs derive int8 activations per token from the architecture alone. */
    if (type->act == WHIT_TENSOR_ACT_FIXED)
        return whit_fail(e->error, WHIT_ERROR_UNSUPPORTED,
                         "%s: tensor '%s' has fixed scales of its inputs and outputs, which GGUF cannot store; name "
                         "a type to export the weights alone",
                         e->source->path, target->from->name);
    if (type->act == WHIT_TENSOR_ACT_TOKEN && strncmp(e->architecture, "bitnet", 6) != 0)
        return whit_fail(e->error, WHIT_ERROR_UNSUPPORTED,
                         "%s: tensor '%s' is W1.58A8, which no GGUF type that whit writes can store for architecture "
                         "%s; name a type to export the weights alone",
                         e->source->path, target->from->name, e->architecture);
    if (type->codec == WHIT_CODEC_T2 || type->codec == WHIT_CODEC_T5)
        return choose_kind(e, target, ternary, sizeof ternary / sizeof *ternary);
    if (type->codec == WHIT_CODEC_B1) return choose_kind(e, target, signs, sizeof signs / sizeof *signs);
    return choose_kind(e, target, codes, sizeof codes / sizeof *codes);
}

/* ---- the head of the file ------------------------------------------------------------------- */

static void put_config(whit_gguf_writer *writer, const struct export *e)
{
    const char *path = e->options->name ? e->options->name : e->source->path;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    whit_gguf_put_string(writer, "general.architecture", e->architecture, strlen(e->architecture));
    whit_gguf_put_string(writer, "general.name", name, strlen(name));
    whit_export_put_config(writer, e->architecture, &e->source->config);
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

/* Converts a tensor name such as "blk.0.attn_q.weight" to "blk.0.attn_q.scale". */
static void scale_name(const char *name, char out[96])
{
    snprintf(out, 96, "%.*s.scale", (int)(strlen(name) - strlen(".weight")), name);
}

static void put_tensors(whit_gguf_writer *writer, const struct export *e)
{
    for (uint32_t i = 0; i < e->n; i++) {
        const struct target *t = &e->targets[i];
        const whit_tensor_type *type = &t->from->type;
        const uint32_t n_matrices = t->n_experts ? t->n_experts : 1;
        uint64_t dims[3] = {type->n_cols, t->n_rows / n_matrices, n_matrices};
        uint32_t n_dims = t->n_experts ? 3 : 2;
        if (t->is_vector) n_dims = 1;
        if (t->n_taps) {
            dims[0] = t->n_taps;
            dims[1] = type->n_cols / t->n_taps;
            n_dims = 2;
        }
        whit_gguf_put_tensor(writer, t->name, whit_ggml_kind_info(t->kind)->id, n_dims, dims, t->row_bytes * t->n_rows);
        if (!t->split_scale) continue;
        char name[96];
        scale_name(t->name, name);
        whit_gguf_put_tensor(writer, name, whit_ggml_kind_info(WHIT_GGML_F32)->id, 1, &(uint64_t){1}, 4);
    }
}

/* ---- tensors and the whole file ------------------------------------------------------------- */

static whit_status write_data(whit_gguf_writer *writer, struct export *e)
{
    for (uint32_t i = 0; i < e->n; i++) {
        const struct target *t = &e->targets[i];
        bool fits;
        for (uint32_t row = 0; row < t->n_rows; row++) {
            WHIT_TRY(encode_row(e, t, row, &fits));
            WHIT_TRY(whit_gguf_write_data(writer, e->encoded, t->row_bytes, e->error));
        }
        if (t->split_scale) WHIT_TRY(whit_gguf_write_data(writer, &t->from->type.scale, 4, e->error));
        drop_parts(t);
        if (e->options->progress && !e->options->progress(e->options->user, "exporting", (double)(i + 1) / e->n))
            return whit_fail(e->error, WHIT_ERROR_CANCELLED, "%s: export cancelled", e->source->path);
    }
    return WHIT_OK;
}

static bool equal_types(const whit_tensor_type *a, const whit_tensor_type *b)
{
    return a->codec == b->codec && a->scale_kind == b->scale_kind && a->scale_type == b->scale_type &&
        a->has_offset == b->has_offset && a->act == b->act && a->group == b->group && a->n_cols == b->n_cols;
}

/* Finds the parts of a fused matrix of the file. `row` is the first of its rows in the architecture's table of
 * names. */
static whit_status find_parts(struct export *e, struct target *t, const whit_import_name *row, uint32_t layer)
{
    for (; row; row = whit_import_next_name(row)) {
        char name[WHIT_VALUE_NAME_BYTES];
        snprintf(name, sizeof name, "layers.%u.%s", layer, row->ours);
        const whit_source_tensor *from = whit_source_find(e->source, name);
        if (!from || t->n_parts == PARTS_MAX || !equal_types(&from->type, &t->from->type))
            return whit_fail(
                e->error, WHIT_ERROR_UNSUPPORTED,
                "%s: GGUF stores '%s' and the matrices next to it as one matrix, so they must have the same type: "
                "name a type",
                e->source->path, name);
        t->parts[t->n_parts++].from = from;
        t->n_rows += from->type.n_rows;
    }
    return WHIT_OK;
}

/* Sets the sections of each part: the rows of the fused matrix that belong to it. This is the inverse of the importer's
 * split. */
static whit_status place_parts(struct export *e, struct target *t, const whit_import_name *row, uint32_t layer)
{
    for (uint32_t i = 0; i < t->n_parts; i++, row = whit_import_next_name(row)) {
        struct part *part = &t->parts[i];
        whit_source_tensor split = {.type = part->from->type};
        memcpy(split.name, part->from->name, sizeof split.name);
        split.type.n_rows = t->n_rows;
        WHIT_TRY(whit_import_split(e->source, &split, layer, row->rows, e->error));
        memcpy(part->sections, split.sections, sizeof part->sections);
        part->n_sections = split.n_sections;
    }
    return WHIT_OK;
}

/* Describes the file's tensor for one of ours; sets *is_done if another of our tensors, the first part, describes
 * it. */
static whit_status make_target(struct export *e, const whit_source_tensor *from, struct target *t, bool *is_done)
{
    uint32_t layer;
    const whit_import_name *row = whit_gguf_find_row(e->table, from->name, &layer), *first;
    *t = (struct target){.from = from};
    if (!row)
        return whit_fail(e->error, WHIT_ERROR_UNSUPPORTED, "%s: tensor '%s' has no name in GGUF", e->source->path,
                         from->name);
    first = whit_gguf_first_row(e->table, row);
    *is_done = first != row;
    if (*is_done) return WHIT_OK;
    whit_gguf_row_name(row, layer, t->name);
    t->permuted = row->is_rotary && e->table->permuted;
    t->is_vector = from->type.layout == WHIT_LAYOUT_PLAIN || row->rows == WHIT_IMPORT_ROW;
    t->is_float = strcmp(row->ours, "router") == 0 || strstr(row->theirs, ".bias") != NULL;
    if (row->form == WHIT_IMPORT_TAPS) t->n_taps = e->source->config.conv_taps;
    if (row->rows >= WHIT_IMPORT_EXPERTS && row->rows <= WHIT_IMPORT_EXPERTS_UP)
        t->n_experts = e->source->config.n_experts;
    if (row->rows == WHIT_IMPORT_ALL || row->rows == WHIT_IMPORT_ROW || row->rows == WHIT_IMPORT_EXPERTS) {
        t->parts[t->n_parts++].from = from;
        t->n_rows = from->type.n_rows;
        return WHIT_OK;
    }
    WHIT_TRY(find_parts(e, t, row, layer));
    return place_parts(e, t, row, layer);
}

static whit_status find_targets(struct export *e)
{
    for (uint32_t i = 0; i < e->source->n_tensors; i++) {
        struct target *t = &e->targets[e->n];
        bool is_done;
        WHIT_TRY(make_target(e, &e->source->tensors[i], t, &is_done));
        if (is_done) continue;
        WHIT_TRY(choose_type(e, t));
        e->n++;
    }
    return WHIT_OK;
}

/* Refuses names such as Q4_K_M, which stand for a mixture of types in a file; the error proposes the type that such a
 * name begins with. */
static whit_status refuse_mixture(const char *name, whit_error *error)
{
    char type[16];
    whit_ggml_kind kind;
    const size_t n = strlen(name);
    if (n < 3 || n > sizeof type || name[n - 2] != '_') return WHIT_OK;
    snprintf(type, sizeof type, "%.*s", (int)n - 2, name);
    if (!parse_kind(type, &kind)) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_ARGUMENT,
                     "%s names a choice of types for a whole file; one type is written for all matrices: %s", name,
                     type);
}

static whit_status check_options(const whit_export_options *options, whit_error *error)
{
    whit_ggml_kind kind;
    if (options->coded && !parse_kind(options->coded, &kind)) {
        WHIT_TRY(refuse_mixture(options->coded, error));
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "type '%s' is unknown: choose one of tq1_0 tq2_0 q2_0 q1_0 q8_0 q4_0 q2_k q3_k q4_k q5_k q6_k "
                         "iq2_xxs iq2_xs "
                         "iq2_s iq4_nl iq4_xs f16 bf16 f32",
                         options->coded);
    }
    if (options->floats && (!parse_kind(options->floats, &kind) || !is_float_kind(kind)))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "'%s' is not a float type: f16, bf16 or f32", options->floats);
    return WHIT_OK;
}

whit_status whit_export_gguf(const whit_source *source, const whit_export_options *options, const char *path,
                             whit_error *error)
{
    WHIT_TRY(check_options(options, error));
    const char *architecture;
    WHIT_TRY(whit_export_architecture(source, &architecture, error));
    const whit_allocator *a = source->allocator;
    struct export e = {.source = source, .options = options, .architecture = architecture, .error = error};
    e.table = whit_gguf_find_architecture(architecture, strlen(architecture));
    for (uint32_t i = 0; i < source->n_tensors; i++)
        if (source->tensors[i].type.n_cols > e.max_cols) e.max_cols = source->tensors[i].type.n_cols;
    /* upper bound of the bytes of a row: encoded in any type, or as codes, fields or values */
    size_t n_tensors = source->n_tensors, row_bytes = (e.max_cols + 256) * 4;
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
