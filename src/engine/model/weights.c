/* SPDX-License-Identifier: MIT */
#include "model/weights.h"

#include "kernels/codec.h"

whit_status whit_weights_open(const whit_ndf *file, const whit_allocator *allocator, whit_weights *weights,
                              whit_error *error)
{
    *weights = (whit_weights){.file = file, .n_tensors = whit_ndf_n_tensors(file), .allocator = allocator};
    weights->tensors = whit_zalloc_array(allocator, weights->n_tensors, sizeof *weights->tensors);
    if (!weights->tensors)
        return whit_fail_memory(error, "the list of tensors", weights->n_tensors * sizeof(whit_tensor));
    for (uint32_t i = 0; i < weights->n_tensors; i++) {
        whit_error inner;
        whit_ndf_tensor(file, i, &weights->tensors[i]);
        whit_status status = whit_tensor_check(&weights->tensors[i], &inner);
        if (status == WHIT_OK) continue;
        whit_fail(error, status, "%s: tensor '%s': %s", whit_ndf_path(file), whit_ndf_tensor_name(file, i),
                  inner.message);
        whit_weights_close(weights);
        return status;
    }
    return WHIT_OK;
}

void whit_weights_close(whit_weights *weights)
{
    whit_free(weights->allocator, weights->tensors, weights->n_tensors * sizeof *weights->tensors);
    *weights = (whit_weights){0};
}

static int32_t find_tensor(void *context, const char *name)
{
    const whit_weights *weights = context;
    return (int32_t)whit_ndf_find(weights->file, name);
}

static const whit_tensor_type *type_of(void *context, int32_t index)
{
    const whit_weights *weights = context;
    return &weights->tensors[index].type;
}

whit_resolver whit_weights_resolver(whit_weights *weights)
{
    return (whit_resolver){weights, find_tensor, type_of};
}

double whit_weights_layer_bits(const whit_weights *weights)
{
    double bits = 0, elems = 0;
    for (uint32_t i = 0; i < weights->n_tensors; i++) {
        const whit_tensor *tensor = &weights->tensors[i];
        if (tensor->type.layout == WHIT_LAYOUT_PLAIN) continue;
        if (strncmp(whit_ndf_tensor_name(weights->file, i), "layers.", 7) != 0) continue;
        bits += 8.0 * (double)whit_codec_tensor_bytes(tensor);
        elems += (double)tensor->type.n_rows * tensor->type.n_cols;
    }
    return elems > 0 ? bits / elems : 0;
}
