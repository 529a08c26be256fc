/* SPDX-License-Identifier: MIT
 * Writes a trained model to a file. Coded tensors have exactly the codes and scales that training used. */
#include "train/trainee.h"

#include "kernels/corrections.h"
#include "quant/quantise.h"
#include "quant/requantise.h"

struct image {
    whit_rows rows;
    size_t elems_bytes, field_elems, field_bytes; /* sizes of the arrays of `rows`, for all rows */
    uint8_t *part[WHIT_PART_COUNT];
    uint64_t part_bytes[WHIT_PART_COUNT];
    uint8_t *canonical;
    size_t canonical_bytes;
};

static void free_image(const whit_allocator *a, struct image *image)
{
    whit_free(a, image->rows.elems, image->elems_bytes);
    whit_free(a, image->rows.fields, image->field_elems * sizeof(float));
    whit_free(a, image->rows.fields_u8, image->field_bytes);
    for (int p = 0; p < WHIT_PART_COUNT; p++) whit_free(a, image->part[p], image->part_bytes[p]);
    whit_free(a, image->canonical, image->canonical_bytes);
}

static bool make_image(const whit_allocator *a, const whit_tensor_type *type, struct image *image)
{
    const whit_codec_info *codec = whit_codec_find(type->codec);
    whit_geometry g = whit_codec_geometry(type);
    size_t n = (size_t)type->n_rows * type->n_cols;
    *image = (struct image){.elems_bytes = n * (codec->is_float ? codec->elem_bytes : 1),
                            .field_elems = (size_t)type->n_rows * g.n_groups * g.n_fields + 1,
                            .field_bytes = (size_t)type->n_rows * g.row_bytes + 1,
                            .canonical_bytes = whit_codec_canonical_row_bytes(type) * type->n_rows};
    image->rows.elems = whit_alloc(a, image->elems_bytes);
    image->rows.fields = whit_zalloc_array(a, image->field_elems, sizeof(float));
    image->rows.fields_u8 = whit_zalloc(a, image->field_bytes);
    image->canonical = whit_alloc(a, image->canonical_bytes);
    bool ok = image->rows.elems && image->rows.fields && image->rows.fields_u8 && image->canonical;
    for (int p = 0; ok && p < WHIT_PART_COUNT; p++) {
        ok = whit_codec_part_bytes(type, (whit_part)p, &image->part_bytes[p]);
        if (ok && image->part_bytes[p]) ok = (image->part[p] = whit_alloc(a, image->part_bytes[p])) != NULL;
    }
    return ok;
}

static void coded_rows(const whit_trainee *trainee, const whit_param *param, const whit_rows *rows)
{
    const float *latent = whit_param_latent(&trainee->params, param), *run = trainee->params.run + param->scales;
    int8_t *codes = rows->elems;
    size_t index = 0;
    for (uint32_t line = 0; line < param->n_lines; line++)
        for (uint32_t group = 0; group < param->n_groups; group++, run += param->n_fields) {
            size_t rest = param->line_elems - group * param->group_elems,
                   n = rest < param->group_elems ? rest : param->group_elems;
            float stored[2];
            whit_quantise_stored(&param->type, run, stored);
            whit_quantise_codes(&param->type, latent, n, stored, codes);
            whit_quantise_put(&param->type, stored, index++, rows);
            latent += n;
            codes += n;
        }
}

static void float_rows(const whit_trainee *trainee, const whit_param *param, const whit_rows *rows)
{
    size_t elem_bytes = whit_codec_find(param->type.codec)->elem_bytes;
    for (uint32_t row = 0; row < param->type.n_rows; row++) {
        whit_rows at = {(uint8_t *)rows->elems + (size_t)row * param->type.n_cols * elem_bytes, NULL, NULL};
        whit_requantise_row(&param->type, whit_param_latent(&trainee->params, param) + (size_t)row * param->type.n_cols,
                            &at);
    }
}

/* Copies an untrained tensor from the model's file to the new file. */
static whit_status copy_tensor(const whit_trainee *trainee, const whit_param *param, uint32_t declared,
                               whit_ndf_writer *writer, whit_error *error)
{
    const whit_ndf *file = trainee->model->file;
    uint32_t i = (uint32_t)whit_ndf_find(file, param->name);
    whit_tensor tensor;
    whit_ndf_tensor(file, i, &tensor);
    whit_ndf_writer_set_digest(writer, declared, whit_ndf_tensor_digest(file, i));
    for (int p = 0; p < WHIT_PART_COUNT; p++)
        if (tensor.part_bytes[p])
            WHIT_TRY(whit_ndf_writer_add(writer, declared, (whit_part)p, tensor.part[p], tensor.part_bytes[p], error));
    return WHIT_OK;
}

