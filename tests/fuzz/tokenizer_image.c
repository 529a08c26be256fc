/* SPDX-License-Identifier: MIT
 * Opens any bytes as a tokenizer image, and encodes and decodes with it. */
#include "tokenizer_touch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_buf aligned = {0};
    if (whit_buf_append(&aligned, data, size)) touch_tokenizer(aligned.data, aligned.size_bytes);
    whit_buf_free(&aligned);
    return 0;
}
