/* SPDX-License-Identifier: MIT
 * The file of certificate authorities that https addresses are checked with. */
#ifndef WHIT_ENDPOINT_CERTIFICATES_H
#define WHIT_ENDPOINT_CERTIFICATES_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the file: the one that SSL_CERT_FILE or CURL_CA_BUNDLE names, else the first that exists among the places of
 * known distributions, below the folder `root` ("" outside tests). *is_chosen: a variable names it. False, with an
 * empty path, if there is none. */
bool whit_certificates_find(const char *root, char *path, size_t path_bytes, bool *is_chosen);

#endif