static bool is_copied(const whit_param *param)
{
    return param->frozen && !param->coded;
}

/* Returns the type of a tensor in the finished file. It includes the scale if the whole tensor has one scale. */
static whit_tensor_type finished_type(const whit_trainee *trainee, const whit_param *param)
{
    whit_tensor_type type = param->type;
    if (param->coded && type.scale_kind == WHIT_SCALE_TENSOR) {
        float stored[2];
        whit_quantise_stored(&type, trainee->params.run + param->scales, stored);
        type.scale = stored[0];
        type.scale_b = stored[1];
    }
    return type;
}

static whit_status write_tensor(const whit_trainee *trainee, const whit_param *param, uint32_t declared,
                                whit_ndf_writer *writer, whit_error *error)
{
    struct image image;
    const whit_tensor_type finished = finished_type(trainee, param), *type = &finished;
    whit_status status = WHIT_OK;
    if (!make_image(trainee->allocator, type, &image)) status = whit_fail_memory(error, param->name, 0);
    if (status == WHIT_OK) {
        if (param->coded)
            coded_rows(trainee, param, &image.rows);
        else
            float_rows(trainee, param, &image.rows);
        if (type->layout == WHIT_LAYOUT_PLAIN)
            memcpy(image.part[WHIT_PART_CODES], image.rows.elems, image.elems_bytes);
        else
            status = whit_codec_pack(type, 0, type->n_rows, &image.rows, image.part, error);
    }
    if (status == WHIT_OK) {
        whit_tensor tensor = {.type = *type}, *t = &tensor;
        uint8_t hash[WHIT_HASH_BYTES];
        whit_hash digest;
        whit_tensor_type canonical = whit_codec_canonical_type(type);
        for (int p = 0; p < WHIT_PART_COUNT; p++) {
            t->part[p] = image.part[p];
            t->part_bytes[p] = image.part_bytes[p];
        }
        whit_hash_begin(&digest, "whit.tensor");
        whit_hash_add(&digest, &canonical, sizeof canonical);
        whit_codec_canonical_rows(t, 0, type->n_rows, image.canonical);
        whit_hash_add(&digest, image.canonical, image.canonical_bytes);
        for (int p = WHIT_PART_PLANE; p < WHIT_PART_COUNT; p++) {
            t->part[p] = param->corrected.part[p];
            t->part_bytes[p] = param->corrected.part_bytes[p];
        }
        whit_corrections_digest(t, &digest);
        whit_hash_end(&digest, hash);
        whit_ndf_writer_set_digest(writer, declared, hash);
    }
    for (int p = 0; status == WHIT_OK && p < WHIT_PART_COUNT; p++)
        if (image.part_bytes[p])
            status = whit_ndf_writer_add(writer, declared, (whit_part)p, image.part[p], image.part_bytes[p], error);
    for (int p = WHIT_PART_PLANE; status == WHIT_OK && p < WHIT_PART_COUNT; p++)
        if (param->corrected.part_bytes[p])
            status = whit_ndf_writer_add(writer, declared, (whit_part)p, param->corrected.part[p],
                                         param->corrected.part_bytes[p], error);
    free_image(trainee->allocator, &image);
    return status;
}

/* Writes the sketch of the training text, joined with the sketch in the model's metadata, which describes the text that
 * the model was made with. */
static void write_sketch(const whit_trainee *trainee, const whit_table *meta, whit_table_builder *builder)
{
    whit_value value;
    whit_sketch sketch = {0};
    uint8_t bytes[8 * WHIT_SKETCH_HASHES_MAX];
    if (!trainee->sketch.n) return;
    if (whit_table_get(meta, WHIT_SKETCH_KEY, &value) && value.type == WHIT_VALUE_BYTES)
        (void)whit_sketch_read(&sketch, value.bytes, value.count);
    whit_sketch_join(&sketch, &trainee->sketch);
    whit_table_set_bytes(builder, WHIT_SKETCH_KEY, bytes, whit_sketch_write(&sketch, bytes));
}

