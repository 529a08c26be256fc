/* SPDX-License-Identifier: MIT
 * Reads LoRA adapters of Hugging Face's PEFT, a folder with adapter_config.json and adapter_model.safetensors, as an
 * adapter for one of our models.
 *
 * Only adapters of the form x Wᵀ + alpha / r (x Aᵀ) Bᵀ on matrices of the layers are imported (alpha / sqrt(r) if
 * the file says so, with its patterns of ranks and alphas). All others would change the mathematics and are refused
 * by name: DoRA, biases, whole modules, embedding and head, base weights that were changed before training (PiSSA
 * and similar methods). In both formats the RoPE pairs of queries and keys are half a head apart, so rows keep their
 * order. */
#ifndef WHIT_MODEL_IMPORT_LORA_H
#define WHIT_MODEL_IMPORT_LORA_H

#include "model/adapter.h"

/* Returns whether the folder contains an adapter_config.json. */
bool whit_lora_is_folder(const char *path);

/* Reads the folder and appends the image of an adapter for `model` to `out`, which must be empty. `name` becomes the
 * adapter's name in the metadata. */
whit_status whit_lora_import(const char *folder, const whit_ndf *model, const char *name,
                             const whit_allocator *allocator, whit_buf *out, whit_error *error);

#endif
