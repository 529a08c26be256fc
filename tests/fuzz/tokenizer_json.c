/* SPDX-License-Identifier: MIT
 * Builds a tokenizer of any bytes as a tokenizer.json, and uses it. */
#include "tokenizer/from_json.h"
#include "tokenizer_touch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_buf image = {0};
    whit_error error;
    if (whit_tokenizer_from_json("fuzz", (const char *)data, size, NULL, &image, &error) == WHIT_OK)
        touch_tokenizer(image.data, image.size_bytes);
    whit_buf_free(&image);
    return 0;
}
