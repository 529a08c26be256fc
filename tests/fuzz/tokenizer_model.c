/* SPDX-License-Identifier: MIT
 * Builds a tokenizer of any bytes as a SentencePiece tokenizer.model, as tiktoken ranks, or as the vocabulary of a
 * GGUF file. */
#include "tokenizer/from_gguf.h"
#include "tokenizer/from_sentencepiece.h"
#include "tokenizer/from_tiktoken.h"
#include "tokenizer_touch.h"

static whit_status read_gguf(const uint8_t *data, size_t size, whit_buf *image, whit_error *error)
{
    whit_gguf *gguf;
    bool found = false;
    WHIT_TRY(whit_gguf_open_memory(data, size, "fuzz", NULL, &gguf, error));
    whit_status status = whit_tokenizer_from_gguf(gguf, "fuzz", &found, image, error);
    whit_gguf_close(gguf);
    return status == WHIT_OK && !found ? WHIT_ERROR_FORMAT : status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_buf image = {0};
    whit_error error;
    whit_status status;
    if (size >= 4 && memcmp(data, "GGUF", 4) == 0)
        status = read_gguf(data, size, &image, &error);
    else
        status = whit_is_tiktoken(data, size)
            ? whit_tokenizer_from_tiktoken("fuzz", data, size, NULL, &image, &error)
            : whit_tokenizer_from_sentencepiece("fuzz", data, size, NULL, &image, &error);
    if (status == WHIT_OK) touch_tokenizer(image.data, image.size_bytes);
    whit_buf_free(&image);
    return 0;
}
