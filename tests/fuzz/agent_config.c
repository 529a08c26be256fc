/* SPDX-License-Identifier: MIT
 * Reads settings of an agent: the lowest bit of the first byte says whether they are the user's or the project's. */
#include "agent/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    whit_agent_config config = {0};
    whit_error error;
    size_t skip = n_bytes > 0;
    (void)whit_agent_config_parse(&config, (const char *)data + skip, n_bytes - skip, "f", n_bytes && (data[0] & 1),
                                  &error);
    whit_agent_config_free(&config);
    return 0;
}
