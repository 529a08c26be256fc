/* SPDX-License-Identifier: MIT
 * Tensor digests for ndf-read: the canonical rows of docs/dev/format.md, section 5, out of the layouts of
 * docs/dev/kernels.md. */
#ifndef WHIT_TOOLS_NDF_DIGEST_H
#define WHIT_TOOLS_NDF_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

/* Tensor_Type and the parts 0 to 2; what is absent has no bytes. */
typedef struct {
    uint8_t type[32];
    const uint8_t *part[3];
    uint64_t part_bytes[3];
} stored_tensor;

/* Gives `add` the canonical type and rows of a tensor. False where the type does not exist or its parts have other
 * lengths than it asks for; then nothing was added. */
bool canonical_tensor(const stored_tensor *tensor, void (*add)(void *hash, const void *bytes, uint64_t size),
                      void *hash);

#endif
