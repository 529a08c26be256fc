/* SPDX-License-Identifier: MIT
 * An open adapter, inside: its image in place, bound to the tensors of one model. */
#ifndef WHIT_RUNTIME_ADAPTER_H
#define WHIT_RUNTIME_ADAPTER_H

#include "model/adapter.h"
#include "runtime/model.h"

struct whit_adapter {
    const whit_model *model;
    whit_ndf *file; /* the adapter's own file; NULL if it is a frame of the model's file */
    whit_adapter_view view;
    whit_adapter_weights weights;
    uint8_t digest[WHIT_HASH_BYTES]; /* digest of its frame: equal only for equal bytes */
};

/* Finds an adapter's image by its name in the model's own file (the last of several of that name), else in a file at
 * that path, which *file then keeps open; *digest is the digest of its frame. */
whit_status whit_adapter_find(const whit_ndf *model, const char *name, const whit_allocator *allocator, whit_ndf **file,
                              whit_adapter_view *view, const uint8_t **digest, whit_error *error);

#endif
