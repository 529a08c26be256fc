/* SPDX-License-Identifier: MIT
 * Decodes Base64 (RFC 4648) as tiktoken files and character maps use it. */
#ifndef WHIT_TOKENIZER_BASE64_H
#define WHIT_TOKENIZER_BASE64_H

#include "base/mem.h"

/* Appends the decoded bytes; false if `text` is not base64 or memory is short (out->failed). */
bool whit_base64_decode(const char *text, size_t n, whit_buf *out);

#endif
