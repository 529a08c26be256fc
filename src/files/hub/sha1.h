/* SPDX-License-Identifier: MIT
 * Computes SHA-1 (RFC 3174), which git uses as the digest of small files. It detects damage, not deliberate
 * collisions. */
#ifndef WHIT_HUB_SHA1_H
#define WHIT_HUB_SHA1_H

#include <stddef.h>
#include <stdint.h>

#define WHIT_SHA1_BYTES 20

typedef struct whit_sha1 {
    uint32_t state[5];
    uint64_t n_bytes;
    uint8_t block[64]; /* the last n_bytes % 64 bytes, which are not hashed yet */
} whit_sha1;

void whit_sha1_begin(whit_sha1 *sha1);
void whit_sha1_add(whit_sha1 *sha1, const void *data, size_t size_bytes);
void whit_sha1_end(whit_sha1 *sha1, uint8_t digest[WHIT_SHA1_BYTES]);

#endif
