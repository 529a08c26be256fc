/* SPDX-License-Identifier: MIT
 * Layout of an adapter's image, in bytes:
 * header 64 | entries, 64 each | names | metadata | codes and scales of each pair */
#include "model/adapter.h"

#include "kernels/codec.h"
#include "quant/requantise.h"

#include <inttypes.h>

typedef struct image_header {
    uint8_t identity[WHIT_HASH_BYTES];
    uint32_t n_pairs, reserved;
    uint64_t meta_offset, meta_bytes; /* offsets are in bytes from the image's start */
    uint64_t reserved_too;
} image_header;
_Static_assert(sizeof(image_header) == 64, "adapter header");

typedef struct image_pair {
    uint32_t name_offset, name_bytes;
    uint32_t n_rows, n_cols, rank, reserved;
    uint64_t a_codes, a_scales, b_codes, b_scales;
    uint64_t reserved_too;
} image_pair;
_Static_assert(sizeof(image_pair) == 64, "adapter pair");

/* ---- reading -------------------------------------------------------------------------------- */

static const image_pair *entry_at(const whit_adapter_view *view, uint32_t i)
{
    return (const image_pair *)(const void *)(view->data + sizeof(image_header)) + i;
}

static whit_tensor factor_at(const uint8_t *data, uint32_t n_rows, uint32_t n_cols, uint64_t codes, uint64_t scales)
{
    whit_tensor tensor = {.type = whit_requantise_type(WHIT_CODEC_I8, n_rows, n_cols)};
    (void)whit_codec_part_bytes(&tensor.type, WHIT_PART_CODES, &tensor.part_bytes[WHIT_PART_CODES]);
    (void)whit_codec_part_bytes(&tensor.type, WHIT_PART_ROW_SCALES, &tensor.part_bytes[WHIT_PART_ROW_SCALES]);
    tensor.part[WHIT_PART_CODES] = data + codes;
    tensor.part[WHIT_PART_ROW_SCALES] = data + scales;
    return tensor;
}

whit_adapter_pair whit_adapter_pair_at(const whit_adapter_view *view, uint32_t i)
{
    const image_pair *entry = entry_at(view, i);
    return (whit_adapter_pair){.name = (const char *)view->data + entry->name_offset,
                               .a = factor_at(view->data, entry->rank, entry->n_cols, entry->a_codes, entry->a_scales),
                               .b = factor_at(view->data, entry->n_rows, entry->rank, entry->b_codes, entry->b_scales)};
}

/* Returns whether a factor's shape is allowed and its codes and scales lie inside the image. */
static bool factor_fits(uint32_t n_rows, uint32_t n_cols, uint64_t codes, uint64_t scales, uint64_t size_bytes)
{
    whit_tensor_type type = whit_requantise_type(WHIT_CODEC_I8, n_rows, n_cols);
    uint64_t code_bytes, scale_bytes;
    return whit_tensor_type_check(&type, NULL) == WHIT_OK &&
        whit_codec_part_bytes(&type, WHIT_PART_CODES, &code_bytes) &&
        whit_codec_part_bytes(&type, WHIT_PART_ROW_SCALES, &scale_bytes) && codes % WHIT_ALIGN_BYTES == 0 &&
        scales % WHIT_ALIGN_BYTES == 0 && whit_in_bounds(codes, code_bytes, size_bytes) &&
        whit_in_bounds(scales, scale_bytes, size_bytes);
}

static whit_status check_pair(const whit_adapter_view *view, uint32_t i, uint64_t size_bytes, const char *place,
                              whit_error *error)
{
    const image_pair *entry = entry_at(view, i);
    if (!whit_in_bounds(entry->name_offset, (uint64_t)entry->name_bytes + 1, size_bytes) || entry->name_bytes == 0 ||
        strnlen((const char *)view->data + entry->name_offset, (size_t)entry->name_bytes + 1) != entry->name_bytes)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: pair %" PRIu32 " of the adapter has an invalid name", place, i);
    const char *name = (const char *)view->data + entry->name_offset;
    if (entry->reserved || entry->reserved_too)
        return whit_fail(
            error, WHIT_ERROR_FORMAT,
            "%s: pair '%.80s' has reserved words that are not 0: the file is damaged, or made by a later whit", place,
            name);
    if (i && strcmp((const char *)view->data + entry_at(view, i - 1)->name_offset, name) >= 0)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: pair '%.80s' is out of order: the file is damaged", place,
                         name);
    if (entry->rank > WHIT_ADAPTER_MAX_RANK)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%s: pair '%.80s' has rank %" PRIu32 ", over %d", place, name,
                         entry->rank, WHIT_ADAPTER_MAX_RANK);
    if (!factor_fits(entry->rank, entry->n_cols, entry->a_codes, entry->a_scales, size_bytes) ||
        !factor_fits(entry->n_rows, entry->rank, entry->b_codes, entry->b_scales, size_bytes))
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: pair '%.80s' (%" PRIu32 " x %" PRIu32 ", rank %" PRIu32 ") does not lie inside", place,
                         name, entry->n_rows, entry->n_cols, entry->rank);
    return WHIT_OK;
}

