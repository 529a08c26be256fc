/* SPDX-License-Identifier: MIT
 * Resolves URI references (RFC 3986, 5.2). */
#ifndef WHIT_GRAMMAR_URI_H
#define WHIT_GRAMMAR_URI_H

#include "base/mem.h"

/* Appends the URI that `reference` means relative to `base`, without its fragment. */
void whit_uri_resolve(const char *base, size_t n_base, const char *reference, size_t n_reference, whit_buf *out);

#endif
