/* SPDX-License-Identifier: MIT
 * Reads any bytes as messages: an appended message is one line that reads back the same, and its calls can be
 * answered. */
#include "runtime/conversation.h"

#include <stdlib.h>

static void open_list(whit_conversation *list)
{
    *list = (whit_conversation){.n_left_out = 0};
}

static void close_list(whit_conversation *list)
{
    whit_conversation_keep(list, 0);
    whit_buf_free(&list->messages);
    whit_buf_free(&list->call_texts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whit_conversation first, second;
    whit_buf text = {0}, again = {0};
    whit_error error;
    if (size > 1 << 16) return 0;
    open_list(&first);
    open_list(&second);
    if (whit_conversation_append(&first, size ? (const char *)data : "", size, &error) == WHIT_OK) {
        while (whit_conversation_next_call(&first))
            if (whit_conversation_return(&first, "x", 1, &error) != WHIT_OK) abort();
        if (!whit_conversation_write(&first, 0, 0, &text) || memchr(text.data, '\n', text.size_bytes) ||
            whit_conversation_append(&second, (const char *)text.data, text.size_bytes, &error) != WHIT_OK ||
            !whit_conversation_write(&second, 0, 0, &again) || text.size_bytes != again.size_bytes ||
            memcmp(text.data, again.data, text.size_bytes) != 0)
            abort();
        while (whit_conversation_undo(&second)) continue;
    }
    close_list(&first);
    close_list(&second);
    whit_buf_free(&text);
    whit_buf_free(&again);
    return 0;
}