whit_status whit_adapter_check(const void *data, size_t size_bytes, const char *place, whit_adapter_view *view,
                               whit_error *error)
{
    const image_header *header = data;
    *view = (whit_adapter_view){.data = data, .size_bytes = size_bytes, .identity = data};
    if (size_bytes < sizeof *header || header->reserved || header->reserved_too || header->n_pairs == 0 ||
        !whit_in_bounds(sizeof *header, (uint64_t)header->n_pairs * sizeof(image_pair), size_bytes))
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: the adapter's header is damaged or truncated", place);
    if (header->meta_offset % 8 || !whit_in_bounds(header->meta_offset, header->meta_bytes, size_bytes))
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: the adapter's metadata is outside its frame: the file is damaged", place);
    WHIT_TRY(whit_table_open(view->data + header->meta_offset, header->meta_bytes, place, &view->meta, error));
    for (uint32_t i = 0; i < header->n_pairs; i++) {
        WHIT_TRY(check_pair(view, i, size_bytes, place, error));
        if (entry_at(view, i)->rank > view->max_rank) view->max_rank = entry_at(view, i)->rank;
    }
    view->n_pairs = header->n_pairs;
    return WHIT_OK;
}

/* ---- binding to a model --------------------------------------------------------------------- */

bool whit_adapter_may_change(const char *tensor_name, const whit_tensor_type *type)
{
    const char *dot = strrchr(tensor_name, '.');
    if (strncmp(tensor_name, "layers.", 7) != 0 || type->layout != WHIT_LAYOUT_TILE16) return false;
    return !dot || strncmp(dot + 1, "expert_", 7) != 0;
}

static whit_status bind_pair(whit_adapter_weights *weights, uint32_t i, const whit_ndf *model, const char *place,
                             whit_error *error)
{
    const whit_adapter_pair *pair = &weights->pairs[i];
    int64_t tensor = whit_ndf_find(model, pair->name);
    const whit_tensor_type *type = tensor >= 0 ? whit_ndf_tensor_type(model, (uint32_t)tensor) : NULL;
    if (!type || !whit_adapter_may_change(pair->name, type) || type->n_rows != pair->b.type.n_rows ||
        type->n_cols != pair->a.type.n_cols)
        return whit_fail(error, WHIT_ERROR_FORMAT,
                         "%s: the adapter does not fit: the model has no matrix '%.80s' of %u x %u", place, pair->name,
                         pair->b.type.n_rows, pair->a.type.n_cols);
    weights->of_tensor[tensor] = pair;
    return WHIT_OK;
}

whit_status whit_adapter_bind(const whit_adapter_view *view, const whit_ndf *model, const char *place,
                              const whit_allocator *allocator, whit_adapter_weights *weights, whit_error *error)
{
    uint64_t block = 0;
    *weights = (whit_adapter_weights){.n_pairs = view->n_pairs,
                                      .n_tensors = whit_ndf_n_tensors(model),
                                      .max_rank = view->max_rank,
                                      .allocator = allocator};
    whit_table_get_u64(whit_ndf_config(model), "hadamard_block", &block);
    if (block)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: the model's matrices are rotated (Hadamard), and such a model takes no adapters", place);
    if (memcmp(view->identity, whit_ndf_identity(model), WHIT_HASH_BYTES) != 0) {
        char belongs[2 * WHIT_HASH_BYTES + 1], is[2 * WHIT_HASH_BYTES + 1];
        whit_hash_hex(view->identity, belongs);
        whit_hash_hex(whit_ndf_identity(model), is);
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "%s: the adapter was made for the model %.16s, not for %s, which is %.16s", place, belongs,
                         whit_ndf_path(model), is);
    }
    weights->pairs = whit_zalloc_array(allocator, weights->n_pairs, sizeof *weights->pairs);
    weights->of_tensor = whit_zalloc_array(allocator, weights->n_tensors, sizeof *weights->of_tensor);
    whit_status status = WHIT_OK;
    if (!weights->pairs || !weights->of_tensor)
        status = whit_fail_memory(error, place, weights->n_pairs * sizeof *weights->pairs);
    for (uint32_t i = 0; status == WHIT_OK && i < weights->n_pairs; i++) {
        weights->pairs[i] = whit_adapter_pair_at(view, i);
        status = bind_pair(weights, i, model, place, error);
    }
    if (status != WHIT_OK) whit_adapter_unbind(weights);
    return status;
}

