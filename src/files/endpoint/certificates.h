/* SPDX-License-Identifier: MIT
 * Finds the file of certificate authorities that https addresses are checked with. */
#ifndef WHIT_ENDPOINT_CERTIFICATES_H
#define WHIT_ENDPOINT_CERTIFICATES_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the path of a file of certificate authorities to `path`. If SSL_CERT_FILE or CURL_CA_BUNDLE is set, that file
 * is used and *is_chosen becomes true; otherwise the first existing file among the locations of known distributions,
 * below the folder `root` ("" outside tests). Returns false, with an empty path, if no file is found. */
bool whit_certificates_find(const char *root, char *path, size_t path_bytes, bool *is_chosen);

#endif
