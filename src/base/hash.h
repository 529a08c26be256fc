/* SPDX-License-Identifier: MIT
 * Computes BLAKE2b-256 (libsodium) with a domain, so that hashes of different kinds of data never agree. */
#ifndef WHIT_BASE_HASH_H
#define WHIT_BASE_HASH_H

#include "base/mem.h"

#include <sodium.h>

#define WHIT_HASH_BYTES 32

/* Computes BLAKE2b with a digest of 32 bytes. `domain` is its personalisation: an ASCII name of at most 16 bytes,
 * padded with zeros. */
typedef struct whit_hash {
    crypto_generichash_blake2b_state state;
} whit_hash;

/* Lets libsodium choose its fastest code; call it before hashing much data, from any thread, any number of times.
 * Without this call hashing is slower, with the same digests. */
void whit_hash_prepare(void);
void whit_hash_begin(whit_hash *hash, const char *domain);
void whit_hash_add(whit_hash *hash, const void *data, size_t size_bytes);
void whit_hash_add_u64(whit_hash *hash, uint64_t value); /* adds 8 bytes, little-endian */
void whit_hash_end(whit_hash *hash, uint8_t digest[WHIT_HASH_BYTES]);

/* Writes the digest in lower-case hexadecimal with a terminating zero byte. */
void whit_hash_hex(const uint8_t digest[WHIT_HASH_BYTES], char text[2 * WHIT_HASH_BYTES + 1]);

#endif
