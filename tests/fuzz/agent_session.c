/* SPDX-License-Identifier: MIT
 * Reads a session's file; what is read is shortened as in a run. */
#include "agent/messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    whit_agent_messages messages = {.list = json_array(), .limit_bytes = 100};
    whit_error error;
    if (whit_agent_messages_parse(&messages, (const char *)data, n_bytes, "f", &error) == WHIT_OK)
        whit_agent_messages_shorten(&messages);
    whit_agent_messages_free(&messages);
    return 0;
}
