/* SPDX-License-Identifier: MIT
 * Reads any bytes as a program's binary form, and converts any text to that form and back. */
#include <stdlib.h>
#include <string.h>

#include "lang/core/binary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_buf text = {0}, bytes = {0}, again = {0};
    whit_error error;
    uint8_t root[WHIT_HASH_BYTES], other[WHIT_HASH_BYTES];
    if (whit_lang_decode("fuzz", data, size, &text, root, &error) == WHIT_OK) {
        if (whit_lang_encode("fuzz", (const char *)text.data, text.size_bytes, &bytes, other, &error) != WHIT_OK ||
            bytes.size_bytes != size || memcmp(bytes.data, data, size) != 0 || memcmp(root, other, sizeof root) != 0)
            abort();
    } else if (whit_lang_encode("fuzz", (const char *)data, size, &bytes, root, &error) == WHIT_OK) {
        if (whit_lang_decode("fuzz", bytes.data, bytes.size_bytes, &again, other, &error) != WHIT_OK ||
            memcmp(root, other, sizeof root) != 0)
            abort();
    }
    whit_buf_free(&text);
    whit_buf_free(&bytes);
    whit_buf_free(&again);
    return 0;
}