static void write_tables(const whit_trainee *trainee, const char *command, whit_ndf_writer *writer)
{
    const whit_ndf *from = trainee->model->file;
    whit_config_save(&trainee->config, whit_ndf_writer_config(writer));
    const whit_table *tables[] = {whit_ndf_meta(from), whit_ndf_templates(from)};
    whit_table_builder *builders[] = {whit_ndf_writer_meta(writer), whit_ndf_writer_templates(writer)};
    for (int i = 0; i < 2; i++)
        for (uint32_t k = 0; k < whit_table_count(tables[i]); k++) {
            whit_value value;
            const char *key = whit_table_at(tables[i], k, &value);
            whit_table_set_value(builders[i], key, &value);
        }
    write_sketch(trainee, tables[0], builders[0]);
    whit_table_set_string(builders[0], "whit.version", whit_version());
    if (command) whit_table_set_string(builders[0], "whit.command", command);
    size_t n;
    const void *tokenizer = whit_ndf_tokenizer(from, &n);
    if (tokenizer) whit_ndf_writer_set_tokenizer(writer, tokenizer, n);
}

/* Writes the indices of the tensors, without an adapter's factors, to `order`: first in the order in which the graph
 * uses them, so that computing the model reads the file sequentially, then the tensors that it does not use. Returns
 * their number. `taken` is zeroed scratch memory. */
static uint32_t find_order(const whit_trainee *trainee, uint32_t *order, bool *taken)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < trainee->graph.n_nodes; i++) {
        int32_t used[2] = {trainee->graph.nodes[i].weight, trainee->graph.nodes[i].bias};
        for (int j = 0; j < 2; j++)
            if (used[j] >= 0 && !taken[used[j]]) {
                taken[used[j]] = true;
                order[n++] = (uint32_t)used[j];
            }
    }
    for (uint32_t i = 0; i < trainee->params.n; i++)
        if (!taken[i] && !trainee->params.items[i].is_new) order[n++] = i;
    return n;
}

whit_status whit_trainee_add_tensors(const whit_trainee *trainee, whit_ndf_writer *writer, whit_error *error)
{
    const whit_allocator *a = trainee->allocator;
    const whit_params *params = &trainee->params;
    uint32_t *order = whit_zalloc_array(a, params->n, sizeof *order),
             *declared = whit_zalloc_array(a, params->n, sizeof *declared);
    bool *taken = whit_zalloc_array(a, params->n, sizeof *taken);
    whit_status status = WHIT_OK;
    if (!order || !declared || !taken)
        status = whit_fail_memory(error, "the list of tensors", params->n * sizeof *order);
    uint32_t n = status == WHIT_OK ? find_order(trainee, order, taken) : 0;
    for (uint32_t i = 0; status == WHIT_OK && i < n; i++) {
        const whit_param *param = &params->items[order[i]];
        uint64_t bytes[WHIT_PART_COUNT] = {0};
        whit_tensor_type type = finished_type(trainee, param);
        whit_tensor copied = param->corrected;
        if (is_copied(param)) {
            whit_ndf_tensor(trainee->model->file, (uint32_t)whit_ndf_find(trainee->model->file, param->name), &copied);
            type = copied.type;
        }
        for (int p = 0; p < WHIT_PART_COUNT; p++)
            if (p >= WHIT_PART_PLANE)
                bytes[p] = copied.part_bytes[p];
            else
                (void)whit_codec_part_bytes(&type, (whit_part)p, &bytes[p]);
        status = whit_ndf_writer_declare(writer, param->name, &type, bytes, &declared[i], error);
    }
    if (status == WHIT_OK) status = whit_ndf_writer_begin(writer, error);
    for (uint32_t i = 0; status == WHIT_OK && i < n; i++)
        status = (is_copied(&params->items[order[i]]) ? copy_tensor : write_tensor)(trainee, &params->items[order[i]],
                                                                                    declared[i], writer, error);
    whit_free(a, order, params->n * sizeof *order);
    whit_free(a, declared, params->n * sizeof *declared);
    whit_free(a, taken, params->n * sizeof *taken);
    return status;
}

whit_status whit_trainee_write(const whit_trainee *trainee, const char *command, const char *path, whit_error *error)
{
    whit_ndf_writer *writer = NULL;
    WHIT_TRY(whit_ndf_writer_open(path, NULL, trainee->allocator, &writer, error));
    write_tables(trainee, command, writer);
    whit_status status = whit_trainee_add_tensors(trainee, writer, error);
    if (status == WHIT_OK) status = whit_ndf_writer_commit(writer, NULL, error);
    whit_ndf_writer_close(writer);
    return status;
}
