/* SPDX-License-Identifier: MIT
 * Parses answers of models that know tools only by a description: JSON objects between other words, cut short,
 * nested. */
#include "agent/plain.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    bool is_formed;
    json_t *message = whit_plain_answer((const char *)data, n_bytes, 1, &is_formed);
    const json_t *calls = json_object_get(message, "tool_calls");
    if (json_array_size(calls) && !is_formed) abort();
    json_t *messages = json_pack("[{s:s, s:s}, O]", "role", "system", "content", "", message),
           *plain = whit_plain_messages(messages, NULL);
    if (json_array_size(plain) != 2) abort();
    json_decref(plain);
    json_decref(messages);
    json_decref(message);
    return 0;
}
