/* SPDX-License-Identifier: MIT
 * Computes tensor digests for ndf-read: converts tensors from the layouts of docs/dev/kernels.md to the canonical rows
 * of docs/dev/format.md, section 5. */
#ifndef WHIT_TOOLS_NDF_DIGEST_H
#define WHIT_TOOLS_NDF_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

/* The tensor type (docs/dev/format.md, section 5) and the parts 0 to 2 of a tensor; an absent part has 0 bytes. */
typedef struct {
    uint8_t type[32];
    const uint8_t *part[3];
    uint64_t part_bytes[3];
} stored_tensor;

/* Passes the canonical type of a tensor, and then its canonical rows, to `add`, together with `hash`. Returns false if
 * the type is invalid, if the parts have other lengths than the type requires, or if memory runs out; nothing was
 * passed then. */
bool canonical_tensor(const stored_tensor *tensor, void (*add)(void *hash, const void *bytes, uint64_t size),
                      void *hash);

#endif
