/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

void whit_hash_prepare(void)
{
    /* sodium_init fails if the system has no random numbers, but hashing needs none. */
    if (sodium_init() < 0) return;
}

void whit_hash_begin(whit_hash *hash, const char *domain)
{
    uint8_t personal[crypto_generichash_blake2b_PERSONALBYTES] = {0};
    uint8_t salt[crypto_generichash_blake2b_SALTBYTES] = {0};
    memcpy(personal, domain, strnlen(domain, sizeof personal));
    /* The call fails only for lengths out of range; here they are constants. */
    (void)crypto_generichash_blake2b_init_salt_personal(&hash->state, NULL, 0, WHIT_HASH_BYTES, salt, personal);
}

void whit_hash_add(whit_hash *hash, const void *data, size_t size_bytes)
{
    if (size_bytes) (void)crypto_generichash_blake2b_update(&hash->state, data, size_bytes);
}

void whit_hash_add_u64(whit_hash *hash, uint64_t value)
{
    whit_hash_add(hash, &value, sizeof value);
}

void whit_hash_end(whit_hash *hash, uint8_t digest[WHIT_HASH_BYTES])
{
    (void)crypto_generichash_blake2b_final(&hash->state, digest, WHIT_HASH_BYTES);
}

void whit_hash_hex(const uint8_t digest[WHIT_HASH_BYTES], char text[2 * WHIT_HASH_BYTES + 1])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < WHIT_HASH_BYTES; i++) {
        text[2 * i] = digits[digest[i] >> 4];
        text[2 * i + 1] = digits[digest[i] & 15];
    }
    text[2 * WHIT_HASH_BYTES] = 0;
}
