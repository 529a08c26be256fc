/* SPDX-License-Identifier: MIT
 * Signatures over a chain: Ed25519 (RFC 8032, libsodium) over the last commit before them, each in a frame of its
 * own. The commit's hash covers every byte before it, so only that hash is signed. */
#ifndef WHIT_FORMAT_NDF_SIGN_H
#define WHIT_FORMAT_NDF_SIGN_H

#include "format/ndf_log.h"

#define WHIT_SIGN_KEY_BYTES 32 /* size of a seed and of a public key */

/* Writes a new pair of keys as text: the secret one to `path` (mode 0600), the public one to `path`.pub. It never
 * replaces a file. */
whit_status whit_sign_new_key(const char *path, uint8_t public_key[WHIT_SIGN_KEY_BYTES], whit_error *error);
/* Read the keys back. The caller clears the secret key (sodium_memzero). */
whit_status whit_sign_read_secret(const char *path, uint8_t seed[WHIT_SIGN_KEY_BYTES], whit_error *error);
whit_status whit_sign_read_public(const char *path, uint8_t public_key[WHIT_SIGN_KEY_BYTES], whit_error *error);

/* Appends a signature by the secret key in the file `key_path` to a model, adapter or session. */
whit_status whit_ndf_sign(const char *path, const char *key_path, const whit_allocator *allocator, whit_error *error);

typedef struct whit_ndf_signed {
    uint32_t n_signatures; /* number of valid signatures by the given key, or by any key if none is given */
    uint32_t n_frames;     /* frames covered by the last valid signature */
    uint32_t n_unsigned;   /* frames after the last valid signature, without commits and signatures */
} whit_ndf_signed;

/* Checks every signature of a chain against its commit; an invalid one is an error that names the frame. `public_key`
 * NULL: counts signatures of any key. It does not check whether the chain's bytes agree with its hashes, as
 * whit_ndf_verify does. */
whit_status whit_ndf_check_signed(const whit_ndf_log *log, const uint8_t *public_key, whit_ndf_signed *result,
                                  whit_error *error);

#endif
