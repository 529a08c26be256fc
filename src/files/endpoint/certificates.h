/* SPDX-License-Identifier: MIT
 * Finds the file of certificate authorities that https addresses are checked with. */
#ifndef WHIT_ENDPOINT_CERTIFICATES_H
#define WHIT_ENDPOINT_CERTIFICATES_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the file that SSL_CERT_FILE or CURL_CA_BUNDLE names; without them the first existing file in the places of
 * known distributions, below the folder `root` ("" outside tests). *is_chosen tells whether a variable names it. The
 * result is false, with an empty path, if no file is found. */
bool whit_certificates_find(const char *root, char *path, size_t path_bytes, bool *is_chosen);

#endif
