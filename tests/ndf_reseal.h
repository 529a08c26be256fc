/* SPDX-License-Identifier: MIT
 * Makes every hash of an .ndf file right again after bytes were changed, for tests and fuzz targets of hostile files
 * that only checks of the contents can refuse. */
#ifndef WHIT_TESTS_NDF_RESEAL_H
#define WHIT_TESTS_NDF_RESEAL_H

#include "format/ndf_frame.h"

/* Walks the frames as far as their lengths make sense. */
static inline void ndf_reseal(uint8_t *file, size_t size_bytes)
{
    uint8_t previous[WHIT_HASH_BYTES] = {0};
    size_t offset = 0;
    while (size_bytes - offset >= sizeof(whit_ndf_header)) {
        whit_ndf_header *header = (whit_ndf_header *)(file + offset);
        uint64_t payload_bytes = header->payload_bytes;
        if (payload_bytes > size_bytes || whit_ndf_frame_bytes(payload_bytes) > size_bytes - offset) return;
        uint8_t *leaves = file + offset + whit_ndf_leaves_offset(payload_bytes);
        uint64_t n_chunks = whit_ndf_n_chunks(payload_bytes);
        for (uint64_t i = 0; i < n_chunks; i++) {
            uint64_t at = i * WHIT_NDF_CHUNK_BYTES, rest = payload_bytes - at;
            whit_ndf_leaf((uint8_t *)(header + 1) + at, rest < WHIT_NDF_CHUNK_BYTES ? rest : WHIT_NDF_CHUNK_BYTES,
                          leaves + i * WHIT_HASH_BYTES);
        }
        memcpy(header->previous, previous, sizeof previous);
        whit_ndf_root(leaves, n_chunks, header->root);
        whit_ndf_frame_hash(header, header->hash);
        memcpy(previous, header->hash, sizeof previous);
        offset += whit_ndf_frame_bytes(payload_bytes);
    }
}

#endif
