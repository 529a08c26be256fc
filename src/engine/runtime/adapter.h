/* SPDX-License-Identifier: MIT
 * Internals of an open adapter: its weights are used in place, in the file's image, and bound to the tensors of one
 * model. */
#ifndef WHIT_RUNTIME_ADAPTER_H
#define WHIT_RUNTIME_ADAPTER_H

#include "model/adapter.h"
#include "runtime/model.h"

struct whit_adapter {
    const whit_model *model;
    whit_ndf *file; /* the adapter's own file; NULL if it is a frame of the model's file */
    whit_adapter_view view;
    whit_adapter_weights weights;
    uint8_t digest[WHIT_HASH_BYTES]; /* digest of the adapter's frame, which identifies the adapter's bytes */
};

#endif
