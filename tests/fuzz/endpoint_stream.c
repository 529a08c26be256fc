/* SPDX-License-Identifier: MIT
 * Reads an endpoint's answer in pieces, whose length the first byte chooses. */
#include "endpoint/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    whit_sse stream = {0};
    whit_error error;
    json_t *answer;
    size_t piece = n_bytes ? (size_t)data[0] + 1 : 1;
    for (size_t at = n_bytes > 0; at < n_bytes; at += piece)
        if (!whit_sse_push(&stream, (const char *)data + at, piece < n_bytes - at ? piece : n_bytes - at)) break;
    if (whit_sse_finish(&stream, &answer, &error) == WHIT_OK) json_decref(answer);
    whit_sse_free(&stream);
    return 0;
}
