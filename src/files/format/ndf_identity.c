/* SPDX-License-Identifier: MIT */
#include "format/ndf_identity.h"

#include "format/ndf_layout.h"

static void add_string(whit_hash *hash, const char *text, size_t size_bytes)
{
    whit_hash_add_u64(hash, size_bytes);
    whit_hash_add(hash, text, size_bytes);
}

/* Hashes the keys and values instead of the table's bytes, so that the digest does not depend on the table's layout. */
void whit_ndf_config_digest(const whit_table *config, uint8_t digest[WHIT_HASH_BYTES])
{
    whit_hash hash;
    whit_hash_begin(&hash, WHIT_NDF_DOMAIN_CONFIG);
    whit_hash_add_u64(&hash, whit_table_count(config));
    for (uint32_t i = 0; i < whit_table_count(config); i++) {
        whit_value value;
        const char *key = whit_table_at(config, i, &value);
        add_string(&hash, key, whit_ndf_name_at(&config->names, i)->name_bytes);
        whit_hash_add_u64(&hash, value.type);
        whit_hash_add_u64(&hash, value.count);
        switch (value.type) {
        case WHIT_VALUE_BOOL: whit_hash_add_u64(&hash, value.boolean); break;
        case WHIT_VALUE_U64:
        case WHIT_VALUE_I64:
        case WHIT_VALUE_F64: whit_hash_add_u64(&hash, value.u64); break;
        case WHIT_VALUE_STRING:
        case WHIT_VALUE_BYTES:
        case WHIT_VALUE_BOOL_ARRAY: whit_hash_add(&hash, value.bytes, value.count); break;
        case WHIT_VALUE_U64_ARRAY:
        case WHIT_VALUE_I64_ARRAY:
        case WHIT_VALUE_F64_ARRAY: whit_hash_add(&hash, value.bytes, 8 * value.count); break;
        case WHIT_VALUE_STRING_ARRAY:
            for (uint64_t s = 0; s < value.count; s++) {
                size_t size_bytes;
                const char *text = whit_value_string_at(&value, s, &size_bytes);
                add_string(&hash, text, size_bytes);
            }
            break;
        }
    }
    whit_hash_end(&hash, digest);
}

void whit_ndf_tokenizer_digest(const void *image, size_t size_bytes, uint8_t digest[WHIT_HASH_BYTES])
{
    whit_hash hash;
    whit_hash_begin(&hash, WHIT_NDF_DOMAIN_TOKENIZER);
    whit_hash_add(&hash, image, size_bytes);
    whit_hash_end(&hash, digest);
}

void whit_ndf_identity_begin(whit_hash *hash, const uint8_t config[WHIT_HASH_BYTES],
                             const uint8_t tokenizer[WHIT_HASH_BYTES], uint64_t n_tensors)
{
    whit_hash_begin(hash, WHIT_NDF_DOMAIN_MODEL);
    whit_hash_add(hash, config, WHIT_HASH_BYTES);
    whit_hash_add(hash, tokenizer, WHIT_HASH_BYTES);
    whit_hash_add_u64(hash, n_tensors);
}

void whit_ndf_identity_add(whit_hash *hash, const char *name, uint64_t n_rows, uint64_t n_cols,
                           const uint8_t digest[WHIT_HASH_BYTES])
{
    add_string(hash, name, strlen(name));
    whit_hash_add_u64(hash, n_rows);
    whit_hash_add_u64(hash, n_cols);
    whit_hash_add(hash, digest, WHIT_HASH_BYTES);
}
