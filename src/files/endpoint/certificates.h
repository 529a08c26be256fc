/* SPDX-License-Identifier: MIT
 * Finds the file of certificate authorities that https addresses are checked with. */
#ifndef WHIT_ENDPOINT_CERTIFICATES_H
#define WHIT_ENDPOINT_CERTIFICATES_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the path of a file of certificate authorities to `path`. If SSL_CERT_FILE or else CURL_CA_BUNDLE is set and
 * not empty, its value is the path, whether or not the file exists, and *is_chosen becomes true. Otherwise *is_chosen
 * is false, and the path is that of the first readable file among the locations of known distributions, below the
 * folder `root` ("" outside tests). Returns false if no file is found or the chosen path does not fit. */
bool whit_certificates_find(const char *root, char *path, size_t path_bytes, bool *is_chosen);

#endif
