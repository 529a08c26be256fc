/* SPDX-License-Identifier: MIT
 * Signs files that are not .ndf containers. The signature is stored in a separate file beside them: Ed25519 over a hash
 * of the whole content. */
#ifndef WHIT_FORMAT_FILE_SIGN_H
#define WHIT_FORMAT_FILE_SIGN_H

#include "format/ndf_sign.h"

/* Signs the file at `path` with the secret key in the file `key_path` and writes the signature to `path`.sig, replacing
 * an existing one. The signature depends only on the content and the key. */
whit_status whit_file_sign(const char *path, const char *key_path, whit_error *error);

/* Checks `path` against `path`.sig. The error is WHIT_ERROR_FORMAT, naming the file, if the signature was made with
 * another key than `public_key` or does not match the content. */
whit_status whit_file_check_signed(const char *path, const uint8_t public_key[WHIT_SIGN_KEY_BYTES], whit_error *error);

#endif
