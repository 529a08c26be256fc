/* SPDX-License-Identifier: MIT
 * Decodes Base64 (RFC 4648), which tiktoken files and character maps use. */
#ifndef WHIT_TOKENIZER_BASE64_H
#define WHIT_TOKENIZER_BASE64_H

#include "base/mem.h"

/* Appends the decoded bytes to `out`. Returns false if `text` is not Base64 or memory is exhausted (then out->failed is
 * set). */
bool whit_base64_decode(const char *text, size_t n, whit_buf *out);

#endif
