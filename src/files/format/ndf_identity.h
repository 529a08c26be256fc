/* SPDX-License-Identifier: MIT
 * Computes the identity of a model. It depends on what the model computes, not on how or where it is stored
 * (docs/dev/format.md). */
#ifndef WHIT_FORMAT_NDF_IDENTITY_H
#define WHIT_FORMAT_NDF_IDENTITY_H

#include "base/hash.h"
#include "format/ndf_table.h"

void whit_ndf_config_digest(const whit_table *config, uint8_t digest[WHIT_HASH_BYTES]);
void whit_ndf_tokenizer_digest(const void *image, size_t size_bytes, uint8_t digest[WHIT_HASH_BYTES]);

/* Compute the identity in steps: begin, add every tensor in the order of names, then whit_hash_end. */
void whit_ndf_identity_begin(whit_hash *hash, const uint8_t config[WHIT_HASH_BYTES],
                             const uint8_t tokenizer[WHIT_HASH_BYTES], uint64_t n_tensors);
void whit_ndf_identity_add(whit_hash *hash, const char *name, uint64_t n_rows, uint64_t n_cols,
                           const uint8_t digest[WHIT_HASH_BYTES]);

#endif
