/* SPDX-License-Identifier: MIT
 * Any bytes as a conversation's file: what is read can be written, and reads back the same. */
#include "runtime/messages.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_messages first = {0}, second = {0};
    whit_buf text = {0}, again = {0};
    whit_error error;
    if (size > 1 << 16) return 0;
    if (whit_messages_read(&first, "input", (const char *)data, size, &error) == WHIT_OK &&
        whit_messages_write(&first, &text, &error) == WHIT_OK) {
        if (whit_messages_read(&second, "output", (const char *)text.data, text.size_bytes, &error) != WHIT_OK ||
            whit_messages_write(&second, &again, &error) != WHIT_OK || text.size_bytes != again.size_bytes ||
            memcmp(text.data, again.data, text.size_bytes) != 0)
            abort();
    }
    whit_messages_free(&first);
    whit_messages_free(&second);
    whit_buf_free(&text);
    whit_buf_free(&again);
    return 0;
}
