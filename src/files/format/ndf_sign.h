/* SPDX-License-Identifier: MIT
 * Signs a file of frames: Ed25519 (RFC 8032, libsodium). A signature is appended as a frame and signs the hash of the
 * last commit before it. That hash covers the headers and payloads of all earlier frames. */
#ifndef WHIT_FORMAT_NDF_SIGN_H
#define WHIT_FORMAT_NDF_SIGN_H

#include "format/ndf_log.h"

#define WHIT_SIGN_KEY_BYTES 32 /* size of a secret key (seed), and of a public key */

/* Generates a pair of keys and writes them as text: the secret one to `path` (mode 0600), the public one to `path`.pub.
 * Existing files are never replaced. */
whit_status whit_sign_new_key(const char *path, uint8_t public_key[WHIT_SIGN_KEY_BYTES], whit_error *error);
/* Read a secret or public key from its file. The caller must clear the secret key (sodium_memzero). */
whit_status whit_sign_read_secret(const char *path, uint8_t seed[WHIT_SIGN_KEY_BYTES], whit_error *error);
whit_status whit_sign_read_public(const char *path, uint8_t public_key[WHIT_SIGN_KEY_BYTES], whit_error *error);

/* Signs the model, adapter or session at `path` with the secret key in the file `key_path`, and appends the
 * signature. */
whit_status whit_ndf_sign(const char *path, const char *key_path, const whit_allocator *allocator, whit_error *error);

typedef struct whit_ndf_signed {
    uint32_t n_signatures; /* number of valid signatures by the given key, or by any key if public_key is NULL */
    uint32_t n_frames;     /* number of frames that the last such signature covers */
    uint32_t n_unsigned;   /* number of appended frames after the last such signature, or of all without one; signatures
                            * do not count */
} whit_ndf_signed;

/* Checks every signature against the commit that it signs. An invalid one is an error that names the frame.
 * `public_key` NULL: signatures by any key count. This does not compare the file's bytes with their hashes;
 * whit_ndf_verify does. */
whit_status whit_ndf_check_signed(const whit_ndf_log *log, const uint8_t *public_key, whit_ndf_signed *result,
                                  whit_error *error);

#endif
