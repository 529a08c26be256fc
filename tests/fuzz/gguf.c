/* SPDX-License-Identifier: MIT
 * Opens any bytes as a GGUF file and reads all of its content. */
#include "gguf_touch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_gguf *gguf;
    whit_error error;
    if (whit_gguf_open_memory(data, size, "fuzz", NULL, &gguf, &error) != WHIT_OK) return 0;
    volatile uint64_t sum = touch_gguf(gguf);
    (void)sum;
    whit_gguf_close(gguf);
    return 0;
}
