/* SPDX-License-Identifier: MIT
 * Any bytes as a tokenizer.model: SentencePiece or tiktoken ranks. */
#include "tokenizer/from_sentencepiece.h"
#include "tokenizer/from_tiktoken.h"
#include "tokenizer_touch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_buf image = {0};
    whit_error error;
    whit_status status = whit_is_tiktoken(data, size)
        ? whit_tokenizer_from_tiktoken("fuzz", data, size, NULL, &image, &error)
        : whit_tokenizer_from_sentencepiece("fuzz", data, size, NULL, &image, &error);
    if (status == WHIT_OK) touch_tokenizer(image.data, image.size_bytes);
    whit_buf_free(&image);
    return 0;
}
