/* SPDX-License-Identifier: MIT
 * An open adapter, inside: its image in place, bound to the tensors of one model. */
#ifndef WHIT_RUNTIME_ADAPTER_H
#define WHIT_RUNTIME_ADAPTER_H

#include "model/adapter.h"
#include "runtime/model.h"

struct whit_adapter {
    const whit_model *model;
    whit_ndf *file; /* its own; NULL where it lies in the model's */
    whit_adapter_view view;
    whit_adapter_weights weights;
    uint8_t digest[WHIT_HASH_BYTES]; /* that of its frame: equal only for equal bytes */
};

/* The image of an adapter by the name of one in the model's own file (of several of that name, the
 * last), else from a file at that path, which *file then holds open; *digest is that of its frame. */
whit_status whit_adapter_find(const whit_ndf *model, const char *name, const whit_allocator *allocator, whit_ndf **file,
                              whit_adapter_view *view, const uint8_t **digest, whit_error *error);

#endif
