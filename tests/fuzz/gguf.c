/* SPDX-License-Identifier: MIT
 * Any bytes as a GGUF file: opened, and everything in it read. */
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