void whit_adapter_unbind(whit_adapter_weights *weights)
{
    whit_free(weights->allocator, weights->pairs, weights->n_pairs * sizeof *weights->pairs);
    whit_free(weights->allocator, weights->of_tensor, weights->n_tensors * sizeof *weights->of_tensor);
    *weights = (whit_adapter_weights){0};
}

/* ---- building an image ---------------------------------------------------------------------- */

/* Rounds a factor to int8 and appends its codes and scales to the image; sets *codes and *scales to their offsets. */
static whit_status append_factor(const float *values, uint32_t n_rows, uint32_t n_cols, whit_buf *out, uint64_t *codes,
                                 uint64_t *scales, whit_error *error)
{
    whit_tensor_type type = whit_requantise_type(WHIT_CODEC_I8, n_rows, n_cols);
    uint64_t code_bytes, scale_bytes;
    WHIT_TRY(whit_tensor_type_check(&type, error));
    whit_codec_part_bytes(&type, WHIT_PART_CODES, &code_bytes);
    whit_codec_part_bytes(&type, WHIT_PART_ROW_SCALES, &scale_bytes);
    size_t n = (size_t)n_rows * n_cols;
    whit_rows rows = {.elems = whit_alloc(out->allocator, n),
                      .fields = whit_alloc(out->allocator, n_rows * sizeof(float))};
    whit_status status = WHIT_OK;
    whit_buf_align(out, WHIT_ALIGN_BYTES);
    *codes = out->size_bytes;
    *scales = *codes + whit_round_up(code_bytes, WHIT_ALIGN_BYTES);
    whit_buf_append_zeros(out, *scales - *codes + scale_bytes);
    if (!rows.elems || !rows.fields || out->failed) {
        status = whit_fail_memory(error, "an adapter", n);
    } else {
        for (uint32_t r = 0; r < n_rows; r++) {
            whit_rows row = {.elems = (int8_t *)rows.elems + (size_t)r * n_cols, .fields = rows.fields + r};
            whit_requantise_row(&type, values + (size_t)r * n_cols, &row);
        }
        uint8_t *part[WHIT_PART_COUNT] = {
            [WHIT_PART_CODES] = out->data + *codes, [WHIT_PART_ROW_SCALES] = out->data + *scales};
        status = whit_codec_pack(&type, 0, n_rows, &rows, part, error);
    }
    whit_free(out->allocator, rows.elems, n);
    whit_free(out->allocator, rows.fields, n_rows * sizeof(float));
    return status;
}

whit_status whit_adapter_build(const uint8_t identity[WHIT_HASH_BYTES], const whit_table_builder *meta,
                               const whit_adapter_floats *pairs, uint32_t n_pairs, whit_buf *out, whit_error *error)
{
    image_header header = {.n_pairs = n_pairs};
    memcpy(header.identity, identity, sizeof header.identity);
    whit_buf_append_zeros(out, sizeof header + (size_t)n_pairs * sizeof(image_pair));
    size_t entries = sizeof header, names = out->size_bytes;
    for (uint32_t i = 0; i < n_pairs; i++) whit_buf_append(out, pairs[i].name, strlen(pairs[i].name) + 1);
    whit_buf_align(out, 8);
    header.meta_offset = out->size_bytes;
    WHIT_TRY(whit_table_build(meta, out, error));
    header.meta_bytes = out->size_bytes - header.meta_offset;
    for (uint32_t i = 0; i < n_pairs; i++) {
        const whit_adapter_floats *from = &pairs[i];
        image_pair entry = {.name_offset = (uint32_t)names,
                            .name_bytes = (uint32_t)strlen(from->name),
                            .n_rows = from->n_rows,
                            .n_cols = from->n_cols,
                            .rank = from->rank};
        names += entry.name_bytes + 1;
        WHIT_TRY(append_factor(from->a, from->rank, from->n_cols, out, &entry.a_codes, &entry.a_scales, error));
        WHIT_TRY(append_factor(from->b, from->n_rows, from->rank, out, &entry.b_codes, &entry.b_scales, error));
        memcpy(out->data + entries + i * sizeof entry, &entry, sizeof entry);
    }
    if (out->failed) return whit_fail_memory(error, "an adapter", out->size_bytes);
    memcpy(out->data, &header, sizeof header);
    whit_adapter_view view; /* the finished image is checked, so that an invalid one is never returned */
    return whit_adapter_check(out->data, out->size_bytes, "the adapter", &view, error);
}
