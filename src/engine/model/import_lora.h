/* SPDX-License-Identifier: MIT
 * LoRA adapters of Hugging Face's PEFT: a folder with adapter_config.json and
 * adapter_model.safetensors, as an adapter for one of our models.
 *
 * Only what is x Wᵀ + alpha / r (x Aᵀ) Bᵀ on a matrix of the layers is taken (alpha / sqrt(r) where
 * the file says so, with its patterns of ranks and alphas). All else would change the mathematics and
 * is refused by name: DoRA, biases, whole modules, embedding and head, base weights moved at
 * training's start (PiSSA and its kin). Queries and keys lie in both as pairs half a head apart, so
 * their rows stay as they are. */
#ifndef WHIT_MODEL_IMPORT_LORA_H
#define WHIT_MODEL_IMPORT_LORA_H

#include "model/adapter.h"

/* Has the folder an adapter_config.json? */
bool whit_lora_is_folder(const char *path);

/* Reads the folder and appends the image of an adapter for `model` to `out`, which is empty. `name`
 * goes into the metadata. */
whit_status whit_lora_import(const char *folder, const whit_ndf *model, const char *name,
                             const whit_allocator *allocator, whit_buf *out, whit_error *error);

#endif
